# SPDX-License-Identifier: BSD-2-Clause
"""A process between the two sides of connections, which misbehaves on request: it delays with jitter, holds or swallows one direction, holds a direction from
the second time that it carries a word, delivers byte by byte, cuts, cuts instead of the n-th answer, resets, refuses.

One process serves all links of a world. A link is a listening address, its target, and how it behaves. "up" is towards the target.
"""
import collections
import random
import selectors
import socket
import struct
import time

import lock_client
import process
import wire

CHUNK, FULL = 1 << 16, 8 << 20
POLICY = {"delay": {"up": None, "down": None}, "hold": {"up": False, "down": False}, "swallow": {"up": False, "down": False},
          "bytewise": False, "refuse": False, "cut_answer": 0, "no_pubsub": False, "polite": False, "hold_second": None}


class Way:
    """One direction of a connection, with the bytes that are read and not written yet."""

    def __init__(self, name, source, sink):
        self.name, self.source, self.sink, self.queue, self.size, self.last, self.blocked = name, source, sink, collections.deque(), 0, 0.0, False

    def put(self, data, due):
        self.last = max(self.last, due)  # bytes never overtake each other
        self.queue.append([self.last, data])
        self.size += len(data or b"")


class Pipe:
    """An accepted connection, and the connection to the target."""

    def __init__(self, link, near, far):
        self.link, self.near, self.far, self.answers, self.closing = link, near, far, 0, False
        self.seen, self.held = 0, False  # how many chunks contained the word of hold_second; everything from the second on is held
        self.ways = (Way("up", near, far), Way("down", far, near))


class Link:
    def __init__(self, key, listener, target):
        self.key, self.listener, self.target, self.pipes, self.silent = key, listener, target, set(), []
        self.policy = {name: dict(value) if isinstance(value, dict) else value for name, value in POLICY.items()}
        self.accepted = 0


class Proxy:
    def __init__(self, control, seed):
        self.control, self.rng, self.links = control, random.Random(seed), {}
        self.selector = selectors.DefaultSelector()
        self.selector.register(control, selectors.EVENT_READ, self.command)

    # --- commands ----------------------------------------------------------------------------------------------------

    def command(self, _):
        try:
            verb, args = self.control.recv()
        except EOFError:
            raise SystemExit from None
        self.control.send(getattr(self, "do_" + verb)(*args))

    def do_open(self, key, listen, target):
        listener = socket.socket(socket.AF_UNIX if isinstance(listen, str) else socket.AF_INET)
        if not isinstance(listen, str):
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(listen)
        listener.listen(128)
        listener.setblocking(False)
        link = self.links[key] = Link(key, listener, target)
        self.selector.register(listener, selectors.EVENT_READ, lambda _, link=link: self.accept(link))
        return listener.getsockname()

    def do_set(self, keys, changes):
        for key in keys:
            policy = self.links[key].policy
            for name, value in changes.items():
                if isinstance(policy[name], dict):
                    policy[name].update(value if isinstance(value, dict) else {"up": value, "down": value})
                else:
                    policy[name] = value
        return True

    def do_cut(self, keys, how):
        """how: close; reset (TCP, towards the target); politely: closes the near side, and the target once the near side has closed."""
        count = 0
        for key in keys:
            for pipe in list(self.links[key].pipes):
                count += 1
                if how == "politely":
                    self.part(pipe)
                else:
                    self.close(pipe, how == "reset")
        return count

    def do_count(self, key):
        return self.links[key].accepted, len(self.links[key].pipes)

    # --- connections -------------------------------------------------------------------------------------------------

    def accept(self, link):
        try:
            near, _ = link.listener.accept()
        except OSError:
            return
        link.accepted += 1
        if link.policy["refuse"]:
            near.close()
            return
        try:
            far = wire.connect(link.target)
        except OSError:
            near.close()
            return
        pipe = Pipe(link, near, far)
        link.pipes.add(pipe)
        for way in pipe.ways:
            way.source.setblocking(False)
            if way.source.family == socket.AF_INET:
                way.source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.selector.register(way.source, selectors.EVENT_READ, lambda _, pipe=pipe, way=way: self.read(pipe, way))

    def unregister(self, sock):
        try:
            self.selector.unregister(sock)
        except (KeyError, ValueError):
            pass

    def close(self, pipe, reset=False):
        pipe.link.pipes.discard(pipe)
        for sock in (pipe.near, pipe.far):
            self.unregister(sock)
            if reset and sock is pipe.far:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if not (reset and sock is pipe.near):  # the near side notices nothing of a reset: its socket stays open and silent
                sock.close()
        if reset:
            pipe.link.silent.append(pipe.near)

    def part(self, pipe):
        pipe.closing = True
        for way in pipe.ways:
            way.queue.clear()
        try:
            pipe.near.shutdown(socket.SHUT_WR)
        except OSError:
            self.close(pipe)

    # --- bytes -------------------------------------------------------------------------------------------------------

    def read(self, pipe, way):
        policy = pipe.link.policy
        if way.size > FULL:
            self.unregister(way.source)  # for good: no sound test sends so much
            return
        try:
            data = way.source.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if pipe.closing:
            if way.name == "up" and not data:
                self.close(pipe)
            return
        if data and policy["swallow"][way.name]:
            return
        if data and way.name == "up" and policy["no_pubsub"] and b"\r\nSUBSCRIBE\r\n" in data:
            self.close(pipe)
            return
        if data and way.name == "down" and policy["cut_answer"]:
            pipe.answers += 1
            if pipe.answers >= policy["cut_answer"]:
                self.close(pipe)
                return
        if way.name == "up" and policy["hold_second"] and policy["hold_second"] in data:
            pipe.seen += 1
            pipe.held = pipe.seen > 1
        delay = policy["delay"][way.name]
        due = time.monotonic() + (self.rng.uniform(*delay) if delay else 0)
        if policy["bytewise"] and data:
            for i in range(len(data)):
                way.put(data[i:i + 1], due)
        else:
            way.put(data or None, due)
        if not data:
            self.unregister(way.source)
        self.write(pipe, way)

    def write(self, pipe, way):
        """Writes the bytes that are due, unless the direction is held. None in the queue is the end of the connection."""
        policy = pipe.link.policy
        if policy["hold"][way.name] or policy["swallow"][way.name] or (pipe.held and way.name == "up"):
            return
        at = time.monotonic()
        while way.queue and way.queue[0][0] <= at and pipe in pipe.link.pipes:
            data = way.queue[0][1]
            if data is None:
                if way.name == "down" and policy["polite"]:
                    self.part(pipe)
                else:
                    self.close(pipe)
                return
            try:
                sent = way.sink.send(data)
            except BlockingIOError:
                way.queue[0][0] = at + 0.002
                return
            except OSError:
                self.close(pipe)
                return
            way.size -= sent
            if sent < len(data):
                way.queue[0][1] = data[sent:]
            else:
                way.queue.popleft()

    def pump(self):
        """Writes the bytes that have become due. Returns the seconds until the next are."""
        next_due, at = 0.5, time.monotonic()
        for link in self.links.values():
            for pipe in list(link.pipes):
                for way in pipe.ways:
                    if way.queue and way.queue[0][0] <= at:
                        self.write(pipe, way)
                    stuck = link.policy["hold"][way.name] or link.policy["swallow"][way.name] or (pipe.held and way.name == "up")
                    if way.queue and not stuck:
                        next_due = min(next_due, max(0, way.queue[0][0] - at))
        return next_due

    def loop(self):
        while True:
            for key, _ in self.selector.select(self.pump()):
                key.data(key.fileobj)


def run(control, seed, network=None):
    process.die_with_parent()
    if network:
        lock_client.enter(network)
    try:
        Proxy(control, seed).loop()
    except (KeyboardInterrupt, SystemExit):
        pass

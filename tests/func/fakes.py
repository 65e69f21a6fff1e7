# SPDX-License-Identifier: BSD-2-Clause
"""Servers in the place of a Redis: one that answers nonsense, and a relay to a real one that can misbehave."""
import selectors
import socket
import threading


class Server:
    """A Unix socket and all its connections, served by one thread. took(connection, data) is called with what arrives."""

    def __init__(self, path):
        self.path, self.selector = path, selectors.DefaultSelector()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(64)
        self.selector.register(self.listener, selectors.EVENT_READ, self.accept)
        self.wake_in, self.wake_out = socket.socketpair()
        self.selector.register(self.wake_in, selectors.EVENT_READ, None)
        self.accepted, self.thread = 0, threading.Thread(target=self.loop, daemon=True)

    def start(self):
        self.thread.start()
        return self

    def loop(self):
        while True:
            for key, _ in self.selector.select():
                if key.data is None:
                    return
                try:
                    key.data(key.fileobj)
                except OSError:
                    self.drop(key.fileobj)

    def accept(self, listener):
        sock, _ = listener.accept()
        self.accepted += 1
        self.selector.register(sock, selectors.EVENT_READ, self.read)
        self.opened(sock)

    def read(self, sock):
        data = sock.recv(1 << 16)
        if data:
            self.took(sock, data)
        else:
            self.drop(sock)

    def drop(self, sock):
        try:
            self.selector.unregister(sock)
        except (KeyError, ValueError):
            pass
        sock.close()

    def opened(self, sock):
        pass

    def took(self, sock, data):
        pass

    def stop(self):
        self.wake_out.send(b"x")
        self.thread.join(5)
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()
        self.wake_out.close()


class Nonsense(Server):
    """Answers everything with the same bytes. None: never answers. b"": closes the connection."""

    def __init__(self, path, answer):
        super().__init__(path)
        self.answer = answer

    def took(self, sock, data):
        if self.answer is None:
            return
        if self.answer == b"":
            return self.drop(sock)
        sock.sendall(self.answer)


class Relay(Server):
    """Stands between a daemon and a real Redis. It can replace replies and hold requests."""

    def __init__(self, path, to):
        super().__init__(path)
        self.to, self.peer = to, {}
        self.instead = None  # replaces every reply: bytes, or a function of the reply
        self.hold_requests = False
        self.held, self.lock = [], threading.Lock()

    def opened(self, sock):
        other = socket.socket(socket.AF_UNIX)
        other.connect(self.to)
        self.peer[sock], self.peer[other] = other, None
        self.selector.register(other, selectors.EVENT_READ, lambda o: self.reply(sock, o))

    def took(self, sock, data):
        with self.lock:
            if self.hold_requests:
                self.held.append((sock, data))
            else:
                self.peer[sock].sendall(data)

    def reply(self, sock, other):
        data = other.recv(1 << 16)
        if not data:
            self.drop(other)
            return self.drop(sock)
        instead = self.instead
        if callable(instead):
            data = instead(data)
        elif instead is not None:
            data = instead
        if data == b"close":
            self.drop(other)
            return self.drop(sock)
        if data:
            sock.sendall(data)

    def drop(self, sock):
        other = self.peer.pop(sock, None)
        super().drop(sock)
        if other is not None:
            super().drop(other)

    def release(self):
        """Sends the requests that were held."""
        with self.lock:
            self.hold_requests = False
            for sock, data in self.held:
                try:
                    self.peer[sock].sendall(data)
                except (KeyError, OSError):
                    pass
            self.held = []

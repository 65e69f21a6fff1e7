# SPDX-License-Identifier: BSD-2-Clause
"""Connections that send garbage beside well-behaved clients, which notice nothing of it."""
import errno
import os
import random
import socket
import struct
import time

from harness import on_each_store
from process import WAIT, until
from wire import connect

GARBAGE, GOOD, SECONDS = 64, 4, 5.0
REQUESTS = [b"LOCK bad-%d wait=5s", b"LOCK bad-%d", b"@t%d LOCK bad-1 wait=forever", b"UNLOCK good-0-%d", b"EXTEND good-1-%d", b"CHECK shared-%d",
            b"SHOW shared-%d", b"UNLOCK bad-%d sync=yes", b"CANCEL @t%d", b"HELLO 1 name=bad heartbeat=%d", b"LIST locks limit=%d", b"STATS", b"HELP",
            b"UNLOCK shared-%d fence=1"]
SPOILT = [byte for byte in range(256) if byte != ord("\n")]


class Nuisance:
    """A connection that breaks every rule, and dials again when the daemon closes it. It never takes a name of a well-behaved client."""

    def __init__(self, addrs, chance):
        self.addrs, self.chance, self.sock = addrs, chance, None

    def line(self):
        line = bytearray(self.chance.choice(REQUESTS))
        if b"%d" in line:
            line = bytearray(bytes(line) % self.chance.randrange(3))
        if self.chance.random() < 0.3:  # spoils the verb, never the name
            line[self.chance.randrange(4)] = self.chance.choice(SPOILT)
        return bytes(line)

    def noise(self):
        kind = self.chance.randrange(8)
        if kind == 0:
            return self.chance.randbytes(self.chance.randrange(1, 3000))
        if kind == 1:
            return b"x" * self.chance.randrange(8000, 200000) + self.chance.choice([b"\n", b"", b"\r\n"])
        if kind == 2:
            return b"\0" * self.chance.randrange(1, 2000) + b"\n"
        if kind == 3:
            return self.line()[:-1]  # half a request, without LF
        if kind == 4:
            return b"\n" * 300 + b"\r\n# \xff\n"
        return b"\n".join(self.line() for _ in range(self.chance.randrange(1, 40))) + b"\n"

    def leave(self):
        how = self.chance.randrange(3)
        if how == 0:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if how == 1:
            self.sock.shutdown(socket.SHUT_WR)
        else:
            self.close()

    def act(self):
        try:
            if not self.sock:
                self.sock = connect(self.chance.choice(self.addrs))
                self.sock.setblocking(False)
            what = self.chance.random()
            if what < 0.1:
                self.leave()
            elif what < 0.4:
                self.sock.recv(1 << 16)  # most never read what the daemon sends
            else:
                self.sock.send(self.noise())
        except BlockingIOError:
            pass
        except OSError as e:
            if e.errno not in (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN, errno.EAGAIN):
                raise
            self.close()

    def close(self):
        if self.sock:
            self.sock.close()
        self.sock = None


class Good:
    """A well-behaved client. held: {name: [fence, count]}."""

    def __init__(self, client, k):
        self.client, self.k, self.held = client, k, {}
        self.session = client.ok("HELLO 1 name=good-%d" % k)["session"]
        self.own = ["good-%d-%d" % (k, i) for i in range(3)]

    def act(self, chance, all_held):
        name = chance.choice(self.own + ["shared-0", "shared-1"])
        other = all_held.get(name, self) is not self
        verb = chance.choice(["LOCK", "LOCK", "UNLOCK", "CHECK", "EXTEND", "PING"])
        if verb == "PING":
            self.client.ok("PING")
        elif verb == "LOCK" and other:
            self.client.busy("LOCK " + name)
        elif verb == "LOCK":
            self.lock(name)
        elif name not in self.held:
            self.client.err("%s %s" % (verb, name), "NOTHELD")
        elif verb == "UNLOCK":
            self.unlock(name, chance.choice(["", " sync=yes"]))
        else:
            answer = self.client.ok("%s %s" % (verb, name))
            assert answer.num("fence") == self.held[name][0] and answer.num("valid_ms") > 0, answer
        # A push would mean that a lock is lost or at risk.
        assert not self.client.inbox and not self.client.fill(0), self.client.inbox

    def lock(self, name):
        answer = self.client.ok("LOCK " + name)
        stake = self.held.setdefault(name, [answer.num("fence"), 0])
        stake[1] += 1
        assert stake == [answer.num("fence"), answer.num("count")], (answer, stake)

    def unlock(self, name, how):
        self.held[name][1] -= 1
        assert self.client.ok("UNLOCK " + name + how).num("count") == self.held[name][1]
        if self.held[name][1] == 0:
            del self.held[name]


@on_each_store
class Garbage:
    COST, TCP = 12, True

    def agree(self, observer, good):
        """LIST and SHOW agree with what the clients know of their locks."""
        known = {(name, g.session, *map(str, stake)) for g in good for name, stake in g.held.items()}
        for prefix in ("good-", "shared-"):
            rows = observer.ok("LIST locks prefix=" + prefix).rows
            told = {(row["name"], row["session"], row["fence"], row["count"]) for row in rows if "session" in row}
            self.assertEqual(told, {stake for stake in known if stake[0].startswith(prefix)})
        for name, session, fence, count in sorted(known)[:1]:
            holder = observer.ok("SHOW " + name).rows[0]
            self.assertEqual((holder["session"], holder["fence"], holder["count"]), (session, fence, count))

    def test_well_behaved_clients_notice_nothing(self):
        seed = int(os.environ.get("REDLOCKD_SEED", random.randrange(1 << 32)))
        chance, observer = random.Random(seed), self.connect()
        good = [Good(self.connect(tcp=k % 2), k) for k in range(GOOD)]
        nuisances = [Nuisance([self.d.addr, self.d.tcp], chance) for _ in range(GARBAGE)]
        acts, longest, end = 0, 0.0, time.monotonic() + SECONDS
        try:
            while time.monotonic() < end:
                for _ in range(16):
                    chance.choice(nuisances).act()
                begin = time.monotonic()
                for g in good:
                    g.act(chance, {name: one for one in good for name in one.held})
                self.agree(observer, good)
                acts, longest = acts + 1, max(longest, time.monotonic() - begin)
        except AssertionError as e:
            raise AssertionError("REDLOCKD_SEED=%d: %s" % (seed, e)) from e
        finally:
            for n in nuisances:
                n.close()
        self.figure("REDLOCKD_SEED=%d, %d rounds of %d requests and LIST, the longest took %.0f ms" % (seed, acts, GOOD, 1000 * longest))
        # Where the daemon closes a connection, the lock is kept for the rest of its lease, 10 s: the peer may not know it yet.
        until(lambda: not observer.ok("LIST locks prefix=bad-").rows, "no lock of the garbage is left", 2 * WAIT)
        until(lambda: observer.ok("LIST sessions").num("n") == GOOD + 1, "the sessions of the garbage have ended")
        self.agree(observer, good)

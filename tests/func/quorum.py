# SPDX-License-Identifier: BSD-2-Clause
"""Three independent Redis servers and two daemons, as of two hosts; a load on both, and a ledger outside of all of them that convicts an overlap."""
import fcntl
import os
import random
import struct
import time

from harness import FuncTest, Noise, safety
from process import merged, temp_folder, until
from test_counter import Workers
from wire import Client

SHORT = {"lease": "2s", "max_lease": "2s"}
QUARANTINE = 2.0  # max_lease: a server that forgot has no vote before this has passed
REJOIN = QUARANTINE * 1.02 + 3.0  # and at the latest: reconnecting, 1 s; noticing, 1 s; both daemons one after the other


def joined(client):
    """How many servers the daemon of this client counts."""
    return len([row for row in client.ok("LIST nodes").rows if row["state"] == "joined"])


class Ledger:
    """What the lock protects: a counter that any overlap tears, and a register that refuses a token smaller than one it has seen."""
    ROW = struct.Struct("qqqd")  # value, fence, refused, CLOCK_MONOTONIC

    def __init__(self, folder):
        self.counter, self.register, self.log = (os.path.join(folder, name) for name in ("counter", "register", "log"))
        for path in (self.counter, self.register, self.log):
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))

    def offer(self, fence):
        """Whether the register refuses this token. Atomic by itself: it stands for a resource, not for what the lock protects."""
        with open(self.register, "r+") as register:
            fcntl.flock(register, fcntl.LOCK_EX)
            if fence < int(register.read() or 0):
                return True
            register.seek(0)
            register.write("%d" % fence)
        return False

    def visit(self, fence):
        """Read, show the token, write what was read plus one: torn by any overlap."""
        with open(self.counter, "r+") as counter:
            value = int(counter.read() or 0) + 1
            refused = self.offer(fence)
            counter.seek(0)
            counter.write("%d" % value)
        with open(self.log, "ab", buffering=0) as log:
            log.write(self.ROW.pack(value, fence, refused, time.monotonic()))

    def rows(self):
        with open(self.log, "rb") as log:
            return list(self.ROW.iter_unpack(log.read()))

    @safety()
    def check(self, test):
        """Nothing lost, nobody refused, tokens grow from visit to visit. Returns the moments of the visits."""
        rows = self.rows()
        test.assertEqual([row[0] for row in rows], list(range(1, len(rows) + 1)), "one after the other")
        fences = [row[1] for row in rows]
        test.assertEqual(fences, sorted(set(fences)), "fences strictly grow in the order of the grants")
        test.assertFalse([row for row in rows if row[2]], "the register refused a token")
        return [row[3] for row in rows]


class QuorumTest(FuncTest):
    """Each test its own servers and daemons; a and b are the first two daemons."""
    STORES, DAEMONS, CONFIG = 3, 2, SHORT

    def setUp(self):
        super().setUp()
        self.servers = [self.redis() for _ in range(self.STORES)]
        self.daemons = [self.host() for _ in range(self.DAEMONS)]
        self.a, self.b = self.daemons[0], self.daemons[-1]

    def host(self, tree=None, **options):
        """One more daemon on these servers, joined at all of them."""
        conf = merged({"store": "redis", "redis": {"nodes": [server.node for server in self.servers]}}, merged(self.CONFIG, tree or {}))
        daemon = self.daemon(conf, **options)
        with daemon.client() as client:
            until(lambda: joined(client) == self.STORES, "all stores are joined")
        return daemon

    def on_both(self, count):
        """Connections to the daemons in turn."""
        return [self.client(self.daemons[i % len(self.daemons)]) for i in range(count)]

    def members(self, name):
        """How many tickets stand in line for this name, at the server that knows of fewest."""
        lines = [server.cli.zrange("redlockd:lock:q:" + name, 0, -1) for server in self.servers if server.process.poll() is None]
        return min(len([member for member in line if not member.startswith(b"~")]) for line in lines)

    def in_line(self, name, count):
        """Until so many daemons stand in line at every server."""
        until(lambda: self.members(name) >= count, "%d tickets in line for %s" % (count, name))

    def ledger(self):
        folder = temp_folder("redlockd-ledger-")
        self.addCleanup(lambda: ([os.unlink(os.path.join(folder, name)) for name in os.listdir(folder)], os.rmdir(folder)))
        return Ledger(folder)


class Load:
    """Processes on all daemons that lock, visit, unlock until their time is up; a LOST or an ERR ends them with status 1."""

    def __init__(self, test, seconds, workers=6, ttls=("2s", "1.9s")):
        self.test, self.ledger, self.name = test, test.ledger(), test.name()
        self.ttls = ttls  # one of these for each LOCK: only who asks for the same as the holder gets the lock without a round
        self.begin, self.noise = time.monotonic(), Noise()
        self.end = self.begin + seconds
        self.workers = Workers(workers, self.work)

    def work(self, number):
        daemons, rng = self.test.daemons, random.Random(number)
        with Client(daemons[number % len(daemons)].addr) as client:
            while time.monotonic() < self.end:
                self.ledger.visit(client.ok("LOCK %s wait=20s ttl=%s" % (self.name, rng.choice(self.ttls)), 30).num("fence"))
                client.ok("UNLOCK " + self.name)
            if client.barrier():
                raise AssertionError("pushed: %r" % client.inbox)

    def watch(self, client, seconds):
        """Lets it run on, and takes in what client is pushed meanwhile; notes how long the machine stood still."""
        until_when = time.monotonic() + seconds
        while time.monotonic() < min(until_when, self.end):
            client.listen(0.01)
            self.noise.look(0.01)

    def finish(self, least, gap):
        """Everybody ended well and nothing was lost; at least so many visits, and never so many seconds without one."""
        self.test.assertEqual(set(self.workers.wait()), {0})
        at = self.ledger.check(self.test)
        longest = max(later - sooner for sooner, later in zip([self.begin] + at, at + [self.end]))
        self.test.figure("%d visits in %.1f s, longest pause %.0f ms" % (len(at), self.end - self.begin, longest * 1000))
        self.test.assertGreaterEqual(len(at), least)
        self.test.assertLessEqual(longest, gap + self.noise.allowance())

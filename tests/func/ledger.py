# SPDX-License-Identifier: BSD-2-Clause
"""Client processes that share one lock, and a ledger outside the daemons and stores that shows any overlap of two of them."""
import fcntl
import mmap
import os
import random
import signal
import struct
import time

from harness import Noise, safety
from process import LATE, until
from wire import Client


class Workers:
    """Forked processes. Each runs body(number), and ends with status 0 only when that has returned."""

    def __init__(self, count, body):
        self.pids = [self.fork(body, i) for i in range(count)]

    @staticmethod
    def fork(body, number):
        pid = os.fork()
        if pid:
            return pid
        status = 1
        try:
            signal.alarm(120)
            body(number)
            status = 0
        except BaseException as fault:
            os.write(2, ("worker %d: %r\n" % (number, fault)).encode())
        finally:
            os._exit(status)

    def wait(self):
        """The statuses of all, once they have ended."""
        return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in self.pids]


class Ledger:
    """What the lock protects: a counter that two overlapping holders spoil, and a register that refuses a fence below one that it has seen."""
    ROW = struct.Struct("qqqd")  # the counter, the fence, whether the register refused it, CLOCK_MONOTONIC

    def __init__(self, folder):
        self.counter, self.register, self.log = (os.path.join(folder, name) for name in ("counter", "register", "log"))
        for path in (self.counter, self.register, self.log):
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))

    def refuses(self, fence):
        """Shows the register a fence. The register guards itself: it stands for a resource that checks fences, not for one that the lock protects."""
        with open(self.register, "r+") as register:
            fcntl.flock(register, fcntl.LOCK_EX)
            if fence < int(register.read() or 0):
                return True
            register.seek(0)
            register.write("%d" % fence)
        return False

    def visit(self, fence):
        """Adds one to the counter, by a read and a later write."""
        with open(self.counter, "r+") as counter:
            value = int(counter.read() or 0) + 1
            refused = self.refuses(fence)
            counter.seek(0)
            counter.write("%d" % value)
        with open(self.log, "ab", buffering=0) as log:
            log.write(self.ROW.pack(value, fence, refused, time.monotonic()))

    def visits(self):
        return os.path.getsize(self.log) // self.ROW.size

    def rows(self):
        with open(self.log, "rb") as log:
            return list(self.ROW.iter_unpack(log.read()))

    @safety()
    def check(self, test, total=None):
        """No visit is lost, no fence is refused, and fences grow from visit to visit. total: how many visits there must be. Returns their moments."""
        rows = self.rows()
        with open(self.counter) as counter:
            test.assertEqual(int(counter.read() or 0), len(rows) if total is None else total)
        test.assertEqual([row[0] for row in rows], list(range(1, len(rows) + 1)), "two visits overlapped")
        fences = [row[1] for row in rows]
        test.assertEqual(fences, sorted(set(fences)), "fences do not grow in the order of the grants")
        test.assertFalse([row for row in rows if row[2]], "the register refused a fence")
        return [row[3] for row in rows]


class Load:
    """Processes on all daemons of a QuorumTest that lock, visit and unlock, for so many seconds, and until there were enough visits. A LOST or an ERR ends them
    with status 1."""
    STILL = 0.9  # seconds: a machine that stands still for longer lets leases of 2 s end

    def __init__(self, test, seconds, workers=6, ttls=("2s", "1.9s")):
        self.test, self.ledger, self.name = test, test.ledger(), test.name()
        self.ttls = ttls  # each LOCK asks for one of these: a daemon hands a lock over without a round only to a LOCK with the holder's ttl
        self.begin, self.noise = time.monotonic(), Noise()
        self.end = self.begin + seconds
        self.stop = mmap.mmap(-1, 1)  # shared: not 0 once they are to end
        self.workers = Workers(workers, self.work)
        self.noise.look()

    def work(self, number):
        daemons, rng = self.test.daemons, random.Random(number)
        with Client(daemons[number % len(daemons)].addr) as client:
            while not self.stop[0]:
                self.ledger.visit(client.ok("LOCK %s wait=20s ttl=%s" % (self.name, rng.choice(self.ttls)), 30).num("fence"))
                client.ok("UNLOCK " + self.name)
            if client.barrier():
                raise AssertionError("pushed: %r" % client.inbox)

    def watch(self, client, seconds):
        """Lets the load run for so long, takes in what the client is pushed, and measures how late the machine is."""
        self.noise.last = time.monotonic()  # what the test did before is no standstill
        until_when = self.noise.last + seconds
        while time.monotonic() < until_when:
            client.listen(0.01)
            self.noise.look(0.01)

    def finish(self, client, least, gap):
        """All workers ended well and the ledger is sound; there were at least so many visits, some of them from now on, and never so many seconds without one."""
        self.watch(client, self.end - time.monotonic())
        least = max(least, self.ledger.visits() + 6)
        until(lambda: self.noise.look(0.005) or self.ledger.visits() >= least, "%d visits" % least, gap + LATE)
        self.end, self.stop[0] = time.monotonic(), 1
        statuses = self.workers.wait()
        if self.noise.worst > self.STILL:
            self.test.skipTest("the machine stood still for %.1f s: locks were lost that clients believed in" % self.noise.worst)
        self.test.assertEqual(set(statuses), {0})
        at = self.ledger.check(self.test)
        longest = max(later - sooner for sooner, later in zip([self.begin] + at, at + [self.end]))
        self.test.figure("%d visits in %.1f s, longest pause %.0f ms" % (len(at), self.end - self.begin, longest * 1000))
        self.test.assertLessEqual(longest, gap + self.noise.allowance())

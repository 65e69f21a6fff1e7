# SPDX-License-Identifier: BSD-2-Clause
"""A daemon keeps nothing of clients that are gone, does not grow with use, and does nothing when it has no work."""
import time
import unittest

from harness import StoreTest, on_each_store
from process import sanitized, until
from pump import Pump
from wire import Client

PAIRS = 5000 if sanitized() else 100000  # the memory of an instrumented daemon shows no leak, so that more pairs are useless


@on_each_store
class NothingLeft:
    """After the last client has gone no key, no session and no timer is left, and memory has not grown."""
    COST = 20
    CONFIG = {"redis": {"timeout": "5s"}}  # the tests are not about the time that a store takes

    def traces(self, c):
        """The figures that must be the same again when all clients are gone."""
        stats = c.stats()
        return {key: stats[key] for key in ("sessions", "locks_held", "waiters", "outstanding_releases", "timers") if key in stats}

    def test_nothing_is_left_of_clients_that_are_gone(self):
        watcher, prefix = self.connect(), self.name()
        until(lambda: watcher.ok("LIST sessions").num("n") == 1, "alone")
        until(lambda: self.traces(watcher).get("outstanding_releases", 0) == 0, "no release is outstanding")
        before = self.traces(watcher)
        clients = [Client(self.d.addr) for _ in range(40)]
        for i, c in enumerate(clients):
            c.ok("LOCK %s-%d" % (prefix, i))
            c.ok("LOCK %s-%d" % (prefix, i))
        for i, c in enumerate(clients):
            c.send(*["@w%d LOCK %s-%d wait=%s" % (k, prefix, (i + k) % 40, ("forever", "60s", "5s")[k % 3]) for k in range(1, 9)])
            c.ok("HELLO 1 name=x heartbeat=60s")
        for i, c in enumerate(clients):
            if i % 4 == 0:
                c.send("QUIT")
            elif i % 4 == 1:
                c.half_close()
            c.close()
        until(lambda: watcher.ok("LIST sessions").num("n") == 1, "the sessions are gone")
        until(lambda: self.traces(watcher) == before, "all traces are gone: %r, now %r" % (before, self.traces(watcher)))
        self.assertEqual(watcher.ok("LIST locks").rows, [])
        if self.r:
            until(lambda: self.r.lock_keys() == [], "the keys are gone: %r" % self.r.lock_keys()[:5])

    def test_no_growth_over_many_pairs(self):
        pump, name = Pump(self.d.addr), self.name()
        self.addCleanup(pump.close)
        request = ("LOCK %s\nUNLOCK %s\n" % (name, name)).encode()
        pairs = PAIRS * 2 // 5 if self.r else PAIRS  # enough to see a leak of eight bytes a pair
        self.assertEqual(pump.run(request, pairs // 2, 2), [])
        for last in (False, True):
            before = self.d.rss_kib()
            begin = time.monotonic()
            self.assertEqual(pump.run(request, pairs, 2), [])
            seconds = time.monotonic() - begin
            after = self.d.rss_kib()
            self.figure("%d pairs in %.1f s, memory %d -> %d KiB" % (pairs, seconds, before, after))
            if sanitized():
                raise unittest.SkipTest("the memory of an instrumented daemon shows no leak")
            if after - before <= 256:
                break  # a buffer may grow once; a leak grows in each round
            self.assertFalse(last, "memory grows with each round")

    def test_no_growth_over_many_names_and_sessions(self):
        def wave():
            for i in range(30):
                pump = Pump(self.d.addr)
                self.assertEqual(pump.run("".join("LOCK %s-%d-%d\nUNLOCK %s-%d-%d\n" % (name, i, k, name, i, k) for k in range(100)).encode(), 3, 200), [])
                pump.close()
        name = self.name()
        watcher = self.connect()
        wave()
        for last in (False, False, True):
            before = self.d.rss_kib()
            for _ in range(3):
                wave()
            after = self.d.rss_kib()
            until(lambda: watcher.ok("LIST locks").num("n") == 0, "no lock is left")
            self.figure("memory %d -> %d KiB" % (before, after))
            if sanitized():
                raise unittest.SkipTest("the memory of an instrumented daemon shows no leak")
            if after - before <= 256:
                break  # a buffer may grow once; a leak grows in each round
            self.assertFalse(last, "memory grows with each round")

    def test_no_growth_over_waits_that_are_cancelled(self):
        holder, name, pump = self.connect(), self.name(), Pump(self.d.addr)
        self.addCleanup(pump.close)
        holder.ok("LOCK " + name)
        # Each brings three lines: of the wait that is withdrawn, of CANCEL, and of a refusal.
        request = ("@w LOCK %s wait=60s\nCANCEL @w\nLOCK %s\n" % (name, name)).encode()
        pump.run(request, 3000, 3)
        before = self.d.rss_kib()
        pump.run(request, 15000, 3)
        after = self.d.rss_kib()
        self.assertEqual(len(holder.roles(name)), 1)
        if sanitized():
            raise unittest.SkipTest("the memory of an instrumented daemon shows no leak")
        self.assertLessEqual(after - before, 256)


class Idle(StoreTest):
    """A daemon without work needs no processor time."""
    STORE, COST = "redis", 3

    def test_a_daemon_without_work_sleeps(self):
        c = self.connect()
        c.ok("LOCK a")
        before = self.d.cpu_seconds()
        c.listen(2)
        self.assertLess(self.d.cpu_seconds() - before, 0.2)

# SPDX-License-Identifier: BSD-2-Clause
"""One Redis that forgets, or whose clock jumps: nobody else is granted a lock that is believed in, and fences grow."""
import time

from contended import Contended
from daemon import on_redis
from harness import LEASE_1S, FuncTest
from process import LATE
from redis_server import FENCE, MARKER

QUARANTINE = 2.0  # seconds, max_lease: a store that has forgotten its locks grants nothing for so long


class Forgetting(Contended):
    """A fault comes while a client holds a lock, and one client of each of two daemons waits for it."""
    COST = 40

    def two_daemons(self, server=None, contend=True, **options):
        self.server = server or self.redis(**options)
        self.a, self.b = self.redis_daemon(self.server, LEASE_1S), self.redis_daemon(self.server, LEASE_1S)
        if contend:
            self.contend()

    def test_a_blank_restart(self):
        self.two_daemons()
        seconds = self.no_second_holder(self.server.restart)
        self.assertGreaterEqual(seconds, QUARANTINE - 0.5)

    def test_a_restart_that_takes_longer_than_the_lease(self):
        self.two_daemons()

        def fault():
            self.server.kill()
            self.lease.lost_in_time(self)
            self.server.restart()
        self.no_second_holder(fault)

    def test_flushall(self):
        self.two_daemons()
        seconds = self.no_second_holder(self.server.cli.flushall)
        self.assertGreaterEqual(seconds, QUARANTINE - 0.2)

    def test_flushall_twice_within_the_quarantine(self):
        self.two_daemons()
        self.server.cli.flushall()
        self.lease.client.listen(1)
        second = time.monotonic()
        self.no_second_holder(self.server.cli.flushall)
        self.assertGreaterEqual(time.monotonic() - second, QUARANTINE, "the second flush does not restart the quarantine")

    def test_a_restart_from_an_old_snapshot(self):
        """The snapshot holds the marker and an older fence, but not the lock."""
        server = self.redis(save=True)
        self.redis_daemon(server, LEASE_1S)
        server.cli.save()
        self.two_daemons(server, contend=False)
        warm = self.client(self.a)
        for _ in range(50):
            warm.ok("LOCK warm wait=5s")
            warm.ok("UNLOCK warm")
        self.contend()
        self.no_second_holder(self.server.restart)

    def test_older_data_is_put_back_in_the_running_server(self):
        """A backup has the marker and an older fence, but not the lock. The run id does not tell, and calls of others raise the fence before a probe sees it."""
        self.two_daemons(contend=False)
        clients = [self.client(daemon) for daemon in (self.a, self.b)]
        keys = {key: (self.server.cli.dump(key), max(self.server.cli.pttl(key), 0)) for key in self.server.cli.scan_iter("*")}
        self.contend()

        def restore():
            pipe = self.server.cli.pipeline(transaction=True)
            pipe.flushall()
            for key, (value, ttl) in keys.items():
                pipe.restore(key, ttl, value)
            pipe.execute()
            for client in clients * 2:
                client.ask("LOCK other")
        seconds = self.no_second_holder(restore)
        self.assertGreaterEqual(seconds, QUARANTINE - 0.5, "the store is not quarantined")

    def test_a_clock_that_is_stepped_ahead(self):
        self.two_daemons(clock=True)
        self.no_second_holder(lambda: self.server.clock.set(40))

    def test_a_clock_that_is_stepped_back(self):
        self.two_daemons(clock=True)
        self.no_second_holder(lambda: self.server.clock.set(-40), lost_at_all=False)

    def test_a_clock_that_is_stepped_far_ahead_and_back_again(self):
        self.two_daemons(clock=True)
        self.no_second_holder(lambda: self.server.clock.set(86400))
        c = self.client(self.a)
        high = c.ok("LOCK after wait=20s", 21).num("fence")
        c.ok("UNLOCK after sync=yes")
        self.server.clock.set(40)
        self.assertGreater(self.fence_within(c, 15), high)

    def fence_within(self, c, seconds):
        return c.ok("LOCK after wait=%ds" % seconds, seconds + 1).num("fence")

    def test_a_deleted_key_loses_that_lock_only(self):
        server = self.redis()
        daemon = self.redis_daemon(server, LEASE_1S)
        holder = self.client(daemon)
        for name in ("one", "two"):
            holder.ok("LOCK " + name)
        server.cli.delete("lock:one")
        lost = holder.push("LOST", "one", 3)
        self.assertEqual(lost["reason"], "evicted")
        holder.ok("CHECK two")
        self.client(daemon).ok("LOCK one wait=5s")
        holder.ok("CHECK two")
        self.assertEqual(holder.inbox, [])

    def test_a_deleted_marker_is_like_a_blank_restart(self):
        self.two_daemons()
        self.no_second_holder(lambda: self.server.cli.delete(MARKER))

    def test_fences_grow_after_the_fence_is_deleted(self):
        server = self.redis()
        c = self.client(self.redis_daemon(server, LEASE_1S))
        for _ in range(3):
            before = c.ok("LOCK f wait=10s", 11).num("fence")
            c.ok("UNLOCK f sync=yes")
            server.cli.delete(FENCE)
            self.assertGreater(c.ok("LOCK f wait=10s", 11).num("fence"), before)
            c.ok("UNLOCK f sync=yes")

    def test_fences_grow_over_daemons_and_blank_restarts(self):
        server, fences = self.redis(), []
        for _ in range(3):
            daemon = self.redis_daemon(server, {"lease": "500ms", "max_lease": "500ms"})
            for fault in (server.cli.script_flush, server.restart, server.restart):
                with daemon.client() as c:
                    fences.append(c.ok("LOCK f wait=10s", 11).num("fence"))
                    c.ok("UNLOCK f sync=yes")
                fault()
            daemon.stop()
        self.assertEqual(fences, sorted(set(fences)))

    def test_with_guard_strict_the_first_start_waits_for_a_quarantine(self):
        server = self.redis()
        begin = time.monotonic()
        daemon = self.daemon(on_redis([server], LEASE_1S, {"guard": "strict"}))
        c = self.client(daemon)
        answer = c.err("LOCK first", "QUORUM")
        self.assertTrue(answer.text)
        granted = c.ok("LOCK first wait=20s", 21)
        self.assertGreaterEqual(granted.at - begin, QUARANTINE)
        self.assertLess(granted.at - begin, QUARANTINE + LATE)

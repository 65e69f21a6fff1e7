# SPDX-License-Identifier: BSD-2-Clause
"""Stopped daemons and stopped stores: a holder hears of its loss before anything else, and in time."""
import os
import select
import time

from daemon import on_redis
from harness import DEFAULT_TIMEOUT, LEASE_1S, FuncTest, StoreTest
from lease import Lease, believed
from process import GONE, LATE, merged, state_of, until


class StoppedDaemon(FuncTest):
    """A daemon is stopped beyond the lease, while a rival at another daemon takes the lock."""
    COST = 12

    def pair(self, lease=None):
        server = self.redis()
        return server, self.redis_daemon(server, lease or LEASE_1S), self.redis_daemon(server, lease or LEASE_1S)

    def stop_beyond_the_lease(self, requests):
        """The holder's daemon is stopped until a rival has the lock, with requests in its socket. Returns (server, name, holder, rival, value of the key)."""
        server, a, b = self.pair()
        name, holder, rival = "stopped", self.client(a), self.client(b)
        granted = holder.ok("LOCK " + name)
        rival.begin("LOCK %s wait=30s" % name)
        until_when = believed(holder, name)
        a.freeze()
        holder.send(*requests)
        taken = rival.reply()
        self.assertEqual(taken.kind, "OK")
        self.assertGreater(taken.num("fence"), granted.num("fence"))
        self.assertGreaterEqual(taken.at, until_when - 0.005, "granted while the holder could still believe in its lock")
        value = server.cli.get("lock:" + name)
        a.thaw()
        return server, name, holder, rival, value

    def test_the_holder_reads_LOST_before_any_OK(self):
        server, name, holder, rival, value = self.stop_beyond_the_lease(["CHECK stopped", "EXTEND stopped", "UNLOCK stopped", "CHECK stopped", "PING"])
        first = holder.line()
        self.assertEqual((first.kind, first.code, first.fields.get("name")), ("!", "LOST", name))
        self.assertEqual([holder.line().code for _ in range(4)], ["LOST", "LOST", "LOST", "NOTHELD"])
        self.assertEqual(holder.line().raw, b"OK")
        self.assertEqual(rival.ok("CHECK " + name).num("count"), 1)
        self.assertEqual(server.cli.get("lock:" + name), value, "the daemon has touched the rival's key")
        rival.barrier()
        self.assertEqual(rival.inbox, [])

    def test_a_LOCK_in_the_socket_is_no_second_LOCK_of_the_holder(self):
        _, name, holder, rival, _ = self.stop_beyond_the_lease(["LOCK stopped", "@t UNLOCK stopped fence=1"])
        self.assertEqual(holder.line().code, "LOST")
        answer = holder.reply()
        self.assertEqual(answer.kind, "BUSY", "the lost lock is locked again: %s" % answer)
        rival.ok("UNLOCK " + name)
        holder.ok("LOCK %s wait=5s" % name)

    def test_the_end_of_the_holder_harms_no_rival(self):
        server, name, holder, rival, value = self.stop_beyond_the_lease([])
        holder.close()
        rival.ok("CHECK " + name)
        until(lambda: server.cli.get("lock:" + name) == value, "the rival's key is there")
        for _ in range(10):
            rival.ok("CHECK " + name)
            rival.listen(0.05)
        self.assertEqual(rival.inbox, [])

    def test_a_short_stop_is_survived(self):
        _, a, b = self.pair()
        holder, rival = self.client(a), self.client(b)
        holder.ok("LOCK short ttl=2s")
        rival.send("LOCK short wait=3s")
        a.freeze()
        rival.listen(0.5)
        a.thaw()
        self.assertEqual(holder.ok("CHECK short").num("count"), 1)
        self.assertEqual(rival.reply().kind, "TIMEOUT")
        holder.ok("UNLOCK short")
        self.assertNotIn("LOST", [line.code for line in holder.inbox])

    def run_child(self, script):
        """redlock run at a daemon that is stopped. Returns (its process, whether its child had ended when the rival read its grant)."""
        _, a, b = self.pair({**LEASE_1S, "lease": "4s", "max_lease": "5s"})  # the command is killed when a tenth is left: a busy machine needs that long
        rival, pidfile = self.client(b), os.path.join(a.folder, "pid")
        wrapper = self.start_redlock(a, "run", "stopped", "--", "sh", "-c", script % pidfile)
        child = until(lambda: os.path.exists(pidfile) and int(open(pidfile).read() or 0), "the child runs")
        pidfd = os.pidfd_open(child)
        self.addCleanup(os.close, pidfd)
        rival.begin("LOCK stopped wait=30s")
        a.freeze()
        self.assertEqual(rival.reply().kind, "OK")
        gone = bool(select.select([pidfd], [], [], 0)[0]) or state_of(child) in GONE
        a.thaw()
        return wrapper, gone

    def test_the_command_of_a_run_has_ended_before_the_rival_is_granted_the_lock(self):
        wrapper, gone = self.run_child("echo $$ >%s; exec sleep 1000")
        self.assertTrue(gone, "the command of the old holder still ran")
        self.assertEqual(wrapper.wait(10), 123)

    def test_a_command_that_ignores_TERM_has_ended_as_well(self):
        wrapper, gone = self.run_child("trap '' TERM INT HUP; echo $$ >%s; while :; do sleep 1; done")
        self.assertTrue(gone, "the command that ignores TERM still ran")
        self.assertEqual(wrapper.wait(10), 123)


class StoppedOnMemory(StoreTest):
    """The same on the memory store."""
    CONFIG, COST = LEASE_1S, 8

    def test_LOST_comes_first_and_the_next_waiter_is_served(self):
        name, holder, waiter = self.name(), self.connect(), self.connect()
        granted = holder.ok("LOCK " + name)
        waiter.begin("LOCK %s wait=30s" % name)
        self.d.freeze()
        holder.send("CHECK " + name, "UNLOCK " + name, "PING")
        waiter.listen(1.5)
        self.d.thaw()
        self.assertEqual([str(holder.line()).split()[:2] for _ in range(4)], [["!", "LOST"], ["ERR", "LOST"], ["ERR", "LOST"], ["OK"]])
        taken = waiter.reply()
        self.assertEqual(taken.kind, "OK")
        self.assertGreater(taken.num("fence"), granted.num("fence"))

    def test_a_wait_ends_in_time_although_its_daemon_was_stopped(self):
        name, holder, waiter = self.name(), self.connect(), self.connect()
        holder.ok("LOCK %s ttl=2s" % name)
        waiter.begin("LOCK %s wait=500ms" % name)
        self.d.freeze()
        holder.listen(1)
        self.d.thaw()
        answer = waiter.reply()
        self.assertEqual(answer.kind, "TIMEOUT")
        self.assertGreaterEqual(answer.num("waited_ms"), 500)
        holder.ok("CHECK " + name)


class StoppedRedis(FuncTest):
    """One Redis is stopped or killed while locks are held."""
    COST = 15

    def hold(self, tree=None):
        server = self.redis()
        daemon = self.redis_daemon(server, merged(LEASE_1S, DEFAULT_TIMEOUT, tree))
        return server, daemon, Lease(self.client(daemon), "held")

    def test_RISK_then_LOST_before_the_validity_ends(self):
        server, _, lease = self.hold()
        server.freeze()
        self.addCleanup(server.thaw)
        lost = lease.lost_in_time(self)
        self.assertEqual(lost["reason"], "quorum")
        pushes = [line for line in lease.client.inbox if line.kind == "!"]
        self.assertEqual([line.code for line in pushes], ["RISK", "LOST"])
        self.assertTrue(0 < pushes[0].num("left_ms") <= 1000, pushes[0])
        self.assertEqual(pushes[0].num("fence"), lease.fence)
        lease.client.err("UNLOCK held", "LOST")

    def test_RISK_then_LOST_when_redis_is_killed(self):
        server, _, lease = self.hold()
        server.kill()
        lost = lease.lost_in_time(self)
        self.assertEqual(lost["reason"], "quorum")
        self.assertEqual([line.code for line in lease.client.inbox if line.kind == "!"], ["RISK", "LOST"])

    def test_LOST_is_never_late_however_far_the_renewal_is(self):
        server = self.redis()
        daemon = self.redis_daemon(server, merged(LEASE_1S, DEFAULT_TIMEOUT, {"lease": "400ms"}))
        for i in range(6):
            lease = Lease(self.client(daemon), "held-%d" % i)
            lease.client.listen(i * 37 / 1000)
            server.freeze()
            try:
                lease.lost_in_time(self)
            finally:
                server.thaw()
            daemon.joined()

    def test_a_stop_shorter_than_the_lease_is_RISK_then_SAFE(self):
        server, _, lease = self.hold({"lease": "2s"})
        server.freeze()
        self.addCleanup(server.thaw)
        risk = lease.client.push("RISK", "held", 3)
        server.thaw()
        safe = lease.client.push("SAFE", "held", 3)
        self.assertEqual((risk.num("fence"), safe.num("fence")), (lease.fence, lease.fence))
        self.assertGreater(safe.num("valid_ms"), 1000)
        for _ in range(5):
            lease.client.listen(0.2)
            lease.client.ok("CHECK held")
        self.assertEqual(lease.client.inbox, [])

    def test_waiting_requests_keep_their_place(self):
        server, daemon, lease = self.hold()
        waiters = []
        for _ in range(5):
            w = self.client(daemon)
            w.begin("LOCK held wait=60s")
            waiters.append(w)
        server.freeze()
        lease.lost_in_time(self)
        for w in waiters:
            w.barrier()
            self.assertEqual(w.inbox, [])
        back = time.monotonic()
        server.thaw()
        last = lease.fence
        for w in waiters:
            granted = w.reply()
            self.assertEqual(granted.kind, "OK")
            self.assertGreater(granted.num("fence"), last)
            last = granted.num("fence")
            for later in waiters[waiters.index(w) + 1:]:
                later.barrier()
                self.assertEqual(later.inbox, [])
            w.ok("UNLOCK held")
        self.assertLess(time.monotonic() - back, 2 + LATE, "the waiters are served late")

    def refused_at_once(self, c):
        for i in range(5):
            begin = time.monotonic()
            c.err("LOCK other-%d" % i, "QUORUM")
            self.assertLess(time.monotonic() - begin, LATE)

    def test_a_LOCK_is_answered_ERR_QUORUM_in_time(self):
        server, daemon, _ = self.hold()
        c = self.client(daemon)
        server.freeze()
        self.addCleanup(server.thaw)
        self.refused_at_once(c)
        begin = time.monotonic()
        c.err("LOCK other wait=400ms", "QUORUM", timeout=5)
        self.assertGreaterEqual(time.monotonic() - begin, 0.4)
        server.thaw()
        begin = time.monotonic()
        c.ok("LOCK other wait=10s")
        self.assertLess(time.monotonic() - begin, 2 + LATE)

    def test_a_LOCK_is_answered_ERR_QUORUM_at_once_when_redis_is_killed(self):
        server, daemon, _ = self.hold()
        server.kill()
        self.refused_at_once(self.client(daemon))
        daemon.logged(r"node")

    def test_UNLOCK_is_answered_while_redis_is_stopped_and_takes_effect_later(self):
        server, daemon, lease = self.hold({"lease": "2s", "redis": {"timeout": "10s"}})
        other = self.client(daemon)
        server.freeze()
        self.addCleanup(server.thaw)
        begin = time.monotonic()
        lease.client.ok("UNLOCK held")
        self.assertLess(time.monotonic() - begin, LATE, "UNLOCK waits for the store")
        server.thaw()
        granted = other.ok("LOCK held wait=10s")
        self.assertGreater(granted.num("fence"), lease.fence)

    def test_UNLOCK_with_sync_is_ERR_QUORUM_and_ends_the_hold(self):
        server, _, lease = self.hold({"lease": "2s"})
        server.freeze()
        self.addCleanup(server.thaw)
        lease.client.err("UNLOCK held sync=yes", "QUORUM", timeout=5)
        lease.client.err("CHECK held", "NOTHELD")

    def test_a_LOCK_that_redis_executes_late_leaves_no_key(self):
        """Redis is stopped with the request in its socket, and executes it after the client was answered ERR QUORUM."""
        server, daemon, _ = self.hold()
        c = self.client(daemon)
        server.freeze()
        self.addCleanup(server.thaw)
        c.err("LOCK late", "QUORUM")
        server.thaw()
        c.ok("LOCK late wait=10s")
        c.ok("UNLOCK late sync=yes")
        until(lambda: not server.cli.exists("lock:late"), "no key is left")

    def test_a_daemon_that_starts_before_its_redis_serves_when_it_comes(self):
        server = self.redis()
        server.kill()
        daemon = self.daemon(on_redis([server], LEASE_1S))
        c, waiter = self.client(daemon), self.client(daemon)
        c.err("LOCK early", ("QUORUM", "UNAVAILABLE"))
        waiter.begin("LOCK early wait=30s")
        server.restart()
        self.assertEqual(waiter.reply().kind, "OK")

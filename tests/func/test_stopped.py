# SPDX-License-Identifier: BSD-2-Clause
"""Stopped daemons and stopped stores: the truth is told before anything else, and in time."""
import os
import select
import subprocess
import time

from harness import FuncTest, Noise, StoreTest
from process import REDLOCK, merged, spawn, state_of, until

SHORT = {"lease": "1s", "max_lease": "2s"}
QUICK = {"redis": {"timeout": "50ms"}}  # the default


class Lease:
    """A held lock as its holder may believe it: asked again and again, with the moment before each question."""

    def __init__(self, client, name):
        self.client, self.name, self.noise = client, name, Noise()
        self.until = 0.0  # by the last answer: the moment of asking plus valid_ms
        self.fence = client.ok("LOCK %s wait=5s" % name).num("fence")

    def check(self):
        before = time.monotonic()
        answer = self.client.ask("CHECK " + self.name)
        if answer.kind == "OK":
            self.until = max(self.until, before + answer.num("valid_ms") / 1000)
        return answer

    def lost_in_time(self, test, limit=10.0):
        """Asks every few milliseconds until LOST comes; fails when that is later than the last answer allowed. Returns the LOST."""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            self.noise.look()
            answer = self.check()
            lost = [line for line in self.client.inbox if line.kind == "!" and line.code == "LOST"]
            if lost:
                if lost[0].place > answer.place:
                    answer = self.check()  # it came between that answer and the look at what else was there
                test.assertEqual(answer.code, "LOST", "no OK after LOST")
                test.assertEqual((lost[0]["name"], lost[0].num("fence")), (self.name, self.fence))
                test.assertLessEqual(lost[0].at, self.until + self.noise.allowance(), "LOST came after the validity had ended")
                return lost[0]
            test.assertEqual(answer.kind, "OK", "LOST is pushed before CHECK says so: %s" % answer)
            self.client.listen(0.002)
        raise AssertionError("no LOST in %g s" % limit)


class StoppedDaemon(FuncTest):
    """SIGSTOP beyond the lease while a rival takes the lock."""
    COST = 12

    def pair(self):
        server = self.redis()
        return server, self.redis_daemon(server, SHORT), self.redis_daemon(server, SHORT)

    def stop_beyond_the_lease(self, requests):
        """Holder on a, rival on b; a stopped; requests stand in a's socket when it goes on. What the holder then reads."""
        server, a, b = self.pair()
        name, holder, rival = "stopped", self.client(a), self.client(b)
        granted = holder.ok("LOCK " + name)
        rival.send("LOCK %s wait=30s" % name)
        rival.barrier()
        checked = holder.ok("CHECK " + name)
        a.freeze()
        holder.send(*requests)
        taken = rival.reply()
        self.assertEqual(taken.kind, "OK")
        self.assertGreater(taken.num("fence"), granted.num("fence"))
        self.assertGreaterEqual(taken.at - checked.at, (checked.num("valid_ms") - 5) / 1000, "the rival came before the holder's own deadline")
        value = server.cli.get("lock:" + name)
        a.thaw()
        return server, name, holder, rival, value

    def test_the_old_holder_hears_LOST_before_any_OK(self):
        server, name, holder, rival, value = self.stop_beyond_the_lease(["CHECK stopped", "EXTEND stopped", "UNLOCK stopped", "CHECK stopped", "PING"])
        first = holder.line()
        self.assertEqual((first.kind, first.code, first.fields.get("name")), ("!", "LOST", name))
        self.assertEqual([holder.line().code for _ in range(4)], ["LOST", "LOST", "LOST", "NOTHELD"])
        self.assertEqual(holder.line().raw, b"OK")
        self.assertEqual(rival.ok("CHECK " + name).num("count"), 1)
        self.assertEqual(server.cli.get("lock:" + name), value, "the rival's key is left alone")
        rival.barrier()
        self.assertEqual(rival.inbox, [])

    def test_a_relock_in_the_socket_is_no_reentrance(self):
        _, name, holder, rival, _ = self.stop_beyond_the_lease(["LOCK stopped", "@t UNLOCK stopped fence=1"])
        self.assertEqual(holder.line().code, "LOST")
        answer = holder.reply()
        self.assertEqual(answer.kind, "BUSY", "not OK with count=2: %s" % answer)
        rival.ok("UNLOCK " + name)
        holder.ok("LOCK %s wait=5s" % name)

    def test_the_end_of_a_stopped_daemons_client_harms_no_rival(self):
        server, name, holder, rival, value = self.stop_beyond_the_lease([])
        holder.close()
        rival.ok("CHECK " + name)
        until(lambda: server.cli.get("lock:" + name) == value, "the rival still holds")
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
        """redlock run on a; a stopped; (the wrapper, whether its child was gone when the rival's grant was read)."""
        _, a, b = self.pair()
        rival, pidfile = self.client(b), os.path.join(a.folder, "pid")
        wrapper = spawn([REDLOCK, "--addr", a.addr, "run", "stopped", "--", "sh", "-c", script % pidfile], stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: (wrapper.kill(), wrapper.wait()))
        child = until(lambda: os.path.exists(pidfile) and int(open(pidfile).read() or 0), "the child runs")
        pidfd = os.pidfd_open(child)
        self.addCleanup(os.close, pidfd)
        rival.send("LOCK stopped wait=30s")
        rival.barrier()
        a.freeze()
        self.assertEqual(rival.reply().kind, "OK")
        gone = bool(select.select([pidfd], [], [], 0)[0]) or state_of(child) in ("", "Z", "X")
        a.thaw()
        return wrapper, gone

    def test_the_child_of_redlock_run_is_gone_before_the_rivals_grant(self):
        wrapper, gone = self.run_child("echo $$ >%s; exec sleep 1000")
        self.assertTrue(gone, "the child of the old holder still ran when the rival was granted")
        self.assertEqual(wrapper.wait(10), 123)

    def test_a_child_that_ignores_TERM_is_gone_as_well(self):
        wrapper, gone = self.run_child("trap '' TERM INT HUP; echo $$ >%s; while :; do sleep 1; done")
        self.assertTrue(gone, "the child that ignores TERM still ran when the rival was granted")
        self.assertEqual(wrapper.wait(10), 123)


class StoppedOnMemory(StoreTest):
    """The same rules without a Redis."""
    CONFIG, COST = SHORT, 8

    def test_LOST_comes_first_and_the_next_in_line_is_served(self):
        name, holder, waiter = self.name(), self.connect(), self.connect()
        granted = holder.ok("LOCK " + name)
        waiter.send("LOCK %s wait=30s" % name)
        waiter.barrier()
        self.d.freeze()
        holder.send("CHECK " + name, "UNLOCK " + name, "PING")
        waiter.listen(1.5)
        self.d.thaw()
        self.assertEqual([str(holder.line()).split()[:2] for _ in range(4)], [["!", "LOST"], ["ERR", "LOST"], ["ERR", "LOST"], ["OK"]])
        taken = waiter.reply()
        self.assertEqual(taken.kind, "OK")
        self.assertGreater(taken.num("fence"), granted.num("fence"))

    def test_the_clock_of_a_wait_went_on(self):
        name, holder, waiter = self.name(), self.connect(), self.connect()
        holder.ok("LOCK %s ttl=2s" % name)
        waiter.send("LOCK %s wait=500ms" % name)
        waiter.barrier()
        self.d.freeze()
        holder.listen(1)
        self.d.thaw()
        answer = waiter.reply()
        self.assertEqual(answer.kind, "TIMEOUT")
        self.assertGreaterEqual(answer.num("waited_ms"), 500)
        holder.ok("CHECK " + name)


class StoppedRedis(FuncTest):
    """One Redis that hangs, or dies, under held locks."""
    COST = 15

    def hold(self, tree=None, **options):
        server = self.redis(**options)
        daemon = self.redis_daemon(server, merged(merged(SHORT, QUICK), tree or {}))
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

    def test_time_after_time_LOST_is_never_late(self):
        server = self.redis()
        daemon = self.redis_daemon(server, merged(merged(SHORT, QUICK), {"lease": "400ms"}))
        for i in range(6):
            lease = Lease(self.client(daemon), "held-%d" % i)
            lease.client.listen(i * 37 / 1000)
            server.freeze()
            try:
                lease.lost_in_time(self)
            finally:
                server.thaw()
            daemon.joined()

    def test_a_hang_shorter_than_the_lease_is_RISK_then_SAFE(self):
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
            w.send("LOCK held wait=60s")
            w.barrier()
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
        self.assertLess(time.monotonic() - back, 2 + 1.5, "a store that is back is used again within 2 s")

    def test_wait_0_says_ERR_QUORUM_in_time(self):
        server, daemon, _ = self.hold()
        c = self.client(daemon)
        server.freeze()
        self.addCleanup(server.thaw)
        for i in range(5):
            begin = time.monotonic()
            c.err("LOCK other-%d" % i, "QUORUM")
            self.assertLess(time.monotonic() - begin, 1.0)
        begin = time.monotonic()
        c.err("LOCK other wait=400ms", "QUORUM", timeout=5)
        self.assertGreaterEqual(time.monotonic() - begin, 0.4)
        server.thaw()
        begin = time.monotonic()
        c.ok("LOCK other wait=10s")
        self.assertLess(time.monotonic() - begin, 3.5)

    def test_wait_0_while_redis_is_dead(self):
        server, daemon, _ = self.hold()
        c = self.client(daemon)
        server.kill()
        for i in range(5):
            begin = time.monotonic()
            c.err("LOCK other-%d" % i, "QUORUM")
            self.assertLess(time.monotonic() - begin, 1.0)
        daemon.logged(r"node")

    def test_unlock_is_answered_while_redis_hangs_and_takes_effect_when_it_is_back(self):
        server, daemon, lease = self.hold({"lease": "2s"})
        other = self.client(daemon)
        server.freeze()
        self.addCleanup(server.thaw)
        begin = time.monotonic()
        lease.client.ok("UNLOCK held")
        self.assertLess(time.monotonic() - begin, 0.5, "answered before the store confirms")
        server.thaw()
        granted = other.ok("LOCK held wait=10s")
        self.assertGreater(granted.num("fence"), lease.fence)

    def test_sync_without_a_quorum_is_ERR_QUORUM_and_the_lock_is_no_longer_yours(self):
        server, _, lease = self.hold({"lease": "2s"})
        server.freeze()
        self.addCleanup(server.thaw)
        lease.client.err("UNLOCK held sync=yes", "QUORUM", timeout=5)
        lease.client.err("CHECK held", "NOTHELD")

    def test_a_grant_whose_reply_was_lost_does_not_stay_behind(self):
        """Redis hangs with the acquire in its socket: it runs late, for a client that was told no."""
        server, daemon, _ = self.hold()
        c = self.client(daemon)
        server.freeze()
        self.addCleanup(server.thaw)
        c.err("LOCK late", "QUORUM")
        server.thaw()
        c.ok("LOCK late wait=10s")
        c.ok("UNLOCK late sync=yes")
        until(lambda: not server.cli.exists("lock:late"), "no key stays behind")

    def test_a_daemon_that_starts_before_its_redis_serves_when_it_comes(self):
        server = self.redis()
        server.kill()
        daemon = self.daemon(merged(SHORT, {"store": "redis", "redis": {"nodes": [server.node]}}))
        c, waiter = self.client(daemon), self.client(daemon)
        c.err("LOCK early", ("QUORUM", "UNAVAILABLE"))
        waiter.send("LOCK early wait=30s")
        waiter.barrier()
        server.restart()
        self.assertEqual(waiter.reply().kind, "OK")


if __name__ == "__main__":
    from harness import main
    main()

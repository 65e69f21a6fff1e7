# SPDX-License-Identifier: BSD-2-Clause
"""DRAIN and redlock drain: nothing new is granted, holders go on, and the daemon ends with status 0."""
import json
import signal
import subprocess
import time

from harness import FuncTest
from process import LATE, WAIT, until
from resumable import resume_fences, with_grace

CONF = {"lease": "2s", "max_lease": "3s", "max_grace": "30s"}


class Drain(FuncTest):
    """Whoever runs the tests is also the user of the daemon, and so an administrator over its Unix socket."""
    COST = 3

    def ended(self, daemon, timeout=WAIT):
        daemon.expect_dead = True
        self.assertEqual(daemon.process.wait(timeout), 0)
        daemon.logged(r"stopping reason=drained")

    def holds(self, daemon):
        holder = self.client(daemon, "holder")
        holder.ok("LOCK a")
        return holder

    def drains(self, daemon, request="DRAIN"):
        admin = self.client(daemon, "admin")
        return admin, admin.ok(request)

    def test_a_holder_goes_on_and_the_daemon_ends_behind_it(self):
        daemon = self.daemon(CONF)
        holder, waiter = self.holds(daemon), self.client(daemon)
        waiter.begin("@w LOCK a wait=30s", "ACQUIRE s limit=2", "TAKE q wait=30s")
        waiter.ok("@r RELEASE s")
        begin = time.monotonic()
        _, answer = self.drains(daemon)
        self.assertLess(time.monotonic() - begin, LATE)
        self.assertEqual((answer["locks"], answer["in_ms"]), ("1", "-1"))
        self.assertEqual([waiter.reply("@w").code, waiter.reply().kind, waiter.reply().code], ["DRAINING", "OK", "DRAINING"])
        for request in ("LOCK b", "LOCK b wait=30s", "LOCKALL b c", "LOCKANY b c", "ACQUIRE s limit=2", "TAKE q"):
            waiter.err(request, "DRAINING")
        holder.listen(2.5)  # longer than the lease: the watchdog renews it
        self.assertEqual(holder.ok("LOCK a").num("count"), 2)
        holder.ok("EXTEND a")
        holder.ok("CHECK a")
        self.assertTrue(daemon.alive())
        holder.ok("UNLOCK a")
        holder.ok("UNLOCK a")
        self.ended(daemon)
        holder.eof()
        daemon.start()
        self.client(daemon).ok("LOCK a")

    def test_the_time_of_holders_is_bounded(self):
        daemon = self.daemon(CONF)
        holder = self.holds(daemon)
        holder.ok("SUBSCRIBE")
        begin = time.monotonic()
        self.drains(daemon, "DRAIN in=30s")
        self.assertGreater(holder.push("DRAIN").num("in_ms"), 25000)
        self.drains(daemon, "DRAIN in=1500ms")
        self.assertLessEqual(holder.push("DRAIN").num("in_ms"), 1500)
        self.assertEqual(holder.push("DRAIN", timeout=5).num("in_ms"), 0)
        holder.eof(5)
        self.ended(daemon)
        self.assertGreater(time.monotonic() - begin, 1.4)

    def test_a_signal_ends_it_at_once(self):
        daemon = self.daemon(CONF)
        self.holds(daemon)
        self.drains(daemon)
        status, seconds = daemon.finish(signal.SIGTERM)
        self.assertEqual(status, 0)
        self.assertLess(seconds, 1 + LATE)
        daemon.logged(r"stopping signal=TERM")

    def test_a_session_that_is_away_is_waited_for_and_resumed(self):
        daemon = self.daemon(CONF)
        client = self.client(daemon)
        ticket = with_grace(client)
        client.ok("LOCK a")
        client.close()
        until(lambda: self.client(daemon).stats()["sessions_detached"] == 1, "the session is detached")
        self.drains(daemon)
        time.sleep(0.3)
        self.assertTrue(daemon.alive())
        back = self.client(daemon)
        self.assertEqual(list(resume_fences(back, ticket)), ["a"])
        back.ok("UNLOCK a")
        self.ended(daemon)

    def test_only_administrators_may(self):
        daemon = self.daemon(CONF, tcp=True)
        self.client(daemon, tcp=True).err("DRAIN", "DENIED")
        self.client(daemon).ok("LOCK a")

    def test_with_redis_nothing_is_left_behind(self):
        server = self.redis()
        daemon = self.redis_daemon(server, CONF)
        holder = self.holds(daemon)
        self.drains(daemon)
        holder.ok("UNLOCK a")
        self.ended(daemon)
        self.assertEqual(server.cli.exists("lock:a"), 0)

    def test_a_daemon_that_drains_says_so(self):
        daemon = self.daemon(CONF)
        holder = self.holds(daemon)
        self.drains(daemon)
        self.assertEqual(holder.stats()["draining"], 1)
        until(lambda: any("1 locks, 0 waiters, draining" in word for word in daemon.notify.said), "the status line says it")


class Tool(FuncTest):
    COST = 2

    def test_it_says_what_is_waited_for(self):
        daemon = self.daemon(CONF)
        self.client(daemon).ok("LOCK a")
        self.assertEqual(self.call_redlock(daemon, "drain", "--in", "60s"),
                         (0, "the daemon grants nothing new; it stops when nobody holds anything, or in 1m00s (1 lock is held)\n", ""))
        status, out, _ = self.call_redlock(daemon, "drain", "--json")
        self.assertEqual((status, json.loads(out)), (0, {"locks": 1, "in_ms": -1}))

    def test_it_stays_until_the_daemon_has_stopped(self):
        daemon = self.daemon(CONF)
        holder = self.client(daemon)
        holder.ok("LOCK a")
        tool = self.start_redlock(daemon, "drain", "--wait", stdout=subprocess.PIPE)
        self.assertIn(b"1 lock is held", tool.stdout.readline())
        self.assertIsNone(tool.poll())
        daemon.expect_dead = True
        holder.ok("UNLOCK a")
        self.assertEqual(tool.wait(WAIT), 0)
        self.assertEqual(daemon.process.wait(WAIT), 0)
        tool.stdout.close()

    def test_redlock_run_waits_for_the_next_daemon(self):
        daemon = self.daemon(CONF)
        holder = self.client(daemon)
        holder.ok("LOCK a")
        run = self.start_redlock(daemon, "run", "a", "--", "true")
        until(lambda: self.client(daemon).stats()["waiters"] == 1, "the command waits")
        self.call_redlock(daemon, "drain")
        daemon.expect_dead = True
        holder.ok("UNLOCK a")
        self.assertEqual(daemon.process.wait(WAIT), 0)
        self.assertIsNone(run.poll())
        daemon.start()
        self.assertEqual(run.wait(WAIT), 0)

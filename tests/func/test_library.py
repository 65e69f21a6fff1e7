# SPDX-License-Identifier: BSD-2-Clause
"""libredlock, as a program uses it (caller.c): what it asks, watches and holds, over daemons that restart, die, stop and go on. And its examples, as printed."""
import os
import random
import signal
import subprocess
import time

from harness import FuncTest, StoreTest, on_each_store
from process import BUILD, LATE, PipeLines, reap, spawn, until
from quorum import QuorumTest
from relay import LosingRelay

GRACE = "30000"


class Caller:
    """The program: each call is one line."""

    def __init__(self, test, daemon=None, label="caller", grace=GRACE, env=None):
        self.process = spawn([os.path.join(BUILD, "caller")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ, **(env or {})))
        test.addCleanup(self.end)
        self.lines, self.test = PipeLines(self.process.stdout), test
        if daemon:
            self.ok("open " + daemon.addr)
            self.ok("hello %s %s" % (label, grace))

    def kill(self):
        reap(self.process)

    def end(self):
        """A report of a sanitizer is a status that is not 0."""
        if self.process.returncode == -signal.SIGKILL:
            return
        if self.process.poll() is None and not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            status = self.process.wait(10)
        finally:
            reap(self.process)
        self.test.assertEqual(status, 0, "the caller ended so")

    def begin(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def result(self, timeout=20):
        """What the call has told, and how it ended."""
        told = []
        while True:
            line = self.lines.next("the caller", timeout)
            if line.startswith("= "):
                return told, line[2:]
            told.append(line[2:])

    def call(self, line, timeout=20):
        self.begin(line)
        return self.result(timeout)

    def ok(self, line, timeout=20):
        told, end = self.call(line, timeout)
        self.test.assertEqual(end, "0", "%s: %s" % (line, told))
        return told

    def fails(self, line, end, timeout=20):
        self.test.assertEqual(self.call(line, timeout)[1], end, line)

    def fence(self, line):
        return [int(words.split()[2]) for words in self.ok(line) if words.startswith("grant ")]

    def pushed(self, *parts):
        """The next push has all of these."""
        push, = self.ok("push")
        for part in parts:
            self.test.assertIn(part, push)
        return push


@on_each_store
class Asking:
    def test_names_and_rows(self):
        c, name = Caller(self, self.d), self.name()
        names = ["%s/%d" % (name, i) for i in range(5)]
        for each in names:
            c.ok("lock " + each)
        self.assertEqual(c.ok("complete %s/ 2" % name), ["* name=" + each for each in names[:2]])
        self.assertEqual(c.ok("recent %s/" % name), ["* name=" + each for each in reversed(names)])
        told = c.ok("list locks %s/ 2" % name)
        self.assertEqual([line for line in told if line.startswith("page")], ["page 3", "page 1", "page 0"])
        self.assertEqual([line.split()[1] for line in told if line.startswith("*")], ["name=" + each for each in names])
        self.assertIn("role=holder", c.ok("show " + names[0])[0])
        self.assertTrue(any("name=caller" in line for line in c.ok("list sessions")))
        self.assertTrue(c.ok("list nodes"))
        self.assertTrue(any("metric=" in line for line in c.ok("stats")))
        c.ok("list queues")
        c.ok("ping")
        self.assertEqual(c.ok("permit %s/s 1" % name), ["permit 0"])

    def test_a_request_is_withdrawn(self):
        c, other, name = Caller(self, self.d), self.connect(), self.name()
        other.ok("LOCK " + name)
        c.ok("queue " + name)
        until(lambda: "waiter" in other.roles(name), "it waits")
        c.fails("cancel", "3 CANCELLED")
        self.assertEqual(other.roles(name), ["holder"])
        c.ok("queue " + name)
        other.ok("UNLOCK " + name)
        c.ok("finish")
        c.ok("check " + name)
        c.ok("unlock " + name)

    def test_an_administrator_breaks_and_kills(self):
        c, other, name = Caller(self, self.d), self.connect(), self.name()
        other.ok("LOCK " + name)
        self.assertRegex(c.ok("break " + name)[0], r"^number \d+$")
        self.assertEqual(other.push("LOST", name)["reason"], "broken")
        c.fails("break %s-free" % name, "3 NOTFOUND")
        other.ok("LOCK %s/2" % name)
        session = other.ok("SHOW %s/2" % name).rows[0]["session"]
        self.assertEqual(c.ok("kill " + session), ["number 1"])
        c.fails("kill " + session, "3 NOTFOUND")
        other.eof()


class Killed(FuncTest):
    """A daemon on the memory store that is killed and comes back, with its journal."""
    COST = 20

    def setUp(self):
        super().setUp()
        self.d = self.daemon({"lease": "5s", "max_lease": "10s"})

    def test_each_of_several_locks_goes_on_or_is_told_as_lost(self):
        c, name = Caller(self, self.d), self.name()
        a, b, x, y = ("%s/%s" % (name, part) for part in "abxy")
        before = c.fence("all %s %s" % (a, b)) + c.fence("any %s %s" % (x, y))
        self.d.restart()
        self.assertEqual(c.fence("check " + a) + c.fence("check " + b) + c.fence("check " + x), before)
        self.client(self.d).ok("BREAK " + b)
        c.pushed("! LOST name=%s" % b, "reason=broken")
        c.fails("check " + b, "3 LOST")
        self.assertEqual(c.fence("check " + a), before[:1])

    def test_what_the_next_daemon_does_not_bring_back_is_told_once(self):
        c, name = Caller(self, self.d), self.name()
        a, b = name + "/a", name + "/b"
        fences = c.fence("all %s %s" % (a, b))
        self.d.kill()
        os.unlink(self.d.journal)
        self.d.start()
        lost = sorted(c.pushed("! LOST", "reason=expired") for _ in range(2))
        self.assertEqual([line.split()[2:4] for line in lost], [["name=" + a, "fence=%d" % fences[0]], ["name=" + b, "fence=%d" % fences[1]]])
        c.fails("push 300", "EAGAIN")
        for each in (a, b):
            c.fails("check " + each, "3 LOST")
            c.fails("unlock " + each, "3 LOST")

    def test_it_waits_for_several_over_the_next_daemon(self):
        c, other, name = Caller(self, self.d), Caller(self, self.d, "other"), self.name()
        a, b = name + "/a", name + "/b"
        other.ok("lock " + b)
        c.begin("all %s %s 30000" % (a, b))
        until(lambda: "waiter" in self.client(self.d).roles(b), "it waits")
        self.d.restart()
        other.ok("unlock " + b)
        self.assertEqual([line.split()[1] for line in c.result(40)[0]], [a, b])
        c.ok("check " + a)

    def test_watches_go_on_and_tell_the_gap(self):
        c, name = Caller(self, self.d), self.name()
        c.ok("watch %s/" % name)
        c.ok("subscribe")
        c.ok("lock %s/a" % name)
        c.pushed("! EVENT kind=granted name=%s/a" % name)
        self.d.restart()
        c.pushed("! MISSED")
        other = self.client(self.d)
        other.ok("LOCK %s/b" % name)
        c.pushed("! EVENT kind=granted name=%s/b" % name)
        other.begin("LOCK %s/a wait=20s" % name)
        told = {c.ok("push")[0].split()[1] for _ in range(2)}
        self.assertEqual(told, {"EVENT", "CONTENDED"})
        c.ok("unwatch %s/" % name)
        c.ok("unsubscribe")
        self.d.restart()
        c.ok("ping")
        self.assertNotIn("! MISSED", c.call("push 300")[0])

    def test_no_call_outlasts_a_daemon_that_is_away_or_stopped(self):
        self.d = self.daemon({"lease": "60s", "max_lease": "60s"})
        c, name = Caller(self, self.d, grace="60000"), self.name()
        c.ok("lock " + name)
        c.ok("watch")
        c.ok("timeout 300")
        self.d.kill()
        for line in ("ping", "complete", "recent", "show " + name, "list locks", "stats", "watch x", "subscribe", "unwatch", "break x", "kill 1"):
            begun = time.monotonic()
            c.fails(line, "ECONNABORTED")
            self.assertLess(time.monotonic() - begun, LATE, line)
        self.d.start()
        c.ok("timeout 5000")
        c.ok("check " + name)
        c.ok("timeout 300")
        self.d.freeze()
        begun = time.monotonic()
        c.fails("complete", "ECONNABORTED")
        self.assertLess(time.monotonic() - begun, LATE)
        self.d.thaw()

    def test_a_daemon_that_is_slow_is_waited_for(self):
        c, name = Caller(self, self.d), self.name()
        c.ok("lock " + name)
        for line in ("watch", "list locks", "recent", "ping"):
            self.d.freeze()
            c.begin(line)
            time.sleep(0.4)
            self.d.thaw()
            self.assertEqual(c.result()[1], "0", line)
        c.fails("push 300", "EAGAIN")
        c.ok("unlock " + name)
        c.pushed("! EVENT kind=released name=" + name)

    def test_a_daemon_that_drains_says_so(self):
        c, name = Caller(self, self.d), self.name()
        c.ok("lock " + name)
        c.ok("subscribe")
        self.assertEqual(c.ok("drain"), ["number 1"])
        c.pushed("! DRAIN in_ms=-1")
        self.d.expect_dead = True
        c.ok("unlock " + name)
        self.assertEqual(self.d.process.wait(10), 0)

    def test_a_restart_in_place_is_not_seen(self):
        c, name = Caller(self, self.d), self.name()
        c.ok("watch")
        fences = c.fence("all %s/a %s/b" % (name, name))
        for part in "ab":
            c.pushed("! EVENT kind=granted name=%s/%s" % (name, part))
        mark = self.d.log_size()
        self.d.send_signal(signal.SIGUSR2)
        self.d.logged(r"notice restarted ", mark)
        c.ok("lock %s/c" % name)
        c.pushed("! EVENT kind=granted name=%s/c" % name)
        self.assertEqual(c.fence("check %s/a" % name) + c.fence("check %s/b" % name), fences)


class AnswersLost(FuncTest):
    """Half of all answers are lost. The library asks again, and no lock, count or permit is too many."""
    COST, STEPS, MOST = 50, 60, 3

    def setUp(self):
        super().setUp()
        seed = int(os.environ.get("REDLOCKD_SEED", time.time_ns() % 10**9))
        print("%s: REDLOCKD_SEED=%d" % (self.id(), seed))
        self.rng = random.Random(seed)
        self.d = self.daemon({"lease": "20s", "max_lease": "30s"})
        self.in_row, self.relay = 0, LosingRelay(self.d.addr, self.loses)
        self.addCleanup(self.relay.close)
        self.eye, self.c = self.client(self.d), Caller(self, grace="30000")
        self.c.ok("open %s 30000" % self.relay.addr)
        self.c.ok("hello caller 30000")
        self.held = {}

    def loses(self, verb):
        """At most six in a row: the library gives up when the grace is over."""
        if verb == "HELLO":
            return False
        lost = self.in_row < 6 and self.rng.random() < 0.5
        self.in_row = self.in_row + 1 if lost else 0
        return lost

    def rows(self, name):
        return [row for row in self.eye.ok("SHOW " + name).rows if row["role"] == "holder"]

    def grants(self, line):
        """What the call was granted counts once."""
        for words in self.c.ok(line, 60):
            name, count = words.split()[1], int(words.split()[3])
            self.held[name] = self.held.get(name, 0) + 1
            self.assertEqual(count, self.held[name], line)

    def unlocks(self, name):
        self.c.ok("unlock " + name, 60)
        self.held[name] -= 1

    def daemon_agrees(self):
        for name, count in self.held.items():
            self.assertEqual(sum(row.num("count") for row in self.rows(name)), count, name)

    def step(self, names):
        name = self.rng.choice(names)
        if self.held.get(name, 0) > 0 and self.rng.random() < 0.5:
            self.unlocks(name)
        elif self.held.get(name, 0) < self.MOST:
            self.grants("lock " + name)

    def several(self, names):
        two = self.rng.sample(names, 2)
        if max(self.held.get(name, 0) for name in two) < self.MOST:
            self.grants("%s %s %s" % (self.rng.choice(["all", "any"]), *two))

    def test_locks_count_once(self):
        names = ["%s/%d" % (self.name(), i) for i in range(4)]
        for _ in range(self.STEPS):
            self.step(names) if self.rng.random() < 0.8 else self.several(names)
            self.daemon_agrees()
        for name in names:
            while self.held.get(name, 0) > 0:
                self.unlocks(name)
        self.daemon_agrees()
        self.assertGreater(self.relay.lost, self.STEPS / 2)

    def test_permits_count_once(self):
        name = self.name()
        for i in range(10):
            self.c.ok("permit %s 3" % name, 60)
            self.assertEqual(len(self.rows(name)), 1, i)
            self.c.ok("unlock " + name, 60)
            self.assertEqual(self.rows(name), [], i)
        self.assertGreater(self.relay.lost, 10)

    def test_jobs_are_taken_once(self):
        """redlock_take tells each job, in its first attempt, whichever of the answers to TAKE and CHECK are lost."""
        q, jobs = self.name(), 12
        for i in range(jobs):
            self.eye.ok("DEFER %s payload-%d id=j%d" % (q, i, i))
        for i in range(jobs):
            self.assertEqual(self.c.ok("take %s 20000" % q, 60), ["job j%d 1 payload-%d" % (i, i)])
            self.assertEqual(len([row for row in self.eye.ok("LIST jobs prefix=" + q).rows if row["state"] == "leased"]), 1)
            while self.c.call("done %s j%d" % (q, i), 60)[1] == "ECONNABORTED":
                pass
        self.assertEqual(self.eye.ok("LIST queues prefix=" + q).rows, [])
        self.assertGreater(self.relay.lost, jobs)

    def test_a_take_that_waits_goes_on(self):
        q = self.name()
        for i in range(6):
            self.c.begin("take %s -1" % q)
            until(lambda: any(row.num("waiting") for row in self.eye.ok("LIST sessions").rows), "it waits")
            self.eye.ok("DEFER %s x id=j%d" % (q, i))
            self.assertEqual(self.c.result(60), (["job j%d 1 x" % i], "0"))
            while self.c.call("done %s j%d" % (q, i), 60)[1] == "ECONNABORTED":
                pass
        self.assertGreater(self.relay.lost, 2)


class OnServers(QuorumTest):
    """Three servers, of which one hangs, and a daemon that is killed."""
    COST, DAEMONS = 15, 1

    def test_several_locks_over_a_daemon_that_dies_while_a_server_hangs(self):
        c, name = Caller(self, self.a), self.name()
        fences = c.fence("all %s/a %s/b" % (name, name))
        self.a.kill()
        self.servers[0].freeze()
        self.a.start()
        self.assertEqual(c.fence("check %s/a" % name) + c.fence("check %s/b" % name), fences)
        c.ok("complete %s/" % name)
        self.servers[0].thaw()


class Printed(StoreTest):
    """The examples of libredlock(3)."""
    COST = 8

    def test_the_first_writes_with_its_fence(self):
        c = Caller(self, env={"REDLOCK_ADDR": self.d.addr})
        self.assertRegex(c.ok("first")[0], r"^order 42 \d+$")
        self.assertEqual(self.connect().roles("orders/42"), [])

    def test_the_leader_leads_again_after_its_term(self):
        daemon, name = self.daemon({"lease": "2s"}), self.name()  # a lock that was broken is free when its lease is over
        admin, c = self.client(daemon), Caller(self, daemon)
        c.begin("lead " + name)

        def fence():
            return int(c.lines.next("the leader").split()[2])

        first = fence()
        admin.ok("BREAK " + name)
        until(lambda: fence() > first, "it leads again, with a larger fence")
        c.kill()

    def test_the_follower_lists_what_is_held_and_what_changes(self):
        c, other = Caller(self, self.d), self.connect()
        other.ok("LOCK build/1")
        c.begin("follow")

        def said():
            return c.lines.next("the follower")

        self.assertEqual(said(), "- forget")
        self.assertIn("* name=build/1", said())
        other.ok("LOCK build/2")
        self.assertIn("! EVENT kind=granted name=build/2", said())
        self.d.restart()
        self.assertEqual(said(), "- ! MISSED")
        self.assertEqual(said(), "- forget")
        c.kill()

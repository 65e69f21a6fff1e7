# SPDX-License-Identifier: BSD-2-Clause
"""Deferred work: DEFER, TAKE, DONE, RETRY, LIST queues and LIST jobs."""
import time

from harness import on_each_store, safety
from quorum import POLL_MOST, QuorumTest
from process import until


@on_each_store
class Jobs:
    """One daemon."""
    COST, TCP, CONFIG = 10, True, {"jobs": {"attempts": 3}, "limits": {"jobs": 50}}

    def test_jobs_are_taken_in_the_order_in_which_they_are_due(self):
        q, c = self.name(), self.connect()
        due = {}
        for text, delay in (("third", 0.3), ("second", 0.15), ("first", 0)):
            due[text] = time.monotonic() + delay
            c.ok("DEFER %s %s delay=%dms" % (q, text, delay * 1000))
        for text in ("first", "second", "third"):
            job = c.ok("TAKE %s wait=10s" % q)
            self.assertEqual((job["payload"], job["attempt"]), (text, "1"))
            self.assertGreaterEqual(time.monotonic(), due[text] - 0.01)
            c.ok("DONE " + job["job"])
        self.assertEqual(c.busy("TAKE " + q)["queue"], q)

    def test_a_take_that_waits_is_told_at_once(self):
        q, one, two = self.name(), self.connect(), self.connect()
        waits = []
        for _ in range(5):
            self.assertEqual(one.begin("TAKE %s wait=forever" % q), [])
            begin = time.monotonic()
            two.ok('DEFER %s "a \\"b\\" \\x00\\n" id=x' % q)
            job = one.reply()
            waits.append(time.monotonic() - begin)
            self.assertEqual((job["job"], job["payload"]), ("x", 'a "b" \x00\n'))
            one.ok("DONE x")
        self.assertLess(min(waits), POLL_MOST / 2, "each waits for the daemon to look again")

    def test_a_session_that_ends_gives_its_jobs_back(self):
        q, c = self.name(), self.connect()
        c.ok("DEFER %s x id=a lock=%s-l" % (q, q))
        for attempt in (1, 2, 3):
            worker = self.connect()
            job = worker.ok("TAKE %s wait=10s" % q)
            self.assertEqual((job.num("attempt"), job["name"]), (attempt, q + "-l"))
            c.busy("LOCK %s-l" % q)
            worker.close()
        until(lambda: [row["state"] for row in c.ok("LIST jobs prefix=" + q).rows] == ["dead"], "it has failed for good")
        c.ok("LOCK %s-l" % q)
        c.ok("UNLOCK %s-l" % q)
        self.assertEqual([(row["queue"], row.num("dead")) for row in c.ok("LIST queues prefix=" + q).rows], [(q, 1)])
        c.ok("RETRY a queue=" + q)
        self.assertEqual(c.ok("TAKE " + q).num("attempt"), 1)
        c.ok("DONE a")
        self.assertEqual(c.ok("LIST queues prefix=" + q).rows, [])

    def test_the_same_id_is_one_job_and_a_queue_is_bounded(self):
        q, c = self.name(), self.connect()
        for _ in range(3):
            c.ok("DEFER %s x id=same" % q)
        for _ in range(49):
            c.ok("DEFER %s x" % q)
        c.err("DEFER %s x" % q, "LIMIT")
        c.ok("DEFER %s x id=same" % q)
        first = c.ok("LIST jobs prefix=%s limit=30" % q)
        second = c.ok("LIST jobs prefix=%s limit=30 after=%s" % (q, first["after"]))
        self.assertEqual((len(first.rows), len(second.rows)), (30, 20))
        self.assertEqual(len({row["job"] for row in first.rows + second.rows}), 50)

    def test_a_job_survives_the_connection_of_a_session_with_grace(self):
        q, c = self.name(), self.connect()
        hello = c.ok("HELLO 1 grace=10s")
        c.ok("DEFER %s x id=a lock=%s-l" % (q, q))
        c.ok("TAKE %s ttl=1s" % q)
        c.close()
        time.sleep(1.2)
        other = self.connect()
        other.busy("TAKE " + q)
        rows = other.ok("RESUME %s %s" % (hello["session"], hello["secret"])).rows
        self.assertEqual([row["job"] for row in rows if "job" in row], ["a"])
        other.ok("CHECK %s job=a" % q)
        other.ok("DONE a")
        other.ok("LOCK %s-l" % q)


class JobsAcrossDaemons(QuorumTest):
    """Two daemons on three servers."""
    COST = 25

    def home(self, queue):
        """The server that keeps the queue."""
        return [server for server in self.servers if server.cli.exists("redlockd:lock:jd:" + queue)][0]

    def test_work_of_two_daemons_is_done_once_and_in_no_queue_afterwards(self):
        clients, count = self.clients(4), 40
        for i in range(count):
            clients[i % 4].ok("DEFER q%d work-%d lock=l%d" % (i % 3, i, i % 5))
        done, deadline = [], time.monotonic() + 30
        while len(done) < count:
            self.assertLess(time.monotonic(), deadline, "only %d are done" % len(done))
            for i, c in enumerate(clients):
                answer = c.ask("TAKE q%d" % ((i + len(done)) % 3))
                if answer.kind != "OK":
                    continue
                done.append(answer["payload"])
                c.ok("DONE " + answer["job"])
        self.assertEqual(len(set(done)), count)
        self.assertEqual(clients[0].ok("LIST queues").rows, [])

    def test_a_take_is_woken_by_a_defer_at_another_daemon(self):
        one, two = self.client(self.a), self.client(self.b)
        waits = []
        for i in range(10):
            one.begin("TAKE woken wait=forever")
            time.sleep(0.05)
            begin = time.monotonic()
            two.ok("DEFER woken x")
            job = one.reply()
            waits.append(time.monotonic() - begin)
            one.ok("DONE " + job["job"])
        self.assertLess(min(waits), POLL_MOST / 3, "each waits for the daemon to look again")

    def test_what_was_acknowledged_outlives_the_daemons_and_a_restart_of_the_home(self):
        one = self.client(self.a)
        for i in range(20):
            one.ok("DEFER kept x id=k%02d" % i)
        home = self.home("kept")
        home.cli.save()
        self.a.kill()
        home.restart()
        two = self.client(self.b)
        taken = []
        deadline = time.monotonic() + 30
        while len(taken) < 20:
            self.assertLess(time.monotonic(), deadline, "only %d jobs are there" % len(taken))
            answer = two.ask("TAKE kept wait=1s")
            if answer.kind == "OK":
                taken.append(answer["job"])
                two.ok("DONE " + answer["job"])
        self.assertEqual(taken, ["k%02d" % i for i in range(20)])

    def test_a_worker_whose_home_is_away_is_told_before_anybody_else_may_have_the_job(self):
        one, two = self.client(self.a), self.client(self.b)
        one.ok("DEFER away x id=a")
        begin = time.monotonic()
        valid = begin + one.ok("TAKE away ttl=2s").num("valid_ms") / 1000
        home = [server for server in self.servers if server.cli.exists("redlockd:lock:jl:away")][0]
        home.freeze()
        self.addCleanup(home.thaw)
        one.push("LOST", timeout=5)
        with safety():
            self.assertLess(time.monotonic(), valid)
        home.thaw()
        self.assertEqual(two.ok("TAKE away wait=20s", timeout=25).num("attempt"), 2)
        one.err("DONE a", "LOST")

# SPDX-License-Identifier: BSD-2-Clause
"""redlock move: the jobs of one daemon go to another that has other servers."""
import signal

from daemon import on_redis
from harness import LEASE_1S, FuncTest
from process import until

SLOWLY = {"redis": {"timeout": "2s"}}  # a busy machine is no reason for a job to stay


class Move(FuncTest):
    """Two daemons, each with a Redis of its own."""
    COST = 15

    def setUp(self):
        super().setUp()
        self.servers = [self.redis() for _ in range(2)]
        self.old, self.new = (self.daemon(on_redis([server], SLOWLY, {"jobs": {"attempts": 2}})).joined() for server in self.servers)
        self.source, self.target = self.client(self.old), self.client(self.new)

    def move(self, *argv, source=None):
        """Exit code, what it prints and what it complains about."""
        return self.call_redlock(self.new, "move", "--from", (source or self.old).addr, *argv)

    def taken(self, queue):
        """All jobs of the queue that are due, as they come, and done."""
        jobs = []
        while True:
            answer = self.target.ask("TAKE " + queue)
            if answer.kind == "BUSY":
                return jobs
            jobs.append(answer)
            self.target.ok("DONE %s queue=%s" % (answer["job"], queue))

    def test_jobs_keep_their_ids_payloads_locks_and_order(self):
        for i in range(20):
            self.source.ok('DEFER q "%d \\x00\\n\\"" id=j%02d lock=l%d' % (i, 20 - i, i % 3))
        self.source.ok("DEFER other x id=a")
        self.source.ok("DEFER third x id=b delay=1h lock=l")
        self.assertEqual(self.move(), (0, "22 jobs are moved\n", ""))
        self.assertEqual(self.source.ok("LIST queues").rows, [])
        self.assertEqual([server.cli.keys("*j:*") for server in self.servers][0], [])
        self.assertEqual([(job["job"], job["payload"], job["name"]) for job in self.taken("q")],
                         [("j%02d" % (20 - i), '%d \x00\n"' % i, "l%d" % (i % 3)) for i in range(20)])
        self.assertEqual([job["job"] for job in self.taken("other")], ["a"])
        row, = self.target.ok("LIST jobs prefix=third").rows
        self.assertEqual((row["job"], row["state"], row["name"]), ("b", "due", "l"))
        self.assertTrue(3500000 < row.num("due_ms") <= 3600000, row)
        self.assertEqual(self.move(), (0, "0 jobs are moved\n", ""))

    def test_a_prefix_chooses_the_queues(self):
        for queue in ("mail/a", "mail/b", "news"):
            self.source.ok("DEFER %s x" % queue)
        self.assertEqual(self.move("mail/")[:2], (0, "2 jobs are moved\n"))
        self.assertEqual([row["queue"] for row in self.source.ok("LIST queues").rows], ["news"])

    def test_what_is_run_or_needs_a_lock_that_is_held_or_is_due_soon_or_has_failed_for_good_stays(self):
        self.source.ok("LOCK l")
        self.source.ok("DEFER q x id=dead")
        for _ in range(2):
            self.source.ok("TAKE q")
            self.source.ok("RETRY dead")
        self.source.ok("DEFER q x id=run")
        self.source.ok("TAKE q")
        for words in ("locked lock=l", "soon delay=5s", "free"):
            self.source.ok("DEFER q x id=" + words)
        self.assertEqual(self.move(), (1, "1 job is moved\n", "redlock: of q 4 jobs stay, and 1 of these has failed for good\n"))
        self.assertEqual([job["job"] for job in self.taken("q")], ["free"])
        self.assertEqual(sorted((row["job"], row["state"]) for row in self.source.ok("LIST jobs prefix=q").rows),
                         [("dead", "dead"), ("locked", "due"), ("run", "leased"), ("soon", "due")])
        self.source.ok("DONE run")
        self.source.ok("RETRY dead queue=q")
        self.source.ok("RETRY soon queue=q")
        self.source.ok("UNLOCK l")
        self.assertEqual(self.move(), (0, "3 jobs are moved\n", ""))
        self.assertEqual(sorted(job["job"] for job in self.taken("q")), ["dead", "locked", "soon"])

    def test_no_job_is_moved_without_its_lock(self):
        old = self.daemon(start=False)
        old.config += "rules:\n  - {names: hidden, allow: [lock]}\n  - {allow: [lock, look]}\n"
        source = self.client(old.start())
        source.ok("DEFER q x id=a lock=hidden delay=1h")
        source.ok("DEFER q x id=b lock=seen delay=1h")
        self.assertEqual(self.move(source=old), (1, "1 job is moved\n", "redlock: of q 1 job stays\n"))
        self.assertEqual([row["job"] for row in source.ok("LIST jobs prefix=q").rows], ["a"])
        self.assertEqual([(row["job"], row["name"]) for row in self.target.ok("LIST jobs prefix=q").rows], [("b", "seen")])

    def test_between_daemons_of_the_same_servers_nothing_is_moved(self):
        self.source.ok("DEFER q x id=due")
        self.source.ok("DEFER q x id=later delay=1h")
        beside = self.daemon(on_redis(self.servers[1:], SLOWLY)).joined()
        self.target.ok("DEFER q x id=here")
        self.target.ok("DEFER q x id=later delay=1h")
        for daemon in (self.new, beside):
            status, out, err = self.move(source=daemon)
            self.assertEqual((status, out), (69, ""))
            self.assertIn("both daemons have the same stores", err)
        self.assertEqual([row["job"] for row in self.target.ok("LIST jobs prefix=q").rows], ["here", "later"])

    def test_a_daemon_that_refuses_a_job_leaves_it_where_it_was_and_as_it_was(self):
        small = self.daemon(on_redis(self.servers[1:], SLOWLY, {"limits": {"jobs": 1}})).joined()
        for job in "abc":
            self.source.ok("DEFER q x id=" + job)
        status, out, err = self.call_redlock(small, "move", "--from", self.old.addr)
        self.assertEqual((status, out), (64, "1 job is moved\n"))
        self.assertIn("limits.jobs", err)
        self.assertEqual([(row["job"], row["state"], row["failed"]) for row in self.source.ok("LIST jobs prefix=q").rows],
                         [("b", "due", "0"), ("c", "due", "0")])

    def test_no_job_is_lost_or_doubled_if_it_is_killed_again_and_again(self):
        self.old.finish()
        old = self.daemon(on_redis(self.servers[:1], SLOWLY, {"jobs": {"attempts": 1000}})).joined()
        source, count = self.client(old), 150
        for i in range(count):
            source.ok("DEFER q%d x id=j%d lock=l%d%s" % (i % 3, i, i % 7, " delay=1h" if i % 4 == 0 else ""))

        def arrived():
            return sum(row.num("due") for row in self.target.ok("LIST queues").rows)
        for goal in range(10, count - 30, 15):
            process = self.start_redlock(self.new, "move", "--from", old.addr)
            until(lambda: arrived() >= goal, "some are there")
            process.send_signal(signal.SIGKILL)
            self.assertIn(process.wait(), (0, 1, -signal.SIGKILL))  # what the one before had taken may be leased yet
        until(lambda: self.move(source=old)[0] == 0, "what was being moved is free again", 30)
        self.assertEqual(source.ok("LIST queues").rows, [])
        listed = [row["job"] for i in range(3) for row in self.target.ok("LIST jobs prefix=q%d limit=1000" % i).rows]
        self.assertEqual(sorted(listed), sorted("j%d" % i for i in range(count)))


class AnotherSet(FuncTest):
    """One Redis; then two more beside it, under a higher generation."""
    COST = 10

    def test_jobs_wait_at_a_daemon_of_their_own_while_the_servers_change(self):
        servers = ["red%d=%s" % (i, self.redis().node) for i in range(3)]
        first, aside = self.daemon(on_redis(servers[:1], LEASE_1S, SLOWLY)).joined(), self.daemon()
        client = self.client(first)
        queues = ["q%d" % i for i in range(8)]
        for queue in queues:
            for job in "ab":
                client.ok("DEFER %s of-%s id=%s lock=%s-l" % (queue, queue, job, queue))
        for i in range(8):
            client.ok("DEFER left%d x" % i)
        for queue in queues:
            until(lambda: self.call_redlock(aside, "move", "--from", first.addr, queue)[0] == 0, queue)  # pylint: disable=cell-var-from-loop
        first.finish()
        second = self.daemon(on_redis(servers, LEASE_1S, SLOWLY, {"redis": {"generation": 2}}))
        client = self.client(second)
        client.ok("LOCK x wait=1m", 65)
        until(lambda: all(row["state"] == "joined" for row in client.ok("LIST nodes").rows), "all have joined")
        until(lambda: self.call_redlock(second, "move", "--from", aside.addr)[0] == 0, "they are moved")
        for queue in queues:
            for job in "ab":
                taken = client.ok("TAKE %s wait=10s" % queue)
                self.assertEqual((taken["job"], taken["payload"], taken["name"]), (job, "of-" + queue, queue + "-l"))
                client.ok("DONE %s queue=%s" % (job, queue))
        status, out, err = self.call_redlock(second, "queues", "left")
        astray = 8 - out.count("left")
        self.assertGreater(astray, 1)
        self.assertEqual((status, err), (0, "redlock: %d queues have jobs at a store that is not their home, and nobody takes them: "
                                            "see CHANGING THE SERVERS in redlockd(8)\n" % astray))

# SPDX-License-Identifier: BSD-2-Clause
"""redlock work, defer, retry, queues, jobs, and run --or-defer."""
import json
import os
import signal
import subprocess
import time

from harness import FuncTest, on_each_store
from process import REDLOCK, until
from relay import LosingRelay


@on_each_store
class Work:
    """One daemon."""
    COST, CONFIG = 20, {"jobs": {"attempts": 3}, "lease": "2s"}

    def defer(self, queue, text, *options):
        status, out, _ = self.call_redlock(self.d, "defer", *options, queue, text)
        self.assertEqual(status, 0)
        return out.strip()

    def work(self, queue, *command, wait="300ms"):
        return self.call_redlock(self.d, "work", "--wait", wait, queue, "--", *command)

    def jobs(self, queue):
        _, out, _ = self.call_redlock(self.d, "jobs", "--json", queue)
        return [json.loads(line) for line in out.splitlines()]

    def test_the_payload_is_the_input_and_the_job_is_done(self):
        q = self.name()
        self.defer(q, "one\ntwo", "--id", "a", "--lock", q + "-l")
        status, out, _ = self.work(q, "sh", "-c", 'cat; echo " $REDLOCK_QUEUE $REDLOCK_JOB $REDLOCK_ATTEMPT $REDLOCK_NAME ${REDLOCK_FENCE:+f}"')
        self.assertEqual((status, out), (0, "one\ntwo %s a 1 %s-l f\n" % (q, q)))
        self.assertEqual(self.jobs(q), [])

    def test_a_job_that_crashes_its_command_does_not_end_the_loop(self):
        q = self.name()
        self.defer(q, "kill -9 $$", "--id", "bad")
        for i in range(3):
            self.defer(q, "echo %d" % i)
        status, out, err = self.call_redlock(self.d, "work", "--wait", "300ms", "--delay", "0", q, "--", "sh")
        self.assertEqual((status, sorted(out.split())), (0, ["0", "1", "2"]))
        self.assertEqual(err, "redlock: job bad of %s has failed for good, after 3 attempts; its last attempt ended with 137\n" % q)
        self.assertEqual([(job["job"], job["state"], job["failed"]) for job in self.jobs(q)], [("bad", "dead", 3)])
        self.assertEqual(self.call_redlock(self.d, "retry", q, "bad")[0], 0)
        self.assertEqual([job["state"] for job in self.jobs(q)], ["due"])
        self.assertEqual(self.call_redlock(self.d, "retry", q, "other")[0], 1)
        self.assertEqual(self.call_redlock(self.d, "drop", q, "bad")[0], 0)
        self.assertEqual(self.jobs(q), [])
        self.assertEqual(self.call_redlock(self.d, "drop", q, "bad")[0], 1)

    def test_a_command_that_cannot_be_executed_ends_the_loop(self):
        q = self.name()
        self.defer(q, "x")
        self.assertEqual(self.work(q, "/no/such/command")[0], 127)
        self.assertEqual(self.work(q, "/etc/passwd")[0], 126)
        self.assertEqual([(job["state"], job["failed"]) for job in self.jobs(q)], [("due", 0)], "it says nothing about the job")

    def test_a_job_that_fails_is_due_again_after_pauses_that_grow(self):
        q, c = self.name(), self.connect()
        self.defer(q, "x")
        for pause in (1000, 2000):
            until(lambda: int(c.ok("LIST jobs prefix=" + q).rows[0]["due_ms"]) == 0, "it is due")
            self.assertEqual(self.work(q, "false", wait="0")[0], 0)
            self.assertTrue(pause / 2 < self.jobs(q)[0]["due_ms"] <= pause, self.jobs(q))
        until(lambda: int(c.ok("LIST jobs prefix=" + q).rows[0]["due_ms"]) == 0, "it is due")
        self.assertEqual(self.call_redlock(self.d, "work", "--wait", "0", "--delay", "1h", q, "--", "false")[0], 0)
        self.assertEqual([job["state"] for job in self.jobs(q)], ["dead"])

    def test_a_payload_of_any_bytes_is_carried_whole(self):
        q, text = self.name(), bytes(range(256)) + b"\0\n\0"
        addr = ("--addr", self.d.addr)
        subprocess.run([REDLOCK, *addr, "defer", q], input=text, stdout=subprocess.DEVNULL, check=True)
        self.assertEqual(subprocess.run([REDLOCK, *addr, "work", "--wait", "0", q, "cat"], stdout=subprocess.PIPE, check=True).stdout, text)

    def test_run_or_defer_puts_the_command_off_until_the_lock_is_free(self):
        q, name, c = self.name(), self.name(), self.connect()
        c.ok("LOCK " + name)
        status, _, err = self.call_redlock(self.d, "run", "--or-defer", q, name, "--", "echo", "it's", "a  b")
        self.assertEqual(status, 0)
        self.assertIn("deferred", err)
        begin = time.monotonic()
        work = self.start_redlock(self.d, "work", "--wait", "3s", q, "--", "sh", stdout=subprocess.PIPE)
        time.sleep(0.5)
        c.ok("UNLOCK " + name)
        self.assertEqual(work.stdout.readline(), b"it's a  b\n")
        self.assertGreaterEqual(time.monotonic() - begin, 0.5)
        self.assertEqual(work.wait(10), 0)
        status, out, _ = self.call_redlock(self.d, "run", "--or-defer", q, name, "--", "echo", "free")
        self.assertEqual((status, out), (0, "free\n"))

    def test_a_worker_that_is_killed_gives_its_job_to_another(self):
        q = self.name()
        self.defer(q, "x", "--id", "a")
        for number in (signal.SIGKILL, signal.SIGTERM):
            work = self.start_redlock(self.d, "work", q, "--", "sh", "-c", "echo $$ $REDLOCK_ATTEMPT; exec sleep 100", stdout=subprocess.PIPE)
            pid, attempt = work.stdout.readline().split()
            work.send_signal(number)
            work.wait(10)
            until(lambda: not os.path.exists("/proc/%d" % int(pid)), "its command is stopped")
            self.assertEqual(int(attempt), 1 if number == signal.SIGKILL else 2)
        status, out, _ = self.work(q, "sh", "-c", "echo $REDLOCK_ATTEMPT")
        self.assertEqual((status, out), (0, "2\n"), "that redlock was to end says nothing about the job")

    def test_a_worker_whose_job_is_lost_stops_its_command_in_time_and_goes_on(self):
        q = self.name()
        self.defer(q, "x", "--id", "a", "--lock", q + "-l")
        work = self.start_redlock(self.d, "work", q, "--", "sh", "-c", "echo $$ $REDLOCK_ATTEMPT; exec sleep 100", stdout=subprocess.PIPE)
        first, _ = work.stdout.readline().split()
        admin = self.connect()
        admin.ok("BREAK %s-l" % q)
        second, attempt = work.stdout.readline().split()
        self.assertFalse(os.path.exists("/proc/%d" % int(first)))
        self.assertEqual(int(attempt), 2)
        work.send_signal(signal.SIGTERM)
        self.assertEqual(work.wait(10), 128 + signal.SIGTERM)

    def cut_at_done(self, end):
        """What becomes of a job whose DONE is lost with its connection. Returns (stdout, stderr) of redlock work, which has run it until it was done."""
        q, done = self.name(), []
        self.defer(q, "x", "--id", "a")

        def keeps(verb):
            if verb == "DONE" and not done:
                done.append(verb)
                end()
                return True
            return False

        relay = LosingRelay(self.d.addr, keeps=keeps)
        self.addCleanup(relay.close)
        status, out, err = self.call_redlock(relay, "work", "--wait", "6s", q, "--", "sh", "-c", "echo $REDLOCK_ATTEMPT")
        self.assertEqual((status, done), (0, ["DONE"]))
        self.assertEqual(self.jobs(q), [])
        return out, err.replace(q, "QUEUE")

    def test_a_job_that_is_said_to_be_done_once_more_after_a_cut_is_done(self):
        self.assertEqual(self.cut_at_done(lambda: None), ("1\n", ""))

    def test_a_job_whose_session_ends_before_it_is_said_to_be_done_is_lost_and_run_again(self):
        def end():
            with self.d.client() as admin:
                session = next(row["session"] for row in admin.ok("LIST sessions").rows if "redlock work" in repr(row))
                admin.ok("KILL session=" + session)

        out, err = self.cut_at_done(end)
        self.assertEqual(out, "1\n2\n")
        self.assertIn("lost", err)


class WorkOverRestarts(FuncTest):
    """One Redis, one daemon that comes and goes."""
    COST = 10

    def test_a_worker_waits_for_its_daemon(self):
        d = self.redis_daemon(self.redis(), {"lease": "2s", "max_lease": "4s"})
        work = self.start_redlock(d, "work", "q", "--", "cat", stdout=subprocess.PIPE)
        for text in ("one", "two"):
            self.assertEqual(self.call_redlock(d, "defer", "q", text + "\n")[0], 0)
            self.assertEqual(work.stdout.readline().decode(), text + "\n")
            client = self.client(d)
            until(lambda: not client.ok("LIST jobs prefix=q").rows, "it is done: else it comes again")  # pylint: disable=cell-var-from-loop
            d.restart()
        work.send_signal(signal.SIGTERM)
        work.wait(10)

# SPDX-License-Identifier: BSD-2-Clause
"""redlock once: one run in --every over all hosts, and what came of it."""
import json
import os
import signal
import time

from daemon import on_redis
from harness import FuncTest
from process import until
from wire import Client

RAN = r"^nightly ran on \S+ at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ for \S+, status %d; it may begin again in \S+\n$"


class Once(FuncTest):
    COST = 8

    def setUp(self):
        super().setUp()
        store = self.redis()
        self.a, self.b = (self.daemon(on_redis([store])).joined() for _ in range(2))
        self.log = os.path.join(self.folder(), "log")

    def once(self, daemon, script="echo ran >>%s", every="1h", *options):
        return self.call_redlock(daemon, "once", "--every", every, *options, "nightly", "--", "sh", "-c", script % self.log if "%s" in script else script)

    def runs(self):
        try:
            with open(self.log, encoding="ascii") as log:
                return len(log.readlines())
        except FileNotFoundError:
            return 0

    def test_one_host_runs_it_and_all_can_tell(self):
        self.assertEqual(self.call_redlock(self.a, "once", "--status", "nightly"), (1, "", "redlock: nightly: no run is known\n"))
        self.assertEqual(self.once(self.a), (0, "", ""))
        for daemon in (self.a, self.b):
            status, out, err = self.once(daemon)
            self.assertEqual((status, out), (0, ""))
            self.assertRegex(err, RAN.replace("^", "^redlock: ") % 0)
            status, out, err = self.call_redlock(daemon, "once", "--status", "nightly")
            self.assertEqual((status, err), (0, ""))
            self.assertRegex(out, RAN % 0)
        self.assertEqual(self.runs(), 1)
        self.assertEqual(self.once(self.b, "echo ran >>%s", "1h", "--quiet"), (0, "", ""))
        row = json.loads(self.call_redlock(self.b, "once", "--status", "--json", "nightly")[1])
        self.assertEqual((row["name"], row["status"], set(row)), ("nightly", 0, {"name", "host", "began", "took_ms", "status", "next_ms"}))
        self.assertLess(3500000, row["next_ms"])

    def test_it_runs_again_when_the_time_is_over_counted_from_its_begin(self):
        began = time.monotonic()
        self.assertEqual(self.once(self.a, "echo ran >>%s; sleep 1", "2s")[0], 0)
        until(lambda: self.once(self.b, "echo ran >>%s", "2s")[0] == 0 and self.runs() == 2, "it has run again")
        self.assertGreater(time.monotonic() - began, 1.9)
        self.assertLess(time.monotonic() - began, 2.9)
        with self.b.client() as client:
            self.assertEqual(len(client.ok("LIST jobs prefix=once/nightly").rows), 1, "the old record is left")

    def test_a_run_that_failed_counts_and_is_told(self):
        self.assertEqual(self.once(self.a, "exit 7")[0], 7)
        status, out, _ = self.call_redlock(self.b, "once", "--status", "nightly")
        self.assertEqual(status, 1)
        self.assertRegex(out, RAN % 7)
        self.assertEqual(self.once(self.b, "echo ran >>%s")[0], 0)
        self.assertEqual(self.runs(), 0)

    def test_what_cannot_be_executed_does_not_count(self):
        status, _, err = self.call_redlock(self.a, "once", "--every", "1h", "nightly", "--", "no-such-program")
        self.assertEqual((status, err), (127, "redlock: cannot execute no-such-program: No such file or directory\n"))
        self.once(self.b)
        self.assertEqual(self.runs(), 1)

    def start_once(self, daemon, script):
        process = self.start_redlock(daemon, "once", "--every", "1h", "nightly", "--", "sh", "-c", script % self.log)
        until(lambda: self.runs() == 1, "it runs")
        return process

    def test_others_do_not_wait_for_it_while_it_runs(self):
        process = self.start_once(self.a, "echo ran >>%s; sleep 1")
        status, out, err = self.once(self.b)
        self.assertEqual((status, out), (0, ""))
        self.assertRegex(err, "^redlock: nightly is held by ")
        self.assertEqual((process.wait(10), self.runs()), (0, 1))

    def test_a_run_that_is_killed_does_not_count(self):
        process = self.start_once(self.a, "echo ran >>%s; exec sleep 60")
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        until(lambda: self.once(self.b)[0] == 0 and self.runs() == 2, "another host runs it")

    def test_a_run_whose_lock_is_lost_does_not_count(self):
        process = self.start_once(self.a, "echo ran >>%s; exec sleep 60")
        with Client(self.a.addr) as admin:
            admin.send("BREAK nightly")
            self.assertEqual(process.wait(20), 123)
        until(lambda: self.once(self.b)[0] == 0 and self.runs() == 2, "another host runs it")

    def test_a_signal_ends_the_command_and_is_told(self):
        process = self.start_once(self.a, "trap 'exit 9' TERM; echo ran >>%s; while :; do sleep 0.05; done")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(10), 9)
        self.assertRegex(self.call_redlock(self.b, "once", "--status", "nightly")[1], RAN % 9)

    def test_mistakes(self):
        for words, says in ((["nightly", "--", "true"], "once needs --every D, or --status"), (["--every", "0s", "nightly", "true"], "--every '0s' must be more than 0"),
                            (["--status", "nightly", "true"], "--status runs nothing: it goes without --every and CMD"),
                            (["--json", "--every", "1h", "nightly", "true"], "--json is for once --status")):
            status, _, err = self.call_redlock(self.a, "once", *words)
            self.assertIn(status, (64, 125))
            self.assertTrue(err.startswith("redlock: " + says + "\n"), err)

# SPDX-License-Identifier: BSD-2-Clause
"""The command line of redlockd. What it says about configurations is tested by tests/conf."""
import os

from harness import FuncTest
from process import REDLOCKD, call


class CommandLine(FuncTest):
    def test_a_daemon_with_a_wrong_file_does_not_start(self):
        path = os.path.join(self.folder(), "redlockd.yaml")
        with open(path, "w") as out:
            out.write("store: etcd\n")
        status, _, err = call(REDLOCKD, "--config", path)
        self.assertEqual(status, 78)
        self.assertIn("redlockd.yaml:1:", err)

    def test_a_missing_file_is_named(self):
        status, _, err = call(REDLOCKD, "--config", "/nonexistent/redlockd.yaml")
        self.assertEqual(status, 78)
        self.assertIn("/nonexistent/redlockd.yaml", err)

    def test_version_and_help(self):
        status, out, _ = call(REDLOCKD, "--version")
        self.assertEqual(status, 0)
        self.assertRegex(out, r"^redlockd [0-9]+\.[0-9]+\.[0-9]+")
        status, out, _ = call(REDLOCKD, "--help")
        self.assertEqual(status, 0)
        for option in ("--config", "--check-config", "--dump-config", "--version", "--help", "--set"):
            self.assertIn(option, out)

    def test_a_check_that_reads_no_file_says_so(self):
        status, out, _ = call(REDLOCKD, "--check-config")
        self.assertEqual(status, 0)
        self.assertIn("no file was read: --config FILE names one", out)
        status, out, _ = call(REDLOCKD, "--config", "/dev/null", "--check-config")
        self.assertEqual((status, out.count("\n")), (0, 1), out)

    def test_an_unknown_option_is_a_usage_error(self):
        for argv in (["--nonsense"], ["-x"], ["surplus"], ["--config"]):
            status, out, err = call(REDLOCKD, *argv)
            self.assertEqual((status, out), (64, ""), argv)
            self.assertTrue(err)

    def test_requests_are_not_logged(self):
        daemon = self.daemon()
        with daemon.client("somebody") as c:
            c.ok("LOCK a")
            c.ok("UNLOCK a")
            for _ in range(100):
                c.ok("LOCK a")
                c.ok("UNLOCK a")
        daemon.finish()
        lines = daemon.log().splitlines()
        self.assertLess(len(lines), 15, "the daemon logs requests: %r" % lines)
        self.assertTrue(any("ready" in line for line in lines))

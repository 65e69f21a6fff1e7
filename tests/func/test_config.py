# SPDX-License-Identifier: BSD-2-Clause
"""The command line of redlockd and its configuration as a person and a script meet them."""
import os
import re

from harness import FuncTest
from process import REDLOCKD, call, temp_folder


class Configuration(FuncTest):
    """redlockd's own command line."""

    def setUp(self):
        super().setUp()
        self.folder = temp_folder()
        self.path = os.path.join(self.folder, "redlockd.yaml")
        self.addCleanup(lambda: (os.path.exists(self.path) and os.unlink(self.path), os.rmdir(self.folder)))

    def write(self, text):
        with open(self.path, "w") as out:
            out.write(text)
        return self.path

    def test_a_wrong_key_is_located_with_a_caret_and_a_hint(self):
        status, out, err = call(REDLOCKD, "--config", self.write("store: memory\nlistn:\n  tcp: no\n"), "--check-config")
        self.assertEqual((status, out), (78, ""))
        self.assertRegex(err, r"redlockd\.yaml:2:1: error: unknown key 'listn' \(did you mean 'listen'\?\)")
        self.assertIn("listn:", err.replace("'listn'", ""), "the source line")
        self.assertRegex(err, r"(?m)^\s*(\|\s*)?\^", "a caret")

    def test_all_mistakes_are_told_in_one_run(self):
        text = "lease: 10\nredis:\n  timeout: 50parsec\n  nods: [a]\nguard: lax\nlease: 5s\n"
        status, _, err = call(REDLOCKD, "--config", self.write(text), "--check-config")
        self.assertEqual(status, 78)
        lines = {int(m) for m in re.findall(r"redlockd\.yaml:(\d+):\d+: error:", err)}
        self.assertGreaterEqual(lines, {1, 3, 4, 5, 6}, err)

    def test_a_duration_without_a_unit_is_refused_with_a_hint(self):
        status, _, err = call(REDLOCKD, "--config", self.write("lease: 10\n"), "--check-config")
        self.assertEqual(status, 78)
        self.assertRegex(err, r"10s|10ms|unit")

    def test_a_daemon_with_a_wrong_file_does_not_start(self):
        status, _, err = call(REDLOCKD, "--config", self.write("store: etcd\n"))
        self.assertEqual(status, 78)
        self.assertIn("redlockd.yaml:1:", err)

    def test_a_missing_file_is_named(self):
        status, _, err = call(REDLOCKD, "--config", self.path)
        self.assertEqual(status, 78)
        self.assertIn(self.path, err)

    def test_an_empty_file_is_valid(self):
        status, out, err = call(REDLOCKD, "--config", self.write(""), "--check-config")
        self.assertEqual(status, 0, err)
        self.assertRegex(out + err, r"^ok")

    def test_what_is_dumped_can_be_read_again(self):
        text = 'store: redis\nredis:\n  nodes: [127.0.0.1:6390, "unix:/run/a b.sock", host.example]\n  key_prefix: "a \\"b\\":"\nlease: 1500ms\n'
        status, first, err = call(REDLOCKD, "--config", self.write(text), "--set", "max_lease=1m", "--dump-config")
        self.assertEqual(status, 0, err)
        self.assertRegex(first, r"(?m)^lease: 1500ms")
        status, second, err = call(REDLOCKD, "--config", self.write(first), "--dump-config")
        self.assertEqual(status, 0, err)

        def bare(dump):
            return [line for line in (re.sub(r"\s+#.*", "", line) for line in dump.splitlines()) if line and not line.startswith("#")]
        self.assertEqual(bare(first), bare(second))
        self.assertRegex(first, r"max_lease: (1m|60s)")

    def test_the_defaults_are_dumped_and_valid(self):
        status, dump, err = call(REDLOCKD, "--config", self.write(""), "--dump-config")
        self.assertEqual(status, 0, err)
        for line in ("store: memory", "lease: 10s", "max_lease: 30s", "guard: strict"):
            self.assertRegex(dump, r"(?m)^%s\b" % re.escape(line))
        self.assertEqual(call(REDLOCKD, "--config", self.write(dump), "--check-config")[0], 0)

    def test_set_goes_over_the_file(self):
        self.write("lease: 10s\n")
        status, dump, err = call(REDLOCKD, "--config", self.path, "--set", "lease=3s", "--set", "redis.timeout=80ms", "--dump-config")
        self.assertEqual(status, 0, err)
        self.assertRegex(dump, r"(?m)^lease: 3s")
        self.assertRegex(dump, r"(?m)^  timeout: 80ms")

    def test_a_wrong_set_is_refused(self):
        for wrong in ("lesae=3s", "lease", "lease=soon", "redis=1", "=3s"):
            status, _, err = call(REDLOCKD, "--set", wrong, "--check-config")
            self.assertEqual(status, 78, (wrong, err))
            self.assertTrue(err)

    def test_version_and_help(self):
        status, out, _ = call(REDLOCKD, "--version")
        self.assertEqual(status, 0)
        self.assertRegex(out, r"^redlockd [0-9]+\.[0-9]+\.[0-9]+")
        status, out, _ = call(REDLOCKD, "--help")
        self.assertEqual(status, 0)
        for option in ("--config", "--check-config", "--dump-config", "--version", "--help", "--set"):
            self.assertIn(option, out)

    def test_an_unknown_option_is_a_usage_error(self):
        for argv in (["--nonsense"], ["-x"], ["surplus"], ["--config"]):
            status, out, err = call(REDLOCKD, *argv)
            self.assertEqual((status, out), (64, ""), argv)
            self.assertTrue(err)

    def test_the_daemon_logs_one_line_per_event(self):
        daemon = self.daemon()
        with daemon.client("somebody") as c:
            c.ok("LOCK a")
            c.ok("UNLOCK a")
            for _ in range(100):
                c.ok("LOCK a")
                c.ok("UNLOCK a")
        daemon.finish()
        lines = daemon.log().splitlines()
        self.assertLess(len(lines), 15, "nothing per request: %r" % lines)
        self.assertTrue(any("ready" in line for line in lines))


if __name__ == "__main__":
    from harness import main
    main()

# SPDX-License-Identifier: BSD-2-Clause
"""Users and their secrets, and how redlock shows who it is."""
import json
import os
import re
import time

from guard import SECRET, GuardTest, crypt_line
from process import REDLOCK, REDLOCKD, call, until


class Users(GuardTest):
    COST = 8

    def test_a_user_shows_itself_and_a_wrong_secret_does_not(self):
        daemon = self.guarded("", users={"ann": SECRET, "bob": "x"})
        c = self.client(daemon)
        self.assertEqual(c.ok('AUTH ann "%s"' % SECRET)["user"], "ann")
        c.err("AUTH bob %s" % SECRET.split()[0], "AUTH")
        c.err("AUTH nobody x", "AUTH")
        c.ok("PING")

    def test_the_third_failure_ends_the_connection(self):
        daemon = self.guarded("", users={"ann": SECRET})
        c = self.client(daemon)
        begin = time.monotonic()
        for _ in range(3):
            c.err("AUTH ann wrong", "AUTH")
        c.eof()
        self.assertGreaterEqual(time.monotonic() - begin, 0.3)  # 0, 100 and 200 ms
        daemon.logged(r"auth-failed peer=.* failures=3")

    def test_others_are_served_while_a_secret_is_verified(self):
        daemon = self.guarded("", users={"ann": SECRET})
        slow = [self.client(daemon) for _ in range(20)]
        c = self.client(daemon)
        for s in slow:
            s.send("@a AUTH ann wrong")
        longest = 0.0
        for _ in range(50):
            begin = time.monotonic()
            c.ok("PING")
            longest = max(longest, time.monotonic() - begin)
        for s in slow:
            s.reply("@a", timeout=30)
        self.figure("longest PING beside 20 AUTHs: %.1f ms" % (1000 * longest))

    def test_invented_users_do_not_hold_back_one_who_exists(self):
        daemon = self.guarded("", users={"ann": SECRET, "bob": "x"})
        crowd = [self.client(daemon) for _ in range(40)]
        c = self.client(daemon)
        for k, s in enumerate(crowd):
            s.send("@a AUTH invented%d wrong" % k)
        begin = time.monotonic()
        c.ok('AUTH ann "%s"' % SECRET, timeout=30)
        alone = time.monotonic() - begin
        crowd[-1].reply("@a", timeout=30)
        self.figure("AUTH beside 40 of invented users: %.0f ms of %.0f" % (1000 * alone, 1000 * (time.monotonic() - begin)))
        self.assertLess(alone, (time.monotonic() - begin) / 2)

    def test_a_secret_that_was_right_is_verified_quickly_the_next_time(self):
        daemon = self.guarded("", users={"ann": SECRET})
        seconds = []
        for _ in range(20):
            c, begin = self.client(daemon), time.monotonic()
            c.ok('AUTH ann "%s"' % SECRET)
            seconds.append(time.monotonic() - begin)
        self.figure("AUTH: the first %.1f ms, the fastest later one %.2f ms" % (1000 * seconds[0], 1000 * min(seconds[1:])))
        self.assertLess(min(seconds[1:]), seconds[0] / 2)
        self.client(daemon).err("AUTH ann wrong", "AUTH")
        self.write_users(daemon, {"ann": "another"})
        daemon.reload()
        self.client(daemon).err('AUTH ann "%s"' % SECRET, "AUTH")

    def test_users_are_read_again(self):
        daemon = self.guarded("", users={"ann": SECRET})
        c = self.client(daemon)
        c.err("AUTH bob y", "AUTH")
        self.write_users(daemon, {"bob": "y"})
        daemon.reload()
        c.ok("AUTH bob y")
        with open(daemon.users, "w") as out:
            out.write("bob plain\n")
        daemon.reload()
        daemon.logged(r"users:1:1: error: behind 'bob' stands no hash")
        c.ok("AUTH bob y")

    def test_secrets_are_shown_nowhere(self):
        daemon = self.guarded("log: {level: debug}\n", users={"ann": SECRET})
        c = self.client(daemon)
        c.ok('AUTH ann "%s"' % SECRET)
        c.err("AUTH ann hunter2", "AUTH")
        c.send("AUTH hunter2 hunter2 hunter2")
        c.reply()
        shown = " ".join(str(row) for row in c.ok("LIST sessions").rows)
        self.assertIn("uid=", shown)
        _, dump, err = call(REDLOCKD, "--config", daemon.write_config(), "--dump-config")
        with open(daemon.users) as users:
            hashes = re.findall(r"\$\S+", users.read())
        for text in [SECRET, "hunter2", *hashes]:
            self.assertNotIn(text, daemon.log() + shown + dump + err)

    def test_no_core_is_written(self):
        daemon = self.guarded("", users={"ann": SECRET})
        with open("/proc/%d/limits" % daemon.pid) as limits:
            self.assertRegex(limits.read(), r"Max core file size +0 +0 ")

    def test_the_files_are_checked(self):
        daemon = self.guarded("auth: {users_file: /nonexistent/users}\n", start=False)
        path = daemon.write_config()
        status, _, err = call(REDLOCKD, "--config", path, "--check-config")
        self.assertEqual(status, 78)
        self.assertRegex(err, r"redlockd\.yaml:\d+:\d+: error: the file cannot be used: No such file or directory")
        daemon = self.guarded("", start=False, users={"ann": SECRET})
        status, _, err = call(REDLOCKD, "--config", daemon.write_config(), "--check-config")
        self.assertEqual((status, err), (0, ""))
        with open(daemon.users, "a") as out:
            out.write("ann $5$x\nbob\ncarl %s\n" % SECRET)
        status, _, err = call(REDLOCKD, "--config", daemon.write_config(), "--check-config")
        self.assertEqual(status, 78)
        self.assertIn("4:1: error: user 'ann' stands here a second time", err)
        self.assertIn("5:1: error: a line is a name and a hash", err)
        self.assertNotIn("horse", err)

    def test_a_missing_password_file_is_found_by_the_check(self):
        status, _, err = call(REDLOCKD, "--set", "store=redis", "--set", "redis.nodes=[127.0.0.1:1]", "--set", "redis.password_file=/nonexistent/p",
                              "--check-config")
        self.assertEqual(status, 78)
        self.assertIn("/nonexistent/p: cannot be read: No such file or directory", err)

    def test_passwd_takes_the_secret_from_its_input(self):
        line = crypt_line("ann", SECRET)
        self.assertRegex(line, r"^ann \$y\$\S+\n$")
        self.assertNotEqual(line, crypt_line("ann", SECRET))
        for argv, text in ((["passwd", "a b"], "x\n"), (["passwd", "#a"], "x\n"), (["passwd", "a"], ""), (["passwd", "a"], "\n")):
            status, out, _ = call(REDLOCK, *argv, input=text, stdin=None)
            self.assertNotEqual(status, 0)
            self.assertEqual(out, "")


class Shown(GuardTest):
    """redlock and libredlock show who they are."""

    def credentials(self, secret):
        path = os.path.join(self.folder(), "secret")
        with open(path, "w") as out:
            out.write(secret + "\n")
        return path

    def test_the_command_line(self):
        daemon = self.guarded("rules:\n  - {user: ann, allow: [lock, look]}\n", users={"ann": SECRET})
        good, bad = self.credentials(SECRET), self.credentials("wrong")
        status, _, err = self.call_redlock(daemon, "ls")
        self.assertEqual(status, 77, err)
        status, _, err = self.call_redlock(daemon, "--user", "ann", "--secret-file", good, "ls")
        self.assertEqual(status, 0, err)
        status, out, err = self.call_redlock(daemon, "run", "a", "--user", "ann", "--secret-file", good, "--", "echo", "done")
        self.assertEqual((status, out), (0, "done\n"), err)
        env = dict(os.environ, REDLOCK_USER="ann", REDLOCK_SECRET=SECRET)
        status, _, err = self.call_redlock(daemon, "show", "a", env=env)
        self.assertEqual(status, 1, err)
        status, _, err = self.call_redlock(daemon, "--user", "ann", "--secret-file", bad, "ls")
        self.assertEqual(status, 69)
        self.assertIn("does not accept $REDLOCK_USER", err)
        status, _, err = self.call_redlock(daemon, "--user", "ann", "--secret-file", "/nonexistent", "ls")
        self.assertEqual(status, 69)
        self.assertIn("No such file", err)

    def test_a_session_is_resumed_by_its_user(self):
        server = self.redis()
        daemon = self.guarded("rules:\n  - {user: ann, allow: [lock, look]}\n", {"store": "redis", "redis": {"nodes": [server.node]}},
                              users={"ann": SECRET})
        path = self.credentials(SECRET)
        env = dict(os.environ, REDLOCK_USER="ann", REDLOCK_SECRET_FILE=path)
        read, write = os.pipe()
        process = self.start_redlock(daemon, "run", "a", "--", "sh", "-c", "echo begun; cat", env=env, stdin=read)
        os.close(read)
        self.addCleanup(os.close, write)
        until(lambda: self.call_redlock(daemon, "show", "a", env=env)[0] == 0, "the lock is held")
        daemon.finish()
        daemon.start()
        until(lambda: self.is_held_by_a_connection(daemon, env), "the session is resumed")
        self.assertIsNone(process.poll(), "redlock run has lost its lock")

    def is_held_by_a_connection(self, daemon, env):
        status, out, _ = self.call_redlock(daemon, "clients", "--json", env=env)
        sessions = [json.loads(line) for line in out.splitlines()] if status == 0 else []
        return any(session["held"] == 1 and "detached_ms" not in session for session in sessions)


class Clients(GuardTest):
    def test_redlock_clients_shows_users_and_cuts_no_name(self):
        daemon = self.guarded("", users={"ann": SECRET}, tcp=True)
        known, far, other = self.client(daemon, "a" * 60), self.client(daemon, "far", tcp=True), self.client_as(daemon, 33, 33)
        for client in (known, far):
            client.ok('AUTH ann "%s"' % SECRET)
        other.ok("HELLO 1 name=other")
        status, out, _ = self.call_redlock(daemon, "clients")
        lines = out.splitlines()
        self.assertEqual(status, 0)
        self.assertEqual(lines[0].split(), ["SESSION", "NAME", "USER", "PID", "PEER", "HELD", "WAITING", "AGE"])
        self.assertRegex(out, r"(?m)^\d+ +%s  ann  " % ("a" * 60))
        self.assertRegex(out, r"(?m)^\d+ +far +ann  +127\.0\.0\.1:\d+ ")
        self.assertRegex(out, r"(?m)^\d+ +other +uid 33  +\d+  +unix ")
        status, out, _ = self.call_redlock(daemon, "clients", "--long")
        self.assertEqual(out.split("\n")[0].split(), ["SESSION", "NAME", "USER", "PID", "UID", "PEER", "HELD", "WAITING", "AGE", "IDLE"])
        _, out, _ = self.call_redlock(daemon, "clients", "--json")
        self.assertEqual([row.get("user") for row in map(json.loads, out.splitlines()) if row.get("name") in ("far", "other")], ["ann", None])

# SPDX-License-Identifier: BSD-2-Clause
"""Who may do what: protected addresses, users and their secrets, rules, the audit log, the share of one peer."""
import contextlib
import fcntl
import json
import os
import re
import resource
import shutil
import signal
import socket
import time
import unittest

from harness import FuncTest
from process import REDLOCK, REDLOCKD, call, temp_folder, until
from wire import Client

SECRET = "correct horse battery"


def crypt_line(name, secret):
    """A line of the file of users, as redlock passwd prints it."""
    status, out, err = call(REDLOCK, "passwd", name, input=secret + "\n", stdin=None)
    assert status == 0, err
    return out


@contextlib.contextmanager
def user(uid, gid, groups=()):
    """Within it a connection to a Unix socket is that of another user. Only root may."""
    saved = os.getgroups()
    os.setgroups(list(groups))
    os.setegid(gid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(saved)


class GuardTest(FuncTest):
    def guarded(self, text, tree=None, start=True, users=None, **options):
        """A daemon with this text behind its configuration, and these users: {name: secret}."""
        daemon = self.daemon(tree, start=False, **options)
        os.chmod(daemon.folder, 0o755)
        daemon.users = os.path.join(daemon.folder, "users")
        if users is not None:
            self.write_users(daemon, users)
            daemon.config += "auth: {users_file: users}\n"
        daemon.config += text
        return daemon.start() if start else daemon

    def write_users(self, daemon, users):
        with open(daemon.users, "w") as out:
            out.write("# users\n\n" + "".join(crypt_line(name, secret) for name, secret in users.items()))

    def reload(self, daemon):
        daemon.notify.forget()
        daemon.send_signal(signal.SIGHUP)
        self.assertTrue(daemon.notify.wait("READY=1", daemon.process))

    def client_as(self, daemon, uid, gid, groups=()):
        if os.geteuid() != 0:
            self.skipTest("only root can be another user")
        with user(uid, gid, groups):
            client = Client(daemon.addr)
        self.addCleanup(client.close)
        return client


class Protected(GuardTest):
    """A TCP address beyond loopback needs something that protects it."""
    TREE = {"listen": {"tcp": "0.0.0.0:0"}}

    def test_an_unprotected_address_is_refused(self):
        daemon = self.refused(self.TREE, "error: everybody who reaches this address could take and release locks; set auth.users_file or rules", 78)
        self.assertRegex(daemon.log(), r"redlockd\.yaml:\d+:\d+: error: ")

    def test_rules_or_insecure_let_it_start(self):
        self.guarded("insecure: yes\n", self.TREE)
        self.guarded("rules: [{allow: [look]}]\n", self.TREE)

    def passed(self, text, address):
        """Starts a daemon that gets a listening socket from its service manager. Returns it."""
        daemon = self.guarded(text, start=False)
        listening = socket.create_server((address, 0))
        self.addCleanup(listening.close)
        script = "export LISTEN_PID=$$ LISTEN_FDS=1; exec %s --config %s 3<&%d" % (REDLOCKD, daemon.write_config(), listening.fileno())
        os.set_inheritable(listening.fileno(), True)
        daemon.argv = ["bash", "-c", script]
        return daemon, listening

    def test_a_socket_that_was_passed_is_refused_as_well(self):
        for text, address, starts in (("", "0.0.0.0", False), ("insecure: yes\n", "0.0.0.0", True), ("", "127.0.0.1", True)):
            daemon, listening = self.passed(text, address)
            process = self.spawn_passed(daemon, listening)
            if starts:
                daemon.logged(r"ready .*passed=1")
                process.terminate()
                self.assertEqual(process.wait(10), 0)
            else:
                self.assertEqual(process.wait(10), 78, daemon.log())
                self.assertIn("everybody who reaches this address could take and release locks", daemon.log())

    def spawn_passed(self, daemon, listening):
        import subprocess
        with open(daemon.log_path, "ab") as log:
            process = subprocess.Popen(daemon.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[listening.fileno()])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process


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
        self.reload(daemon)
        self.client(daemon).err('AUTH ann "%s"' % SECRET, "AUTH")

    def test_users_are_read_again(self):
        daemon = self.guarded("", users={"ann": SECRET})
        c = self.client(daemon)
        c.err("AUTH bob y", "AUTH")
        self.write_users(daemon, {"bob": "y"})
        self.reload(daemon)
        c.ok("AUTH bob y")
        with open(daemon.users, "w") as out:
            out.write("bob plain\n")
        self.reload(daemon)
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
        self.assertIn("the password cannot be read: /nonexistent/p: No such file or directory", err)

    def test_passwd_takes_the_secret_from_its_input(self):
        line = crypt_line("ann", SECRET)
        self.assertRegex(line, r"^ann \$y\$\S+\n$")
        self.assertNotEqual(line, crypt_line("ann", SECRET))
        for argv, text in ((["passwd", "a b"], "x\n"), (["passwd", "#a"], "x\n"), (["passwd", "a"], ""), (["passwd", "a"], "\n")):
            status, out, _ = call(REDLOCK, *argv, input=text, stdin=None)
            self.assertNotEqual(status, 0)
            self.assertEqual(out, "")


class Rules(GuardTest):
    RULES = """rules:
  - {uid: 33, names: "web/*", allow: [lock, look]}
  - {group: 4711, allow: [lock, look, admin]}
  - {user: worker, names: "jobs/*", allow: [lock]}
"""

    def test_uid_group_and_user(self):
        daemon = self.guarded(self.RULES, users={"worker": "w"})
        web, further = self.client_as(daemon, 33, 33), self.client_as(daemon, 1234, 1234, [1, 4711])
        main, nobody = self.client_as(daemon, 1235, 4711), self.client_as(daemon, 65534, 65534)
        worker, root = self.client(daemon), self.client(daemon)
        worker.ok("AUTH worker w")
        web.ok("LOCK web/1")
        line = web.err("LOCK jobs/1", "DENIED")
        worker.ok("LOCK jobs/1")
        self.assertIn("the rule in line", str(worker.err("SHOW jobs/1", "DENIED")))
        further.ok("SHOW jobs/1")
        main.ok("BREAK jobs/1")
        for c in (nobody, root):
            c.err("LOCK web/2", "DENIED")
            c.err("BREAK web/1", "DENIED")
            c.err("STATS", "DENIED")
            c.ok("PING")
        self.assertIn("no rule gives", str(line))

    def test_the_web_listener_asks_the_rules(self):
        def statuses(rule):
            daemon = self.guarded("rules:\n  - %s\n" % rule, {"listen": {"http": "unix:" + os.path.join(folder, "web")}})
            client = self.client(daemon)
            client.ask("LOCK web/1")
            client.ask("LOCK other/1")
            found = {}
            for path in ("/livez", "/", "/metrics", "/api/v1/snapshot"):
                with socket.socket(socket.AF_UNIX) as sock:
                    sock.connect(os.path.join(folder, "web"))
                    sock.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % path.encode())
                    answer = b"".join(iter(lambda: sock.recv(65536), b"")).decode()  # pylint: disable=cell-var-from-loop
                found[path] = int(answer.split()[1])
            daemon.finish()
            return list(found.values()), re.findall(r"(?:web|other)/1", answer)
        folder = temp_folder("guard")
        self.addCleanup(shutil.rmtree, folder, True)
        self.assertEqual(statuses("{uid: 0, allow: [lock]}"), ([200, 403, 403, 403], []))
        self.assertEqual(statuses('{uid: 0, names: "web/*", allow: [lock, look]}'), ([200, 200, 403, 200], ["web/1"]))
        self.assertEqual(statuses("{uid: 0, allow: [lock, look]}"), ([200, 200, 200, 200], ["other/1", "web/1"]))

    def test_rules_are_read_again(self):
        daemon = self.guarded("rules:\n  - {uid: 0, names: \"a*\", allow: [lock]}\n")
        c = self.client(daemon)
        c.ok("LOCK a")
        c.err("LOCK b", "DENIED")
        daemon.config = daemon.config.replace('"a*"', '"b*"')
        daemon.write_config()
        self.reload(daemon)
        c.ok("LOCK b")
        c.err("EXTEND a", "DENIED")
        c.ok("UNLOCK a")
        c.err("LOCK a", "DENIED")
        daemon.logged(r"reload key=rules")

    def test_rules_that_are_read_again_end_a_wait(self):
        daemon = self.guarded("rules:\n  - {uid: 0, allow: [lock]}\n")
        holder, waiter = self.client(daemon), self.client(daemon)
        holder.ok("LOCK a")
        waiter.begin("@w LOCK a wait=1m")
        daemon.config = daemon.config.replace("{uid: 0, allow", "{uid: 0, names: \"b*\", allow")
        daemon.write_config()
        self.reload(daemon)
        self.assertEqual(waiter.reply("@w").code, "DENIED")
        holder.ok("UNLOCK a")
        waiter.ok("LOCK b")

    def test_rules_do_not_vanish_without_a_restart(self):
        daemon = self.guarded("rules:\n  - {uid: 0, names: \"a*\", allow: [lock]}\n")
        c = self.client(daemon)
        daemon.config = daemon.config.partition("rules:")[0]
        daemon.write_config()
        self.reload(daemon)
        daemon.logged(r"reload key=rules .*effect=restart")
        c.err("LOCK b", "DENIED")


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
        self.assertIn("redlockd does not accept $REDLOCK_USER", err)
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
    def test_redlock_clients_shows_users_within_80_columns(self):
        daemon = self.guarded("", users={"ann": SECRET}, tcp=True)
        known, far, other = self.client(daemon, "a" * 60), self.client(daemon, "far", tcp=True), self.client_as(daemon, 33, 33)
        for client in (known, far):
            client.ok('AUTH ann "%s"' % SECRET)
        other.ok("HELLO 1 name=other")
        status, out, _ = self.call_redlock(daemon, "clients")
        lines = out.splitlines()
        self.assertEqual(status, 0)
        self.assertEqual(lines[0].split(), ["SESSION", "NAME", "USER", "PID", "PEER", "HELD", "WAITING", "AGE"])
        self.assertLessEqual(max(len(line) for line in lines), 80, out)
        self.assertRegex(out, r"(?m)^\d+ +aaaa[a]+\.\.\.  ann  ")
        self.assertRegex(out, r"(?m)^\d+ +far +ann  +127\.0\.0\.1:\d+ ")
        self.assertRegex(out, r"(?m)^\d+ +other +uid 33  +\d+  unix ")
        status, out, _ = self.call_redlock(daemon, "clients", "--long")
        self.assertIn("a" * 60, out)
        self.assertEqual(out.split("\n")[0].split(), ["SESSION", "NAME", "USER", "PID", "UID", "PEER", "HELD", "WAITING", "AGE", "IDLE"])
        _, out, _ = self.call_redlock(daemon, "clients", "--json")
        self.assertEqual([row.get("user") for row in map(json.loads, out.splitlines()) if row.get("name") in ("far", "other")], ["ann", None])


class Audit(GuardTest):
    def lines(self, path):
        with open(path) as lines:
            return [json.loads(line) for line in lines]

    def audited(self, daemon, path, count):
        return until(lambda: os.path.exists(path) and len(self.lines(path)) >= count and self.lines(path), "%d lines of the audit log" % count)

    def test_what_is_written(self):
        path = os.path.join(self.folder(), "audit")
        daemon = self.guarded("audit: {file: %s}\n" % path, users={"ann": SECRET})
        c, admin = self.client(daemon, 'the "label"'), self.client(daemon)
        c.ok('AUTH ann "%s"' % SECRET)
        fence = c.ok(r'LOCK "a\xff\n\""').num("fence")
        c.ok(r'UNLOCK "a\xff\n\""')
        c.ok("LOCK b")
        admin.ok("BREAK b")
        c.ok("ACQUIRE s limit=2")
        c.ok("RELEASE s")
        session = c.ok("HELLO 1").num("session")
        admin.ok("KILL session=%d" % session)
        lines = self.audited(daemon, path, 8)
        self.assertEqual([line["event"] for line in lines], ["granted", "released", "granted", "break", "lost", "granted", "released", "kill"])
        first = lines[0]
        self.assertEqual((first["name"], first["fence"], first["uid"], first["pid"]), ('a\udcff\n"', fence, os.getuid(), os.getpid()))
        self.assertEqual((first["user"], first["label"], first["address"], first["session"]), ("ann", 'the "label"', "unix", session))
        self.assertRegex(first["time"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
        self.assertEqual(lines[4]["reason"], "broken")
        self.assertEqual((lines[5]["name"], lines[5]["permit"]), ("s", lines[6]["permit"]))
        self.assertEqual(lines[7]["killed"], session)
        self.assertNotIn("user", lines[7])
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o640 & ~self.umask())

    def umask(self):
        mask = os.umask(0)
        os.umask(mask)
        return mask

    def test_the_file_is_opened_again(self):
        path = os.path.join(self.folder(), "audit")
        daemon = self.guarded("audit: {file: %s}\n" % path)
        c = self.client(daemon)
        c.ok("LOCK a")
        os.rename(path, path + ".1")
        c.ok("LOCK b")
        self.assertEqual([line["name"] for line in self.audited(daemon, path + ".1", 2)], ["a", "b"])
        self.reload(daemon)
        c.ok("LOCK c")
        self.assertEqual([line["name"] for line in self.audited(daemon, path, 1)], ["c"])

    def test_a_full_disk_costs_lines_and_nothing_else(self):
        path = os.path.join(self.folder(), "audit")
        daemon = self.guarded("audit: {file: %s}\n" % path)
        c = self.client(daemon)
        hard = resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE)[1]
        names = ["%s-%d" % ("n" * 400, i) for i in range(200)]
        resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (60000, hard))
        for name in names:
            c.ok("LOCK %s" % name)
        daemon.logged(r"audit .*error=.*the daemon goes on without these lines")
        before = len(self.lines(path))  # each line is whole
        self.assertLess(before, 200)
        resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (hard, hard))
        c.ok("LOCK last")
        lines = self.audited(daemon, path, before + 2)
        self.assertEqual(lines[before]["event"], "gap")
        self.assertEqual(before + lines[before]["left_out"], 200)
        self.assertEqual(lines[before + 1]["name"], "last")

    def test_a_pipe_that_is_full_costs_lines_and_spoils_no_other(self):
        """What a pipe took of a line cannot be taken back: it stands by itself."""
        path = os.path.join(self.folder(), "audit")
        os.mkfifo(path)
        pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, pipe)
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 4096)
        daemon = self.guarded("audit: {file: %s}\n" % path)
        c = self.client(daemon)
        c.ok('HELLO 1 name="%s"' % (r"\xff" * 250))
        c.ok('LOCK "%s"' % (r"\xff" * 500))  # a byte takes six in JSON
        daemon.logged(r"audit .*error=.*the daemon goes on without these lines")
        part = os.read(pipe, 65536)
        self.assertEqual(len(part), 4096)
        c.ok("LOCK last")
        text = part + os.read(pipe, 65536)
        lines = text.decode().splitlines()
        self.assertEqual(len(lines), 3)
        self.assertEqual([json.loads(line)["event"] for line in lines[1:]], ["gap", "granted"])
        self.assertEqual((json.loads(lines[1])["left_out"], json.loads(lines[2])["name"]), (1, "last"))

    def test_a_file_that_cannot_be_made_is_told_at_the_start(self):
        self.refused({"audit": {"file": "/nonexistent/audit"}}, "audit file=/nonexistent/audit error=", status=78)

    def test_the_check_of_a_configuration_finds_a_file_that_cannot_be_used_and_makes_none(self):
        folder = self.folder()
        good, away = os.path.join(folder, "audit"), os.path.join(folder, "away", "audit")
        for path, why in ((good, None), ("/dev/null", None), (away, "No such file or directory"), (folder, "Is a directory"),
                          (os.path.join(REDLOCKD, "audit"), "Not a directory")):
            status, _, err = call(REDLOCKD, "--check-config", "--set", "audit.file=" + path)
            self.assertEqual((status, err == ""), (78 if why else 0, why is None), (path, err))
            self.assertIn("--set:1:12: error: the audit log cannot be written: %s: %s" % (path, why) if why else "", err)
        self.assertEqual(os.listdir(folder), [])


class Peers(GuardTest):
    def test_one_peer_has_so_many_sessions_and_no_more(self):
        daemon = self.guarded("", {"limits": {"peer": 2}})
        one, _ = self.client_as(daemon, 33, 33), self.client_as(daemon, 33, 33)
        self.assertIn("ERR LIMIT peer=2 this peer has as many connections as it may have", str(self.client_as(daemon, 33, 33).eof()[0]))
        self.client_as(daemon, 34, 34).ok("PING")
        for _ in range(3):
            self.client(daemon).ok("PING")  # root is not bound
        one.ok("QUIT")
        one.eof()
        until(lambda: self.client_as(daemon, 33, 33).ask("PING") is not None, "there is room again")


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: BSD-2-Clause
"""The audit log."""
import fcntl
import json
import os
import resource
import shutil

from guard import SECRET, GuardTest
from process import REDLOCKD, call, until


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
        daemon.reload()
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
        self.assertEqual(c.stats()["audit_writable"], 0)
        before = len(self.lines(path))  # each line is whole
        self.assertLess(before, 200)
        resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (hard, hard))
        until(lambda: c.stats()["audit_writable"] == 1, "the gap is told, although there is no other line to write")
        daemon.logged(r"notice audit file=\S+ note=")
        c.ok("LOCK last")
        lines = self.audited(daemon, path, before + 2)
        self.assertEqual(lines[before]["event"], "gap")
        self.assertEqual(before + lines[before]["left_out"], 200)
        self.assertEqual(lines[before + 1]["name"], "last")

    def test_a_folder_that_is_gone_is_told_until_it_is_there_again(self):
        folder = os.path.join(self.folder(), "away")
        path = os.path.join(folder, "audit")
        os.mkdir(folder)
        daemon = self.guarded("audit: {file: %s}\n" % path)
        c = self.client(daemon)
        self.assertEqual(c.stats()["audit_writable"], 1)
        shutil.rmtree(folder)
        with open(folder, "w"):
            pass
        until(lambda: c.stats()["audit_writable"] == 0, "the figure tells it, although there is no line to write")
        status, out, _ = self.call_redlock(daemon, "doctor")
        self.assertEqual(status, 1)
        self.assertIn("the audit log cannot be written", out)
        os.unlink(folder)
        os.mkdir(folder)
        until(lambda: c.stats()["audit_writable"] == 1, "the file is made again")
        self.assertEqual(self.call_redlock(daemon, "doctor")[0], 0)
        c.ok("LOCK a")
        self.assertEqual(self.audited(daemon, path, 1)[0]["name"], "a")

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

# SPDX-License-Identifier: BSD-2-Clause
"""Files of the daemon that somebody removes or cuts while it runs: it notices, says so, and makes them again."""
import contextlib
import glob
import os
import resource
import shutil
import signal

import redis  # Debian: python3-redis

from daemon import on_redis
from harness import LEASE_1S, FuncTest
from process import REDLOCK, call, until
from redis_server import Redis
from wire import Client


def server_at(path):
    """The process that serves whoever connects to this socket of Redis now, or None."""
    with contextlib.suppress(redis.exceptions.ConnectionError), redis.Redis(unix_socket_path=path) as cli:
        return cli.info("server")["process_id"]


class RemovedFiles(FuncTest):
    COST = 20

    def setUp(self):
        super().setUp()
        self.d = self.daemon()

    def answers(self):
        """Whether somebody who connects by the path of the socket is served."""
        with contextlib.suppress(OSError), Client(self.d.addr) as c:
            return c.ok("PING") is not None

    def again(self):
        until(self.answers, "the socket is there again")

    def killed(self):
        self.d.kill()
        self.d.start()

    def test_the_socket_file(self):
        c = self.client(self.d)
        c.ok("LOCK a")
        os.unlink(self.d.addr)
        self.again()
        self.assertIn("socket=%s" % self.d.addr, self.d.log())
        c.ok("CHECK a")
        self.assertEqual(os.stat(self.d.addr).st_mode & 0o777, 0o666)

    def test_the_socket_of_redis_is_taken_over(self):
        """Redis unlinks what is at the path of its socket when it starts. Two daemons may not use two servers."""
        guard, first = {"guard": "strict"}, self.redis()
        a = self.daemon(on_redis([first], LEASE_1S, guard)).joined()
        holder = self.client(a)
        holder.ok("LOCK a")
        second = Redis(args=("--unixsocket", first.path))
        self.addCleanup(second.stop)
        second.path = first.path
        second.start()  # as the first server may have answered still, its own process is waited for
        until(lambda: server_at(first.path) == second.process.pid, "the second server has the path")
        b = self.daemon(on_redis([first], LEASE_1S, guard))
        a.logged("state=down .*cause=host reason=\"another server has taken over the path %s\"" % first.path)
        b.joined()
        self.client(b).ok("LOCK a wait=9s")
        self.assertNotEqual(holder.ask("CHECK a").kind, "OK", "there is one holder")
        a.joined()
        self.client(a).busy("LOCK a")
        os.unlink(first.path)
        until(lambda: "is gone" in self.call_redlock(a, "doctor")[1], "doctor tells it")
        a.logged("warn node .*cause=host reason=\"the path %s is gone" % first.path)
        self.client(a).busy("LOCK a")

    def test_another_file_in_the_place_of_the_socket(self):
        os.unlink(self.d.addr)
        with open(self.d.addr, "w") as out:
            out.write("x")
        self.d.logged("socket=%s error=\"a file that is no socket" % self.d.addr)
        os.unlink(self.d.addr)
        self.again()

    def test_figures_and_doctor_tell_of_a_socket_whose_place_is_taken(self):
        web = os.path.join(self.folder(), "http")
        d = self.daemon({"listen": {"http": "unix:" + web}}, tcp=True)
        c = self.client(d)

        def lost():
            return [row["value"] for row in c.ok("STATS").rows if row["metric"] == "sockets_lost"]
        self.assertEqual(lost(), ["0"])
        for n, path in enumerate((d.addr, web), 1):
            os.unlink(path)
            os.mkdir(path)
            until(lambda: lost() == [str(n)], "a socket is lost")
        status, out, _ = call(REDLOCK, "--addr", "%s:%d" % d.tcp, "doctor")
        self.assertEqual(status, 1)
        self.assertIn("nobody can connect to a Unix socket", out)
        for path in (d.addr, web):
            os.rmdir(path)
        until(lambda: lost() == ["0"], "both are there again")

    def test_the_runtime_directory(self):
        keeper, c = self.client(self.d), self.client(self.d)
        hello = keeper.ok("HELLO 1 grace=5m")
        keeper.ok("LOCK a ttl=30s")
        c.ok("DEFER q first id=1")
        shutil.rmtree(self.d.runtime_dir)
        answer = c.ask("DEFER q second id=2")
        self.assertEqual(answer.kind, "ERR", "a job that no file keeps is not acknowledged")
        until(lambda: c.ask("DEFER q third id=3").kind == "OK", "the directory is there again")
        self.d.logged("dir=%s.*made again" % self.d.runtime_dir)
        until(lambda: os.path.exists(self.d.journal), "the journal is there again")
        keeper.ok("CHECK a")
        self.killed()
        back = self.client(self.d)
        jobs = {back.ok("TAKE q wait=30s")["job"], back.ok("TAKE q wait=30s")["job"]}
        self.assertEqual(jobs, {"1", "3"})
        self.client(self.d).ok("RESUME %s %s" % (hello["session"], hello["secret"]))

    def test_the_runtime_directory_in_whose_place_another_user_puts_one(self):
        if os.geteuid() != 0:
            self.skipTest("only root can be another user")
        os.rename(self.d.runtime_dir, self.d.runtime_dir + ".gone")
        os.mkdir(self.d.runtime_dir)
        os.chown(self.d.runtime_dir, 65534, 65534)
        self.d.logged("cannot be made again: the directory, or the link to it, belongs to another user")
        self.assertEqual(os.listdir(self.d.runtime_dir), [])
        os.rmdir(self.d.runtime_dir)
        self.again()

    def test_the_file_of_jobs(self):
        c = self.client(self.d)
        c.ok("DEFER q first id=1")
        os.unlink(os.path.join(self.d.runtime_dir, "jobs.db"))
        c.ok("DEFER q second id=2")
        self.d.logged(r'error jobs dir=.* error="somebody has removed jobs.db" note="redlockd has put its jobs into a new one"')
        self.killed()
        c = self.client(self.d)
        self.assertEqual([c.ok("TAKE q wait=30s")["job"] for _ in range(2)], ["1", "2"])

    def test_the_state_directory(self):
        state = os.path.join(self.folder(), "state")
        d = self.daemon({"state_dir": state})
        c = self.client(d)
        c.ok("DEFER q first id=1")
        os.rename(state, state + ".gone")
        d.logged("notice jobs dir=.*is written again|error jobs dir=.*put its jobs into a new one")
        c.ok("DEFER q second id=2")
        self.assertEqual(os.stat(state).st_mode & 0o777, 0o700)
        d.restart()
        c = self.client(d)
        self.assertEqual([c.ok("TAKE q wait=30s")["job"] for _ in range(2)], ["1", "2"])

    def test_the_file_of_jobs_is_cut(self):
        c = self.client(self.d)
        c.ok("DEFER q first id=1")
        os.truncate(os.path.join(self.d.runtime_dir, "jobs.db"), 0)
        c.ok("DEFER q second id=2")
        self.d.logged(r'error jobs dir=.* error="somebody has cut jobs.db" moved_to=jobs.db.bad note="redlockd has put its jobs into a new one"')
        self.killed()
        c = self.client(self.d)
        self.assertEqual([c.ok("TAKE q wait=30s")["job"] for _ in range(2)], ["1", "2"])

    def test_a_copy_is_put_back_in_the_file_of_jobs(self):
        path = os.path.join(self.d.runtime_dir, "jobs.db")
        for how in ("kill", "term", "restart"):
            q, mark = "q" + how, self.d.log_size()
            self.client(self.d).ok("DEFER %s first id=1" % q)
            self.d.finish()
            with open(path, "rb") as file:
                copy = file.read()
            c = self.client(self.d.start())
            c.ok("DEFER %s second id=2" % q)
            with open(path, "r+b") as file:
                file.write(copy)
            os.utime(path, (1e9, 1e9))
            told = 'error jobs .*"somebody has written to jobs.db" moved_to=jobs.db.bad note="redlockd has put its jobs into a new one"'
            if how == "kill":
                self.d.logged(told, mark)
                self.killed()
            elif how == "term":
                self.d.finish()
                self.d.start()
            else:
                self.d.send_signal(signal.SIGUSR2)
                self.d.logged(" restarted ", mark)
            self.d.logged(told, mark)
            c = self.client(self.d)
            self.assertEqual([c.ok("TAKE %s wait=30s" % q)["job"] for _ in range(2)], ["1", "2"], how)

    def test_the_log_of_the_file_of_jobs_is_removed_or_cut(self):
        told = r'error jobs .*"somebody has removed, cut or replaced jobs.db-wal" note="redlockd has put its jobs into a new one"'
        for n, lose in enumerate((os.unlink, lambda path: os.truncate(path, 0), lambda path: os.truncate(path, 100))):
            for how in ("kill", "term", "restart"):
                q, mark = "q%d%s" % (n, how), self.d.log_size()
                c = self.client(self.d)
                c.ok("DEFER %s first id=1" % q)
                lose(os.path.join(self.d.runtime_dir, "jobs.db-wal"))
                c.ok("DEFER %s second id=2" % q)
                if how == "restart":
                    self.d.send_signal(signal.SIGUSR2)
                    self.d.logged(" restarted ", mark)
                elif how == "term":
                    self.d.finish()
                    self.d.start()
                else:
                    self.d.logged(told, mark)
                    self.killed()
                self.d.logged(told, mark)
                c = self.client(self.d)
                self.assertEqual([c.ok("TAKE %s wait=30s" % q)["job"] for _ in range(2)], ["1", "2"])

    def test_on_a_full_device_the_log_of_the_file_of_jobs_is_removed(self):
        for how in ("kill", "term"):
            c, mark = self.client(self.d), self.d.log_size()
            for n in range(5):
                c.ok("DEFER %s %s id=%d" % (how, "x" * 30000, n))
            self.d.finish()  # the log goes into jobs.db
            c = self.client(self.d.start())
            c.ok("DEFER %s second id=2" % how)
            hard = resource.prlimit(self.d.pid, resource.RLIMIT_FSIZE)[1]
            resource.prlimit(self.d.pid, resource.RLIMIT_FSIZE, (100000, hard))  # not for the log of the daemon
            os.unlink(os.path.join(self.d.runtime_dir, "jobs.db-wal"))
            if how == "kill":
                self.d.logged(r'error jobs .*jobs.db-wal" note="redlockd has its jobs in memory alone', mark)
                self.d.kill()
            else:
                self.d.finish()
            self.d.start()
            self.assertRegex(self.d.log(mark), r'error jobs .*jobs.db-wal" note="redlockd has its jobs in memory alone')
            self.assertNotIn("moved_to", self.d.log(mark))
            c = self.client(self.d)
            self.assertIn("1", [row["job"] for row in c.ok("LIST jobs prefix=%s" % how).rows])

    def test_the_spare_of_the_file_of_jobs(self):
        self.client(self.d).ok("DEFER q first id=1")
        path = os.path.join(self.d.runtime_dir, "jobs.spare")
        size = os.path.getsize(path)
        for lose in (os.unlink, lambda path: os.truncate(path, 0)):
            mark = self.d.log_size()
            lose(path)
            self.d.logged(r'error jobs dir=.* error="somebody has removed or cut jobs.spare"', mark)
            self.assertEqual(os.path.getsize(path), size)

    def test_the_state_is_cut(self):
        self.client(self.d).ok("LOCK a")
        path = os.path.join(self.d.runtime_dir, "state")
        for left in (0, 40):
            mark = self.d.log_size()
            os.truncate(path, left)
            self.d.logged("error state dir=.*files of names were missing or cut", mark)
            until(lambda: os.path.getsize(path) > 40, "it is written again")
            self.killed()
            self.d.logged("found=kept", mark)
            self.client(self.d).busy("LOCK a")

    def test_the_keys_are_cut(self):
        self.client(self.d).ok("LOCK a")
        [path] = glob.glob(os.path.join(self.d.runtime_dir, "keys-*"))
        self.d.expect_dead = True
        os.truncate(path, 0)
        with contextlib.suppress(AssertionError, OSError):
            self.client(self.d).ok("LOCK b")
        self.assertNotEqual(self.d.process.wait(30), 0)
        self.assertRegex(self.d.log(), r"error .*file=%s error=\"[^\"]*cut" % path)

    def test_the_keys_are_removed(self):
        self.client(self.d).ok("LOCK a")
        [path] = glob.glob(os.path.join(self.d.runtime_dir, "keys-*"))
        os.unlink(path)
        until(lambda: os.path.exists(path), "the file is there again")
        self.client(self.d).ok("LOCK b")
        self.killed()
        self.d.logged("found=kept")
        for name in "ab":
            self.client(self.d).busy("LOCK " + name)

    def test_the_keys_that_cannot_be_made_at_once(self):
        [path] = glob.glob(os.path.join(self.d.runtime_dir, "keys-*"))
        place = os.path.join(self.d.runtime_dir, "keys-new")
        os.mkdir(place)
        os.unlink(path)
        self.d.logged("error state dir=.*files of names are missing or cut, and cannot be made")
        os.rmdir(place)
        self.d.logged("notice state dir=.*files of names were missing or cut: they are made")

    def test_the_journal(self):
        c = self.client(self.d)
        hello = c.ok("HELLO 1 grace=5m")
        c.ok("LOCK a ttl=30s")
        os.unlink(self.d.journal)
        until(lambda: os.path.exists(self.d.journal), "the journal is there again")
        self.killed()
        self.client(self.d).ok("RESUME %s %s" % (hello["session"], hello["secret"]))

    def test_the_journal_is_cut_and_written_to_at_once(self):
        c = self.client(self.d)
        hello = c.ok("HELLO 1 grace=5m")
        c.ok("LOCK a ttl=30s")
        for size in (0, 40):
            os.truncate(self.d.journal, size)
            c.ok("LOCK b%d ttl=30s" % size)
        self.killed()
        self.client(self.d).ok("RESUME %s %s" % (hello["session"], hello["secret"]))

    def test_the_runtime_directory_cannot_be_made_again(self):
        d = self.daemon({"state_dir": self.folder()}, tcp=True)
        c = self.client(d)
        c.ok("HELLO 1 grace=5m")
        c.ok("LOCK a ttl=30s")
        os.rename(d.runtime_dir, d.runtime_dir + ".gone")  # to remove it takes a while, and the daemon makes files meanwhile
        with open(d.runtime_dir, "w"):
            pass
        d.logged("dir=%s.*cannot be made again" % d.runtime_dir)
        until(lambda: c.ok("LIST nodes").rows[0].fields.get("cause") == "files", "LIST nodes says so")
        self.assertIn("its file state cannot be written", c.ok("LIST nodes").rows[0]["reason"])
        c.ok("LOCK b ttl=30s")
        self.assertEqual([row["value"] for row in c.ok("STATS").rows if row["metric"] == "journal_writable"], ["0"])
        status, out, _ = call(REDLOCK, "--addr", "%s:%d" % d.tcp, "doctor")
        self.assertEqual(status, 1)
        self.assertIn("systemctl restart redlockd", out)
        os.unlink(d.runtime_dir)
        until(lambda: os.path.exists(d.journal), "the journal is there again")
        until(lambda: "cause" not in c.ok("LIST nodes").rows[0].fields, "all is well")

    def test_the_audit_log(self):
        path = os.path.join(self.folder(), "audit")
        d = self.daemon({"audit": {"file": path}})
        self.client(d).ok("LOCK a")
        until(lambda: os.path.getsize(path) > 0, "a line")
        os.unlink(path)
        d.logged("audit .*removed")
        self.client(d).ok("LOCK b")
        until(lambda: os.path.getsize(path) > 0, "a line in the new file")

    def test_the_socket_of_the_web_listener(self):
        path = os.path.join(self.folder(), "http")
        self.daemon({"listen": {"http": "unix:" + path}})
        os.unlink(path)
        until(lambda: os.path.exists(path), "the socket is there again")

    def test_a_bus_error_says_which_file_it_was(self):
        self.d.expect_dead = True
        self.d.send_signal(signal.SIGBUS)
        self.assertEqual(self.d.process.wait(10), -signal.SIGBUS)
        self.assertIn("sigbus", self.d.log())

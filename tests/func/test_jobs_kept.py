# SPDX-License-Identifier: BSD-2-Clause
"""Jobs of the memory store: what the next daemon with the same directory has of them after an end, a crash, a full device. Rate limits begin anew."""
import contextlib
import os
import re
import resource
import signal
import sqlite3
import subprocess
import threading
import time

from harness import FuncTest, safety
from process import LATE, until
from resumable import with_grace
from web import free_web
from wire import Client

CONF = {"lease": "1s", "max_lease": "2s", "jobs": {"attempts": 50}, "limits": {"jobs": 100000}}


class Book:
    """What producers and workers were told. Each number is a job: acknowledged, believed in until a moment, done."""

    def __init__(self):
        self.lock = threading.Lock()
        self.stored, self.done, self.open, self.until, self.faults = set(), set(), set(), {}, []

    def took(self, job, asked, answer):
        with self.lock:
            if job in self.done:
                self.faults.append("%s was handed out after its DONE was acknowledged" % job)
            if answer.at < self.until.get(job, 0):
                self.faults.append("%s was handed out %.3f s before the belief of another was over" % (job, self.until[job] - answer.at))
            self.until[job] = asked + answer.num("valid_ms") / 1000

    def ends(self, job):
        """Its DONE is under way: if the daemon dies before it answers, the job may be done."""
        with self.lock:
            self.open.add(job)

    def ended(self, job):
        with self.lock:
            self.done.add(job)
            self.open.discard(job)
            self.until.pop(job, None)


class Crowd:
    """Threads that go on over all crashes until they are told to stop. body(client) is called again and again; it fails when the daemon has died."""

    def __init__(self, addr):
        self.addr, self.stop, self.threads = addr, threading.Event(), []

    def add(self, body):
        self.threads.append(threading.Thread(target=self.run, args=(body,)))
        self.threads[-1].start()

    def run(self, body):
        while not self.stop.is_set():
            with contextlib.suppress(OSError, AssertionError), Client(self.addr) as client:
                while not self.stop.is_set():
                    body(client)
            time.sleep(0.01)

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()


class Killed(FuncTest):
    COST = 40

    def test_no_job_is_lost_or_run_twice_at_once_or_after_it_was_done(self):
        daemon = self.daemon(CONF)
        book, crowd, numbers = Book(), Crowd(daemon.addr), iter(range(10 ** 9))

        def produce(client):
            job = "job-%d" % next(numbers)
            if client.ask("DEFER q %s id=%s" % (job, job)).kind == "OK":
                book.stored.add(job)
            time.sleep(0.005)

        def work(client):
            asked = time.monotonic()
            answer = client.ask("TAKE q")
            if answer.kind != "OK":
                return
            job = answer["payload"]
            book.took(job, asked, answer)
            if hash(job) % 3 == 0:
                time.sleep(0.02)  # more are under way when the daemon is killed
            book.ends(job)
            if client.ask("DONE " + job).kind == "OK":
                book.ended(job)

        for body in (produce, produce, work, work, work, work):
            crowd.add(body)
        self.addCleanup(crowd.end)
        for _ in range(8):
            time.sleep(0.7)
            daemon.kill()
            daemon.start()
            self.assertIn("found=kept", daemon.log())
        time.sleep(0.3)
        daemon.finish()
        daemon.start()
        crowd.end()
        self.drain(daemon, book)
        self.figure("%d jobs over 8 kills and an end, %d of them done without an answer" % (len(book.stored), len(book.open)))

    @safety()
    def drain(self, daemon, book):
        client = self.client(daemon)
        self.assertGreater(len(book.stored), 100)
        while True:
            asked = time.monotonic()
            answer = client.ask("TAKE q wait=3s", 10)
            if answer.kind != "OK":
                break
            book.took(answer["payload"], asked, answer)
            client.ok("DONE " + answer["job"])
            book.ended(answer["payload"])
        self.assertEqual(book.faults, [])
        self.assertEqual(book.stored - book.done - book.open, set(), "acknowledged, and never handed out")


class Kept(FuncTest):
    COST = 15

    def again(self, daemon, how):
        if how == "kill":
            daemon.kill()
        else:
            daemon.finish()
        return self.client(daemon.start())

    def test_every_state_of_a_job_is_the_same_after_each_kind_of_end(self):
        daemon = self.daemon(dict(CONF, jobs={"attempts": 2}))
        c = self.client(daemon)
        c.ok("DEFER q now id=now")
        c.ok("DEFER q later id=later delay=1h lock=l")
        c.ok("DEFER bad x id=bad")
        for _ in range(2):
            c.ok("TAKE bad wait=5s")
            c.ok("RETRY bad")
        for how in ("kill", "term", "kill", "restart", "kill"):
            if how == "restart":
                mark = daemon.log_size()
                daemon.send_signal(signal.SIGUSR2)
                daemon.logged("notice restarted", mark)
            else:
                c = self.again(daemon, how)
            c.ok("DEFER q again id=now")
            rows = c.ok("LIST jobs prefix=q").rows
            self.assertEqual([(row["job"], row["state"], row["payload"]) for row in rows], [("now", "due", "now"), ("later", "due", "later")], how)
            self.assertEqual(rows[1]["name"], "l")
            self.assertTrue(3500000 < rows[1].num("due_ms") <= 3600000, rows[1])
            self.assertEqual([row["state"] for row in c.ok("LIST jobs prefix=bad").rows], ["dead"])
        self.assertEqual(c.ok("TAKE q").num("attempt"), 1)
        c.ok("DONE now")
        c = self.again(daemon, "kill")
        c.busy("TAKE q")
        c.ok("RETRY bad queue=bad")
        self.assertEqual(self.again(daemon, "kill").ok("TAKE bad").num("attempt"), 1)

    def test_a_leased_job_is_refused_until_its_lease_is_over_and_has_had_its_attempt(self):
        for how in ("kill", "term"):
            daemon = self.daemon(CONF)
            c = self.client(daemon)
            c.ok("DEFER q x id=a")
            asked = time.monotonic()
            valid = c.ok("TAKE q ttl=2s").num("valid_ms") / 1000
            c = self.again(daemon, how)
            c.busy("TAKE q")
            job = c.ok("TAKE q wait=10s", 12)
            with safety():
                self.assertGreaterEqual(job.at, asked + valid, "the runner of the first daemon may still believe in its job")
            self.assertLess(job.at, asked + valid + LATE)
            self.assertEqual(job.num("attempt"), 2)

    def test_a_session_with_grace_goes_on_with_its_job(self):
        for how in ("kill", "term"):
            daemon = self.daemon(dict(CONF, lease="3s", max_lease="4s"))
            c = self.client(daemon)
            ticket = with_grace(c)
            c.ok("DEFER q x id=a lock=l")
            c.ok("TAKE q")
            c = self.again(daemon, how)
            rows = c.ok(str(ticket)).rows
            self.assertEqual([row["job"] for row in rows if "job" in row], ["a"], how)
            c.listen(3.3)  # longer than a lease
            c.ok("CHECK q job=a")
            c.ok("DONE a")
            c = self.again(daemon, how)
            c.busy("TAKE q")
            c.ok("LOCK l wait=5s")

    def test_rate_limits_begin_anew(self):
        daemon = self.daemon(CONF)
        c = self.client(daemon)
        for how in ("kill", "term"):
            c.ok("RATE api limit=1 per=60s")
            c.busy("RATE api limit=1 per=60s")
            c = self.again(daemon, how)
        c.ok("RATE api limit=1 per=60s")

    def test_a_file_that_is_damaged_is_set_aside_and_the_log_says_so(self):
        daemon = self.daemon(CONF)
        self.client(daemon).ok("DEFER q x id=a")
        daemon.finish()
        path = os.path.join(daemon.runtime_dir, "jobs.db")
        with open(path, "r+b") as file:
            file.write(b"x" * 100)
        mark = daemon.log_size()
        daemon.start()
        self.assertRegex(daemon.log(mark), r"error jobs .*is damaged.*moved_to=jobs.db.bad")
        self.assertTrue(os.path.exists(path + ".bad"))
        self.client(daemon).ok("DEFER q x id=b")

    def test_a_file_that_cannot_be_read_now_keeps_the_daemon_from_starting(self):
        daemon = self.daemon(CONF)
        self.client(daemon).ok("DEFER q x id=a")
        path = os.path.join(daemon.runtime_dir, "jobs.db")
        daemon.finish()
        with contextlib.closing(sqlite3.connect(path)) as other:
            other.execute("BEGIN EXCLUSIVE")
            self.refused(CONF, "another process uses jobs.db", runtime_dir=daemon.runtime_dir)
        self.assertEqual(self.client(daemon.start()).ok("TAKE q")["job"], "a")

    def test_a_database_of_another_program_keeps_the_daemon_from_starting(self):
        folder = self.folder()
        with contextlib.closing(sqlite3.connect(os.path.join(folder, "jobs.db"))) as theirs:
            theirs.execute("CREATE TABLE theirs (x)")
            theirs.commit()
        self.refused({**CONF, "state_dir": folder}, "jobs.db is a database of another program")

    def test_the_state_directory_is_that_of_the_configuration_or_of_the_service_manager(self):
        for conf, env in (({"state_dir": "DIR"}, {}), ({}, {"STATE_DIRECTORY": "DIR:/nowhere"})):
            folder = os.path.join(self.folder(), "state")
            daemon = self.daemon({**CONF, **{key: folder for key in conf}}, env={key: value.replace("DIR", folder) for key, value in env.items()})
            self.client(daemon).ok("DEFER q x id=a")
            self.assertTrue(os.path.exists(os.path.join(folder, "jobs.db")))
            self.assertFalse(os.path.exists(os.path.join(daemon.runtime_dir, "jobs.db")))


class Full(FuncTest):
    COST = 10

    def fill_up(self, folder, client, stored):
        """Fills the device, and the log of SQLite, until a DEFER is refused."""
        with contextlib.suppress(OSError), open(os.path.join(folder, "filler"), "ab", buffering=0) as out:
            while out.write(b"x" * 4096) == 4096:
                pass
        while True:
            answer = client.ask("DEFER q %s id=id%d" % ("x" * 500, len(stored)))
            if answer.kind != "OK":
                self.assertEqual(answer.code, "UNAVAILABLE")
                return answer
            stored.append(answer["job"])

    def test_jobs_that_cannot_be_written_are_a_trouble_of_the_store(self):
        daemon = self.daemon(CONF)
        c = self.client(daemon)

        def cause():
            return c.ok("LIST nodes").rows[0].fields.get("cause")
        c.ok("DEFER q x")
        self.assertIsNone(cause())
        hard = resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (os.path.getsize(os.path.join(daemon.runtime_dir, "jobs.db-wal")), hard))
        while c.ask("DEFER q %s" % ("x" * 5000)).kind == "OK":
            pass
        until(lambda: cause() == "jobs", "LIST nodes says so")
        self.assertIn("jobs cannot be written: File too large", c.ok("LIST nodes").rows[0]["reason"])
        status, out, _ = self.call_redlock(daemon, "ping")
        self.assertEqual((status, "jobs" in out), (0, True), out)
        status, out, _ = self.call_redlock(daemon, "doctor")
        self.assertEqual((status, "state_dir" in out), (1, True), out)
        c.ok("LOCK a")  # locks need no jobs
        resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (hard, hard))
        until(lambda: cause() is None, "LIST nodes says that it is over, though nobody asks for a job")
        c.ok("DEFER q x")
        self.assertEqual(len(re.findall("warn node .*cause=jobs", daemon.log())), 1)

    def test_what_could_not_be_written_is_not_acknowledged(self):
        for line in ("DEFER q y id=new", "TAKE q", "DONE taken", "RETRY taken", "DROP q due"):
            daemon = self.daemon(CONF)
            c = self.client(daemon)
            for job in ("taken", "due"):
                c.ok("DEFER q x id=%s" % job)
            c.ok("TAKE q ttl=2s")
            hard = resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE)[1]
            resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (100, hard))
            answer = c.ask(line, 10)
            c.ok("LOCK a")  # locks need no jobs
            daemon.kill()
            jobs = [row["job"] for row in self.client(daemon.start()).ok("LIST jobs prefix=q").rows]
            with safety():
                self.assertEqual((answer.kind, answer.code), ("ERR", "UNAVAILABLE"), "%s: %s; after a kill: %s" % (line, answer, jobs))
                self.assertEqual(sorted(jobs), ["due", "taken"], line)
            if "DEFER" in line:
                self.assertIn("id=new may be stored: repeat the request with this id. The home of the queue refuses: its jobs cannot be written", str(answer))

    def small_device(self):
        folder = self.folder()
        if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", folder], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("no file system can be mounted here")
        self.addCleanup(subprocess.run, ["umount", folder], check=True)
        return folder

    def test_a_device_that_is_full_or_read_only_from_the_start_is_a_trouble_before_a_job_comes(self):
        for full in (True, False):
            folder, web = self.small_device(), free_web()
            if full:
                with contextlib.suppress(OSError), open(os.path.join(folder, "filler"), "ab", buffering=0) as out:
                    while out.write(b"x" * 4096) == 4096:
                        pass
            else:
                subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
            daemon = self.daemon({**CONF, "state_dir": folder, "listen": {"http": web.listen}})
            self.addCleanup(daemon.kill)
            for how in ("start", "restart", "kill"):
                mark = daemon.log_size() if how != "start" else 0
                if how == "restart":
                    daemon.send_signal(signal.SIGUSR2)
                    daemon.logged("notice restarted", mark)
                elif how == "kill":
                    daemon.kill()
                    daemon.start()
                c = self.client(daemon)
                until(lambda c=c: c.ok("LIST nodes").rows[0].fields.get("cause") == "jobs", "LIST nodes says so after the " + how)
                daemon.logged("error jobs .*(No space left|Read-only)", mark)
                self.assertIn(" joined jobs", web.ask("/readyz").body.decode())
                self.assertRegex(web.ask("/metrics").body.decode(), 'redis_trouble.*cause="jobs".* 1\n')
                self.assertEqual(self.call_redlock(daemon, "doctor")[0], 1)
            self.assertEqual(c.ask("DEFER q x").code, "UNAVAILABLE")
            c.ok("LOCK a")
            if full:
                os.unlink(os.path.join(folder, "filler"))
            else:
                subprocess.run(["mount", "-o", "remount,rw", folder], check=True)
            until(lambda c=c: c.ok("LIST nodes").rows[0].fields.get("cause") is None, "all is well")
            c.ok("DEFER q x")

    def test_on_a_full_device_a_defer_is_refused_and_what_runs_may_end(self):
        folder = self.small_device()
        daemon = self.daemon(CONF, runtime_dir=folder)
        self.addCleanup(daemon.kill)
        c = self.client(daemon)
        c.ok("DEFER runs x id=a")
        c.ok("TAKE runs")
        stored = []
        answer = self.fill_up(folder, c, stored)
        self.assertIn("its jobs cannot be written: No space left on device", str(answer))
        daemon.logged(r"error jobs .*No space left")
        self.assertEqual(c.ask("TAKE q").code, "UNAVAILABLE")
        c.ok("CHECK runs job=a")
        c.ok("DONE a")
        daemon.kill()
        mark = daemon.log_size()
        c = self.client(daemon.start())
        c.busy("TAKE runs")
        self.assertEqual(c.ok("LIST queues prefix=q").rows[0].num("due"), len(stored))
        self.fill_up(folder, c, stored)  # the next run removed the keys of the one before
        daemon.logged(r"error jobs .*No space left", mark)
        os.unlink(os.path.join(folder, "filler"))
        daemon.logged("jobs .*is written again", mark)
        c.ok("DEFER q x id=more")
        daemon.kill()
        self.assertEqual(self.client(daemon.start()).ok("LIST queues prefix=q").rows[0].num("due"), len(stored) + 1)

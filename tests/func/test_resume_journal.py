# SPDX-License-Identifier: BSD-2-Clause
"""The journal on a disk that is full or read-only, a journal that grows or is damaged, and a daemon that is killed again and again under load."""
import contextlib
import os
import random
import resource
import signal
import subprocess
import time

from daemon import on_redis
from harness import FuncTest
from ledger import Ledger, Workers
from process import REDLOCKD, until
from resumable import Survivor, resume, resume_fences, with_grace

CONF = {"lease": "3s", "max_lease": "5s"}
NOBODY = 65534


class Disk(FuncTest):
    COST = 10

    def on_new_redis(self, **options):
        self.server = self.redis()
        return self.redis_daemon(self.server, CONF, **options)

    def serves(self, daemon, *clients):
        name = self.name()
        for client in clients or (self.client(daemon),):
            client.ok("LOCK %s wait=5s" % name)
            client.ok("UNLOCK " + name)

    def tmpfs(self, size):
        """A small file system. Only root can mount one."""
        folder = self.folder()
        if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=" + size, "tmpfs", folder], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("no file system can be mounted here")
        self.addCleanup(subprocess.run, ["umount", folder], check=True)
        return folder

    @staticmethod
    def fill(folder):
        with contextlib.suppress(OSError), open(os.path.join(folder, "filler"), "ab", buffering=0) as out:
            while out.write(b"x" * 4096) == 4096:
                pass

    def full_up(self, folder, daemon, client):
        """Fills the device until a record of the journal does not fit, and then the room that the removed journal leaves."""
        while True:
            mark = daemon.log_size()
            self.fill(folder)
            for i in range(200):  # more than fits into the rest of the file's last page
                client.ok("LOCK full-%d" % i)
            daemon.logged(r"error journal .*No space left", mark)
            files = "/proc/%d/fd" % daemon.pid
            until(lambda: not any(os.readlink(os.path.join(files, fd)).endswith("(deleted)") for fd in os.listdir(files)), "the removed journal is closed")
            self.fill(folder)
            if "written again" not in daemon.log(mark):
                break
            client.send(*["UNLOCK full-%d" % i for i in range(200)])
            for _ in range(200):
                client.reply()
        self.assertFalse(os.path.exists(daemon.journal))
        return mark

    def test_a_limit_of_the_size_of_files_is_told_as_what_it_is(self):
        daemon = self.on_new_redis()
        client = self.client(daemon)
        with_grace(client)
        resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (2048, resource.RLIM_INFINITY))
        for i in range(40):
            client.ok("LOCK n%d-%s" % (i, "y" * 100))
        daemon.logged(r"error journal .*File too large")

    def test_a_full_device_is_survived(self):
        folder = self.tmpfs("256k")
        daemon = self.on_new_redis(runtime_dir=folder)
        self.addCleanup(daemon.kill)  # before the device is unmounted
        client = self.client(daemon)
        ticket = with_grace(client)
        client.ok("LOCK a")
        mark = self.full_up(folder, daemon, client)
        self.serves(daemon, client)
        status, out, _ = self.call_redlock(daemon, "doctor")
        self.assertEqual(status, 1)
        self.assertIn("the journal cannot be written", out)
        client.listen(1.5)  # the daemon tries again meanwhile
        self.assertEqual(len([line for line in daemon.log(mark).splitlines() if "No space left" in line]), 1, "the log repeats that the device is full")
        daemon.restart()
        client = self.client(daemon)
        client.err(str(ticket), "NOTFOUND")
        # This run of the daemon cannot write either, until there is room.
        mark = daemon.log_size()
        ticket = with_grace(client)
        fence = client.ok("LOCK b wait=10s").num("fence")
        daemon.logged(r"error journal .*No space left", mark)
        os.unlink(os.path.join(folder, "filler"))
        daemon.logged(r"journal .*written again", mark, 20)
        self.assertNotIn("journal", self.call_redlock(daemon, "doctor")[1])
        daemon.restart()
        self.assertEqual(resume(self.client(daemon), ticket)["b"].num("fence"), fence)

    def test_a_file_that_may_not_grow_is_survived(self):
        """RLIMIT_FSIZE: a write fails with EFBIG, and sends a signal that would end the daemon."""
        daemon = self.on_new_redis()
        client = self.client(daemon)
        ticket = with_grace(client)
        client.ok("LOCK a")
        size = os.path.getsize(daemon.journal)
        # The log of the daemon is a file here, and cannot grow either.
        resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (size + 10, resource.RLIM_INFINITY))
        client.ok("LOCK b")
        self.assertFalse(os.path.exists(daemon.journal))
        client.ok("CHECK a")
        resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        until(lambda: os.path.exists(daemon.journal), "the daemon writes its journal again", 20)
        daemon.restart()
        self.assertEqual(set(resume(self.client(daemon), ticket)), {"a", "b"})

    def test_a_folder_that_cannot_be_written_is_survived(self):
        folder = self.folder()
        self.addCleanup(os.chmod, folder, 0o755)
        server = self.redis(args=("--unixsocketperm", "777"))
        os.chmod(server.folder, 0o755)
        daemon = self.unprivileged(server, folder)
        os.chmod(folder, 0o555)
        mark = daemon.log_size()
        client = self.client(daemon)
        ticket = with_grace(client)
        client.ok("LOCK a")
        daemon.logged(r"error journal .*Permission denied", mark)
        self.serves(daemon, client)
        client.ok("CHECK a")
        os.chmod(folder, 0o755)
        self.assertEqual([f for f in os.listdir(folder) if "journal" in f], [])
        daemon.restart()
        self.client(daemon).err(str(ticket), "NOTFOUND")

    def unprivileged(self, server, folder):
        """A daemon that runs as another user, since root may write everywhere."""
        daemon = self.daemon(on_redis([server], CONF), runtime_dir=folder, start=False)
        if os.geteuid() == 0:
            for path in (folder, daemon.folder):
                os.chown(path, NOBODY, NOBODY)
                os.chmod(path, 0o755)
            other_user = ["setpriv", "--reuid", str(NOBODY), "--clear-groups", "--pdeathsig", "KILL", "--"]
            if subprocess.run([*other_user, "test", "-x", REDLOCKD]).returncode:
                self.skipTest("no other user may run this build")
            daemon.argv = [*other_user, *daemon.command()]
        return daemon.start().joined()

    def test_the_journal_stays_short_however_much_is_locked(self):
        """Ten megabytes of records are written, and the file is never longer than a few."""
        daemon = self.on_new_redis()
        client = self.client(daemon)
        ticket = with_grace(client)
        kept = client.ok("LOCK kept").num("fence")
        longest, lines = 0, []
        for i in range(25):
            note = "x" * 200
            lines = ["LOCK n-%d note=%s" % (j, note) for j in range(500)] + ["UNLOCK n-%d" % j for j in range(500)]
            client.send(*lines)
            for _ in lines:
                client.reply()
            longest = max(longest, os.path.getsize(daemon.journal))
        self.assertLess(longest, 3 << 20)
        self.assertGreater(longest, 1 << 18, "too little is written for the journal to be shortened")
        last = client.ok("LOCK last").num("fence")
        daemon.restart()
        rows = resume_fences(self.client(daemon), ticket)
        self.assertEqual(rows, {"kept": kept, "last": last})

    def test_a_torn_record_loses_only_itself_and_a_damaged_one_all(self):
        daemon = self.on_new_redis()
        client = self.client(daemon)
        ticket = with_grace(client)
        client.ok("LOCK a")
        whole = os.path.getsize(daemon.journal)
        client.ok("LOCK b")
        daemon.kill()
        os.truncate(daemon.journal, (whole + os.path.getsize(daemon.journal)) // 2)
        mark = daemon.log_size()
        daemon.start()
        daemon.logged(r"warn journal .*cut=\d+", mark)
        back = self.client(daemon)
        self.assertEqual(set(resume(back, ticket)), {"a"})
        daemon.kill()
        with open(daemon.journal, "r+b") as file:
            file.seek(whole // 2)
            byte = file.read(1)
            file.seek(whole // 2)
            file.write(bytes([byte[0] ^ 1]))
        daemon.start()
        self.client(daemon).err(str(ticket), "NOTFOUND")
        self.assertTrue(os.path.exists(daemon.journal + ".bad"))
        self.serves(daemon)

    def test_sessions_that_have_ended_leave_no_file_to_the_next_run(self):
        daemon = self.on_new_redis()
        for _ in range(3):
            client = self.client(daemon)
            with_grace(client)
            client.ok("LOCK a wait=5s")
            client.ok("QUIT")
        daemon.restart()
        self.assertFalse(os.path.exists(daemon.journal))


class KilledUnderLoad(FuncTest):
    """The daemon is killed at any moment: no addition to a counter behind the lock is lost, and fences grow."""
    COST, KILLS, CLIENTS = 10, 20, 8

    def test_a_daemon_killed_twenty_times_under_load(self):
        server = self.redis()
        daemon = self.redis_daemon(server, {"lease": "5s", "max_lease": "10s"})
        name, stop, self.ledger = self.name(), os.path.join(daemon.folder, "stop"), Ledger(self.folder())
        workers = Workers(self.CLIENTS, lambda number: self.work(daemon.addr, name, stop))
        self.kill_again_and_again(daemon, stop)
        self.assertEqual(workers.wait(), [0] * self.CLIENTS)
        visits = self.ledger.check(self)
        with open(stop + ".figures") as figures:
            resumed = sum(int(line) for line in figures)
        self.assertGreater(resumed, self.KILLS)
        self.figure("%d visits, %d kills, %d sessions resumed" % (len(visits), self.KILLS, resumed))

    def kill_again_and_again(self, daemon, stop):
        rng = random.Random(7)
        try:
            for _ in range(self.KILLS):
                time.sleep(rng.uniform(0.05, 0.5))
                daemon.restart()
            time.sleep(0.5)
        finally:
            with open(stop, "w"):
                pass

    def work(self, addr, name, stop):
        signal.alarm(200)
        client, last = Survivor(addr), 0
        while not os.path.exists(stop) or name in client.held:
            fence = client.held.get(name)
            if fence is None:
                answer = client.ask("LOCK %s wait=20s" % name)
                if answer is None:
                    continue  # the connection broke, and client.held says what is held
                if answer.kind != "OK":
                    raise AssertionError(str(answer))
                fence = client.held[name] = answer.num("fence")
            if fence != last:  # one visit for each grant
                self.ledger.visit(fence)
                last = fence
            answer = client.ask("UNLOCK " + name)
            if answer is not None:
                if answer.kind != "OK":
                    raise AssertionError(str(answer))
                del client.held[name]
        with open(stop + ".figures", "a") as figures:
            figures.write("%d\n" % client.resumed)

# SPDX-License-Identifier: BSD-2-Clause
"""The journal's disk: full, read-only, grown, damaged; and a daemon that is killed again and again under load."""
import contextlib
import os
import random
import resource
import signal
import subprocess
import time

from harness import FuncTest
from process import REDLOCKD, merged, temp_folder, until
from resumable import Survivor, resume, with_grace
from test_counter import CounterFile, Workers, increment

CONF = {"lease": "3s", "max_lease": "5s"}
NOBODY = 65534


def journal_of(daemon):
    return os.path.join(daemon.runtime_dir, "journal")


class Disk(FuncTest):
    COST = 10

    def start(self, **options):
        self.server = self.redis()
        return self.redis_daemon(self.server, CONF, **options)

    def next_life(self, daemon):
        if daemon.alive():
            daemon.kill()
        return daemon.start()

    def serves(self, daemon, *clients):
        name = self.name()
        for client in clients or (self.client(daemon),):
            client.ok("LOCK %s wait=5s" % name)
            client.ok("UNLOCK " + name)

    def tmpfs(self, size):
        """A small device to fill; only root has one to give."""
        folder = temp_folder()
        self.addCleanup(os.rmdir, folder)
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
        """Fills the device until a record finds no room, and then the room that the journal leaves."""
        while True:
            mark = daemon.log_size()
            self.fill(folder)
            for i in range(200):  # more than what is left of the file's last page
                client.ok("LOCK full-%d" % i)
            daemon.logged(r"error journal .*No space left", mark)
            self.fill(folder)
            if "written again" not in daemon.log(mark):
                break
            client.send(*["UNLOCK full-%d" % i for i in range(200)])
            for _ in range(200):
                client.reply()
        self.assertFalse(os.path.exists(journal_of(daemon)))
        return mark

    def test_a_full_device_is_lived_with(self):
        folder = self.tmpfs("256k")
        daemon = self.start(runtime_dir=folder)
        self.addCleanup(daemon.kill)  # before the device goes
        client = self.client(daemon)
        ticket = with_grace(client)
        client.ok("LOCK a")
        mark = self.full_up(folder, daemon, client)
        self.serves(daemon, client)
        client.listen(1.5)  # it was tried again meanwhile
        self.assertEqual(len([line for line in daemon.log(mark).splitlines() if "No space left" in line]), 1, "said once")
        self.next_life(daemon)
        client = self.client(daemon)
        client.err(str(ticket), "NOTFOUND")
        # Nor can this life write, until there is room again.
        mark = daemon.log_size()
        ticket = with_grace(client)
        fence = client.ok("LOCK b wait=10s").num("fence")
        daemon.logged(r"error journal .*No space left", mark)
        os.unlink(os.path.join(folder, "filler"))
        daemon.logged(r"journal .*written again", mark, 20)
        self.next_life(daemon)
        self.assertEqual(resume(self.client(daemon), ticket)["b"].num("fence"), fence)

    def test_a_file_that_may_not_grow_is_lived_with(self):
        """RLIMIT_FSIZE: EFBIG, and a signal that would end the daemon."""
        daemon = self.start()
        client = self.client(daemon)
        ticket = with_grace(client)
        client.ok("LOCK a")
        size = os.path.getsize(journal_of(daemon))
        # Its log, a file here too, grows no more either.
        resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (size + 10, resource.RLIM_INFINITY))
        client.ok("LOCK b")
        self.assertFalse(os.path.exists(journal_of(daemon)))
        client.ok("CHECK a")
        resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        until(lambda: os.path.exists(journal_of(daemon)), "it is tried again", 20)
        self.next_life(daemon)
        self.assertEqual(set(resume(self.client(daemon), ticket)), {"a", "b"})

    def test_a_folder_that_cannot_be_written_is_lived_with(self):
        folder = temp_folder()
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
        self.next_life(daemon)
        self.client(daemon).err(str(ticket), "NOTFOUND")

    def unprivileged(self, server, folder):
        """root may write everywhere, so the daemon is somebody else."""
        daemon = self.daemon(merged(CONF, {"store": "redis", "redis": {"nodes": [server.node]}}), runtime_dir=folder, start=False)
        if os.geteuid() == 0:
            for path in (folder, daemon.folder):
                os.chown(path, NOBODY, NOBODY)
                os.chmod(path, 0o755)
            somebody_else = ["setpriv", "--reuid", str(NOBODY), "--clear-groups", "--pdeathsig", "KILL", "--"]
            if subprocess.run([*somebody_else, "test", "-x", REDLOCKD]).returncode:
                self.skipTest("nobody else may run what was built here")
            daemon.argv = [*somebody_else, *daemon.command()]
        return daemon.start().joined()

    def test_it_stays_short_however_much_is_locked(self):
        """Ten megabytes of records, a file of at most a few."""
        daemon = self.start()
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
            longest = max(longest, os.path.getsize(journal_of(daemon)))
        self.assertLess(longest, 3 << 20)
        self.assertGreater(longest, 1 << 18, "so much was written that it was made shorter")
        last = client.ok("LOCK last").num("fence")
        self.next_life(daemon)
        rows = resume(self.client(daemon), ticket)
        self.assertEqual({name: row.num("fence") for name, row in rows.items()}, {"kept": kept, "last": last})

    def test_a_torn_record_costs_only_itself_and_a_damaged_one_all(self):
        daemon = self.start()
        client = self.client(daemon)
        ticket = with_grace(client)
        client.ok("LOCK a")
        whole = os.path.getsize(journal_of(daemon))
        client.ok("LOCK b")
        daemon.kill()
        os.truncate(journal_of(daemon), (whole + os.path.getsize(journal_of(daemon))) // 2)
        mark = daemon.log_size()
        daemon.start()
        daemon.logged(r"warn journal .*cut=\d+", mark)
        back = self.client(daemon)
        self.assertEqual(set(resume(back, ticket)), {"a"})
        daemon.kill()
        with open(journal_of(daemon), "r+b") as file:
            file.seek(whole // 2)
            byte = file.read(1)
            file.seek(whole // 2)
            file.write(bytes([byte[0] ^ 1]))
        daemon.start()
        self.client(daemon).err(str(ticket), "NOTFOUND")
        self.assertTrue(os.path.exists(journal_of(daemon) + ".bad"))
        self.serves(daemon)

    def test_sessions_that_are_over_leave_no_file_to_the_next_life(self):
        daemon = self.start()
        for _ in range(3):
            client = self.client(daemon)
            with_grace(client)
            client.ok("LOCK a wait=5s")
            client.ok("QUIT")
        self.next_life(daemon)
        self.assertFalse(os.path.exists(journal_of(daemon)))


class Hammered(CounterFile, FuncTest):
    """Whatever is killed, whenever: a counter behind the lock loses nothing, and fences grow."""
    COST, KILLS, CLIENTS = 10, 20, 8

    def test_a_daemon_killed_twenty_times_under_load(self):
        server = self.redis()
        daemon = self.redis_daemon(server, {"lease": "5s", "max_lease": "10s"})
        name, stop = self.name(), os.path.join(daemon.folder, "stop")
        workers = Workers(self.CLIENTS, lambda number: self.work(daemon.addr, name, stop))
        self.kill_again_and_again(daemon, stop)
        self.assertEqual(workers.wait(), [0] * self.CLIENTS)
        grants = self.grants()
        with open(self.path) as counter:
            self.assertEqual(int(counter.read()), len(grants))
        self.assertEqual([value for value, _ in grants], list(range(1, len(grants) + 1)))
        fences = [fence for _, fence in grants]
        self.assertEqual(fences, sorted(set(fences)))
        with open(stop + ".figures") as figures:
            resumed = sum(int(line) for line in figures)
        self.assertGreater(resumed, self.KILLS)
        self.figure("%d increments, %d kills, %d sessions resumed" % (len(grants), self.KILLS, resumed))

    def kill_again_and_again(self, daemon, stop):
        rng = random.Random(7)
        try:
            for _ in range(self.KILLS):
                time.sleep(rng.uniform(0.05, 0.5))
                daemon.kill()
                daemon.start()
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
                    continue  # it broke: what is held now, if anything, is known
                if answer.kind != "OK":
                    raise AssertionError(str(answer))
                fence = client.held[name] = answer.num("fence")
            if fence != last:  # one increment for each grant
                increment(self.path, fence)
                last = fence
            answer = client.ask("UNLOCK " + name)
            if answer is not None:
                if answer.kind != "OK":
                    raise AssertionError(str(answer))
                del client.held[name]
        with open(stop + ".figures", "a") as figures:
            figures.write("%d\n" % client.resumed)


if __name__ == "__main__":
    from harness import main
    main()

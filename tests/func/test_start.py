# SPDX-License-Identifier: BSD-2-Clause
"""How a daemon starts: its runtime directory, its sockets, its standard descriptors, and what makes it refuse to start."""
import os
import re
import socket

from harness import FuncTest
from process import REDLOCKD, merged, reap, spawn, until
from resumable import with_grace
from wire import Client

CONF = {"lease": "2s", "max_lease": "3s"}


class Folders(FuncTest):
    """Runtime directories and sockets."""

    def test_a_second_daemon_with_the_same_folder_is_refused(self):
        first = self.daemon(CONF)
        c = self.client(first)
        c.ok("LOCK a")
        self.refused(CONF, first.runtime_dir, runtime_dir=first.runtime_dir)
        c.ok("CHECK a")
        self.client(first).ok("PING")

    def test_a_second_daemon_is_refused_though_the_lock_file_was_deleted(self):
        """It would replace the journal of the first one, which goes on writing to a file without a name."""
        first = self.daemon(CONF)
        c = self.client(first)
        with_grace(c)
        c.ok("LOCK a")
        before = os.stat(first.journal).st_ino
        os.unlink(os.path.join(first.runtime_dir, "redlockd.lock"))
        self.refused(CONF, first.runtime_dir, status=69, runtime_dir=first.runtime_dir)
        self.assertEqual(os.stat(first.journal).st_ino, before)
        c.ok("CHECK a")

    def test_a_symbolic_link_in_tmp_is_refused_as_a_folder(self):
        """The owner of the link may point it elsewhere, and answer clients in the daemon's place."""
        link = "/tmp/redlockd-link-%d" % os.getpid()
        os.symlink(self.folder(), link)
        self.addCleanup(os.unlink, link)
        self.refused(CONF, "", status=69, runtime_dir=link)
        self.assertEqual(os.listdir(link), [])

    def test_a_folder_of_another_user_is_refused(self):
        """That user could put a link in the place of the socket or of a file of the daemon."""
        if os.geteuid() != 0:
            self.skipTest("only root can be another user")
        folder = os.path.join(self.folder("func-"), "run")
        os.mkdir(folder)
        os.chown(folder, 65534, 65534)
        link = folder + "-link"
        self.refused(CONF, "belongs to another user", status=77, runtime_dir=folder)
        os.chown(folder, 0, 0)
        os.symlink(folder, link)
        os.chown(link, 65534, 65534, follow_symlinks=False)
        self.refused(CONF, "belongs to another user", status=77, runtime_dir=link)
        os.chown(link, 0, 0, follow_symlinks=False)
        self.assertEqual(os.listdir(folder), [])
        self.client(self.daemon(CONF, runtime_dir=link)).ok("PING")

    def test_two_daemons_with_two_folders_share_nothing(self):
        first, second = self.daemon(CONF), self.daemon(CONF)
        self.client(first).ok("LOCK a")
        self.client(second).ok("LOCK a")

    def test_a_socket_in_use_is_refused_and_a_stale_one_replaced(self):
        first = self.daemon(CONF)
        self.refused(merged(CONF, {"listen": {"unix": first.addr}}), first.addr)
        self.client(first).ok("PING")
        first.kill()
        self.assertTrue(os.path.exists(first.addr))
        third = self.daemon(merged(CONF, {"listen": {"unix": first.addr}}))
        with Client(first.addr) as c:
            c.ok("PING")
        third.finish()

    def test_a_tcp_port_in_use_is_refused(self):
        first = self.daemon(CONF, tcp=True)
        self.refused(merged(CONF, {"listen": {"tcp": "%s:%d" % first.tcp}}), str(first.tcp[1]))

    def test_a_folder_that_cannot_be_written_is_refused(self):
        self.refused(merged(CONF, {"runtime_dir": "/proc/self/nowhere"}), "/proc/self/nowhere")

    def test_a_daemon_whose_files_may_not_grow_serves(self):
        """RLIMIT_FSIZE from the start: each write fails and sends a signal, which would end the daemon."""
        daemon = self.daemon(CONF, start=False)
        daemon.argv = ["prlimit", "--fsize=0", "--", *daemon.command()]
        c = self.client(daemon.start())
        c.ok("LOCK a")
        c.ok("UNLOCK a")

    def test_the_default_folder_is_that_of_the_service_manager(self):
        folder = os.path.join(self.folder(), "run")
        os.mkdir(folder, 0o700)
        self.daemon(config="listen: {tcp: no}\n", env={"RUNTIME_DIRECTORY": folder})
        with Client(os.path.join(folder, "redlockd.sock")) as c:
            c.ok("PING")


def listens(path):
    """Whether somebody accepts connections there: the file of a socket is a moment older."""
    with socket.socket(socket.AF_UNIX) as sock:
        return sock.connect_ex(path) == 0


class Defaults(FuncTest):
    """The daemon without a configuration file: its addresses are set, and what a test needs."""

    def started(self, folder, *argv, sets=(), **options):
        """Starts the daemon, with these words before its command, and waits for its socket."""
        sets = ("listen.tcp=no", "runtime_dir=" + folder, "listen.unix=%s/s" % folder, *sets)
        process = spawn([*argv, REDLOCKD, *(word for assignment in sets for word in ("--set", assignment))], **options)
        self.addCleanup(reap, process)
        until(lambda: listens(folder + "/s"), "the socket")
        return process

    def test_a_daemon_without_a_file_works(self):
        folder = self.folder()
        with open(os.path.join(folder, "log"), "wb") as log:
            process = self.started(folder, stderr=log)
        with Client(folder + "/s") as c:
            self.assertEqual(c.ok("HELLO 1")["store"], "memory")
            self.assertEqual(c.ok("LOCK a").num("ttl_ms"), 10000)
        process.terminate()
        self.assertEqual(process.wait(5), 0)
        with open(os.path.join(folder, "log")) as log:
            self.assertRegex(log.read(), r"(?i)ready")

    def test_closed_standard_descriptors_are_opened_as_dev_null(self):
        """Otherwise the first files that the daemon opens would get these numbers, and the log would go there."""
        folder = self.folder()
        process = self.started(folder, "sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-')
        with Client(folder + "/s") as c:
            c.ok("LOCK a")
        self.assertEqual([os.readlink("/proc/%d/fd/%d" % (process.pid, fd)) for fd in range(3)], ["/dev/null"] * 3)

    def test_a_terminal_that_nobody_reads_does_not_stop_the_daemon(self):
        """A terminal is writable for poll(2) while it has room for a part of a line only."""
        folder, (master, slave) = self.folder(), self.terminal()
        self.started(folder, sets=["log.level=debug"], stderr=slave)
        os.close(slave)
        for i in range(200):
            with Client(folder + "/s", "x" * i) as c:
                c.ok("PING", timeout=2)
        log = b""
        with Client(folder + "/s") as c:
            while not re.search(rb"^\S+ warn log missed=\d+ .*\r\n", log, re.M):
                c.ok("PING", timeout=2)
                Client(folder + "/s").close()
                log += self.terminal_shows(master, b"\n", seconds=0.1)

    def test_warnings_at_the_start_do_not_wait_for_the_terminal(self):
        folder, (master, slave) = self.folder(), self.terminal()
        os.set_blocking(slave, False)
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(slave, b"x" * 512)
        os.set_blocking(slave, True)
        process = self.started(folder, sets=["store=redis", "redis.nodes=[127.0.0.1:1, 127.0.0.1:2]"], stderr=slave)
        with Client(folder + "/s") as c:
            c.ok("PING", timeout=2)
        process.terminate()
        self.assertEqual(process.wait(5), 0)

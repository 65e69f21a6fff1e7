# SPDX-License-Identifier: BSD-2-Clause
"""The signals of the daemon: SIGTERM and SIGINT end it, SIGHUP reloads its configuration."""
import os
import signal

from harness import FuncTest
from process import LATE, REDLOCKD, WAIT, until
from resumable import with_grace

CONF = {"lease": "2s", "max_lease": "3s"}


class Ends(FuncTest):
    """SIGTERM and SIGINT end the daemon within a second, with status 0, and it tells all clients."""
    COST, SECOND = 10, 1.0 + LATE

    def ends_by(self, number, daemon):
        holder, waiters, idle = self.client(daemon), [self.client(daemon) for _ in range(20)], [self.client(daemon) for _ in range(100)]
        holder.ok("LOCK a")
        for w in waiters:
            w.begin("@w LOCK a wait=forever", "LOCK a wait=30s")
        for c in idle:
            c.barrier()
        status, seconds = daemon.finish(number)
        self.assertEqual(status, 0)
        self.assertLess(seconds, self.SECOND)
        for w in waiters:
            lines = w.eof(1)
            self.assertEqual(sorted((line.tag or "", line.code) for line in lines if line.kind == "ERR"), [("", "DRAINING"), ("@w", "DRAINING")])
        for c in [holder, *idle]:
            c.eof(1)

    def test_SIGTERM_and_SIGINT(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            self.ends_by(number, self.daemon(CONF))

    def test_SIGTERM_with_redis(self):
        server = self.redis()
        self.ends_by(signal.SIGTERM, self.redis_daemon(server))
        self.assertEqual(server.cli.exists("lock:a"), 1, "the daemon has deleted a lock at its end")
        self.assertGreater(server.cli.pttl("lock:a"), 0)

    def test_SIGTERM_while_redis_is_stopped(self):
        server = self.redis()
        daemon = self.redis_daemon(server)
        c = self.client(daemon)
        c.ok("LOCK a")
        server.freeze()
        c.begin("LOCK b wait=30s", "@u UNLOCK a sync=yes")
        status, seconds = daemon.finish()
        self.assertEqual(status, 0)
        self.assertLess(seconds, self.SECOND)

    def test_SIGTERM_with_a_client_that_never_reads(self):
        daemon = self.daemon(CONF)
        c = self.client(daemon)
        c.sock.setblocking(False)
        try:
            for _ in range(3000):
                c.sock.send(b"HELP\n" * 200)
        except BlockingIOError:
            pass
        status, seconds = daemon.finish()
        self.assertEqual(status, 0)
        self.assertLess(seconds, self.SECOND)

    def test_two_signals_in_a_row(self):
        daemon = self.daemon(CONF)
        daemon.send_signal(signal.SIGTERM)
        daemon.send_signal(signal.SIGINT)
        status, _ = daemon.finish()
        self.assertEqual(status, 0)

    def test_a_signal_right_after_the_start(self):
        for _ in range(5):
            self.assertEqual(self.daemon(CONF).finish()[0], 0)


class Held(FuncTest):
    """A signal waits while the daemon starts or writes its last files. A pipe in place of a file stops the daemon there, until somebody reads."""

    def starting(self):
        """A daemon that has marked its state file, and has not come to the end of its start."""
        daemon = self.daemon(CONF)
        client = self.client(daemon)
        with_grace(client)
        client.ok("LOCK a")
        daemon.finish()
        os.mkfifo(daemon.journal + ".new")
        mark = daemon.log_size()
        daemon.launch().logged(r"state found=clean", mark)
        return daemon

    def goes_on(self, path):
        self.addCleanup(os.close, os.open(path, os.O_RDONLY | os.O_NONBLOCK))

    def test_the_end_of_a_daemon_that_starts_is_no_crash(self):
        """After a crash the next daemon would refuse everything for as long as a lease may last."""
        for number in (signal.SIGTERM, signal.SIGINT):
            daemon = self.starting()
            daemon.expect_dead = True
            daemon.send_signal(number)
            self.goes_on(daemon.journal + ".new")
            self.assertEqual(daemon.process.wait(WAIT), 0)
            mark = daemon.log_size()
            daemon.start().logged(r"state found=clean", mark)

    def test_a_daemon_that_starts_outlives_SIGHUP(self):
        daemon = self.starting()
        daemon.send_signal(signal.SIGHUP)
        self.goes_on(daemon.journal + ".new")
        self.client(daemon.ready()).ok("PING")

    @staticmethod
    def catches(daemon, number):
        with open("/proc/%d/status" % daemon.pid) as status:
            caught = next(line for line in status if line.startswith("SigCgt:"))
        return int(caught.split()[1], 16) >> number - 1 & 1

    def test_a_second_signal_does_not_end_a_daemon_that_writes_its_last_files(self):
        daemon = self.daemon(CONF)
        pipe = os.path.join(daemon.runtime_dir, "state.new")
        os.mkfifo(pipe)
        daemon.expect_dead = True
        daemon.send_signal(signal.SIGTERM)
        until(lambda: not self.catches(daemon, signal.SIGTERM), "the daemon has ended its loop")
        daemon.send_signal(signal.SIGTERM)
        self.goes_on(pipe)
        self.assertEqual(daemon.process.wait(WAIT), 0)


class Reload(FuncTest):
    """SIGHUP: the daemon takes the whole new configuration, or keeps the old one."""

    def reload(self, daemon, config):
        """Writes the file and sends SIGHUP. Returns the size of the log before that."""
        mark = daemon.log_size()
        with open(os.path.join(daemon.folder, "redlockd.yaml"), "w") as out:
            out.write(config)
        daemon.send_signal(signal.SIGHUP)
        return mark

    def test_a_reload_takes_effect_and_keeps_the_locks(self):
        daemon = self.daemon(CONF)
        c = self.client(daemon)
        c.ok("LOCK held")
        mark = self.reload(daemon, daemon.config.replace("\nlease: 2s", "\nlease: 1s") + "limits:\n  locks: 2\n")
        daemon.logged(r"reload", mark)
        c.ok("CHECK held")
        c.ok("LOCK held")
        c.ok("LOCK x")
        self.assertRegex(str(c.ask("LOCK y")), r"ERR LIMIT .*\b2\b")
        other = self.client(daemon)
        self.assertEqual(other.ok("LOCK z").num("ttl_ms"), 1000)
        self.assertEqual(c.inbox, [])

    def test_a_bad_file_is_refused_with_its_line_and_changes_nothing(self):
        daemon = self.daemon(CONF)
        c = self.client(daemon)
        c.ok("LOCK held")
        mark = self.reload(daemon, daemon.config + "limits:\n  lokcs: 1\n")
        daemon.logged(r"lokcs", mark)
        daemon.logged(r"locks", mark)
        for i in range(5):
            c.ok("LOCK more-%d" % i)
        self.assertEqual(c.inbox, [])

    def test_a_bad_file_is_refused_while_nobody_reads_the_log(self):
        daemon = self.daemon(CONF, start=False)
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        daemon.argv = ["sh", "-c", 'exec "$0" "$@" 2>/proc/%d/fd/%d' % (os.getpid(), writer), *daemon.command()]
        c = self.client(daemon.start())
        os.set_blocking(writer, False)
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(writer, b"x" * 4096)
        os.close(writer)
        daemon.notify.forget()
        self.reload(daemon, daemon.config + "limits:\n  lokcs: 1\n")
        self.assertTrue(daemon.notify.wait("READY=1", daemon.process))
        c.ok("LOCK a", timeout=2)

    def test_a_file_that_is_gone_changes_nothing(self):
        daemon = self.daemon(CONF)
        mark = daemon.log_size()
        os.unlink(os.path.join(daemon.folder, "redlockd.yaml"))
        daemon.send_signal(signal.SIGHUP)
        daemon.logged(r"reload|redlockd\.yaml", mark)
        self.client(daemon).ok("LOCK a")

    def test_a_key_that_needs_a_restart_is_named(self):
        daemon = self.daemon(CONF)
        mark = self.reload(daemon, daemon.config.replace("max_lease: 3s", "max_lease: 4s"))
        daemon.logged(r"max_lease", mark)
        self.client(daemon).err("LOCK a ttl=3500ms", "LIMIT")

    def test_a_pipe_is_not_read_again(self):
        """As of --config <(…): the daemon has read the pipe at its start. Nobody writes to it any more, so that opening it again would block the daemon."""
        daemon = self.daemon(CONF, start=False)
        pipe = os.path.join(daemon.folder, "pipe")
        os.mkfifo(pipe)
        daemon.argv = [REDLOCKD, "--config", pipe]
        daemon.launch()
        with open(pipe, "w") as out:
            out.write(daemon.config)
        c = self.client(daemon.ready())
        c.ok("LOCK held")
        mark = daemon.log_size()
        daemon.send_signal(signal.SIGHUP)
        daemon.logged(r"reload .*pipe", mark)
        c.ok("CHECK held", timeout=2)
        self.assertEqual(c.ok("LOCK x").num("ttl_ms"), 2000)

    def test_reloads_in_a_row_harm_nobody(self):
        daemon = self.daemon(CONF)
        c = self.client(daemon)
        for i in range(50):
            daemon.send_signal(signal.SIGHUP)
            c.ok("LOCK a-%d" % i)
            c.ok("UNLOCK a-%d" % i)

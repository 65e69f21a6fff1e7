# SPDX-License-Identifier: BSD-2-Clause
"""The life of a daemon: the memory store's state file, clean and unclean ends, signals."""
import os
import shutil
import signal
import stat
import time

from harness import Daemon, FuncTest
from process import REDLOCKD, call, free_port, merged, sanitized, spawn, temp_folder, until
from wire import Client

CONF = {"lease": "2s", "max_lease": "3s"}
MAX_LEASE = 3.0


class State(FuncTest):
    """What the next daemon on the same folder knows of the last one."""
    COST = 40

    def next_life(self, daemon, **options):
        """A daemon on the same runtime_dir."""
        return self.daemon(CONF, runtime_dir=daemon.runtime_dir, **options)

    def test_a_first_start_grants_at_once(self):
        c = self.client(self.daemon(CONF))
        self.assertEqual(c.ok("LOCK a").num("count"), 1)

    def test_after_a_clean_end_only_what_is_believed_is_refused(self):
        first = self.daemon(CONF)
        c = self.client(first)
        fence = c.ok("LOCK held").num("fence")
        c.ok('LOCK "odd name\\x00"')
        c.ok("LOCK free")
        c.ok("UNLOCK free")
        before = time.monotonic()
        believed = before + c.ok("CHECK held").num("valid_ms") / 1000
        first.finish()
        second = self.client(self.next_life(first))
        second.ok("LOCK free")
        second.ok("LOCK never-seen")
        busy = second.busy("LOCK held")
        self.assertTrue(0 < busy.num("retry_ms") <= 2100, busy)
        second.busy('LOCK "odd name\\x00"')
        granted = second.ok("LOCK held wait=10s")
        self.assertGreaterEqual(granted.at, believed, "the client of the first daemon may still have believed it")
        self.assertLess(granted.at, believed + 1.5)
        self.assertGreater(granted.num("fence"), fence)

    def test_a_clean_end_with_nothing_held_refuses_nothing(self):
        first = self.daemon(CONF)
        c = self.client(first)
        fence = c.ok("LOCK a").num("fence")
        c.ok("QUIT")
        first.finish()
        second = self.next_life(first)
        c = self.client(second)
        c.ok("LOCK b")
        self.assertGreater(c.ok("LOCK a wait=5s").num("fence"), fence)

    def test_after_a_crash_everything_is_refused_for_max_lease(self):
        first = self.daemon(CONF)
        fence = self.client(first).ok("LOCK held").num("fence")
        first.kill()
        begin = time.monotonic()
        second = self.next_life(first)
        c, waiter = self.client(second), self.client(second)
        waiter.send("LOCK held wait=20s")
        self.assertEqual(c.ask("LOCK other").kind in ("ERR", "BUSY"), True)
        c.ok("PING")
        granted = waiter.reply()
        self.assertGreaterEqual(granted.at - begin, MAX_LEASE)
        self.assertLess(granted.at - begin, MAX_LEASE * 1.1 + 2)
        self.assertGreater(granted.num("fence"), fence)
        c.ok("LOCK other wait=5s")

    def test_a_smaller_max_lease_does_not_shorten_the_quarantine_of_a_crash(self):
        first = self.daemon({"max_lease": "4s", "lease": "1s"})
        c = self.client(first)
        c.ok("LOCK held ttl=4s")
        before = time.monotonic()
        believed = before + c.ok("CHECK held").num("valid_ms") / 1000
        first.kill()
        second = self.daemon({"max_lease": "1s", "lease": "1s"}, runtime_dir=first.runtime_dir)
        granted = self.client(second).ok("LOCK held wait=20s", 21)
        self.assertGreaterEqual(granted.at, believed)

    def test_a_crash_within_the_quarantine_begins_it_anew(self):
        first = self.daemon(CONF)
        self.client(first).ok("LOCK held")
        first.kill()
        second = self.next_life(first)
        self.client(second).listen(1)
        second.kill()
        begin = time.monotonic()
        granted = self.client(self.next_life(first)).ok("LOCK other wait=20s", 21)
        self.assertGreaterEqual(granted.at - begin, MAX_LEASE)

    def test_a_clean_end_within_the_quarantine_does_not_shorten_it(self):
        first = self.daemon(CONF)
        c = self.client(first)
        c.ok("LOCK held ttl=3s")
        before = time.monotonic()
        believed = before + c.ok("CHECK held").num("valid_ms") / 1000
        first.kill()
        second = self.next_life(first)
        self.client(second).ok("PING")
        second.finish()
        third = self.client(self.next_life(first))
        granted = third.ok("LOCK held wait=20s", 21)
        self.assertGreaterEqual(granted.at, believed)

    def test_kept_names_survive_a_clean_end(self):
        first = self.daemon(CONF)
        c = self.client(first)
        c.ok("LOCK job")
        begin = time.monotonic()
        c.ok("UNLOCK job keep=2s")
        first.finish()
        second = self.client(self.next_life(first))
        second.busy("LOCK job")
        granted = second.ok("LOCK job wait=10s")
        self.assertGreaterEqual(granted.at - begin, 1.99)

    def test_a_spoilt_state_file_is_as_bad_as_a_crash(self):
        first = self.daemon(CONF)
        self.client(first).ok("LOCK held")
        first.finish()
        files = [f for f in os.listdir(first.runtime_dir) if stat.S_ISREG(os.stat(os.path.join(first.runtime_dir, f)).st_mode)]
        self.assertTrue(files, "a state file")
        lives = []
        for spoil in (b"", b"\0" * 100, b"nonsense\n" * 50):
            daemon = self.daemon(CONF, start=False)
            for f in files:
                with open(os.path.join(daemon.runtime_dir, f), "wb") as out:
                    out.write(spoil)
            begin = time.monotonic()
            lives.append((spoil, begin, self.client(daemon.start())))
            lives[-1][2].send("LOCK other wait=20s")
        for spoil, begin, client in lives:
            self.assertGreaterEqual(client.reply(timeout=21).at - begin, MAX_LEASE, "spoilt by %r" % spoil[:10])

    def test_a_truncated_state_file_never_grants_what_is_believed(self):
        first = self.daemon(CONF)
        c = self.client(first)
        for i in range(50):
            c.ok("LOCK held-%d ttl=3s" % i)
        before = time.monotonic()
        believed = before + min(c.ok("CHECK held-%d" % i).num("valid_ms") for i in range(50)) / 1000
        first.finish()
        for f in os.listdir(first.runtime_dir):
            path = os.path.join(first.runtime_dir, f)
            if os.path.isfile(path) and os.path.getsize(path) > 40:
                os.truncate(path, os.path.getsize(path) * 2 // 3)
        daemon = self.next_life(first)
        c = self.client(daemon)
        for i in (0, 25, 49):
            granted = c.ok("LOCK held-%d wait=20s" % i, 21)
            self.assertGreaterEqual(granted.at, believed)

    def test_fences_grow_over_every_kind_of_end(self):
        last, folder = 0, None
        for end in ("clean", "crash", "clean", "clean"):
            daemon = self.daemon(merged(CONF, {"lease": "300ms", "max_lease": "500ms"}), runtime_dir=folder)
            folder = daemon.runtime_dir
            with daemon.client() as c:
                for _ in range(20):
                    fence = c.ok("LOCK f wait=10s", 11).num("fence")
                    self.assertGreater(fence, last, end)
                    last = fence
                    c.ok("UNLOCK f")
            daemon.kill() if end == "crash" else daemon.finish()

    def test_many_held_names_survive_a_clean_end(self):
        first = self.daemon(merged(CONF, {"limits": {"locks": 5000}, "redis": {"timeout": "5s"}}))  # it has much to do at once
        c = self.client(first)
        c.send(*["LOCK many-%d ttl=3s" % i for i in range(5000)])
        for _ in range(5000):
            self.assertEqual(c.reply().kind, "OK")
        _, seconds = first.finish()
        self.assertLess(seconds, 1.5)
        second = self.client(self.next_life(first))
        self.assertEqual([second.ask("LOCK many-%d" % i).kind for i in (0, 1, 2500, 4999)], ["BUSY"] * 4)
        second.ok("LOCK many-5000")


class Reboot(FuncTest):
    """A time namespace of its own, in which CLOCK_BOOTTIME says that the host was booted a moment ago; the runtime directory is empty, as after a reboot."""

    def booted(self, seconds, listen):
        """A daemon on a host that was booted that long ago, listening there."""
        daemon = self.daemon(merged(CONF, {"listen": {"tcp": "%s:%d" % (listen, free_port())}}), start=False)
        with open("/proc/uptime") as uptime:
            offset = seconds - int(float(uptime.read().split()[0]))
        daemon.argv = ["unshare", "--time", "--boottime", str(offset), "--fork", "--kill-child", *daemon.command()]
        return daemon.start()

    def setUp(self):
        super().setUp()
        if call("unshare", "--time", "--boottime", "0", "--fork", "true")[0]:
            self.skipTest("no time namespaces here")

    def test_other_hosts_may_believe_in_what_was_promised_before(self):
        daemon = self.booted(1, "0.0.0.0")
        self.assertIn("found=reboot", daemon.log())
        begin, c = time.monotonic(), self.client(daemon)
        self.assertRegex(str(c.err("LOCK a", "QUORUM")), r" retry_ms=[1-9][0-9]{0,3}$")
        granted = c.ok("LOCK a wait=10s")
        self.assertGreaterEqual(granted.at - begin, MAX_LEASE - 2)
        self.assertLess(granted.at - begin, MAX_LEASE + 1)
        daemon.kill()

    def test_a_boot_that_is_long_ago_is_no_reason_to_wait(self):
        daemon = self.booted(60, "0.0.0.0")
        self.assertIn("found=first", daemon.log())
        self.client(daemon).ok("LOCK a")
        daemon.kill()

    def test_clients_on_loopback_ended_with_the_boot(self):
        daemon = self.booted(1, "127.0.0.2")
        self.client(daemon).ok("LOCK a")
        daemon.kill()


class Container(FuncTest):
    """A pid namespace of its own, in which the daemon is process 1; the runtime directory is empty, as that of a container that was made anew."""

    def begun(self, listen):
        daemon = self.daemon(merged(CONF, {"listen": {"tcp": "%s:%d" % (listen, free_port())}}), start=False)
        daemon.argv = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *daemon.command()]
        return daemon.start()

    def setUp(self):
        super().setUp()
        if call("unshare", "--pid", "--fork", "--mount-proc", "true")[0]:
            self.skipTest("no pid namespaces here")

    def test_other_hosts_may_believe_in_what_the_one_before_promised(self):
        daemon = self.begun("0.0.0.0")
        self.assertIn("found=crash why=new-container", daemon.log())
        begin, c = time.monotonic(), self.client(daemon)
        c.err("LOCK a", "QUORUM")
        granted = c.ok("LOCK a wait=10s")
        self.assertGreaterEqual(granted.at - begin, MAX_LEASE - 1)
        self.assertLess(granted.at - begin, MAX_LEASE + 1)
        daemon.kill()

    def test_clients_on_loopback_ended_with_it(self):
        daemon = self.begun("127.0.0.2")
        self.assertIn("found=first", daemon.log())
        self.client(daemon).ok("LOCK a")
        daemon.kill()


class Folders(FuncTest):
    """One runtime_dir, one daemon."""

    def test_two_daemons_with_one_folder_are_refused(self):
        first = self.daemon(CONF)
        c = self.client(first)
        c.ok("LOCK a")
        second = self.daemon(CONF, runtime_dir=first.runtime_dir, start=False).launch()
        second.expect_dead = True
        self.assertNotEqual(second.process.wait(5), 0)
        self.assertIn(first.runtime_dir, second.log())
        c.ok("CHECK a")
        self.client(first).ok("PING")

    def test_a_link_in_tmp_is_no_folder_of_our_own(self):
        """Who made the link may lead it elsewhere, where he answers clients in the daemon's place."""
        link = "/tmp/redlockd-link-%d" % os.getpid()
        os.symlink(temp_folder(), link)
        self.addCleanup(lambda: (shutil.rmtree(os.readlink(link)), os.unlink(link)))
        daemon = self.daemon(CONF, runtime_dir=link, start=False).launch()
        daemon.expect_dead = True
        self.assertEqual(daemon.process.wait(5), 69)
        self.assertEqual(os.listdir(link), [])

    def test_two_daemons_with_two_folders_are_fine(self):
        first, second = self.daemon(CONF), self.daemon(CONF)
        self.client(first).ok("LOCK a")
        self.client(second).ok("LOCK a")

    def test_a_socket_in_use_is_refused_and_a_stale_one_replaced(self):
        first = self.daemon(CONF)
        second = Daemon(merged(CONF, {"listen": {"unix": first.addr}}))
        self.addCleanup(second.dispose)
        second.launch()
        self.assertNotEqual(second.process.wait(5), 0)
        self.assertIn(first.addr, second.log())
        self.client(first).ok("PING")
        first.kill()
        self.assertTrue(os.path.exists(first.addr))
        third = self.daemon(merged(CONF, {"listen": {"unix": first.addr}}))
        with Client(first.addr) as c:
            c.ok("PING")
        third.finish()

    def test_a_tcp_port_in_use_is_refused(self):
        first = self.daemon(CONF, tcp=True)
        second = self.daemon(merged(CONF, {"listen": {"tcp": "%s:%d" % first.tcp}}), start=False).launch()
        second.expect_dead = True
        self.assertNotEqual(second.process.wait(5), 0)
        self.assertIn(str(first.tcp[1]), second.log())

    def test_a_folder_that_cannot_be_written_is_refused(self):
        daemon = self.daemon(merged(CONF, {"runtime_dir": "/proc/self/nowhere"}), start=False).launch()
        daemon.expect_dead = True
        self.assertNotEqual(daemon.process.wait(5), 0)
        self.assertIn("/proc/self/nowhere", daemon.log())

    def test_a_daemon_whose_files_may_not_grow_serves(self):
        """RLIMIT_FSIZE from the start: each write is an error, and a signal that would end it."""
        daemon = self.daemon(CONF, start=False)
        daemon.argv = ["prlimit", "--fsize=0", "--", *daemon.command()]
        c = self.client(daemon.start())
        c.ok("LOCK a")
        c.ok("UNLOCK a")

    def test_the_default_folder_is_private(self):
        folder = temp_folder()
        self.addCleanup(os.rmdir, folder)
        env = {"RUNTIME_DIRECTORY": os.path.join(folder, "run")}
        os.mkdir(env["RUNTIME_DIRECTORY"], 0o700)
        daemon = self.daemon(config="listen: {tcp: no}\n", env=env)
        path = os.path.join(env["RUNTIME_DIRECTORY"], "redlockd.sock")
        with Client(path) as c:
            c.ok("PING")
        daemon.finish()
        for f in os.listdir(env["RUNTIME_DIRECTORY"]):
            os.unlink(os.path.join(env["RUNTIME_DIRECTORY"], f))
        os.rmdir(env["RUNTIME_DIRECTORY"])


class Ends(FuncTest):
    """SIGTERM and SIGINT: within a second, status 0, everybody told."""
    COST, SECOND = 10, 2.5 if sanitized() else 1.0  # instrumented, it is many times as slow

    def ended(self, number, daemon):
        holder, waiters, idle = self.client(daemon), [self.client(daemon) for _ in range(20)], [self.client(daemon) for _ in range(100)]
        holder.ok("LOCK a")
        for w in waiters:
            w.send("@w LOCK a wait=forever", "LOCK a wait=30s")
            w.barrier()
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

    def test_SIGTERM(self):
        self.ended(signal.SIGTERM, self.daemon(CONF))

    def test_SIGINT(self):
        self.ended(signal.SIGINT, self.daemon(CONF))

    def test_SIGTERM_with_redis(self):
        server = self.redis()
        self.ended(signal.SIGTERM, self.redis_daemon(server))
        self.assertEqual(server.cli.exists("lock:a"), 1, "nothing is deleted in the stores")
        self.assertGreater(server.cli.pttl("lock:a"), 0)

    def test_SIGTERM_while_redis_hangs(self):
        server = self.redis()
        daemon = self.redis_daemon(server)
        c = self.client(daemon)
        c.ok("LOCK a")
        server.freeze()
        c.send("LOCK b wait=30s", "@u UNLOCK a sync=yes")
        c.barrier()
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
        self.assertLess(seconds, 1.5)

    def test_two_signals_in_a_row(self):
        daemon = self.daemon(CONF)
        daemon.send_signal(signal.SIGTERM)
        daemon.send_signal(signal.SIGINT)
        status, _ = daemon.finish()
        self.assertEqual(status, 0)

    def test_a_signal_right_after_the_start(self):
        for _ in range(5):
            daemon = self.daemon(CONF, start=False).launch()
            daemon.notify.wait("READY=1", daemon.process)
            self.assertEqual(daemon.finish()[0], 0)


class Reload(FuncTest):
    """SIGHUP: all or nothing."""

    def reload(self, daemon, config):
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

    def test_a_bad_file_is_refused_also_while_nobody_reads_the_log(self):
        daemon = self.daemon(CONF, start=False)
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        daemon.argv = ["sh", "-c", 'exec "$0" "$@" 2>/proc/%d/fd/%d' % (os.getpid(), writer), *daemon.command()]
        daemon.launch()
        self.assertTrue(daemon.notify.wait("READY=1", daemon.process))
        c = self.client(daemon)
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
        """It was read at the start, as of --config <(…), and nobody writes to it any more: whoever opened it would wait."""
        daemon = self.daemon(CONF, start=False)
        pipe = os.path.join(daemon.folder, "pipe")
        os.mkfifo(pipe)
        daemon.argv = [REDLOCKD, "--config", pipe]
        daemon.launch()
        with open(pipe, "w") as out:
            out.write(daemon.config)
        self.assertTrue(daemon.notify.wait("READY=1", daemon.process))
        c = self.client(daemon)
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


class Strangers(FuncTest):
    def test_no_file_no_arguments_is_a_working_daemon(self):
        """Everything default but the addresses: as in the first minute."""
        folder = temp_folder()
        with open(os.path.join(folder, "log"), "wb") as log:
            process = spawn([REDLOCKD, "--set", "listen.tcp=no", "--set", "runtime_dir=" + folder, "--set", "listen.unix=%s/s" % folder], stderr=log)
        self.addCleanup(lambda: (process.kill(), process.wait(), shutil.rmtree(folder)))
        until(lambda: os.path.exists(folder + "/s"), "the socket")
        with Client(folder + "/s") as c:
            self.assertEqual(c.ok("HELLO 1")["store"], "memory")
            self.assertEqual(c.ok("LOCK a").num("ttl_ms"), 10000)
        process.terminate()
        self.assertEqual(process.wait(5), 0)
        with open(os.path.join(folder, "log")) as log:
            self.assertRegex(log.read(), r"(?i)ready")

    def test_closed_standard_descriptors_become_nothing_else(self):
        """What is opened first would take their numbers, and the log would go there."""
        folder = temp_folder()
        process = spawn(["sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-', REDLOCKD, "--set", "listen.tcp=no", "--set", "runtime_dir=" + folder,
                         "--set", "listen.unix=%s/s" % folder])
        self.addCleanup(lambda: (process.kill(), process.wait(), shutil.rmtree(folder)))
        until(lambda: os.path.exists(folder + "/s"), "the socket")
        with Client(folder + "/s") as c:
            c.ok("LOCK a")
        self.assertEqual([os.readlink("/proc/%d/fd/%d" % (process.pid, fd)) for fd in range(3)], ["/dev/null"] * 3)


if __name__ == "__main__":
    from harness import main
    main()

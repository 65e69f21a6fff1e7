# SPDX-License-Identifier: BSD-2-Clause
"""What a daemon on the memory store knows of the run before it: after a clean end, a crash, a reboot of the host, in a new container."""
import contextlib
import os
import re
import signal
import stat
import subprocess
import time

from harness import FuncTest
from lease import believed
from process import LATE, call, free_port, merged, until

CONF = {"lease": "2s", "max_lease": "3s"}
MAX_LEASE = 3.0
LONG = 1 + LATE  # a max_lease that is not over before a busy machine has started the daemon


class Kept(FuncTest):
    """After kill -9 the next daemon with the same runtime directory knows what is believed."""
    COST = 15

    def next_run(self, daemon):
        return self.daemon(CONF, runtime_dir=daemon.runtime_dir)

    def test_names_that_somebody_may_believe_in_are_refused_and_all_others_granted_at_once(self):
        first = self.daemon(CONF)
        c = self.client(first)
        fence = c.ok("LOCK held").num("fence")
        c.ok('LOCK "odd name\\x00"')
        c.ok("LOCK freed")
        c.ok("UNLOCK freed")
        until_when = believed(c, "held")
        first.kill()
        second = self.next_run(first)
        self.assertIn("found=kept", second.log())
        c = self.client(second)
        c.ok("LOCK freed")
        c.ok("LOCK never-seen")
        busy = c.busy("LOCK held")
        self.assertTrue(0 < busy.num("retry_ms") <= 2100, busy)
        self.assertNotIn("holder=", str(busy))
        c.busy('LOCK "odd name\\x00"')
        granted = c.ok("LOCK held wait=10s")
        self.assertGreaterEqual(granted.at, until_when, "the client of the first daemon may still believe in its lock")
        self.assertLess(granted.at, until_when + LATE)
        self.assertGreater(granted.num("fence"), fence)

    def test_readers_and_permits_and_groups_are_believed_as_well(self):
        first = self.daemon(CONF)
        c, other = self.client(first), self.client(first)
        c.ok("LOCK read mode=shared ttl=3s")
        other.ok("LOCK read mode=shared ttl=3s")
        permits = {c.ok("ACQUIRE licences limit=3 ttl=3s").num("permit") for _ in range(2)}
        c.ok("LOCKALL p q ttl=3s")
        until_when = believed(c, "read")
        first.kill()
        second = self.client(self.next_run(first))
        for request in ("LOCK read", "LOCK p", "LOCK q"):
            second.busy(request)
        second.ok("LOCK read mode=shared")
        self.assertNotIn(second.ok("ACQUIRE licences limit=3").num("permit"), permits, "a permit that somebody may still believe in")
        second.busy("ACQUIRE licences limit=3")
        second.ok("UNLOCK read")
        self.assertGreaterEqual(second.ok("LOCK read wait=10s").at, until_when)

    def test_a_daemon_that_is_killed_again_and_again_frees_nothing_early(self):
        daemon = self.daemon({"lease": "4s", "max_lease": "4s"})
        c = self.client(daemon)
        c.ok("LOCK held")
        until_when = believed(c, "held")
        daemon.kill()
        for _ in range(5):
            daemon = self.daemon({"lease": "4s", "max_lease": "4s"}, runtime_dir=daemon.runtime_dir)
            self.client(daemon).busy("LOCK held")
            daemon.kill()
        daemon = self.daemon({"lease": "4s", "max_lease": "4s"}, runtime_dir=daemon.runtime_dir)
        self.assertGreaterEqual(self.client(daemon).ok("LOCK held wait=10s", 11).at, until_when)
        daemon.finish()
        self.assertEqual([f for f in os.listdir(daemon.runtime_dir) if f.startswith("keys-")], [])

    def test_what_was_answered_before_the_kill_is_known_after_it(self):
        """The kill comes while requests are on their way: each OK that the client has read counts."""
        daemon = self.daemon(CONF)
        for i in range(8):
            c = self.client(daemon)
            c.send(*["LOCK n%d-%d ttl=3s" % (i, k) for k in range(400)])
            answers = [c.reply() for _ in range(50 * i + 1)]
            os.kill(daemon.process.pid, signal.SIGKILL)
            daemon.kill()
            daemon = self.next_run(daemon)
            after = self.client(daemon)
            for answer in answers:
                after.busy("LOCK " + answer["name"])

    def test_a_keyfile_that_cannot_be_written_is_told_and_costs_the_quarantine(self):
        first = self.daemon(merged(CONF, {"limits": {"renewals": 1000000}}), start=False)
        first.argv = ["prlimit", "--fsize=65536", *first.command()]
        first.start()
        c = self.client(first)
        c.send(*["LOCK many-%d" % i for i in range(1000)])
        for _ in range(1000):
            self.assertEqual(c.reply().kind, "OK")
        first.kill()
        second = self.next_run(first)
        self.assertIn("found=crash", second.log())
        second.kill()


    def test_names_that_find_no_room_are_a_trouble_of_the_store_until_there_is_some(self):
        folder = self.folder()
        if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("no file system can be mounted here")
        self.addCleanup(subprocess.run, ["umount", folder], check=True)
        daemon = self.daemon(merged(CONF, {"limits": {"renewals": 1000000}, "state_dir": self.folder()}), runtime_dir=folder)
        self.addCleanup(daemon.kill)
        c = self.client(daemon)
        filler = os.path.join(folder, "filler")

        def cause():
            return c.ok("LIST nodes").rows[0].fields.get("cause")
        self.assertIsNone(cause())
        with contextlib.suppress(OSError), open(filler, "ab", buffering=0) as out:
            while out.write(b"x" * 4096) == 4096:
                pass
        c.send(*["LOCK many-%d" % i for i in range(1000)])
        for _ in range(1000):
            self.assertEqual(c.reply().kind, "OK")
        until(lambda: cause() == "files", "LIST nodes says so")
        self.assertRegex(c.ok("LIST nodes").rows[0]["reason"], "^new names find no room")
        self.assertIn("new names find no room", self.call_redlock(daemon, "doctor")[1])
        self.assertEqual(len(re.findall("warn node .*cause=files", daemon.log())), 1)
        os.remove(filler)
        until(lambda: cause() is None, "LIST nodes says that it is over")
        daemon.logged("notice node .*cause=files")
        daemon.kill()
        self.assertIn("found=kept", self.next_run(daemon).log())

    def test_a_file_that_was_cut_is_named_with_what_that_means(self):
        for prefix, end, told in (("state", "finish", "state found=crash file=state why=\"cut off\" note=.*names of the run before"),
                                  ("state", "kill", "state found=crash file=state why=\"cut off\" note=.*names of the run before"),
                                  ("keys-", "kill", "state found=crash file=keys-[0-9a-f]{8} why=\"cut or damaged\" note=.*names of the run before")):
            with self.subTest(prefix + " after " + end):
                first = self.daemon(CONF)
                c = self.client(first)
                c.ok("LOCK a")
                getattr(first, end)()
                file, = [f for f in os.listdir(first.runtime_dir) if f.startswith(prefix)]
                os.truncate(os.path.join(first.runtime_dir, file), 100)
                second = self.next_run(first)
                self.assertEqual(len(re.findall("warn " + told, second.log())), 1, second.log())
                self.assertEqual(len(re.findall(" warn state ", second.log())), 1, second.log())
                second.kill()


def forget(daemon):
    """The names of a daemon that was killed: as if there had been no space for them."""
    for f in os.listdir(daemon.runtime_dir):
        if f.startswith("keys-"):
            os.unlink(os.path.join(daemon.runtime_dir, f))


class State(FuncTest):
    """What the next daemon with the same runtime directory knows of the last one, or does not know."""
    COST = 40

    def next_run(self, daemon):
        """A new daemon with the same runtime directory."""
        return self.daemon(CONF, runtime_dir=daemon.runtime_dir)

    def test_a_first_start_grants_at_once(self):
        c = self.client(self.daemon(CONF))
        self.assertEqual(c.ok("LOCK a").num("count"), 1)

    def test_after_a_clean_end_only_held_names_are_refused(self):
        first = self.daemon(CONF)
        c = self.client(first)
        fence = c.ok("LOCK held").num("fence")
        c.ok('LOCK "odd name\\x00"')
        c.ok("LOCK free")
        c.ok("UNLOCK free")
        until_when = believed(c, "held")
        first.finish()
        second = self.client(self.next_run(first))
        second.ok("LOCK free")
        second.ok("LOCK never-seen")
        busy = second.busy("LOCK held")
        self.assertTrue(0 < busy.num("retry_ms") <= 2100, busy)
        second.busy('LOCK "odd name\\x00"')
        granted = second.ok("LOCK held wait=10s")
        self.assertGreaterEqual(granted.at, until_when, "the client of the first daemon may still believe in its lock")
        self.assertLess(granted.at, until_when + LATE)
        self.assertGreater(granted.num("fence"), fence)

    def test_a_clean_end_with_nothing_held_refuses_nothing(self):
        first = self.daemon(CONF)
        c = self.client(first)
        fence = c.ok("LOCK a").num("fence")
        c.ok("QUIT")
        first.finish()
        second = self.next_run(first)
        c = self.client(second)
        c.ok("LOCK b")
        self.assertGreater(c.ok("LOCK a wait=5s").num("fence"), fence)

    def test_after_a_crash_without_the_names_everything_is_refused_for_max_lease(self):
        first = self.daemon(CONF)
        fence = self.client(first).ok("LOCK held").num("fence")
        first.kill()
        forget(first)
        begin = time.monotonic()
        second = self.next_run(first)
        c, waiter = self.client(second), self.client(second)
        waiter.send("LOCK held wait=20s")
        self.assertIn(c.ask("LOCK other").kind, ("ERR", "BUSY"))
        c.ok("PING")
        granted = waiter.reply()
        self.assertGreaterEqual(granted.at - begin, MAX_LEASE)
        self.assertLess(granted.at - begin, MAX_LEASE * 1.1 + LATE)
        self.assertGreater(granted.num("fence"), fence)
        c.ok("LOCK other wait=5s")

    def test_a_smaller_max_lease_does_not_shorten_the_quarantine_of_a_crash(self):
        first = self.daemon({"max_lease": "4s", "lease": "1s"})
        c = self.client(first)
        c.ok("LOCK held ttl=4s")
        until_when = believed(c, "held")
        first.kill()
        forget(first)
        second = self.daemon({"max_lease": "1s", "lease": "1s"}, runtime_dir=first.runtime_dir)
        granted = self.client(second).ok("LOCK held wait=20s", 21)
        self.assertGreaterEqual(granted.at, until_when)

    def test_a_crash_within_the_quarantine_restarts_it(self):
        first = self.daemon(CONF)
        self.client(first).ok("LOCK held")
        first.kill()
        forget(first)
        second = self.next_run(first)
        self.client(second).listen(1)
        second.kill()
        begin = time.monotonic()
        granted = self.client(self.next_run(first)).ok("LOCK other wait=20s", 21)
        self.assertGreaterEqual(granted.at - begin, MAX_LEASE)

    def test_a_clean_end_within_the_quarantine_does_not_shorten_it(self):
        first = self.daemon(CONF)
        c = self.client(first)
        c.ok("LOCK held ttl=3s")
        until_when = believed(c, "held")
        first.kill()
        forget(first)
        second = self.next_run(first)
        self.client(second).ok("PING")
        second.finish()
        third = self.client(self.next_run(first))
        granted = third.ok("LOCK held wait=20s", 21)
        self.assertGreaterEqual(granted.at, until_when)

    def test_kept_names_survive_a_clean_end(self):
        first = self.daemon(CONF)
        c = self.client(first)
        c.ok("LOCK job")
        begin = time.monotonic()
        c.ok("UNLOCK job keep=2s")
        first.finish()
        second = self.client(self.next_run(first))
        second.busy("LOCK job")
        granted = second.ok("LOCK job wait=10s")
        self.assertGreaterEqual(granted.at - begin, 1.99)

    def test_names_kept_for_longer_than_a_lease_survive_a_crash(self):
        first = self.daemon(dict(CONF, lease="500ms", max_lease="1s"))
        c = self.client(first)
        c.ok("LOCK job")
        c.ok("LOCK other")
        begin = time.monotonic()
        c.ok("UNLOCK job keep=4s")
        c.ok("UNLOCK other keep=200ms")
        first.kill()
        second = self.client(self.next_run(first))
        second.ok("LOCK other wait=10s", 11)
        second.busy("LOCK job")
        granted = second.ok("LOCK job wait=10s", 11)
        self.assertGreaterEqual(granted.at - begin, 3.99)

    def test_a_spoilt_state_file_is_as_bad_as_a_crash(self):
        first = self.daemon(CONF)
        self.client(first).ok("LOCK held")
        first.finish()
        files = [f for f in os.listdir(first.runtime_dir) if stat.S_ISREG(os.stat(os.path.join(first.runtime_dir, f)).st_mode)]
        self.assertTrue(files, "a state file")
        runs = []
        for spoil in (b"", b"\0" * 100, b"nonsense\n" * 50):
            daemon = self.daemon(CONF, start=False)
            for f in files:
                with open(os.path.join(daemon.runtime_dir, f), "wb") as out:
                    out.write(spoil)
            begin = time.monotonic()
            runs.append((spoil, begin, self.client(daemon.start())))
            runs[-1][2].send("LOCK other wait=20s")
        for spoil, begin, client in runs:
            self.assertGreaterEqual(client.reply(timeout=21).at - begin, MAX_LEASE, "spoilt by %r" % spoil[:10])

    def test_after_a_truncated_state_file_no_held_name_is_granted_early(self):
        first = self.daemon(CONF)
        c = self.client(first)
        for i in range(50):
            c.ok("LOCK held-%d ttl=3s" % i)
        until_when = believed(c, *["held-%d" % i for i in range(50)])
        first.finish()
        for f in os.listdir(first.runtime_dir):
            path = os.path.join(first.runtime_dir, f)
            if os.path.isfile(path) and os.path.getsize(path) > 40:
                os.truncate(path, os.path.getsize(path) * 2 // 3)
        c = self.client(self.next_run(first))
        for i in (0, 25, 49):
            granted = c.ok("LOCK held-%d wait=20s" % i, 21)
            self.assertGreaterEqual(granted.at, until_when)

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
        first = self.daemon(merged(CONF, {"limits": {"locks": 5000, "renewals": 1000000}, "redis": {"timeout": "5s"}}))  # it has much to do at one moment
        c = self.client(first)
        c.send(*["LOCK many-%d ttl=3s" % i for i in range(5000)])
        for _ in range(5000):
            self.assertEqual(c.reply().kind, "OK")
        _, seconds = first.finish()
        self.assertLess(seconds, LATE)
        second = self.client(self.next_run(first))
        self.assertEqual([second.ask("LOCK many-%d" % i).kind for i in (0, 1, 2500, 4999)], ["BUSY"] * 4)
        second.ok("LOCK many-5000")


class Reboot(FuncTest):
    """The daemon runs in a time namespace, in which CLOCK_BOOTTIME says when the host was booted. The runtime directory is empty, as after a reboot."""
    COST = 10

    def booted(self, seconds, listen):
        """A daemon that listens on this address, on a host that was booted so many seconds ago."""
        daemon = self.daemon(merged(CONF, {"listen": {"tcp": "%s:%d" % (listen, free_port())}, "insecure": "yes", "max_lease": "%gs" % LONG}), start=False)
        self.boot = int(time.clock_gettime(time.CLOCK_BOOTTIME)) - seconds
        daemon.argv = ["unshare", "--time", "--boottime", str(-self.boot), "--fork", "--kill-child", *daemon.command()]
        return daemon.start()

    def setUp(self):
        super().setUp()
        if call("unshare", "--time", "--boottime", "0", "--fork", "true")[0]:
            self.skipTest("no time namespaces here")

    def test_clients_on_other_hosts_may_believe_in_locks_from_before_the_boot(self):
        daemon = self.booted(1, "0.0.0.0")
        self.assertIn("found=reboot", daemon.log())
        c = self.client(daemon)
        self.assertRegex(str(c.err("LOCK a", "QUORUM")), r" retry_ms=[1-9][0-9]{0,3}$")
        granted = c.ok("LOCK a wait=20s", 21)
        since_boot = granted.at + time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic() - self.boot
        self.assertGreaterEqual(since_boot, LONG)
        self.assertLess(since_boot, LONG + LATE)
        daemon.kill()

    def test_a_boot_long_ago_delays_nothing(self):
        daemon = self.booted(60, "0.0.0.0")
        self.assertIn("found=first", daemon.log())
        self.client(daemon).ok("LOCK a")
        daemon.kill()

    def test_clients_on_loopback_do_not_survive_a_boot(self):
        daemon = self.booted(1, "127.0.0.2")
        self.client(daemon).ok("LOCK a")
        daemon.kill()


class Container(FuncTest):
    """The daemon is process 1 of a pid namespace. The runtime directory is empty, as in a container that was created anew."""
    COST = 10

    def contained(self, listen):
        daemon = self.daemon(merged(CONF, {"listen": {"tcp": "%s:%d" % (listen, free_port())}, "insecure": "yes", "max_lease": "%gs" % LONG}), start=False)
        daemon.argv = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *daemon.command()]
        return daemon.start()

    def setUp(self):
        super().setUp()
        if call("unshare", "--pid", "--fork", "--mount-proc", "true")[0]:
            self.skipTest("no pid namespaces here")

    def test_clients_on_other_hosts_may_believe_in_locks_of_the_previous_container(self):
        begin = time.monotonic()
        daemon = self.contained("0.0.0.0")
        self.assertIn("found=crash why=new-container", daemon.log())
        c = self.client(daemon)
        c.err("LOCK a", "QUORUM")
        granted = c.ok("LOCK a wait=20s", 21)
        self.assertGreaterEqual(granted.at - begin, LONG - 0.01, "the kernel tells the start of a process to 10 ms")
        self.assertLess(granted.at - begin, LONG + 2 * LATE, "and what it took to start")
        daemon.kill()

    def test_clients_on_loopback_do_not_survive_the_container(self):
        daemon = self.contained("127.0.0.2")
        self.assertIn("found=first", daemon.log())
        self.client(daemon).ok("LOCK a")
        daemon.kill()

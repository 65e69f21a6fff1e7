# SPDX-License-Identifier: BSD-2-Clause
"""SIGTERM where the service manager keeps descriptors: the next process goes on. The manager here is a stand-in: a real systemd is in tests/systemd."""
import os
import signal
import socket

from manager import Manager
from process import until
from resumable import resume_fences, with_grace
from restarts import RestartTest, on_stores
from wire import Client

KEPT = ["redlockd-parcel", "redlockd-records"]


class StoreTest(RestartTest):
    def managed(self, listeners=0, tree=None, **options):
        """A daemon that a manager runs. The manager passes it so many listening sockets."""
        daemon = self.begin(tree, start=False)
        socks = []
        for i in range(listeners):
            sock = socket.socket(socket.AF_UNIX)
            self.addCleanup(sock.close)
            sock.bind(os.path.join(daemon.folder, "passed%d" % i))
            sock.listen(64)
            socks.append(sock)
        manager = Manager(daemon, socks, **options)
        self.addCleanup(manager.close)
        manager.start().ready()
        if listeners:
            daemon.addr = socks[0].getsockname()
        return manager, daemon.joined() if self.STORES else daemon


@on_stores(0, 1, base=StoreTest)
class Kept:
    COST = 6

    def test_a_restart_keeps_connections_locks_and_waiters(self):
        for listeners in (1, 0):
            manager, daemon = self.managed(listeners)
            holder, waiter, half = self.client(daemon), self.client(daemon), self.client(daemon)
            fence = holder.ok("LOCK a").num("fence")
            waiter.begin("@w LOCK a wait=60s")
            half.barrier()
            half.raw(b"PI")
            pid = daemon.pid
            for _ in range(3):
                manager.restart()
                until(lambda: manager.names() == [], "what was kept is removed once the process is ready")
            self.assertNotEqual(daemon.pid, pid)
            half.raw(b"NG\n")
            self.assertEqual(half.reply().kind, "OK")
            self.assertEqual(holder.ok("CHECK a").num("fence"), fence)
            holder.ok("UNLOCK a")
            self.assertGreater(waiter.reply("@w").num("fence"), fence)
            self.client(daemon).ok("PING")
            self.assertNotRegex(daemon.log(), r" (warn (?!listen)|error )")

    def test_another_runtime_directory_in_the_configuration(self):
        manager, daemon = self.managed(1)
        holder, waiter, moved = self.client(daemon), self.client(daemon), os.path.join(daemon.folder, "moved")
        fence = holder.ok("LOCK a").num("fence")
        waiter.begin("@w LOCK a wait=60s")
        daemon.config = daemon.config.replace(daemon.runtime_dir, moved)
        for _ in range(2):
            manager.restart()
            self.assertEqual(holder.ok("CHECK a").num("fence"), fence)
        daemon.logged(r"error restart runtime=%s configured=%s " % (daemon.runtime_dir, moved))
        self.assertFalse(os.path.exists(moved))
        holder.ok("UNLOCK a")
        self.assertGreater(waiter.reply("@w").num("fence"), fence)

    def test_requests_wait_while_no_process_runs(self):
        manager, daemon = self.managed(1)
        c = self.client(daemon)
        c.ok("LOCK a")
        manager.end()
        self.assertEqual(manager.names(), KEPT)
        c.send("@1 CHECK a", "@2 LOCK b")
        late = self.client(daemon)  # waits at the socket of the manager
        late.send("LOCK a")
        self.assertEqual(c.listen(0.3), [])
        manager.start().ready()
        self.assertEqual([c.reply("@%d" % i).kind for i in (1, 2)], ["OK", "OK"])
        self.assertEqual(late.reply().kind, "BUSY")

    def test_a_start_that_is_stopped_at_once_keeps_the_state(self):
        """What the scripts of a Debian package do: stop, start, stop, start."""
        manager, daemon = self.managed(1)
        c = self.client(daemon)
        fence = c.ok("LOCK a").num("fence")
        for _ in range(5):
            self.assertEqual(manager.end(), 0)
            manager.start()
            until(lambda: self.blocks_term(daemon), "the daemon is about to start")
        manager.ready()
        self.assertEqual(c.ok("CHECK a").num("fence"), fence)

    @staticmethod
    def blocks_term(daemon):
        """Before it does, SIGTERM ends it, and the manager still has all."""
        try:
            with open("/proc/%d/status" % daemon.pid) as status:
                text = status.read()
        except OSError:
            return True
        return int(text.split("SigBlk:")[1].split()[0], 16) >> signal.SIGTERM - 1 & 1 or int(text.split("SigCgt:")[1].split()[0], 16) >> signal.SIGTERM - 1 & 1

    def test_without_a_next_process_clients_see_the_end_and_what_they_believe_in_stays_theirs(self):
        manager, daemon = self.managed(1)
        c, other = self.client(daemon), self.client(daemon)
        ticket = with_grace(c)
        fence = c.ok("LOCK a").num("fence")
        other.ok("LOCK b")
        manager.end()
        self.assertEqual(c.listen(0.1), [])
        manager.drop()
        c.eof(5)
        other.eof(5)
        manager.start().ready()
        fresh = self.client(daemon)
        fresh.busy("LOCK b")
        self.assertEqual(resume_fences(self.client(daemon), ticket), {"a": fence})


class Refused(StoreTest):
    """A state that must not be used: the sessions end, and the daemon goes on as after a crash."""
    COST = 8

    def crashes(self, manager, daemon, c, why):
        mark = daemon.log_size()
        manager.start().ready()
        daemon.logged(r"warn restart error=.*%s" % why, mark)
        c.eof(5)
        self.client(daemon).busy("LOCK a")
        self.client(daemon).ok("LOCK free")
        until(lambda: manager.names() == [], "what was kept is removed")

    def test_a_process_that_is_killed_before_it_is_ready(self):
        manager, daemon = self.managed(1)
        c = self.client(daemon)
        c.ok("LOCK a ttl=10s")
        manager.end()
        manager.deaf = True
        mark = daemon.log_size()
        manager.start()
        daemon.logged("notice restarted", mark)
        manager.end(signal.SIGKILL)
        manager.deaf = False
        self.assertEqual(manager.names(), KEPT)
        self.crashes(manager, daemon, c, "")

    def test_a_state_that_another_process_ran_with(self):
        """The records of a restart come back after another process has taken it and gone on."""
        manager, daemon = self.managed(1)
        c = self.client(daemon)
        manager.end()
        old = [(name, os.dup(fd)) for name, fd in manager.store]
        manager.start().ready()
        c.ok("LOCK a ttl=10s")
        manager.end(signal.SIGKILL)
        manager.store += old
        self.crashes(manager, daemon, c, "")

    def test_a_start_without_the_state_in_between(self):
        manager, daemon = self.managed(1)
        c = self.client(daemon)
        c.ok("LOCK a ttl=10s")
        manager.end()
        kept, manager.store = manager.store, []
        manager.start().ready()
        with Client(daemon.addr) as other:
            other.ok("LOCK meanwhile")
        manager.end(signal.SIGKILL)
        manager.drop()
        manager.store = kept
        self.crashes(manager, daemon, c, "used before")

    def test_a_parcel_without_its_records_and_the_other_way_round(self):
        for lost in KEPT:
            manager, daemon = self.managed(1)
            c = self.client(daemon)
            c.ok("LOCK a ttl=10s")
            manager.end()
            for kept in [kept for kept in manager.store if kept[0] == lost]:
                os.close(kept[1])
                manager.store.remove(kept)
            self.crashes(manager, daemon, c, "not there")


class Otherwise(StoreTest):
    """When SIGTERM ends the daemon as always."""
    COST = 5

    def ends(self, manager, daemon, waiter, number=signal.SIGTERM):
        self.assertEqual(manager.end(number), 0)
        self.assertEqual([line.code for line in waiter.eof(5)], ["DRAINING"])
        self.assertEqual(manager.names(), [])

    def waiting(self, daemon):
        holder, waiter = self.client(daemon), self.client(daemon)
        holder.ok("LOCK a ttl=10s")
        waiter.begin("LOCK a wait=60s")
        return waiter

    def test_SIGINT(self):
        manager, daemon = self.managed(1)
        self.ends(manager, daemon, self.waiting(daemon), signal.SIGINT)

    def test_a_daemon_that_drains(self):
        manager, daemon = self.managed(1)
        waiter = self.waiting(daemon)
        other = self.client(daemon)
        other.ok("DRAIN")
        self.assertEqual(waiter.reply().code, "DRAINING")
        self.assertEqual(manager.end(), 0)
        other.eof(5)
        self.assertEqual(manager.names(), [])

    def test_without_a_store(self):
        manager, daemon = self.managed(1, keeps=False)
        self.ends(manager, daemon, self.waiting(daemon))

    def test_a_runtime_directory_that_takes_no_file(self):
        """Without the file that makes it once, nothing is handed over."""
        manager, daemon = self.managed(1)
        waiter = self.waiting(daemon)
        os.mkdir(os.path.join(daemon.runtime_dir, "handover.new"))
        self.ends(manager, daemon, waiter)
        self.assertRegex(daemon.log(), "warn restart error=\"Is a directory\"")

    def test_a_manager_that_does_not_read(self):
        """The daemon is torn down already when it sees that: it goes on from the records, and then ends as always."""
        manager, daemon = self.managed(1)
        waiter = self.waiting(daemon)
        manager.stopped.set()
        manager.thread.join()
        self.ends(manager, daemon, waiter)
        self.assertRegex(daemon.log(), "error restart .*does not keep the state")

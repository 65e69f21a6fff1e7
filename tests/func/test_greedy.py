# SPDX-License-Identifier: BSD-2-Clause
"""Clients that take without giving: no client gets more than its share, and the others notice nothing."""
import contextlib
import os
import re
import resource
import select
import signal
import socket
import time
import unittest

from daemon import on_redis
from guard import user
from harness import FuncTest
from process import LATE, allow_descriptors, descriptors_of, sanitized, until
from pump import Pump
from wire import Client, connect


class Greedy(FuncTest):
    """Each of these clients takes what it can get."""
    COST = 8

    def others_notice_nothing(self, c, name):
        """A LOCK, an UNLOCK and a PING of another client are answered. `make load` measures how soon."""
        begin = time.monotonic()
        c.ok("LOCK %s wait=10s" % name)
        c.ok("UNLOCK " + name)
        c.ok("PING")
        self.assertLess(time.monotonic() - begin, LATE)

    def test_a_client_that_never_reads_is_hung_up_or_throttled(self):
        daemon = self.daemon({"limits": {"output": "64k"}})
        good, greedy = self.client(daemon), self.client(daemon)
        greedy.ok("LOCK greedy ttl=1s")
        before = daemon.rss_kib()
        greedy.sock.setblocking(False)
        deadline = time.monotonic() + 10
        ended = False
        while not ended:
            self.assertLess(time.monotonic(), deadline, "the daemon serves a client that never reads without end")
            try:
                greedy.sock.send(b"HELP\n" * 100)
            except BlockingIOError:
                ended = not select.select([], [greedy.sock], [], 1.0)[1]  # throttled: the daemon reads no more
            except (BrokenPipeError, ConnectionResetError):
                ended = True
                daemon.logged(r"overflow|output|slow|unread")
            self.others_notice_nothing(good, "other")
        self.assertLess(daemon.rss_kib() - before, 8 * 1024)
        self.others_notice_nothing(good, "other")

    def test_pushes_that_nobody_reads_end_the_session(self):
        """The daemon pushes thousands of losses to a session that reads none: its output is bounded."""
        daemon = self.daemon({"limits": {"output": "64k", "locks": 20000}, "max_lease": "30s"})
        good, silent = self.client(daemon), Pump(daemon.addr)
        self.addCleanup(silent.close)
        for i in range(0, 5000, 50):
            lines = "".join("LOCK d%s-%d ttl=3s renew=no\n" % ("x" * 400, i + k) for k in range(50))
            self.assertEqual(silent.run(lines.encode(), 1, 50), [])
        until(lambda: good.ok("LIST locks prefix=dx limit=1").num("n") == 0, "all are lost", 10)
        self.others_notice_nothing(good, "other")
        until(lambda: good.ok("LIST sessions").num("n") == 1, "the session that does not read is ended", 10)

        def logged():  # by name, or as one of the lines left out of a flood, which the log counts in its next line
            with Client(daemon.addr) as noisy:
                noisy.send(*["NONSENSE"] * 100)
                noisy.eof()
            return re.search("reason=overflow|left-out lines=", daemon.log())
        until(logged, "the log names the reason")

    def test_sessions_that_send_nothing(self):
        """20,000 connections, half of them in the middle of a line."""
        wanted = 20000
        possible = min(wanted, allow_descriptors(wanted + 500) - 500)
        daemon = self.daemon({"limits": {"clients": 30000}})
        good = self.client(daemon)
        good.ok("LOCK held")
        before = daemon.rss_kib()
        silent = []
        self.addCleanup(lambda: [s.close() for s in silent])
        for i in range(possible):
            sock = connect(daemon.addr)
            silent.append(sock)
            if i % 2:
                sock.send(b"LOCK hel")
            if i % 2000 == 0:
                self.others_notice_nothing(good, "other")
        until(lambda: good.stats()["sessions"] == possible + 1, "all are sessions", 30)
        self.others_notice_nothing(good, "other")
        grown = daemon.rss_kib() - before
        self.figure("%d silent sessions need %.1f KiB each" % (possible, grown / possible))
        idle = daemon.cpu_seconds()
        good.listen(1)
        self.assertLess(daemon.cpu_seconds() - idle, 0.2, "silent sessions cost processor time")
        for s in silent:
            s.close()
        silent.clear()
        until(lambda: good.stats()["sessions"] == 1, "all are gone", 30)
        self.others_notice_nothing(good, "other")
        good.ok("CHECK held")
        self.assertEqual(good.inbox, [])
        if possible < wanted:
            raise unittest.SkipTest("the limit of %d descriptors allows %d of 20,000 connections, with which the test has passed" % (
                resource.getrlimit(resource.RLIMIT_NOFILE)[1], possible))

    def test_connections_beyond_the_limit_get_ERR_LIMIT_until_another_one_ends(self):
        daemon = self.daemon({"limits": {"clients": 50}})
        good = self.client(daemon)
        good.ok("PING")
        others = [self.client(daemon) for _ in range(49)]
        for c in others:
            c.barrier()
        for _ in range(200):
            with Client(daemon.addr) as extra:
                self.assertEqual([line.code for line in extra.eof()], ["LIMIT"])
        self.others_notice_nothing(good, "other")
        for c in others:
            c.barrier()
        gone = others.pop()
        gone.ok("QUIT")
        gone.eof()
        self.client(daemon).ok("PING")

    def client_of(self, daemon, uid):
        """A client of another user, over the Unix socket."""
        if os.geteuid():
            self.skipTest("only root can connect as another user")
        os.chmod(daemon.folder, 0o711)
        with user(uid, uid):
            return self.client(daemon)

    def refusal_of(self, daemon, uid):
        """What an extra client of this user is told."""
        with contextlib.closing(self.client_of(daemon, uid)) as extra:
            return " ".join(line.raw.decode() for line in extra.eof())

    def test_a_greedy_user_leaves_sessions_to_others_and_to_the_administrator(self):
        daemon = self.daemon({"limits": {"clients": 40}})
        greedy = [self.client_of(daemon, 64002) for _ in range(38)]
        for c in greedy:
            c.ok("PING")
        self.assertTrue(self.refusal_of(daemon, 64002).startswith("ERR LIMIT peer=38 this peer has as many connections as it may have "))
        other = self.client_of(daemon, 64003)
        self.others_notice_nothing(other, "other")
        self.assertEqual(self.refusal_of(daemon, 64004), "ERR LIMIT clients=40 too many connections; kept for root and the user of the daemon: 1")
        self.client(daemon).ok("LIST sessions")
        self.assertEqual(self.refusal_of(daemon, 0), "ERR LIMIT clients=40 too many connections")
        greedy.pop().close()
        until(lambda: self.refusal_of(daemon, 64002).count("for root"), "one has left", 10)
        other.ok("PING")

    def test_a_daemon_without_descriptors(self):
        """EMFILE: the daemon stops accepting without spinning, serves its sessions, and accepts again once it has descriptors."""
        daemon = self.daemon()
        good = self.client(daemon)
        good.ok("LOCK held")
        used = descriptors_of(daemon.pid)
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (used + 10, used + 10))
        many = [self.client(daemon) for _ in range(40)]
        for c in many:
            c.send("PING")
        daemon.logged(r"descriptor|accept|EMFILE|files")
        for _ in range(20):
            self.others_notice_nothing(good, "other")
        idle = daemon.cpu_seconds()
        good.listen(1)
        self.assertLess(daemon.cpu_seconds() - idle, 0.3, "the daemon spins")
        served = [c for c in many if c.fill(0.01) and c.inbox]
        self.assertTrue(4 <= len(served) <= 12, "%d were served" % len(served))
        lines = len(daemon.log().splitlines())
        self.assertLess(lines, 60, "the daemon floods the log")
        for c in many[:35]:
            c.close()
        for c in many[35:]:
            self.assertEqual(c.reply().kind, "OK")
        good.ok("CHECK held")

    def test_a_daemon_without_descriptors_for_redis(self):
        server = self.redis()
        daemon = self.redis_daemon(server, {"lease": "1s", "max_lease": "2s"})
        good = self.client(daemon)
        good.ok("LOCK held")
        used, (_, hard) = descriptors_of(daemon.pid), resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (used, hard))
        many = [self.client(daemon) for _ in range(10)]
        server.cut_connections()
        good.listen(0.3)
        for c in many:
            c.close()
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (used + 100, hard))
        other = self.client(daemon)
        other.ok("LOCK other wait=9s")

    def limited(self, nofile, tree=None):
        """A daemon that may open so many files. It has not been started."""
        daemon = self.daemon(tree, start=False)
        daemon.argv = ["prlimit", "--nofile=%d" % nofile, "--", *daemon.command()]
        return daemon

    def test_clients_leave_descriptors_to_the_stores(self):
        server = self.redis()
        daemon = self.limited(60, on_redis([server], {"lease": "2s", "max_lease": "2s"})).start().joined()
        allowed = 60 - 32 - 3  # the daemon's own; a link, a subscriber, and a connection that is tried now and then
        daemon.logged(r" warn limits clients=%d limits\.clients=10000 nofile=60 " % allowed)
        good = self.client(daemon)
        good.ok("LOCK held")
        waiting = [self.client(daemon) for _ in range(50)]
        for c in waiting[:allowed - 1]:
            c.ok("PING")
        for c in waiting[allowed - 1:]:
            self.assertEqual([line.raw for line in c.eof()], [b"ERR LIMIT clients=%d too many connections" % allowed])
        server.cut_connections("normal", "pubsub")
        for c in waiting[:10]:
            c.close()
        for _ in range(30):
            self.client(daemon)
        good.ok("LOCK other wait=9s")
        good.ok("CHECK held")
        self.assertNotRegex(daemon.log(), "Too many open files|EMFILE")

    def test_a_reload_looks_at_the_limit_of_descriptors_again(self):
        daemon = self.limited(60).start()
        daemon.logged(r" warn limits clients=28 ")
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (50, 60))
        daemon.send_signal(signal.SIGHUP)
        daemon.logged(r" warn limits clients=18 limits\.clients=10000 nofile=50 ")
        many = [self.client(daemon) for _ in range(19)]
        for c in many[:18]:
            c.ok("PING")
        self.assertEqual([line.raw for line in many[18].eof()], [b"ERR LIMIT clients=18 too many connections"])

    def test_a_daemon_without_descriptors_for_clients_does_not_start(self):
        daemon = self.limited(32)
        with self.assertRaisesRegex(AssertionError, "status 69"):
            daemon.start()
        self.assertRegex(daemon.log(), r" error start nofile=32 least=33 error=\"no descriptor is left for clients: .*LimitNOFILE")

    def test_a_line_that_never_ends_costs_little(self):
        daemon = self.daemon()
        good, endless = self.client(daemon), self.client(daemon)
        good.ok("PING")
        before = daemon.rss_kib()
        for _ in range(640):
            endless.raw(b"x" * 65536)
        self.others_notice_nothing(good, "other")
        self.assertLess(daemon.rss_kib() - before, 1024)
        endless.raw(b"\nPING\n")
        self.assertEqual(endless.reply().code, "TOOLONG")
        self.assertEqual(endless.reply().raw, b"OK")

    @unittest.skipIf(sanitized(), "sanitizers have an allocator of their own")
    def test_memory_of_a_flood_is_not_given_back_at_once(self):
        daemon = self.daemon()
        good = self.client(daemon)
        silent = [self.client(daemon) for _ in range(400)]
        for c in silent:
            c.sock.sendall(b"LOCK " + b"x" * 100000)
        until(lambda: daemon.heap_kib() > 30 * 1024, "the daemon has read the unfinished lines", 10)
        self.others_notice_nothing(good, "other")
        before = daemon.heap_kib()
        for c in reversed(silent):
            c.close()
        until(lambda: good.stats()["sessions"] == 1, "all are gone", 10)
        self.assertGreaterEqual(daemon.heap_kib(), before)

    def test_a_slow_reader_gets_all_its_answers(self):
        daemon = self.daemon()
        c = self.client(daemon)
        c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        c.raw(b"HELP\nPING\n" * 200)
        seen = 0
        while seen < 400:
            seen += c.reply().kind == "OK"

    def test_a_client_that_asks_for_much_at_once_gets_all_answers(self):
        """Short requests may bring megabytes of answers: the daemon does not hang up while the client reads."""
        for request, times in ((b"HELP\n", 5000), (b"STATS all\n", 1000)):
            pump = Pump(self.daemon().addr)
            self.addCleanup(pump.close)
            rows = len(self.client(self.daemon()).ok(request.decode().strip()).rows)
            pump.run(request * times, 1, times * (rows + 1))

    def test_requests_read_ahead_are_answered_as_the_client_reads(self):
        """The requests stand behind a LOCK that waits. When it is granted the daemon executes them all, and their answers do not fit into one buffer."""
        daemon = self.daemon({"limits": {"output": "64k"}}, tcp=True)
        holder = self.client(daemon)
        rows = len(holder.ok("HELP").rows)
        for addr in (daemon.addr, daemon.tcp):
            holder.ok("LOCK a")
            pump = Pump(addr)
            self.addCleanup(pump.close)
            pump.sock.send(b"LOCK a wait=30s\n" + b"HELP\n" * 1000)
            until(lambda: len(holder.roles("a")) == 2, "it waits")
            holder.ok("UNLOCK a")
            before = daemon.rss_kib()
            pump.run(b"UNLOCK a\n", 1, 1000 * (rows + 1) + 2)
            if not sanitized():  # a sanitizer keeps freed memory
                self.assertLess(daemon.rss_kib() - before, 1024)

    def test_two_thousand_connections_in_a_row(self):
        daemon = self.daemon()
        for i in range(2000):
            sock = connect(daemon.addr)
            if i % 3:
                sock.send(b"LOCK flood\n")
            sock.close()
        c = self.client(daemon)
        c.ok("LOCK flood wait=5s")
        until(lambda: c.stats()["sessions"] == 1, "all are gone")
        self.assertLess(descriptors_of(daemon.pid), 40)

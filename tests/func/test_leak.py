# SPDX-License-Identifier: BSD-2-Clause
"""Nothing is left behind, and nobody can take more than his share."""
import os
import re
import resource
import select
import socket
import time
import unittest

from harness import FuncTest, StoreTest, on_each_store
from process import sanitized, until
from wire import Client, connect

PAIRS = 5000 if sanitized() else 100000  # what an instrumented daemon's memory grows by says nothing


def raise_nofile(count):
    """Lets this process, and the daemons that it starts, have that many descriptors; what is possible."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))
            return count
        except (ValueError, PermissionError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            return hard
    if soft != resource.RLIM_INFINITY and soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    return count


class Pump:
    """Pipelined requests at full speed: writes and reads as the socket allows, counts answers."""

    def __init__(self, addr):
        self.sock = connect(addr)
        self.sock.setblocking(False)

    def run(self, data, times, answers):
        """Sends data that many times; returns the answers' lines that are not OK."""
        total, wanted, seen, odd, rest, out = times, times * answers, 0, [], b"", b""
        while seen < wanted:
            poll = select.poll()
            poll.register(self.sock, select.POLLIN | (select.POLLOUT if times or out else 0))
            if not poll.poll(20000):
                raise AssertionError("stuck after %d of %d answers" % (seen, wanted))
            try:
                got = self.sock.recv(1 << 18)
                if not got:
                    raise AssertionError("hung up after %d of %d answers" % (seen, wanted))
                *lines, rest = (rest + got).split(b"\n")
                seen += len(lines)
                odd += [line for line in lines if not line.startswith(b"OK ")][:10]
            except BlockingIOError:
                pass
            if not out and times and total - times < seen // answers + 2000:  # at most 2000 rounds ahead
                batch = min(200, times)
                out, times = data * batch, times - batch
            if out:
                try:
                    out = out[self.sock.send(out):]
                except BlockingIOError:
                    pass
        return odd

    def close(self):
        self.sock.close()


@on_each_store
class Nothing:
    """After the last client has gone: no lock keys, no sessions, no timers, no growth."""
    COST = 20
    CONFIG = {"redis": {"timeout": "5s"}}  # how fast a store answers is not what is asked here

    def stats(self, c):
        return {str(row).split("metric=")[1].split(" ")[0]: int(row["value"]) for row in c.ok("STATS").rows}

    def traces(self, c):
        """What should be as if nobody had ever come; a name is kept for a while at most."""
        stats = self.stats(c)
        return {key: stats[key] for key in ("sessions", "locks_held", "waiters", "debts", "timers") if key in stats}

    def test_nothing_is_left_of_clients_that_came_and_went(self):
        watcher, prefix = self.connect(), self.name()
        until(lambda: watcher.ok("LIST sessions").num("n") == 1, "alone")
        until(lambda: self.traces(watcher).get("debts", 0) == 0, "no debts")
        before = self.traces(watcher)
        clients = [Client(self.d.addr) for _ in range(40)]
        for i, c in enumerate(clients):
            c.ok("LOCK %s-%d" % (prefix, i))
            c.ok("LOCK %s-%d" % (prefix, i))
        for i, c in enumerate(clients):
            c.send(*["@w%d LOCK %s-%d wait=%s" % (k, prefix, (i + k) % 40, ("forever", "60s", "5s")[k % 3]) for k in range(1, 9)])
            c.ok("HELLO 1 name=x heartbeat=60s")
        for i, c in enumerate(clients):
            if i % 4 == 0:
                c.send("QUIT")
            elif i % 4 == 1:
                c.half_close()
            c.close()
        until(lambda: watcher.ok("LIST sessions").num("n") == 1, "the sessions are gone")
        until(lambda: self.traces(watcher) == before, "all traces are gone: %r, now %r" % (before, self.traces(watcher)))
        self.assertEqual(watcher.ok("LIST locks").rows, [])
        if self.r:
            until(lambda: self.r.lock_keys() == [], "the keys are gone: %r" % self.r.lock_keys()[:5])

    def test_no_growth_over_many_pairs(self):
        pump, name = Pump(self.d.addr), self.name()
        self.addCleanup(pump.close)
        request = ("LOCK %s\nUNLOCK %s\n" % (name, name)).encode()
        pairs = PAIRS * 2 // 5 if self.r else PAIRS  # still less than eight bytes for each would be seen
        self.assertEqual(pump.run(request, pairs // 2, 2), [])
        for last in (False, True):
            before = self.d.rss_kib()
            begin = time.monotonic()
            self.assertEqual(pump.run(request, pairs, 2), [])
            seconds = time.monotonic() - begin
            after = self.d.rss_kib()
            self.figure("%d pairs in %.1f s, memory %d -> %d KiB" % (pairs, seconds, before, after))
            if sanitized():
                raise unittest.SkipTest("memory of an instrumented daemon says nothing")
            if after - before <= 256:
                break  # a buffer may grow once, a leak grows each time
            self.assertFalse(last, "memory grows with each round")

    def test_no_growth_over_many_names_and_sessions(self):
        def wave():
            for i in range(30):
                pump = Pump(self.d.addr)
                self.assertEqual(pump.run("".join("LOCK %s-%d-%d\nUNLOCK %s-%d-%d\n" % (name, i, k, name, i, k) for k in range(100)).encode(), 3, 200), [])
                pump.close()
        name = self.name()
        wave()
        wave()
        before = self.d.rss_kib()
        for _ in range(6):
            wave()
        after = self.d.rss_kib()
        watcher = self.connect()
        until(lambda: watcher.ok("LIST locks").num("n") == 0, "no lock is left")
        if sanitized():
            raise unittest.SkipTest("memory of an instrumented daemon says nothing")
        self.figure("memory %d -> %d KiB" % (before, after))
        self.assertLessEqual(after - before, 512)

    def test_no_growth_over_waits_that_are_cancelled(self):
        holder, name, pump = self.connect(), self.name(), Pump(self.d.addr)
        self.addCleanup(pump.close)
        holder.ok("LOCK " + name)
        # Three lines each: the withdrawn wait, the CANCEL, and a bare refusal.
        request = ("@w LOCK %s wait=60s\nCANCEL @w\nLOCK %s\n" % (name, name)).encode()
        pump.run(request, 3000, 3)
        before = self.d.rss_kib()
        pump.run(request, 15000, 3)
        after = self.d.rss_kib()
        self.assertEqual(len(holder.ok("SHOW " + name).rows), 1)
        if sanitized():
            raise unittest.SkipTest("memory of an instrumented daemon says nothing")
        self.assertLessEqual(after - before, 256)


class Greedy(FuncTest):
    """Clients that take without giving."""
    COST = 8

    def others_notice_nothing(self, c, name):
        """A round trip, a lock and its end take no time."""
        begin = time.monotonic()
        c.ok("LOCK %s wait=2s" % name)
        c.ok("UNLOCK " + name)
        c.ok("PING")
        self.assertLess(time.monotonic() - begin, 1.0)

    def test_a_client_that_never_reads_is_hung_up(self):
        daemon = self.daemon({"limits": {"output": "64k"}})
        good, greedy = self.client(daemon), self.client(daemon)
        greedy.ok("LOCK greedy ttl=1s")
        before = daemon.rss_kib()
        greedy.sock.setblocking(False)
        deadline = time.monotonic() + 10
        ended = False
        while not ended:
            self.assertLess(time.monotonic(), deadline, "a client that never reads is hung up or throttled, not served for ever")
            try:
                greedy.sock.send(b"HELP\n" * 100)
            except BlockingIOError:
                ended = not select.select([], [greedy.sock], [], 1.0)[1]  # throttled: nothing more is taken
            except (BrokenPipeError, ConnectionResetError):
                ended = True
                daemon.logged(r"overflow|output|slow|unread")
            self.others_notice_nothing(good, "other")
        self.assertLess(daemon.rss_kib() - before, 8 * 1024)
        self.others_notice_nothing(good, "other")

    def test_pushes_that_nobody_reads_end_the_session(self):
        """One session is told of thousands of losses and reads none; its output is bounded."""
        daemon = self.daemon({"limits": {"output": "64k", "locks": 20000}, "max_lease": "30s"})
        good, deaf = self.client(daemon), Pump(daemon.addr)
        self.addCleanup(deaf.close)
        for i in range(0, 5000, 50):
            lines = "".join("LOCK d%s-%d ttl=3s renew=no\n" % ("x" * 400, i + k) for k in range(50))
            self.assertEqual(deaf.run(lines.encode(), 1, 50), [])
        until(lambda: good.ok("LIST locks prefix=dx limit=1").num("n") == 0, "all are lost", 10)
        self.others_notice_nothing(good, "other")
        until(lambda: good.ok("LIST sessions").num("n") == 1, "the deaf session is ended", 10)

        def told():  # by name, or as one of those that were left out of a flood, which the next line tells
            with Client(daemon.addr) as noisy:
                noisy.send(*["NONSENSE"] * 100)
                noisy.eof()
            return re.search("reason=overflow|left-out lines=", daemon.log())
        until(told, "the log tells it")

    def test_sessions_that_say_nothing(self):
        """20,000 connections, half of them in the middle of a line."""
        wanted = 20000
        possible = min(wanted, raise_nofile(wanted + 500) - 500)
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
        until(lambda: good.ok("LIST sessions limit=1") and self.sessions(good) == possible + 1, "all are sessions", 30)
        self.others_notice_nothing(good, "other")
        grown = daemon.rss_kib() - before
        self.figure("%d silent sessions: %.1f KiB each" % (possible, grown / possible))
        idle = daemon.cpu_seconds()
        good.listen(1)
        self.assertLess(daemon.cpu_seconds() - idle, 0.2, "they cost nothing")
        for s in silent:
            s.close()
        silent.clear()
        until(lambda: self.sessions(good) == 1, "all are gone", 30)
        self.others_notice_nothing(good, "other")
        good.ok("CHECK held")
        self.assertEqual(good.inbox, [])
        if possible < wanted:
            raise unittest.SkipTest("the kernel's limit of %d descriptors allows %d of 20,000 connections; those were tested" % (
                resource.getrlimit(resource.RLIMIT_NOFILE)[1], possible))

    @staticmethod
    def sessions(c):
        return next(int(row["value"]) for row in c.ok("STATS").rows if row["metric"] == "sessions")

    def test_connections_beyond_the_limit_are_told_so(self):
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

    def test_no_descriptors_left(self):
        """EMFILE: accepting pauses without spinning, sessions go on, and it goes on when there are some."""
        daemon = self.daemon()
        good = self.client(daemon)
        good.ok("LOCK held")
        used = len(os.listdir("/proc/%d/fd" % daemon.pid))
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (used + 10, used + 10))
        many = [self.client(daemon) for _ in range(40)]
        for c in many:
            c.send("PING")
        daemon.logged(r"descriptor|accept|EMFILE|files")
        for _ in range(20):
            self.others_notice_nothing(good, "other")
        idle = daemon.cpu_seconds()
        good.listen(1)
        self.assertLess(daemon.cpu_seconds() - idle, 0.3, "it does not spin")
        served = [c for c in many if c.fill(0.01) and c.inbox]
        self.assertTrue(4 <= len(served) <= 12, "%d were served" % len(served))
        lines = len(daemon.log().splitlines())
        self.assertLess(lines, 60, "it does not flood the log")
        for c in many[:35]:
            c.close()
        for c in many[35:]:
            self.assertEqual(c.reply().kind, "OK")
        good.ok("CHECK held")

    def test_no_descriptors_left_for_redis(self):
        server = self.redis()
        daemon = self.redis_daemon(server, {"lease": "1s", "max_lease": "2s"})
        good = self.client(daemon)
        good.ok("LOCK held")
        used, (_, hard) = len(os.listdir("/proc/%d/fd" % daemon.pid)), resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (used, hard))
        many = [self.client(daemon) for _ in range(10)]
        server.cli.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        good.listen(0.3)
        for c in many:
            c.close()
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (used + 100, hard))
        other = self.client(daemon)
        other.ok("LOCK other wait=9s")

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

    def test_a_reader_that_is_merely_slow_gets_all_its_answers(self):
        daemon = self.daemon()
        c = self.client(daemon)
        c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        c.raw(b"HELP\nPING\n" * 200)
        seen = 0
        while seen < 400:
            seen += c.reply().kind == "OK"

    def test_a_client_that_asks_for_much_at_once_and_reads_gets_all(self):
        """A few bytes of requests ask for megabytes of answers: that alone is no reason to hang up."""
        for request in (b"HELP\n", b"STATS\n"):
            pump = Pump(self.daemon().addr)
            self.addCleanup(pump.close)
            rows = len(self.client(self.daemon()).ok(request.decode().strip()).rows)
            pump.run(request * 5000, 1, 5000 * (rows + 1))

    def test_what_was_read_ahead_is_answered_as_it_is_read(self):
        """Behind a lock that waits: all is executed when it is granted, and asks for more than one buffer holds."""
        daemon = self.daemon({"limits": {"output": "64k"}}, tcp=True)
        holder = self.client(daemon)
        rows = len(holder.ok("HELP").rows)
        for addr in (daemon.addr, daemon.tcp):
            holder.ok("LOCK a")
            pump = Pump(addr)
            self.addCleanup(pump.close)
            pump.sock.send(b"LOCK a wait=30s\n" + b"HELP\n" * 1000)
            until(lambda: len(holder.ok("SHOW a").rows) == 2, "it waits")
            holder.ok("UNLOCK a")
            before = daemon.rss_kib()
            pump.run(b"UNLOCK a\n", 1, 1000 * (rows + 1) + 2)
            if not sanitized():  # freed memory is kept there, to be watched
                self.assertLess(daemon.rss_kib() - before, 1024)

    def test_ten_thousand_connections_in_a_row(self):
        daemon = self.daemon()
        for i in range(10000):
            sock = connect(daemon.addr)
            if i % 3:
                sock.send(b"LOCK flood\n")
            sock.close()
        c = self.client(daemon)
        c.ok("LOCK flood wait=5s")
        until(lambda: self.sessions(c) == 1, "all are gone")
        self.assertLess(len(os.listdir("/proc/%d/fd" % daemon.pid)), 40)


class Idle(StoreTest):
    """A daemon without work does none."""
    STORE, COST = "redis", 3

    def test_it_sleeps(self):
        c = self.connect()
        c.ok("LOCK a")
        before = self.d.cpu_seconds()
        c.listen(2)
        self.assertLess(self.d.cpu_seconds() - before, 0.2)


if __name__ == "__main__":
    from harness import main
    main()

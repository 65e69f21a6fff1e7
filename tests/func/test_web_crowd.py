# SPDX-License-Identifier: BSD-2-Clause
"""Clients of the web listener that ask too much, read too little or talk nonsense."""
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time

from process import WAIT, memory_kib, sanitized, until
from web import Events, Web, WebTest, beyond_loopback, drain, push


class Slow(WebTest):
    COST = 14

    def test_a_reader_that_does_not_read_gets_a_gap_and_delays_nobody(self):
        d, web = self.start(Web(os.path.join(self.folder(), "http")))
        client, events = self.client(d), Events(web)
        self.addCleanup(events.close)
        note = "x" * 250
        for _ in range(60):
            client.send(*["LOCK a note=%s\nUNLOCK a" % note] * 100)
            for _ in range(200):
                self.assertEqual(client.reply().kind, "OK")
        self.assertLess(memory_kib(d.pid), 64 << 10)
        kinds, missed = {}, 0
        while "gap" not in kinds:
            kind, data = events.next()
            kinds[kind] = kinds.get(kind, 0) + 1
            missed += data.get("missed", 0)
        self.assertEqual(sum(kinds.values()) - 1 + missed, 12000)

    def test_what_a_client_sends_behind_its_request_is_not_kept(self):
        """Nobody would read it, so it would fill the memory for as long as the stream lasts."""
        d, web = self.start(Web(os.path.join(self.folder(), "http")))
        events = Events(web)
        self.addCleanup(events.close)
        before, sent = memory_kib(d.pid), 0
        events.sock.settimeout(1)
        with contextlib.suppress(OSError):
            while sent < 64 << 20:
                sent += events.sock.send(b"x" * 65536)
        self.assertLess(memory_kib(d.pid) - before, 8 << 10, "KiB after %d bytes" % sent)
        self.client(d).ok("LOCK a")
        events.sock.settimeout(WAIT)
        self.assertEqual(events.next()[0], "granted")

    def test_a_request_that_has_no_end_is_cut_off(self):
        """Whatever its lines are: evhttp itself would read on for as long as it may take."""
        _, web = self.start(Web(os.path.join(self.folder(), "http")))
        chunked = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        for head, more in ((chunked, b"\n"), (chunked, b"0"), (chunked, b"1\r\nx\r\n"), (chunked + b"0\r\n", b"a:\n"), (b"GET / HTTP/1.1\r\n", b"a:\n"),
                           (b"GET / HTTP/1.1\r\na: b\r\n", b" c\n")):
            with web.connect() as sock:
                self.assertLess(push(sock, head, more), 1 << 20, "bytes of %r" % more)
                self.assertRegex(drain(sock), rb"(?s)^HTTP/1\.1 431 .*128 lines and 32 KiB\n$", more)

    def test_a_client_that_ends_its_side_or_pauses_gets_the_whole_answer(self):
        """It has 60 s to read it."""
        d, web = self.start(Web(os.path.join(self.folder(), "http")))
        client = self.client(d)
        for i in range(1000):
            client.ok("LOCK %s-%d note=%s" % ("n" * 400, i, "x" * 250))
        with web.connect() as ended, web.connect() as pausing:
            for sock in (ended, pausing):
                sock.sendall(b"GET /api/v1/snapshot HTTP/1.0\r\nHost: localhost\r\n\r\n")
            ended.shutdown(socket.SHUT_WR)
            for sock, pause in ((ended, 0), (pausing, 6)):
                time.sleep(pause)
                body = drain(sock).partition(b"\r\n\r\n")[2]
                self.assertEqual(len(json.loads(body)["locks"]), 1000, "of %d bytes, after %d s" % (len(body), pause))

    def test_streams_have_a_bound_and_leave(self):
        d, web = self.start()
        other = Web(web.at, source=beyond_loopback(self))
        streams = [Events(web) for _ in range(31)]
        self.assertEqual(web.ask("/api/v1/events").status, 503)  # the last one is left for another peer
        streams.append(Events(other))
        self.assertEqual(other.ask("/api/v1/events").status, 503)
        self.assertEqual(web.ask("/api/v1/snapshot").status, 200)
        for stream in streams:
            stream.close()
        until(lambda: web.ask("/api/v1/snapshot").status == 200 and len(os.listdir("/proc/%d/fd" % d.pid)) < 40, "those who left are forgotten", WAIT)
        Events(web).close()

    def test_clients_that_leave_before_the_end_of_the_answer_leave_nothing(self):
        d, web = self.start()

        def come_and_go(times):
            for _ in range(times):
                for stream in [Events(web) for _ in range(30)]:
                    stream.close()
                until(lambda: len(os.listdir("/proc/%d/fd" % d.pid)) < 35, "those who left are forgotten", WAIT)
            return memory_kib(d.pid)
        before = come_and_go(10)
        after = come_and_go(30)
        if not sanitized():  # a sanitizer keeps freed memory
            self.assertLess(after - before, 500, "KiB for 900 clients")


VISITOR = """
import contextlib, socket, sys, time
while True:
    with contextlib.suppress(OSError), socket.create_connection((sys.argv[1], int(sys.argv[2])), 10) as sock:
        sock.sendall(b"GET %s HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n" % sys.argv[3].encode())
    time.sleep(0.002)
"""


class Crowd(WebTest):
    """Many ask for snapshots of many long names at a time."""
    COST = 10

    def start_with_locks(self, locks):
        d, web = self.start()
        client = self.client(d)
        for i in range(locks):
            client.ok('LOCK "%04d%s"' % (i, 500 * "\\xff"))
        return d, web, client

    def begin(self, web, query="", path="/api/v1/snapshot"):
        sock = web.connect()
        self.addCleanup(sock.close)
        sock.sendall(b"GET %s%s HTTP/1.0\r\nHost: localhost\r\n\r\n" % (path.encode(), query.encode()))
        return sock

    def answer(self, sock):
        head, _, body = drain(sock).partition(b"\r\n\r\n")
        return int(head.split()[1]), body

    def visitor(self, web, path):
        """A process that asks for this path and closes at once, again and again."""
        process = subprocess.Popen([sys.executable, "-c", VISITOR, *map(str, web.at), path])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def beside(self, web, client, path):
        """While others ask for this path and leave: what LOCK and UNLOCK take in the median, and what /livez and /readyz take."""
        visitors, took = [self.visitor(web, path) for _ in range(2)], []
        end = time.monotonic() + 3
        while time.monotonic() < end or len(took) < 9:
            began = time.monotonic()
            client.ok("LOCK a")
            client.ok("UNLOCK a")
            took.append(time.monotonic() - began)
        began = time.monotonic()
        self.assertEqual([web.ask(probe).status for probe in ("/livez", "/readyz")], [200, 200])
        probe = time.monotonic() - began
        for visitor in visitors:
            visitor.kill()
            visitor.wait()
        return sorted(took)[len(took) // 2], probe

    def test_clients_that_ask_and_leave_keep_no_lock_and_no_probe_waiting(self):
        _, web, client = self.start_with_locks(1000)
        lone = []
        for _ in range(5):
            began = time.monotonic()
            answer = web.ask("/api/v1/snapshot")
            lone.append(time.monotonic() - began)
            self.assertGreater(len(answer.json["locks"]), 100)  # the answer has a bound
        lone = sorted(lone)[2]
        usual, _ = self.beside(web, client, "/nothing")
        median, probe = self.beside(web, client, "/api/v1/snapshot")
        self.figure("one snapshot: %.1f ms; LOCK and UNLOCK beside other requests: %.1f ms, beside many of snapshots: %.1f ms, /livez and /readyz: %.1f ms" %
                    (1e3 * lone, 1e3 * usual, 1e3 * median, 1e3 * probe))
        self.assertLess(median, lone + 10 * usual)
        self.assertLess(probe, 10 * lone + 2)

    def test_requests_for_figures_that_come_at_once_share_a_text(self):
        """Each text of its own would keep the locks waiting."""
        d, web = self.start()
        socks = [web.connect() for _ in range(100)]
        until(lambda: len(os.listdir("/proc/%d/fd" % d.pid)) > 100, "all are accepted")
        d.freeze()
        for sock in socks:
            self.addCleanup(sock.close)
            sock.sendall(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
        d.thaw()
        answers = [self.answer(sock) for sock in socks]
        self.assertEqual({status for status, _ in answers}, {200})
        self.assertLess(len({body for _, body in answers}), 50)  # each tells the processor time of its moment

    def test_requests_are_all_answered_up_to_a_bound(self):
        _, web, client = self.start_with_locks(500)
        socks = [self.begin(web, "?limit=%d" % (i + 1)) for i in range(32)]
        late = [self.begin(web, "?limit=%d" % (100 + i)) for i in range(32)]
        self.assertEqual(web.ask("/livez").status, 200)
        client.ok("LOCK a")
        for i, sock in enumerate(socks):
            status, body = self.answer(sock)
            self.assertEqual((status, body.count(b'"kind":"lock"')), (200, i + 1))
        self.assertLessEqual({self.answer(sock)[0] for sock in late}, {200, 503})
        self.assertEqual(web.ask("/api/v1/snapshot").status, 200)

    def test_many_short_requests_of_one_peer_are_all_answered(self):
        _, web = self.start()
        self.assertEqual({self.answer(self.begin(web, path="/livez"))[0] for _ in range(1000)}, {200})

    def test_the_daemon_ends_well_while_snapshots_are_asked_for(self):
        d, web, _ = self.start_with_locks(500)
        web.ask("/livez")
        socks = [self.begin(web, "?limit=%d" % (400 + i)) for i in range(60)]
        d.process.send_signal(signal.SIGTERM)
        d.expect_dead = True
        for sock in socks:
            drain(sock)
        self.assertEqual(d.process.wait(10), 0, d.log())

    def test_streams_that_the_daemon_has_no_time_for_miss_events_and_count_them(self):
        d, web = self.start()
        client, streams = self.client(d), [Events(web) for _ in range(24)]
        note = "x" * 250
        for _ in range(30):
            client.send(*["LOCK a note=%s\nUNLOCK a" % note] * 100)
            for _ in range(200):
                self.assertEqual(client.reply().kind, "OK")
        if not sanitized():
            self.assertLess(memory_kib(d.pid), 64 << 10)
        for stream in streams:
            self.addCleanup(stream.close)
            seen = 0
            while seen < 6000:
                kind, data = stream.next()
                seen += data["missed"] if kind == "gap" else 1
            self.assertEqual(seen, 6000)


class Nonsense(WebTest):
    COST = 8

    def test_garbage_harms_nobody(self):
        d, web = self.start()
        seed = random.randrange(10 ** 9)
        chance = random.Random(seed)
        client = self.client(d)
        client.ok("LOCK a")
        heads = [head + b"\r\n" for head in (
            b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"GET /api/v1/snapshot?prefix=%41&limit=5 HTTP/1.1\r\nHost: localhost\r\n",
            b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n", b"GET http://[::1]:7/%zz?a=%1 HTTP/1.1\r\nHost: a\r\n", b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n",
            b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n", b"CONNECT a:1 HTTP/1.1\r\n",
            b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n")]
        for _ in range(500):
            data = bytearray(chance.choice(heads) * chance.choice((1, 1, 2)))
            for _ in range(chance.choice((0, 1, 3, 10))):
                data[chance.randrange(len(data))] = chance.randrange(256)
            with contextlib.suppress(OSError), web.connect(0.2) as sock:
                sock.sendall(bytes(data[:chance.choice((len(data), chance.randrange(len(data))))]))
                if chance.random() < 0.3:
                    sock.recv(chance.choice((1, 65536)))
        self.assertTrue(d.alive(), "seed %d" % seed)
        until(lambda: web.ask("/livez").status == 200, "it answers, seed %d" % seed)
        client.ok("UNLOCK a")

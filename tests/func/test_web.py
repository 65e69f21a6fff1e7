# SPDX-License-Identifier: BSD-2-Clause
"""The web listener: health, what is refused, how many may connect, and its end. See test_web_*.py as well."""
import os
import select
import signal
import socket
import time

from process import LATE, WAIT, private, until
from web import Events, Metrics, Web, WebTest, beyond_loopback, drain, free_web


class Asking(WebTest):
    COST = 10

    def test_health(self):
        d, web = self.start()
        d.joined()
        answer = web.ask("/livez")
        self.assertEqual((answer.status, answer.body), (200, b"ok\n"))
        answer = web.ask("/readyz")
        self.assertEqual((answer.status, answer.body), (200, b"memory joined\n"))
        for path in ("/livez", "/readyz", "/metrics", "/", "/api/v1/snapshot", "/api/v1/events"):
            answer = web.ask(path, "HEAD")
            self.assertEqual((answer.status, answer.body), (200, b""), path)
            self.assertIn("default-src 'none'", answer["Content-Security-Policy"])

    def test_readyz_names_each_store(self):
        d, web = self.start(tree={"store": "redis", "redis": {"nodes": ["red1=127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"]}})
        answer = web.ask("/readyz")
        self.assertEqual(answer.status, 503)
        self.assertEqual(answer.text, "red1 down unreached\n127.0.0.1:2 down unreached\n127.0.0.1:3 down unreached\n")
        self.assertEqual(web.ask("/livez").status, 200)
        self.assertTrue(d.alive())

    def test_clients_are_counted_by_transport(self):
        d, web = self.start(tcp=True)
        self.client(d).ok("PING")
        for _ in range(2):
            self.client(d, tcp=True).ok("PING")
        gone = self.client(d)
        gone.ok("PING")
        gone.close()
        until(lambda: Metrics(web.ask("/metrics").text).value("redlockd_clients", transport="unix") == 1, "the client is gone")
        now = Metrics(web.ask("/metrics").text)
        self.assertEqual([now.value("redlockd_clients", transport=over) for over in ("unix", "tcp", "tls")], [1, 2, 0])
        self.assertEqual([now.value("redlockd_connections_total", transport=over) for over in ("unix", "tcp", "tls")], [2, 2, 0])
        self.assertEqual(now.value("redlockd_connections_refused_total"), 0)

    def test_a_configuration_with_a_mistake_is_told_until_it_is_mended(self):
        d, web = self.start()

        def reloaded():
            now = Metrics(web.ask("/metrics").text)
            return now.value("redlockd_config_last_reload_successful"), now.value("redlockd_config_last_reload_success_timestamp_seconds")

        def reload(config):
            d.config, before = config, d.config
            d.write_config()
            d.reload()
            return before
        successful, start = reloaded()
        self.assertEqual(successful, 1)
        self.assertLess(abs(start - time.time()), 600)
        good = reload("lease: never\n")
        self.assertEqual(reloaded()[0], 0)
        self.assertAlmostEqual(reloaded()[1], start, delta=1)
        reload(good)
        self.assertEqual(reloaded()[0], 1)
        self.assertGreater(reloaded()[1], start)

    def test_errors_of_a_redis_are_counted(self):
        server, web = self.redis(), free_web()
        self.redis_daemon(server, {"listen": {"http": web.listen}})

        def errors(kind):
            return Metrics(web.ask("/metrics").text).value("redlockd_redis_errors_total", kind=kind)
        self.assertEqual((errors("broken"), errors("attempt")), (0, 0))
        server.stop()
        until(lambda: errors("attempt") > 0, "an attempt fails")
        self.assertEqual(errors("broken"), 1)

    def test_what_is_refused(self):
        _, web = self.start()
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            answer = web.ask("/metrics", method, body="x" if method != "OPTIONS" else None)
            self.assertEqual((answer.status, answer["Allow"]), (405, "GET, HEAD"), method)
        for request in (b"OPTIONS *", b"DELETE /nothing", b"FOO /livez", b"CONNECT localhost:1"):
            self.assertRegex(web.raw(request + b" HTTP/1.1\r\nHost: localhost\r\n\r\n").split(b"\r\n")[0], b"^HTTP/1.1 (405|501) ", request)
        for path in ("/nothing", "/livez/", "/api/v1", "/%2e", "//"):
            self.assertEqual(web.ask(path).status, 404, path)
        for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "[::1", "localhost:x", "a:b:c", ""):
            self.assertEqual(web.ask("/", host=host).status, 421, host)
        for host in ("localhost", "LOCALHOST:80", "127.0.0.1", "127.0.0.1:%d" % web.at[1], "[::1]", "10.0.0.1", "localhost."):
            self.assertEqual(web.ask("/", host=host).status, 200, host)
        self.assertIn(b" 421 ", web.raw(b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n").split(b"\r\n")[0])
        self.assertIn(b" 400 ", web.raw(b"GET / HTTP/1.1\r\n\r\n").split(b"\r\n")[0])
        self.assertIn(b" 400 ", web.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nHost : evil.example\r\n\r\n").split(b"\r\n")[0])
        self.assertIn(b" 400 ", web.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nX\t: y\r\n\r\n").split(b"\r\n")[0])
        self.assertIn(b" 400 ", web.raw(b"GET http://localhost/livez HTTP/1.1\r\n\r\n").split(b"\r\n")[0])
        self.assertIn(b" 200 ", web.raw(b"GET / HTTP/1.0\r\n\r\n").split(b"\r\n")[0])
        for version in (b"-1.1", b"0.9", b"2.0", b"1.-1", b"3.0"):
            self.assertRegex(web.raw(b"GET / HTTP/%s\r\nHost: localhost\r\n\r\n" % version).split(b"\r\n")[0], b"^$|^HTTP/1.[01] (400|505) ", version)
        self.assertIn(b" 400 ", web.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n").split(b"\r\n")[0])
        self.assertRegex(web.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n" % (b"x" * 9000)).split(b"\r\n")[0] + b" 400 ", b" (400|431) ")
        for path in ("/api/v1/snapshot?limit=x", "/api/v1/snapshot?limit=10001", "/api/v1/snapshot?prefix=%zz", "/api/v1/events?prefix=" + 600 * "x"):
            self.assertEqual(web.ask(path).status, 400, path)
        self.assertEqual(web.ask("/livez").status, 200)

    def test_a_slow_head_is_closed_in_5_s_and_harms_nobody(self):
        d, web = self.start()
        begin, slow = time.monotonic(), [web.connect(20) for _ in range(100)]
        for sock in slow:
            sock.sendall(b"GET / HT")
        client = self.client(d)
        while time.monotonic() - begin < 4:  # a byte now and then does not prolong it
            slow[0].sendall(b"x")
            begun = time.monotonic()
            client.ok("LOCK a wait=5s")
            client.ok("UNLOCK a")
            self.assertEqual(web.ask("/livez").status, 200)
            self.assertLess(time.monotonic() - begun, LATE)
            time.sleep(0.5)
        for sock in slow:
            drain(sock)
            sock.close()
        took = time.monotonic() - begin
        self.assertTrue(4.5 < took < 9, "%.1f s" % took)

    def test_more_connections_than_are_accepted_leave_the_others_alone(self):
        d, web = self.start()
        held = [web.connect() for _ in range(400)]
        client = self.client(d)
        client.ok("LOCK a")
        self.assertLess(len(os.listdir("/proc/%d/fd" % d.pid)), 300)
        for sock in held:
            sock.close()
        until(lambda: web.ask("/livez").status == 200, "it answers again")

    def test_one_peer_cannot_take_all_connections(self):
        _, web = self.start()
        kept = [web.connect() for _ in range(128)]

        def answered():
            return select.select(kept, [], [], 0)[0]
        until(lambda: len(answered()) == 7, "the first ones make room, as their requests have not come")
        refused = answered()
        self.assertEqual(refused, kept[:7])
        self.assertRegex(drain(refused[0]), rb"(?s)^HTTP/1\.1 503 .*\r\n\r\ntoo many connections of this peer\n$")
        other = Web(web.at, source=beyond_loopback(self))
        self.assertEqual([other.ask("/livez").status for _ in range(20)], [200] * 20)
        self.assertEqual(answered(), refused)  # none of the others
        self.assertEqual([web.ask("/livez").status for _ in range(3)], [200] * 3)
        self.assertEqual(answered(), kept[:len(answered())])

    def test_clients_that_do_not_read_their_answers_keep_no_probe_of_their_peer_waiting(self):
        d, web = self.start()
        slow = []

        def many():
            while slow:
                slow.pop().close()
            slow.extend(self.reads_nothing(web) for _ in range(125))
            for sock in slow:
                select.select([sock], [], [], WAIT)  # the answer has begun
            return len(os.listdir("/proc/%d/fd" % d.pid)) > 80
        until(many, "their connections are open; on a busy machine the first are closed before the last has come", 60)
        self.assertEqual([web.ask("/livez").status for _ in range(20)], [200] * 20)
        self.assertIn(b"\nredlockd_", drain(slow[-1]))  # the youngest goes on

    def reads_nothing(self, web):
        """A client so far away that the kernel takes no whole answer for it."""
        sock = socket.socket()
        self.addCleanup(sock.close)
        sock.settimeout(WAIT)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 100)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        sock.connect(web.at)
        sock.sendall(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
        return sock

    def test_a_unix_socket(self):
        path = os.path.join(self.folder(), "http")
        d, web = self.start(Web(path))
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o666)
        self.assertEqual(web.ask("/livez").status, 200)
        self.assertEqual(web.ask("/api/v1/snapshot").json["locks"], [])
        self.assertEqual(web.ask("/", host="evil.example").status, 421)
        d.stop()
        self.assertFalse(os.path.exists(path))

    def test_beyond_loopback_only_with_a_token(self):
        port = free_web().at[1]
        self.refused({"listen": {"http": "0.0.0.0:%d" % port}}, "error: other hosts may reach 0.0.0.0:%d: set http.token_file" % port, 78)
        token = os.path.join(self.folder(), "token")
        with open(token, "w", opener=private):
            pass
        tree = {"listen": {"http": "0.0.0.0:%d" % port}, "http": {"token_file": token, "hosts": ["locks.example", "other.example"]}}
        self.refused(tree, "it holds no secret", 78)
        with open(token, "w") as out:
            out.write("s3cret\n")
        d, web = self.start(Web(("127.0.0.1", port)), tree)
        for path in ("/", "/metrics", "/api/v1/snapshot", "/api/v1/events", "/nothing"):
            for headers in ({}, {"Authorization": "Bearer s3cre"}, {"Authorization": "Bearer s3crett"}, {"Authorization": "Basic s3cret"}):
                answer = web.ask(path, headers=headers)
                self.assertEqual((answer.status, answer["WWW-Authenticate"]), (401, 'Bearer realm="redlockd"'), (path, headers))
        bearer = {"Authorization": "Bearer s3cret"}
        for path in ("/", "/metrics", "/api/v1/snapshot"):
            self.assertEqual(web.ask(path, headers=bearer).status, 200)
        for path in ("/livez", "/readyz"):
            self.assertEqual(web.ask(path).status, 200)
        for host, status in (("10.1.2.3", 200), ("[2001:db8::1]:80", 200), ("OTHER.example", 200), ("db3", 421)):
            self.assertEqual(web.ask("/", headers=bearer, host=host).status, status, host)
        self.assertNotIn("s3cret", d.log())

    def test_sigterm_ends_streams_and_the_daemon_within_a_second(self):
        d, web = self.start()
        events, chunked = Events(web), web.connect()
        chunked.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertIn(b"text/event-stream", chunked.recv(4096))
        begin = time.monotonic()
        d.process.send_signal(signal.SIGTERM)
        self.assertTrue(events.ended())
        self.assertTrue(drain(chunked).endswith(b"0\r\n\r\n"), "the stream ends as HTTP has it")
        d.expect_dead = True
        self.assertEqual(d.process.wait(10), 0)
        self.assertLess(time.monotonic() - begin, 1 + LATE)

    def test_no_web_listener_by_default(self):
        d = self.daemon()
        self.assertIn("http=no", d.log())

# SPDX-License-Identifier: BSD-2-Clause
"""Who may ask at the web listener, and what a reload changes: groups, the token, methods, readers of large answers."""
import contextlib
import os
import socket
import time

from guard import GuardTest, user
from process import memory_kib, private, sanitized, until
from web import Events, Web, drain, free_web


class Peers(GuardTest):
    def ask_as(self, web, path, uid, gid, groups=()):
        with user(uid, gid, groups):
            sock = web.connect()
        with contextlib.closing(sock):
            sock.sendall(b"GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n" % path.encode())
            return b"".join(iter(lambda: sock.recv(65536), b"")).decode()

    def guarded_by_group(self):
        """Group 4711 may look at ops/*, and 4712 at everything. Returns the page on a Unix socket, and a client that may lock."""
        if os.geteuid() != 0:
            self.skipTest("only root can be another user")
        folder = self.folder()
        os.chmod(folder, 0o755)
        web = Web(os.path.join(folder, "web"))
        daemon = self.guarded('rules:\n  - {group: 4711, names: "ops/*", allow: [look]}\n  - {group: 4712, allow: [look]}\n  - {uid: 0, allow: [lock]}\n',
                              {"listen": {"http": web.listen}})
        return web, self.client(daemon)

    def test_rules_by_group_hold_for_a_peer_of_the_unix_socket(self):
        web, client = self.guarded_by_group()
        client.ok("LOCK ops/1")
        client.ok("LOCK other/1")

        def found(uid, gid, groups=()):
            answers = [self.ask_as(web, path, uid, gid, groups) for path in ("/", "/metrics", "/api/v1/snapshot", "/api/v1/events?prefix=z") if
                       path != "/api/v1/events?prefix=z" or not (gid in (4711, 4712) or groups)]
            return [int(answer.split()[1]) for answer in answers], ["ops/1" in answers[2], "other/1" in answers[2]]
        self.assertEqual(found(1234, 1, (5, 4711)), ([200, 403, 200], [True, False]))
        self.assertEqual(found(1234, 4711), ([200, 403, 200], [True, False]))
        self.assertEqual(found(1234, 1, (4712,)), ([200, 200, 200], [True, True]))
        self.assertEqual(found(1234, 1), ([403, 403, 403, 403], [False, False]))
        with user(1234, 1, (4711,)):
            events = Events(web)
        self.addCleanup(events.close)
        client.ok("UNLOCK other/1")
        client.ok("UNLOCK ops/1")
        self.assertEqual(events.next()[1]["name"], "ops/1")

    def test_peers_with_other_rights_share_no_snapshot(self):
        web, client = self.guarded_by_group()
        for i in range(300):
            client.ok("LOCK ops/%d" % i)
            client.ok("LOCK other/%d" % i)
        asked = []
        for _ in range(8):
            for groups, sees in (((4711,), (300, 0)), ((4712,), (300, 300)), ((5,), (0, 0))):
                with user(1234, 1, groups):
                    sock = web.connect()
                self.addCleanup(sock.close)
                sock.sendall(b"GET /api/v1/snapshot HTTP/1.0\r\nHost: localhost\r\n\r\n")
                asked.append((sock, sees))
        for sock, sees in asked:
            answer = drain(sock)
            self.assertEqual((answer.count(b'"name":"ops/'), answer.count(b'"name":"other/')), sees)


class Reloaded(GuardTest):
    def test_the_token_is_read_again(self):
        web, token = free_web(), os.path.join(self.folder(), "token")

        def write(text):
            with open(token, "w", opener=private) as out:
                out.write(text)
        write("t0ken-one\n")
        daemon = self.guarded("http: {token_file: %s}\n" % token, {"listen": {"http": web.listen}})

        def status(text):
            return web.ask("/api/v1/snapshot", headers={"Authorization": "Bearer " + text}).status
        sock = web.connect()
        self.addCleanup(sock.close)
        sock.sendall(b"GET /api/v1/events HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer t0ken-one\r\n\r\n")
        self.assertIn(b" 200 ", sock.recv(4096))
        daemon.reload()
        sock.settimeout(0.3)
        with contextlib.suppress(TimeoutError), contextlib.closing(sock.makefile("rb")) as stream:  # the same token: the stream goes on
            while stream.readline():
                pass
            self.fail("the stream has ended")
        write("t0ken-two\n")
        daemon.reload()
        self.assertEqual((status("t0ken-one"), status("t0ken-two")), (401, 200))
        sock.settimeout(10)
        while sock.recv(4096):
            pass
        write("")
        daemon.reload()
        daemon.logged(r"holds no secret")
        self.assertEqual((status(""), status("t0ken-two")), (401, 200))
        self.assertNotRegex(daemon.log(), "t0ken")

    def test_the_token_of_the_metrics_opens_them_alone_whatever_the_rules_say(self):
        web, folder = free_web(), self.folder()
        token, metrics = os.path.join(folder, "token"), os.path.join(folder, "metrics-token")

        def write(path, text):
            with open(path, "w", opener=private) as out:
                out.write(text)

        def status(path, text=None):
            return web.ask(path, headers={"Authorization": "Bearer " + text} if text else {}).status
        write(token, "t0ken\n")
        write(metrics, "figures\n")
        daemon = self.guarded("http: {token_file: %s, metrics_token_file: %s}\nrules: [{uid: root, allow: [lock, look, admin]}]\n" % (token, metrics),
                              {"listen": {"http": web.listen}})
        self.assertEqual([status("/metrics", text) for text in ("figures", "t0ken", "figure", None)], [200, 403, 401, 401])
        self.assertEqual([status(path, "figures") for path in ("/", "/api/v1/snapshot", "/api/v1/events", "/metrics/", "/nothing")], [401] * 5)
        write(metrics, "others\n")
        daemon.reload()
        self.assertEqual([status("/metrics", text) for text in ("figures", "others")], [401, 200])
        daemon.config = daemon.config.replace(", metrics_token_file: " + metrics, "")
        daemon.write_config()
        daemon.reload()
        self.assertEqual([status("/metrics", text) for text in ("others", "t0ken")], [401, 403])
        self.assertNotRegex(daemon.log(), "t0ken|figures|others")

    def test_streams_that_a_new_token_has_ended_keep_no_place(self):
        """What their clients do not read of them is an answer as others."""
        folder = self.folder()
        web, token = Web(os.path.join(folder, "web")), os.path.join(folder, "token")

        def write(text):
            with open(token, "w", opener=private) as out:
                out.write(text)

        def stream(text):
            sock = web.connect()
            self.addCleanup(sock.close)
            sock.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n" % text)
            return int(sock.recv(4096).split()[1])
        write("one\n")
        daemon = self.guarded("http: {token_file: %s}\n" % token, {"listen": {"http": web.listen}})
        self.assertEqual([stream(b"one") for _ in range(32)], 31 * [200] + [503])  # one is left for another peer
        client, note = self.client(daemon), "x" * 250
        for _ in range(20):
            client.send(*["LOCK a note=%s\nUNLOCK a" % note] * 50)
            for _ in range(100):
                self.assertEqual(client.reply().kind, "OK")
        write("two\n")
        daemon.reload()
        self.assertEqual({stream(b"two") for _ in range(31)}, {200})

    def test_what_protects_an_address_does_not_vanish_without_a_restart(self):
        """What takes its place in the file, rules or an address of loopback, needs a restart itself."""
        port, token = free_web().at[1], os.path.join(self.folder(), "token")
        with open(token, "w", opener=private) as out:
            out.write("t\n")
        tree = {"listen": {"tcp": "0.0.0.0:0", "http": "0.0.0.0:%d" % port}}
        daemon = self.guarded("http: {token_file: %s}\n" % token, tree, users={"ann": "a"})
        web = Web(("127.0.0.1", port))
        self.assertEqual(web.ask("/metrics").status, 401)
        daemon.config = daemon.config.partition("auth:")[0] + "rules: [{allow: [lock]}]\n"
        daemon.config = daemon.config.replace("0.0.0.0:%d" % port, "127.0.0.1:%d" % port)
        daemon.write_config()
        daemon.reload()
        daemon.logged(r"reload key=auth\.users_file .*effect=restart")
        daemon.logged(r"reload key=http\.token_file .*effect=restart")
        self.assertEqual(web.ask("/metrics").status, 401)
        self.client(daemon).ok("AUTH ann a")


class Asking(GuardTest):
    def test_each_other_method_is_refused_with_those_that_are_not(self):
        web = free_web()
        self.guarded("", {"listen": {"http": web.listen}})
        for method in (b"PROPFIND", b"FOO", b"get", b"TRACE", b"CONNECT", b"M-SEARCH", b"X" * 200):
            head, _, _ = web.raw(method + b" /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").partition(b"\r\n\r\n")
            self.assertRegex(head, rb"^HTTP/1.1 405 .*(?s:.*)\r\nAllow: GET, HEAD(\r\n|$)", method)

    def test_who_may_not_look_is_in_no_figure(self):
        web = free_web()
        daemon = self.guarded("rules:\n  - {uid: 0, allow: [look]}\n", {"listen": {"http": web.listen}})
        for path in ("/", "/metrics", "/api/v1/snapshot", "/api/v1/events"):
            self.assertEqual(web.ask(path).status, 403, path)
        self.assertEqual(self.client(daemon).stats()["denied_total"], 0)


class Large(GuardTest):
    COST = 12

    def test_large_answers_that_nobody_reads_fill_no_memory(self):
        web = Web(os.path.join(self.folder(), "web"))
        daemon = self.guarded("limits: {locks: 10000}\n", {"listen": {"http": web.listen}})
        client = self.client(daemon)
        for i in range(20):
            client.send(*['LOCK "%s-%d-%03d" note=%s' % ("n" * 300, i, k, "x" * 250) for k in range(100)])
            for _ in range(100):
                self.assertEqual(client.reply().kind, "OK")
        whole = len(web.ask("/api/v1/snapshot?limit=2000").body)
        before, socks, most = memory_kib(daemon.pid), [], 0
        for _ in range(100):
            sock = web.connect()
            self.addCleanup(sock.close)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.sendall(b"GET /api/v1/snapshot?limit=2000 HTTP/1.0\r\nHost: localhost\r\n\r\n")
            socks.append(sock)
        for _ in range(50):
            most = max(most, memory_kib(daemon.pid) - before)
            time.sleep(0.1)
        self.figure("100 snapshots of %d KiB that nobody reads: %d KiB more" % (whole >> 10, most))
        if not sanitized():  # a sanitizer keeps freed memory
            self.assertLess(most, 100 << 10, "KiB; all of them would have %d" % (100 * whole >> 10))
        for sock in socks:
            sock.close()

        def is_whole():
            with contextlib.suppress(OSError):  # those that are made for nobody come first
                return len(web.ask("/api/v1/snapshot?limit=2000").body) > whole * 0.9
            return False
        until(is_whole, "answers are whole again", 60)

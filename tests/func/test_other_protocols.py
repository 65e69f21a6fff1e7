# SPDX-License-Identifier: BSD-2-Clause
"""What a browser, or a program of another protocol, sends to the port of the line protocol: it is answered once, and nothing of it is carried out."""
import random
import socket
import ssl
import threading
import unittest

from chromium import PROGRAM, Chromium
from harness import FuncTest, StoreTest
from process import until
from wire import LINE_MOST, connect

PLAIN = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "OPTIONS", "PROPFIND"]
FIELDS = b"Host: 127.0.0.1\r\nConnection: keep-alive\r\nContent-Length: 100\r\nOrigin: https://evil.example\r\nContent-Type: text/plain\r\n\r\n"
HELLO = b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + bytes(range(11, 43)) + b"\x20" + bytes(range(100, 132)) + b"\x00\x02\x13\x01\x01\x00"
PROXY_2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c" + bytes(12)
GREETINGS = [HELLO, b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", b"*1\r\n$4\r\nPING\r\n", b"$4\r\nPING\r\n", b"PROXY TCP4 10.0.0.1 10.0.0.2 40000 7420\r\n", PROXY_2,
             b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"CLIENT libcurl 7.88.1\r\n", b"\x00\x03\x00\x08\x21\x12\xa4\x42abcdefghij\nLOCK x\n", FIELDS]


def answer_to(addr, data):
    """All that comes until the daemon closes. A reset counts as the end."""
    with connect(addr) as sock:
        out = b""
        try:
            sock.sendall(data)
            while True:
                got = sock.recv(65536)
                if not got:
                    return out
                out += got
        except (ConnectionResetError, BrokenPipeError):
            return out


class OtherProtocols(StoreTest):
    TCP, COST = True, 3

    def setUp(self):
        super().setUp()
        self.mark = "mark-%d" % random.randrange(10 ** 9)
        self.orders = b"LOCK %s\nDEFER %s page\nRATE %s limit=1 per=1h\nACQUIRE %s-s limit=1\n" % ((self.mark.encode(),) * 4)

    def nothing(self):
        observer = self.connect()
        for what in ("locks", "queues"):
            self.assertEqual(observer.ok("LIST %s prefix=%s" % (what, self.mark)).rows, [], what)
        observer.close()

    def once(self, data, first=b""):
        """The stream is answered once, and closed; the orders behind it are not carried out."""
        out = answer_to(self.d.tcp, first + data + b"\n" + self.orders)
        answers = [line for line in out.split(b"\n") if line.startswith((b"OK", b"ERR", b"BUSY", b"HTTP/"))]
        self.assertEqual(len(answers), first.count(b"\n") + 1, (data[:60], out))
        self.nothing()
        return out

    def test_a_request_line_of_any_method_however_long(self):
        for method in PLAIN + ["post", "Get", "BREW"]:
            for blank in (" ", "\t", "  "):
                out = self.once(("%s%s/ HTTP/1.1\r\n" % (method, blank)).encode() + FIELDS)
                self.assertTrue(out.startswith(b"HTTP/1.1 400 "), (method, out))
            out = self.once(("%s /%s HTTP/1.1\r\n" % (method, "a" * LINE_MOST)).encode() + FIELDS)
            self.assertTrue(out.startswith(b"HTTP/1.1 400 " if method != "BREW" else b"ERR TOOLONG "), (method, out))

    def test_a_method_that_is_a_verb(self):
        for method in ("DEFER", "LOCKALL", "LOCKANY", "DROP", "AUTH", "RESUME"):
            out = self.once(("%s /%s HTTP/1.1\r\n" % (method, self.mark)).encode() + FIELDS)
            self.assertTrue(out.startswith(b"HTTP/1.1 400 "), (method, out))
            self.assertEqual([row for row in self.connect().ok("LIST queues").rows if self.mark in row["queue"]], [], method)

    def test_after_a_request(self):
        for data in (b"POST / HTTP/1.1\r\n" + FIELDS, b"BREW /" + b"a" * LINE_MOST + b" HTTP/1.1\r\n" + FIELDS, *GREETINGS[:8], FIELDS):
            if data.startswith((b"BREW", PROXY_2, b"CLIENT")):
                continue  # an error, and the fields after it end the connection; or no greeting that is known
            self.once(data, b"PING\n")

    def test_a_field_after_an_unknown_long_line(self):
        out = answer_to(self.d.tcp, b"PING\nBREW /" + b"a" * LINE_MOST + b" HTTP/1.1\r\n" + FIELDS + self.orders)
        self.assertEqual([line.split(b" ")[0:2] for line in out.splitlines()], [[b"OK"], [b"ERR", b"TOOLONG"], [b"ERR", b"SYNTAX"]])
        self.nothing()

    def test_greetings(self):
        for data in GREETINGS:
            self.once(data)

    def test_the_greeting_of_tls_is_answered_at_once(self):
        context = ssl.create_default_context()
        with connect(self.d.tcp) as sock, self.assertRaises(ssl.SSLError):
            context.wrap_socket(sock, server_hostname="localhost")

    def test_a_person_who_mistypes_the_first_line_is_told_what_is_right(self):
        with connect(self.d.tcp) as sock:
            sock.sendall(b"# hello\n\nlcok a\n")
            out = b"".join(iter(lambda: sock.recv(4096), b""))
        self.assertRegex(out, rb"^ERR UNKNOWN .*did you mean LOCK.*first line .* must be a request.*\n$")
        c = self.connect(tcp=True)
        c.err("LOCK", "ARG")
        c.err("lcok a", "UNKNOWN")
        c.ok("PING")
        c = self.connect()
        c.err("lcok a", "UNKNOWN")
        c.err("Host: x", "UNKNOWN")
        c.ok("PING")


class Site:
    """A web page of somebody else, on another port of this host."""

    def __init__(self):
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.pages = {}
        threading.Thread(target=self.serve, daemon=True).start()

    def url(self, path):
        return "http://127.0.0.1:%d%s" % (self.listening.getsockname()[1], path)

    def serve(self):
        while True:
            try:
                end, _ = self.listening.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(end,), daemon=True).start()

    def answer(self, end):
        with end:
            end.settimeout(10)
            try:
                path = end.recv(65536).split(b" ")[1].decode()
                page = self.pages.get(path, "").encode()
                end.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(page), page))
            except (OSError, IndexError):
                return

    def close(self):
        self.listening.close()


@unittest.skipUnless(PROGRAM, "no browser is installed (Debian package chromium)")
class Browser(FuncTest):
    COST = 20
    BODY = "LOCK page-lock\nDEFER page-queue 'touch /x'\n"

    def setUp(self):
        super().setUp()
        self.d = self.daemon(tcp=True)
        self.target = "http://127.0.0.1:%d" % self.d.tcp[1]
        self.site = Site()
        self.addCleanup(self.site.close)
        self.page = Chromium()
        self.addCleanup(self.page.close)
        self.observer = self.client(self.d)

    def reached(self, at_least):
        """The browser has sent something to the port: the daemon has ended so many connections for it, and carried nothing out."""
        until(lambda: self.d.log().count("reason=http") >= at_least, "the browser has reached the port")
        self.assertEqual(self.observer.ok("LIST locks").rows, [])
        self.assertEqual(self.observer.ok("LIST queues").rows, [])

    def test_fetch(self):
        self.site.pages["/"] = "<p>hello"
        self.page.go(self.site.url("/"))
        self.page.until("document.body?.innerText === 'hello'", "the page is shown")
        for i, path in enumerate(("/", "/" + "a" * LINE_MOST)):
            self.page.run("fetch(%r, {method: 'POST', mode: 'no-cors', body: %r}).then(() => 1, () => 0)" % (self.target + path, self.BODY))
            self.reached(i + 1)

    def test_a_form(self):
        for i, kind in enumerate(("text/plain", "multipart/form-data", "application/x-www-form-urlencoded")):
            self.site.pages["/%d" % i] = (
                "<form id=f method=post enctype='%s'><textarea name='# x'>\n\n%s</textarea></form><script>f.action = '%s/' + 'a'.repeat(%d); f.submit()</script>"
                % (kind, self.BODY, self.target, LINE_MOST))
            self.page.go(self.site.url("/%d" % i))
            self.reached(i + 1)

    def test_a_websocket(self):
        self.site.pages["/"] = "<p>hello"
        self.page.go(self.site.url("/"))
        self.page.until("document.body?.innerText === 'hello'", "the page is shown")
        target = self.target.replace("http", "ws") + "/" + "a" * LINE_MOST
        self.page.run("new Promise(done => { let w = new WebSocket(%r); w.onopen = w.onerror = done })" % target)
        self.reached(1)

# SPDX-License-Identifier: BSD-2-Clause
"""The line protocol inside TLS: listen.tls, and what it must withstand."""
import contextlib
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time

from authority import Authority, TlsClient
from harness import FuncTest
from process import LATE, REDLOCKD, WAIT, call, free_port, merged, private, reap, sanitized, spawn, until
from resumable import resume_fences, with_grace


class TlsTest(FuncTest):
    """One authority for all tests of a class."""

    @classmethod
    def setUpClass(cls):
        cls.ca = Authority()
        cls.addClassCleanup(cls.ca.remove)
        cls.server = cls.ca.sign("/CN=localhost")

    def secure_daemon(self, tree=None, pair=None, **options):
        self.address = ("127.0.0.1", free_port())
        cert, key = pair or self.server
        return self.daemon(merged({"listen": {"tls": "%s:%d" % self.address}, "tls": {"cert_file": cert, "key_file": key}}, tree), **options)

    def secure_client(self, name=None, context=None):
        client = TlsClient(self.address, context or self.ca.client_context(), name)
        self.addCleanup(client.close)
        return client

    def refused_shake(self, context):
        """The daemon ends this handshake, or the first read after it."""
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            TlsClient(self.address, context).ok("PING")


class Protocol(TlsTest):
    def test_openssl_s_client_speaks_it(self):
        self.secure_daemon()
        client = spawn(["openssl", "s_client", "-quiet", "-verify_return_error", "-CAfile", self.ca.cert, "-verify_hostname", "localhost", "-connect",
                        "%s:%d" % self.address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(reap, client)
        client.stdin.write(b"LOCK orders/42 wait=5s\n")
        client.stdin.flush()
        self.assertRegex(client.stdout.readline(), rb"^OK name=orders/42 fence=[0-9]+ valid_ms=[0-9]+ ttl_ms=10000 count=1\n$")
        client.stdin.write(b"UNLOCK orders/42\nQUIT\n")
        client.stdin.flush()
        self.assertEqual(client.stdout.readline(), b"OK name=orders/42 count=0\n")
        self.assertEqual(client.stdout.read(), b"OK\n")

    def test_plain_and_secure_sessions_exclude_each_other(self):
        daemon = self.secure_daemon()
        holder, waiter = self.client(daemon), self.secure_client("waiter")
        holder.ok("LOCK a")
        waiter.begin("@w LOCK a wait=20s")
        row = next(line for line in holder.ok("SHOW a").rows if line["role"] == "waiter")
        self.assertTrue(row["peer"].startswith("127.0.0.1:"), row)
        holder.ok("UNLOCK a")
        self.assertEqual(waiter.reply("@w").kind, "OK")

    def test_many_lines_and_long_answers(self):
        """Answers of far more than one record, to lines that come in pieces and in heaps."""
        self.secure_daemon()
        client = self.secure_client()
        for i in range(500):
            client.ok("LOCK %s/%d" % ("n" * 400, i))
        self.assertEqual(len(client.ok("LIST locks limit=500").rows), 500)
        heap = b"".join(b"PING\n" for _ in range(20000))
        for at in range(0, len(heap), 7001):
            client.raw(heap[at:at + 7001])
        for _ in range(20000):
            self.assertEqual(client.reply().kind, "OK")

    def test_versions_and_renegotiation(self):
        self.secure_daemon()
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = self.ca.client_context()
            context.minimum_version = context.maximum_version = version
            client = self.secure_client(context=context)
            client.ok("PING")
            self.assertIsNone(client.sock.compression())
            self.assertFalse(client.sock.session_reused)
        old = self.ca.client_context()
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
        old.set_ciphers("ALL:@SECLEVEL=0")
        self.refused_shake(old)
        weak = self.ca.client_context()
        weak.maximum_version = ssl.TLSVersion.TLSv1_2
        weak.set_ciphers("AES128-SHA:AES128-GCM-SHA256")
        self.refused_shake(weak)
        talk = spawn(["openssl", "s_client", "-tls1_2", "-CAfile", self.ca.cert, "-connect", "%s:%d" % self.address], stdin=subprocess.PIPE,
                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(reap, talk)
        talk.stdin.write(b"R\n")
        talk.stdin.flush()
        self.assertIn(b"no renegotiation", talk.stdout.read())

    def test_garbage_and_plain_text_end_the_handshake(self):
        daemon = self.secure_daemon()
        for talk in (b"LOCK a\n", b"GET / HTTP/1.0\r\n\r\n", b"\x16\x03\x01\x40\x00" + b"\xff" * 200, b"\x00" * 5000):
            with socket.create_connection(self.address, WAIT) as sock:
                sock.sendall(talk)
                with self.assertRaises((ConnectionError, StopIteration)):
                    while sock.recv(4096):
                        pass
                    raise StopIteration
        daemon.logged(r"tls-handshake peer=127\.0\.0\.1:\d+ error=")
        self.secure_client().ok("PING")


class Ends(TlsTest):
    """A session that ends frees its locks as over TCP."""

    def test_an_end_frees_the_locks(self):
        daemon = self.secure_daemon()
        rival = self.client(daemon)
        for number, end in enumerate((lambda c: c.sock.unwrap().close(), lambda c: c.cut(), lambda c: c.send("QUIT"))):
            holder, name = self.secure_client(), "end/%d" % number
            holder.ok("LOCK " + name)
            rival.begin("@r LOCK %s wait=20s" % name)
            begin = time.monotonic()
            end(holder)
            self.assertEqual(rival.reply("@r").kind, "OK")
            self.assertLess(time.monotonic() - begin, LATE)

    def test_kill_of_a_client(self):
        daemon = self.secure_daemon()
        client = spawn(["openssl", "s_client", "-quiet", "-CAfile", self.ca.cert, "-connect", "%s:%d" % self.address], stdin=subprocess.PIPE,
                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(reap, client)
        client.stdin.write(b"LOCK a\n")
        client.stdin.flush()
        self.assertTrue(client.stdout.readline().startswith(b"OK "))
        rival = self.client(daemon)
        rival.begin("@r LOCK a wait=20s")
        begin = time.monotonic()
        client.kill()
        self.assertEqual(rival.reply("@r").kind, "OK")
        self.assertLess(time.monotonic() - begin, LATE)

    def test_the_daemon_says_goodbye(self):
        """QUIT, too many mistakes and SIGTERM end with close_notify: a client knows that nothing was cut off."""
        daemon = self.secure_daemon({"limits": {"mistakes": 3}})
        quitter, fool, last = self.secure_client(), self.secure_client(), self.secure_client()
        last.ok("LOCK a")
        quitter.send("QUIT")
        fool.send("X", "X", "X")
        quitter.eof(1)
        fool.eof(1)
        daemon.finish()
        last.eof(1)
        for client in (quitter, fool, last):
            self.assertTrue(client.ended)

    def test_a_slow_reader_is_cut_off(self):
        daemon = self.secure_daemon({"limits": {"output": "64k"}})
        slow, other = self.secure_client(), self.secure_client()
        slow.ok("WATCH \"\"")
        slow.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)

        def noise():
            other.send(*["LOCK n%d note=%s" % (i, "x" * 200) for i in range(50)], *["UNLOCK n%d" % i for i in range(50)])
            for _ in range(100):
                other.reply()
            return re.search("overflow|reason=keepalive" if sanitized() else "overflow", daemon.log())  # a sanitized one is slow to fill the buffers
        until(noise, "the slow reader is cut off", 100)

    def test_resume_after_a_restart(self):
        daemon = self.secure_daemon()
        client = self.secure_client()
        ticket = with_grace(client)
        fence = client.ok("LOCK a").num("fence")
        daemon.finish()
        daemon.start()
        again = self.secure_client()
        self.assertEqual(resume_fences(again, ticket), {"a": fence})
        self.assertEqual(again.ok("CHECK a").num("fence"), fence)


class HalfOpen(TlsTest):
    """Handshakes that are never finished harm nobody."""
    COST = 12

    def open_half(self, count, hello=b""):
        sockets = []
        for _ in range(count):
            sock = socket.create_connection(self.address, WAIT)
            self.addCleanup(sock.close)
            sock.sendall(hello)
            sockets.append(sock)
        return sockets

    @staticmethod
    def client_hello():
        """The first bytes of a true handshake: the daemon answers with its certificate and a signature."""
        into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            ssl._create_unverified_context().wrap_bio(into, out, server_hostname="localhost").do_handshake()
        except ssl.SSLWantReadError:
            return out.read()

    def worst_round_trip(self, client, seconds):
        worst, end = 0.0, time.monotonic() + seconds
        while time.monotonic() < end:
            begin = time.monotonic()
            client.ok("PING")
            worst = max(worst, time.monotonic() - begin)
        return worst

    def test_500_half_open_handshakes_harm_nobody(self):
        daemon = self.secure_daemon()
        plain, secure = self.client(daemon), self.secure_client()
        secure.ok("LOCK kept")
        silent, begin = self.open_half(250), time.monotonic()
        asked = self.open_half(250, self.client_hello())
        worst = max(self.worst_round_trip(plain, 0.5), self.worst_round_trip(secure, 0.5))
        self.figure("500 half-open handshakes: worst PING %.1f ms" % (worst * 1000))
        self.secure_client().ok("LOCK new")
        for sock in silent + asked:
            sock.settimeout(5 + LATE)
            with contextlib.suppress(ConnectionResetError):  # the end of one whose last bytes were not read
                while sock.recv(4096):
                    pass
        took = time.monotonic() - begin
        self.assertTrue(4.5 < took < 5 + LATE, "handshakes were given up after %.1f s" % took)
        self.assertIn("not done in 5 s", daemon.log())
        secure.ok("CHECK kept")
        self.assertLess(len([line for line in daemon.log().splitlines() if "tls-handshake" in line]), 15)

    def test_a_handshake_byte_by_byte(self):
        """One that goes on for ever is given up as well, and one that is slow but done in time is not."""
        self.secure_daemon()
        hello = self.client_hello()
        slow = self.open_half(1)[0]
        begin = time.monotonic()
        with self.assertRaises((ConnectionError, StopIteration)):
            for byte in hello:
                slow.sendall(bytes([byte]))
                slow.settimeout(0.2)
                try:
                    if not slow.recv(4096):
                        raise StopIteration
                except TimeoutError:
                    pass
        self.assertTrue(4.5 < time.monotonic() - begin < 5 + LATE)
        late = self.open_half(1)[0]
        time.sleep(2)
        late.settimeout(WAIT)
        with self.ca.client_context().wrap_socket(late, server_hostname="localhost") as sock:
            sock.sendall(b"PING\n")
            self.assertEqual(sock.recv(100), b"OK\n")

    def test_more_than_there_may_be(self):
        """The oldest make room, so a client that shakes hands at once gets in."""
        daemon = self.secure_daemon()
        self.open_half(1100)
        self.secure_client().ok("PING")
        daemon.logged(r"too many")

    def test_a_flood_of_key_updates(self):
        """A peer that demands new keys again and again delays nobody."""
        daemon = self.secure_daemon()
        client = spawn(["openssl", "s_client", "-tls1_3", "-CAfile", self.ca.cert, "-connect", "%s:%d" % self.address], stdin=subprocess.PIPE,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(reap, client)
        client.stdin.write(b"K\n" * 3000)
        client.stdin.flush()
        self.assertLess(self.worst_round_trip(self.client(daemon), 1), LATE)


class Files(TlsTest):
    """Certificate, key and authorities: what is wrong is told with its place, and a reload that fails changes nothing."""

    def complaint(self, **over):
        """What --check-config says of these files; a start must say the same."""
        cert, key = self.server
        files = merged({"cert_file": cert, "key_file": key}, over)
        path = os.path.join(self.folder(), "c.yaml")
        with open(path, "w") as out:
            out.write("listen:\n  unix: no\n  tcp: no\n  tls: 127.0.0.1:%d\ntls:\n" % free_port() +
                      "".join("  %s: %s\n" % (name, file) for name, file in files.items() if file))
        checked = call(REDLOCKD, "--config", path, "--check-config")
        started = call(REDLOCKD, "--config", path, "--set", "runtime_dir=" + os.path.dirname(path))
        self.assertEqual((checked[0], started[0]), (78, 78), checked)
        self.assertEqual(checked[2], started[2])
        return checked[2].replace(path, "c.yaml")

    def test_what_is_wrong_is_told(self):
        cert, key = self.server
        folder = self.folder()
        text, empty, cut, locked = (os.path.join(folder, name) for name in ("text", "empty", "cut", "locked.key"))
        for path, content in ((text, "hello\n"), (empty, ""), (cut, open(cert).read()[:300])):
            with open(path, "w") as out:
                out.write(content)
        call("openssl", "ec", "-in", key, "-aes256", "-passout", "pass:secret", "-out", locked)
        other, no_key = self.ca.sign("/CN=other"), os.path.join(folder, "no.key")
        with open(no_key, "w", opener=private) as out:
            out.write("hello\n")
        for over, place, why in (
                ({"cert_file": None}, "c.yaml:4:8", "listen.tls needs tls.cert_file, as in cert_file: server.pem"),
                ({"key_file": None}, "c.yaml:4:8", "listen.tls needs tls.key_file, as in key_file: server.key"),
                ({"cert_file": "/nonexistent/a.pem"}, "c.yaml:6:14", "/nonexistent/a.pem: cannot be read: No such file or directory"),
                ({"key_file": folder}, "c.yaml:7:13", folder + ": cannot be read: Is a directory"),
                ({"cert_file": text}, "c.yaml:6:14", text + ": it holds no certificate in PEM"),
                ({"cert_file": empty}, "c.yaml:6:14", empty + ": it holds no certificate in PEM"),
                ({"cert_file": cut}, "c.yaml:6:14", cut + ": it holds no certificate in PEM"),
                ({"key_file": no_key}, "c.yaml:7:13", no_key + ": it holds no private key in PEM"),
                ({"key_file": locked}, "c.yaml:7:13", locked + ": the private key cannot be read: it is damaged, or it has a passphrase"),
                ({"key_file": other[1]}, "c.yaml:7:13", other[1] + ": the key does not belong to the certificate"),
                ({"client_ca_file": text}, "c.yaml:8:19", text + ": it holds no certificate in PEM")):
            complaint = self.complaint(**over)
            self.assertIn("%s: error: %s" % (place, why), complaint)
            self.assertEqual(complaint.count("error:"), 1, complaint)

    def test_a_reload_takes_the_new_certificate_and_leaves_sessions(self):
        folder = self.folder()
        pair = tuple(os.path.join(folder, name) for name in ("c.pem", "c.key"))

        def install(made):
            for source, target in zip(made, pair):
                shutil.copy(source, target)

        def shown(context):
            return self.secure_client(context=context).sock.getpeercert()["serialNumber"]
        context = self.ca.client_context()
        install(self.server)
        daemon = self.secure_daemon(pair=pair)
        client, first = self.secure_client(), shown(context)
        client.ok("LOCK a")
        install(self.ca.sign("/CN=renewed"))
        mark = daemon.log_size()
        daemon.send_signal(signal.SIGHUP)
        daemon.logged(r"certificate file=.*c\.pem ends=", mark)
        self.assertEqual(self.client(daemon).stats()["config_last_reload_successful"], 1)
        second = shown(context)
        self.assertNotEqual(first, second)
        client.ok("CHECK a")
        shutil.copy(self.server[1], pair[1])
        mark = daemon.log_size()
        daemon.send_signal(signal.SIGHUP)
        daemon.logged(r'error tls file=.*c\.key error="the key does not belong to the certificate"', mark)
        self.assertEqual(shown(context), second, "a bad file has replaced a good one")
        client.ok("CHECK a")
        self.assertEqual(self.client(daemon).stats()["config_last_reload_successful"], 0, "a restart would fail, and nothing shows it")

    def test_the_end_of_a_certificate_is_told_ahead(self):
        daemon = self.secure_daemon(pair=self.ca.sign("/CN=soon", days=5))
        daemon.logged(r"warn certificate file=\S+ ends=20\S+Z days=[45] note=\"it, or an authority in the file, ends then")
        self.assertTrue(4 * 86400 < self.secure_client().stats()["certificate_expires_seconds"] <= 5 * 86400)
        status, out, _ = self.call_redlock(daemon, "doctor")
        self.assertEqual(status, 0)
        self.assertRegex(out, "warn .*a certificate .* ends in [45] days; fix: ")

    def test_a_certificate_that_has_ended_is_told_by_figure_and_doctor(self):
        daemon = self.secure_daemon(pair=self.ca.sign("/CN=late", days=-1))
        self.assertLess(self.client(daemon).stats()["certificate_expires_seconds"], 0)
        status, out, _ = self.call_redlock(daemon, "doctor")
        self.assertEqual(status, 1)
        self.assertRegex(out, "fail .*a certificate .* has ended; fix: ")

    def test_the_check_of_a_configuration_warns_of_the_end_of_a_certificate(self):
        tls = {"listen": {"tls": "127.0.0.1:%d" % free_port()}}
        for days, warning in ((30, None), (5, "it, or an authority in the file, ends in [45] days; "), (-1, "it, or an authority in the file, has ended: ")):
            cert, key = self.ca.sign("/CN=soon", days=days)
            daemon = self.daemon(merged(tls, {"tls": {"cert_file": cert, "key_file": key}}), start=False)
            daemon.write_config()
            status, _, told = call(REDLOCKD, "--config", os.path.join(daemon.folder, "redlockd.yaml"), "--check-config")
            self.assertEqual(status, 0)
            if warning:
                self.assertRegex(told, r": warning: %s: %s" % (re.escape(cert), warning))
            else:
                self.assertEqual(told, "")

    def test_a_chain_is_shown(self):
        """The authority of the client is the root only: the certificate in between comes from tls.cert_file."""
        between = self.ca.sign_authority("/CN=between")
        cert, key = between.sign("/CN=localhost")
        chain = os.path.join(self.folder(), "chain.pem")
        with open(chain, "w") as out:
            out.write(open(cert).read() + open(between.cert).read())
        self.addCleanup(between.remove)
        self.secure_daemon(pair=(chain, key))
        self.secure_client().ok("PING")


class ClientCertificates(TlsTest):
    def test_a_client_must_show_a_certificate_of_the_authority(self):
        clients, strangers = Authority("clients"), Authority("strangers")
        self.addCleanup(clients.remove)
        self.addCleanup(strangers.remove)
        daemon = self.secure_daemon({"tls": {"client_ca_file": clients.cert}})
        self.refused_shake(self.ca.client_context())
        self.refused_shake(self.ca.client_context(strangers.sign("/CN=db3")))
        daemon.logged(r"tls-handshake .*certificate")
        one = self.secure_client("one", self.ca.client_context(clients.sign("/O=Shop & Söhne/CN=db3")))
        rows = {row.fields.get("name"): row.fields for row in self.client(daemon).ok("LIST sessions").rows}
        self.assertEqual(rows["one"]["cert"], "CN=db3,O=Shop & Söhne")
        self.assertTrue(rows["one"]["peer"].startswith("127.0.0.1:"))
        self.assertEqual([row for row in rows.values() if "cert" in row], [rows["one"]])
        one.ok("LOCK a")

    def test_a_chain_may_be_usual_and_no_longer(self):
        """All that a client shows is decoded before it is known to be a stranger."""
        clients = Authority("clients")
        between = clients.sign_authority("/CN=between")
        below = between.sign_authority("/CN=below")
        for authority in (clients, between, below):
            self.addCleanup(authority.remove)
        daemon = self.secure_daemon({"tls": {"client_ca_file": clients.cert}})
        leaf, key = below.sign("/CN=db3")
        above = [below.cert, between.cert]
        for count, usual in ((20, False), (1, True)):
            chain = os.path.join(self.folder(), "chain.pem")
            with open(chain, "w") as out:
                out.write("".join(open(path).read() for path in [leaf] + above * count))
            context = self.ca.client_context((chain, key))
            if usual:
                self.secure_client(context=context).ok("PING")
            else:
                self.refused_shake(context)
                daemon.logged(r'tls-handshake peer=\S+ error="more than 8192 bytes of certificates"')

    def test_the_subject_follows_the_connection_of_a_resumed_session(self):
        clients = Authority("clients")
        self.addCleanup(clients.remove)
        daemon = self.secure_daemon({"tls": {"client_ca_file": clients.cert}})
        first = self.secure_client("one", self.ca.client_context(clients.sign("/CN=first")))
        ticket = with_grace(first, more="name=one")
        first.ok("LOCK a")
        first.cut()
        second = self.secure_client("one", self.ca.client_context(clients.sign("/CN=second")))
        resume_fences(second, ticket)
        rows = self.client(daemon).ok("LIST sessions").rows
        self.assertEqual([row["cert"] for row in rows if "cert" in row], ["CN=second"])

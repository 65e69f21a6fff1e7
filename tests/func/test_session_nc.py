# SPDX-License-Identifier: BSD-2-Clause
"""What a person sees in nc, how bytes become requests, and how names are quoted."""
import os
import random
import socket

from harness import StoreTest, on_each_store
from nc import Nc, nc_pipe
from process import until
from wire import LINE_MOST, Client, connect, quoted

FENCE = r"fence=([1-9][0-9]*)"


@on_each_store
class Session:
    """nc(1) over the Unix socket and over TCP. The lease is the default, 10 s."""
    TCP, COST = True, 4

    def nc(self, addr, *options):
        nc = Nc(addr, *options)
        self.addCleanup(nc.close)
        return nc

    def holder_elsewhere(self, name):
        other = self.connect()
        return other, other.ok("LOCK " + name).num("fence")

    def the_session(self, addr):
        other, first = self.holder_elsewhere("orders/43")
        nc = self.nc(addr)
        nc.type("LOCK orders/42 wait=5s")
        granted = nc.see(r"OK name=orders/42 %s valid_ms=([0-9]+) ttl_ms=10000 count=1" % FENCE)
        self.assertLess(int(granted[1]), 2 ** 53)
        self.assertLessEqual(int(granted[2]), 9900, "valid_ms does not allow for drift")
        self.assertGreater(int(granted[2]), 8000)
        nc.type("@a LOCK orders/43 wait=30s")
        nc.type("UNLOCK orders/42")
        nc.see(r"OK name=orders/42 count=0")
        other.ok("UNLOCK orders/43")
        second = nc.see(r"@a OK name=orders/43 %s valid_ms=([0-9]+) ttl_ms=10000 count=1" % FENCE)
        self.assertGreater(int(second[1]), first, "the later grant does not have the larger fence")
        nc.type("LOCK orders/42")
        nc.see(r"OK name=orders/42 %s valid_ms=[0-9]+ ttl_ms=10000 count=1" % FENCE)
        nc.interrupt()
        third = self.connect()
        for name in ("orders/42", "orders/43"):
            third.ok("LOCK %s wait=5s" % name)
            third.ok("UNLOCK " + name)

    def test_the_session_of_the_manual_over_the_unix_socket(self):
        self.the_session(self.d.addr)

    def test_the_session_of_the_manual_over_tcp(self):
        self.the_session(self.d.tcp)

    def half_close(self, addr):
        a, b = self.name(), self.name()
        out = nc_pipe(addr, ("LOCK %s\nCHECK %s\nLOCK %s\n" % (a, a, b)).encode()).decode().splitlines()
        self.assertEqual(len(out), 3, out)
        self.assertRegex(out[0], r"^OK name=%s fence=\d+ .*count=1$" % a)
        self.assertRegex(out[1], r"^OK name=%s fence=\d+ .*count=1$" % a)
        self.assertRegex(out[2], r"^OK name=%s fence=\d+ .*count=1$" % b)
        rival = self.connect()
        for name in (a, b):
            self.assertEqual(rival.ok("LOCK %s wait=5s" % name).num("count"), 1)

    def test_printf_into_nc_N_is_answered_in_full_and_leaves_no_lock(self):
        self.half_close(self.d.addr)

    def test_printf_into_nc_N_over_tcp(self):
        self.half_close(self.d.tcp)

    def waiting_half_close(self, addr):
        name = self.name()
        holder, _ = self.holder_elsewhere(name)
        out = nc_pipe(addr, ("@w LOCK %s wait=60s\nLOCK %s wait=forever\n" % (name, name)).encode()).decode().splitlines()
        self.assertEqual(sorted(line.split(" ")[0] for line in out), ["@w", "ERR"], out)
        for line in out:
            self.assertIn("ERR CANCELLED", line)
        self.assertEqual(holder.roles(name), ["holder"])

    def test_a_half_close_cancels_waiting_requests(self):
        self.waiting_half_close(self.d.addr)

    def test_a_half_close_cancels_waiting_requests_over_tcp(self):
        self.waiting_half_close(self.d.tcp)

    def test_a_half_close_frees_what_the_session_held_at_once(self):
        name = self.name()
        holder, waiter = self.connect(), self.connect()
        holder.ok("LOCK " + name)
        waiter.begin("LOCK %s wait=30s" % name)
        holder.half_close()
        self.assertEqual(waiter.reply(timeout=2).kind, "OK")
        self.assertEqual(holder.eof(), [])

    def test_an_unfinished_last_line_is_not_executed(self):
        name = self.name()
        out = nc_pipe(self.d.addr, ("PING\nLOCK %s" % name).encode())
        self.assertEqual(out.splitlines()[0], b"OK")
        self.assertNotIn(b"fence=", out)

    def test_a_thousand_lines_from_a_file(self):
        names = [self.name() for _ in range(500)]
        out = nc_pipe(self.d.addr, "".join("LOCK %s\nUNLOCK %s\n" % (n, n) for n in names).encode()).decode().splitlines()
        self.assertEqual([line.split()[:2] for line in out], [["OK", "name=" + n] for n in names for _ in range(2)])

    def test_http_on_this_port_is_answered_once_and_closed(self):
        for request in (b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n",
                        b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 14\r\n\r\nLOCK http-body\n"):
            for addr in (self.d.addr, self.d.tcp):
                with connect(addr) as sock:
                    sock.sendall(request)
                    answer = b""
                    while True:
                        data = sock.recv(4096)
                        if not data:
                            break
                        answer += data
                self.assertNotEqual(answer, b"")
                self.assertLessEqual(answer.count(b"ERR "), 1, answer)
                self.assertNotIn(b"OK name=", answer)
        self.assertEqual(self.connect().ok("SHOW http-body").rows, [])

    def test_the_unix_socket_is_open_to_everybody(self):
        self.assertEqual(os.stat(self.d.addr).st_mode & 0o777, 0o666)

    def test_the_mode_and_the_group_of_unix_sockets_are_those_of_the_configuration(self):
        web = os.path.join(self.folder(), "http")
        group = os.getgid() if os.geteuid() else 65534
        d = self.daemon({"listen": {"unix_mode": "0660", "unix_group": str(group), "http": "unix:" + web}})
        for path in (d.addr, web):
            at = os.stat(path)
            self.assertEqual((at.st_mode & 0o777, at.st_gid), (0o660, group), path)
        self.client(d).ok("PING")
        os.unlink(d.addr)
        until(lambda: os.path.exists(d.addr) and os.stat(d.addr).st_mode & 0o777 == 0o660, "the socket is there again, with its mode")
        self.refused({"listen": {"unix_mode": "0660", "unix_group": "no-such-group"}}, "this host has no group 'no-such-group'", 78)
        self.refused({"listen": {"unix_mode": "0777"}}, "listen.unix_mode is 0600, 0660 or 0666, not '0777'", 78)


class Lines(StoreTest):
    """How bytes become requests."""
    COST = 3

    def test_crlf_ends_a_line_as_lf_does(self):
        c = self.connect()
        c.raw(b"PING\r\n\r\nPING\n@a PING\r\n")
        self.assertEqual([c.line().raw for _ in range(3)], [b"OK", b"OK", b"@a OK"])

    def test_empty_lines_and_comments_are_ignored(self):
        c = self.connect()
        c.raw(b"\n\n# LOCK x\n#\n   \nPING\n")
        self.assertEqual(c.line().raw, b"OK")
        c.barrier()
        self.assertEqual(c.inbox, [])

    def test_bytes_may_arrive_one_by_one(self):
        c, name = self.connect(), self.name()
        c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        for byte in ("LOCK %s\r\nUNLOCK %s\n" % (name, name)).encode():
            c.raw(bytes([byte]))
        self.assertEqual([c.reply()["name"], c.reply().num("count")], [name, 0])

    def test_a_line_of_exactly_136_kib_is_read(self):
        c = self.connect()
        c.raw(b"PING" + b" " * (LINE_MOST - 5) + b"\n")
        self.assertEqual(c.reply().raw, b"OK")

    def test_an_overlong_line_is_drained_and_answered_once(self):
        c = self.connect()
        for size in (LINE_MOST + 1, LINE_MOST + 1000, 1 << 18, 1 << 20):
            c.raw(b"A" * (size - 1) + b"\nPING\n")
            self.assertEqual(c.line().code, "TOOLONG", size)
            self.assertEqual(c.line().raw, b"OK", size)

    def test_an_overlong_line_in_pieces_is_one_mistake(self):
        c = self.connect()
        for _ in range(10):
            c.raw(b"x" * (LINE_MOST // 9))
            c.poll.poll(0)
        c.raw(b"\n")
        self.assertEqual(c.line().code, "TOOLONG")
        c.barrier()
        self.assertEqual(c.inbox, [])

    def test_raw_control_bytes_are_a_syntax_error(self):
        c = self.connect()
        for byte in [0, 1, 7, 8, 11, 27, 31]:
            c.send(b"LOCK a" + bytes([byte]) + b"b")
            self.assertEqual(c.reply().code, "SYNTAX", byte)
            c.ok("PING")
        c.send(b"\0\0\0\0")
        self.assertEqual(c.reply().code, "SYNTAX")
        c.ok("PING")

    def test_an_open_quote_or_a_bad_escape_is_a_syntax_error(self):
        c = self.connect()
        for line in ('LOCK "abc', "LOCK 'abc", 'LOCK "a\\xzz"', 'LOCK "a\\x4"', 'LOCK "a\\', 'LOCK a note="open'):
            c.err(line, "SYNTAX")
            c.ok("PING")

    def test_a_mistake_with_a_tag_is_answered_with_the_tag(self):
        c = self.connect()
        for line, code in (('@t LOCK "abc', "SYNTAX"), ("@t NONSENSE", "UNKNOWN"), ("@t LOCK", "ARG")):
            c.err(line, code)

    def test_random_bytes_never_end_the_daemon_nor_stop_the_session(self):
        rng = random.Random(4711)
        for _ in range(100):
            with Client(self.d.addr) as c:
                for _ in range(20):
                    noise = bytes(rng.choice(b"@LOCKUNa \"'\\=x\x00\xff\x80#12.s") for _ in range(rng.randrange(60)))
                    c.send(noise.replace(b"GET ", b"").replace(b"QUIT", b""))
                c.barrier()
        self.connect().ok("PING")


class Names(StoreTest):
    """A name may hold any byte, and a client can send a quoted name back as it was answered."""

    def round_trip(self, c, name):
        granted = c.ok("LOCK " + quoted(name))
        self.assertEqual(granted["name"].encode("utf-8", "surrogateescape"), name)
        c.ok("CHECK " + granted.written["name"])
        self.assertEqual(c.ok("UNLOCK " + granted.written["name"]).num("count"), 0)
        return granted.written["name"]

    def test_names_of_any_bytes(self):
        c, rng = self.connect(), random.Random(7)
        for _ in range(300):
            self.round_trip(c, bytes(rng.randrange(256) for _ in range(rng.choice([1, 2, 3, 8, 40, 512]))))

    def test_every_single_byte_is_a_name(self):
        c = self.connect()
        for byte in range(256):
            self.round_trip(c, bytes([byte]))

    def test_a_name_is_quoted_only_when_it_must_be(self):
        c = self.connect()
        for name in (b"plain", b"orders/42", b"a.b-c_d:e,f;g[h]{i}!", "grün".encode()):
            written = self.round_trip(c, name)
            if name.isascii():
                self.assertEqual(written, name.decode())
        for name in (b"a b", b'a"b', b"a\\b", b"a=b", b"a\x00b", b"a\nb", b"\xff\xfe", b"\x7f"):
            written = self.round_trip(c, name)
            self.assertTrue(written.startswith('"') and written.endswith('"'), written)
            self.assertTrue(all(32 <= byte < 127 for byte in written.encode()), written)

    def test_single_quotes_and_bare_words_name_the_same_lock(self):
        c, rival = self.connect(), self.connect()
        c.ok("LOCK 'a b'")
        self.assertEqual(rival.busy('LOCK "a b"').written["name"], '"a b"')
        c.ok("LOCK plain-name")
        rival.busy("LOCK 'plain-name'")
        rival.busy('LOCK "plain\\x2dname"')

    def test_a_quoted_word_is_never_a_field(self):
        c = self.connect()
        self.assertEqual(c.ok('LOCK "wait=5s"')["name"], "wait=5s")
        c.err("LOCK wait=5s", "ARG")

    def test_the_length_of_a_name_is_1_to_512_bytes(self):
        c = self.connect()
        self.round_trip(c, b"n" * 512)
        c.err("LOCK " + "n" * 513, ("LIMIT", "ARG"))
        c.err('LOCK ""', ("LIMIT", "ARG"))
        c.ok("LOCK " + "n" * 512)

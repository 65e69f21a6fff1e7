# SPDX-License-Identifier: BSD-2-Clause
"""SHOW on three daemons and three servers, of names that another daemon holds, and what redlock makes of it."""
import fcntl
import json
import os
import socket
import struct
import termios
import time

from harness import FuncTest
from process import until
from quorum import QuorumTest


class Everywhere(QuorumTest):
    DAEMONS = 3

    def show(self, daemon, name):
        """SHOW at that daemon: (the row of the holder or None, the last line)."""
        answer = self.client(daemon).ok("SHOW " + name)
        first = [row for row in answer.rows if row["role"] != "waiter"]
        return (first[0] if first else None), answer

    def test_every_daemon_knows_the_holder(self):
        name, holder = self.name(), self.client(self.a)
        holder.ok("LOCK " + name)
        for daemon in self.daemons[1:]:
            row, answer = self.show(daemon, name)
            self.assertEqual((row["role"], row["holder"]), ("holder", "@" + socket.gethostname()[:40]))
            self.assertTrue(0 < row.num("ttl_ms") <= 2000, row)
            self.assertEqual(answer.num("n"), 1)
            self.assertEqual(self.call_redlock(daemon, "show", name)[0], 0)
        holder.ok("UNLOCK %s sync=yes" % name)
        for daemon in self.daemons:
            self.assertEqual(self.show(daemon, name)[1].fields, {"n": "0", "free": "yes"})
            status, _, err = self.call_redlock(daemon, "show", name)
            self.assertEqual((status, err), (1, "redlock: %s is free\n" % name))

    def test_a_terminal_is_told_where_more_is_known_if_the_daemon_there_does_not_answer(self):
        name, holder = self.name(), self.client(self.a)
        holder.ok("LOCK " + name)
        self.a.freeze()
        self.addCleanup(self.a.thaw)
        master, slave = self.terminal()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 200, 0, 0))
        self.start_redlock(self.b, "show", name, stderr=slave)
        os.close(slave)
        host = socket.gethostname()[:40].encode()
        self.assertIn(b"%s does not report the holder: redlock --addr %s:7420 show %s" % (host, host, name.encode()), self.terminal_shows(master, b"\n"))

    def test_every_daemon_knows_since_when_it_is_held_though_nobody_waits(self):
        name, holder = self.name(), self.client(self.a)
        before = time.monotonic()
        holder.ok("LOCK " + name)
        holder.listen(0.3)
        for daemon in self.daemons:
            row, _ = self.show(daemon, name)
            self.assertTrue(250 <= row.num("held_ms") <= (time.monotonic() - before) * 1000 + 50, row)
        self.assertIn("HELD", self.call_redlock(self.b, "show", name)[1])
        busy = self.client(self.b).busy("LOCK " + name)
        self.assertGreaterEqual(busy.num("held_ms"), 250, busy)

    def test_every_daemon_knows_which_daemon_is_the_next(self):
        name, holder, first, second = self.name(), self.client(self.a), self.client(self.daemons[1]), self.client(self.b)
        holder.ok("LOCK " + name)
        second.begin("LOCK %s wait=60s" % name)
        self.queued(name, 1)

        def line(daemon):
            rows = self.client(daemon).ok("SHOW %s all=yes" % name).rows
            return [(row["role"], row["pos"], "@" in row.fields.get("holder", "")) for row in rows]
        self.assertEqual(line(self.a), [("holder", "0", False), ("waiter", "1", True)])
        self.assertEqual(line(self.b), [("holder", "0", True), ("waiter", "1", False)])
        self.assertEqual(line(self.daemons[1]), [("holder", "0", True), ("waiter", "1", True)])
        first.begin("LOCK %s wait=60s priority=1" % name)
        self.queued(name, 2)
        self.assertEqual(line(self.a), [("holder", "0", False), ("waiter", "1", True)])
        self.assertEqual(line(self.daemons[1]), [("holder", "0", True), ("waiter", "1", False)])
        self.assertEqual(line(self.b), [("holder", "0", True), ("waiter", "1", True), ("waiter", "2", False)])
        code, out, _ = self.call_redlock(self.b, "show", name)
        self.assertEqual((code, len(out.splitlines())), (0, 4), out)

    def test_every_daemon_shows_a_kept_name(self):
        name, holder = self.name(), self.client(self.a)
        holder.ok("LOCK " + name)
        holder.ok("UNLOCK %s keep=2s sync=yes" % name)
        row, _ = self.show(self.a, name)
        self.assertEqual(row["role"], "kept")
        self.assertTrue(0 < row.num("ttl_ms") <= 2000, row)
        row, _ = self.show(self.b, name)
        self.assertEqual((row["role"], row["kept_by"][0]), ("kept", "@"))
        self.assertTrue(0 <= row.num("kept_ms") < 2000, row)
        code, out, _ = self.call_redlock(self.a, "show", name)
        self.assertEqual(code, 0)
        self.assertRegex(out, r"^ROLE +POS .*KEPT .*TTL.*\nkept +0 ")
        until(lambda: self.show(self.a, name)[1].fields == {"n": "0", "free": "yes"}, "the name is free again", 5)

    def test_the_key_of_another_program_is_foreign(self):
        name = self.name()
        for server in self.servers:
            server.cli.set("lock:" + name, "0123456789abcdef", px=60000)
        for daemon in self.daemons:
            self.assertEqual(self.show(daemon, name)[0]["holder"], "foreign")

    def start_run(self, name, **options):
        return self.start_redlock(self.b, "run", name, "--", "echo", "done", **options)

    def two_servers_stop(self):
        for server in self.servers[:2]:
            server.kill()
        with self.b.client() as client:
            until(lambda: client.joined() == 1, "the daemon has noticed")

    def test_a_run_that_waits_without_a_quorum_says_so_once(self):
        self.two_servers_stop()
        process = self.start_run(self.name())
        self.assertEqual(process.stderr.readline(), b"redlock: waiting: too few Redis servers answer: 1 of 3, 2 are needed\n")
        for server in self.servers[:2]:
            server.start()  # blank, so that it is quarantined first
        self.assertEqual(process.wait(15), 0)
        self.assertEqual(process.stdout.read(), b"done\n")
        self.assertNotIn(b"too few", process.stderr.read())

    def test_a_run_that_waits_for_long_says_for_whom_once_also_in_a_log(self):
        name, holder = self.name(), self.client(self.b, "the-holder")
        holder.ok("LOCK " + name)
        began, process = time.monotonic(), self.start_run(name)
        self.assertRegex(process.stderr.readline(), rb"^redlock: waiting for %s  00:1\d  1st in line, held by the-holder pid=\d+ uid=\d+ for 1\ds\n$" % name.encode())
        self.assertGreater(time.monotonic() - began, 9.9)
        holder.ok("UNLOCK " + name)
        self.assertEqual(process.wait(15), 0)
        self.assertEqual((process.stdout.read(), process.stderr.read()), (b"done\n", b""))

    def test_a_terminal_shows_that_there_is_no_quorum(self):
        self.two_servers_stop()
        master, slave = self.terminal()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 200, 0, 0))
        self.start_run("tty", stderr=slave)
        os.close(slave)
        self.assertRegex(self.terminal_shows(master, b"needed"), rb"waiting for tty  00:0\d  1st in line, too few Redis servers answer: 1 of 3, 2 are needed")

    def test_without_a_quorum_the_holder_is_said_to_be_unknown(self):
        name, holder = self.name(), self.client(self.a)
        holder.ok("LOCK %s renew=no" % name)
        self.two_servers_stop()
        row, answer = self.show(self.b, name)
        self.assertIsNone(row)
        self.assertEqual(answer.fields, {"n": "0", "known": "no"})
        code, out, err = self.call_redlock(self.b, "show", name)
        self.assertEqual((code, out), (69, ""))
        self.assertRegex(err, "^redlock: it is not known who has ")


class Former(FuncTest):
    def test_who_held_a_lock_before(self):
        daemon = self.daemon()
        c = self.client(daemon, "nightly")
        c.ok("LOCK a")
        time.sleep(0.15)
        c.ok("UNLOCK a")
        status, out, err = self.call_redlock(daemon, "show", "a")
        self.assertEqual((status, err), (1, "redlock: a is free\n"))
        title, row = out.splitlines()
        self.assertEqual([word for word in title.split() if word in ("ROLE", "HOLDER", "HELD", "ENDED", "END")], ["ROLE", "HOLDER", "HELD", "ENDED", "END"])
        self.assertRegex(row, r"^former +1 +nightly pid=\d+ uid=\d+ +\d+m?s +\d+m?s +released ")
        status, out, _ = self.call_redlock(daemon, "show", "--json", "a")
        row = json.loads(out)
        self.assertEqual((status, row["role"], row["end"]), (1, "former", "released"))
        self.assertEqual(c.ok("SHOW a").num("n"), 0)

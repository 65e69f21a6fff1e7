# SPDX-License-Identifier: BSD-2-Clause
"""Truth towards people on three daemons and three servers: SHOW of a name that another daemon holds, and redlock on top of it."""
import fcntl
import os
import pty
import select
import socket
import struct
import subprocess
import termios
import time

from process import REDLOCK, call, spawn, until
from quorum import QuorumTest, joined


class Everywhere(QuorumTest):
    DAEMONS = 3

    def show(self, daemon, name):
        """(the row of who has it or None, the last line) as that daemon tells it."""
        answer = self.client(daemon).ok("SHOW " + name)
        first = [row for row in answer.rows if row["role"] != "waiter"]
        return (first[0] if first else None), answer

    def redlock(self, daemon, *argv):
        return call(REDLOCK, "--addr", daemon.addr, *argv)

    def test_every_daemon_knows_who_has_it(self):
        name, holder = self.name(), self.client(self.a)
        holder.ok("LOCK " + name)
        for daemon in self.daemons[1:]:
            row, answer = self.show(daemon, name)
            self.assertEqual((row["role"], row["holder"]), ("holder", "@" + socket.gethostname()[:40]))
            self.assertTrue(0 < row.num("ttl_ms") <= 2000, row)
            self.assertEqual(answer.num("n"), 1)
            self.assertEqual(self.redlock(daemon, "show", name)[0], 0)
        holder.ok("UNLOCK %s sync=yes" % name)
        for daemon in self.daemons:
            self.assertEqual(self.show(daemon, name)[1].fields, {"n": "0"})
            self.assertEqual(self.redlock(daemon, "show", name), (1, "", "redlock: %s is free\n" % name))

    def test_what_keep_left_is_shown_by_all(self):
        name, holder = self.name(), self.client(self.a)
        holder.ok("LOCK " + name)
        holder.ok("UNLOCK %s keep=2s sync=yes" % name)
        row, _ = self.show(self.a, name)
        self.assertEqual(row["role"], "kept")
        self.assertTrue(0 < row.num("ttl_ms") <= 2000, row)
        self.assertEqual(self.show(self.b, name)[0]["role"], "holder")
        code, out, _ = self.redlock(self.a, "show", name)
        self.assertEqual(code, 0)
        self.assertRegex(out, r"^ROLE +POS +TTL\nkept +0 ")
        until(lambda: self.show(self.a, name)[1].fields == {"n": "0"}, "it is over", 5)

    def test_another_programs_key_is_foreign(self):
        name = self.name()
        for server in self.servers:
            server.cli.set("lock:" + name, "0123456789abcdef", px=60000)
        for daemon in self.daemons:
            self.assertEqual(self.show(daemon, name)[0]["holder"], "foreign")

    def waits(self, name, stderr):
        process = spawn([REDLOCK, "--addr", self.b.addr, "run", name, "--", "echo", "done"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr)

        def end():
            process.kill()
            process.wait()
            process.stdout.close()
        self.addCleanup(end)
        return process

    def two_servers_stop(self):
        for server in self.servers[:2]:
            server.kill()
        with self.b.client() as client:
            until(lambda: joined(client) == 1, "two are gone")

    def test_who_waits_without_a_quorum_says_so_once(self):
        self.two_servers_stop()
        process = self.waits(self.name(), subprocess.PIPE)
        self.addCleanup(process.stderr.close)
        self.assertEqual(process.stderr.readline(), b"redlock: waiting: too few Redis servers answer: 1 of 3, 2 are needed\n")
        for server in self.servers[:2]:
            server.start()  # blank: its quarantine comes first
        self.assertEqual(process.wait(15), 0)
        self.assertEqual((process.stdout.read(), process.stderr.read()), (b"done\n", b""))

    def test_a_terminal_sees_that_there_is_no_quorum(self):
        self.two_servers_stop()
        try:
            master, slave = pty.openpty()
        except OSError as error:
            self.skipTest("no terminal to be had: %s" % error)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 200, 0, 0))
        self.waits("tty", slave)
        os.close(slave)
        self.addCleanup(os.close, master)
        said, deadline = b"", time.monotonic() + 10
        while b"needed" not in said and select.select([master], [], [], max(0, deadline - time.monotonic()))[0]:
            said += os.read(master, 4096)
        self.assertRegex(said, rb"waiting for tty  00:0\d  1st in line, too few Redis servers answer: 1 of 3, 2 are needed")

    def test_what_cannot_be_known_is_said_to_be_unknown(self):
        name, holder = self.name(), self.client(self.a)
        holder.ok("LOCK %s renew=no" % name)
        self.two_servers_stop()
        row, answer = self.show(self.b, name)
        self.assertIsNone(row)
        self.assertEqual(answer.fields, {"n": "0", "known": "no"})
        code, out, err = self.redlock(self.b, "show", name)
        self.assertEqual((code, out), (69, ""))
        self.assertRegex(err, "^redlock: it is not known who has ")

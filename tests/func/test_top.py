# SPDX-License-Identifier: BSD-2-Clause
"""redlock top: once, and on a terminal."""
import fcntl
import os
import re
import struct
import termios
import time

from daemon import on_redis
from harness import FuncTest
from process import REDLOCK, call, until


class Once(FuncTest):
    COST = 3

    def once(self, daemon):
        status, out, err = self.call_redlock(daemon, "top", "--once")
        self.assertEqual((status, err), (0, ""))
        for line in out.splitlines():
            self.assertLessEqual(len(line), 80, line)
        return out

    def test_what_it_shows(self):
        daemon = self.daemon()
        holder, waiters = self.client(daemon, "the-holder"), [self.client(daemon, "waiter-%d" % i) for i in range(7)]
        holder.ok("LOCK calm")
        time.sleep(0.05)
        holder.ok("LOCK wanted")
        holder.ok("ACQUIRE licence limit=3")
        for i, waiter in enumerate(waiters):
            waiter.begin("LOCK wanted wait=60s")
            until(lambda n=i: len(holder.roles("wanted")) == n + 2, "it waits")
        out = self.once(daemon)
        lines = out.splitlines()
        self.assertRegex(lines[0], r"^redlockd/\S+  memory 1/1  sessions \d+  held \d  waiting 7$")
        self.assertRegex(lines[1], r"^memory +joined")
        self.assertEqual(lines[3].split(), ["LOCK", "HOLDER", "HELD", "LEASE", "LEFT", "WAIT"])
        self.assertRegex(lines[4], r"^wanted +the-holder pid=\d+ .* \d+m?s +[#]+\.* +\d+s +7$")
        self.assertEqual([line.split()[0] for line in lines[4:7]], ["wanted", "calm", "licence"])
        self.assertIn("1 of 3 slots", lines[6])
        self.assertEqual(lines[8], "The queue of wanted: 7 wait")
        self.assertEqual([line.split()[:2] for line in lines[9:14]], [[str(i + 1), "waiter-%d" % i] for i in range(5)])
        self.assertEqual(lines[14], "     and 2 more")

    def test_stores_and_no_quorum(self):
        servers = [self.redis() for _ in range(3)]
        daemon = self.daemon(on_redis(servers)).joined()
        servers[0].kill()
        servers[1].kill()
        until(lambda: "NO QUORUM" in self.once(daemon), "top tells it")
        self.assertEqual(len(re.findall(r"\bdown\b", self.once(daemon))), 2)

    def test_names_that_a_terminal_would_obey(self):
        daemon = self.daemon()
        self.client(daemon).ok(r'LOCK "a\x1b[2Jb%s"' % ("grün" * 30))
        out = self.once(daemon)
        self.assertNotIn("\x1b", out)
        self.assertIn(r"a\x1b[2Jbgr", out)

    def test_without_a_terminal_or_a_daemon(self):
        status, out, err = self.call_redlock(self.daemon(), "top")
        self.assertEqual((status, out), (64, ""))
        self.assertIn("--once", err)
        self.assertEqual(call(REDLOCK, "--addr", "/nonexistent/sock", "top", "--once")[0], 69)


class Live(FuncTest):
    COST = 5

    def setUp(self):
        super().setUp()
        self.d = self.daemon()
        self.c = self.client(self.d, "the-holder")
        for name in ("one", "two"):
            self.c.ok("LOCK " + name)
            time.sleep(0.02)

    def top(self):
        master, slave = self.terminal()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.modes = termios.tcgetattr(slave)
        process = self.start_redlock(self.d, "top", stdin=slave, stdout=slave, stderr=slave)
        self.slave = slave
        self.addCleanup(os.close, slave)
        self.assertIn(b"one", self.terminal_shows(master, b"queue of one"))
        return process, master

    def test_keys(self):
        process, master = self.top()
        os.write(master, b"\x1b[B")
        self.assertIn(b"queue of two", self.terminal_shows(master, b"queue of two"))
        os.write(master, b"\x1b[A")
        self.assertIn(b"queue of one", self.terminal_shows(master, b"queue of one"))
        for _ in range(2):  # by age, then by name
            os.write(master, b"\x1b[C")
        os.write(master, b"q")
        seen = self.terminal_shows(master, b"\x1b[?1049l")
        self.assertEqual(process.wait(10), 0)
        self.assertTrue(seen.endswith(b"\x1b[?25h\x1b[?1049l"))
        self.assertEqual(termios.tcgetattr(self.slave), self.modes)

    def test_what_happens_appears(self):
        process, master = self.top()
        self.c.ok("LOCK appears")
        self.assertIn(b"appears", self.terminal_shows(master, b"appears", 5))
        process.terminate()
        self.terminal_shows(master, b"\x1b[?1049l")
        self.assertEqual(process.wait(10), 0)
        self.assertEqual(termios.tcgetattr(self.slave), self.modes)

    def test_a_daemon_that_goes_and_comes(self):
        _, master = self.top()
        self.d.expect_dead = True
        self.d.finish()
        self.assertIn(b"cannot reach", self.terminal_shows(master, b"cannot reach", 5))
        self.d.start()
        self.assertIn(b"held 0", self.terminal_shows(master, b"held 0", 5))

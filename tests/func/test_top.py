# SPDX-License-Identifier: BSD-2-Clause
"""redlock top: once, and on a terminal."""
import fcntl
import os
import re
import signal
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
        until(lambda: self.once(daemon).count("down unreached") == 2, "top tells why")
        servers[2].cli.execute_command("ACL", "SETUSER", "default", "-publish")
        until(lambda: "joined permission" in self.once(daemon), "top tells what a joined store refuses")

    def test_the_first_of_an_order_may_stand_on_any_page(self):
        daemon = self.daemon({"limits": {"locks": 30000}})
        holder, waiter = self.client(daemon), self.client(daemon)
        names = ["n%05d" % i for i in range(21000)]
        for begin in range(0, len(names), 500):
            holder.send(*["LOCK " + name for name in names[begin:begin + 500]])
            for _ in range(500):
                self.assertEqual(holder.reply().kind, "OK")
        for name in ("n15000", "n20999", "n20999"):
            other = waiter if name == "n15000" else self.client(daemon)
            other.begin("LOCK %s wait=60s" % name)
        lines = self.once(daemon).splitlines()
        self.assertEqual([line.split()[0] for line in lines[4:6]], ["n20999", "n15000"])
        self.assertIn("and 20744 more", lines)
        self.assertEqual(len([line for line in lines if line.startswith("n")]), 256)

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

    def test_labels_that_a_terminal_would_obey_are_escaped_once(self):
        daemon = self.daemon()
        self.client(daemon, "h\x1b[31m").ok("LOCK 'a\\b'")
        waiter = self.client(daemon, "w\x07")
        waiter.begin("LOCK 'a\\b' wait=60s")
        out = self.once(daemon)
        for text in (r" h\x1b[31m pid=", r"The queue of a\\b: 1 waits", r"  1  w\x07 "):
            self.assertIn(text, out)


class Live(FuncTest):
    COST = 5

    def setUp(self):
        super().setUp()
        self.d = self.daemon()
        self.c = self.client(self.d, "the-holder")
        for name in ("one", "two"):
            self.c.ok("LOCK " + name)
            time.sleep(0.02)

    def top(self, rows=24, term="xterm"):
        master, slave = self.terminal()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 80, 0, 0))
        process = self.start_redlock(self.d, "top", stdin=slave, stdout=slave, stderr=slave, env=dict(os.environ, TERM=term))
        self.addCleanup(os.close, slave)
        return process, master

    def shown(self):
        process, master = self.top()
        self.assertIn(b"one", self.terminal_shows(master, b"queue of one"))
        return process, master

    def test_what_happens_appears(self):
        process, master = self.shown()
        self.c.ok("LOCK appears")
        self.assertIn(b"appears", self.terminal_shows(master, b"appears", 5))
        process.terminate()
        self.assertEqual(process.wait(10), -signal.SIGTERM)

    def test_a_daemon_that_goes_and_comes(self):
        _, master = self.shown()
        self.d.expect_dead = True
        self.d.finish()
        self.assertIn(b"cannot reach", self.terminal_shows(master, b"cannot reach", 5))
        self.d.start()
        self.assertIn(b"held 0", self.terminal_shows(master, b"held 0", 5))

    def test_figures_of_the_daemon_before_are_not_compared(self):
        for _ in range(200):
            self.c.ok("LOCK more")
            self.c.ok("UNLOCK more")
        _, master = self.shown()
        self.d.restart()
        seen = self.terminal_shows(master, b"held 0", 10) + self.terminal_shows(master, b"grants/s 0", 5)
        self.assertNotIn(b"grants/s -", seen)

    def test_a_daemon_that_stands_still_is_told(self):
        _, master = self.shown()
        self.d.freeze()
        self.assertRegex(self.terminal_shows(master, b"in time", 6), rb"(?s)not answer|in time")
        self.d.thaw()
        self.assertIn(b"held 2", self.terminal_shows(master, b"held 2", 5))

    def test_a_terminal_of_few_lines_shows_the_first_ones(self):
        _, master = self.top(rows=4)
        seen = self.terminal_shows(master, b"memory ")
        seen += self.terminal_shows(master, b"grants/s")
        for drawing in seen.split(b"\x1b[H")[1:]:
            self.assertLess(drawing.count(b"\n"), 4, "the first line was moved out of sight")

    def test_a_terminal_without_a_cursor_is_refused(self):
        for term in ("dumb", ""):
            process, master = self.top(term=term)
            self.assertIn(b"--once", self.terminal_shows(master, b"--once"))
            self.assertEqual(process.wait(10), 64)

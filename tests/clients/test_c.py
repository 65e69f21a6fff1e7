# SPDX-License-Identifier: BSD-2-Clause
"""What is particular to libredlock: its headers for loops of others, and programs in languages that call it as it is."""
import os
import shutil
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "lib")]

from daemon import Daemon  # the path stands above
from process import BUILD, ROOT, spawn, until

OUT = os.path.join(BUILD, "client-c")
EXAMPLES = os.path.join(ROOT, "client", "examples")


class WithDaemon(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon({"lease": "3s", "max_lease": "30s"}).start().joined()
        self.addCleanup(self.daemon.dispose)


class Loops(WithDaemon):
    """tests/clients/loops/scenario.c in each loop; the same story is played to it."""

    def play(self, name):
        program = os.path.join(OUT, "loop-" + name)
        if not os.path.exists(program):
            self.skipTest("build/client-c/loop-%s has not been built" % name)
        holder = self.daemon.client()
        holder.ok("LOCK x")
        process = spawn([program, self.daemon.addr], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

        def hears(*wanted):
            for line in wanted:
                self.assertEqual(process.stdout.readline().strip(), line)
        hears("ticks")
        until(lambda: "waiter" in holder.roles("x"), "it waits")
        holder.ok("UNLOCK x")
        hears("granted")
        self.daemon.restart()
        hears("resumed", "released")
        with self.daemon.client() as other:
            other.ok("LOCK x")
            hears("withdrawn", "has y")
            other.ok("BREAK y")
            hears("lost")
        self.assertEqual(process.wait(10), 0)
        holder.close()

    def test_poll(self):
        self.play("poll")

    def test_libevent(self):
        self.play("libevent")

    def test_libuv(self):
        self.play("libuv")

    def test_glib(self):
        self.play("glib")


class Languages(WithDaemon):
    """Programs of thirty lines, run as they are printed."""

    def run_(self, language, program):
        if not shutil.which(language):
            self.skipTest("no %s is here" % language)
        library = os.path.join(OUT, "libredlock.so.0")
        if not os.path.exists(library):
            self.skipTest("build/client-c/libredlock.so.0 has not been built")
        env = dict(os.environ, REDLOCK_ADDR=self.daemon.addr, REDLOCK_LIBRARY=library)
        argv = [language, os.path.join(EXAMPLES, program), "orders/42"]

        def once():
            return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
        done = once()
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertRegex(done.stdout, r"^fence [0-9]+\nleft some\n$")
        with self.daemon.client("holder") as holder:
            holder.ok("LOCK orders/42")
            done = once()
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("orders/42 was not free within 500ms", done.stdout + done.stderr)
        self.daemon.kill()
        done = once()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("cannot reach redlockd at " + self.daemon.addr, done.stdout + done.stderr)

    def test_php(self):
        self.run_("php", "lock.php")

    def test_ruby(self):
        self.run_("ruby", "lock.rb")


def main():
    """Last line: "N passed, N failed". --short is the same."""
    loader = unittest.defaultTestLoader
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2 if "-v" in sys.argv else 0).run(
        unittest.TestSuite(loader.loadTestsFromTestCase(kind) for kind in (Loops, Languages)))
    bad = len(result.failures) + len(result.errors)
    for test, why in result.skipped:
        print("skipped: %s: %s" % (test.id(), why))
    print("%d passed, %d failed" % (result.testsRun - bad - len(result.skipped), bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

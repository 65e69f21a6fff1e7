# SPDX-License-Identifier: BSD-2-Clause
"""What is particular to libredlock: its headers for loops of others, programs in languages that call it as it is, and mistakes that the cases find."""
import contextlib
import glob
import io
import os
import shutil
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "lib")]

import adapter  # the path stands above
import run
import verdict
from daemon import Daemon
from process import BUILD, ROOT, spawn, until

OUT = os.path.join(BUILD, "client-c")
EXAMPLES = os.path.join(ROOT, "client", "examples")
# A mistake for each rule that the library keeps by itself: the file, what is there, and what is wrong. The others are kept by its caller.
PLANTS = {
    "R1": ("conn.c", "c->answer_sent_us = c->pending.sent_us;", "c->answer_sent_us = redlock_now_us();"),
    "R4": ("lock.c", 'draft_ms(&c->draft, "keep", o.keep_ms);', ";"),
    "R5": ("exchange.c", "return conn_cancel(c);", "return 0;"),
    "R7": ("lock.c", "draft_owner(&c->draft, c->owner);", ""),
    "R8": ("conn.c", "\t\tpushes_add(&c->pushes, push);\n\telse\n", ""),
    "R9": ("recovery.c", 'tracking_end(&c->holds, &c->pending, "evicted");', ""),
    "R9-release": ("holds.c", "return h && h->state == HOLD_HELD ? h->count - 1 : -1;", "return -1;"),
    "R9-group": ("holds.c", "h->unsettled |= h->in_bundle && partly;", ""),
    "R10": ("conn.c", "c->user == getpid() || c->broken", "true || c->broken"),
    "R12": ("exchange.c", "if (r == -ENOMSG && c->spoken)\n\t\treturn 0;", ""),
    "R13": ("exchange.c", "if (redlock_now_us() < answer_due_us(c))", "if (true)"),
    "R13-grace": ("exchange.c", "if (silent)\n\t\tconn_lost(c, -ETIMEDOUT, why);", ""),
    "R14": ("open.c", 'secure_getenv("REDLOCK_USER")', 'secure_getenv("NO_USER")'),
    "R15": ("once.c", "r = redlock_check(c, name, &grant);", "r = 0;"),
    "framing": ("exchange.c", "!span_equal(c->passing.parsed.tag, tag_sent(c))", "false"),
    "drain": ("request.c", 'waits && span_equal(answer->code, SPAN("DRAINING"))', "false"),
}


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
            self.assertRegex(done.stdout + done.stderr, r"orders/42 was not free within \d+ms")
        self.daemon.kill()
        done = once()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("cannot reach redlockd at " + self.daemon.addr, done.stdout + done.stderr)

    def test_php(self):
        self.run_("php", "lock.php")

    def test_ruby(self):
        self.run_("ruby", "lock.rb")


class Planted(unittest.TestCase):
    """A library with a mistake: a case of its rule must fail."""

    def build(self, name, right, wrong):
        """The adapter with this change of the library."""
        with open(os.path.join(ROOT, "client", "lib", name), encoding="utf-8") as text:
            code = text.read()
        self.assertEqual(code.count(right), 1, "%s: %s" % (name, right))
        planted = os.path.join(OUT, "planted.c")
        with open(planted, "w", encoding="utf-8") as out:
            out.write(code.replace(right, wrong))
        rest = [path for part in ("client/lib", "proto", "tls", "tests/clients/adapter_c") for path in glob.glob(os.path.join(BUILD, part, "*.o"))
                if not path.endswith(("client/lib/" + name[:-2] + ".o", "proto/json.o"))]  # the library needs nothing of the latter
        program = os.path.join(OUT, "adapter-planted")
        done = subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-D_GNU_SOURCE", "-g", "-O1", "-I" + ROOT, "-o", program, planted, *rest, "-lssl",
                               "-lcrypto"], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return program

    def test_a_case_finds_each_mistake(self):
        if not os.path.exists(adapter.ADAPTERS["c"][0][-1]):
            self.skipTest("the adapter has not been built")
        self.addCleanup(adapter.ADAPTERS.__setitem__, "c", adapter.ADAPTERS["c"])
        for plant, change in PLANTS.items():
            with self.subTest(plant):
                adapter.ADAPTERS["c"] = [self.build(*change)], {}
                runner, said = run.Runner(False), io.StringIO()
                with contextlib.redirect_stdout(said):
                    runner.run([("c", "", [case]) for case in run.of_rule(run.load(), plant)], 10)
                self.assertTrue(runner.failed, "no case finds it: %s" % said.getvalue())


def main():
    """Last line: "N passed, N failed". --short plants no mistakes."""
    return verdict.run([Loops, Languages] + ([] if "--short" in sys.argv else [Planted]))


if __name__ == "__main__":
    sys.exit(main())

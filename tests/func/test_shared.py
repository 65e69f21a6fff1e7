# SPDX-License-Identifier: BSD-2-Clause
"""LOCK mode=shared: readers of a daemon together, writers alone, one line for both; and redlock run --shared."""
import subprocess

from harness import on_each_store
from quorum import QuorumTest


@on_each_store
class Shared:
    """One daemon."""
    COST, TCP = 8, True

    def readers(self, name, count):
        clients = [self.connect("reader-%d" % i) for i in range(count)]
        fences = [c.ok("LOCK %s mode=shared" % name).num("fence") for c in clients]
        return clients, fences

    def test_readers_hold_it_together_and_a_writer_is_alone(self):
        name, writer = self.name(), self.connect()
        clients, fences = self.readers(name, 5)
        busy = writer.busy("LOCK " + name)
        self.assertEqual((busy["mode"], busy.num("holders")), ("shared", 5))
        for c in clients:
            self.assertEqual(c.ok("CHECK " + name)["mode"], "shared")
            c.ok("UNLOCK " + name)
        granted = writer.ok("LOCK " + name)
        self.assertGreater(granted.num("fence"), max(fences))
        self.assertGreaterEqual(min(b - a for a, b in zip(fences, fences[1:])), 0)
        clients[0].busy("LOCK %s mode=shared" % name)

    def test_a_reader_behind_a_writer_waits_for_its_turn(self):
        name, writer, late = self.name(), self.connect(), self.connect()
        (first,), _ = self.readers(name, 1)
        self.assertEqual(writer.begin("LOCK %s wait=30s" % name), [])
        self.assertEqual(late.begin("LOCK %s mode=shared wait=30s" % name), [])
        first.ok("UNLOCK " + name)
        self.assertEqual(writer.reply().kind, "OK")
        self.assertEqual(late.inbox, [])
        writer.ok("UNLOCK " + name)
        self.assertEqual(late.reply()["mode"], "shared")

    def test_the_lock_of_a_reader_whose_session_drops_is_freed_with_the_last(self):
        name, writer = self.name(), self.connect()
        (one, two), _ = self.readers(name, 2)
        self.assertEqual(writer.begin("LOCK %s wait=30s" % name), [])
        one.close()
        self.assertEqual(two.ok("CHECK " + name).num("count"), 1)
        two.close()
        self.assertEqual(writer.reply().kind, "OK")

    def test_a_hold_is_converted_with_a_larger_fence(self):
        name, other = self.name(), self.connect()
        c = self.connect()
        fence = c.ok("LOCK " + name).num("fence")
        for mode in ("shared", "exclusive", "shared"):
            answer = c.ok("LOCK %s mode=%s wait=5s" % (name, mode))
            self.assertEqual(answer.num("count"), 1)
            self.assertGreater(answer.num("fence"), fence)
            fence = answer.num("fence")
        other.ok("LOCK %s mode=shared" % name)
        c.begin("@u LOCK %s wait=30s" % name)
        self.assertIn("cycle=%s<-%s" % (name, name), other.err("LOCK %s wait=30s" % name, "DEADLOCK").text)
        other.ok("UNLOCK " + name)
        self.assertGreater(c.reply("@u").num("fence"), fence)

    def test_runs_with_shared_run_together_and_others_wait(self):
        name = self.name()
        wait = "echo up; read line; exit 0"
        runs = [self.start_redlock(self.d, "run", "--shared", name, "--", "sh", "-c", wait, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                for _ in range(3)]
        for run in runs:
            self.assertEqual(run.stdout.readline().strip(), b"up")
        self.assertEqual(self.call_redlock(self.d, "try", name, "--", "true")[0], 124)
        for run in runs:
            run.stdin.close()
            self.assertEqual(run.wait(10), 0)
        self.assertEqual(self.call_redlock(self.d, "run", "--wait", "5s", name, "--", "true")[0], 0)


class SharedAcrossDaemons(QuorumTest):
    """Two daemons on three servers."""
    COST = 5

    def test_readers_occupy_the_lock_key_and_daemons_take_turns(self):
        one, two = self.client(self.a), self.client(self.a)
        far, writer = self.client(self.b), self.client(self.b)
        fence = max(c.ok("LOCK docs mode=shared").num("fence") for c in (one, two))
        for server in self.servers:
            self.assertFalse(server.cli.set("lock:docs", "classic", nx=True, px=1000))
        self.assertEqual(far.begin("LOCK docs mode=shared wait=30s"), [])
        self.assertEqual(writer.begin("LOCK docs wait=30s"), [])
        one.ok("UNLOCK docs")
        two.ok("UNLOCK docs")
        granted = far.reply()
        self.assertEqual(granted["mode"], "shared")
        self.assertGreater(granted.num("fence"), fence)
        far.ok("UNLOCK docs")
        self.assertGreater(writer.reply().num("fence"), granted.num("fence"))

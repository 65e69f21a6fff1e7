# SPDX-License-Identifier: BSD-2-Clause
"""LOCK mode=shared: readers of a daemon together, writers alone, one line for both; and redlock run --shared."""
import re
import subprocess
import time

from harness import FuncTest, on_each_store
from process import cpu_seconds, until
from quorum import QuorumTest
from wire import Client


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

    def test_a_writer_shares_its_hold_and_no_reader_becomes_a_writer(self):
        name, other = self.name(), self.connect()
        c = self.connect()
        fence = c.ok("LOCK " + name).num("fence")
        answer = c.ok("LOCK %s mode=shared" % name)
        self.assertEqual((answer.num("count"), answer.num("fence")), (1, fence))
        self.assertGreater(other.ok("LOCK %s mode=shared wait=30s" % name).num("fence"), fence)
        for wait in ("", " wait=30s"):
            self.assertIn("UNLOCK it", c.err("LOCK " + name + wait, "ARG").text)
        self.assertIn("UNLOCK it", c.err("LOCKALL %s more-%s" % (name, name), "ARG").text)
        self.assertEqual(c.ok("CHECK " + name).num("fence"), fence)
        other.ok("UNLOCK " + name)
        c.ok("UNLOCK " + name)
        self.assertGreater(c.ok("LOCK %s wait=30s" % name).num("fence"), fence)

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
    COST = 9

    def readers(self, name):
        """One of each daemon."""
        here, there = self.client(self.a), self.client(self.b)
        fences = [c.ok("LOCK %s mode=shared" % name).num("fence") for c in (here, there)]
        return here, there, max(fences)

    def test_readers_of_two_daemons_hold_it_together_and_keep_others_out(self):
        here, there, fence = self.readers("docs")
        writer = self.client(self.a)
        for server in self.servers:
            self.assertFalse(server.cli.set("lock:docs", "classic", nx=True, px=1000))
            self.assertTrue(server.cli.get("lock:docs").startswith(b"R 0"))
        self.assertEqual(writer.begin("LOCK docs wait=30s"), [])
        here.ok("UNLOCK docs")
        self.assertEqual(there.ok("CHECK docs")["mode"], "shared")
        self.assertEqual(writer.inbox, [])
        there.ok("UNLOCK docs")
        granted = writer.reply()
        self.assertGreater(granted.num("fence"), fence)
        values = [server.cli.get("lock:docs") for server in self.servers]  # one server may have been asked before it was released there
        self.assertGreater(2 * len([v for v in values if v and not v.startswith(b"R")]), len(values), values)
        self.assertEqual(here.begin("LOCK docs mode=shared wait=30s"), [])
        self.assertEqual(there.begin("LOCK docs mode=shared wait=30s"), [])
        writer.ok("UNLOCK docs")
        for c in (here, there):
            self.assertGreater(c.reply().num("fence"), granted.num("fence"))

    def test_a_reader_waits_behind_a_writer_of_another_daemon(self):
        def wait(name):
            first, writer, late, far = (self.client(d) for d in (self.a, self.b, self.a, self.b))
            first.ok("LOCK %s mode=shared" % name)
            self.assertEqual(writer.begin("LOCK %s wait=30s" % name), [])
            self.queued(name, 1)
            for reader in (late, far):
                reader.send("LOCK %s mode=shared wait=30s" % name)
            return first, [writer, late, far]
        name, (writer, late, far) = self.in_turn(wait)
        writer.ok("UNLOCK " + name)
        self.assertEqual([c.reply()["mode"] for c in (late, far)], ["shared", "shared"])

    def test_a_writer_that_waits_behind_readers_of_its_daemon_is_in_line_everywhere(self):
        first, writer, far = (self.client(d) for d in (self.a, self.a, self.b))
        first.ok("LOCK docs mode=shared")
        self.assertEqual(writer.begin("LOCK docs wait=30s"), [])
        self.queued("docs", 1)
        self.assertEqual(far.begin("LOCK docs mode=shared wait=30s"), [])
        first.ok("UNLOCK docs")
        self.assertEqual(writer.reply().kind, "OK")
        self.assertEqual(far.inbox, [])
        writer.ok("UNLOCK docs")
        self.assertEqual(far.reply()["mode"], "shared")

    def test_a_writer_that_shares_its_hold_lets_readers_elsewhere_in(self):
        here, there = self.client(self.a), self.client(self.b)
        fence = here.ok("LOCK docs").num("fence")
        there.busy("LOCK docs mode=shared")
        self.assertEqual(there.begin("LOCK docs mode=shared wait=30s"), [])
        self.assertEqual(here.ok("LOCK docs mode=shared").num("fence"), fence)
        self.assertEqual(there.reply()["mode"], "shared")
        there.err("LOCK docs wait=30s", "ARG")
        self.assertEqual(there.ok("CHECK docs")["mode"], "shared")

    def test_the_share_of_a_daemon_that_died_ends_with_its_lease(self):
        here, there, _ = self.readers("docs")
        writer = self.client(self.a)
        self.assertEqual(writer.begin("LOCK docs wait=30s"), [])
        here.ok("UNLOCK docs")
        began = time.monotonic()
        self.b.kill()
        self.assertEqual(writer.reply().kind, "OK")
        self.assertLess(time.monotonic() - began, 5)


class SharedOnOneServer(SharedAcrossDaemons):
    """The same with one server."""
    STORES = 1


class SharedAndDeleted(QuorumTest):
    """Somebody deletes the key at one server while all have it: whoever holds it, and shares it, keeps the others out."""

    def delete_at(self, server, holder):
        """
        A server that was slow to grant is relied on once the others have answered after it: until then the loss of one more key is the loss of the lock. A
        renewal shows that the key came late, the next one that the others still have theirs.
        """
        values = [None]

        def whole():
            values[:] = [re.findall(rb"[^ ,]+:[^ ,]+:[^ ,]+", other.cli.get("lock:docs") or b"") for other in self.servers]
            return values[0] and len({tuple(sorted(found)) for found in values}) == 1
        until(whole, "all servers have the key")
        for _ in range(3):
            holder.ok("EXTEND docs")
            for other in self.servers:
                other.cli.ping()
        self.assertEqual(server.cli.delete("lock:docs"), 1)

    def test_deleted_at_one_server_with_downgrades(self):
        for server in self.servers:
            holder, far = self.client(self.a), self.client(self.b)
            holder.ok("LOCK docs mode=shared")
            self.delete_at(server, holder)
            far.busy("LOCK docs")
            far.ok("LOCK docs mode=shared")
            far.ok("UNLOCK docs sync=yes")
            holder.ok("UNLOCK docs sync=yes")
            fence = holder.ok("LOCK docs wait=30s").num("fence")
            far.busy("LOCK docs mode=shared")
            self.delete_at(server, holder)
            far.busy("LOCK docs")
            far.busy("LOCK docs mode=shared")
            self.assertEqual(holder.ok("CHECK docs").num("fence"), fence)
            holder.ok("LOCK docs mode=shared")
            self.delete_at(server, holder)
            far.busy("LOCK docs")
            self.assertGreater(far.ok("LOCK docs mode=shared wait=30s").num("fence"), fence)
            far.ok("UNLOCK docs sync=yes")
            holder.ok("UNLOCK docs sync=yes")
            self.assertEqual(holder.inbox + far.inbox, [])


class Throng(FuncTest):
    """A name that as many read as may."""
    COST = 4
    READERS, CHECKS = 4000, 20000

    def seconds_of_checks(self, daemon, client, request):
        """The processor time of the daemon for CHECKS of them."""
        before = cpu_seconds(daemon.pid)
        for _ in range(0, self.CHECKS, 100):
            client.send(*[request] * 100)
            for _ in range(100):
                self.assertEqual(client.reply().kind, "OK")
        return cpu_seconds(daemon.pid) - before

    def test_each_of_them_is_found_as_fast_as_a_writer(self):
        daemon = self.daemon({"limits": {"locks": self.READERS + 1}})
        with Client(daemon.addr) as client:
            client.ok("LOCK written")
            for i in range(self.READERS):
                client.ok("LOCK read mode=shared owner=%d" % i)
            alone = self.seconds_of_checks(daemon, client, "CHECK written")
            last = self.seconds_of_checks(daemon, client, "CHECK read owner=%d" % (self.READERS - 1))
        self.assertLess(last, 2 * alone + 0.05)

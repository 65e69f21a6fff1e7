# SPDX-License-Identifier: BSD-2-Clause
"""Clients of the classic algorithm on the same three servers: they exclude redlockd's clients and are excluded by them."""
import os
import time

from classic import Classic
from ledger import Workers
from process import LATE, merged, until
from quorum import QuorumTest
from wire import Client


class SharedTest(QuorumTest):
    """Clients of both kinds share one lock and one counter."""

    def setUp(self):
        super().setUp()
        self.counter = self.ledger()
        self.shared = self.name()

    def classic(self):
        client = Classic([server.path for server in self.servers])
        self.addCleanup(client.close)
        return client

    def by_redlockd(self, number, end, pause):
        fences = []
        with Client(self.daemons[number % len(self.daemons)].addr) as client:
            while time.monotonic() < end:
                fences.append(client.ok("LOCK %s wait=20s" % self.shared, 30).num("fence"))
                self.counter.visit(0)
                client.ok("UNLOCK " + self.shared)
                client.listen(pause)
            if client.barrier():
                raise AssertionError("pushed: %r" % client.inbox)
        if fences != sorted(set(fences)):
            raise AssertionError("fences do not grow")
        return len(fences)

    def by_classic(self, end, pause):
        client, visits = self.classic(), 0
        while time.monotonic() < end:
            if client.lock_within(self.shared, 20):
                self.counter.visit(0)
                visits += 1
                if client.clock() >= client.until:
                    raise AssertionError("the machine stood still for longer than the lease")
                client.unlock(self.shared)
            time.sleep(pause)
        return visits

    def contend(self, seconds, daemons, classics, pause, fault=lambda: None):
        """Runs processes of both kinds for so long. Returns the visits of each kind."""
        end = time.monotonic() + seconds
        tally = [os.path.join(os.path.dirname(self.counter.log), "tally-%d" % i) for i in range(daemons + classics)]

        def work(number):
            visits = self.by_redlockd(number, end, pause) if number < daemons else self.by_classic(end, 0.002)
            with open(tally[number], "w") as out:
                out.write("%d" % visits)
        workers = Workers(daemons + classics, work)
        fault()
        self.assertEqual(set(workers.wait()), {0}, "a process met an overlap or a loss, or gave up")
        visits = [int(open(path).read()) for path in tally]
        rows = self.counter.rows()
        self.assertEqual([row[0] for row in rows], list(range(1, sum(visits) + 1)), "a visit is lost")
        ours, theirs = sum(visits[:daemons]), sum(visits[daemons:])
        self.figure("%d visits by clients of redlockd, %d by classic clients" % (ours, theirs))
        return ours, theirs


class Mixed(SharedTest):
    COST = 8

    def test_the_two_kinds_never_overlap(self):
        ours, theirs = self.contend(3, daemons=4, classics=2, pause=0.02)
        self.assertGreaterEqual(min(ours, theirs), 5)

    def test_the_two_kinds_never_overlap_while_one_server_is_stopped(self):
        def fault():
            client = self.client(self.a)
            client.listen(0.7)
            self.servers[1].freeze()
            client.listen(1)
            self.servers[1].thaw()
        ours, theirs = self.contend(3.5, daemons=4, classics=2, pause=0.02, fault=fault)
        self.assertGreaterEqual(min(ours, theirs), 5)


class ForeignYes(SharedTest):
    """redis.foreign: yes gives clients that poll their turn, even if the queue of the daemon is never empty."""
    COST, DAEMONS, CONFIG = 6, 1, merged(QuorumTest.CONFIG, {"redis": {"foreign": "yes"}})

    def test_polling_clients_get_their_turn(self):
        ours, theirs = self.contend(4, daemons=16, classics=1, pause=0)
        self.assertGreaterEqual(ours, 50)
        self.assertGreaterEqual(theirs, 4, "fewer than a grant a second")


class ForeignKeys(SharedTest):
    """Keys that no redlockd wrote, on a majority of the servers and on a minority."""
    COST = 12

    def put(self, name, count, **options):
        for server in self.servers[:count]:
            server.cli.set("lock:" + name, "foreign value", **options)

    def test_classic_and_redlockd_keep_each_other_out(self):
        client, classic, name = self.client(self.a), self.classic(), self.name()
        for _ in range(5):
            client.ok("LOCK %s wait=5s" % name)
            self.assertFalse(classic.lock(name))
            client.ok("CHECK " + name)
            client.ok("UNLOCK %s sync=yes" % name)
            self.assertTrue(classic.lock_within(name, 2))
            for daemon in self.daemons:
                busy = self.client(daemon).busy("LOCK " + name)
                self.assertEqual(busy["holder"], "foreign")
                self.assertTrue(0 < busy.num("retry_ms") <= 3010, busy)
            client.begin("LOCK %s wait=20s" % name)
            self.assertEqual(client.inbox, [])
            self.assertGreaterEqual(classic.unlock(name), 2, "the classic client holds the lock")
            self.assertEqual(client.reply().kind, "OK")
            client.ok("UNLOCK %s sync=yes" % name)

    def test_a_foreign_lock_is_free_when_its_ttl_ends(self):
        client, name = self.client(self.a), self.name()
        begin = time.monotonic()
        self.put(name, 3, px=1200)
        granted = client.ok("LOCK %s wait=20s" % name)
        self.assertTrue(1.1 <= granted.at - begin <= 1.2 + 1.0, granted.at - begin)

    def test_a_foreign_release_is_noticed_within_a_second(self):
        client, taken = self.client(self.b), []
        for i in range(4):
            name = self.name()
            self.put(name, 2 + i % 2, px=60000)
            client.begin("LOCK %s wait=20s" % name)
            client.listen(0.1 + 0.3 * i)
            begin = time.monotonic()
            for server in self.servers:
                server.cli.delete("lock:" + name)
            granted = client.reply()
            self.assertEqual(granted.kind, "OK")
            taken.append(granted.at - begin)
        self.figure("the slowest grant comes after %.0f ms" % (max(taken) * 1000))
        self.assertLessEqual(max(taken), 1.0 + LATE)

    def test_a_foreign_key_without_ttl_is_reported_and_left_alone(self):
        client, name = self.client(self.a), self.name()
        self.put(name, 2)
        busy = client.busy("LOCK " + name)
        self.assertEqual((busy["holder"], busy["ttl_ms"]), ("foreign", "-1"))
        self.assertEqual(client.ask("LOCK %s wait=1500ms" % name).kind, "TIMEOUT")
        self.assertEqual([(server.cli.get("lock:" + name), server.cli.pttl("lock:" + name)) for server in self.servers[:2]], [(b"foreign value", -1)] * 2)
        until(lambda: self.servers[2].cli.exists("lock:" + name) == 0, "the daemon releases its vote on the third server")

    def test_a_foreign_key_on_a_minority_refuses_nobody_and_stays(self):
        client, name = self.client(self.a), self.name()
        self.put(name, 1)
        for _ in range(3):
            client.ok("LOCK %s wait=2s" % name)
            client.ok("UNLOCK %s sync=yes" % name)
        self.assertEqual(self.servers[0].cli.get("lock:" + name), b"foreign value")

    def test_a_hash_on_a_quorum_is_ERR_KIND_and_on_a_minority_nothing(self):
        client, name = self.client(self.a), self.name()
        self.servers[0].cli.hset("lock:" + name, "uuid:1", 1)
        client.ok("LOCK %s wait=2s" % name)
        self.assertNotEqual(self.client(self.b).busy("LOCK " + name)["holder"], "foreign")
        client.ok("UNLOCK %s sync=yes" % name)
        self.servers[1].cli.hset("lock:" + name, "uuid:1", 1)
        client.err("LOCK " + name, "KIND")
        client.err("LOCK %s wait=1s" % name, "KIND")
        for server in self.servers[:2]:
            self.assertEqual(server.cli.hgetall("lock:" + name), {b"uuid:1": b"1"})
        self.servers[1].cli.delete("lock:" + name)
        client.ok("LOCK %s wait=2s" % name)
        self.assertEqual(self.servers[0].cli.type("lock:" + name), b"hash")

    def test_keys_overwritten_on_a_minority_are_survived_and_on_a_majority_lost(self):
        client, name = self.client(self.a), self.name()
        fence = client.ok("LOCK " + name).num("fence")
        self.put(name, 1, px=60000)
        client.listen(1.5)
        client.ok("CHECK " + name)
        self.assertEqual(client.inbox, [])
        self.put(name, 2, px=60000)
        lost = client.push("LOST", name, 5)
        self.assertEqual((lost.num("fence"), lost["reason"]), (fence, "evicted"))
        client.err("UNLOCK " + name, "LOST")
        self.assertEqual(client.ask("LOCK %s wait=2200ms" % name).kind, "TIMEOUT", "the foreign key stays beyond the lease that was lost")
        self.assertEqual([server.cli.get("lock:" + name) for server in self.servers[:2]], [b"foreign value"] * 2)

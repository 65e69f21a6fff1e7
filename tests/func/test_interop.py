# SPDX-License-Identifier: BSD-2-Clause
"""Other clients of the classic algorithm on the same three servers: they exclude redlockd's clients and are excluded by them."""
import os
import random
import time

import redis

from process import merged, until
from quorum import QuorumTest
from test_counter import Workers
from wire import Client

RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"


class Classic:
    """Redlock as its description has it: SET NX PX on all servers, a majority within the validity, compare and delete on all of them."""
    DRIFT, CONNECT = 0.01, 0.25

    def __init__(self, servers, ttl=3.0):
        self.servers = [redis.Redis(unix_socket_path=server.path, socket_timeout=self.CONNECT) for server in servers]
        self.ttl, self.value, self.until = ttl, None, 0.0

    def each(self, ask):
        """How many say yes; one that is down or slow says no."""
        yes = 0
        for server in self.servers:
            try:
                yes += bool(ask(server))
            except redis.exceptions.RedisError:
                pass
        return yes

    def lock(self, name):
        self.value, begin = os.urandom(20).hex(), time.monotonic()
        votes = self.each(lambda server: server.set("lock:" + name, self.value, nx=True, px=int(self.ttl * 1000)))
        self.until = begin + self.ttl - self.ttl * self.DRIFT - 0.002
        if votes > len(self.servers) // 2 and time.monotonic() < self.until:
            return True
        self.unlock(name)
        return False

    def lock_within(self, name, seconds):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.lock(name):
                return True
            time.sleep(random.uniform(0.001, 0.01))  # the algorithm's own pause
        return False

    def unlock(self, name):
        return self.each(lambda server: server.eval(RELEASE, 1, "lock:" + name, self.value))

    def close(self):
        for server in self.servers:
            server.close()


class Counted(QuorumTest):
    """One counter, clients of both kinds on both daemons."""

    def setUp(self):
        super().setUp()
        self.counter = self.ledger()
        self.shared = self.name()

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
        client, visits = Classic(self.servers), 0
        while time.monotonic() < end:
            if client.lock_within(self.shared, 20):
                self.counter.visit(0)
                visits += 1
                if time.monotonic() >= client.until:
                    raise AssertionError("too slow for this lease: the machine stood still")
                client.unlock(self.shared)
            time.sleep(pause)  # the pace of this loop
        return visits

    def contend(self, seconds, daemons, classics, pause, fault=lambda: None):
        """Processes of both kinds for so long; returns the visits of each kind."""
        end = time.monotonic() + seconds
        tally = [os.path.join(os.path.dirname(self.counter.log), "tally-%d" % i) for i in range(daemons + classics)]

        def work(number):
            visits = self.by_redlockd(number, end, pause) if number < daemons else self.by_classic(end, 0.002)
            with open(tally[number], "w") as out:
                out.write("%d" % visits)
        workers = Workers(daemons + classics, work)
        fault()
        self.assertEqual(set(workers.wait()), {0}, "an overlap, a loss, or one that gave up")
        visits = [int(open(path).read()) for path in tally]
        rows = self.counter.rows()
        self.assertEqual([row[0] for row in rows], list(range(1, sum(visits) + 1)), "nothing is lost")
        ours, theirs = sum(visits[:daemons]), sum(visits[daemons:])
        self.figure("%d visits by redlockd's clients, %d by classic ones" % (ours, theirs))
        return ours, theirs


class Mixed(Counted):
    COST = 8

    def test_neither_kind_ever_meets_the_other(self):
        ours, theirs = self.contend(3, daemons=4, classics=2, pause=0.02)
        self.assertGreaterEqual(min(ours, theirs), 5)

    def test_nor_while_one_server_is_stopped(self):
        def fault():
            client = self.client(self.a)
            client.listen(0.7)
            self.servers[1].freeze()
            client.listen(1)
            self.servers[1].thaw()
        ours, theirs = self.contend(3.5, daemons=4, classics=2, pause=0.02, fault=fault)
        self.assertGreaterEqual(min(ours, theirs), 5)


class ForeignYes(Counted):
    """redis.foreign: yes: clients that poll get their turn against a daemon whose line is never empty."""
    COST, DAEMONS, CONFIG = 6, 1, merged(QuorumTest.CONFIG, {"redis": {"foreign": "yes"}})

    def test_polling_clients_get_their_turn(self):
        ours, theirs = self.contend(4, daemons=16, classics=1, pause=0)
        self.assertGreaterEqual(ours, 50)
        self.assertGreaterEqual(theirs, 4, "a grant a second")


class ForeignKeys(QuorumTest):
    """What no redlockd wrote, on a majority of the servers and on a minority."""
    COST = 12

    def put(self, name, count, **options):
        for server in self.servers[:count]:
            server.cli.set("lock:" + name, "somebody else's", **options)

    def test_classic_and_redlockd_keep_each_other_out(self):
        client, classic, name = self.client(self.a), Classic(self.servers), self.name()
        self.addCleanup(classic.close)
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
            client.send("LOCK %s wait=20s" % name)
            client.barrier()
            self.assertEqual(client.inbox, [])
            self.assertGreaterEqual(classic.unlock(name), 2, "it is still the one that holds it")
            self.assertEqual(client.reply().kind, "OK")
            client.ok("UNLOCK %s sync=yes" % name)

    def test_a_foreign_lock_that_ran_out_is_free(self):
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
            client.send("LOCK %s wait=20s" % name)
            client.barrier()
            client.listen(0.1 + 0.3 * i)
            begin = time.monotonic()
            for server in self.servers:
                server.cli.delete("lock:" + name)
            granted = client.reply()
            self.assertEqual(granted.kind, "OK")
            taken.append(granted.at - begin)
        self.figure("slowest %.0f ms" % (max(taken) * 1000))
        self.assertLessEqual(max(taken), 1.0 + 0.05)

    def test_a_key_without_ttl_is_told_and_left_alone(self):
        client, name = self.client(self.a), self.name()
        self.put(name, 2)
        busy = client.busy("LOCK " + name)
        self.assertEqual((busy["holder"], busy["ttl_ms"]), ("foreign", "-1"))
        self.assertEqual(client.ask("LOCK %s wait=1500ms" % name).kind, "TIMEOUT")
        self.assertEqual([(server.cli.get("lock:" + name), server.cli.pttl("lock:" + name)) for server in self.servers[:2]], [(b"somebody else's", -1)] * 2)
        until(lambda: self.servers[2].cli.exists("lock:" + name) == 0, "the vote that was not enough is given back")

    def test_on_a_minority_it_refuses_nobody_and_stays(self):
        client, name = self.client(self.a), self.name()
        self.put(name, 1)
        for _ in range(3):
            client.ok("LOCK %s wait=2s" % name)
            client.ok("UNLOCK %s sync=yes" % name)
        self.assertEqual(self.servers[0].cli.get("lock:" + name), b"somebody else's")

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

    def test_an_overwritten_minority_is_survived_and_a_majority_is_a_loss(self):
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
        self.assertEqual(client.ask("LOCK %s wait=2200ms" % name).kind, "TIMEOUT", "also when the lease that was lost is over")
        self.assertEqual([server.cli.get("lock:" + name) for server in self.servers[:2]], [b"somebody else's"] * 2)


if __name__ == "__main__":
    from harness import main
    main()

# SPDX-License-Identifier: BSD-2-Clause
"""Semaphores: ACQUIRE and RELEASE, redlock run --slots; and the classic semaphores on one Redis (Redis in Action, 6.3), which admit too many."""
import fcntl
import os
import re
import struct
import subprocess
import time
import unittest

from harness import FuncTest, on_each_store, safety
from ledger import Workers
from process import REDLOCK, cpu_seconds, sanitized, until
from quorum import QuorumTest
from resumable import resume, with_grace
from wire import Client


class Occupancy:
    """How many hold a permit at a time, told outside the daemons and stores."""
    ROW = struct.Struct("qq")  # now, at most

    def __init__(self, folder):
        self.path = os.path.join(folder, "occupancy")
        with open(self.path, "wb") as out:
            out.write(self.ROW.pack(0, 0))

    def add(self, permits):
        with open(self.path, "r+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            now, most = self.ROW.unpack(file.read(self.ROW.size))
            file.seek(0)
            file.write(self.ROW.pack(now + permits, max(most, now + permits)))

    def most(self):
        with open(self.path, "rb") as file:
            return self.ROW.unpack(file.read())[1]


class Crowd:
    """Many processes acquire and release."""
    LIMIT, SECONDS, WORKERS = 3, 3, 8

    def crowd(self, addresses):
        name, occupancy = self.name(), Occupancy(self.folder())

        def work(number):
            end, fences = time.monotonic() + self.SECONDS, {}
            with Client(addresses[number % len(addresses)]) as client:
                while time.monotonic() < end:
                    got = client.ok("ACQUIRE %s limit=%d wait=20s" % (name, self.LIMIT), 30)
                    occupancy.add(1)
                    if got.num("fence") <= fences.get(got["permit"], 0):
                        raise AssertionError("fences of a slot do not grow")
                    fences[got["permit"]] = got.num("fence")
                    client.listen(0.002)
                    occupancy.add(-1)
                    client.ok("RELEASE %s permit=%s" % (name, got["permit"]))
                if client.barrier():
                    raise AssertionError("pushed: %r" % client.inbox)
        self.assertEqual(set(Workers(self.WORKERS, work).wait()), {0})
        with safety():
            self.assertLessEqual(occupancy.most(), self.LIMIT)
        self.assertEqual(occupancy.most(), self.LIMIT, "the slots were never all in use")


@on_each_store
class Semaphores(Crowd):
    """At one daemon."""
    COST, TCP = 12, True

    def test_no_more_than_the_limit_and_the_rest_in_order(self):
        name, clients = self.name(), [self.connect() for _ in range(4)]
        permits = [c.ok("ACQUIRE %s limit=2" % name)["permit"] for c in clients[:2]]
        self.assertEqual(sorted(permits), ["0", "1"])
        clients[2].busy("ACQUIRE %s limit=2" % name)
        for c in clients[2:]:
            self.assertEqual(c.begin("ACQUIRE %s limit=2 wait=30s" % name), [])
            until(lambda: len(clients[0].roles(name)) == (3 if c is clients[2] else 4), "it waits")
        clients[1].ok("RELEASE " + name)
        self.assertEqual(clients[2].reply().kind, "OK")
        self.assertEqual(clients[3].inbox, [])
        clients[0].close()
        self.assertEqual(clients[3].reply().kind, "OK")

    def test_permits_have_figures_of_their_own_and_count_for_no_lock(self):
        name, clients = self.name(), [self.connect() for _ in range(4)]
        fields = ("locks_held", "permits_held", "waiters", "permits_waiting")

        def figures():
            stats = clients[0].stats()
            return tuple(int(stats[field]) for field in fields)
        clients[0].ok("LOCK %s-lock" % name)
        self.assertEqual(figures(), (1, 0, 0, 0))
        clients[0].ok("ACQUIRE %s limit=2" % name)
        clients[1].ok("ACQUIRE %s limit=2" % name)
        self.assertEqual(figures(), (1, 2, 0, 0))
        for client in clients[2:]:
            client.begin("ACQUIRE %s limit=2 wait=60s" % name)
        until(lambda: figures() == (1, 2, 0, 2), "two ACQUIREs wait, and no LOCK")
        clients[1].ok("RELEASE " + name)
        until(lambda: figures() == (1, 2, 0, 1), "the first of them is granted")
        clients[0].ok("RELEASE " + name)
        until(lambda: figures() == (1, 2, 0, 0), "so is the other one")
        for client in clients:
            client.close()
        clients[0] = self.connect()
        until(lambda: figures() == (0, 0, 0, 0), "nothing is left")

    def test_kinds_and_limits_do_not_mix(self):
        name, a, b = self.name(), self.connect(), self.connect()
        a.ok("ACQUIRE %s limit=2" % name)
        b.err("LOCK " + name, "KIND")
        b.err("ACQUIRE %s limit=3 wait=1s" % name, "LIMIT")
        a.ok("RELEASE " + name)
        b.ok("ACQUIRE %s limit=3" % name)
        b.ok("RELEASE " + name)
        b.ok("LOCK " + name)
        a.err("ACQUIRE %s limit=3 wait=1s" % name, "KIND")

    def test_a_LOCK_and_an_ACQUIRE_that_wait_for_each_other(self):
        name, (a, b, c) = self.name(), [self.connect() for _ in range(3)]
        a.ok("LOCK x")
        b.ok("ACQUIRE %s limit=2" % name)
        c.ok("ACQUIRE %s limit=2" % name)
        self.assertEqual(b.begin("LOCK x wait=30s"), [])
        self.assertEqual(a.begin("ACQUIRE %s limit=2 wait=30s" % name), [])  # c goes on
        c.ok("RELEASE " + name)
        a.reply()
        a.ok("RELEASE " + name)
        c.ok("ACQUIRE %s limit=2" % name)
        self.assertEqual(c.begin("LOCK x wait=30s"), [])
        self.assertEqual(a.begin("ACQUIRE %s limit=2 wait=30s" % name), [])
        refused = a.reply(timeout=15)
        self.assertEqual((refused.code, re.sub("@[^<]*", "", refused.text)), ("DEADLOCK", "cycle=%s<-x<-%s" % (name, name)))
        a.ok("UNLOCK x")
        self.assertEqual(b.reply()["name"], "x")

    def test_a_crowd(self):
        self.crowd([self.d.addr])

    def test_run_tells_its_command_which_slot_it_has(self):
        name, tell = self.name(), ("sh", "-c", "echo $REDLOCK_PERMIT")
        a = self.connect()
        first = a.ok("ACQUIRE %s limit=2" % name)["permit"]
        status, out, _ = self.call_redlock(self.d, "run", "--slots", "2", name, "--", *tell)
        self.assertEqual((status, out), (0, "%d\n" % (1 - int(first))))
        status, out, _ = self.call_redlock(self.d, "run", "--slots", "2", name, "--", REDLOCK, "--addr", self.d.addr, "run", name + "x", "--", *tell)
        self.assertEqual((status, out), (0, "\n"))

    def test_run_lets_so_many_commands_run_at_once(self):
        name = self.name()
        runs = [self.start_redlock(self.d, "run", "--slots", "2", name, "--", "cat", stdin=subprocess.PIPE) for _ in range(5)]
        c = self.connect()
        until(lambda: c.roles(name).count("holder") == 2 and c.roles(name).count("waiter") > 0, "two run")
        self.assertEqual(self.call_redlock(self.d, "try", "--slots", "2", name, "--", "true")[0], 124)
        self.assertEqual(self.call_redlock(self.d, "try", "--slots", "3", name, "--", "true")[0], 125)
        for run in runs:
            run.stdin.close()
        self.assertEqual([run.wait(20) for run in runs], [0] * 5)
        self.assertEqual(self.call_redlock(self.d, "try", "--slots", "2", name, "--", "true")[0], 0)

    def test_a_command_that_needs_several_slots_runs_within_so_many_runs(self):
        name = self.name()
        within = [REDLOCK, "--addr", self.d.addr, "run", "--slots", "2", name, "--"]
        both = [*within, *within, "true"]
        one = self.connect()
        one.ok("ACQUIRE %s limit=2" % name)
        runs = [self.start_redlock(self.d, "run", name + "/several", "--", *both) for _ in range(3)]
        until(lambda: one.roles(name).count("waiter") == 1, "the first of them has the other slot, and waits for this one")
        one.ok("RELEASE " + name)
        self.assertEqual([run.wait(20) for run in runs], [0] * 3)


class SemaphoresOfThree(Crowd, QuorumTest):
    """On three Redis servers, at two daemons."""
    COST = 14

    def test_owners_at_two_daemons_that_wait_for_each_other(self):
        name, (a, b) = self.name(), self.clients(2)
        a.ok("LOCK x")
        b.ok("ACQUIRE %s limit=1" % name)
        self.assertEqual(a.begin("ACQUIRE %s limit=1 wait=30s" % name), [])
        until(lambda: any(row.num("waited_ms") > 100 for row in self.client(self.a).ok("SHOW " + name).rows if row["role"] == "waiter"), "it is the older one")
        self.assertEqual(b.begin("LOCK x wait=30s"), [])
        self.assertEqual(b.reply(timeout=15).code, "DEADLOCK")
        b.ok("RELEASE " + name)
        self.assertEqual(a.reply().kind, "OK")

    def test_who_has_a_permit_is_told_that_others_wait_elsewhere(self):
        name, (a, b) = self.name(), self.clients(2)
        a.ok("SUBSCRIBE")
        permit = a.ok("ACQUIRE %s limit=1" % name)
        self.assertEqual(b.begin("ACQUIRE %s limit=1 wait=30s" % name), [])
        push = a.push("CONTENDED", name)
        self.assertEqual((push["name"], push["permit"], push["fence"], push["waiters"]), (name, permit["permit"], permit["fence"], "1"))

    def test_daemons_share_the_slots(self):
        name = self.name()
        clients = self.clients(6)
        got = [c.ask("ACQUIRE %s limit=4" % name) for c in clients]
        self.assertEqual([line.kind for line in got], ["OK"] * 4 + ["BUSY"] * 2)
        with safety():
            self.assertEqual(len({line["permit"] for line in got[:4]}), 4)
        self.assertEqual(clients[5].begin("ACQUIRE %s limit=4 wait=30s" % name), [])
        clients[4].err("ACQUIRE %s limit=5" % name, "LIMIT")
        clients[0].ok("RELEASE " + name)
        self.assertEqual(clients[5].reply().kind, "OK")

    def test_a_daemon_that_is_killed_leaks_no_permit(self):
        name = self.name()
        self.client(self.a).ok("ACQUIRE %s limit=1" % name)
        waiter = self.client(self.b)
        self.assertEqual(waiter.begin("ACQUIRE %s limit=1 wait=30s" % name), [])
        self.a.kill()
        self.assertEqual(waiter.reply(timeout=20).kind, "OK")

    def test_a_permit_outlives_its_daemon_with_its_session(self):
        name, client, other = self.name(), self.client(self.a), self.client(self.b)
        ticket = with_grace(client)
        permit = client.ok("ACQUIRE %s limit=2" % name)
        self.a.restart()
        back = self.client(self.a)
        row = resume(back, ticket)[name]
        with safety():
            self.assertEqual((row["permit"], row["fence"]), (permit["permit"], permit["fence"]))
        other.ok("ACQUIRE %s limit=2" % name)
        other.busy("ACQUIRE %s limit=2" % name)
        back.ok("RELEASE %s permit=%s" % (name, permit["permit"]))
        other.ok("ACQUIRE %s limit=2 wait=20s" % name, 30)

    def test_a_crowd(self):
        self.crowd([daemon.addr for daemon in self.daemons])


class ClassicSemaphores(FuncTest):
    """One step after the other, on a real server: each of them admits two where one may enter. redlockd does not, in the same situation."""
    COST = 6

    def setUp(self):
        super().setUp()
        self.server = self.redis()
        self.cli = self.server.cli
        self.d = self.redis_daemon(self.server)

    def redlockd_admits_one(self):
        name = "limited"
        one, two = self.client(self.d), self.client(self.d)
        one.send("ACQUIRE %s limit=1" % name)
        two.send("ACQUIRE %s limit=1" % name)
        self.assertEqual(sorted([one.reply().kind, two.reply().kind]), ["BUSY", "OK"])

    def by_time(self, who, clock, limit, ttl=10):
        """The members are scored by the clock of each client."""
        self.cli.zremrangebyscore("s:time", "-inf", clock - ttl)
        self.cli.zadd("s:time", {who: clock})
        return self.cli.zrank("s:time", who) < limit

    def test_by_time_stamp_a_client_whose_clock_is_behind_takes_the_place_of_another(self):
        now = time.time()
        self.assertTrue(self.by_time("a", now, 1))
        self.assertFalse(self.by_time("b", now, 1))
        self.assertTrue(self.by_time("c", now - 0.01, 1), "a second holder of one permit")
        self.redlockd_admits_one()

    def count(self):
        return self.cli.incr("s:counter")

    def enters(self, who, number, limit):
        self.cli.zadd("s:owner", {who: number})
        return self.cli.zrank("s:owner", who) < limit

    def test_by_counter_the_one_that_counted_first_and_entered_last_is_let_in_as_well(self):
        a, b = self.count(), self.count()
        self.assertTrue(self.enters("b", b, 1))
        self.assertTrue(self.enters("a", a, 1), "a second holder of one permit")
        self.redlockd_admits_one()

    def locked(self, value, ttl_ms):
        return self.cli.set("s:lock", value, nx=True, px=ttl_ms)

    def unlocked(self, value):
        return self.cli.eval("if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end", 1, "s:lock", value)

    def test_with_a_lock_around_it_costs_four_round_trips_and_fails_when_the_lock_expires(self):
        before = sum(self.server.calls().values())
        self.assertTrue(self.locked("a", 1000))
        self.assertTrue(self.enters("a", self.count(), 1))
        self.unlocked("a")
        trips = sum(n for name, n in self.server.calls().items() if name in ("set", "incr", "zadd", "zrank", "eval"))
        self.assertGreaterEqual(trips, 4, before)
        self.cli.delete("s:owner", "s:counter")

        self.assertTrue(self.locked("a", 20))
        a = self.count()
        until(lambda: self.locked("b", 1000), "the lock of a has expired while a is stopped")
        self.assertTrue(self.enters("b", self.count(), 1))
        self.unlocked("b")
        self.assertTrue(self.enters("a", a, 1), "a second holder of one permit")
        self.redlockd_admits_one()

    def test_a_permit_takes_one_command(self):
        client = self.client(self.d)
        client.ok("ACQUIRE some limit=5")  # the mark of the semaphore is held from now on

        def runs():
            calls = self.server.calls()
            return calls.get("evalsha", 0) + calls.get("eval", 0)
        costs = []
        for _ in range(3):  # a probe a second, or a renewal, may come between
            before = runs()
            client.ok("ACQUIRE some limit=5")
            costs.append(runs() - before)
        self.assertEqual(min(costs), 1)


class Wide(FuncTest):
    """A semaphore of many slots that are all taken: who is first in line asks for each of them."""
    COST = 3

    def seconds_in_line(self, daemon, client, limit, times):
        for _ in range(limit):
            client.ok("ACQUIRE s%d limit=%d owner=o" % (limit, limit))
        before = cpu_seconds(daemon.pid)
        for _ in range(times):
            client.expect("ACQUIRE s%d limit=%d wait=1ms" % (limit, limit), "TIMEOUT")
        return cpu_seconds(daemon.pid) - before

    @unittest.skipIf(sanitized(), "sanitizers change what takes time")
    def test_the_first_in_line_takes_time_for_each_slot_and_no_more(self):
        daemon = self.daemon({"limits": {"locks": 4096}})
        with Client(daemon.addr) as client:
            narrow = self.seconds_in_line(daemon, client, 128, 6400)
            wide = self.seconds_in_line(daemon, client, 1024, 800)
        self.figure("%.2f s of processor time, of %.2f" % (wide, narrow))
        self.assertLess(wide, 2 * narrow)  # a square would be eight times as much

# SPDX-License-Identifier: BSD-2-Clause
"""A session that drops frees its lock or permit at once for the next: of readers, among priorities, of a leader. By close, kill -9, and a cut network."""
import os
import signal
import time

from daemon import on_redis
from harness import FuncTest, StoreTest, on_each_store, safety
from nc import Nc
from process import GONE, LATE, QUIET, REDLOCK, PipeLines, reap, spawn, stat_fields, state_of, until
from redis_server import Redis
from relay import Relay
from wire import Client

SOON = LATE        # at once, on a busy machine; the lease is 10 s
BEAT, TTL = 0.5, 1.0  # of a client that the network cuts off


class Holder:
    """A session that holds a name, and may drop."""

    def __init__(self, test, request):
        self.test, self.request, self.name = test, request, request.split()[1]

    def check(self):
        return "CHECK " + self.name

    def nc(self, addr):
        nc = Nc(addr)
        self.test.addCleanup(nc.close)
        nc.type(self.request)
        nc.see("OK name=.*")
        return nc

    def closes(self):
        client = Client(self.test.d.addr)
        client.ok(self.request)
        return client.close

    def is_killed(self):
        return self.nc(self.test.d.addr).kill

    def is_killed_over_tcp(self):
        return self.nc(self.test.d.tcp).kill

    def is_reset(self):
        client = Client(self.test.d.tcp)
        client.ok(self.request)
        return client.reset

    def is_cut_off(self):
        relay = Relay(self.test.d.tcp)
        self.test.addCleanup(relay.close)
        client = Client(relay.addr)
        self.test.addCleanup(client.close)
        client.ok("HELLO 1 heartbeat=%dms" % (BEAT * 1000))
        client.ok("%s ttl=%dms" % (self.request, TTL * 1000))

        def cut():
            """Returns the moment until which the client believes in the lock."""
            asked = time.monotonic()
            believed = asked + client.ok(self.check()).num("valid_ms") / 1000
            relay.cut()
            return believed
        return cut


class HolderOfSeveral(Holder):
    """A session that holds all of several names, or one of them."""

    def __init__(self, test, request, held):
        super().__init__(test, request)
        self.name = held

    def nc(self, addr):
        nc = Nc(addr)
        self.test.addCleanup(nc.close)
        nc.type(self.request)
        nc.see(r"(\* |OK )name=%s .*" % self.name)
        return nc


class Worker(Holder):
    """A session that has a job of a queue."""

    def nc(self, addr):
        nc = Nc(addr)
        self.test.addCleanup(nc.close)
        nc.type(self.request)
        nc.see("OK queue=.*")
        return nc

    def check(self):
        return "CHECK %s job=a" % self.name


WAYS = [Holder.closes, Holder.is_killed, Holder.is_killed_over_tcp, Holder.is_reset, Holder.is_cut_off]


@on_each_store
class Dropped:
    """At one daemon."""
    COST, TCP = 20, True

    def drops(self, way, drop, *served):
        """The holder drops, and these waiters are granted the lock, the first of them soon."""
        begin, believed = time.monotonic(), drop()
        first = served[0].reply()
        self.assertEqual(first.kind, "OK", way)
        with safety():
            if believed:
                self.assertGreaterEqual(first.at, believed, "%s: the client that was cut off still believes" % way)
        self.assertLessEqual(first.at - begin, (BEAT + TTL if believed else 0) + SOON, way)
        for waiter in served[1:]:
            self.assertEqual(waiter.reply().kind, "OK", way)
        return first

    def each_way(self, request):
        for way in WAYS:
            name = "%s-%s" % (self.name(), way.__name__)
            yield way.__name__, name, way(Holder(self, request % name))

    def waits(self, request):
        client = self.connect()
        self.assertEqual(client.begin(request), [], "it does not wait")
        return client

    def test_the_last_reader_frees_the_lock_for_a_writer(self):
        for way, name, drop in self.each_way("LOCK %s mode=shared"):
            other = self.connect()
            other.ok("LOCK %s mode=shared ttl=1s" % name)
            writer, late = self.waits("LOCK %s wait=30s" % name), self.waits("LOCK %s wait=30s mode=shared" % name)
            other.close()
            writer.listen(0.05)
            self.assertEqual(writer.inbox, [], way)
            self.drops(way, drop, writer)
            self.assertEqual(late.inbox, [], way)
            writer.close()
            self.assertEqual(late.reply()["mode"], "shared", way)

    def test_one_of_two_readers_takes_nothing_from_the_other(self):
        for way, name, drop in self.each_way("LOCK %s mode=shared"):
            other = self.connect()
            other.ok("LOCK %s mode=shared ttl=1s" % name)
            writer = self.waits("LOCK %s wait=30s" % name)
            drop()
            self.assertEqual(other.ok("CHECK " + name)["mode"], "shared", way)
            self.assertEqual(writer.inbox, [], way)
            other.ok("UNLOCK " + name)
            self.assertEqual(writer.reply().kind, "OK", way)

    def test_a_writer_frees_the_lock_for_all_readers_that_wait(self):
        for way, name, drop in self.each_way("LOCK %s"):
            readers = [self.waits("LOCK %s wait=30s mode=shared" % name) for _ in range(3)]
            self.assertEqual(self.drops(way, drop, *readers)["mode"], "shared", way)

    def test_a_permit_is_free_for_the_first_in_line_and_others_stay(self):
        for way, name, drop in self.each_way("ACQUIRE %s limit=2"):
            other = self.connect()
            other.ok("ACQUIRE %s limit=2" % name)
            first, late = self.waits("ACQUIRE %s limit=2 wait=30s" % name), self.waits("ACQUIRE %s limit=2 wait=30s" % name)
            self.drops(way, drop, first)
            self.assertEqual(late.inbox, [], way)
            other.ok("CHECK " + name)
            other.close()
            self.assertEqual(late.reply().kind, "OK", way)

    def test_the_next_is_the_one_with_the_highest_priority(self):
        for way, name, drop in self.each_way("LOCK %s priority=2"):
            low, high, middle = [self.waits("LOCK %s wait=30s priority=%d" % (name, priority)) for priority in (0, 9, 4)]
            self.drops(way, drop, high)
            self.assertEqual(low.inbox + middle.inbox, [], way)
            self.drops("close", high.close, middle)
            self.drops("close", middle.close, low)

    def test_a_job_is_given_to_the_next_that_waits(self):
        for way in WAYS:
            name, client = "%s-%s" % (self.name(), way.__name__), self.connect()
            client.ok("DEFER %s work id=a lock=%s-l" % (name, name))
            drop = way(Worker(self, "TAKE " + name))
            first, second = self.waits("TAKE %s wait=30s" % name), self.waits("TAKE %s wait=30s" % name)
            job = self.drops(way.__name__, drop, first)
            self.assertEqual((job["job"], job["attempt"], job["name"]), ("a", "2", name + "-l"), way)
            self.assertEqual(second.inbox, [], way)

    def test_all_locks_of_a_LOCKALL_are_free_together(self):
        """For one that waits for all of them; one that waits for the first of them stands behind it."""
        for way in WAYS:
            name = "%s-%s" % (self.name(), way.__name__)
            a, b = names = [name + "-a", name + "-b"]
            drop = way(HolderOfSeveral(self, "LOCKALL %s %s" % (a, b), a))
            both, one = self.waits("LOCKALL %s %s wait=30s" % (a, b)), self.waits("LOCK %s wait=30s" % a)
            self.assertEqual(sorted(row["name"] for row in self.drops(way.__name__, drop, both).rows), names, way)
            self.assertEqual(one.inbox, [], way)
            both.close()
            self.assertEqual(one.reply().kind, "OK", way)

    def test_the_one_lock_of_a_LOCKANY_is_free_for_the_next_LOCKANY(self):
        for way in WAYS:
            name = "%s-%s" % (self.name(), way.__name__)
            a, b = name + "-a", name + "-b"
            other = self.connect()
            other.ok("LOCK " + b)
            drop = way(HolderOfSeveral(self, "LOCKANY %s %s" % (a, b), a))
            first, second = self.waits("LOCKANY %s %s wait=30s" % (b, a)), self.waits("LOCKANY %s %s wait=30s" % (a, b))
            self.assertEqual(self.drops(way.__name__, drop, first)["name"], a, way)
            self.assertEqual(second.inbox, [], way)
            other.close()
            self.assertEqual(second.reply()["name"], b, way)

    def test_a_waiter_that_drops_is_passed_over(self):
        name, holder = self.name(), self.connect()
        holder.ok("LOCK " + name)
        high, reader, low = self.waits("LOCK %s wait=30s priority=9" % name), self.waits("LOCK %s wait=30s mode=shared" % name), self.waits(
            "LOCK %s wait=30s mode=shared" % name)
        high.close()
        until(lambda: len(holder.roles(name)) == 3, "its request is withdrawn")
        self.drops("close", holder.close, reader, low)


class DroppedOnThreeRedis(Dropped, StoreTest):
    """Two of the three must grant and free."""

    @classmethod
    def setUpClass(cls):
        servers = [Redis() for _ in range(3)]
        for server in servers:
            cls.addClassCleanup(server.stop)
            server.start()
        cls.CONFIG = on_redis(servers)
        cls.start_daemon()


class LeaderDropped(FuncTest):
    """redlock lead, on one Redis with two daemons."""
    COST = 12

    def setUp(self):
        super().setUp()
        server = self.redis()
        self.d, self.other = [self.redis_daemon(server, tcp=True) for _ in range(2)]

    def leads(self, name, addr, *options):
        process = spawn([REDLOCK, "--addr", addr, "lead", *options, name, "--", "sh", "-c", "echo $$; exec sleep 1000"], **QUIET)
        self.addCleanup(reap, process)
        return process, PipeLines(process.stdout)

    def two(self, name, follower, addr=None, *options):
        """Returns the leader, the pid of its command, and what the follower says."""
        leader, said = self.leads(name, addr or self.d.addr, *options)
        command = int(said.next("the first one leads"))
        _, following = self.leads(name, follower.addr)
        with follower.client() as client:
            until(lambda: "waiter" in client.roles(name), "the second one campaigns")
        return leader, command, following

    def follows(self, command, following, seconds, least=0.0):
        begin = time.monotonic()
        following.next("the second one leads", seconds + 10)
        taken = time.monotonic() - begin
        with safety():
            self.assertIn(state_of(command), GONE, "the command of the first leader still runs")
            self.assertGreaterEqual(taken, least)
        self.assertLessEqual(taken, seconds)

    def test_the_next_one_leads_as_soon_as_the_leader_has_gone(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            for follower in (self.d, self.other):
                leader, command, following = self.two(self.name(), follower)
                leader.send_signal(number)
                self.follows(command, following, SOON + 1)

    def test_the_next_one_leads_as_soon_as_the_command_or_the_keeper_was_killed(self):
        for follower in (self.d, self.other):
            for of_command in (True, False):
                _, command, following = self.two(self.name(), follower)
                os.kill(command if of_command else int(stat_fields(command)[1]), signal.SIGKILL)
                self.follows(command, following, SOON + 1)

    def test_a_leader_that_the_network_cuts_off_stops_before_the_next_one_leads_and_campaigns_again(self):
        """The daemon hears nothing of the cut. An administrator, or TCP in the end, tells it that the session is gone."""
        for follower in (self.d, self.other):
            relay, name = Relay(self.d.tcp), self.name()
            self.addCleanup(relay.close)
            leader, command, following = self.two(name, follower, "%s:%d" % relay.addr, "--ttl", "2s")
            relay.cut()
            until(lambda: state_of(command) in GONE, "the command is stopped within the lease", 2 + SOON)
            self.assertIsNone(leader.poll())
            with self.d.client() as admin:
                admin.ok("KILL session=%s" % admin.ok("SHOW " + name).rows[0]["session"])
            self.follows(command, following, 2 + SOON)
            self.assertIsNone(leader.poll(), "it campaigns again")

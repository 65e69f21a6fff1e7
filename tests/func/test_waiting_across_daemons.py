# SPDX-License-Identifier: BSD-2-Clause
"""Waiting across daemons on three servers: in the order of the requests, without polling, and past daemons that are dead or stopped."""
import time

from daemon import on_redis
from harness import median
from lease import Lease, believed
from ledger import Load, Workers
from process import LATE, until
from quorum import POLL_MOST, QuorumTest, next_served
from wire import Client

HANDOVERS = 60


def scripts(servers):
    """How many script calls a server has had on average, without those of health checks, each of which reads INFO five times."""
    calls = [server.calls() for server in servers]
    return sum(row.get("evalsha", 0) + row.get("eval", 0) - row.get("info", 0) / 5 for row in calls) / len(servers)


class InOrder(QuorumTest):
    """A client that asks first is served first, whatever its daemon."""
    COST = 9

    def queue(self, count, terms=lambda i: ""):
        """A holder on a, and waiters on both daemons in turn, each of them queued before the next one asks."""
        holder, clients = self.client(self.a), self.clients(count)
        holder.ok("LOCK queue ttl=1s")
        for i, client in enumerate(clients):
            client.begin("LOCK queue wait=60s " + terms(i))
            client.listen(0.005)  # two requests within one round trip have no order
        self.queued("queue", 1)
        return holder, clients

    def test_two_daemons_take_turns(self):
        """Each waiter has a ttl of its own, so that no daemon hands the lock over by itself. A head of the queue that is slow to come may be passed once."""
        order = self.order(*self.queue(16, lambda i: "ttl=%dms" % (1500 + 10 * i)))
        self.figure("%d of 16 are served in their place" % len([i for i, place in enumerate(order) if i == place]))
        self.assertLessEqual(max(abs(i - place) for i, place in enumerate(order)), 2, order)
        for side in (0, 1):
            own = [i for i in order if i % 2 == side]
            self.assertEqual(own, sorted(own), "within a daemon the order is strict")

    def test_within_each_daemon_the_order_is_strict(self):
        order = self.order(*self.queue(20))
        for side in (0, 1):
            own = [i for i in order if i % 2 == side]
            self.assertEqual(own, sorted(own))

    def test_a_busy_daemon_does_not_starve_a_waiter_of_another(self):
        """The queue of the busy daemon is never empty, yet the lock goes to the client that asked first."""
        waited = []
        self.daemons.pop()  # all of the load is on a
        load, rival = Load(self, 2.5, workers=4, ttls=["2s"]), self.client(self.b)
        while time.monotonic() < load.end - 0.3 or len(waited) < 3:
            rival.send("LOCK %s wait=20s ttl=2s" % load.name)
            begin, rival_granted = time.monotonic(), rival.reply()
            load.ledger.visit(rival_granted.num("fence"))
            waited.append(rival_granted.at - begin)
            rival.ok("UNLOCK " + load.name)
        load.finish(rival, least=20, gap=LATE)
        self.figure("%d waits beside 4 busy clients of another daemon: median %.0f ms, longest %.0f ms" % (
            len(waited), median(waited) * 1000, max(waited) * 1000))
        self.assertLessEqual(max(waited), POLL_MOST + LATE)


class HandOver(QuorumTest):
    """A release reaches the waiters of another daemon by a message of the servers and one round, without polling."""
    COST, CONFIG = 6, {"lease": "10s", "max_lease": "10s"}

    def waits(self, client, name):
        client.send("LOCK %s wait=60s" % name)
        self.queued(name, 1)

    def test_from_daemon_to_daemon(self):
        (holder, other), name, taken = self.clients(2), self.name(), []
        holder.ok("LOCK " + name)
        before = scripts(self.servers)
        for _ in range(HANDOVERS):
            self.waits(other, name)
            begin = time.monotonic()
            holder.send("UNLOCK " + name)
            granted = other.reply()
            self.assertEqual(granted.kind, "OK")
            taken.append(granted.at - begin)
            self.assertEqual(holder.reply().kind, "OK")
            holder, other = other, holder
        calls = (scripts(self.servers) - before) / HANDOVERS
        self.figure("median %.2f ms, longest %.1f ms; %.1f calls of each server for one handover" % (median(taken) * 1000, max(taken) * 1000, calls))
        self.assertLessEqual(calls, 6, "to ask, to subscribe, to take and to free")

    def test_a_waiter_learns_how_long_a_name_is_kept(self):
        """The waiter knows of the lease, which is longer. Without the message about the keep= it would ask again only after a second."""
        holder, waiter, waits = self.client(self.a), self.client(self.b), []
        for i in range(5):
            name = "kept-%d" % i
            holder.ok("LOCK %s ttl=9s" % name)
            self.waits(waiter, name)
            holder.ok("UNLOCK %s keep=200ms" % name)
            began = time.monotonic()
            waiter.reply()
            waits.append(time.monotonic() - began)
            waiter.ok("UNLOCK " + name)
        self.assertLess(min(waits), 0.8, "each waits for the daemon to ask again")

    def test_a_long_wait_sends_few_requests(self):
        """A daemon queues once for its twenty clients, and asks now and then in case that a message was lost."""
        holder, name = self.client(self.a), self.name()
        holder.ok("LOCK " + name)
        waiters = [self.client(self.b) for _ in range(20)]
        for client in waiters:
            client.begin("LOCK %s wait=60s" % name)
        self.queued(name, 1)
        before = scripts(self.servers)
        waiters[0].listen(3)
        calls = scripts(self.servers) - before
        self.figure("%.1f calls of each server in 3 s" % calls)
        self.assertLessEqual(calls, 3 / (POLL_MOST / 2) + 3)
        self.assertGreaterEqual(calls, 2, "the daemon keeps its ticket")
        self.assertEqual(waiters[0].inbox, [])


class ManyDaemons(QuorumTest):
    """Sixty-four daemons want one name. The long timeout keeps a daemon from asking a slow server twice, which would count as calls."""
    COST, MANY, CONFIG = 9, 64, {"lease": "10s", "max_lease": "10s", "redis": {"timeout": "5s"}}

    def setUp(self):
        super().setUp()
        self.daemons += [self.daemon(on_redis(self.servers, self.CONFIG), start=False).launch() for _ in range(self.MANY - self.DAEMONS)]
        for daemon in self.daemons:
            daemon.ready()
        for client in self.clients(self.MANY):
            until(lambda: client.joined() == self.STORES, "all stores are joined")
            client.close()

    def calls_per_grant(self, some, grants):
        """Each client that is served queues again behind the others. Returns the calls of each server, less those that keep tickets alive in any case."""
        name = self.name()
        some[0].ok("LOCK %s wait=10s" % name)
        for client in some[1:]:
            client.send("LOCK %s wait=60s" % name)
        self.queued(name, len(some) - 1)
        before, begin = scripts(self.servers), time.monotonic()
        some[0].listen(0.6)
        quiet, at = (scripts(self.servers) - before) / (time.monotonic() - begin), some[0]
        before, begin = scripts(self.servers), time.monotonic()
        for _ in range(grants):
            at.ok("UNLOCK " + name)
            following = next_served(self, [client for client in some if client is not at], 0)
            self.assertEqual(following.reply().kind, "OK")
            at.send("LOCK %s wait=60s" % name)
            at = following
        calls = scripts(self.servers) - before - quiet * (time.monotonic() - begin)
        for client in some:
            client.close()
        return calls / grants

    def test_the_number_of_calls_depends_on_grants_not_on_waiters(self):
        few = self.calls_per_grant(self.clients(2), 40)
        many = self.calls_per_grant(self.clients(self.MANY), 2 * self.MANY)
        self.figure("calls of each server per grant: %.1f with two daemons, %.1f with %d" % (few, many, self.MANY))
        self.assertLessEqual(many, few + self.MANY / 3, "each daemon asks at each grant")


class DaemonsDie(QuorumTest):
    """kill -9, SIGSTOP and SIGTERM of one daemon while others wait."""
    COST, DAEMONS = 16, 3

    def test_the_locks_of_a_killed_daemon_end_with_their_lease(self):
        names = ["mine-%d" % i for i in range(10)]
        holder, waiter = self.client(self.a), self.client(self.b)
        fences = {name: holder.ok("LOCK " + name).num("fence") for name in names}
        for name in names:
            waiter.send("@%s LOCK %s wait=60s" % (name, name))
        waiter.barrier()
        for name in names:
            self.queued(name, 1)
        until_when = {name: believed(holder, name) for name in names}
        killed = time.monotonic()
        self.a.kill()
        holder.eof()
        for name in names:
            granted = waiter.reply("@" + name)
            self.assertEqual(granted.kind, "OK")
            self.assertGreater(granted.num("fence"), fences[name])
            self.assertGreaterEqual(granted.at, until_when[name] - 0.005, "the client of the killed daemon may still believe in its lock")
            self.assertLessEqual(granted.at - killed, 2.0 * 1.01 + POLL_MOST + LATE)
        self.figure("the last of %d is served %.0f ms after the kill" % (len(names), (time.monotonic() - killed) * 1000))

    def test_a_killed_daemon_at_the_head_of_the_queue_is_passed(self):
        holder, first, second = self.clients(3)
        holder.ok("LOCK queue")
        for place, client in enumerate((first, second)):
            client.send("LOCK queue wait=60s")
            self.queued("queue", place + 1)
        self.daemons[1].kill()
        begin = time.monotonic()
        holder.ok("UNLOCK queue")
        granted = second.reply()
        self.assertEqual(granted.kind, "OK")
        self.figure("%.0f ms" % ((granted.at - begin) * 1000))
        self.assertLessEqual(granted.at - begin, POLL_MOST + LATE, "the ticket of the dead daemon would end much later")

    def test_a_stopped_daemon_tells_LOST_before_anything_else(self):
        """Other clients lock, visit and unlock meanwhile. Afterwards the daemon answers truthfully what its own client has asked in between."""
        frozen, lease = self.daemons.pop(0), Lease(self.client(self.a), "shared")
        lease.check()
        ledger = self.ledger()
        ledger.visit(lease.fence)
        frozen.freeze()
        stopped = time.monotonic()
        lease.client.send("CHECK shared", "UNLOCK shared", "LOCK shared wait=20s", "PING")

        def work(number):
            with Client(self.daemons[number % 2].addr) as client:
                for _ in range(50):
                    ledger.visit(client.ok("LOCK shared wait=20s").num("fence"))
                    client.ok("UNLOCK shared")
        self.assertEqual(Workers(4, work).wait(), [0] * 4)
        moments = [row[3] for row in ledger.rows()]
        self.assertGreaterEqual(moments[1], lease.until - 0.005, "granted while the holder could still believe in its lock")
        self.assertLess(moments[1] - stopped, 2.0 * 1.01 + POLL_MOST + LATE)
        frozen.thaw()
        lines = [lease.client.line() for _ in range(5)]
        self.assertEqual([(line.kind, line.code) for line in lines], [("!", "LOST"), ("ERR", "LOST"), ("ERR", "LOST"), ("OK", None), ("OK", None)])
        ledger.visit(lines[3].num("fence"))
        lease.client.ok("UNLOCK shared sync=yes")
        ledger.check(self)

    def test_a_restart_under_load_loses_nothing(self):
        """SIGTERM and a new start, twice. The clients connect again. A lock that is held when the daemon ends stays until its lease ends."""
        ledger, end = self.ledger(), time.monotonic() + 6.5
        self.daemons.pop()

        def one(number):
            with Client(self.daemons[number % 2].addr) as client:
                while time.monotonic() < end:
                    answer = client.ask("LOCK shared wait=20s")
                    if answer.code in ("DRAINING", "QUORUM"):
                        return
                    if answer.kind != "OK":
                        raise ValueError(str(answer))
                    ledger.visit(answer.num("fence"))
                    client.ask("UNLOCK shared")

        def work(number):
            while time.monotonic() < end:
                try:
                    one(number)
                except (AssertionError, ConnectionError, FileNotFoundError):
                    time.sleep(0.02)  # the daemon has ended, or is not ready yet
        workers, waiter = Workers(6, work), self.client(self.b)
        for _ in range(2):
            waiter.listen(0.5)
            kept = Lease(self.client(self.a), "kept")
            waiter.send("LOCK kept wait=20s")
            self.queued("kept", 1)
            kept.check()
            self.assertEqual(self.a.finish()[0], 0)
            self.a.start()
            granted = waiter.reply()
            self.assertGreaterEqual(granted.at, kept.until - 0.005, "its client may still believe in its lock")
            self.assertGreater(granted.num("fence"), kept.fence)
            waiter.ok("UNLOCK kept sync=yes")
        self.assertEqual(workers.wait(), [0] * 6)
        moments = ledger.check(self)
        longest = max(later - sooner for sooner, later in zip(moments, moments[1:] + [end]))
        self.figure("%d visits in 6.5 s, longest pause %.0f ms" % (len(moments), longest * 1000))
        self.assertLessEqual(longest, 2.0 * 1.01 + POLL_MOST + LATE)

# SPDX-License-Identifier: BSD-2-Clause
"""Waiting across daemons on three servers: in the order of asking, woken by a word and not by polling, and past whoever died or was stopped."""
import select
import time

from harness import Noise, median
from process import merged, until
from quorum import Load, QuorumTest, joined
from test_counter import Workers
from test_stopped import Lease
from wire import Client

HANDOVERS = 60
POLL_MOST = 1.0  # seconds: how long a waiter to whom nobody says anything does not ask


def scripts(servers):
    """How many script calls a server had, on average; those of the health checks, which read INFO five times, are not counted."""
    calls = [server.calls() for server in servers]
    return sum(row.get("evalsha", 0) + row.get("eval", 0) - row.get("info", 0) / 5 for row in calls) / len(servers)


class InOrder(QuorumTest):
    """Who asked first is served first, on whatever daemon."""
    COST = 9

    def queue(self, count, terms=lambda i: ""):
        """A holder on a, and waiters on both daemons in turn, each in line before the next one asks."""
        holder, clients = self.client(self.a), self.on_both(count)
        holder.ok("LOCK line ttl=1s")
        for i, client in enumerate(clients):
            client.send("LOCK line wait=60s " + terms(i))
            client.barrier()
            client.listen(0.005)  # what comes closer than a round trip comes at the same moment
        self.in_line("line", 1)
        return holder, clients

    def order(self, holder, clients):
        """They lock and unlock one after the other; returns who came when. Each token is larger than the one before."""
        order, fence, waiting = [], holder.ok("CHECK line").num("fence"), dict(enumerate(clients))
        while waiting:
            self.other_side_is_in_line(holder, waiting.values())
            holder.ok("UNLOCK line")
            until(lambda: [client.fill(0.001) for client in waiting.values()] and any(client.inbox for client in waiting.values()), "somebody is served")
            granted = [i for i, client in waiting.items() if client.inbox]
            self.assertEqual(len(granted), 1, "two at once")
            holder = waiting.pop(granted[0])
            answer = holder.reply()
            self.assertEqual(answer.kind, "OK")
            self.assertGreater(answer.num("fence"), fence)
            fence = answer.num("fence")
            order += granted
        return order

    def other_side_is_in_line(self, holder, waiting):
        """What is measured is the order of asking, not which daemon is quicker to stand in line again."""
        if {client.sock.getpeername() for client in waiting} - {holder.sock.getpeername()}:
            self.in_line("line", 1)

    def test_turn_about_on_two_daemons(self):
        """Each on terms of its own, so that no daemon hands the lock on by itself. A head that is slow to come may be passed once."""
        order = self.order(*self.queue(16, lambda i: "ttl=%dms" % (1500 + 10 * i)))
        self.figure("%d of 16 in their place" % len([i for i, place in enumerate(order) if i == place]))
        self.assertLessEqual(max(abs(i - place) for i, place in enumerate(order)), 2, order)
        for side in (0, 1):
            own = [i for i in order if i % 2 == side]
            self.assertEqual(own, sorted(own), "first come, first served inside a daemon")

    def test_inside_of_each_daemon_the_line_is_strict(self):
        order = self.order(*self.queue(20))
        for side in (0, 1):
            own = [i for i in order if i % 2 == side]
            self.assertEqual(own, sorted(own))

    def test_a_busy_daemon_does_not_starve_a_waiter_elsewhere(self):
        """Its own line is never empty, yet the lock goes to whoever asked first."""
        noise, waited = Noise(), []
        self.daemons.pop()  # the load is on a alone
        load, rival = Load(self, 2.5, workers=4, ttls=["2s"]), self.client(self.b)
        while time.monotonic() < load.end - 0.3:
            rival.send("LOCK %s wait=20s ttl=2s" % load.name)
            begin, rival_granted = time.monotonic(), rival.reply()
            load.ledger.visit(rival_granted.num("fence"))
            waited.append(rival_granted.at - begin)
            rival.ok("UNLOCK " + load.name)
            noise.look()
        load.finish(least=20, gap=1.0)
        self.figure("%d waits against 4 busy clients elsewhere, median %.0f ms, longest %.0f ms" % (len(waited), median(waited) * 1000, max(waited) * 1000))
        self.assertGreaterEqual(len(waited), 3)
        self.assertLessEqual(max(waited), POLL_MOST + 0.2 + load.noise.allowance())


class HandOver(QuorumTest):
    """From a client of one daemon to a client of another: a word from the servers, one round, and no polling."""
    COST, CONFIG = 6, {"lease": "10s", "max_lease": "10s"}

    def waits(self, client, name):
        client.send("LOCK %s wait=60s" % name)
        self.in_line(name, 1)

    def test_from_daemon_to_daemon(self):
        (holder, other), name, noise, taken = self.on_both(2), self.name(), Noise(), []
        holder.ok("LOCK " + name)
        before = scripts(self.servers)
        for _ in range(HANDOVERS):
            self.waits(other, name)
            noise.last = begin = time.monotonic()
            holder.send("UNLOCK " + name)
            granted = other.reply()
            self.assertEqual(granted.kind, "OK")
            taken.append(granted.at - begin)
            noise.look(taken[-1])
            self.assertEqual(holder.reply().kind, "OK")
            holder, other = other, holder
        calls = (scripts(self.servers) - before) / HANDOVERS
        self.figure("median %.2f ms, longest %.1f ms; %.1f calls of each server per hand-over" % (median(taken) * 1000, max(taken) * 1000, calls))
        self.assertLessEqual(median(taken), 0.003 + noise.allowance())
        self.assertLessEqual(calls, 6, "asking, being told, taking, freeing")

    def test_what_is_left_behind_is_told_to_who_waits(self):
        """It was told of the lease, which was longer. Without that word it would ask again after a second."""
        holder, waiter = self.client(self.a), self.client(self.b)
        for i in range(5):
            name = "left-%d" % i
            holder.ok("LOCK %s ttl=9s" % name)
            self.waits(waiter, name)
            holder.ok("UNLOCK %s keep=200ms" % name)
            began = time.monotonic()
            waiter.reply()
            self.assertLess(time.monotonic() - began, 0.6)
            waiter.ok("UNLOCK " + name)

    def test_a_long_wait_is_a_quiet_one(self):
        """Twenty clients of one daemon stand in line as one; it asks once in a while in case that a word was lost."""
        holder, name = self.client(self.a), self.name()
        holder.ok("LOCK " + name)
        waiters = [self.client(self.b) for _ in range(20)]
        for client in waiters:
            client.send("LOCK %s wait=60s" % name)
            client.barrier()
        self.in_line(name, 1)
        before = scripts(self.servers)
        waiters[0].listen(3)
        calls = scripts(self.servers) - before
        self.figure("%.1f calls of each server in 3 s" % calls)
        self.assertLessEqual(calls, 3 / (POLL_MOST / 2) + 3)
        self.assertGreaterEqual(calls, 2, "the place in line is kept")
        self.assertEqual(waiters[0].inbox, [])


class ManyDaemons(QuorumTest):
    """Sixty-four daemons want one name."""
    COST, MANY, CONFIG = 9, 64, {"lease": "10s", "max_lease": "10s", "redis": {"timeout": "5s"}}  # what is asked twice for being slow is no matter of order

    def setUp(self):
        super().setUp()
        conf = merged({"store": "redis", "redis": {"nodes": [server.node for server in self.servers]}}, self.CONFIG)
        self.daemons += [self.daemon(conf, start=False).launch() for _ in range(self.MANY - self.DAEMONS)]
        for daemon in self.daemons:
            daemon.notify.wait("READY=1", daemon.process)
        for client in self.on_both(self.MANY):
            until(lambda: joined(client) == self.STORES, "all stores are joined")
            client.close()

    def served(self, line):
        """Who of these is granted it next."""
        poll, of = select.poll(), {client.sock.fileno(): client for client in line}
        for number in of:
            poll.register(number, select.POLLIN)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            for number, _ in poll.poll(1000):
                of[number].fill(0)
                if of[number].inbox:
                    self.assertEqual(of[number].reply().kind, "OK")
                    return of[number]
        raise AssertionError("nobody is served")

    def calls_per_grant(self, some, grants):
        """Each who was served stands in line again behind the others. Calls of each server, less those that keep places in line while nothing happens."""
        name = self.name()
        some[0].ok("LOCK %s wait=10s" % name)
        for client in some[1:]:
            client.send("LOCK %s wait=60s" % name)
        self.in_line(name, len(some) - 1)
        before, begin = scripts(self.servers), time.monotonic()
        some[0].listen(0.6)
        quiet, at = (scripts(self.servers) - before) / (time.monotonic() - begin), some[0]
        before, begin = scripts(self.servers), time.monotonic()
        for _ in range(grants):
            at.ok("UNLOCK " + name)
            following = self.served([client for client in some if client is not at])
            at.send("LOCK %s wait=60s" % name)
            at = following
        calls = scripts(self.servers) - before - quiet * (time.monotonic() - begin)
        for client in some:
            client.close()
        return calls / grants

    def test_they_ask_in_the_order_of_grants_not_of_waiters(self):
        few = self.calls_per_grant(self.on_both(2), 40)
        many = self.calls_per_grant(self.on_both(self.MANY), 2 * self.MANY)
        self.figure("calls of each server per grant: %.1f with two daemons, %.1f with %d" % (few, many, self.MANY))
        self.assertLessEqual(many, few + 8, "of the order of grants, not of waiters")


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
            self.in_line(name, 1)
        asked = time.monotonic()
        believed = {name: asked + holder.ok("CHECK " + name).num("valid_ms") / 1000 for name in names}
        killed = time.monotonic()
        self.a.kill()
        holder.eof()
        for name in names:
            granted = waiter.reply("@" + name)
            self.assertEqual(granted.kind, "OK")
            self.assertGreater(granted.num("fence"), fences[name])
            self.assertGreaterEqual(granted.at, believed[name] - 0.005, "its client may have believed it until then")
            self.assertLessEqual(granted.at - killed, 2.0 * 1.01 + POLL_MOST + 0.5)
        self.figure("last of %d served %.0f ms after the kill" % (len(names), (time.monotonic() - killed) * 1000))

    def test_a_killed_daemon_at_the_head_of_the_line_is_passed(self):
        holder, first, second = self.on_both(3)
        holder.ok("LOCK line")
        for place, client in enumerate((first, second)):
            client.send("LOCK line wait=60s")
            self.in_line("line", place + 1)
        self.daemons[1].kill()
        begin = time.monotonic()
        holder.ok("UNLOCK line")
        granted = second.reply()
        self.assertEqual(granted.kind, "OK")
        self.figure("%.0f ms" % ((granted.at - begin) * 1000))
        self.assertLessEqual(granted.at - begin, POLL_MOST + 0.75, "long before the ticket of the dead one ends")

    def test_a_stopped_daemon_tells_LOST_before_anything_else(self):
        """Others lock, visit and unlock meanwhile; what the stopped one's client asked in between is answered by the truth."""
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
        self.assertGreaterEqual(moments[1], lease.until - 0.005, "granted while the holder could still believe it")
        self.assertLess(moments[1] - stopped, 2.0 * 1.01 + POLL_MOST + 1.0)
        frozen.thaw()
        lines = [lease.client.line() for _ in range(5)]
        self.assertEqual([(line.kind, line.code) for line in lines], [("!", "LOST"), ("ERR", "LOST"), ("ERR", "LOST"), ("OK", None), ("OK", None)])
        ledger.visit(lines[3].num("fence"))
        lease.client.ok("UNLOCK shared sync=yes")
        ledger.check(self)

    def test_a_restart_under_load_loses_nothing(self):
        """SIGTERM and a new start, twice; its clients connect again. A lease that was held then runs out first."""
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
                    time.sleep(0.02)  # hung up, or not there yet
        workers, waiter = Workers(6, work), self.client(self.b)
        for _ in range(2):
            waiter.listen(0.5)
            kept = Lease(self.client(self.a), "kept")
            waiter.send("LOCK kept wait=20s")
            self.in_line("kept", 1)
            kept.check()
            self.assertEqual(self.a.finish()[0], 0)
            self.a.start()
            granted = waiter.reply()
            self.assertGreaterEqual(granted.at, kept.until - 0.005, "its client may have believed it until then")
            self.assertGreater(granted.num("fence"), kept.fence)
            waiter.ok("UNLOCK kept sync=yes")
        self.assertEqual(workers.wait(), [0] * 6)
        moments = ledger.check(self)
        longest = max(later - sooner for sooner, later in zip(moments, moments[1:] + [end]))
        self.figure("%d visits in 6.5 s, longest pause %.0f ms" % (len(moments), longest * 1000))
        self.assertLessEqual(longest, 2.0 * 1.01 + POLL_MOST + 1.0)


if __name__ == "__main__":
    from harness import main
    main()

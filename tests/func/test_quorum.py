# SPDX-License-Identifier: BSD-2-Clause
"""Redlock on three real servers: the failure of one harms nobody; without two nothing is granted, and grants come back by themselves with the servers."""
import re
import time

from harness import safety
from lease import Lease
from ledger import Load
from process import LATE, until
from quorum import QUARANTINE, REJOIN, QuorumTest, next_served
from redis_server import FENCE
from resumable import resume_fences, with_grace

HELD = 20  # locks that a client of each daemon holds throughout a test


class OneStoreFails(QuorumTest):
    """While a quorum lives exclusion holds, fences grow, nothing is lost and grants do not pause."""
    COST = 20

    def hold(self):
        """Takes locks at both daemons, which must renew them."""
        self.holders = self.clients(2)
        for i, client in enumerate(self.holders):
            for k in range(HELD):
                client.ok("LOCK held-%d-%d" % (i, k))

    def still_held(self):
        for i, client in enumerate(self.holders):
            for k in range(HELD):
                client.ok("CHECK held-%d-%d" % (i, k))
            self.assertNotIn("LOST", [line.code for line in client.inbox])

    def under_load(self, *steps, seconds=2.6):
        """Takes the steps, half a second apart, while six processes add to one counter."""
        self.hold()
        load = Load(self, seconds)
        for step in steps:
            load.watch(self.holders[0], 0.5)
            step()
        load.finish(self.holders[0], least=20, gap=LATE)
        self.still_held()

    def back_at(self, begin):
        """All servers have joined again within the promised time, so that another one may fail. Returns the seconds since `begin`."""
        clients = self.clients(2)
        for client in clients:
            until(lambda: client.joined() == 3, "the store is joined again", REJOIN + 5)
        seconds = time.monotonic() - begin
        before = clients[0].ok("LOCK later").num("fence")
        clients[0].ok("UNLOCK later sync=yes")
        self.servers[2].kill()
        for client in clients:
            granted = client.ok("LOCK later wait=5s")
            self.assertGreater(granted.num("fence"), before)
            before = granted.num("fence")
            client.ok("UNLOCK later sync=yes")
        self.still_held()
        return seconds

    def test_one_is_killed(self):
        self.under_load(self.servers[0].kill)

    def test_one_is_stopped_for_a_while(self):
        self.under_load(self.servers[0].freeze, lambda: None, lambda: None, self.servers[0].thaw)
        self.assertLess(self.back_at(time.monotonic()), 2 + LATE, "a server that has forgotten nothing is quarantined")

    def test_one_is_restarted_blank(self):
        moment = []
        self.under_load(lambda: (self.servers[0].restart(), moment.append(time.monotonic())))
        self.assertTrue(QUARANTINE <= self.back_at(moment[0]) <= REJOIN + LATE)

    def test_one_is_flushed(self):
        moment = []
        self.under_load(lambda: (self.servers[0].cli.flushall(), moment.append(time.monotonic())))
        self.assertTrue(QUARANTINE <= self.back_at(moment[0]) <= REJOIN + LATE)

    def test_the_connections_of_one_are_cut(self):
        def cut():
            self.servers[0].cut_connections("normal", "pubsub")
        self.under_load(cut, cut, cut)
        self.assertLess(self.back_at(time.monotonic()), 2 + LATE)

    def test_each_is_stopped_in_turn(self):
        """For half a second each, never two at once."""
        steps = []
        for server in self.servers:
            steps += [server.freeze, server.thaw]
        self.under_load(*steps, seconds=3.8)


class EverythingIsReplaced(QuorumTest):
    """One store after the other restarts blank, and both daemons are replaced: nothing is left that has seen the old fences."""
    COST, CONFIG = 8, {"lease": "1s", "max_lease": "1s"}

    def test_fences_still_grow(self):
        clients, ahead = self.clients(2), int((time.time() + 45) * 1e6)
        for server in self.servers:
            server.cli.set(FENCE, ahead)  # fences may run a minute ahead of the clock
        before = clients[0].ok("LOCK f").num("fence")
        self.assertGreater(before, ahead)
        clients[0].ok("UNLOCK f sync=yes")
        for server in self.servers:
            server.kill()
            until(lambda: [client.joined() for client in clients] == [2, 2], "the loss is noticed")
            server.restart()
            until(lambda: [client.joined() for client in clients] == [3, 3], "the store is joined again")
        for daemon in self.daemons:
            daemon.finish()
        for _ in range(2):
            with self.host().client() as client:
                after = client.ok("LOCK f wait=5s").num("fence")
                client.ok("UNLOCK f sync=yes")
            self.assertGreater(after, before)
            before = after


class TwoStoresFail(QuorumTest):
    """Without a quorum holders hear of their loss in time and nothing is granted. Grants come back by themselves."""
    COST = 12

    def holder_is_known(self):
        """Whether the other daemon knows the holder, because a quorum has answered its first round."""
        return [row for row in self.queues[1][0].ask("@show SHOW precious").rows if row["role"] == "holder"]

    def setUp(self):
        super().setUp()
        self.lease = Lease(self.client(self.a), "precious")
        self.queues = [[], []]
        for i, client in enumerate(self.clients(6)):
            client.begin("LOCK precious wait=60s")
            self.queues[i % 2].append(client)
        until(self.holder_is_known, "both daemons know that it is held")

    def lost_in_time(self):
        """The holder is pushed RISK, and LOST before its last valid_ms ends."""
        self.lease.lost_in_time(self)
        holder = self.lease.client
        told = [line.code for line in holder.inbox if line.kind == "!" and line.code in ("RISK", "LOST")]
        self.assertEqual(told, ["RISK", "LOST"])
        risk = holder.push("RISK", "precious")
        self.assertTrue(0 < risk.num("left_ms") <= 2000, risk)
        self.assertEqual(holder.push("LOST", "precious")["reason"], "quorum")

    def refused(self):
        """A LOCK that does not wait is answered at once, and names how many servers answer. One that waits is answered at the end of its wait."""
        for client in self.clients(2):
            begin = time.monotonic()
            answer = client.err("LOCK other", "QUORUM")
            self.assertRegex(str(answer), r"\b1 of 3\b.*\b2\b")
            self.assertLess(answer.at - begin, LATE)
            answer = client.err("LOCK other wait=300ms", "QUORUM")
            self.assertTrue(0.3 <= answer.at - begin < 0.3 + LATE, answer)
            self.assertEqual(client.joined(), 1)
        late = self.client(self.b)
        self.assertEqual(late.ask("LOCK precious wait=300ms").kind, "TIMEOUT", "the daemon has known of a holder since there was a quorum")
        for client in sum(self.queues, []):
            client.barrier()
            self.assertEqual(client.inbox, [], "a waiter does not keep its place")

    def served(self, begin):
        """All six waiters are served one at a time, those of each daemon in the order of their requests. Returns the seconds to the first grant."""
        queues, fences, first = [list(queue) for queue in self.queues], [self.lease.fence], None
        while any(queues):
            heads = [queue[0] for queue in queues if queue]
            served = next_served(self, heads)
            answer = served.reply()
            self.assertEqual(answer.kind, "OK")
            first = first or answer.at
            fences.append(answer.num("fence"))
            for client in sum(queues, []):
                if client is not served:
                    client.barrier()
                    self.assertEqual(client.inbox, [], "a waiter is served out of turn")
            served.ok("UNLOCK precious")
            queues = [queue[queue[0] is served:] if queue else queue for queue in queues]
        with safety():
            self.assertEqual(fences, sorted(set(fences)), "fences do not grow")
        return first - begin

    def test_two_are_stopped_for_a_while(self):
        for server in self.servers[1:]:
            server.freeze()
        self.lost_in_time()
        self.refused()
        begin = time.monotonic()
        for server in self.servers[1:]:
            server.thaw()
        seconds = self.served(begin)
        self.figure("the first grant comes %.0f ms after the servers" % (seconds * 1000))
        self.assertLess(seconds, 2.0 + LATE)

    def test_two_are_killed_and_restarted_blank(self):
        for server in self.servers[1:]:
            server.kill()
        self.lost_in_time()
        self.refused()
        begin = time.monotonic()
        for server in self.servers[1:]:
            server.restart()
        until(self.retry_is_told, "the daemon says how long the quarantine takes")
        seconds = self.served(begin)
        self.figure("the first grant comes %.0f ms after the servers" % (seconds * 1000))
        self.assertTrue(QUARANTINE <= seconds <= REJOIN + 1, seconds)

    def retry_is_told(self):
        told = re.search(r" retry_ms=(\d+)", str(self.lease.client.err("LOCK other", "QUORUM")))
        return told and 0 < int(told[1]) <= 2100

    def test_two_are_flushed_at_once(self):
        """Two votes are gone with their keys: the holder is told, and nobody else is granted the lock while the holder may believe in it."""
        begin = time.monotonic()
        for server in self.servers[1:]:
            server.cli.flushall()
        lost = self.lease.lost_in_time(self)
        seconds = self.served(begin)
        self.assertGreaterEqual(begin + seconds, lost.at)
        self.assertTrue(QUARANTINE <= seconds <= REJOIN + 1, seconds)


class OneDaemonIsKilled(QuorumTest):
    """kill -9 of one of two daemons, while clients of the other wait for its locks."""
    COST, CONFIG = 5, {"lease": "3s", "max_lease": "3s"}

    def test_its_clients_resume_with_their_locks_and_fences(self):
        holder = self.client(self.a)
        ticket = with_grace(holder, "30s")
        fences = {name: holder.ok("LOCK %s" % name).num("fence") for name in ("one", "two", "three")}
        waiters = {name: self.client(self.b) for name in fences}
        for name, waiter in waiters.items():
            waiter.send("LOCK %s wait=60s" % name)
            self.queued(name, 1)
        self.a.restart()
        back = self.client(self.a)
        self.assertEqual(resume_fences(back, ticket), fences)
        back.listen(3.5)  # longer than a lease, which the new daemon must renew
        for name, waiter in waiters.items():
            self.assertEqual(back.ok("CHECK " + name).num("fence"), fences[name])
            waiter.barrier()
            self.assertEqual(waiter.inbox, [], "another client was granted the lock")
        for name, waiter in waiters.items():
            back.ok("UNLOCK " + name)
            self.assertGreater(waiter.reply().num("fence"), fences[name])

# SPDX-License-Identifier: BSD-2-Clause
"""Redlock on three real servers: what one of them does harms nobody; without two nobody is let in, and all goes on by itself when they are back."""
import re
import time

from harness import safety
from process import until
from resumable import resume, with_grace
from quorum import QUARANTINE, REJOIN, Load, QuorumTest, joined
from test_stopped import Lease

HELD = 20  # locks that each of two daemons keeps all the time


class OneStoreFails(QuorumTest):
    """Exclusion, growing fences, nothing LOST and no pause while a quorum lives."""
    COST = 20

    def hold(self):
        """Locks on both daemons that the watchdog must keep."""
        self.holders = self.on_both(2)
        for i, client in enumerate(self.holders):
            for k in range(HELD):
                client.ok("LOCK held-%d-%d" % (i, k))

    def still_held(self):
        for i, client in enumerate(self.holders):
            for k in range(HELD):
                client.ok("CHECK held-%d-%d" % (i, k))
            self.assertNotIn("LOST", [line.code for line in client.inbox])

    def under_load(self, *steps, seconds=2.6):
        """Carries the steps out, half a second apart, while six processes increment one counter."""
        self.hold()
        load = Load(self, seconds)
        for step in steps:
            load.watch(self.holders[0], 0.5)
            step()
        load.watch(self.holders[0], seconds)
        load.finish(least=20, gap=1.0)
        self.still_held()

    def back_at(self, begin):
        """All servers count again, within the time that is promised; then another one may go."""
        clients = self.on_both(2)
        for client in clients:
            until(lambda: joined(client) == 3, "the store is used again", REJOIN + 5)
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

    def test_one_is_stopped_and_goes_on(self):
        self.under_load(self.servers[0].freeze, lambda: None, lambda: None, self.servers[0].thaw)
        self.assertLess(self.back_at(time.monotonic()), 2 + 1, "no quarantine: it forgot nothing")

    def test_one_is_restarted_blank(self):
        moment = []
        self.under_load(lambda: (self.servers[0].restart(), moment.append(time.monotonic())))
        self.assertTrue(QUARANTINE <= self.back_at(moment[0]) <= REJOIN + 1)

    def test_one_is_flushed(self):
        moment = []
        self.under_load(lambda: (self.servers[0].cli.flushall(), moment.append(time.monotonic())))
        self.assertTrue(QUARANTINE <= self.back_at(moment[0]) <= REJOIN + 1)

    def test_the_connections_of_one_are_cut(self):
        def cut():
            for kind in ("normal", "pubsub"):
                self.servers[0].cli.execute_command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
        self.under_load(cut, cut, cut)
        self.assertLess(self.back_at(time.monotonic()), 2 + 1)

    def test_the_primary_role_of_a_store_wanders(self):
        """Each of the three is stopped for half a second in turn, with never two at once."""
        steps = []
        for server in self.servers:
            steps += [server.freeze, server.thaw]
        self.under_load(*steps, seconds=3.8)


class EverythingIsReplaced(QuorumTest):
    """One store after the other restarts blank, then both daemons are new: nobody is left who could remember a token."""
    COST, CONFIG = 8, {"lease": "1s", "max_lease": "1s"}

    def test_tokens_still_grow(self):
        clients, ahead = self.on_both(2), int((time.time() + 45) * 1e6)
        for server in self.servers:
            server.cli.set("redlockd:lock:!fence", ahead)  # tokens may run a minute ahead of the clock
        before = clients[0].ok("LOCK f").num("fence")
        self.assertGreater(before, ahead)
        clients[0].ok("UNLOCK f sync=yes")
        for server in self.servers:
            server.kill()
            until(lambda: [joined(client) for client in clients] == [2, 2], "the loss is noticed")
            server.restart()
            until(lambda: [joined(client) for client in clients] == [3, 3], "the store is used again")
        for daemon in self.daemons:
            daemon.finish()
        for _ in range(2):
            with self.host().client() as client:
                after = client.ok("LOCK f wait=5s").num("fence")
                client.ok("UNLOCK f sync=yes")
            self.assertGreater(after, before)
            before = after


class TwoStoresFail(QuorumTest):
    """A minority is no quorum: holders are told in time, nobody is granted anything, and it ends by itself."""
    COST = 12

    def holder_is_seen(self):
        """Whether a quorum has told the other daemon who stands in its way: its first round is answered."""
        return [row for row in self.queues[1][0].ask("@show SHOW precious").rows if row["role"] == "holder"]

    def setUp(self):
        super().setUp()
        self.lease = Lease(self.client(self.a), "precious")
        self.queues = [[], []]
        for i, client in enumerate(self.on_both(6)):
            client.send("LOCK precious wait=60s")
            client.barrier()
            self.queues[i % 2].append(client)
        until(self.holder_is_seen, "both daemons know that it is held")

    def lost_in_time(self):
        """The holder hears RISK, then LOST, and that before the last valid_ms has ended; waiters hear nothing at all."""
        self.lease.lost_in_time(self)
        holder = self.lease.client
        told = [line.code for line in holder.inbox if line.kind == "!" and line.code in ("RISK", "LOST")]
        self.assertEqual(told, ["RISK", "LOST"])
        risk = holder.push("RISK", "precious")
        self.assertTrue(0 < risk.num("left_ms") <= 2000, risk)
        self.assertEqual(holder.push("LOST", "precious")["reason"], "quorum")

    def refused(self):
        """Who does not wait is told at once how many of how many; who waits a little, at the end of it."""
        for client in self.on_both(2):
            begin = time.monotonic()
            answer = client.err("LOCK other", "QUORUM")
            self.assertRegex(str(answer), r"\b1 of 3\b.*\b2\b")
            self.assertLess(answer.at - begin, 1.0)
            answer = client.err("LOCK other wait=300ms", "QUORUM")
            self.assertTrue(0.3 <= answer.at - begin < 2, answer)
            self.assertEqual(joined(client), 1)
        late = self.client(self.b)
        self.assertEqual(late.ask("LOCK precious wait=300ms").kind, "TIMEOUT", "a holder was seen while there was a quorum")
        for client in sum(self.queues, []):
            client.barrier()
            self.assertEqual(client.inbox, [], "a waiter keeps its place")

    def served(self, begin):
        """All six, those of each daemon in the order in which they came, one at a time. Returns the seconds up to the first."""
        queues, fences, first = [list(queue) for queue in self.queues], [self.lease.fence], None
        while any(queues):
            heads = [queue[0] for queue in queues if queue]
            until(lambda: [head.fill(0.002) for head in heads] and any(head.inbox for head in heads), "a head is served", 12)
            granted = [head for head in heads if head.inbox]
            self.assertEqual(len(granted), 1, "two at once")
            answer = granted[0].reply()
            self.assertEqual(answer.kind, "OK")
            first = first or answer.at
            fences.append(answer.num("fence"))
            for client in sum(queues, []):
                if client is not granted[0]:
                    client.barrier()
                    self.assertEqual(client.inbox, [], "out of its turn")
            granted[0].ok("UNLOCK precious")
            queues = [queue[queue[0] is granted[0]:] if queue else queue for queue in queues]
        with safety():
            self.assertEqual(fences, sorted(set(fences)), "fences grow")
        return first - begin

    def test_two_that_hang_and_come_back_whole(self):
        for server in self.servers[1:]:
            server.freeze()
        self.lost_in_time()
        self.refused()
        begin = time.monotonic()
        for server in self.servers[1:]:
            server.thaw()
        seconds = self.served(begin)
        self.figure("served %.0f ms after they came back" % (seconds * 1000))
        self.assertLess(seconds, 2.0 + 1.0)

    def test_two_that_die_and_come_back_blank(self):
        for server in self.servers[1:]:
            server.kill()
        self.lost_in_time()
        self.refused()
        begin = time.monotonic()
        for server in self.servers[1:]:
            server.restart()
        until(self.pending_is_told, "the quarantine is announced")
        seconds = self.served(begin)
        self.figure("served %.0f ms after they came back" % (seconds * 1000))
        self.assertTrue(QUARANTINE <= seconds <= REJOIN + 1, seconds)

    def pending_is_told(self):
        told = re.search(r" retry_ms=(\d+)", str(self.lease.client.err("LOCK other", "QUORUM")))
        return told and 0 < int(told[1]) <= 2100

    def test_two_that_are_flushed_at_once(self):
        """The keys are gone, and with them two votes: the holder learns it, and nobody else is let in while it may believe."""
        begin = time.monotonic()
        for server in self.servers[1:]:
            server.cli.flushall()
        lost = self.lease.lost_in_time(self)
        seconds = self.served(begin)
        self.assertGreaterEqual(begin + seconds, lost.at)
        self.assertTrue(QUARANTINE <= seconds <= REJOIN + 1, seconds)


class OneDaemonIsKilled(QuorumTest):
    """kill -9 of one of two daemons, while clients of the other wait for what its clients hold."""
    COST, CONFIG = 5, {"lease": "3s", "max_lease": "3s"}

    def test_its_clients_resume_and_keep_locks_and_fences(self):
        holder = self.client(self.a)
        ticket = with_grace(holder, "30s")
        fences = {name: holder.ok("LOCK %s" % name).num("fence") for name in ("one", "two", "three")}
        waiters = {name: self.client(self.b) for name in fences}
        for name, waiter in waiters.items():
            waiter.send("LOCK %s wait=60s" % name)
            self.in_line(name, 1)
        self.a.kill()
        self.a.start()
        back = self.client(self.a)
        self.assertEqual({name: row.num("fence") for name, row in resume(back, ticket).items()}, fences)
        back.listen(3.5)  # longer than a lease: kept by the new life
        for name, waiter in waiters.items():
            self.assertEqual(back.ok("CHECK " + name).num("fence"), fences[name])
            waiter.barrier()
            self.assertEqual(waiter.inbox, [], "nobody else was let in")
        for name, waiter in waiters.items():
            back.ok("UNLOCK " + name)
            self.assertGreater(waiter.reply().num("fence"), fences[name])


if __name__ == "__main__":
    from harness import main
    main()

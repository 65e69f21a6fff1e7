# SPDX-License-Identifier: BSD-2-Clause
"""RESUME after the daemon itself was gone: killed, stopped, ended, started anew with the same runtime directory."""
import contextlib
import os
import shutil
import time

from harness import FuncTest
from process import merged, until
from resumable import resume, with_grace

CONF = {"lease": "3s", "max_lease": "5s"}


def journal_of(daemon):
    return os.path.join(daemon.runtime_dir, "journal")


class Life(FuncTest):
    def next_life(self, daemon):
        """The same daemon again: address, configuration, runtime directory."""
        if daemon.alive():
            daemon.kill()
        return daemon.start()

    def holding(self, daemon, *requests, grace="30s"):
        """A session with grace that made these requests: its ticket, its client, the fences by name."""
        client = self.client(daemon)
        ticket = with_grace(client, grace)
        answers = [client.ok(request) for request in requests]
        return ticket, client, {answer["name"]: answer.num("fence") for answer in answers}

    def resumed(self, daemon, ticket):
        client = self.client(daemon)
        return client, {name: row.num("fence") for name, row in resume(client, ticket).items()}


class Killed(Life):
    """kill -9 of a daemon on one Redis."""
    COST = 16

    def start(self, tree=None):
        self.server = self.redis()
        return self.redis_daemon(self.server, merged(CONF, tree or {}))

    def test_locks_and_fences_survive(self):
        daemon = self.start()
        ticket, _, fences = self.holding(daemon, "LOCK a note=mine", "LOCK b owner=t1", "LOCK b owner=t1", 'LOCK "odd name\\x00="')
        values = {key: self.server.cli.get(key) for key in self.server.lock_keys()}
        self.next_life(daemon)
        back, held = self.resumed(daemon, ticket)
        self.assertEqual(held, fences)
        other = self.client(daemon)
        for name in ("a", "b"):
            other.busy("LOCK " + name)
        self.assertEqual(sorted(values), self.server.lock_keys())
        self.assertTrue(all(self.server.cli.get(key) != value for key, value in values.items()), "adopted under new values")
        back.listen(3.5)  # renewed by the new daemon
        self.assertEqual(back.inbox, [])
        self.assertEqual(back.ok("CHECK b owner=t1").num("count"), 2)
        for request in ("UNLOCK b owner=t1", "UNLOCK b owner=t1", "UNLOCK a"):
            back.ok(request)
        self.assertGreater(other.ok("LOCK a wait=5s").num("fence"), fences["a"])
        other.ok("LOCK b wait=5s")

    def test_a_second_kill_is_survived_like_the_first(self):
        daemon = self.start()
        ticket, _, fences = self.holding(daemon, "LOCK a", "LOCK b")
        for _ in range(3):
            self.next_life(daemon)
            _, held = self.resumed(daemon, ticket)
            self.assertEqual(held, fences)
        self.next_life(daemon)
        client = self.client(daemon)
        until(lambda: self.adoptions(client) == 2, "both are adopted, and nobody has come back")
        self.next_life(daemon)
        self.assertEqual(self.resumed(daemon, ticket)[1], fences)

    def adoptions(self, client):
        return {row["metric"]: row.num("value") for row in client.ok("STATS").rows}["adoptions_total"]

    def test_what_was_unlocked_before_is_not_resumed(self):
        daemon = self.start()
        ticket, client, fences = self.holding(daemon, "LOCK a", "LOCK b", "LOCK c")
        client.ok("UNLOCK a")
        client.ok("UNLOCK c sync=yes")
        self.next_life(daemon)
        back, held = self.resumed(daemon, ticket)
        self.assertEqual(held, {"b": fences["b"]})
        back.err("CHECK a", "NOTHELD")
        self.client(daemon).ok("LOCK a wait=5s")

    def test_a_session_that_quit_is_not_resumed(self):
        daemon = self.start()
        ticket, client, _ = self.holding(daemon, "LOCK a")
        client.ok("QUIT")
        self.next_life(daemon)
        self.client(daemon).err(str(ticket), "NOTFOUND")

    def test_without_grace_nothing_is_written_and_nothing_resumed(self):
        daemon = self.start()
        client = self.client(daemon)
        hello = client.ok("HELLO 1 name=plain")
        for i in range(20):
            client.ok("LOCK a-%d" % i)
        self.assertFalse([f for f in os.listdir(daemon.runtime_dir) if "journal" in f])
        self.next_life(daemon)
        self.client(daemon).err("RESUME %s %s" % (hello["session"], hello["secret"]), "NOTFOUND")
        self.assertFalse([f for f in os.listdir(daemon.runtime_dir) if "journal" in f])

    def test_a_lock_handed_on_is_resumed_by_its_last_holder_only(self):
        daemon = self.start()
        first, a, fences = self.holding(daemon, "LOCK x", "LOCK y")
        second, b, _ = self.holding(daemon)
        plain = self.client(daemon)
        b.send("LOCK x wait=20s")
        b.barrier()
        plain.send("LOCK y wait=20s")
        plain.barrier()
        a.ok("UNLOCK x")
        a.ok("UNLOCK y")
        fence = b.reply().num("fence")
        self.assertGreater(fence, fences["x"])
        self.assertEqual(plain.reply().kind, "OK")
        self.next_life(daemon)
        self.assertEqual(self.resumed(daemon, first)[1], {})
        self.assertEqual(self.resumed(daemon, second)[1], {"x": fence})

    def test_of_two_that_resume_at_a_time_one_has_it(self):
        """On one daemon: who comes last takes over, and the other is hung up."""
        daemon = self.start()
        ticket, _, fences = self.holding(daemon, "LOCK a")
        for _ in range(3):
            self.next_life(daemon)
            racers = [self.client(daemon) for _ in range(4)]
            for client in racers:
                client.send(str(ticket))
            until = time.monotonic() + 10
            while sum(not client.ended for client in racers) > 1 and time.monotonic() < until:
                for client in racers:
                    client.fill(0.01)
            left = [client for client in racers if not client.ended]
            self.assertEqual(len(left), 1, racers)
            self.assertEqual(left[0].reply()["session"], ticket.session)
            self.assertEqual(left[0].ok("CHECK a").num("fence"), fences["a"])

    def test_of_two_daemons_with_one_journal_exactly_one_adopts(self):
        """As if a folder had been copied: nothing but the store can tell them apart, and it does."""
        daemon = self.start()
        ticket, _, fences = self.holding(daemon, *["LOCK n-%d" % i for i in range(20)])
        daemon.kill()
        pair = [self.redis_twin(daemon), daemon]
        for one in pair:
            one.launch()  # side by side
        for one in pair:
            self.assertTrue(one.notify.wait("READY=1", one.process))
        clients = [self.client(one) for one in pair]
        for client in clients:
            client.send(str(ticket))
        rows = [{row["name"]: row.num("fence") for row in client.reply().rows} for client in clients]
        held = [{name for name in fences if client.ask("CHECK " + name).kind == "OK"} for client in clients]
        self.assertEqual(held[0] & held[1], set())
        self.assertEqual({**rows[0], **rows[1]}, fences, "each of them by one")
        self.assertEqual(len(rows[0]) + len(rows[1]), len(fences))

    def redis_twin(self, daemon):
        twin = self.daemon(merged(CONF, {"store": "redis", "redis": {"nodes": [self.server.node]}}), start=False)
        shutil.copy(journal_of(daemon), journal_of(twin))
        return twin

    def test_a_thousand_locks_are_resumed_within_their_leases(self):
        daemon = self.start({"limits": {"locks": 2000}, "lease": "5s"})
        client = self.client(daemon)
        ticket = with_grace(client)
        client.send(*["LOCK many-%d" % i for i in range(1000)])
        fences = [client.reply().num("fence") for _ in range(1000)]
        begin = time.monotonic()
        self.next_life(daemon)
        back = self.client(daemon)
        rows = resume(back, ticket)
        self.figure("1,000 locks resumed %.0f ms after kill -9" % ((time.monotonic() - begin) * 1000))
        self.assertEqual([rows["many-%d" % i].num("fence") for i in range(1000)], fences)
        back.listen(5.5)
        self.assertEqual(back.inbox, [], "all are renewed")

    def test_too_late_is_lost_and_said_so(self):
        daemon = self.start({"lease": "500ms", "max_lease": "1s"})
        ticket, _, fences = self.holding(daemon, "LOCK a")
        daemon.kill()
        key = self.server.lock_keys()[0]
        begin = time.monotonic()
        while self.server.cli.exists(key):
            self.assertLess(time.monotonic() - begin, 10)
            time.sleep(0.02)
        daemon.start()
        back, held = self.resumed(daemon, ticket)
        self.assertEqual(held, {})
        self.assertEqual(back.push("LOST", "a").num("fence"), fences["a"])
        back.err("CHECK a", "LOST")
        self.assertGreater(self.client(daemon).ok("LOCK a wait=5s").num("fence"), fences["a"])


class KilledAgain(Life):
    """kill -9 of a life that has asked the stores and not heard of a quorum: one has carried it out, one stands still, one is no more."""
    COST = 20
    CONF = {"lease": "25s", "max_lease": "25s", "redis": {"timeout": "5s"}}

    def joined(self, daemon):
        with contextlib.suppress(OSError, AssertionError):
            client = self.client(daemon)
            return [row["state"] for row in client.ok("LIST nodes").rows].count("joined")
        return 0

    def values(self, server):
        return {key: server.cli.get(key) for key in server.lock_keys()}

    def killed_while_it_adopts(self, daemon, slow, quick):
        """slow is joined and stands still; then quick makes a quorum, so that both are asked, and carries it out."""
        before = set(self.values(quick).items())
        quick.freeze()
        daemon.launch()
        until(lambda: self.joined(daemon) == 1, "one store is joined")
        slow.freeze()
        quick.thaw()
        until(lambda: not set(self.values(quick).items()) & before, "the other has taken the new values", 20)
        daemon.kill()
        slow.thaw()

    def test_two_kills_within_the_round_trip_of_an_adoption_cost_nothing(self):
        servers = [self.redis() for _ in range(3)]
        daemon = self.daemon(merged(self.CONF, {"store": "redis", "guard": "trust-first-start", "redis": {"nodes": [server.node for server in servers]}})).joined()
        ticket, _, fences = self.holding(daemon, *["LOCK n-%d" % i for i in range(20)])
        daemon.kill()
        servers[2].kill()
        self.killed_while_it_adopts(daemon, servers[0], servers[1])
        self.killed_while_it_adopts(daemon, servers[1], servers[0])
        daemon.start()
        back, held = self.resumed(daemon, ticket)
        self.assertEqual(held, fences)
        for name, fence in fences.items():
            self.assertEqual(back.ok("CHECK " + name).num("fence"), fence)
        back.ok("UNLOCK n-0")
        self.assertGreater(self.client(daemon).ok("LOCK n-0 wait=20s").num("fence"), fences["n-0"])


class Stopped(Life):
    """A daemon that is stopped, not gone, and another one on its runtime directory."""
    COST = 8

    def test_the_second_is_refused_until_the_first_is_gone(self):
        server = self.redis()
        first = self.redis_daemon(server, CONF)
        ticket, _, fences = self.holding(first, "LOCK a")
        first.freeze()
        second = self.daemon(merged(CONF, {"store": "redis", "redis": {"nodes": [server.node]}}), runtime_dir=first.runtime_dir, start=False).launch()
        second.expect_dead = True
        self.assertNotEqual(second.process.wait(10), 0)
        self.assertIn(first.runtime_dir, second.log())
        first.thaw()
        self.client(first).ok("PING")
        first.freeze()
        first.kill()
        second.start()
        back, held = self.resumed(second, ticket)
        self.assertEqual(held, fences)
        self.client(second).busy("LOCK a")
        back.ok("UNLOCK a")

    def test_one_that_wakes_up_takes_nothing_back(self):
        """With a runtime directory of its own, and a copy of the journal: what a wrong set-up does."""
        server = self.redis()
        first = self.redis_daemon(server, CONF)
        ticket, client, fences = self.holding(first, "LOCK a")
        first.freeze()
        second = self.daemon(merged(CONF, {"store": "redis", "redis": {"nodes": [server.node]}}), start=False)
        shutil.copy(journal_of(first), journal_of(second))
        second.start()
        back, held = self.resumed(second, ticket)
        self.assertEqual(held, fences)
        client.send("UNLOCK a")  # read when it goes on: a release of a value that stands no more
        first.thaw()
        self.assertIn(client.reply().kind, ("OK", "ERR"))
        back.ok("CHECK a")
        self.client(first).busy("LOCK a")
        back.listen(3.5)
        self.assertEqual(back.inbox, [])
        back.ok("UNLOCK a")


class OnMemory(Life):
    """The memory store: a clean end keeps what is held, a crash nothing."""
    COST = 11

    def test_after_a_clean_end_locks_are_resumed(self):
        daemon = self.daemon(CONF)
        ticket, client, fences = self.holding(daemon, "LOCK a", "LOCK b", "LOCK b", "LOCK c")
        client.ok("UNLOCK c")
        plain = self.client(daemon)
        plain.ok("LOCK theirs")
        for _ in range(2):
            self.assertEqual(daemon.finish()[0], 0)
            daemon.start()
            other = self.client(daemon)
            for name in ("a", "b", "theirs")[:2 + (_ == 0)]:
                other.busy("LOCK " + name)
            back, held = self.resumed(daemon, ticket)
            self.assertEqual(held, {name: fences[name] for name in "ab"})
            self.assertEqual(back.ok("CHECK b").num("count"), 2)
            other.ok("LOCK c wait=1s")
            other.ok("UNLOCK c")
        back.listen(3.5)
        self.assertEqual(back.inbox, [], "renewed")
        back.ok("UNLOCK a")
        self.assertGreater(other.ok("LOCK a wait=1s").num("fence"), fences["a"])

    def test_who_waited_keeps_nothing_and_is_told_so(self):
        daemon = self.daemon(CONF)
        self.holding(daemon, "LOCK a")
        waiter = self.client(daemon)
        ticket = with_grace(waiter)
        waiter.send("LOCK a wait=30s")
        waiter.barrier()
        daemon.finish()
        self.assertEqual(waiter.reply().code, "DRAINING")
        daemon.start()
        self.assertEqual(self.resumed(daemon, ticket)[1], {})

    def test_after_a_crash_there_is_nothing_to_resume(self):
        """Everything is refused for max_lease: nobody knows what sessions without grace held."""
        daemon = self.daemon(CONF)
        ticket, _, fences = self.holding(daemon, "LOCK a")
        begin = time.monotonic()
        self.next_life(daemon)
        client = self.client(daemon)
        client.err(str(ticket), "NOTFOUND")
        self.assertFalse(os.path.exists(journal_of(daemon)))
        granted = client.ok("LOCK a wait=20s", 21)
        self.assertGreaterEqual(granted.at - begin, 5.0)
        self.assertGreater(granted.num("fence"), fences["a"])


if __name__ == "__main__":
    from harness import main
    main()

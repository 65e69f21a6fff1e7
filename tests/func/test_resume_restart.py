# SPDX-License-Identifier: BSD-2-Clause
"""RESUME after the daemon was killed, stopped or ended, and started again with the same runtime directory."""
import contextlib
import os
import time

from daemon import on_redis
from harness import FuncTest
from process import merged, until
from resumable import resume, resume_fences, with_grace

CONF = {"lease": "3s", "max_lease": "5s"}


class RestartTest(FuncTest):
    def holding(self, daemon, *requests):
        """A session with grace that sends these requests. Returns (ticket, client, {name: fence})."""
        client = self.client(daemon)
        ticket = with_grace(client)
        answers = [client.ok(request) for request in requests]
        return ticket, client, {answer["name"]: answer.num("fence") for answer in answers}

    def resumed(self, daemon, ticket):
        """Resumes the session at a daemon. Returns (client, {name: fence})."""
        client = self.client(daemon)
        return client, resume_fences(client, ticket)

    def on_new_redis(self, tree=None):
        self.server = self.redis()
        return self.redis_daemon(self.server, merged(CONF, tree))


class Killed(RestartTest):
    """kill -9 of a daemon on one Redis."""
    COST = 16

    def test_locks_and_fences_survive(self):
        daemon = self.on_new_redis()
        ticket, _, fences = self.holding(daemon, "LOCK a note=mine", "LOCK b owner=t1", "LOCK b owner=t1", 'LOCK "odd name\\x00="')
        values = {key: self.server.cli.get(key) for key in self.server.lock_keys()}
        daemon.restart()
        back, held = self.resumed(daemon, ticket)
        self.assertEqual(held, fences)
        other = self.client(daemon)
        for name in ("a", "b"):
            other.busy("LOCK " + name)
        self.assertEqual(sorted(values), self.server.lock_keys())
        self.assertEqual({key: self.server.cli.get(key) for key in values}, values, "a lock has another value")
        back.listen(3.5)  # longer than a lease, which the new daemon must renew
        self.assertEqual(back.inbox, [])
        self.assertEqual(back.ok("CHECK b owner=t1").num("count"), 2)
        for request in ("UNLOCK b owner=t1", "UNLOCK b owner=t1", "UNLOCK a"):
            back.ok(request)
        self.assertGreater(other.ok("LOCK a wait=5s").num("fence"), fences["a"])
        other.ok("LOCK b wait=5s")

    def test_locks_and_fences_survive_further_kills(self):
        daemon = self.on_new_redis()
        ticket, _, fences = self.holding(daemon, "LOCK a", "LOCK b")
        for _ in range(3):
            daemon.restart()
            _, held = self.resumed(daemon, ticket)
            self.assertEqual(held, fences)
        daemon.restart()
        client = self.client(daemon)
        until(lambda: client.stats()["adoptions_total"] == 2, "both locks are adopted before the session is resumed")
        daemon.restart()
        self.assertEqual(self.resumed(daemon, ticket)[1], fences)

    def test_unlocked_locks_are_not_resumed(self):
        daemon = self.on_new_redis()
        ticket, client, fences = self.holding(daemon, "LOCK a", "LOCK b", "LOCK c")
        client.ok("UNLOCK a")
        client.ok("UNLOCK c sync=yes")
        daemon.restart()
        back, held = self.resumed(daemon, ticket)
        self.assertEqual(held, {"b": fences["b"]})
        back.err("CHECK a", "NOTHELD")
        self.client(daemon).ok("LOCK a wait=5s")

    def test_a_session_that_has_quit_is_not_resumed(self):
        daemon = self.on_new_redis()
        ticket, client, _ = self.holding(daemon, "LOCK a")
        client.ok("QUIT")
        daemon.restart()
        self.client(daemon).err(str(ticket), "NOTFOUND")

    def test_without_grace_nothing_is_written_and_nothing_resumed(self):
        daemon = self.on_new_redis()
        client = self.client(daemon)
        hello = client.ok("HELLO 1 name=plain")
        for i in range(20):
            client.ok("LOCK a-%d" % i)
        self.assertFalse([f for f in os.listdir(daemon.runtime_dir) if "journal" in f])
        daemon.restart()
        self.client(daemon).err("RESUME %s %s" % (hello["session"], hello["secret"]), "NOTFOUND")
        self.assertFalse([f for f in os.listdir(daemon.runtime_dir) if "journal" in f])

    def test_a_lock_that_was_handed_over_is_resumed_by_its_last_holder_only(self):
        daemon = self.on_new_redis()
        first, a, fences = self.holding(daemon, "LOCK x", "LOCK y")
        second, b, _ = self.holding(daemon)
        plain = self.client(daemon)
        b.begin("LOCK x wait=20s")
        plain.begin("LOCK y wait=20s")
        a.ok("UNLOCK x")
        a.ok("UNLOCK y")
        fence = b.reply().num("fence")
        self.assertGreater(fence, fences["x"])
        self.assertEqual(plain.reply().kind, "OK")
        daemon.restart()
        self.assertEqual(self.resumed(daemon, first)[1], {})
        self.assertEqual(self.resumed(daemon, second)[1], {"x": fence})

    def test_of_several_that_resume_a_session_at_a_time_the_last_has_it(self):
        """On one daemon: the last connection takes the session over, and the daemon hangs up on the others."""
        daemon = self.on_new_redis()
        ticket, _, fences = self.holding(daemon, "LOCK a")
        for _ in range(3):
            daemon.restart()
            racers = [self.client(daemon) for _ in range(4)]
            for client in racers:
                client.send(str(ticket))
            deadline = time.monotonic() + 10
            while sum(not client.ended for client in racers) > 1 and time.monotonic() < deadline:
                for client in racers:
                    client.fill(0.01)
            open_ones = [client for client in racers if not client.ended]
            self.assertEqual(len(open_ones), 1, racers)
            self.assertEqual(open_ones[0].reply()["session"], ticket.session)
            self.assertEqual(open_ones[0].ok("CHECK a").num("fence"), fences["a"])

    def test_more_locks_than_a_portion_of_a_snapshot_has_are_resumed_within_their_leases(self):
        daemon = self.on_new_redis({"limits": {"locks": 2000}, "lease": "5s", "redis": {"timeout": "1500ms"}})
        client = self.client(daemon)
        ticket = with_grace(client)
        client.send(*["LOCK many-%d" % i for i in range(1200)])
        fences = [client.reply().num("fence") for _ in range(1200)]
        begin = time.monotonic()
        daemon.restart()
        back = self.client(daemon)
        rows = resume(back, ticket)
        self.figure("1,200 locks are resumed %.0f ms after kill -9" % ((time.monotonic() - begin) * 1000))
        self.assertEqual([rows["many-%d" % i].num("fence") for i in range(1200)], fences)
        back.listen(5.5)
        self.assertEqual(back.inbox, [], "a lock is not renewed")

    def test_a_lock_that_expired_meanwhile_is_pushed_as_LOST(self):
        daemon = self.on_new_redis({"lease": "500ms", "max_lease": "1s"})
        ticket, _, fences = self.holding(daemon, "LOCK a")
        daemon.kill()
        key = self.server.lock_keys()[0]
        until(lambda: not self.server.cli.exists(key), "the key expires")
        daemon.start()
        back, held = self.resumed(daemon, ticket)
        self.assertEqual(held, {})
        self.assertEqual(back.push("LOST", "a").num("fence"), fences["a"])
        back.err("CHECK a", "LOST")
        self.assertGreater(self.client(daemon).ok("LOCK a wait=5s").num("fence"), fences["a"])


class KilledWhileItAdopts(RestartTest):
    """kill -9 of a daemon that has asked the stores to adopt its locks, and has no quorum yet: one store has done so, one is stopped, one is killed."""
    COST = 20
    CONF = {"lease": "25s", "max_lease": "25s", "redis": {"timeout": "5s"}}

    def joined(self, daemon):
        with contextlib.suppress(OSError, AssertionError):
            return self.client(daemon).joined()
        return 0

    def ends(self, server):
        return [server.cli.pexpiretime(key) for key in server.lock_keys()]

    def checked(self, client, name):
        answer = client.ask("CHECK " + name)
        if answer.kind != "OK":
            self.assertEqual(answer.code, "QUORUM", answer)
        return answer if answer.kind == "OK" else None

    def killed_while_it_adopts(self, daemon, slow, quick):
        """slow is joined and then stopped. quick makes a quorum with it, so that the daemon asks both, and adopts the locks. Then the daemon is killed."""
        before = max(self.ends(quick))
        quick.freeze()
        daemon.launch()
        until(lambda: self.joined(daemon) == 1, "one store is joined")
        slow.freeze()
        quick.thaw()
        until(lambda: min(self.ends(quick)) > before, "the other store has renewed the locks", 20)
        daemon.kill()
        slow.thaw()

    def test_two_kills_within_the_round_trip_of_an_adoption_lose_nothing(self):
        servers = [self.redis() for _ in range(3)]
        daemon = self.daemon(on_redis(servers, self.CONF)).joined()
        ticket, _, fences = self.holding(daemon, *["LOCK n-%d" % i for i in range(20)])
        daemon.kill()
        servers[2].kill()
        self.killed_while_it_adopts(daemon, servers[0], servers[1])
        self.killed_while_it_adopts(daemon, servers[1], servers[0])
        daemon.start()
        back, held = self.resumed(daemon, ticket)
        self.assertLessEqual(held.items(), fences.items())
        for name, fence in fences.items():  # on a busy machine RESUME may be answered before all are adopted
            self.assertEqual(until(lambda: self.checked(back, name), name + " is adopted").num("fence"), fence)
        back.ok("UNLOCK n-0")
        self.assertGreater(self.client(daemon).ok("LOCK n-0 wait=20s").num("fence"), fences["n-0"])


class Stopped(RestartTest):
    """A daemon that is stopped but not gone, and a second one with its runtime directory."""
    COST = 8

    def test_the_second_is_refused_until_the_first_has_ended(self):
        first = self.on_new_redis()
        ticket, _, fences = self.holding(first, "LOCK a")
        first.freeze()
        second = self.refused(on_redis([self.server], CONF), first.runtime_dir, runtime_dir=first.runtime_dir)
        first.thaw()
        self.client(first).ok("PING")
        first.freeze()
        first.kill()
        second.start()
        back, held = self.resumed(second, ticket)
        self.assertEqual(held, fences)
        self.client(second).busy("LOCK a")
        back.ok("UNLOCK a")


class OnMemory(RestartTest):
    """On the memory store locks outlive a clean end and a crash."""
    COST = 14

    def test_after_a_crash_locks_are_resumed(self):
        daemon = self.daemon({"lease": "12s", "max_lease": "15s"})  # a busy disk delays the end of a daemon by seconds
        ticket, client, fences = self.holding(daemon, "LOCK a", "LOCK b", "LOCK b", "LOCK c")
        client.ok("UNLOCK c")
        self.client(daemon).ok("LOCK theirs")
        for turn in range(2):
            daemon.restart()
            other = self.client(daemon)
            for name in ("a", "b", "theirs")[:3 if turn == 0 else 2]:
                other.busy("LOCK " + name)
            other.ok("LOCK c")
            other.ok("UNLOCK c")
            back, held = self.resumed(daemon, ticket)
            self.assertEqual(held, {name: fences[name] for name in "ab"})
            self.assertEqual(back.ok("CHECK b").num("count"), 2)
        seen = []
        until(lambda: seen.append(back.ok("CHECK a").num("valid_ms")) or seen[-1] > seen[max(0, len(seen) - 2)], "the lock is renewed")
        self.assertEqual(back.inbox, [])
        back.ok("UNLOCK a")
        self.assertGreater(other.ok("LOCK a wait=1s").num("fence"), fences["a"])

    def test_after_a_clean_end_locks_are_resumed(self):
        daemon = self.daemon(CONF)
        ticket, client, fences = self.holding(daemon, "LOCK a", "LOCK b", "LOCK b", "LOCK c")
        client.ok("UNLOCK c")
        plain = self.client(daemon)
        plain.ok("LOCK theirs")
        for turn in range(2):
            self.assertEqual(daemon.finish()[0], 0)
            daemon.start()
            other = self.client(daemon)
            for name in ("a", "b", "theirs")[:3 if turn == 0 else 2]:
                other.busy("LOCK " + name)
            back, held = self.resumed(daemon, ticket)
            self.assertEqual(held, {name: fences[name] for name in "ab"})
            self.assertEqual(back.ok("CHECK b").num("count"), 2)
            other.ok("LOCK c wait=1s")
            other.ok("UNLOCK c")
        back.listen(3.5)
        self.assertEqual(back.inbox, [], "a lock is not renewed")
        back.ok("UNLOCK a")
        self.assertGreater(other.ok("LOCK a wait=1s").num("fence"), fences["a"])

    def test_a_session_that_waits_is_told_DRAINING_and_keeps_nothing(self):
        daemon = self.daemon(CONF)
        self.holding(daemon, "LOCK a")
        waiter = self.client(daemon)
        ticket = with_grace(waiter)
        waiter.begin("LOCK a wait=30s")
        daemon.finish()
        self.assertEqual(waiter.reply().code, "DRAINING")
        daemon.start()
        self.assertEqual(self.resumed(daemon, ticket)[1], {})

    def test_after_a_crash_without_the_names_there_is_nothing_to_resume(self):
        """The daemon grants nothing for max_lease, because it does not know the locks of sessions without grace."""
        daemon = self.daemon(CONF)
        ticket, _, fences = self.holding(daemon, "LOCK a")
        begin = time.monotonic()
        daemon.kill()
        for f in os.listdir(daemon.runtime_dir):
            if f.startswith("keys-"):
                os.unlink(os.path.join(daemon.runtime_dir, f))
        daemon.start()
        client = self.client(daemon)
        client.err(str(ticket), "NOTFOUND")
        self.assertFalse(os.path.exists(daemon.journal))
        granted = client.ok("LOCK a wait=20s", 21)
        self.assertGreaterEqual(granted.at - begin, 5.0)
        self.assertGreater(granted.num("fence"), fences["a"])

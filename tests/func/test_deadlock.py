# SPDX-License-Identifier: BSD-2-Clause
"""Owners that wait for each other at one daemon or several, over one server and over three: one of them is refused, and the others go on."""
import select
import time

from process import LATE, until
from quorum import QuorumTest

FOUND = 10.0 + LATE  # seconds within which a deadlock is found
TABLE = "redlockd:lock:!circles"


def first_answered(test, clients):
    """Waits for the answers of these clients, and returns the first one that has one."""
    poll, deadline = select.poll(), time.monotonic() + FOUND
    for client in clients:
        poll.register(client.sock, select.POLLIN)
    while not any(client.inbox for client in clients):
        test.assertLess(time.monotonic(), deadline, "no deadlock is found")
        for fd, _ in poll.poll(1000):
            next(client for client in clients if client.sock.fileno() == fd).fill(0)
    return next(client for client in clients if client.inbox)


class Circle:
    """Clients of different daemons, each of which holds a name and waits for that of the next one."""
    COST = 10

    def circle(self):
        clients = self.clients(self.DAEMONS)
        names = ["name-%d" % i for i in range(len(clients))]
        for client, name in zip(clients, names):
            client.ok("LOCK " + name)
        for i, client in enumerate(clients):
            wanted = names[(i + 1) % len(names)]
            self.assertEqual(client.begin("LOCK %s wait=60s" % wanted), [])
            self.queued(wanted, 1)
        return clients, names

    def keys(self):
        """How many daemons have left owners at each server."""
        return [server.cli.hlen(TABLE) for server in self.servers]

    def test_the_last_of_a_circle_is_refused_and_the_others_go_on(self):
        begin = time.monotonic()
        clients, names = self.circle()
        last = clients[-1]
        self.assertIs(first_answered(self, clients), last)
        answer = last.reply()
        self.figure("found after %.1f s" % (time.monotonic() - begin))
        self.assertEqual(answer.code, "DEADLOCK")
        told = [part.rsplit("@", 1) for part in answer.text.split("cycle=")[1].strip('"').split("<-")]
        self.assertEqual([name for name, _ in told], names + names[:1])
        self.assertTrue(all(host for _, host in told), answer.text)
        self.assertEqual([client.inbox for client in clients], [[] for _ in clients])
        for client, name in zip(reversed(clients), reversed(names)):
            client.ok("UNLOCK " + name)
            if client is not clients[0]:
                self.assertEqual(clients[clients.index(client) - 1].reply().kind, "OK")
        until(lambda: not any(self.keys()), "nothing is left at the servers")

    def test_nobody_pays_where_no_owner_waits_long_while_it_holds_something(self):
        holder, waiter, brief = self.client(self.a), self.client(self.b), self.client(self.b)
        holder.ok("LOCK held")
        self.assertEqual(waiter.begin("LOCK held wait=60s"), [])
        brief.ok("LOCK other")
        self.assertEqual(brief.ask("LOCK held wait=500ms").kind, "TIMEOUT")
        self.assertEqual(any(server.cli.exists(TABLE) for server in self.servers), False)
        self.assertEqual(brief.begin("LOCK held wait=60s"), [])
        until(lambda: sum(self.keys()) == 1, "the owner is told to one server")
        holder.ok("UNLOCK held")
        self.assertEqual(waiter.reply().kind, "OK")
        waiter.ok("UNLOCK held")
        self.assertEqual(brief.reply().kind, "OK")
        until(lambda: not any(self.keys()), "nothing is left at the servers")


class OverThreeServers(Circle, QuorumTest):
    STORES, DAEMONS = 3, 3


class OverOneServer(Circle, QuorumTest):
    STORES, DAEMONS = 1, 2


class AServerIsGone(QuorumTest):
    """One of three servers hangs."""
    STORES, DAEMONS, COST = 3, 2, 8

    def test_the_deadlock_is_found(self):
        one, two = self.clients(2)
        one.ok("LOCK a")
        two.ok("LOCK b")
        self.servers[0].freeze()
        self.assertEqual(one.begin("LOCK b wait=60s"), [])
        self.assertEqual(two.begin("LOCK a wait=60s"), [])
        refused = first_answered(self, (one, two))
        self.assertEqual(refused.reply().code, "DEADLOCK")
        self.servers[0].thaw()
        refused.ok("UNLOCK %s" % ("a" if refused is one else "b"))
        self.assertEqual((two if refused is one else one).reply().kind, "OK")


class AWriterBetween(QuorumTest):
    """A reader waits for a reader of another host, because a writer stands between them."""
    STORES, DAEMONS, COST = 3, 3, 8

    def test_the_deadlock_of_the_readers_is_found(self):
        one, two, writer = self.clients(3)
        one.ok("LOCK a mode=shared")
        two.ok("LOCK b")
        self.assertEqual(writer.begin("LOCK a wait=60s"), [])
        self.queued("a", 1)
        self.assertEqual(one.begin("LOCK b wait=60s"), [])
        self.queued("b", 1)
        self.assertEqual(two.begin("LOCK a mode=shared wait=60s"), [])
        self.assertEqual(two.reply().code, "DEADLOCK")
        two.ok("UNLOCK b")
        self.assertEqual(one.reply().kind, "OK")
        one.ok("UNLOCK a")
        self.assertEqual(writer.reply().kind, "OK")


class SeveralAtOnce(QuorumTest):
    """LOCKALL waits for all of its names, and LOCKANY for any of them."""
    STORES, DAEMONS, COST = 1, 2, 12

    def test_a_LOCKALL_is_refused_and_a_LOCKANY_waits(self):
        one, two, free = self.client(self.a), self.client(self.b), self.client(self.b)
        one.ok("LOCK a")
        two.ok("LOCK b")
        free.ok("LOCK c")
        self.assertEqual(two.begin("LOCK a wait=60s"), [])
        self.queued("a", 1)
        self.assertEqual(one.begin("LOCKALL c b wait=60s"), [])
        self.assertEqual(one.reply().code, "DEADLOCK")
        self.assertEqual(one.begin("@any LOCKANY b c wait=60s"), [])
        free.ok("UNLOCK c")
        self.assertEqual(one.reply("@any")["name"], "c")

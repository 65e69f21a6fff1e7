# SPDX-License-Identifier: BSD-2-Clause
"""Several independent Redis servers, and several daemons on all of them, as on different hosts."""
import select
import time

from daemon import on_redis
from harness import FuncTest
from ledger import Ledger
from process import until

LEASE_2S = {"lease": "2s", "max_lease": "2s"}
QUARANTINE = 2.0  # seconds, max_lease: a server that has forgotten its locks has no vote for so long
REJOIN = QUARANTINE * 1.02 + 3.0  # seconds within which it votes again: 1 to reconnect, 1 to be noticed, 1 for the second daemon
RESERVED = 0.02  # how long a free lock waits for the one whose turn it is
ESTIMATES_DIFFER_US = 100000  # at most, those of two daemons of one server's clock
POLL_MOST = 1.0  # seconds: a waiter that hears nothing asks again after so long


def server_us(server):
    """The clock of a server, in microseconds."""
    seconds, us = server.cli.time()
    return seconds * 1000000 + us


def next_served(test, clients, settle=0.002):
    """Waits until the daemon answers one of these clients, and returns it. Nobody else may be answered within settle seconds a client."""
    poll, deadline = select.poll(), time.monotonic() + 12
    for client in clients:
        poll.register(client.sock, select.POLLIN)
    while not any(client.inbox for client in clients):
        test.assertLess(time.monotonic(), deadline, "nobody is served")
        ready = {fd for fd, _ in poll.poll(1000)}
        for client in clients:
            if client.sock.fileno() in ready:
                client.fill(0)
    for client in clients:
        client.fill(settle)
    served = [client for client in clients if client.inbox]
    test.assertEqual(len(served), 1, "two are served at once")
    return served[0]


class QuorumTest(FuncTest):
    """Each test has its own servers and daemons. a is the first daemon, b the last."""
    STORES, DAEMONS, CONFIG = 3, 2, LEASE_2S

    def setUp(self):
        super().setUp()
        self.servers = [self.redis() for _ in range(self.STORES)]
        self.daemons = [self.host() for _ in range(self.DAEMONS)]
        self.a, self.b = self.daemons[0], self.daemons[-1]

    def host(self, tree=None, **options):
        """Starts one more daemon, which joins all servers."""
        daemon = self.daemon(on_redis(self.servers, self.CONFIG, tree), **options)
        with daemon.client() as client:
            until(lambda: client.joined() == self.STORES, "all stores are joined")
        return daemon

    def clients(self, count):
        """So many clients, on the daemons in turn."""
        return [self.client(self.daemons[i % len(self.daemons)]) for i in range(count)]

    def tickets(self, name):
        """How many daemons are queued for a name, on the server that knows of the fewest."""
        queues = [server.cli.zrange("redlockd:lock:q:" + name, 0, -1) for server in self.servers if server.runs()]
        return min(len([member for member in queue if not member.startswith(b"~")]) for queue in queues)

    def queued(self, name, count):
        """
        Waits until so many daemons are queued on every server, and until any request that follows is behind them: a ticket is the moment of its request by
        the daemon's estimate of the server's clock, and on a busy machine two estimates differ by some milliseconds.
        """
        until(lambda: self.tickets(name) >= count, "%d tickets for %s" % (count, name))
        for server in self.servers:
            if server.runs():
                members = server.cli.zrange("redlockd:lock:q:" + name, 0, -1)
                newest = max((int(member.partition(b":")[0].lstrip(b"~")) for member in members), default=0)
                until(lambda server=server, newest=newest: server_us(server) > newest + ESTIMATES_DIFFER_US, "the tickets for %s are of the past" % name)

    def order(self, holder, clients):
        """
        Lets all lock and unlock "queue", one after the other. Returns their numbers in the order of the grants. Each fence is larger than the one before.
        Each unlocks when the other daemons that wait are queued again: the order is that of the requests, whichever daemon is quicker to queue again.
        """
        order, fence, waiting = [], holder.ok("CHECK queue").num("fence"), list(clients)
        while waiting:
            self.queued("queue", len({client.sock.getpeername() for client in waiting} - {holder.sock.getpeername()}))
            holder.ok("UNLOCK queue")
            holder = next_served(self, waiting, 0.001)
            waiting.remove(holder)
            answer = holder.reply()
            self.assertEqual(answer.kind, "OK")
            self.assertGreater(answer.num("fence"), fence)
            fence = answer.num("fence")
            order.append(clients.index(holder))
        return order

    def in_turn(self, wait, tries=5):
        """
        wait(name) lets clients wait for a name, and returns its holder and them, in the order in which they shall be served. The holder unlocks it: the first
        one is served before the others. On a busy machine it may come after its turn is over. Then another one is served, and there is another try.
        """
        for i in range(tries):
            name = "turn-%d" % i
            holder, waiting = wait(name)
            began = time.monotonic()
            holder.ok("UNLOCK " + name)
            served = next_served(self, waiting, 0.05)
            if served is waiting[0]:
                return name, waiting
            self.assertGreater(served.inbox[0].at - began, RESERVED, "served out of turn")
        return self.fail("no turn is taken")

    def ledger(self):
        return Ledger(self.folder("redlockd-ledger-"))

# SPDX-License-Identifier: BSD-2-Clause
"""What a lock is for: many processes add to one counter in a file, and no addition is lost."""
import random

from harness import StoreTest, on_each_store
from ledger import Ledger, Workers
from wire import Client

CLIENTS, TIMES = 64, 25


def add(client, name, ledger, times):
    """Locks, adds one and unlocks, so many times."""
    for _ in range(times):
        ledger.visit(client.ok("LOCK %s wait=forever" % name, 100).num("fence"))
        client.ok("UNLOCK " + name, 100)


@on_each_store
class Counter:
    COST = 8

    def setUp(self):
        super().setUp()
        self.ledger = Ledger(self.folder())

    def work(self, count, body, total):
        """Runs so many processes, after which the counter must stand at total."""
        self.assertEqual(Workers(count, body).wait(), [0] * count)
        self.ledger.check(self, total)

    def test_64_processes_add_25_each_to_1600(self):
        name = self.name()

        def body(_):
            with Client(self.d.addr) as c:
                add(c, name, self.ledger, TIMES)
        self.work(CLIENTS, body, CLIENTS * TIMES)

    def test_sessions_that_come_and_go_lose_nothing(self):
        """The sessions free their locks in all ways, drawn by chance: UNLOCK, QUIT, close, half-close."""
        name, rounds = self.name(), 30

        def one(rng):
            c = Client(self.d.addr)
            self.ledger.visit(c.ok("LOCK %s wait=forever" % name, 100).num("fence"))
            end = rng.choice(["UNLOCK %s" % name, "UNLOCK %s sync=yes" % name, "QUIT", "close", "half-close"])
            if end == "half-close":
                c.half_close()
                c.eof()
            elif end != "close":
                c.ok(end)
            c.close()

        def body(number):
            rng = random.Random(number)
            for _ in range(rounds):
                one(rng)
        self.work(16, body, 16 * rounds)

    def test_polling_clients_and_waiting_clients_share_it(self):
        name = self.name()

        def body(number):
            with Client(self.d.addr) as c:
                done = 0
                while done < 20:
                    granted = c.ask("LOCK %s wait=%s" % (name, ("0", "2ms", "forever")[number % 3]), 100)
                    if granted.kind == "OK":
                        self.ledger.visit(granted.num("fence"))
                        c.ok("UNLOCK " + name, 100)
                        done += 1
        self.work(24, body, 24 * 20)


class CounterThroughTwoDaemons(StoreTest):
    """The same through two daemons that share one Redis."""
    STORE, COST = "redis", 2

    def test_32_processes_on_two_daemons_add_up(self):
        other, name, ledger = self.redis_daemon(self.r), self.name(), Ledger(self.folder())

        def body(number):
            with Client((self.d, other)[number % 2].addr) as c:
                add(c, name, ledger, 25)
        self.assertEqual(Workers(32, body).wait(), [0] * 32)
        ledger.check(self, 32 * 25)

# SPDX-License-Identifier: BSD-2-Clause
"""What a lock is for: 64 processes increment one counter in a file, and nothing is lost."""
import os
import random
import signal
import tempfile

from harness import StoreTest, on_each_store, safety
from wire import Client

CLIENTS, TIMES = 64, 100


def increment(path, fence):
    """Read, add one, write: torn by any overlap. Returns what it wrote."""
    fd = os.open(path, os.O_RDWR)
    try:
        value = int(os.pread(fd, 32, 0) or b"0") + 1
        os.pwrite(fd, b"%d" % value, 0)
    finally:
        os.close(fd)
    with open(path + ".log", "ab", buffering=0) as log:
        log.write(b"%d %d\n" % (value, fence))


class Workers:
    """Forked processes; each runs body(number) and ends with status 0 only when it returned."""

    def __init__(self, count, body):
        self.pids = [self.fork(body, i) for i in range(count)]

    @staticmethod
    def fork(body, number):
        pid = os.fork()
        if pid:
            return pid
        status = 1
        try:
            signal.alarm(120)
            body(number)
            status = 0
        except BaseException as fault:
            os.write(2, ("worker %d: %r\n" % (number, fault)).encode())
        finally:
            os._exit(status)

    def wait(self):
        return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in self.pids]


class CounterFile:
    """A counter, and a log of who wrote what."""

    def setUp(self):
        super().setUp()
        handle, self.path = tempfile.mkstemp(prefix="redlockd-counter-")
        os.close(handle)
        self.addCleanup(lambda: [os.unlink(p) for p in (self.path, self.path + ".log") if os.path.exists(p)])

    def grants(self):
        with open(self.path + ".log") as log:
            return [tuple(int(x) for x in line.split()) for line in log]

    @safety()
    def check(self, total):
        with open(self.path) as counter:
            self.assertEqual(int(counter.read()), total)
        grants = self.grants()
        self.assertEqual([value for value, _ in grants], list(range(1, total + 1)), "one after the other")
        fences = [fence for _, fence in grants]
        self.assertEqual(fences, sorted(set(fences)), "fences strictly grow in the order of the grants")


@on_each_store
class Counter(CounterFile):
    COST = 8

    def test_64_processes_add_100_each_to_6400(self):
        name = self.name()

        def body(_):
            with Client(self.d.addr) as c:
                for _ in range(TIMES):
                    increment(self.path, c.ok("LOCK %s wait=forever" % name, 100).num("fence"))
                    c.ok("UNLOCK " + name, 100)
        self.assertEqual(Workers(CLIENTS, body).wait(), [0] * CLIENTS)
        self.check(CLIENTS * TIMES)

    def test_sessions_that_come_and_go_and_die_lose_nothing(self):
        """Every way to free a lock, at random: unlock, quit, close, half-close; a killed holder was done with its increment."""
        name, rounds = self.name(), 30

        def one(rng):
            c = Client(self.d.addr)
            increment(self.path, c.ok("LOCK %s wait=forever" % name, 100).num("fence"))
            end = rng.choice(["UNLOCK", "QUIT", "close", "half-close", "sync"])
            if end == "UNLOCK":
                c.ok("UNLOCK " + name)
            elif end == "sync":
                c.ok("UNLOCK %s sync=yes" % name)
            elif end == "QUIT":
                c.ok("QUIT")
            elif end == "half-close":
                c.half_close()
                c.eof()
            c.close()

        def body(number):
            rng = random.Random(number)
            for _ in range(rounds):
                one(rng)
        self.assertEqual(Workers(16, body).wait(), [0] * 16)
        self.check(16 * rounds)

    def test_polling_clients_and_waiting_clients_share_it(self):
        name = self.name()

        def body(number):
            with Client(self.d.addr) as c:
                done = 0
                while done < 20:
                    granted = c.ask("LOCK %s wait=%s" % (name, ("0", "2ms", "forever")[number % 3]), 100)
                    if granted.kind == "OK":
                        increment(self.path, granted.num("fence"))
                        c.ok("UNLOCK " + name, 100)
                        done += 1
        self.assertEqual(Workers(24, body).wait(), [0] * 24)
        self.check(24 * 20)

    def test_64_waiters_are_served_in_the_order_of_their_requests(self):
        name, holder = self.name(), self.connect()
        holder.ok("LOCK " + name)
        clients = [self.connect() for _ in range(CLIENTS)]
        random.Random(3).shuffle(clients)
        for c in clients:
            c.send("LOCK %s wait=forever" % name)
            c.barrier()
        order = []
        holder.ok("UNLOCK " + name)
        for c in clients:
            order.append(c.reply().num("fence"))
            c.ok("UNLOCK " + name)
        self.assertEqual(order, sorted(set(order)))


class CounterThroughTwoDaemons(CounterFile, StoreTest):
    """The same through two daemons that share one Redis."""
    STORE, COST = "redis", 2

    def test_32_processes_on_two_daemons_add_up(self):
        other, name = self.redis_daemon(self.r), self.name()

        def body(number):
            with Client((self.d, other)[number % 2].addr) as c:
                for _ in range(25):
                    increment(self.path, c.ok("LOCK %s wait=forever" % name, 100).num("fence"))
                    c.ok("UNLOCK " + name, 100)
        self.assertEqual(Workers(32, body).wait(), [0] * 32)
        self.check(32 * 25)


if __name__ == "__main__":
    from harness import main
    main()

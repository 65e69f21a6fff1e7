# SPDX-License-Identifier: BSD-2-Clause
"""A process whose few clients make the daemon search: owners that hold permits and wait for more, readers of one name, and requests that ask anew who waits for whom."""
import contextlib
import multiprocessing
import os
import time

from wire import Client

CLIENTS, OWNERS, READERS = 4, 125, 1000
LIMIT = CLIENTS * OWNERS
WAVE = 8  # requests of one kind and one client at once


def grown(addr, stack):
    """The clients, with all that they hold and wait for."""
    clients = [stack.enter_context(Client(addr)) for _ in range(CLIENTS)]
    for client in clients:
        for owner in range(OWNERS):
            client.ok("ACQUIRE P limit=%d owner=%d" % (LIMIT, owner))
            client.ok("ACQUIRE Q limit=%d owner=%d" % (LIMIT, owner))
        for reader in range(READERS // CLIENTS):
            client.ok("LOCK r mode=shared owner=r%d" % reader)
    for client in clients:
        client.begin(*("@%d ACQUIRE %s limit=%d owner=%d wait=1h" % (owner, "PQ"[owner % 2], LIMIT, owner) for owner in range(OWNERS - 1)))
        client.ok("PING")
    return clients


def wave(clients):
    """Requests that wait for a moment, some of each client at once. Returns how many."""
    requests = ["@w%d ACQUIRE P limit=%d owner=%d wait=1ms" % (i, LIMIT, OWNERS - 1) for i in range(WAVE)]
    requests += ["@x%d LOCK r owner=%d wait=1ms" % (i, OWNERS - 1) for i in range(WAVE)]
    for client in clients:
        client.begin(*requests)
    for client in clients:
        for request in requests:
            client.reply(request.split(" ")[0], timeout=60)
    return len(clients) * len(requests)


def attack(addr, cpu, pipe):
    os.nice(19)
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})
    with contextlib.ExitStack() as stack:
        clients = grown(addr, stack)
        pipe.send("ready")
        asked = 0
        while pipe.recv() == "go":
            while not pipe.poll():
                asked += wave(clients)
            pipe.recv()
            pipe.send(asked)


class Attack:
    def __init__(self, addr, cpu):
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=attack, args=(addr, cpu, theirs), daemon=True)
        self.process.start()
        self.answer()
        self.begun = 0.0

    def answer(self):
        if not self.pipe.poll(120):
            raise AssertionError("the attackers are not answered for 2 minutes")
        return self.pipe.recv()

    def ask(self, what, _answer):
        """As a generator: go, and stop."""
        if what == "go":
            self.pipe.send("go")
            self.begun = time.monotonic()
            return {}
        self.pipe.send("stop")
        return {"asked": self.answer(), "us": 1e6 * (time.monotonic() - self.begun)}

    def close(self):
        self.process.terminate()
        self.process.join(10)

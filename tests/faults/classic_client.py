# SPDX-License-Identifier: BSD-2-Clause
"""A client process of the classic algorithm, beside those of redlockd. It writes the same history."""
import os
import random
import signal
import time

import process
from classic import Classic
from history import MS, Log, now
from registers import Registers


class Worker:
    def __init__(self, options):
        self.rng = random.Random(options["seed"])
        self.log = Log(os.path.join(options["folder"], "c%02d.log" % options["c"]))
        self.registers = Registers(options["folder"], options["names"])
        self.names, self.serial, self.stopping = options["names"], 0, False
        self.client = Classic(options["paths"], options["ttl_ms"], 0.1, now)

    def stop(self, *_):
        self.stopping = True

    def call(self, verb, name, **fields):
        self.serial += 1
        self.log.tell("call", n=self.serial, q=verb, name=name, wait=0, **fields)

    def answer(self, kind, **fields):
        self.log.tell("answer", n=self.serial, kind=kind, code=None, **fields)

    def lock(self, name):
        self.call("LOCK", name, renew=False)
        if self.client.lock(name):
            self.answer("OK", fence=None, valid=self.client.valid_ms, count=1)
            return True
        self.answer("BUSY")
        return False

    def unlock(self, name):
        self.call("UNLOCK", name)
        self.client.unlock(name)
        self.answer("OK", count=0)

    def update(self, name, deadline):
        if now() + 60 * MS > deadline:
            return
        self.log.tell("try", name=name)
        value = self.registers.count(name)
        time.sleep(self.rng.choice((0, 0.002, 0.005)))
        self.registers.set_count(name, value + 1)
        self.log.tell("done", name=name, late=now() > deadline)

    def live(self):
        while not self.stopping:
            name = self.rng.choice(self.names)
            if self.lock(name):
                self.update(name, self.client.until)
                self.unlock(name)
            time.sleep(self.rng.uniform(0.005, 0.08))


def run(options):
    """The whole life of the process."""
    process.die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker = Worker(options)
    signal.signal(signal.SIGTERM, worker.stop)
    worker.log.tell("start", c=options["c"], d=None, eof_ends=False)
    worker.live()

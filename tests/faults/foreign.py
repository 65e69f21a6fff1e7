# SPDX-License-Identifier: BSD-2-Clause
"""A Redlock client of the classic kind: SET NX PX on every server, compare and delete. It knows nothing of redlockd, and writes the same history."""
import os
import random
import signal
import time

import redis

import process
from history import Log, now
from register import Registers

MS = 1_000_000
RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"


class Foreign:
    def __init__(self, options):
        self.rng = random.Random(options["seed"])
        self.log = Log(os.path.join(options["folder"], "c%02d.log" % options["c"]))
        self.registers = Registers(options["folder"], options["names"])
        self.names, self.ttl_ms, self.serial, self.stopping = options["names"], options["ttl_ms"], 0, False
        self.nodes = [redis.Redis(unix_socket_path=path, socket_timeout=0.1) for path in options["nodes"]]

    def stop(self, *_):
        self.stopping = True

    def each(self, call):
        done = 0
        for node in self.nodes:
            try:
                done += bool(call(node))
            except (redis.exceptions.RedisError, OSError):
                node.connection_pool.disconnect()
        return done

    def lock(self, name):
        """(value, deadline), or None."""
        self.serial += 1
        asked = self.log.tell("call", n=self.serial, q="LOCK", name=name, wait=0, renew=False)
        key, value = "lock:" + name, "%032x" % self.rng.getrandbits(128)
        votes = self.each(lambda node: node.set(key, value, nx=True, px=self.ttl_ms))
        valid = self.ttl_ms * 99 // 100 - 3
        if votes > len(self.nodes) // 2 and now() < asked + valid * MS:
            self.log.tell("answer", n=self.serial, kind="OK", code=None, fence=None, valid=valid, count=1)
            return value, asked + valid * MS
        self.log.tell("answer", n=self.serial, kind="BUSY", code=None)
        self.unlock(name, value)
        return None

    def unlock(self, name, value):
        self.each(lambda node: node.eval(RELEASE, 1, "lock:" + name, value))

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
            held = self.lock(name)
            if held:
                self.update(name, held[1])
                self.serial += 1
                self.log.tell("call", n=self.serial, q="UNLOCK", name=name, wait=0)
                self.unlock(name, held[0])
                self.log.tell("answer", n=self.serial, kind="OK", code=None, count=0)
            time.sleep(self.rng.uniform(0.005, 0.08))


def run(options):
    process.die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker = Foreign(options)
    signal.signal(signal.SIGTERM, worker.stop)
    worker.log.tell("start", c=options["c"], d=None, eof_ends=False)
    worker.live()

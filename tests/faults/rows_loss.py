# SPDX-License-Identifier: BSD-2-Clause
"""Rows 8 to 11: Redis servers that are killed, forget, come back with old data, or are stopped."""
import contextlib
import glob
import os
import shutil
import time

import wire
from promises import keeps, tells_losses
from rows import row
from session import LINGERING


@row(8, "redis-blank", "a Redis is killed and started blank; now and then a majority within a lease",
     injects="Redis killed with -9, blank at its return", short=True, client={"modes": LINGERING})
def blank(w):
    while w.more():
        if w.rng.random() < 0.35:
            with w.fault("a majority blank at once"):
                for node in w.majority():
                    node.restart()
            w.pause(1.02 * w.max_lease_ms / 1000)
        else:
            for node in w.minority():
                with w.fault("node %d blank" % node.index):
                    node.kill()
                    w.pause(w.uniform(0, 1.0))
                    node.restart()
        w.breathe(0.2, 2.0)
    if w.seconds > 15:
        keeps(w, "one node down, then blank", down(w.rng.choice(w.nodes)))


@contextlib.contextmanager
def down(node):
    node.kill()
    yield
    node.restart()


@row(9, "redis-old-snapshot", "a Redis comes back with an old snapshot",
     injects="Redis back with an old snapshot", variant="a", node={"save": True})
def snapshot(w):
    while w.more():
        node = w.rng.choice(w.nodes)
        node.cli.save()
        dump = os.path.join(node.folder, "dump.rdb")
        shutil.copy(dump, dump + ".old")
        w.pause(w.uniform(0.1, 3.0))
        with w.fault("node %d with an old snapshot" % node.index):
            node.kill()
            shutil.copy(dump + ".old", dump)
            w.pause(w.uniform(0, 0.5))
            node.restart()
        w.breathe(0.2, 2.0)


@row(9, "redis-lost-tail", "a Redis comes back without the tail of its AOF",
     injects="Redis back with a truncated AOF", variant="b", node={"args": ("--appendonly", "yes", "--appendfsync", "everysec")})
def tail(w):
    while w.more():
        node = w.rng.choice(w.nodes)
        with w.fault("node %d without its tail" % node.index):
            node.kill()
            for path in glob.glob(os.path.join(node.folder, "appendonlydir", "*.incr.aof")):
                os.truncate(path, max(0, os.path.getsize(path) - w.rng.randrange(1, 4000)))
            w.pause(w.uniform(0, 0.5))
            node.restart()
        w.breathe(0.5, 3.0)


@row(10, "redis-majority-down", "a majority of the Redis servers is killed, or all; they come back blank",
     injects=("daemons killed with -9", "Redis killed with -9, blank at its return"), short=True, client={"modes": LINGERING})
def majority_down(w):
    while w.more():
        victims = w.majority()
        with w.fault("%d nodes down" % len(victims)):
            with tells_losses(w):
                for node in victims:
                    node.kill()
            w.pause(w.uniform(0, 0.3))
            nothing_is_granted(w)
            w.pause(w.uniform(0, 1.0))
            for node in victims:
                node.restart()
            if w.rng.random() < 0.4:
                for daemon in w.daemons:
                    w.restart_daemon(daemon)
        w.pause(w.uniform(1.0, 1.5) * 1.02 * w.max_lease_ms / 1000 + w.uniform(0.3, 1.5))


def nothing_is_granted(w):
    """L7: without a quorum there is no grant, and an answer in time."""
    for daemon in w.daemons:
        with wire.Client(daemon.addr) as client:
            for wait in (0, w.rng.randrange(50, 400)):
                begin = time.monotonic()
                answer = client.ask("LOCK faults/no-quorum wait=%dms" % wait, 30)
                took = time.monotonic() - begin
                if answer.kind == "OK" or took * 1000 > wait + w.answer_ms():
                    w.fail("S9" if answer.kind == "OK" else "L7", "without a quorum LOCK wait=%d is answered after %.2f s: %s" % (wait, took, answer))
                elif answer.kind != "ERR":
                    w.fail("L7", "without a quorum a name that nobody holds is answered with: %s" % answer)


@row(11, "redis-stopped", "Redis servers are stopped, from 100 ms to beyond the lease",
     injects="Redis stopped (SIGSTOP)", short=True)
def stopped(w):
    while w.more():
        victims = w.minority() if w.rng.random() < 0.6 else w.majority()
        with w.fault("%d nodes stand still" % len(victims)), contextlib.ExitStack() as stack:
            for node in victims:
                stack.enter_context(w.stopped("n%d" % node.index, node.process.pid))
            w.pause(w.uniform(0.1, 1.4 * w.lease_ms / 1000))
        w.breathe(0.2, 1.5)

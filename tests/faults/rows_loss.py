# SPDX-License-Identifier: BSD-2-Clause
"""Rows 8 to 11: Redis servers that die, forget, remember too much, or stand still."""
import contextlib
import glob
import os
import shutil

from rows import row


@row(8, "redis-blank", "one Redis killed and started with nothing", short=True)
def blank(w):
    while w.more():
        for node in w.minority():
            with w.fault("node %d blank" % node.index):
                node.kill()
                w.pause(w.uniform(0, 1.0))
                node.restart()
        w.breathe(0.2, 3.0)


@row(9, "redis-old-snapshot", "a Redis comes back with an old snapshot", variant="a", short=True, node={"save": True})
def snapshot(w):
    while w.more():
        node = w.rng.choice(w.nodes)
        node.cli.save()
        dump = os.path.join(node.folder, "dump.rdb")
        shutil.copy(dump, dump + ".old")
        w.pause(w.uniform(0.1, 3.0))
        with w.fault("node %d as it was" % node.index):
            node.kill()
            shutil.copy(dump + ".old", dump)
            w.pause(w.uniform(0, 0.5))
            node.restart()
        w.breathe(0.2, 2.0)


@row(9, "redis-lost-tail", "a Redis comes back without the tail of its AOF", variant="b", node={"args": ("--appendonly", "yes", "--appendfsync", "everysec")})
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


@row(10, "redis-majority-down", "a majority of the Redis servers down, or all; back blank", short=True)
def majority_down(w):
    while w.more():
        victims = w.majority()
        with w.fault("%d nodes down" % len(victims)):
            for node in victims:
                node.kill()
            w.pause(w.uniform(0.2, 2.5))
            for node in victims:
                node.restart()
        w.pause(w.uniform(0.5, 3.5))


@row(11, "redis-stopped", "Redis servers stopped, from 100 ms to beyond the lease", short=True)
def stopped(w):
    while w.more():
        victims = w.minority() if w.rng.random() < 0.6 else w.majority()
        with w.fault("%d nodes stand still" % len(victims)), contextlib.ExitStack() as stack:
            for node in victims:
                stack.enter_context(w.stopped("n%d" % node.index, node.process.pid))
            w.pause(w.uniform(0.1, 1.4 * w.lease_ms / 1000))
        w.breathe(0.2, 1.5)

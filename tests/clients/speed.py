#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
How many locks a second are taken and released: python3 tests/clients/speed.py [--seconds S]

redis-py's Lock on one Redis, and the Python client on the memory store and on three Redis servers. Each cell is a process of its own; the cells take turns, and
the best of three intervals counts. Goals: threads 1.5 x redis-py, asyncio with 64 tasks 5 x. Last line: "N passed, N failed": whether all cells ran.
"""
import argparse
import asyncio
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "client", "python")
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "lib"), SOURCE]

from daemon import Daemon, on_redis  # the paths stand above
from redis_server import Redis

TASKS = 64


def pairs(seconds, pair):
    """Pairs a second of a function that takes and releases a lock."""
    begun, n = time.monotonic(), 0
    while time.monotonic() - begun < seconds:
        pair()
        n += 1
    return n / (time.monotonic() - begun)


def redis_py(path, seconds):
    import redis  # pylint: disable=import-outside-toplevel
    server = redis.Redis(unix_socket_path=path)

    def pair():
        lock = server.lock("bench", timeout=10)
        lock.acquire()
        lock.release()
    return pairs(seconds, pair)


def threads(path, seconds):
    import redlockd  # pylint: disable=import-outside-toplevel
    with redlockd.connect(path) as client:
        def pair():
            with client.lock("bench"):
                pass
        return pairs(seconds, pair)


async def many(count, seconds, pair):
    begun, counts = time.monotonic(), [0] * count

    async def work(number):
        while time.monotonic() - begun < seconds:
            await pair(number)
            counts[number] += 1
    await asyncio.gather(*(work(number) for number in range(count)))
    return sum(counts) / (time.monotonic() - begun)


def aio(path, seconds):
    import redlockd.aio  # pylint: disable=import-outside-toplevel

    async def run():
        async with redlockd.aio.connect(path) as client:
            async def pair(number):
                async with client.lock("bench/%d" % number):
                    pass
            return await many(TASKS, seconds, pair)
    return asyncio.run(run())


def redis_aio(path, seconds):
    import redis.asyncio  # pylint: disable=import-outside-toplevel

    async def run():
        server = redis.asyncio.Redis(unix_socket_path=path)

        async def pair(number):
            lock = server.lock("bench/%d" % number, timeout=10)
            await lock.acquire()
            await lock.release()
        return await many(TASKS, seconds, pair)
    return asyncio.run(run())


SIDES = {"redis-py, a thread": redis_py, "redlockd, a thread": threads, "redis.asyncio, 64 tasks": redis_aio, "redlockd.aio, 64 tasks": aio}
GOALS = {"redlockd, a thread": 1.5, "redlockd.aio, 64 tasks": 5.0}


def cell(side, path, seconds):
    """The figure of one interval, in a process of its own; 0: it failed."""
    argv = [sys.executable, "-B", os.path.abspath(__file__), "--cell", side, path, "--seconds", str(seconds)]
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, timeout=60 + seconds, check=False)
    return float(done.stdout) if done.returncode == 0 else 0.0


def main():
    options = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    options.add_argument("--seconds", type=float, default=2.0)
    options.add_argument("--cell", nargs=2, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.cell:
        print(SIDES[given.cell[0]](given.cell[1], given.seconds))
        return 0
    servers = [Redis().start() for _ in range(4)]
    daemons = {"memory": Daemon({"lease": "10s"}).start().joined(), "three Redis": Daemon(on_redis(servers[1:])).start().joined()}
    cells = [(side, "one Redis", servers[0].path) for side in SIDES if side.startswith("redis")]
    cells += [(side, store, daemon.addr) for store, daemon in daemons.items() for side in SIDES if side.startswith("redlockd")]
    best = dict.fromkeys(cells, 0.0)
    try:
        for _ in range(3):
            for key in cells:
                best[key] = max(best[key], cell(key[0], key[2], given.seconds))
    finally:
        for daemon in daemons.values():
            daemon.dispose()
        for server in servers:
            server.stop()
    base = best[cells[0]]
    for side, store, path in cells:
        figure, goal = best[side, store, path], GOALS.get(side)
        verdict = " (goal %g: %s)" % (goal, "met" if figure >= goal * base else "missed") if goal else ""
        print("%-24s %-12s %8.0f pairs/s  %5.2f x redis-py%s" % (side, store, figure, figure / base if base else 0, verdict))
    failed = sum(not figure for figure in best.values())
    print("%d passed, %d failed" % (len(cells) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
How many locks a second are taken and released: python3 tests/clients/speed.py [--seconds S]

redis-py's Lock and redsync on one Redis, redsync also on three, and the clients on the memory store and on three Redis servers. Each cell is a process of its
own; the cells take turns, and the best of three intervals counts. Goals: Python with a thread 1.5 x redis-py, asyncio with 64 tasks 5 x, Go 2 x redsync on the
same number of stores. Redsync comes from the Go proxy; where that is not reached, Go is skipped. Last line: "N passed, N failed": whether all cells ran.
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
from process import BUILD
from redis_server import Redis

TASKS = 64
GO_PROGRAM = os.path.join(BUILD, "speed-go", "speed")


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


def go(side, goroutines):
    """A function that has the program in speed_go take locks. It is built first, by build_go()."""
    def measured(paths, seconds):
        argv = [GO_PROGRAM, side, str(goroutines), str(seconds), *paths.split(",")]
        return float(subprocess.run(argv, stdout=subprocess.PIPE, text=True, timeout=60 + seconds, check=True).stdout)
    return measured


def build_go():
    """Builds the program of the Go side, and returns whether that went well."""
    out = os.path.dirname(GO_PROGRAM)
    env = dict(os.environ, GOFLAGS="-mod=mod", GOWORK="off", GOTOOLCHAIN="local", GOCACHE=os.path.join(out, "cache"), GOPATH=os.path.join(out, "path"))
    try:
        done = subprocess.run(["go", "build", "-o", GO_PROGRAM, "."], cwd=os.path.join(HERE, "speed_go"), env=env, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        print("skipped: Go: %s" % error)
        return False
    if done.returncode:
        print("skipped: Go: %s" % done.stderr.strip().splitlines()[-1])
    return not done.returncode


SIDES = {"redis-py, a thread": redis_py, "redlockd, a thread": threads, "redis.asyncio, 64 tasks": redis_aio, "redlockd.aio, 64 tasks": aio}
GO = {"redsync, a goroutine": go("redsync", 1), "redlockd Go, a goroutine": go("redlockd", 1), "redsync, 64 goroutines": go("redsync", 64),
      "redlockd Go, 64 goroutines": go("redlockd", 64)}
GOALS = {"redlockd, a thread": 1.5, "redlockd.aio, 64 tasks": 5.0, "redlockd Go, a goroutine": 2.0, "redlockd Go, 64 goroutines": 2.0}


def cell(side, path, seconds):
    """The figure of one interval, in a process of its own; 0: it failed."""
    argv = [sys.executable, "-B", os.path.abspath(__file__), "--cell", side, path, "--seconds", str(seconds)]
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, timeout=60 + seconds, check=False)
    return float(done.stdout) if done.returncode == 0 else 0.0


def rival(side, store):
    """What a cell is compared with: a side and its store."""
    if side.startswith(("redsync", "redlockd Go")):
        return "redsync, " + side.split(", ")[1], "three Redis" if store == "three Redis" else "one Redis"
    return "redis-py, a thread", "one Redis"


def main():
    options = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    options.add_argument("--seconds", type=float, default=2.0)
    options.add_argument("--cell", nargs=2, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.cell:
        print({**SIDES, **GO}[given.cell[0]](given.cell[1], given.seconds))
        return 0
    servers = [Redis().start() for _ in range(4)]
    daemons = {"memory": Daemon({"lease": "10s"}).start().joined(), "three Redis": Daemon(on_redis(servers[1:])).start().joined()}
    three = ",".join(server.path for server in servers[1:])
    sides = [*SIDES, *GO] if build_go() else list(SIDES)
    cells = [(side, "one Redis", servers[0].path) for side in sides if side.startswith("red") and not side.startswith("redlockd")]
    cells += [(side, "three Redis", three) for side in sides if side.startswith("redsync")]
    cells += [(side, store, daemon.addr) for store, daemon in daemons.items() for side in sides if side.startswith("redlockd")]
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
    for side, store, path in cells:
        peer, peers = rival(side, store)
        figure, goal = best[side, store, path], GOALS.get(side)
        base = next(value for (other, at, _), value in best.items() if (other, at) == (peer, peers))
        verdict = " (goal %g: %s)" % (goal, "met" if figure >= goal * base else "missed") if goal else ""
        print("%-28s%-12s %8.0f pairs/s  %5.2f x %s%s" % (side, store, figure, figure / base if base else 0, peer.split(",")[0], verdict))
    failed = sum(not figure for figure in best.values())
    print("%d passed, %d failed" % (len(cells) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
How many locks a second are taken and released, and how soon another process has one: python3 tests/clients/speed.py [--seconds S] [--language NAME …]

Each client on the memory store and on three Redis servers, beside a peer of its language on one Redis and, where it can, on three: redis-py's Lock,
node-redlock, redsync, Redisson's RLock. Each cell is a process of its own; the cells take turns, and the best of three intervals counts. "The lines alone" is a
socket without a client: no client with one caller is faster than the daemon and its stores. A hand-over is the time from the call that releases until the call
of another process that waits has returned, the middle one of eleven, with the defaults of each. A language whose tools or peers are not here is skipped by name.
Last line: "N passed, N failed": whether all cells ran.
"""
import argparse
import asyncio
import os
import random
import socket
import statistics
import subprocess
import sys
import time
import unittest
from typing import NamedTuple

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "client", "python")
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "lib"), SOURCE]

import maven  # the paths stand above
from daemon import Daemon, on_redis
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


def lines_alone(path, seconds):
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.connect(path)

        def pair():
            daemon.send(b"LOCK bench wait=forever count=1\n")
            daemon.recv(4096)
            daemon.send(b"UNLOCK bench count=0\n")
            daemon.recv(4096)
        return pairs(seconds, pair)


def redis_lock(path, name):
    import redis  # pylint: disable=import-outside-toplevel
    return redis.Redis(unix_socket_path=path).lock(name, timeout=10)


def redis_py(path, seconds):
    import redis  # pylint: disable=import-outside-toplevel
    server = redis.Redis(unix_socket_path=path)

    def pair():
        lock = server.lock("bench", timeout=10)
        lock.acquire()
        lock.release()
    return pairs(seconds, pair)


def redlockd_lock(path, name):
    import redlockd  # pylint: disable=import-outside-toplevel
    return redlockd.connect(path).lock(name)


def threads(path, seconds):
    import redlockd  # pylint: disable=import-outside-toplevel
    with redlockd.connect(path) as client:
        def pair():
            with client.lock("bench"):
                pass
        return pairs(seconds, pair)


def hand_over(lock):
    """Takes and releases a lock as it is told, and prints when. The programs of the other languages do the same."""
    for word in sys.stdin:
        if word == "lock\n":
            lock.acquire()
            print(time.monotonic(), flush=True)
        else:
            at = time.monotonic()
            lock.release()
            print(at, flush=True)


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


class Duel(NamedTuple):
    """A peer and a client that do the same. program(side, stores, seconds) returns the command that prints the figure; side is one of the two names."""
    language: str
    peer: str
    client: str
    goal: float  # so many times the peer
    program: object
    three: bool  # the peer can ask three servers


ALONE = "the lines alone"
HANDS = {"redis-py, hand-over": redis_lock, "redlockd, Python, hand-over": redlockd_lock}
PYTHON = {ALONE: lines_alone, "redis-py, a thread": redis_py, "redlockd, a thread": threads,
          "redis.asyncio, 64 tasks": redis_aio, "redlockd.aio, 64 tasks": aio}


def python(side, stores, seconds):
    return [sys.executable, "-B", os.path.abspath(__file__), "--cell", side, stores[0].path, "--seconds", str(seconds)]


def go(callers):
    """The program in speed_go, which takes unix sockets. 0 callers: it hands over."""
    def program(side, stores, seconds):
        return [os.path.join(GO, "speed"), side.split(",")[0], str(callers), str(seconds), *(store.path for store in stores)]
    return program


def node(callers):
    """speed_node.mjs, which takes unix sockets."""
    def program(side, stores, seconds):
        ours = side.startswith("redlockd")
        return ["node", os.path.join(HERE, "speed_node.mjs"), "redlockd" if ours else "redlock", str(callers), str(seconds), NODE_PACKAGE if ours else NODE_PEERS,
                *(store.path for store in stores)]
    return program


def java(side, stores, seconds):
    """java_speed/Speed.java; Redisson takes host and port. 0 seconds: it hands over."""
    ours = side.startswith("redlockd")
    where = stores[0].path if ours else ",".join("127.0.0.1:%d" % store.port for store in stores)
    return ["java", "-cp", JAVA_CLASSES, "Speed", "redlockd" if ours else "redisson", where, str(0 if "hand-over" in side else seconds)]


GO = os.path.join(os.path.abspath(BUILD), "speed-go")
NODE_PEERS = os.path.join(os.path.abspath(BUILD), "node-tools")
NODE_PACKAGE = os.path.join(os.path.abspath(BUILD), "client-node", "dist", "index.js")
JAVA_JAR, JAVA_OUT = os.path.join(os.path.abspath(BUILD), "client-java", "redlockd.jar"), os.path.join(maven.HOME, "target", "speed")
JAVA_CLASSES = ":".join((JAVA_JAR, os.path.join(JAVA_OUT, "*"), JAVA_OUT))
DUELS = [
    Duel("python", "redis-py, a thread", "redlockd, a thread", 1.5, python, False),
    Duel("python", "redis.asyncio, 64 tasks", "redlockd.aio, 64 tasks", 5.0, python, False),
    Duel("node", "node-redlock, one", "redlockd, Node, one", 1.2, node(1), True),
    Duel("node", "node-redlock, 64", "redlockd, Node, 64", 1.0, node(64), True),
    Duel("go", "redsync, a goroutine", "redlockd, Go, a goroutine", 2.0, go(1), True),
    Duel("go", "redsync, 64 goroutines", "redlockd, Go, 64 goroutines", 2.0, go(64), True),
    Duel("java", "Redisson, Java", "redlockd, Java", 2.0, java, True),
]
OVER = [  # the goal is that of the time
    Duel("python", "redis-py, hand-over", "redlockd, Python, hand-over", 10.0, python, False),
    Duel("node", "node-redlock, hand-over", "redlockd, Node, hand-over", 10.0, node(0), False),
    Duel("go", "redsync, hand-over", "redlockd, Go, hand-over", 10.0, go(0), False),
    Duel("java", "Redisson, hand-over", "redlockd, Java, hand-over", 10.0, java, False),
]


def prepare_go():
    """Builds the program of the Go side. Returns why it cannot be run, or ""."""
    env = dict(os.environ, GOFLAGS="-mod=mod", GOWORK="off", GOTOOLCHAIN="local", GOCACHE=os.path.join(GO, "cache"), GOPATH=os.path.join(GO, "path"))
    try:
        done = subprocess.run(["go", "build", "-o", os.path.join(GO, "speed"), "."], cwd=os.path.join(HERE, "speed_go"), env=env, capture_output=True, text=True,
                              check=False)
    except FileNotFoundError as error:
        return str(error)
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""


def prepare_node():
    """Likewise."""
    there = os.path.isdir(os.path.join(NODE_PEERS, "node_modules", "redlock")) and os.path.exists(NODE_PACKAGE)
    return "" if there else "make client-node and tests/clients/test_node.py first"


def prepare_java():
    """Likewise."""
    if not os.path.exists(JAVA_JAR):
        return "make client-java first"
    source = os.path.join(HERE, "java_speed")
    try:
        maven.run(source, "-Dout=" + JAVA_OUT, "dependency:copy-dependencies")
    except unittest.SkipTest as skipped:
        return str(skipped)
    subprocess.run(["javac", "--release", "17", "-cp", JAVA_CLASSES, "-d", JAVA_OUT, os.path.join(source, "Speed.java")], check=True)
    return ""


PREPARE = {"python": lambda: "", "node": prepare_node, "go": prepare_go, "java": prepare_java}


def figure_of(argv, seconds):
    """The figure of one interval; 0: the cell has failed."""
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, timeout=60 + seconds, check=False)
    return float(done.stdout) if done.returncode == 0 else 0.0


class Hand:
    """A process that takes and releases a lock as it is told."""

    def __init__(self, argv):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def say(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def at(self):
        return float(self.process.stdout.readline())

    def do(self, word):
        self.say(word)
        return self.at()

    def end(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


def handed_over(argv):
    """Milliseconds of a hand-over between two processes; 0: they have failed."""
    one, other = hands = [Hand(argv), Hand(argv)]
    took = []
    try:
        for hand in hands:  # a compiler of theirs has seen it
            for word in ("lock", "unlock") * 200:
                hand.do(word)
        for _ in range(11):
            one.do("lock")
            other.say("lock")
            time.sleep(0.2 + random.random() * 0.3)  # it waits, and polls at some phase of its own
            begun = one.do("unlock")
            took.append(other.at() - begun)
            other.do("unlock")
    except ValueError:
        return 0.0
    finally:
        for hand in hands:
            hand.end()
    return 1000 * statistics.median(took)


class Place(NamedTuple):
    """A daemon, as a store of the clients."""
    path: str


def main():
    options = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    options.add_argument("--seconds", type=float, default=2.0)
    options.add_argument("--language", action="append", choices=PREPARE)
    options.add_argument("--cell", nargs=2, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.cell and given.cell[0] in HANDS:
        hand_over(HANDS[given.cell[0]](given.cell[1], "over"))
        return 0
    if given.cell:
        print(PYTHON[given.cell[0]](given.cell[1], given.seconds))
        return 0
    lacks = {language: PREPARE[language]() for language in given.language or PREPARE}
    for language, why in lacks.items():
        if why:
            print("skipped: %s: %s" % (language, why))
    duels = [duel for duel in DUELS if lacks.get(duel.language) == ""]
    servers = [Redis(tcp=True).start() for _ in range(4)]
    daemons = {"memory": Daemon({"lease": "10s"}).start().joined(), "three Redis": Daemon(on_redis(servers[1:])).start().joined()}
    cells = {(ALONE, store): python(ALONE, [Place(daemon.addr)], given.seconds) for store, daemon in daemons.items()}  # (side, store): its command
    over = {}
    for duel in duels:
        for store, asked in [("one Redis", servers[:1])] + [("three Redis", servers[1:])] * duel.three:
            cells[duel.peer, store] = duel.program(duel.peer, asked, given.seconds)
        for store, daemon in daemons.items():
            cells[duel.client, store] = duel.program(duel.client, [Place(daemon.addr)], given.seconds)
    best = dict.fromkeys(cells, 0.0)
    try:
        for _ in range(3):
            for key, argv in cells.items():
                best[key] = max(best[key], figure_of(argv, given.seconds))
        for duel in OVER:
            if lacks.get(duel.language) == "":
                over[duel.peer, "one Redis"] = handed_over(duel.program(duel.peer, servers[:1], given.seconds))
                for store, daemon in daemons.items():
                    over[duel.client, store] = handed_over(duel.program(duel.client, [Place(daemon.addr)], given.seconds))
    finally:
        for daemon in daemons.values():
            daemon.dispose()
        for server in servers:
            server.stop()
    for duel in duels:
        for store in daemons:
            beside = store if (duel.peer, store) in best else "one Redis"
            ours, theirs = best[duel.client, store], best[duel.peer, beside]
            print("%-28s%-12s%8.0f pairs/s   %-24s%-12s%8.0f   %5.2f x (goal %g: %s)" % (
                duel.client, store, ours, duel.peer, beside, theirs, ours / theirs if theirs else 0, duel.goal, "met" if ours >= duel.goal * theirs else "missed"))
    for store in daemons:
        print("%-28s%-12s%8.0f pairs/s" % (ALONE, store, best[ALONE, store]))
    for duel in OVER:
        for store in daemons if (duel.peer, "one Redis") in over else ():
            ours, theirs = over[duel.client, store], over[duel.peer, "one Redis"]
            print("%-28s%-12s%8.2f ms        %-24s%-12s%8.2f   %5.1f x sooner (goal %g: %s)" % (
                duel.client, store, ours, duel.peer, "one Redis", theirs, theirs / ours if ours else 0, duel.goal,
                "met" if 0 < ours * duel.goal <= theirs else "missed"))
    failed = sum(not figure for figure in [*best.values(), *over.values()])
    print("%d passed, %d failed" % (len(best) + len(over) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

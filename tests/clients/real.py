#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
The same adapters against real daemons and real faults: python3 tests/clients/real.py [-v] [--short] [--seed N] [--adapter NAME …] [text …]

Last line: "N passed, N failed". --short leaves out what takes more than ten seconds, and makes fewer random requests.
"""
import argparse
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "lib")]

from adapter import ADAPTERS, Adapter, usable  # the paths stand above
from daemon import Daemon, on_redis
from history import History
from process import BUILD, LATE, until
from redis_server import Redis

LEASE = 2.0
SHORT = {"lease": "2s", "max_lease": "4s"}  # for tests of a loss: on a busy machine, others would see one as well


class Skipped(Exception):
    """The adapter lacks what the test is about."""


class World:
    """A daemon, its stores and the adapters of a test; all end with it."""

    def __init__(self, name, stores=0, config=None, needs=frozenset()):
        self.name, self.needs = name, needs
        self.adapters, self.servers = [], [Redis().start() for _ in range(stores)]
        tree = config or {"lease": "10s", "max_lease": "20s"}
        self.daemon = Daemon(on_redis(self.servers, tree) if stores else tree, tcp=True).start().joined()

    def adapter(self, connect=True, **options):
        made = Adapter(self.name)
        self.adapters.append(made)
        if self.needs - made.can:
            raise Skipped("%s has no %s" % (self.name, ", ".join(sorted(self.needs - made.can))))
        if connect:
            well(made.do("connect", address=self.daemon.addr, **options))
        return made

    def end(self):
        for adapter in self.adapters:
            adapter.process.send_signal(signal.SIGCONT)
            adapter.close()
        self.daemon.thaw() if self.daemon.alive() else None  # pylint: disable=expression-not-assigned
        self.daemon.dispose()
        for server in self.servers:
            server.stop()


def well(row):
    """What a call returned."""
    assert "ok" in row, row
    return row["ok"]


def state(adapter, lock="a"):
    return well(adapter.do("state", lock=lock))


def lost(adapter, lock="a", timeout=10.0):
    """Waits until a lock is lost, and returns the event."""
    row = adapter.await_(lambda: next((row for row in adapter.events if row["event"] == "lost" and row["lock"] == lock), None), timeout)
    assert row, "%s is not lost: %s" % (lock, state(adapter, lock))
    return row


# --- tests: each gets a maker of worlds ------------------------------------------------------------------------------

def daemon_killed(world):
    """kill -9 of the daemon: a session with grace comes back with its lock and its fence."""
    w = world(stores=1)
    a = w.adapter(grace=10)
    fence = well(a.do("lock", lock="a", name="x"))["fence"]
    w.daemon.restart()
    assert well(a.do("ensure", lock="a"))["remaining"] > 0
    assert state(a)["fence"] == fence and not a.events, a.events
    well(a.do("unlock", lock="a"))
    assert well(a.do("lock", lock="b", name="x", wait=5))["fence"] > fence


def daemon_killed_without_grace(world):
    """kill -9 of the daemon: without grace the lock is lost at once, and the next request begins anew."""
    w = world()
    a = w.adapter()
    well(a.do("lock", lock="a", name="x"))
    w.daemon.kill()
    assert lost(a)["reason"] == "disconnected"
    assert a.do("unlock", lock="a")["error"] == "LockLost"
    assert w.daemon.addr in a.do("lock", lock="b", name="y", wait=0)["text"]
    w.daemon.start()
    well(a.do("lock", lock="b", name="y", wait=5))


def daemon_replaced(world):
    """SIGUSR2: nobody notices, what waits included."""
    w = world()
    a, b = w.adapter(), w.adapter()
    fence = well(a.do("lock", lock="a", name="x"))["fence"]
    waiting = b.call("lock", lock="b", name="x", wait=20)
    until(lambda: "waiter" in roles(w, "x"), "b waits")
    mark = w.daemon.log_size()
    w.daemon.send_signal(signal.SIGUSR2)
    w.daemon.logged(r"notice restarted ", mark)
    assert well(a.do("ensure", lock="a"))["remaining"] > 0 and state(a)["fence"] == fence
    well(a.do("unlock", lock="a"))
    assert well(b.result(waiting, 10))["fence"] > fence
    assert not a.events and not b.events


def daemon_restarted(world):
    """A restart by SIGTERM: the lock comes back with grace, and what waits goes on waiting."""
    w = world(stores=1)
    a, b = w.adapter(grace=10), w.adapter(grace=10)
    fence = well(a.do("lock", lock="a", name="x"))["fence"]
    waiting = b.call("lock", lock="b", name="x", wait=30)
    until(lambda: "waiter" in roles(w, "x"), "b waits")
    w.daemon.finish()
    w.daemon.start()
    assert well(a.do("ensure", lock="a"))["remaining"] > 0 and state(a)["fence"] == fence
    well(a.do("unlock", lock="a"))
    assert well(b.result(waiting, 20))["fence"] > fence


def daemon_stopped(world, seconds=3):
    """SIGSTOP of the daemon: the lock is lost at its deadline, not later, and the client is of use afterwards."""
    w = world(config=SHORT)
    a = w.adapter()
    well(a.do("lock", lock="a", name="x"))
    w.daemon.freeze()
    begun = time.monotonic()
    assert lost(a)["reason"] == "expired"
    assert time.monotonic() - begun < LEASE + LATE
    time.sleep(max(0.0, seconds - (time.monotonic() - begun)))
    w.daemon.thaw()
    assert a.do("unlock", lock="a")["error"] == "LockLost"
    well(a.do("lock", lock="b", name="x", wait=10))


def daemon_stopped_for_long(world):
    """SIGSTOP of the daemon for 12 s: the connection is given up, and with grace the session comes back."""
    w = world(config={"lease": "20s", "max_lease": "30s"})
    a = w.adapter(grace=20)
    fence = well(a.do("lock", lock="a", name="x"))["fence"]
    w.daemon.freeze()
    time.sleep(12)
    assert state(a)["held"]
    w.daemon.thaw()
    until(lambda: state(a)["remaining"] > 14, "the session comes back")
    assert state(a)["fence"] == fence and not [row for row in a.events if row["event"] == "lost"]


def client_stopped(world, seconds=3):
    """SIGSTOP of the client: the daemon keeps its lock, and it knows how long that may be relied on."""
    w = world(config=SHORT)
    a = w.adapter()
    well(a.do("lock", lock="a", name="x"))
    a.process.send_signal(signal.SIGSTOP)
    time.sleep(seconds)
    assert "holder" in roles(w, "x")
    a.process.send_signal(signal.SIGCONT)
    seen = state(a)  # its deadline has passed meanwhile: until CHECK is answered it relies on nothing, or has been told of the loss
    assert seen["remaining"] <= LEASE, seen
    if seen["lost"]:
        assert a.do("unlock", lock="a")["error"] == "LockLost"
        well(a.do("lock", lock="b", name="x", wait=5))


def client_stopped_for_long(world):
    """SIGSTOP of a client with a heartbeat for 12 s: somebody else gets the lock, and it is told when it goes on."""
    w = world(config=SHORT)
    a, b = w.adapter(heartbeat=1), w.adapter()
    fence = well(a.do("lock", lock="a", name="x"))["fence"]
    a.process.send_signal(signal.SIGSTOP)
    begun = time.monotonic()
    assert well(b.do("lock", lock="b", name="x", wait=15))["fence"] > fence
    time.sleep(max(0.0, 12 - (time.monotonic() - begun)))
    a.process.send_signal(signal.SIGCONT)
    assert lost(a)["reason"] in ("expired", "idle", "disconnected")
    assert state(b, "b")["held"]


def quorum_lost(world):
    """Two of three stores stop: RISK, then LOST before the deadline; NoQuorum for others; all is well when they are back."""
    w = world(stores=3, config=SHORT)
    a, b = w.adapter(), w.adapter()
    well(a.do("lock", lock="a", name="x"))
    for server in w.servers[:2]:
        server.freeze()
    assert lost(a)["reason"] in ("quorum", "expired")
    assert any(row["event"] == "risk" for row in a.events), a.events
    assert b.do("lock", lock="b", name="y", wait=0)["error"] == "NoQuorum"
    for server in w.servers[:2]:
        server.thaw()
    assert a.do("unlock", lock="a")["error"] == "LockLost"
    well(b.result(b.call("lock", lock="b", name="x", wait=15), 25))


def connections_cut(world):
    """The daemon ends the session by force: all is lost by name."""
    w = world()
    a = w.adapter(grace=5)
    well(a.do("lock", lock="a", name="x"))
    with w.daemon.client() as admin:
        number = next(row["session"] for row in admin.ok("SHOW x").rows if row["role"] == "holder")
        admin.ok("KILL session=" + number)
    assert lost(a)["reason"] == "broken"
    assert a.do("unlock", lock="a")["error"] == "LockLost"
    well(a.do("lock", lock="b", name="y", wait=5))


def broken(world):
    """BREAK: the loss reaches a caller who asks nothing."""
    w = world()
    a = w.adapter()
    well(a.do("lock", lock="a", name="x"))
    with w.daemon.client() as admin:
        admin.ok("BREAK x")
    assert lost(a)["reason"] == "broken"


def client_killed(world):
    """kill -9 of the client: its lock is free at once."""
    w = world()
    a, b = w.adapter(), w.adapter()
    well(a.do("lock", lock="a", name="x"))
    waiting = b.call("lock", lock="b", name="x", wait=10)
    until(lambda: "waiter" in roles(w, "x"), "b waits")
    a.process.kill()
    begun = time.monotonic()
    well(b.result(waiting, 10))
    assert time.monotonic() - begun < LATE  # its lease is longer


def waits_aborted(world):
    """A wait that is aborted leaves no place and no lock behind."""
    w = world()
    a, b = w.adapter(), w.adapter()
    for _ in range(20):
        well(a.do("lock", lock="a", name="x"))
        waiting = b.call("lock", lock="b", name="x", wait=10)
        until(lambda: "waiter" in roles(w, "x"), "b waits")
        releasing = a.call("unlock", lock="a")
        b.do("abort", call=waiting)
        well(a.result(releasing, 10))
        if "ok" in b.result(waiting, 10):
            well(b.do("unlock", lock="b"))
        until(lambda: not roles(w, "x"), "nobody has or wants x: %s" % roles(w, "x"))


def everything_at_once(world):
    """Jobs, permits, several locks and rate limits of a real daemon."""
    w = world()
    a, b = w.adapter(), w.adapter()
    assert well(a.do("locks", lock="l", names=["x", "y"]))["fences"].keys() == {"x", "y"}
    assert well(b.do("any", lock="m", names=["x", "z"]))["name"] == "z"
    permits = [well(adapter.do("semaphore", lock="s%d" % i, name="s", limit=2, wait=0))["permit"] for i, adapter in enumerate((a, b))]
    assert sorted(permits) == [0, 1]
    assert a.do("semaphore", lock="s3", name="s", limit=2, wait=0)["error"] == "Busy"
    assert well(a.do("rate", name="r", limit=1, per=60))["left"] == 0
    assert b.do("rate", name="r", limit=1, per=60)["error"] == "Busy"
    job = well(a.do("defer", queue="mail", payload="to=\"ann\"\n", **{"with": "box"}))["id"]
    assert well(b.do("take", lock="j", queue="mail", wait=5))["payload"] == "to=\"ann\"\n"
    well(b.do("retry", lock="j"))
    taken = well(b.do("take", lock="j", queue="mail", wait=5))
    assert (taken["id"], taken["attempt"]) == (job, 2) and taken["fence"] > 0
    well(b.do("done", lock="j"))
    assert b.do("take", lock="j", queue="mail", wait=0)["error"] == "Busy"
    for adapter, lock in ((a, "l"), (b, "m"), (a, "s0"), (b, "s1")):
        well(adapter.do("unlock", lock=lock))
    assert not roles(w, "x") and not roles(w, "s")


def random_requests(world, count=10000, seed=0):
    """Random requests of many callers, over restarts and aborts; what they saw is checked for exclusion and fences."""
    return random_run(world(stores=3), count, seed, lambda daemon: daemon.send_signal(signal.SIGUSR2))


def random_requests_over_crashes(world, count=3000, seed=0):
    """The same, but the daemon is killed again and again: sessions come back, on the memory store or on Redis."""
    return random_run(world(stores=seed % 2), count, seed, lambda daemon: daemon.restart())  # pylint: disable=unnecessary-lambda


def random_run(w, count, seed, fault):
    """
    So many random requests, while the fault comes every few seconds. Returns what to print. Many callers share three clients, or each has its own if the
    library has one caller for each connection.
    """
    history = History()
    adapters, chance, left = [w.adapter(grace=10) for _ in range(3)], random.Random(seed), [count]
    shared = "many" in adapters[0].can
    adapters += [w.adapter(grace=10) for _ in range(0 if shared else 5)]

    def caller(number):
        mine, own = random.Random(seed * 1000 + number), 0
        while left[0] > 0:
            left[0] -= 1
            own += 1
            history.once(adapters[mine.randrange(len(adapters)) if shared else number], "c%d-%d" % (number, own), mine)
    threads = [threading.Thread(target=caller, args=(number,)) for number in range(24 if shared else len(adapters))]
    for thread in threads:
        thread.start()
    while threads:  # here, since a daemon ends with the thread that started it
        threads[0].join(1 + chance.random() * 2)
        threads = [thread for thread in threads if thread.is_alive()]
        if threads:
            fault(w.daemon)
    history.check()
    until(lambda: not listed(w), "nothing is left behind", 20)
    assert history.grants > count / 10, "only %d grants of %d" % (history.grants, count)
    return "%d requests, %d grants, %d losses" % (count, history.grants, history.losses)


def listed(w):
    """What the daemon knows of that is held or waited for."""
    with w.daemon.client() as client:
        return [row.raw for row in client.ok("LIST locks").rows]


def roles(w, name):
    with w.daemon.client() as client:
        return client.roles(name)


def runs_once(world):
    """once: the tool and the client have the same records, each shows a run of the other, and none is run twice."""
    w = world()
    a = w.adapter()

    def tool(*words):
        done = subprocess.run([os.path.join(BUILD, "redlock"), "--addr", w.daemon.addr, *words], capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout

    def agreed(name, status):
        seen, told = well(a.do("status", name=name)), json.loads(tool("--json", "once", "--status", name)[1])
        assert (seen["ran"], seen["host"], seen["status"]) == (True, socket.gethostname(), status), seen
        assert (seen["host"], seen["began"], seen["status"]) == (told["host"], told["began"], told["status"]), (seen, told)
        assert abs(seen["took"] * 1000 - told["took_ms"]) < 1 and 0 <= seen["next"] - told["next_ms"] / 1000 < 60 and 3500 < seen["next"] <= 3600, (seen, told)
    assert well(a.do("once", name="by client", every=3600))["ran"]
    agreed("by client", 0)
    assert tool("once", "--every", "1h", "by client", "echo", "ran") == (0, "")
    assert tool("once", "--every", "1h", "by tool", "--", "sh", "-c", "echo ran; exit 7") == (7, "ran\n")
    agreed("by tool", 7)
    for name in ("by client", "by tool"):
        assert not well(a.do("once", name=name, every=3600))["ran"]
    assert a.do("once", name="failed", every=3600, fails=True)["error"] == "Failed"
    agreed("failed", 1)
    for _ in range(2):
        assert well(a.do("once", name="often", every=0.01, lasts=0.02))["ran"]
    with w.daemon.client() as client:
        assert len(client.ok("LIST jobs prefix=once/often").rows) == 1
        client.ok("LOCK beside")
        assert not well(a.do("once", name="beside", every=3600))["ran"] and not well(a.do("status", name="beside"))["ran"]
    assert roles(w, '"by client"') == []


TESTS = [daemon_killed, daemon_killed_without_grace, daemon_replaced, daemon_restarted, daemon_stopped, client_stopped, quorum_lost, connections_cut, broken,
         client_killed, waits_aborted, runs_once, everything_at_once, random_requests_over_crashes, random_requests]
LONG = [daemon_stopped_for_long, client_stopped_for_long]
NEEDS = {daemon_stopped_for_long: {"keeper"}, client_stopped_for_long: {"keeper"}}  # of adapter.COMMON


def play(name, test, options):
    """Returns what to print, and whether the test has passed; None: it was skipped."""
    worlds, begun = [], time.monotonic()

    def world(**more):
        worlds.append(World(name, needs=NEEDS.get(test, set()), **more))
        return worlds[-1]
    try:
        said = test(world, **options) or ""
        return "passed  %6.2f s  %s, %s%s" % (time.monotonic() - begun, name, test.__name__, said and ": " + said), True
    except Skipped as why:
        return "skipped: %s: %s" % (test.__name__, why), None
    except Exception:  # whatever it is, it is the outcome of this test
        logs = "".join(w.daemon.log()[-1500:] for w in worlds)
        return "FAILED %s, %s: %s\n%s\n%s" % (name, test.__name__, test.__doc__, traceback.format_exc(), re.sub(r"^", "    ", logs, flags=re.M)), False
    finally:
        for w in worlds:
            w.end()


def main():
    options = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    options.add_argument("-v", action="store_true")
    options.add_argument("--short", action="store_true")
    options.add_argument("--seed", type=int, default=None)
    options.add_argument("--adapter", action="append", choices=list(ADAPTERS))
    options.add_argument("texts", nargs="*")
    given = options.parse_args()
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(10 ** 6)
    print("random requests: --seed %d" % seed, flush=True)
    tests = [test for test in TESTS + ([] if given.short else LONG) if not given.texts or any(text in test.__name__ for text in given.texts)]
    more = {random_requests: {"count": 1000 if given.short else 10000, "seed": seed},
            random_requests_over_crashes: {"count": 300 if given.short else 3000, "seed": seed}}
    names = list(usable(given.adapter))
    with ThreadPoolExecutor(6) as pool:
        outcomes = [pool.submit(play, name, test, more.get(test, {})) for test in reversed(tests) for name in names]
        for outcome in outcomes:
            text, passed = outcome.result()
            if given.v or not passed or ": " in text.splitlines()[0]:
                print(text, flush=True)
    results = [outcome.result()[1] for outcome in outcomes]
    failed = results.count(False)
    print("%d passed, %d failed" % (results.count(True), failed), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

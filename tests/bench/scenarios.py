# SPDX-License-Identifier: BSD-2-Clause
"""The scenarios: each compares sides in turn, in one run, and returns rows of (what, figure, goal, note). goal: (">=", number), ("<=", number), or None."""
import contextlib
import socket
import statistics
import time

import sides
from generator import Generator
from process import memory_kib
from sides import CPUS, ceiling, cpu_us, direct, library, redlockd
from wire import Client


class Run:
    """How long and how often the sides are measured."""

    def __init__(self, seconds, pairs, big):
        self.seconds, self.pairs, self.big = seconds, pairs, big


def median(figures, key):
    return statistics.median(figure[key] for figure in figures)


def in_turn(run, *built):
    """Measures the sides one after the other, again and again, each time in the other order. Returns a list of figures for each."""
    told = [[] for _ in built]
    with contextlib.ExitStack() as stack:
        for one in built:
            stack.enter_context(one)
        for i in range(run.pairs):
            for k in range(len(built)) if i % 2 == 0 else reversed(range(len(built))):
                told[k].append(built[k].interval(run.seconds))
    return told


def ratio(ours, theirs, key="per_second"):
    """The median of the ratios of the intervals that followed each other."""
    return statistics.median(a[key] / b[key] if b[key] else 0.0 for a, b in zip(ours, theirs))


def costs(figures):
    """What a pair costs: processor time in microseconds and commands at Redis."""
    words = ["%s %.1f us" % (key[4:], median(figures, key)) for key in figures[0] if key.startswith("cpu_")]
    if figures[0]["commands"]:
        words.append("%.1f commands" % median(figures, "commands"))
    return ", ".join(words)


def both(ours, theirs):
    return "%.0f and %.0f pairs/s; p50 %.0f and %.0f, p99 %.0f and %.0f us; a pair: %s; without redlockd: %s" % (
        median(ours, "per_second"), median(theirs, "per_second"), median(ours, "p50_us"), median(theirs, "p50_us"), median(ours, "p99_us"),
        median(theirs, "p99_us"), costs(ours), costs(theirs))


# --- beside Redis alone ----------------------------------------------------------------------------------------------

def one_client(run):
    ours, theirs = in_turn(run, redlockd(1, cpu=CPUS[0], clients=1), direct(1, cpu=CPUS[0], clients=1))
    return [("one client on one processor, pairs/s, x direct", ratio(ours, theirs), (">=", 0.60), both(ours, theirs))]


def names(run, clients, goal):
    ours, theirs = in_turn(run, redlockd(1, clients=clients), direct(1, clients=clients))
    rows = [("%d clients, a name each, pairs/s, x direct" % clients, ratio(ours, theirs), (">=", goal), both(ours, theirs))]
    if clients == 64:
        rows.append(("the same, processor time of Redis a pair, x direct", ratio(ours, theirs, "cpu_redis"), ("<=", 0.25), ""))
    return rows


def over_tcp(run):
    ours, theirs = in_turn(run, redlockd(1, tcp=True, clients=64), redlockd(1, clients=64))
    return [("64 clients, a name each, over TCP, x over the Unix socket", ratio(ours, theirs), None, costs(ours))]


def quorum(run):
    ours, theirs = in_turn(run, redlockd(3, clients=16), direct(3, clients=16))
    return [("three Redis, 16 clients, x direct parallel Redlock", ratio(ours, theirs), (">=", 1.5), both(ours, theirs))]


def one_stopped(run):
    """One server is stopped by SIGSTOP: it answers nothing, and its connections stay open."""
    up, stopped = [], []
    with redlockd(3, clients=16) as side:
        for _ in range(run.pairs):
            up.append(side.interval(run.seconds))
            side.servers[0].freeze()
            stopped.append(side.interval(run.seconds, settle=1.0))
            side.servers[0].thaw()
            time.sleep(0.3)
    return [("the same, one Redis stopped, x all up", ratio(stopped, up), (">=", 0.9), costs(stopped))]


def retrying(run):
    ours, theirs = in_turn(run, redlockd(1, clients=16, names=1), direct(1, clients=16, names=1, pause="100000-300000"))
    return [("16 clients, one name, x direct with a retry after 200 +- 100 ms", ratio(ours, theirs), None, "Jain %.3f and %.3f" % (
        median(ours, "jain") / 1e6, median(theirs, "jain") / 1e6))]


def libraries(run):
    rows = []
    for name in sides.PEERS:
        side = library(name, 16)
        if side is None:
            rows.append(("16 clients, a name each, x %s" % name, None, None, "it is not installed"))
            continue
        ours, theirs = in_turn(run, redlockd(1, clients=16), side)
        rows.append(("16 clients, a name each, x %s" % name, ratio(ours, theirs), None, "%.0f and %.0f pairs/s" % (
            median(ours, "per_second"), median(theirs, "per_second"))))
    return rows


# --- waiting ---------------------------------------------------------------------------------------------------------

def one_name(run, clients):
    ours, theirs = in_turn(run, redlockd(1, clients=clients, names=1), ceiling(clients=clients, names=1))
    return [("%d clients, one name, grants/s, x the ceiling" % clients, ratio(ours, theirs), (">=", 0.95), "%.0f and %.0f; a grant: %s" % (
                median(ours, "per_second"), median(theirs, "per_second"), costs(ours))),
            ("the same, fairness (Jain)", median(ours, "jain") / 1e6, (">=", 0.99), "")]


def hand_over(run):
    options = {"clients": 2, "names": 1, "turns": "yes", "hold": "1000-3000"}
    ours, theirs, least = in_turn(run, redlockd(1, **options), direct(1, pause="1000", **options), ceiling(**options))
    return [("hand-over between two clients, p50, x polling each ms", ratio(ours, theirs, "over_p50_us"), ("<=", 0.20), "%.0f and %.0f us; ceiling %.0f" % (
        median(ours, "over_p50_us"), median(theirs, "over_p50_us"), median(least, "over_p50_us")))]


def killed(run):
    options = {"clients": 2, "names": 1, "turns": "yes", "hold": "1000-3000", "end": "leave"}
    ours, least = in_turn(run, redlockd(1, **options), ceiling(**options))
    return [("the holder is killed: until the next grant, p50, ms", median(ours, "over_p50_us") / 1e3, ("<=", 0.6), "p99 %.2f; ceiling %.2f and %.2f" % (
        median(ours, "over_p99_us") / 1e3, median(least, "over_p50_us") / 1e3, median(least, "over_p99_us") / 1e3))]


# --- the memory store ------------------------------------------------------------------------------------------------

def memory(run):
    ours, theirs = in_turn(run, redlockd(0, clients=64), ceiling(clients=64))
    return [("memory store, 64 clients, x the ceiling", ratio(ours, theirs), (">=", 1.0), "%.0f and %.0f pairs/s; a pair: %s; ceiling: %s" % (
        median(ours, "per_second"), median(theirs, "per_second"), costs(ours), costs(theirs)))]


def pipelining(run, clients):
    """Requests for each second of processor time that the server spends, so another process on its processor does not matter."""
    ours, theirs = in_turn(run, redlockd(0, "stream", clients=clients, depth=16), ceiling("stream", clients=clients, depth=16))
    figure, least = 1 / median(ours, "cpu_redlockd"), 1 / median(theirs, "cpu_ceiling")
    return [("memory store, %d clients pipelining 16, million requests/s of one core" % clients, figure, (">=", 1.0), "ceiling %.2f" % least)]


class Lines:
    """Clients of one listener, each of which sends so many lines at a time and reads as many answers. What they cost the daemon does not depend on their speed."""
    CLIENTS, LINE, ANSWER = 16, b"PING\n", len(b"OK\n")

    def __init__(self, side, address, context, depth):
        self.pid, self.depth = side.daemon.pid, depth
        self.socks = [socket.create_connection(address) for _ in range(self.CLIENTS)]
        if context:
            self.socks = [context.wrap_socket(sock, server_hostname="localhost") for sock in self.socks]
        for sock in self.socks:
            side.callback(sock.close)

    def turn(self):
        for sock in self.socks:
            sock.sendall(self.LINE * self.depth)
        for sock in self.socks:
            left = self.ANSWER * self.depth
            while left > 0:
                got = len(sock.recv(left))
                if got == 0:
                    raise EOFError("the daemon has closed a connection")
                left -= got
        return self.CLIENTS * self.depth

    def interval(self, seconds):
        """Microseconds of the daemon's processor time for a line."""
        self.turn()
        lines, before, end = 0, cpu_us(self.pid), time.monotonic() + seconds
        while time.monotonic() < end:
            lines += self.turn()
        return (cpu_us(self.pid) - before) / lines


def inside_tls(run):
    rows = []
    with sides.Side() as side:
        plain, secure, context = side.secure_redlockd()
        for depth, what in ((1, "one line at a time"), (64, "64 lines at a time")):
            outside, inside = Lines(side, plain, None, depth), Lines(side, secure, context, depth)
            told = [(outside.interval(run.seconds), inside.interval(run.seconds)) for _ in range(run.pairs)]
            a, b = (statistics.median(figures) for figures in zip(*told))
            rows.append(("16 clients inside TLS, %s, lines/s of one core, x plain TCP" % what, statistics.median(x / y for x, y in told), None,
                         "%.0f and %.0f lines/s of one core; a line: %.2f and %.2f us" % (1e6 / b, 1e6 / a, b, a)))
    return rows


def waiter_kib(count):
    with sides.Side() as side:
        side.drive("lines", side.redlockd({"lease": "30s"}), clients=count, names=1, hold=600000000)
        before = memory_kib(side.daemon.pid)
        side.driver.say("go")
        with Client(side.daemon.addr) as client:
            while client.stats()["waiters"] < count - 1:
                time.sleep(0.05)
        return (memory_kib(side.daemon.pid) - before) / count


def sizes(run):
    """Of idle sessions, held locks, and waiters for one name."""
    count = 10000 if run.big else 2000
    with sides.Side() as side:
        addr = side.redlockd({"lease": "30s"})
        rss = [memory_kib(side.daemon.pid)]
        hold = Generator("load", "hold", addr, count, 1, 0, "30s", "size/")
        side.callback(hold.close)
        for word, answer in (("connect", "connected"), ("take", "taken")):
            hold.ask(word, answer)
            rss.append(memory_kib(side.daemon.pid))
        hold.close()
    session, lock = [(rss[b] - rss[a]) / count for a, b in ((0, 1), (1, 2))]
    waiter = min(waiter_kib(count) for _ in range(3))  # the room for a pass in which thousands ask may be counted, too
    return [("memory of an idle session, KiB", session, ("<=", 0.6), ""), ("memory of a held lock, KiB", lock, ("<=", 0.6), ""),
            ("memory of a waiter, KiB", waiter, ("<=", 0.3), "")]


def watched(run):
    """Leases of 10 s that the watchdog keeps on three Redis."""
    count, seconds = (100000, 15) if run.big else (5000, 2)
    with sides.Side() as side:
        side.redis(3)
        addr = side.redlockd()
        hold = Generator("load", "hold", addr, 100, count // 100, 8, "60s", "watched/")
        side.callback(hold.close)
        hold.ask("connect", "connected")
        hold.ask("take", "taken", 120)
        before, begun = {pid: cpu_us(pid) for pids in side.roles.values() for pid in pids}, time.monotonic()
        time.sleep(seconds)
        wall = (time.monotonic() - begun) * 1e6
        share = {role: statistics.mean((cpu_us(pid) - before[pid]) / wall * 100 for pid in pids) for role, pids in side.roles.items()}
        state = hold.ask("state", "state")
    note = "%d held, %d lost" % (state["held"], state["lost"])
    return [("%d watched leases of 10 s on three Redis: daemon, %% of a core" % count, share["redlockd"], ("<=", 15), note),
            ("the same: each Redis, % of a core", share["redis"], ("<=", 15), "")]


# --- curves: what a pair costs the daemon as it grows ----------------------------------------------------------------

def pair_cost(side, run):
    return median([side.interval(run.seconds) for _ in range(run.pairs)], "cpu_redlockd")


def curve(title, points, build, run):
    rows, first = [], None
    for n in points:
        with build(n) as side:
            cost = pair_cost(side, run)
        first = first or cost
        rows.append(("%s, us of the daemon a pair" % title.format(n), cost, None, "x %.2f of the first" % (cost / first)))
    return rows


def beside_sessions(count):
    side = redlockd(0, clients=16)
    idle = Generator("load", "hold", side.daemon.addr, count, 1, 0, "30s", "idle/")
    side.callback(idle.close)
    idle.ask("connect", "connected")
    return side


def beside_names(count):
    side = redlockd(0, clients=16, tree={"lease": "30s", "max_lease": "10m"})
    hold = Generator("load", "hold", side.daemon.addr, 100, count // 100, 4, "60s", "held/")
    side.callback(hold.close)
    hold.ask("connect", "connected")
    hold.ask("take", "taken", 300)
    return side


def with_waiters(count):
    return redlockd(0, clients=count + 1, names=1)


def curves(run):
    return [*curve("{} idle sessions", (10, 100, 1000, 10000), beside_sessions, run),
            *curve("{} names held and renewed", (1000, 10000, 100000, 1000000), beside_names, run),
            *curve("{} waiters for one name", (1, 10, 100, 1000), with_waiters, run)]


SCENARIOS = {
    "one-client": one_client,
    "names-16": lambda run: names(run, 16, 1.0),
    "names-64": lambda run: names(run, 64, 1.2),
    "tcp": over_tcp,
    "tls": inside_tls,
    "quorum": quorum,
    "one-stopped": one_stopped,
    "one-name-16": lambda run: one_name(run, 16),
    "one-name-64": lambda run: one_name(run, 64),
    "hand-over": hand_over,
    "killed": killed,
    "retry": retrying,
    "libraries": libraries,
    "memory": memory,
    "pipeline-16": lambda run: pipelining(run, 16),
    "pipeline-64": lambda run: pipelining(run, 64),
    "sizes": sizes,
    "watched": watched,
    "curves": curves,
}

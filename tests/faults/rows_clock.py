# SPDX-License-Identifier: BSD-2-Clause
"""Rows 16 to 18: wall clocks that are stepped, or run too fast or too slow."""
import contextlib
import re

from promises import keeps
from redis_server import FENCE, wall_us
from rows import row
from session import enlisted
from world import MANY

SKEW_US = 60_000_000 + 10_000_000  # how far a fence may be ahead of the clock of its server: the limit, and how far clocks may differ


def step_of(w):
    return w.rng.choice((w.lease_ms / 1000, 3600, -3600, w.uniform(-2, 2)))


@row(16, "redis-clock-step", "the clock of one Redis steps by a lease, an hour ahead, an hour back",
     injects="clocks of Redis stepped", gap=2.0, variant="a", clock=True, orphans=False)
def one_stepped(w):
    node = w.rng.choice(w.nodes)
    keeps(w, "one clock an hour ahead", ahead(node), "S1")
    if not any(re.search("clock jumped", daemon.log()) for daemon in w.daemons):
        w.fail("S10", "no daemon logs that the clock of a node has jumped")
    while w.more():
        with w.fault("node %d stepped" % node.index):
            node.clock.set(step_of(w))
        w.breathe(0.3, 3.0)
    node.clock.set(0)


@contextlib.contextmanager
def ahead(node):
    """The clock of a node jumps, and its keys expire at once. The locks on the other nodes must be kept."""
    node.clock.set(3600)
    yield
    node.clock.set(0)


@row(16, "redis-clocks-step", "the clocks of some Redis or of all step, each by another time, and are set right",
     injects="clocks of Redis stepped", variant="b", kind="X", clock=True, orphans=False, gap=3.6, names=MANY)
def all_stepped(w):
    """Each round takes its own time and a quarantine, which begins when a health check finds the clocks right. Then grants go on until the next round."""
    while w.more():
        with w.fault("clocks stepped"):
            for node in w.rng.choice((w.minority, w.majority, w.all_nodes))():
                node.clock.set(step_of(w))
            w.pause(w.uniform(0, 1.0))
            for node in w.nodes:
                node.clock.set(0)
        w.pause(1.02 * w.max_lease_ms / 1000 + w.uniform(1.2, 2.5))


@row(16, "redis-clock-bare-quorum", "the clock of one Redis steps while only it and one other of three hold a lock, for which a client waits",
     injects="clocks of Redis stepped", variant="c", clock=True, orphans=False, nodes=3, daemons=2, gap=2.0, names=MANY)
def bare_quorum(w):
    """The node that steps forgets the lock, and the third node never had it, so that both would grant it to the second daemon. A daemon notices a step that is
    larger than 50 ms plus the inaccuracy of a round trip and of drift."""
    first, second = [enlisted(w, daemon, len(w.processes) + daemon.index) for daemon in w.daemons]
    count = 0
    while w.more():
        stepped, _, missing = w.rng.sample(w.nodes, 3)
        name = "bare/%d" % count
        with w.behaving(w.links(w.daemons[:1], [missing]), hold={"up": True, "down": True}):
            w.pause(0.3)
            if first.lock(name, ttl=w.lease_ms, renew=False) and not missing.cli.exists("lock:" + name):
                count += 1
                waits = second.begin("LOCK", name, "LOCK %s wait=5s" % name, 5000)
                w.pause(w.uniform(0, 0.9) * w.lease_ms / 1000)
                step = w.rng.choice((w.uniform(0.2, 0.9), w.uniform(0.2, 0.9), 3600))
                with w.fault("node %d stepped by %.3f s" % (stepped.index, step)):
                    stepped.clock.set(step)
                    if second.finish(waits).kind == "OK":
                        second.check(name)
                        second.unlock(name)
                    stepped.clock.set(0)
        first.check(name)
        w.pause(1.02 * w.max_lease_ms / 1000 + 1.2)
    for session in (first, second):
        session.ask("QUIT")
    w.note("%d times" % count)
    if count < 3:
        w.fail("blind", "fewer than three locks were held by a bare quorum")


@row(17, "redis-clock-rate", "the clock of every Redis has a rate of its own, within one percent",
     injects="clocks of Redis at another rate", gap=2.0, variant="a", clock=True,
     client={"modes": {"short": 3, "late": 2, "try": 2, "wait": 3, "hold": 1}})
def within(w):
    with w.fault("rates"):
        while w.more():
            for node in w.nodes:  # without steps: a correction by a few ms would be more than one percent of a short lease
                node.clock.set_rate(w.rng.randrange(-8000, 8001))
            w.breathe(1, 2)


@row(17, "redis-clock-rate-10%", "one Redis runs 10 % fast or slow",
     injects="clocks of Redis at another rate", gap=2.0, variant="b", kind="X", clock=True)
def beyond(w):
    node = w.rng.choice(w.nodes)
    while w.more():
        with w.fault("node %d" % node.index):
            node.clock.set(0, w.rng.choice((-100000, 100000)))
            w.breathe(2, 5)


@row(18, "daemon-clock-step", "the wall clock of a daemon's host steps by hours",
     injects="clocks of daemons stepped", gap=2.0, prompt=0.6, daemon_clock=True)
def daemon_stepped(w):
    """Leases run by CLOCK_BOOTTIME, so that nothing changes. The servers limit the fences that a daemon proposes by their own clocks."""
    while w.more():
        daemon = w.rng.choice(w.daemons)
        with w.fault("daemon %d stepped" % daemon.index):
            daemon.clock.set(w.rng.choice((3600, -3600, 86400 * 365, w.uniform(-70, 70))))
        w.breathe(0.2, 1.5)
        for node in w.nodes:
            ahead = int(node.cli.get(FENCE) or 0) - wall_us()
            if ahead > SKEW_US + 1_000_000:
                w.fail("S18", "the fence of node %d runs %.1f s ahead of its clock" % (node.index, ahead / 1e6))

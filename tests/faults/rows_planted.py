# SPDX-License-Identifier: BSD-2-Clause
"""Rows that must show a violation: daemons in which a mistake of tests/sim/mutant is planted, and clocks beyond the assumptions."""
import os

from process import BUILD, until
from redis_server import FENCE
from rows import row
from session import enlisted

# Further mistakes, for `run.py --planted`: the row that finds the mistake when it is played with that daemon, the rules that the mistake breaks, and for some
# how many seconds the row needs.
PLANTED = {
    "FREE_ON_RESET": ("6", ("S1", "S13")),
    "UNLOCK_AFTER_LOSS": ("2", ("S14",)),
    "FREE_BEFORE_DEADLINE": ("12", ("S1", "S13")),
    "WAIT_ENDLESS": ("12", ("L7",)),
    "RELEASE_BLIND": ("11", ("S1", "S13")),
    "QUORUM_HALF": ("12", ("S1", "S2")),
    "COUNT_IGNORED": ("14", ("S15",)),
    "QUARANTINE_SHORT": ("20a", ("S1", "S13")),
    "QUARANTINE_TENTH_SHORT": ("20b", ("S10",)),
    "VOTE_FROM_RECEIVE": ("13a", ("S1", "S13")),
    "HANDOFF_UNRECORDED": ("40b", ("S1", "S2", "S13"), 35),
    "DOWNGRADE_UNTOLD": ("41", ("S28",)),
    "GHOST_FORGOTTEN": ("41", ("S6", "S13")),
    "PRIORITY_BY_ARRIVAL": ("4a", ("S19",), 20),
    "READERS_PASS_WRITERS": ("41", ("S19",)),
    "WATCH_UNSAID": ("41", ("S28",)),
    "BROKEN_FREES_AT_ONCE": ("41", ("S13",)),
    "BROKEN_RENEWED": ("41", ("S27",)),
    "KILL_LEAVES_SECRET": ("4b", ("S27",)),
}

SHORT_HOLDS = {"modes": {"short": 3, "late": 3, "try": 2, "wait": 3}, "pause_ms": 30}


@row(8, "planted: guard off", "a node that may have forgotten is joined at once: two of three blank, within a lease",
     injects="Redis killed with -9, blank at its return", variant="x", expect=("S1", "S13"), short=True,
     program=os.path.join(BUILD, "planted", "GUARD_OFF"), nodes=3, daemons=2, client=SHORT_HOLDS, seconds=8)
def guard_off(w):
    while w.more():
        with w.fault("two blank"):
            for node in w.some_nodes(2):
                node.restart()
        w.breathe(0.2, 0.5)


@row(17, "all clocks fast", "the clock of every Redis runs 10 % fast, which is beyond the assumption, so that exclusion fails",
     injects="clocks of Redis at another rate", variant="x", expect=("S1", "S13"), short=True, clock=True, nodes=3, daemons=2, client=SHORT_HOLDS,
     seconds=8, lease_ms=1500)
def fast(w):
    with w.fault("10 % fast"):
        for node in w.nodes:
            node.clock.set(0, 100000)
        while w.more():
            w.breathe(0.5, 1)


TRIES = {"nodes": 3, "daemons": 2, "clients": 0, "timeout_ms": 2000, "lease_ms": 5000, "max_lease_ms": 5000, "seconds": 10}


class Overtaken:
    """A schedule in which fences get out of order if a daemon may raise the fence on a node where another daemon holds the key. Nodes a, b, c. The second
    daemon holds the key on c and waits for b. The first daemon holds it on a, whose fence is far ahead, and on b, and raises the fence. If c counts for
    that, the first daemon grants and frees b, where the second is then granted a fence that is smaller than the last one."""

    def __init__(self, w):
        self.w, self.turn = w, 0
        self.a, self.b, self.c = w.nodes
        self.sessions = [enlisted(w, daemon, daemon.index) for daemon in w.daemons]

    def links(self, daemon, *nodes):
        return self.w.links([self.w.daemons[daemon]], nodes)

    def plain(self):
        """Some grants in which nothing is wrong."""
        for session in self.sessions:
            for i in range(6):
                if session.lock("plain/%d" % i):
                    session.unlock("plain/%d" % i)

    def play(self):
        w, (first, second) = self.w, self.sessions
        self.turn += 1
        name = "overtaken/%d" % self.turn
        self.plain()
        self.c.cli.incrby(FENCE, 1000)
        with w.behaving(self.links(1, self.a, self.b), refuse=True):
            w.cut(self.links(1, self.a, self.b))
            second.lock("overtaken/knows/%d" % self.turn)  # from now on the second daemon proposes more than b knows
        until(lambda: second.lock("overtaken/again/%d" % self.turn), "all three are back")
        second.unlock("overtaken/again/%d" % self.turn)
        self.c.cli.incrby(FENCE, 1000)
        w.policy(self.links(1, self.a, self.b), hold={"up": True})
        w.policy(self.links(0, self.b), hold_second=name.encode())
        waits = second.begin("LOCK", name, "LOCK " + name)
        until(lambda: self.c.cli.get("lock:" + name), "the second has c")
        self.a.cli.incrby(FENCE, 5000)
        if first.lock(name):
            first.unlock(name)
        w.policy(self.links(0, self.b), hold_second=None)
        w.cut(self.links(0, self.b))
        until(lambda: not self.b.cli.get("lock:" + name), "b is free", 15)
        w.policy(self.links(1, self.b), hold={"up": False})
        if second.finish(waits).kind == "OK":
            second.check(name)
            second.unlock(name)
        w.policy(self.links(1, self.a), hold={"up": False})


def overtaken(w):
    schedule = Overtaken(w)
    while w.more():
        with w.fault("the second is overtaken"):
            schedule.play()
    for session in schedule.sessions:
        session.ask("QUIT")


row(13, "overtaken", "the schedule that breaks the order of fences if a fence is raised where another daemon holds the key",
    injects="links that hold the next request of one daemon", variant="c", **TRIES)(overtaken)
row(13, "planted: raise anywhere", "the same, with a daemon that does that",
    injects="links that hold the next request of one daemon", variant="x", expect=("S3",), short=True,
    program=os.path.join(BUILD, "planted", "RAISE_ANYWHERE"), **TRIES)(overtaken)

# SPDX-License-Identifier: BSD-2-Clause
"""Rows 12 to 15 and 32: faults on the links between daemons and their Redis servers."""
import contextlib
import re

import packets
import process
import wire
from process import Skip
from promises import POLL_S, hands_over, passes_dead_head, passes_on
from rows import row
from session import MODES


def some_links(w):
    """Links of one daemon or of all, to a minority, a majority or all nodes."""
    daemons = w.daemons if w.rng.random() < 0.25 else [w.rng.choice(w.daemons)]
    return w.links(daemons, w.rng.choice((w.minority, w.majority))())


@row(12, "partition", "a daemon cut off from a minority or a majority, both ways or one way",
     injects=("links that hold one direction, or both", "links that swallow one direction"), short=True, daemons=3,
     client={"modes": dict(MODES, hold=6)})
def partition(w):
    while w.more():
        keys = some_links(w)
        shape = w.rng.choice(({"up": True, "down": True}, {"up": False, "down": True}, {"up": True, "down": False}))
        how = w.rng.choice(("swallow", "hold"))
        with w.fault("%s %s on %d links" % (how, "".join(sorted(way for way in shape if shape[way])), len(keys))), w.behaving(keys, **{how: shape}):
            w.pause(w.uniform(0.1, 2.2 * w.lease_ms / 1000))
        w.breathe(0.2, 1.5)
        if w.rng.random() < 0.15:
            daemon = w.rng.choice(w.daemons)
            passes_on(w, daemon, "daemon %d cut off while it holds" % daemon.index, cut_off(w, daemon))
        if w.rng.random() < 0.15:
            passes_dead_head(w, "the head of the queue cut off", lambda daemon: cut_off(w, daemon))


def cut_off(w, daemon):
    return w.behaving(w.links([daemon]), hold={"up": True, "down": True})


@row(13, "delay-jitter", "every link delays each direction by another time, with jitter",
     injects="links that delay, each by another time", gap=2.0, variant="a", short=True, client={"modes": dict(MODES, late=4)})
def jitter(w):
    w.log.tell("far")
    while w.more():
        for key in w.links():
            w.policy([key], delay={"up": (0, w.uniform(0, 0.06)), "down": (0, w.uniform(0, 0.06))})
        slow, far = w.links([w.rng.choice(w.daemons)], w.minority()), w.links([w.rng.choice(w.daemons)])
        if w.rng.random() < 0.5:
            w.policy(w.links(), delay=None)  # all daemons are near but one, whose answers take long
            with w.fault("one is far"), w.behaving(far, delay={"up": None, "down": (0.06, 0.095)}):
                w.pause(w.uniform(1.0, 2.5))
        else:
            with w.fault("jitter"), w.behaving(slow, delay={"up": (0, 0.4), "down": (0, 0.4)}):
                w.pause(w.uniform(0.5, 2.0))
    w.policy(w.links(), delay=None)


@row(13, "delay-reordered", "connections overtake each other: each new one is faster or slower than the last, and old ones are cut late",
     injects=("links that hold one direction, or both", "links that delay, each by another time"), variant="b")
def reordered(w):
    w.log.tell("far")
    while w.more():
        keys = some_links(w)
        with w.fault("held, then dialled anew"), w.behaving(keys, hold={"up": True, "down": True}):
            w.pause(w.uniform(0.1, 1.3 * w.lease_ms / 1000))
        w.policy(keys, delay=(0, w.uniform(0, 0.08)))
        w.breathe(0.1, 0.8)
    w.policy(w.links(), delay=None)


@contextlib.contextmanager
def queueing(*discipline):
    """Packets to Redis pass through this queueing discipline, on the loopback of the row's own network. Yields a function that counts dropped packets."""
    status, _, said = process.call("tc", "qdisc", "add", "dev", "lo", "root", *discipline)
    if status:
        raise Skip("%s: this kernel has no such discipline: %s" % (discipline[0], said.strip()))

    def dropped():
        return int(re.search(r"dropped (\d+)", process.call("tc", "-s", "qdisc", "show", "dev", "lo")[1]).group(1))
    try:
        yield dropped
    finally:
        process.call("tc", "qdisc", "del", "dev", "lo", "root")


@row(13, "packets-lost", "a link to Redis that is too slow, with a short queue: packets that do not fit are lost, and sent again late",
     injects="packets lost on the way to Redis", variant="d", net=True, direct="127.0.0.1", node={"tcp": True})
def lost(w):
    process.call("ip", "link", "set", "lo", "mtu", "1500")
    total = 0
    while w.more():
        with w.fault("packets are lost"), queueing("tbf", "rate", "%dkbit" % w.rng.randrange(200, 3000), "burst", "3000",
                                                   "limit", str(w.rng.randrange(3000, 9000))) as dropped:
            w.pause(w.uniform(0.3, 2.5))
            total += dropped()
        w.breathe(0.2, 1.0)
    w.note("%d packets lost" % total)
    if not total:
        w.fail("blind", "no packet was lost")


@row(13, "packets-shuffled", "packets on the way to Redis are lost at random, doubled, delayed, and overtake each other",
     injects="packets lost, doubled and reordered on the way to Redis", variant="e", net=True, wire=True, direct=packets.FAR,
     node={"tcp": True, "args": ("--bind", "127.0.0.1", packets.NEAR, "--protected-mode", "no")})
def shuffled(w):
    while w.more():
        with w.fault("packets are shuffled"):
            w.wire.behave(loss=w.uniform(0, 0.15), double=w.uniform(0, 0.1), delay=(0, w.uniform(0.001, 0.03)), late=0.25)
            w.pause(w.uniform(0.3, 2.5))
            count = w.wire.behave()
        w.breathe(0.2, 1.0)
    w.note("packets: %d lost, %d doubled, %d overtaken" % (count["lost"], count["doubled"], count["overtaken"]))
    for what, times in count.items():
        if not times:
            w.fail("blind", "no packet was %s" % what)


@row(14, "bytewise", "every byte arrives alone, on both sides of the daemon",
     injects="links that deliver byte by byte", short=True, client_proxy=True)
def bytewise(w):
    w.log.tell("far")
    clients = [("c", i) for i in w.processes]
    with w.fault("byte by byte"):
        w.policy(clients, bytewise=True)
        while w.more():
            keys = some_links(w)
            with w.behaving(keys, bytewise=True, delay=w.rng.choice((None, (0, 0.01)))):
                w.breathe(0.5, 2.0)
    w.policy(clients, bytewise=False)


@row(15, "cut-before-reply", "a connection to Redis breaks after the request, before its n-th answer",
     injects="links that are cut instead of a reply", short=True)
def cut(w):
    while w.more():
        keys = some_links(w)
        with w.fault("cut before an answer"), w.behaving(keys, cut_answer=w.rng.randrange(6, 60)):
            w.pause(w.uniform(0.5, 2.0))
        w.breathe(0.1, 0.6)


@row(32, "pubsub-lost", "no Pub/Sub connection works: messages about releases are lost, and timers must do",
     injects="links that refuse Pub/Sub", gap=1.0, client={"modes": {"wait": 1}})
def without_pubsub(w):
    with w.fault("no Pub/Sub"), w.behaving(w.links(), no_pubsub=True):
        w.cut(w.links())
        while w.more():
            w.breathe(0.3, 1)
            granted_without_a_message(w)


def granted_without_a_message(w):
    """L6: a daemon that hears nothing of a release asks again within a second."""
    here, there = w.rng.sample(w.daemons, 2)
    with wire.Client(here.addr) as holder, wire.Client(there.addr) as waiter:
        if holder.ask("LOCK faults/released wait=1s", 20).kind != "OK":
            return
        waiter.send("LOCK faults/released wait=20s")
        w.pause(w.uniform(0.2, 1.5))
        hands_over(w, "L6", "without Pub/Sub", holder, waiter, "faults/released", POLL_S + 1 + 10 * w.worst_gap)

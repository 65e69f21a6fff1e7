# SPDX-License-Identifier: BSD-2-Clause
"""Rows 12 to 15 and 32: what happens on the way between a daemon and its Redis servers."""
import process
from rows import row


def some_links(w):
    """Of one daemon or of all, to a minority, a majority or all nodes."""
    daemons = w.rng.choice(([w.rng.choice(w.daemons)], w.daemons))
    return w.links(daemons, w.rng.choice((w.minority, w.majority))())


@row(12, "partition", "a daemon cut off from a minority or a majority, both ways or one way", short=True)
def partition(w):
    while w.more():
        keys = some_links(w)
        shape = w.rng.choice(({"up": True, "down": True}, {"up": False, "down": True}, {"up": True, "down": False}))
        how = w.rng.choice(("swallow", "hold"))
        with w.fault("%s %s on %d links" % (how, "".join(sorted(way for way in shape if shape[way])), len(keys))), w.behaving(keys, **{how: shape}):
            w.pause(w.uniform(0.1, 2.2 * w.lease_ms / 1000))
        w.breathe(0.2, 1.5)


@row(13, "delay-jitter", "delay and jitter of their own for every link and direction", variant="a", short=True)
def jitter(w):
    while w.more():
        for key in w.links():
            w.policy([key], delay={"up": (0, w.uniform(0, 0.06)), "down": (0, w.uniform(0, 0.06))})
        slow = w.links([w.rng.choice(w.daemons)], w.minority())
        with w.fault("jitter"), w.behaving(slow, delay={"up": (0, 0.4), "down": (0, 0.4)}):
            w.pause(w.uniform(0.5, 2.5))
    w.policy(w.links(), delay=None)
    if process.call("tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")[0] != 0:
        w.note("skipped here: netem (loss and reordering of packets), which this kernel does not have")
    else:
        process.call("tc", "qdisc", "del", "dev", "lo", "root")


@row(13, "delay-reordered", "connections overtake each other: each new one is faster or slower than the last, and the old are cut late", variant="b")
def reordered(w):
    while w.more():
        keys = some_links(w)
        with w.fault("held, then dialled anew"), w.behaving(keys, hold={"up": True, "down": True}):
            w.pause(w.uniform(0.1, 1.3 * w.lease_ms / 1000))
        w.policy(keys, delay=(0, w.uniform(0, 0.08)))
        w.breathe(0.1, 0.8)
    w.policy(w.links(), delay=None)


@row(14, "bytewise", "every byte alone, on both sides of the daemon", short=True, client_proxy=True)
def bytewise(w):
    clients = [("c", i) for i in w.processes]
    with w.fault("byte by byte"):
        w.policy(clients, bytewise=True)
        while w.more():
            keys = some_links(w)
            with w.behaving(keys, bytewise=True, delay=w.rng.choice((None, (0, 0.01)))):
                w.breathe(0.5, 2.0)
    w.policy(clients, bytewise=False)


@row(15, "cut-before-reply", "a connection to Redis breaks after the request, before its n-th answer", short=True)
def cut(w):
    while w.more():
        keys = some_links(w)
        with w.fault("cut before an answer"), w.behaving(keys, cut_answer=w.rng.randrange(6, 60)):
            w.pause(w.uniform(0.5, 2.0))
        w.breathe(0.1, 0.6)


@row(32, "pubsub-lost", "no Pub/Sub connection stands: wakings are lost", client={"modes": {"wait": 1}})
def deaf(w):
    with w.fault("deaf"):
        w.policy(w.links(), deaf=True)
        w.cut(w.links())
        while w.more():
            w.breathe(1, 2)
            for daemon in w.daemons:
                if not daemon.alive():
                    return

# SPDX-License-Identifier: BSD-2-Clause
"""Promises to holders and waiters that set a bound in time: rows judge them at once, since histories cannot."""
import contextlib
import time

import wire
from history import MS, now

POLL_S, TICKET_S = 1, 3  # a waiter that hears nothing asks again after POLL_S; a ticket lasts TICKET_S unless its daemon refreshes it


def passes_on(w, daemon, what, harm):
    """L2: when `harm` is done to a daemon, a waiter at another daemon is granted its lock, not before its deadline and not long after it."""
    other = w.rng.choice([other for other in w.daemons if other is not daemon])
    with wire.Client(daemon.addr) as holder, wire.Client(other.addr) as waiter:
        if holder.ask("LOCK faults/passed-on wait=2s", 20).kind != "OK":
            return
        waiter.send("LOCK faults/passed-on wait=%dms" % (w.lease_ms + 20000))
        w.pause(w.uniform(0, w.lease_ms / 1000))
        asked = now()
        answer = holder.ask("CHECK faults/passed-on", 20)
        deadline = asked + answer.num("valid_ms") * MS if answer.kind == "OK" else 0
        with w.fault(what):
            begin = now()
            with harm:
                answer, told = waiter.reply(None, w.lease_ms / 1000 + 30), now()
            took = (told - begin) / 1e9
            if answer.kind != "OK" or took > w.lease_ms / 1000 * 1.02 + POLL_S + 1 + 5 * w.worst_gap:
                w.fail("L2", "%s: its lock was granted after %.2f s: %s" % (what, took, answer))
            elif told < deadline:
                w.fail("S13", "%s: its lock was granted %.1f ms before its deadline" % (what, (deadline - told) / MS))


def hands_over(w, rule, what, holder, waiter, name, most):
    """The holder unlocks, and the waiter must be granted the lock within so many seconds."""
    if holder.ask("UNLOCK %s sync=yes" % name, 20).kind != "OK":
        return
    begin = time.monotonic()
    answer = waiter.reply(None, 40)
    took = time.monotonic() - begin
    if answer.kind != "OK" or took > most:
        w.fail(rule, "%s: the waiter was granted the free lock after %.2f s: %s" % (what, took, answer))


def passes_dead_head(w, what, harm):
    """L3: a daemon at the head of the queue that is cut off by harm(daemon) delays the next one no longer than its ticket lasts. Needs three daemons."""
    here, head, next_one = w.rng.sample(w.daemons, 3)
    with contextlib.ExitStack() as stack:
        holder, dead, waiter = [stack.enter_context(wire.Client(daemon.addr)) for daemon in (here, head, next_one)]
        if holder.ask("LOCK faults/queue wait=2s", 20).kind != "OK":
            return
        for client in (dead, waiter):
            client.send("LOCK faults/queue wait=30s")
            w.pause(0.3)  # until its daemon is queued
        with w.fault(what), harm(head):
            w.pause(w.uniform(0, 0.5))
            hands_over(w, "L3", what, holder, waiter, "faults/queue", TICKET_S + POLL_S + 1 + 5 * w.worst_gap)


def keeps(w, what, harm, rule="L9"):
    """A lock at each daemon survives the harm to a minority. harm: a context, entered when all nodes hold the locks. A machine that stands still is excused."""
    w.pause(1.02 * w.max_lease_ms / 1000 + 1)  # until the last quarantine is over
    with contextlib.ExitStack() as stack:
        held = []
        for daemon in w.daemons:
            client = stack.enter_context(wire.Client(daemon.addr))
            name = "faults/kept/%d" % daemon.index
            answer = client.ask("LOCK %s wait=2s" % name, 20)
            if answer.kind != "OK" or not all(node.cli.exists("lock:" + name) for node in w.nodes):
                w.note("a lock was not on all nodes, and was not judged")
                return
            held.append((client, name, answer["fence"]))
        begin = time.monotonic()
        with w.fault(what), harm:
            w.pause(1.3 * w.lease_ms / 1000)
        w.pause(w.lease_ms / 1000)
        for client, name, fence in held:
            answer = client.ask("CHECK " + name, 20)
            if (answer.kind != "OK" or answer["fence"] != fence) and w.late_at < begin:
                w.fail(rule, "%s: %s was lost: %s, %s" % (what, name, answer, [str(line) for line in client.inbox]))
            client.ask("UNLOCK " + name, 20)


@contextlib.contextmanager
def tells_losses(w):
    """L5: a context around the loss of the quorum. A session at each daemon that holds a lock before that is pushed LOST by the end of its lease."""
    with contextlib.ExitStack() as stack:
        held = []
        for daemon in w.daemons:
            client = stack.enter_context(wire.Client(daemon.addr))
            if client.ask("LOCK faults/lost/%d wait=2s" % daemon.index, 20).kind == "OK":
                held.append((daemon, client))
        yield
        begin, most = time.monotonic(), w.lease_ms / 1000 + 0.5 + 5 * w.worst_gap
        for daemon, client in held:
            while not any(line.code == "LOST" for line in client.inbox):
                left = begin + most - time.monotonic()
                if left < 0 or client.ended:
                    w.fail("L5", "%.2f s after the last quorum a session at daemon %d has read no LOST: %s" % (most, daemon.index, client.inbox))
                    break
                client.fill(left)

# SPDX-License-Identifier: BSD-2-Clause
"""Who holds, who waits, and what a fault means to them: judged at once, beside the histories, which know no bound for any of it."""
import contextlib
import time

import wire
from history import now

MS = 1_000_000
POLL_S, TICKET_S = 1, 3  # what a waiter that hears nothing waits at most between two tries; how long a place in line lasts unless refreshed


def heir(w, daemon, what, harm):
    """L2: the lock of a daemon that comes to harm goes to who waits at another, no earlier than its deadline and not long after it."""
    other = w.rng.choice([other for other in w.daemons if other is not daemon])
    with contextlib.closing(wire.Client(daemon.addr)) as holder, contextlib.closing(wire.Client(other.addr)) as waiter:
        if holder.ask("LOCK faults/widow wait=2s", 20).kind != "OK":
            return
        waiter.send("LOCK faults/widow wait=%dms" % (w.lease_ms + 20000))
        w.pause(w.uniform(0, w.lease_ms / 1000))
        asked = now()
        answer = holder.ask("CHECK faults/widow", 20)
        deadline = asked + answer.num("valid_ms") * MS if answer.kind == "OK" else 0
        with w.fault(what):
            begin = now()
            with harm:
                answer, told = waiter.reply(None, w.lease_ms / 1000 + 30), now()
            took = (told - begin) / 1e9
            if answer.kind != "OK" or took > w.lease_ms / 1000 * 1.02 + POLL_S + 1 + 5 * w.worst_gap:
                w.fail("L2", "%s: its lock came after %.2f s: %s" % (what, took, answer))
            elif told < deadline:
                w.fail("S13", "%s: its lock came %.1f ms before its deadline" % (what, (deadline - told) / MS))


def dead_head(w, what, harm):
    """L3: who stands first in line and is cut off keeps the next from a free lock no longer than its place lasts. harm(daemon). Three daemons."""
    here, head, next_one = w.rng.sample(w.daemons, 3)
    with contextlib.ExitStack() as stack:
        holder, dead, waiter = [stack.enter_context(contextlib.closing(wire.Client(daemon.addr))) for daemon in (here, head, next_one)]
        if holder.ask("LOCK faults/line wait=2s", 20).kind != "OK":
            return
        for client in (dead, waiter):
            client.send("LOCK faults/line wait=30s")
            w.pause(0.3)  # stands in line
        with w.fault(what), harm(head):
            w.pause(w.uniform(0, 0.5))
            if holder.ask("UNLOCK faults/line sync=yes", 20).kind != "OK":
                return
            begin = time.monotonic()
            answer = waiter.reply(None, 40)
            took = time.monotonic() - begin
            if answer.kind != "OK" or took > TICKET_S + POLL_S + 1 + 5 * w.worst_gap:
                w.fail("L3", "%s: the next in line had the free lock after %.2f s: %s" % (what, took, answer))


def keeps(w, what, harm, rule="L9"):
    """A lock at each daemon outlives what a minority does. harm: a context, entered when all nodes hold the locks. A machine that stood still is excused."""
    w.pause(1.02 * w.max_lease_ms / 1000 + 1)  # the last quarantine is over
    with contextlib.ExitStack() as stack:
        held = []
        for daemon in w.daemons:
            client = stack.enter_context(contextlib.closing(wire.Client(daemon.addr)))
            name = "faults/kept/%d" % daemon.index
            answer = client.ask("LOCK %s wait=2s" % name, 20)
            if answer.kind != "OK" or not all(node.cli.exists("lock:" + name) for node in w.nodes):
                w.note("a lock was not on all nodes, and not judged")
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
def mourners(w):
    """L5: around what leaves no quorum. A session at each daemon that holds when that begins is told of its loss by the end of its lease."""
    with contextlib.ExitStack() as stack:
        held = []
        for daemon in w.daemons:
            client = stack.enter_context(contextlib.closing(wire.Client(daemon.addr)))
            if client.ask("LOCK faults/mourned/%d wait=2s" % daemon.index, 20).kind == "OK":
                held.append((daemon, client))
        yield
        begin, most = time.monotonic(), w.lease_ms / 1000 + 0.5 + 5 * w.worst_gap
        for daemon, client in held:
            while not any(line.code == "LOST" for line in client.inbox):
                left = begin + most - time.monotonic()
                if left < 0 or client.ended:
                    w.fail("L5", "%.2f s after the last quorum a session at daemon %d is told of no loss: %s" % (most, daemon.index, client.inbox))
                    break
                client.fill(left)

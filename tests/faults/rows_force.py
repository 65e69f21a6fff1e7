# SPDX-License-Identifier: BSD-2-Clause
"""Row 42: locks that are broken and sessions that are killed by administrators, while daemons are stopped and killed."""
import contextlib

import wire
from session import LINGERING
from rows import row


@row(42, "broken-and-killed", "BREAK of locks and KILL of sessions, also of daemons that stand still, were killed or are just back",
     injects=("locks broken and sessions killed by administrators", "daemons stopped (SIGSTOP)", "daemons killed with -9"), short=True,
     client={"modes": dict(LINGERING, hold=5), "grace_ms": 1500})
def forced(w):
    done = {"BREAK": 0, "KILL": 0}
    while w.more():
        daemon = w.rng.choice(w.daemons)
        others = [other for other in w.daemons if other is not daemon]
        act = w.rng.random()
        if act < 0.25:
            with w.fault("daemon %d stands still, locks are broken" % daemon.index), w.stopped("d%d" % daemon.index, daemon.pid):
                force(w, others, done, w.uniform(0.05, 1.5 * w.lease_ms / 1000))
        elif act < 0.65:
            with w.fault("daemon %d killed, locks are broken" % daemon.index):
                daemon.kill()
                force(w, others, done, w.uniform(0, 0.5))
                daemon.start()
                force(w, w.daemons, done, 0.2)
        else:
            with w.fault("locks are broken, sessions are killed"):
                force(w, w.daemons, done, w.uniform(0.1, 0.5))
        w.breathe(0.2, 1.2)
    if not all(done.values()):
        w.fail("S27", "nothing was taken by force: %s" % done)


def force(w, daemons, done, seconds):
    """Administrators at these daemons, for so many seconds. Whatever stands there, they have an answer in time."""
    end, asked = seconds, 0
    with contextlib.ExitStack() as stack:
        admins = [(daemon, stack.enter_context(wire.Client(daemon.addr))) for daemon in daemons]
        while end > 0 or not asked:
            daemon, admin = w.rng.choice(admins)
            verb, what = ("KILL", some_session(w, admin)) if w.rng.random() < 0.15 else ("BREAK", w.rng.choice(w.names))
            if what:
                judge(w, daemon, verb, admin.ask("%s %s" % (verb, what), 20), done)
            pause = w.uniform(0.01, 0.15)
            w.pause(pause)
            end, asked = end - pause, asked + 1


def some_session(w, admin):
    """One that may hold something, with or without a connection."""
    rows = [row["session"] for row in admin.ask("LIST sessions limit=200", 20).rows if row.fields.get("held", "0") != "0"]
    return "session=" + w.rng.choice(rows) if rows else None


def judge(w, daemon, verb, answer, done):
    if answer.kind == "OK":
        done[verb] += 1
        most = w.max_lease_ms * 1.05 + w.answer_ms()
        if verb == "BREAK" and not 0 <= answer.num("free_in_ms") <= most:
            w.fail("S27", "BREAK at daemon %d: a lock is free in %s ms, and the longest lease is %d ms" % (daemon.index, answer["free_in_ms"], w.max_lease_ms))
    elif answer.kind != "ERR" or answer.code not in ("NOTFOUND", "QUORUM"):
        w.fail("S21", "%s at daemon %d is answered: %s" % (verb, daemon.index, answer))

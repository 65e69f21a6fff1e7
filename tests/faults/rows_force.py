# SPDX-License-Identifier: BSD-2-Clause
"""Row 42: clients often break locks and kill sessions, while daemons are stopped and killed."""
from rows import row
from session import LINGERING


@row(42, "broken-and-killed", "BREAK of locks and KILL of sessions, also of daemons that stand still, were killed or are just back",
     injects=("locks broken and sessions killed by administrators", "daemons stopped (SIGSTOP)", "daemons killed with -9"), short=True,
     client={"modes": dict(LINGERING, hold=5, force=4, kill=1), "grace_ms": 1500})
def forced(w):
    while w.more():
        daemon = w.rng.choice(w.daemons)
        act = w.rng.random()
        if act < 0.25:
            with w.fault("daemon %d stands still, locks are broken" % daemon.index), w.stopped("d%d" % daemon.index, daemon.pid):
                w.pause(w.uniform(0.05, 1.5 * w.lease_ms / 1000))
        elif act < 0.65:
            with w.fault("daemon %d killed, locks are broken" % daemon.index):
                daemon.kill()
                w.pause(w.uniform(0, 0.5))
                daemon.start()
        w.breathe(0.2, 1.2)

# SPDX-License-Identifier: BSD-2-Clause
"""Rows 1, 2, 18, 19, 39: what happens to a daemon."""
import signal

from rows import row, simulated


@row(1, "daemon-killed", "kill -9 of a daemon that holds locks, and a new start", short=True)
def killed(w):
    while w.more():
        daemon = w.rng.choice(w.daemons)
        with w.fault("daemon %d killed" % daemon.index):
            daemon.kill()
            w.pause(w.uniform(0, 1.5))
            daemon.start()
        w.breathe(0.5, 2.0)


@row(2, "daemon-stopped", "SIGSTOP of a daemon, shorter and longer than the lease", short=True)
def stopped(w):
    while w.more():
        daemon = w.rng.choice(w.daemons)
        with w.fault("daemon %d stands still" % daemon.index), w.stopped("d%d" % daemon.index, daemon.pid):
            w.pause(w.uniform(0.05, 2.5 * w.lease_ms / 1000))
        w.breathe(0.3, 1.2)


simulated(19, "daemon-suspended", "only in the simulator: no running clock can be moved from outside (build/sim, fault daemon-halt)")


@row(39, "daemon-signals", "SIGHUP in storms, SIGTERM and a new start", short=True)
def signals(w):
    while w.more():
        daemon = w.rng.choice(w.daemons)
        for _ in range(w.rng.randrange(1, 60)):
            daemon.send_signal(signal.SIGHUP)
            if w.rng.random() < 0.2:
                w.pause(0.01)
        if w.rng.random() < 0.4:
            with w.fault("daemon %d ended and started" % daemon.index):
                status, seconds = daemon.finish(w.rng.choice((signal.SIGTERM, signal.SIGINT)))
                if status != 0:
                    w.fail("S21", "SIGTERM ends with status %d" % status)
                if seconds > 1 + 4 * w.worst_gap + 1:
                    w.fail("L7", "SIGTERM took %.2f s" % seconds)
                daemon.start()
        w.breathe(0.1, 1.2)

# SPDX-License-Identifier: BSD-2-Clause
"""Rows 1, 2, 19, 39: daemons that are killed, stopped, suspended with their host, or sent signals."""
import contextlib
import signal
import time

from promises import passes_on
from rows import row
from session import LINGERING


@row(1, "daemon-killed", "kill -9 of a daemon that holds locks, and a restart",
     injects="daemons killed with -9", variant="a", short=True)
def killed(w):
    while w.more():
        daemon = w.rng.choice(w.daemons)
        if w.rng.random() < 0.4:
            passes_on(w, daemon, "daemon %d killed while it holds" % daemon.index, dead(daemon))
        else:
            with w.fault("daemon %d killed" % daemon.index):
                daemon.kill()
                w.pause(w.uniform(0, 1.5))
                daemon.start()
        w.breathe(0.5, 2.0)


@contextlib.contextmanager
def dead(daemon):
    daemon.kill()
    yield
    daemon.start()


@row(1, "daemon-killed-resume", "the same, and its clients RESUME their sessions after the restart",
     injects="daemons killed with -9", variant="b", client={"grace_ms": 1500})
def killed_and_resumed(w):
    while w.more():
        daemon = w.rng.choice(w.daemons)
        with w.fault("daemon %d killed" % daemon.index):
            daemon.kill()
            w.pause(w.uniform(0, 0.5))
            daemon.start()
        w.breathe(0.5, 2.0)


MEMORY = {"nodes": 0, "daemons": 1, "clients": 10, "tree": {"store": "memory"}}
LOCKS = dict(LINGERING, rate=0, job=0)


@row(1, "memory-daemon-killed", "kill -9 of a daemon on the memory store: what its clients believe in is not granted again",
     injects="daemons on the memory store killed with -9", variant="c", short=True, client={"modes": LOCKS, "eof_ends": False}, **MEMORY)
def memory_killed(w):
    while w.more():
        daemon, = w.daemons
        with w.fault("the daemon killed"):
            for _ in range(w.rng.choice((1, 1, 1, 4))):  # again before it has served anybody
                daemon.kill()
                w.pause(w.uniform(0, 0.6))
                daemon.start()
            if w.rng.random() < 0.2:
                daemon.finish()
                daemon.start()
        w.breathe(0.2, 1.5)


@row(1, "memory-killed-resume", "the same, and its clients RESUME their sessions", injects="daemons on the memory store killed with -9", variant="d",
     client={"modes": LOCKS, "grace_ms": 1500}, **MEMORY)
def memory_killed_and_resumed(w):
    memory_killed(w)


@row(2, "daemon-stopped", "SIGSTOP of a daemon, shorter and longer than the lease",
     injects="daemons stopped (SIGSTOP)", short=True, client={"modes": LINGERING})
def stopped(w):
    while w.more():
        daemon = w.rng.choice(w.daemons)
        with w.fault("daemon %d stands still" % daemon.index), w.stopped("d%d" % daemon.index, daemon.pid):
            w.pause(w.uniform(0.05, 2.5 * w.lease_ms / 1000))
        w.breathe(0.3, 1.2)


@row(19, "host-suspended", "the host of a daemon is suspended, with its clients or without: CLOCK_MONOTONIC stands, CLOCK_BOOTTIME does not",
     injects="daemons suspended with their host", daemon_clock=True, client={"modes": LINGERING})
def suspended(w):
    """A SIGSTOP that the CLOCK_MONOTONIC of the daemon does not count looks like a suspend to it."""
    slept = dict.fromkeys(w.daemons, 0.0)
    while w.more():
        daemon = w.rng.choice(w.daemons)
        with_it = [i for i in w.processes if i % len(w.daemons) == w.daemons.index(daemon) and w.rng.random() < 0.5]
        with contextlib.ExitStack() as clients:
            with w.fault("host of daemon %d suspended" % daemon.index), w.stopped("d%d" % daemon.index, daemon.pid):
                begin = time.monotonic()
                for i in with_it:
                    clients.enter_context(w.stopped("c%d" % i, w.processes[i].pid))
                w.pause(w.uniform(0.05, 2.5 * w.lease_ms / 1000))
                if w.rng.random() < 0.5:
                    clients.close()  # the clients wake before the daemon
                slept[daemon] += time.monotonic() - begin
                daemon.clock.suspend(slept[daemon])
        w.breathe(0.3, 1.2)


@row(39, "daemon-signals", "storms of SIGHUP, and SIGTERM and a restart",
     injects="storms of signals", short=True)
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

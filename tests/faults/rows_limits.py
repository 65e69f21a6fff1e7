# SPDX-License-Identifier: BSD-2-Clause
"""Rows 33 to 36 and 40: what runs short on the daemon's host, and daemons that get into each other's way."""
import contextlib
import os
import re
import resource
import time

import process
import wire
from harness import Daemon
from locker import MODES
from process import merged
from rows import row
from skip import Skip


def refused(w, tree, what, runtime_dir=None):
    """Starts one more daemon, which must end by itself, with a word about why."""
    extra = Daemon(tree, runtime_dir=runtime_dir)
    try:
        extra.launch()
        extra.expect_dead = True
        if extra.notify.wait("READY=1", extra.process, 10):
            w.fail("S17", "%s: the daemon started" % what)
            return
        if extra.process.wait() == 0 or not extra.log().strip():
            w.fail("S17", "%s: it ended with status %d and said: %s" % (what, extra.process.returncode, extra.log()))
    finally:
        extra.dispose()


def grants_nothing(w, tree, what, seconds=1.5):
    """Starts one more daemon, which may run, but must not grant."""
    extra = Daemon(tree)
    try:
        extra.start()
        extra.expect_dead = True
        with wire.Client(extra.addr) as client:
            answer = client.ask("LOCK faults/wrong wait=%dms" % (seconds * 1000), 20)
            if answer.kind == "OK":
                w.fail("S17", "%s: a lock was granted" % what)
    finally:
        extra.dispose()


@row(33, "state-dir-full", "the state directory full, then read-only", net=True)
def full(w):
    for daemon in w.daemons:
        if process.call("mount", "-t", "tmpfs", "-o", "size=16k", "redlockd-faults", daemon.runtime_dir)[0] != 0:
            raise Skip("this host mounts no tmpfs")
        w.stack.callback(process.call, "umount", "-l", daemon.runtime_dir)
        w.restart_daemon(daemon)
    while w.more():
        daemon = w.rng.choice(w.daemons)
        with w.fault("daemon %d cannot write" % daemon.index):
            ballast = os.path.join(daemon.runtime_dir, "ballast")
            with contextlib.suppress(OSError), open(ballast, "wb", buffering=0) as out:
                out.write(b"x" * 65536)
            w.breathe(0.3, 1.0)
            if w.rng.random() < 0.5:
                w.restart_daemon(daemon)
            process.call("mount", "-o", "remount,ro", daemon.runtime_dir)
            w.breathe(0.3, 1.0)
            process.call("mount", "-o", "remount,rw", daemon.runtime_dir)
            with contextlib.suppress(OSError):
                os.unlink(ballast)
        w.breathe(0.3, 1.0)


@row(34, "no-descriptors", "a daemon without file descriptors: it accepts no more, and its links cannot be dialled", short=True, tcp=True,
     client={"modes": dict(MODES, drop=0)})
def no_descriptors(w):
    """Its clients keep their connections: who dials now is heard when there are descriptors again."""
    sound = resource.getrlimit(resource.RLIMIT_NOFILE)
    while w.more():
        daemon = w.rng.choice(w.daemons)
        crowd = []
        with w.fault("daemon %d without descriptors" % daemon.index):
            used = len(os.listdir("/proc/%d/fd" % daemon.pid))
            resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (used + w.rng.randrange(0, 4), sound[1]))
            for _ in range(60):
                with contextlib.suppress(OSError):
                    crowd.append(wire.connect(daemon.tcp))
            before, begin = daemon.cpu_seconds(), time.monotonic()
            if w.rng.random() < 0.5:
                w.cut(w.links([daemon], w.minority()))
            w.pause(w.uniform(1.0, 2.0))
            share = (daemon.cpu_seconds() - before) / (time.monotonic() - begin)
            if share > 0.5:
                w.fail("S21", "daemon %d spins without descriptors: %.0f %% of a processor" % (daemon.index, share * 100))
            for sock in crowd:
                sock.close()
            resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, sound)
        w.breathe(0.5, 1.5)


@row(35, "no-memory", "a daemon that gets no more memory: it may end, and nothing else", short=True)
def no_memory(w):
    if process.sanitized():
        raise Skip("a sanitizer's shadow does not fit below any limit of memory")
    while w.more():
        daemon = w.rng.choice(w.daemons)
        daemon.expect_dead = True
        with w.fault("daemon %d without memory" % daemon.index):
            with open("/proc/%d/status" % daemon.pid) as status:
                size = int(re.search(r"VmSize:\s+(\d+)", status.read()).group(1)) << 10
            resource.prlimit(daemon.pid, resource.RLIMIT_AS, (size + (w.rng.randrange(0, 600) << 10), resource.RLIM_INFINITY))
            with contextlib.suppress(OSError, AssertionError), wire.Client(daemon.addr) as eater:
                for i in range(900):
                    eater.send("@t%d LOCK %s%d wait=1s" % (i, "faults/" + "m" * 400, i))
                eater.listen(w.uniform(0.3, 1.0))
            w.pause(0.2)
            if daemon.alive():
                resource.prlimit(daemon.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
                daemon.expect_dead = False
                w.note("a daemon lived through it")
            else:
                w.note("a daemon ended: status %d" % daemon.process.returncode)
                daemon.start()
        w.breathe(0.5, 1.5)


@row(36, "wrong-configuration", "one state directory for two daemons, one Redis named twice, other lists of nodes", short=True)
def wrong(w):
    twice = os.path.join(w.folder, "twice")
    os.symlink(w.nodes[0].path, twice)
    plain = ["unix:" + node.path for node in w.nodes]
    store = {"store": "redis", "max_lease": "%dms" % w.max_lease_ms, "lease": "%dms" % w.lease_ms}
    while w.more():
        daemon = w.rng.choice(w.daemons)
        with w.fault("a wrong configuration"):
            refused(w, merged(store, {"redis": {"nodes": plain, "set": "faults"}}), "one state directory for two", daemon.runtime_dir)
            double = ["unix:" + w.nodes[0].path, "unix:" + twice, "unix:" + w.nodes[0].path + "/../sock"][:3]
            grants_nothing(w, merged(store, {"redis": {"nodes": double, "set": "faults"}}), "the same Redis three times")
            grants_nothing(w, merged(store, {"redis": {"nodes": plain, "set": "others"}}), "another set")
            grants_nothing(w, merged(merged(store, {"max_lease": "9s"}), {"redis": {"nodes": plain, "set": "faults"}}), "another max_lease")
        w.breathe(0.2, 1.0)


@row(40, "old-daemon-wakes", "a daemon stands still, another takes its place, the old one wakes", short=True)
def old_wakes(w):
    started = len(w.daemons)
    while w.more():
        old = w.rng.choice(w.daemons)
        with w.fault("daemon %d stands still" % old.index), w.stopped("d%d" % old.index, old.pid):
            refused(w, merged(old.tree, {"listen": {"unix": os.path.join(w.folder, "second")}}), "a second one beside a daemon that stands still", old.runtime_dir)
            place, started = w.daemons.index(old), started + 1
            fresh = w.make_daemon(started)
            w.strict(fresh)
            fresh.start()
            w.daemons[place] = fresh
            for i in [i for i in w.processes if i % len(w.daemons) == place]:
                w.kill_client(i)
                w.start_client(i, fresh)
            w.pause(w.uniform(0.1, 2 * w.lease_ms / 1000))
        w.pause(w.uniform(0.3, 1.5))
        old.finish()
        w.breathe(0.2, 1.0)

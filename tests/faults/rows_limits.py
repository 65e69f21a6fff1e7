# SPDX-License-Identifier: BSD-2-Clause
"""Rows 33 to 36 and 40: a host that runs out of disk space, descriptors or memory, and daemons that get into each other's way."""
import contextlib
import os
import resource
import shutil
import struct
import time

import process
import wire
from cgroup import MemoryGroup
from daemon import Daemon
from process import Skip, memory_kib, merged
from rows import row
from session import MODES


def refused(w, tree, what, runtime_dir=None):
    """Starts one more daemon, which must end by itself and log why."""
    extra = Daemon(tree, runtime_dir=runtime_dir)
    try:
        extra.launch()
        extra.expect_dead = True
        if extra.notify.wait("READY=1", extra.process, 10):
            w.fail("S17", "%s: the daemon started" % what)
            return
        if extra.process.wait() == 0 or not extra.log().strip():
            w.fail("S17", "%s: the daemon ended with status %d and logged: %s" % (what, extra.process.returncode, extra.log()))
    finally:
        extra.dispose()


def grants_nothing(w, tree, what, seconds=1.5):
    """Starts one more daemon, which may run but must not grant."""
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


def small_folders(w, size):
    """Mounts a small device as the state directory of each daemon."""
    for daemon in w.daemons:
        if process.call("mount", "-t", "tmpfs", "-o", "size=" + size, "redlockd-faults", daemon.runtime_dir)[0] != 0:
            raise Skip("this host mounts no tmpfs")
        w.stack.callback(process.call, "umount", "-l", daemon.runtime_dir)
        w.restart_daemon(daemon)


def cannot_write(w, daemon, between=lambda: None):
    """The device of a daemon is full, and then read-only. In between the daemon is now and then killed and started."""
    ballast = os.path.join(daemon.runtime_dir, "ballast")
    with w.fault("daemon %d cannot write" % daemon.index):
        with contextlib.suppress(OSError), open(ballast, "wb", buffering=0) as out:
            while out.write(b"x" * 4096):
                pass
        between()
        w.breathe(0.3, 1.0)
        if w.rng.random() < 0.5:
            w.restart_daemon(daemon)
        process.call("mount", "-o", "remount,ro", daemon.runtime_dir)
        between()
        w.breathe(0.3, 1.0)
        process.call("mount", "-o", "remount,rw", daemon.runtime_dir)
        with contextlib.suppress(OSError):
            os.unlink(ballast)


@row(33, "state-dir-full", "the state directory full, then read-only",
     injects=("daemons killed with -9", "a full state directory", "a read-only state directory"), variant="a", net=True)
def full(w):
    small_folders(w, "16k")
    while w.more():
        cannot_write(w, w.rng.choice(w.daemons))
        w.breathe(0.3, 1.0)


@row(33, "state-dir-full-resume", "the same with a journal, while connections are cut, daemons are killed, and clients RESUME their sessions",
     injects=("daemons killed with -9", "connections of clients cut", "a full state directory", "a read-only state directory"), variant="b",
     net=True, client_proxy=True, client={"grace_ms": 1500, "eof_ends": False})
def full_and_resumed(w):
    """A journal that cannot be written any more is out of date: nobody may resume locks that were unlocked since."""
    def cut_some():
        w.cut([("c", i) for i in w.rng.sample(sorted(w.processes), w.rng.randrange(1, 8))])
    small_folders(w, "64k")
    while w.more():
        daemon = w.rng.choice(w.daemons)
        cannot_write(w, daemon, cut_some)
        w.breathe(0.3, 1.0)
        if w.rng.random() < 0.5:  # the journal has been written again by now
            with w.fault("daemon %d killed" % daemon.index):
                w.restart_daemon(daemon)
            w.breathe(0.3, 1.0)


@row(34, "no-descriptors", "a daemon without file descriptors, which can neither accept connections nor dial Redis",
     injects="no file descriptors", short=True, tcp=True, restless=False, client={"modes": dict(MODES, drop=0, leave=0, kill=0)})
def no_descriptors(w):
    """Clients keep their connections, because a new one is accepted only when there are descriptors again."""
    sound = resource.getrlimit(resource.RLIMIT_NOFILE)
    while w.more():
        daemon = w.rng.choice(w.daemons)
        crowd = []
        with w.fault("daemon %d without descriptors" % daemon.index):
            used = process.descriptors_of(daemon.pid)
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


def eat(w, daemon):
    """Makes a daemon allocate memory: it must remember many names."""
    with contextlib.suppress(OSError, AssertionError), wire.Client(daemon.addr) as eater:
        for i in range(900):
            eater.send("@t%d LOCK %s%d wait=1s" % (i, "faults/" + "m" * 400, i))
        eater.listen(w.uniform(0.3, 1.0))
    w.pause(0.2)


EX_OSERR = 71  # the status of a daemon that has run out of memory


def limit_memory(w, daemon, limit, lift, ends=(EX_OSERR,)):
    """A daemon whose memory is limited may end with one of these statuses, and must do no other harm."""
    daemon.expect_dead = True
    with w.fault("daemon %d without memory" % daemon.index):
        limit(daemon)
        eat(w, daemon)
        if daemon.alive():
            lift(daemon)
            daemon.expect_dead = False
            w.note("a daemon survived")
        else:
            w.note("a daemon ended: status %d" % daemon.process.returncode)
            if daemon.process.returncode not in ends:
                w.fail("S21", "daemon %d without memory ended with status %d\n%s" % (daemon.index, daemon.process.returncode, daemon.log()[-3000:]))
            lift(None)
            daemon.start()
    w.breathe(0.5, 1.5)


@row(35, "no-memory", "a daemon that gets no more address space (RLIMIT_AS): it may end, but must do no harm",
     injects="a limit of address space", variant="a", short=True)
def no_memory(w):
    if process.sanitized():
        raise Skip("the shadow memory of a sanitizer does not fit below a limit")

    def limit(daemon):
        size = memory_kib(daemon.pid, "VmSize") << 10
        resource.prlimit(daemon.pid, resource.RLIMIT_AS, (size + (w.rng.randrange(0, 600) << 10), resource.RLIM_INFINITY))

    def lift(daemon):
        if daemon:
            resource.prlimit(daemon.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    while w.more():
        limit_memory(w, w.rng.choice(w.daemons), limit, lift)


@row(35, "memory-cgroup", "a daemon in a control group without memory: the kernel kills it at any moment, or it stalls",
     injects="a limit of memory by a control group", variant="b")
def memory_cgroup(w):
    if process.sanitized():
        raise Skip("a sanitizer changes how much memory the daemon needs")
    groups = {daemon: MemoryGroup(w, daemon) for daemon in w.daemons}
    while w.more():
        daemon = w.rng.choice(w.daemons)
        group = groups[daemon]

        def limit(daemon, group=group):
            group.take(daemon)
            group.limit((daemon.rss_kib() + w.rng.randrange(-200, 300)) << 10)
        limit_memory(w, daemon, limit, lambda _, group=group: group.limit(None), (EX_OSERR, -9))


@row(35, "allocations-fail", "each n-th allocation of a daemon and its libraries fails: it may end, but must do no harm",
     injects="allocations that fail", variant="c", alloc=True)
def allocations_fail(w):
    if process.sanitized():
        raise Skip("a sanitizer has an allocator of its own")

    def fail(daemon, every):
        with open(daemon.alloc, "r+b") as counts:
            counts.write(struct.pack("qq", every, 0))

    def limit(daemon):
        fail(daemon, w.rng.choice((1, w.rng.randrange(2, 20), w.rng.randrange(20, 4000))))
    while w.more():
        daemon = w.rng.choice(w.daemons)
        limit_memory(w, daemon, limit, lambda _, daemon=daemon: fail(daemon, 0))


@row(36, "wrong-configuration", "one state directory for two daemons, one Redis named twice, other lists of nodes",
     injects=("two daemons with one state directory", "one Redis named twice, other lists of Redis"), gap=2.0, short=True)
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


@row(40, "old-daemon-wakes", "a daemon is stopped, another one takes its place, and the old one wakes",
     injects=("daemons stopped (SIGSTOP)", "clients killed with -9", "two daemons with one state directory"), variant="a", short=True)
def old_wakes(w):
    def move(clients, fresh):
        for i in clients:
            w.kill_client(i)
            w.start_client(i, fresh)
    replace(w, lambda old, fresh: None, move)


@row(40, "old-daemon-wakes-resume", "the same, with a copy of its journal, so that its clients RESUME their sessions at the new one",
     injects=("daemons stopped (SIGSTOP)", "connections of clients cut", "two daemons with copies of one state directory"), variant="b",
     client_proxy=True, lease_ms=1500, max_lease_ms=3000, client={"grace_ms": 1500, "eof_ends": False})
def old_wakes_and_resumed(w):
    """The lock on the state directory does not protect a copy of the directory: the values in Redis must protect the locks."""
    def copy(old, fresh):
        with contextlib.suppress(FileNotFoundError):
            shutil.copy(old.journal, fresh.runtime_dir)
    replace(w, copy, w.redirect)


def replace(w, prepare, move):
    """A new daemon takes the place of a stopped one. prepare(old, fresh) comes before its start; move(clients, fresh) leads the clients to it."""
    started = len(w.daemons)
    while w.more():
        old = w.rng.choice(w.daemons)
        with w.fault("daemon %d stands still" % old.index), w.stopped("d%d" % old.index, old.pid):
            place, started = w.daemons.index(old), started + 1
            fresh = w.make_daemon(started)
            w.strict(fresh)
            prepare(old, fresh)
            fresh.start()
            w.daemons[place] = fresh
            w.start_watcher(fresh)
            move([i for i in w.processes if i % len(w.daemons) == place], fresh)
            if w.rng.random() < 0.5:  # this takes time; without it the old daemon wakes while its leases are valid
                refused(w, merged(old.tree, {"listen": {"unix": os.path.join(w.folder, "second")}}), "a second daemon beside a stopped one", old.runtime_dir)
                w.pause(w.uniform(0.1, 2 * w.lease_ms / 1000))
        w.pause(w.uniform(0.3, 3.0))
        status, _ = old.finish()
        old.sane()
        if status:
            w.fail("S21", "the old daemon ended with status %d\n%s" % (status, old.log()[-3000:]))
        w.breathe(0.2, 1.0)

# SPDX-License-Identifier: BSD-2-Clause
"""Rows 3, 4, 7, 37, 38: clients that are stopped or killed, do not read, or send garbage, and clients of other programs."""
import contextlib
import os
import signal
import subprocess
import time

import classic_client
import process
import wire
from history import MS, now
from process import state_of, until
from rows import row
from session import MODES

CROWD = 10000


@row(3, "client-stopped", "clients stop between the answer of the daemon and their reading of it, until after the deadline",
     injects="clients stopped (SIGSTOP)", gap=2.0, short=True, client={"stall": 0.01})
def stopped(w):
    while w.more():
        w.breathe(0.05, 0.8 * w.lease_ms / 1000)
        wake(w, 0.6)
    wake(w, 1)


def wake(w, chance):
    """Wakes some of the clients that have stopped themselves."""
    for worker in w.processes.values():
        if state_of(worker.pid) == "T" and w.rng.random() < chance:
            with w.fault("a client is woken"):
                os.kill(worker.pid, signal.SIGCONT)


@row(4, "client-killed", "kill -9 of clients on Unix sockets and TCP; a socket that a child keeps",
     injects="clients killed with -9", gap=2.0, prompt=0.6, variant="a", short=True, tcp=True)
def killed(w):
    while w.more():
        for i in w.rng.sample(sorted(w.processes), w.rng.randrange(1, 4)):
            with w.fault("client %d killed" % i):
                w.kill_client(i)
                w.start_client(i)
        kept_by_a_child(w)
        w.breathe(0.2, 1.0)


@row(4, "connection-cut-resume", "the connections of clients are cut, and they RESUME their sessions",
     injects="connections of clients cut", variant="b", client_proxy=True, client={"grace_ms": 1500, "eof_ends": False})
def cut_and_resumed(w):
    while w.more():
        clients = w.rng.sample(sorted(w.processes), w.rng.randrange(1, 8))
        with w.fault("%d connections cut" % len(clients)):
            w.cut([("c", i) for i in clients])
        w.breathe(0.1, 1.0)


def kept_by_a_child(w):
    """A lock is held as long as any process has the socket open, and is free at once when the last one closes it."""
    daemon = w.rng.choice(w.daemons)
    holder, waiter = wire.Client(w.rng.choice((daemon.addr, daemon.tcp))), wire.Client(daemon.addr)
    with waiter:
        if holder.ask("LOCK faults/kept wait=1s").kind != "OK":
            holder.close()
            return
        child = subprocess.Popen(["sleep", "60"], pass_fds=[holder.sock.fileno()])
        holder.close()
        w.stack.callback(child.kill)
        answer = waiter.ask("LOCK faults/kept wait=%dms" % w.rng.randrange(0, 300))
        if answer.kind == "OK":
            w.fail("S15", "a lock was freed while a child has the socket open: %s" % answer)
        waiter.send("LOCK faults/kept wait=10s")
        w.pause(0.1)
        child.kill()
        begin = time.monotonic()
        child.wait()
        answer = waiter.reply(None, 15)
        took = time.monotonic() - begin
        if answer.kind != "OK" or took > 0.5 + 5 * w.worst_gap:
            w.fail("L1", "the lock of a killed process was free after %.2f s: %s" % (took, answer))


@row(7, "client-does-not-read", "holders of many locks that do not read their pushes",
     injects="clients that do not read", gap=2.0, short=True, tree={"limits": {"output": "64k"}})
def slow(w):
    before, turn = {daemon: daemon.rss_kib() for daemon in w.daemons}, 0
    while w.more():
        turn += 1
        silent_holder(w, w.rng.choice(w.daemons), "slow%d" % turn)
        w.breathe(0.1, 0.5)
    for daemon, rss in before.items():
        if daemon.rss_kib() - rss > 32768 and not process.sanitized():  # a sanitizer keeps freed memory
            w.fail("S21", "daemon %d grew by %d KiB" % (daemon.index, daemon.rss_kib() - rss))


def silent_holder(w, daemon, label, locks=300):
    """A session with many locks is pushed RISK and SAFE, and reads nothing, until the daemon hangs up. Its locks are free then, not before their deadline."""
    names = ["faults/%s/%s/%d" % (label, "x" * 400, i) for i in range(locks)]
    rivals = wire.Client(w.rng.choice([other for other in w.daemons if other is not daemon]).addr)
    with wire.Client(daemon.addr, label) as holder, rivals:
        for i, name in enumerate(names):
            holder.send("@t%d LOCK %s wait=2s ttl=%dms" % (i, name, w.max_lease_ms))
        held = [name for i, name in enumerate(names) if holder.reply("@t%d" % i, 20).kind == "OK"]
        asked = now()
        answer = holder.ask("CHECK " + held[0])
        if answer.kind != "OK":
            return
        deadline = asked + answer.num("valid_ms") * MS
        rivals.send("LOCK %s wait=30s" % held[0])
        with wire.Client(daemon.addr) as eye, w.fault("%s does not read" % label):
            for _ in range(8):
                with w.behaving(w.links([daemon]), hold={"up": True, "down": True}):
                    w.pause(0.45 * w.max_lease_ms / 1000)
                w.pause(0.4)
                if not any(row.fields.get("name") == label for row in eye.ask("LIST sessions limit=1000").rows):
                    break
            else:
                w.fail("S21", "the daemon never hangs up on a holder that does not read")
                return
        answer, told = rivals.reply(None, 40), now()
        if answer.kind != "OK":
            w.fail("L2", "the daemon has hung up on a client, and its lock is never free: %s" % answer)
        elif told < deadline:
            w.fail("S13", "the daemon has hung up on a client, and its lock was granted %.1f ms before its deadline" % ((deadline - told) / MS))


def crowd_in(w, count):
    """Connections that send nothing, to all daemons in turn. Returns those that were made."""
    idle = []
    for i in range(count):
        daemon = w.daemons[i % len(w.daemons)]
        with contextlib.suppress(OSError):
            idle.append(wire.connect(w.rng.choice((daemon.addr, daemon.tcp))))
        if i % 100 == 0:
            w.pause(0.01)
    return idle


@row(37, "garbage", "garbage, huge lines, NULs, and up to 10,000 connections that send nothing",
     injects="floods of garbage, and of connections", gap=2.0, tcp=True)
def garbage(w):
    crowd = process.allow_descriptors(CROWD + 500) - 500
    with w.fault("a crowd of %d and garbage" % crowd):
        idle = crowd_in(w, crowd)
        w.note("%d idle connections" % len(idle))
        if len(idle) < crowd:
            w.fail("S21", "of a crowd of %d only %d connected" % (crowd, len(idle)))
        try:
            until(lambda: sum(process.descriptors_of(daemon.pid) for daemon in w.daemons) > len(idle), "all are accepted", 20)
        except AssertionError as error:
            w.fail("S21", "%d idle connections: %s" % (len(idle), error))
        w.log.tell("strangers", names=w.names[:2])  # see nonsense()
        w.end = max(w.end, time.monotonic() + w.seconds / 2)  # the crowd took a part of the time
        while w.more():
            daemon = w.rng.choice(w.daemons)
            with contextlib.suppress(OSError), wire.connect(w.rng.choice((daemon.addr, daemon.tcp))) as sock:
                sock.settimeout(1)
                for _ in range(w.rng.randrange(1, 6)):
                    sock.sendall(nonsense(w.rng))
            w.breathe(0, 0.1)
    for sock in idle:
        sock.close()


def nonsense(rng):
    shape = rng.randrange(6)
    if shape == 0:
        return rng.randbytes(rng.randrange(1, 20000))
    if shape == 1:
        return b"LOCK " + b"x" * rng.randrange(8000, 200000) + b"\n"
    if shape == 2:
        return b"LOCK a\0b\nUNLOCK \x01\n" * rng.randrange(1, 200)
    if shape == 3:
        return b"\n" * rng.randrange(1, 5000) + b"LOCK \"open\n"
    if shape == 4:
        return b"@t LOCK orders/0 wait=5s\n" * rng.randrange(1, 50)
    return b" ".join(rng.choice((b"LOCK", b"CHECK", b"orders/1", b"wait=-1", b"ttl=99h", b"=", b"@", b"\"\\x4", b"mode=x")) for _ in range(9)) + b"\n"


@row(38, "classic-clients", "clients of the classic algorithm on the same keys, while Redis servers and links stand still",
     injects=("Redis stopped (SIGSTOP)", "links that hold one direction, or both", "classic clients on the same keys"), short=True, clients=14,
     client={"modes": dict(MODES, hold=0, force=0)})
def classic(w):
    """Nobody breaks locks: that would take one from a classic client at once, which is not told and goes on."""
    for i in range(20, 25):
        options = {"c": i, "folder": w.folder, "names": w.names, "paths": [node.path for node in w.nodes], "seed": "%s/%d" % (w.seed, i), "ttl_ms": 600}
        w.processes[i] = w.context.Process(target=classic_client.run, args=(options,), daemon=True)
        w.processes[i].start()
    while w.more():
        if w.rng.random() < 0.5:
            node = w.rng.choice(w.nodes)
            with w.fault("node %d stands still" % node.index), w.stopped("n%d" % node.index, node.process.pid):
                w.pause(w.uniform(0.1, 1.0))
        else:
            with w.fault("held"), w.behaving(w.links(None, w.minority()), hold={"up": True, "down": True}):
                w.pause(w.uniform(0.1, 1.0))
        w.breathe(0.5, 1.5)

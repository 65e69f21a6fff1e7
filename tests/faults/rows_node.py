# SPDX-License-Identifier: BSD-2-Clause
"""Rows 20 to 31: Redis servers that run, and refuse, forget on command, or change their role."""
import contextlib
import os
import re
import threading
import time

import redis

import process
from marker import Marker, wait_for
from process import Skip
from promises import tells_losses
from redis_server import FENCE, Redis
from rows import row
from session import LINGERING
from world import MANY

BUSY = """local from = redis.call('TIME') if KEYS[1] then redis.call('SET', KEYS[1], '1', 'PX', 1) end
repeat local at = redis.call('TIME') until (at[1] - from[1]) * 1000 + (at[2] - from[2]) / 1000 > tonumber(ARGV[1])"""


def quietly(call, *args, **options):
    """Sends a command, and ignores its refusal, which is a part of the fault."""
    with contextlib.suppress(redis.exceptions.RedisError, OSError):
        return call(*args, **options)


def aside(node, *command):
    """Sends a command that takes long, on a connection and a thread of its own."""
    def call():
        with redis.Redis(unix_socket_path=node.path, socket_timeout=20) as own:
            quietly(own.execute_command, *command)
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread


def were_said(w, *codes):
    """Redis counts its errors by their first word. These must have been answered, or the row has shown nothing."""
    for code in codes:
        told = [str(node.cli.info("errorstats").get("errorstat_" + code, 0)) for node in w.nodes]  # count=5, which some versions of the client do not parse
        count = sum(int(re.search(r"\d+", text).group()) for text in told)
        w.note("%d times %s" % (count, code))
        if not count:
            w.fail("blind", "no Redis has answered " + code)


@row(20, "flush", "FLUSHALL, FLUSHDB, SWAPDB on some nodes",
     injects="FLUSHALL, FLUSHDB, SWAPDB", variant="a", short=True, client={"modes": LINGERING})
def flush(w):
    while w.more():
        for node in w.rng.choice((w.minority, w.minority, w.majority))():
            with w.fault("node %d flushed" % node.index):
                w.rng.choice((node.cli.flushall, node.cli.flushdb, lambda cli=node.cli: cli.swapdb(0, 1)))()
        w.breathe(0.3, 3.5)


@row(20, "keys-deleted", "DEL of locks on all nodes, of marker or fence on one node at a time",
     injects="DEL of locks, marker and fence", variant="b", kind="X", gap=1.0, short=True, seconds=10, names=MANY)
def deleted(w):
    """A quorum of nodes remembers at every moment, so that grants go on. Fences survive only on a majority of nodes: the next one is deleted when the last is
    back."""
    forgotten = Marker(w, w.rng.choice(w.nodes))
    fence_back = 0
    while w.more():
        w.breathe(0.02, 0.3)
        node = w.rng.choice(w.nodes)
        keys = node.lock_keys()
        if keys:
            with w.fault("DEL of a lock on node %d" % node.index):
                node.cli.delete(w.rng.choice(keys))
        if not forgotten.is_back() or time.monotonic() < fence_back:
            continue
        node = w.rng.choice(w.nodes)
        if w.rng.random() < 0.7:
            forgotten = Marker(w, node)
        else:
            with w.fault("DEL of the fence on node %d" % node.index):
                node.cli.delete(FENCE)
            fence_back = time.monotonic() + 1.02 * w.max_lease_ms / 1000 + 2.5
    wait_for(w, [forgotten])


@row(20, "markers-deleted", "DEL of the marker on a majority, or on all: no grant for a quarantine, and then again",
     injects="DEL of locks, marker and fence", variant="c", gap=2.6, seconds=10, names=MANY)
def markers_deleted(w):
    count = 0
    while w.more():
        with tells_losses(w):
            forgotten = [Marker(w, node) for node in w.majority()]
        wait_for(w, forgotten)
        w.breathe(0.3, 2.0)
        count += 1
    w.note("%d times" % count)


@row(21, "replicaof", "a Redis becomes a replica, of a blank master or of one that does not answer, and a master again",
     injects="REPLICAOF", node={"tcp": True})
def replicaof(w):
    other = Redis(tcp=True)
    w.stack.callback(other.stop)
    other.start()
    while w.more():
        for node in w.minority():
            with w.fault("node %d is a replica" % node.index):
                node.cli.replicaof("127.0.0.1", w.rng.choice((other.port, 1)))
                w.pause(w.uniform(0.01, 2.0))
                node.cli.replicaof("NO", "ONE")
        w.breathe(0.3, 2.5)


@row(22, "out-of-memory", "maxmemory reached, nothing evicted: writes are refused",
     injects="maxmemory without eviction", variant="a")
def out_of_memory(w):
    while w.more():
        victims = w.rng.choice((w.minority, w.majority))()
        with w.fault("%d nodes full" % len(victims)):
            for node in victims:
                node.cli.config_set("maxmemory", "100kb")
            w.pause(w.uniform(0.1, 2.0))
            for node in victims:
                node.cli.config_set("maxmemory", "0")
        w.breathe(0.3, 1.5)
    were_said(w, "OOM")


@row(22, "eviction", "maxmemory reached, and locks are evicted",
     injects="maxmemory with eviction", gap=2.0, variant="b", kind="X")
def eviction(w):
    while w.more():
        node = w.rng.choice(w.nodes)
        with w.fault("node %d evicts" % node.index):
            node.cli.config_set("maxmemory-policy", w.rng.choice(("volatile-lru", "allkeys-random", "volatile-ttl")))
            node.cli.config_set("maxmemory", "100kb")
            w.pause(w.uniform(0.05, 1.5))
            node.cli.config_set("maxmemory", "0")
            node.cli.config_set("maxmemory-policy", "noeviction")
        w.pause(w.uniform(2.5, 4.0))  # one node at a time, because fence and marker may be evicted, too


@row(23, "misconf", "a Redis whose snapshot fails on a full disk refuses all writes, and so all releases",
     injects="MISCONF", gap=2.0, net=True, node={"args": ("--enable-protected-configs", "yes")})
def misconf(w):
    for node in w.nodes:
        folder = os.path.join(node.folder, "small")
        os.mkdir(folder)
        if process.call("mount", "-t", "tmpfs", "-o", "size=200k", "redlockd-faults", folder)[0] != 0:
            raise Skip("this host mounts no tmpfs")
        w.stack.callback(process.call, "umount", folder)
        node.cli.config_set("dir", folder)
    while w.more():
        node = w.rng.choice(w.nodes)
        with w.fault("node %d cannot save" % node.index):
            for i in range(3):
                node.cli.set("faults:big:%d" % i, os.urandom(150000))
            node.cli.config_set("save", "1 1")
            quietly(node.cli.bgsave)
            w.pause(w.uniform(0.5, 2.5))
            node.cli.config_set("save", "")
            for i in range(3):
                quietly(node.cli.delete, "faults:big:%d" % i)
            quietly(node.cli.bgsave)
            w.pause(0.3)
            node.cli.config_set("stop-writes-on-bgsave-error", "no")
            for i in range(3):
                node.cli.delete("faults:big:%d" % i)
            quietly(node.cli.save)
            node.cli.config_set("stop-writes-on-bgsave-error", "yes")
        w.breathe(0.3, 1.0)
    were_said(w, "MISCONF")


@row(24, "loading", "a Redis is restarted, and loads for long",
     injects="LOADING", node={"save": True, "patience": 60, "args": ("--key-load-delay", "40", "--loading-process-events-interval-bytes", "1024")})
def loading(w):
    for node in w.nodes:
        node.cli.execute_command("DEBUG", "POPULATE", "20000")
        node.cli.save()
    while w.more():
        node = w.rng.choice(w.nodes)
        with w.fault("node %d loads" % node.index):
            node.restart()
        w.breathe(0.5, 2.5)
    were_said(w, "LOADING")


@row(25, "busy-script", "scripts that run for long; some of them are killed, and some cannot be",
     injects="BUSY scripts, SCRIPT KILL", short=True)
def busy_script(w):
    for node in w.nodes:
        node.cli.config_set("busy-reply-threshold", "50")
    while w.more():
        victims = w.rng.choice((w.minority, w.majority))()
        with w.fault("%d nodes busy" % len(victims)):
            writes = w.rng.random() < 0.5
            threads = [aside(node, "EVAL", BUSY, int(writes), *["faults:busy"] * writes, w.rng.randrange(100, 1500)) for node in victims]
            for _ in range(w.rng.randrange(3)):
                w.pause(w.uniform(0.05, 0.5))
                for node in victims:
                    quietly(node.cli.script_kill)
            for thread in threads:
                while thread.is_alive():
                    w.pause(0.02)
        w.breathe(0.2, 1.0)
    were_said(w, "BUSY")


@row(26, "script-flush", "SCRIPT FLUSH, again and again",
     injects="SCRIPT FLUSH", gap=2.0)
def script_flush(w):
    with w.fault("flushed"):
        while w.more():
            w.rng.choice(w.nodes).cli.script_flush()
            w.breathe(0.001, 0.1)
    were_said(w, "NOSCRIPT")


@row(27, "password-changed", "a password is set or permissions are taken away, and given back",
     injects="changed passwords and permissions")
def password(w):
    while w.more():
        victims = w.rng.choice((w.minority, w.majority))()
        with w.fault("%d nodes refuse" % len(victims)):
            how = w.rng.choice((">word resetkeys", "-info", "-evalsha", "resetkeys ~other:*", "-@all +acl +client"))
            for node in victims:
                node.cli.execute_command("ACL", "SETUSER", "default", "resetpass", *(how if how[0] == ">" else "nopass " + how).split())
                if w.rng.random() < 0.6:
                    quietly(node.cli.execute_command, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            w.pause(w.uniform(0.1, 2.0))
            for node in victims:
                node.cli.execute_command("ACL", "SETUSER", "default", "on", "nopass", "~*", "&*", "+@all")
        w.breathe(0.3, 1.5)
    were_said(w, "NOPERM")


@row(28, "cluster-mode", "a Redis comes back in cluster mode, without slots",
     injects="cluster mode")
def cluster(w):
    while w.more():
        node = w.rng.choice(w.nodes)
        with w.fault("node %d in cluster mode" % node.index):
            node.kill()
            sound, node.args = node.args, [*node.args, "--cluster-enabled", "yes"]
            if node.port == 0:
                node.args += ["--port", str(process.free_port()), "--cluster-port", str(process.free_port())]
            node.restart()
            w.pause(w.uniform(0.3, 2.0))
            node.kill()
            node.args = sound
            node.restart()
        w.breathe(0.5, 2.5)


@row(29, "maxclients", "a Redis that accepts no more connections",
     injects="maxclients")
def maxclients(w):
    while w.more():
        victims = w.rng.choice((w.minority, w.majority))()
        with w.fault("%d nodes accept no more" % len(victims)):
            for node in victims:
                node.cli.config_set("maxclients", str(w.rng.randrange(1, 4)))
                node.cli.execute_command("CLIENT", "KILL", "TYPE", w.rng.choice(("normal", "pubsub")), "SKIPME", "yes")
            w.pause(w.uniform(0.1, 2.0))
            for node in victims:
                node.cli.config_set("maxclients", "10000")
        w.breathe(0.3, 1.5)
    if not sum(node.cli.info("stats")["rejected_connections"] for node in w.nodes):
        w.fail("blind", "no Redis refused a connection")


@row(30, "client-pause", "CLIENT PAUSE of writes or of all, CLIENT KILL",
     injects="CLIENT PAUSE, CLIENT KILL", short=True)
def client_pause(w):
    while w.more():
        victims = w.rng.choice((w.minority, w.majority))()
        with w.fault("%d nodes pause" % len(victims)):
            length = w.rng.randrange(50, 2000)
            for node in victims:
                if w.rng.random() < 0.3:
                    node.cli.execute_command("CLIENT", "KILL", "TYPE", w.rng.choice(("normal", "pubsub")), "SKIPME", "yes")
                else:
                    node.cli.execute_command("CLIENT", "PAUSE", str(length), w.rng.choice(("ALL", "WRITE")))
            w.pause(length / 1000)
        w.breathe(0.2, 1.0)


@row(31, "debug", "DEBUG SLEEP, DEBUG RELOAD, no active expiry",
     injects="DEBUG SLEEP, DEBUG RELOAD, no active expiry")
def debug(w):
    while w.more():
        victims = w.rng.choice((w.minority, w.majority))()
        with w.fault("debug"):
            for node in victims:
                node.cli.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", w.rng.choice("01"))
            command = w.rng.choice((("DEBUG", "SLEEP", "%.2f" % w.uniform(0.05, 1.5)), ("DEBUG", "RELOAD")))
            for thread in [aside(node, *command) for node in victims]:
                while thread.is_alive():
                    w.pause(0.02)
        w.breathe(0.2, 1.2)
    for node in w.nodes:
        node.cli.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "1")

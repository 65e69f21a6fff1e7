# SPDX-License-Identifier: BSD-2-Clause
"""The world of one row: redis-servers, daemons, a proxy between them, 20 client processes, and the means to break each of these."""
import contextlib
import multiprocessing
import os
import random
import signal
import threading
import time

import lock_client
import process
import watcher
import wire
from daemon import Daemon
from ending import Ending
from history import Log, now
from hosts import Hosts
from links import Links
from packets import LossyWire
from process import merged, state_of, until, yaml
from redis_server import Clock, Redis
from registers import Registers


NAMES = ["orders/%d" % i for i in range(8)]
MANY = ["orders/%d" % i for i in range(40)]  # so many that one is free at every moment: a time without a grant is due to the daemons
CLIENTS = 20
WATCHERS = 100  # the number of the first


class World(Hosts, Links, Ending):
    """options: how many nodes, daemons and clients; remote, how many further hosts; lease_ms, max_lease_ms, timeout_ms; node, tree and client, the options of
    a Redis, a daemon and a client; tcp: every other client dials by TCP; clock, daemon_clock: these run with a clock that a row sets; alloc: allocations
    of daemons can fail; client_proxy: clients dial through the proxy; direct: daemons dial Redis by TCP at this address, not through the proxy; wire: they
    dial through a LossyWire; program: another daemon; restless: watchers dial again now and then; names; seconds; patience: by so
    many seconds this machine may always be late."""

    def __init__(self, folder, seed, seconds, **options):
        self.folder, self.seed, self.rng, self.options = folder, seed, random.Random(seed), options
        self.lease_ms, self.max_lease_ms = options.get("lease_ms", 1000), options.get("max_lease_ms", 2000)
        self.seconds, self.end, self.violations, self.notes = seconds, None, [], []
        self.names = options.get("names", NAMES)
        self.log = Log(os.path.join(folder, "nemesis.log"))
        self.logs = {}  # of sessions that the row itself has: see enlisted()
        self.registers = Registers(folder, self.names)
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["lock_client", "classic_client", "packets", "proxy", "watcher"])
        self.nodes, self.daemons, self.processes, self.watchers, self.client_options = [], [], {}, {}, {}
        self.verbs = []  # the requests that the daemons know
        self.control, self.proxy, self.wire, self.patience = None, None, None, options.get("patience", 0.0)
        self.worst_gap = self.patience / 5  # most bounds are wider by five times this
        self.late_at = 0.0  # when this machine was last late
        threading.Thread(target=self.watch, daemon=True).start()
        self.stack = contextlib.ExitStack()
        self.hosts = []  # of further hosts: the processes that keep their network namespaces

    # --- start -------------------------------------------------------------------------------------------------------

    def start(self):
        self.start_proxy()
        self.wire = LossyWire(self) if self.options.get("wire") else None
        for i in range(self.options.get("remote", 0)):
            self.hosts.append(self.make_host(i))
        for i in range(self.options.get("nodes", 3)):
            node = Redis(clock=self.options.get("clock", False), **self.options.get("node", {}))
            node.index = i
            self.stack.callback(node.stop)
            self.nodes.append(node.start())
        for i in range(self.options.get("daemons", 2)):
            self.daemons.append(self.make_daemon(i))
            self.daemons[i].start().joined()
            self.strict(self.daemons[i])
        with wire.Client(self.daemons[0].addr) as client:
            self.verbs = [row["verb"] for row in client.ask("HELP all").rows]
        for i in range(self.options.get("clients", CLIENTS)):
            self.start_client(i)
        for daemon in self.daemons if self.processes else ():
            self.start_watcher(daemon)
        until(lambda: all(self.has_told(i, '"e":"open"') for i in self.processes), "all clients are connected", 60)  # a fault may keep them from it
        until(lambda: any(self.has_told(i, '"fence"') for i in self.processes) or not self.processes, "a first grant", 20)
        self.pause(0.7)
        self.end = time.monotonic() + self.seconds
        self.began = now()
        return self

    def make_daemon(self, i, **over):
        addresses = []
        for node in self.nodes:
            if self.options.get("direct"):
                addresses.append("%s:%d" % (self.options["direct"], node.port))
                continue
            path = os.path.join(self.folder, "link-%d-%d" % (i, node.index))
            if not os.path.exists(path):
                self.tell("open", (i, node.index), path, node.path)
            addresses.append("n%d=unix:%s" % (node.index, path))  # daemons reach a node by different paths, and call it alike
        tree = {"store": "redis", "lease": "%dms" % self.lease_ms, "max_lease": "%dms" % self.max_lease_ms, "redis": {
            **({"nodes": addresses} if addresses else {}), "set": "faults", "timeout": "%dms" % self.options.get("timeout_ms", 100)}}
        port = None
        if self.hosts:
            port = process.free_port()
            tree["listen"] = {"tcp": "0.0.0.0:%d" % port}
            tree["insecure"] = "yes"
        clock, alloc, env = self.shims(i)
        daemon = Daemon(merged(tree, self.options.get("tree"), over.pop("tree", None)), tcp=self.options.get("tcp", False), env=env, **over)
        daemon.index, daemon.clock, daemon.alloc = i, clock, alloc
        if port:
            daemon.tcp = ("127.0.0.1", port)
        if self.options.get("program"):
            daemon.argv = [self.options["program"], "--config", os.path.join(daemon.folder, "redlockd.yaml")]
            daemon.write_config()
        self.stack.callback(self.end_daemon, daemon)
        return daemon

    def shims(self, i):
        """What is preloaded into daemon i. Returns (its clock, the file that says which of its allocations fail, the environment)."""
        if self.options.get("daemon_clock"):
            os.makedirs(os.path.join(self.folder, "clock-%d" % i), exist_ok=True)
            clock = Clock(os.path.join(self.folder, "clock-%d" % i))
            return clock, None, dict(clock.env(), ASAN_OPTIONS="detect_leaks=1:verify_asan_link_order=0")  # the shim is loaded before the sanitizer
        if self.options.get("alloc") and not process.sanitized():  # with a sanitizer the row is skipped
            alloc = os.path.join(self.folder, "alloc-%d" % i)
            with open(alloc, "wb") as counts:
                counts.write(bytes(16))
            return None, alloc, {"LD_PRELOAD": os.path.join(process.BUILD, "alloc_shim.so"), "REDLOCK_TEST_ALLOC": alloc}
        return None, None, {}

    @staticmethod
    def strict(daemon):
        """Sets guard: strict. From its second start on a daemon trusts no node without a marker."""
        daemon.tree = merged(daemon.tree, {"guard": "strict"})
        daemon.config = yaml(daemon.tree)
        daemon.write_config()

    @staticmethod
    def end_daemon(daemon):
        if daemon.alive():
            daemon.thaw()
        daemon.dispose()

    def start_client(self, i, daemon=None, **over):
        daemon = daemon or self.daemons[i % len(self.daemons)]
        options = {"c": i, "d": daemon.index, "addr": self.client_addr(i, daemon), "seed": "%s/%d" % (self.seed, len(self.processes)), "folder": self.folder,
                   "names": self.names, "lease_ms": self.lease_ms, "max_lease_ms": self.max_lease_ms, "eof_ends": bool(self.options.get("client_proxy")),
                   "verbs": self.verbs}
        if self.options.get("client_proxy"):
            options["aim"] = self.aim_of(i)
        if self.hosts and self.host_of(i) is not None:
            options["network"] = self.hosts[self.host_of(i)].pid
        options.update(self.options.get("client", {}))
        options.update(self.client_options.setdefault(i, {}))
        options.update(over)
        self.client_options[i].update(over)
        worker = self.context.Process(target=lock_client.run, args=(options,), daemon=True)
        worker.start()
        self.processes[i] = worker
        return worker

    def start_watcher(self, daemon):
        """A session that watches this daemon. Its faults are those of the daemon alone."""
        c = WATCHERS + daemon.index
        options = {"c": c, "d": daemon.index, "addr": daemon.addr, "seed": self.seed, "folder": self.folder, "names": self.names,
                   "restless": self.options.get("restless", True)}
        self.watchers[c] = self.context.Process(target=watcher.run, args=(options,), daemon=True)
        self.watchers[c].start()

    # --- time --------------------------------------------------------------------------------------------------------

    def watch(self):
        """A thread that measures how late this machine is: while the machine stands still no answer can come."""
        while True:
            begin, at = time.monotonic(), now()
            time.sleep(0.02)
            late = time.monotonic() - begin - 0.02
            self.worst_gap = max(self.worst_gap, min(late, 0.3))
            if late > 0.2:
                self.log.tell("stop", at=at, what="host", to=now())
            if late > 0.05:
                self.late_at = time.monotonic()

    def pause(self, seconds):
        """Sleeps, and fails the row when a daemon dies."""
        end = time.monotonic() + seconds
        while True:
            left = end - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, 0.05))
            for daemon in self.daemons:
                if not daemon.alive() and not daemon.expect_dead:
                    self.fail("S21", "daemon %d ended with status %s\n%s" % (daemon.index, daemon.process.returncode, daemon.log()[-3000:]))
                    daemon.expect_dead = True

    def more(self):
        return time.monotonic() < self.end

    def uniform(self, low, high):
        return self.rng.uniform(low, high)

    def breathe(self, low=0.3, high=1.5):
        self.pause(self.uniform(low, high))

    @contextlib.contextmanager
    def fault(self, text):
        self.log.tell("fault", what=text)
        try:
            yield
        finally:
            self.log.tell("heal", what=text)

    @contextlib.contextmanager
    def stopped(self, who, pid):
        """SIGSTOP of a process for a while. Requests to it may take so much longer."""
        at = now()
        os.kill(pid, signal.SIGSTOP)
        until(lambda: state_of(pid) in ("T", ""), "%s is stopped" % who)
        still = now()
        try:
            yield
        finally:
            go = now()
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
            self.log.tell("stop", at=at, what=who, to=now(), still=still, go=go)

    # --- parts -------------------------------------------------------------------------------------------------------

    @property
    def quorum(self):
        return len(self.nodes) // 2 + 1

    def some_nodes(self, count):
        return self.rng.sample(self.nodes, count)

    def minority(self):
        return self.some_nodes(self.rng.randint(1, max(1, len(self.nodes) - self.quorum)))

    def all_nodes(self):
        return self.nodes

    def majority(self):
        return self.some_nodes(self.rng.randint(self.quorum, len(self.nodes)))

    def kill_client(self, i):
        worker = self.processes[i]
        self.log.tell("kill", c=i)
        worker.kill()
        worker.join()

    def restart_daemon(self, daemon):
        if daemon.alive():
            daemon.kill()
        daemon.start()

    def connect(self, daemon, name=None):
        connection = daemon.client(name)
        self.stack.callback(connection.close)
        return connection

    def fail(self, rule, text):
        self.violations.append("%s: %s" % (rule, text))

    def note(self, text):
        if text not in self.notes:
            self.notes.append(text)

    def has_told(self, i, text):
        """Whether the history of client i has that text."""
        path = os.path.join(self.folder, "c%02d.log" % i)
        if not os.path.exists(path):
            return False
        with open(path) as rows:
            return text in rows.read()

    # --- the end: see also ending.py ---------------------------------------------------------------------------------

    def close(self):
        for worker in [*self.processes.values(), *self.watchers.values()]:
            if worker.is_alive():
                worker.kill()
                worker.join()
        self.stack.close()
        if self.proxy:
            self.proxy.kill()
            self.proxy.join()
        self.registers.close()
        for log in self.logs.values():
            log.close()

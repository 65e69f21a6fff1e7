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
from checker import Verdict
from daemon import Daemon
from history import History, Log, now
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


class World(Hosts, Links):
    """options: how many nodes, daemons and clients; remote, how many further hosts; lease_ms, max_lease_ms, timeout_ms; node, tree and client, the options of
    a Redis, a daemon and a client; tcp: every other client dials by TCP; clock, daemon_clock: these run with a clock that a row sets; alloc: allocations
    of daemons can fail; client_proxy: clients dial through the proxy; direct: daemons dial Redis by TCP at this address, not through the proxy; wire: they
    dial through a LossyWire; program: another daemon; restless: watchers dial again now and then; names; seconds."""

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
        self.control, self.proxy, self.wire, self.worst_gap = None, None, None, 0.0
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
            self.verbs = [row["verb"] for row in client.ask("HELP").rows]
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

    # --- the end -----------------------------------------------------------------------------------------------------

    def recovery_bound(self):
        """Seconds for a quarantine, the rest of leases and reconnecting, and for how late this machine is."""
        return self.max_lease_ms / 1000 * 1.02 + self.lease_ms / 1000 + 2 + 5 + 10 * self.worst_gap

    def settle(self):
        """After the last fault each daemon must grant again within the bound (L1, L2, L4). Returns the seconds that the slowest needs."""
        begin, worst, bound = time.monotonic(), 0.0, self.recovery_bound()
        for daemon in [daemon for daemon in self.daemons if daemon.alive()]:
            try:
                with wire.Client(daemon.addr) as probe:
                    answer = probe.ask("LOCK faults/probe wait=%dms" % (bound * 1000), bound + 10)
                    if answer.kind != "OK":
                        self.fail("L1", "daemon %d does not grant a free name within %.1f s of the last heal: %s" % (daemon.index, bound, answer))
                    else:
                        probe.ask("UNLOCK faults/probe sync=yes")
            except (OSError, AssertionError) as error:
                self.fail("L1", "daemon %d does not serve after the last heal: %s" % (daemon.index, error))
            worst = max(worst, time.monotonic() - begin)
        return worst

    def stop_clients(self):
        everybody = {**self.processes, **self.watchers}
        for worker in everybody.values():
            if worker.is_alive():
                worker.terminate()
        deadline = time.monotonic() + 30
        for i, worker in everybody.items():
            while worker.is_alive() and time.monotonic() < deadline:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker.pid, signal.SIGCONT)  # clients that stop themselves do so to the end
                worker.join(0.2)
            if worker.is_alive():
                self.fail("L7", "client %d does not end" % i)
                self.log.tell("kill", c=i)
                worker.kill()

    def quiescent(self):
        """S21: without clients there are no locks and no sessions."""
        for daemon in self.daemons:
            if not daemon.alive():
                continue
            with wire.Client(daemon.addr) as probe:
                def empty():
                    return not [str(row) for what in ("locks", "sessions") for row in probe.ask("LIST " + what).rows][1:]
                try:
                    until(empty, "empty", self.max_lease_ms / 1000 + 5)
                except AssertionError:
                    self.fail("S21", "daemon %d is not empty without clients: %s" % (daemon.index, [
                        str(row) for what in ("locks", "sessions") for row in probe.ask("LIST " + what).rows][:5]))

    def stop_daemons(self):
        for daemon in self.daemons:
            try:
                if daemon.alive():
                    status, _ = daemon.finish()
                    if status:
                        self.fail("S21", "daemon %d ended with status %d\n%s" % (daemon.index, status, daemon.log()[-3000:]))
                daemon.sane()
            except AssertionError as error:
                self.fail("S21", str(error))

    def left_in_redis(self):
        return ["%s on node %d" % (key, node.index) for node in self.nodes if node.serves() for key in node.lock_keys()]

    def longest_ms(self, key):
        """How long a key of a daemon may last; None: for ever."""
        if key.startswith("lock:"):
            return self.max_lease_ms
        kind = key[len("redlockd:lock:"):]
        if kind == "!deferred":
            return 15000
        if kind.startswith(("!", "j:", "jd:", "jl:", "jx:")):
            return None
        return 30 * 24 * 3600 * 1000 if kind.startswith("u:") else 3 * 3000

    def check_times(self):
        """S16: every key of a daemon but marker, fence and jobs expires: a lock within the longest lease, a queue within three times the time of a ticket,
        the names that a user locked last within 30 days."""
        for node in self.nodes:
            for key in node.lock_keys("lock:") + node.lock_keys("redlockd:lock:") if node.serves() else ():
                ttl, most = node.cli.pttl(key), self.longest_ms(key)
                if most is not None and (ttl == -1 or ttl > most):
                    self.fail("S16", "%s on node %d expires in %d ms" % (key, node.index, ttl))

    def check_orphans(self):
        """L8: all keys expire in time."""
        self.check_times()
        try:
            until(lambda: not self.left_in_redis(), "expiry", self.max_lease_ms / 1000 * 1.02 + 1 + 4 * self.worst_gap)
        except AssertionError:
            self.fail("L8", "these keys are left after the longest lease: %s" % ", ".join(self.left_in_redis()[:5]))

    def finish(self, kind, orphans=True):
        """The faults are over. Judges the recovery, what is left, and the history. Returns (verdict, seconds of the longest recovery)."""
        took = self.settle()
        self.pause(0.5)
        self.log.tell("window", at=self.began, to=now())
        if orphans:
            self.check_times()
        self.stop_clients()
        self.quiescent()
        self.stop_daemons()
        if orphans:
            self.check_orphans()
        verdict = Verdict(History.of(self.folder), kind, self.registers.fenced_state(), self.registers.counts(), answer_ms=self.answer_ms())
        if self.options.get("client", {}).get("grace_ms"):
            self.note("%d locks resumed" % verdict.resumed)
            if not verdict.resumed:
                self.fail("S12", "no lock was resumed")
        for rows in verdict.history.clients.values():
            for row in rows:
                if row["e"] == "failed":
                    self.fail("S21", "a client gave up: " + row["text"][-1200:])
        if self.watchers and not any(row["e"] == "event" for c in self.watchers for row in verdict.history.clients.get(c, ())):
            self.fail("blind", "no watcher was told of an event")
        self.violations += [str(violation) for violation in verdict.violations]
        return verdict, max(took, verdict.recovery())

    def answer_ms(self):
        """How long a request may take beyond its wait: three rounds of two timeouts each, and how late this machine is."""
        return 6 * self.options.get("timeout_ms", 100) + 50 + 1500 + 10 * self.worst_gap * 1000

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

# SPDX-License-Identifier: BSD-2-Clause
"""The real daemon, in a private folder, on private sockets, and what all tests have in common.

Nothing here sleeps for readiness: the daemon says READY=1 on a socket of the test, a Redis answers PING, everything else is waited
for by a deadline. Whatever a test starts dies with it: by its own cleanup, else by PR_SET_PDEATHSIG.
"""
import contextlib
import os
import random
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

import wire
from process import REDLOCKD, die_with_parent, free_port, merged, state_of, temp_folder, until, yaml
from redis_server import Redis
from wire import Client

REPORTS = re.compile(r"ERROR: \w+Sanitizer|runtime error:|SUMMARY: \w+Sanitizer|Assertion .* failed|DEADLYSIGNAL")
# What no other process on the machine brings about: a test that ends with one of these is not run again, see run.py.
NO_EXCUSE = re.compile(REPORTS.pattern + r"|^harness\.Violation\b|the daemon died: status|the daemon ended with status|\(ended with -(4|6|7|8|11)\)", re.M)
PATIENT = "250ms"  # redis.timeout where a loaded machine is no part of the test; the default, 50 ms, is where it is

DAEMONS = []  # those of this process, for the logs of a failed test


class Violation(AssertionError):
    """Two held at once, or a token was too small: that is never a matter of time."""


@contextlib.contextmanager
def safety():
    """What fails in here is a Violation."""
    try:
        yield
    except AssertionError as error:
        raise Violation(str(error)) from error


class Notify:
    """The socket of NOTIFY_SOCKET: what the daemon tells its service manager. A thread reads it at once, as a manager does."""

    def __init__(self, path):
        self.path, self.said, self.news = path, [], threading.Condition()
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(path)
        os.chmod(path, 0o777)  # also for a daemon that is somebody else
        self.deaf = threading.Event()  # set: it reads no more
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while not self.deaf.is_set():
            ready, _, _ = select.select([self.sock], [], [], 0.1)
            if self.sock.fileno() < 0:
                return
            words = self.sock.recv(65536).decode().split("\n") if ready else []
            with self.news:
                self.said += words
                self.news.notify_all()

    def wait(self, word, process, timeout=wire.WAIT):
        """Until word (as READY=1) was said; False when the process ended first."""
        deadline = time.monotonic() + timeout
        with self.news:
            while word not in self.said:
                if process.poll() is not None:
                    return False
                if time.monotonic() > deadline:
                    raise AssertionError("the daemon did not say %s in time, but %r" % (word, self.said))
                self.news.wait(0.1)
        return True

    def forget(self):
        with self.news:
            self.said.clear()

    def close(self):
        self.deaf.set()
        self.sock.close()


class Daemon:
    """One redlockd. Configuration: a tree over the defaults below, or config=text as it stands."""

    def __init__(self, tree=None, config=None, settings=(), runtime_dir=None, env=None, tcp=False, argv=None, nofile=None):
        self.folder = temp_folder()
        self.runtime_dir = runtime_dir or os.path.join(self.folder, "run")
        os.makedirs(self.runtime_dir, mode=0o700, exist_ok=True)
        self.addr = os.path.join(self.folder, "sock")
        self.tcp = ("127.0.0.1", free_port()) if tcp else None
        self.tree = merged({
            "listen": {"unix": self.addr, "tcp": "%s:%d" % self.tcp if tcp else "no"},
            "store": "memory", "runtime_dir": self.runtime_dir, "guard": "trust-first-start", "redis": {"timeout": PATIENT}}, tree or {})
        self.config = config if config is not None else yaml(self.tree)
        self.settings, self.argv, self.nofile = list(settings), argv, nofile
        self.env = dict(os.environ, **(env or {}))
        self.log_path = os.path.join(self.folder, "log")
        self.process, self.notify, self.expect_dead = None, None, False
        DAEMONS.append(self)

    # --- life --------------------------------------------------------------------------------------------------------

    def write_config(self):
        path = os.path.join(self.folder, "redlockd.yaml")
        with open(path, "w") as out:
            out.write(self.config)
        return path

    def _limit(self):
        die_with_parent()
        if self.nofile:
            resource.setrlimit(resource.RLIMIT_NOFILE, self.nofile)

    def command(self):
        return [REDLOCKD, "--config", self.write_config(), *[word for s in self.settings for word in ("--set", s)]]

    def launch(self):
        """Starts the process and waits for nothing."""
        argv = self.argv or self.command()
        path = os.path.join(self.folder, "notify")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        if self.notify:
            self.notify.close()
        self.notify = Notify(path)
        env = dict(self.env, NOTIFY_SOCKET=path)
        env.setdefault("ASAN_OPTIONS", "abort_on_error=0:detect_leaks=1")
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, preexec_fn=self._limit)
        self.expect_dead = False
        return self

    def start(self):
        self.launch()
        if not self.notify.wait("READY=1", self.process):
            self.expect_dead = True
            raise AssertionError("the daemon ended with status %s before it was ready:\n%s" % (self.process.wait(), self.log()))
        return self

    def joined(self, timeout=wire.WAIT):
        """Waits until a grant is possible: the store is connected and joined."""
        with Client(self.addr) as client:
            client.ok("LOCK harness:ready wait=%dms" % (timeout * 1000), timeout + 1)
            client.ok("UNLOCK harness:ready sync=yes")
        return self

    @property
    def pid(self):
        return self.process.pid

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def send_signal(self, number):
        self.process.send_signal(number)

    def freeze(self):
        """SIGSTOP, and waits until it has taken effect."""
        self.send_signal(signal.SIGSTOP)
        until(lambda: state_of(self.pid) == "T", "the daemon is stopped")

    def thaw(self):
        self.send_signal(signal.SIGCONT)

    def kill(self):
        self.expect_dead = True
        self.process.kill()
        self.process.wait()

    def finish(self, number=signal.SIGTERM, timeout=wire.WAIT):
        """Ends it by a signal; returns (status, seconds)."""
        self.expect_dead = True
        begin = time.monotonic()
        self.send_signal(number)
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError("the daemon outlived signal %d by %g s" % (number, timeout))
        return status, time.monotonic() - begin

    def stop(self):
        """The end of a test: clean, or the test fails."""
        try:
            if self.alive():
                self.thaw()
                status, _ = self.finish()
                if status != 0:
                    raise AssertionError("the daemon ended with status %d\n%s" % (status, self.log()))
            elif self.process is not None and not self.expect_dead:
                raise AssertionError("the daemon died: status %d\n%s" % (self.process.returncode, self.log()))
            self.sane()
        finally:
            self.dispose()

    def dispose(self):
        if self.alive():
            self.process.kill()
            self.process.wait()
        if self.notify:
            self.notify.close()
        if self in DAEMONS:
            DAEMONS.remove(self)
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- what it says ------------------------------------------------------------------------------------------------

    def log(self, since=0):
        try:
            with open(self.log_path, "rb") as log:
                log.seek(since)
                return log.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def log_size(self):
        return os.path.getsize(self.log_path) if os.path.exists(self.log_path) else 0

    def sane(self):
        report = REPORTS.search(self.log())
        if report:
            raise AssertionError("the daemon's log holds a report of a fault:\n" + self.log()[max(0, report.start() - 200):][:6000])

    def logged(self, pattern, since=0, timeout=wire.WAIT):
        """Waits for a log line that matches."""
        return until(lambda: re.search(pattern, self.log(since), re.M | re.I), "a log line like %s in:\n%s" % (pattern, self.log(since)[-2000:]), timeout)

    def client(self, name=None, tcp=False):
        return Client(self.tcp if tcp else self.addr, name)

    def rss_kib(self):
        with open("/proc/%d/status" % self.pid) as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))

    def cpu_seconds(self):
        with open("/proc/%d/stat" % self.pid) as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class FuncTest(unittest.TestCase):
    """A test that starts what it needs itself. ALONE: its figures want the machine; COST: seconds, longest first."""
    ALONE, COST = False, 1
    figures = []

    def setUp(self):
        self.log_marks = {daemon: daemon.log_size() for daemon in DAEMONS}

    def logs(self):
        """What each daemon logged during this test, for its report."""
        parts = []
        for daemon in DAEMONS:
            lines = daemon.log(self.log_marks.get(daemon, 0)).splitlines()
            state = "running" if daemon.alive() else "ended with %s" % (daemon.process.returncode if daemon.process else "no start")
            parts.append("--- log of redlockd %s (%s)%s\n%s" % (
                daemon.folder, state, ", the last 60 of %d lines" % len(lines) if len(lines) > 60 else "", "\n".join(line[:300] for line in lines[-60:])))
        return "\n".join(parts)

    def figure(self, text):
        self.figures.append("%s: %s" % (self.id().split(".", 1)[1], text))

    def daemon(self, tree=None, start=True, **options):
        daemon = Daemon(tree, **options)
        self.addCleanup(daemon.stop)
        return daemon.start() if start else daemon

    def redis(self, **options):
        server = Redis(**options)
        self.addCleanup(server.stop)
        return server.start()

    def redis_daemon(self, server, tree=None, **options):
        """A daemon on that one Redis, joined."""
        return self.daemon(merged({"store": "redis", "redis": {"nodes": [server.node]}}, tree or {}), **options).joined()

    def client(self, daemon, name=None, tcp=False):
        client = daemon.client(name, tcp)
        self.addCleanup(client.close)
        return client

    def name(self):
        """A lock name of this test's own."""
        return "%s-%d" % (self.id().rpartition(".")[2][:60], random.randrange(10 ** 9))


class StoreTest(FuncTest):
    """Tests that share one daemon per class, on the store that STORE names; CONFIG goes over the defaults."""
    STORE, CONFIG, TCP = "memory", {}, False
    d, r = None, None

    @classmethod
    def setUpClass(cls):
        cls.r = Redis() if cls.STORE == "redis" else None
        if cls.r:
            cls.addClassCleanup(cls.r.stop)
            cls.r.start()
        cls.start_daemon()

    @classmethod
    def start_daemon(cls):
        tree = {"store": "redis", "redis": {"nodes": [cls.r.node]}} if cls.r else {}
        cls.d = Daemon(merged(tree, cls.CONFIG), tcp=cls.TCP)
        cls.addClassCleanup(cls.d.stop)
        cls.d.start().joined()

    def setUp(self):
        if not self.d.alive():  # one test's victim shall not fail the others
            self.d.dispose()
            self.start_daemon()
        super().setUp()

    def tearDown(self):
        if not self.d.alive():
            self.d.expect_dead = True
            self.fail("the daemon died: status %d" % self.d.process.returncode)

    def connect(self, name=None, tcp=False):
        return self.client(self.d, name, tcp)


def on_each_store(body):
    """Class decorator: the tests of body, on the memory store and on one real Redis."""
    module = sys.modules[body.__module__]
    for label, store in (("OnMemory", "memory"), ("OnRedis", "redis")):
        name = body.__name__ + label
        setattr(module, name, type(name, (body, StoreTest), {"STORE": store, "__module__": body.__module__}))
    return body


class Noise:
    """How long this process was kept from running while it watched: the allowance of a comparison of two clocks readings."""

    def __init__(self):
        self.last, self.worst = time.monotonic(), 0.0

    def look(self, interval=0.0):
        now = time.monotonic()
        self.worst = max(self.worst, now - self.last - interval)
        self.last = now

    def allowance(self):
        return 0.010 + 2 * self.worst


def median(values):
    values = sorted(values)
    return values[len(values) // 2]


def main():
    unittest.main(verbosity=2)

# SPDX-License-Identifier: BSD-2-Clause
"""What the function tests have in common: their base classes, and the redlock command."""
import contextlib
import os
import pty
import random
import select
import shutil
import sys
import time
import unittest

from daemon import DAEMONS, Daemon, on_redis
from process import QUIET, REDLOCK, call, merged, reap, spawn, temp_folder
from redis_server import Redis

LEASE_1S = {"lease": "1s", "max_lease": "2s"}
DEFAULT_TIMEOUT = {"redis": {"timeout": "50ms"}}  # of the product; a Daemon here is patient()


class Violation(AssertionError):
    """A promise about exclusion or fences is broken."""


@contextlib.contextmanager
def safety():
    """Turns a failed assertion into a Violation."""
    try:
        yield
    except AssertionError as error:
        raise Violation(str(error)) from error


class FuncTest(unittest.TestCase):
    """A test that starts its own servers. COST: about how many seconds the class takes."""
    COST = 1
    figures = []

    def setUp(self):
        self.log_marks = {daemon: daemon.log_size() for daemon in DAEMONS}

    def logs(self):
        """What each daemon logged during this test, for the report of a failure."""
        parts = []
        for daemon in DAEMONS:
            lines = daemon.log(self.log_marks.get(daemon, 0)).splitlines()
            state = "running" if daemon.alive() else "ended with %s" % (daemon.process.returncode if daemon.process else "no start")
            parts.append("--- log of redlockd %s (%s)%s\n%s" % (
                daemon.folder, state, ", the last 60 of %d lines" % len(lines) if len(lines) > 60 else "", "\n".join(line[:300] for line in lines[-60:])))
        return "\n".join(parts)

    def figure(self, text):
        """Prints a measurement at the end of the run."""
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
        """A daemon on one Redis, which it has joined."""
        return self.daemon(on_redis([server], tree), **options).joined()

    def refused(self, tree, text, status=None, **options):
        """Launches a daemon that must end by itself, with this status or with any that is not 0, and must log text. Returns it."""
        daemon = self.daemon(tree, start=False, **options).launch()
        daemon.expect_dead = True
        ended = daemon.process.wait(10)
        self.assertNotEqual(ended, 0)
        self.assertIn(ended, (ended if status is None else status,))
        self.assertIn(text, daemon.log())
        return daemon

    def folder(self, prefix="redlockd-func-"):
        """A folder that is removed after the test."""
        folder = temp_folder(prefix)
        self.addCleanup(shutil.rmtree, folder)
        return folder

    def call_redlock(self, daemon, *argv, **options):
        """Runs the redlock command to its end. Returns (status, stdout, stderr)."""
        return call(REDLOCK, "--addr", daemon.addr, *argv, **options)

    def start_redlock(self, daemon, *argv, **options):
        process = spawn([REDLOCK, "--addr", daemon.addr, *argv], **merged(QUIET, options))
        self.addCleanup(reap, process)
        return process

    def terminal(self):
        """Both ends of a pseudo-terminal. The test closes the second one; the first one is closed at the end, unless the test has done so."""
        try:
            master, slave = pty.openpty()
        except OSError as error:
            self.skipTest("no terminal to be had: %s" % error)

        def close():
            with contextlib.suppress(OSError):
                os.close(master)
        self.addCleanup(close)
        return master, slave

    def terminal_shows(self, master, word, seconds=10):
        """Reads what appears on a terminal until the word has come. Returns all of it."""
        seen, deadline = b"", time.monotonic() + seconds
        while word not in seen and select.select([master], [], [], max(0, deadline - time.monotonic()))[0]:
            seen += os.read(master, 4096)
        return seen

    def client(self, daemon, name=None, tcp=False):
        client = daemon.client(name, tcp)
        self.addCleanup(client.close)
        return client

    def name(self):
        """A lock name that no other test uses."""
        return "%s-%d" % (self.id().rpartition(".")[2][:60], random.randrange(10 ** 9))


class StoreTest(FuncTest):
    """Tests that share one daemon per class, on the store that STORE names. CONFIG is laid over the default configuration."""
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
        cls.d = Daemon(on_redis([cls.r], cls.CONFIG) if cls.r else cls.CONFIG, tcp=cls.TCP)
        cls.addClassCleanup(cls.d.stop)
        cls.d.start().joined()

    def setUp(self):
        if not self.d.alive():  # the test before this one has failed already
            self.d.dispose()
            self.start_daemon()
        super().setUp()

    def tearDown(self):
        if not self.d.alive():
            self.d.expect_dead = True
            self.fail("the daemon died: status %d" % self.d.process.returncode)

    def connect(self, name=None, tcp=False):
        return self.client(self.d, name, tcp)

    def two(self):
        return self.connect(), self.connect()

    def waiting(self, name, count, extra=""):
        """Returns so many clients that wait for a name, in this order."""
        clients = []
        for i in range(count):
            c = self.connect("waiter-%d" % i)
            self.assertEqual(c.begin("LOCK %s wait=60s %s" % (name, extra)), [], "the LOCK does not wait")
            clients.append(c)
        return clients


def on_each_store(body):
    """Class decorator: runs the tests of body on the memory store and on one real Redis."""
    module = sys.modules[body.__module__]
    for label, store in (("OnMemory", "memory"), ("OnRedis", "redis")):
        name = body.__name__ + label
        setattr(module, name, type(name, (body, StoreTest), {"STORE": store, "__module__": body.__module__}))
    return body


class Noise:
    """Measures for how long the machine kept this process from running. A bound on a time is widened by allowance()."""

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

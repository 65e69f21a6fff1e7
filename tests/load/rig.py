# SPDX-License-Identifier: BSD-2-Clause
"""The parts of the load cases: processes of the generator, the daemon and the servers under load, and the processor time and memory that they need."""
import contextlib
import os
import signal
import time

from daemon import Daemon, on_redis
from generator import Generator, give_way, go_first
from process import Skip, allow_descriptors, cpu_seconds, merged
from redis_server import Redis
from wire import Client

CPUS = sorted(os.sched_getaffinity(0))
ROOMY = len(CPUS) >= 5  # a processor for the daemon, for each of three Redis servers and for the generator
seed = 1  # of the generator's random numbers; run.py sets it
TIMEOUT = "50ms" if ROOMY else "250ms"  # the default is for servers that have a processor each


def descriptors(wanted):
    """Allows this process, and those that it starts, so many open files."""
    allowed = allow_descriptors(wanted)
    if allowed < wanted:
        raise Skip("%d descriptors are wanted, %d are allowed" % (wanted, allowed))


class Cpu:
    """How much of one processor each process needs, in percent."""

    def __init__(self, pids):
        self.pids, self.begun = pids, time.monotonic()
        self.before = {name: cpu_seconds(pid) for name, pid in pids.items()}

    def percent(self):
        wall = time.monotonic() - self.begun
        return {name: 100 * (cpu_seconds(pid) - self.before[name]) / wall for name, pid in self.pids.items()}


class Scene(contextlib.ExitStack):
    """A daemon on its store, and the generators. At the end all of them are stopped."""

    def __init__(self, redis=0, tree=None, cpu=None):
        super().__init__()
        self.note = ""
        self.servers = [self.stop_after(Redis()).start() for _ in range(redis)]
        store = on_redis(self.servers, {"redis": {"timeout": TIMEOUT}}) if redis else {}
        self.daemon = Daemon(merged({"lease": "10s"}, store, tree))
        self.callback(self.daemon.dispose)
        self.daemon.start()
        if cpu is not None:
            os.sched_setaffinity(self.daemon.pid, {cpu})
            go_first(self.daemon.pid)
        self.daemon.joined()
        self.empty_kib = self.daemon.rss_kib()

    def stop_after(self, server):
        self.callback(server.stop)
        return server

    def generator(self, mode, *args, rude=False, cpu=None):
        """rude: it runs only when the others do not need the processor."""
        generator = Generator("load", mode, self.daemon.addr, *args, prepare=give_way if rude else go_first, cpu=cpu)
        self.callback(generator.close)
        return generator

    def cpu(self):
        return Cpu(dict({"redlockd": self.daemon.pid}, **{"redis-%d" % i: s.process.pid for i, s in enumerate(self.servers)}))

    def rss(self):
        return self.daemon.rss_kib()

    def stats(self):
        with Client(self.daemon.addr) as client:
            return client.stats()

    def until(self, metric, value, timeout=60.0):
        """Waits until a metric of STATS has this value. Returns the seconds."""
        begun = time.monotonic()
        while True:
            now = self.stats()[metric]
            if now == value:
                return time.monotonic() - begun
            if time.monotonic() - begun > timeout:
                raise AssertionError("%s is %d, not %d, after %g s" % (metric, now, value, timeout))
            time.sleep(0.02)

    def finish(self, timeout=30):
        """The daemon must still run, end on SIGTERM, and have logged no report of a fault."""
        if not self.daemon.alive():
            raise AssertionError("the daemon died:\n" + self.daemon.log()[-2000:])
        status, _ = self.daemon.finish(signal.SIGTERM, timeout)
        if status != 0:
            raise AssertionError("the daemon ended with status %d:\n%s" % (status, self.daemon.log()[-2000:]))
        self.daemon.sane()

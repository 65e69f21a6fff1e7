# SPDX-License-Identifier: BSD-2-Clause
"""What the load cases are made of: the generator's processes, the daemon and the servers under load, and what they use of the machine."""
import contextlib
import os
import re
import resource
import select
import signal
import subprocess
import time

from harness import Daemon
from process import BUILD, die_with_parent, merged
from redis_server import Redis
from wire import Client

TICK = os.sysconf("SC_CLK_TCK")
CPUS = sorted(os.sched_getaffinity(0))
ROOMY = len(CPUS) >= 5  # a processor for the daemon, for each of three Redis servers and for the generator
seed = 1  # of what the generator draws: run.py sets it
TIMEOUT = "50ms" if ROOMY else "250ms"  # the default is for servers that have a processor each


class Skip(Exception):
    """This machine cannot play the case; the text says why."""


def descriptors(wanted):
    """As many as that for this process and for what it starts."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise Skip("%d descriptors are wanted, the hard limit is %d" % (wanted, hard))
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def go_first(pid):
    """Before whatever else this machine does, where that is allowed: of the measured processes, only the daemon shall be what makes them wait."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(1))


def give_way(pid):
    allowed = os.geteuid() == 0
    os.setpriority(os.PRIO_PROCESS, pid, 5 if allowed else 19)
    if not allowed:
        os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))


class Generator:
    """One process of build/load. A rude one gets its processor only when the polite ones need it not; cpu pins it."""

    def __init__(self, mode, addr, *args, rude=False, cpu=None):
        self.rude, self.cpu = rude, cpu
        where = addr if isinstance(addr, str) else "%s:%d" % addr
        argv = [os.path.join(BUILD, "load"), mode, where, *[str(arg) for arg in args]]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=self._prepare, bufsize=0)
        self.buffer = b""
        self.hear("ready")

    def _prepare(self):
        die_with_parent()
        if self.cpu is not None:
            os.sched_setaffinity(0, {self.cpu})
        give_way(0) if self.rude else go_first(0)

    def say(self, word):
        self.process.stdin.write(word.encode() + b"\n")

    def hear(self, word, timeout=60.0):
        """The next line, which must begin with word: its figures."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            data = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not data:
                raise AssertionError("the generator %s: no %s" % ("ended" if ready else "is late", word))
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\n")
        said, *fields = line.decode().split()
        if said != word:
            raise AssertionError("the generator says %s, not %s" % (line.decode(), word))
        return {key: int(value) for key, _, value in (field.partition("=") for field in fields)}

    def ask(self, word, answer, timeout=60.0):
        self.say(word)
        return self.hear(answer, timeout)

    def close(self):
        self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def cpu_ticks(pid):
    """In the process itself, and in the kernel for it."""
    with open("/proc/%d/stat" % pid) as stat:
        fields = stat.read().rpartition(")")[2].split()
    return int(fields[11]), int(fields[12])


def cpu_seconds(pid):
    return sum(cpu_ticks(pid)) / TICK


def user_seconds(pid):
    return cpu_ticks(pid)[0] / TICK


def rss_kib(pid):
    with open("/proc/%d/status" % pid) as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))


class Cpu:
    """Percent of one processor, by process."""

    def __init__(self, pids):
        self.pids, self.begun = pids, time.monotonic()
        self.before = {name: cpu_seconds(pid) for name, pid in pids.items()}

    def percent(self):
        wall = time.monotonic() - self.begun
        return {name: 100 * (cpu_seconds(pid) - self.before[name]) / wall for name, pid in self.pids.items()}


class Scene(contextlib.ExitStack):
    """A daemon on its store, and the generators; all gone at the end."""

    def __init__(self, redis=0, tree=None, cpu=None):
        super().__init__()
        self.note = ""
        self.servers = [self.stop_after(Redis()).start() for _ in range(redis)]
        store = {"store": "redis", "redis": {"nodes": [server.node for server in self.servers], "timeout": TIMEOUT}} if redis else {}
        self.daemon = Daemon(merged(merged({"lease": "10s"}, store), tree or {}))
        self.callback(self.daemon.dispose)
        self.daemon.start()
        if cpu is not None:
            os.sched_setaffinity(self.daemon.pid, {cpu})
            go_first(self.daemon.pid)
        self.daemon.joined()
        self.empty_kib = rss_kib(self.daemon.pid)

    def stop_after(self, server):
        self.callback(server.stop)
        return server

    def generator(self, mode, *args, **options):
        generator = Generator(mode, self.daemon.addr, *args, **options)
        self.callback(generator.close)
        return generator

    def cpu(self):
        return Cpu(dict({"redlockd": self.daemon.pid}, **{"redis-%d" % i: s.process.pid for i, s in enumerate(self.servers)}))

    def rss(self):
        return rss_kib(self.daemon.pid)

    def stats(self):
        with Client(self.daemon.addr) as client:
            return {row["metric"]: row.num("value") for row in client.ok("STATS", 60).rows}

    def until(self, metric, value, timeout=60.0):
        """Waits until a figure of STATS is that; returns the seconds."""
        begun = time.monotonic()
        while True:
            now = self.stats()[metric]
            if now == value:
                return time.monotonic() - begun
            if time.monotonic() - begun > timeout:
                raise AssertionError("%s is %d, not %d, after %g s" % (metric, now, value, timeout))
            time.sleep(0.02)

    def finish(self, timeout=30):
        """The daemon must still be there, sane, and end when it is told to."""
        if not self.daemon.alive():
            raise AssertionError("the daemon died:\n" + self.daemon.log()[-2000:])
        status, _ = self.daemon.finish(signal.SIGTERM, timeout)
        if status != 0:
            raise AssertionError("the daemon ended with status %d:\n%s" % (status, self.daemon.log()[-2000:]))
        self.daemon.sane()

# SPDX-License-Identifier: BSD-2-Clause
"""What the benchmarks compare: redlockd, Redis without it, and a server that does nothing but lock. Each side has its own processes, and is measured for an
interval at a time while the other sides rest."""
import contextlib
import os
import subprocess
import sys
import time

from authority import Authority
from daemon import Daemon, on_redis
from generator import Generator
from process import BUILD, PipeLines, allow_descriptors, die_with_parent, free_port, merged, reap, temp_folder
from redis_server import Redis

CPUS = sorted(os.sched_getaffinity(0))
TIMEOUT = "50ms" if len(CPUS) >= 5 else "250ms"  # the default is for servers that have a processor each
SETTLE = 0.15  # seconds between the first request of an interval and what is measured
MANY = {"limits": {"clients": 20000, "locks": 1000000, "waiting": 1000000, "renewals": 10000000, "stored": "1g"}}


def cpu_us(pid):
    """The processor time of a process and all its threads. Linux makes the clock's number of the pid: see clock_getcpuclockid(3)."""
    return time.clock_gettime_ns(~pid << 3 | 2) / 1000


class Side(contextlib.ExitStack):
    """Some processes with one generator. The figures of an interval: n, us, p50_us …, and for each role cpu_us and commands, of one pair (or request)."""

    def __init__(self, cpu=None):
        super().__init__()
        allow_descriptors(30000)
        self.cpu, self.roles, self.servers, self.driver = cpu, {}, [], None

    def keep(self, role, pid):
        """Counts the processor time of this process under the role."""
        self.roles.setdefault(role, []).append(pid)
        if self.cpu is not None:
            os.sched_setaffinity(pid, {self.cpu})

    def redis(self, count):
        for _ in range(count):
            server = Redis()
            self.callback(server.stop)
            self.servers.append(server.start())
            self.keep("redis", server.process.pid)
        return [server.path for server in self.servers]

    def redlockd(self, tree=None, tcp=False):
        """On the servers that were started before; without one, on the memory store."""
        store = on_redis(self.servers, {"redis": {"timeout": TIMEOUT}}) if self.servers else {}
        self.daemon = Daemon(merged({"lease": "10s"}, MANY, store, tree), tcp=tcp)
        self.callback(self.daemon.dispose)
        self.daemon.start().joined()
        self.keep("redlockd", self.daemon.pid)
        return self.daemon.tcp if tcp else self.daemon.addr

    def drive(self, mode, addr, **options):
        self.driver = Generator("drive", mode, addr, *["%s=%s" % item for item in options.items()])
        self.callback(self.driver.close)
        self.keep("clients", self.driver.pid)
        self.driver.ask("connect", "connected")
        return self

    def secure_redlockd(self):
        """On the memory store, over TCP and inside TLS. Returns both addresses and what a client trusts."""
        authority = Authority()
        self.callback(authority.remove)
        cert, key = authority.sign("/CN=localhost")
        secure = ("127.0.0.1", free_port())
        plain = self.redlockd({"listen": {"tls": "%s:%d" % secure}, "tls": {"cert_file": cert, "key_file": key}}, tcp=True)
        return plain, secure, authority.client_context()

    def spent(self):
        return {role: sum(map(cpu_us, pids)) for role, pids in self.roles.items()}

    def commands(self):
        return sum(sum(server.calls().values()) for server in self.servers if server.serves())

    def interval(self, seconds, settle=SETTLE):
        self.driver.say("go")
        time.sleep(settle)
        commands, before = self.commands(), self.spent()
        self.driver.say("begin")
        time.sleep(seconds)
        told = self.driver.ask("end", "figures")
        after, commands = self.spent(), self.commands() - commands
        self.driver.ask("rest", "resting")
        n = max(1, told["n"])
        told["per_second"] = told["n"] / (told["us"] / 1e6)
        told["commands"] = commands / n
        told.update({"cpu_" + role: (after[role] - before[role]) / n for role in after})
        return told


def redlockd(redis, mode="lines", cpu=None, tcp=False, tree=None, **options):
    side = Side(cpu)
    side.redis(redis)
    return side.drive(mode, side.redlockd(tree, tcp), **options)


def direct(redis, cpu=None, **options):
    """Redis without a daemon; several servers: Redlock by each client."""
    side = Side(cpu)
    return side.drive("redis", ",".join(side.redis(redis)), **options)


def ceiling(mode="lines", cpu=None, **options):
    side = Side(cpu)
    folder = temp_folder("redlockd-ceiling-")
    server = subprocess.Popen([os.path.join(BUILD, "ceiling"), os.path.join(folder, "sock")], stdout=subprocess.PIPE, preexec_fn=die_with_parent)
    side.callback(lambda: (reap(server), os.unlink(os.path.join(folder, "sock")), os.rmdir(folder)))
    PipeLines(server.stdout).next("the server is ready")
    side.keep("ceiling", server.pid)
    return side.drive(mode, os.path.join(folder, "sock"), **options)


class Library(Side):
    """A program of this folder that speaks as a generator does, and uses somebody's library with this server."""

    def __init__(self, argv, clients):
        super().__init__()
        path = self.redis(1)[0]
        self.driver = Spoken(argv + [path, str(clients)])
        self.callback(self.driver.close)
        self.keep("clients", self.driver.pid)
        self.driver.ask("connect", "connected")


class Spoken(Generator):
    """A Generator that is a program outside of the build folder."""

    def __init__(self, argv):  # pylint: disable=super-init-not-called
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=die_with_parent, bufsize=0)
        self.lines = PipeLines(self.process.stdout)
        self.hear("ready")


HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = {  # a library: how its driver is started, and how to find out whether it is installed
    "redis-py": ([sys.executable, os.path.join(HERE, "peer_redis_py.py")], [sys.executable, "-c", "import redis"]),
    "node-redlock": (["node", os.path.join(HERE, "peer_node_redlock.mjs")], ["node", "--input-type=module", "-e", "import 'redlock'; import 'ioredis'"]),
}


def library(name, clients):
    """The side of a library. None: the library is not installed."""
    argv, probe = PEERS[name]
    try:
        known = subprocess.run(probe, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=HERE, timeout=20).returncode == 0
    except FileNotFoundError:
        known = False
    return Library(argv, clients) if known else None

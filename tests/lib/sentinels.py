# SPDX-License-Identifier: BSD-2-Clause
"""Real sentinels that watch a real master and its replicas."""
import os
import subprocess

import redis  # Debian: python3-redis

from process import WAIT, free_port, reap, spawn, temp_folder, until
from redis_server import SERVER, Redis


def table(words):
    """The fields of an answer that lists them in turn with their values."""
    return dict(zip(words[::2], words[1::2])) if words else {}


class Sentinel:
    """One sentinel, in a private folder on a private port."""

    def __init__(self, name, host, port, quorum, down_ms, lines=(), password=None):
        self.folder = temp_folder("redlockd-sentinel-")
        self.port, self.process = free_port(), None
        self.conf = os.path.join(self.folder, "sentinel.conf")
        self.write(["port %d" % self.port, "bind 127.0.0.1", "dir " + self.folder, "logfile " + os.path.join(self.folder, "log"),
                    "sentinel monitor %s %s %d %d" % (name, host, port, quorum), "sentinel down-after-milliseconds %s %d" % (name, down_ms),
                    "sentinel failover-timeout %s 6000" % name, "sentinel parallel-syncs %s 2" % name, *lines])
        self.cli = redis.Redis(host="127.0.0.1", port=self.port, password=password, socket_timeout=WAIT, decode_responses=True)

    def write(self, lines):
        with open(self.conf, "w") as out:
            out.write("\n".join(lines) + "\n")

    def start(self):
        self.process = spawn([SERVER, self.conf, "--sentinel"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self

    def ask(self, *words):
        """The answer to SENTINEL; None: it does not answer."""
        try:
            return self.cli.execute_command("SENTINEL", *words)
        except redis.exceptions.ConnectionError:
            return None

    def stop(self):
        if self.process:
            reap(self.process)
        self.cli.close()
        subprocess.run(["rm", "-rf", self.folder], check=True)


class Watched:
    """A master with replicas, and sentinels. servers[0] is the master at first. node: what redis.nodes has for it."""

    def __init__(self, name="locks", replicas=2, sentinels=3, down_ms=1000, lines=(), password=None, host="127.0.0.1"):
        self.name, self.count = name, sentinels
        first = Redis(tcp=True, args=["--repl-diskless-sync-delay", "0"])
        self.servers = [first] + [Redis(tcp=True, args=["--repl-diskless-sync-delay", "0", "--replicaof", "127.0.0.1 %d" % first.port])
                                  for _ in range(replicas)]
        self.sentinels = [Sentinel(name, host, first.port, sentinels // 2 + 1, down_ms, lines, password) for _ in range(sentinels)]
        self.node = {"sentinel": {"master": name, "addresses": ["127.0.0.1:%d" % s.port for s in self.sentinels]}}
        self.label = "sentinel:" + name

    def start(self):
        for server in [*self.servers, *self.sentinels]:
            server.start()
        until(self.ready, "the sentinels know each other and the replicas", 30)
        return self

    def ready(self):
        for sentinel in self.sentinels:
            row = table(sentinel.ask("master", self.name))
            if (row.get("num-slaves"), row.get("num-other-sentinels")) != (str(len(self.servers) - 1), str(self.count - 1)):
                return False
            replicas = [table(words) for words in sentinel.ask("slaves", self.name)]
            if any(r["master-link-status"] != "ok" or r["slave-repl-offset"] == "0" for r in replicas):
                return False
        return True

    def ports(self):
        """Where each sentinel that answers says that the master is."""
        told = [sentinel.ask("get-master-addr-by-name", self.name) for sentinel in self.sentinels]
        return [int(address[1]) for address in told if address]

    def master(self):
        """The server that all sentinels call the master."""
        ports = set(self.ports())
        return next((server for server in self.servers if ports == {server.port}), None)

    def moved(self, before, timeout=30):
        """Waits until all sentinels name another master, and returns it."""
        until(lambda: self.master() not in (None, before), "the sentinels have promoted a replica", timeout)
        return self.master()

    def call_by_name(self, on):
        """Whether the sentinels tell the host as the name by which they know it, or as a number."""
        for sentinel in self.sentinels:
            sentinel.ask("config", "set", "announce-hostnames", "yes" if on else "no")

    def fail_over(self):
        """SENTINEL FAILOVER. Returns at once."""
        until(lambda: self.sentinels[0].ask("failover", self.name), "a fail-over begins")

    def stop(self):
        for server in [*self.sentinels, *self.servers]:
            server.stop()

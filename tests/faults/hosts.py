# SPDX-License-Identifier: BSD-2-Clause
"""Further hosts of a world: network namespaces that live as long as a process in them, each at the end of a cable that can be pulled out."""
import contextlib
import os
import time

import process
from history import now
from process import until
from skip import Skip


class Hosts:
    """What a World has of them: hosts, a list of processes."""

    def make_host(self, i):
        """Another host: a network of its own, joined to ours by a cable. We are 10.77.i.1 there, it is 10.77.i.2."""
        host = process.spawn(["unshare", "-n", "sleep", "1000"])
        self.stack.callback(host.kill)
        here = os.readlink("/proc/self/ns/net")
        until(lambda: os.readlink("/proc/%d/ns/net" % host.pid) != here, "a network namespace")
        there = ["nsenter", "-t", str(host.pid), "-n"]
        for command in (["ip", "link", "add", "cable%d" % i, "type", "veth", "peer", "name", "eth0", "netns", str(host.pid)],
                        ["ip", "addr", "add", "10.77.%d.1/24" % i, "dev", "cable%d" % i], ["ip", "link", "set", "cable%d" % i, "up"],
                        [*there, "ip", "link", "set", "lo", "up"], [*there, "ip", "addr", "add", "10.77.%d.2/24" % i, "dev", "eth0"],
                        [*there, "ip", "link", "set", "eth0", "up"]):
            status, _, said = process.call(*command)
            if status:
                raise Skip("no veth: " + said.strip())
        return host

    @contextlib.contextmanager
    def unplugged(self, i):
        """The cable to that host is out: nothing arrives, and nobody is told."""
        at, begin = now(), time.monotonic()
        process.call("ip", "link", "set", "cable%d" % i, "down")
        try:
            yield
        finally:
            process.call("ip", "link", "set", "cable%d" % i, "up")
            process.call("ip", "addr", "replace", "10.77.%d.1/24" % i, "dev", "cable%d" % i)
            out = time.monotonic() - begin
            for c in self.guests(i):  # what was sent meanwhile is sent again at intervals that double
                self.log.tell("stop", at=at, what="c%d" % c, to=now() + int((2 * out + 1) * 1e9))

    def guests(self, i):
        """The clients on that host."""
        return [c for c in self.processes if self.host_of(c) == i]

    def host_of(self, c):
        """None for clients of this host, on Unix sockets."""
        at = c // 3 % (len(self.hosts) + 1)
        return None if at == len(self.hosts) else at

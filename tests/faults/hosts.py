# SPDX-License-Identifier: BSD-2-Clause
"""Further hosts of a world: network namespaces, each kept by a process in it, and connected to this one by a cable that a test can unplug."""
import contextlib
import os
import time

import process
from history import now
from process import until
from process import Skip


class Hosts:
    """A part of World. hosts: the processes that keep the namespaces."""

    def make_host(self, i):
        """Another host, connected by a cable. It is 10.77.i.2, and this host is 10.77.i.1 there."""
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
        """Unplugs the cable to that host: nothing arrives, and no error is reported."""
        at, begin = now(), time.monotonic()
        process.call("ip", "link", "set", "cable%d" % i, "down")
        try:
            yield
        finally:
            process.call("ip", "link", "set", "cable%d" % i, "up")
            process.call("ip", "addr", "replace", "10.77.%d.1/24" % i, "dev", "cable%d" % i)
            out = time.monotonic() - begin
            for c in self.guests(i):  # TCP sends again at intervals that double
                self.log.tell("stop", at=at, what="c%d" % c, to=now() + int((2 * out + 1) * 1e9))

    def guests(self, i):
        """The clients on that host."""
        return [c for c in self.processes if self.host_of(c) == i]

    def host_of(self, c):
        """The number of the host of a client. None: this host, with Unix sockets."""
        at = c // 3 % (len(self.hosts) + 1)
        return None if at == len(self.hosts) else at

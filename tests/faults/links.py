# SPDX-License-Identifier: BSD-2-Clause
"""The links of a world: which daemons and clients the proxy connects to what, and how those connections behave."""
import contextlib
import multiprocessing
import os

import proxy


class Links:
    """A part of World. control: a pipe to the proxy."""

    def start_proxy(self):
        self.control, theirs = multiprocessing.Pipe()
        self.proxy = self.context.Process(target=proxy.run, args=(theirs, self.rng.random()), daemon=True)
        self.proxy.start()
        theirs.close()

    def tell(self, verb, *args):
        self.control.send((verb, args))
        if not self.control.poll(20):
            raise AssertionError("the proxy does not answer %s" % verb)
        return self.control.recv()

    def client_addr(self, i, daemon):
        if self.hosts and self.host_of(i) is not None:
            return "10.77.%d.1" % self.host_of(i), daemon.tcp[1]
        if self.options.get("client_proxy"):
            path = os.path.join(self.folder, "client-%d" % i)
            self.aim(i, daemon)
            if not os.path.exists(path):
                self.tell("open", ("c", i), path, self.aim_of(i))
                self.tell("set", [("c", i)], {"polite": True})
            return path
        return daemon.tcp if self.options.get("tcp") and i % 2 else daemon.addr

    def aim_of(self, i):
        return os.path.join(self.folder, "aim-%d" % i)

    def aim(self, i, daemon):
        """The proxy leads client i to this daemon when it dials next, by a symbolic link. The client reads that link, too, to record its daemon."""
        place = os.path.join(self.folder, "daemon-%d" % daemon.index)
        if not os.path.lexists(place):
            os.symlink(daemon.addr, place)
        os.symlink(place, self.aim_of(i) + ".new")
        os.replace(self.aim_of(i) + ".new", self.aim_of(i))

    def redirect(self, clients, daemon):
        """Cuts the connections of these clients, which then find another daemon in the place of theirs."""
        for i in clients:
            self.aim(i, daemon)
        for _ in range(2):  # the second cut finds connections that were accepted during the first
            self.cut([("c", i) for i in clients])

    def links(self, daemons=None, nodes=None):
        return [(d.index, n.index) for d in daemons or self.daemons for n in nodes or self.nodes]

    def policy(self, keys, **changes):
        self.tell("set", keys, changes)

    def cut(self, keys, how="close"):
        return self.tell("cut", keys, how)

    @contextlib.contextmanager
    def behaving(self, keys, **changes):
        """Makes the links behave so for a while. Links that have swallowed bytes are cut afterwards."""
        back = {name: proxy.POLICY[name] for name in changes}
        self.policy(keys, **changes)
        try:
            yield
        finally:
            if "swallow" in changes:
                self.cut(keys)
            self.policy(keys, **back)

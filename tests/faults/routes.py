# SPDX-License-Identifier: BSD-2-Clause
"""The ways of a world: who is joined to whom through the proxy, and how those connections behave."""
import contextlib
import multiprocessing
import os

import proxy


class Routes:
    """What a World has of them: control, the end of a pipe to the proxy."""

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
        """To whom the proxy joins client i when it dials next: a symbolic link, which the client reads too, to note down whose answers it has."""
        place = os.path.join(self.folder, "daemon-%d" % daemon.index)
        if not os.path.lexists(place):
            os.symlink(daemon.addr, place)
        os.symlink(place, self.aim_of(i) + ".new")
        os.replace(self.aim_of(i) + ".new", self.aim_of(i))

    def lead(self, clients, daemon):
        """Cuts these clients off, and has them find another daemon where theirs was."""
        for i in clients:
            self.aim(i, daemon)
        for _ in range(2):  # what was dialled before and is accepted beside the first is cut by the second
            self.cut([("c", i) for i in clients])

    def links(self, daemons=None, nodes=None):
        return [(d.index, n.index) for d in daemons or self.daemons for n in nodes or self.nodes]

    def policy(self, keys, **changes):
        self.tell("set", keys, changes)

    def cut(self, keys, how="close"):
        return self.tell("cut", keys, how)

    @contextlib.contextmanager
    def behaving(self, keys, **changes):
        """The links behave so for a while; what they swallowed meanwhile is gone, so those connections are cut."""
        back = {name: proxy.POLICY[name] for name in changes}
        self.policy(keys, **changes)
        try:
            yield
        finally:
            if "swallow" in changes:
                self.cut(keys)
            self.policy(keys, **back)

# SPDX-License-Identifier: BSD-2-Clause
"""A limit of memory by a control group below one that was delegated to us: FAULTS_CGROUP names its folder, of version 2 with the memory controller
enabled for what is below it, or of version 1. Without one there is none: a process may not help itself to the groups of others.
"""
import contextlib
import os

from skip import Skip

FILES = {"memory.max": "max", "memory.limit_in_bytes": "-1"}  # of version 2 and 1, and what says "no limit" there


class MemoryGroup:
    def __init__(self, world, daemon):
        above = os.environ.get("FAULTS_CGROUP")
        if not above:
            raise Skip("a limit of memory by a control group: none is delegated to this run, FAULTS_CGROUP= would name it")
        self.folder = os.path.join(above, "redlockd-faults-%d-%d" % (os.getpid(), daemon.index))
        try:
            os.mkdir(self.folder)
        except OSError as error:
            raise Skip("a limit of memory by a control group: %s" % error) from None
        world.stack.callback(self.remove, daemon)
        known = [name for name in FILES if os.path.exists(os.path.join(self.folder, name))]
        if not known:
            raise Skip("a limit of memory by a control group: %s has no memory controller for those below it" % above)
        self.file = known[0]

    def write(self, file, text):
        with open(os.path.join(self.folder, file), "w") as out:
            out.write(text)

    def take(self, daemon):
        self.write("cgroup.procs", str(daemon.pid))

    def limit(self, size):
        """In bytes; None: as much as there is. The kernel may refuse one that is below what cannot be given up; then the old one stays."""
        with contextlib.suppress(OSError):
            self.write(self.file, FILES[self.file] if size is None else str(size))

    def remove(self, daemon):
        daemon.dispose()  # a group with a process in it stays
        with contextlib.suppress(OSError):
            os.rmdir(self.folder)

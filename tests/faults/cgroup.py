# SPDX-License-Identifier: BSD-2-Clause
"""A limit of memory by a control group. FAULTS_CGROUP names the folder of a group that is delegated to this run: of version 2, with the memory controller
enabled for the groups below it, or of version 1. Without it the row is skipped, since a process must not use the groups of others.
"""
import contextlib
import os

from process import Skip

FILES = {"memory.max": "max", "memory.limit_in_bytes": "-1"}  # the files of version 2 and 1, and what stands for no limit there


class MemoryGroup:
    def __init__(self, world, daemon):
        above = os.environ.get("FAULTS_CGROUP")
        if not above:
            raise Skip("a limit of memory by a control group: FAULTS_CGROUP= names no group that is delegated to this run")
        self.folder = os.path.join(above, "redlockd-faults-%d-%d" % (os.getpid(), daemon.index))
        try:
            os.mkdir(self.folder)
        except OSError as error:
            raise Skip("a limit of memory by a control group: %s" % error) from None
        world.stack.callback(self.remove, daemon)
        known = [name for name in FILES if os.path.exists(os.path.join(self.folder, name))]
        if not known:
            raise Skip("a limit of memory by a control group: %s has no memory controller for the groups below it" % above)
        self.file = known[0]

    def write(self, file, text):
        with open(os.path.join(self.folder, file), "w") as out:
            out.write(text)

    def take(self, daemon):
        self.write("cgroup.procs", str(daemon.pid))

    def limit(self, size):
        """In bytes; None: no limit. The kernel may refuse a limit below what it cannot reclaim: then the old one stays."""
        with contextlib.suppress(OSError):
            self.write(self.file, FILES[self.file] if size is None else str(size))

    def remove(self, daemon):
        daemon.dispose()  # a group with a process cannot be removed
        with contextlib.suppress(OSError):
            os.rmdir(self.folder)

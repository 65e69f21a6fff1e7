# SPDX-License-Identifier: BSD-2-Clause
"""What the locks protect, in two files that all clients share: for each name a register that refuses accesses by their fences, and a counter that only the
lock protects.

The register keeps two fences, as a resource does that is read under shared locks: it refuses readers below the largest fence of a writer, and writers below
the largest of both. What a writer reads counts as its write.
"""
import fcntl
import os
import struct

SLOT = struct.Struct("qqqqq")  # the largest fence of a writer, and of a reader; the value, how many writes were accepted, how many accesses refused
COUNT = struct.Struct("q")


class Registers:
    def __init__(self, folder, names):
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        self.names = {name: i for i, name in enumerate(names)}
        self.fenced = os.open(os.path.join(folder, "fenced"), flags, 0o644)
        self.plain = os.open(os.path.join(folder, "plain"), flags, 0o644)

    def close(self):
        os.close(self.fenced)
        os.close(self.plain)

    def _slot(self, at):
        return SLOT.unpack(os.pread(self.fenced, SLOT.size, at).ljust(SLOT.size, b"\0"))

    def access(self, name, fence, write=None, shared=False):
        """Reads the value, or writes it. Returns None when the register has seen a fence that forbids this one."""
        at = self.names[name] * SLOT.size
        fcntl.lockf(self.fenced, fcntl.LOCK_EX, SLOT.size, at)
        try:
            wrote, read, value, writes, refused = self._slot(at)
            if fence < wrote or (fence < read and not shared):
                os.pwrite(self.fenced, SLOT.pack(wrote, read, value, writes, refused + 1), at)
                return None
            if write is not None:
                value, writes = write, writes + 1
            wrote, read = (wrote, max(read, fence)) if shared else (fence, read)
            os.pwrite(self.fenced, SLOT.pack(wrote, read, value, writes, refused), at)
            return value
        finally:
            fcntl.lockf(self.fenced, fcntl.LOCK_UN, SLOT.size, at)

    def fenced_state(self):
        """{name: (value, accepted writes, refused accesses)}"""
        return {name: self._slot(i * SLOT.size)[2:] for name, i in self.names.items()}

    def count(self, name):
        return COUNT.unpack(os.pread(self.plain, COUNT.size, self.names[name] * COUNT.size).ljust(COUNT.size, b"\0"))[0]

    def set_count(self, name, value):
        os.pwrite(self.plain, COUNT.pack(value), self.names[name] * COUNT.size)

    def counts(self):
        return {name: self.count(name) for name in self.names}

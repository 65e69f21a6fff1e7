# SPDX-License-Identifier: BSD-2-Clause
"""What the locks protect, in two files that all clients share: for each name a register that refuses accesses with a smaller fence, and a counter
that only the lock protects."""
import fcntl
import os
import struct

SLOT = struct.Struct("qqqq")  # the greatest fence seen, the value, how many writes were accepted, how many accesses refused
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

    def access(self, name, fence, write=None):
        """Reads the value, or writes it. Returns None when the register has seen a greater fence."""
        at = self.names[name] * SLOT.size
        fcntl.lockf(self.fenced, fcntl.LOCK_EX, SLOT.size, at)
        try:
            seen, value, writes, refused = self._slot(at)
            if fence < seen:
                os.pwrite(self.fenced, SLOT.pack(seen, value, writes, refused + 1), at)
                return None
            if write is not None:
                value, writes = write, writes + 1
            os.pwrite(self.fenced, SLOT.pack(fence, value, writes, refused), at)
            return value
        finally:
            fcntl.lockf(self.fenced, fcntl.LOCK_UN, SLOT.size, at)

    def fenced_state(self):
        """{name: (value, accepted writes, refused accesses)}"""
        return {name: self._slot(i * SLOT.size)[1:] for name, i in self.names.items()}

    def count(self, name):
        return COUNT.unpack(os.pread(self.plain, COUNT.size, self.names[name] * COUNT.size).ljust(COUNT.size, b"\0"))[0]

    def set_count(self, name, value):
        os.pwrite(self.plain, COUNT.pack(value), self.names[name] * COUNT.size)

    def counts(self):
        return {name: self.count(name) for name in self.names}

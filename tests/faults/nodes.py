# SPDX-License-Identifier: BSD-2-Clause
"""The Redis servers of a world, and wall clocks that can be stepped and run at a rate of their own."""
import os
import struct
import time

from process import state_of
from redis_server import Clock, Redis


def wall_us():
    return time.time_ns() // 1000


class SkewedClock(Clock):
    """A wall clock with a step and a rate: see tests/clock_shim.c."""

    def skew(self, step=0.0, ppm=0):
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        os.pwrite(fd, struct.pack("qqqq", int(step * 1e6), 0, ppm, wall_us()), 0)
        os.close(fd)

    def suspend(self, seconds):
        """As much in all as the host was suspended, which CLOCK_MONOTONIC does not count."""
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        os.pwrite(fd, struct.pack("q", int(seconds * 1e6)), 32)
        os.close(fd)


class Node(Redis):
    def __init__(self, index, **options):
        self.wants_clock = options.pop("clock", False)
        super().__init__(**options)
        self.index = index
        if self.wants_clock:
            self.clock = SkewedClock(self.folder)

    def up(self):
        return self.process is not None and self.process.poll() is None and state_of(self.process.pid) != "T"

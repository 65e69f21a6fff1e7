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
    offset_us, ppm, since_us = 0, 0, 0

    def skew(self, step=0.0, ppm=0):
        """So far from the true clock as of now, whatever it was before: this alone is a step."""
        self._tell(int(step * 1e6), ppm, wall_us())

    def slew(self, ppm):
        """At another rate as of now, without a step."""
        now_us = wall_us()
        self._tell(self.offset_us + (now_us - self.since_us) // 1000 * self.ppm // 1000, ppm, now_us)

    def _tell(self, *told):
        self.offset_us, self.ppm, self.since_us = told
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        os.pwrite(fd, struct.pack("qqqq", self.offset_us, 0, self.ppm, self.since_us), 0)
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

# SPDX-License-Identifier: BSD-2-Clause
"""A wire that loses, doubles and reorders packets, by a TUN device. A packet to FAR comes back as one from FAR to NEAR, so that a server that listens at NEAR
is found at FAR. The device exchanges source and destination, which changes no checksum.
"""
import contextlib
import fcntl
import heapq
import multiprocessing
import os
import random
import select
import struct
import time

import process
from process import Skip

NEAR, FAR, DEVICE = "10.78.0.1", "10.78.0.2", "lossy"
TUNSETIFF, IFF_TUN_NO_PI = 0x400454CA, 0x1001
SOUND = {"loss": 0.0, "double": 0.0, "delay": (0.0, 0.0), "late": 0.0}  # chances; a delay in seconds from, to; the chance of a second delay


class Shuffler:
    """Packets that wait until they are due: (due, serial, bytes)."""

    def __init__(self, seed):
        self.rng, self.manner, self.waiting, self.serial, self.latest = random.Random(seed), dict(SOUND), [], 0, 0
        self.count = {"lost": 0, "doubled": 0, "overtaken": 0}

    def take(self, packet, at):
        if packet[0] >> 4 != 4:  # a new device sends IPv6 packets by itself
            return
        manner, chance = self.manner, self.rng.random
        if chance() < manner["loss"]:
            self.count["lost"] += 1
            return
        twice = chance() < manner["double"]
        self.count["doubled"] += twice
        self.serial += 1
        for _ in range(1 + twice):
            times = 1 + (chance() < manner["late"])
            due = at + sum(self.rng.uniform(*manner["delay"]) for _ in range(times))
            heapq.heappush(self.waiting, (due, self.serial, packet[:12] + packet[16:20] + packet[12:16] + packet[20:]))

    def due(self, at):
        """The packets that are due."""
        while self.waiting and self.waiting[0][0] <= at:
            _, serial, packet = heapq.heappop(self.waiting)
            self.count["overtaken"] += serial < self.latest
            self.latest = max(self.latest, serial)
            yield packet

    def patience(self, at):
        """Seconds until the next packet is due."""
        return max(0.0, self.waiting[0][0] - at) if self.waiting else 1.0


def open_device():
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), IFF_TUN_NO_PI))
    for command in (("addr", "add", NEAR + "/24", "dev", DEVICE), ("link", "set", DEVICE, "up", "mtu", "1500")):
        status, _, said = process.call("ip", *command)
        if status:
            raise OSError(said.strip())
    return fd


def run(control, seed):
    process.die_with_parent()
    try:
        fd = open_device()
    except OSError as error:
        control.send(str(error))
        return
    control.send(None)
    shuffler = Shuffler(seed)
    while True:
        ready, _, _ = select.select([control, fd], [], [], shuffler.patience(time.monotonic()))
        if control in ready:
            shuffler.manner = dict(SOUND, **control.recv())
            control.send(dict(shuffler.count))
        with contextlib.suppress(BlockingIOError):
            while fd in ready:
                shuffler.take(os.read(fd, 65536), time.monotonic())
        for packet in shuffler.due(time.monotonic()):
            os.write(fd, packet)


class LossyWire:
    """The process behind the device, in the network of the row. It runs before daemons dial FAR, and ends with the row."""

    def __init__(self, world):
        self.control, theirs = multiprocessing.Pipe()
        self.worker = world.context.Process(target=run, args=(theirs, "%s/packets" % world.seed), daemon=True)
        self.worker.start()
        world.stack.callback(self.worker.kill)
        refusal = self.answer("its device")
        if refusal:
            raise Skip("a wire that loses packets: no TUN device: " + refusal)

    def answer(self, to):
        if not self.control.poll(20):
            raise AssertionError("the wire does not answer: " + to)
        return self.control.recv()

    def behave(self, **manner):
        """Changes how the wire behaves. Returns how many packets were lost, doubled and overtaken until now."""
        self.control.send(manner)
        return self.answer("how to behave")

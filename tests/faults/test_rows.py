# SPDX-License-Identifier: BSD-2-Clause
"""The tables agree: each fault has rows, each row a fault, each planted mistake a row. A limit of memory is written where the kernel looks for it; and
what passes a wire of ours changes its ends, in the order that it is told to."""
import contextlib
import os
import struct
import tempfile
import types
import unittest
from unittest import mock

import process
import run
from cgroup import FILES, MemoryGroup
from faults import FAULTS, outcome
from mirror import Mirror
from nodes import SkewedClock
from skip import Skip


class Tables(unittest.TestCase):
    def setUp(self):
        self.rows = {key for key in run.load_rows().ROWS if "/" not in key}

    def test_each_row_injects_a_fault_and_each_fault_has_rows(self):
        self.assertEqual({key for _, keys in FAULTS for key in keys.split()}, self.rows)
        self.assertTrue(all(keys for _, keys in FAULTS))
        self.assertEqual(len({name for name, _ in FAULTS}), len(FAULTS))

    def test_each_planted_mistake_has_a_row(self):
        import rows_planted
        self.assertEqual({base for base, *_ in rows_planted.PLANTED.values()} - self.rows, set())

    def test_what_comes_of_a_fault(self):
        status = {"1": "passed", "2": "skipped", "3": "failed"}
        for rows, expected in (("1", "passed"), ("1 2", "passed"), ("2", "skipped"), ("1 2 3", "failed")):
            self.assertEqual(outcome(rows, status), expected)


class Pauses(unittest.TestCase):
    """What is promised between faults has its time."""

    def judged(self, gap, recovery, most=None, late=0):
        told = {"gap": gap, "recovery": recovery, "violations": []}
        run.judge_pauses(types.SimpleNamespace(gap=most), told, (5, late))
        return [text[:3].rstrip(":") for text in told["violations"]]

    def test_a_row_says_how_long_nothing_may_be_granted(self):
        self.assertEqual((self.judged(1.1, 0, 1), self.judged(1.1, 0, 1, 0.2), self.judged(30, 0)), (["L11"], [], []))

    def test_after_a_fault_grants_come_back_in_every_row(self):
        self.assertEqual((self.judged(9, 5.1), self.judged(9, 5.1, late=0.2), self.judged(9, 5.1, 8)), (["L1"], [], ["L1", "L11"]))


class Again(unittest.TestCase):
    def test_the_command_that_repeats_a_run_or_a_row(self):
        def said(key=None, **options):
            with mock.patch("process.BUILD", os.path.join(process.ROOT, options.pop("build", "build"))):
                return run.again(types.SimpleNamespace(**dict({"seed": 7, "rows": [], "short": False, "planted": False, "program": None}, **options)), key)
        self.assertEqual(said(), "make faults SEED=7")
        self.assertEqual(said("12b", short=True), "make faults-short ROW=12b SEED=7")
        self.assertEqual(said(rows=["12", "13a"]), "make faults ROW='12 13a' SEED=7")
        self.assertEqual(said("6/FREE_ON_RESET", short=True, planted=True), "make faults-planted ROW=FREE_ON_RESET SEED=7")
        self.assertEqual(said("8", build="build/sanitize"), "make faults SANITIZE=1 ROW=8 SEED=7")


class Groups(unittest.TestCase):
    """On a folder that looks like a delegated control group."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.above = folder.name
        self.world = types.SimpleNamespace(stack=contextlib.ExitStack())
        self.daemon = types.SimpleNamespace(index=1, pid=4711, dispose=lambda: None)

    def group(self, *files):
        make = os.mkdir

        def kernel(path, *mode):
            make(path, *mode)
            for file in files:
                with open(os.path.join(path, file), "w"):
                    pass
        with mock.patch.dict(os.environ, FAULTS_CGROUP=self.above), mock.patch("os.mkdir", kernel):
            return MemoryGroup(self.world, self.daemon)

    def said(self, group, file):
        with open(os.path.join(group.folder, file)) as text:
            return text.read()

    def test_the_daemon_is_put_in_and_its_limit_set_and_lifted(self):
        for file, unlimited in FILES.items():
            with self.subTest(file):
                group = self.group("cgroup.procs", file)
                group.take(self.daemon)
                group.limit(123456)
                self.assertEqual((self.said(group, "cgroup.procs"), self.said(group, file)), ("4711", "123456"))
                group.limit(None)
                self.assertEqual(self.said(group, file), unlimited)
                for name in ("cgroup.procs", file):
                    os.unlink(os.path.join(group.folder, name))
                self.world.stack.close()
                self.assertEqual(os.listdir(self.above), [])

    def test_without_a_controller_or_a_group_it_is_skipped(self):
        with self.assertRaisesRegex(Skip, "no memory controller"):
            self.group("cgroup.procs")
        with mock.patch.dict(os.environ, clear=True), self.assertRaisesRegex(Skip, "none is delegated"):
            MemoryGroup(self.world, self.daemon)


class Clocks(unittest.TestCase):
    """As tests/clock_shim.c reads them."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.clock, self.true_us = SkewedClock(folder.name), 10 ** 15
        wall = mock.patch("nodes.wall_us", lambda: self.true_us)
        wall.start()
        self.addCleanup(wall.stop)

    def reads(self):
        with open(self.clock.path, "rb") as told:
            offset, _, ppm, since = struct.unpack("qqqq", told.read(32))
        return offset + (self.true_us - since) // 1000 * ppm // 1000

    def test_another_rate_is_no_step(self):
        self.clock.skew(0, 8000)
        for ppm, ahead_us in ((-8000, 8000), (4000, 0), (-1000, 4000), (0, 3000)):
            self.true_us += 10 ** 6
            before = self.reads()
            self.clock.slew(ppm)
            self.assertEqual((before, self.reads()), (ahead_us, ahead_us))

    def test_a_step_is_from_the_true_clock(self):
        self.clock.skew(0, 8000)
        self.true_us += 10 ** 6
        self.clock.skew(2)
        self.assertEqual(self.reads(), 2 * 10 ** 6)


class Wires(unittest.TestCase):
    def packets(self, count=1):
        return [b"\x45" + bytes(11) + b"near" + b"far." + bytes([i]) for i in range(count)]

    def passed(self, mirror, packets, seconds=10):
        for packet in packets:
            mirror.take(packet, 0)
        return list(mirror.due(seconds))

    def test_a_sound_one_turns_each_packet_round_and_keeps_their_order(self):
        mirror = Mirror(1)
        self.assertEqual(self.passed(mirror, self.packets(9)), [packet[:12] + b"far.near" + packet[20:] for packet in self.packets(9)])
        self.assertEqual(sum(mirror.count.values()), 0)
        self.assertEqual(self.passed(mirror, [b"\x60" + bytes(39)]), [])

    def test_others_lose_double_and_shuffle(self):
        mirror = Mirror(1)
        for manner, expected in (({"loss": 1}, 0), ({"loss": 0, "double": 1}, 40), ({"double": 0, "delay": (0, 1)}, 20)):
            mirror.manner.update(manner)
            self.assertEqual(len(self.passed(mirror, self.packets(20))), expected)
        self.assertEqual((mirror.count["lost"], mirror.count["doubled"]), (20, 20))
        self.assertGreater(mirror.count["overtaken"], 0)
        self.assertEqual(self.passed(mirror, self.packets(), -1), [])
        self.assertGreater(mirror.patience(-1), 0)

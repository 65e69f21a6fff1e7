# SPDX-License-Identifier: BSD-2-Clause
"""Tests of the matrix itself: its tables, its bounds on pauses, the command that repeats a row, control groups, clocks, and the wire that loses packets."""
import contextlib
import os
import struct
import tempfile
import types
import unittest
from unittest import mock

import marker
import process
import rows
import run
from cgroup import FILES, MemoryGroup
from packets import Shuffler
from process import Skip
from redis_server import Clock


class Tables(unittest.TestCase):
    def setUp(self):
        self.rows = {key for key in rows.ROWS if "/" not in key}

    def test_each_row_injects_a_fault_and_each_fault_has_its_rows_in_order(self):
        faults = rows.by_fault()
        self.assertEqual({key for keys in faults.values() for key in keys}, self.rows)
        self.assertEqual(faults["Redis killed with -9, blank at its return"], ["8", "8x", "10"])

    def test_each_planted_mistake_has_a_row(self):
        self.assertEqual({base for base, *_ in run.PLANTED.values()} - self.rows, set())

    def test_the_outcome_of_a_fault_follows_from_its_rows(self):
        status = {"1": "passed", "2": "skipped", "3": "failed"}
        for keys, expected in (("1", "passed"), ("12", "passed"), ("2", "skipped"), ("123", "failed")):
            self.assertEqual(rows.outcome(keys, status), expected)


class Pauses(unittest.TestCase):
    """The bounds on recoveries and on times without a grant."""

    def judged(self, gap, recovery, most=None, late=0, idle=0, prompt=None):
        told = {"gap": gap, "recovery": recovery, "idle": idle, "violations": []}
        run.judge_pauses(types.SimpleNamespace(gap=most, prompt=prompt), told, (5, late))
        return [text[:3].rstrip(":") for text in told["violations"]]

    def test_a_row_bounds_the_time_without_a_grant(self):
        self.assertEqual((self.judged(1.1, 0, 1), self.judged(1.1, 0, 1, 0.2), self.judged(30, 0)), (["L11"], [], []))

    def test_a_row_bounds_the_time_for_which_somebody_waits_for_a_free_name(self):
        self.assertEqual((self.judged(0, 0, idle=2, prompt=1), self.judged(0, 0, late=1.5, idle=2, prompt=1), self.judged(0, 0, idle=9)), (["L6"], [], []))

    def test_every_row_bounds_the_recovery_from_a_fault(self):
        self.assertEqual((self.judged(9, 5.1), self.judged(9, 5.1, late=0.2), self.judged(9, 5.1, 8)), (["L1"], [], ["L1", "L11"]))


class Marked(unittest.TestCase):
    """Whether a node without a marker took a lock."""

    def took(self, before, after):
        return marker.holds_in({"lock:a": after} if after else {}) - marker.holds_in({"lock:a": before} if before else {})

    def test_what_takes_a_lock(self):
        for before, after in ((None, "v"), ("v", "w"), (None, "R 09,v"), ("R 09,v", "R 09,v 10,w"), ("R 09,v", "R 11,v")):
            self.assertTrue(self.took(before, after), (before, after))

    def test_what_frees_or_breaks_one_takes_none(self):
        for before, after in (("v", None), ("v", "v"), ("v", "!v"), ("R 09,v 10,w", "R 10,w"), ("R 09,v 10,w", "!R 09,v"), ("R 09,v", None)):
            self.assertFalse(self.took(before, after), (before, after))


class Again(unittest.TestCase):
    def test_the_command_that_repeats_a_run_or_a_row(self):
        def said(key=None, **options):
            with mock.patch("process.BUILD", os.path.join(process.ROOT, options.pop("build", "build"))):
                return run.again(types.SimpleNamespace(**dict({"seed": 7, "rows": [], "short": False, "patient": False, "planted": False, "program": None}, **options)), key)
        self.assertEqual(said(), "make faults SEED=7")
        self.assertEqual(said("12b", short=True), "make faults-short ROW=12b SEED=7")
        self.assertEqual(said(short=True, patient=True), "make faults-short SEED=7 FAULTS_ARGS=--patient")
        self.assertEqual(said(rows=["12", "13a"]), "make faults ROW='12 13a' SEED=7")
        self.assertEqual(said("6/FREE_ON_RESET", short=True, planted=True), "make faults-planted ROW=FREE_ON_RESET SEED=7")
        self.assertEqual(said("8", build="build/sanitize"), "make faults SANITIZE=1 ROW=8 SEED=7")


class Groups(unittest.TestCase):
    """A control group in a folder that looks like a delegated one."""

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

    def test_the_daemon_joins_the_group_and_its_limit_is_set_and_lifted(self):
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

    def test_a_row_without_a_controller_or_a_group_is_skipped(self):
        with self.assertRaisesRegex(Skip, "no memory controller"):
            self.group("cgroup.procs")
        with mock.patch.dict(os.environ, clear=True), self.assertRaisesRegex(Skip, "names no group"):
            MemoryGroup(self.world, self.daemon)


class Clocks(unittest.TestCase):
    """Clocks as tests/clock_shim.c reads them."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.clock, self.true_us = Clock(folder.name), 10 ** 15
        wall = mock.patch("redis_server.wall_us", lambda: self.true_us)
        wall.start()
        self.addCleanup(wall.stop)

    def reads(self):
        with open(self.clock.path, "rb") as told:
            offset, _, ppm, since = struct.unpack("qqqq", told.read(32))
        return offset + (self.true_us - since) // 1000 * ppm // 1000

    def test_a_new_rate_causes_no_step(self):
        self.clock.set(0, 8000)
        for ppm, ahead_us in ((-8000, 8000), (4000, 0), (-1000, 4000), (0, 3000)):
            self.true_us += 10 ** 6
            before = self.reads()
            self.clock.set_rate(ppm)
            self.assertEqual((before, self.reads()), (ahead_us, ahead_us))

    def test_a_clock_is_set_from_the_true_one(self):
        self.clock.set(0, 8000)
        self.true_us += 10 ** 6
        self.clock.set(2)
        self.assertEqual(self.reads(), 2 * 10 ** 6)


class Wires(unittest.TestCase):
    def packets(self, count=1):
        return [b"\x45" + bytes(11) + b"near" + b"far." + bytes([i]) for i in range(count)]

    def passed(self, shuffler, packets, seconds=10):
        for packet in packets:
            shuffler.take(packet, 0)
        return list(shuffler.due(seconds))

    def test_a_sound_wire_reverses_each_packet_and_keeps_their_order(self):
        shuffler = Shuffler(1)
        self.assertEqual(self.passed(shuffler, self.packets(9)), [packet[:12] + b"far.near" + packet[20:] for packet in self.packets(9)])
        self.assertEqual(sum(shuffler.count.values()), 0)
        self.assertEqual(self.passed(shuffler, [b"\x60" + bytes(39)]), [])

    def test_a_lossy_wire_loses_doubles_and_reorders(self):
        shuffler = Shuffler(1)
        for manner, expected in (({"loss": 1}, 0), ({"loss": 0, "double": 1}, 40), ({"double": 0, "delay": (0, 1)}, 20)):
            shuffler.manner.update(manner)
            self.assertEqual(len(self.passed(shuffler, self.packets(20))), expected)
        self.assertEqual((shuffler.count["lost"], shuffler.count["doubled"]), (20, 20))
        self.assertGreater(shuffler.count["overtaken"], 0)
        self.assertEqual(self.passed(shuffler, self.packets(), -1), [])
        self.assertGreater(shuffler.patience(-1), 0)

# SPDX-License-Identifier: BSD-2-Clause
"""tests/func/run.py: which failed tests it runs again, which it excuses, and which it never excuses."""
import os
import shutil
import subprocess
import sys
import unittest

from process import ROOT, sanitized, temp_folder

# A test module for run.py. The plan of a test says how each of its runs ends.
TRIAL = '''
import os
import unittest
from harness import Violation, safety

def turn(name, plan):
    path = os.path.join(os.path.dirname(__file__), name + ".runs")
    with open(path, "a+") as runs:
        runs.write(".")
        done = runs.tell()
    return plan[min(done, len(plan)) - 1]

class Trial(unittest.TestCase):
    def play(self, *plan):
        what = turn(self.id(), plan)
        if what == "unsafe":
            with safety():
                self.fail("two at once")
        elif what == "exits":
            os._exit(3)
        elif what != "passes":
            self.fail(what)
'''
LATE = "it came too late"


@unittest.skipIf(sanitized(), "no daemon takes part")
class Verdict(unittest.TestCase):
    def run_of(self, *plans, above=""):
        """Runs run.py over a class with one test for each plan. Returns (status, output)."""
        folder = temp_folder()
        self.addCleanup(shutil.rmtree, folder)
        with open(os.path.join(folder, "trial.py"), "w") as out:
            out.write(TRIAL + above)
            for i, plan in enumerate(plans):
                out.write("    def test_%d(self):\n        self.play(*%r)\n" % (i, plan))
        done = subprocess.run([sys.executable, "-B", os.path.join(ROOT, "tests/func/run.py"), "trial"], env=dict(os.environ, PYTHONPATH=folder), timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout

    def assert_ends(self, found, status, last):
        self.assertEqual((found[0], found[1].splitlines()[-1]), (status, last), found[1])

    def assert_failed_at_once(self, found):
        self.assert_ends(found, 1, "0 passed, 1 failed")
        self.assertNotIn("IN COMPANY", found[1])

    def test_a_test_that_always_fails_has_failed(self):
        found = self.run_of([LATE])
        self.assert_ends(found, 1, "0 passed, 1 failed")
        self.assertIn("FAILED trial.Trial.test_0\nin company, and alone as well", found[1])
        self.assertNotIn("unsteady:", found[1])

    def test_a_test_that_fails_every_second_or_third_time_has_failed(self):
        for plan in [LATE, "passes", LATE, "passes"], [LATE, "passes", "passes", LATE]:
            self.assert_ends(self.run_of(plan), 1, "0 passed, 1 failed")

    def test_a_test_that_fails_once_is_unsteady_and_reported(self):
        status, out = self.run_of([LATE, "passes", "passes", "passes", LATE])
        self.assert_ends((status, out), 0, "1 passed, 0 failed")
        self.assertRegex(out, "(?s)" + LATE + ".*\nunsteady: trial.Trial.test_0 failed in company, passed alone 3 of 3\n.*\n1 unsteady, of at most 3\n")

    def test_three_are_excused_and_four_are_not(self):
        once = [LATE, "passes"]
        status, out = self.run_of(once, once, once, ["passes"])
        self.assert_ends((status, out), 0, "4 passed, 0 failed")
        self.assertIn("\n3 unsteady, ", out)
        self.assert_ends(self.run_of(once, once, once, once, ["passes"]), 1, "1 passed, 4 failed")

    def test_a_failure_that_no_delay_explains_counts_at_once(self):
        for what in ("==7==ERROR: AddressSanitizer: heap-use-after-free on address", "==7==ERROR: LeakSanitizer: detected memory leaks",
                     "a.c:3:4: runtime error: signed integer overflow", "redlockd: lock.c:7: f: Assertion `x' failed.", "the daemon died: status -11",
                     "the daemon ended with status 1", "--- log of redlockd /tmp/x (ended with -6)", "unsafe"):
            with self.subTest(what):
                self.assert_failed_at_once(self.run_of([what, "passes"]))

    def test_a_process_that_ends_counts_at_once(self):
        self.assert_failed_at_once(self.run_of(["exits", "passes"]))

    def test_a_class_that_cannot_begin_counts_at_once(self):
        found = self.run_of(["passes"], above="    @classmethod\n    def setUpClass(cls):\n        cls().fail(turn('class', [%r, 'passes']))\n" % LATE)
        self.assert_ends(found, 1, "0 passed, 2 failed")
        self.assertNotIn("IN COMPANY", found[1])

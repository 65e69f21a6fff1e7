# SPDX-License-Identifier: BSD-2-Clause
"""tests/func/run.py: what it counts as a failure."""
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

def turn(name, plan):
    path = os.path.join(os.path.dirname(__file__), name + ".runs")
    with open(path, "a+") as runs:
        runs.write(".")
        done = runs.tell()
    return plan[min(done, len(plan)) - 1]

class Trial(unittest.TestCase):
    def play(self, *plan):
        what = turn(self.id(), plan)
        if what == "exits":
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

    def test_a_test_that_fails_once_has_failed(self):
        """No failure is excused by a later run."""
        found = self.run_of([LATE, "passes"], ["passes"])
        self.assert_ends(found, 1, "1 passed, 1 failed")
        self.assertIn("FAILED trial.Trial.test_0\n", found[1])
        self.assertIn(LATE, found[1])

    def test_a_process_that_ends_fails_the_tests_that_it_had(self):
        self.assert_ends(self.run_of(["exits"], ["passes"]), 1, "0 passed, 2 failed")

    def test_a_class_that_cannot_begin_counts_as_a_failure(self):
        found = self.run_of(["passes"], above="    @classmethod\n    def setUpClass(cls):\n        cls().fail(%r)\n" % LATE)
        self.assert_ends(found, 1, "0 passed, 2 failed")

# SPDX-License-Identifier: BSD-2-Clause
"""Runs test cases as the goals of make expect it: what was skipped is named, and the last line is "N passed, N failed"."""
import sys
import unittest


def run(kinds):
    """Returns the exit status. A class that is skipped as a whole counts as no test."""
    loader = unittest.defaultTestLoader
    suite = unittest.TestSuite(loader.loadTestsFromTestCase(kind) for kind in kinds)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2 if "-v" in sys.argv else 0).run(suite)
    bad = len(result.failures) + len(result.errors)
    for test, why in result.skipped:
        print("skipped: %s: %s" % (test.id(), why))
    ran = result.testsRun - sum(not test.id().startswith("setUpClass") for test, _ in result.skipped)
    print("%d passed, %d failed" % (max(0, ran - bad), bad))
    return 1 if bad else 0

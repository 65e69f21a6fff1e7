#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Load and limits of a real daemon: python3 tests/load/run.py [--short] [--list] [--seed N] [case …]

The cases run one after the other, and each prints one line of figures. The seed decides for how long clients think; without --seed each run draws another one.
A case that this machine cannot play is skipped. Short cases run beside other suites, so their bounds are loose. No case runs twice.
Status 1 when a case failed. Last line: "N passed, N failed".
"""
import argparse
import os
import random
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "lib")]

import cases  # the path stands above
import rig
from process import Skip, sanitized


def play(name, case):
    """Plays one case. Returns whether it has passed; None: skipped."""
    begun = time.monotonic()
    try:
        said, passed = case(), True
    except Skip as skip:
        said, passed = "skipped: %s" % skip, None
    except Exception:  # pylint: disable=broad-except
        said, passed = "FAILED\n" + traceback.format_exc(), False
    print("%-16s %5.1f s  %s" % (name, time.monotonic() - begun, said), flush=True)
    return passed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1, 10 ** 9))
    parser.add_argument("case", nargs="*")
    options = parser.parse_args()
    known = cases.SHORT if options.short else cases.FULL
    unknown = [name for name in options.case if name not in known]
    if unknown or options.list:
        print("\n".join(known))
        return 2 if unknown else 0
    if sanitized():
        print("the figures of an instrumented daemon would mean nothing\n0 passed, 0 failed")
        return 0
    rig.seed = options.seed
    print("seed %d; again: make load%s%s SEED=%d" % (
        options.seed, "-short" if options.short else "", " CASE='%s'" % " ".join(options.case) if options.case else "", options.seed), flush=True)
    results = [play(name, known[name]) for name in options.case or known]
    failed = sum(one not in (True, None) for one in results)
    print("%d passed, %d failed" % (results.count(True), failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

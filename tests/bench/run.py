#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares the speed of redlockd with that of others: python3 tests/bench/run.py [--short | --full] [--json FILE] [scenario …]

Every scenario runs its sides in turn and compares the intervals that follow each other, since the speed of a machine changes with what else it does: only
ratios mean something elsewhere. A missed goal is reported, and is no failure. --short: each scenario for a moment, to see that it works. --full: longer, and
what a pair costs as sessions, names and waiters grow. Status 1 when a scenario failed. Last line: "N passed, N failed".
"""
import argparse
import json
import os
import platform
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "lib")]

from process import Skip, sanitized  # the path stands above
from scenarios import SCENARIOS, Run


def met(figure, goal):
    if figure is None or goal is None:
        return ""
    return "met" if (figure >= goal[1] if goal[0] == ">=" else figure <= goal[1]) else "missed"


def show(row):
    what, figure, goal, note = row
    print("%-72s %10s  %-9s %-6s  %s" % (
        what, "-" if figure is None else "%.3g" % figure, "%s %g" % goal if goal else "", met(figure, goal), note), flush=True)


def play(name, run):
    """Runs a scenario, and returns its rows. None: it failed."""
    try:
        rows = SCENARIOS[name](run)
    except Skip as skip:
        return [("%s: skipped" % name, None, None, str(skip))]
    except Exception:  # pylint: disable=broad-except
        print("FAILED: %s\n%s" % (name, traceback.format_exc()), flush=True)
        return None
    if any(figure is not None and figure <= 0 for _, figure, _, _ in rows):
        print("FAILED: %s: a figure is not above 0: %s" % (name, rows), flush=True)
        return None
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("scenario", nargs="*")
    options = parser.parse_args()
    unknown = [name for name in options.scenario if name not in SCENARIOS]
    if unknown:
        print("unknown: %s. There are: %s" % (" ".join(unknown), " ".join(SCENARIOS)))
        return 2
    if sanitized():
        print("the figures of an instrumented daemon would mean nothing\n0 passed, 0 failed")
        return 0
    run = Run(0.1, 1, False) if options.short else Run(2.0, 9, True) if options.full else Run(0.6, 5, True)
    print("%-72s %10s  %-9s %-6s" % ("on %d processors, %s %s" % (os.cpu_count(), platform.system(), platform.machine()), "figure", "goal", ""), flush=True)
    rows, failed = [], 0
    chosen = options.scenario or [name for name in SCENARIOS if name != "curves" or options.full]
    for name in chosen:
        told = play(name, run)
        failed += told is None
        for row in told or []:
            show(row)
            rows.append(dict(zip(("what", "figure", "goal", "note"), row), scenario=name))
    if options.json:
        with open(options.json, "w") as out:
            json.dump({"processors": os.cpu_count(), "rows": rows}, out, indent=1)
    print("%d passed, %d failed" % (len(chosen) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

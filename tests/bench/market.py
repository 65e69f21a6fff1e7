#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The market of tests/bench/market on a real Redis: python3 tests/bench/market.py [--seconds S] [--way WAY …] [--actors S+B …]

Sellers list items and buyers buy them, in five ways: with WATCH and no lock; with one lock for the market, or one for each item, through redlockd or by
SET NX PX. Prints what was listed and bought, how often a purchase was begun anew, and how long one took in the mean. After each cell money and goods must add
up, or the status is 1. Each cell has a Redis of its own, which keeps the data and the locks. Last line: "N passed, N failed".
"""
import argparse
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "lib")]

from process import BUILD, die_with_parent  # the path stands above
from sides import Side

WAYS = {  # how others are kept out, and what the table calls it
    "watch": ("watch", "market", "WATCH, no lock"),
    "direct": ("direct", "market", "one lock, SET NX PX"),
    "redlockd": ("redlockd", "market", "one lock, redlockd"),
    "direct-item": ("direct", "item", "a lock per item, SET NX PX"),
    "redlockd-item": ("redlockd", "item", "a lock per item, redlockd"),
}
BROKEN = ("none", "market", "nothing at all")  # --way none: the sums must be wrong
ACTORS = ("1+1", "5+1", "5+5")
GOALS = (("one lock", "redlockd", "direct", 1.4), ("a lock per item", "redlockd-item", "direct-item", 0.95))


def run_cell(way, lock, actors, seconds):
    """Returns the figures of one market, and whether it adds up."""
    sellers, buyers = actors.split("+")
    with Side() as side:
        path, = side.redis(1)
        argv = [os.path.join(BUILD, "market"), "redis=" + path, "way=" + way, "lock=" + lock, "sellers=" + sellers, "buyers=" + buyers,
                "ms=%d" % (seconds * 1000)]
        if way == "redlockd":
            argv.append("redlockd=" + side.redlockd())
        done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, timeout=seconds + 60, preexec_fn=die_with_parent, check=False)
    words = done.stdout.split()
    return {key: int(value) for key, _, value in (word.partition("=") for word in words[1:])}, done.returncode == 0 and words[:1] == ["figures"]


def show(title, actors, told, adds_up):
    print("| %-26s | %-4s | %8d | %8d | %8d | %7.2f ms |%s" % (
        title, actors, told.get("listed", 0), told.get("bought", 0), told.get("retries", 0), told.get("wait_us", 0) / 1000,
        "" if adds_up else " does not add up"), flush=True)


def compare(bought):
    """bought: by way and actors, for each second."""
    for what, ours, theirs, goal in GOALS:
        for actors in ACTORS:
            if bought.get((theirs, actors)) and (ours, actors) in bought:
                figure = bought[ours, actors] / bought[theirs, actors]
                wanted = " (goal %g: %s)" % (goal, "met" if figure >= goal else "missed") if actors == "5+5" else ""
                print("%s, %s, bought/s through redlockd, x SET NX PX: %.2f%s" % (what, actors, figure, wanted))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--way", nargs="*", choices=[*WAYS, "none"], default=list(WAYS))
    parser.add_argument("--actors", nargs="*", default=list(ACTORS))
    options = parser.parse_args()
    bought, failed = {}, 0
    print("| %-26s | %-4s | %8s | %8s | %8s | %10s |" % ("%g s each, sellers + buyers" % options.seconds, "", "listed", "bought", "retries", "mean wait"))
    print("|---|---|---|---|---|---|")
    for name in options.way:
        way, lock, title = WAYS.get(name, BROKEN)
        for actors in options.actors:
            told, adds_up = run_cell(way, lock, actors, options.seconds)
            show(title, actors, told, adds_up)
            failed += not adds_up
            bought[name, actors] = told.get("bought", 0) / max(1, told.get("us", 0)) * 1e6
    compare(bought)
    cells = len(options.way) * len(options.actors)
    print("%d passed, %d failed" % (cells - failed, failed), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

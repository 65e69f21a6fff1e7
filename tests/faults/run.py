#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The fault matrix on real daemons and real Redis servers: python3 tests/faults/run.py [--seed N] [--jobs N] [--short] [--patient] [--list] [row …]

A row is named by its number (12) or with its variant (12b). Its schedule is a function of the seed: the same seed injects the same faults in the same order,
but not at the same moments. Without --seed each run draws another seed. It prints the command that repeats it. Each row runs in a process of its own, and
everything that it starts ends with it. --keep leaves the histories of rows that failed. At the end the run prints the table of all rows; which rows inject
which fault, if all were run; and which rows failed or were skipped. Status 1 when a row failed. Last line: "N passed, N failed".
"""
import argparse
import glob
import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "lib")]
import process  # the paths stand above
import rows
from crew import crew
from process import Skip
from world import World

for module in sorted(glob.glob(os.path.join(HERE, "rows_*.py"))):
    importlib.import_module(os.path.basename(module)[:-3])
from rows_planted import PLANTED

LIMIT = 240  # seconds for one row
HEADER = "%-4s %-24s %7s %10s %12s %9s  %s" % ("row", "fault", "grants", "violations", "longest gap", "recovery", "status")


# --- one row, in its own process -------------------------------------------------------------------------------------

def own_network():
    """Gives this process a network and mounts of its own, which end with it."""
    if process.LIBC.unshare(0x40000000 | 0x00020000) != 0:
        raise Skip("this host gives no network namespace")
    process.call("mount", "--make-rprivate", "/")
    if process.call("ip", "link", "set", "lo", "up")[0] != 0:
        raise Skip("no ip(8)")


def find_row(key):
    if "/" in key:
        rows.planted([key.partition("/")[2]], PLANTED, process.BUILD)
    return rows.ROWS[key]


TRIES = 4  # schedules in which a row looks for a planted mistake: not each of them has the rare moment that shows it


def play(key, given, folder):
    """Runs one row, and returns what came of it. While a violation that is due is not seen the row tries further schedules, which are functions of the seed,
    too."""
    for turn in range(TRIES if "/" in key or find_row(key).expect else 1):
        own = os.path.join(folder, "try-%d" % turn)
        os.mkdir(own)
        result = play_once(key, "%s/%d" % (given.seed, turn) if turn else given.seed, given, own)
        if result["status"] != "failed" or not any(text.startswith("blind") for text in result["violations"]):
            break
    return result


def play_once(key, seed, given, folder):
    row = find_row(key)
    result = {"row": key, "name": row.name, "grants": 0, "violations": [], "gap": None, "recovery": None, "status": "failed", "notes": []}
    world = None
    try:
        if row.net:
            own_network()
        rng = random.Random("%s/%s" % (key, seed))
        options = dict(row.options, patience=process.LATE if given.patient else 0.0, **({"program": given.program} if given.program else {}))
        least = options.pop("seconds", None)  # for a row that needs so much time in the short selection as well
        seconds = least or rng.uniform(6.5, 8.5) if given.short else max(least or 0, rng.uniform(20, 40))
        options.setdefault("nodes", rng.choice((3, 3, 5)))
        options.setdefault("daemons", rng.choice((2, 3)))
        world = World(folder, "%s/%s" % (key, seed), seconds, **options)
        row.function(world.start())
        verdict, recovery = world.finish(row.kind, row.orphans)
        result.update(grants=len(verdict.grants), gap=verdict.longest_gap(), recovery=recovery, violations=world.violations, notes=world.notes)
        result["idle"] = verdict.longest_idle()
        judge_pauses(row, result, (1.02 * world.max_lease_ms / 1000 + world.lease_ms / 1000 + 1, 5 * world.worst_gap))
        judge(row, result)
    except Skip as skip:
        result.update(status="skipped", notes=[str(skip)])
    except Exception:  # pylint: disable=broad-except
        result["violations"] = (world.violations if world else []) + ["the row itself: " + traceback.format_exc()]
    finally:
        if world:
            result["logs"] = [] if result["status"] != "failed" else [daemon.log()[-3000:] for daemon in world.daemons]
            world.close()
    return result


def judge_pauses(row, result, most):
    """L1: after a fault ends a grant follows, unless another fault begins. L11: grants go on between faults, and beside those that leave a quorum.
    L6: a free name is granted to who waits for it.
    most: (the most seconds for a recovery, the seconds by which this machine was late)."""
    recovery, late = most
    if result["recovery"] > recovery + late:
        result["violations"] = result["violations"] + ["L1: no grant for %.2f s after a fault, %.2f s at most" % (result["recovery"], recovery + late)]
    if row.gap and result["gap"] > row.gap + late:
        result["violations"] = result["violations"] + ["L11: no grant for %.2f s, %.2f s at most in this row" % (result["gap"], row.gap + late)]
    if row.prompt and result["idle"] > row.prompt + late:
        told = "L6: somebody waited for a free name for %.2f s, %.2f s at most in this row" % (result["idle"], row.prompt + late)
        result["violations"] = result["violations"] + [told]


def judge(row, result):
    """A row has passed without a violation and with enough grants to judge, or with a violation if it expects one."""
    rules = {text.split(":")[0] for text in result["violations"]}
    if row.expect:
        seen = rules & set(row.expect)
        result["status"] = "passed" if seen else "failed"
        note = "violation of %s, as expected" % ", ".join(sorted(seen)) if seen else "NO violation of %s: the checker does not see it" % " or ".join(row.expect)
        result["notes"] = result["notes"] + [note]
        result["violations"] = result["violations"] if seen else result["violations"] + ["blind: expected one of %s" % ", ".join(row.expect)]
    elif not result["violations"] and result["grants"] < 30:
        result["violations"] = ["too few grants to judge"]
    else:
        result["status"] = "failed" if result["violations"] else "passed"


# --- the parent ------------------------------------------------------------------------------------------------------

class Play:
    def __init__(self, key, options):
        self.key, self.options, self.said = key, options, b""
        self.folder, self.stderr, self.process, self.begin = None, None, None, 0

    def start(self):
        options = self.options
        self.folder = tempfile.mkdtemp(prefix="redlockd-faults-", dir="/tmp")
        self.stderr = tempfile.TemporaryFile()
        argv = [sys.executable, "-B", os.path.abspath(__file__), "--work", self.folder, "--seed", str(options.seed), self.key]
        argv += ["--short"] * options.short + ["--patient"] * options.patient
        argv += ["--program", os.path.abspath(options.program)] if options.program else []
        self.begin = time.monotonic()
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=self.stderr, stdin=subprocess.DEVNULL, start_new_session=True,
                                        env=dict(os.environ, REDLOCKD_TEST_TMP=self.folder, PYTHONPATH=os.pathsep.join(sys.path[:2])))

    def result(self):
        status = self.process.wait()
        self.process.stdout.close()
        try:
            result = json.loads(self.said.splitlines()[-1])
        except (ValueError, IndexError):
            self.stderr.seek(0)
            text = self.stderr.read().decode("utf-8", "replace")[-3000:]
            result = {"row": self.key, "name": "", "grants": 0, "gap": None, "recovery": None, "status": "failed", "notes": [],
                      "violations": ["the row's process ended with status %s\n%s" % (status, text)]}
        result["seconds"] = time.monotonic() - self.begin
        if result["status"] == "failed" and self.options.keep:
            result["notes"] = result["notes"] + ["history in " + self.folder]
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
        return result

    def kill(self):
        self.process.kill()
        self.process.wait()
        for _ in range(100):  # its processes end with it, and may still write for a moment
            shutil.rmtree(self.folder, ignore_errors=True)
            if not os.path.exists(self.folder):
                break
            time.sleep(0.05)


def line(result):
    def seconds(value):
        return "-" if value is None else "%.2f s" % value
    return "%-4s %-24s %7d %10d %12s %9s  %s" % (
        result["row"], result["name"][:24], result["grants"], len(result["violations"]), seconds(result["gap"]), seconds(result["recovery"]), result["status"])


def again(options, key=None):
    """The command that repeats the run, or one of its rows."""
    row, _, mistake = (key or " ".join(options.rows)).partition("/")
    row = mistake or row
    build = os.path.relpath(process.BUILD, process.ROOT)
    if options.program:
        words = ["REDLOCKD_BUILD=" + build, "python3 tests/faults/run.py --program", options.program, "--short" if options.short else "",
                 "--seed %d" % options.seed, row]
    else:
        target = "faults-planted" if options.planted else "faults-short" if options.short else "faults"
        where = "SANITIZE=1" if build.endswith("/sanitize") else "O=" + build if build != "build" else ""
        words = ["make", target, where, ("ROW='%s'" if " " in row else "ROW=%s") % row if row else "", "SEED=%d" % options.seed,
                 "FAULTS_ARGS=--patient" if options.patient else ""]
    return " ".join(word for word in words if word)


def show(result, options):
    print(line(result))
    for text in result["notes"]:
        print("       %s" % text)
    if result["status"] == "failed":
        if result["row"] != "-":
            print("       again: " + again(options, result["row"]))
        for text in result["violations"][:8]:
            print("       %s" % text[:1500])
        for log in result.get("logs", []):
            print("       --- a daemon's log\n%s" % log)
    sys.stdout.flush()


def run_all(keys, options):
    """Plays the rows, some at a time. Returns what came of each."""
    results = []
    for play_of, data in crew([Play(key, options) for key in keys], options.jobs, LIMIT):
        play_of.said += data
        if not data:
            results.append(play_of.result())
            show(results[-1], options)
    return results


def check_checker(options):
    """The tests of the checker are the first row: they show that its verdicts can be trusted."""
    tests = unittest.TestResult()
    begin = time.monotonic()
    unittest.defaultTestLoader.loadTestsFromNames(["test_checker", "test_mix", "test_rows"]).run(tests)
    wrong = ["%s\n%s" % (test, text) for test, text in tests.errors + tests.failures]
    result = {"row": "-", "name": "the checker itself", "grants": 0, "gap": None, "recovery": None, "violations": wrong, "notes": [],
              "status": "failed" if wrong or not tests.testsRun else "passed", "seconds": time.monotonic() - begin}
    show(result, options)
    return result


def planted_keys(names):
    """Builds the daemons with these planted mistakes, or with all mistakes of the table. Returns the keys of their rows."""
    keys = rows.planted(names, PLANTED, process.BUILD)
    folder = os.path.relpath(process.BUILD, process.ROOT)
    programs = ["%s/planted/%s" % (folder, key.partition("/")[2]) for key in keys]
    subprocess.run(["make", "--no-print-directory", "-s", "-C", process.ROOT, "O=" + folder, *programs], check=True)
    return keys


def sum_up(results, keys, options, seconds):
    """Prints the table, what became of each fault if all rows were run, and which rows did not pass."""
    by_key = {one["row"]: one for one in results if one["row"] in keys}
    print("\n" + HEADER)
    for key in keys:
        print(line(by_key[key]))
    faults = rows.by_fault()
    if set(keys) >= {key for of_fault in faults.values() for key in of_fault}:
        print("\n%-60s %-18s %s" % ("injected", "rows", "status"))
        for fault, of_fault in faults.items():
            print("%-60s %-18s %s" % (fault, " ".join(of_fault), rows.outcome(of_fault, {key: one["status"] for key, one in by_key.items()})))
    print()
    for one in results:
        if one["status"] != "passed":
            print("%s %s %s%s" % (one["status"], one["row"], one["name"], ": " + one["notes"][0] if one["status"] == "skipped" else ""))
            for text in one["violations"][:3]:
                print("       " + text.split("\n")[0])
            if one["status"] == "failed" and one["row"] != "-":
                print("again: " + again(options, one["row"]))
    print("%d rows, %d skipped, %d grants checked, longest unavailability %.1f s, longest recovery %.1f s, %.0f s" % (
        len(by_key), sum(one["status"] == "skipped" for one in results), sum(one["grants"] for one in results),
        max((one["gap"] or 0 for one in results), default=0), max((one["recovery"] or 0 for one in results), default=0), seconds))


def stop(*_):
    raise SystemExit(130)


def arguments():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1, 10 ** 9), help="default: another one each time")
    options.add_argument("--jobs", "-j", type=int, default=2)
    options.add_argument("--short", action="store_true", help="the selection that is part of every check, with short schedules")
    options.add_argument("--patient", action="store_true", help="bounds in time tell soon from never, as in every check: they are wider by %g s" % process.LATE)
    options.add_argument("--list", action="store_true")
    options.add_argument("--keep", action="store_true")
    options.add_argument("--planted", action="store_true", help="instead: rows with planted mistakes (all, or those named), each of which must be found")
    options.add_argument("--program", help="another daemon, such as build/planted/FREE_ON_RESET: shows what finds its mistake")
    options.add_argument("--work", help=argparse.SUPPRESS)
    options.add_argument("rows", nargs="*")
    return options.parse_args()


def main():
    options = arguments()
    if options.work:
        process.die_with_parent()
        out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        out.write(json.dumps(play(options.rows[0], options, options.work)) + "\n")
        out.flush()
        return 0
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    everything = not options.short or options.rows
    keys = planted_keys(options.rows) if options.planted else [key for key in rows.chosen(options.rows) if everything or rows.ROWS[key].short]
    if options.list:
        for key in keys:
            print("%-4s %-24s %s" % (key, rows.ROWS[key].name, rows.ROWS[key].text))
        return 0
    begin = time.monotonic()
    print("seed %d; again: %s\n%s" % (options.seed, again(options), HEADER), flush=True)
    results = [check_checker(options), *run_all(keys, options)]
    count = {status: sum(one["status"] == status for one in results) for status in ("passed", "failed", "skipped")}
    sum_up(results, keys, options, time.monotonic() - begin)
    print("%d passed, %d failed" % (count["passed"], count["failed"]))
    return 1 if count["failed"] or not count["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())

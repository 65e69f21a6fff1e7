#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the function tests: python3 tests/func/run.py [-v] [-j N] [module | module.Class | module.Class.test] …

Each class runs in a process of its own, -j of them at a time (7: most tests wait). A failure is printed with the logs of the daemons. No test runs twice: one
that fails on a busy machine waits for a time where it should wait for a state. Last line: "N passed, N failed". Status 1 when anything failed.
"""
import argparse
import faulthandler
import glob
import importlib
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "lib")]
from crew import crew  # the path stands above
from harness import FuncTest

UNIT_LIMIT = 240  # seconds for one class


def tests_of(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from tests_of(item)
        else:
            yield item


# --- a worker: runs the tests of one class, and writes one JSON line about each --------------------------------------

class Reporter(unittest.TestResult):
    def __init__(self, out):
        super().__init__()
        self.out, self.begin, self.worst = out, time.monotonic(), None

    def say(self, **row):
        self.out.write(json.dumps(row) + "\n")
        self.out.flush()

    def startTest(self, test):
        super().startTest(test)
        self.begin, self.worst = time.monotonic(), None
        self.say(begin=test.id())

    def note(self, test, err):
        text = "%s\n%s" % (traceback.format_exception_only(*err[:2])[-1].split("\n")[0][:300], self._exc_info_to_string(err, test))
        if hasattr(test, "logs"):
            text += test.logs()
        if not isinstance(test, unittest.TestCase):  # setUpClass, tearDownClass and their cleanups
            self.say(id=test.id(), outcome="failed", seconds=0, text=text)
        else:
            self.worst = (self.worst or "") + text + "\n"

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, err)

    addFailure = addError

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.note(test, err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.say(id=test.id(), outcome="skipped", seconds=0, text=reason)
        self.begin = None

    def stopTest(self, test):
        super().stopTest(test)
        if self.begin is not None or self.worst:
            self.say(id=test.id(), outcome="failed" if self.worst else "passed", seconds=time.monotonic() - (self.begin or time.monotonic()),
                     text=self.worst or "")


def work(names, out):
    faulthandler.dump_traceback_later(UNIT_LIMIT - 5, exit=False)
    suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    reporter = Reporter(out)
    suite.run(reporter)
    for text in FuncTest.figures:
        reporter.say(figure=text)


class Worker:
    """A process that runs these tests: a copy of this one, which has the modules already. What it writes beside its lines goes to the file."""

    def __init__(self, names, stderr):
        read, write = os.pipe()
        self.status, self.used, self.pid = None, 0, os.fork()
        if not self.pid:
            self.be(names, write, stderr.fileno())
        os.close(write)
        self.stdout = open(read, "rb", buffering=0)

    @staticmethod
    def be(names, write, stderr):
        status = 1
        try:
            os.dup2(stderr, 1)
            os.dup2(stderr, 2)
            random.seed()  # or all workers draw the same
            work(names, open(write, "w"))
            status = 0
        except BaseException:  # pylint: disable=broad-except
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def poll(self, options=os.WNOHANG):
        if self.status is None:
            pid, status, used = os.wait4(self.pid, options)
            self.status, self.used = os.waitstatus_to_exitcode(status) if pid else None, used.ru_utime + used.ru_stime
        return self.status

    def wait(self):
        return self.poll(0)

    def kill(self):
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


# --- the parent ------------------------------------------------------------------------------------------------------

class Unit:
    """One class, and the tests of it that are to run."""

    def __init__(self, name, cost):
        self.name, self.names, self.cost = name, [], cost
        self.process, self.pending, self.current, self.buffer, self.begin, self.stderr = None, set(), None, b"", 0, None

    def start(self):
        self.stderr = tempfile.TemporaryFile()
        self.process = Worker(self.names, self.stderr)
        self.begin = time.monotonic()

    def kill(self):
        self.process.kill()
        self.process.wait()


def collect(wanted):
    """The units of these modules or dotted names, or of all modules. The longest come first."""
    names = wanted or sorted(os.path.basename(path)[:-3] for path in glob.glob(os.path.join(HERE, "test_*.py")))
    units = {}
    for name in names:
        importlib.import_module(name.split(".")[0])
    for test in tests_of(unittest.defaultTestLoader.loadTestsFromNames(names)):
        kind = type(test)
        if "_FailedTest" in kind.__name__:
            raise SystemExit("no such test: %s" % test.id())
        key = "%s.%s" % (kind.__module__, kind.__name__)
        unit = units.setdefault(key, Unit(key, getattr(kind, "COST", 1)))
        if test.id() not in unit.names:
            unit.names.append(test.id())
            unit.pending.add(test.id())
    return sorted(units.values(), key=lambda unit: -unit.cost)


class Runner:
    def __init__(self, verbose):
        self.verbose, self.passed, self.failed, self.skipped, self.figures = verbose, 0, [], [], []

    def row(self, unit, row):
        if "figure" in row:
            self.figures.append(row["figure"])
        elif "begin" in row:
            unit.current = row["begin"]
        else:
            unit.pending.discard(row["id"])
            self.outcome(row)

    def outcome(self, row):
        if row["outcome"] == "passed":
            self.passed += 1
        elif row["outcome"] == "skipped":
            self.skipped.append("%s: %s" % (row["id"], row["text"]))
        else:
            self.failed.append("%s: %s" % (row["id"], row["text"].split("\n")[0]))
            print("FAILED %s\n%s" % (row["id"], row["text"]), flush=True)
        if self.verbose:
            print("%-8s%6.2f s  %s" % (row["outcome"], row["seconds"], row["id"]), flush=True)

    def read(self, unit, data):
        """Takes in what the worker has written."""
        *lines, unit.buffer = (unit.buffer + data).split(b"\n")
        for line in lines:
            self.row(unit, json.loads(line))

    def ended(self, unit):
        status = unit.process.wait()
        unit.process.stdout.close()
        unit.stderr.seek(0)
        said = unit.stderr.read().decode("utf-8", "replace")
        for name in sorted(unit.pending):
            why = "the test process ended with status %d%s\n%s" % (status, " in " + unit.current if unit.current else "", said)
            text = why if name in (unit.current, min(unit.pending)) else "not run"
            self.outcome({"id": name, "outcome": "failed", "seconds": 0, "text": text})
        if self.verbose:
            print("%6.2f s of processor time, %6.2f s in all  %s" % (unit.process.used, time.monotonic() - unit.begin, unit.name), flush=True)
        if self.verbose and said.strip() and not unit.pending:
            print(said, file=sys.stderr)

    def run(self, units, jobs):
        for unit, data in crew(units, jobs, UNIT_LIMIT):
            if data:
                self.read(unit, data)
            else:
                self.ended(unit)

    def report(self, seconds):
        for text in self.figures:
            print(text)
        for text in self.skipped:
            print("skipped %s" % text)
        for text in self.failed:
            print("failed %s" % text)
        print("%.0f s" % seconds)
        print("%d passed, %d failed" % (self.passed, len(self.failed)), flush=True)
        return 1 if self.failed or not self.passed else 0


def restore_signals():
    """A shell in the background may ignore these signals, and all processes that the tests start would inherit that."""
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def main():
    restore_signals()
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("-v", action="store_true", help="a line per test")
    options.add_argument("-j", type=int, default=7, help="processes at a time")
    options.add_argument("names", nargs="*")
    given = options.parse_args()
    begin, runner, units = time.monotonic(), Runner(given.v), collect(given.names)
    runner.run(units, given.j)
    return runner.report(time.monotonic() - begin)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs suites one after the other: python3 tests/run.py folder suite … [-- suite … [-- suite …]]

The suites after "--" are a second lane, which runs beside the first one: they compute, at the lowest priority, while those of the first lane wait and measure
time. Behind another "--" stand those of the second lane that run daemons, at the usual priority. When the first lane has ended, two of the second run beside each other. The output of a suite goes to folder/suite.log, and is shown in one piece when
the suite ends. The last line of a suite is "N passed, N failed". A suite without that line, or with a bad status and no failure, counts as one failure. So
does a suite that takes longer than SUITE_SECONDS (1200), which is killed. The bound ends a suite that hangs, and measures nothing: on a slow machine the
compilers take more than ten minutes beside the tests. MAKE is the command that makes a suite. At the end stands what failed, and the sum of all suites. Status 1
when anything failed.
"""
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import time

SUM = re.compile(r"^(\d+) passed, (\d+) failed$", re.MULTILINE)
FAILURE = re.compile(r"^(?:FAILED: |failed |.*:[EF]:).*$", re.MULTILINE)
LIMIT = float(os.environ.get("SUITE_SECONDS", 1200))
LOW = 19  # nice(2)


def processors_used():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Suite:
    def __init__(self, name, folder, low, nice):
        self.name, self.path, self.low, self.nice = name, os.path.join(folder, name + ".log"), low, nice
        self.process, self.begin, self.used, self.passed, self.failed, self.why = None, 0, 0, 0, 1, "did not run"

    def start(self):
        """Starts the suite in a process group of its own, so that all of it can be killed. Priorities count within this session."""
        self.begin = time.monotonic()

        def prepare():
            os.setpgid(0, 0)
            os.nice(self.nice)
        with open(self.path, "w", encoding="utf-8") as log:
            argv = shlex.split(os.environ.get("MAKE", "make")) + ["--no-print-directory", "-s", self.name]
            # close_fds=False leaves the job server of make open.
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=prepare, close_fds=False)

    def kill(self):
        """Sends SIGTERM first, so that tests clean up."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
                self.process.wait(5)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass

    def ended(self):
        """Whether the suite has ended. If so it is judged. What its processes have used is known once the system has been asked for its status."""
        before = processors_used()
        status = self.process.poll()
        self.used = processors_used() - before
        if status is not None:
            self.judge(status, "ended with status %d" % status)
        elif time.monotonic() - self.begin > LIMIT:
            self.kill()
            self.judge(1, "was killed after %.0f s" % LIMIT)
        else:
            return False
        return True

    def said(self):
        with open(self.path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def failures(self):
        """What failed, a line each: what the suite says of it, or else its last lines."""
        return (FAILURE.findall(self.said())[-12:] or self.said().strip().split("\n")[-4:]) + [self.why] * bool(self.why)

    def judge(self, status, how):
        sums = SUM.findall(self.said())
        self.passed, self.failed, self.why = (*map(int, sums[-1]), None) if sums else (0, 0, None)
        if not sums or (status != 0 and self.failed == 0):
            self.failed, self.why = self.failed + 1, "%s and reported no failure: counted as one" % how


def show(suite):
    said = suite.said()
    if said and not said.endswith("\n"):
        said += "\n"
    if suite.why:
        said += "%s %s\n" % (suite.name, suite.why)
    print("== %s\n%s== %s took %.0f s, and %.0f s of processor time" % (suite.name, said, suite.name, time.monotonic() - suite.begin, suite.used), flush=True)


def run(high, low):
    """Runs the lanes beside each other, one suite of each lane at a time; of the low one two at a time when the other has ended."""
    high, low, running = list(high), list(low), []
    try:
        while running or high or low:
            for lane in high, low:
                room = 1 if high or any(not suite.low for suite in running) else 2
                if lane and sum(suite.low == lane[0].low for suite in running) < room:
                    running.append(lane.pop(0))
                    running[-1].start()
            time.sleep(0.05)
            for suite in [suite for suite in running if suite.ended()]:
                running.remove(suite)
                show(suite)
    finally:
        for suite in running:
            suite.kill()


def sum_up(suites):
    failed = sum(suite.failed for suite in suites)
    for suite in suites:
        for text in suite.failures() if suite.failed else []:
            print("%s: %s" % (suite.name, text[:400]))
    print("%d passed, %d failed" % (sum(suite.passed for suite in suites), failed), flush=True)
    return 1 if failed else 0


def stop(*_):
    raise SystemExit(130)


def main():
    folder, *names = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    lanes = " ".join(names).split("--") + ["", ""]
    suites = [Suite(name, folder, lane > 0, LOW if lane == 1 else 0) for lane, part in enumerate(lanes) for name in part.split()]
    run(*([suite for suite in suites if suite.low == low] for low in (False, True)))
    return sum_up(suites)


if __name__ == "__main__":
    sys.exit(main())

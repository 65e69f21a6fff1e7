#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Runs the conformance cases: python3 tests/clients/run.py [-v] [-j N] [--turns] [--adapter NAME …] [--rule RULE …] [--planted [WORD …]] [text …]

Each case has a scripted daemon of its own; -j of them run at a time. A text selects the cases whose names contain it. What an adapter cannot do is skipped by
name. With --planted the adapters of the Python client plant mistakes, one at a time (planted.py), and a case of the rule must fail for each. Last line:
"N passed, N failed".
"""
import argparse
import contextlib
import glob
import io
import json
import os
import queue
import re
import shutil
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "lib")]

from adapter import ADAPTERS, COMMON, RARE, Adapter, usable  # the paths stand above
from authority import Authority
from process import BUILD
from redis_server import Clock
from script import PATIENCE, PLANTED, Mismatch, Script, scratch

SHIM = os.path.join(BUILD, "clock_shim.so")
with open(os.path.join(HERE, "planted.py"), encoding="utf-8") as source:  # which needs the client, so it is not imported
    MISTAKES = re.findall(r'"(R[0-9]+(?:-\w+)?)": ', source.read())
KEYS = {"case", "rule", "needs", "with", "steps"}


def load():
    """All cases, by file and in their order. A case with an unknown key, or a name that another one has, is a mistake."""
    cases = []
    for path in sorted(glob.glob(os.path.join(HERE, "cases", "*.json"))):
        with open(path, encoding="utf-8") as text:
            cases += json.load(text)
    names = [case["case"] for case in cases]
    for case in cases:
        if set(case) - KEYS or names.count(case["case"]) > 1 or set(case.get("needs", ())) - RARE - COMMON:
            raise SystemExit("the case %r has an unknown key or need, or its name twice" % case["case"])
    return cases


class Worker(threading.Thread):
    """Plays cases with one adapter process, which is replaced after a failure and for cases with an environment of their own."""

    def __init__(self, runner):
        super().__init__(daemon=True)
        self.runner, self.adapter, self.name_of, self.plant = runner, None, None, ""

    def run(self):
        while True:
            try:
                name, plant, cases = self.runner.queue.get_nowait()
            except queue.Empty:
                break
            begun, self.plant = time.monotonic(), plant
            if plant:
                self.replace(None)
                outcome, said = self.find(name, cases)
            else:
                outcome, said = self.attempt(name, cases[0])
            self.runner.report(name, plant or cases[0]["rule"], "a planted mistake" if plant else cases[0]["case"], outcome, said, time.monotonic() - begun)
        self.replace(None)

    def find(self, name, cases):
        """One of the cases must fail, and not because a busy machine lets the adapter connect late."""
        for case in cases:
            outcome, said = self.attempt(name, case)
            if outcome == "failed" and ("nobody connects" not in said or cases[0]["rule"] == "R14"):
                return "passed", "%s: %s" % (case["case"], said)
        return "failed", "no case finds it"

    def attempt(self, name, case):
        try:
            outcome, said = self.play(name, case)
        except Exception as error:  # of the runner itself, or of a client that has ended
            outcome, said = "broken", "%s: %s" % (type(error).__name__, error)
        if outcome in ("failed", "broken"):
            self.replace(None)
        return outcome, said

    def replace(self, name, env=None):
        if self.adapter:
            self.adapter.close()
        self.adapter, self.name_of = (Adapter(name, {"REDLOCK_PLANT": self.plant, **(env or {})}) if name else None), name

    def warm(self, folder):
        """The first lock of a process takes long where code is compiled when it runs first. That is no time which a case looks at."""
        with contextlib.suppress(Mismatch):
            Script(self.adapter, {"steps": [["connect"], ["hold", "a", "x"]]}, folder).run()
        self.adapter.reset()

    def play(self, name, case):
        """Returns the outcome, and what there is to say about it."""
        folder, own = scratch(), case.get("with", {})
        try:
            script = Script(None, dict(case, **{"with": dict(own)}), folder, self.runner.certificate() if own.get("listen") == "tls" else None,
                            PLANTED if self.plant else PATIENCE)
            script.listen()
            script.listener.close()
            if "clock" in own:
                if not os.path.exists(SHIM):
                    return "skipped", "there is no " + SHIM
                script.options["clock"] = Clock(folder)
            if "env" in own or "clock" in own:
                self.replace(name, self.environment(script, own, folder))
            elif self.name_of != name or not self.adapter:
                self.replace(name)
                self.warm(folder)
            lacks = set(case.get("needs", ())) - self.adapter.can
            if lacks:
                return "skipped", "%s has no %s" % (name, ", ".join(sorted(lacks)))
            script.adapter = self.adapter
            script.run()
            self.runner.worst = max(self.runner.worst, script.worst)
        except Mismatch as wrong:
            return "failed", str(wrong)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if "env" in own or "clock" in own or not self.adapter.reset():
            self.replace(None)
        return "passed", ""

    def environment(self, script, own, folder):
        env = {key: script.fill(value.replace("${folder}", folder)) for key, value in own.get("env", {}).items()}
        env = {key: value.replace("${ca}", self.runner.authority.cert) if "${ca}" in value else value for key, value in env.items()}
        for name, content in own.get("files", {}).items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
                out.write(content)
        return {**env, **(script.options["clock"].env() if "clock" in own else {})}


class Runner:
    def __init__(self, verbose):
        self.verbose = verbose
        self.queue, self.lock = queue.SimpleQueue(), threading.Lock()
        self.passed, self.failed, self.skipped, self.worst = 0, [], [], 0.0
        self.authority, self.pair = None, None

    def certificate(self):
        """A certificate for cases inside TLS, and its authority, made when the first one needs it."""
        with self.lock:
            if not self.authority:
                self.authority = Authority()
                self.pair = self.authority.sign("/CN=localhost")
        return self.pair

    def report(self, name, rule, what, outcome, said, seconds):
        with self.lock:
            if outcome == "passed":
                self.passed += 1
            elif outcome == "skipped":
                self.skipped.append("%s: %s: %s" % (name, what, said))
            else:
                self.failed.append(what)
                print("FAILED %s, %s: %s\n    %s" % (name, rule, what, said), flush=True)
            if self.verbose:
                print("%-8s%6.2f s  %-10s %-4s %s%s" % (outcome, seconds, name, rule, what, ": " + said if said and outcome == "passed" else ""), flush=True)

    def run(self, jobs_to_do, jobs):
        """The longest are begun first."""
        for job in sorted(jobs_to_do, key=lambda job: -max(map(cost, job[2]))):
            self.queue.put(job)
        workers = [Worker(self) for _ in range(min(jobs, len(jobs_to_do)))]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if self.authority:
            self.authority.remove()


def of_rule(cases, plant):
    """The cases of the rule that the mistake breaks, the quickest first."""
    return sorted((case for case in cases if case["rule"] == plant.partition("-")[0]), key=cost)


def unfound(name, commands):
    """Plays to programs in the place of an adapter, each with a mistake, the cases of its rule: {mistake: words}. Returns what no case finds."""
    for mistake, argv in commands.items():
        ADAPTERS[mistake] = argv, ADAPTERS[name][1]
    runner, cases, said = Runner(False), load(), io.StringIO()
    with contextlib.redirect_stdout(said):
        runner.run([(mistake, mistake, of_rule(cases, mistake)) for mistake in commands], 4)
    return said.getvalue()


def cost(case):
    """About how many seconds a case takes."""
    return sum(step[1] for step in case["steps"] if step[0] in ("pause", "silent")) + 6 * (case["rule"] == "R13")


def main():
    options = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    options.add_argument("-v", action="store_true", help="a line per case")
    options.add_argument("-j", type=int, default=10, help="cases at a time: most of them wait")
    options.add_argument("--turns", action="store_true", help="each case by the first adapter, and by one of the others in turn")
    options.add_argument("--adapter", action="append", choices=list(ADAPTERS))
    options.add_argument("--rule", action="append")
    options.add_argument("--planted", nargs="*")
    options.add_argument("texts", nargs="*")
    given = options.parse_args()
    cases = [case for case in load() if case["rule"] in (given.rule or (case["rule"],)) and any(text in case["case"] for text in given.texts or ("",))]
    runner, begun = Runner(given.v), time.monotonic()
    adapters = list(usable(given.adapter))
    if given.planted is None:
        others = adapters[1:] or adapters
        chosen = [[adapters[0], others[i % len(others)]] if given.turns else adapters for i in range(len(cases))]
        runner.run([(name, "", [case]) for case, names in zip(cases, chosen, strict=True) for name in dict.fromkeys(names)], given.j)
    else:
        runner.run([(name, plant, of_rule(cases, plant)) for name in adapters if name.startswith("python") for plant in given.planted or MISTAKES], given.j)
    for text in runner.skipped:
        print("skipped " + text)
    print("%d cases, %.0f s; a loss was told within %.0f ms" % (len(cases), time.monotonic() - begun, runner.worst * 1000))
    print("%d passed, %d failed" % (runner.passed, len(runner.failed)), flush=True)
    return 1 if runner.failed or not runner.passed else 0


if __name__ == "__main__":
    sys.exit(main())

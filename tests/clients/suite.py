#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Runs the parts of the suite beside each other: python3 tests/clients/suite.py [--short] [--seed N] [part …]

The parts are cases, planted, real, and what is particular to a client, each in its test_NAME.py. --short plants no mistakes, and leaves out what takes long
or needs a registry, and what is particular to a client that is compiled, but for C. Last line: "N passed, N failed".
"""
import argparse
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "lib")]

from process import die_with_parent  # the path stands above

OWN = {name[5:-3]: [name] for name in sorted(os.listdir(HERE)) if name.startswith("test_")}
PARTS = {"cases": ["run.py"], "planted": ["run.py", "--planted"], "real": ["real.py"], **OWN}
SHORT = {name: [*argv, "--short"] if name != "cases" else [*argv, "-j", "6", "--turns"] for name, argv in PARTS.items()
         if name in ("cases", "real", "python", "python_users", "c")}
SUM = re.compile(r"^(\d+) passed, (\d+) failed$", re.M)


def main():
    options = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    options.add_argument("--short", action="store_true")
    options.add_argument("--seed", help="of the random requests of the part real")
    options.add_argument("parts", nargs="*", choices=[*PARTS, []])
    given = options.parse_args()
    parts, begun = SHORT if given.short else PARTS, time.monotonic()
    if given.seed:
        parts["real"] += ["--seed", given.seed]
    commands = {name: [sys.executable, "-B", os.path.join(HERE, argv[0]), *argv[1:]] for name, argv in parts.items() if name in (given.parts or parts)}
    env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    running = {name: subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=die_with_parent)
               for name, argv in commands.items()}
    passed = failed = 0
    for name, process in running.items():
        said = process.communicate()[0]
        print("-- %s, %.0f s\n%s" % (name, time.monotonic() - begun, said.strip()), flush=True)
        sums = SUM.findall(said)
        good, bad = map(int, sums[-1]) if sums else (0, 0)
        passed, failed = passed + good, failed + (bad or process.returncode != 0)
    print("%d passed, %d failed" % (passed, failed), flush=True)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

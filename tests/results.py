#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs a make goal that measures something, and keeps what it printed last: results.py FILE "goal NAME=value …"

In FILE a block belongs to each goal. It begins with the line `<!-- make goal NAME=value … -->` and ends with `<!-- end -->`. The block of the same goal and values
is replaced; if there is none, the block of the same goal; else a new one is added at the end of the file. A run that fails changes nothing, and its status
is returned.
"""
import collections
import os
import re
import shlex
import subprocess
import sys
import time

KEPT_LINES = 40
END = "<!-- end -->\n"


def run(goal):
    """Shows what the goal prints, and returns its status and its last lines."""
    kept = collections.deque(maxlen=KEPT_LINES)
    with subprocess.Popen([os.environ.get("MAKE", "make"), "--no-print-directory"] + shlex.split(goal), stdout=subprocess.PIPE, text=True,
                          errors="replace") as child:
        for line in child.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            if not re.match(r"  [A-Z]{2,} \S+$", line):  # what make says of its build
                kept.append(line.rstrip())
    return child.returncode, list(kept)


def commit():
    name = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False).stdout.strip()
    return name or "outside of git"


def block(goal, lines):
    return "<!-- make %s -->\n\n`make %s`, %s, commit %s, %d processors:\n\n```\n%s\n```\n%s" % (
        goal, goal, time.strftime("%Y-%m-%d"), commit(), os.cpu_count(), "\n".join(lines), END)


def replaced(text, goal, new):
    for begin in ("<!-- make %s -->\n" % re.escape(goal), r"<!-- make %s( [^\n]*)? -->\n" % re.escape(goal.split()[0])):
        found = re.search(begin + ".*?" + END, text, re.S)
        if found:
            return text[:found.start()] + new + text[found.end():]
    return text + "\n" + new


def main():
    if len(sys.argv) != 3 or not sys.argv[2].strip():
        print(__doc__.splitlines()[0])
        return 2
    path, goal = sys.argv[1], sys.argv[2]
    status, lines = run(goal)
    if status:
        print("make %s failed: %s stays as it is" % (goal, path))
        return status
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(replaced(text, goal, block(goal, lines)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""How much of each file of the product the worlds ran, against tests/sim/cover/floors: judge.py folder [--write]

It reads folder/run/json, which llvm-cov exports, and folder/run/script, which sweep/coverage.c writes. A row of floors is "file lines branches": the least
percentage of each, and "-" for the branches of a script, which nobody counts. A file below its floor, without a row, or with a row and no file is a failure.
--write makes the floors from this run, SLACK below it. The last line is "N passed, M failed".
"""
import json
import os
import re
import sys

FLOORS = "tests/sim/cover/floors"
MEASURED = ("daemon/core/", "proto/")
LUA = "daemon/redis/lua"
SLACK = 3  # in per cent: other worlds run other lines


def c_covered(path):
    """{file: (lines, branches)} in per cent. llvm-cov calls a file without branches covered by none."""
    with open(path, encoding="utf-8") as file:
        data = json.load(file)["data"][0]
    found = {}
    for entry in data["files"]:
        name, summary = os.path.relpath(entry["filename"]), entry["summary"]
        if name.startswith(MEASURED) and name.endswith(".c"):
            branches = summary["branches"]
            found[name] = (summary["lines"]["percent"], branches["percent"] if branches["count"] else 100)
    return found


def script_parts():
    """The parts of each script, in order, as embed.sh knows them."""
    with open("daemon/redis/embed.sh", encoding="utf-8") as file:
        text = file.read().replace("\\\n", " ")
    return [re.findall(r'"\$lua/(\w+\.lua)"', line) for line in text.split("\n") if re.match(r"\tliteral \w+ \"", line)]


def script_read(part):
    """Its text as it is embedded: comments are empty lines."""
    with open(os.path.join(LUA, part), encoding="utf-8") as file:
        return re.sub(r"(?m)^ *--.*$", "", file.read())


def scripts_covered(path):
    """{file: (lines, None)}. The simulator knows a script by its length, and a part that several scripts have by what any of them ran."""
    with open(path, encoding="utf-8") as file:
        ran = {tuple(map(int, line.split()[1:])) for line in file}
    did, codes = {}, {}
    for parts in script_parts():
        size, before = sum(len(script_read(part).encode()) for part in parts), 0
        for part in parts:
            text = script_read(part)
            codes[part] = {n for n, line in enumerate(text.split("\n"), 1) if re.match(r"\s*(?!end|else$|\}|local function)\S", line)}
            did.setdefault(part, set()).update(n for n in codes[part] if (size, before + n) in ran)
            before += text.count("\n")
    return {os.path.join(LUA, part): (100 * len(did[part]) / len(code), None) for part, code in codes.items()}


def floors_read():
    with open(FLOORS, encoding="utf-8") as file:
        rows = [line.split() for line in file if not line.startswith("#")]
    return {name: tuple(None if n == "-" else int(n) for n in least) for name, *least in rows}


def floors_write(covered):
    def least(percent):
        return "-" if percent is None else str(max(0, int(percent) - SLACK))

    with open(FLOORS, "w", encoding="utf-8") as file:
        file.write("# The least percentage of lines and branches of each file that the worlds run. Made by: make sim-coverage-floors\n")
        file.writelines("%s %s\n" % (name, " ".join(map(least, percents))) for name, percents in sorted(covered.items()))


def failures_of(covered, floors):
    for name, percents in sorted(covered.items()):
        if name not in floors:
            yield "%s has no floor: make sim-coverage-floors" % name
            continue
        for what, percent, least in zip(("lines", "branches"), percents, floors[name]):
            if least is not None and percent < least:
                yield "%s: %.1f %% of its %s were run, and %d must be" % (name, percent, what, least)
    yield from ("%s has a floor, and is gone" % name for name in sorted(set(floors) - set(covered)))


def main(folder, *options):
    covered = {**c_covered(os.path.join(folder, "run", "json")), **scripts_covered(os.path.join(folder, "run", "script"))}
    if "--write" in options:
        floors_write(covered)
    failures = list(failures_of(covered, floors_read()))
    for line in failures:
        print(line)
    print("%d passed, %d failed" % (len(covered) - len({line.split(":")[0] for line in failures}), len(failures)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

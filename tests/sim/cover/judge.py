#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares what the worlds never ran with tests/sim/unreached: python3 tests/sim/cover/judge.py folder

It reads folder/run/json, which llvm-cov exports, folder/run/script, which coverage.c writes, and folder/lua, which conditions.py makes. Three things are
failures: a place that was never run and has no row, a row that fits no place, and a reason that names a test which does not exist. The last line is
"N passed, M failed".
"""
import collections
import glob
import json
import os
import re
import sys

from conditions import function_at

LIST = "tests/sim/unreached"
MEASURED = ("daemon/core/", "proto/")
LUA = "daemon/redis/lua"

# kind is what never happened: "called" (a function), "run" (a line), "true" or "false" (a condition).
Place = collections.namedtuple("Place", "file function kind text")


class Figures:
    """Counts the places that ran, and collects those that did not, with their line numbers."""

    def __init__(self):
        self.lines = self.sides = 0
        self.not_met = collections.defaultdict(list)
        self.silent = collections.Counter()  # lines of functions that nobody called

    def line(self, place, number, ran):
        if ran:
            self.lines += 1
        else:
            self.not_met[place].append(number)

    def condition(self, place, number, sides):
        for kind, count in sides.items():
            if count:
                self.sides += 1
            else:
                self.not_met[place._replace(kind=kind)].append(number)


# --- C ---------------------------------------------------------------------------------------------------------------

def source_of(name, texts={}):
    if name not in texts:
        with open(name, encoding="utf-8") as file:
            texts[name] = file.read().split("\n")
    return texts[name]


def measured(name):
    name = os.path.relpath(name)
    return name if name.startswith(MEASURED) else None


def functions_of(data):
    """{file: [(first line, last line, name)]}, and how often each was called. A function of a header has a record for each file that includes it."""
    spans, calls = collections.defaultdict(set), collections.Counter()
    for record in data["functions"]:
        file, region = measured(record["filenames"][0]), record["regions"][0]
        if file:
            name = record["name"].split(":")[-1]
            spans[file].add((region[0], region[2], name))
            calls[file, name] += record["count"]
    return spans, calls


def function_of(spans, file, number):
    return next((name for first, last, name in sorted(spans[file], reverse=True) if first <= number <= last), "-")


def counts_of_lines(segments):
    """{line: count} as llvm-cov show prints them: the highest count of what begins in the line, or of what goes on in it."""
    by_line, counts, before = collections.defaultdict(list), {}, None
    for segment in segments:
        by_line[segment[0]].append(segment)
    for number in range(segments[0][0], segments[-1][0] + 1) if segments else ():
        here = by_line[number]
        begins = [s for s in here if s[3] and s[4] and not s[5]]
        if begins or (before and before[3]):
            counts[number] = max([s[2] for s in begins] + ([before[2]] if before and before[3] else []))
        before = here[-1] if here else before
    return counts


def code_of(lines):
    """{number: first line of the statement} of all lines of code: not those of comments, brackets and the preprocessor."""
    found, comment, statement = {}, False, None
    for number, line in enumerate(lines, 1):
        text = re.sub(r"/\*.*?\*/", "", line).strip()
        if comment or not text or text.startswith(("/*", "#")):
            comment = ("/*" in text or comment) and "*/" not in text
            continue
        if re.fullmatch(r"[{}();]+|else|\} else \{|do", text):
            statement = None
            continue
        text = text.split("/*")[0].rstrip()
        found[number] = statement = statement or number
        comment = "/*" in re.sub(r"/\*.*?\*/", "", line)
        if re.search(r"[;{}:]$", text) or re.match(r"(if|for|while|switch|else)\b.*\)$|else$|[A-Z_]+\(.*\)$", text):
            statement = None
    return found


def lines_judge(data, spans, calls, figures):
    for entry in data["files"]:
        file = measured(entry["filename"])
        if not file:
            continue
        lines, counts = source_of(file), counts_of_lines(entry["segments"])
        for number, first in code_of(lines).items():
            if number != first or number not in counts:
                continue
            name = function_of(spans, file, number)
            if not counts[number] and name != "-" and not calls[file, name]:
                figures.silent[file, name] += 1
            else:
                figures.line(Place(file, name, "run", re.sub(r"\s*/\*.*?\*/", "", lines[number - 1]).strip()), number, counts[number])


def text_between(lines, first, first_column, last, last_column):
    part = lines[first - 1:last]
    rest = re.match(r"\w*", part[-1][last_column - 2:]).group() and re.match(r"\([^()]*\)", part[-1][last_column - 1:])
    part[-1] = part[-1][:last_column - 1] + (rest.group() if rest else "")  # if a macro comes last, its arguments as well
    part[0] = part[0][first_column - 1:]
    return " ".join(" ".join(part).split())


def conditions_judge(data, spans, figures):
    """Counts how often each condition of the source was true and false, except those of assertions, and values that a switch has no case for."""
    sides = collections.defaultdict(lambda: [0, 0])
    for record in data["functions"]:
        for branch in record["branches"]:
            file = measured(record["filenames"][branch[6]])
            if file:
                sides[(file,) + tuple(branch[:4])][0] += branch[4]
                sides[(file,) + tuple(branch[:4])][1] += branch[5]
    for (file, *where), (true, false) in sorted(sides.items()):
        lines = source_of(file)
        before, text = lines[where[0] - 1][:where[1] - 1], text_between(lines, *where)
        if true + false == 0 or re.search(r"\bassert\(|\bswitch \($", before):
            continue
        if re.match(r"case |default", text):
            if not true and Place(file, function_of(spans, file, where[0]), "run", text + ":") in figures.not_met:
                continue
            kinds = {"true": true}
        else:
            kinds = {"true": true, "false": false}
        figures.condition(Place(file, function_of(spans, file, where[0]), "", text), where[0], kinds)


def c_judge(path, figures):
    with open(path, encoding="utf-8") as file:
        data = json.load(file)["data"][0]
    spans, calls = functions_of(data)
    for (file, name), count in calls.items():
        if not count:
            figures.not_met[Place(file, name, "called", "")].append(min(s[0] for s in spans[file] if s[2] == name))
    lines_judge(data, spans, calls, figures)
    conditions_judge(data, spans, figures)


# --- scripts ---------------------------------------------------------------------------------------------------------

def script_parts():
    """The parts of each script, in order, as embed.sh knows them."""
    with open("daemon/redis/embed.sh", encoding="utf-8") as file:
        text = file.read().replace("\\\n", " ")
    return [re.findall(r'"\$lua/(\w+\.lua)"', line) for line in text.split("\n") if re.match(r"\tliteral \w+ \"", line)]


def embedded_size(path):
    with open(path, "rb") as file:
        return len(re.sub(rb"(?m)^ *--.*$", b"", file.read()))


def scripts_judge(folder, figures):
    ran, out = collections.defaultdict(set), set()
    with open(os.path.join(folder, "run", "script"), encoding="utf-8") as file:
        for line in set(file):
            what, a, b = line.split()
            (ran[int(a)] if what == "line" else out).add(int(b) if what == "line" else (int(a), int(b)))
    for parts in script_parts():
        did = ran[sum(embedded_size(os.path.join(folder, "lua", part)) for part in parts)]
        behind = 0
        for part in parts:
            text = "\n".join(source_of(os.path.join(LUA, part)))
            offset = 0
            for number, line in enumerate(text.rstrip("\n").split("\n"), 1):
                if re.match(r"\s*(?!--|end|else$|\}|local function)\S", line):
                    figures.line(Place(os.path.join(LUA, part), function_at(text, offset + len(line) - 1), "run", line.strip()), number, behind + number in did)
                offset += len(line) + 1
            behind += text.count("\n")
    with open(os.path.join(folder, "lua", "conditions"), encoding="utf-8") as file:
        for number, row in enumerate(file):
            name, line, function, text = row.rstrip("\n").split("\t")
            sides = {kind: (number, side) in out for side, kind in enumerate(("false", "true"))}
            if any(sides.values()):
                figures.condition(Place(name, function, "", text), int(line), sides)


# --- the list --------------------------------------------------------------------------------------------------------

def row_of(place, count):
    text, places = ": " + place.text if place.text else "", " (%d places)" % count if count > 1 else ""
    return "%s: %s: never %s%s%s" % (place.file, place.function, place.kind, text, places)


def tests_there():
    """{"unit": names, …}: the tests that a reason may name."""
    suites = []
    for path in glob.glob("tests/**/suites.def", recursive=True):
        suites += re.findall(r"^SUITE\w*\(.*?(\w+)\)", "\n".join(source_of(path)), re.MULTILINE)
    found = {"unit": set(suites)}
    for kind, pattern in (("fuzz", r"(fuzz_\w+)\.c"), ("func", r"test_(\w+)\.py")):
        found[kind] = {m.group(1) for m in (re.fullmatch(pattern, name) for name in os.listdir("tests/" + kind)) if m}
    return found


def tests_missing(reason, there):
    named = [(kind, name) for kind, names in re.findall(r"\b(unit|fuzz|func): (\w+(?:, \w+)*)", reason) for name in names.split(", ")]
    return ["%s: %s" % test for test in named if test[1] not in there[test[0]]]


def list_read():
    """{row: number of its line}, and the mistakes. A reason begins in the first column; the indented rows below it, up to the next empty line, belong to it."""
    rows, reason, judged, wrong, there = {}, "", "", [], tests_there()
    for number, line in enumerate(source_of(LIST), 1):
        row = line.strip()
        if not row:
            reason = ""
        elif not line.startswith(("#", "\t")):
            reason += " " + row
        elif line.startswith("\t") and (not reason or row in rows):
            wrong.append("%s:%d: %s: %s" % (LIST, number, "twice" if row in rows else "no reason", row))
        elif line.startswith("\t"):
            wrong += ["%s:%d: there is no test %s" % (LIST, number, test) for test in tests_missing(reason, there) if reason != judged]
            rows[row], judged = number, reason
    return rows, wrong


def failures_of(found, rows):
    lacking = ["%s:%d: no row: %s" % (place.file, numbers[0], row) for row, (place, numbers) in found.items() if row not in rows]
    return lacking + ["%s:%d: there is no such place: %s" % (LIST, number, row) for row, number in rows.items() if row not in found]


def main(folder):
    figures = Figures()
    c_judge(os.path.join(folder, "run", "json"), figures)
    scripts_judge(folder, figures)
    rows, wrong = list_read()
    in_order = sorted(figures.not_met.items(), key=lambda f: (f[0].file, f[1]))
    found = {row_of(place, len(numbers)): (place, numbers) for place, numbers in in_order}
    excused, lacking = collections.Counter(), collections.Counter()
    for row, (place, numbers) in found.items():
        of = "line" if place.kind in ("called", "run") else "branch"
        (excused if row in rows else lacking)[of] += figures.silent[place.file, place.function] if place.kind == "called" else len(numbers)
    wrong += failures_of(found, rows)
    for line in wrong:
        print(line)
    print("lines: %d run, %d have a reason why not, %d have none" % (figures.lines, excused["line"], lacking["line"]))
    print("branches: %d taken, %d have a reason why not, %d have none" % (figures.sides, excused["branch"], lacking["branch"]))
    print("%d passed, %d failed" % (sum(row in found for row in rows), len(wrong)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes copies of the scripts that report how their conditions came out: python3 tests/sim/cover/conditions.py folder script.lua …

Writes a copy of each script into the folder. There each condition E is sim_condition(N, E), which returns E and notes whether it was true (sweep/coverage.c). A
condition is what decides an if or a while, and each operand in front of an `and` or `or`. Lines stay where they are. The file folder/conditions has a line for
each N: file, line, function, text, separated by tabs.
"""
import os
import re
import sys

TOKEN = re.compile(r"""--[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[A-Za-z_]\w*|\d[\w.]*|\.\.\.?|[=~<>]=|\s+|.""")
OPEN, CLOSE = set("([{"), set(")]}")
DECIDES = {"if": "then", "elseif": "then", "while": "do"}
# What an operand of `and` and `or` can stand behind.
BEFORE = {"=", ",", ";", "return", "then", "do", "else", "in", "and", "or", "until"} | set(DECIDES) | OPEN


def tokens_of(text):
    """(token, begin, end) of all but blanks and comments."""
    return [(m.group(), m.start(), m.end()) for m in TOKEN.finditer(text) if not m.group().isspace() and not m.group().startswith("--")]


class Level:
    """What is open inside one pair of brackets: where the operand at hand begins, and whether the last one decides something."""

    def __init__(self, begin, group):
        self.begin, self.group, self.chained, self.until = begin, group, False, None


def operands(tokens):
    """(first, last) of the tokens of each condition. A pair of brackets that only groups others is no condition of its own."""
    found, levels = [], [Level(0, False)]

    def take(level, end):
        first = level.begin
        inner = first + 1 if tokens[first][0] == "not" else first
        grouped = any(inner < f and l < end - 1 for f, l in found) and tokens[inner][0] == "(" and tokens[end - 1][0] == ")"
        if not grouped:
            found.append((first, end - 1))

    for i, (token, _, _) in enumerate(tokens):
        level = levels[-1]
        if token in ("and", "or"):
            take(level, i)
            level.begin, level.chained = i + 1, True
        elif token in OPEN:
            levels.append(Level(i + 1, token == "(" and tokens[i - 1][0] in BEFORE | {"not"}))
        elif token in CLOSE:
            if level.group and level.chained and not tokens[i - 1][0].isdigit():
                take(level, i)
            levels.pop()
        elif token in DECIDES:
            level.begin, level.until = i + 1, DECIDES[token]
        elif token == level.until:
            take(level, i)
            level.begin, level.chained, level.until = i + 1, False, None
        elif token in BEFORE or token == "function":
            level.begin, level.chained = i + 1, False
    return found


def function_at(text, offset):
    """Functions begin and end in the first column, or stand in one line."""
    name = "main"
    for line in text[:offset + 1].split("\n"):
        head = re.match(r"local function (\w+)|local (\w+) =.*\bfunction\b", line)
        if head:
            name = head.group(1) or head.group(2)
        elif re.match(r"\w", line):
            name = "main"
    return name


def instrument(path, number, table):
    """The text of the script with each condition wrapped."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    tokens, put = tokens_of(text), []
    for first, last in sorted(operands(tokens)):
        begin, end = tokens[first][1], tokens[last][2]
        put += [(begin, 1, end, "sim_condition(%d, " % number), (end, 0, -begin, ")")]
        table.append("%s\t%d\t%s\t%s" % (path, text.count("\n", 0, begin) + 1, function_at(text, begin), " ".join(text[begin:end].split())))
        number += 1
    out, at = [], 0
    for offset, _, _, piece in sorted(put, key=lambda p: (p[0], p[1], -p[2])):
        out += [text[at:offset], piece]
        at = offset
    return "".join(out) + text[at:]


def leave(path, text):
    """Writes the file, unless it has this text already: make rebuilds what depends on a newer file."""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main(folder, *paths):
    table = []
    os.makedirs(folder, exist_ok=True)
    for path in paths:
        leave(os.path.join(folder, os.path.basename(path)), instrument(path, len(table), table))
    leave(os.path.join(folder, "conditions"), "\n".join(table) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

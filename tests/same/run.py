#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Does this tree do what a commit does, byte for byte? python3 tests/same/run.py build base-build base-tree from count [sed]

Both builds run the same simulated worlds and the same inputs of the fuzzers, those of the base, and print each event and each effect. sed is a script that
turns words of the base into those of this tree, for commits that rename. The first difference of each kind is shown with the lines before it.
"""
import collections
import glob
import os
import subprocess
import sys

BEFORE, AFTER = 12, 4  # lines shown around a difference


def lines_of(command, sed):
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        source = process.stdout
        if sed:
            with subprocess.Popen(["sed", "-E", sed], stdin=process.stdout, stdout=subprocess.PIPE) as renamed:
                yield from renamed.stdout
        else:
            yield from source
    if process.returncode:
        yield b"ended with status %d\n" % process.returncode


def show(mark, lines):
    for line in lines:
        print("%s %s" % (mark, line.decode("utf-8", "replace").rstrip("\n")))


def differs(old, new, sed):
    """Compares the output of two commands. Returns (how many items are the same before the first difference, whether there is a difference)."""
    item, items, last = b"", 0, collections.deque(maxlen=BEFORE)
    a, b = lines_of(old, sed), lines_of(new, "")
    while True:
        was, now = next(a, None), next(b, None)
        if was != now:
            print("%s differs:" % item.decode().strip())
            show(" ", last)
            show("-", [x for x in [was] + [next(a, None) for _ in range(AFTER)] if x is not None])
            show("+", [x for x in [now] + [next(b, None) for _ in range(AFTER)] if x is not None])
            return items - 1, True
        if was is None:
            return items, False
        if was.startswith(b"== "):
            item, items = was[3:], items + 1
            last.clear()
        last.append(was)


def main():
    build, base_build, base_tree, first, count = sys.argv[1:6]
    sed = sys.argv[6] if len(sys.argv) > 6 else ""
    kinds = [("same-worlds", [first, count], "worlds from seed %s on" % first)]
    for fuzzer in ("fuzz_service", "fuzz_session"):
        kinds.append(("same-" + fuzzer, sorted(glob.glob(os.path.join(base_tree, "tests/fuzz/corpus", fuzzer, "*"))), "inputs of " + fuzzer))
    passed = failed = 0
    for program, arguments, what in kinds:
        items, different = differs([os.path.join(base_build, program)] + arguments, [os.path.join(build, program)] + arguments, sed)
        if different or items < len(arguments) // 2:
            failed += 1
            print("FAILED: %s: the first %d are the same" % (what, items))
        else:
            passed += 1
            print("%d %s: the same" % (items, what))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

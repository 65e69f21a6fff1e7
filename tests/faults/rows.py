# SPDX-License-Identifier: BSD-2-Clause
"""The table of rows. A row is a function of a running World that injects its faults until the world's time is over."""
import collections

Row = collections.namedtuple("Row", "number variant name kind text options function short expect net orphans gap")
ROWS = {}


def row(number, name, text, kind="T", variant="", short=False, expect=None, net=False, orphans=True, gap=None, **options):
    """kind: T, or X where only tokens protect. expect: the rules one of which must be violated. net: in a network of its own. gap: the most seconds without
    a grant, where the schedule leaves a quorum, or tells for how long it leaves none."""
    def note(function):
        key = "%d%s" % (number, variant)
        if key in ROWS:
            raise AssertionError("two rows %s" % key)
        ROWS[key] = Row(number, variant, name, kind, text, options, function, short, expect, net, orphans, gap)
        return function
    return note


def planted(ids, plants, folder):
    """Adds a row for each of these mistakes: another row, played with a daemon that has it. Returns their keys."""
    keys = []
    for name in ids or plants:
        base, expect, *seconds = plants[name]
        options = dict(ROWS[base].options, program="%s/planted/%s" % (folder, name), **({"seconds": seconds[0]} if seconds else {}))
        key = "%s/%s" % (base, name)
        ROWS[key] = ROWS[base]._replace(variant="/" + name, name="planted: " + name.lower(), options=options, expect=expect)
        keys.append(key)
    return keys


def chosen(wanted):
    """The rows named: 12, 12a; all when none are, in their order."""
    keys = sorted(ROWS, key=lambda key: (ROWS[key].number, ROWS[key].variant))
    for word in wanted:
        if word not in ROWS and not any(str(ROWS[key].number) == word for key in keys):
            raise SystemExit("no such row: %s" % word)
    return [key for key in keys if not wanted or key in wanted or str(ROWS[key].number) in wanted]

# SPDX-License-Identifier: BSD-2-Clause
"""The table of rows. A row is a function of a running World, which injects its faults until the time of the world is over."""
import collections

Row = collections.namedtuple("Row", "number variant name kind text injects options function short expect net orphans gap prompt")
ROWS = {}


def row(number, name, text, *, injects, kind="T", variant="", short=False, expect=None, net=False, orphans=True, gap=None, prompt=None,
        **options):
    """injects: the fault that the row injects, or several. kind: T; X, where only fences protect. expect: the rules of which one must be violated. net: the
    row wants a network of its own. orphans: no key may be left at the end. gap: the most seconds without a grant, where the schedule leaves a quorum or
    bounds the time without one. prompt: the most seconds for which a name is free while somebody waits for it, where no fault keeps it from him. options: those
    of World."""
    def note(function):
        key = "%d%s" % (number, variant)
        if key in ROWS:
            raise AssertionError("two rows %s" % key)
        faults = (injects,) if isinstance(injects, str) else injects
        ROWS[key] = Row(number, variant, name, kind, text, faults, options, function, short, expect, net, orphans, gap, prompt)
        return function
    return note


def planted(ids, plants, folder):
    """Adds a row for each of these mistakes: another row, played with a daemon in which the mistake is planted. Returns their keys."""
    keys = []
    for name in ids or plants:
        base, expect, *seconds = plants[name]
        options = dict(ROWS[base].options, program="%s/planted/%s" % (folder, name), **({"seconds": seconds[0]} if seconds else {}))
        key = "%s/%s" % (base, name)
        ROWS[key] = ROWS[base]._replace(variant="/" + name, name="planted: " + name.lower(), injects=(), options=options, expect=expect)
        keys.append(key)
    return keys


def in_order():
    """The keys of all rows, by number and variant."""
    return sorted(ROWS, key=lambda key: (ROWS[key].number, ROWS[key].variant))


def chosen(wanted):
    """The keys of the rows named 12 or 12a, in their order; all when none are named."""
    keys = in_order()
    for word in wanted:
        if word not in ROWS and not any(str(ROWS[key].number) == word for key in keys):
            raise SystemExit("no such row: %s" % word)
    return [key for key in keys if not wanted or key in wanted or str(ROWS[key].number) in wanted]


def by_fault():
    """{fault: the keys of the rows that inject it}, in the order of the rows."""
    faults = {}
    for key in in_order():
        for fault in ROWS[key].injects:
            faults.setdefault(fault, []).append(key)
    return faults


def outcome(keys, status):
    """What became of a fault that these rows inject: passed when one of them has passed and none has failed."""
    seen = {status[key] for key in keys}
    return "failed" if "failed" in seen else "passed" if "passed" in seen else "skipped"

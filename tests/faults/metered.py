# SPDX-License-Identifier: BSD-2-Clause
"""RATE: no window has more uses than its limit, whichever daemons admitted them.

S31: of the uses that were certainly counted within one window, no more than the limit were admitted. A fault may cost the store that counts its memory, or set
its clock: each fault that touches the window allows as many again.
"""
from collections import defaultdict

from history import MS


def faults_of(nemesis):
    """When faults began and ended; one that does not end lasts."""
    spans, open_at = [], []
    for row in nemesis:
        if row["e"] == "fault":
            open_at.append(row["t"])
        elif row["e"] == "heal" and open_at:
            spans.append((open_at.pop(0), row["t"]))
    return spans + [(at, float("inf")) for at in open_at]


def uses_of(readers):
    """(asked, told, cost, (name, limit, per)) of each use that was admitted, by the moment when its client was told."""
    uses = []
    for reader in readers:
        for call, row, _ in reader.answered:
            if call["q"] == "RATE" and row["kind"] == "OK" and not row.get("unmetered"):
                uses.append((call["t"], row["t"], call["cost"], (call["name"], call["limit"], call["per"])))
    return sorted(uses, key=lambda use: use[1])


def check_rates(readers, nemesis):
    """Yields what is wrong, as texts."""
    faults, of_terms = faults_of(nemesis), defaultdict(list)
    for use in uses_of(readers):
        of_terms[use[3]].append(use)
    for (name, limit, per), uses in of_terms.items():
        for i, (_, end, _, _) in enumerate(uses):
            begin = end - per * MS
            within = [(asked, cost) for asked, _, cost, _ in uses[:i + 1] if asked > begin]
            used = sum(cost for _, cost in within)
            excused = sum(at <= end and until >= begin - per * MS for at, until in faults)
            if used > limit * (1 + excused):
                yield "%s: %d uses within %d ms, the limit is %d, and %d faults came near" % (name, used, per, limit, excused)
                break

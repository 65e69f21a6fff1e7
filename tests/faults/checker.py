# SPDX-License-Identifier: BSD-2-Clause
"""Reads a history and finds the promises that it breaks. It knows the protocol and the clock, and nothing of the daemon or of the simulator.

S1: beliefs exclude each other. S2: fences are unique. S3: fences are in order. S4: no update behind a lock is lost. S6: readers believe together, and writers
alone. S13: valid_ms is truthful. L7: answers come in time. Those about one client: see reader.py. About the line of a daemon: order.py; WATCH: watched.py;
BREAK and KILL: forced.py; RATE: metered.py; jobs: deferred.py.
S1, S6, S13 and the order of beliefs hold only where no fault breaks the assumptions about time (kind T).
"""
import bisect
import collections

from deferred import check_jobs
from forced import check_force
from history import MS
from metered import check_rates
from order import check_line
from reader import Reader, Violation
from watched import check_watchers


# --- rules over all clients ------------------------------------------------------------------------------------------

def by_name(grants):
    names = collections.defaultdict(list)
    for grant in grants:
        names[grant.name].append(grant)
    return names


def check_overlap(grants, rule, despite_loss):
    """S1, S6, S13: no two beliefs in one name at one moment, unless both are shared. S3: fences grow in the order of beliefs."""
    for name, of_name in by_name(grants).items():
        spans = sorted((start, end, i, shared) for i, grant in enumerate(of_name) for start, end, shared in grant.beliefs(despite_loss))
        latest = {}  # of the shared and of the other beliefs so far: the one that ends last
        for start, end, i, shared in spans:
            for mode in (False,) if shared else (False, True):
                if mode in latest and of_name[latest[mode][1]] is not of_name[i]:
                    until, last, after = latest[mode][0], of_name[latest[mode][1]], of_name[i]
                    if start < until:
                        which = "S6" if rule == "S1" and (shared or mode) else rule
                        yield Violation(which, "%s: %s and %s both believe for %.2f ms" % (name, last, after, (min(end, until) - start) / MS))
                    if rule == "S1" and after.told > last.told and out_of_order(last, after):
                        yield Violation("S3", "%s: %s was believed before %s" % (name, last, after))
            if shared not in latest or end > latest[shared][0]:
                latest[shared] = (end, i)


def out_of_order(before, after):
    """Readers that hold it together have no order among themselves. A grant to a classic client has no fence."""
    return None not in (before.fence, after.fence) and before.fence >= after.fence and not (before.shared and after.shared)


def check_unique(grants):
    for name, of_name in by_name(grants).items():
        seen = {}
        for grant in of_name:
            if grant.fence in seen and grant.fence is not None and not (grant.shared and seen[grant.fence].shared):
                yield Violation("S2", "%s: %s and %s" % (name, seen[grant.fence], grant))
            seen[grant.fence] = grant


def check_order(grants):
    """S3: a grant that was told before another one was asked for has the smaller fence, unless both are shared."""
    for name, of_name in by_name(grants).items():
        of_name = [grant for grant in of_name if grant.fence is not None]
        for those in (of_name, [grant for grant in of_name if not grant.shared]):
            told = sorted(those, key=lambda grant: grant.told)
            times, greatest, top = [grant.told for grant in told], [], None
            for grant in told:
                top = grant if top is None or grant.fence > top.fence else top
                greatest.append(top)
            for grant in of_name:
                at = bisect.bisect_left(times, grant.asked)
                if grant.shared == (those is not of_name) and at and greatest[at - 1].fence >= grant.fence:
                    yield Violation("S3", "%s: %s was asked for after %s was told" % (name, grant, greatest[at - 1]))


def check_registers(fenced):
    """S4: every accepted write has added one to the value that it read."""
    for name, (value, writes, _) in fenced.items():
        if value != writes:
            yield Violation("S4", "%s: the fenced register stands at %d after %d accepted writes" % (name, value, writes))


def check_counters(history, counts):
    """S4 (kind T): the counter that only the lock protects. A name is not judged if a client was stopped during an update."""
    tried, done, late, torn = collections.Counter(), collections.Counter(), set(), []
    for client, rows in history.clients.items():
        for row in rows:
            if row["e"] == "try":
                tried[row["name"]] += 1
            elif row["e"] == "done":
                done[row["name"]] += 1
                if row["late"]:
                    late.add(row["name"])
            elif row["e"] == "read" and not row["late"] and row["plain"][0] != row["plain"][1]:
                torn.append((client, row))
    for name, value in counts.items():
        if name not in late and not done[name] <= value <= tried[name]:
            yield Violation("S4", "%s: the counter stands at %d after %d updates, %d begun" % (name, value, done[name], tried[name]))
    for client, row in torn:
        if row["name"] not in late:
            yield Violation("S4", "%s: c%d reads the counter under a shared lock, and it goes from %d to %d" % (row["name"], client, *row["plain"]))


def check_reads(history):
    """S4: a register that a reader has read twice, and that refused neither, was not written in between: no writer has the fence of a reader."""
    for client, rows in history.clients.items():
        for row in rows:
            if row["e"] == "read" and None not in row["fenced"] and row["fenced"][0] != row["fenced"][1]:
                yield Violation("S4", "%s: c%d reads the fenced register twice, and it goes from %d to %d" % (row["name"], client, *row["fenced"]))


def overlap(begin, end, spans):
    return sum(max(0, min(end, to) - max(begin, at)) for at, to in spans)


def check_answers(readers, stops, bound_ms, last):
    """L7: each call is answered within its wait and the bound. The time for which its daemon or its client is stopped does not count."""
    for reader in readers:
        def beyond(call, until, daemon, reader=reader):
            """By how many ns a call is late. Stops that overlap count twice, which errs in favour of the daemon."""
            stood = [*stops.get("c%d" % reader.client, []), *stops.get("d%s" % daemon, []), *stops.get("host", [])]
            return until - call["t"] - overlap(call["t"], until, stood) - (call.get("wait", 0) + bound_ms) * MS
        for call, row, daemon in reader.answered:
            if beyond(call, row["t"], daemon) > 0:
                yield Violation("L7", "c%d: %s %s wait=%d was answered after %.0f ms" % (
                    reader.client, call["q"], call.get("name"), call.get("wait", 0), (row["t"] - call["t"]) / MS))
        for call in reader.open_calls.values():
            end = min([last] + [at for at in reader.kills if at >= call["t"]])
            if beyond(call, end, reader.daemon) > 0:
                yield Violation("L7", "c%d: %s %s was never answered" % (reader.client, call["q"], call.get("name")))


class Verdict:
    """The violations and figures of a history. kind: T, where the assumptions about time hold, or X."""

    def __init__(self, history, kind="T", fenced=None, counts=None, answer_ms=5000):
        kills = collections.defaultdict(list)
        stops, stills = collections.defaultdict(list), collections.defaultdict(list)
        for row in history.nemesis:
            if row["e"] == "kill":
                kills[row["c"]].append(row["t"])
            elif row["e"] == "stop":
                stops[row["what"]].append((row["t"], row["to"]))
                stills[row["what"]].append((row.get("still", row["t"]), row.get("go", row["to"])))
        for client, rows in history.clients.items():
            stops["c%d" % client] += [(row["t"], row["to"]) for row in rows if row["e"] == "stalled"]
        readers = self.readers = [Reader(client, rows, kills[client], stills) for client, rows in history.clients.items()]
        times = [row["t"] for rows in history.clients.values() for row in rows[-1:]]
        self.resumed = sum(reader.taken_up for reader in readers)
        self.history, self.grants = history, sorted((grant for reader in readers for grant in reader.grants), key=lambda grant: grant.told)
        self.violations = [violation for reader in readers for violation in reader.found]
        self.violations += [*check_unique(self.grants), *check_order(self.grants), *check_registers(fenced or {})]
        self.violations += check_answers(readers, stops, answer_ms, max(times, default=0))
        self.violations += [*check_reads(history), *check_watchers(history, readers, kind), *check_force(readers, kind)]
        self.violations += check_line(readers, stops, kind)
        self.violations += [Violation("S31", text) for text in check_rates(readers, history.nemesis)]
        self.violations += [Violation(rule, text) for rule, text in check_jobs(readers, history.nemesis, kind)]
        if kind == "T":
            self.violations += [*check_overlap(self.grants, "S1", False), *check_overlap(self.grants, "S13", True)]
            self.violations += check_counters(history, counts or {})

    def window(self):
        rows = [row for row in self.history.nemesis if row["e"] == "window"]
        return (rows[0]["t"], rows[-1]["to"]) if rows else (0, 0)

    def longest_gap(self):
        """The longest time without a grant, in seconds, from the first fault until the clients are told to stop."""
        begin, end = self.window()
        times = [begin] + [grant.told for grant in self.grants if begin < grant.told < end] + [end]
        return max((b - a for a, b in zip(times, times[1:])), default=0) / 1e9

    def longest_idle(self):
        """The longest time, in seconds, for which nobody can believe in a name, and somebody waits for it with LOCK.

        A LOCKALL that waits keeps what it has: until it is answered its names may be taken, or until its lease is over if it never is.
        """
        changes = collections.defaultdict(list)  # name: (when, how many more believe, how many more wait)
        for grant in self.grants:
            spans = grant.beliefs(True)
            if grant.broken and grant.was_shared():  # no reader acknowledges that for all: the name is kept until the validity is over
                spans = [(told, max(told, asked + valid), True) for asked, told, valid in grant.anchors]
            for begin, end, _ in spans:
                changes[grant.name] += [(begin, 1, 0), (end, -1, 0)]
        for reader in self.readers:
            for call, row, _ in reader.answered:
                if call["q"] == "LOCK" and call.get("wait"):
                    changes[call["name"]] += [(call["t"], 0, 1), (row["t"], 0, -1)]
            gathers = [(call, row["t"]) for call, row, _ in reader.answered]
            gathers += [(call, call["t"] + (call.get("wait", 0) + call.get("ttl", 0)) * MS) for call in reader.unheard]
            for call, until in gathers:
                for name in call["names"] if call["q"] == "LOCKALL" else ():
                    changes[name] += [(call["t"], 1, 0), (until, -1, 0)]
        begin, end = self.window()
        worst = 0
        for of_name in changes.values():
            believe = wait = 0
            since = None
            for at, more, waiting in sorted(of_name):
                if since is not None:
                    worst = max(worst, min(at, end) - max(since, begin))
                believe, wait = believe + more, wait + waiting
                since = None if believe or not wait else at if since is None else since
        return worst / 1e9

    def recovery(self):
        """The longest time from the end of a fault to the next grant, in seconds, if no other fault came between."""
        times = [grant.told for grant in self.grants]
        faults = sorted(row["t"] for row in self.history.nemesis if row["e"] == "fault")
        worst = 0
        for row in self.history.nemesis:
            if row["e"] == "heal":
                at, next_fault = bisect.bisect_right(times, row["t"]), bisect.bisect_right(faults, row["t"])
                granted = times[at] if at < len(times) else self.window()[1]
                if next_fault == len(faults) or granted < faults[next_fault]:
                    worst = max(worst, granted - row["t"])
        return worst / 1e9

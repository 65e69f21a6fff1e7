# SPDX-License-Identifier: BSD-2-Clause
"""Reads a history and finds the promises that it breaks. It knows the protocol and the clock, and nothing of the daemon or of the simulator.

S1: beliefs exclude each other. S2: fences are unique. S3: fences are in order. S4: no update behind a lock is lost. S13: valid_ms is truthful.
S14: answers are truthful after a loss. S15: the count is right. L5: a loss is pushed before an answer tells it. L7: answers come in time.
S1, S13 and the order of beliefs hold only where no fault breaks the assumptions about time (kind T).
"""
import bisect
import collections

from history import MS

ABOUT_A_GRANT = ("CHECK", "EXTEND", "UNLOCK")


class Violation(collections.namedtuple("Violation", "rule text")):
    def __str__(self):
        return "%s: %s" % self


class Grant:
    """One grant to one client, and what the client was told about it. anchors: (asked, told, valid) of each answer, in ns."""

    def __init__(self, client, name, fence, call, told):
        self.client, self.name, self.fence, self.renew = client, name, fence, call.get("renew", True)
        self.asked, self.told, self.anchors = call["t"], told, []
        self.count, self.stretched, self.ttl = 1, False, (call.get("ttl") or 0) * MS
        self.ended = self.lost = None  # when the client gave the lock up, and when it read of the loss

    def end(self, at):
        if self.ended is None or at < self.ended:
            self.ended = at

    def beliefs(self, despite_loss=False):
        """The intervals in which the client may believe in the lock. despite_loss: as if no LOST had come."""
        cut = self.ended
        if self.lost is not None and not despite_loss:
            cut = self.lost if cut is None else min(cut, self.lost)
        spans = []
        for asked, told, valid in self.anchors:
            until = asked + valid if cut is None else min(asked + valid, cut)
            if told < until:
                if spans and told <= spans[-1][1]:
                    spans[-1] = (spans[-1][0], max(until, spans[-1][1]))
                else:
                    spans.append((told, until))
        return spans

    def __str__(self):
        return "c%d %s fence=%d" % (self.client, self.name, self.fence)


class Reader:
    """Follows the rows of one client: its grants, its calls, and contradictions within one session."""

    def __init__(self, client, rows, kills, stills):
        self.client, self.kills, self.stills, self.found = client, kills, stills, []
        self.grants, self.answered, self.open_calls = [], [], {}
        self.held, self.was_lost, self.eof_ends, self.daemon = {}, {}, False, None
        self.taken_up = 0  # how many locks were resumed
        self.dropped = {}  # the locks of the session before this one, which RESUME may give back
        self.asked = set()  # names that a dropped session waits for: the same LOCK again gets that grant, with ttl and renew of the first LOCK
        for row in rows:
            getattr(self, "on_" + row["e"], lambda _: None)(row)
        self.close_incarnation(None)

    def violate(self, rule, text, *args):
        self.found.append(Violation(rule, text % args))

    # --- sessions ----------------------------------------------------------------------------------------------------

    def close_incarnation(self, until):
        """A killed process believes in nothing: its grants end when the nemesis killed it."""
        for at in self.kills:
            if until is None or at <= until:
                for grant in self.grants:
                    if grant.told <= at:
                        grant.end(at)

    def on_start(self, row):
        self.close_incarnation(row["t"])
        self.eof_ends, self.daemon = row.get("eof_ends", False), row.get("d")
        self.forget()

    def forget(self):
        self.held, self.was_lost, self.open_calls = {}, {}, {}

    def on_open(self, row):
        self.daemon = row.get("d", self.daemon)
        self.forget()

    def on_gone(self, row):
        if row["how"] == "closed" or self.eof_ends:
            self.give_up(row["t"])
        self.dropped = self.held or self.dropped
        self.asked |= {call["name"] for call in self.open_calls.values() if call["q"] == "LOCK"}
        self.forget()

    def give_up(self, at):
        for grant in [*self.held.values(), *filter(None, self.was_lost.values())]:
            grant.end(at)

    # --- requests ----------------------------------------------------------------------------------------------------

    def on_call(self, row):
        self.open_calls[row["n"]] = row
        held = self.held.get(row.get("name"))
        if row["q"] == "UNLOCK" and held and held.count in (1, None):
            held.end(row["t"])
        elif row["q"] in ("UNLOCK", "LOCK") and self.was_lost.get(row["name"]):
            self.was_lost[row["name"]].end(row["t"])  # a client that asks again after a loss has given the lock up
        elif row["q"] == "QUIT":
            self.give_up(row["t"])
        elif row["q"] == "EXTEND" and held:
            held.stretched = True

    def on_answer(self, row):
        call = self.open_calls.pop(row["n"], None)
        if call is None:
            self.violate("S21", "c%d: an answer without a request: %s", self.client, row)
            return
        self.answered.append((call, row, self.daemon))
        name = call.get("name")
        if call["q"] in ABOUT_A_GRANT and row["kind"] == "OK":
            self.truthful(call, row)
        if call["q"] in ABOUT_A_GRANT and row["code"] == "NOTHELD" and name in self.held and self.held[name].count:
            self.violate("S15", "%s: %s was answered NOTHELD with count=%d", self.held[name], call["q"], self.held[name].count)
        if call["q"] in ABOUT_A_GRANT and row["kind"] == "ERR" and row["code"] == "LOST":
            if name in self.held:
                self.violate("L5", "%s: %s was answered ERR LOST, and no LOST came before", self.held[name], call["q"])
            self.lose(name, row)
        elif call["q"] == "LOCK" and row["kind"] == "OK":
            self.granted(call, row)
        elif call["q"] in ("CHECK", "EXTEND") and row["kind"] == "OK":
            self.anchor(name, call, row)
        elif call["q"] == "UNLOCK":
            self.unlocked(name, row)
        elif call["q"] == "RESUME" and row["kind"] == "OK":
            self.resumed(call, row)
        elif call["q"] == "HELLO":
            self.asked.clear()

    def resumed(self, call, row):
        """The dropped session held these locks, or was granted them meanwhile."""
        for name, fence, valid in row.get("rows", []):
            held = self.dropped.get(name)
            if not held or held.fence != fence:
                held = Grant(self.client, name, fence, dict(call, t=0), row["t"])  # the request was sent at an unknown time before
                self.grants.append(held)
            self.taken_up += 1
            held.count = None  # a request on its way when the connection dropped may have counted or not
            held.anchors.append((call["t"], row["t"], valid * MS))
            self.held[name] = held
        self.dropped = {}

    def granted(self, call, row):
        name, held = call["name"], self.held.get(call["name"])
        if held and row.get("count", 1) > 1:
            held.count = held.count + 1 if held.count else row["count"]
            if row["fence"] != held.fence or row["count"] != held.count:
                self.violate("S15", "%s: locked again, answered fence=%d count=%d, not count=%d", held, row["fence"], row["count"], held.count)
        else:
            held = Grant(self.client, name, row["fence"], call, row["t"])
            if name in self.asked:
                held.renew, held.ttl = True, 0
            if row.get("count", 1) != 1:
                self.violate("S15", "%s: the first grant has count=%d", held, row["count"])
            self.grants.append(held)
            self.held[name] = held
            self.was_lost.pop(name, None)
        held.anchors.append((call["t"], row["t"], row["valid"] * MS))

    def anchor(self, name, call, row):
        held = self.held.get(name)
        if not held or held.fence != row["fence"]:
            self.violate("S14", "c%d %s: %s answered OK fence=%d, held is %s", self.client, name, call["q"], row["fence"], held)
            return
        held.anchors.append((call["t"], row["t"], row["valid"] * MS))
        held.count = held.count or row.get("count")
        held.stretched = held.stretched and call["q"] != "EXTEND"

    def unlocked(self, name, row):
        held = self.held.get(name)
        if not held:
            return
        if row["kind"] == "OK":
            held.count = held.count - 1 if held.count else row.get("count", 0)
            if row.get("count", 0) != held.count:
                self.violate("S15", "%s: UNLOCK answered count=%d, not %d", held, row.get("count", 0), held.count)
        if row["kind"] != "OK" or held.count == 0:
            del self.held[name]

    # --- losses ------------------------------------------------------------------------------------------------------

    def lose(self, name, row):
        held = self.held.pop(name, None)
        if held and held.lost is None:
            held.lost = row["t"]
        self.was_lost[name] = held or self.was_lost.get(name)

    def on_push(self, row):
        held = self.held.get(row.get("name"))
        if row["code"] == "LOST" and held and held.fence == row["fence"]:
            self.lose(row["name"], row)

    def truthful(self, call, row):
        """S14: no OK about a grant that is lost, nor about one that has surely ended."""
        name = call["name"]
        if name in self.was_lost and name not in self.held:
            self.violate("S14", "c%d %s: %s answered OK after LOST of %s", self.client, name, call["q"], self.was_lost[name])
        held = self.held.get(name)
        if held and held.ttl:  # a stopped daemon renews nothing, and answers the requests of that time when it wakes
            for still, go in self.stills.get("d%s" % self.daemon, []):
                if still < call["t"] < go and still + held.ttl + MS < go:
                    self.violate("S14", "%s: %s was answered OK by a daemon that woke %.1f ms after its end", held, call["q"], (go - still - held.ttl) / MS)
        if not held or held.renew or held.stretched:
            return
        latest = max(told + valid for _, told, valid in held.anchors) + MS  # valid_ms is rounded down
        if call["t"] > latest:
            self.violate("S14", "%s: %s answered OK %.1f ms after its end", held, call["q"], (call["t"] - latest) / MS)


# --- rules over all clients ------------------------------------------------------------------------------------------

def by_name(grants):
    names = collections.defaultdict(list)
    for grant in grants:
        names[grant.name].append(grant)
    return names


def check_overlap(grants, rule, despite_loss):
    """S1, S13: no two beliefs in one name at one moment. S3: fences grow in the order of beliefs."""
    for name, of_name in by_name(grants).items():
        spans = sorted((start, end, i) for i, grant in enumerate(of_name) for start, end in grant.beliefs(despite_loss))
        last = None
        for start, end, i in spans:
            if last and of_name[last[2]] is not of_name[i]:
                before, after = of_name[last[2]], of_name[i]
                if start < last[1]:
                    yield Violation(rule, "%s: %s and %s both believe for %.2f ms" % (name, before, after, (min(end, last[1]) - start) / MS))
                fences = (before.fence, after.fence)
                if rule == "S1" and after.told > before.told and None not in fences and fences[0] >= fences[1]:
                    yield Violation("S3", "%s: %s was believed before %s" % (name, before, after))
            if not last or end > last[1]:
                last = (start, end, i)


def check_unique(grants):
    for name, of_name in by_name(grants).items():
        seen = {}
        for grant in of_name:
            if grant.fence is not None and grant.fence in seen:
                yield Violation("S2", "%s: %s and %s" % (name, seen[grant.fence], grant))
            seen[grant.fence] = grant


def check_order(grants):
    """S3: a grant that was told before another one was asked for has the smaller fence."""
    for name, of_name in by_name(grants).items():
        of_name = [grant for grant in of_name if grant.fence is not None]
        told = sorted(of_name, key=lambda grant: grant.told)
        times, greatest, top = [grant.told for grant in told], [], None
        for grant in told:
            top = grant if top is None or grant.fence > top.fence else top
            greatest.append(top)
        for grant in of_name:
            at = bisect.bisect_left(times, grant.asked)
            if at and greatest[at - 1].fence >= grant.fence:
                yield Violation("S3", "%s: %s was asked for after %s was told" % (name, grant, greatest[at - 1]))


def check_registers(fenced):
    """S4: every accepted write has added one to the value that it read."""
    for name, (value, writes, _) in fenced.items():
        if value != writes:
            yield Violation("S4", "%s: the fenced register stands at %d after %d accepted writes" % (name, value, writes))


def check_counters(history, counts):
    """S4 (kind T): the counter that only the lock protects. A name is not judged if a client was stopped during an update."""
    tried, done, late = collections.Counter(), collections.Counter(), set()
    for rows in history.clients.values():
        for row in rows:
            if row["e"] == "try":
                tried[row["name"]] += 1
            elif row["e"] == "done":
                done[row["name"]] += 1
                if row["late"]:
                    late.add(row["name"])
    for name, value in counts.items():
        if name not in late and not done[name] <= value <= tried[name]:
            yield Violation("S4", "%s: the counter stands at %d after %d updates, %d begun" % (name, value, done[name], tried[name]))


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
        readers = [Reader(client, rows, kills[client], stills) for client, rows in history.clients.items()]
        times = [row["t"] for rows in history.clients.values() for row in rows[-1:]]
        self.resumed = sum(reader.taken_up for reader in readers)
        self.history, self.grants = history, sorted((grant for reader in readers for grant in reader.grants), key=lambda grant: grant.told)
        self.violations = [violation for reader in readers for violation in reader.found]
        self.violations += [*check_unique(self.grants), *check_order(self.grants), *check_registers(fenced or {})]
        self.violations += check_answers(readers, stops, answer_ms, max(times, default=0))
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

# SPDX-License-Identifier: BSD-2-Clause
"""Follows what one client did and was told: its grants, what it may believe of each, and contradictions within one session.

S14: answers are truthful after a loss. S15: the count is right. L5: a loss is pushed before an answer tells it. S6: the mode is the one that was asked for.
"""
import collections

from history import MS

ABOUT_A_GRANT = ("CHECK", "EXTEND", "UNLOCK")
LOCKS = ("LOCK", "LOCKALL", "LOCKANY")


class Violation(collections.namedtuple("Violation", "rule text")):
    def __str__(self):
        return "%s: %s" % self


def is_shared(row):
    return row.get("mode") == "shared"


class Grant:
    """One grant to one client, and what the client was told about it. anchors: (asked, told, valid) of each answer, in ns."""

    def __init__(self, client, name, fence, call, told, daemon=None, shared=False):
        self.client, self.name, self.fence, self.renew, self.daemon = client, name, fence, call.get("renew", True), daemon
        self.asked, self.told, self.anchors = call["t"], told, []
        self.broken = False  # an administrator took it
        self.again = False  # asked for once more after RESUME: it may have been granted before
        self.count, self.stretched, self.ttl = 1, False, (call.get("ttl") or 0) * MS
        self.ended = self.lost = None  # when the client gave the lock up, and read of the loss
        self.freed = None  # its last UNLOCK is OK: (the daemon that says so, asked, told). After RESUME that may be another daemon than that of the grant
        self.shared, self.downgraded = shared, None  # as the last answer told; when it was asked to share what it held alone, and told so
        self.modes = [(0, shared)]  # (from when, whether the client trusts in no more than a shared hold)

    def end(self, at):
        if self.ended is None or at < self.ended:
            self.ended = at

    def trust(self, at, shared):
        if self.modes[-1][1] != shared:
            self.modes.append((at, shared))

    def was_shared(self):
        return any(shared for _, shared in self.modes)

    def beliefs(self, despite_loss=False):
        """The intervals in which the client may believe in the lock, and in which mode. despite_loss: as if no LOST had come."""
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
        ends = [at for at, _ in self.modes[1:]] + [float("inf")]
        return [(max(begin, at), min(end, to), shared) for begin, end in spans for (at, shared), to in zip(self.modes, ends) if max(begin, at) < min(end, to)]

    def __str__(self):
        return "c%d %s%s fence=%s" % (self.client, self.name, " shared" if self.shared else "", self.fence)


class Reader:
    """Follows the rows of one client."""

    def __init__(self, client, rows, kills, stills):
        self.client, self.kills, self.stills, self.found = client, kills, stills, []
        self.grants, self.answered, self.open_calls = [], [], {}
        self.held, self.was_lost, self.eof_ends, self.daemon = {}, {}, False, None
        self.taken_up = 0  # how many locks were resumed
        self.dropped = {}  # the locks of the session before this one, which RESUME may give back
        self.asked = set()  # names that a dropped session waits for: the same LOCK again gets that grant, with ttl and renew of the first LOCK
        self.unheard = []  # calls for locks whose answer the client never read
        self.gave_up = []  # when it gave up all that it had
        self.broken = []  # pushes of a loss by force
        self.labelled = any(row["e"] == "call" and row["q"] == "HELLO" for row in rows)  # events name it
        self.resumes = any(row["e"] == "call" and row["q"] == "RESUME" for row in rows)
        for row in rows:
            getattr(self, "on_" + row["e"], lambda _: None)(row)
        self.close_incarnation(None)
        self.unheard += self.open_calls.values()

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
        self.unheard += self.open_calls.values()
        self.held, self.was_lost, self.open_calls = {}, {}, {}

    def on_open(self, row):
        self.daemon = row.get("d", self.daemon)
        self.forget()

    def on_gone(self, row):
        if row["how"] == "closed" or self.eof_ends:
            self.give_up(row["t"])
        self.dropped = self.held or self.dropped
        self.asked |= {name for call in self.open_calls.values() if call["q"] in LOCKS for name in names_of(call)}
        self.forget()

    def give_up(self, at):
        self.gave_up.append(at)
        for grant in [*self.held.values(), *filter(None, self.was_lost.values())]:
            grant.end(at)

    # --- requests ----------------------------------------------------------------------------------------------------

    def on_call(self, row):
        self.open_calls[row["n"]] = row
        held = self.held.get(row.get("name"))
        if row["q"] in LOCKS:
            self.asks(row)
        elif row["q"] == "UNLOCK" and held and held.count in (1, None):
            held.end(row["t"])
        elif row["q"] == "UNLOCK" and self.was_lost.get(row["name"]):
            self.was_lost[row["name"]].end(row["t"])
        elif row["q"] == "QUIT":
            self.give_up(row["t"])
        elif row["q"] == "EXTEND" and held:
            held.stretched = True

    def asks(self, row):
        for name in names_of(row):
            if self.was_lost.get(name):
                self.was_lost[name].end(row["t"])  # a client that asks again after a loss has given the lock up
            if name in self.held and is_shared(row):
                self.held[name].trust(row["t"], True)

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
        elif call["q"] in LOCKS and row["kind"] == "OK":
            self.won(call, row)
        elif call["q"] in ("CHECK", "EXTEND") and row["kind"] == "OK":
            self.anchor(name, call, row)
        elif call["q"] == "UNLOCK":
            self.unlocked(name, call, row)
        elif call["q"] == "RESUME" and row["kind"] == "OK":
            self.resumed(call, row)
        elif call["q"] == "HELLO":
            self.asked.clear()

    def resumed(self, call, row):
        """The dropped session held these locks, or was granted them meanwhile."""
        for name, fence, valid, *mode in row.get("rows", []):
            held, shared = self.dropped.pop(name, None), mode == ["shared"]
            if not held or held.fence != fence:
                if held:
                    held.end(row["t"])
                held = Grant(self.client, name, fence, dict(call, t=0), row["t"], self.daemon, shared)  # the request was sent at an unknown time before
                self.grants.append(held)
            if held.shared and not shared:
                self.violate("S6", "%s: resumed, and exclusive with the same fence", held)
            self.taken_up += 1
            held.count = None  # a request on its way when the connection dropped may have counted or not
            held.shared = shared
            held.trust(row["t"], shared)
            held.anchors.append((call["t"], row["t"], valid * MS))
            self.held[name] = held
        self.was_lost.update(self.dropped)
        self.dropped = {}

    def won(self, call, row):
        """LOCK and LOCKANY get one name, LOCKALL all that it asked for."""
        if call["q"] == "LOCKALL":
            for name, fence, valid, *mode in row.get("rows", []):
                self.granted(call, dict(row, fence=fence, valid=valid, mode=mode[0] if mode else None, count=row.get("count")), name)
            if [name for name, *_ in row.get("rows", [])] != call["names"]:
                self.violate("S7", "c%d: LOCKALL %s was answered OK with %s", self.client, call["names"], row.get("rows"))
        else:
            name = call["name"] or row.get("name")
            self.granted(call, row, name)
            if name not in names_of(call):
                self.violate("S7", "c%d: %s %s was answered OK with %s", self.client, call["q"], call["names"], name)

    def granted(self, call, row, name):
        held, shared, count = self.held.get(name), is_shared(row), row.get("count") or 1
        if shared != is_shared(call):
            self.violate("S6", "c%d %s: a LOCK mode=%s was answered with mode=%s", self.client, name, call.get("mode"), row.get("mode"))
        if held and shared and not held.shared:
            self.downgrade(held, call, row, count)
        elif held and (count > 1 or not row.get("count")):
            held.count = held.count + 1 if held.count else row.get("count")
            if row["fence"] != held.fence or (row.get("count") and row["count"] != held.count):
                self.violate("S15", "%s: locked again, answered fence=%d count=%d, not count=%d", held, row["fence"], count, held.count)
            held.trust(row["t"], shared)
        else:
            held = Grant(self.client, name, row["fence"], call, row["t"], self.daemon, shared)
            if name in self.asked:
                held.renew, held.ttl, held.again, held.count = True, 0, True, count
            elif count != 1:
                self.violate("S15", "%s: the first grant has count=%d", held, count)
            self.grants.append(held)
            self.held[name] = held
            self.was_lost.pop(name, None)
        held.anchors.append((call["t"], row["t"], row["valid"] * MS))

    def downgrade(self, held, call, row, count):
        """The hold is shared from now on. Its fence and its count stay."""
        if row["fence"] != held.fence or (held.count and count != held.count):
            self.violate("S15", "%s: shared, answered fence=%d count=%d, not count=%d", held, row["fence"], count, held.count)
        held.shared, held.downgraded = True, (call["t"], row["t"])
        held.trust(row["t"], True)

    def anchor(self, name, call, row):
        held = self.held.get(name)
        if not held or held.fence != row["fence"]:
            self.violate("S14", "c%d %s: %s answered OK fence=%d, held is %s", self.client, name, call["q"], row["fence"], held)
            return
        if is_shared(row) != held.shared:
            self.violate("S6", "%s: %s was answered with mode=%s", held, call["q"], row.get("mode"))
        held.trust(row["t"], is_shared(row))
        held.anchors.append((call["t"], row["t"], row["valid"] * MS))
        held.count = held.count or row.get("count")
        held.stretched = held.stretched and call["q"] != "EXTEND"

    def unlocked(self, name, call, row):
        held = self.held.get(name)
        if not held:
            return
        if row["kind"] == "OK":
            held.count = held.count - 1 if held.count else row.get("count", 0)
            if row.get("count", 0) != held.count:
                self.violate("S15", "%s: UNLOCK answered count=%d, not %d", held, row.get("count", 0), held.count)
            held.freed = None if held.count else (self.daemon, call["t"], row["t"])
        if row["kind"] != "OK" or held.count == 0:
            del self.held[name]

    # --- losses ------------------------------------------------------------------------------------------------------

    def lose(self, name, row):
        held = self.held.pop(name, None) or self.was_lost.get(name)
        if held and held.lost is None:
            held.lost, held.broken = row["t"], row.get("reason") == "broken"
        self.was_lost[name] = held

    def on_push(self, row):
        held = self.held.get(row.get("name"))
        if row["code"] == "LOST" and row.get("reason") == "broken":
            self.broken.append((row, self.daemon))
        if row["code"] == "LOST" and held and held.fence == row["fence"]:
            self.lose(row["name"], row)
        granted_unheard = self.resumes and row.get("name") in self.asked  # to the session, while it had no connection: the client may not know of it yet
        if row["code"] == "CONTENDED" and not (held and held.fence == row["fence"]) and not granted_unheard:
            self.violate("S14", "c%d %s: CONTENDED fence=%d, held is %s", self.client, row["name"], row["fence"], held)

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


def names_of(call):
    return call["names"] if call.get("names") else [call["name"]]

# SPDX-License-Identifier: BSD-2-Clause
"""Compares what sessions that WATCH were told with what clients were granted (S28).

A watcher sends PING again and again. Pushes are in order, so what happened before a PING was sent has been told when it is answered. A watcher knows of what
was asked after its WATCH was answered, and was over before the last PING that was answered: there it must have been told everything.
"""
import bisect
import collections

from reader import LOCKS, Violation, names_of

FIRST_ROUND_MS = 1000  # of a busy machine


class Watch:
    """One connection of a watcher: the events that it was told, of the names that start with prefix, from `since` to `synced`."""

    def __init__(self, daemon, prefix, since):
        self.daemon, self.prefix, self.since, self.synced, self.events = daemon, prefix, since, since, []

    def covers(self, name, asked, told):
        return name.startswith(self.prefix) and self.since < asked and told < self.synced


def watches_of(history):
    for rows in history.clients.values():
        daemon, open_calls, watch = None, {}, None
        for row in rows:
            if row["e"] in ("start", "open", "gone"):
                daemon, watch = row.get("d", daemon), None
            elif row["e"] == "call":
                open_calls[row["n"]] = row
                watch = None if row["q"] == "UNWATCH" else watch
            elif row["e"] == "answer" and row["kind"] == "OK":
                call = open_calls.get(row["n"], {"q": None})
                if call["q"] == "WATCH":
                    watch = Watch(daemon, call["prefix"], row["t"])
                    yield watch
                elif watch and call["q"] == "PING":
                    watch.synced = call["t"]
            elif row["e"] == "event" and watch:
                watch.events.append(row)


class Known:
    """What clients know: each grant by its name and fence, and which requests were never heard of again."""

    def __init__(self, history, readers):
        self.far = any(row["e"] == "far" for row in history.nemesis)
        self.strangers = {name for row in history.nemesis if row["e"] == "strangers" for name in row["names"]}
        self.grants = collections.defaultdict(list)
        for reader in readers:
            for grant in reader.grants:
                self.grants[(grant.name, grant.fence)].append(grant)
        self.unheard = collections.defaultdict(list)
        for reader in readers:
            for call in reader.unheard:
                for name in names_of(call) if call["q"] in LOCKS else ():
                    self.unheard[name].append(call["t"])
        for times in self.unheard.values():
            times.sort()

    def is_possible(self, event):
        """Somebody was granted that, or asked for it and did not read the answer, or was one without a history."""
        if event["name"] in self.strangers or (event["name"], event["fence"]) in self.grants:
            return True
        return bisect.bisect_left(self.unheard[event["name"]], event["t"]) > 0


def check_watchers(history, readers, kind):
    known = Known(history, readers)
    for watch in list(watches_of(history)):  # each is complete only at the end
        yield from check_truth(watch, known)
        yield from check_line(watch, kind)
        yield from check_all_told(watch, readers, known.far)


def check_truth(watch, known):
    """Who was granted what is told as the clients know it."""
    for event in watch.events:
        if event["kind"] != "granted":
            continue
        if not known.is_possible(event):
            yield Violation("S28", "daemon %s tells of a grant that nobody was told of: %s" % (watch.daemon, event))
        of_fence = known.grants.get((event["name"], event["fence"]), [])
        if of_fence and event.get("label") and not any("c%02d" % grant.client == event["label"] for grant in of_fence):
            yield Violation("S28", "daemon %s tells of a grant to %s, and it was to %s" % (watch.daemon, event["label"], of_fence[0]))
        if of_fence and not any((0, event["shared"]) in grant.modes or (grant.downgraded and event["shared"]) or not grant.asked for grant in of_fence):
            yield Violation("S28", "daemon %s tells of another mode than that of %s: %s" % (watch.daemon, of_fence[0], event))


def check_line(watch, kind):
    """Nobody is granted what the watcher was not told to be free, unless by readers together; and fences grow. A downgrade is told as a grant to the same session."""
    holders, last = collections.defaultdict(dict), {}
    for event in watch.events:
        name, session = event["name"], event["session"]
        if event["kind"] in ("released", "lost"):
            holders[name].pop(session, None)
        elif event["kind"] == "granted":
            for other in holders[name].values():
                if other["session"] != session and not (other["shared"] and event["shared"]):
                    yield Violation("S28", "daemon %s tells of a grant before the end of another hold: %s, %s" % (watch.daemon, other, event))
            if kind == "T" and event["fence"] <= last.get(name, 0) and not event["shared"]:
                yield Violation("S28", "daemon %s tells of fences out of order: %d, %s" % (watch.daemon, last[name], event))
            last[name] = max(event["fence"], last.get(name, 0))
            holders[name][session] = event


def check_all_told(watch, readers, far):
    """
    Each grant of that daemon is told, each UNLOCK there that ends a hold, whoever granted it, and each request that waited and was not granted. Far: the wait of a
    request may end before the first round has said that the lock is held.
    """
    told = collections.defaultdict(set)
    for event in watch.events:
        told[event["kind"]].add((event["name"], event.get("fence")))
        told["shared"].add(event.get("shared") and event["kind"] == "granted" and (event["name"], event["fence"]))
        told["label"].add((event["kind"], event["name"], event.get("label")))
    for reader in readers:
        for grant in reader.grants:
            lock = (grant.name, grant.fence)
            if grant.daemon == watch.daemon and grant.asked and not grant.again and watch.covers(grant.name, grant.asked, grant.told):
                if lock not in told["granted"]:
                    yield Violation("S28", "daemon %s did not tell of %s" % (watch.daemon, grant))
            if grant.downgraded and grant.daemon == watch.daemon and watch.covers(grant.name, *grant.downgraded) and lock not in told["shared"]:
                yield Violation("S28", "daemon %s did not tell that it is shared: %s" % (watch.daemon, grant))
            daemon, *span = grant.freed or (None, 0, 0)
            if daemon == watch.daemon and watch.covers(grant.name, *span) and lock not in told["released"]:
                yield Violation("S28", "daemon %s did not tell of the end of %s" % (watch.daemon, grant))
        if not far:
            yield from check_waits_told(watch, reader, told["label"])


def check_waits_told(watch, reader, told):
    """A short wait may end before the first round has said that the lock is held."""
    if not reader.labelled or reader.resumes:
        return
    for call, row, daemon in reader.answered:
        if call["q"] == "LOCK" and row["kind"] == "TIMEOUT" and call.get("wait", 0) >= FIRST_ROUND_MS and daemon == watch.daemon and watch.covers(call["name"], call["t"], row["t"]):
            if ("waiting", call["name"], "c%02d" % reader.client) not in told:
                yield Violation("S28", "daemon %s did not tell that c%d waits for %s" % (watch.daemon, reader.client, call["name"]))

# SPDX-License-Identifier: BSD-2-Clause
"""Judges the order in which the waiting requests of one daemon are served (S19): first come first served, where a level of priority counts as a minute."""
import bisect
import collections

from history import MS
from reader import Violation

MINUTE = 60_000 * MS
QUEUED = 200 * MS  # a request that was sent so long ago stands in the queue, unless its client, its daemon or this machine stood still


class Request:
    """A LOCK that was granted: its place in the line, and when the daemon granted it at the earliest."""

    def __init__(self, grant, call):
        self.grant, self.place, self.asked, self.after = grant, call["t"] - MINUTE * call.get("priority", 0), call["t"], call["t"]


def requests_of(reader):
    """Of a client that was not away: a place survives the connection of its session."""
    grants = {(grant.name, grant.fence): grant for grant in reader.grants if not grant.again}
    for call, row, _ in reader.answered if not reader.resumes else ():
        grant = grants.get((call.get("name"), row.get("fence")))
        if call["q"] == "LOCK" and row["kind"] == "OK" and grant and grant.asked == call["t"] and grant.fence:
            yield Request(grant, call)


def check_line(readers, stops, kind):
    """S19: nobody is granted before another one that stood in the line before, at a better place. Where beliefs may overlap (kind X), a hold may have ended
    long before its holder gave it up, so nobody knows that somebody was granted later than he asked."""
    line = collections.defaultdict(list)
    ends = collections.defaultdict(list)  # of exclusive holds: (fence, when its holder gave it up)
    for reader in readers:
        for request in requests_of(reader):
            line[(request.grant.name, request.grant.daemon)].append(request)
        for grant in reader.grants:
            if kind == "T" and not grant.was_shared() and grant.freed and grant.fence:
                ends[grant.name].append((grant.fence, grant.ended))
    still = [span for what, spans in stops.items() if what == "host" or what[0] == "d" for span in spans]
    for (name, _), requests in line.items():
        give_ups = sorted(ends[name])
        for request in requests:  # fences are in the order of grants: so it was granted after the exclusive hold before it had ended
            at = bisect.bisect_left(give_ups, (request.grant.fence, 0))
            request.after = max(request.asked, give_ups[at - 1][1] if at else 0)
        yield from check_name(requests, still, stops)


def check_name(requests, still, stops):
    requests.sort(key=lambda request: request.grant.fence)
    for i, request in enumerate(requests):
        for later in requests[i + 1:i + 40]:
            if later.grant.modes[0][1] and request.grant.modes[0][1] or later.grant.fence == request.grant.fence:
                continue
            if later.place + QUEUED >= request.place or later.asked + QUEUED >= request.after:
                continue
            if not stood(still + stops.get("c%d" % later.grant.client, []), later.asked, request.after):
                yield Violation("S19", "%s was granted before %s, which asked %.0f ms earlier, counting its priority" % (
                    request.grant, later.grant, (request.place - later.place) / MS))


def stood(still, begin, end):
    return any(at < end and to > begin for at, to in still)

# SPDX-License-Identifier: BSD-2-Clause
"""
A session, without I/O: bytes in, bytes and events out. The caller says what time it is with each call, opens a connection when dial_at says so, and
closes it when online is False. Nothing here sleeps, reads a clock, opens a socket or starts a thread, so that redlockd and redlockd.aio share all decisions.

In order: requests come in (submit, take, free, withdraw); lines come in (receive); the connection comes and goes (connected, disconnected, not_connected);
time passes (tick). What is to be sent is take_output(), what happened is take_events(), when to call tick() at the latest is wake.
"""
from __future__ import annotations

import dataclasses
import enum
import random
from typing import Any

from ._errors import Denied, Disconnected, LockLost, RedlockError, error_of
from ._holds import NEVER, Hold, JobHold, Key, Permit, key_of
from ._requests import PATIENCE, Ask, Cancel, Check, Free, Quiet, Ready, Request, Take, Terms
from ._wire import Line, ProtocolError, Reader, as_bytes, duration, quote

PAUSE_FIRST, PAUSE_MOST = 0.01, 0.5
ANSWERS = frozenset(("OK", "BUSY", "TIMEOUT", "ERR"))


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a session asks for. address is for texts. The secret stands in no text."""

    address: str
    label: str | None = None
    grace: float = 0.0
    heartbeat: float = 0.0
    user: str | None = None
    secret: str | None = dataclasses.field(default=None, repr=False)


@dataclasses.dataclass(frozen=True)
class News:
    """What happened unasked. kind: lost, risk, safe (with a hold), up, down (with a text), push (with a Line)."""

    kind: str
    hold: Hold | None = None
    detail: Any = None


class State(enum.Enum):
    """Where the connection is."""

    OFF = "no connection, and none is wanted"
    AWAY = "no connection, and one is wanted at dial_at"
    GREETING = "connected, but the session has not begun or come back yet"
    UP = "requests are sent as they come"
    CLOSED = "the session is over for good"


class Core:
    """See the top of this file."""

    def __init__(self, settings: Settings, chance: random.Random | None = None) -> None:
        self.settings, self.chance = settings, chance or random.Random()
        self.state, self.why, self.time = State.OFF, f"{settings.address}: no connection yet", 0.0
        self.dial_at = self.wake = self.give_up_at = self.beat_at = NEVER
        self.lease, self.grace = 10.0, settings.grace
        self.id = self.secret = ""
        self.session = 1  # counts sessions: a hold of another one is not told to the daemon
        self.pauses = 0
        self.holds: dict[Key, Hold] = {}
        self.used: set[Key] = set()  # keys of what is held, asked for, or being given back
        self.sent: dict[str, Request] = {}
        self.later: list[Request] = []  # sent when the session is there
        self.events: list[Request | News] = []
        self._out: list[str] = []
        self._reader = Reader()
        self._tags = 0

    # --- what the front end looks at ---

    @property
    def online(self) -> bool:
        """Whether there is to be a connection now. One that is open otherwise must be closed."""
        return self.state in (State.GREETING, State.UP)

    @property
    def resumable(self) -> bool:
        """Whether the session outlives its connection."""
        return bool(self.secret) and self.grace > 0 and self.state is not State.CLOSED

    @property
    def unsent(self) -> bool:
        """Whether there is output to take."""
        return bool(self._out)

    def take_output(self) -> bytes:
        """The bytes that are to be sent. They are handed out once."""
        if not self._out:
            return b""
        out = as_bytes("".join(self._out))
        self._out.clear()
        return out

    def take_events(self) -> list[Request | News]:
        """What happened since the last call: requests that have finished, and news."""
        events, self.events = self.events, []
        return events

    # --- requests ---

    def submit(self, request: Request, now: float) -> None:
        """Sends a request, at once or when the session is there."""
        if self.state is State.UP:
            self.send(request, now)
            return
        if self.state is State.CLOSED:
            raise Disconnected(f"{self.settings.address}: this client is closed")
        self.later.append(request)
        self.wake = min(self.wake, request.deadline)
        if self.state is State.OFF:
            self._dial(now, now)

    def send(self, request: Request, now: float) -> None:
        """Puts the line of a request into the output. T of its answer is now, or later."""
        self._tags += 1
        request.tag = tag = f"@{self._tags}"
        request.asked = now
        if request.finished:  # the caller has been told, but it is to be carried out
            request.deadline = now + PATIENCE
        self.sent[tag] = request
        self._out.append(f"{tag} {request.line(now)}\n")
        if request.deadline < self.wake:
            self.wake = request.deadline
        if isinstance(request, Check) and request.hold.until < self.wake:  # it may ask for a shorter lease
            self.wake = request.hold.until
        if self.settings.heartbeat:
            self.beat_at = now + self.settings.heartbeat / 3

    def take(self, terms: Terms, who: str, now: float) -> Take:
        """
        Asks for locks, a permit or a job. who is the thread or task: all that it holds has this owner, so that the daemon sees who waits for whom. Only what it
        has already, or asks for already, it asks for as somebody else.
        """
        owner, n = who, 1
        keys = [(name, owner) for name in terms.names]
        while not self.used.isdisjoint(keys):
            owner, n = f"{who}.{n}", n + 1
            keys = [(name, owner) for name in terms.names]
        request = Take(terms, owner, now)
        if not request.is_job:
            self.used.update(keys)
        self.submit(request, now)
        return request

    def withdraw(self, request: Take, now: float) -> None:
        """The caller wants it no more: the wait is cancelled, or what was granted is given back."""
        if request.withdrawn:
            return
        request.withdrawn = True
        if request.holds:
            request.finished = True
            request.give_back(self, now)
        elif request.tag in self.sent:
            self.submit(Cancel(request.tag, now + PATIENCE), now)
        elif request in self.later and not (request.tag and self.resumable):  # nobody has heard of it
            self.later.remove(request)
            self.used.difference_update(request.keys)

    def drop(self, request: Request, now: float) -> None:
        """The caller of any request wants the answer no more. What is under way at the daemon is cancelled."""
        if isinstance(request, Take):
            self.withdraw(request, now)
        elif isinstance(request, Ask) and not request.survives and request.tag in self.sent:  # it may wait, as RATE does
            self.submit(Cancel(request.tag, now + PATIENCE), now)

    def free(self, hold: Hold, now: float, extra: str = "") -> Free | None:
        """Gives a hold back. None: there is nothing to tell the daemon any more."""
        if hold.freed:
            return None
        hold.freed = True
        if hold.session != self.session or self.holds.get(hold.key) is not hold:  # another session; or the job was taken again meanwhile
            return None
        request = Free(hold, extra, now + PATIENCE)
        self.submit(request, now)
        return request

    def check(self, hold: Hold, now: float) -> Check:
        """Asks whether a hold is still there."""
        request = Check(hold, now + PATIENCE)
        if hold.alive:
            self.submit(request, now)
        else:
            hold.checking = False
            self.finish(request, error=LockLost(hold.name, hold.reason or "released", hold.fence))
        return request

    def quit(self, now: float) -> Ask | None:
        """Ends the session. None: there is no connection to say so on."""
        if self.state is not State.UP:
            return None
        request = _Quit("QUIT", now + 1)
        self.send(request, now)
        return request

    def close(self, now: float) -> None:
        """Nothing is held from here on, and nothing is asked any more."""
        self.why = f"{self.settings.address}: this client is closed"
        self.state = State.CLOSED
        self._end_session("closed")

    def forked(self) -> None:
        """This is a child: what the parent has is not ours, and nobody may hear of us over its connection."""
        self.why = f"{self.settings.address}: the connection belongs to the parent process"
        if self.state is not State.CLOSED:
            self.state = State.OFF
        self._end_session("fork")

    # --- what requests do with the session ---

    def finish(self, request: Request, result: Any = None, error: BaseException | None = None) -> None:
        """The caller of a request is to be told."""
        if not request.finished:
            request.finished, request.result, request.error = True, result, error
            self.events.append(request)

    def has(self, holds: tuple[Hold, ...]) -> None:
        """The session has these from now on."""
        for hold in holds:
            self.holds[hold.key] = hold
            self.wake = min(self.wake, hold.check_at, hold.until)

    def forget(self, hold: Hold) -> None:
        """The session has it no more, and another one of its key may be asked for."""
        hold.freed = True
        if self.holds.get(hold.key) is hold:
            del self.holds[hold.key]
            self.used.discard(hold.key)

    def return_quietly(self, hold: Hold, now: float) -> None:
        """Frees what nobody knows of."""
        if hold.freed or hold.session != self.session:
            hold.freed = True
            return
        hold.freed = True
        self.holds.pop(hold.key, None)
        self.submit_free(hold, now)

    def submit_free(self, hold: Hold, now: float) -> None:
        """Sends a release of which only the errors of the connection matter. The key stays in use until it is answered."""
        self.used.add(hold.key)
        text = hold.free("RETRY failed=no" if isinstance(hold, JobHold) else "")
        self.submit(Quiet(text, hold.key, now + PATIENCE), now)

    def lose(self, hold: Hold, reason: str) -> None:
        """A hold cannot be relied on any more. Its key stays in use until its caller lets it go, and so acknowledges the loss."""
        if hold.alive:
            hold.reason = reason
            self.events.append(News("lost", hold, reason))

    def relieve(self, hold: Hold, now: float) -> None:
        """An answer has moved the deadline on."""
        self.wake = min(self.wake, hold.check_at, hold.until)
        if hold.risk_until and hold.until > hold.risk_until + hold.ttl / 10:
            self.safe(hold, now)

    def safe(self, hold: Hold, now: float) -> None:
        """The risk is over."""
        if hold.risk_until:
            hold.risk_until = 0.0
            self.events.append(News("safe", hold, hold.left(now)))

    def risk(self, hold: Hold, now: float) -> None:
        """A renewal failed or is late, or no answer comes."""
        if not hold.risk_until:
            hold.risk_until = hold.until
            self.events.append(News("risk", hold, hold.left(now)))

    def park(self, request: Request) -> None:
        """Sends a request again when the session comes back."""
        if request not in self.later:
            self.later.append(request)
            self.wake = min(self.wake, request.deadline)

    # --- lines ---

    def receive(self, data: bytes, now: float) -> None:
        """Takes in bytes of the daemon."""
        self.time = now
        try:
            self._lines(self._reader.feed(data), now)
        except (ProtocolError, KeyError, ValueError) as error:
            self.disconnected(f"the daemon sent what is no answer: {error}", now)

    def _lines(self, lines: list[str], now: float) -> None:
        sent = self.sent
        for text in lines:
            tag, _, rest = text.partition(" ")
            request = sent.get(tag)
            if request is not None:
                self._answer(request, Line(rest), now)
            elif tag == "!":
                self._push(Line(text), now)
            if sent is not self.sent:  # the connection has been given up
                return

    def _answer(self, request: Request, line: Line, now: float) -> None:
        if line.kind == "*":
            if request.rows is None:
                request.rows = []
            request.rows.append(line)
        elif line.kind in ANSWERS:
            del self.sent[request.tag]
            try:
                request.answer(self, line, now)
            except (KeyError, ValueError):
                self.sent[request.tag] = request  # it ends with the connection
                raise

    def _push(self, line: Line, now: float) -> None:
        hold = self._hold_of(line.fields) if line.code in ("LOST", "RISK", "SAFE") else None
        if line.code not in ("LOST", "RISK", "SAFE"):
            self.events.append(News("push", detail=line))
        elif hold is None or not hold.alive:
            return
        elif line.code == "LOST":
            self.lose(hold, line.fields.get("reason", "unknown"))
        else:
            hold.until = min(hold.until, now + line.seconds("left_ms" if line.code == "RISK" else "valid_ms"))
            if line.code == "RISK":
                self.risk(hold, now)
            else:
                self.safe(hold, now)
                hold.check_at = now  # a push moves no deadline on
            self.wake = now

    def _hold_of(self, fields: dict[str, str]) -> Hold | None:
        """The hold that a push is about."""
        owner = fields.get("owner", "")
        if owner.startswith("job:"):  # the lock of a job
            return next((hold for hold in self.holds.values() if isinstance(hold, JobHold) and owner == f"job:{hold.name}/{hold.job}"), None)
        hold = self.holds.get(key_of(fields))
        return hold if hold is not None and hold.is_at(fields) else None

    # --- the connection ---

    def open(self, now: float) -> None:
        """Wants a connection."""
        if self.state is State.OFF:
            self._dial(now, now)

    def connected(self, now: float) -> None:
        """A connection is there: the session begins, or comes back."""
        self.time, self.state, self.dial_at = now, State.GREETING, NEVER
        self._reader = Reader()
        user, secret = self.settings.user, self.settings.secret
        if user and secret:
            self.send(_Auth(f"AUTH {quote(user)} {quote(secret)}", now + PATIENCE), now)
        else:
            self.greet(now)

    def greet(self, now: float) -> None:
        """Sends RESUME, or HELLO."""
        if self.id and self.resumable:
            self.send(_Resume(f"RESUME {self.id} {self.secret}", now + PATIENCE), now)
            return
        text = "HELLO 1"
        if self.settings.label:
            text += f" name={quote(self.settings.label)}"
        if self.settings.heartbeat:
            text += f" heartbeat={duration(self.settings.heartbeat)}"
        if self.grace:
            text += f" grace={duration(self.grace)}"
        self.send(_Hello(text, now + PATIENCE), now)

    def not_connected(self, why: str, now: float) -> None:
        """An attempt to connect has failed."""
        self.time, self.why = now, f"{self.settings.address}: {why}"
        if self.resumable:
            self._dial_again(now)
        else:
            self._give_up()

    def disconnected(self, why: str, now: float) -> None:
        """The connection broke, or is given up."""
        if not self.online:
            return
        self.time, self.why = now, f"{self.settings.address}: {why}"
        greeting = self.state is State.GREETING
        pending, self.sent = list(self.sent.values()), {}
        self._out.clear()
        self.beat_at = NEVER
        self.events.append(News("down", detail=self.why))
        if not self.resumable:
            self.later[:0] = pending
            self._give_up()
            return
        self.state = State.AWAY
        kept = []
        for request in pending:
            if request.survives and (request.deadline > now or request.finished):
                kept.append(request)
            elif not isinstance(request, _Greeting):
                request.overdue(self)
        self.later[:0] = kept
        if greeting:
            self._dial_again(now)
        else:
            self.give_up_at = max([now + self.grace, *(hold.until for hold in self.holds.values() if hold.alive and hold.until < NEVER)])
            self.pauses = 0
            self._dial(now, now)

    def _dial(self, now: float, at: float) -> None:
        self.state, self.dial_at = State.AWAY, at
        self.wake = min(self.wake, at)

    def _dial_again(self, now: float) -> None:
        if now >= self.give_up_at:
            self._give_up()
            return
        longest = min(PAUSE_FIRST * 2 ** min(self.pauses, 10), PAUSE_MOST)
        self.pauses += 1
        self._dial(now, now + longest / 2 + self.chance.random() * longest / 2)

    def _give_up(self) -> None:
        """There is no session any more, and nobody tries to have one until the next request."""
        self.state = State.OFF
        self._end_session("disconnected")

    def _end_session(self, reason: str) -> None:
        """All holds are lost by name, and all requests are told."""
        self.dial_at = self.give_up_at = NEVER
        self.id = self.secret = ""
        self.session += 1
        self.grace = self.settings.grace
        self._lose_all(reason)
        pending, self.sent, self.later = [*self.sent.values(), *self.later], {}, []
        self._out.clear()
        for request in pending:
            request.overdue(self)
        self.used.clear()

    def _lose_all(self, reason: str) -> None:
        for hold in list(self.holds.values()):
            self.lose(hold, reason)
        self.holds.clear()

    # --- greeting: what its answers do ---

    def begun(self, line: Line, now: float) -> None:
        """HELLO was answered OK."""
        self.id, self.secret = line.fields.get("session", ""), line.fields.get("secret", "")
        self.lease = line.number("lease_ms", 10000) / 1000
        self._up(now)

    def resumed(self, rows: list[Line], line: Line, asked: float, now: float) -> None:
        """RESUME was answered OK: what has a row is held, what has none is lost, unless the daemon says that some are undecided or did not fit."""
        at = {key_of(row.fields): row for row in rows}
        undecided = line.number("open") > 0 or line.number("more") > 0
        for hold in list(self.holds.values()):
            row = at.pop(hold.key, None)
            if hold.freed:  # its release is asked again
                continue
            if row is not None and hold.is_at(row.fields):
                hold.confirm(asked, row.seconds("valid_ms"))
                self.relieve(hold, now)
            elif row is None and undecided:
                hold.check_at = now
            else:
                self.lose(hold, "evicted")
        wanted = {key for request in self.later if isinstance(request, Take) for key in request.keys}
        wanted.update(request.key for request in self.later if isinstance(request, Quiet) and request.key)
        wanted_queues = {request.terms.names[0] for request in self.later if isinstance(request, Take) and request.is_job and not request.withdrawn}
        self._known_jobs(wanted_queues, now)
        self._up(now)
        for key, row in at.items():
            self._surplus(key, row, wanted, wanted_queues, now)

    def _known_jobs(self, queues: set[str], now: float) -> None:
        """Before a TAKE is asked again each job that is known is mentioned, so that it is not answered with one of them."""
        known = [hold for hold in self.holds.values() if isinstance(hold, JobHold) and hold.alive and hold.name in queues]
        self.later[:0] = [Check(hold, now + PATIENCE) for hold in known]

    def _surplus(self, key: Key, row: Line, wanted: set[Key], queues: set[str], now: float) -> None:
        """A row of what nobody knows of: the grant, or the release, was answered over the connection that broke."""
        fields = row.fields
        hold: Hold | None = None
        if "job" in fields:
            if key[0] not in queues:
                hold = JobHold(fields, self.lease, self.session)
        elif key not in wanted and key not in self.holds and key[1].startswith("t"):
            number = row.number("fence")
            hold = Permit(*key, number, 1.0, self.session, row.number("permit")) if "permit" in fields else Hold(*key, number, 1.0, self.session)
        if hold is not None:
            self.return_quietly(hold, now)

    def gone(self, now: float) -> None:
        """The daemon does not know the session any more: all is lost by name, and what waits begins anew."""
        self.id = self.secret = ""
        self.session += 1
        self._lose_all("expired")
        for request in self.later:
            request.session_over(self)
        self.later = [request for request in self.later if not request.finished]
        self.used = {key for request in self.later if isinstance(request, Take) and not request.is_job for key in request.keys}
        self.grace = self.settings.grace
        self.greet(now)

    def refused(self, error: RedlockError) -> None:
        """The daemon does not want us. No request is answered, nor is any later one, until the next attempt."""
        self.why = str(error)
        self.events.append(News("down", detail=self.why))
        for request in self.later:
            self.finish(request, error=error)
        self._give_up()

    def _up(self, now: float) -> None:
        self.state, self.pauses, self.give_up_at = State.UP, 0, NEVER
        self.events.append(News("up"))
        later, self.later = self.later, []
        for request in later:
            if isinstance(request, Ready):
                self.finish(request)
            elif request.deadline <= now and not request.finished and not isinstance(request, Quiet):
                request.overdue(self)
            if not request.finished or isinstance(request, Take | Free):
                request.again(self, now)
        self.later = []
        self.wake = now  # what is due is looked for

    # --- time ---

    def tick(self, now: float) -> None:
        """Does what is due. Sets wake to when something is due next."""
        self.time = now
        if now < self.wake:
            return
        if self.state is State.UP:
            self._keep(now)
        self._expire(now)
        overdue = next((request for request in self.sent.values() if request.deadline <= now), None)
        if overdue is not None:
            self.disconnected(f"no answer within {now - overdue.asked:.1f} s", now)
        for request in [request for request in self.later if request.deadline <= now and not request.finished]:
            self.later.remove(request)
            request.overdue(self)
        self.wake = min(self._moments(), default=NEVER)

    def _keep(self, now: float) -> None:
        """CHECKs what is due, and what is nearly due with it: one moment for many holds."""
        for hold in self.holds.values():
            if hold.alive and not hold.checking and hold.check_at <= now + hold.ttl / 30:
                self.send(Check(hold, now + PATIENCE), now)
        if now >= self.beat_at:
            self._out.append("\n")
            self.beat_at = now + self.settings.heartbeat / 3

    def _expire(self, now: float) -> None:
        for hold in self.holds.values():
            if hold.alive and hold.until <= now:
                self.lose(hold, "expired")
            elif hold.alive and hold.risk_at <= now:
                self.risk(hold, now)

    def _moments(self) -> list[float]:
        moments = [self.dial_at if self.dial_at > self.time else NEVER, self.beat_at if self.state is State.UP else NEVER]  # once it has come, somebody dials
        moments += [request.deadline for request in self.sent.values()]
        moments += [request.deadline for request in self.later if not request.finished]
        for hold in self.holds.values():
            if hold.alive:
                moments += [hold.until, hold.risk_at]
                if not hold.checking and self.state is State.UP:
                    moments.append(hold.check_at)
        return moments


class _Quit(Ask):
    """The end of the session, which the daemon follows by that of the connection."""

    __slots__ = ()

    def answer(self, core: Core, line: Line, now: float) -> None:
        core.finish(self, line)
        core.close(now)


class _Greeting(Ask):
    """A request that comes before all others of a connection."""

    __slots__ = ()

    def answer(self, core: Core, line: Line, now: float) -> None:
        self.finished = True
        if line.kind == "OK":
            self.accepted(core, line, now)
        else:
            self.declined(core, line, now)

    def accepted(self, core: Core, line: Line, now: float) -> None:
        """It was answered OK."""
        core.begun(line, now)

    def declined(self, core: Core, line: Line, now: float) -> None:
        """It was answered ERR."""
        core.refused(error_of(line.code, line.text, core.settings.address))

    def overdue(self, core: Core) -> None:
        self.finished = True


class _Auth(_Greeting):
    __slots__ = ()

    def accepted(self, core: Core, line: Line, now: float) -> None:
        core.greet(now)

    def declined(self, core: Core, line: Line, now: float) -> None:
        if line.code == "LIMIT":  # many sessions of this user come at once: a later attempt is verified
            core.disconnected(f"AUTH: {line.code} {line.text}", now)
            return
        core.refused(Denied(f"{core.settings.address}: the daemon does not accept the user {core.settings.user!r}: {line.text}", line.code))


class _Hello(_Greeting):
    __slots__ = ()

    def declined(self, core: Core, line: Line, now: float) -> None:
        if line.code in ("LIMIT", "ARG") and core.session > 1 and core.grace:
            core.grace = 0.0  # max_grace of the daemon has become smaller since the session before
            core.greet(now)
        else:
            super().declined(core, line, now)


class _Resume(_Greeting):
    __slots__ = ()

    def accepted(self, core: Core, line: Line, now: float) -> None:
        core.resumed(self.rows or [], line, self.asked, now)

    def declined(self, core: Core, line: Line, now: float) -> None:
        if line.code in ("NOTFOUND", "UNKNOWN", "ARG"):
            core.gone(now)
        else:
            core.disconnected(f"RESUME: {line.code} {line.text}", now)

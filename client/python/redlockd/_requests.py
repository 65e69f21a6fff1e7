# SPDX-License-Identifier: BSD-2-Clause
"""
The requests, each from its call to its answer. A request knows the line that it sends, what its answers mean, and what becomes of it when the connection
breaks. It has no clock and no socket: the core sends its line, and hands it the answer.
"""
from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ._errors import Busy, Disconnected, LockLost, LockTimeout, RedlockError, error_of
from ._holds import NEVER, Hold, JobHold, Key, Permit
from ._wire import Line, duration, quote

if TYPE_CHECKING:
    from ._core import Core

PATIENCE = 5.0
"""Seconds that an answer may take, in addition to the wait that the request asks for."""
WAITED_LONG = 0.1
"""A grant that took longer than this is asked about again before the caller sees it."""


class Request:
    """
    finished, with result or error, says that the caller may be told. waiter belongs to the front end. asked is when the line was sent last, deadline when
    the answer is overdue.
    """

    __slots__ = ("tag", "asked", "deadline", "finished", "result", "error", "rows", "waiter", "repeated")
    survives = False
    """Whether it is sent again in the resumed session when its answer was lost."""

    def __init__(self, deadline: float) -> None:
        self.tag, self.asked, self.deadline = "", 0.0, deadline
        self.finished = self.repeated = False
        self.result: Any = None
        self.error: BaseException | None = None
        self.rows: list[Line] | None = None
        self.waiter: Any = None

    def line(self, now: float) -> str:
        """What is sent, without tag and line end."""
        raise NotImplementedError

    def answer(self, core: Core, line: Line, now: float) -> None:
        """Takes in the answer."""
        raise NotImplementedError

    def again(self, core: Core, now: float) -> None:
        """Sends it over the next connection: once more, if it was sent before."""
        self.repeated = bool(self.tag)
        core.send(self, now)

    def overdue(self, core: Core) -> None:
        """No answer came in time, or the session is over. core.why says what happened."""
        core.finish(self, error=Disconnected(core.why))

    def session_over(self, core: Core) -> None:
        """The session was not resumed, and another one begins. A request that survives is sent in that."""


class Ready(Request):
    """Is finished when the session is there. Nothing is sent."""

    __slots__ = ()


class Ask(Request):
    """Any line of the protocol. Its result is the last line of the answer; the rows are in rows."""

    __slots__ = ("text",)

    def __init__(self, text: str, deadline: float) -> None:
        super().__init__(deadline)
        self.text = text

    def line(self, now: float) -> str:
        return self.text

    def answer(self, core: Core, line: Line, now: float) -> None:
        core.finish(self, line, error_of(line.code, line.text, self.text.split(" ", 1)[0]) if line.kind == "ERR" else None)


class Repeatable(Ask):
    """A request that may be sent twice, as DEFER with an id may."""

    __slots__ = ()
    survives = True


class Quiet(Repeatable):
    """Gives something back for which nobody waits. key is free for another hold once it is answered."""

    __slots__ = ("key",)

    def __init__(self, text: str, key: Key | None, deadline: float) -> None:
        super().__init__(text, deadline)
        self.key = key

    def answer(self, core: Core, line: Line, now: float) -> None:
        if self.key:
            core.used.discard(self.key)
        self.finished = True

    def again(self, core: Core, now: float) -> None:
        self.deadline = now + PATIENCE
        super().again(core, now)

    def overdue(self, core: Core) -> None:
        self.deadline = NEVER
        if core.resumable:
            core.park(self)
        else:
            self.finished = True

    def session_over(self, core: Core) -> None:
        self.finished = True


class Check(Request):
    """CHECK, for the keeper (parent None, no waiter), for a caller, or for a grant that waited (parent)."""

    __slots__ = ("hold", "parent")
    survives = True

    def __init__(self, hold: Hold, deadline: float, parent: Take | None = None) -> None:
        super().__init__(deadline)
        self.hold, self.parent = hold, parent
        hold.checking = True

    def line(self, now: float) -> str:
        return self.hold.check()

    def answer(self, core: Core, line: Line, now: float) -> None:
        hold, error = self.hold, None
        hold.checking = False
        if line.kind == "OK" and hold.is_at(line.fields):
            hold.confirm(self.asked, line.seconds("valid_ms"))
            core.relieve(hold, now)
        elif line.kind == "OK" or line.code in ("LOST", "NOTHELD"):
            core.lose(hold, "evicted")
        else:
            hold.check_at = now + hold.ttl / 3  # the stores do not answer, or the daemon has no time: the deadline stays
            error = error_of(line.code, line.text, hold.name)
        self.done(core, now, error)

    def done(self, core: Core, now: float, error: RedlockError | None = None) -> None:
        """Tells whoever asked."""
        self.hold.checking = False
        if not error and self.hold.reason:
            error = LockLost(self.hold.name, self.hold.reason, self.hold.fence)
        core.finish(self, self.hold, error)
        if self.parent:
            self.parent.checked(core, error, now)

    def overdue(self, core: Core) -> None:
        self.done(core, core.time, Disconnected(core.why))

    def session_over(self, core: Core) -> None:
        self.done(core, core.time)


class Extend(Check):
    """EXTEND."""

    __slots__ = ("ttl",)

    def __init__(self, hold: Hold, ttl: float | None, deadline: float) -> None:
        super().__init__(hold, deadline)
        self.ttl = ttl

    def line(self, now: float) -> str:
        if self.ttl and self.ttl < self.hold.ttl:  # whatever is answered, the shorter lease counts from here
            self.hold.until = min(self.hold.until, now + max(0.0, self.ttl * 0.99 - 0.003))
        return self.hold.extend(f" ttl={duration(self.ttl)}" if self.ttl else "")

    def answer(self, core: Core, line: Line, now: float) -> None:
        if line.kind == "OK" and self.ttl:
            self.hold.ttl = self.ttl
        super().answer(core, line, now)


class Free(Request):
    """Gives a hold back: UNLOCK, RELEASE, DONE or RETRY. It is not withdrawn with its caller, and has PATIENCE of its own."""

    __slots__ = ("hold", "extra")
    survives = True

    def __init__(self, hold: Hold, extra: str, deadline: float) -> None:
        super().__init__(deadline)
        self.hold, self.extra = hold, extra

    def line(self, now: float) -> str:
        return self.hold.free(self.extra)

    def answer(self, core: Core, line: Line, now: float) -> None:
        hold, error = self.hold, None
        core.forget(hold)
        if line.kind == "ERR":
            gone = line.code in ("LOST", "NOTHELD")
            if not gone:
                error = error_of(line.code, line.text, hold.name)
                if self.extra:  # a keep or a delay that is too long; the daemon would renew what nobody knows of
                    core.submit_free(hold, now)
            elif not (self.repeated and line.code == "NOTHELD"):  # the first was carried out
                error = LockLost(hold.name, hold.reason or "evicted", hold.fence)
        core.finish(self, line, error)

    def overdue(self, core: Core) -> None:
        if core.resumable:  # the caller is told, and the lock is freed when the session is back
            super().overdue(core)
            core.park(self)
        else:
            self.session_over(core)

    def session_over(self, core: Core) -> None:
        """The end of the session has freed it, or will."""
        core.forget(self.hold)
        core.finish(self, None)


class Cancel(Request):
    """Withdraws a request that waits. Its answer says nothing: that of the request does."""

    __slots__ = ("of",)

    def __init__(self, of: str, deadline: float) -> None:
        super().__init__(deadline)
        self.of = of

    def line(self, now: float) -> str:
        return f"CANCEL {self.of}"

    def answer(self, core: Core, line: Line, now: float) -> None:
        self.finished = True

    def overdue(self, core: Core) -> None:
        self.finished = True


@dataclasses.dataclass(frozen=True)
class Terms:
    """
    What a Take asks for. text is the names as they stand in the line; fields are those that are the same in each repetition; wait is None for ever.
    """

    verb: str
    names: tuple[str, ...]
    text: str
    fields: str = ""
    wait: float | None = None
    ttl: float | None = None


class Take(Request):
    """LOCK, LOCKALL, LOCKANY, ACQUIRE or TAKE. Its result is a tuple of holds."""

    __slots__ = ("terms", "owner", "until", "holds", "withdrawn", "refusal")
    survives = True

    def __init__(self, terms: Terms, owner: str, now: float) -> None:
        self.until = NEVER if terms.wait is None else now + terms.wait
        super().__init__(self.until + PATIENCE)
        self.terms, self.owner = terms, owner
        self.holds: tuple[Hold, ...] = ()
        self.withdrawn = False
        self.refusal: RedlockError | None = None  # why it waits for the next daemon

    @property
    def keys(self) -> list[Key]:
        """What the session may have by this request."""
        return [(name, self.owner) for name in self.terms.names]

    @property
    def is_job(self) -> bool:
        """Whether it takes a job. A queue is no lock: what it gives has a key of its own."""
        return self.terms.verb == "TAKE"

    def line(self, now: float) -> str:
        terms, own = self.terms, "" if self.is_job else f" owner={self.owner} count=1"
        if terms.wait is None:
            wait = " wait=forever"
        else:
            left = terms.wait if not self.repeated else self.until - now
            wait = f" wait={duration(left)}" if left > 0 else ""
        return f"{terms.verb} {terms.text}{wait}{terms.fields}{own}"

    # --- answers ---

    def answer(self, core: Core, line: Line, now: float) -> None:
        if line.kind == "OK":
            self.holds = tuple(self.hold_of(core, row, self.asked) for row in (self.rows or ()) or (line,))
            self.rows = None
            self.granted(core, now)
        elif line.code == "DRAINING" and self.terms.wait != 0 and core.resumable and not self.withdrawn:
            self.refusal, self.deadline = self.error_of(line), self.until
            core.park(self)
        else:
            self.refused(core, line, now)

    def hold_of(self, core: Core, line: Line, asked: float) -> Hold:
        """What a row, or the answer itself, grants."""
        fields = line.fields
        ttl = int(fields["ttl_ms"]) / 1000 if "ttl_ms" in fields else self.terms.ttl or core.lease
        hold: Hold
        if self.is_job:
            hold = JobHold(fields, ttl, core.session)
        elif "permit" in fields:
            hold = Permit(fields["name"], self.owner, int(fields["fence"]), ttl, core.session, int(fields["permit"]))
        else:
            hold = Hold(fields["name"], self.owner, int(fields["fence"]), ttl, core.session)
        hold.confirm(asked, int(fields["valid_ms"]) / 1000)
        return hold

    def granted(self, core: Core, now: float) -> None:
        """Records what was granted, before the next line, which may be its loss."""
        slow = now - self.asked > WAITED_LONG
        for hold in self.holds if slow else ():
            hold.until = hold.check_at = NEVER  # its deadline may have passed: only CHECK tells a fresh one
        core.has(self.holds)
        if self.terms.verb == "LOCKANY":
            core.used.difference_update(key for key in self.keys if key != self.holds[0].key)
        if self.withdrawn:
            self.give_back(core, now)
        elif slow:
            for hold in self.holds:
                core.submit(Check(hold, now + PATIENCE, self), now)
        else:
            core.finish(self, self.holds)

    def checked(self, core: Core, error: RedlockError | None, now: float) -> None:
        """One of the grants was asked about again. When all were, the caller sees them; if one is not certain, none of them."""
        if self.finished:
            return
        if error:
            self.give_back(core, now)
            core.finish(self, error=error)
        elif not any(hold.checking for hold in self.holds):
            core.finish(self, self.holds)

    def give_back(self, core: Core, now: float) -> None:
        """Frees what was granted and nobody wants."""
        for hold in self.holds:
            core.return_quietly(hold, now)

    def refused(self, core: Core, line: Line, now: float) -> None:
        """Nothing was granted."""
        if self.repeated and self.terms.verb == "LOCKALL":  # it may have some of the names from before the cut
            self.give_up(core, now)
        else:
            core.used.difference_update(self.keys)
        core.finish(self, error=self.error_of(line))

    def error_of(self, line: Line) -> RedlockError:
        """The exception for an answer other than OK."""
        names = ", ".join(self.terms.names)
        if line.kind == "ERR":
            return error_of(line.code, line.text, names)
        holder, trace = line.fields.get("holder"), line.fields.get("trace")
        who = f", held by {holder}" if holder else ""
        if line.kind == "TIMEOUT" or self.terms.wait != 0:
            within = f" within {self.terms.wait:g} s" if self.terms.wait is not None else ""
            return LockTimeout(f"{names}: not granted{within}{who}", line.fields.get("name", names), holder, trace)
        retry = line.number("retry_ms", -1)
        return Busy(f"{names} is busy{who}", line.fields.get("name", names), holder, retry / 1000 if retry >= 0 else None, trace)

    # --- when nobody wants it any more, and when the connection breaks ---

    def again(self, core: Core, now: float) -> None:
        self.deadline = self.until + PATIENCE
        if self.withdrawn:
            self.give_up(core, now)
        else:
            super().again(core, now)

    def give_up(self, core: Core, now: float) -> None:
        """Gives up the place in the queue, or what was granted, of a request whose answer was lost. A job comes back by its row of RESUME."""
        verb = "RELEASE" if self.terms.verb == "ACQUIRE" else "UNLOCK"
        for name, owner in () if self.is_job else self.keys:
            core.submit(Quiet(f"{verb} {quote(name)} owner={owner} count=0", (name, owner), now + PATIENCE), now)

    def overdue(self, core: Core) -> None:
        core.finish(self, error=self.refusal or Disconnected(core.why))
        self.withdrawn = True
        if core.resumable and self.tag:
            core.park(self)
        else:
            core.used.difference_update(self.keys)

    def session_over(self, core: Core) -> None:
        if self.withdrawn:
            self.finished = True

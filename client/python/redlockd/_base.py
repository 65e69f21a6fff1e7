# SPDX-License-Identifier: BSD-2-Clause
"""What the clients for threads and for tasks have in common: words of requests, what a lock shows, and what answers become."""
from __future__ import annotations

import dataclasses
import datetime
import os
import re
import socket
import sys
import time
import uuid
import warnings
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from . import _place
from ._core import Core, Settings
from ._errors import Busy, LockLost, LockTimeout, RedlockError
from ._holds import NEVER, Hold, JobHold, Permit
from ._place import Place, credentials, default_address, place_of
from ._requests import PATIENCE, Ask, Extend, Ready, Repeatable, Request, Terms
from ._wire import Line, as_bytes, duration, quote

Told = Callable[[Any], object]
"""A function that is called with the lock: on_lost, on_risk."""


def settings_of(address: str | None, label: str | None, grace: float, heartbeat: float, user: str | None, secret: str | None) -> tuple[Settings, Place]:
    """What connect() was asked for; None stands for what the environment says."""
    text = address if address is not None else default_address()
    if user is None:
        user, secret = credentials()
    if label is None:
        label = os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] not in ("", "-c", "-m") else None
    return Settings(text, label, grace, heartbeat, user, secret), place_of(text)


def terms(verb: str, names: Iterable[str], wait: float | None, ttl: float | None = None, *, shared: bool = False, note: str | None = None,
          trace: str | None = None, priority: int = 0, limit: int | None = None) -> Terms:
    """The words of a request that takes something."""
    fields = ""
    if limit is not None:
        fields += f" limit={limit}"
    if ttl is not None:
        fields += f" ttl={duration(ttl)}"
    if shared:
        fields += " mode=shared"
    if note is not None:
        fields += f" note={quote(note)}"
    if trace is not None:
        fields += f" trace={quote(trace)}"
    if priority:
        fields += f" priority={priority}"
    words = tuple(names)
    return Terms(verb, words, " ".join(map(quote, words)), fields, wait, ttl)


def wait_of(blocking: bool, timeout: float, own: float | None) -> float | None:
    """The wait that threading.Lock.acquire(blocking, timeout) asks for; own is that of the lock."""
    if not blocking:
        if timeout != -1:
            raise ValueError("can't specify a timeout for a non-blocking call")
        return 0.0
    if timeout == -1:
        return own
    if timeout < 0:
        raise ValueError("timeout value must be a non-negative number")
    return timeout


@dataclasses.dataclass(frozen=True)
class Rate:
    """A use that was admitted. left more would be admitted now, and in reset seconds all. unmetered: the store that counts cannot be used."""

    left: int
    reset: float
    unmetered: bool = False


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer to ask(): the fields of its last line, and those of each row."""

    fields: dict[str, str]
    rows: list[dict[str, str]]


Begin = Callable[[Core, float], Any]
"""Has the core submit a request, and returns it."""


def checking(hold: Hold) -> Begin:
    """CHECK."""
    return lambda core, now: core.check(hold, now)


def extending(hold: Hold, ttl: float | None) -> Begin:
    """EXTEND, unless the hold is lost."""
    if not hold.alive:
        raise LockLost(hold.name, hold.reason, hold.fence)
    return lambda core, now: _submitted(core, Extend(hold, ttl, now + PATIENCE), now)


def dropping(request: Request | None) -> Begin:
    """The caller of a request has left."""
    return lambda core, now: None if request is None else core.drop(request, now)


def freeing(holds: tuple[Hold, ...], extra: str = "") -> Begin:
    """Gives all back. Makes a list of (hold, why it was lost before, request or None)."""
    return lambda core, now: [(hold, hold.reason, core.free(hold, now, extra)) for hold in holds]


def asking(make: Callable[[float], Ask]) -> Begin:
    """A request that make() makes of the time."""
    return lambda core, now: _submitted(core, make(now), now)


def opening(timeout: float) -> Begin:
    """Waits for the session."""
    return lambda core, now: _submitted(core, Ready(now + timeout + PATIENCE), now)


def _submitted(core: Core, request: Request, now: float) -> Request:
    core.submit(request, now)
    return request


def rate_request(name: str, limit: int, per: float, cost: int, wait: float | None, now: float) -> Ask:
    """RATE. It is never repeated: the use may have been counted."""
    text = f"RATE {quote(name)} limit={limit} per={duration(per)}"
    text += f" cost={cost}" if cost != 1 else ""
    if wait is None:
        return Ask(text + " wait=forever", NEVER)
    return Ask(text + (f" wait={duration(wait)}" if wait else ""), now + wait + PATIENCE)


def rate_result(name: str, line: Line) -> Rate:
    """What the answer to RATE says."""
    if line.kind == "OK":
        return Rate(line.number("left"), line.seconds("reset_ms"), "unmetered" in line.fields)
    retry = line.seconds("retry_ms") if "retry_ms" in line.fields else None
    if line.kind == "BUSY":
        raise Busy(f"{name}: the limit is used up", name, None, retry)
    raise LockTimeout(f"{name}: not admitted in time", name)


def defer_request(queue: str, payload: str | bytes, delay: float, lock: str | None, job: str | None, now: float) -> Repeatable:
    """DEFER, with an id in any case, so that it can be repeated."""
    text = f"DEFER {quote(queue)} {_word(payload)} id={quote(job or uuid.uuid4().hex)}"
    text += f" delay={duration(delay)}" if delay else ""
    return Repeatable(text + (f" lock={quote(lock)}" if lock else ""), now + PATIENCE)


def _word(payload: str | bytes) -> str:
    """A payload is always quoted: one with a '=' is no field."""
    word = quote(payload)
    return word if word.startswith('"') else f'"{word}"'


def answer_of(request: Ask, line: Line) -> Answer:
    """What ask() returns."""
    if line.kind != "OK":
        raise RedlockError(f"{request.text.split(' ', 1)[0]}: {line.kind} {line.text}", line.kind)
    return Answer(line.fields, [row.fields for row in request.rows or []])


@dataclasses.dataclass(frozen=True)
class Outcome:
    """
    The result of the last run of a name, on the host where that was: it began, took so many seconds, and may begin again in next seconds. status is 0 if it
    went well; that of a command is its exit status.
    """

    host: str
    began: datetime.datetime
    took: float
    status: int
    next: float


class Once:
    """
    A run of once(), with the records of `redlock once`: the result of the last run is a job of the queue once/NAME, which nobody takes. It is due when the next
    run may begin, by the clock of its home.
    """

    ROWS = 8  # one, and what runs left that broke off between two requests
    RECORD = re.compile(r"host=(\S+) began=(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) took_ms=(-?\d+) status=(-?\d+)")
    BEGAN = "%Y-%m-%dT%H:%M:%SZ"

    def __init__(self, name: str, every: float = 0.0) -> None:
        self.queue, self.every = "once/" + name, every
        self.history = f"LIST jobs prefix={quote(self.queue)} limit={self.ROWS}"
        self.old: list[str] = []
        self._begun, self._began = 0.0, ""

    def begins(self, history: Answer) -> bool:
        """Whether it may begin, by the records that are there. It does so now."""
        last = self.last(history)
        self._begun, self._began = _place.now(), time.strftime(self.BEGAN, time.gmtime())
        return last is None or last.next <= 0

    def last(self, history: Answer) -> Outcome | None:
        """The result of the last run, by these records."""
        outcomes = []
        for row in history.rows:
            if found := self.RECORD.match(row.get("payload", "")):
                began = datetime.datetime.strptime(found[2] + "+0000", self.BEGAN + "%z")
                outcomes.append(Outcome(found[1], began, int(found[3]) / 1000, int(found[4]), int(row.get("due_ms", 0)) / 1000))
                self.old.append(row["job"])
        return max(outcomes, key=lambda one: one.next) if outcomes else None

    def record(self, status: int) -> tuple[str, float]:
        """What is kept of it, and how much later the next one may begin."""
        took = _place.now() - self._begun
        return f"host={socket.gethostname()[:64] or '?'} began={self._began} took_ms={int(took * 1000)} status={status}", max(self.every - took, 0.0)

    def drops(self) -> list[str]:
        """The requests that drop the records before it, once it has its own."""
        return [f"DROP {quote(self.queue)} {quote(job)}" for job in self.old]


class Grip:
    """What a lock of threads and one of tasks show alike. It has holds while it is held, also after they are lost."""

    def __init__(self, wanted: Terms, on_lost: Told | None, on_risk: Told | None) -> None:
        self._terms, self._on_lost, self._on_risk = wanted, on_lost, on_risk
        self._holds: tuple[Hold, ...] = ()
        self._weak = weakref.ref(self)

    @property
    def name(self) -> str:
        """The name of the lock; of several the one that is held, or all with commas."""
        return self._holds[0].name if len(self._holds) == 1 else ", ".join(self._terms.names)

    @property
    def fence(self) -> int:
        """The fencing token of this grant: pass it on with each write. 0: it is not held. Of several locks it is that of the first."""
        return self._holds[0].fence if self._holds else 0

    @property
    def fences(self) -> dict[str, int]:
        """The fencing tokens by name."""
        return {hold.name: hold.fence for hold in self._holds}

    @property
    def permit(self) -> int | None:
        """The slot of a permit."""
        hold = self._holds[0] if self._holds else None
        return hold.permit if isinstance(hold, Permit) else None

    @property
    def remaining(self) -> float:
        """For how many seconds the lock may be relied on, by the local clock. 0.0: not at all."""
        now = _place.now()
        return min((hold.left(now) for hold in self._holds), default=0.0)

    def locked(self) -> bool:
        """Whether this object holds the lock and it may be relied on."""
        return self.remaining > 0

    @property
    def reason(self) -> str:
        """Why it is lost; "" if it is not."""
        return next((hold.reason for hold in self._holds if hold.reason), "")

    def __del__(self, _warn: Callable[..., None] = warnings.warn) -> None:
        if any(hold.alive for hold in getattr(self, "_holds", ())):
            _warn(f"the lock {self.name!r} was not released: it stays held until its client is closed", ResourceWarning, source=self, stacklevel=2)

    def __repr__(self) -> str:
        state = f"lost, {self.reason}" if self.reason else f"held, fence {self.fence}" if self._holds else "not held"
        return f"<{type(self).__name__} {self.name!r}, {state}>"


def job_parts(hold: Hold) -> tuple[str, bytes, int, str]:
    """Id, payload, attempt and lock of a job."""
    assert isinstance(hold, JobHold)
    return hold.job, as_bytes(hold.payload), hold.attempt, hold.lock


def retry_words(delay: float, failed: bool) -> str:
    """RETRY and its fields, before the words that name the job."""
    return "RETRY" + (f" delay={duration(delay)}" if delay else "") + ("" if failed else " failed=no")

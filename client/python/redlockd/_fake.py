# SPDX-License-Identifier: BSD-2-Clause
"""
What a fake daemon answers, without I/O: lines of clients in, lines to them out, and each call carries the time. It keeps locks, permits, rate limits and jobs
in memory, and knows no grace, no users and no limits: a session ends with its connection. testing.Fake moves the bytes.
"""
from __future__ import annotations

import dataclasses
import re

from ._holds import NEVER
from ._wire import quote, unquote

_WORD = re.compile(r'(?:[^\s"]|"(?:[^"\\]|\\.)*")+')
_FIELD = re.compile(r'([^\s="]+)=(.*)', re.DOTALL)
_DURATION = re.compile(r"([0-9.]+)([a-z]*)")
_UNITS = {"us": 1e-6, "": 1e-3, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
NO_QUORUM = "ERR QUORUM 0 of 1 stores can be used"


def seconds(text: str | None) -> float:
    """A duration of a request. None: there is none."""
    if text == "forever":
        return NEVER
    found = _DURATION.fullmatch(text or "0")
    return float(found[1]) * _UNITS.get(found[2], 1.0) if found else 0.0


def ms(seconds: float) -> int:
    """A duration of an answer."""
    return int(max(seconds, 0.0) * 1000)


@dataclasses.dataclass(eq=False)
class Session:
    """A connection, and what is to be written to it."""

    label: str
    out: list[str] = dataclasses.field(default_factory=list)
    lost: set[tuple[str, str]] = dataclasses.field(default_factory=set)  # name and owner, until the loss is acknowledged


class Asked:
    """A request, taken apart."""

    def __init__(self, session: Session, text: str) -> None:
        self.session, self.tag, self.until = session, "", 0.0
        self.fields: dict[str, str] = {}
        self.words: list[str] = []
        for token in _WORD.findall(text):
            field = _FIELD.fullmatch(token)
            if field:
                self.fields[field[1]] = unquote(field[2])
            else:
                self.words.append(unquote(token))
        if self.words and self.words[0].startswith("@"):
            self.tag = self.words.pop(0) + " "
        self.verb = self.words.pop(0).upper() if self.words else ""
        self.name = self.words[0] if self.words else ""
        self.owner, self.wait = self.fields.get("owner", ""), seconds(self.fields.get("wait"))

    def answer(self, text: str) -> None:
        """One line with its tag."""
        self.session.out.append(self.tag + text)

    def number(self, field: str, otherwise: int = 0) -> int:
        """A whole number by the name of its field."""
        return int(self.fields.get(field, otherwise))


@dataclasses.dataclass(eq=False)
class Grant:
    """A lock or a permit. Without a session it is somebody else's, or a name that is kept for a while."""

    session: Session | None
    name: str
    owner: str
    fence: int = 0
    permit: int | None = None
    shared: bool = False
    until: float = NEVER

    def text(self) -> str:
        """The fields that name it."""
        slot = "" if self.permit is None else f" permit={self.permit}"
        return f"name={quote(self.name)} owner={self.owner} fence={self.fence}{slot}"

    def is_of(self, asked: Asked) -> bool:
        """Whether the request is about it."""
        return (self.session, self.name, self.owner) == (asked.session, asked.name, asked.owner)


@dataclasses.dataclass(eq=False)
class Job:
    """A job in its queue, or with a session."""

    queue: str
    id: str
    payload: str
    lock: str
    due: float
    attempt: int = 0
    session: Session | None = None


class Core:
    """See the top of this file. wake is when to call tick() at the latest."""

    def __init__(self, lease: float) -> None:
        self.lease, self.quorum, self.fence = lease, True, 1000
        self.grants: list[Grant] = []
        self.waiting: list[Asked] = []
        self.jobs: list[Job] = []
        self.uses: dict[str, list[float]] = {}

    # --- what goes wrong ---

    def lose(self, name: str | None, now: float) -> bool:
        """Takes a lock or a permit away from all who have it; None: all of them. Whether somebody had."""
        gone = [grant for grant in self.grants if grant.session and name in (None, grant.name)]
        for grant in gone:
            assert grant.session
            grant.session.lost.add((grant.name, grant.owner))
            grant.session.out.append(f"! LOST {grant.text()} reason=quorum")
            self.grants.remove(grant)
        self.tick(now)
        return bool(gone)

    def risk(self, name: str) -> bool:
        """Warns all who have it. Whether somebody has."""
        at = [grant for grant in self.grants if grant.session and grant.name == name]
        for grant in at:
            assert grant.session
            grant.session.out.append(f"! RISK {grant.text()} left_ms={ms(self.lease / 3)}")
        return bool(at)

    def elsewhere(self, name: str) -> Grant | None:
        """Somebody else takes a lock. None: it is held."""
        if any(grant.name == name for grant in self.grants):
            return None
        self.fence += 1
        grant = Grant(None, name, "elsewhere", self.fence)
        self.grants.append(grant)
        return grant

    def end_of(self, grant: Grant, now: float) -> None:
        """That one gives it back."""
        if grant in self.grants:
            self.grants.remove(grant)
        self.tick(now)

    def leave(self, session: Session, now: float) -> None:
        """A connection has ended, and its session with it."""
        self.grants = [grant for grant in self.grants if grant.session is not session]
        self.waiting = [asked for asked in self.waiting if asked.session is not session]
        for job in self.jobs:
            job.session = None if job.session is session else job.session
        self.tick(now)

    # --- time ---

    @property
    def wake(self) -> float:
        """When something happens by itself."""
        wanted = {asked.name for asked in self.waiting if asked.verb == "TAKE"}
        due = [job.due for job in self.jobs if job.queue in wanted and not job.session]
        return min([asked.until for asked in self.waiting] + [grant.until for grant in self.grants] + due, default=NEVER)

    def tick(self, now: float) -> None:
        """Grants what has become free, first come first served, and ends waits that have lasted long enough."""
        self.grants = [grant for grant in self.grants if grant.until > now]
        passed: set[tuple[bool, str]] = set()
        for asked in list(self.waiting):
            wanted = {(asked.verb == "TAKE", name) for name in asked.words}
            if not self.quorum:
                asked.answer(NO_QUORUM)
            elif passed.isdisjoint(wanted) and self.grant(asked, now):
                pass
            elif asked.until <= now:
                asked.answer(("TIMEOUT " if asked.wait else "BUSY ") + self.refusal(asked))
            else:
                passed |= wanted
                continue
            self.waiting.remove(asked)

    # --- requests ---

    def receive(self, session: Session, line: str, now: float) -> None:
        """A line of a client."""
        asked = Asked(session, line)
        serve = getattr(self, "_" + asked.verb.lower(), None) if asked.verb.isalpha() else None
        if serve is not None:
            serve(asked, now)
        elif asked.verb:
            asked.answer(f"ERR UNKNOWN a fake does not know {asked.verb}")

    def _hello(self, asked: Asked, now: float) -> None:
        asked.session.label = asked.fields.get("name", asked.session.label)
        asked.answer(f"OK proto=1 server=fake session=1 secret=none store=memory nodes=1 quorum=1 lease_ms={ms(self.lease)}")

    def _ping(self, asked: Asked, now: float) -> None:
        asked.answer("OK")

    _auth = _quit = _subscribe = _ping

    def _resume(self, asked: Asked, now: float) -> None:
        asked.answer("ERR NOTFOUND a session of a fake ends with its connection")

    def _lock(self, asked: Asked, now: float) -> None:
        asked.until = now + asked.wait
        self.waiting.append(asked)
        self.tick(now)

    _lockall = _lockany = _acquire = _take = _lock

    def _cancel(self, asked: Asked, now: float) -> None:
        for other in self.waiting:
            if other.session is asked.session and other.tag == asked.name + " ":
                self.waiting.remove(other)
                asked.answer("OK")
                other.answer("ERR CANCELLED the waiting request was withdrawn")
                return self.tick(now)
        asked.answer("ERR NOTFOUND no request waits with this tag")

    def _check(self, asked: Asked, now: float) -> None:
        job = self.job_of(asked, asked.name, asked.fields["job"]) if "job" in asked.fields else None
        grant = next((grant for grant in self.grants if grant.is_of(asked)), None)
        if job:
            asked.answer(f"OK {self.job_text(job)}")
        elif grant:
            asked.answer(f"OK {grant.text()} {self.valid()}")
        elif (asked.name, asked.owner) in asked.session.lost:
            asked.answer("ERR LOST it was lost")
        else:
            asked.answer("ERR NOTHELD the session does not hold it")

    _extend = _check

    def _unlock(self, asked: Asked, now: float) -> None:
        keep = seconds(asked.fields.get("keep"))
        for grant in [grant for grant in self.grants if grant.is_of(asked)]:
            grant.session, grant.until = None, now + keep
        if (asked.name, asked.owner) in asked.session.lost:
            asked.session.lost.remove((asked.name, asked.owner))
            asked.answer("ERR LOST it was lost")
        else:
            asked.answer(f"OK name={quote(asked.name)} count=0")
        self.tick(now)

    _release = _unlock

    def _rate(self, asked: Asked, now: float) -> None:
        per, limit, cost = seconds(asked.fields.get("per")), asked.number("limit"), asked.number("cost", 1)
        uses = [use for use in self.uses.get(asked.name, []) if use > now - per]
        if len(uses) + cost > limit:
            asked.answer(f"BUSY retry_ms={ms(min(uses, default=now) + per - now) + 1} left={limit - len(uses)}")
            return
        self.uses[asked.name] = uses + [now] * cost
        asked.answer(f"OK left={limit - len(uses) - cost} reset_ms={ms(per)}")

    # --- what a wish gets ---

    def valid(self) -> str:
        """The fields of a lease that begins now."""
        return f"valid_ms={max(ms(self.lease * 0.99) - 2, 1)} ttl_ms={ms(self.lease)} count=1"

    def grant(self, asked: Asked, now: float) -> bool:
        """Answers a request that takes something, if it can be granted."""
        if asked.verb == "TAKE":
            return self.take(asked, now)
        free = [(name, slot) for name in asked.words if (slot := self.slot(asked, name)) is not None]
        if not free or (asked.verb == "LOCKALL" and len(free) < len(asked.words)):
            return False
        for name, slot in free if asked.verb == "LOCKALL" else free[:1]:
            self.fence += 1
            grant = Grant(asked.session, name, asked.owner, self.fence, slot if asked.verb == "ACQUIRE" else None, asked.fields.get("mode") == "shared")
            self.grants.append(grant)
            asked.session.lost.discard((name, asked.owner))
            asked.answer(f"{'*' if asked.verb == 'LOCKALL' else 'OK'} {grant.text()} {self.valid()}")
        if asked.verb == "LOCKALL":
            asked.answer(f"OK n={len(free)}")
        return True

    def slot(self, asked: Asked, name: str) -> int | None:
        """The permit that the request can have, 0 of a lock; None: it cannot have it."""
        there = [grant for grant in self.grants if grant.name == name]
        if asked.verb != "ACQUIRE":
            shared = asked.fields.get("mode") == "shared" and all(grant.shared for grant in there)
            return 0 if shared or not there else None
        taken = {grant.permit for grant in there}
        return None if None in taken else next((slot for slot in range(asked.number("limit")) if slot not in taken), None)

    def refusal(self, asked: Asked) -> str:
        """Who is in the way."""
        if asked.verb == "TAKE":
            return f"queue={quote(asked.name)}"
        grant = next((grant for grant in self.grants if grant.name in asked.words), None)
        if grant is None:
            return f"name={quote(asked.name)}"
        holder = grant.session.label if grant.session else "elsewhere"
        return f"name={quote(grant.name)} holder={quote(holder)}"

    # --- jobs ---

    def job_of(self, asked: Asked, queue: str, job: str) -> Job | None:
        """The job that the session has."""
        return next((one for one in self.jobs if (one.queue, one.id, one.session) == (queue, job, asked.session)), None)

    def job_text(self, job: Job) -> str:
        """The fields that name it, and its lease."""
        lock = f" name={quote(job.lock)}" if job.lock else ""
        return f"queue={quote(job.queue)} job={quote(job.id)} attempt={job.attempt} {self.valid()}{lock}"

    def take(self, asked: Asked, now: float) -> bool:
        """Answers TAKE, if a job is due."""
        job = next((job for job in self.jobs if job.queue == asked.name and not job.session and job.due <= now), None)
        if job is None:
            return False
        job.session, job.attempt, self.fence = asked.session, job.attempt + 1, self.fence + 1
        asked.answer(f"OK {self.job_text(job)} fence={self.fence} payload={quote(job.payload)}")
        return True

    def _defer(self, asked: Asked, now: float) -> None:
        job, delay = asked.fields.get("id", str(self.fence)), seconds(asked.fields.get("delay"))
        if not any((one.queue, one.id) == (asked.name, job) for one in self.jobs):
            self.fence += 1
            self.jobs.append(Job(asked.name, job, asked.words[1], asked.fields.get("lock", ""), now + delay))
        asked.answer(f"OK queue={quote(asked.name)} job={quote(job)} due_ms={ms(delay)}")
        self.tick(now)

    def _done(self, asked: Asked, now: float) -> None:
        job = self.job_of(asked, asked.fields.get("queue", ""), asked.name)
        if job is None:
            asked.answer("ERR NOTHELD the session does not have the job")
            return
        if asked.verb == "DONE":
            self.jobs.remove(job)
        job.session, job.due = None, now + seconds(asked.fields.get("delay"))
        job.attempt -= asked.fields.get("failed") == "no"
        asked.answer(f"OK queue={quote(job.queue)} job={quote(job.id)}")
        self.tick(now)

    _retry = _done

    def _list(self, asked: Asked, now: float) -> None:
        if asked.name != "jobs":
            asked.answer("ERR UNKNOWN a fake lists jobs alone")
            return
        jobs = [job for job in self.jobs if job.queue == asked.fields.get("prefix") and not job.session]
        for job in jobs:
            about = f"queue={quote(job.queue)} job={quote(job.id)} state=due due_ms={ms(job.due - now)} failed=0"
            asked.answer(f"* {about} payload={quote(job.payload)}")
        asked.answer(f"OK n={len(jobs)} more=0")

    def _drop(self, asked: Asked, now: float) -> None:
        jobs = [job for job in self.jobs if (job.queue, job.id) == tuple(asked.words) and not job.session]
        for job in jobs:
            self.jobs.remove(job)
        asked.answer(f"OK queue={quote(asked.name)}" if jobs else "ERR NOTFOUND there is no such job that nobody has")

# SPDX-License-Identifier: BSD-2-Clause
"""What a session has: locks, permits and jobs, each with its deadline. Times are seconds of the clock that the caller reads."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._wire import quote, word

Key = tuple[str, str]
NEVER = float("inf")


class Hold:
    """
    A lock, a permit or a job that the daemon has granted. It may be relied on until `until`, and not after a loss; reason is "" until then. `asked` is when
    the request was sent whose answer set `until`. `attached` is a weak reference to the front end's object, whose _news() hears what happens.
    """

    __slots__ = ("name", "owner", "fence", "ttl", "until", "asked", "check_at", "checking", "reason", "freed", "risk_until", "session", "attached")

    def __init__(self, name: str, owner: str, fence: int, ttl: float, session: int) -> None:
        self.name, self.owner, self.fence, self.ttl, self.session = name, owner, fence, ttl, session
        self.until = self.asked = 0.0
        self.check_at = NEVER
        self.risk_until = 0.0  # the deadline when the caller was warned; 0: there is no risk
        self.checking = self.freed = False
        self.reason = ""
        self.attached: Callable[[], Any] | None = None

    @property
    def key(self) -> Key:
        """What tells it apart from all else that the session has."""
        return self.name, self.owner

    @property
    def alive(self) -> bool:
        """Whether the session has it, as far as the client knows."""
        return not self.reason and not self.freed

    def confirm(self, asked: float, valid: float) -> None:
        """Takes in an answer OK to a request that was sent at that time. An answer to an earlier one than the last says nothing new."""
        if asked >= self.asked:
            self.asked, self.until = asked, asked + valid
            self.check_at = asked + min(self.ttl / 3, valid / 2)

    @property
    def risk_at(self) -> float:
        """When the caller is to be warned, because no answer has moved the deadline on."""
        return self.until - self.ttl / 6 if not self.risk_until and self.until - self.asked > self.ttl / 3 else NEVER

    def left(self, now: float) -> float:
        """For how many seconds it may be relied on, at least 0."""
        return max(0.0, self.until - now) if self.alive else 0.0

    def tell(self, kind: str, detail: Any) -> None:
        """Tells the front end's object, if somebody still refers to it."""
        told = self.attached() if self.attached is not None else None
        if told is not None:
            told._news(kind, self, detail)

    def is_at(self, fields: dict[str, str]) -> bool:
        """Whether a row or a push with the same name and owner is about this grant."""
        return fields.get("fence") == str(self.fence)

    def check(self) -> str:
        """The request that asks whether it is still held."""
        return f"CHECK {word(self.name)} owner={self.owner}"

    def extend(self, ttl: str) -> str:
        """The request that renews the lease now."""
        return f"EXTEND {quote(self.name)} owner={self.owner}{ttl}"

    def free(self, extra: str = "") -> str:
        """The request that gives it back. It may be repeated."""
        return f"UNLOCK {word(self.name)} owner={self.owner} fence={self.fence} count=0{extra}"


class Permit(Hold):
    """A permit of a semaphore."""

    __slots__ = ("permit",)

    def __init__(self, name: str, owner: str, fence: int, ttl: float, session: int, permit: int) -> None:
        super().__init__(name, owner, fence, ttl, session)
        self.permit = permit

    def is_at(self, fields: dict[str, str]) -> bool:
        return super().is_at(fields) and fields.get("permit", str(self.permit)) == str(self.permit)

    def check(self) -> str:
        return f"{super().check()} permit={self.permit}"

    def extend(self, ttl: str) -> str:
        return f"{super().extend(ttl)} permit={self.permit}"

    def free(self, extra: str = "") -> str:
        return f"RELEASE {quote(self.name)} owner={self.owner} permit={self.permit} fence={self.fence} count=0"


class JobHold(Hold):
    """A job, with the lock that was granted with it. Its name is the queue, its owner "job:" and the id."""

    __slots__ = ("job", "attempt", "payload", "lock")

    def __init__(self, fields: dict[str, str], ttl: float, session: int) -> None:
        self.job, self.attempt = fields["job"], int(fields.get("attempt", 1))
        self.payload, self.lock = fields.get("payload", ""), fields.get("name", "")
        super().__init__(fields["queue"], job_owner(self.job), int(fields.get("fence", 0)), ttl, session)

    def is_at(self, fields: dict[str, str]) -> bool:
        return True

    def check(self) -> str:
        return f"CHECK {quote(self.name)} job={quote(self.job)}"

    def free(self, extra: str = "") -> str:
        """The request that ends it: DONE, or RETRY with its fields."""
        verb, blank, rest = (extra or "DONE").partition(" ")
        return f"{verb} {quote(self.job)} queue={quote(self.name)}{blank}{rest}"


def job_owner(job: str) -> str:
    """What stands for the owner in the key of a job; no owner of our locks begins so."""
    return "job:" + job


def key_of(fields: dict[str, str]) -> Key:
    """The key of what a row or a push is about."""
    if "job" in fields:
        return fields.get("queue", ""), job_owner(fields["job"])
    return fields.get("name", ""), fields.get("owner", "")

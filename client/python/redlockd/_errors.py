# SPDX-License-Identifier: BSD-2-Clause
"""What can go wrong, as exceptions. Each text names the lock, or the address of the daemon."""
from __future__ import annotations


class RedlockError(Exception):
    """The daemon refused a request. code is the word of ERROR CODES in redlock-protocol(7), or "" if the daemon said nothing."""

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        self.code = code


class Busy(RedlockError):
    """Somebody else has it, and the request did not wait. holder says who, if that is known, and trace its traceparent; retry_after is in seconds, or None."""

    def __init__(self, text: str, name: str = "", holder: str | None = None, retry_after: float | None = None,
                 trace: str | None = None) -> None:
        super().__init__(text)
        self.name, self.holder, self.retry_after, self.trace = name, holder, retry_after, trace


class LockTimeout(RedlockError, TimeoutError):
    """The request waited, and its time ran out."""

    def __init__(self, text: str, name: str = "", holder: str | None = None, trace: str | None = None) -> None:
        super().__init__(text)
        self.name, self.holder, self.trace = name, holder, trace


class LockLost(RedlockError):
    """
    The lock cannot be relied on any more. reason is that of the daemon (quorum, expired, evicted, broken, idle), or one of the client: "expired", no answer
    came before the deadline; "disconnected", the connection broke without grace; "fork", this is a child; "closed", the client was closed; "short",
    only from ensure(): it is held, but not for so long.
    """

    def __init__(self, name: str, reason: str, fence: int = 0) -> None:
        self._text = f"the lock {name!r} is lost: {reason}" if reason != "short" else f"the lock {name!r} is not certain for so long"
        super().__init__(self._text, "LOST")
        self.args = name, reason, fence  # of which pickle makes it again
        self.name, self.reason, self.fence = name, reason, fence

    def __str__(self) -> str:
        return self._text


class NoQuorum(RedlockError):
    """Too few stores can be used, or none."""


class Deadlock(RedlockError):
    """The request would wait for somebody who waits for this owner. What is held stays held."""


class Denied(RedlockError):
    """The daemon does not let this peer, or this user, do that."""


class Draining(RedlockError):
    """The daemon is stopping and grants nothing new."""


class Disconnected(RedlockError, ConnectionError):
    """There is no connection, it broke, or no answer came in time. The text names the address."""


_BY_CODE: dict[str, type[RedlockError]] = {
    "QUORUM": NoQuorum, "UNAVAILABLE": NoQuorum, "DEADLOCK": Deadlock, "DENIED": Denied, "AUTH": Denied, "DRAINING": Draining}


def error_of(code: str, text: str, about: str) -> RedlockError:
    """The exception for an answer ERR. A code of a later version is a plain RedlockError."""
    return _BY_CODE.get(code, RedlockError)(f"{about}: {code} {text}", code)

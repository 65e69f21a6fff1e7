# SPDX-License-Identifier: BSD-2-Clause
"""The client for threads: what `import redlockd` gives."""
from __future__ import annotations

import contextlib
import dataclasses
import functools
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from ._base import (
    Answer,
    Grip,
    Once,
    Outcome,
    Rate,
    Told,
    answer_of,
    asking,
    checking,
    defer_request,
    extending,
    freeing,
    job_parts,
    rate_request,
    rate_result,
    retry_words,
    settings_of,
    terms,
    wait_of,
)
from ._engine import Engine
from ._errors import Busy, LockLost, LockTimeout, RedlockError
from ._holds import Hold
from ._place import TLS
from ._requests import PATIENCE, Ask, Take, Terms
from ._wire import duration

P = ParamSpec("P")
R = TypeVar("R")


def connect(address: str | None = None, *, label: str | None = None, grace: float = 0.0, heartbeat: float = 0.0, user: str | None = None,
            secret: str | None = None, tls: TLS | None = None, timeout: float = 5.0, on_lost: Told | None = None, on_risk: Told | None = None) -> Client:
    """
    Connects to redlockd. One client is enough for a process: all its threads may use it at once.

    address is the path of a Unix socket, host:port or tls://host:port; without one $REDLOCK_ADDR counts, else the daemon of this host. label says who we are
    to those who wait for us. With grace, in seconds, the locks outlive a broken connection and a crash of the daemon for that long; but when this process is
    killed, others wait for them for that long as well. With heartbeat the daemon ends the session when this process is stopped for longer. user and secret
    are those of $REDLOCK_USER and $REDLOCK_SECRET_FILE if they are left out. on_lost and on_risk are called with each lock that is lost or in danger, in a
    thread of the client.
    """
    settings, place = settings_of(address, label, grace, heartbeat, user, secret)
    engine = Engine(settings, place, tls or TLS(), timeout)
    try:
        engine.open()
    except BaseException:
        engine.close()
        raise
    return Client(engine, on_lost, on_risk)


class Held(Grip):
    """What can be lost while a thread works: a lock, several, a permit or a job."""

    def __init__(self, engine: Engine, wanted: Terms, on_lost: Told | None, on_risk: Told | None) -> None:
        super().__init__(wanted, on_lost, on_risk)
        self._engine = engine
        self._lost: threading.Event | None = None

    @property
    def lost(self) -> threading.Event:
        """Is set when the lock cannot be relied on any more, until it is acquired anew."""
        if self._lost is None:
            self._lost = threading.Event()
            if self.reason:
                self._lost.set()
        return self._lost

    def ensure(self, seconds: float = 0.0) -> float:
        """
        Asks the daemon, right before an effect that cannot be undone and takes so many seconds. Returns for how long the lock may be relied on, which is longer
        than that; if need be the lease is renewed first. Raises LockLost otherwise.
        """
        if not self._holds:
            raise LockLost(self.name, "released")
        for hold in self._holds:
            self._engine.call(checking(hold))
        if self.remaining <= seconds and not self._is_job():
            self.extend()
        left = self.remaining
        if left <= seconds:
            raise LockLost(self.name, self.reason or "short", self.fence)
        return left

    def extend(self, ttl: float | None = None) -> float:
        """Renews the lease now, and sets its length if ttl is given. Returns for how long the lock may be relied on."""
        for hold in self._holds:
            self._engine.call(extending(hold, ttl))
        return self.remaining

    def _is_job(self) -> bool:
        return False

    def _take(self, wait: float | None) -> None:
        wanted = self._terms if wait == self._terms.wait else dataclasses.replace(self._terms, wait=wait)
        who = f"t{threading.get_ident():x}"
        request: Take = self._engine.call(lambda core, now: core.take(wanted, who, now))
        self._attach(request.result)

    def _attach(self, holds: tuple[Hold, ...]) -> None:
        """Takes over what was granted. A loss that came meanwhile is told now."""
        self._lost = None
        self._holds = holds
        for hold in holds:
            hold.attached = self._weak
            if hold.reason:
                self._news("lost", hold, hold.reason)

    def _news(self, kind: str, hold: Hold, detail: Any) -> None:
        """Called by the engine, with its mutex."""
        if kind == "fork":
            self._lost = None  # its lock may be held by a thread that is not here
            self.lost.set()
        elif kind == "lost":
            if self._lost is not None:
                self._lost.set()
            if self._on_lost is not None:
                self._engine.later(functools.partial(self._on_lost, self))
        elif kind == "risk" and self._on_risk is not None:
            self._engine.later(functools.partial(self._on_risk, self))

    def _give(self, extra: str = "") -> None:
        """Gives all back, and raises LockLost if it was lost before."""
        holds, self._holds = self._holds, ()
        error: RedlockError | None = None
        for hold, reason, request in self._engine.start(freeing(holds, extra)):
            try:
                if reason:
                    raise LockLost(hold.name, reason, hold.fence)
                if request is not None:
                    self._engine.wait(request)
            except RedlockError as raised:
                error = error or raised
        if error is not None:
            raise error


class Lock(Held):
    """
    A lock, with the methods of threading.Lock. It is not reentrant: a second acquire() waits, whichever thread asks. One object holds the lock once at a
    time; readers and those who want several permits make an object for each.
    """

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Takes the lock. False: somebody else has it, or it was not granted in time. timeout=-1 stands for the wait that the lock was made with."""
        try:
            self._take(wait_of(blocking, timeout, self._terms.wait))
        except (Busy, LockTimeout):
            return False
        return True

    def release(self, *, keep: float = 0.0, sync: bool = False) -> None:
        """
        Gives the lock back. With keep nobody gets it for so many seconds; with sync this returns when a quorum of stores has freed it. Raises LockLost if it
        was lost before.
        """
        if not self._holds:
            raise RuntimeError("release unlocked lock")
        extra = f" keep={duration(keep)}" if keep else ""
        self._give(extra + (" sync=yes" if sync else ""))

    def __enter__(self: Self) -> Self:
        self._take(self._terms.wait)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if not self._holds:
            return
        try:
            self._give()
        except RedlockError:
            if error is None:
                raise


Self = TypeVar("Self", bound=Lock)


class Term(Lock):
    """A term of a leader: a lock that is held already. Its end by a loss is no error: the next term is campaigned for."""

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:  # type: ignore[override]
        with contextlib.suppress(LockLost):
            super().__exit__(kind, error, trace)
        return isinstance(error, LockLost)


class Job(Held):
    """A job that was taken from a queue, with its lock. `with job:` ends it: done if the block ends well, else to be tried again."""

    def __init__(self, engine: Engine, wanted: Terms, on_lost: Told | None, on_risk: Told | None, holds: tuple[Hold, ...]) -> None:
        super().__init__(engine, wanted, on_lost, on_risk)
        self._attach(holds)
        self.queue = holds[0].name
        self.id, self.payload, self.attempt, self.lock_name = job_parts(holds[0])

    def _is_job(self) -> bool:
        return True

    @property
    def ended(self) -> bool:
        """Whether done() or retry() was called."""
        return not self._holds

    def done(self) -> None:
        """The job is done and gone."""
        self._end("")

    def retry(self, delay: float = 0.0, *, failed: bool = True) -> None:
        """Gives the job back, to be due again after delay. failed=False: the attempt is not counted."""
        self._end(retry_words(delay, failed))

    def _end(self, words: str) -> None:
        if not self._holds:
            raise RuntimeError(f"the job {self.id!r} has ended already")
        self._give(words)

    def __enter__(self) -> Job:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if not self._holds:
            return
        if error is None:
            self.done()
            return
        with contextlib.suppress(RedlockError):
            self.retry()


class Client:
    """A session of redlockd. Made by connect(); ends with close(), or as a context manager."""

    def __init__(self, engine: Engine, on_lost: Told | None, on_risk: Told | None) -> None:
        self._engine, self._on_lost, self._on_risk = engine, on_lost, on_risk

    def _told(self, on_lost: Told | None, on_risk: Told | None) -> tuple[Engine, Told | None, Told | None]:
        return self._engine, on_lost or self._on_lost, on_risk or self._on_risk

    def _lock(self, wanted: Terms, on_lost: Told | None, on_risk: Told | None) -> Lock:
        engine, on_lost, on_risk = self._told(on_lost, on_risk)
        return Lock(engine, wanted, on_lost, on_risk)

    # --- locks ---

    def lock(self, name: str, *, wait: float | None = None, ttl: float | None = None, shared: bool = False, note: str | None = None,
             trace: str | None = None, priority: int = 0, on_lost: Told | None = None, on_risk: Told | None = None) -> Lock:
        """
        A lock, not taken yet: use `with`, or acquire(). wait is in seconds; 0 does not wait, None waits without end. ttl is the lease, which the daemon
        renews. Readers (shared) hold it together. trace is a traceparent, which those who are refused the lock get in their exception.
        """
        return self._lock(terms("LOCK", [name], wait, ttl, shared=shared, note=note, trace=trace, priority=priority), on_lost, on_risk)

    def locks(self, names: Iterable[str], *, wait: float | None = None, ttl: float | None = None, shared: bool = False, note: str | None = None,
              trace: str | None = None, priority: int = 0, on_lost: Told | None = None, on_risk: Told | None = None) -> Lock:
        """All of these locks, or none. fences has their tokens; the loss of one is a loss."""
        return self._lock(terms("LOCKALL", names, wait, ttl, shared=shared, note=note, trace=trace, priority=priority), on_lost, on_risk)

    def any_lock(self, names: Iterable[str], *, wait: float | None = None, ttl: float | None = None, shared: bool = False, note: str | None = None,
                 trace: str | None = None, priority: int = 0, on_lost: Told | None = None, on_risk: Told | None = None) -> Lock:
        """One of these locks, the first that is free: name says which."""
        return self._lock(terms("LOCKANY", names, wait, ttl, shared=shared, note=note, trace=trace, priority=priority), on_lost, on_risk)

    def semaphore(self, name: str, limit: int, *, wait: float | None = None, ttl: float | None = None, note: str | None = None,
                  trace: str | None = None, priority: int = 0, on_lost: Told | None = None, on_risk: Told | None = None) -> Lock:
        """One of limit permits, over all hosts together: permit says which."""
        return self._lock(terms("ACQUIRE", [name], wait, ttl, note=note, trace=trace, priority=priority, limit=limit), on_lost, on_risk)

    def locked(self, name: str, **options: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Decorator: the function runs under a lock. {0} or {user} in the name stand for its arguments; options are those of lock()."""
        def decorate(function: Callable[P, R]) -> Callable[P, R]:
            @functools.wraps(function)
            def inside(*args: P.args, **kwargs: P.kwargs) -> R:
                with self.lock(name.format(*args, **kwargs), **options):
                    return function(*args, **kwargs)
            return inside
        return decorate

    def lead(self, name: str, *, ttl: float | None = None, note: str | None = None, trace: str | None = None, on_lost: Told | None = None,
             on_risk: Told | None = None) -> Iterator[Term]:
        """
        Campaigns for a leadership, over and over: `for term in client.lead("x"): with term: ...`. Each term begins when it was won, and ends with its block.
        """
        engine, on_lost, on_risk = self._told(on_lost, on_risk)
        while True:
            term = Term(engine, terms("LOCK", [name], None, ttl, note=note, trace=trace), on_lost, on_risk)
            term._take(None)
            yield term
            if term._holds:
                term.__exit__(None, None, None)

    def once(self, name: str, every: float, function: Callable[[], object]) -> bool:
        """
        Calls the function, unless it runs now or has begun within `every` seconds, on any host. Returns whether it was called. It runs under the lock of that
        name. A call that raises counts as well; one whose lock was lost does not, and raises LockLost. `redlock once` has the same records.
        """
        run, lock = Once(name, every), self.lock(name, wait=0)
        if not lock.acquire():
            return False
        with contextlib.ExitStack() as stack:
            stack.push(lock)
            if not run.begins(self.ask(run.history)):
                return False
            try:
                function()
            except BaseException:
                with contextlib.suppress(RedlockError):
                    self._has_run(run, lock, 1)
                raise
            self._has_run(run, lock, 0)
        return True

    def once_status(self, name: str) -> Outcome | None:
        """The result of the last call of once(), on whatever host, or of `redlock once`. None: no run is known."""
        run = Once(name)
        return run.last(self.ask(run.history))

    def _has_run(self, run: Once, lock: Lock, status: int) -> None:
        lock.ensure()
        payload, delay = run.record(status)
        self.defer(run.queue, payload, delay=delay)
        with contextlib.suppress(RedlockError):  # else the next run drops them
            for request in run.drops():
                self.ask(request)

    # --- rate limits and jobs ---

    def rate(self, name: str, limit: int, per: float, *, cost: int = 1, wait: float | None = 0.0) -> Rate:
        """Counts one more use, if no time of the length per has more than limit. Raises Busy, with retry_after, or LockTimeout. cost=0 only asks."""
        request: Ask = self._ask(lambda now: rate_request(name, limit, per, cost, wait, now))
        return rate_result(name, request.result)

    def defer(self, queue: str, payload: str | bytes, *, delay: float = 0.0, lock: str | None = None, id: str | None = None) -> str:
        """Puts a job into a queue, and returns its id. While one of this id is there, it is the same job. lock is granted together with it."""
        request: Ask = self._ask(lambda now: defer_request(queue, payload, delay, lock, id, now))
        return str(request.result.fields.get("job", ""))

    def job(self, queue: str, *, wait: float | None = None, ttl: float | None = None, on_lost: Told | None = None, on_risk: Told | None = None) -> Job:
        """Takes the first job of a queue that is due. Raises Busy or LockTimeout if there is none."""
        engine, on_lost, on_risk = self._told(on_lost, on_risk)
        wanted = terms("TAKE", [queue], wait, ttl)
        request: Take = engine.call(lambda core, now: core.take(wanted, "", now))
        return Job(engine, wanted, on_lost, on_risk, request.result)

    def jobs(self, queue: str, *, wait: float | None = None, ttl: float | None = None, on_lost: Told | None = None,
             on_risk: Told | None = None) -> Iterator[Job]:
        """
        The jobs of a queue, one after the other, until none came for wait seconds. A job that was neither done nor given back when the next one is asked for is
        done. One whose loop is left is to be tried again, unless done() was called.
        """
        while True:
            try:
                job = self.job(queue, wait=wait, ttl=ttl, on_lost=on_lost, on_risk=on_risk)
            except (Busy, LockTimeout):
                return
            try:
                yield job
            except GeneratorExit:
                with contextlib.suppress(RedlockError, RuntimeError):
                    job.retry()
                raise
            if not job.ended:
                job.done()

    # --- anything else ---

    def ask(self, request: str, *, wait: float = 0.0) -> Answer:
        """Sends any line of redlock-protocol(7), such as "SHOW orders/42". wait is that of the line. What it takes is yours to keep and to give back."""
        done: Ask = self._ask(lambda now: Ask(request, now + wait + PATIENCE))
        return answer_of(done, done.result)

    def _ask(self, make: Callable[[float], Ask]) -> Ask:
        request: Ask = self._engine.call(asking(make))
        return request

    def close(self) -> None:
        """Ends the session: all that it holds is free at once."""
        self._engine.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __del__(self, _warn: Callable[..., None] = warnings.warn) -> None:
        if not self._engine.closed:
            _warn(f"{self!r} was not closed: its locks stay held until this process ends", ResourceWarning, source=self, stacklevel=2)

    def __repr__(self) -> str:
        return f"<Client {self._engine.core.settings.address}>"

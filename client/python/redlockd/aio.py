# SPDX-License-Identifier: BSD-2-Clause
"""
The client for asyncio, with the names of redlockd.

    async with redlockd.aio.connect() as client:
        async with client.lock("orders/42", wait=5) as lock:
            await write(fence=lock.fence)

When the lock is lost, the task inside `async with` is cancelled, and the block raises LockLost, as asyncio.timeout() raises TimeoutError. All requests of one
turn of the loop are sent at once.
"""
from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import inspect
import logging
import os
import warnings
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from . import _place
from ._base import (
    Answer,
    Begin,
    Grip,
    Once,
    Outcome,
    Rate,
    Told,
    answer_of,
    asking,
    checking,
    defer_request,
    dropping,
    extending,
    freeing,
    job_parts,
    opening,
    rate_request,
    rate_result,
    retry_words,
    settings_of,
    terms,
    wait_of,
)
from ._core import Core, News, Settings
from ._errors import Busy, LockLost, LockTimeout, RedlockError
from ._holds import NEVER, Hold
from ._place import TLS, Place
from ._requests import PATIENCE, Ask, Request, Take, Terms
from ._wire import duration

P = ParamSpec("P")
R = TypeVar("R")
_log = logging.getLogger("redlockd")
_engines: weakref.WeakSet[Engine] = weakref.WeakSet()


class _Wire(asyncio.Protocol):
    """One connection: hands bytes to the engine, as long as that is its connection."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.transport = engine, None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.engine.connected(self, transport)  # type: ignore[arg-type]

    def data_received(self, data: bytes) -> None:
        if self.engine.wire is self:
            self.engine.core.receive(data, _place.now())
            self.engine.settle()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.engine.wire is self:
            why = (getattr(exc, "strerror", None) or str(exc)) if exc else "the daemon closed the connection"
            self.engine.core.disconnected(why, _place.now())
            self.engine.settle()


class Engine:
    """Moves bytes between the core and a loop, and wakes tasks. One timer serves all holds and requests."""

    def __init__(self, settings: Settings, place: Place, tls: TLS, timeout: float) -> None:
        self.core, self.place, self.tls, self.timeout = Core(settings), place, tls, timeout
        self.loop = asyncio.get_running_loop()
        self.wire: _Wire | None = None
        self.transport: asyncio.Transport | None = None
        self.dialing: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.timer_at = NEVER
        self.flushing = self.closed = False
        _engines.add(self)

    # --- requests ---

    def start(self, begin: Begin) -> Any:
        """Has begin() submit requests, which are sent at the end of this turn of the loop."""
        now = _place.now()
        if now >= self.core.wake:
            self.core.tick(now)
        made = begin(self.core, now)
        if not self.flushing:
            self.flushing = True
            self.loop.call_soon(self.flush)
        return made

    async def wait(self, request: Request) -> None:
        """Waits until a request has finished, and raises its error. A wait that is cancelled is withdrawn."""
        if not request.finished:
            request.waiter = future = self.loop.create_future()
            try:
                await future
            except asyncio.CancelledError:
                request.waiter = None
                self.start(dropping(request))
                raise
        if request.error is not None:
            raise request.error

    async def call(self, begin: Begin) -> Any:
        """Both."""
        request = self.start(begin)
        if request is not None:
            await self.wait(request)
        return request

    # --- what follows from what the core was told ---

    def flush(self) -> None:
        """Sends what was asked in this turn of the loop."""
        self.flushing = False
        self.settle()

    def settle(self) -> None:
        """Closes, sends, tells, dials, and sets the timer."""
        core = self.core
        if core.events:
            for event in core.take_events():
                if isinstance(event, Request):
                    waiter: asyncio.Future[None] | None = event.waiter
                    if waiter is not None and not waiter.done():
                        waiter.set_result(None)
                else:
                    self.tell(event)
        if self.transport is not None:
            if core.online:
                data = core.take_output()
                if data:
                    self.transport.write(data)
            else:
                self.drop()
        if core.wake < self.timer_at:
            self.arm()
        if core.dial_at < NEVER and self.dialing is None:
            self.dialing = self.loop.create_task(self.dial())

    def arm(self) -> None:
        """Has the loop come back at core.wake."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer_at = self.core.wake
        self.timer = self.loop.call_later(max(0.0, self.timer_at - _place.now()), self.tick) if self.timer_at < NEVER else None

    def tick(self) -> None:
        """The timer."""
        self.timer, self.timer_at = None, NEVER
        self.core.tick(_place.now())
        self.settle()
        if self.timer is None:
            self.arm()

    def tell(self, news: News) -> None:
        """Tells a lock, or the log."""
        if news.hold is not None:
            news.hold.tell(news.kind, news.detail)
        elif news.kind == "down":
            _log.info("%s", news.detail)

    def later(self, task: Callable[[], object]) -> None:
        """Calls a function of a user. What it returns is awaited if need be."""
        def run() -> None:
            made = task()
            if inspect.isawaitable(made):
                running.add(asyncio.ensure_future(made))
        running: set[Any] = set()
        self.loop.call_soon(run)

    # --- the connection ---

    async def dial(self) -> None:
        """Connects, at dial_at, until that has worked or is not wanted any more."""
        while self.core.dial_at < NEVER:
            await asyncio.sleep(max(0.0, self.core.dial_at - _place.now()))
            if self.core.dial_at == NEVER:
                break
            try:
                await asyncio.wait_for(self.make(), self.timeout)
            except (OSError, ValueError, asyncio.TimeoutError) as error:
                why = getattr(error, "strerror", None) or str(error) or f"no connection within {self.timeout:g} s"
                if self.core.dial_at < NEVER:
                    self.core.not_connected(why, _place.now())
                    self.settle()
        self.dialing = None
        self.settle()

    async def make(self) -> None:
        """One attempt to connect."""
        place = self.place
        if place.path:
            await self.loop.create_unix_connection(lambda: _Wire(self), place.path)
        elif place.tls:
            context, name = self.tls.context(), self.tls.name(place)
            await self.loop.create_connection(lambda: _Wire(self), place.host, place.port, ssl=context, server_hostname=name)
        else:
            await self.loop.create_connection(lambda: _Wire(self), place.host, place.port)

    def connected(self, wire: _Wire, transport: asyncio.Transport) -> None:
        """A connection is there."""
        if self.core.dial_at == NEVER:  # closed meanwhile
            transport.abort()
            return
        sock = transport.get_extra_info("socket")
        if not self.place.path and sock is not None:
            _place.tune(sock)
        self.wire, self.transport = wire, transport
        self.core.connected(_place.now())
        self.settle()

    def drop(self) -> None:
        """Closes the connection. What was not sent yet is not sent any more."""
        transport, self.wire, self.transport = self.transport, None, None
        if transport is not None:
            transport.abort()

    async def open(self) -> None:
        """Waits until the session is there."""
        await self.call(opening(self.timeout))

    async def close(self) -> None:
        """Ends the session, and waits a second at most until the daemon has read that."""
        if self.closed:
            return
        self.closed = True
        try:
            await self.call(lambda core, now: core.quit(now))
        except RedlockError:
            pass
        finally:
            self.core.close(_place.now())
            self.settle()
            if self.timer is not None:
                self.timer.cancel()
            if self.dialing is not None:
                self.dialing.cancel()

    def after_fork(self) -> None:
        """In the child: nothing is held, and the connection is the parent's. The loop of the parent is of no use here."""
        sock = self.transport.get_extra_info("socket") if self.transport is not None else None
        if sock is not None and sock.fileno() >= 0:
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, sock.fileno(), inheritable=False)  # the number stays that of the transport, which closes it some time
            os.close(nothing)
        self.wire = self.transport = None
        self.core.forked()
        for event in self.core.take_events():
            if isinstance(event, News) and event.hold is not None:
                event.hold.tell("fork", "fork")


def _after_fork() -> None:
    for engine in list(_engines):
        engine.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class connect:
    """
    Connects to redlockd: `client = await connect()`, or `async with connect() as client`. The arguments are those of redlockd.connect(). on_lost and on_risk
    may be coroutine functions.
    """

    def __init__(self, address: str | None = None, *, label: str | None = None, grace: float = 0.0, heartbeat: float = 0.0, user: str | None = None,
                 secret: str | None = None, tls: TLS | None = None, timeout: float = 5.0, on_lost: Told | None = None, on_risk: Told | None = None) -> None:
        self._settings, self._place = settings_of(address, label, grace, heartbeat, user, secret)
        self._tls, self._timeout, self._on_lost, self._on_risk = tls or TLS(), timeout, on_lost, on_risk
        self._client: Client | None = None

    async def _open(self) -> Client:
        engine = Engine(self._settings, self._place, self._tls, self._timeout)
        try:
            await engine.open()
        except BaseException:
            await engine.close()
            raise
        self._client = Client(engine, self._on_lost, self._on_risk)
        return self._client

    def __await__(self) -> Generator[Any, None, Client]:
        return self._open().__await__()

    async def __aenter__(self) -> Client:
        return await self._open()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._client is not None:
            await self._client.close()


class Held(Grip):
    """What can be lost while a task works: a lock, several, a permit or a job."""

    def __init__(self, engine: Engine, wanted: Terms, on_lost: Told | None, on_risk: Told | None) -> None:
        super().__init__(wanted, on_lost, on_risk)
        self._engine = engine
        self._lost: asyncio.Event | None = None
        self._task: asyncio.Task[Any] | None = None  # the one inside `async with`
        self._asker: asyncio.Task[Any] | None = None  # the one that took it last
        self._cancelled = False  # by us

    @property
    def lost(self) -> asyncio.Event:
        """Is set when the lock cannot be relied on any more, until it is acquired anew."""
        if self._lost is None:
            self._lost = asyncio.Event()
            if self.reason:
                self._lost.set()
        return self._lost

    async def ensure(self, seconds: float = 0.0) -> float:
        """
        Asks the daemon, right before an effect that cannot be undone and takes so many seconds. Returns for how long the lock may be relied on, which is longer
        than that; if need be the lease is renewed first. Raises LockLost otherwise.
        """
        if not self._holds:
            raise LockLost(self.name, "released")
        for hold in self._holds:
            await self._engine.call(checking(hold))
        if self.remaining <= seconds and not self._is_job():
            await self.extend()
        left = self.remaining
        if left <= seconds:
            raise LockLost(self.name, self.reason or "short", self.fence)
        return left

    async def extend(self, ttl: float | None = None) -> float:
        """Renews the lease now, and sets its length if ttl is given. Returns for how long the lock may be relied on."""
        for hold in self._holds:
            await self._engine.call(extending(hold, ttl))
        return self.remaining

    def _is_job(self) -> bool:
        return False

    async def _take(self, wait: float | None) -> None:
        wanted = self._terms if wait == self._terms.wait else dataclasses.replace(self._terms, wait=wait)
        self._asker = task = asyncio.current_task()
        who = f"t{id(task):x}"
        request: Take = self._engine.start(lambda core, now: core.take(wanted, who, now))
        await self._engine.wait(request)
        self._attach(request.result)

    def _attach(self, holds: tuple[Hold, ...]) -> None:
        """Takes over what was granted. A loss that came meanwhile is told now."""
        self._lost, self._cancelled = None, False
        self._holds = holds
        for hold in holds:
            hold.attached = self._weak
            if hold.reason:
                self._news("lost", hold, hold.reason)

    def _news(self, kind: str, hold: Hold, detail: Any) -> None:
        if kind in ("lost", "fork"):
            if self._lost is not None:
                self._lost.set()
            if kind == "lost" and self._on_lost is not None:
                self._engine.later(functools.partial(self._on_lost, self))
            if kind == "lost" and self._task is not None and not self._cancelled:
                self._cancelled = True
                self._task.cancel(f"the lock {hold.name!r} is lost: {detail}")
        elif kind == "risk" and self._on_risk is not None:
            self._engine.later(functools.partial(self._on_risk, self))

    def _enter(self) -> None:
        """The task that calls this is cancelled by a loss."""
        self._task = self._asker or asyncio.current_task()
        if self.reason:
            holds, self._holds = self._holds, ()
            self._engine.start(freeing(holds))
            raise LockLost(holds[0].name, next(hold.reason for hold in holds if hold.reason), holds[0].fence)

    async def _leave(self, error: BaseException | None) -> bool:
        """Whether the end of the block is our own cancellation. Takes back a cancellation that the block has not seen."""
        task, self._task = self._task, None
        if not self._cancelled or task is None:
            return False
        self._cancelled = False
        if error is None:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
        uncancel = getattr(task, "uncancel", None)  # of Python 3.11
        others = uncancel() if uncancel is not None else 0
        return others == 0 and (error is None or isinstance(error, asyncio.CancelledError))

    async def _give(self, extra: str = "") -> None:
        """Gives all back, and raises LockLost if it was lost before. The requests go out even if the task is cancelled."""
        holds, self._holds = self._holds, ()
        error: RedlockError | None = None
        for hold, reason, request in self._engine.start(freeing(holds, extra)):
            try:
                if reason:
                    raise LockLost(hold.name, reason, hold.fence)
                if request is not None:
                    await self._engine.wait(request)
            except RedlockError as raised:
                error = error or raised
        if error is not None:
            raise error

    async def _exit(self, error: BaseException | None, words: str = "") -> None:
        """The end of a block."""
        ours = await self._leave(error) if self._cancelled else False
        self._task = self._asker = None
        if not self._holds:
            return
        try:
            await self._give(words)
        except LockLost as lost:
            if ours:
                raise lost from error
            if error is None:
                raise
        except RedlockError:
            if error is None:
                raise


class Lock(Held):
    """
    A lock, with the methods of asyncio.Lock. It is not reentrant: a second acquire() waits, whichever task asks. One object holds the lock once at a time;
    readers and those who want several permits make an object for each.
    """

    async def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Takes the lock. False: somebody else has it, or it was not granted in time. timeout=-1 stands for the wait that the lock was made with."""
        try:
            await self._take(wait_of(blocking, timeout, self._terms.wait))
        except (Busy, LockTimeout):
            return False
        return True

    async def release(self, *, keep: float = 0.0, sync: bool = False) -> None:
        """
        Gives the lock back. With keep nobody gets it for so many seconds; with sync this returns when a quorum of stores has freed it. Raises LockLost if it
        was lost before.
        """
        if not self._holds:
            raise RuntimeError("Lock is not acquired.")
        extra = f" keep={duration(keep)}" if keep else ""
        await self._give(extra + (" sync=yes" if sync else ""))

    async def __aenter__(self: Self) -> Self:
        await self._take(self._terms.wait)
        self._enter()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool | None:
        await self._exit(error)
        return None


Self = TypeVar("Self", bound=Lock)


class Term(Lock):
    """A term of a leader: a lock that is held already. Its end by a loss is no error: the next term is campaigned for."""

    async def __aenter__(self: Self) -> Self:
        try:
            self._enter()
        except LockLost:
            self._cancelled = True
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        try:
            await super().__aexit__(kind, error, trace)
        except LockLost:
            return True
        return isinstance(error, LockLost)


class Job(Held):
    """A job that was taken from a queue, with its lock. `async with job:` ends it: done if the block ends well, else to be tried again."""

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

    async def done(self) -> None:
        """The job is done and gone."""
        await self._end("")

    async def retry(self, delay: float = 0.0, *, failed: bool = True) -> None:
        """Gives the job back, to be due again after delay. failed=False: the attempt is not counted."""
        await self._end(retry_words(delay, failed))

    async def _end(self, words: str) -> None:
        if not self._holds:
            raise RuntimeError(f"the job {self.id!r} has ended already")
        await self._give(words)

    async def __aenter__(self) -> Job:
        self._enter()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._exit(error, "" if error is None else retry_words(0, True))


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
        A lock, not taken yet: use `async with`, or acquire(). wait is in seconds; 0 does not wait, None waits without end. ttl is the lease, which the daemon
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

    def locked(self, name: str, **options: Any) -> Callable[[Callable[P, Awaitable[R]]], Callable[P, Awaitable[R]]]:
        """Decorator: the coroutine function runs under a lock. {0} or {user} in the name stand for its arguments; options are those of lock()."""
        def decorate(function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
            @functools.wraps(function)
            async def inside(*args: P.args, **kwargs: P.kwargs) -> R:
                async with self.lock(name.format(*args, **kwargs), **options):
                    return await function(*args, **kwargs)
            return inside
        return decorate

    async def lead(self, name: str, *, ttl: float | None = None, note: str | None = None, trace: str | None = None, on_lost: Told | None = None,
                   on_risk: Told | None = None) -> AsyncIterator[Term]:
        """
        Campaigns for a leadership, over and over: `async for term in client.lead("x"): async with term: ...`. Each term begins when it was won, and ends with
        its block.
        """
        engine, on_lost, on_risk = self._told(on_lost, on_risk)
        while True:
            term = Term(engine, terms("LOCK", [name], None, ttl, note=note, trace=trace), on_lost, on_risk)
            await term._take(None)
            yield term
            if term._holds:
                await term.__aexit__(None, None, None)

    async def once(self, name: str, every: float, function: Callable[[], Awaitable[object]]) -> bool:
        """
        Calls the coroutine function, unless it runs now or has begun within `every` seconds, on any host. Returns whether it was called. It runs under the lock
        of that name. A call that raises counts as well; one whose lock was lost does not, and raises LockLost. `redlock once` has the same records.
        """
        run, lock = Once(name, every), self.lock(name, wait=0)
        if not await lock.acquire():
            return False
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_exit(lock)
            lock._enter()
            if not run.begins(await self.ask(run.history)):
                return False
            try:
                await function()
            except BaseException:
                with contextlib.suppress(RedlockError):
                    await self._has_run(run, lock, 1)
                raise
            await self._has_run(run, lock, 0)
        return True

    async def once_status(self, name: str) -> Outcome | None:
        """The result of the last call of once(), on whatever host, or of `redlock once`. None: no run is known."""
        run = Once(name)
        return run.last(await self.ask(run.history))

    async def _has_run(self, run: Once, lock: Lock, status: int) -> None:
        await lock.ensure()
        payload, delay = run.record(status)
        await self.defer(run.queue, payload, delay=delay)
        with contextlib.suppress(RedlockError):  # else the next run drops them
            for request in run.drops():
                await self.ask(request)

    # --- rate limits and jobs ---

    async def rate(self, name: str, limit: int, per: float, *, cost: int = 1, wait: float | None = 0.0) -> Rate:
        """Counts one more use, if no time of the length per has more than limit. Raises Busy, with retry_after, or LockTimeout. cost=0 only asks."""
        request = await self._ask(lambda now: rate_request(name, limit, per, cost, wait, now))
        return rate_result(name, request.result)

    async def defer(self, queue: str, payload: str | bytes, *, delay: float = 0.0, lock: str | None = None, id: str | None = None) -> str:
        """Puts a job into a queue, and returns its id. While one of this id is there, it is the same job. lock is granted together with it."""
        request = await self._ask(lambda now: defer_request(queue, payload, delay, lock, id, now))
        return str(request.result.fields.get("job", ""))

    async def job(self, queue: str, *, wait: float | None = None, ttl: float | None = None, on_lost: Told | None = None,
                  on_risk: Told | None = None) -> Job:
        """Takes the first job of a queue that is due. Raises Busy or LockTimeout if there is none."""
        engine, on_lost, on_risk = self._told(on_lost, on_risk)
        wanted = terms("TAKE", [queue], wait, ttl)
        request: Take = await engine.call(lambda core, now: core.take(wanted, "", now))
        return Job(engine, wanted, on_lost, on_risk, request.result)

    async def jobs(self, queue: str, *, wait: float | None = None, ttl: float | None = None, on_lost: Told | None = None,
                   on_risk: Told | None = None) -> AsyncIterator[Job]:
        """
        The jobs of a queue, one after the other, until none came for wait seconds. A job that was neither done nor given back when the next one is asked for is
        done. One whose loop is left stays with this session until it is ended: use `async with job:`.
        """
        while True:
            try:
                job = await self.job(queue, wait=wait, ttl=ttl, on_lost=on_lost, on_risk=on_risk)
            except (Busy, LockTimeout):
                return
            yield job
            if not job.ended:
                await job.done()

    # --- anything else ---

    async def ask(self, request: str, *, wait: float = 0.0) -> Answer:
        """Sends any line of redlock-protocol(7), such as "SHOW orders/42". wait is that of the line. What it takes is yours to keep and to give back."""
        done = await self._ask(lambda now: Ask(request, now + wait + PATIENCE))
        return answer_of(done, done.result)

    async def _ask(self, make: Callable[[float], Ask]) -> Ask:
        request: Ask = await self._engine.call(asking(make))
        return request

    async def close(self) -> None:
        """Ends the session: all that it holds is free at once."""
        await self._engine.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    def __del__(self, _warn: Callable[..., None] = warnings.warn) -> None:
        if not self._engine.closed:
            _warn(f"{self!r} was not closed: its locks stay held until its loop ends", ResourceWarning, source=self, stacklevel=2)

    def __repr__(self) -> str:
        return f"<Client {self._engine.core.settings.address}>"

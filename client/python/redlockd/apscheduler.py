# SPDX-License-Identifier: BSD-2-Clause
"""
For APScheduler 3: of several hosts that have the same job, one runs each fire.

    @redlockd.apscheduler.one_host("nightly", keep=60)
    def work(): ...

    scheduler.add_job(work, "cron", hour=3)

Nothing of APScheduler is imported: a job is a function, and of a module, so that stores of jobs can name it.
"""
from __future__ import annotations

import contextlib
import functools
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from . import aio
from ._errors import Busy, LockTimeout, RedlockError
from ._guard import guarded, shared
from ._threads import Client

__all__ = ["one_host"]

F = TypeVar("F", bound=Callable[..., Any])
_log = logging.getLogger("redlockd")


def one_host(name: str, keep: float, *, client: Client | aio.Client | None = None) -> Callable[[F], F]:
    """
    Decorator: the function runs under the lock of that name, and not at all while somebody else has it; then it returns None. When the lock is lost, the
    function is aborted with LockLost.

    keep is in seconds: for so long after a run no other host begins one. It must be longer than the clocks of hosts are apart, and shorter than the time
    between two fires; half of that is good. It is at most max_keep of the daemon. A coroutine function takes a client of redlockd.aio. Without a client it is
    that of the process, or of a coroutine function one for each run, for $REDLOCK_ADDR or the daemon of this host.
    """
    def decorate(function: F) -> F:
        if inspect.iscoroutinefunction(function):
            @functools.wraps(function)
            async def runs_in_task(*args: Any, **kwargs: Any) -> Any:
                async with contextlib.AsyncExitStack() as stack:
                    of = client if isinstance(client, aio.Client) else await stack.enter_async_context(aio.connect())
                    return await _in_task(of.lock(name, wait=0.0), functools.partial(function, *args, **kwargs), keep)
            return runs_in_task  # type: ignore[return-value]

        @functools.wraps(function)
        def runs(*args: Any, **kwargs: Any) -> Any:
            of = client if isinstance(client, Client) else shared()
            return guarded(of, name, 0.0, functools.partial(function, *args, **kwargs), lambda well: keep, _busy)
        return runs  # type: ignore[return-value]
    return decorate


async def _in_task(lock: aio.Lock, function: Callable[[], Awaitable[Any]], keep: float) -> Any:
    """guarded(), for a coroutine function."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(lock)
        except (Busy, LockTimeout) as busy:
            return _busy(busy)
        try:
            result = await function()
        except BaseException:
            if keep > 0 and not lock.reason:
                with contextlib.suppress(RedlockError):
                    await lock.release(keep=keep)
            raise
        if keep > 0 and not lock.reason:
            await lock.release(keep=keep)
    return result


def _busy(busy: RedlockError) -> None:
    _log.info("a job does not run here: %s", busy)

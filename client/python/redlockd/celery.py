# SPDX-License-Identifier: BSD-2-Clause
"""
For Celery: a task that holds a lock while it runs.

    @app.task(base=redlockd.celery.LockedTask, lock="invoice/{0}")
    def bill(order): ...

Of all workers one runs it at a time. When the lock is lost, the task is aborted with LockLost: at once if it runs Python, else when the call that it waits for
returns. It needs Celery 5.3 or later, and workers of processes or threads.
"""
from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ._errors import RedlockError
from ._guard import guarded, shared
from ._requests import PATIENCE
from ._threads import Client

if TYPE_CHECKING:
    class Ignore(Exception):
        """celery.exceptions.Ignore"""

    class Task:
        """What is used of celery.Task."""

        name: str
        request: Any
        backend: Any
        ignore_result: bool

        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

        def retry(self, *, exc: Exception) -> Exception: ...
else:
    from celery import Task
    from celery.exceptions import Ignore

__all__ = ["LockedTask"]


class LockedTask(Task):
    """The base of such tasks. All that follows can be an argument of app.task(), or an attribute of a class."""

    abstract = True
    lock: str | None = None
    """The name of the lock. {0} or {user} stand for the arguments of the task. Without a name it is "celery/" and the name of the task."""
    lock_wait: float = 0.0
    """For how many seconds a worker waits for the lock."""
    lock_keep: float = 0.0
    """
    For how many seconds after a run that went well nobody gets the lock: a message that is delivered twice runs once. At most max_keep of the daemon.
    """
    lock_busy: str = "drop"
    """
    What becomes of a task whose lock somebody else has. "drop": it is over, with the state REVOKED, unless its message is delivered again: then the lock may be
    that of the first delivery. A task that is tried again waits for five seconds before, since the try before may still be giving the lock back. "retry": it is
    tried again, as its default_retry_delay and max_retries say, and fails in the end with Busy, or with LockTimeout if it waits.
    """
    lock_client: Client | None = None
    """None: a client of the process, for $REDLOCK_ADDR or the daemon of this host."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = "celery/" + self.name if self.lock is None else self.lock.format(*args, **kwargs)
        run = functools.partial(super().__call__, *args, **kwargs)
        wait = self.lock_wait
        if self.request.retries and self.lock_busy != "retry":  # the try before may still be giving the lock back
            wait = max(wait, PATIENCE)
        return guarded(self.lock_client or shared(), name, wait, run, lambda well: self.lock_keep if well else 0.0, self._busy)

    def _busy(self, busy: RedlockError) -> Any:
        """Somebody else has the lock."""
        if self.request.called_directly:
            raise busy
        if self.lock_busy == "retry":
            raise self.retry(exc=busy)
        again = (self.request.delivery_info or {}).get("redelivered")  # the run that has the lock may be that of the same message
        if not again and not self.request.is_eager:
            self.backend.mark_as_revoked(self.request.id, str(busy), request=self.request, store_result=not self.ignore_result)
        raise Ignore(str(busy))

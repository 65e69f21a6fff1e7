# SPDX-License-Identifier: BSD-2-Clause
"""
For the modules that join redlockd with other packages: a client that a process shares, and a function that is aborted in its thread when its lock is lost, as
Celery aborts one whose time is over. The exception comes at the next step of Python: a call that waits inside the system is not interrupted.
"""
from __future__ import annotations

import atexit
import contextlib
import ctypes
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from ._errors import Busy, LockLost, LockTimeout, RedlockError
from ._threads import Client, Lock, connect

R = TypeVar("R")
_clients: dict[str | None, Client] = {}
_lost: dict[int, Lock] = {}  # by thread, while the exception is on its way


def shared(address: str | None = None) -> Client:
    """The client of this process for an address, opened when it is needed first. A child has one connection of its own."""
    client = _clients.get(address)
    if client is None:
        made = connect(address)
        client = _clients.setdefault(address, made)
        if client is not made:  # another thread was quicker
            made.close()
    return client


@atexit.register
def _close() -> None:
    for client in _clients.values():
        client.close()


class _Aborted(LockLost):
    """Made in the thread that it is raised in."""

    def __init__(self) -> None:
        lock = _lost[threading.get_ident()]
        super().__init__(lock.name, lock.reason, lock.fence)

    def __reduce__(self) -> tuple[Any, ...]:
        return LockLost, self.args


class _Run:
    """A function that runs in this thread, and may be aborted by another one until it has returned."""

    def __init__(self) -> None:
        self.thread, self.mutex = threading.get_ident(), threading.Lock()
        self.running = self.aborted = False

    def begin(self, lock: Lock) -> None:
        with self.mutex:
            if lock.reason:
                raise LockLost(lock.name, lock.reason, lock.fence)
            self.running = True

    def abort(self, lock: Lock) -> None:
        """The lock is lost."""
        with self.mutex:
            if self.running:
                self.aborted, _lost[self.thread] = True, lock
                _raise(self.thread, _Aborted)

    def end(self) -> None:
        with self.mutex:
            self.running = False
        if self.aborted:
            _raise(self.thread, None)  # an exception that has not come yet does not come any more
            _lost.pop(self.thread, None)


def _raise(thread: int, exception: type[BaseException] | None) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), None if exception is None else ctypes.py_object(exception))


def guarded(client: Client, name: str, wait: float, function: Callable[[], R], keep: Callable[[bool], float], busy: Callable[[RedlockError], R]) -> R:
    """
    Runs a function under a lock; or busy(), if somebody else has that. Raises LockLost if the lock is lost. After a run the name is left taken for so many
    seconds as keep() says of one that went well, or did not.
    """
    run, well = _Run(), False
    lock = client.lock(name, wait=wait, on_lost=run.abort)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(lock)
        except (Busy, LockTimeout) as error:
            return busy(error)
        try:
            try:
                run.begin(lock)
                result = function()
                well = True
            finally:
                run.end()
        except _Aborted as aborted:
            raise LockLost(*aborted.args) from aborted
        finally:
            if keep(well) > 0 and not lock.reason:
                with contextlib.nullcontext() if well else contextlib.suppress(RedlockError):
                    lock.release(keep=keep(well))
    return result

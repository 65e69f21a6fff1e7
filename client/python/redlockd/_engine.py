# SPDX-License-Identifier: BSD-2-Clause
"""
One connection for all threads of a process. The core decides; this moves bytes, and tells the threads.

mutex guards the core and the socket, and is never held over a call that waits. One thread at a time has the reader's part: it polls the socket, without the
mutex. A thread that waits for an answer takes that part if it is free, so that a request of a lone thread costs no change of threads; else it waits at a gate
until its request has finished or the part is free. The keeper, a thread of its own, has the part whenever nobody else has had it for 10 ms. It also connects,
and calls the functions of users.
"""
from __future__ import annotations

import atexit
import contextlib
import logging
import os
import queue
import select
import socket
import ssl
import threading
import weakref
from collections.abc import Callable
from typing import Any

from . import _place
from ._base import Begin, dropping, opening
from ._core import Core, News, Settings
from ._errors import RedlockError
from ._holds import NEVER
from ._place import TLS, Place
from ._requests import Request

PIECE = 65536
IDLE = 0.01
"""Seconds for which nobody may read before the keeper does: a loss is told that much later at most."""
PARKED = 3
"""When the keeper has found somebody else reading so often in a row, the reader calls it when it leaves."""
TORN = 1.0
"""Seconds after which a reader that does nothing has none of its part any more."""
GLANCE = 1.0
"""Seconds after which the main thread looks up from a wait: a signal that comes just before the wait begins, or to another thread, does not interrupt it."""
_NOT_YET = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_log = logging.getLogger("redlockd")
_engines: weakref.WeakSet[Engine] = weakref.WeakSet()


class Engine:
    """See the top of this file."""

    def __init__(self, settings: Settings, place: Place, tls: TLS, timeout: float) -> None:
        self.core, self.place, self.tls, self.timeout = Core(settings), place, tls, timeout
        self.closed = False
        self._begin()
        _engines.add(self)

    def _begin(self) -> None:
        self.mutex = threading.Lock()
        self.sock: socket.socket | None = None
        self.unsent = b""
        self.reader: object | None = None  # who has the part: a token of the thread's own
        self.polling: object | None = None  # the token of whoever polls
        self.steps = self.seen = 0  # of the reader: how often it has looked; and what the keeper saw of that
        self.seen_at = 0.0  # when the keeper saw it change, or poll
        self.until = 0.0  # when the reader looks up by itself
        self.gates: dict[Request, threading.Lock] = {}
        self.crowd = False  # somebody found the keeper reading
        self.busy = 0  # how often in a row the keeper has found somebody reading
        self.dialing = False
        self.tasks: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self.keeper: threading.Thread | None = None
        self.bell, self.ringer = socket.socketpair()
        self.bell.setblocking(False)
        self.ringer.setblocking(False)
        self._watch()

    def _watch(self) -> None:
        """Polls the socket that is there now."""
        self.poll = select.poll() if hasattr(select, "poll") else None
        if self.poll is not None:
            self.poll.register(self.bell, select.POLLIN)
            if self.sock is not None:
                self.poll.register(self.sock, select.POLLIN | (select.POLLOUT if self.unsent else 0))

    # --- requests, in the thread of the caller ---

    def call(self, begin: Begin) -> Any:
        """Has begin() submit a request, and waits until it has finished. Returns it. When that is interrupted, as by a signal, the request is withdrawn."""
        made: list[Any] = []
        try:
            self.start(begin, made)
            if made[0] is not None:
                self.wait(made[0])
        except BaseException:
            for request in made:
                if request is not None and request.error is None:
                    self.start(dropping(request))
            raise
        return made[0]

    def start(self, begin: Begin, made: list[Any] | None = None) -> Any:
        """Has begin() submit requests, sends them, and waits for nothing. made gets what begin() returns, before anything can interrupt."""
        made = [] if made is None else made
        with self.mutex:
            if self.keeper is None and not self.closed:
                self._hire()
            now = _place.now()
            self.core.tick(now)
            made.append(begin(self.core, now))
            self._settle()
            if self.reader is not None and (self.unsent or self.core.wake < self.until):
                self._ring()
        return made[0]

    def wait(self, request: Request) -> None:
        """Waits until a request that was started has finished, and raises its error. The request goes on when the wait is interrupted."""
        try:
            while not request.finished:
                self._look(request)
        except BaseException:
            with self.mutex:
                self.gates.pop(request, None)
                if self.reader is None:
                    self._pass_on()  # it may have been this thread's turn
            raise
        if request.error is not None:
            raise request.error

    def _look(self, request: Request) -> None:
        gate, mine = None, object()
        with self.mutex:
            if request.finished:
                return
            if self.reader is not None:
                gate = self.gates[request] = threading.Lock()
                gate.acquire()
                self.crowd = True
            else:
                self.reader = mine
        if gate is not None:
            while not gate.acquire(timeout=GLANCE if _in_main() else -1):  # until an answer, or until the part is free
                pass
        else:
            self._read(mine, lambda: request.finished)

    # --- the reader's part ---

    def _read(self, mine: object, enough: Callable[[], bool]) -> None:
        try:
            while self.reader is mine and not enough():
                self._step(mine, enough)
        finally:
            with self.mutex:
                if self.reader is mine:
                    self.reader = None
                    self._pass_on()

    def _pass_on(self) -> None:
        """The part is free: for one of those who wait, else for the keeper."""
        if self.gates:
            self.gates.pop(next(iter(self.gates))).release()
        elif self.busy >= PARKED:
            self.busy = 0
            self.tasks.put(_nothing)

    def _step(self, mine: object, enough: Callable[[], bool]) -> None:
        with self.mutex:
            if self.reader is not mine:
                return
            self.core.tick(_place.now())
            self._settle()
            if enough():
                return
            self.until = self.core.wake
            seconds = min(self.until - _place.now(), GLANCE if _in_main() else NEVER)
            poll, sock = self.poll, self.sock
            self.steps += 1
            self.polling = mine
        rung = _wait_for(poll, self.bell, sock, None if seconds == NEVER else max(0.0, seconds))
        with self.mutex:
            self.until, self.polling = 0.0, None if self.polling is mine else self.polling
            if rung:
                self._hear()
            self._receive()
            self._settle()

    def _hear(self) -> None:
        with contextlib.suppress(OSError):
            while self.bell.recv(PIECE):
                pass

    def _receive(self) -> None:
        while self.sock is not None and self.core.online:
            try:
                data = self.sock.recv(PIECE)
            except _NOT_YET:
                return
            except OSError as error:
                self.core.disconnected(error.strerror or str(error), _place.now())
                return
            if not data:
                self.core.disconnected("the daemon closed the connection", _place.now())
                return
            self.core.receive(data, _place.now())
            if len(data) < PIECE and not isinstance(self.sock, ssl.SSLSocket):
                return

    def _settle(self) -> None:
        """What follows from what the core was told: closes, sends, and tells. The caller has the mutex."""
        if self.sock is not None:
            if not self.core.online:
                self._drop_socket()
            elif self.core.unsent or self.unsent:
                self._flush()
        if self.core.events:
            for event in self.core.take_events():
                if isinstance(event, News):
                    self._tell(event)
                else:
                    gate = self.gates.pop(event, None)
                    if gate is not None:
                        gate.release()
        if self.core.dial_at < NEVER and self.keeper is not None and not self.dialing:
            self.tasks.put(_nothing)

    def _flush(self) -> None:
        assert self.sock is not None
        data, before = self.unsent + self.core.take_output(), bool(self.unsent)
        try:
            self.unsent = data[self.sock.send(data):]
        except _NOT_YET:
            self.unsent = data
        except OSError as error:
            self.unsent = b""
            self.core.disconnected(error.strerror or str(error), _place.now())
            self._settle()
            return
        if bool(self.unsent) != before:
            self._watch()

    def _drop_socket(self) -> None:
        if self.sock is not None:
            self.sock.close()
            self.sock, self.unsent = None, b""
            self._watch()

    def _ring(self) -> None:
        """Has the reader look up."""
        with contextlib.suppress(OSError):  # it has rung often enough already, or this client is closed
            self.ringer.send(b"!")

    def _tell(self, news: News) -> None:
        if news.hold is not None:
            news.hold.tell(news.kind, news.detail)
        elif news.kind == "down":
            _log.info("%s", news.detail)

    def later(self, task: Callable[[], object]) -> None:
        """Has the keeper call a function, without the mutex."""
        self.tasks.put(task)
        self._ring()

    # --- the keeper ---

    def _hire(self) -> None:
        self.keeper = threading.Thread(target=_keep, args=(weakref.ref(self), self.tasks), name="redlockd", daemon=True)
        self.keeper.start()

    def keep(self) -> None:
        """One turn of the keeper: it connects if that is due, and reads if nobody does."""
        with self.mutex:
            self._look_after_reader(_place.now())
            due = not self.dialing and self.core.dial_at <= _place.now()
            self.dialing = self.dialing or due
            token, mine = object(), not due and self.reader is None and not self.closed
            self.reader = token if mine else self.reader
            self.busy = 0 if mine else self.busy + 1
            self.crowd = False
        if due:  # in a thread of its own, so that deadlines pass in time
            threading.Thread(target=self._dial, name="redlockd-dial", daemon=True).start()
        elif mine:
            self._read(token, lambda: self.crowd or not self.tasks.empty() or self.closed or (not self.dialing and self.core.dial_at <= _place.now()))

    def _look_after_reader(self, now: float) -> None:
        """A signal may raise in a thread between any two steps, and so tear the reader out of its part. One that does nothing for long has none any more."""
        if self.reader is None or self.polling is self.reader or self.steps != self.seen:
            self.seen, self.seen_at = self.steps, now
        elif now - self.seen_at > TORN:
            self.reader = None
            self._watch()  # two threads must not use one poll object, should it go on after all
            self._pass_on()

    def pause(self) -> float | None:
        """For how long the keeper may wait for a task now."""
        with self.mutex:
            if self.core.dial_at < NEVER and not self.dialing:
                return max(0.0, self.core.dial_at - _place.now())
            if self.busy < PARKED:
                return IDLE
            return 1.0 if self.core.holds or self.core.sent else None

    def _dial(self) -> None:
        try:
            sock, why = _place.dial(self.place, self.tls, self.timeout), ""
        except (OSError, ValueError) as error:
            sock, why = None, (error.strerror if isinstance(error, OSError) and error.strerror else str(error))
        with self.mutex:
            self.dialing = False
            if self.core.dial_at == NEVER:  # closed meanwhile
                if sock is not None:
                    sock.close()
            elif sock is None:
                self.core.not_connected(why, _place.now())
            else:
                self.sock = sock
                self._watch()
                self.core.connected(_place.now())
            self._settle()
            self._ring()
            self.tasks.put(_nothing)

    # --- begin and end ---

    def open(self) -> None:
        """Waits until the session is there."""
        self.call(opening(self.timeout))

    def close(self) -> None:
        """Ends the session, and waits a second at most until the daemon has read that."""
        if self.closed:
            return
        with contextlib.suppress(RedlockError):
            self.call(lambda core, now: core.quit(now))
        with self.mutex:
            self.closed = True
            self.core.close(_place.now())
            self._settle()
        self.tasks.put(None)
        self._ring()
        if self.keeper is not None and self.keeper is not threading.current_thread():
            self.keeper.join(1.0)
        self.bell.close()
        self.ringer.close()

    def after_fork(self) -> None:
        """In the child: nothing is held, the connection is the parent's, and the threads are gone."""
        for sock in (self.sock, self.bell, self.ringer):
            if sock is not None and sock.fileno() >= 0:
                os.close(sock.detach())  # nothing is sent, not even the farewell of TLS
        self._begin()
        self.core.forked()
        for event in self.core.take_events():
            if isinstance(event, News) and event.hold is not None:
                event.hold.tell("fork", "fork")
        self.keeper = None


def _nothing() -> None:
    """A task that only wakes the keeper."""


def _in_main() -> bool:
    """Whether this is the thread that runs the handlers of signals."""
    return threading.get_ident() == threading.main_thread().ident


def _wait_for(poll: select.poll | None, bell: socket.socket, sock: socket.socket | None, seconds: float | None) -> bool:
    """Waits until there is something to read. Whether it is the bell."""
    if poll is not None:
        ready = poll.poll(None if seconds is None else min(seconds * 1000 + 1, 2 ** 30))
        return bool(ready) and (len(ready) > 1 or ready[0][0] == bell.fileno())
    return bell in select.select([bell, sock] if sock else [bell], [], [], seconds)[0]


def _keep(of: weakref.ref[Engine], tasks: queue.SimpleQueue[Callable[[], object] | None]) -> None:
    """The keeper."""
    pause: float | None = 0.0
    while True:
        try:
            task = tasks.get(timeout=pause) if pause is None or pause > 0 else tasks.get_nowait()
        except queue.Empty:
            task = _nothing
        if task is None:
            return
        try:
            task()
        except Exception:
            _log.exception("a function that was called by redlockd has failed")
        engine = of()
        if engine is None or engine.closed:
            return
        engine.keep()
        pause = engine.pause()
        del engine, task


def _at_exit() -> None:
    """A session with grace would outlive this process, and others would wait for its locks."""
    for engine in list(_engines):
        if engine.core.resumable:
            engine.close()


def _after_fork() -> None:
    for engine in list(_engines):
        engine.after_fork()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

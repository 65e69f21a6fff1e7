# SPDX-License-Identifier: BSD-2-Clause
"""
For tests of programs that use redlockd: what do they do when a lock is lost?

    with redlockd.testing.Fake() as server, redlockd.connect(server.address) as client:
        ...
        server.lose("orders/42")  # and see that the program stops

A Fake needs no daemon. A Daemon is a real one on the memory store, in a folder of its own. Both are for redlockd and for redlockd.aio, and for any test runner:
a fixture of pytest is a `with` block around a yield.
"""
from __future__ import annotations

import contextlib
import functools
import os
import selectors
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from . import _fake
from ._errors import Busy, RedlockError
from ._holds import NEVER
from ._threads import Client, connect
from ._wire import Reader, as_bytes, quote

__all__ = ["Daemon", "Fake", "Server", "Trouble"]

START = 20.0
"""Seconds that a daemon has to begin to serve."""


class Trouble:
    """What is wrong until end() is called, or until the end of its block."""

    def __init__(self, end: Callable[[], object]) -> None:
        self._end: Callable[[], object] | None = end

    def end(self) -> None:
        """All is well again."""
        end, self._end = self._end, None
        if end is not None:
            end()

    def __enter__(self) -> Trouble:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.end()


Self = TypeVar("Self", bound="Server")


class Server:
    """What a Fake and a Daemon can both do. It ends with close(), or with its block."""

    address: str
    """For redlockd.connect() and redlockd.aio.connect()."""

    def __init__(self) -> None:
        self._ends = contextlib.ExitStack()

    def client(self, **options: Any) -> Client:
        """A client of this server, which is closed with it. The options are those of redlockd.connect()."""
        return self._ends.enter_context(connect(self.address, **options))

    def lose(self, name: str) -> None:
        """Takes a lock, or a semaphore, away from all who hold it, who are told so."""
        raise NotImplementedError

    def freeze(self, seconds: float) -> None:
        """The server answers nothing for so long. This returns at once."""
        raise NotImplementedError

    def held_elsewhere(self, name: str) -> Trouble:
        """Somebody else holds a lock, which must be free, until end() of what this returns."""
        raise NotImplementedError

    def close(self) -> None:
        """Ends the clients that client() has made, and the server."""
        self._ends.close()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Fake(Server):
    """
    A daemon inside this process. It does at any time what a real one does when something fails. It knows no grace: a broken connection is the end of a
    session. lease is in seconds: for how long a lock is held while the fake is frozen.
    """

    def __init__(self, lease: float = 10.0) -> None:
        super().__init__()
        self._mutex, self._core = threading.Lock(), _fake.Core(lease)
        self._sessions: dict[socket.socket, tuple[_fake.Session, Reader]] = {}
        self._thaws_at, self._closed = 0.0, False
        self._bell, self._ringer = socket.socketpair()
        self._ringer.setblocking(False)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._listener.setblocking(False)
        self._selector, self._frozen = selectors.DefaultSelector(), selectors.DefaultSelector()  # while it is frozen it looks at the bell alone
        self._selector.register(self._listener, selectors.EVENT_READ)
        for selector in (self._selector, self._frozen):
            selector.register(self._bell, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name="redlockd-fake", daemon=True)
        self._thread.start()
        self._ends.callback(self._stop)

    # --- what goes wrong ---

    def lose(self, name: str) -> None:
        with self._changing() as now:
            if not self._core.lose(name, now):
                raise RedlockError(f"nobody holds {name!r}", "NOTFOUND")

    def risk(self, name: str) -> None:
        """Warns all who hold a lock, or a semaphore: a renewal is late."""
        with self._changing():
            if not self._core.risk(name):
                raise RedlockError(f"nobody holds {name!r}", "NOTFOUND")

    def no_quorum(self) -> Trouble:
        """All locks are lost, and none is granted, until end() of what this returns."""
        with self._changing() as now:
            self._core.quorum = False
            self._core.lose(None, now)
        return Trouble(self._restore)

    def _restore(self) -> None:
        with self._changing():
            self._core.quorum = True

    def freeze(self, seconds: float) -> None:
        with self._changing() as now:
            self._thaws_at = max(self._thaws_at, now + seconds)

    def held_elsewhere(self, name: str) -> Trouble:
        with self._changing():
            grant = self._core.elsewhere(name)
        if grant is None:
            raise Busy(f"{name!r} is held", name)
        return Trouble(functools.partial(self._give_back, grant))

    def _give_back(self, grant: _fake.Grant) -> None:
        with self._changing() as now:
            self._core.end_of(grant, now)

    def cut(self) -> None:
        """Breaks all connections."""
        with self._changing():
            for sock in self._sessions:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

    @contextlib.contextmanager
    def _changing(self) -> Any:
        """Changes what the fake has, and has the thread look up."""
        with self._mutex:
            yield time.monotonic()
        with contextlib.suppress(OSError):
            self._ringer.send(b"!")

    # --- the thread ---

    def _serve(self) -> None:
        while True:
            with self._mutex:
                if self._closed:
                    return
                now = time.monotonic()
                frozen = now < self._thaws_at
                if not frozen:
                    self._core.tick(now)
                    self._write()
                wake = self._thaws_at if frozen else self._core.wake
            ready = (self._frozen if frozen else self._selector).select(None if wake == NEVER else max(wake - now, 0.0) + 0.001)
            with self._mutex:
                for key, _ in ready:
                    self._look(key.fileobj)

    def _look(self, sock: Any) -> None:
        if sock is self._bell:
            sock.recv(4096)
        elif time.monotonic() < self._thaws_at:
            return
        elif sock is self._listener:
            with contextlib.suppress(OSError):
                self._accept(*self._listener.accept())
        elif sock in self._sessions:
            self._read(sock, *self._sessions[sock])

    def _accept(self, sock: socket.socket, peer: tuple[str, int]) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(1.0)  # a client that reads nothing for so long is cut off
        self._sessions[sock] = _fake.Session(f"{peer[0]}:{peer[1]}"), Reader()
        self._selector.register(sock, selectors.EVENT_READ)

    def _read(self, sock: socket.socket, session: _fake.Session, reader: Reader) -> None:
        try:
            data = sock.recv(65536)
        except OSError:
            data = b""
        if not data:
            self._drop(sock)
            return
        for line in reader.feed(data):
            self._core.receive(session, line, time.monotonic())

    def _write(self) -> None:
        for sock, (session, _) in list(self._sessions.items()):
            if session.out:
                lines, session.out = session.out, []
                try:
                    sock.sendall(as_bytes("".join(line + "\n" for line in lines)))
                except OSError:
                    self._drop(sock)

    def _drop(self, sock: socket.socket) -> None:
        session, _ = self._sessions.pop(sock)
        self._selector.unregister(sock)
        sock.close()
        self._core.leave(session, time.monotonic())

    def _stop(self) -> None:
        self.cut()
        with self._changing():
            self._closed = True
        self._thread.join()
        self._selector.close()
        self._frozen.close()
        for sock in (self._listener, self._bell, self._ringer, *self._sessions):
            sock.close()


class Daemon(Server):
    """
    A redlockd that keeps locks in its memory, in a private folder, with these settings over its own, as in Daemon("lease=3s"). program is its path; without it
    $REDLOCKD, else redlockd in PATH.
    """

    def __init__(self, *settings: str, program: str | None = None) -> None:
        super().__init__()
        path = program or self.found()
        if path is None:
            raise FileNotFoundError("there is no redlockd: set REDLOCKD, or have it in PATH")
        folder = tempfile.mkdtemp(prefix="redlockd-")  # the path of a socket must be short
        self._ends.callback(weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True))  # at the end of this process, too
        self.address, self._thaw = os.path.join(folder, "sock"), threading.Timer(0.0, int)
        own = ["store=memory", "guard=trust-first-start", "listen.unix=" + self.address, "listen.tcp=no", "runtime_dir=" + os.path.join(folder, "run")]
        with contextlib.ExitStack() as undo:
            undo.callback(self._ends.close)
            os.mkdir(os.path.join(folder, "run"), 0o700)
            with open(os.path.join(folder, "log"), "wb") as log:
                self._process = subprocess.Popen([path, *(word for setting in [*own, *settings] for word in ("--set", setting))],
                                                 stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            self._ends.callback(weakref.finalize(self, _kill, self._process))
            self._await(os.path.join(folder, "log"))
            self._admin = self.client(label="redlockd.testing")
            undo.pop_all()

    @staticmethod
    def found() -> str | None:
        """The program that a test would start; None: there is none, so that a test may be skipped."""
        return os.environ.get("REDLOCKD") or shutil.which("redlockd")

    def _await(self, log: str) -> None:
        until = time.monotonic() + START
        while True:
            try:
                with connect(self.address) as client, client.lock("redlockd.testing", wait=5):
                    return
            except RedlockError as error:
                if self._process.poll() is not None or time.monotonic() > until:
                    with open(log, encoding="utf-8", errors="replace") as said:
                        raise RedlockError(f"{self.address}: the daemon does not serve: {error}\n{said.read()}") from None
                time.sleep(0.01)

    def lose(self, name: str) -> None:
        self._admin.ask("BREAK " + quote(name))

    def freeze(self, seconds: float) -> None:
        self._thaw.cancel()
        self._process.send_signal(signal.SIGSTOP)
        self._thaw = threading.Timer(seconds, self._process.send_signal, [signal.SIGCONT])
        self._thaw.daemon = True
        self._thaw.start()

    def held_elsewhere(self, name: str) -> Trouble:
        with contextlib.ExitStack() as undo:
            other = undo.enter_context(connect(self.address, label="elsewhere"))
            undo.enter_context(other.lock(name, wait=0))
            held = undo.pop_all()

        def end() -> None:
            with contextlib.suppress(RedlockError):  # the lock may have been lost meanwhile
                held.close()
        trouble = Trouble(end)
        self._ends.callback(trouble.end)
        return trouble

    def close(self) -> None:
        """Ends the clients that client() has made, and the daemon."""
        self._thaw.cancel()
        self._process.send_signal(signal.SIGCONT)
        super().close()


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()

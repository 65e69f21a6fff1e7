# SPDX-License-Identifier: BSD-2-Clause
"""Where the daemon is, who we are, and which clock counts: what the environment says, by the same variables as libredlock(3)."""
from __future__ import annotations

import dataclasses
import os
import socket
import ssl
import sys
import time

SYSTEM_SOCKET = "/run/redlockd/redlockd.sock"
PORT, TLS_PORT = 7420, 7422


def _clock() -> int | None:
    """The clock that goes on while the machine is suspended, if it has to be named."""
    if sys.platform.startswith("linux"):
        return time.CLOCK_BOOTTIME
    return time.CLOCK_MONOTONIC if sys.platform == "darwin" else None


_CLOCK = _clock()

if _CLOCK is None:
    now = time.monotonic
else:
    def now() -> float:
        """Seconds of a clock that goes on while the machine is suspended."""
        return time.clock_gettime(_CLOCK)  # type: ignore[arg-type]


def environment(name: str) -> str | None:
    """A variable, unless this program has more rights than its caller, who could then choose which daemon it believes."""
    if hasattr(os, "geteuid") and (os.getuid(), os.getgid()) != (os.geteuid(), os.getegid()):
        return None
    return os.environ.get(name) or None


def default_address() -> str:
    """The address that stands for "the daemon of this host"."""
    given = environment("REDLOCK_ADDR")
    if given:
        return given
    runtime = environment("XDG_RUNTIME_DIR")
    for path in (SYSTEM_SOCKET, runtime and runtime + "/redlockd/redlockd.sock"):
        if path and os.path.exists(path):
            return path
    return f"127.0.0.1:{PORT}"


def credentials() -> tuple[str | None, str | None]:
    """User and secret: $REDLOCK_USER, and the first line of $REDLOCK_SECRET_FILE, or $REDLOCK_SECRET."""
    user, path = environment("REDLOCK_USER"), environment("REDLOCK_SECRET_FILE")
    if not user:
        return None, None
    secret = environment("REDLOCK_SECRET")
    if path:
        with open(path, encoding="utf-8", errors="surrogateescape") as lines:
            secret = lines.readline().rstrip("\r\n")
    if not secret:
        raise ValueError("REDLOCK_USER is set, but neither REDLOCK_SECRET_FILE nor REDLOCK_SECRET has a secret")
    return user, secret


@dataclasses.dataclass(frozen=True)
class Place:
    """An address, taken apart: a path, or host and port, inside TLS or not."""

    text: str
    path: str = ""
    host: str = ""
    port: int = 0
    tls: bool = False


def _host_and_port(rest: str, port: int) -> tuple[str, int]:
    host, colon, digits = rest.rpartition(":") if not rest.endswith("]") else (rest, "", "")
    if not colon and not rest.endswith("]"):
        host, digits = rest, ""
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{rest!r}: an IPv6 address must be in brackets: [::1]:{PORT}")
    if digits and not (digits.isascii() and digits.isdigit() and 0 < int(digits) < 65536):
        raise ValueError(f"{rest!r}: a port is a number from 1 to 65535")
    return host or "127.0.0.1", int(digits or port)


def place_of(address: str) -> Place:
    """Takes an address apart: the path of a Unix socket, host:port, [v6]:port or tls://host:port. ValueError says what is wrong."""
    if address.startswith("tls://"):
        rest = address[len("tls://"):]
        if not rest or "/" in rest:
            raise ValueError(f"{address!r}: an address inside TLS is tls://host:port")
        host, port = _host_and_port(rest, TLS_PORT)
        return Place(address, host=host, port=port, tls=True)
    path = address[len("unix:"):] if address.startswith("unix:") else address
    if "/" in path or path != address:
        if not path:
            raise ValueError(f"{address!r}: an address is host:port, or the path of a Unix socket, with a '/'")
        return Place(address, path=path)
    if not address:
        raise ValueError("an address is host:port, or the path of a Unix socket, with a '/'")
    host, port = _host_and_port(address, PORT)
    return Place(address, host=host, port=port)


@dataclasses.dataclass(frozen=True)
class TLS:
    """Files in PEM. None: what REDLOCK_TLS_CA, REDLOCK_TLS_CERT, REDLOCK_TLS_KEY and REDLOCK_TLS_NAME say, else the default of the system."""

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    server_name: str | None = None

    def name(self, place: Place) -> str:
        """What the certificate of the daemon must be for."""
        return self.server_name or environment("REDLOCK_TLS_NAME") or place.host

    def context(self) -> ssl.SSLContext:
        """Reads the files."""
        made = ssl.create_default_context(cafile=self.ca_file or environment("REDLOCK_TLS_CA"))
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        cert = self.cert_file or environment("REDLOCK_TLS_CERT")
        if cert:
            made.load_cert_chain(cert, self.key_file or environment("REDLOCK_TLS_KEY"))
        return made


def tune(sock: socket.socket) -> None:
    """By keepalive even a client that waits for ever notices that the host of the daemon is gone."""
    wanted = [(socket.IPPROTO_TCP, "TCP_NODELAY", 1), (socket.SOL_SOCKET, "SO_KEEPALIVE", 1), (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 30),
              (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 10), (socket.IPPROTO_TCP, "TCP_KEEPCNT", 3)]
    for level, name, value in wanted:
        if hasattr(socket, name):
            sock.setsockopt(level, getattr(socket, name), value)


def _dial_unix(path: str, timeout: float) -> socket.socket:
    sock, until = socket.socket(socket.AF_UNIX), now() + timeout
    try:
        sock.setblocking(False)
        while True:
            try:
                sock.connect(path)
                return sock
            except BlockingIOError:  # more clients connect at this moment than the daemon has accepted
                if now() >= until:
                    raise
                time.sleep(0.01)
    except BaseException:
        sock.close()
        raise


def dial(place: Place, tls: TLS, timeout: float) -> socket.socket:
    """A connection that never blocks from here on. OSError if there is none."""
    if place.path:
        sock = _dial_unix(place.path, timeout)
    else:
        sock = socket.create_connection((place.host, place.port), timeout)
        tune(sock)
        if place.tls:
            try:
                sock = tls.context().wrap_socket(sock, server_hostname=tls.name(place))
            except BaseException:
                sock.close()
                raise
    sock.setblocking(False)
    return sock

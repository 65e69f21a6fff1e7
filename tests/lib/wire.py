# SPDX-License-Identifier: BSD-2-Clause
"""The line protocol as a test sees it: the lines of the daemon in the order of their arrival, each with the moment at which it was read.

A Client never waits without a deadline and hides nothing: replies, rows and pushes stay in one inbox, so that a test can ask which of two came first.
"""
import itertools
import re
import select
import socket
import struct
import time

from process import WAIT, Patience

LINE_MOST = 139264  # bytes of a line, its LF included: the default of limits.line
_ESCAPES = {ord("n"): 10, ord("r"): 13, ord("t"): 9, ord("b"): 8, ord("a"): 7, ord('"'): 34, ord("\\"): 92}


def text(raw):
    return raw.decode("utf-8", "surrogateescape")


def quoted(value):
    """A word or value as a client may send it: in double quotes, with all bytes escaped that are not plain ASCII."""
    out = ['"']
    for byte in value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape"):
        if byte in (34, 92):
            out.append("\\" + chr(byte))
        else:
            out.append(chr(byte) if 32 <= byte < 127 else "\\x%02x" % byte)
    return "".join(out) + '"'


def _unquote(line, at):
    """Reads the quoted string that begins at line[at]. Returns (its bytes, the position behind it)."""
    out, quote, at = bytearray(), line[at], at + 1
    while line[at] != quote:
        if line[at] == 92 and quote == 34:
            if line[at + 1] == ord("x"):
                out.append(int(line[at + 2:at + 4], 16))
                at += 4
                continue
            out.append(_ESCAPES[line[at + 1]])
            at += 2
        else:
            out.append(line[at])
            at += 1
    return bytes(out), at + 1


def split(line):
    """The words of one line: [(field or None, value as bytes, the word as it was written)]."""
    tokens, at = [], 0
    while at < len(line):
        if line[at] == 32:
            at += 1
            continue
        start, field, value = at, None, bytearray()
        while at < len(line) and line[at] != 32:
            if line[at] in b"\"'" and (not value):
                piece, at = _unquote(line, at)
                value += piece
            elif line[at] == ord("=") and field is None and at > start and line[start] not in b"\"'":
                field, value, at = text(bytes(value)), bytearray(), at + 1
            else:
                value.append(line[at])
                at += 1
        tokens.append((field, bytes(value), line[start:at]))
    return tokens


class Line:
    """One line from the daemon. kind: OK, BUSY, TIMEOUT, ERR, * or !; code: that of ERR and of pushes; place: the line's number on the connection."""

    def __init__(self, raw, at, place=0):
        self.raw, self.at, self.place = raw, at, place
        self.tag, self.kind, self.code, self.text, self.rows = None, None, None, "", []
        self.fields, self.written = {}, {}
        line = raw
        if line.startswith(b"@"):
            tag, _, line = line.partition(b" ")
            self.tag = text(tag)
        head, _, rest = line.partition(b" ")
        self.kind = text(head)
        if self.kind in ("ERR", "!"):
            code, _, rest = rest.partition(b" ")
            self.code = text(code)
        if self.kind == "ERR":
            self.text = text(rest)
        else:
            for field, value, written in self._tokens(rest):
                self.fields[field] = text(value)
                self.written[field] = text(written.partition(b"=")[2])

    @staticmethod
    def _tokens(rest):
        try:
            return split(rest)
        except (IndexError, KeyError, ValueError):
            return []  # no line of this protocol: a test that looks for a field fails

    def __getitem__(self, field):
        if field not in self.fields:
            raise AssertionError("no field %r in: %s" % (field, self))
        return self.fields[field]

    def __contains__(self, field):
        return field in self.fields

    def num(self, field):
        value = self[field]
        if not re.fullmatch(r"-?[0-9]+", value):
            raise AssertionError("field %r is no integer in: %s" % (field, self))
        return int(value)

    def __str__(self):
        return text(self.raw)

    __repr__ = __str__


def connect(addr):
    """Dials addr: the path of a Unix socket, or (host, port). A socket that is connected is taken as it is."""
    if isinstance(addr, socket.socket):
        return addr
    if isinstance(addr, str):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(addr)  # before the timeout is set: with one, a full backlog is EAGAIN at once
        sock.settimeout(WAIT)
        return sock
    sock = socket.socket(socket.AF_INET)
    sock.settimeout(WAIT)
    sock.connect(addr)
    return sock


class Client:
    def __init__(self, addr, name=None):
        self.sock = connect(addr)
        self.poll = select.poll()
        self.poll.register(self.sock, select.POLLIN)
        self.buffer, self.inbox, self.ended, self.barriers, self.places = bytearray(), [], False, 0, itertools.count()
        if name:
            self.ok("HELLO 1 name=" + quoted(name))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # --- sending -----------------------------------------------------------------------------------------------------

    def send(self, *lines):
        self.raw(b"".join((line if isinstance(line, bytes) else line.encode("utf-8", "surrogateescape")) + b"\n" for line in lines))

    def raw(self, data):
        self.sock.sendall(data)

    def begin(self, *lines):
        """Sends requests, and returns once the daemon has read them."""
        self.send(*lines)
        return self.barrier()

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def close(self):
        self.sock.close()

    def reset(self):
        """Closes a TCP connection by RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    # --- receiving ---------------------------------------------------------------------------------------------------

    def fill(self, timeout):
        """Reads once, waiting timeout seconds at most. Returns False when nothing came."""
        if self.ended or not self.poll.poll(max(0, timeout) * 1000):
            return False
        try:
            data = self.sock.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        now = time.monotonic()
        self.ended = not data
        self.buffer += data
        *lines, rest = self.buffer.split(b"\n")
        self.buffer = bytearray(rest)
        self.inbox += [Line(bytes(line), now, next(self.places)) for line in lines]
        return True

    def listen(self, seconds):
        """Takes in what comes during this time. For tests of a duration."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self.ended:
            self.fill(deadline - time.monotonic())
        return self.inbox

    def until(self, find, what, timeout=None):
        """Takes the lines out of the inbox whose indices find(inbox) returns; fails when they do not come in time."""
        patience = Patience(WAIT if timeout is None else timeout)
        while True:
            found = find(self.inbox)
            if found:
                lines = [self.inbox[i] for i in found]
                for i in reversed(found):
                    del self.inbox[i]
                return lines
            if not self.fill(patience.step()) and (self.ended or patience.left() <= 0):
                raise AssertionError("%s: no %s; inbox: %r%s" % (
                    "connection ended" if self.ended else "timed out", what, self.inbox,
                    " unfinished: %r" % bytes(self.buffer) if self.buffer else ""))

    def line(self, timeout=None):
        """The next line of any kind."""
        return self.until(lambda inbox: [0] if inbox else None, "line", timeout)[0]

    def reply(self, tag=None, timeout=None):
        """The next reply with this tag, its rows in .rows; all other lines stay in the inbox."""
        def find(inbox):
            rows = []
            for i, line in enumerate(inbox):
                if line.tag != tag or line.kind == "!":
                    continue
                rows.append(i)
                if line.kind != "*":
                    return rows
            return None
        *rows, last = self.until(find, "reply to %s" % (tag or "an untagged request"), timeout)
        if last.kind not in ("OK", "BUSY", "TIMEOUT", "ERR"):
            raise AssertionError("not a line of the protocol: %s" % last)
        last.rows = rows
        return last

    def push(self, code, name=None, timeout=None):
        """The next push with this code about this name, or about any."""
        def find(inbox):
            for i, line in enumerate(inbox):
                if line.kind == "!" and line.code == code and (name is None or line.fields.get("name") == name):
                    return [i]
            return None
        return self.until(find, "push %s %s" % (code, name or ""), timeout)[0]

    def eof(self, timeout=None):
        """Reads to the end of the connection. Returns what the inbox still held."""
        patience = Patience(WAIT if timeout is None else timeout)
        while not self.ended:
            if not self.fill(patience.step()) and not self.ended and patience.left() <= 0:
                raise AssertionError("the connection is still open; inbox: %r" % self.inbox[-5:])
        rest, self.inbox = self.inbox, []
        return rest

    def barrier(self, timeout=None):
        """Waits until the daemon has read all lines sent before. The inbox then holds what it answered at once."""
        self.barriers += 1
        tag = "@barrier%d" % self.barriers
        self.send(tag + " PING")
        answer = self.reply(tag, timeout)
        if answer.kind != "OK":
            raise AssertionError(str(answer))
        return self.inbox

    # --- asking ------------------------------------------------------------------------------------------------------

    def ask(self, request, timeout=None):
        self.send(request)
        raw = request if isinstance(request, str) else text(request)
        return self.reply(raw.split()[0] if raw.startswith("@") else None, timeout)

    def expect(self, request, kind, code=None, timeout=None):
        answer = self.ask(request, timeout)
        codes = (code,) if isinstance(code, str) else code
        if answer.kind != kind or (codes and answer.code not in codes):
            raise AssertionError("%s -> %s, not %s" % (request if len(request) < 200 else request[:200] + "…", answer, " ".join([kind, *(codes or ())])))
        return answer

    def ok(self, request, timeout=None):
        return self.expect(request, "OK", None, timeout)

    def busy(self, request, timeout=None):
        return self.expect(request, "BUSY", None, timeout)

    def err(self, request, code, timeout=None):
        return self.expect(request, "ERR", code, timeout)

    # --- looking -----------------------------------------------------------------------------------------------------

    def roles(self, name):
        """The roles of all that hold, await or keep a name, in the order of SHOW."""
        return [row["role"] for row in self.ok("SHOW " + name).rows]

    def stats(self):
        """{metric: value} of STATS: what has labels is summed up."""
        figures = {}
        for row in self.ok("STATS", 60).rows:
            figures[row["metric"]] = figures.get(row["metric"], 0) + (float if "." in row["value"] else int)(row["value"])
        return figures

    def joined(self):
        """How many stores the daemon counts as joined."""
        return [row["state"] for row in self.ok("LIST nodes").rows].count("joined")

# SPDX-License-Identifier: BSD-2-Clause
"""Plays a case: a scripted daemon on one side of a client, its caller on the other. README.md has the steps."""
import contextlib
import os
import re
import select
import socket
import ssl
import time

from process import free_port, temp_folder  # adapter.py puts tests/lib into the path
from wire import split, text

PATIENCE = 60.0  # seconds that a step waits for what must come: a client that was started just now takes long on a busy machine
PLANTED = 5.0  # the same for a client with a mistake, for which many a step waits in vain
LATE = float(os.environ.get("CLIENTS_LATE", 1))  # seconds by which a bound on time is longer here: machines of tests are busy
UNITS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60000.0, "h": 3600000.0}
DURATIONS = ("wait", "ttl", "per", "delay", "heartbeat", "grace", "keep")


class Mismatch(AssertionError):
    """The client did something else than the case says."""


def milliseconds(word):
    """A duration as a number, for comparisons."""
    found = re.fullmatch(r"([0-9.]+)(us|ms|s|m|h)?", word)
    return float(found[1]) * UNITS[found[2] or "ms"] if found else word


def fits(seen, wanted):
    """Whether a value is as the case wants it: equal, or "<5", ">=2", "*", or for a text a part of it, as in "~held by"."""
    if isinstance(wanted, dict):
        return isinstance(seen, dict) and all(key in seen and fits(seen[key], value) for key, value in wanted.items())
    if isinstance(wanted, str):
        found = re.fullmatch(r"([<>]=?)(.*)", wanted)
        if found and seen is not None:
            left, right = (milliseconds(str(value)) for value in (seen, found[2]))
            return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[found[1]]
        if wanted == "*":
            return seen is not None
        if wanted.startswith("~"):
            return wanted[1:] in str(seen)
        if wanted.startswith("!~"):
            return wanted[2:] not in str(seen)
    return seen == wanted


class Request:
    """A line of the client."""

    def __init__(self, raw):
        self.raw, self.tag, self.fields, self.words = text(raw), "", {}, []
        for field, value, _ in split(raw):
            if field is not None:
                self.fields[field.lower()] = text(value)
            elif not self.words and not self.tag and value.startswith(b"@"):
                self.tag = text(value)
            else:
                self.words.append(text(value))
        self.words[:1] = [word.upper() for word in self.words[:1]]

    def get(self, name):
        """What ${key.name} stands for."""
        return self.tag if name == "tag" else self.fields.get(name, "") if name == "owner" else self.fields[name]


class Connection:
    """One connection of the client."""

    def __init__(self, sock):
        self.sock, self.buffer, self.ended = sock, b"", False

    def line(self, timeout):
        """The next line that is not empty; None: there is none in time, or ever."""
        deadline = time.monotonic() + timeout
        while True:
            while b"\n" in self.buffer:
                line, _, self.buffer = self.buffer.partition(b"\n")
                if line.strip():
                    return line.rstrip(b"\r")
            left = deadline - time.monotonic()
            if self.ended or (not self._pending() and not select.select([self.sock], [], [], max(0.0, left))[0]):
                return None
            try:
                data = self.sock.recv(65536)
            except (ConnectionError, ssl.SSLError):
                data = b""
            self.ended = self.ended or not data
            self.buffer += data

    def _pending(self):
        return isinstance(self.sock, ssl.SSLSocket) and self.sock.pending()

    def send(self, data):
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.sock.sendall(data)


class Script:
    """One run of a case. certificate: a pair of paths, for cases inside TLS. patience: for what has no bound of its own in the case."""

    def __init__(self, adapter, case, folder, certificate=None, patience=PATIENCE):
        self.adapter, self.case, self.folder, self.certificate, self.patience = adapter, case, folder, certificate, patience
        self.path = os.path.join(folder, "sock")
        self.port, self.listener, self.conn, self.kept, self.requests, self.calls, self.autos = 0, None, None, None, {}, {}, []
        self.written = time.monotonic()
        self.worst = 0.0  # seconds: the latest of the events with a bound
        self.options = case.get("with", {})
        self.inbox = []  # requests that came while the case waited for something else
        self.called = 0.0
        self.granted = {}  # name, or queue: the line that granted it last
        self.manual = self.options.get("manual") or "CHECK" in repr(case["steps"])  # else the daemon answers each CHECK by itself

    # --- the run ---

    def run(self):
        """Plays all steps; Mismatch says what went wrong, and in which step."""
        self.listen()
        try:
            for number, step in enumerate(self.case["steps"]):
                try:
                    getattr(self, "step_" + step[0].replace("-", "_"))(*step[1:])
                except Mismatch as wrong:
                    raise Mismatch("step %d, %s: %s" % (number + 1, step, wrong)) from None
        finally:
            for sock in (self.listener, self.conn and self.conn.sock, self.kept and self.kept.sock):
                if sock:
                    sock.close()

    def bound(self, within):
        return self.patience if within is None else within

    @property
    def address(self):
        """What the client is told."""
        kind = self.options.get("listen", "unix")
        return self.path if kind == "unix" else "%s127.0.0.1:%d" % ("tls://" if kind == "tls" else "", self.port)

    def listen(self):
        if self.options.get("listen", "unix") == "unix":
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path)
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(self.path)
        else:
            self.port = self.port or free_port()
            self.listener = socket.socket()
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.listener.bind(("127.0.0.1", self.port))
        self.listener.listen(16)

    def fill(self, value):
        """Puts what the client sent in the place of ${key.field}. Where it named no owner, none is told."""
        if isinstance(value, str):
            value = re.sub(r" owner=\$\{(\w+)\.owner\}", lambda found: found[0] if self.requests[found[1]].get("owner") else "", value)
            return re.sub(r"\$\{(\w+)\.(\w+)\}", lambda found: self.requests[found[1]].get(found[2]), value.replace("${address}", self.address))
        if isinstance(value, dict):
            return {key: self.fill(one) for key, one in value.items()}
        return value

    # --- the caller ---

    def step_call(self, handle, what, args=None):
        args, self.called = self.fill(args or {}), time.monotonic()
        if what == "connect" and not self.options.get("by-environment"):
            args.setdefault("address", self.address)
        self.calls[handle] = self.adapter.call(what, **({"lock": handle} if what in ("lock", "locks", "any", "semaphore", "take") else {}), **args)

    def returned(self, handle, within=None):
        deadline = time.monotonic() + self.bound(within)
        while True:
            row = self.adapter.await_(lambda: self.adapter.results.get(self.calls[handle]), 0.01)
            if row is not None:
                return row
            if self.adapter.ended or time.monotonic() > deadline:
                raise Mismatch("the adapter has ended" if self.adapter.ended else "it did not return in time; the client sent: %s" % self.inbox)
            self.serve()

    def serve(self):
        """
        Answers what the daemon answers by itself. Other requests wait for their step. A grant that took long, on a busy machine, is asked about: that is
        answered in any case.
        """
        manual, self.manual = self.manual, False
        request = self.next_request(0.0, self.inbox) if self.conn else None
        self.manual = manual
        if request is not None:
            self.inbox.append(request)

    def step_ok(self, handle, wanted=None, within=None):
        row = self.returned(handle, within)
        if "error" in row:
            raise Mismatch("it failed: %s" % row)
        if wanted and not fits(row["ok"], self.fill(wanted)):
            raise Mismatch("it returned %s" % row["ok"])

    def step_fails(self, handle, error, wanted=None, within=None):
        row = self.returned(handle, within)
        if row.get("error") not in error.split("|") or (wanted and not fits(row, self.fill(wanted))):
            raise Mismatch("it ended with %s" % row)

    def step_returns(self, handle, within=None):
        """It returns in time, well or not."""
        self.returned(handle, within)

    def step_do(self, what, args=None, wanted=None):
        """A call that needs no answer of the daemon."""
        self.step_call("(do)", what, args)
        self.step_ok("(do)", wanted)

    def step_state(self, lock, wanted):
        self.step_do("state", {"lock": lock}, wanted)

    def step_becomes(self, lock, wanted, within=None):
        """The state of the lock becomes so in time."""
        deadline = time.monotonic() + self.bound(within)
        while True:
            seen = self.adapter.do("state", lock=lock).get("ok")
            if fits(seen, wanted):
                return
            if time.monotonic() > deadline:
                raise Mismatch("it is %s" % seen)
            self.serve()
            time.sleep(0.01)

    def step_pending(self, handle):
        if self.adapter.await_(lambda: self.adapter.results.get(self.calls[handle]), 0.05):
            raise Mismatch("it has returned: %s" % self.returned(handle))

    def step_abort(self, handle):
        self.step_do("abort", {"call": self.calls[handle]})

    def step_event(self, kind, lock, wanted=None, within=None):
        """within: so soon after the daemon wrote its last line."""
        def find():
            return next((row for row in self.adapter.events if row["event"] == kind and row["lock"] == lock), None)
        row = self.adapter.await_(find, self.patience if within is None else within + LATE + 1)
        if row is None:
            raise Mismatch("no such event; seen: %s" % self.adapter.events)
        self.adapter.events.remove(row)
        if wanted and not fits(row, self.fill(wanted)):
            raise Mismatch("it is %s" % row)
        if within is not None:
            self.worst = max(self.worst, row["seen"] - self.written)
            if row["seen"] - self.written > within + LATE:
                raise Mismatch("it came after %.3f s" % (row["seen"] - self.written))

    def step_no_event(self, kind, lock, seconds=0.1):
        if self.adapter.await_(lambda: next((row for row in self.adapter.events if row["event"] == kind and row["lock"] == lock), None), seconds):
            raise Mismatch("there is one: %s" % self.adapter.events)

    # --- the daemon ---

    def step_accept(self, within=None):
        if not select.select([self.listener], [], [], self.bound(within))[0]:
            raise Mismatch("nobody connects")
        if self.conn:
            self.conn.sock.close()
        self.inbox.clear()
        sock = self.listener.accept()[0]
        if self.options.get("listen") == "tls":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.certificate)
            try:
                sock = context.wrap_socket(sock, server_side=True)
            except (ssl.SSLError, OSError):
                sock.close()
                self.conn = None
                return
        self.conn = Connection(sock)

    def step_aside(self):
        """The connection stays open beside the next one."""
        self.kept, self.conn = self.conn, None

    def step_back(self):
        """The connection that stayed open is looked at again."""
        self.conn.sock.close()
        self.conn, self.kept = self.kept, None

    def step_greet(self, fields=None):
        """A connection, and an answer to its HELLO if that comes first."""
        self.step_accept()
        self.step_reads("hello", "HELLO 1", fields)
        self.step_writes("hello", "OK proto=1 server=redlockd/0.1.0 session=17 secret=s3cr3t store=redis nodes=3 quorum=2 lease_ms=10000 max_lease_ms=30000"
                                  " max_keep_ms=3600000 max_grace_ms=600000")

    def step_connect(self, args=None, fields=None):
        """The client connects, and is greeted."""
        self.step_call("connect", "connect", args)
        self.step_greet(fields)
        self.step_ok("connect")

    def step_resumes(self, rows=(), more=""):
        """The client connects again and resumes its session, which has these rows."""
        self.step_accept()
        self.step_reads("resume", "RESUME 17 s3cr3t")
        self.step_writes("resume", *["* " + row for row in rows], "OK session=17 n=%d%s" % (len(rows), more))

    def step_hold(self, lock, name, args=None, answer="fence=7 valid_ms=9900 ttl_ms=10000"):
        """The client locks a name, and gets it at once."""
        self.step_call(lock, "lock", dict(args or {}, name=name))
        self.step_reads(lock, 'LOCK "%s"' % name)
        self.step_writes(lock, "OK name=%s %s count=1" % (name, answer))
        self.step_ok(lock, {"fence": int(re.search(r"fence=(\d+)", answer)[1])})

    def confirmed(self, request):
        """The answer to CHECK of what was granted as it was; None: nothing was."""
        line = self.granted.get(request.words[1]) if request.words[0] == "CHECK" else None
        return None if line is None else "OK " + " ".join(word for word in line.split(" ")[1:] if not word.startswith(("ttl_ms=", "payload=", "free=")))

    def next_request(self, within, skip=None):
        """The next line that no auto step answers; None: none came in time. skip: what came before and is to stay."""
        deadline = time.monotonic() + within
        if self.inbox and skip is None:
            return self.inbox.pop(0)
        while True:
            raw = self.conn.line(max(0.0, deadline - time.monotonic())) if self.conn else None
            if raw is None:
                return None
            request = Request(raw)
            answer = next((answer for words, answer in self.autos if request.words[:len(words)] == words), None if self.manual else self.confirmed(request))
            if answer is None:
                return request
            if answer:
                self.remember([answer])
                self.write("%s %s" % (request.tag, answer) if request.tag else answer)

    def matches(self, request, words, fields, absent):
        wanted = [text(value) for _, value, _ in split(self.fill(words).encode())]
        if len(request.words) != len(wanted) or not all(map(fits, request.words, wanted)):
            return "it sent: " + request.raw
        for name, value in (self.fill(fields) or {}).items():
            seen = request.fields.get(name)
            if seen is None and name in self.adapter.omits:
                continue
            if name in DURATIONS and seen is not None and value not in ("*", "forever"):
                same = fits(milliseconds(seen), value if value[0] in "<>" else milliseconds(value))
            else:
                same = fits(seen, value)
            if not same:
                return "%s=%s, not %s, in: %s" % (name, seen, value, request.raw)
        surplus = [name for name in absent or () if name in request.fields]
        return "%s in: %s" % (surplus, request.raw) if surplus else None

    def step_reads(self, key, words, fields=None, absent=None, within=None):
        request = self.next_request(self.bound(within))
        if request is None:
            raise Mismatch("nothing came" + (", and the connection has ended" if not self.conn or self.conn.ended else ""))
        wrong = self.matches(request, words, fields, absent)
        if wrong:
            raise Mismatch(wrong)
        self.requests[key] = request

    def step_reads_all(self, *wanted):
        """These lines, in any order. A row may end with the answer to its line."""
        left = list(wanted)
        while left:
            request = self.next_request(self.patience)
            if request is None:
                raise Mismatch("these did not come: %s" % left)
            row = next((row for row in left if not self.matches(request, row[1], row[2] if len(row) > 2 else None, None)), None)
            if row is None:
                raise Mismatch("it sent: %s" % request.raw)
            left.remove(row)
            self.requests[row[0]] = request
            if len(row) > 3:
                self.step_writes(row[0], row[3])

    def step_later(self, key, words, least, most, fields=None):
        """The next line comes so many seconds after the line of the daemon before it."""
        self.step_reads(key, words, fields, within=most + LATE + 1)
        seconds = time.monotonic() - self.written
        if not least <= seconds <= most + LATE:
            raise Mismatch("it came after %.2f s" % seconds)

    def step_differ(self, one, other, name):
        if self.requests[one].get(name) == self.requests[other].get(name):
            raise Mismatch("both have %s" % self.requests[one].get(name))

    def step_silent(self, seconds):
        request = self.next_request(seconds)
        if request is not None:
            raise Mismatch("it sent: " + request.raw)
        if self.conn and self.conn.ended:
            raise Mismatch("it closed the connection")

    def step_unchecked(self, seconds=0.2):
        """Silence, but for CHECK if the machine was so busy that the grant took long."""
        request = self.next_request(seconds)
        if request is None:
            return
        answer = self.confirmed(request)
        if answer is None or time.monotonic() - self.called < 0.05:
            raise Mismatch("it sent: " + request.raw)
        self.write("%s %s" % (request.tag, answer) if request.tag else answer)

    def step_manual(self):
        """From now on each CHECK is a step."""
        self.manual = True

    def step_auto(self, words, answer):
        """From now on such a line is answered so, and is no step; an empty answer is none."""
        self.autos.insert(0, (words.split(), answer))

    def write(self, *lines):
        self.conn.send(b"".join(line.encode("utf-8", "surrogateescape") + b"\n" for line in lines))
        self.written = time.monotonic()

    def step_writes(self, key, *lines):
        """Lines in one piece. With the key of a request they get its tag."""
        tag, lines = self.requests[key].tag + " " if key and self.requests[key].tag else "", [self.fill(line) for line in lines]
        self.remember(lines)
        self.write(*[tag + line for line in lines])

    def remember(self, lines):
        for line in lines:
            fields = {field: text(value) for field, value, _ in split(line.encode("utf-8", "surrogateescape")) if field}
            if "valid_ms" in fields:
                self.granted[fields.get("queue") or fields.get("name")] = line

    def step_bytes(self, data, size=None, pause=0.0):
        """Bytes as they are, in pieces of this size."""
        filled = self.fill(data)
        self.remember([re.sub(r"^@\S+ ", "", line) for line in filled.split("\n") if line.count('"') % 2 == 0])
        raw = filled.encode("utf-8", "surrogateescape")
        for at in range(0, len(raw), size or len(raw)):
            self.conn.send(raw[at:at + (size or len(raw))])
            time.sleep(pause)
        self.written = time.monotonic()

    def step_flood(self, count):
        """So many bytes without a line end, as fast as the client takes them."""
        self.conn.sock.settimeout(self.patience)
        self.conn.send(b"x" * count)

    def step_cut(self):
        self.conn.sock.close()
        self.conn = None
        self.inbox.clear()
        self.written = time.monotonic()

    def step_ends(self, within=None):
        """The client closes the connection, whatever it sent before."""
        deadline = time.monotonic() + self.bound(within)
        while not self.conn.ended:
            if self.conn.line(max(0.0, deadline - time.monotonic())) is None and not self.conn.ended:
                raise Mismatch("it did not close the connection")

    def step_alone(self, seconds=0.2):
        """Nobody connects."""
        if select.select([self.listener], [], [], seconds)[0]:
            raise Mismatch("it connects")

    def step_refuse(self):
        """Nobody listens any more."""
        self.listener.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)

    def step_listen(self):
        self.listen()

    def step_pause(self, seconds):
        time.sleep(seconds)

    def step_suspend(self, seconds):
        """The machine was suspended for so long: clocks that count that go ahead."""
        self.options["clock"].suspend(seconds)


def scratch():
    """A folder for the socket of a case."""
    return temp_folder("redlock-clients-")

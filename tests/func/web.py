# SPDX-License-Identifier: BSD-2-Clause
"""An HTTP client for the web listener, a parser of the text of /metrics that takes nothing which the format does not have, and base classes of tests."""
import contextlib
import http.client
import json
import re
import socket

from harness import FuncTest
from process import WAIT, free_port


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    def __getitem__(self, header):
        return self.headers[header]

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.body)


class Web:
    """The web listener of one daemon, at (host, port) or at the path of a Unix socket."""

    def __init__(self, at, source=None):
        self.at, self.source = at, source  # source: the address of the client

    @property
    def listen(self):
        return "unix:" + self.at if isinstance(self.at, str) else "%s:%d" % self.at

    def connect(self, timeout=WAIT):
        sock = socket.socket(socket.AF_UNIX if isinstance(self.at, str) else socket.AF_INET)
        sock.settimeout(timeout)
        if self.source:
            sock.bind((self.source, 0))
        sock.connect(self.at)
        return sock

    def ask(self, path, method="GET", headers=None, host="localhost", body=None):
        connection = http.client.HTTPConnection("localhost")
        connection.sock = self.connect()
        with contextlib.closing(connection):
            connection.request(method, path, body, {"Host": host, **(headers or {})})
            return Answer(connection.getresponse())

    def raw(self, data):
        """Sends these bytes. Returns all that comes back until the end."""
        with self.connect() as sock:
            sock.sendall(data)
            return drain(sock)


def beyond_loopback(test):
    """An address of this host that is another peer than 127.0.0.1."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))
        except OSError:
            test.skipTest("this host has no address but loopback")
        return sock.getsockname()[0]


def drain(sock):
    got = b""
    with contextlib.suppress(ConnectionResetError):
        while True:
            data = sock.recv(65536)
            if not data:
                break
            got += data
    return got


def push(sock, head, more, most=64 << 20):
    """Sends `more` again and again until the connection ends, or `most` bytes are sent. Returns how many were."""
    sent = sock.send(head)
    more *= 65536 // len(more)
    with contextlib.suppress(OSError):
        while sent < most:
            sent += sock.send(more)
    return sent


def free_web():
    return Web(("127.0.0.1", free_port()))


class Events:
    """A stream of server-sent events. Each is (kind, data); comments are left out."""

    def __init__(self, web, query="", timeout=WAIT):
        self.sock = web.connect(timeout)
        self.sock.sendall(b"GET /api/v1/events%s HTTP/1.0\r\nHost: localhost\r\n\r\n" % query.encode())
        self.file = self.sock.makefile("rb")
        self.status = int(self.file.readline().split()[1])
        self.headers = {}
        for line in iter(self.file.readline, b"\r\n"):
            name, _, value = line.decode().strip().partition(": ")
            self.headers[name.lower()] = value
        assert self.file.readline() == b"retry: 2000\n"
        while self.file.readline() != b"\n":
            pass

    def next(self):
        kind = data = None
        while True:
            line = self.file.readline().decode()
            if not line:
                raise EOFError("the stream has ended")
            if line == "\n" and kind:
                return kind, json.loads(data)
            name, _, value = line.rstrip("\n").partition(":")
            if name == "event":
                kind = value.strip()
            elif name == "data":
                data = value.strip()

    def ended(self):
        """Waits until the stream ends."""
        while self.file.readline():
            pass
        return True

    def close(self):
        self.file.close()
        self.sock.close()


METRIC = r"[a-zA-Z_][a-zA-Z0-9_]*"
SAMPLE = re.compile(r'(%s)(?:\{(.*)\})? (-?[0-9.e+-]+|\+Inf|NaN)' % METRIC)
LABEL = re.compile(r'(%s)="((?:[^"\\]|\\["\\n])*)"(?:,|$)' % METRIC)


def labels(text):
    found, at = {}, 0
    while at < len(text or ""):
        match = LABEL.match(text, at)
        assert match, "labels %r" % text
        assert match.group(1) not in found
        found[match.group(1)], at = match.group(2), match.end()
    return found


class Metrics:
    """The families of a page of metrics: name -> (type, [(name of the sample, labels, value)])."""

    def __init__(self, text):
        assert text.endswith("\n")
        self.families, name = {}, None
        for line in text.splitlines():
            if line.startswith("# HELP "):
                name, _, words = line[7:].partition(" ")
                assert words and name not in self.families, line
                self.families[name] = [None, []]
            elif line.startswith("# TYPE "):
                assert line.split()[2] == name and self.families[name][0] is None, line
                self.families[name][0] = line.split()[3]
            else:
                match = SAMPLE.fullmatch(line)
                assert match, line
                sample, given, value = match.groups()
                kind = self.families[name][0]
                assert sample in ([name + end for end in ("_bucket", "_sum", "_count")] if kind == "histogram" else [name]), line
                self.families[name][1].append((sample, labels(given), float(value)))
        for name, (kind, samples) in self.families.items():
            self.check(name, kind, samples)

    @staticmethod
    def check(name, kind, samples):
        assert kind in ("counter", "gauge", "histogram"), name
        assert name.endswith("_total") == (kind == "counter"), name
        assert not re.search(r"_(ms|us|s|count|sum|bucket)$", name), name
        assert len({(sample, tuple(sorted(given.items()))) for sample, given, _ in samples}) == len(samples), "a sample of %s stands twice" % name
        if kind != "histogram":
            return
        series = [(tuple(sorted((label, its) for label, its in given.items() if label != "le")), sample, given, value) for sample, given, value in samples]
        for one in {key for key, _, _, _ in series}:
            mine = [(sample, given, value) for key, sample, given, value in series if key == one]
            buckets = [(float(given["le"]), value) for sample, given, value in mine if sample.endswith("_bucket")]
            assert buckets == sorted(buckets) and [n for _, n in buckets] == sorted(n for _, n in buckets), name
            assert buckets[-1][0] == float("inf") and [value for sample, _, value in mine if sample == name + "_count"] == [buckets[-1][1]], name
            assert len([1 for sample, _, _ in mine if sample == name + "_sum"]) == 1, name

    def samples(self):
        """{(name without redlockd_, labels in their order): value} of what STATS tells as well."""
        return {(sample[len("redlockd_"):], *its.items()): value for name, (_, samples) in self.families.items() if name.startswith("redlockd_")
                for sample, its, value in samples}

    def value(self, name, **given):
        """Of a sample with these labels, among others."""
        for _, samples in self.families.values():
            for sample, its, value in samples:
                if sample == name and given.items() <= its.items():
                    return value
        raise KeyError(name)


class WebTest(FuncTest):
    def start(self, web=None, tree=None, **options):
        """A daemon with a web listener."""
        web = web or free_web()
        d = self.daemon({"listen": {"http": web.listen}, **(tree or {})}, **options)
        return d, web


class OnWeb:
    """A body for on_each_store: the daemon of the class has a web listener."""

    @classmethod
    def setUpClass(cls):
        cls.web = free_web()
        cls.CONFIG = {"listen": {"http": cls.web.listen}}
        super().setUpClass()

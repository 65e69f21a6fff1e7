# SPDX-License-Identifier: BSD-2-Clause
"""What all tests need of the system: the programs under test, processes, folders, ports, limits, waiting, and configuration as YAML."""
import contextlib
import ctypes
import json
import os
import random
import re
import resource
import select
import signal
import socket
import subprocess
import tempfile
import time

WAIT = 10.0  # seconds: how long a test waits for what must come
LATE = 8.0  # seconds by which a busy machine may delay what is due. A bound here tells soon from never; `make load` and `make bench` measure time.

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("REDLOCKD_BUILD", "build"))
REDLOCKD = os.path.join(BUILD, "redlockd")
REDLOCK = os.path.join(BUILD, "redlock")
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
GONE = ("", "Z", "X")  # what state_of() says of a process that runs no more
TICK = os.sysconf("SC_CLK_TCK")
LIBC = ctypes.CDLL(None, use_errno=True)


class Skip(Exception):
    """This host cannot do what the test needs; the text says what is missing."""


def sanitized():
    """Whether a sanitizer instruments the daemon under test. Such a daemon is slow, and its memory use says nothing about the product's."""
    with open(REDLOCKD, "rb") as binary:
        code = binary.read()
    return b"__asan_init" in code or b"__ubsan_handle" in code


class Patience:
    """How many seconds something may take. A machine that stands still uses up one of them at most, however long: what was due meanwhile comes afterwards."""

    def __init__(self, seconds):
        self.rest, self.looked = seconds, time.monotonic()

    def left(self):
        now = time.monotonic()
        self.rest -= min(now - self.looked, 1.0)
        self.looked = now
        return self.rest

    def step(self):
        """For how long to wait before the next look."""
        return max(0.0, min(self.left(), 1.0))


# --- processes -------------------------------------------------------------------------------------------------------

def die_with_parent():
    LIBC.prctl(1, signal.SIGKILL)


def spawn(argv, **options):
    return subprocess.Popen(argv, preexec_fn=die_with_parent, **options)


def call(*argv, timeout=20, **options):
    """Runs a command to its end. Returns (status, stdout, stderr)."""
    done = subprocess.run(argv, timeout=timeout, text=True, **merged(QUIET, options))
    return done.returncode, done.stdout, done.stderr


def reap(process):
    """Kills a process unless it has ended, and closes its pipes."""
    if process.poll() is None:
        process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe:
            pipe.close()


class PipeLines:
    """The lines that come out of a pipe, each awaited with a deadline."""

    def __init__(self, pipe):
        self.pipe, self.buffer = pipe, b""

    def next(self, what, timeout=WAIT):
        """The next line, as text. what: for the complaint, who should have said which line."""
        patience = Patience(timeout)
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([self.pipe], [], [], patience.step())
            data = os.read(self.pipe.fileno(), 65536) if ready else b""
            if not data and (ready or patience.left() <= 0):
                raise AssertionError("%s: %s; seen: %r" % (what, "the pipe has ended" if ready else "timed out", self.buffer))
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line.decode("utf-8", "surrogateescape")


def private(path, flags):
    """The opener of a file with a secret, as in open(path, "w", opener=private)."""
    return os.open(path, flags, 0o600)


def state_of(pid):
    """The state letter of /proc/PID/stat; "" when there is no such process."""
    try:
        return stat_fields(pid)[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def stat_fields(pid):
    """The fields of /proc/PID/stat from the state on."""
    with open("/proc/%d/stat" % pid) as stat:
        return stat.read().rpartition(")")[2].split()


def children_of(pid):
    """The pids of the children of a process; none when there is no such process."""
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as children:
            return [int(word) for word in children.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def user_seconds(pid):
    """The processor time that a process has spent outside the kernel."""
    return int(stat_fields(pid)[11]) / TICK


def cpu_seconds(pid):
    """The processor time that a process has spent, in the kernel and outside."""
    return sum(map(int, stat_fields(pid)[11:13])) / TICK


def memory_kib(pid, what="VmRSS"):
    with open("/proc/%d/status" % pid) as status:
        return int(re.search(what + r":\s+(\d+)", status.read()).group(1))


def descriptors_of(pid):
    """How many files a process has open."""
    return len(os.listdir("/proc/%d/fd" % pid))


def allow_descriptors(wanted):
    """Raises the limit on open files of this process and of those that it starts. Returns how many of the wanted number the system allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, wanted))
            return wanted
        except (ValueError, PermissionError):
            wanted = hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return wanted


# --- places ----------------------------------------------------------------------------------------------------------

def temp_folder(prefix="redlockd-func-"):
    return tempfile.mkdtemp(prefix=prefix, dir=os.environ.get("REDLOCKD_TEST_TMP", "/tmp"))


RESERVED = []  # sockets whose names say which ports the tests of this process were given


def free_port():
    """A free port of the loopback, below the range from which the kernel takes ports for outgoing connections. No test that runs at this time gets it twice:
    an abstract Unix socket of that name, which ends with this process, reserves it."""
    while True:
        port = random.SystemRandom().randrange(10000, 32000)
        name = socket.socket(socket.AF_UNIX)
        with socket.socket() as probe:
            try:
                name.bind("\0redlockd-test-port-%d" % port)
                probe.bind(("127.0.0.1", port))
            except OSError:
                name.close()
                continue
        RESERVED.append(name)
        return port


def knows_localhost():
    """Whether this host resolves the name localhost: a system without a hosts file does not."""
    try:
        return bool(socket.getaddrinfo("localhost", None))
    except socket.gaierror:
        return False


def until(condition, what, timeout=WAIT):
    """Polls a condition every few milliseconds, and returns its value once that is true. For states that nobody announces. A condition that takes longer is
    polled half of the time. One that looks at a file which is not there is not yet true: a server unlinks its socket, and makes it again."""
    patience = Patience(timeout)
    while True:
        begin = time.monotonic()
        with contextlib.suppress(FileNotFoundError):
            value = condition()
            if value:
                return value
        if patience.left() <= 0:
            raise AssertionError("timed out: " + what)
        select.select([], [], [], max(0.005, time.monotonic() - begin))


# --- configuration ---------------------------------------------------------------------------------------------------

def yaml(tree, indent=0):
    """Block YAML of nested dicts; strings in double quotes unless they are plain words; dicts in lists as JSON."""
    lines = []
    for key, value in tree.items():
        if isinstance(value, dict):
            lines += ["%s%s:" % (" " * indent, key), yaml(value, indent + 2).rstrip("\n")]
        elif isinstance(value, list):
            lines.append("%s%s: [%s]" % (" " * indent, key, ", ".join(json.dumps(item) if isinstance(item, dict) else '"%s"' % item for item in value)))
        else:
            plain = re.fullmatch(r"[A-Za-z0-9_.-]+", str(value))
            lines.append("%s%s: %s" % (" " * indent, key, value if plain else '"%s"' % value))
    return "\n".join(line for line in lines if line) + "\n"


def merged(base, *over):
    """The first tree with the others laid over it, one after the other."""
    tree = dict(base)
    for other in over:
        for key, value in (other or {}).items():
            tree[key] = merged(tree.get(key, {}), value) if isinstance(value, dict) else value
    return tree

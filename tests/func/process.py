# SPDX-License-Identifier: BSD-2-Clause
"""What tests and their servers are made of: the programs under test, processes, folders, ports, waiting, and YAML to write."""
import ctypes
import os
import random
import re
import select
import signal
import socket
import subprocess
import tempfile
import time

import wire

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(ROOT, os.environ.get("REDLOCKD_BUILD", "build"))
REDLOCKD = os.path.join(BUILD, "redlockd")
REDLOCK = os.path.join(BUILD, "redlock")
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
LIBC = ctypes.CDLL(None, use_errno=True)


def sanitized():
    """Whether the daemon under test is instrumented: slower, and its memory says nothing about ours."""
    with open(REDLOCKD, "rb") as binary:
        code = binary.read()
    return b"__asan_init" in code or b"__ubsan_handle" in code


def die_with_parent():
    LIBC.prctl(1, signal.SIGKILL)


def spawn(argv, **options):
    return subprocess.Popen(argv, preexec_fn=die_with_parent, **options)


def temp_folder(prefix="redlockd-func-"):
    return tempfile.mkdtemp(prefix=prefix, dir=os.environ.get("REDLOCKD_TEST_TMP", "/tmp"))


def free_port():
    """A loopback port below the range from which the kernel takes those of outgoing connections."""
    while True:
        port = random.SystemRandom().randrange(10000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def call(*argv, timeout=20, **options):
    """(status, stdout, stderr)"""
    done = subprocess.run(argv, timeout=timeout, text=True, **merged(QUIET, options))
    return done.returncode, done.stdout, done.stderr


def knows_localhost():
    """Whether this host resolves the name localhost: a system without a hosts file does not."""
    try:
        return bool(socket.getaddrinfo("localhost", None))
    except socket.gaierror:
        return False


def until(condition, what, timeout=wire.WAIT):
    """Looks again every few milliseconds; for states that announce themselves to nobody."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError("timed out: " + what)
        select.select([], [], [], 0.005)


def yaml(tree, indent=0):
    """Block YAML of nested dicts; strings in double quotes unless they are plain words."""
    lines = []
    for key, value in tree.items():
        if isinstance(value, dict):
            lines += ["%s%s:" % (" " * indent, key), yaml(value, indent + 2).rstrip("\n")]
        elif isinstance(value, list):
            lines.append("%s%s: [%s]" % (" " * indent, key, ", ".join('"%s"' % item for item in value)))
        else:
            plain = re.fullmatch(r"[A-Za-z0-9_.-]+", str(value))
            lines.append("%s%s: %s" % (" " * indent, key, value if plain else '"%s"' % value))
    return "\n".join(line for line in lines if line) + "\n"


def merged(base, over):
    tree = dict(base)
    for key, value in over.items():
        tree[key] = merged(tree.get(key, {}), value) if isinstance(value, dict) else value
    return tree


def state_of(pid):
    """The letter of /proc/PID/stat, "" when there is no such process."""
    try:
        with open("/proc/%d/stat" % pid) as stat:
            return stat.read().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""

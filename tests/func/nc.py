# SPDX-License-Identifier: BSD-2-Clause
"""nc(1) as a person and a shell use it."""
import re
import signal
import subprocess

from process import WAIT, PipeLines, reap


def where(addr):
    """The arguments that lead nc to a Unix socket or to (host, port)."""
    return ["-U", addr] if isinstance(addr, str) else [addr[0], str(addr[1])]


class Nc:
    """An nc in which a test types lines and reads lines."""

    def __init__(self, addr, *options):
        self.process = subprocess.Popen(["nc", *options, *where(addr)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.lines = PipeLines(self.process.stdout)

    def type(self, line):
        self.process.stdin.write(line.encode() + b"\n")

    def see(self, pattern, timeout=None):
        """The next line; it must match the whole pattern."""
        line = self.lines.next("nc should print a line like " + pattern, WAIT if timeout is None else timeout)
        match = re.fullmatch(pattern, line)
        if not match:
            raise AssertionError("nc prints %r, which is not like %s" % (line, pattern))
        return match

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(WAIT)

    def kill(self):
        self.process.kill()

    def close(self):
        reap(self.process)


def nc_pipe(addr, data, *options, timeout=None):
    """What printf data | nc -N … prints."""
    return subprocess.run(["nc", "-N", *options, *where(addr)], input=data, stdout=subprocess.PIPE, timeout=WAIT if timeout is None else timeout).stdout

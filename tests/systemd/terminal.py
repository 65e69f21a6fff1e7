# SPDX-License-Identifier: BSD-2-Clause
"""A terminal with the shell of a user, in which a test types commands as a person does, and reads what the person would."""
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time

ESCAPES = re.compile(r"\x1b\][^\x07]*\x07|\x1b[\[(][?>=]?[0-9;]*[A-Za-z]|\x1b[=>78]|\x07")
PROMPT = re.compile(r"(?:^|\n|\^C)\[(\d+)\]\$ $")  # the status of the last command
SETTINGS = "PS1='[$?]\\$ '\nunset PROMPT_COMMAND\n"


def prepare(user):
    """The shell of this user has a prompt with the status of the last command, and does not mark what is pasted."""
    home = os.path.expanduser("~" + user)
    with open(os.path.join(home, ".bashrc"), "a", encoding="ascii") as settings:
        settings.write(SETTINGS)
    with open(os.path.join(home, ".inputrc"), "w", encoding="ascii") as settings:
        settings.write("set enable-bracketed-paste off\n")


class Terminal:
    """It is so large that no pager waits for a key."""

    def __init__(self, user, folder):
        self.status, self.seen = None, ""
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.execve("/bin/su", ["su", "-", user], {"TERM": "xterm"})
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 200, 220, 0, 0))
        self.until(PROMPT)
        self.run("cd " + folder)

    def type(self, line):
        os.write(self.master, line.encode() + b"\n")
        self.seen = ""

    def keys(self, text):
        os.write(self.master, text.encode())

    def until(self, pattern, timeout=30):
        """Reads until the pattern is there. Returns all that was seen since the last line was typed, as a terminal without cursor movements would show it."""
        deadline = time.monotonic() + timeout
        while not (found := re.search(pattern, self.shown())):
            if not select.select([self.master], [], [], max(0, deadline - time.monotonic()))[0]:
                raise AssertionError("no %r within %d s in:\n%s" % (getattr(pattern, "pattern", pattern), timeout, self.shown()))
            self.seen += os.read(self.master, 65536).decode(errors="replace")
        if pattern is PROMPT:
            self.status = int(found[1])
        return self.shown()

    def shown(self):
        return ESCAPES.sub("", self.seen.replace("\x1b[?1049l", "\n")).replace("\r\n", "\n").replace("\r", "")

    def run(self, command, timeout=60):
        """Types a command and waits for its end. Returns what it printed; its status is in self.status."""
        self.type(command)
        shown = self.until(PROMPT, timeout)
        return PROMPT.sub("", shown).partition("\n")[2].strip("\n")

    def interrupt(self):
        """Types ^C and waits for the prompt."""
        self.keys("\x03")
        return self.until(PROMPT)

    def close(self):
        os.close(self.master)
        os.waitpid(self.pid, 0)

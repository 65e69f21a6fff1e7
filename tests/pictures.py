#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Takes pictures from a real run: python3 tests/pictures.py folder

A daemon on three Redis servers, and commands of redlock that hold and wait. top.svg is the screen of `redlock top`; page.png is the page in Chromium, if that
is installed.
"""
import fcntl
import html
import os
import pty
import re
import select
import shutil
import socket
import struct
import sys
import termios
import time
from contextlib import ExitStack

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, part) for part in ("lib", "func")]
from chromium import PROGRAM, Chromium  # the paths stand above
from daemon import Daemon, on_redis
from process import LIBC, QUIET, REDLOCK, reap, spawn, temp_folder, until
from redis_server import Redis
from web import free_web

CLONE_NEWUTS = 0x04000000
COLUMNS, ROWS = 80, 24
CELL, LINE, EDGE = 8.4, 18, 12  # of the picture: the width of a cell, the height of a line, and what is around them
STYLES = {"": "#d4d7dc", "1": "#ffffff", "7": "#16181d"}
HOLD = [  # name, script, options
    ("nightly", "export.sh", []), ("deploy/web", "deploy.sh", ["--note", "release 41"]), ("catalogue", "index.sh", ["--shared"]),
    ("catalogue", "report.sh", ["--shared"]), ("licence", "render.sh", ["--slots", "5"]), ("nightly", "export.sh", []), ("nightly", "vacuum.sh", []),
    ("deploy/web", "rollback.sh", []),
]


class Screen:
    """What a terminal shows: rows of (character, style). It knows the sequences that `redlock top` writes, and no others."""

    def __init__(self):
        self.rows, self.x, self.y, self.style = [], 0, 0, ""
        self.clear()

    def clear(self):
        self.rows = [[(" ", "")] * COLUMNS for _ in range(ROWS)]

    def obey(self, final, number):
        if final == "H":
            self.x = self.y = 0
        elif final == "m":
            self.style = number.replace("0", "")
        elif final == "K":
            self.rows[self.y][self.x:] = [(" ", "")] * (COLUMNS - self.x)
        elif final == "J":
            self.rows[self.y][self.x:] = [(" ", "")] * (COLUMNS - self.x)
            self.rows[self.y + 1:] = [[(" ", "")] * COLUMNS for _ in range(ROWS - self.y - 1)]
        elif final not in "hl":
            raise AssertionError("redlock top writes a sequence that is not known here: %s%s" % (number, final))

    def feed(self, text):
        for number, final, plain in re.findall(r"\x1b\[\??([0-9;]*)([A-Za-z])|([^\x1b])", text):
            if final:
                self.obey(final, number)
            elif plain == "\r":
                self.x = 0
            elif plain == "\n":
                self.y = min(self.y + 1, ROWS - 1)
            elif self.x < COLUMNS:
                self.rows[self.y][self.x] = (plain, self.style)
                self.x += 1

    def used(self):
        """The rows down to the last one that is not blank."""
        rows = list(self.rows)
        while rows and all(cell[0] == " " for cell in rows[-1]):
            rows.pop()
        return rows


def runs(row):
    """[(where it begins, its text, its style)] of a row, blanks at its end left out unless they have a style."""
    found, x = [], 0
    while x < len(row):
        n = 1
        while x + n < len(row) and row[x + n][1] == row[x][1]:
            n += 1
        text = "".join(cell[0] for cell in row[x:x + n])
        if row[x][1] or text.strip():
            found.append((x, text if row[x][1] else text.rstrip(), row[x][1]))
        x += n
    return found


def svg(rows):
    width, height = COLUMNS * CELL + 2 * EDGE, len(rows) * LINE + 2 * EDGE
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" font-family="ui-monospace, \'DejaVu Sans Mono\', Menlo, Consolas, monospace" '
           'font-size="14">' % (width, height), "<title>redlock top</title>", '<rect width="100%" height="100%" rx="6" fill="#16181d"/>']
    for y, row in enumerate(rows):
        for x, text, style in runs(row):
            left, base = EDGE + x * CELL, EDGE + y * LINE + 13
            if "7" in style:
                out.append('<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="#d4d7dc"/>' % (left, base - 13, len(text) * CELL, LINE))
            out.append('<text x="%.1f" y="%d" fill="%s" xml:space="preserve" textLength="%.1f">%s</text>' % (
                left, base, STYLES[style], len(text) * CELL, html.escape(text)))
    return "\n".join(out + ["</svg>"]) + "\n"


def screen_of(argv, seconds, word):
    """What a command shows on a terminal after this time, and once the word is there."""
    pid, master = pty.fork()
    if pid == 0:
        os.execve(argv[0], argv, {**os.environ, "TERM": "xterm"})
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    screen, end, seen = Screen(), time.monotonic() + seconds, ""
    while time.monotonic() < end or word not in seen:
        if time.monotonic() > end + 30:
            raise AssertionError("%s never shows %s: %r" % (argv[-1], word, seen))
        if select.select([master], [], [], 0.1)[0]:
            seen += os.read(master, 65536).decode()
        elif seen:  # all of a picture has come
            screen.feed(seen)
            seen = "" if word not in seen else seen
            if time.monotonic() >= end:
                break
    os.write(master, b"q")
    os.close(master)
    os.waitpid(pid, 0)
    return screen.used()


def commands(stack, daemon):
    """Commands of redlock that hold and wait, one after the other."""
    folder = temp_folder("redlockd-pictures-")
    stack.callback(shutil.rmtree, folder)
    env = {**os.environ, "PATH": "%s:%s" % (folder, os.environ["PATH"])}
    for n, (name, script, options) in enumerate(HOLD):
        path = os.path.join(folder, script)
        with open(path, "w", encoding="ascii") as out:
            out.write("#!/bin/sh\nexec sleep 600\n")
        os.chmod(path, 0o755)
        stack.callback(reap, spawn([REDLOCK, "--addr", daemon.addr, "run", *options, name, "--", script], env=env, **QUIET))
        until(lambda count=n: count < asked(daemon), "%s asks for %s" % (script, name), 30)


def asked(daemon):
    """How many hold or wait."""
    with daemon.client() as client:
        return sum(len(client.roles(name)) for name in sorted({name for name, _, _ in HOLD}))


def main(folder):
    if LIBC.unshare(CLONE_NEWUTS) == 0:  # as root: the pictures tell a host that exists nowhere
        socket.sethostname("db1")
    with ExitStack() as stack:
        servers = []
        for _ in range(3):
            servers.append(Redis(tcp=True))
            stack.callback(servers[-1].stop)
            servers[-1].start()
        web = free_web()
        daemon = Daemon(on_redis(["127.0.0.1:%d" % server.port for server in servers], {"listen": {"http": web.listen}}))
        stack.callback(daemon.stop)
        daemon.start().joined()
        commands(stack, daemon)
        with open(os.path.join(folder, "top.svg"), "w", encoding="utf-8") as out:
            out.write(svg(screen_of([REDLOCK, "--addr", daemon.addr, "top"], 4, "The queue of nightly")))
        if not PROGRAM:
            print("no browser is installed (Debian package chromium): page.png stays as it is")
            return
        page = Chromium()
        stack.callback(page.close)
        page.size(1280, 400)
        page.go("http://%s/" % web.listen)
        page.until("document.getElementById('link')?.textContent === 'live'", "the page shows a snapshot")
        page.run("location.hash = '#lock=nightly'")
        page.until("document.getElementById('one').innerText.includes('vacuum.sh')", "the page shows who waits")
        page.picture(os.path.join(folder, "page.png"))


main(sys.argv[1])

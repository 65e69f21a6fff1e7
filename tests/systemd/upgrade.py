#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs in a booted system (boot.sh): python3 upgrade.py folder

The folder has the packages in three versions, in old, new and newer. Clients hold locks on the memory store while the second replaces the first, and on a
Redis while the third replaces the second. Then the configuration has a mistake, and in the end the packages are purged. Last line: "N passed, N failed".
"""
import contextlib
import glob
import os
import subprocess
import sys
import threading
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(TESTS, part) for part in ("lib", "func")]
from process import QUIET, call, spawn, until  # the paths stand above
from resumable import Survivor, broken
from wire import Client

SOCKET = "/run/redlockd/redlockd.sock"
CONFIG = "/etc/redlockd/redlockd.yaml"
FOLDERS = ["/etc", "/run", "/usr", "/var"]
PATIENCE = 60.0
counts = {True: 0, False: 0}


def verdict(passed, text):
    counts[bool(passed)] += 1
    if not passed:
        print("FAILED: %s" % text, flush=True)


def dpkg(*argv):
    status, out, err = call("dpkg", *argv, timeout=PATIENCE * 2)
    verdict(status == 0, "dpkg %s: %s%s" % (argv[0], out, err))
    return out + err


def shown(unit, what):
    return call("systemctl", "show", "--value", "-p", what, unit)[1].strip()


class Rival:
    """Asks for names again and again, each time over a connection of its own, as clients do that know nothing of an upgrade. No connection may be refused, and
    none may end."""

    def __init__(self, names):
        self.names, self.granted, self.refused, self.ended, self.odd, self.longest, self.stopped = names, [], 0, 0, [], 0.0, threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.stopped.is_set():
            begin = time.monotonic()
            try:
                with Client(SOCKET) as client:
                    self.ask(client)
            except OSError as fault:
                self.odd.append("no connection: %s" % fault)
            self.longest = max(self.longest, time.monotonic() - begin)
            self.stopped.wait(0.01)

    def ask(self, client):
        for name in self.names:
            try:
                answer = client.ask("LOCK " + name, PATIENCE)
            except (OSError, AssertionError) as fault:
                self.ended += 1
                if not broken(client):
                    self.odd.append(repr(fault))
                return
            self.refused += answer.kind == "BUSY"
            if answer.kind == "OK":
                self.granted.append(str(answer))
            elif answer.kind != "BUSY" and answer.code != "DRAINING":
                self.odd.append(str(answer))

    def stop(self):
        self.stopped.set()
        self.thread.join()


class Holder:
    """Holds a lock in a session with grace, and asks again and again whether it may believe in it."""

    def __init__(self, name):
        self.name, self.survivor, self.doubts, self.stopped = name, Survivor(SOCKET, "60s"), [], threading.Event()
        self.fence = self.survivor.client.ok("LOCK " + name).num("fence")
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.stopped.wait(0.02):
            answer = self.survivor.ask("CHECK " + self.name, PATIENCE)
            if answer is None and self.survivor.held != {self.name: self.fence}:
                self.doubts.append("resumed: %r" % self.survivor.held)
            elif answer is not None and answer.kind != "OK":
                self.doubts.append(str(answer))

    def unlock(self):
        self.stopped.set()
        self.thread.join()
        self.survivor.client.ok("UNLOCK " + self.name)
        self.survivor.client.close()


class Waiter:
    """Waits for a lock in a session with grace. After each resumption it asks again, and has the place that it had."""

    def __init__(self, name):
        self.name, self.survivor, self.answer = name, Survivor(SOCKET, "60s"), None
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while self.answer is None or self.answer.code == "DRAINING":
            self.answer = self.survivor.ask("LOCK %s wait=600s" % self.name, PATIENCE * 5)

    def end(self):
        self.thread.join()
        self.survivor.client.close()
        return self.answer


class Command:
    """redlock run with a command that goes on until its standard input ends, and then says its fence."""

    def __init__(self, name):
        self.process = spawn(["redlock", "run", name, "--", "sh", "-c", "echo $REDLOCK_FENCE; read -r end; echo $REDLOCK_FENCE"],
                             text=True, **{**QUIET, "stdin": subprocess.PIPE})
        self.fence = int(self.process.stdout.readline())

    def end(self):
        out, err = self.process.communicate("end\n", PATIENCE)
        return self.process.returncode, out, err


def upgrade(store, folder, version):
    """Clients hold locks while the packages in the folder replace those that are installed."""
    def check(passed, text):
        verdict(passed, "on %s, to %s: %s" % (store, version, text))

    holder, plain, command = Holder("held"), Client(SOCKET), Command("command")
    plain_fence = plain.ok("LOCK plain").num("fence")
    waiter = Waiter("held")
    until(lambda: "waiter" in plain.roles("held"), "the waiter waits")
    before = {what: shown("redlockd.service", what) for what in ("MainPID", "NRestarts")}
    listening = shown("redlockd.socket", "ActiveEnterTimestampMonotonic")
    rival = Rival(["held", "command"])
    until(lambda: rival.refused > 20, "the rival asks")
    begin = time.monotonic()
    dpkg("-i", *glob.glob(os.path.join(folder, "*.deb")))
    took = time.monotonic() - begin

    check(call("dpkg-query", "-W", "-f", "${Version}", "redlockd")[1] == version, "the version that is installed")
    check(shown("redlockd.service", "ActiveState") == "active", "the service does not run")
    pid = shown("redlockd.service", "MainPID")
    check(pid not in ("0", before["MainPID"]), "the daemon was not replaced")
    check(os.readlink("/proc/%s/exe" % pid) == "/usr/sbin/redlockd", "the daemon is not the one that is installed")
    check(shown("redlockd.service", "NRestarts") == before["NRestarts"], "the daemon failed on the way")
    check(shown("redlockd.socket", "ActiveEnterTimestampMonotonic") == listening, "the socket was closed on the way")

    seen = rival.refused
    until(lambda: rival.refused > seen + 20, "the rival asks again", PATIENCE)
    rival.stop()
    check(not rival.granted, "a held lock was granted: %r" % rival.granted[:3])
    check(not rival.odd, "requests failed: %r" % rival.odd[:3])
    check(not rival.ended, "%d connections ended" % rival.ended)
    check(command.process.poll() is None, "redlock run has ended")
    status, out, err = command.end()
    check((status, out) == (0, "%d\n" % command.fence), "redlock run: %d %r %r" % (status, out, err))

    check(not holder.doubts, "the holder lost its lock or its fence: %r" % holder.doubts[:3])
    check(not holder.survivor.resumed, "the holder lost its connection")
    holder.unlock()
    answer = waiter.end()
    check(answer.kind == "OK" and answer.num("fence") > holder.fence, "the waiter: %s" % answer)
    answer = plain.ask("CHECK plain")
    check(answer.kind == "OK" and answer.num("fence") == plain_fence, "the lock of a session without grace: %s" % answer)
    plain.close()
    print("%s, to %s: dpkg took %.1f s; %d requests refused, %d without an answer, the longest took %.0f ms" % (
        store, version, took, rival.refused, rival.ended, rival.longest * 1000))


def mistaken(folder):
    """The configuration has a mistake when packages are installed: the process that runs goes on, and the next time it is replaced."""
    with open(CONFIG, encoding="ascii") as config:
        right = config.read()
    pid = shown("redlockd.service", "MainPID")
    for text, goes_on in ((right + "nonsense: 1\n", True), (right, False)):
        with open(CONFIG, "w", encoding="ascii") as config:
            config.write(text)
        said = dpkg("-i", *glob.glob(os.path.join(folder, "*.deb")))
        verdict(("was not restarted" in said) == goes_on, "%s mistake: %s" % ("with a" if goes_on else "without", said))
        verdict((shown("redlockd.service", "MainPID") == pid) == goes_on, "the process is %s" % ("another one" if goes_on else "the same"))
        verdict(call("redlock", "ping")[0] == 0, "the daemon does not answer")


def purge():
    """A client connects all the while: the daemon may not be started again on the way."""
    rival = Rival(["held"])
    said = dpkg("-P", "redlockd", "redlock", "libredlock0")
    rival.stop()
    verdict("warning" not in said.lower(), "dpkg warned: %s" % said)
    verdict(call("pgrep", "-x", "redlockd")[0] == 1, "a daemon is left")
    for unit in ("redlockd.service", "redlockd.socket"):
        verdict(shown(unit, "LoadState") == "not-found" and shown(unit, "ActiveState") == "inactive", "%s is left" % unit)
    left = call("find", *FOLDERS, "-newer", "/share/.booted", "-iname", "*redlock*", timeout=PATIENCE)[1].split()
    verdict(not left, "the purge has left %s" % " ".join(left))


def main(folder):
    with contextlib.suppress(FileNotFoundError):
        os.remove("/var/lib/man-db/auto-update")  # what has nothing to do with these packages, and takes long
    dpkg("-i", *glob.glob(os.path.join(folder, "old", "*.deb")))
    verdict(call("redlock", "ping")[0] == 0, "the daemon does not answer after it was installed")
    versions = [open(os.path.join(folder, which, "version"), encoding="ascii").read().strip() for which in ("new", "newer")]
    upgrade("memory", os.path.join(folder, "new"), versions[0])

    server = spawn(["redis-server", "--port", "0", "--unixsocket", "/run/redis.sock", "--unixsocketperm", "777", "--save", "", "--dir", "/run"], **QUIET)
    until(lambda: os.path.exists("/run/redis.sock"), "Redis listens")
    with open(CONFIG, "w", encoding="ascii") as config:
        config.write('store: redis\nredis:\n  nodes: ["unix:/run/redis.sock"]\nmax_lease: 10s\n')
    status, _, err = call("systemctl", "restart", "redlockd", timeout=PATIENCE)
    verdict(status == 0, "restart with another configuration: %s" % err)
    until(lambda: call("redlock", "ping")[0] == 0, "Redis has joined", PATIENCE)
    upgrade("redis", os.path.join(folder, "newer"), versions[1])
    with open(CONFIG, encoding="ascii") as config:
        verdict("unix:/run/redis.sock" in config.read(), "the configuration of this host was replaced")
    mistaken(os.path.join(folder, "newer"))
    purge()
    server.kill()
    server.wait()


try:
    main(sys.argv[1])
except Exception as fault:  # pylint: disable=broad-except
    verdict(False, "the test broke off: %r" % fault)
    print(call("journalctl", "-u", "redlockd.service", "-n", "40", "--no-pager")[1])
print("%d passed, %d failed" % (counts[True], counts[False]))
sys.exit(counts[False] > 0)

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs in a booted system (boot.sh): python3 restart.py folder, with the program that plays many clients in the folder REDLOCKD_BUILD

The folder has what `make install` puts below the root folder. The units of it run here, and are restarted while clients hold, wait and ask. Last line:
"N passed, N failed".
"""
import os
import signal
import sys
import threading
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(TESTS, part) for part in ("lib", "func")]
from generator import Generator
from process import QUIET, allow_descriptors, call, spawn, until  # the paths stand above
from resumable import resume_fences, with_grace
from wire import Client

SOCKET, TCP = "/run/redlockd/redlockd.sock", ("127.0.0.1", 7420)
CONFIG, PASSWORD = "/etc/redlockd/redlockd.yaml", "/etc/redlockd/redis-password"
CLIENTS, RESTARTS = 40, 5
PAUSE_MOST = 2.0  # seconds; a busy machine takes its time. make restart-load measures
WATCHDOG = 10     # seconds, in the unit
ASIDE = 0.2       # seconds, in which the test takes nothing from the processors that the daemon needs
PATIENCE = 60.0
MANY, REQUESTS = 1000, 200000
THINK_MS = (400, 50)  # two processors carry what calm clients ask; busy ones take from the daemon what it needs
counts = {True: 0, False: 0}


def verdict(passed, text):
    counts[bool(passed)] += 1
    if not passed:
        print("FAILED: %s" % text, flush=True)


def shown(what, unit="redlockd.service"):
    return call("systemctl", "show", "--value", "-p", what, unit)[1].strip()


def systemctl(*argv):
    status, _, err = call("systemctl", *argv, timeout=PATIENCE)
    verdict(status == 0, "systemctl %s: %s" % (" ".join(argv), err))


def journal():
    return call("journalctl", "-u", "redlockd.service", "--no-pager", "-o", "cat", timeout=PATIENCE)[1]


class Load:
    """Clients that lock and unlock all the while, each over one connection. Each answer must be the one that is due; none may come twice."""

    def __init__(self):
        self.asked, self.faults, self.longest, self.stopped = 0, [], 0.0, threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def run(self, number):
        try:
            with Client(SOCKET if number % 2 else TCP) as client:
                asked = 0
                while not self.stopped.is_set():
                    begin = time.monotonic()
                    for verb in ("LOCK", "UNLOCK"):
                        answer = client.ask("@%s%d %s load/%d" % (verb, asked, verb, number), PATIENCE)
                        if answer.kind != "OK":
                            self.faults.append("%s -> %s" % (verb, answer))
                    self.longest = max(self.longest, time.monotonic() - begin)
                    asked += 1
                if client.barrier():
                    self.faults.append("answers without a request: %r" % client.inbox[:3])
                self.asked += 2 * asked
        except (OSError, AssertionError) as fault:
            self.faults.append(repr(fault)[:300])

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join()


class Stay:
    """A holder, and a client that waits for the same lock: their connections must outlive everything."""

    def __init__(self):
        self.holder, self.waiter, self.half = Client(SOCKET), Client(TCP), Client(SOCKET)
        self.fence = self.holder.ok("LOCK held").num("fence")
        self.waiter.begin("@w LOCK held wait=600s")
        self.half.barrier()
        self.half.raw(b"PI")

    def end(self, text):
        try:
            answer = self.holder.ok("CHECK held", PATIENCE)
            verdict(answer.num("fence") == self.fence, "%s: another fence: %s" % (text, answer))
            self.half.raw(b"NG\n")
            verdict(self.half.reply(timeout=PATIENCE).kind == "OK", "%s: a line in two halves" % text)
            verdict(self.waiter.inbox == [], "%s: the waiter was told %r" % (text, self.waiter.inbox))
            self.holder.ok("UNLOCK held", PATIENCE)
            answer = self.waiter.reply("@w", PATIENCE)
            verdict(answer.kind == "OK" and answer.num("fence") > self.fence, "%s: the waiter: %s" % (text, answer))
        except (OSError, AssertionError) as fault:
            verdict(False, "%s: a connection did not outlive it: %r" % (text, fault))
        for client in (self.holder, self.waiter, self.half):
            client.close()


def under_load(text, restart):
    """restart: restarts the daemon once."""
    stay, load = Stay(), Load()
    before = {what: shown(what) for what in ("NRestarts",)}
    listening = shown("ActiveEnterTimestampMonotonic", "redlockd.socket")
    for _ in range(RESTARTS):
        restart()
        time.sleep(0.2)
    load.stop()
    stay.end(text)
    verdict(not load.faults, "%s: %d requests failed: %r" % (text, len(load.faults), load.faults[:3]))
    verdict(load.longest < PAUSE_MOST, "%s: a pause of %.0f ms" % (text, load.longest * 1000))
    verdict(shown("ActiveState") == "active", "%s: the service does not run" % text)
    verdict(shown("NRestarts") == before["NRestarts"], "%s: the daemon failed on the way" % text)
    verdict(shown("ActiveEnterTimestampMonotonic", "redlockd.socket") == listening, "%s: the socket was closed on the way" % text)
    until(lambda: shown("NFileDescriptorStore") == "0", "nothing is left in the descriptor store", PATIENCE)
    print("%s: %d restarts, %d requests of %d clients, %d failures, the longest took %.0f ms" % (
        text, RESTARTS, load.asked, CLIENTS, len(load.faults), load.longest * 1000), flush=True)


def under_heavy_load(text, restart):
    """Many clients, and so many requests that the restarts are few among them, calm and then busy."""
    allow_descriptors(MANY + 200)
    for think_ms in THINK_MS:
        under_mix("%s with pauses of %d ms" % (text, think_ms), restart, think_ms)


def under_mix(text, restart, think_ms):
    """It prints the longest pauses: a machine with few processors needs them."""
    mix = Generator("load", "mix", SOCKET, MANY, think_ms, "mix/", 1)
    mix.ask("connect", "connected")
    mix.say("begin")
    time.sleep(1)  # all of them think before they ask
    asked, wrong, pauses = 0, 0, []
    for i in range(RESTARTS):
        mix.say("begin")
        restart()
        while True:
            time.sleep(0.3)
            some = mix.ask("end", "mix")  # the generator goes on counting
            if asked + some["n"] >= REQUESTS * (i + 1) / RESTARTS:
                break
        asked, wrong = asked + some["n"], wrong + some["wrong"]
        pauses.append(some["max_us"] / 1e3)
    mix.say("begin")
    time.sleep(1)
    calm = mix.ask("end", "mix")
    mix.close()
    verdict(wrong == 0, "%s: %d requests of %d failed" % (text, wrong, asked))
    verdict(max(pauses) < PAUSE_MOST * 1000, "%s: a pause of %.0f ms" % (text, max(pauses)))
    print("%s: %d restarts, %d requests of %d clients, %d failures, the longest took %.0f ms (%s), without a restart %.0f ms" % (
        text, RESTARTS, asked, MANY, wrong, max(pauses), " ".join("%.0f" % pause for pause in pauses), calm["max_us"] / 1e3), flush=True)


def by_systemctl():
    pid = shown("MainPID")
    systemctl("restart", "redlockd.service")
    time.sleep(ASIDE)
    verdict(shown("MainPID") not in ("0", pid), "the process was not replaced")


def by_signal():
    pid, seen = shown("MainPID"), journal().count("notice restarted") + journal().count("restarted sessions=")
    os.kill(int(pid), signal.SIGUSR2)
    time.sleep(ASIDE)
    until(lambda: journal().count("notice restarted") + journal().count("restarted sessions=") > seen, "the next program goes on", PATIENCE)
    verdict(shown("MainPID") == pid, "the process was replaced")


def program_is_replaced():
    """As a package and make install do it: another file takes the name of the program."""
    program = os.readlink("/proc/%s/exe" % shown("MainPID"))
    status, _, err = call("sh", "-c", 'cp -p "$0" "$0.new" && mv "$0.new" "$0"', program)
    verdict(status == 0, "the program is not replaced: %s" % err)
    by_signal()
    verdict(os.readlink("/proc/%s/exe" % shown("MainPID")) == program, "the program on disk does not run")


def in_a_row():
    """What the scripts of a package may do: no start comes to its end before the next stop."""
    for _ in range(3):
        systemctl("restart", "--no-block", "redlockd.service")
        time.sleep(0.02)
    systemctl("restart", "redlockd.service")


def outlives_the_watchdog():
    """The manager wants to hear from the program that was exchanged as well."""
    by_signal()
    failed, pid = shown("NRestarts"), shown("MainPID")
    time.sleep(WATCHDOG * 1.3)
    verdict((shown("NRestarts"), shown("MainPID"), shown("ActiveState")) == (failed, pid, "active"), "the watchdog ended the daemon after SIGUSR2")
    systemctl("reload", "redlockd.service")


def stops():
    """Nobody comes after a stop: clients see the end. What they may believe in stays theirs."""
    plain, graceful = Client(SOCKET), Client(SOCKET)
    ticket = with_grace(graceful, "60s")
    fence = graceful.ok("LOCK graceful").num("fence")
    plain.ok("LOCK plain ttl=10s")
    systemctl("stop", "redlockd.service")
    for client in (plain, graceful):
        client.eof(PATIENCE)
        client.close()
    verdict(shown("NFileDescriptorStore") == "0", "a stop left something in the descriptor store")
    systemctl("start", "redlockd.service")
    with Client(SOCKET) as client:
        verdict(client.ask("LOCK plain").kind == "BUSY", "a stop has freed a lock that somebody may believe in")
        verdict(resume_fences(client, ticket) == {"graceful": fence}, "a session with grace is not resumed after a stop")
        client.ok("UNLOCK graceful")


def is_killed():
    plain = Client(SOCKET)
    plain.ok("LOCK killed ttl=10s")
    os.kill(int(shown("MainPID")), signal.SIGKILL)
    plain.eof(PATIENCE)
    plain.close()
    with Client(SOCKET) as client:
        verdict(client.ask("LOCK killed", PATIENCE).kind == "BUSY", "a crash has freed a lock that somebody may believe in")


def reload_status():
    return call("systemctl", "reload", "redlockd.service", timeout=PATIENCE)[0]


def reloads(password):
    """The check before a reload sees what the daemon sees: a credential, and no file that is root's alone."""
    with open(CONFIG, encoding="ascii") as config:
        sound = config.read()
    for extra, status, text in (("lease: 5s\n", 0, "a password by LoadCredential="), ("leese: 5s\n", 1, "a mistake"),
                                ("auth: {users_file: %s}\n" % password, 1, "a file that only root can read")):
        with open(CONFIG, "w", encoding="ascii") as config:
            config.write(sound + extra)
        verdict(reload_status() == status, "%s: the reload does not end with %d" % (text, status))
        if status == 0:
            until(lambda: "key=lease" in journal(), "the reload takes effect", PATIENCE)
    with open(CONFIG, "w", encoding="ascii") as config:
        config.write(sound)


def give_credential(path, secret):
    with open(path, "w", encoding="ascii", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(secret + "\n")
    os.makedirs("/etc/systemd/system/redlockd.service.d")
    with open("/etc/systemd/system/redlockd.service.d/password.conf", "w", encoding="ascii") as drop_in:
        drop_in.write("[Service]\nLoadCredential=redis-password:%s\n" % path)
    systemctl("daemon-reload")


def begin(folder):
    status, _, err = call("sh", "-c", 'tar -C "$0" -c . | tar -C / -x --no-same-owner --keep-directory-symlink', folder)
    verdict(status == 0, "the files are not installed: %s" % err)
    call("systemd-sysusers")
    systemctl("daemon-reload")
    systemctl("start", "redlockd.socket", "redlockd.service")
    verdict(call("redlock", "ping")[0] == 0, "the daemon does not answer")
    version = call("systemctl", "--version")[1].split("\n")[0]
    print(version)


def main(folder):
    begin(folder)
    under_load("memory, systemctl restart", by_systemctl)
    under_load("memory, SIGUSR2", by_signal)
    under_load("memory, in a row", in_a_row)
    under_heavy_load("memory, systemctl restart, many clients", by_systemctl)
    under_heavy_load("memory, SIGUSR2, many clients", by_signal)
    program_is_replaced()
    outlives_the_watchdog()
    stops()
    is_killed()
    server = spawn(["redis-server", "--port", "0", "--unixsocket", "/run/redis.sock", "--unixsocketperm", "777", "--save", "", "--dir", "/run",
                    "--requirepass", "secret"], **QUIET)
    until(lambda: os.path.exists("/run/redis.sock"), "Redis listens")
    with open(CONFIG, "w", encoding="ascii") as config:
        config.write('store: redis\nguard: trust-first-start\nredis:\n  nodes: ["unix:/run/redis.sock"]\n  timeout: 250ms\n  password_file: redis-password\n'
                     'max_lease: 10s\n')
    give_credential(PASSWORD, "secret")
    systemctl("restart", "redlockd.service")
    verdict("names other stores" in journal(), "nothing says that the configuration names other stores")
    until(lambda: call("redlock", "ping")[0] == 0, "Redis has joined", PATIENCE)
    under_load("Redis, systemctl restart", by_systemctl)
    under_load("Redis, SIGUSR2", by_signal)
    under_heavy_load("Redis, systemctl restart, many clients", by_systemctl)
    reloads(PASSWORD)
    stops()
    server.kill()
    server.wait()


try:
    main(sys.argv[1])
except Exception as fault:  # pylint: disable=broad-except
    verdict(False, "the test broke off: %r" % fault)
if counts[False]:
    print(journal()[-6000:])
print("%d passed, %d failed" % (counts[True], counts[False]))
sys.exit(counts[False] > 0)

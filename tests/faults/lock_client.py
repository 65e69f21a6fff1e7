# SPDX-License-Identifier: BSD-2-Clause
"""A client process, which locks and unlocks in many ways, acts while it holds locks, and records what it sees.

It obeys the deadlines of the protocol: it believes in a lock until the moment before it sent its last LOCK, EXTEND or CHECK plus valid_ms of the answer. It
acts without a fence only within that time. With a fence it writes after that as well, as a client that was frozen would.
"""
import os
import random
import signal
import time

import process
import wire
from history import MS, Log, now
from registers import Registers

MARGIN = 60 * MS  # an update that only the lock protects begins so long before the deadline at the latest
MODES = {"try": 5, "wait": 6, "short": 3, "hold": 2, "again": 1, "extend": 1, "late": 1, "linger": 1, "drop": 1}
LINGERING = dict(MODES, linger=5)


class Options(dict):
    """c: its number. d: its daemon, at addr. seed, folder, names, lease_ms, max_lease_ms. eof_ends: the end of the connection ends all beliefs. modes: how
    often it does what. pause_ms: how long it pauses. stall: the chance to stop itself. network: the pid of a process in its network. aim: the symbolic link
    that leads it to a daemon, …-<daemon>. grace_ms: its sessions outlive their connections. answer_s: how long it awaits an answer beyond the wait.
    impatient: it closes a connection without an answer, and does not complain."""
    DEFAULTS = {"eof_ends": False, "modes": MODES, "pause_ms": 60, "stall": 0.0, "grace_ms": 0, "answer_s": 30, "network": None, "aim": None,
                "impatient": False}

    def __getattr__(self, key):
        return self[key] if key in self else self.DEFAULTS[key]


class Gone(Exception):
    """The session has ended."""


class Stalling(wire.Client):
    """A client that now and then stops itself when an answer has arrived, before it reads it."""
    chance, log = 0.0, None

    def fill(self, timeout):
        if self.chance and not self.ended and self.poll.poll(max(0, timeout) * 1000) and random.random() < self.chance:
            at = now()
            os.kill(os.getpid(), signal.SIGSTOP)
            self.log.tell("stalled", at=at, to=now())
        return super().fill(timeout)


class Session:
    def __init__(self, options, log):
        self.options, self.log, self.serial = options, log, 0
        self.conn = Stalling(options.addr)
        self.conn.chance, self.conn.log = options.stall, log
        self.held = {}  # name: (fence, deadline)
        log.tell("open", **({"d": int(os.readlink(options.aim).rpartition("-")[2])} if options.aim else {}))
        self.ticket = None  # for RESUME: the id of the session and its secret

    def take(self, line):
        """Takes in a push."""
        if "name" not in line or "fence" not in line:
            return
        name, fence = line["name"], line.num("fence")
        self.log.tell("push", code=line.code, name=name, fence=fence, reason=line.fields.get("reason"))
        if line.code == "LOST" and self.held.get(name, (None,))[0] == fence:
            self.held[name] = (fence, 0)

    def pushes(self, before=None):
        for line in [line for line in self.conn.inbox if line.kind == "!" and (before is None or line.place < before)]:
            self.conn.inbox.remove(line)
            self.take(line)

    def gone(self):
        self.pushes()
        self.log.tell("gone", how="eof")
        self.conn.close()
        raise Gone

    def begin(self, verb, name=None, line=None, wait=0, **about):
        """Sends a request. Returns what finish() takes."""
        self.serial += 1
        asked = self.log.tell("call", n=self.serial, q=verb, name=name, wait=wait, **about)
        try:
            self.conn.send(line or "%s %s" % (verb, wire.quoted(name) if name else ""))
        except OSError:
            self.gone()
        return self.serial, asked, name, wait

    def ask(self, *args, **about):
        return self.finish(self.begin(*args, **about))

    def finish(self, request):
        serial, asked, name, wait = request
        try:
            answer = self.conn.reply(None, wait / 1000 + self.options.answer_s)
        except (OSError, AssertionError) as error:
            if isinstance(error, OSError) or self.conn.ended:
                self.gone()
            if self.options.impatient:
                self.close()
                raise Gone from None
            raise
        told = now()
        self.pushes(answer.place)
        fields = {key: int(answer.fields[key]) for key in ("fence", "count") if key in answer}
        if "valid_ms" in answer:
            fields["valid"] = answer.num("valid_ms")
        if answer.rows:
            fields["rows"] = [[row["name"], row.num("fence"), row.num("valid_ms")] for row in answer.rows if "fence" in row]
        self.log.tell("answer", at=told, n=serial, kind=answer.kind, code=answer.code, text=answer.text, **fields)
        if answer.kind == "OK" and "valid" in fields:
            self.held[name] = (fields["fence"], asked + fields["valid"] * MS)
        elif answer.kind == "ERR" and answer.code in ("LOST", "NOTHELD"):
            self.held.pop(name, None)
        self.pushes()
        return answer

    def listen(self, seconds):
        self.conn.listen(seconds)
        self.pushes()
        if self.conn.ended:
            self.gone()

    def hello(self):
        """Asks for grace: a session that outlives its connection."""
        answer = self.ask("HELLO", line="HELLO 1 grace=%dms" % self.options.grace_ms)
        if answer.kind == "OK":
            self.ticket = (answer["session"], answer["secret"])

    def resume(self, ticket):
        """Resumes a session. Returns the names that it holds."""
        at = now()
        answer = self.ask("RESUME", line="RESUME %s %s" % ticket)
        if answer.kind != "OK":
            return []
        self.ticket = ticket
        for row in answer.rows:
            self.held[row["name"]] = (row.num("fence"), at + row.num("valid_ms") * MS)
        return list(self.held)

    def lock(self, name, wait=0, ttl=None, renew=True):
        text = "LOCK %s wait=%dms%s%s" % (wire.quoted(name), wait, " ttl=%dms" % ttl if ttl else "", "" if renew else " renew=no")
        answer = self.ask("LOCK", name, text, wait, ttl=ttl or self.options.lease_ms, renew=renew)
        if answer.kind == "OK" and wait:
            self.check(name)
        return answer.kind == "OK"

    def check(self, name):
        return self.ask("CHECK", name).kind == "OK"

    def unlock(self, name):
        self.ask("UNLOCK", name)
        if name in self.held:
            del self.held[name]

    def deadline(self, name):
        return self.held.get(name, (None, 0))[1]

    def fence(self, name):
        return self.held.get(name, (None, 0))[0]

    def close(self):
        self.log.tell("gone", how="closed")
        self.conn.close()


def enlisted(w, daemon, c):
    """A session of a row's own, as client c of a world: its history is judged with those of the clients."""
    log = Log(os.path.join(w.folder, "c%02d.log" % c))
    log.tell("start", c=c, d=daemon.index, eof_ends=False)
    return Session(Options(addr=daemon.addr, lease_ms=w.lease_ms), log)


class Worker:
    def __init__(self, options):
        self.options, self.rng = options, random.Random("%s/%s" % (options.seed, options.c))
        self.log = Log(os.path.join(options.folder, "c%02d.log" % options.c))
        self.registers = Registers(options.folder, options.names)
        self.session, self.stopping = None, False

    def stop(self, *_):
        self.stopping = True

    # --- what it does while it holds a lock --------------------------------------------------------------------------

    def act(self, name, think):
        """Adds one to both values. Only the value without a fence is bound to the deadline."""
        fence = self.session.fence(name)
        value = self.registers.access(name, fence)
        self.add(name, think)
        if value is not None:
            self.registers.access(name, fence, value + 1)

    def add(self, name, think):
        deadline = self.session.deadline(name)
        if now() + MARGIN + think * 1e9 > deadline:
            time.sleep(think)
            return
        self.log.tell("try", name=name)
        value = self.registers.count(name)
        time.sleep(think)
        self.registers.set_count(name, value + 1)
        self.log.tell("done", name=name, late=now() > deadline)

    def think(self):
        return self.rng.choice((0, 0, 0.002, 0.005, 0.01, 0.02))

    # --- the ways to hold --------------------------------------------------------------------------------------------

    def do_try(self, name):
        if self.session.lock(name):
            self.act(name, self.think())
            self.session.unlock(name)

    def do_wait(self, name):
        if self.session.lock(name, wait=self.rng.randrange(50, 1500)):
            self.act(name, self.think())
            self.session.unlock(name)

    def do_short(self, name):
        ttl = self.rng.randrange(150, self.rng.choice((400, self.options.max_lease_ms)))
        if self.session.lock(name, ttl=ttl, renew=False):
            self.act(name, self.think())
            self.session.listen(self.rng.random() ** 2 * ttl / 1000)
            self.session.unlock(name)

    def do_late(self, name):
        """Asks again when the lease has ended: CHECK and UNLOCK must say so."""
        ttl = self.rng.randrange(150, 400)
        if self.session.lock(name, wait=200, ttl=ttl, renew=False):
            self.act(name, self.think())
            self.session.listen(ttl / 1000 * self.rng.uniform(0.9, 1.3))
            self.session.check(name)
            self.session.unlock(name)

    def do_linger(self, name):
        """Holds a lock that nobody renews to its end."""
        ttl = self.options.max_lease_ms
        if self.session.lock(name, wait=300, ttl=ttl, renew=False):
            self.act(name, self.think())
            self.session.listen(ttl / 1000 * self.rng.uniform(0.2, 1.1))
            if self.session.check(name):
                self.act(name, self.think())
            self.session.unlock(name)

    def do_hold(self, name):
        if self.session.lock(name, wait=300):
            end = time.monotonic() + self.options.lease_ms / 1000 * self.rng.uniform(0.3, 2.5)
            while time.monotonic() < end and not self.stopping and self.session.check(name):
                self.act(name, self.think())
                self.session.listen(self.options.lease_ms / 3000)
            self.session.unlock(name)

    def do_again(self, name):
        if self.session.lock(name, wait=100) and self.session.lock(name):
            self.session.ask("UNLOCK", name)
            self.act(name, self.think())
        if self.session.fence(name):
            self.session.unlock(name)

    def do_extend(self, name):
        if self.session.lock(name, ttl=300, renew=False):
            for _ in range(self.rng.randrange(1, 5)):
                self.session.listen(0.1)
                if self.session.ask("EXTEND", name).kind != "OK":
                    break
                self.act(name, self.think())
            self.session.unlock(name)

    def do_drop(self, name):
        """Ends the session while it holds."""
        if self.session.lock(name, wait=100):
            self.act(name, self.think())
            self.session.close()
            raise Gone

    # --- sessions ----------------------------------------------------------------------------------------------------

    def connect(self):
        ticket = self.session.ticket if self.session else None
        while not self.stopping:
            try:
                self.session = Session(self.options, self.log)
                if self.options.grace_ms:
                    self.resume_or_begin(ticket)
                return
            except (OSError, Gone):
                time.sleep(self.rng.uniform(0.02, 0.2))

    def resume_or_begin(self, ticket):
        """Resumes a session that was dropped, if the daemon still has it, keeps its locks for a short time or for some leases, and frees them."""
        held = self.session.resume(ticket) if ticket else []
        end = time.monotonic() + self.options.lease_ms / 1000 * self.rng.choice((0, self.rng.uniform(0.3, 3)))
        while True:
            for name in held:
                if self.session.check(name):
                    self.act(name, self.think())
            if not held or self.stopping or time.monotonic() > end:
                break
            self.session.listen(self.options.lease_ms / 3000)
        for name in held:
            while self.session.ask("UNLOCK", name).fields.get("count", "0") != "0":
                pass  # a request on its way when the connection dropped may have counted or not
            self.session.held.pop(name, None)
        if not self.session.ticket:
            self.session.hello()

    def live(self):
        modes, names = dict(self.options.modes), list(self.options.names)
        self.connect()
        while not self.stopping:
            try:
                getattr(self, "do_" + self.rng.choices(*zip(*modes.items()))[0])(self.rng.choice(names))
                self.session.listen(self.rng.random() * 2 * self.options.pause_ms / 1000)
            except Gone:
                self.connect()
        try:
            if self.session:
                self.session.ask("QUIT")
        except Gone:
            pass


def enter(pid):
    """Moves this process into the network of another."""
    fd = os.open("/proc/%d/ns/net" % pid, os.O_RDONLY | os.O_CLOEXEC)
    if process.LIBC.setns(fd, 0) != 0:
        raise OSError("setns")
    os.close(fd)


def run(options):
    """The whole life of a client process."""
    process.die_with_parent()
    options = Options(options)
    random.seed("%s/%s" % (options.seed, options.c))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if options.network:
        enter(options.network)
    worker = Worker(options)
    signal.signal(signal.SIGTERM, worker.stop)
    worker.log.tell("start", c=options.c, d=options.d, eof_ends=options.eof_ends)
    try:
        worker.live()
    except AssertionError as error:
        worker.log.tell("failed", text=str(error))
    finally:
        worker.registers.close()

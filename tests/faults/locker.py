# SPDX-License-Identifier: BSD-2-Clause
"""One client process: takes locks and gives them back in many ways, acts behind them, and writes down all it sees.

It obeys the deadlines of the protocol: it believes until (the clock before it sent its last LOCK, EXTEND or CHECK) + the valid_ms of the answer, acts
without a token only within that, and writes with its token even when that is over, as a client that was frozen would.
"""
import os
import random
import signal
import time

import process
import wire
from history import Log, now
from register import Registers

MS = 1_000_000
MARGIN = 60 * MS  # an act that only the lock protects begins no later than this before the deadline
MODES = {"try": 5, "wait": 6, "short": 3, "hold": 2, "again": 1, "extend": 1, "late": 1, "linger": 1, "drop": 1}
LINGERING = dict(MODES, linger=5)


class Options(dict):
    """c: number, d: daemon, addr, seed, folder, names, lease_ms, max_lease_ms; eof_ends, modes, pace_ms, stall (chance), network (the pid of a
    process in it), aim (a symbolic link to where the proxy leads: …-<daemon>), grace_ms (sessions outlive their connections), answer_s (for an
    answer beyond its wait), impatient (without an answer it closes, and does not complain)."""
    DEFAULTS = {"eof_ends": False, "modes": MODES, "pace_ms": 60, "stall": 0.0, "grace_ms": 0, "answer_s": 30, "network": None, "aim": None,
                "impatient": False}

    def __getattr__(self, key):
        return self[key] if key in self else self.DEFAULTS[key]


class Gone(Exception):
    """The session is over."""


class Stalling(wire.Client):
    """Stops itself, now and then, when an answer has come and before it is read."""
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
        self.ticket = None  # for RESUME: the session's id and its secret

    def take(self, line):
        """A push."""
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
        """Sends a request; finish() takes what this returns."""
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
        """Asks for a session that outlives its connection."""
        answer = self.ask("HELLO", line="HELLO 1 grace=%dms" % self.options.grace_ms)
        if answer.kind == "OK":
            self.ticket = (answer["session"], answer["secret"])

    def resume(self, ticket):
        """The names that are held again."""
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


class Worker:
    def __init__(self, options):
        self.options, self.rng = options, random.Random("%s/%s" % (options.seed, options.c))
        self.log = Log(os.path.join(options.folder, "c%02d.log" % options.c))
        self.registers = Registers(options.folder, options.names)
        self.session, self.stopping = None, False

    def stop(self, *_):
        self.stopping = True

    # --- what it does behind a lock ----------------------------------------------------------------------------------

    def act(self, name, think):
        """Adds one to both values. The deadline binds it only where there is no token."""
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
        """Comes back when it is over: CHECK and UNLOCK must say so."""
        ttl = self.rng.randrange(150, 400)
        if self.session.lock(name, wait=200, ttl=ttl, renew=False):
            self.act(name, self.think())
            self.session.listen(ttl / 1000 * self.rng.uniform(0.9, 1.3))
            self.session.check(name)
            self.session.unlock(name)

    def do_linger(self, name):
        """Holds to the end what nobody renews."""
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

    # --- its life ----------------------------------------------------------------------------------------------------

    def connect(self):
        ticket = self.session.ticket if self.session else None
        while not self.stopping:
            try:
                self.session = Session(self.options, self.log)
                if self.options.grace_ms:
                    self.come_back(ticket)
                return
            except (OSError, Gone):
                time.sleep(self.rng.uniform(0.02, 0.2))

    def come_back(self, ticket):
        """Takes up a session that was dropped, if it still is there, stays with what it holds, briefly or for some leases, and ends it."""
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
                pass  # how often it was locked, not even this client knows for sure
            self.session.held.pop(name, None)
        if not self.session.ticket:
            self.session.hello()

    def live(self):
        modes, names = dict(self.options.modes), list(self.options.names)
        self.connect()
        while not self.stopping:
            try:
                getattr(self, "do_" + self.rng.choices(*zip(*modes.items()))[0])(self.rng.choice(names))
                self.session.listen(self.rng.random() * 2 * self.options.pace_ms / 1000)
            except Gone:
                self.connect()
        try:
            if self.session:
                self.session.ask("QUIT")
        except Gone:
            pass


def enter(pid):
    """Into the network of that process."""
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

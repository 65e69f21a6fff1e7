# SPDX-License-Identifier: BSD-2-Clause
"""A client process, which locks and unlocks in many ways, acts while it holds locks, and records what it sees.

It obeys the deadlines of the protocol: it believes in a lock until the moment before it sent its last LOCK, EXTEND or CHECK plus valid_ms of the answer. It
acts without a fence only within that time. With a fence it writes after that as well, as a client that was frozen would.
"""
import os
import random
import signal
import time
import traceback

import operations
import process
from history import MS, Log, now
from registers import Registers
from session import Gone, Options, Session

MARGIN = 60 * MS  # an update that only the lock protects begins so long before the deadline at the latest
WAYS_TO_END = ("close", "close", "half", "reset", "quit")


class Worker:
    def __init__(self, options):
        self.options, self.rng = options, random.Random("%s/%s" % (options.seed, options.c))
        self.log = Log(os.path.join(options.folder, "c%02d.log" % options.c))
        self.registers = Registers(options.folder, options.names)
        self.session, self.stopping, self.jobs = None, False, 0

    def stop(self, *_):
        self.stopping = True

    # --- what it does while it holds a lock --------------------------------------------------------------------------

    def act(self, held):
        """Writes what it holds alone, and reads what it shares."""
        for name in held:
            if self.session.fence(name):
                (self.read if self.session.shared(name) else self.write)(name, self.think())

    def write(self, name, think):
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

    def read(self, name, think):
        """Reads both values twice. Nobody may write in between: neither somebody with a fence, nor, before the deadline, somebody without."""
        fence, deadline = self.session.fence(name), self.session.deadline(name)
        first, plain = self.registers.access(name, fence, shared=True), self.registers.count(name)
        time.sleep(think)
        plain_again = self.registers.count(name)
        late = now() > deadline
        self.log.tell("read", name=name, late=late, plain=[plain, plain_again], fenced=[first, self.registers.access(name, fence, shared=True)])

    def think(self):
        return self.rng.choice((0, 0, 0.002, 0.005, 0.01, 0.02))

    # --- the ways to hold --------------------------------------------------------------------------------------------

    def take(self, name, wait=0, **terms):
        """Takes this lock, or this and others, by an operation of the table. Returns the names that it holds."""
        operation = operations.drawn(self.rng, self.options, terms.get("renew", True))
        names = [name, *self.rng.sample([other for other in self.options.names if other != name], operation.names - 1)]
        return operation.take(self.session, self.rng, names, wait, self.act, **terms)

    def free(self, held):
        for name in held:
            self.session.unlock(name)

    def do_try(self, name):
        held = self.take(name)
        self.act(held)
        self.free(held)

    def do_wait(self, name):
        held = self.take(name, wait=self.rng.randrange(50, self.rng.choice((1500, 4000))))
        self.act(held)
        self.free(held)

    def do_short(self, name):
        ttl = self.rng.randrange(150, self.rng.choice((400, self.options.max_lease_ms)))
        held = self.take(name, ttl=ttl, renew=False)
        if held:
            self.act(held)
            self.session.listen(self.rng.random() ** 2 * ttl / 1000)
            self.free(held)

    def do_late(self, name):
        """Asks again when the lease has ended: CHECK and UNLOCK must say so."""
        ttl = self.rng.randrange(150, 400)
        held = self.take(name, wait=200, ttl=ttl, renew=False)
        if held:
            self.act(held)
            self.session.listen(ttl / 1000 * self.rng.uniform(0.9, 1.3))
            for name in held:
                self.session.check(name)
            self.free(held)

    def do_linger(self, name):
        """Holds a lock that nobody renews to its end."""
        ttl = self.options.max_lease_ms
        held = self.take(name, wait=300, ttl=ttl, renew=False)
        if held:
            self.act(held)
            self.session.listen(ttl / 1000 * self.rng.uniform(0.2, 1.1))
            self.act([name for name in held if self.session.check(name)])
            self.free(held)

    def do_hold(self, name):
        held = self.take(name, wait=300)
        end = time.monotonic() + self.options.lease_ms / 1000 * self.rng.uniform(0.3, 2.5)
        while held and time.monotonic() < end and not self.stopping and all([self.session.check(name) for name in held]):
            self.act(held)
            self.session.listen(self.options.lease_ms / 3000)
        self.free(held)

    def do_again(self, name):
        held = self.take(name, wait=100)
        for name in held:
            if self.session.lock(name, shared=self.session.shared(name)) and self.session.ask("UNLOCK", name).fields.get("count", "0") == "0":
                self.session.held.pop(name, None)  # what it asked for has downgraded the hold, and not counted
        self.act(held)
        self.free([name for name in held if self.session.fence(name)])

    def do_extend(self, name):
        held = self.take(name, ttl=300, renew=False)
        for _ in range(self.rng.randrange(1, 5) if held else 0):
            self.session.listen(0.1)
            if any([self.session.ask("EXTEND", name).kind != "OK" for name in held]):
                break
            self.act(held)
        self.free(held)

    def do_drop(self, name):
        """Ends the session while it holds."""
        held = self.take(name, wait=100)
        if held:
            self.act(held)
            self.session.drop(self.rng.choice(WAYS_TO_END))
            raise Gone

    def do_leave(self, name):
        """Ends the session while it waits, or when its turn has come and it has not heard of that."""
        mode = self.rng.choice(("exclusive", "shared"))
        about = {"mode": mode} if mode == "shared" else {}
        self.session.begin("LOCK", name, "LOCK %s wait=3s mode=%s priority=%d" % (name, mode, self.rng.choice((0, 0, 5))), 3000, **about)
        time.sleep(self.rng.choice((0, self.rng.random() * 0.2)))
        self.session.drop(self.rng.choice(("close", "reset")))
        raise Gone

    # --- what an administrator does ----------------------------------------------------------------------------------

    def do_rate(self, name):
        """Uses a rate limit some times. All clients use the same few."""
        if "RATE" not in self.options.verbs:
            return
        of = self.rng.randrange(3)
        for _ in range(self.rng.randrange(1, 8)):
            self.session.rate("faults/rate/%d" % of, 5 + 10 * of, (300, 1000, 4000)[of], self.rng.choice((1, 1, 1, 2, 5)))

    def do_job(self, name):
        """Defers a job or two, and takes one: it is done, fails, or is left to the end of its lease."""
        if "TAKE" not in self.options.verbs:
            return
        queue = "faults/jobs/%d" % self.rng.randrange(3)
        for _ in range(self.rng.randrange(3)):
            self.jobs += 1
            self.session.defer(queue, "c%02d-%d-%d" % (self.options.c, os.getpid(), self.jobs), self.rng.choice((0, 0, 50, 300)))
        job = self.session.take_job(queue, self.rng.choice((0, 100, 400)), self.rng.choice((self.options.lease_ms, 400)))
        for _ in range(self.rng.randrange(4) if job else 0):
            self.session.listen(0.05)
            if not self.session.check_job(queue, job):
                return
        if job and self.rng.random() < 0.9:
            self.session.end_job(self.rng.choice(("DONE", "DONE", "RETRY")), queue, job)

    def do_force(self, name):
        self.session.ask("BREAK", name)

    def do_kill(self, name):
        """Ends a session that holds the lock: any but its own."""
        rows = [row for row in self.session.ask("SHOW", name).rows if row.fields.get("role") == "holder" and "session" in row and row.fields.get(
            "pid") != str(os.getpid())]
        if rows:
            victim = self.rng.choice(rows)
            self.session.ask("KILL", line="KILL session=" + victim["session"], sid=victim.num("session"), victim=victim.fields.get("name"))

    # --- sessions ----------------------------------------------------------------------------------------------------

    def connect(self):
        ticket = self.session.ticket if self.session else None
        while not self.stopping:
            try:
                self.session = Session(self.options, self.log)
                if self.options.grace_ms:
                    self.resume_or_begin(ticket)
                elif self.options.c % 3:
                    self.session.hello()
                if self.rng.random() < 0.5:
                    self.session.ask("SUBSCRIBE")
                return
            except (OSError, Gone):
                time.sleep(self.rng.uniform(0.02, 0.2))

    def resume_or_begin(self, ticket):
        """Resumes a session that was dropped, if the daemon still has it, keeps its locks for a short time or for some leases, and frees them."""
        held = self.session.resume(ticket) if ticket else []
        end = time.monotonic() + self.options.lease_ms / 1000 * self.rng.choice((0, self.rng.uniform(0.3, 3)))
        while True:
            self.act([name for name in held if self.session.check(name)])
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
                name = names[0] if self.rng.random() < 0.15 else self.rng.choice(names)  # for that one many wait
                getattr(self, "do_" + self.rng.choices(*zip(*modes.items()))[0])(name)
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
    except Exception:  # pylint: disable=broad-except
        worker.log.tell("failed", text=traceback.format_exc()[-1500:])
    finally:
        worker.registers.close()

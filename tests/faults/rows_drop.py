# SPDX-License-Identifier: BSD-2-Clause
"""Row 41: sessions that end while they hold locks, or wait for them, by each operation of the table; the locks are free for the next in time.

The histories of all these sessions are judged with those of the clients: so nobody is granted a lock before its last holder cannot believe in it any more.
"""
import random
import socket
import subprocess
import threading
import time

import operations
from history import now
from promises import POLL_S
from rows import row
from session import Gone, enlisted

FIRST, LANES, OF_LANE = 40, 4, 10  # the number of the first session; how many threads drop sessions, and how many sessions each has at a time
SURE = ("close", "half", "reset", "quit", "killed", "UNLOCK", "BREAK, acknowledged")  # the lock is free at once
UNSURE = ("KILL", "BREAK", "heartbeat")  # the lock is free when its validity is over
AT_ONCE = 0.5


def nothing(_):
    """What it does between the steps of an operation."""


def leaves(*sessions):
    for session in sessions:
        try:
            session.drop("quit")
        except Gone:
            pass


class Deaf:
    """The log of a client that has gone: it hears nothing more."""

    @staticmethod
    def tell(*_, **__):
        return now()


class Lane:
    """One thread of the row: it plays one case after the other, each with names of its own."""

    def __init__(self, w, number):
        self.w, self.first, self.turn, self.dropped = w, FIRST + OF_LANE * number, 0, []
        self.rng = random.Random("%s/lane-%d" % (w.seed, number))
        self.late = 1.02 * w.max_lease_ms / 1000 + AT_ONCE  # by when the validity of any lease is over
        self.thread = threading.Thread(target=self.play)

    def play(self):
        w = self.w
        keys = list(operations.known(w.verbs))
        cases = [(self.drops_while_it_holds, key, how) for key in keys for how in SURE + UNSURE]
        cases += [(self.drops_while_it_waits, key, how) for key in keys if operations.TABLE[key].waits for how in ("close", "half")]
        cases += [(self.drops_beside_a_reader, "shared", how) for how in SURE + UNSURE if not how.startswith("BREAK")]
        cases += [(case, "shared", how) for case in (self.drops_before_a_line, self.drops_before_readers) for how in SURE if not how.startswith("BREAK")]
        while w.more():
            self.rng.shuffle(cases)
            for case, key, how in cases:
                if not w.more():
                    break
                self.turn += 1
                try:
                    if case(key, how, self.rng.choice(w.daemons)):
                        self.dropped.append((case.__name__, key, how))
                except Exception as error:  # pylint: disable=broad-except
                    w.fail("the row itself", "%s, %s, %s: %r" % (case.__name__, key, how, error))

    def session(self, daemon, number, tcp=False):
        return enlisted(self.w, daemon, self.first + number, daemon.tcp if tcp else daemon.addr)

    def names(self, count):
        return ["drops/%d/%d/%d" % (self.first, self.turn, i) for i in range(count)]

    def waiters(self, held, only_writers):
        """A session for each name that waits for it, now and then as a reader: [(name, daemon, session, request)]."""
        waiting = []
        for i, name in enumerate(held):
            daemon, mode = self.rng.choice(self.w.daemons), "exclusive" if only_writers else self.rng.choice(("exclusive", "shared"))
            session, about = self.session(daemon, 4 + i), {"mode": mode} if mode == "shared" else {}
            waiting.append((name, daemon, session, session.begin("LOCK", name, "LOCK %s wait=20s mode=%s" % (name, mode), 20000, **about)))
        time.sleep(self.rng.uniform(0.05, 0.2))
        return waiting

    def are_granted(self, what, here, waiting, most):
        """Each must be granted its lock within so many seconds from now; at another daemon, within the pause between its looks at the stores as well."""
        begin = time.monotonic()
        for name, daemon, session, request in waiting:
            try:
                answer = session.finish(request)
                took, late = time.monotonic() - begin, 5 * self.w.worst_gap if self.w.patience or self.w.late_at > begin - 0.1 else 0.2
                bound = most + (0 if daemon is here else POLL_S) + late
                if answer.kind != "OK" or took > bound:
                    self.w.fail("L2", "%s: %s was granted to the next after %.2f s, %.2f s at most: %s" % (what, name, took, bound, answer))
            except Gone:
                self.w.fail("L2", "%s: the session that waits for %s has ended" % (what, name))
            leaves(session)

    # --- the ways to end ---------------------------------------------------------------------------------------------

    def end(self, holder, held, how, here):
        if how == "killed":
            child = subprocess.Popen(["sleep", "60"], pass_fds=[holder.conn.sock.fileno()])
            holder.log.tell("gone", how="closed")
            holder.conn.close()
            child.kill()
            child.wait()
        elif how == "UNLOCK":
            for name in held:
                holder.unlock(name)
        elif how == "KILL":
            self.kill(held[0], here)
        elif how.startswith("BREAK"):
            self.break_all(held)
            self.reads_the_loss(holder, held)
            for name in held if how == "BREAK, acknowledged" else ():
                holder.unlock(name)
        elif how != "heartbeat":  # that one is silent from now on
            holder.drop(how)

    def kill(self, name, here):
        admin = self.session(here, 1)
        number = admin.ask("SHOW", name).rows[0].num("session")
        admin.ask("KILL", line="KILL session=%d" % number, sid=number)
        leaves(admin)

    def break_all(self, held):
        admin = self.session(self.rng.choice(self.w.daemons), 1)
        for name in held:
            answer = admin.ask("BREAK", name)
            if answer.kind != "OK":
                self.w.note("BREAK is answered %s" % answer)
        leaves(admin)

    @staticmethod
    def reads_the_loss(holder, held):
        until = time.monotonic() + 5
        while any(holder.deadline(name) for name in held) and time.monotonic() < until:
            holder.listen(0.02)

    # --- the cases ---------------------------------------------------------------------------------------------------

    def drops_while_it_holds(self, key, how, here):
        operation = operations.TABLE[key]
        holder = self.session(here, 0, how == "reset")
        if how == "heartbeat":
            holder.ask("HELLO", line="HELLO 1 heartbeat=300ms")
        if self.rng.random() < 0.5:
            holder.ask("SUBSCRIBE")
        held = operation.take(holder, self.rng, self.names(operation.names), 500, nothing)
        shared = any(holder.shared(name) for name in held)
        waiting = self.waiters(held, shared)
        if held:
            self.end(holder, held, how, here)
        at_once = how in SURE and not (shared and how.startswith("BREAK"))  # what readers held is kept until the validity is over
        self.are_granted("%s, %s" % (key, how), here, waiting, AT_ONCE if at_once else self.late)
        leaves(holder)
        return bool(held)

    def drops_while_it_waits(self, key, how, here):
        """The places of the session in the queues are withdrawn: who waits behind it does not wait for it."""
        operation = operations.TABLE[key]
        names = self.names(operation.names)
        blocker, leaver = self.session(self.rng.choice(self.w.daemons), 0), self.session(here, 1)
        held = [name for name in names if blocker.lock(name)]

        def wait():
            try:
                operation.take(leaver, random.Random(self.turn), names, 10000, nothing)
            except (Gone, OSError, AssertionError):
                pass
        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(self.rng.uniform(0.05, 0.2))
        waiting = self.waiters(held, True)
        leaver.log.tell("gone", how="closed")
        leaver.log = Deaf
        leaver.conn.sock.shutdown(socket.SHUT_WR if how == "half" else socket.SHUT_RDWR)
        thread.join()
        time.sleep(self.rng.choice((0, 0.05)))
        for name in held:
            blocker.unlock(name)
        self.are_granted("%s, %s while it waits" % (key, how), None, waiting, AT_ONCE)
        leaves(blocker)
        return bool(held)

    def drops_beside_a_reader(self, key, how, here):
        """One of two readers ends, then the other one unlocks. If the first may still believe, a writer waits until that is over."""
        name, = self.names(1)
        reader, holder = self.session(here, 2), self.session(here, 0, how == "reset")
        if how == "heartbeat":
            holder.ask("HELLO", line="HELLO 1 heartbeat=300ms")
        held = holder.lock(name, shared=True) and reader.lock(name, 500, shared=True)
        if held:
            waiting = self.waiters([name], True)
            self.end(holder, [name], how, here)
            time.sleep(0.4 if how == "heartbeat" else 0.05)
            reader.unlock(name)
            self.are_granted("one of two readers, %s" % how, here, waiting, AT_ONCE if how in SURE else self.late)
        leaves(holder, reader)
        return held

    def drops_before_a_line(self, _, how, here):
        """A reader ends. The writer that waits behind it is granted before a reader that came later: the history shows the order of their fences."""
        name, = self.names(1)
        holder, late = self.session(here, 0, how == "reset"), self.session(here, 2)
        held = holder.lock(name, shared=True)
        if held:
            writer = self.session(here, 3)
            first = (name, here, writer, writer.begin("LOCK", name, "LOCK %s wait=20s" % name, 20000))
            time.sleep(0.3)
            second = (name, here, late, late.begin("LOCK", name, "LOCK %s wait=20s mode=shared" % name, 20000, mode="shared"))
            time.sleep(0.05)
            self.end(holder, [name], how, here)
            self.are_granted("a reader before a line, %s" % how, here, [first], AT_ONCE)
            self.are_granted("a writer before a reader", here, [second], AT_ONCE)
        leaves(holder, late)
        return held

    def drops_before_readers(self, _, how, here):
        """A writer ends, and the readers that wait are granted together. They have subscribed: the history shows that each is told who waits after its OK."""
        name, = self.names(1)
        holder, readers, writer = self.session(here, 0, how == "reset"), [self.session(here, 2 + i) for i in range(2)], self.session(here, 4)
        held = holder.lock(name)
        if held:
            for reader in readers:
                reader.ask("SUBSCRIBE")
            waiting = [(name, here, one, one.begin("LOCK", name, "LOCK %s wait=20s mode=shared" % name, 20000, mode="shared")) for one in readers]
            time.sleep(0.05)
            waiting.append((name, here, writer, writer.begin("LOCK", name, "LOCK %s wait=20s" % name, 20000)))
            time.sleep(0.05)
            self.end(holder, [name], how, here)
            self.are_granted("a writer before readers, %s" % how, here, waiting, AT_ONCE)
        leaves(holder)
        return held


@row(41, "session-drops", "sessions end in each way while they hold or await locks by each operation: the next is granted in time, and not too early",
     injects="sessions that end while they hold or wait", short=True, tcp=True, prompt=0.6, gap=1.5, clients=8, lease_ms=2000)
def drops(w):
    lanes = [Lane(w, number) for number in range(LANES)]
    for lane in lanes:
        lane.thread.start()
    while any(lane.thread.is_alive() for lane in lanes):
        w.pause(0.1)
    played = [case for lane in lanes for case in lane.dropped]
    w.note("%d sessions dropped, by %d cases" % (len(played), len(set(played))))
    missing = set(operations.known(w.verbs)) - {key for _, key, _ in played}
    if missing:
        w.fail("blind", "no session dropped that held or awaited by %s" % ", ".join(sorted(missing)))

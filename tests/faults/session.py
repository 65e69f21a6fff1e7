# SPDX-License-Identifier: BSD-2-Clause
"""A session of a client process: it asks, believes what the protocol lets it believe, and records both."""
import collections
import os
import random
import signal

import wire
from history import MS, Log, now

# How often a client does what: see Worker.do_…
MODES = {"try": 5, "wait": 6, "short": 3, "hold": 2, "again": 1, "extend": 1, "late": 1, "linger": 1, "drop": 1, "leave": 0.5, "force": 0.3, "kill": 0.1, "rate": 0.7, "job": 1.2}
LINGERING = dict(MODES, linger=5)


class Options(dict):
    """c: its number. d: its daemon, at addr. seed, folder, names, lease_ms, max_lease_ms. eof_ends: the end of the connection ends all beliefs. modes: how
    often it does what. mix: how often it takes locks by which row of operations.TABLE; without it, as often as the table says. verbs: the requests that the
    daemons know. pause_ms: how long it pauses. stall: the chance to stop itself. network: the pid of a process in its network. aim: the symbolic link that
    leads it to a daemon, …-<daemon>. grace_ms: its sessions outlive their connections. answer_s: how long it awaits an answer beyond the wait. impatient: it
    closes a connection without an answer, and does not complain. restless: a watcher that dials again now and then."""
    DEFAULTS = {"eof_ends": False, "modes": MODES, "mix": None, "verbs": (), "pause_ms": 60, "stall": 0.0, "grace_ms": 0, "answer_s": 30, "network": None,
                "aim": None, "impatient": False, "restless": True, "c": 0}

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


Held = collections.namedtuple("Held", "fence deadline shared")
NOTHING = Held(None, 0, False)
ABOUT_HOLDS = ("LOCK", "LOCKALL", "LOCKANY", "CHECK", "EXTEND", "RESUME")


def terms(wait=0, ttl=None, renew=True, shared=False, priority=0):
    """The fields of a LOCK, and what the history tells of them."""
    words = ["wait=%dms" % wait, "ttl=%dms" % (ttl or 0), "renew=no", "mode=shared", "priority=%d" % priority]
    words = [word for word, said in zip(words, (True, ttl, not (renew or shared), shared, priority)) if said]
    return words, {key: value for key, value in (("mode", shared and "shared"), ("priority", priority)) if value}


class Session:
    def __init__(self, options, log):
        self.options, self.log, self.serial = options, log, 0
        self.conn = Stalling(options.addr)
        self.conn.chance, self.conn.log = options.stall, log
        self.held = {}  # name: Held
        log.tell("open", **({"d": int(os.readlink(options.aim).rpartition("-")[2])} if options.aim else {}))
        self.ticket = None  # for RESUME: the id of the session and its secret

    def take(self, line):
        """Takes in a push."""
        if "name" not in line or "fence" not in line:
            return
        name, fence = line["name"], line.num("fence")
        self.log.tell("push", code=line.code, name=name, fence=fence, reason=line.fields.get("reason"))
        held = self.held.get(name, NOTHING)
        if line.code == "LOST" and held.fence == fence:
            self.held[name] = held._replace(deadline=0)

    def pushes(self, before=None):
        for line in [line for line in self.conn.inbox if line.kind == "!" and (before is None or line.place < before)]:
            self.conn.inbox.remove(line)
            self.take(line)

    def gone(self):
        self.pushes()
        self.log.tell("gone", how="eof")
        self.conn.close()
        raise Gone

    # --- requests ----------------------------------------------------------------------------------------------------

    def begin(self, verb, name=None, line=None, wait=0, **about):
        """Sends a request. Returns what finish() takes."""
        self.serial += 1
        asked = self.log.tell("call", n=self.serial, q=verb, name=name, wait=wait, **about)
        try:
            self.conn.send(line or "%s %s" % (verb, wire.quoted(name) if name else ""))
        except OSError:
            self.gone()
        return self.serial, asked, verb, name, wait

    def ask(self, *args, **about):
        return self.finish(self.begin(*args, **about))

    def finish(self, request):
        serial, asked, verb, name, wait = request
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
        self.log.tell("answer", at=told, n=serial, kind=answer.kind, code=answer.code, text=answer.text, **self.figures(answer))
        if answer.kind == "OK" and verb in ABOUT_HOLDS:
            for line in [answer, *answer.rows]:
                if "fence" in line and "valid_ms" in line:
                    at = Held(line.num("fence"), asked + line.num("valid_ms") * MS, line.fields.get("mode") == "shared")
                    self.held[line.fields.get("name", name)] = at
        elif answer.kind == "ERR" and answer.code in ("LOST", "NOTHELD"):
            self.held.pop(name, None)
        self.pushes()
        return answer

    @staticmethod
    def figures(answer):
        """What the history tells of an answer."""
        fields = {key: int(answer.fields[key]) for key in ("fence", "count", "session", "free_in_ms") if answer.fields.get(key, "").isdigit()}
        if "valid_ms" in answer:
            fields["valid"] = answer.num("valid_ms")
        fields.update({key: answer.fields[key] for key in ("mode", "name", "job") if key in answer})
        if answer.rows and answer.kind == "OK":
            fields["rows"] = [[row["name"], row.num("fence"), row.num("valid_ms"), row.fields.get("mode")] for row in answer.rows
                              if "fence" in row and "valid_ms" in row and "name" in row and "role" not in row]
        return fields

    def listen(self, seconds):
        self.conn.listen(seconds)
        self.pushes()
        if self.conn.ended:
            self.gone()

    # --- sessions ----------------------------------------------------------------------------------------------------

    def hello(self):
        """Tells its label, by which watchers know it, and asks for grace: a session that outlives its connection."""
        grace = " grace=%dms" % self.options.grace_ms if self.options.grace_ms else ""
        answer = self.ask("HELLO", line="HELLO 1 name=c%02d%s" % (self.options.c, grace))
        if answer.kind == "OK" and grace:
            self.ticket = (answer["session"], answer["secret"])

    def resume(self, ticket):
        """Resumes a session. Returns the names that it holds."""
        if self.ask("RESUME", line="RESUME %s %s" % ticket, sid=int(ticket[0])).kind != "OK":
            return []
        self.ticket = ticket
        return list(self.held)

    def close(self):
        self.log.tell("gone", how="closed")
        self.conn.close()

    def drop(self, how):
        """Ends the connection: close, half-close, reset, or by QUIT. From now on the client believes in nothing."""
        if how == "quit":
            self.ask("QUIT")
        self.log.tell("gone", how="closed")
        try:
            if how == "half":
                self.conn.half_close()
                self.conn.eof(1)
        except (OSError, AssertionError):
            pass
        if how == "reset" and not isinstance(self.options.addr, str):
            self.conn.reset()
        self.conn.close()

    # --- locks -------------------------------------------------------------------------------------------------------

    def lock(self, name, wait=0, **fields):
        """Locks a name, or shares what it holds alone. From the moment when it asks to share a hold it trusts in no more."""
        words, about = terms(wait, **fields)
        if self.held.get(name, NOTHING).fence and fields.get("shared"):
            self.held[name] = self.held[name]._replace(shared=True)
        about.update(ttl=fields.get("ttl") or self.options.lease_ms, renew=fields.get("renew", True))
        answer = self.ask("LOCK", name, "LOCK %s %s" % (wire.quoted(name), " ".join(words)), wait, **about)
        if answer.kind == "OK" and wait:
            self.check(name)
        return answer.kind == "OK"

    def lock_several(self, verb, names, wait=0, **fields):
        """LOCKALL or LOCKANY. Returns the names that it got."""
        words, about = terms(wait, **fields)
        about.update(ttl=fields.get("ttl") or self.options.lease_ms, renew=fields.get("renew", True), names=list(names))
        answer = self.ask(verb, None, " ".join([verb, *map(wire.quoted, names), *words]), wait, **about)
        got = [] if answer.kind != "OK" else list(names) if verb == "LOCKALL" else [answer["name"]]
        for name in got if wait else ():
            self.check(name)
        return got

    def rate(self, name, limit, per_ms, cost):
        """Uses a rate limit."""
        line = "RATE %s limit=%d per=%dms cost=%d" % (wire.quoted(name), limit, per_ms, cost)
        return self.ask("RATE", name, line, limit=limit, per=per_ms, cost=cost)

    # --- jobs --------------------------------------------------------------------------------------------------------

    def defer(self, queue, job, delay_ms):
        """The daemon repeats it for a second."""
        self.ask("DEFER", line="DEFER %s work id=%s delay=%dms" % (queue, job, delay_ms), wait=1000, job=job)

    def take_job(self, queue, wait, ttl_ms):
        """Returns the id of the job that it has, or None. The validity counts from a CHECK if it has waited."""
        answer = self.ask("TAKE", line="TAKE %s wait=%dms ttl=%dms" % (queue, wait, ttl_ms), wait=wait + 1000)
        return answer["job"] if answer.kind == "OK" and self.check_job(queue, answer["job"]) else None

    def check_job(self, queue, job):
        return self.ask("CHECKJOB", line="CHECK %s job=%s" % (queue, job), job=job).kind == "OK"

    def end_job(self, verb, queue, job):
        """The daemon repeats it as long as the lease lasts."""
        self.ask(verb, line="%s %s queue=%s" % (verb, job, queue), wait=self.options.lease_ms, job=job)

    def check(self, name):
        return self.ask("CHECK", name).kind == "OK"

    def unlock(self, name):
        self.ask("UNLOCK", name)
        if name in self.held:
            del self.held[name]

    def deadline(self, name):
        return self.held.get(name, NOTHING).deadline

    def fence(self, name):
        return self.held.get(name, NOTHING).fence

    def shared(self, name):
        return self.held.get(name, NOTHING).shared


def enlisted(w, daemon, c, addr=None):
    """A session of a row's own, as client c of a world: its history is judged with those of the clients."""
    if c not in w.logs:
        w.logs[c] = Log(os.path.join(w.folder, "c%02d.log" % c))
    log = w.logs[c]
    log.tell("start", c=c, d=daemon.index, eof_ends=False)
    return Session(Options(c=c, addr=addr or daemon.addr, lease_ms=w.lease_ms), log)

# SPDX-License-Identifier: BSD-2-Clause
"""Clients that ask for grace: what they remember of their session, and how they come back to it."""
import time

from process import WAIT
from wire import Client


class Ticket:
    """The session and the secret that RESUME asks for."""

    def __init__(self, hello):
        self.session, self.secret = hello["session"], hello["secret"]

    def __str__(self):
        return "RESUME %s %s" % (self.session, self.secret)


def with_grace(client, grace="30s", more=""):
    return Ticket(client.ok("HELLO 1 grace=%s %s" % (grace, more)))


def resume(client, ticket, timeout=None):
    """Resumes a session. Returns {name: row} of what it still holds."""
    answer = client.ok(str(ticket), timeout)
    if answer["session"] != ticket.session or answer.num("n") != len(answer.rows):
        raise AssertionError("not the session that was asked for: %s %r" % (answer, answer.rows))
    return {row["name"]: row for row in answer.rows}


def resume_fences(client, ticket):
    """Resumes a session. Returns {name: fence} of what it still holds."""
    return {name: row.num("fence") for name, row in resume(client, ticket).items()}


class Survivor:
    """A client that goes on when its daemon ends: it dials until it succeeds, resumes its session if it can, and begins a new one otherwise."""

    def __init__(self, addr, grace="20s"):
        self.addr, self.grace = addr, grace
        self.client, self.ticket, self.held = None, None, {}
        self.resumed, self.refused = 0, 0
        self.dial()

    def dial(self, timeout=WAIT * 3):
        deadline = time.monotonic() + timeout
        while True:
            try:
                self.client = Client(self.addr)
                self.greet()
                return
            except (OSError, AssertionError) as fault:
                if time.monotonic() > deadline:
                    raise AssertionError("no daemon answers: %s" % fault) from fault
                self.hang_up()
                time.sleep(0.005)

    def greet(self):
        self.held = {}
        if self.ticket:
            answer = self.client.ask(str(self.ticket))
            if answer.kind == "OK":
                self.held = {row["name"]: row.num("fence") for row in answer.rows}
                self.resumed += 1
                return
            if answer.code != "NOTFOUND":
                raise AssertionError("RESUME: %s" % answer)
            self.refused += 1
            self.ticket = None
        self.ticket = with_grace(self.client, self.grace)

    def hang_up(self):
        if self.client:
            self.client.close()

    def ask(self, request, timeout=60):
        """The answer. None: the connection broke, and self.held says what the session holds after it was resumed or begun anew."""
        try:
            return self.client.ask(request, timeout)
        except (OSError, AssertionError):
            if not self.client.ended and not broken(self.client):
                raise
        self.hang_up()
        self.dial()
        return None


def broken(client):
    try:
        while client.fill(0):  # lines may stand before the end
            pass
    except OSError:
        return True
    return client.ended

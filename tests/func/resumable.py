# SPDX-License-Identifier: BSD-2-Clause
"""A client that asked for grace: what it remembers of its session, and how it comes back."""
import time

import wire
from wire import Client, quoted


class Ticket:
    """What RESUME asks for, and where."""

    def __init__(self, hello):
        self.session, self.secret = hello["session"], hello["secret"]

    def __str__(self):
        return "RESUME %s %s" % (self.session, self.secret)


def with_grace(client, grace="30s", more=""):
    return Ticket(client.ok("HELLO 1 grace=%s %s" % (grace, more)))


def resume(client, ticket, timeout=None):
    """{name: row} of what the session still holds."""
    answer = client.ok(str(ticket), timeout)
    if answer["session"] != ticket.session or answer.num("n") != len(answer.rows):
        raise AssertionError("not what was asked for: %s %r" % (answer, answer.rows))
    return {row["name"]: row for row in answer.rows}


class Survivor:
    """Goes on whatever happens to the daemon: it dials, resumes if it can, begins anew if it must."""

    def __init__(self, addr, grace="20s"):
        self.addr, self.grace = addr, grace
        self.client, self.ticket, self.held = None, None, {}
        self.resumed, self.refused = 0, 0
        self.dial()

    def dial(self, timeout=wire.WAIT * 3):
        deadline = time.monotonic() + timeout
        while True:
            try:
                self.client = Client(self.addr)
                self.greet()
                return
            except (OSError, AssertionError) as fault:
                if time.monotonic() > deadline:
                    raise AssertionError("no daemon there: %s" % fault)
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
        """The answer; None: the connection broke, the session is resumed or new, and self.held says what it holds."""
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
        client.fill(0)
    except OSError:
        return True
    return client.ended


def name_of(number):
    return quoted("many/%d" % number)

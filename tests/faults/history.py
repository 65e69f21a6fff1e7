# SPDX-License-Identifier: BSD-2-Clause
"""Histories: what each client and the nemesis (the part that injects faults) have seen. One JSON object a line; times are ns of CLOCK_BOOTTIME.

Events of a client (file c<number>.log, in the order in which the client saw them):
  start   c, d (its daemon), eof_ends (whether the end of its connection ends what it may believe)
  open    d                     a new connection; d: the daemon from now on, where that may change
  call    n, q, name, wait, ttl, renew    a request; t is the moment before it was sent. mode: of a shared LOCK; priority; names: of LOCKALL and LOCKANY;
                                prefix: of WATCH; sid: the session that RESUME or KILL names
  answer  n, kind, code, fence, valid, count, text   its answer; t is the moment after the last byte; valid in ms. mode, name, session, free_in_ms: where the
                                answer has them; rows of RESUME and LOCKALL: [name, fence, valid, mode]
  push    code, name, fence     a push was read; reason: of a loss
  event   kind, name, session, label, fence, shared   ! EVENT was read; label: that of the session, if it has told one
  gone    how                   the session has ended: closed (by the client; t is the moment before) or eof
  stalled t, to                 the client stopped itself
  try, done   name, late        an update of the counter that only the lock protects; late: the deadline passed during the update
  read    name, late, plain, fenced   both values of the counter, and of the register, that a reader has read; late: the deadline passed before the second
Events of the nemesis (nemesis.log):
  window  to                    the time of the faults, from t to `to`
  fault, heal  what             a fault begins, a fault ends
  strangers names               clients without a history lock these names, too
  far                           links are so slow that a round may take as long as a request waits
  kill    c                     client c is about to be killed
  stop    what, to              a client or a daemon (c3, d0) or the whole machine (host) stood still; surely so between still and go, where these are given
"""
import json
import os
import time


MS = 1_000_000


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Log:
    """Appends one line by one write(2), so that a kill loses no line."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def tell(self, event, at=None, **fields):
        row = {"e": event, "t": now() if at is None else at}
        row.update(fields)
        os.write(self.fd, (json.dumps(row, separators=(",", ":")) + "\n").encode())
        return row["t"]

    def close(self):
        os.close(self.fd)


def load(path):
    """The rows of one file, without a last line that a kill cut short."""
    rows = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.endswith("\n"):
                rows.append(json.loads(line))
    return rows


class History:
    """The rows of each client, and those of the nemesis."""

    def __init__(self, clients=None, nemesis=None):
        self.clients, self.nemesis = clients or {}, nemesis or []

    @classmethod
    def of(cls, folder):
        clients = {int(name[1:-4]): load(os.path.join(folder, name)) for name in sorted(os.listdir(folder)) if name[0] == "c" and name.endswith(".log")}
        path = os.path.join(folder, "nemesis.log")
        return cls(clients, load(path) if os.path.exists(path) else [])

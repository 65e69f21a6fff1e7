# SPDX-License-Identifier: BSD-2-Clause
"""Histories: what each client and the nemesis saw, one JSON object a line, times in nanoseconds of CLOCK_BOOTTIME, one clock for all of a host.

Of a client (file c<number>.log, in the order in which it saw things):
  start   c, d (its daemon), eof_ends (whether the end of its connection also ends what it may believe)
  open    d                     a new connection; d: its daemon from now on, where that may change
  call    n, q, name, wait, ttl, renew    before the request is sent; t is the moment before
  answer  n, kind, code, fence, valid, count, text   after its last byte was read; valid in ms; of RESUME rows: [name, fence, valid]
  push    code, name, fence     a push was read
  gone    how                   the session is over: closed (by the client; t is the moment before) or eof
  stalled t, to                 the client stood still by its own doing
  try, done   name, late        an update of the counter that only the lock protects; late: its deadline passed meanwhile
Of the nemesis (nemesis.log):
  window  to                    from t on faults, until `to`
  fault, heal  what             begin and end of a fault
  kill    c                     before client c was killed
  stop    what, to              client or daemon (c3, d0), or all of the machine (host) stood still; for certain between still and go, where they are told
"""
import json
import os
import time


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Log:
    """Appends; each line is one write(2), so that a kill loses none that was told."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def tell(self, event, at=None, **fields):
        row = {"e": event, "t": now() if at is None else at}
        row.update(fields)
        os.write(self.fd, (json.dumps(row, separators=(",", ":")) + "\n").encode())
        return row["t"]


def load(path):
    """The rows of one file; a last line that a kill cut short is left out."""
    rows = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.endswith("\n"):
                rows.append(json.loads(line))
    return rows


class History:
    """The rows of all clients, by client, and those of the nemesis."""

    def __init__(self, clients=None, nemesis=None):
        self.clients, self.nemesis = clients or {}, nemesis or []

    @classmethod
    def of(cls, folder):
        clients = {int(name[1:-4]): load(os.path.join(folder, name)) for name in sorted(os.listdir(folder)) if name[0] == "c" and name.endswith(".log")}
        path = os.path.join(folder, "nemesis.log")
        return cls(clients, load(path) if os.path.exists(path) else [])

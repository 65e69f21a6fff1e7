# SPDX-License-Identifier: BSD-2-Clause
"""
Locks of redlockd, for threads; redlockd.aio has the same for asyncio.

    import redlockd

    client = redlockd.connect()
    with client.lock("orders/42", wait=5) as lock:
        write(fence=lock.fence)

A lock may be relied on for `remaining` seconds; a thread of the client keeps that up, and sets `lost` as soon as it cannot. The names of the exceptions say
what happened; all of them are RedlockError.
"""
from ._base import Answer, Outcome, Rate
from ._errors import Busy, Deadlock, Denied, Disconnected, Draining, LockLost, LockTimeout, NoQuorum, RedlockError
from ._place import TLS
from ._threads import Client, Job, Lock, Term, connect

__version__ = "0.2.0"
__all__ = ["TLS", "Answer", "Busy", "Client", "Deadlock", "Denied", "Disconnected", "Draining", "Job", "Lock", "LockLost", "LockTimeout", "NoQuorum",
           "Outcome", "Rate", "RedlockError", "Term", "connect"]

# SPDX-License-Identifier: BSD-2-Clause
"""A lock that one client holds and two others wait for, while something happens to the servers."""
import time

from harness import FuncTest
from lease import Lease


class Contended(FuncTest):
    """a and b are two daemons on the same servers, which a test sets."""
    a, b = None, None

    def contend(self):
        """A client of a holds the lock, and a client of each daemon waits for it."""
        self.lease = Lease(self.client(self.a), "precious")
        self.waiters = [self.client(d) for d in (self.a, self.b)]
        for w in self.waiters:
            w.begin("LOCK precious wait=60s")

    def is_told(self):
        return any(line.code == "LOST" for line in self.lease.client.inbox)

    def no_second_holder(self, fault, lost_at_all=True, patience=12):
        """Plays the fault while the holder goes on asking. Each waiter is granted the lock once, when the holder believes in it no more, with a larger fence.
        lost_at_all=False: the fault costs no lock, and the holder unlocks after three seconds. Returns the seconds to the first grant."""
        fault()
        begin, granted, lost = time.monotonic(), [], None
        while len(granted) < len(self.waiters) and time.monotonic() < begin + patience:
            answer = self.lease.check()
            for w in self.waiters:
                w.fill(0.001)
                for line in [line for line in w.inbox if line.kind in ("OK", "ERR", "TIMEOUT", "BUSY")]:
                    w.inbox.remove(line)
                    self.assertEqual(line.kind, "OK", line)
                    self.lease.client.fill(0)  # takes in what the daemon pushed before this line
                    self.assertTrue(lost or self.is_told(), "granted to another before LOST is pushed to the holder")
                    self.assertGreater(line.at, self.lease.until - 0.005, "granted while the holder could still believe in its lock")
                    granted.append(line)
                    w.ok("UNLOCK precious sync=yes")
            lost = lost or self.is_told()
            if not lost_at_all and not lost and time.monotonic() > begin + 3:
                self.assertEqual(answer.kind, "OK")
                lost, lost_at_all = True, True
                self.lease.until = 0
                self.lease.client.ok("UNLOCK precious")
        fences = [self.lease.fence] + [line.num("fence") for line in granted]
        self.assertEqual(len(granted), 2, "a waiter is never served")
        self.assertEqual(fences, sorted(set(fences)), "fences do not grow")
        return min(line.at for line in granted) - begin

# SPDX-License-Identifier: BSD-2-Clause
"""delay=, the lock-delay, on three servers: after a holder dies or loses its lease, every daemon refuses the name for that long."""
import time

from lease import believed
from process import LATE
from quorum import QuorumTest, next_served

DELAY = 0.8  # seconds


class LockDelay(QuorumTest):
    COST, CONFIG = 8, {"lease": "1s", "max_lease": "1s", "max_delay": "3s"}

    def held(self, name, more=""):
        """A client of a holds the name, and a client of each daemon waits for it. Returns the holder, the waiters, the fence, and until when it is believed."""
        holder = self.client(self.a)
        fence = holder.ok("LOCK %s delay=%dms %s" % (name, DELAY * 1000, more)).num("fence")
        waiters = self.clients(2)
        for waiter in waiters:
            waiter.begin("LOCK %s wait=30s" % name)
        return holder, waiters, fence, believed(holder, name)

    def served(self, waiters, fence, earliest, latest):
        """Both waiters are served, one after the other, the first of them within these bounds. Returns its moment."""
        waiting, first = list(waiters), None
        while waiting:
            served = next_served(self, waiting)
            waiting.remove(served)
            answer = served.reply()
            self.assertEqual(answer.kind, "OK")
            self.assertGreater(answer.num("fence"), fence)
            fence, first = answer.num("fence"), first or answer.at
            served.ok("UNLOCK " + answer["name"])
        self.assertGreaterEqual(first, earliest - 0.005, "granted before the end of the lock-delay")
        self.assertLessEqual(first, latest)
        return first

    def test_after_a_session_is_dropped(self):
        """During the lock-delay one store forgets everything."""
        holder, waiters, fence, _ = self.held("dropped")
        dropped = time.monotonic()
        holder.close()
        self.servers[0].restart()
        for daemon in self.daemons:
            self.client(daemon).busy("LOCK dropped")
        first = self.served(waiters, fence, dropped + DELAY, dropped + DELAY + LATE)
        self.figure("served %.0f ms after the end of a session whose lock has a lock-delay of %.0f ms" % ((first - dropped) * 1000, DELAY * 1000))

    def test_after_a_lease_ends_without_renewal(self):
        """The lock-delay begins at the end of the lease, not when LOST is pushed."""
        holder, waiters, fence, end = self.held("lost", "renew=no")
        lost = holder.push("LOST", "lost")
        self.assertLessEqual(lost.at, end + LATE)
        self.served(waiters, fence, end + DELAY, end + DELAY + LATE)
        holder.err("UNLOCK lost", "LOST")

    def test_after_the_quorum_is_gone(self):
        holder, waiters, fence, _ = self.held("cut")
        for server in self.servers[1:]:
            server.freeze()
        checks = [(time.monotonic(), holder.ask("CHECK cut"))]
        while checks[-1][1].kind == "OK":
            holder.listen(0.005)
            checks.append((time.monotonic(), holder.ask("CHECK cut")))
        end = max(at + answer.num("valid_ms") / 1000 for at, answer in checks[:-1])
        for server in self.servers[1:]:
            server.thaw()
        self.served(waiters, fence, end + DELAY, end + DELAY + LATE)

    def test_after_the_daemon_is_killed(self):
        holder, waiters, fence, end = self.held("killed")
        self.a.kill()
        holder.eof()
        self.served(waiters[1:], fence, end + DELAY, end + DELAY + LATE)

    def test_not_after_UNLOCK_or_QUIT(self):
        """A holder that frees its lock itself causes no lock-delay."""
        for last in ("UNLOCK mine", "QUIT"):
            holder, waiters, fence, _ = self.held("mine")
            ended = time.monotonic()
            holder.ok(last)
            self.served(waiters, fence, ended, ended + DELAY - 0.2)

# SPDX-License-Identifier: BSD-2-Clause
"""delay=, the lock-delay, on three servers: whoever dies or loses its lease keeps the name refused for that long, to the clients of every daemon."""
import time

from process import until
from quorum import QuorumTest
from test_across import POLL_MOST

DELAY, LATE = 0.8, POLL_MOST + 1.0  # seconds


class LockDelay(QuorumTest):
    COST, CONFIG = 8, {"lease": "1s", "max_lease": "1s", "max_delay": "3s"}

    def held(self, name, more=""):
        """By a client of a, that has just asked how long it may believe it; and who waits for it, at either daemon."""
        holder = self.client(self.a)
        fence = holder.ok("LOCK %s delay=%dms %s" % (name, DELAY * 1000, more)).num("fence")
        waiters = self.on_both(2)
        for waiter in waiters:
            waiter.send("LOCK %s wait=30s" % name)
            waiter.barrier()
        asked = time.monotonic()
        return holder, waiters, fence, asked + holder.ok("CHECK " + name).num("valid_ms") / 1000

    def served(self, waiters, fence, earliest, latest):
        """Both, one after the other, the first of them within these bounds. Returns its moment."""
        waiting, first = list(waiters), None
        while waiting:
            until(lambda: [waiter.fill(0.002) for waiter in waiting] and any(waiter.inbox for waiter in waiting), "somebody is served")
            came = [waiter for waiter in waiting if waiter.inbox]
            self.assertEqual(len(came), 1, "two at once")
            waiting.remove(came[0])
            answer = came[0].reply()
            self.assertEqual(answer.kind, "OK")
            self.assertGreater(answer.num("fence"), fence)
            fence, first = answer.num("fence"), first or answer.at
            came[0].ok("UNLOCK " + answer["name"])
        self.assertGreaterEqual(first, earliest - 0.005, "the lock-delay was not over")
        self.assertLessEqual(first, latest)
        return first

    def test_after_a_dropped_session(self):
        """And while it lasts a store forgets all that it had."""
        holder, waiters, fence, _ = self.held("dropped")
        dropped = time.monotonic()
        holder.close()
        self.servers[0].restart()
        for daemon in self.daemons:
            self.client(daemon).busy("LOCK dropped")
        first = self.served(waiters, fence, dropped + DELAY, dropped + DELAY + LATE)
        self.figure("served %.0f ms after the end of a session with a lock-delay of %.0f ms" % ((first - dropped) * 1000, DELAY * 1000))

    def test_after_a_loss(self):
        """Of a lease that nobody renewed: from its end, not from the word of it."""
        holder, waiters, fence, believed = self.held("lost", "renew=no")
        lost = holder.push("LOST", "lost")
        self.assertLessEqual(lost.at, believed + 0.2)
        self.served(waiters, fence, believed + DELAY, believed + DELAY + LATE)
        holder.err("UNLOCK lost", "LOST")

    def test_after_a_quorum_was_gone(self):
        holder, waiters, fence, _ = self.held("cut")
        for server in self.servers[1:]:
            server.freeze()
        checks = [(time.monotonic(), holder.ask("CHECK cut"))]
        while checks[-1][1].kind == "OK":
            holder.listen(0.005)
            checks.append((time.monotonic(), holder.ask("CHECK cut")))
        believed = max(at + answer.num("valid_ms") / 1000 for at, answer in checks[:-1])
        for server in self.servers[1:]:
            server.thaw()
        self.served(waiters, fence, believed + DELAY, believed + DELAY + LATE)

    def test_after_the_death_of_the_daemon(self):
        holder, waiters, fence, believed = self.held("widowed")
        self.a.kill()
        holder.eof()
        self.served(waiters[1:], fence, believed + DELAY, believed + DELAY + LATE)

    def test_an_end_by_will_is_none(self):
        """UNLOCK and QUIT free at once, whatever the lock-delay."""
        for last in ("UNLOCK mine", "QUIT"):
            holder, waiters, fence, _ = self.held("mine")
            ended = time.monotonic()
            holder.ok(last)
            self.served(waiters, fence, ended, ended + DELAY - 0.2)


if __name__ == "__main__":
    from harness import main
    main()

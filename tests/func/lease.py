# SPDX-License-Identifier: BSD-2-Clause
"""What the holder of a lock may believe, and that the daemon tells the holder of a loss before that belief ends."""
import time

from harness import Noise


def believed(client, *names):
    """The moment up to which the holder of these names may believe in all of them, by the answers that it gets now."""
    asked = time.monotonic()
    return asked + min(client.ok("CHECK " + name).num("valid_ms") for name in names) / 1000


class Lease:
    """A held lock, and until when its holder may believe in it by the last answer of the daemon."""

    def __init__(self, client, name, terms="wait=5s"):
        self.client, self.name, self.noise = client, name, Noise()
        self.until = 0.0  # the moment before the question, plus valid_ms of the answer
        self.fence = client.ok("LOCK %s %s" % (name, terms)).num("fence")

    def check(self):
        before = time.monotonic()
        answer = self.client.ask("CHECK " + self.name)
        if answer.kind == "OK":
            self.until = max(self.until, before + answer.num("valid_ms") / 1000)
        return answer

    def lost_in_time(self, test, limit=10.0):
        """Asks every few milliseconds until LOST comes, and fails when the last answer promised a later end. Returns the LOST."""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            self.noise.look()
            answer = self.check()
            lost = [line for line in self.client.inbox if line.kind == "!" and line.code == "LOST"]
            if lost:
                if lost[0].place > answer.place:
                    answer = self.check()  # LOST came after the answer, so the next answer must know of it
                test.assertEqual(answer.code, "LOST", "no OK after LOST")
                test.assertEqual((lost[0]["name"], lost[0].num("fence")), (self.name, self.fence))
                test.assertLessEqual(lost[0].at, self.until + self.noise.allowance(), "LOST came after the validity had ended")
                return lost[0]
            test.assertEqual(answer.kind, "OK", "CHECK says that the lock is lost before LOST is pushed: %s" % answer)
            self.client.listen(0.002)
        raise AssertionError("no LOST in %g s" % limit)

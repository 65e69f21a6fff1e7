# SPDX-License-Identifier: BSD-2-Clause
"""One of three servers hangs, and a command on it may take five seconds: no round that the other two can decide waits for it."""
import time

from harness import Noise, median
from process import merged
from quorum import Load, QuorumTest, SHORT


class OneHangs(QuorumTest):
    COST, CONFIG = 5, merged(SHORT, {"redis": {"timeout": "5s"}})
    GAP = 1.0  # seconds: far less than a command may take

    def taken(self, client, count):
        """How long LOCKs take, each of a name that is asked for the first time."""
        seconds, noise = [], Noise()
        for _ in range(count):
            noise.last = begin = time.monotonic()
            granted = client.ok("LOCK " + self.name())
            seconds.append(granted.at - begin)
            noise.look(seconds[-1])
        return seconds, noise

    def test_from_the_first_round_on(self):
        client = self.client(self.a)
        before, _ = self.taken(client, 30)
        for server in self.servers:
            server.freeze()
            client.send("LOCK first-%d" % server.process.pid)
            begin, first = time.monotonic(), client.reply()
            self.assertEqual(first.kind, "OK")
            self.assertLess(first.at - begin, self.GAP)
            during, noise = self.taken(client, 30)
            self.assertLess(max(during), self.GAP)
            self.assertLessEqual(median(during), 3 * median(before) + noise.allowance())
            server.thaw()
            client.ok("UNLOCK first-%d sync=yes" % server.process.pid)
        self.figure("LOCK: median %.2f ms, with one that hangs %.2f ms, the first one then %.2f ms" % (
            median(before) * 1000, median(during) * 1000, (first.at - begin) * 1000))

    def test_nor_when_two_daemons_contend_for_a_name(self):
        """Each hangs in turn, so also the one that is asked first when votes were split."""
        load = Load(self, 3.9, workers=4)
        watcher = self.client(self.a)
        for server in self.servers:
            load.watch(watcher, 0.15)
            server.freeze()
            load.watch(watcher, 1.1)
            server.thaw()
        load.finish(least=50, gap=self.GAP / 2)

    def test_nor_when_two_keep_the_name_for_somebody_else(self):
        """Whose daemon is stopped. Both say so, and the third would not change it."""
        holder, head = self.on_both(2)
        holder.ok("LOCK kept")
        head.send("LOCK kept wait=20s")
        self.in_line("kept", 1)
        self.b.freeze()
        self.servers[0].freeze()
        holder.ok("UNLOCK kept")
        begin, answer = time.monotonic(), holder.busy("LOCK kept")
        self.assertLess(answer.at - begin, self.GAP)
        self.b.thaw()
        self.assertEqual(head.reply().kind, "OK")


if __name__ == "__main__":
    from harness import main
    main()

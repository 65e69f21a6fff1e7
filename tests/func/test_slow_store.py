# SPDX-License-Identifier: BSD-2-Clause
"""Servers are stopped, and the timeout is ten seconds: a round that the other servers can decide does not wait, and any other waits for the timeout."""
import time

from harness import median
from ledger import Load
from process import LATE, merged
from quorum import LEASE_2S, QuorumTest


class OneIsStopped(QuorumTest):
    COST, CONFIG = 5, merged(LEASE_2S, {"redis": {"timeout": "10s"}})
    GAP = LATE  # below the timeout

    def taken(self, client, count):
        """The seconds that LOCKs take, each of another name."""
        seconds = []
        for _ in range(count):
            begin = time.monotonic()
            seconds.append(client.ok("LOCK " + self.name()).at - begin)
        return seconds

    def test_no_round_waits_for_it_from_the_first_on(self):
        client = self.client(self.a)
        before = self.taken(client, 30)
        for server in self.servers:
            server.freeze()
            client.send("LOCK first-%d" % server.process.pid)
            begin, first = time.monotonic(), client.reply()
            self.assertEqual(first.kind, "OK")
            self.assertLess(first.at - begin, self.GAP)
            during = self.taken(client, 30)
            self.assertLess(max(during), self.GAP)
            server.thaw()
            client.ok("UNLOCK first-%d sync=yes" % server.process.pid)
        self.figure("LOCK: median %.2f ms, with one server stopped %.2f ms, the first of these %.2f ms" % (
            median(before) * 1000, median(during) * 1000, (first.at - begin) * 1000))

    def test_no_round_waits_for_it_when_two_daemons_contend(self):
        """Each server is stopped in turn, among them the one that a daemon asks first after a split vote."""
        load = Load(self, 3.9, workers=4)
        watcher = self.client(self.a)
        for server in self.servers:
            load.watch(watcher, 0.15)
            server.freeze()
            load.watch(watcher, 1.1)
            server.thaw()
        load.finish(watcher, least=50, gap=self.GAP)

    def test_no_round_waits_for_it_when_two_reserve_the_name_for_another_daemon(self):
        """The other daemon is stopped. Two servers refuse because of its ticket, whatever the third one says."""
        holder, head = self.clients(2)
        holder.ok("LOCK kept")
        head.send("LOCK kept wait=20s")
        self.queued("kept", 1)
        self.b.freeze()
        self.servers[0].freeze()
        holder.ok("UNLOCK kept")
        begin, answer = time.monotonic(), holder.busy("LOCK kept")
        self.assertLess(answer.at - begin, self.GAP)
        self.b.thaw()
        self.assertEqual(head.reply().kind, "OK")


class AllHang(QuorumTest):
    """All servers hang, for less than the timeout."""
    COST, CONFIG = 8, merged(LEASE_2S, {"lease": "20s", "max_lease": "20s", "redis": {"timeout": "5s"}})
    HANG = 2.7  # seconds: with a short timeout a connection would be given up

    def test_a_command_has_the_whole_timeout(self):
        client = self.client(self.a)
        client.ok("LOCK held")
        for server in self.servers:
            server.freeze()
        client.send("LOCK slow")
        time.sleep(self.HANG)
        client.ok("@c CHECK held")
        for server in self.servers:
            server.thaw()
        self.assertEqual(client.reply().kind, "OK")
        self.assertNotIn("no answer for", self.a.log())

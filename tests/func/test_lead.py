# SPDX-License-Identifier: BSD-2-Clause
"""redlock lead: one leader at a time, another one when it is gone, and the first one campaigns again."""
import json
import os
import signal

from harness import FuncTest, on_each_store
from process import until
from test_cli import Tool

# One line at the beginning of each term. The process of the term before must be gone; a zombie is.
TERM = """last=$(cat %s 2>/dev/null); grep -q "^State:.[^ZX]" "/proc/$last/status" 2>/dev/null && echo "two leaders"
echo $$ >%s; trap "exit 5" TERM; echo "$REDLOCK_FENCE"; while :; do sleep 0.02; done"""


class Terms(FuncTest):
    """One Redis and two daemons."""
    COST = 12
    CONFIG = {"lease": "5s", "max_lease": "8s"}

    def setUp(self):
        super().setUp()
        self.server = self.redis()
        self.d, self.other = [self.redis_daemon(self.server, self.CONFIG) for _ in range(2)]
        self.lock, pidfile = self.name(), os.path.join(self.folder(), "pid")
        self.script = TERM % (pidfile, pidfile)

    def lead(self, daemon):
        return self.start_redlock(daemon, "lead", self.lock, "--", "sh", "-c", self.script)

    def waits(self, daemon):
        with daemon.client() as client:
            return "waiter" in client.roles(self.lock)

    def rows(self, daemon):
        with daemon.client() as client:
            return client.ok("SHOW " + self.lock).rows

    def term(self, process):
        """The fence of a term that begins."""
        return int(process.stdout.readline())

    def two(self):
        first = self.lead(self.d)
        fence = self.term(first)
        second = self.lead(self.other)
        until(lambda: self.waits(self.other), "the second one campaigns")
        return first, second, fence

    def test_a_leader_whose_daemon_stands_still_is_followed_and_campaigns_again(self):
        first, second, fence = self.two()
        self.d.freeze()
        fences = [fence, self.term(second)]
        self.d.thaw()
        until(lambda: self.waits(self.d), "the first one campaigns again")
        second.send_signal(signal.SIGTERM)
        self.assertEqual(second.wait(10), 5)
        fences.append(self.term(first))
        self.assertEqual(fences, sorted(set(fences)))

    def test_a_leader_whose_daemon_was_killed_campaigns_again_when_it_is_back(self):
        first, second, fence = self.two()
        self.d.kill()
        fences = [fence, self.term(second)]
        self.d.start()
        until(lambda: self.waits(self.d), "the first one campaigns again", 20)
        second.send_signal(signal.SIGTERM)
        fences.append(self.term(first))
        self.assertEqual(fences, sorted(set(fences)))

    def test_the_host_of_a_follower_shows_where_the_leader_is_and_for_how_long_it_was_seen(self):
        self.two()
        with self.other.client() as client:
            def seen():
                leader, following = client.ok("SHOW " + self.lock).rows
                self.assertEqual((leader["role"], following["role"], following["pos"]), ("holder", "waiter", "1"))
                return leader.num("seen_ms")
            until(lambda: len(client.ok("SHOW " + self.lock).rows) == 2, "the host of the follower shows both")
            before = seen()
            client.listen(0.5)
            self.assertGreaterEqual(seen() - before, 499)
        self.assertIn("SEEN", self.call_redlock(self.other, "show", self.lock)[1])

    def test_who_leads_since_when_is_told_at_both_hosts_also_after_the_daemon_was_killed(self):
        first = self.lead(self.d)
        self.term(first)
        with self.other.client() as client:
            def held():
                return client.ok("SHOW " + self.lock).rows[0].num("held_ms")
            client.listen(0.5)
            before = held()
            self.assertGreaterEqual(before, 499)
            self.d.kill()
            self.d.start()
            until(lambda: any(row["role"] == "holder" and "detached_ms" not in row.fields for row in self.rows(self.d)), "the leader is back", 20)
            self.assertGreaterEqual(held(), before)

    def test_a_leader_that_lost_its_key_stands_behind_those_who_wait(self):
        first = self.lead(self.d)
        fence = self.term(first)
        second = self.lead(self.d)
        until(lambda: self.waits(self.d), "the second one campaigns")
        self.server.cli.delete("lock:" + self.lock)
        told = second.stdout.readline()
        # Without its key nothing protects the first one: the second may begin before the first has heard of it.
        fences = [fence, self.term(second) if told == b"two leaders\n" else int(told)]
        until(lambda: self.waits(self.d), "the first one campaigns again")
        self.assertEqual(fences, sorted(set(fences)))


@on_each_store
class Shown(Tool):
    """Who leads, since when, and who is next."""
    COST = 2

    def test_show_tells_the_leader_and_who_is_next(self):
        name = self.name()
        first = self.spawn("lead", name, "--", "sh", "-c", "echo up; exec sleep 1000")
        self.assertEqual(first.stdout.readline(), b"up\n")
        second = self.spawn("lead", "--note", "second", name, "--", "sleep", "1000")
        until(lambda: len(self.connect().roles(name)) == 2, "the second one campaigns")
        status, out, _ = self.redlock("show", "--json", name)
        leader, following = [json.loads(line) for line in out.splitlines()]
        self.assertEqual((status, leader["role"], leader["pid"], following["role"], following["pos"], following["pid"], following["note"]),
                         (0, "holder", first.pid, "waiter", 1, second.pid, "second"))
        self.assertTrue(leader["name"].startswith("redlock lead sh"), leader)
        self.assertGreaterEqual(leader["held_ms"], following["waited_ms"])

# SPDX-License-Identifier: BSD-2-Clause
"""LOCK, UNLOCK, EXTEND and CHECK, on the memory store and on one real Redis."""
import time

import redis

from harness import StoreTest, on_each_store
from process import LATE, until
from wire import Client, quoted


@on_each_store
class Holding:
    """Reentrancy, owners, fences, and the ways in which a hold ends."""
    COST, TCP = 6, True

    def test_a_free_lock_is_granted_and_freed(self):
        c, name = self.connect(), self.name()
        granted = c.ok("LOCK " + name)
        self.assertEqual((granted["name"], granted.num("ttl_ms"), granted.num("count")), (name, 10000, 1))
        self.assertTrue(0 < granted.num("fence") < 2 ** 53)
        checked = c.ok("CHECK " + name)
        self.assertEqual((checked.num("fence"), checked.num("count")), (granted.num("fence"), 1))
        self.assertTrue(0 < checked.num("valid_ms") <= 9900)
        self.assertEqual(c.ok("UNLOCK " + name).num("count"), 0)
        c.err("CHECK " + name, "NOTHELD")

    def test_the_same_owner_may_lock_again(self):
        (c, rival), name = self.two(), self.name()
        first, second, third = [c.ok("LOCK " + name) for _ in range(3)]
        self.assertEqual([x.num("count") for x in (first, second, third)], [1, 2, 3])
        self.assertEqual(len({x.num("fence") for x in (first, second, third)}), 1)
        self.assertEqual([c.ok("UNLOCK " + name).num("count") for _ in range(2)], [2, 1])
        rival.busy("LOCK " + name)
        self.assertEqual(c.ok("UNLOCK " + name).num("count"), 0)
        c.err("UNLOCK " + name, "NOTHELD")
        self.assertEqual(rival.ok("LOCK %s wait=5s" % name).num("count"), 1)

    def test_owners_of_one_session_exclude_each_other(self):
        c, name = self.connect(), self.name()
        c.ok("LOCK %s owner=one" % name)
        c.busy("LOCK %s owner=two" % name)
        c.busy("LOCK %s" % name)
        self.assertEqual(c.ok("LOCK %s owner=one" % name).num("count"), 2)
        c.err("UNLOCK " + name, "NOTHELD")
        c.err("CHECK %s owner=two" % name, "NOTHELD")
        c.ok("CHECK %s owner=one" % name)
        c.send("@w LOCK %s owner=two wait=30s" % name)
        c.ok("UNLOCK %s owner=one" % name)
        c.ok("UNLOCK %s owner=one" % name)
        self.assertEqual(c.reply("@w").kind, "OK")
        c.err("CHECK %s owner=one" % name, "NOTHELD")

    def test_a_second_waiting_lock_of_the_same_owner_is_granted_with_the_first(self):
        (holder, c), name = self.two(), self.name()
        other = self.connect()
        holder.ok("LOCK " + name)
        c.begin("@1 LOCK %s wait=30s" % name)
        other.begin("LOCK %s wait=30s" % name)
        c.begin("@2 LOCK %s wait=30s" % name)
        holder.ok("UNLOCK " + name)
        first, second = c.reply("@1"), c.reply("@2")
        self.assertEqual((first.kind, second.kind, first.num("fence")), ("OK", "OK", second.num("fence")))
        self.assertEqual(sorted((first.num("count"), second.num("count"))), [1, 2])
        other.barrier()
        self.assertEqual(other.inbox, [])
        c.ok("UNLOCK " + name)
        c.ok("UNLOCK " + name)
        self.assertEqual(other.reply().kind, "OK")

    def test_only_the_holder_unlocks(self):
        (c, rival), name = self.two(), self.name()
        c.ok("LOCK " + name)
        rival.err("UNLOCK " + name, "NOTHELD")
        rival.err("EXTEND " + name, "NOTHELD")
        rival.err("CHECK " + name, "NOTHELD")
        c.ok("CHECK " + name)

    def test_an_unlock_with_the_fence_of_an_old_grant_changes_nothing(self):
        c, name = self.connect(), self.name()
        old = c.ok("LOCK " + name).num("fence")
        c.ok("UNLOCK %s fence=%d" % (name, old))
        new = c.ok("LOCK %s wait=5s" % name).num("fence")
        self.assertGreater(new, old)
        self.assertEqual(c.ask("UNLOCK %s fence=%d" % (name, old)).kind, "ERR")
        self.assertEqual(c.ask("UNLOCK %s fence=%d" % (name, new + 1)).kind, "ERR")
        self.assertEqual(c.ok("CHECK " + name).num("count"), 1)
        c.ok("UNLOCK %s fence=%d" % (name, new))

    def test_fences_grow_from_grant_to_grant_and_session_to_session(self):
        name, last = self.name(), 0
        for i in range(30):
            with Client(self.d.addr) as c:
                fence = c.ok("LOCK %s wait=5s" % name).num("fence")
                self.assertGreater(fence, last)
                last = fence
                if i % 2:
                    c.ok("UNLOCK " + name)

    def test_sync_answers_after_the_store_has_freed_the_key(self):
        c, name = self.connect(), self.name()
        for _ in range(20):
            c.ok("LOCK " + name)
            if self.r:
                self.assertEqual(self.r.cli.exists("lock:" + name), 1)
            self.assertEqual(c.ok("UNLOCK %s sync=yes" % name).num("count"), 0)
            if self.r:
                self.assertEqual(self.r.cli.exists("lock:" + name), 0)

    def test_sync_and_keep_of_an_inner_unlock_only_count_down(self):
        (c, rival), name = self.two(), self.name()
        c.ok("LOCK " + name)
        c.ok("LOCK " + name)
        self.assertEqual(c.ok("UNLOCK %s sync=yes" % name).num("count"), 1)
        rival.busy("LOCK " + name)
        c.ok("CHECK " + name)

    def test_the_end_of_a_session_frees_all_that_it_held(self):
        name = self.name()
        rival = self.connect()
        for end in ("quit", "close", "half-close"):
            c = Client(self.d.addr)
            for i in range(5):
                c.ok("LOCK %s-%d wait=5s" % (name, i))
            c.ok("LOCK %s-0" % name)
            if end == "quit":
                c.ok("QUIT")
            elif end == "half-close":
                c.half_close()
                c.eof()
            c.close()
            for i in range(5):
                self.assertEqual(rival.ok("LOCK %s-%d wait=5s" % (name, i)).num("count"), 1)
                rival.ok("UNLOCK %s-%d" % (name, i))

    def test_a_reset_over_loopback_frees_at_once(self):
        c, rival, name = self.connect(tcp=True), self.connect(), self.name()
        c.ok("LOCK " + name)
        rival.begin("LOCK %s wait=8s" % name)
        c.reset()
        self.assertEqual(rival.reply(timeout=2).kind, "OK")

    def test_the_end_of_a_session_withdraws_its_waiting_requests(self):
        (holder, c), name = self.two(), self.name()
        holder.ok("LOCK " + name)
        c.begin("LOCK %s wait=forever" % name)
        self.assertEqual(len(holder.roles(name)), 2)
        c.close()
        until(lambda: len(holder.roles(name)) == 1, "the waiter is withdrawn")

    def test_keep_leaves_the_name_taken_without_a_holder(self):
        (c, rival), name = self.two(), self.name()
        c.ok("LOCK " + name)
        fence = c.ok("CHECK " + name).num("fence")
        begin = time.monotonic()
        self.assertEqual(c.ok("UNLOCK %s keep=1s" % name).num("count"), 0)
        for client in (rival, c):
            busy = client.busy("LOCK " + name)
            self.assertNotIn("pid=", busy.fields.get("holder", ""), "a kept name has a holder")
            self.assertTrue(0 < busy.num("retry_ms") <= 1100, busy)
        c.err("CHECK " + name, "NOTHELD")
        granted = rival.ok("LOCK %s wait=5s" % name)
        self.assertGreaterEqual(granted.at - begin, 0.99)
        self.assertLess(granted.at - begin, 1 + LATE)
        self.assertGreater(granted.num("fence"), fence)

    def test_requests_sent_before_a_hang_up_are_executed(self):
        name, watcher = self.name(), self.connect()
        requests = {"UNLOCK %s keep=2s": ["kept"], "PING\n" * 50 + "UNLOCK %s keep=2s": ["kept"], "CHECK %s\n@quit QUIT": []}
        for number, lines in enumerate(requests):
            holder = self.connect()
            holder.ok("HELLO 1 grace=9s")
            holder.ok("LOCK %s%d" % (name, number))
            self.d.freeze()  # so that the daemon reads the requests and the end together
            holder.send(lines.replace("%s", name + str(number)))
            holder.close()
            self.d.thaw()
        watcher.barrier()
        for number, left in enumerate(requests.values()):
            until(lambda: watcher.roles("%s%d" % (name, number)) == left, "after requests %d: %r" % (number, left), 1)

    def test_keep_outlives_the_session(self):
        (c, rival), name = self.two(), self.name()
        begin = time.monotonic()
        c.ok("LOCK " + name)
        c.ok("UNLOCK %s keep=1s" % name)
        c.close()
        granted = rival.ok("LOCK %s wait=5s" % name)
        self.assertGreaterEqual(granted.at - begin, 0.99)


@on_each_store
class Expiring:
    """renew=no, EXTEND, and how a loss is pushed and remembered."""
    COST = 8

    def test_a_lease_without_renewal_ends_with_lost_expired(self):
        (c, rival), name = self.two(), self.name()
        before = time.monotonic()
        granted = c.ok("LOCK %s ttl=400ms renew=no" % name)
        valid = granted.num("valid_ms") / 1000
        rival.send("LOCK %s wait=10s" % name)
        lost = c.push("LOST", name, 3)
        self.assertEqual((lost["reason"], lost.num("fence")), ("expired", granted.num("fence")))
        self.assertGreaterEqual(lost.at - before, 0.8 * valid, "LOST comes long before the end of the lease")
        self.assertLess(lost.at - granted.at, valid + LATE)
        taken = rival.reply()
        self.assertGreaterEqual(taken.at - before, valid, "granted while the first holder may still believe in its lock")
        self.assertGreater(taken.num("fence"), granted.num("fence"))

    def test_a_loss_is_remembered_until_an_unlock_is_answered_with_it(self):
        c, name = self.connect(), self.name()
        for request in ("CHECK", "EXTEND"):
            c.ok("LOCK %s ttl=150ms renew=no wait=5s" % name)
            c.push("LOST", name)
            c.err("%s %s" % (request, name), "LOST")
            c.err("%s %s" % (request, name), "LOST")
            c.err("UNLOCK " + name, "LOST")
            c.err("%s %s" % (request, name), "NOTHELD")
            c.err("UNLOCK " + name, "NOTHELD")

    def test_after_a_loss_the_name_can_be_locked_again(self):
        c, name = self.connect(), self.name()
        old = c.ok("LOCK %s ttl=150ms renew=no" % name).num("fence")
        c.push("LOST", name)
        new = c.ok("LOCK %s wait=5s" % name)
        self.assertEqual(new.num("count"), 1)
        self.assertGreater(new.num("fence"), old)
        self.assertEqual(c.ok("UNLOCK " + name).num("count"), 0)

    def test_a_loss_names_its_owner(self):
        c, name = self.connect(), self.name()
        c.ok("LOCK %s ttl=150ms renew=no owner=thread-3" % name)
        self.assertEqual(c.push("LOST", name)["owner"], "thread-3")
        c.err("CHECK %s owner=thread-3" % name, "LOST")
        c.err("CHECK %s owner=thread-4" % name, "NOTHELD")

    def test_extend_moves_the_end_of_the_lease(self):
        c, name = self.connect(), self.name()
        fence = c.ok("LOCK %s ttl=2s renew=no" % name).num("fence")
        end = time.monotonic() + 2.6
        while time.monotonic() < end:
            answer = c.ok("EXTEND " + name)
            self.assertEqual(answer.num("fence"), fence)
            self.assertTrue(300 < answer.num("valid_ms") <= 2000, answer)
            c.listen(0.1)
        self.assertEqual(c.inbox, [])
        answer = c.ok("EXTEND %s ttl=4s" % name)
        self.assertTrue(2000 < answer.num("valid_ms") <= 4000, answer)
        c.ok("EXTEND %s ttl=150ms" % name)
        lost = c.push("LOST", name, 3)
        self.assertEqual(lost["reason"], "expired")

    def test_the_watchdog_keeps_a_short_lease(self):
        (c, rival), name = self.two(), self.name()
        c.ok("LOCK %s ttl=1s" % name)
        self.assertEqual(rival.ask("LOCK %s wait=3s" % name).kind, "TIMEOUT")
        self.assertEqual(c.ok("CHECK " + name).num("count"), 1)
        self.assertEqual(c.inbox, [])

    def test_extend_sets_the_ttl_of_later_renewals(self):
        c, name = self.connect(), self.name()
        c.ok("LOCK %s ttl=5s" % name)
        c.ok("EXTEND %s ttl=1s" % name)
        end = time.monotonic() + 3
        while time.monotonic() < end:
            self.assertLessEqual(c.ok("CHECK " + name).num("valid_ms"), 1000)
            c.listen(0.05)
        self.assertEqual(c.inbox, [])

    def test_reentrant_holds_are_lost_together(self):
        c, name = self.connect(), self.name()
        c.ok("LOCK %s ttl=1s renew=no" % name)
        c.ok("LOCK %s ttl=1s renew=no" % name)
        c.push("LOST", name)
        c.err("UNLOCK " + name, "LOST")
        c.err("UNLOCK " + name, "NOTHELD")
        c.barrier()
        self.assertEqual(c.inbox, [], "LOST is pushed twice")


class OnlyRedis(StoreTest):
    """The keys in Redis: the classic layout."""
    STORE = "redis"

    def test_the_key_is_a_string_with_a_ttl_under_the_prefix(self):
        c, name = self.connect(), self.name()
        c.ok("LOCK %s ttl=5s" % name)
        self.assertEqual(self.r.cli.type("lock:" + name), b"string")
        self.assertTrue(0 < self.r.cli.pttl("lock:" + name) <= 5000)
        self.assertRegex(self.r.cli.get("lock:" + name).decode(), r"^[^:]+:[^:]+:[0-9a-f]{32}$")
        c.ok("UNLOCK %s sync=yes" % name)
        self.assertEqual(self.r.cli.exists("lock:" + name), 0)

    def test_all_other_keys_begin_with_redlockd(self):
        c, name = self.connect(), self.name()
        c.ok("LOCK " + name)
        keys = {key.decode() for key in self.r.cli.keys()}
        self.assertEqual({key for key in keys if not key.startswith("lock:") and not key.startswith("redlockd:lock:")}, set())
        self.assertIn("redlockd:lock:!meta", keys)
        self.assertIn("redlockd:lock:!fence", keys)

    def test_every_grant_has_a_value_of_its_own(self):
        c, name, values = self.connect(), self.name(), set()
        for _ in range(20):
            c.ok("LOCK " + name)
            values.add(self.r.cli.get("lock:" + name))
            c.ok("UNLOCK " + name)
        self.assertEqual(len(values), 20)

    def test_a_new_lock_does_not_overtake_the_unlock_before_it(self):
        c, name = self.connect(), self.name()
        c.raw(("LOCK %s\nUNLOCK %s\n" % (name, name)).encode() * 500)
        self.assertEqual([c.reply().kind for _ in range(1000)], ["OK"] * 1000)

    def test_names_of_any_bytes_are_keys_of_these_bytes(self):
        c, name = self.connect(), b"a b\x00\xff\n" + self.name().encode()
        c.ok("LOCK " + quoted(name))
        self.assertEqual(self.r.cli.exists(b"lock:" + name), 1)

    def test_a_second_daemon_does_not_call_the_holder_foreign(self):
        c, name = self.connect(), self.name()
        c.ok("LOCK " + name)
        busy = self.client(self.redis_daemon(self.r)).busy("LOCK " + name)
        self.assertNotIn("foreign", busy.fields.get("holder", ""))
        self.assertTrue(0 < busy.num("retry_ms") <= 10000)

    def test_the_database_of_the_configuration_is_used(self):
        daemon = self.redis_daemon(self.r, {"redis": {"database": 3, "key_prefix": "other:"}})
        c, name = self.client(daemon), self.name()
        c.ok("LOCK " + name)
        self.assertEqual(self.r.cli.exists("lock:" + name, "other:" + name), 0)
        third = redis.Redis(unix_socket_path=self.r.path, db=3)
        self.assertEqual(third.exists("other:" + name), 1)
        self.assertIn(b"redlockd:other:!meta", third.keys())
        third.close()

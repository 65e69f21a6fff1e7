# SPDX-License-Identifier: BSD-2-Clause
"""Queues on one daemon, CANCEL, SHOW, LIST and STATS, on the memory store and on one real Redis."""
import os
import random
import re
import time

from harness import on_each_store
from process import LATE, until
from wire import quoted


def names_of(rows):
    return [row["name"] for row in rows]


@on_each_store
class Waiting:
    """BUSY, TIMEOUT, first come first served, CANCEL."""
    COST, TCP = 8, True

    def test_BUSY_names_the_holder_and_says_for_how_long_it_holds(self):
        name = self.name()
        holder, rival = self.connect("worker-7"), self.connect()
        holder.ok('LOCK %s note="nightly export, ask ops"' % name)
        self.waiting(name, 3)
        begin = time.monotonic()
        until(lambda: time.monotonic() - begin > 0.06, "60 ms have passed")
        busy = rival.busy("LOCK " + name)
        self.assertEqual(busy["name"], name)
        self.assertEqual(busy["holder"], "worker-7 pid=%d uid=%d" % (os.getpid(), os.getuid()))
        self.assertEqual(busy.num("waiters"), 3)
        self.assertTrue(60 <= busy.num("held_ms") < 5000, busy)
        self.assertTrue(0 < busy.num("retry_ms") <= 10000, busy)

    def test_over_tcp_BUSY_names_no_pid(self):
        holder, rival, name = self.connect("tcp-worker", tcp=True), self.connect(tcp=True), self.name()
        holder.ok("LOCK " + name)
        busy = rival.busy("LOCK " + name)
        self.assertIn("tcp-worker", busy["holder"])
        self.assertNotIn("pid=", busy["holder"])
        self.assertNotIn("uid=", busy["holder"])

    def test_wait_0_is_the_default_and_answers_at_once(self):
        (holder, c), name = self.two(), self.name()
        holder.ok("LOCK " + name)
        begin = time.monotonic()
        for _ in range(20):
            c.busy("LOCK " + name)
            c.busy("LOCK %s wait=0" % name)
        self.assertLess(time.monotonic() - begin, LATE)

    def test_a_wait_that_ends_is_answered_TIMEOUT_and_leaves_the_queue(self):
        (holder, c), name = self.two(), self.name()
        holder.ok("LOCK " + name)
        begin = time.monotonic()
        answer = c.ask("LOCK %s wait=0.25s" % name)
        self.assertEqual((answer.kind, answer["name"]), ("TIMEOUT", name))
        self.assertTrue(250 <= answer.num("waited_ms") < 250 + 1000 * LATE, answer)
        self.assertGreaterEqual(answer.at - begin, 0.25)
        self.assertLess(answer.at - begin, 0.25 + LATE)
        self.assertEqual(len(holder.roles(name)), 1)
        holder.ok("UNLOCK " + name)
        c.err("CHECK " + name, "NOTHELD")

    def test_units_of_a_wait(self):
        (holder, c), name = self.two(), self.name()
        holder.ok("LOCK " + name)
        for wait, least in (("500us", 0), ("20ms", 20), ("0.02s", 20), ("0.001m", 60), ("0.00001h", 36)):
            answer = c.ask("LOCK %s wait=%s" % (name, wait))
            self.assertEqual(answer.kind, "TIMEOUT", wait)
            self.assertTrue(least <= answer.num("waited_ms") < least + 1000 * LATE, (wait, answer))

    def test_64_waiters_are_served_in_the_order_of_their_requests(self):
        name, holder = self.name(), self.connect()
        last, clients = holder.ok("LOCK " + name).num("fence"), [self.connect() for _ in range(64)]
        random.Random(3).shuffle(clients)  # not the order of their connections
        for client in clients:
            client.begin("LOCK %s wait=forever" % name)
        for i, client in enumerate(clients):
            (clients[i - 1] if i else holder).ok("UNLOCK " + name)
            granted = client.reply()
            self.assertEqual((granted.kind, granted.num("count")), ("OK", 1))
            self.assertGreater(granted.num("fence"), last)
            last = granted.num("fence")
            for later in clients[i + 1:]:
                later.barrier()
                self.assertEqual(later.inbox, [])

    def test_a_new_LOCK_does_not_overtake_the_queue(self):
        (holder, late), name = self.two(), self.name()
        holder.ok("LOCK " + name)
        first, second = self.waiting(name, 2)
        holder.send("UNLOCK " + name, "LOCK " + name)
        self.assertEqual(first.reply().kind, "OK")
        self.assertEqual([holder.reply().kind, holder.reply().kind], ["OK", "BUSY"])
        late.busy("LOCK " + name)
        first.ok("UNLOCK " + name)
        self.assertEqual(second.reply().kind, "OK")

    def test_clients_that_leave_the_queue_do_not_disturb_it(self):
        name, holder = self.name(), self.connect()
        holder.ok("LOCK " + name)
        clients = self.waiting(name, 6)
        clients[0].close()
        clients[2].close()
        short = self.connect()
        self.assertEqual(short.ask("LOCK %s wait=30ms" % name).kind, "TIMEOUT")
        until(lambda: len(holder.roles(name)) == 5, "two waiters are gone")
        holder.ok("UNLOCK " + name)
        for client in (clients[1], clients[3], clients[4], clients[5]):
            self.assertEqual(client.reply().kind, "OK")
            client.ok("UNLOCK " + name)

    def test_wait_forever_has_no_end(self):
        (holder, c), name = self.two(), self.name()
        holder.ok("LOCK " + name)
        c.begin("LOCK %s wait=forever" % name)
        c.listen(0.3)
        self.assertEqual(c.inbox, [])
        holder.ok("UNLOCK " + name)
        self.assertEqual(c.reply().kind, "OK")

    def test_one_session_waits_for_many_names_at_once(self):
        (holder, c), name = self.two(), self.name()
        for i in range(50):
            holder.ok("LOCK %s-%d" % (name, i))
            c.send("@w%d LOCK %s-%d wait=30s" % (i, name, i))
        c.barrier()
        for i in reversed(range(50)):
            holder.ok("UNLOCK %s-%d" % (name, i))
            self.assertEqual(c.reply("@w%d" % i)["name"], "%s-%d" % (name, i))

    def test_cancel_withdraws_a_waiting_request(self):
        (holder, c), name = self.two(), self.name()
        holder.ok("LOCK " + name)
        c.begin("@w LOCK %s wait=forever" % name)
        c.ok("CANCEL @w")
        self.assertEqual(c.reply("@w").code, "CANCELLED")
        c.err("CANCEL @w", "NOTFOUND")
        c.err("CANCEL @nothing", "NOTFOUND")
        holder.ok("UNLOCK " + name)
        c.err("CHECK " + name, "NOTHELD")
        c.send("@w LOCK %s wait=5s" % name)
        self.assertEqual(c.reply("@w").kind, "OK")

    def test_cancel_reaches_no_other_session(self):
        (holder, c), name = self.two(), self.name()
        holder.ok("LOCK " + name)
        c.begin("@w LOCK %s wait=30s" % name)
        holder.err("CANCEL @w", "NOTFOUND")
        holder.ok("UNLOCK " + name)
        self.assertEqual(c.reply("@w").kind, "OK")

    def test_a_cancel_that_meets_the_grant_has_one_outcome(self):
        (holder, c), name = self.two(), self.name()
        seen = set()
        for i in range(300):
            holder.ok("LOCK %s wait=5s" % name)
            c.send("@w LOCK %s wait=30s" % name)
            if i % 3:
                c.barrier()
            if i % 2:
                holder.send("UNLOCK " + name)
                c.send("CANCEL @w")
            else:
                c.send("CANCEL @w")
                holder.send("UNLOCK " + name)
            cancelled, waited = c.reply(), c.reply("@w")
            holder.reply()
            if cancelled.kind == "OK":
                self.assertEqual(waited.code, "CANCELLED")
                c.err("CHECK " + name, "NOTHELD")
            else:
                self.assertEqual((cancelled.code, waited.kind), ("NOTFOUND", "OK"))
                c.ok("CHECK " + name)
                c.ok("UNLOCK %s sync=yes" % name)
            seen.add(cancelled.kind)
        self.assertIn("OK", seen)

    def test_cancel_wants_a_tag(self):
        c = self.connect()
        c.err("CANCEL w", ("ARG", "NOTFOUND"))


@on_each_store
class Queries:
    """SHOW, LIST and STATS."""

    def test_show_lists_the_holder_and_the_waiters_in_order(self):
        name = self.name()
        holder = self.connect("holder label")
        fence = holder.ok('LOCK %s note="nightly export, ask ops"' % name).num("fence")
        holder.ok("LOCK " + name)
        self.waiting(name, 3, 'note="queued"')
        shown = self.connect().ok("SHOW " + name)
        self.assertEqual(shown.num("n"), 4)
        self.assertEqual([row["role"] for row in shown.rows], ["holder"] + ["waiter"] * 3)
        first = shown.rows[0]
        self.assertEqual((first.num("fence"), first.num("count"), first["note"]), (fence, 2, "nightly export, ask ops"))
        self.assertTrue(0 < first.num("valid_ms") <= 10000)
        self.assertLess(first.num("held_ms"), 1000 * LATE)
        self.assertEqual(first["name"], "holder label")
        self.assertEqual(first["session"], holder.ok("HELLO 1 name=" + quoted("holder label"))["session"])
        self.assertEqual([row["name"] for row in shown.rows[1:]], ["waiter-0", "waiter-1", "waiter-2"])
        positions = [row.num("pos") for row in shown.rows[1:]]
        self.assertEqual(positions, sorted(set(positions)))
        self.assertEqual(len({row["session"] for row in shown.rows}), 4)

    def test_show_of_a_free_name_has_no_rows(self):
        self.assertEqual(self.connect().ok("SHOW " + self.name()).num("n"), 0)

    def test_list_locks_by_prefix_and_page_by_page(self):
        c, prefix = self.connect(), self.name() + "/"
        names = ["%s%02d" % (prefix, i) for i in range(25)]
        for name in names:
            c.ok("LOCK " + name)
        rows = c.ok("LIST locks prefix=" + prefix).rows
        self.assertEqual(sorted(names_of(rows)), names)
        self.assertEqual(sorted(names_of(c.ok("LIST prefix=%s1" % prefix).rows)), names[10:20])
        seen, after = [], ""
        for _ in range(10):
            page = c.ok("LIST locks prefix=%s limit=10%s" % (prefix, after))
            self.assertEqual(page.num("n"), len(page.rows))
            self.assertLessEqual(len(page.rows), 10)
            self.assertIn("more", page)
            seen += names_of(page.rows)
            if len(seen) == 25:
                break
            after = " after=" + page.rows[-1].written["name"]
        self.assertEqual(seen, names, "the pages do not list each name once, in order")
        last = c.ok("LIST locks prefix=%s limit=10 after=%s" % (prefix, names[20]))
        full = c.ok("LIST locks prefix=%s limit=10" % prefix)
        self.assertNotEqual(last["more"], full["more"])
        for name in names:
            c.ok("UNLOCK " + name)
        self.assertEqual(c.ok("LIST locks prefix=" + prefix).rows, [])

    def test_list_sessions_shows_labels_until_sessions_end(self):
        c, label = self.connect(), self.name()
        other = self.connect(label)
        self.assertEqual(len([row for row in c.ok("LIST sessions").rows if label in str(row)]), 1)
        other.close()
        until(lambda: not [row for row in c.ok("LIST sessions").rows if label in str(row)], "the session is gone")

    def test_list_nodes_names_every_store(self):
        answer = self.connect().ok("LIST nodes")
        self.assertEqual((answer.num("n"), len(answer.rows)), (1, 1))
        if self.r:
            self.assertIn(self.r.path, str(answer.rows[0]))

    def test_stats_are_rows_of_metric_and_value_and_count(self):
        c, name = self.connect(), self.name()

        def stats():
            answer = c.ok("STATS")
            self.assertEqual(answer.num("n"), len(answer.rows))
            for row in answer.rows:
                float(row["value"])
            return {str(row).rpartition(" value=")[0]: float(row["value"]) for row in answer.rows}
        before = stats()
        rival = self.connect()
        for _ in range(5):
            c.ok("LOCK %s wait=5s" % name)
            rival.busy("LOCK " + name)
            c.ok("UNLOCK " + name)
        after = stats()
        self.assertEqual(set(before), set(after))
        for word in ("grant", "refus|busy"):
            grown = {k: after[k] - before[k] for k in after if re.search(word, k) and 5 <= after[k] - before[k] < 100}
            self.assertTrue(grown, "no metric like %s has grown by 5: %r" % (word, {k: after[k] - before[k] for k in after if re.search(word, k)}))

    def test_a_lock_with_waiters_is_listed_once(self):
        (holder, c), name = self.two(), self.name()
        holder.ok("LOCK " + name)
        self.waiting(name, 2)
        rows = c.ok("LIST locks prefix=" + name).rows
        self.assertEqual(len(rows), 1)
        self.assertEqual(rows[0]["name"], name)

# SPDX-License-Identifier: BSD-2-Clause
"""The snapshot of locks, permits and queues at the web listener, and the stream of events."""
import time

from harness import FuncTest, on_each_store
from process import LATE, until
from web import Events, OnWeb, free_web


@on_each_store
class Snapshot(OnWeb):
    COST = 3

    def test_the_snapshot_tells_who_holds_and_who_waits(self):
        holder, name = self.connect("worker-7"), self.name()
        fence = holder.ok('LOCK %s note="nightly export"' % name).num("fence")
        self.waiting(name, 2)
        snapshot = self.web.ask("/api/v1/snapshot?prefix=" + name).json
        self.assertEqual(set(snapshot), {"server", "stores", "totals", "locks", "more"})
        self.assertEqual([store["state"] for store in snapshot["stores"]], ["joined"])
        self.assertEqual(snapshot["totals"]["waiters"], 2)
        [lock] = snapshot["locks"]
        self.assertEqual((lock["name"], lock["kind"], lock["mode"], lock["fence"]), (name, "lock", "exclusive", fence))
        [held] = lock["holders"]
        self.assertEqual((held["label"], held["peer"], held["count"], held["note"]), ("worker-7", "unix", 1, "nightly export"))
        self.assertTrue(0 <= held["held_ms"] < 10000 and 0 < held["valid_ms"] <= 10000 and held["session"] > 0)
        self.assertEqual([waiter["label"] for waiter in lock["waiters"]], ["waiter-0", "waiter-1"])
        self.assertTrue(all(0 <= waiter["waited_ms"] < 10000 for waiter in lock["waiters"]))

    def test_a_name_that_is_kept_has_no_holder(self):
        holder, name = self.connect(), self.name()
        holder.ok("LOCK %s" % name)
        holder.ok("UNLOCK %s keep=30s" % name)
        self.waiting(name, 1)
        [lock] = self.web.ask("/api/v1/snapshot?prefix=" + name).json["locks"]
        self.assertEqual((lock["holders"], len(lock["waiters"])), ([], 1))
        self.assertTrue(20000 < lock["kept"]["ttl_ms"] <= 30000, lock["kept"])

    def test_the_snapshot_has_pages(self):
        client, name = self.connect(), self.name()
        for i in range(5):
            client.ok("LOCK %s-%d" % (name, i))
        seen, after, pages = [], "", 0
        while True:
            page = self.web.ask("/api/v1/snapshot?prefix=%s&limit=2&after=%s" % (name, after)).json
            seen += [lock["name"] for lock in page["locks"]]
            after, pages = page["locks"][-1]["name"], pages + 1
            if not page["more"]:
                break
        self.assertEqual((seen, pages), (["%s-%d" % (name, i) for i in range(5)], 3))
        page = self.web.ask("/api/v1/snapshot?prefix=%s&limit=&after=" % name).json  # as if they were not there
        self.assertEqual(([lock["name"] for lock in page["locks"]], page["more"]), (seen, False))

    def test_permits_and_readers(self):
        client, name = self.connect(), self.name()
        client.ok("ACQUIRE %s-s limit=3" % name)
        client.ok("LOCK %s-r mode=shared" % name)
        self.connect().ok("LOCK %s-r mode=shared" % name)
        readers, permits = self.web.ask("/api/v1/snapshot?prefix=" + name).json["locks"]
        self.assertEqual((readers["mode"], len(readers["holders"])), ("shared", 2))
        self.assertEqual((permits["kind"], permits["limit"], len(permits["holders"])), ("semaphore", 3, 1))
        self.assertNotIn("mode", permits)

    def test_queues_stand_among_the_locks(self):
        """In the order of names, on pages: a queue and a lock of one name on the same one."""
        client, name = self.connect(), self.name()
        for lock in "bdf":
            client.ok("LOCK %s-%s" % (name, lock))
        for queue in "adg":
            client.ok("DEFER %s-%s one" % (name, queue))
        client.ok("DEFER %s-d two delay=1h" % name)
        client.ok("TAKE %s-g" % name)
        for limit in (1, 2, 3, 4, 1000):
            seen, after = [], ""
            while True:
                page = self.web.ask("/api/v1/snapshot?prefix=%s&limit=%d&after=%s" % (name, limit, after)).json
                seen += page["locks"]
                after = page["locks"][-1]["name"]
                if not page["more"]:
                    break
            self.assertEqual([(row["name"][-1], row["kind"]) for row in seen],
                             [("a", "queue"), ("b", "lock"), ("d", "lock"), ("d", "queue"), ("f", "lock"), ("g", "queue")], limit)
        a, d, g = [row for row in seen if row["kind"] == "queue"]
        self.assertEqual([(row["due"], row["leased"], row["dead"]) for row in (a, d, g)], [(1, 0, 0), (2, 0, 0), (0, 1, 0)])
        self.assertEqual((a["holders"], a["waiters"], "mode" in a, "fence" in a), ([], [], False, False))

    def test_hostile_names(self):
        client, name = self.connect(), self.name()
        client.ok(r'LOCK "%s <img src=x>\"\xff\x00\n" note="</script>"' % name)
        raw = self.web.ask("/api/v1/snapshot?prefix=%s+%%3Cimg" % name)
        [lock] = raw.json["locks"]
        self.assertEqual(lock["name"], '%s <img src=x>"\udcff\x00\n' % name)
        self.assertEqual(lock["holders"][0]["note"], "</script>")
        again = self.web.ask("/api/v1/snapshot?prefix=%s%%20%%3Cimg%%20src=x%%3E%%22%%FF%%00" % name).json
        self.assertEqual(len(again["locks"]), 1)

    def test_events(self):
        (holder, waiter), name = self.two(), self.name()
        events = Events(self.web, "?prefix=" + name)
        self.addCleanup(events.close)
        self.assertTrue(events.headers["content-type"].startswith("text/event-stream"))
        holder.ok("LOCK another-" + name)
        fence = holder.ok("LOCK " + name).num("fence")
        waiter.begin("LOCK %s wait=60s" % name)
        holder.ok("UNLOCK " + name)
        got = [events.next() for _ in range(4)]
        self.assertEqual([kind for kind, _ in got], ["granted", "waiting", "released", "granted"])
        self.assertEqual({data["name"] for _, data in got}, {name})
        self.assertEqual(got[0][1]["fence"], fence)
        self.assertEqual([data["kind"] for _, data in got], [kind for kind, _ in got])


class Stalled(FuncTest):
    def test_the_snapshot_comes_while_the_store_does_not_answer(self):
        web, server = free_web(), self.redis()
        daemon = self.redis_daemon(server, {"listen": {"http": web.listen}})
        client = self.client(daemon)
        client.ok("LOCK a")
        client.ok("DEFER b one")
        server.freeze()
        self.addCleanup(server.thaw)
        begin = time.monotonic()
        self.assertEqual([row["kind"] for row in web.ask("/api/v1/snapshot").json["locks"]], ["lock"])
        self.assertLess(time.monotonic() - begin, 3 + LATE)
        server.thaw()
        until(lambda: [row["kind"] for row in web.ask("/api/v1/snapshot").json["locks"]] == ["lock", "queue"], "the queue is shown again")

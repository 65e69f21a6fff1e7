# SPDX-License-Identifier: BSD-2-Clause
"""Clients of other programs on one Redis: redlockd, redis-py's Lock and a client of the classic algorithm exclude one another on the same key."""
import os
import time

import redis

from classic import Classic
from harness import FuncTest, StoreTest, safety
from ledger import Workers
from process import LATE, merged
from wire import Client


class Room:
    """A section in which only one process may be: each creates the same file while it is inside."""

    def __init__(self, folder):
        self.folder, self.door = folder, os.path.join(folder, "inside")

    def visit(self, who, seconds=0.002):
        try:
            os.close(os.open(self.door, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            self.log("two at once")
            raise
        time.sleep(seconds)  # the length of the critical section
        os.unlink(self.door)
        self.log(who)

    def log(self, who):
        with open(os.path.join(self.folder, who), "ab", buffering=0) as log:
            log.write(b".")

    def visits(self, who):
        path = os.path.join(self.folder, who)
        return os.path.getsize(path) if os.path.exists(path) else 0


class Contended(FuncTest):
    """Each by_… is the body of a process that locks, visits and unlocks while goes_on() says so. A sleep in it is the pace of its loop."""
    COST, ALL = 14, ("redlockd", "redlockd-polling", "redis-py", "classic")

    def setUp(self):
        super().setUp()
        self.server = self.redis()
        self.room = Room(self.folder("redlockd-room-"))

    def by_redlockd(self, daemon, goes_on, pause=0.0, who="redlockd", wait="5s"):
        with Client(daemon.addr) as c:
            while goes_on():
                if c.ask("LOCK shared wait=" + wait, 10).kind == "OK":
                    self.room.visit(who)
                    c.ok("UNLOCK shared")
                time.sleep(pause)

    def by_redlockd_polling(self, daemon, goes_on):
        self.by_redlockd(daemon, goes_on, 0.003, "redlockd-polling", "0")

    def by_redis_py(self, goes_on, sleep=0.003, pause=0.0):
        cli = redis.Redis(unix_socket_path=self.server.path)
        while goes_on():
            lock = cli.lock("lock:shared", timeout=5, sleep=sleep, blocking_timeout=5)
            if lock.acquire():
                self.room.visit("redis-py")
                lock.release()
            time.sleep(pause)

    def by_classic(self, goes_on):
        client = Classic([self.server.path], 5000)
        while goes_on():
            if client.lock("shared"):
                self.room.visit("classic")
                client.unlock("shared")
            time.sleep(0.003)

    def contend(self, least, *bodies, limit=60):
        """Runs the bodies for three seconds, and on until each kind was inside as often as least says. No client that polls is promised a turn."""
        begin = time.monotonic()

        def goes_on():
            gone = time.monotonic() - begin
            return gone < 3 or (gone < limit and any(self.room.visits(who) < times for who, times in least.items()))
        statuses = Workers(len(bodies), lambda i: bodies[i](goes_on)).wait()
        with safety():
            self.assertFalse(self.room.visits("two at once"), "two were inside at once")
        self.assertEqual(statuses, [0] * len(bodies), "a process gave up")
        seen = {who: self.room.visits(who) for who in self.ALL}
        self.figure("visits in %.1f s: %s" % (time.monotonic() - begin, ", ".join("%s %d" % item for item in seen.items())))
        for who, times in least.items():
            self.assertGreaterEqual(seen[who], times, "%s had no turn" % who)

    def test_all_kinds_of_clients_never_overlap(self):
        daemons = [self.redis_daemon(self.server) for _ in range(2)]
        self.contend(dict.fromkeys(self.ALL, 1), *[lambda g, d=d: self.by_redlockd(d, g, 0.02) for d in daemons],
                     *[lambda g, d=d: self.by_redlockd_polling(d, g) for d in daemons], self.by_redis_py, self.by_redis_py, self.by_classic, self.by_classic)

    def test_a_busy_daemon_and_polling_clients_never_overlap(self):
        daemon = self.redis_daemon(self.server)
        self.contend({"redlockd": 5}, *[lambda g: self.by_redlockd(daemon, g) for _ in range(4)], self.by_redis_py, self.by_classic)

    def test_with_foreign_yes_polling_clients_get_their_turn(self):
        daemon = self.redis_daemon(self.server, {"redis": {"foreign": "yes"}})
        self.contend({"redlockd": 5, "redis-py": 5, "classic": 5}, *[lambda g: self.by_redlockd(daemon, g) for _ in range(4)], self.by_redis_py,
                     self.by_classic, limit=15)

    def test_with_foreign_yes_a_client_that_polls_is_served_once_a_second_at_least(self):
        """The client that polls asks ten times a second, the default of redis-py, and rests after each visit. Sixteen clients of a daemon leave no pause."""
        daemon = self.redis_daemon(self.server, {"redis": {"foreign": "yes"}})
        self.contend({"redlockd": 5, "redis-py": 5}, *[lambda g: self.by_redlockd(daemon, g) for _ in range(16)], lambda g: self.by_redis_py(g, 0.1, 0.25),
                     limit=5)


class ForeignKeys(StoreTest):
    """A daemon reports keys that no redlockd wrote as foreign, and leaves them alone."""
    STORE, COST, CONFIG = "redis", 14, {"lease": "1s"}

    def test_a_foreign_key_without_ttl(self):
        c, name = self.connect(), self.name()
        self.r.cli.set("lock:" + name, "foreign value")
        busy = c.busy("LOCK " + name)
        self.assertEqual((busy["name"], busy["holder"], busy["ttl_ms"]), (name, "foreign", "-1"))
        answer = c.ask("LOCK %s wait=700ms" % name)
        self.assertEqual(answer.kind, "TIMEOUT")
        self.assertEqual((self.r.cli.get("lock:" + name), self.r.cli.pttl("lock:" + name)), (b"foreign value", -1))

    def test_a_foreign_key_with_a_ttl(self):
        c, name = self.connect(), self.name()
        self.r.cli.set("lock:" + name, "x", px=1500)
        begin = time.monotonic()
        busy = c.busy("LOCK " + name)
        self.assertEqual(busy["holder"], "foreign")
        self.assertTrue(0 < busy.num("retry_ms") <= 1510, busy)
        granted = c.ok("LOCK %s wait=10s" % name)
        self.assertGreaterEqual(granted.at - begin, 1.3)
        self.assertLess(granted.at - begin, 1.5 + LATE)

    def test_a_foreign_value_of_any_bytes(self):
        c = self.connect()
        for value in (b"", b"a:b:c", b"\x00\xff", b"x" * 5000, b"a:b:" + b"0" * 31, b"a b:\nc:" + b"0" * 32):
            name = self.name()
            self.r.cli.set("lock:" + name, value)
            busy = c.busy("LOCK " + name)
            self.assertEqual(busy["name"], name)
            self.assertEqual(self.r.cli.get("lock:" + name), value)

    def test_a_foreign_key_of_another_type_is_ERR_KIND(self):
        c = self.connect()
        for make in (lambda key: self.r.cli.hset(key, "f", "v"), lambda key: self.r.cli.rpush(key, "v"), lambda key: self.r.cli.sadd(key, "v"),
                     lambda key: self.r.cli.zadd(key, {"v": 1}), lambda key: self.r.cli.xadd(key, {"f": "v"})):
            name = self.name()
            make("lock:" + name)
            before = self.r.cli.dump("lock:" + name)
            c.err("LOCK " + name, "KIND")
            c.err("LOCK %s wait=500ms" % name, "KIND")
            self.assertEqual(self.r.cli.dump("lock:" + name), before, "left alone")
            c.err("UNLOCK " + name, "NOTHELD")

    def test_a_foreign_release_is_noticed_within_a_second(self):
        c, taken = self.connect(), []
        for i in range(4):
            name = self.name()
            self.r.cli.set("lock:" + name, "x", px=60000)
            c.begin("LOCK %s wait=20s" % name)
            c.listen(0.1 + 0.37 * i)
            self.r.cli.delete("lock:" + name)
            begin = time.monotonic()
            granted = c.reply()
            self.assertEqual(granted.kind, "OK")
            taken.append(granted.at - begin)
        self.figure("the slowest grant comes after %.0f ms" % (max(taken) * 1000))
        self.assertLessEqual(max(taken), 1.0 + LATE)

    def test_waiters_behind_a_foreign_key_keep_their_order(self):
        name, clients = self.name(), []
        self.r.cli.set("lock:" + name, "x")
        for _ in range(5):
            c = self.connect()
            c.begin("LOCK %s wait=20s" % name)
            clients.append(c)
        self.r.cli.delete("lock:" + name)
        fences = []
        for c in clients:
            fences.append(c.reply().num("fence"))
            c.ok("UNLOCK " + name)
        self.assertEqual(fences, sorted(set(fences)))

    def test_redis_py_is_excluded_and_then_let_in(self):
        c, name = self.connect(), self.name()
        lock = self.r.cli.lock("lock:" + name, timeout=5, blocking=False)
        c.ok("LOCK " + name)
        self.assertFalse(lock.acquire())
        c.ok("UNLOCK %s sync=yes" % name)
        self.assertTrue(lock.acquire())
        self.assertEqual(c.busy("LOCK " + name)["holder"], "foreign")
        lock.release()
        c.ok("LOCK %s wait=5s" % name)

    def test_a_lease_that_redis_py_extends_is_respected(self):
        c, name = self.connect(), self.name()
        lock = self.r.cli.lock("lock:" + name, timeout=0.7, blocking=False)
        begin = time.monotonic()
        self.assertTrue(lock.acquire())
        c.begin("LOCK %s wait=20s" % name)
        c.listen(0.4)
        self.assertTrue(lock.extend(1.0))
        granted = c.reply()
        self.assertEqual(granted.kind, "OK")
        self.assertTrue(1.65 <= granted.at - begin <= 1.7 + 1.0, granted.at - begin)
        self.assertFalse(lock.owned())

    def test_a_key_that_is_overwritten_is_lost_and_left_alone(self):
        c, name = self.connect(), self.name()
        c.ok("LOCK " + name)
        self.r.cli.set("lock:" + name, "mine now")
        lost = c.push("LOST", name, 3)
        self.assertEqual(lost["reason"], "evicted")
        c.err("UNLOCK " + name, "LOST")
        c.ok("PING")
        self.assertEqual(self.r.cli.get("lock:" + name), b"mine now")
        self.assertEqual(c.busy("LOCK " + name)["holder"], "foreign")

    def test_a_key_that_becomes_a_hash_is_lost_and_left_alone(self):
        c, name = self.connect(), self.name()
        c.ok("LOCK " + name)
        self.r.cli.delete("lock:" + name)
        self.r.cli.hset("lock:" + name, "f", "v")
        c.push("LOST", name, 3)
        c.err("UNLOCK " + name, "LOST")
        c.err("LOCK " + name, "KIND")
        self.assertEqual(self.r.cli.type("lock:" + name), b"hash")

    def test_an_unlock_never_deletes_a_foreign_key(self):
        c, name = self.connect(), self.name()
        c.ok("LOCK %s ttl=10s" % name)
        self.r.cli.set("lock:" + name, "mine now")
        c.ask("UNLOCK %s sync=yes" % name)
        self.assertEqual(self.r.cli.get("lock:" + name), b"mine now")

    def test_a_marker_or_a_fence_of_another_type_is_survived(self):
        daemon = self.redis_daemon(self.r, merged(self.CONFIG, {"redis": {"key_prefix": "odd:"}, "max_lease": "1s"}))
        c = self.client(daemon)
        for key in ("redlockd:odd:!fence", "redlockd:odd:!meta"):
            self.r.cli.delete(key)
            self.r.cli.hset(key, "f", "v")
            self.assertEqual(c.ask("LOCK a wait=300ms", 5).kind, "ERR")
            self.r.cli.delete(key)
            c.ok("LOCK a wait=9s")
            c.ok("UNLOCK a sync=yes")

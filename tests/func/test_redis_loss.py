# SPDX-License-Identifier: BSD-2-Clause
"""A Redis that forgets, jumps in time, or refuses; and the ways to reach one."""
import os
import re
import time
import unittest

import redis

from harness import FuncTest
from process import knows_localhost, merged, temp_folder, until
from test_stopped import SHORT, Lease

MANUAL = os.path.join(os.path.dirname(__file__), "..", "..", "daemon", "redlockd.8")
QUARANTINE = 2.0  # max_lease: nothing is granted on a store that forgot before this has passed


class Forgetting(FuncTest):
    """No second holder while the first may believe it, and fences still grow."""
    COST = 40

    def two_daemons(self, **options):
        """Holder and a waiter on a, a rival on b, all for one name."""
        self.server = self.redis(**options)
        self.a, self.b = self.redis_daemon(self.server, SHORT), self.redis_daemon(self.server, SHORT)
        self.lease = Lease(self.client(self.a), "precious")
        self.waiters = [self.client(d) for d in (self.a, self.b)]
        for w in self.waiters:
            w.send("LOCK precious wait=60s")
            w.barrier()

    def told(self):
        return any(line.code == "LOST" for line in self.lease.client.inbox)

    def no_second_holder(self, fault, lost_at_all=True):
        """Carries the fault out; the holder asks on; each waiter is granted once, later, with a larger fence."""
        fault()
        begin, granted, lost = time.monotonic(), [], None
        while len(granted) < len(self.waiters) and time.monotonic() < begin + 12:
            answer = self.lease.check()
            for w in self.waiters:
                w.fill(0.001)
                for line in [line for line in w.inbox if line.kind in ("OK", "ERR", "TIMEOUT", "BUSY")]:
                    w.inbox.remove(line)
                    self.assertEqual(line.kind, "OK", line)
                    self.lease.client.fill(0)  # what was pushed before this line came
                    self.assertTrue(lost or self.told(), "granted to another before the holder was told LOST")
                    self.assertGreater(line.at, self.lease.until - 0.005, "granted while the holder could still believe it")
                    granted.append(line)
                    w.ok("UNLOCK precious sync=yes")
            lost = lost or self.told()
            if not lost_at_all and not lost and time.monotonic() > begin + 3:
                self.assertEqual(answer.kind, "OK")
                lost, lost_at_all = True, True
                self.lease.until = 0
                self.lease.client.ok("UNLOCK precious")
        fences = [self.lease.fence] + [line.num("fence") for line in granted]
        self.assertEqual(len(granted), 2, "both waiters are served in the end")
        self.assertEqual(fences, sorted(set(fences)), "fences grow")
        return min(line.at for line in granted) - begin

    def test_a_blank_restart(self):
        self.two_daemons()
        seconds = self.no_second_holder(self.server.restart)
        self.assertGreaterEqual(seconds, QUARANTINE - 0.5)

    def test_a_restart_that_takes_longer_than_the_lease(self):
        self.two_daemons()

        def fault():
            self.server.kill()
            self.lease.lost_in_time(self)
            self.server.restart()
        self.no_second_holder(fault)

    def test_flushall(self):
        self.two_daemons()
        seconds = self.no_second_holder(self.server.cli.flushall)
        self.assertGreaterEqual(seconds, QUARANTINE - 0.2)

    def test_flushall_twice_within_the_quarantine(self):
        self.two_daemons()
        self.server.cli.flushall()
        self.lease.client.listen(1)
        second = time.monotonic()
        self.no_second_holder(self.server.cli.flushall)
        self.assertGreaterEqual(time.monotonic() - second, QUARANTINE, "the quarantine begins anew")

    def test_a_restart_from_an_old_snapshot(self):
        """What it had saved knows the marker and an older fence, not the lock."""
        self.server = self.redis(save=True)
        self.redis_daemon(self.server, SHORT)
        self.server.cli.save()
        self.a, self.b = self.redis_daemon(self.server, SHORT), self.redis_daemon(self.server, SHORT)
        warm = self.client(self.a)
        for _ in range(50):
            warm.ok("LOCK warm wait=5s")
            warm.ok("UNLOCK warm")
        self.lease = Lease(self.client(self.a), "precious")
        self.waiters = [self.client(d) for d in (self.a, self.b)]
        for w in self.waiters:
            w.send("LOCK precious wait=60s")
            w.barrier()
        self.no_second_holder(self.server.restart)

    def test_a_clock_that_is_stepped_ahead(self):
        self.two_daemons(clock=True)
        self.no_second_holder(lambda: self.server.clock.step(40))

    def test_a_clock_that_is_stepped_back(self):
        self.two_daemons(clock=True)
        self.no_second_holder(lambda: self.server.clock.step(-40), lost_at_all=False)

    def test_a_clock_that_is_stepped_far_ahead_and_back_again(self):
        self.two_daemons(clock=True)
        self.no_second_holder(lambda: self.server.clock.step(86400))
        c = self.client(self.a)
        high = c.ok("LOCK after wait=20s", 21).num("fence")
        c.ok("UNLOCK after sync=yes")
        self.server.clock.step(40)
        self.assertGreater(self.fence_within(c, 15), high)

    def fence_within(self, c, seconds):
        return c.ok("LOCK after wait=%ds" % seconds, seconds + 1).num("fence")

    def test_a_deleted_key_costs_that_lock_only(self):
        server = self.redis()
        daemon = self.redis_daemon(server, SHORT)
        holder = self.client(daemon)
        for name in ("one", "two"):
            holder.ok("LOCK " + name)
        server.cli.delete("lock:one")
        lost = holder.push("LOST", "one", 3)
        self.assertEqual(lost["reason"], "evicted")
        holder.ok("CHECK two")
        self.client(daemon).ok("LOCK one wait=5s")
        holder.ok("CHECK two")
        self.assertEqual(holder.inbox, [])

    def test_a_marker_that_is_deleted_is_a_loss(self):
        self.two_daemons()
        self.no_second_holder(lambda: self.server.cli.delete("redlockd:lock:!meta"))

    def test_a_fence_that_is_deleted_is_noticed(self):
        server = self.redis()
        c = self.client(self.redis_daemon(server, SHORT))
        for _ in range(3):
            before = c.ok("LOCK f wait=10s", 11).num("fence")
            c.ok("UNLOCK f sync=yes")
            server.cli.delete("redlockd:lock:!fence")
            self.assertGreater(c.ok("LOCK f wait=10s", 11).num("fence"), before)
            c.ok("UNLOCK f sync=yes")

    def test_fences_grow_over_daemons_and_blank_restarts(self):
        server, fences = self.redis(), []
        for _ in range(3):
            daemon = self.redis_daemon(server, {"lease": "500ms", "max_lease": "500ms"})
            for fault in (server.cli.script_flush, server.restart, server.restart):
                with daemon.client() as c:
                    fences.append(c.ok("LOCK f wait=10s", 11).num("fence"))
                    c.ok("UNLOCK f sync=yes")
                fault()
            daemon.stop()
        self.assertEqual(fences, sorted(set(fences)))

    def test_strict_waits_its_quarantine_at_the_first_start_too(self):
        server = self.redis()
        begin = time.monotonic()
        daemon = self.daemon(merged(SHORT, {"store": "redis", "redis": {"nodes": [server.node]}, "guard": "strict"}))
        c = self.client(daemon)
        answer = c.err("LOCK first", "QUORUM")
        self.assertTrue(answer.text)
        granted = c.ok("LOCK first wait=20s", 21)
        self.assertGreaterEqual(granted.at - begin, QUARANTINE)
        self.assertLess(granted.at - begin, QUARANTINE + 3)


class Ways(FuncTest):
    """Addresses, passwords, databases, idle cuts, lost scripts."""
    COST = 25

    def works(self, daemon, times=3):
        c = self.client(daemon)
        for i in range(times):
            c.ok("LOCK works-%d wait=10s" % i)
            c.ok("UNLOCK works-%d sync=yes" % i)
        return c

    def secret(self, text):
        folder = temp_folder("redlockd-secret-")
        path = os.path.join(folder, "password")
        with open(path, "w") as out:
            out.write(text)
        os.chmod(path, 0o600)
        self.addCleanup(lambda: (os.unlink(path), os.rmdir(folder)))
        return path

    def conf(self, *nodes, **more):
        return merged(SHORT, {"store": "redis", "redis": dict({"nodes": list(nodes)}, **more)})

    def test_over_tcp(self):
        server = self.redis(tcp=True)
        self.works(self.daemon(self.conf("127.0.0.1:%d" % server.port)).joined())

    @unittest.skipUnless(knows_localhost(), "this host does not know localhost")
    def test_over_tcp_by_name(self):
        server = self.redis(tcp=True)
        self.works(self.daemon(self.conf("localhost:%d" % server.port)).joined(20))

    def test_another_set_at_the_same_generation_is_refused_and_a_higher_one_takes_over(self):
        server = self.redis()
        first = self.client(self.redis_daemon(server, merged(SHORT, {"redis": {"set": "one"}})))
        first.ok("LOCK a")
        other = self.daemon(self.conf(server.node, set="two"))
        self.client(other).err("LOCK a wait=500ms", "QUORUM")
        other.logged(r"error.*" + re.escape(server.path))
        first.ok("CHECK a")
        higher = self.client(self.daemon(self.conf(server.node, set="two", generation=2)))
        higher.send("LOCK a wait=20s")
        lost = first.push("LOST", "a")
        granted = higher.reply()
        self.assertEqual(granted.kind, "OK")
        self.assertGreater(granted.at, lost.at)

    def test_a_password(self):
        server = self.redis()
        server.cli.config_set("requirepass", 'geheim "und" lang')
        server.password = 'geheim "und" lang'
        self.works(self.daemon(self.conf(server.node, password_file=self.secret('geheim "und" lang\n'))).joined())

    def test_user_and_password(self):
        server = self.redis()
        server.cli.execute_command("ACL", "SETUSER", "locker", "on", ">pass word", "~lock:*", "~redlockd:*", "&redlockd:*", "-@all", "+ping", "+set", "+get", "+del",
                                   "+pexpire", "+pexpireat", "+pttl", "+incr", "+eval", "+evalsha", "+script|load", "+subscribe", "+publish", "+info", "+role", "+time",
                                   "+client|setname", "+client|id", "+wait", "+zadd", "+zrem", "+zrange", "+zcard", "+zscore", "+zremrangebyscore")
        server.cli.execute_command("ACL", "SETUSER", "default", "off")
        self.works(self.daemon(self.conf(server.node, user="locker", password_file=self.secret("pass word\n"))).joined())

    def test_what_the_manual_permits_a_user_is_enough(self):
        """Also for a server whose scripts are flushed."""
        with open(MANUAL, encoding="utf-8") as page:
            rules = re.search(r"^~lock:.*?(?=^\.Ed)", page.read(), re.MULTILINE | re.DOTALL).group()
        server = self.redis()
        server.cli.execute_command("ACL", "SETUSER", "locker", "on", ">pass", *rules.split())
        daemon = self.daemon(self.conf(server.node, user="locker", password_file=self.secret("pass\n"))).joined()
        self.works(daemon)
        c, waiter = self.client(daemon), self.client(daemon)
        c.ok("LOCK flushed")
        waiter.send("LOCK flushed wait=5s")
        server.cli.script_flush()
        c.ok("EXTEND flushed")
        c.ok("UNLOCK flushed keep=100ms")
        self.assertEqual(waiter.reply().kind, "OK")
        self.assertNotIn("refused", daemon.log())

    def test_a_password_of_another_user_waits_for_the_restart_with_it(self):
        server = self.redis()
        for user, password in (("before", "one"), ("later", "two")):
            server.cli.execute_command("ACL", "SETUSER", user, "on", ">" + password, "~*", "&*", "+@all")
        server.cli.execute_command("ACL", "SETUSER", "default", "off")
        path = self.secret("one\n")
        daemon = self.daemon(self.conf(server.node, user="before", password_file=path)).joined()
        c = self.client(daemon)
        c.ok("LOCK held")
        with open(path, "w") as out:
            out.write("two\n")
        daemon.config = daemon.config.replace("before", "later")
        daemon.write_config()
        daemon.send_signal(1)
        daemon.logged("key=redis.user from=before to=later effect=restart")
        server.cli.execute_command("CLIENT", "KILL", "USER", "before")
        c.ok("LOCK a wait=3s")
        c.ok("CHECK held")
        daemon.finish()
        self.works(daemon.start().joined(), 1)

    def test_a_wrong_password_is_logged_and_survived(self):
        server = self.redis()
        server.cli.config_set("requirepass", "right")
        path = self.secret("wrong-4711\n")
        daemon = self.daemon(self.conf(server.node, password_file=path))
        c = self.client(daemon)
        c.err("LOCK a", ("QUORUM", "UNAVAILABLE"))
        daemon.logged(r"WRONGPASS|auth|password")
        self.assertNotIn("4711", daemon.log(), "no secret in the log")
        with open(path, "w") as out:
            out.write("right\n")
        daemon.send_signal(1)
        c.ok("LOCK a wait=8s")

    def test_no_password_where_one_is_needed(self):
        server = self.redis()
        server.cli.config_set("requirepass", "right")
        daemon = self.daemon(self.conf(server.node))
        self.client(daemon).err("LOCK a", ("QUORUM", "UNAVAILABLE"))
        daemon.logged("NOAUTH")

    def test_an_idle_cut_harms_nobody(self):
        server = self.redis()
        server.cli.config_set("timeout", 1)
        daemon = self.redis_daemon(server, SHORT)
        c = self.works(daemon)
        c.ok("LOCK held")
        mark = daemon.log_size()
        c.listen(4.5)
        self.assertEqual(c.inbox, [], "no RISK, no LOST")
        c.ok("CHECK held")
        begin = time.monotonic()
        self.works(daemon, 20)
        self.assertLess(time.monotonic() - begin, 1.5)
        self.assertNotRegex(daemon.log(mark), r"(?i)down|lost|clos")

    def test_scripts_flushed_in_a_loop(self):
        server = self.redis()
        daemon = self.redis_daemon(server, SHORT)
        c, held = self.client(daemon), self.client(daemon)
        held.ok("LOCK held")
        for i in range(300):
            server.cli.script_flush()
            c.ok("LOCK s-%d" % (i % 7))
            server.cli.script_flush()
            c.ok("UNLOCK s-%d sync=%s" % (i % 7, "yes" if i % 2 else "no"))
        held.ok("CHECK held")
        self.assertEqual(held.inbox, [])

    def test_connections_killed_in_a_loop(self):
        server = self.redis()
        daemon = self.redis_daemon(server, merged(SHORT, {"lease": "2s"}))
        c, held = self.client(daemon), self.client(daemon)
        held.ok("LOCK held")
        for i in range(10):
            server.cli.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            c.ok("LOCK k-%d wait=5s" % i)
            c.ok("UNLOCK k-%d" % i)
            c.listen(0.25)
        held.ok("CHECK held")
        self.assertNotIn("LOST", [line.code for line in held.inbox])
        until(lambda: [k for k in server.lock_keys() if k != "lock:held"] == [], "no key stays behind", 8)

    def test_a_replica_is_not_used(self):
        master = self.redis(tcp=True)
        server = self.redis()
        server.cli.execute_command("REPLICAOF", "127.0.0.1", str(master.port))
        daemon = self.daemon(self.conf(server.node))
        self.client(daemon).err("LOCK a wait=1s", ("QUORUM", "UNAVAILABLE"))
        daemon.logged(r"replica|slave|role|READONLY")
        server.cli.execute_command("REPLICAOF", "NO", "ONE")
        self.client(daemon).ok("LOCK a wait=9s")

    def test_a_redis_that_evicts_is_not_used(self):
        server = self.redis(args=("--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru"))
        daemon = self.daemon(self.conf(server.node))
        self.client(daemon).err("LOCK a wait=1s", ("QUORUM", "UNAVAILABLE"))
        daemon.logged(r"polic|evict|noeviction")
        server.cli.config_set("maxmemory-policy", "noeviction")
        self.client(daemon).ok("LOCK a wait=9s")

    def test_a_long_script_of_somebody_else_is_sat_out(self):
        """-BUSY is a clean refusal: nothing was executed, the lease is renewed when it is over."""
        server = self.redis(args=("--busy-reply-threshold", "20"))
        daemon = self.redis_daemon(server, merged(SHORT, {"lease": "2s"}))
        c = self.client(daemon)
        c.ok("LOCK held")
        blocker = redis.Redis(unix_socket_path=server.path, socket_timeout=20)
        script = "local t = redis.call('TIME') local e = t[1] * 1000 + t[2] / 1000 + 700 repeat t = redis.call('TIME') until t[1] * 1000 + t[2] / 1000 > e return 1"
        blocker.eval(script, 0)
        blocker.close()
        c.ok("CHECK held")
        c.ok("LOCK other wait=5s")
        c.listen(1.5)
        c.ok("CHECK held")

    def test_a_redis_out_of_memory_refuses_and_recovers(self):
        server = self.redis()
        daemon = self.redis_daemon(server, SHORT)
        c = self.client(daemon)
        server.cli.config_set("maxmemory", 1)
        self.assertIn(c.ask("LOCK a wait=300ms").code, ("QUORUM", "UNAVAILABLE"))
        server.cli.config_set("maxmemory", 0)
        c.ok("LOCK a wait=9s")


if __name__ == "__main__":
    from harness import main
    main()

# SPDX-License-Identifier: BSD-2-Clause
"""How a daemon reaches one Redis: addresses, passwords, databases, and a Redis that cuts connections, loses scripts or refuses."""
import os
import re
import time
import unittest

import redis

from daemon import on_redis
from fakes import Relay
from harness import LEASE_1S, FuncTest
from process import LATE, ROOT, knows_localhost, merged, private, until

MANUAL = os.path.join(ROOT, "daemon", "redlockd.8")
NO_STORE = ("QUORUM", "UNAVAILABLE")


class AccessTest(FuncTest):

    def works(self, daemon, times=3):
        """Locks and unlocks so many times. Returns the client."""
        c = self.client(daemon)
        for i in range(times):
            c.ok("LOCK works-%d wait=10s" % i)
            c.ok("UNLOCK works-%d sync=yes" % i)
        return c

    def secret(self, text):
        """A password file."""
        path = os.path.join(self.folder("redlockd-secret-"), "password")
        with open(path, "w", opener=private) as out:
            out.write(text)
        os.chmod(path, 0o600)
        return path

    def conf(self, node, **more):
        return on_redis([node], LEASE_1S, {"redis": more})


class Access(AccessTest):
    """Addresses, passwords, users, and the set of a node."""
    COST = 10

    def test_over_tcp(self):
        server = self.redis(tcp=True)
        self.works(self.daemon(self.conf("127.0.0.1:%d" % server.port)).joined())

    @unittest.skipUnless(knows_localhost(), "this host does not resolve localhost")
    def test_over_tcp_by_name(self):
        server = self.redis(tcp=True)
        self.works(self.daemon(self.conf("localhost:%d" % server.port)).joined(20))

    def test_another_set_at_the_same_generation_is_refused_and_a_higher_one_takes_over(self):
        server = self.redis()
        first = self.client(self.redis_daemon(server, merged(LEASE_1S, {"redis": {"set": "one"}})))
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

    def test_a_user_with_the_permissions_of_the_manual(self):
        """These permissions are also enough for a server whose scripts are flushed."""
        with open(MANUAL, encoding="utf-8") as page:
            rules = re.search(r"^~lock:.*?(?=^\.Ed)", page.read(), re.MULTILINE | re.DOTALL).group()
        server = self.redis()
        server.cli.execute_command("ACL", "SETUSER", "locker", "on", ">pass word", *rules.split())
        server.cli.execute_command("ACL", "SETUSER", "default", "off")
        daemon = self.daemon(self.conf(server.node, user="locker", password_file=self.secret("pass word\n"))).joined()
        self.works(daemon)
        c, waiter = self.client(daemon), self.client(daemon)
        c.ok("LOCK flushed")
        waiter.send("LOCK flushed wait=5s")
        server.cli.script_flush()
        c.ok("EXTEND flushed")
        c.ok("UNLOCK flushed keep=100ms")
        self.assertEqual(waiter.reply().kind, "OK")
        self.assertNotIn("refused", daemon.log())

    def test_a_user_without_channels_is_told_once_and_waiters_of_two_hosts_poll(self):
        """Locks work all the same. The daemon says so again once when the user has got the permission."""
        server = self.redis()
        server.cli.execute_command("ACL", "SETUSER", "default", "resetchannels")
        one, other = (self.redis_daemon(server, LEASE_1S) for _ in range(2))
        one.logged(r"subscriber node=\S+ state=refused reason=.*NOPERM.*permit \+subscribe and &redlockd:\*, see REDIS ACCESS")
        holder, waiter = self.works(one), self.works(other)
        reason = holder.ok("LIST nodes").rows[0]
        self.assertEqual(reason["state"], "joined")
        self.assertRegex(reason["reason"], "^it refuses SUBSCRIBE: NOPERM ")
        status, out, err = self.call_redlock(one, "nodes")
        self.assertEqual(status, 0, err)
        self.assertIn("it refuses SUBSCRIBE", out)
        holder.ok("LOCK a")
        waiter.send("LOCK a wait=10s")
        waiter.listen(0.5)
        holder.ok("UNLOCK a")
        self.assertEqual(waiter.reply().kind, "OK")
        self.assertEqual(one.log().count("state=refused"), 1, one.log())
        server.cli.execute_command("ACL", "SETUSER", "default", "allchannels")
        one.logged(r"subscriber node=\S+ state=subscribed", timeout=35)
        until(lambda: "reason" not in holder.ok("LIST nodes").rows[0].fields, "nothing is refused any more", 35)
        self.assertEqual(one.log().count("subscriber"), 2, one.log())

    def test_a_new_user_and_its_password_take_effect_at_the_next_start(self):
        server = self.redis()
        for user, password in (("old", "one"), ("new", "two")):
            server.cli.execute_command("ACL", "SETUSER", user, "on", ">" + password, "~*", "&*", "+@all")
        server.cli.execute_command("ACL", "SETUSER", "default", "off")
        path = self.secret("one\n")
        daemon = self.daemon(self.conf(server.node, user="old", password_file=path)).joined()
        c = self.client(daemon)
        c.ok("LOCK held")
        with open(path, "w", opener=private) as out:
            out.write("two\n")
        daemon.config = daemon.config.replace("user: old", "user: new")
        daemon.write_config()
        daemon.send_signal(1)
        daemon.logged("key=redis.user from=old to=new effect=restart")
        server.cli.execute_command("CLIENT", "KILL", "USER", "old")
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
        c.err("LOCK a", NO_STORE)
        daemon.logged(r"WRONGPASS|auth|password")
        self.assertNotIn("4711", daemon.log(), "the log shows the password")
        with open(path, "w", opener=private) as out:
            out.write("right\n")
        daemon.send_signal(1)
        c.ok("LOCK a wait=8s")

    def test_no_password_where_one_is_needed(self):
        server = self.redis()
        server.cli.config_set("requirepass", "right")
        daemon = self.daemon(self.conf(server.node))
        self.client(daemon).err("LOCK a", NO_STORE)
        daemon.logged("NOAUTH")


class Troubles(AccessTest):
    """A Redis that closes connections, loses scripts, or refuses."""
    COST = 15

    def test_connections_that_redis_closes_when_idle_harm_nobody(self):
        server = self.redis()
        server.cli.config_set("timeout", 1)
        daemon = self.redis_daemon(server, {"lease": "6s", "redis": {"timeout": "2s"}})
        c = self.works(daemon)
        c.ok("LOCK held")
        mark = daemon.log_size()
        c.listen(4.5)
        self.assertEqual(c.inbox, [], "the holder is pushed a RISK or a LOST")
        c.ok("CHECK held")
        begin = time.monotonic()
        self.works(daemon, 20)
        self.assertLess(time.monotonic() - begin, LATE)
        self.assertNotRegex(daemon.log(mark), r"(?i)down|lost|clos")

    def test_scripts_are_flushed_in_a_loop(self):
        """Redis 8 takes up to 400 ms for SCRIPT FLUSH on a loaded machine."""
        server = self.redis()
        daemon = self.redis_daemon(server, {"lease": "4s", "max_lease": "8s", "redis": {"timeout": "1s"}})
        c, held = self.client(daemon), self.client(daemon)
        held.ok("LOCK held")
        for i in range(300):
            server.cli.script_flush()
            c.ok("LOCK s-%d" % (i % 7))
            server.cli.script_flush()
            c.ok("UNLOCK s-%d sync=%s" % (i % 7, "yes" if i % 2 else "no"))
        held.ok("CHECK held")
        self.assertEqual(held.inbox, [])

    def test_connections_are_killed_in_a_loop(self):
        server = self.redis()
        daemon = self.redis_daemon(server, merged(LEASE_1S, {"lease": "2s"}))
        c, held = self.client(daemon), self.client(daemon)
        held.ok("LOCK held")
        for i in range(10):
            server.cut_connections()
            c.ok("LOCK k-%d wait=5s" % i)
            c.ok("UNLOCK k-%d" % i)
            c.listen(0.25)
        held.ok("CHECK held")
        self.assertNotIn("LOST", [line.code for line in held.inbox])
        until(lambda: [k for k in server.lock_keys() if k != "lock:held"] == [], "no key stays behind", 8)

    def test_a_replica_is_not_used_until_it_is_a_master(self):
        master = self.redis(tcp=True)
        server = self.redis()
        server.cli.execute_command("REPLICAOF", "127.0.0.1", str(master.port))
        daemon = self.daemon(self.conf(server.node))
        self.client(daemon).err("LOCK a wait=1s", NO_STORE)
        daemon.logged(r"replica|slave|role|READONLY")
        server.cli.execute_command("REPLICAOF", "NO", "ONE")
        self.client(daemon).ok("LOCK a wait=9s")

    def test_a_redis_that_evicts_is_not_used_until_it_does_not(self):
        server = self.redis(args=("--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru"))
        daemon = self.daemon(self.conf(server.node))
        self.client(daemon).err("LOCK a wait=1s", NO_STORE)
        daemon.logged(r"polic|evict|noeviction")
        server.cli.config_set("maxmemory-policy", "noeviction")
        self.client(daemon).ok("LOCK a wait=9s")

    def test_a_long_script_of_another_client_is_waited_for(self):
        """-BUSY means that Redis has executed nothing. The lease is renewed when the script ends."""
        server = self.redis(args=("--busy-reply-threshold", "20"))
        daemon = self.redis_daemon(server, merged(LEASE_1S, {"lease": "2s"}))
        c = self.client(daemon)
        c.ok("LOCK held")
        blocker = redis.Redis(unix_socket_path=server.path, socket_timeout=20)
        script = ("local t = redis.call('TIME') local e = t[1] * 1000 + t[2] / 1000 + 700 "
                  "repeat t = redis.call('TIME') until t[1] * 1000 + t[2] / 1000 > e return 1")
        blocker.eval(script, 0)
        blocker.close()
        c.ok("CHECK held")
        c.ok("LOCK other wait=5s")
        c.listen(1.5)
        c.ok("CHECK held")

    def test_a_redis_out_of_memory_keeps_what_is_held(self):
        server = self.redis()
        c = self.client(self.redis_daemon(server, LEASE_1S))
        c.ok("LOCK held wait=9s")
        server.cli.config_set("maxmemory", 1)
        c.listen(2.5)
        c.ok("CHECK held")

    def test_a_redis_out_of_memory_refuses_and_recovers(self):
        server = self.redis()
        daemon = self.redis_daemon(server, LEASE_1S)
        c = self.client(daemon)
        server.cli.config_set("maxmemory", 1)
        self.assertIn(c.ask("LOCK a wait=300ms").code, NO_STORE)
        server.cli.config_set("maxmemory", 0)
        c.ok("LOCK a wait=9s")


class WithoutSubscribe(Relay):
    """Closes each connection that asks for messages, as a proxy may."""
    closes = True

    def took(self, sock, data):
        if self.closes and b"SUBSCRIBE" in data:
            self.drop(sock)
        else:
            super().took(sock, data)


class Subscriptions(AccessTest):
    """Locks work without messages, and each place says why they do not come."""
    COST = 100

    looker = None

    def reason(self, daemon):
        self.looker = self.looker or self.client(daemon)
        return self.looker.ok("LIST nodes").rows[0].fields.get("reason", "")

    def subscription(self, server, former=None):
        """The id of a subscribed connection that is another one than the former."""
        return until(lambda: next((row["id"] for row in server.cli.client_list("pubsub") if row["id"] != former), None), "it is subscribed")

    def test_a_subscription_that_is_closed_each_time_is_told_once(self):
        relay = WithoutSubscribe(os.path.join(self.folder(), "sock"), self.redis().path).start()
        self.addCleanup(relay.stop)
        daemon = self.redis_daemon("unix:" + relay.path, LEASE_1S)
        until(lambda: "SUBSCRIBE: closed by the server" in self.reason(daemon), "LIST nodes says why no message comes")
        self.works(daemon)
        daemon.logged(r"warn subscriber node=\S+ state=refused reason=.*SUBSCRIBE: closed")
        accepted = relay.accepted
        until(lambda: relay.accepted > accepted + 2, "it is tried again")
        self.assertEqual(daemon.log().count("subscriber"), 1)
        relay.closes = False
        until(lambda: not self.reason(daemon), "all is well", 35)
        daemon.logged(r"notice subscriber node=\S+ state=subscribed")

    def test_subscriptions_that_end_again_and_again_are_told(self):
        server = self.redis()
        daemon = self.redis_daemon(server, LEASE_1S)
        last = None
        for _ in range(3):
            last = self.subscription(server, last)
            self.assertEqual(self.reason(daemon), "", "two ends are no habit")
            server.cut_connections("pubsub")
        until(lambda: self.reason(daemon) == "its subscription ends again and again: closed by the server", "LIST nodes tells it")
        self.works(daemon)
        self.assertEqual(self.client(daemon).ok("LIST nodes").rows[0].fields["cause"], "breaks")
        status, out, _ = self.call_redlock(daemon, "doctor")
        self.assertEqual(status, 1)
        self.assertRegex(out, "its subscription ends again and again: closed by the server; fix: see what ends its connections")
        last = self.subscription(server, last)
        server.cut_connections("pubsub")
        self.subscription(server, last)
        self.assertNotEqual(self.reason(daemon), "", "it may end again")
        self.assertEqual(daemon.log().count("subscriber"), 1)
        until(lambda: not self.reason(daemon), "one has lasted for a minute", 90)
        daemon.logged(r"notice subscriber node=\S+ state=subscribed")

    def test_messages_that_do_not_arrive_are_told(self):
        """Between stands what answers SUBSCRIBE, and passes no message on."""
        server = self.redis()
        relay = Relay(os.path.join(self.folder(), "sock"), server.path).start()
        self.addCleanup(relay.stop)
        unheard = "it carries out SUBSCRIBE, but what it publishes does not arrive"
        relay.instead = lambda data: re.sub(rb"\*3\r\n\$7\r\nmessage\r\n\$\d+\r\n.*\r\n\$\d+\r\n.*\r\n", b"", data)
        daemon = self.redis_daemon("unix:" + relay.path, LEASE_1S)
        until(lambda: self.reason(daemon) == unheard, "LIST nodes tells it", 30)
        self.assertEqual(self.looker.ok("LIST nodes").rows[0].fields["cause"], "proxy")
        self.assertIn("name the servers themselves", self.call_redlock(daemon, "doctor")[1])
        self.works(daemon)
        time.sleep(6)  # that SUBSCRIBE is answered again changes nothing
        self.assertEqual(daemon.log().count(" subscriber "), 1)
        server.cli.execute_command("ACL", "SETUSER", "default", "-subscribe")
        until(lambda: "NOPERM" in self.reason(daemon), "LIST nodes tells what came on top of it", 30)
        server.cli.execute_command("ACL", "SETUSER", "default", "+subscribe")
        until(lambda: self.reason(daemon) == unheard, "LIST nodes tells what is left", 30)
        relay.instead = None
        until(lambda: not self.reason(daemon), "all is well", 30)
        daemon.logged(r"notice subscriber node=\S+ state=subscribed")

    def test_a_user_without_ping_stays_subscribed(self):
        server = self.redis()
        server.cli.execute_command("ACL", "SETUSER", "default", "-ping")
        daemon = self.redis_daemon(server, LEASE_1S)
        first = self.subscription(server)
        until(lambda: server.calls()["subscribe"] == 3, "it asks again and again whether it may subscribe", 35)
        self.assertEqual(self.subscription(server), first)
        self.assertNotIn("subscriber", daemon.log())

# SPDX-License-Identifier: BSD-2-Clause
"""What looks healthy and is not: servers that answer, and refuse what locks need. And doctor names the true cause of each refusal."""
import itertools
import json
import os
import re
import resource
import signal
import socket
import time

from authority import Authority
from daemon import on_redis
from fakes import Relay, Server
from harness import LEASE_1S, FuncTest
from process import REDLOCK, call, free_port, merged, until
from sentinels import Sentinel
from web import free_web


class HealthTest(FuncTest):
    def row(self, daemon, node=0):
        status, out, _ = self.call_redlock(daemon, "--json", "nodes")
        self.assertEqual(status, 0)
        return json.loads(out.splitlines()[node])

    def waits(self, condition, what, seen):
        try:
            until(condition, what)
        except AssertionError as error:
            raise AssertionError("%s; seen: %s" % (error, seen)) from error

    def doctor(self, daemon):
        status, out, err = call(REDLOCK, "--addr", daemon.addr, "doctor", "--json")
        self.assertEqual(err, "")
        rows = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(status, int(any(row["status"] == "fail" for row in rows)), rows)
        return rows

    def becomes(self, daemon, state, cause, node=0):
        seen = [None]

        def there():
            seen[0] = self.row(daemon, node)
            return (seen[0]["state"], seen[0].get("cause")) == (state, cause)
        self.waits(there, "LIST nodes has %s %s" % (state, cause), seen)

    def advises(self, daemon, check, text, fix):
        found = []

        def there():
            found[:] = self.doctor(daemon)
            return any(row["check"] == check and row["status"] != "ok" and text in row["text"] and fix in row["fix"] for row in found)
        self.waits(there, "doctor says %s, %s, %s" % (check, text, fix), found)


def set_to(name, value):
    return lambda server: server.cli.config_set(name, value)


def acl(*rules):
    return lambda server: server.cli.execute_command("ACL", "SETUSER", "default", *rules)


# title: (make it refuse, make it well, cause, what doctor says of it, the remedy)
REFUSALS = {
    "oom": (set_to("maxmemory", "100kb"), set_to("maxmemory", "0"), "memory", "SET: OOM", "raise maxmemory"),
    "noreplicas": (set_to("min-replicas-to-write", "1"), set_to("min-replicas-to-write", "0"), "replicas", "NOREPLICAS", "min-replicas-to-write"),
    "noperm writes": (acl("-@write"), acl("+@write"), "permission", "SET: ", "--print-acl"),
    "noperm del": (acl("-del"), acl("+del"), "permission", "DEL: ", "--print-acl"),
    "noperm pexpire": (acl("-pexpire"), acl("+pexpire"), "permission", "PEXPIRE: ", "--print-acl"),
    "noperm zadd": (acl("-zadd"), acl("+zadd"), "permission", "ZADD: ", "--print-acl"),
    "noperm hset": (acl("-hset"), acl("+hset"), "permission", "HSET: ", "--print-acl"),
    "noperm hgetall": (acl("-hgetall"), acl("+hgetall"), "permission", "HGETALL: ", "--print-acl"),
    "noperm lock keys": (acl("resetkeys", "~redlockd:*"), acl("allkeys"), "permission", "SET: ", "--print-acl"),
}


class RefusesWhatLocksNeed(HealthTest):
    """At run time, at one of one and at one and two of three servers: each place says so, and that it is over."""
    COST = 40

    def ready(self, web):
        return web.ask("/readyz").status == 200

    def metric(self, web, name):
        return [line for line in web.ask("/metrics").body.decode().splitlines() if line.startswith("redlockd_" + name)]

    def case(self, title, bad, servers, probes=2.5):
        """probes: seconds for some probes, which may not tell it again."""
        spoil, mend, cause, text, fix = REFUSALS[title]
        stores = [self.redis() for _ in range(servers)]
        web, serves = free_web(), servers - bad >= servers // 2 + 1
        daemon = self.daemon(on_redis(stores, LEASE_1S, {"listen": {"http": web.listen}})).joined()
        self.assertTrue(self.ready(web))
        for store in stores[:bad]:
            spoil(store)
        for i in range(bad):
            self.becomes(daemon, "refused", cause, i)
        self.assertIn(text, self.row(daemon)["reason"])
        self.advises(daemon, cause, text, fix)
        self.assertEqual(self.ready(web), serves)
        self.assertEqual(self.metric(web, "nodes_joined"), ["redlockd_nodes_joined %d" % (servers - bad)])
        self.assertEqual(self.metric(web, "quorum_available"), ["redlockd_quorum_available %d" % serves])
        self.assertEqual(sum(line.endswith(" 0") for line in self.metric(web, "redis_up")), bad)
        status, out, _ = self.call_redlock(daemon, "ping")
        self.assertEqual((status, "redis %d/%d" % (servers - bad, servers) in out), (0 if serves else 1, True), out)
        daemon.logged("error node node=.* state=refused cause=%s reason=.*%s" % (cause, text))
        if serves:
            client = self.client(daemon)
            client.ok("LOCK a wait=5s")
            client.ok("UNLOCK a")
        else:
            for request in ("LOCK a", "LOCK a mode=shared", "LOCKALL a b", "ACQUIRE a limit=2"):
                self.assertIn(text, self.client(daemon).err(request, "QUORUM").text, "no lock where ping says: no quorum")
        time.sleep(probes)
        self.assertEqual(daemon.log().count("state=refused cause="), bad, "one line a change")
        for store in stores[:bad]:
            mend(store)
        for i in range(bad):
            self.becomes(daemon, "joined", None, i)
        self.assertTrue(self.ready(web))
        client = self.client(daemon)
        client.ok("LOCK b wait=5s")
        client.ok("UNLOCK b sync=yes")
        daemon.stop()
        for store in stores:
            store.stop()

    def test_one_of_one(self):
        causes = set()
        for title, (*_, cause, _, _) in REFUSALS.items():
            with self.subTest(title):
                self.case(title, 1, 1, 0 if cause in causes else 2.5)
            causes.add(cause)

    def test_one_of_three(self):
        for title in ("oom", "noreplicas", "noperm del"):
            with self.subTest(title):
                self.case(title, 1, 3)

    def test_two_of_three(self):
        for title in ("oom", "noperm writes"):
            with self.subTest(title):
                self.case(title, 2, 3)

    def test_without_publish_a_store_votes_and_says_so(self):
        store = self.redis()
        daemon = self.daemon(on_redis([store], LEASE_1S)).joined()
        store.cli.execute_command("ACL", "SETUSER", "default", "-publish")
        self.becomes(daemon, "joined", "permission")
        self.assertIn("PUBLISH: ", self.row(daemon)["reason"])
        self.advises(daemon, "permission", "PUBLISH: ", "--print-acl")
        daemon.logged("warn node node=.* state=joined cause=permission reason=.*PUBLISH: ")
        self.client(daemon).ok("LOCK a")
        store.cli.execute_command("ACL", "SETUSER", "default", "+publish")
        self.becomes(daemon, "joined", None)

    def test_without_subscribe_a_store_votes_and_says_so_while_the_subscription_lasts(self):
        """Its messages come until the connection ends, and none after that."""
        store, web = self.redis(), free_web()
        daemon = self.daemon(on_redis([store], LEASE_1S, {"listen": {"http": web.listen}})).joined()
        until(lambda: store.calls().get("subscribe"), "it is subscribed")
        store.cli.execute_command("ACL", "SETUSER", "default", "-subscribe")
        self.becomes(daemon, "joined", "permission")
        self.assertRegex(self.row(daemon)["reason"], "^it refuses SUBSCRIBE: NOPERM ")
        self.advises(daemon, "permission", "it refuses SUBSCRIBE: NOPERM", "--print-acl")
        self.assertEqual(sum('cause="permission"} 1' in line for line in self.metric(web, "redis_trouble")), 1)
        self.assertIn("permission", web.ask("/readyz").body.decode())
        self.assertEqual(len(store.cli.client_list("pubsub")), 1, "what there is stays")
        store.cli.execute_command("ACL", "SETUSER", "default", "+subscribe")
        self.becomes(daemon, "joined", None)
        self.assertEqual(daemon.log().count(" subscriber "), 2, "refused, subscribed")

    def test_without_what_limits_and_jobs_need_a_store_votes_and_says_so(self):
        store = self.redis()
        lacks = "zcard zcount zrangebyscore zrank zscore hget hlen publish".split()
        store.cli.execute_command("ACL", "SETUSER", "default", *("-" + command for command in lacks))
        daemon = self.daemon(on_redis([store], LEASE_1S)).joined()
        self.becomes(daemon, "joined", "permission")
        self.advises(daemon, "permission", "ZCARD: ", "--print-acl")
        other = self.daemon(on_redis([store], LEASE_1S)).joined()
        a, b = self.client(daemon), self.client(other)
        a.ok("LOCK a")
        a.ok("LOCKALL b c")
        a.ok("LOCK d mode=shared")
        a.ok("ACQUIRE e limit=1")
        for request in ("LOCK a", "LOCK d", "ACQUIRE e limit=1"):
            b.busy(request)
        b.ok("LOCK d mode=shared")
        b.expect("LOCK b wait=1s", "TIMEOUT")
        b.begin("LOCK a wait=10s")
        until(lambda: "waiter" in self.client(other).roles("a"), "it waits")
        a.ok("UNLOCK a")
        self.assertEqual(b.reply().kind, "OK")

    def test_without_the_keys_of_a_kind_a_store_votes_and_says_so(self):
        store = self.redis()
        kinds = "q s r j jd jl jx jw".split()
        daemon = self.daemon(on_redis([store], LEASE_1S)).joined()
        for lacks in kinds:
            with self.subTest(lacks):
                keys = ["~redlockd:lock:%s:*" % kind for kind in kinds if kind != lacks]
                store.cli.execute_command("ACL", "SETUSER", "default", "resetkeys", "~lock:*", "~redlockd:lock:!*", *keys)
                self.becomes(daemon, "joined", "permission")
                self.assertIn("EXISTS: ", self.row(daemon)["reason"])
                self.advises(daemon, "permission", "EXISTS: ", "--print-acl")
                self.client(daemon).ok("LOCK a%s" % lacks)
                store.cli.execute_command("ACL", "SETUSER", "default", "allkeys")
                self.becomes(daemon, "joined", None)

    def test_what_is_refused_before_the_first_join_is_told_of_a_joined_store(self):
        for rule, said in (("-publish", "PUBLISH: "), ("resetchannels", "PUBLISH: .*channel")):
            with self.subTest(rule):
                store = self.redis()
                store.cli.execute_command("ACL", "SETUSER", "default", rule)
                daemon = self.daemon(on_redis([store], LEASE_1S)).joined()
                daemon.logged("warn node node=.* state=joined cause=permission reason=.*" + said)
                self.assertNotIn("state=probing", daemon.log())
                self.assertEqual(daemon.log().count("cause=permission"), 1)

    def test_a_server_that_refuses_in_its_quarantine(self):
        store = self.redis()
        daemon = self.daemon(on_redis([store], LEASE_1S, {"guard": "strict", "max_lease": "60s"}))
        self.becomes(daemon, "quarantine", None)
        store.cli.config_set("maxmemory", "100kb")
        self.becomes(daemon, "refused", "memory")
        daemon.logged("error node node=.* state=refused cause=memory reason=.*OOM")
        self.advises(daemon, "memory", "SET: OOM", "raise maxmemory")
        reply = self.client(daemon).err("LOCK a", "QUORUM")
        self.assertIn("OOM", reply.text)
        self.assertNotIn("retry_ms", reply.fields)
        store.cli.config_set("maxmemory", "0")
        self.becomes(daemon, "quarantine", None)

    def test_the_error_says_why_stores_are_down(self):
        nodes = ["127.0.0.1:%d" % free_port(), "no-such-host.invalid:6379"]
        server = self.redis()
        server.cli.config_set("requirepass", "right")
        daemon = self.daemon(merged({"store": "redis", "redis": {"nodes": nodes + [server.node]}}, LEASE_1S))
        seen = [None]

        def there():
            seen[0] = self.client(daemon).err("LOCK a", "QUORUM").text
            return all(text in seen[0] for text in ("3 down", "Connection refused", "no-such-host", "NOAUTH"))
        self.waits(there, "LOCK says why", seen)

    def test_a_daemon_that_calls_a_server_otherwise(self):
        store, web = self.redis(tcp=True), free_web()
        called = "127.0.0.1:%d" % store.port
        first = self.daemon(on_redis([store], LEASE_1S, {"redis": {"set": "s"}})).joined()
        self.client(first).ok("RATE r limit=2 per=1s")
        other = self.daemon(on_redis([called], LEASE_1S, {"redis": {"set": "s"}, "listen": {"http": web.listen}})).joined()
        self.becomes(other, "joined", "misnamed")
        self.advises(other, "misnamed", store.node, "as the other daemons do")
        self.assertEqual(len(self.metric(web, 'redis_trouble{server="%s",cause="misnamed"} 1' % called)), 1)
        other.logged("error node node=.* state=joined cause=misnamed reason=.*" + store.node)
        status, out, _ = self.call_redlock(other, "ping")
        self.assertEqual(status, 0)
        self.assertIn("misnamed", out)
        self.assertIn("misnamed", web.ask("/readyz").body.decode())
        self.assertEqual(json.loads(web.ask("/api/v1/snapshot").body)["stores"][0]["cause"], "misnamed")
        self.becomes(first, "joined", None)
        first.stop()
        store.cli.delete("redlockd:lock:!home")
        self.becomes(other, "joined", None)

    def test_a_store_that_waits_for_the_others_has_a_reason_and_no_cause(self):
        """LIST nodes has the causes that the figures have."""
        web = free_web()
        daemon = self.daemon(on_redis([self.redis(), "127.0.0.1:1", "127.0.0.1:2"], LEASE_1S, {"listen": {"http": web.listen}}))
        until(lambda: "once enough of the others" in self.row(daemon).get("reason", ""), "it waits")
        causes = [self.row(daemon, node).get("cause") for node in range(3)]
        self.assertEqual(causes, [None, "unreached", "unreached"])
        self.assertEqual([line.split('"')[3] for line in self.metric(web, "redis_trouble")], causes[1:])

    def test_ping_while_the_only_server_hangs(self):
        store = self.redis()
        daemon = self.daemon(on_redis([store], LEASE_1S, {"redis": {"timeout": "2s"}})).joined()
        self.assertEqual(self.call_redlock(daemon, "ping")[0], 0)
        store.freeze()
        self.becomes(daemon, "slow", "slow")
        self.assertIn("redis.timeout", self.row(daemon)["reason"])
        status, out, _ = self.call_redlock(daemon, "ping")
        self.assertEqual((status, out.split("  ")[0], "redis 0/1" in out), (1, "no quorum", True), out)
        store.thaw()
        until(lambda: self.call_redlock(daemon, "ping")[0] == 0, "ping says ok again")

    def test_what_is_held_is_renewed_and_ended_by_a_full_server(self):
        store = self.redis()
        daemon = self.daemon(on_redis([store], LEASE_1S)).joined()
        holder, other = self.client(daemon), self.client(daemon)
        for request in ("LOCK a", "LOCK b mode=shared", "ACQUIRE s limit=2", "DEFER q x", "DEFER q y"):
            holder.ok(request)
        other.ok("LOCK b mode=shared")
        job = holder.ok("TAKE q")
        store.cli.config_set("maxmemory", "100kb")
        self.becomes(daemon, "refused", "memory")
        time.sleep(2.2)  # two leases
        for name in "abs":
            holder.ok("CHECK " + name)
        other.ok("CHECK b")
        reply = self.client(daemon).err("LOCK c", "QUORUM")
        self.assertIn("OOM", reply.text)
        holder.ok("DONE " + job["job"])
        holder.ok("DONE " + holder.ok("TAKE q")["job"])  # jobs may be what fills it
        holder.ok("UNLOCK a sync=yes")
        holder.ok("UNLOCK b sync=yes")
        holder.ok("RELEASE s")
        other.ok("CHECK b")
        self.assertNotIn(" lost ", daemon.log())

    def test_a_server_that_cannot_save(self):
        store = self.redis(args=("--save", "3600 1", "--stop-writes-on-bgsave-error", "yes"))
        daemon = self.daemon(on_redis([store], LEASE_1S)).joined()
        os.mkdir(os.path.join(store.folder, "dump.rdb"))  # a file of that name cannot be written
        store.cli.set("x", "y")
        store.cli.bgsave()
        self.becomes(daemon, "refused", "disk")
        self.advises(daemon, "disk", "MISCONF", "server's log")
        os.rmdir(os.path.join(store.folder, "dump.rdb"))
        store.cli.bgsave()
        self.becomes(daemon, "joined", None)

    def test_keys_of_the_daemon_that_another_program_wrote(self):
        def fence(cli):
            cli.set("redlockd:lock:!fence", "9007199254740991")  # no fence could follow it

        def text(cli):
            cli.set("redlockd:lock:!fence", "junk")

        def marker(cli):
            cli.delete("redlockd:lock:!meta")
            cli.rpush("redlockd:lock:!meta", "junk")
        for write, says in ((fence, "the fence key holds no number"), (text, "the fence key holds no number"), (marker, "WRONGTYPE")):
            with self.subTest(write.__name__):
                store = self.redis()
                daemon = self.daemon(on_redis([store], LEASE_1S)).joined()
                write(store.cli)
                self.becomes(daemon, "refused", "key")
                self.advises(daemon, "key", says, "another program wrote")
                daemon.logged("error node node=.* state=refused was=joined cause=[a-z]* reason=.*%s" % says)
                self.assertIn(says, self.client(daemon).err("LOCK b", "QUORUM").text)
                store.cli.delete("redlockd:lock:!fence", "redlockd:lock:!meta")
                self.becomes(daemon, "quarantine", None)

    def test_a_key_of_another_type_at_a_queue(self):
        for key in ("j:q", "jw:q", "!queues", "!stored", "!deferred"):
            for request in ("DEFER q x", "TAKE q", "TAKE q wait=300ms"):
                with self.subTest(request, key=key):
                    store = self.redis()
                    daemon = self.daemon(on_redis([store], LEASE_1S)).joined()
                    store.cli.rpush("redlockd:lock:" + key, "junk")
                    began = time.monotonic()
                    reply = self.client(daemon).err(request, "UNAVAILABLE")
                    self.assertRegex(reply.text, "WRONGTYPE .*: redlockd:lock:%s(,|$)" % key)
                    self.assertNotIn("did not answer", reply.text)
                    self.assertLess(time.monotonic() - began, 0.9, "to ask again changes nothing")
                    self.assertEqual(store.cli.keys("redlockd:lock:jd:*"), [], "nothing was stored")
                    self.becomes(daemon, "joined", "key")
                    self.advises(daemon, "key", "WRONGTYPE", "another program wrote")
                    self.client(daemon).err(request, "UNAVAILABLE")
                    daemon.logged("warn node node=.* state=joined cause=key reason=.*WRONGTYPE")
                    self.assertEqual(daemon.log().count("cause=key"), 1, "one line, not one a call")
                    daemon.stop()
                    store.stop()

    def test_each_key_of_another_type_is_named_once(self):
        store = self.redis()
        daemon = self.daemon(on_redis([store], LEASE_1S)).joined()
        for key, request in (("r:l", "RATE l limit=2 per=60s"), ("!rates", "RATE l limit=2 per=60s"), ("!dead", "TAKE q"), ("!home", "RATE m limit=2 per=60s")):
            with self.subTest(key):
                store.cli.delete("redlockd:lock:" + key)
                store.cli.rpush("redlockd:lock:" + key, "junk")
                for _ in range(2):
                    self.client(daemon).err(request, "UNAVAILABLE")
                self.advises(daemon, "key", "redlockd:lock:" + key, "another program wrote")
                daemon.logged("warn node node=.* state=joined cause=key reason=.*redlockd:lock:" + key)
                store.cli.delete("redlockd:lock:" + key)
                self.assertIn(self.client(daemon).ask(request).kind, ("OK", "BUSY"))
        self.assertEqual(daemon.log().count("cause=key"), 4)

    def test_a_key_of_another_type_at_a_lock(self):
        for requests in (("LOCK a",), ("ACQUIRE a limit=2",), ("DEFER q x lock=a", "TAKE q"), ("DEFER q x lock=a", "TAKE q wait=300ms")):
            with self.subTest(requests[-1]):
                store = self.redis()
                daemon = self.daemon(on_redis([store], LEASE_1S)).joined()
                store.cli.rpush("lock:a", "junk")
                client = self.client(daemon)
                for request in requests[:-1]:
                    client.ok(request)
                for _ in range(2):
                    self.assertIn("another type", client.err(requests[-1], "KIND").text)
                self.becomes(daemon, "joined", "key")
                self.advises(daemon, "key", "another type", "another program wrote")
                daemon.logged("warn node node=.* state=joined cause=key name=a reason=.*another type")
                self.assertEqual(daemon.log().count("cause=key"), 1, "one line, not one a call")
                daemon.stop()
                store.stop()

    def test_a_key_of_another_type_at_a_slot(self):
        store = self.redis()
        daemon = self.daemon(on_redis([store], LEASE_1S)).joined()
        for i in range(2):
            store.cli.rpush("redlockd:lock:s:a#%d" % i, "junk")
        self.client(daemon).busy("ACQUIRE a limit=2")
        self.becomes(daemon, "joined", "key")
        self.advises(daemon, "key", "another type under the name of the slot a#", "another program wrote")
        daemon.logged("warn node node=.* state=joined cause=key name=a#")

    def test_a_key_of_another_type_at_the_queue_of_a_lock(self):
        store = self.redis()
        one, two = (self.daemon(on_redis([store], LEASE_1S)).joined() for _ in range(2))
        store.cli.rpush("redlockd:lock:q:a", "junk")
        holder, waiter = self.client(one), self.client(two)
        holder.ok("LOCK a")
        for _ in range(2):
            self.assertEqual(waiter.ask("LOCK a wait=300ms").kind, "TIMEOUT")
        self.becomes(two, "joined", "key")
        self.advises(two, "key", "no place in the queue of the lock a: WRONGTYPE", "another program wrote")
        two.logged("warn node node=.* state=joined cause=key name=a reason=.*WRONGTYPE")
        self.assertEqual(two.log().count("cause=key"), 1, "one line, not one a call")
        waiter.begin("@w LOCK a wait=60s")
        store.cli.delete("redlockd:lock:q:a")
        self.becomes(two, "joined", None)
        holder.ok("UNLOCK a")
        self.assertEqual(waiter.reply("@w").kind, "OK")

    def test_a_job_whose_lock_is_of_another_type_is_passed_over(self):
        store = self.redis()
        daemon = self.daemon(on_redis([store], LEASE_1S)).joined()
        store.cli.rpush("lock:a", "junk")
        client = self.client(daemon)
        client.ok("DEFER q x lock=a id=first")
        client.ok("DEFER q x id=second")
        self.assertEqual(client.ok("TAKE q")["job"], "second")
        client.err("TAKE q", "KIND")
        store.cli.delete("lock:a")
        self.assertEqual(client.ok("TAKE q wait=5s")["job"], "first")

    def test_homes_that_refuse(self):
        store = self.redis()
        daemon = self.daemon(on_redis([store], LEASE_1S)).joined()
        store.cli.config_set("maxmemory", "100kb")
        self.becomes(daemon, "refused", "memory")
        client = self.client(daemon)
        for request in ("DEFER q x", "RATE r limit=2 per=1s"):
            self.assertIn("OOM", client.err(request, "UNAVAILABLE").text, request)


class Proxy(Server):
    """Knows no command that a proxy would have to keep a state for."""

    def took(self, sock, data):
        for _ in range(data.count(b"*")):
            sock.sendall(b"-ERR unknown command\r\n")


class Balancer(Relay):
    """Stands before several servers, and leads each connection to the next of them."""

    def __init__(self, path, *servers):
        super().__init__(path, servers[0])
        self.next = itertools.cycle(servers)

    def opened(self, sock):
        self.to = next(self.next)
        super().opened(sock)


class Closing(Server):
    def took(self, sock, data):
        self.drop(sock)


class Causes(HealthTest):
    """For each way in which a server can refuse there is a cause and its advice."""
    COST = 30

    def on(self, node, redis=None, **tree):
        return self.daemon(merged({"store": "redis", "redis": merged({"nodes": [node]}, redis or {})}, LEASE_1S, tree))

    def secret(self, text="secret"):
        path = os.path.join(self.folder(), "password")
        with open(path, "w") as out:
            out.write(text + "\n")
        os.chmod(path, 0o600)
        return path

    def case(self, daemon, cause, check, fix, text=""):
        seen = [None]

        def there():
            seen[0] = self.row(daemon)
            return seen[0].get("cause") == cause
        self.waits(there, "cause=%s" % cause, seen)
        self.advises(daemon, check, text, fix)

    def test_a_password_where_none_is_needed(self):
        self.case(self.on(self.redis().node, {"password_file": self.secret()}), "no-password", "password", "leave out redis.password_file")

    def test_a_password_that_is_needed(self):
        self.case(self.on(self.locked().node), "no-auth", "password", "set redis.password_file")

    def locked(self):
        server = self.redis()
        server.cli.config_set("requirepass", "right")
        return server

    def test_a_wrong_password_and_a_wrong_user(self):
        self.case(self.on(self.locked().node, {"password_file": self.secret("wrong")}), "password", "password", "correct redis.user")
        self.case(self.on(self.redis().node, {"user": "nobody", "password_file": self.secret()}), "password", "password", "correct redis.user")

    def test_a_database_that_is_not_there(self):
        self.case(self.on(self.redis(args=("--databases", "1")).node, {"database": 5}), "database", "database", "lower redis.database")

    def test_no_more_clients(self):
        server = self.redis()
        server.cli.config_set("maxclients", "1")
        self.case(self.on(server.node), "clients", "clients", "raise maxclients")

    def test_no_more_clients_while_connected(self):
        server = self.redis()
        daemon = self.on(server.node, guard="trust-first-start").joined()
        server.cli.config_set("maxclients", "2")
        server.cut_connections("pubsub")  # its place is not given again
        self.becomes(daemon, "joined", "clients")
        self.advises(daemon, "clients", "it refuses SUBSCRIBE", "raise maxclients")
        server.cli.config_set("maxclients", "100")
        self.becomes(daemon, "joined", None)

    def test_no_descriptor_for_messages(self):
        server = self.redis()
        daemon = self.on(server.node).joined()
        client, sound = self.client(daemon), resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
        client.ok("PING")  # it has its descriptor
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (3, sound[1]))
        server.cut_connections("pubsub")
        until(lambda: client.ok("LIST nodes").rows[0].fields.get("cause") == "descriptors", "LIST nodes tells what lacks")
        client.ok("LOCK a")
        daemon.logged("warn subscriber node=.* state=refused reason=.*no file descriptor left")
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, sound)
        self.becomes(daemon, "joined", None)
        daemon.logged("notice subscriber node=.* state=subscribed")

    def test_renamed_commands(self):
        for command in ("SCRIPT", "EVAL", "EVALSHA", "ZADD", "DEL", "INFO"):
            with self.subTest(command):
                self.case(self.on(self.redis(args=("--rename-command", command, "")).node), "command", "command", "rename-command")

    def test_renamed_commands_without_which_no_probe_and_no_join_is_possible(self):
        for command in ("TIME", "GET", "SET"):
            with self.subTest(command):
                self.case(self.on(self.redis(args=("--rename-command", command, "")).node), "command", "command", "rename-command", ": " + command)

    def test_paused_writes(self):
        server = self.redis()
        daemon = self.on(server.node, guard="trust-first-start").joined()
        server.cli.execute_command("CLIENT", "PAUSE", "60000", "WRITE")
        self.advises(daemon, "slow", "has not answered", "CLIENT UNPAUSE")
        self.advises(daemon, "store", "", "CLIENT UNPAUSE")
        self.assertTrue(server.cli.ping())
        server.cli.execute_command("CLIENT", "UNPAUSE")
        self.becomes(daemon, "joined", None)

    def test_a_clock_that_runs_slow(self):
        web = free_web()
        server = self.redis(clock=True)
        daemon = self.on(server.node, guard="trust-first-start", listen={"http": web.listen}).joined()
        server.clock.set_rate(-300000)
        self.becomes(daemon, "joined", "clock")
        self.advises(daemon, "clocks", "behind this host's", "NTP")
        daemon.logged("warn node node=.* state=joined cause=clock reason=\"its clock is 0.[0-9] s behind this host's\"")
        self.assertIn(" joined clock", web.ask("/readyz").body.decode())
        self.assertRegex(web.ask("/metrics").body.decode(), 'cause="clock"')
        self.assertIn("clock", self.call_redlock(daemon, "ping")[1])

    def test_the_port_of_a_sentinel(self):
        master = self.redis(tcp=True)
        sentinel = Sentinel("m", "127.0.0.1", master.port, 1, 1000).start()
        self.addCleanup(sentinel.stop)
        until(lambda: sentinel.ask("masters") is not None, "the sentinel answers")
        self.case(self.on("127.0.0.1:%d" % sentinel.port), "sentinel-port", "sentinel", "addresses")
        self.case(self.on("127.0.0.1:%d" % sentinel.port, {"database": 2}), "sentinel-port", "sentinel", "addresses")

    def test_a_cluster(self):
        server = self.redis(args=("--cluster-enabled", "yes", "--cluster-port", str(free_port())))
        self.case(self.on(server.node), "cluster", "cluster", "not in cluster mode")
        self.case(self.on(server.node, {"database": 2}), "cluster", "cluster", "not in cluster mode")

    def test_a_replica(self):
        master, server = self.redis(tcp=True), self.redis()
        server.cli.execute_command("REPLICAOF", "127.0.0.1", str(master.port))
        self.case(self.on(server.node), "replica", "replica", "name its master")

    def test_a_server_that_loads(self):
        server = self.redis(save=True, args=("--key-load-delay", "5000", "--loading-process-events-interval-bytes", "1024"))
        server.cli.execute_command("DEBUG", "POPULATE", "1000")
        server.cli.save()
        server.patience = 0
        with self.assertRaises(AssertionError):  # it does not answer PING yet
            server.restart()
        self.case(self.on(server.node), "loading", "loading", "wait until the server has loaded")

    def test_a_script_that_runs_for_too_long(self):
        server = self.redis(args=("--busy-reply-threshold", "10"))
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(server.path)
        self.addCleanup(sock.close)
        daemon = self.on(server.node, guard="trust-first-start").joined()
        sock.sendall(b"EVAL \"while true do end\" 0\r\n")
        self.case(daemon, "script", "script", "SCRIPT KILL")
        daemon.logged("error node node=.* state=refused was=joined cause=[a-z]* reason=.*BUSY")
        self.assertIn("BUSY", self.client(daemon).err("LOCK b", "QUORUM").text)
        server.cli.script_kill()
        self.becomes(daemon, "joined", None)
        daemon.logged("notice node node=.* state=joined was=refused")

    def test_a_proxy(self):
        fake = Proxy(os.path.join(self.folder(), "sock")).start()
        self.addCleanup(fake.stop)
        self.case(self.on("unix:" + fake.path), "proxy", "proxy", "name the servers themselves")

    def test_a_balancer_before_two_servers(self):
        balancer = Balancer(os.path.join(self.folder(), "sock"), self.redis().path, self.redis().path).start()
        self.addCleanup(balancer.stop)
        daemon = self.on("unix:" + balancer.path, guard="trust-first-start").joined()
        self.case(daemon, "host", "store", "correct the name of the host", "lead to several servers")
        daemon.logged("warn node node=.* cause=host reason=.*lead to several servers")

    def test_a_balancer_between_whose_servers_the_links_are_divided(self):
        """Calls that reach the other one would seem to show that the store forgets."""
        balancer = Balancer(os.path.join(self.folder(), "sock"), self.redis().path, self.redis().path).start()
        self.addCleanup(balancer.stop)
        daemon = self.on("unix:" + balancer.path, {"links": 2}, guard="trust-first-start")
        self.case(daemon, "host", "store", "correct the name of the host", "lead to several servers")

    def test_what_closes_at_once(self):
        fake = Closing(os.path.join(self.folder(), "sock")).start()
        self.addCleanup(fake.stop)
        self.case(self.on("unix:" + fake.path), "closed", "store", "if a proxy is between")

    def test_tls_and_none(self):
        ca = Authority("servers")
        self.addCleanup(ca.remove)
        other = Authority("others")
        self.addCleanup(other.remove)
        cert, key = ca.sign("/CN=redis", names="IP:127.0.0.1")
        port = free_port()
        self.redis(args=("--tls-port", str(port), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", ca.cert))
        daemon = self.on("127.0.0.1:%d" % port)  # the server's alert may be lost with the connection
        until(lambda: self.row(daemon).get("cause") in ("tls-port", "closed"), "it is no plain port")
        self.assertTrue(any("set redis.tls" in row["fix"] for row in self.doctor(daemon)))
        self.case(self.on("127.0.0.1:%d" % port, {"tls": {"ca_file": other.cert}}), "tls", "tls", "redis.tls.ca_file")
        daemon = self.on("127.0.0.1:%d" % self.redis(tcp=True).port, {"tls": {"ca_file": ca.cert}})  # it may take the greeting for half a line
        until(lambda: self.row(daemon).get("cause") in ("plain-port", "silent"), "it is no port of TLS")
        self.assertTrue(any("redis.tls" in row["fix"] for row in self.doctor(daemon)))

    def test_nobody_there_and_no_such_host(self):
        self.case(self.on("127.0.0.1:%d" % free_port()), "unreached", "store", "start the server")
        self.case(self.on("no-such-host.invalid:6379"), "host", "store", "correct the name of the host")

    def test_no_redis(self):
        self.case(self.on("unix:" + self.daemon().addr), "no-redis", "store", "is no Redis server")

    def test_the_server_says_what_the_daemon_would(self):
        """A text of the server that has our words is no cause."""
        fake = Saying(os.path.join(self.folder(), "sock"), b"-ERR a text of configuration, sentinel, its clock is, NOAUTH, WRONGPASS\r\n").start()
        self.addCleanup(fake.stop)
        self.case(self.on("unix:" + fake.path), "other", "store", "log of the server")

    def test_the_quarantine_of_a_first_start(self):
        daemon = self.on(self.redis().node, guard="strict", lease="10s", max_lease="30s")
        self.becomes(daemon, "quarantine", None)
        rows = {row["check"]: row for row in self.doctor(daemon)}
        self.assertEqual((rows["quarantine"]["status"], rows["quorum"]["status"]), ("warn", "warn"))
        self.assertIn("only wait", rows["quorum"]["fix"])
        self.assertRegex(rows["quorum"]["text"], r"vote in \d+s")


class Saying(Server):
    def __init__(self, path, text):
        super().__init__(path)
        self.text = text

    def took(self, sock, data):
        sock.sendall(self.text)


class Far(Relay):
    """A real Redis with a long round trip."""
    WAY = 0.06

    def took(self, sock, data):
        time.sleep(self.WAY)
        super().took(sock, data)


class Stages(HealthTest):
    """A server that fails in one way after the other: what is over is not told any more."""
    COST = 30

    def test_a_cause_that_returns(self):
        path, web = os.path.join(self.folder(), "sock"), free_web()
        daemon = self.daemon(on_redis(["unix:" + path], LEASE_1S, {"listen": {"http": web.listen}}))
        for cause, says in (("loading", b"-LOADING Redis is loading the dataset in memory\r\n"), ("no-auth", b"-NOAUTH Authentication required.\r\n")):
            self.becomes(daemon, "down", "unreached")
            fake = Saying(path, says).start()
            self.becomes(daemon, "down", cause)
            fake.stop()
            os.unlink(path)
        self.becomes(daemon, "down", "unreached")
        self.assertIn("fail", [row["status"] for row in self.doctor(daemon) if row["check"] == "store"])
        self.assertIn('cause="unreached"} 1', web.ask("/metrics").body.decode())
        daemon.logged("was=down cause=no-auth(.*\n)+.*was=down cause=unreached")

    def test_the_log_is_bounded(self):
        fake = Saying(os.path.join(self.folder(), "sock"), b"").start()
        self.addCleanup(fake.stop)
        texts = itertools.cycle([b"-LOADING Redis is loading the dataset in memory\r\n", b"-NOAUTH Authentication required.\r\n"])
        fake.opened = lambda sock: setattr(fake, "text", next(texts))
        daemon = self.daemon(on_redis(["unix:" + fake.path], LEASE_1S, {"redis": {"links": 1}}))
        until(lambda: fake.accepted > 25, "it was tried again and again", 60)
        lines = len(re.findall(r" node node=.* state=down ", daemon.log()))
        self.assertTrue(5 <= lines <= 14, "ten at once, and one each ten seconds: %d" % lines)


class FarAway(HealthTest):
    COST = 8

    def test_round_trips_above_the_timeout(self):
        stores = [self.redis() for _ in range(3)]
        relays = [Far(os.path.join(self.folder(), "sock"), store.path).start() for store in stores]
        for relay in relays:
            self.addCleanup(relay.stop)
        daemon = self.daemon(on_redis(["unix:" + relay.path for relay in relays], LEASE_1S, {"redis": {"timeout": "20ms"}, "guard": "trust-first-start"}))
        for i in range(3):
            self.becomes(daemon, "slow", "slow", i)
        self.advises(daemon, "slow", "slower than redis.timeout (20 ms)", "set a longer redis.timeout")
        self.assertGreater(self.row(daemon)["rtt_us"], 55000)
        client = self.client(daemon)
        reply = client.err("LOCK a wait=1s", "QUORUM")
        self.assertIn("slower than redis.timeout (20 ms)", reply.text)
        self.assertNotIn("send fewer", reply.text)
        lines = daemon.log().count("node-slow")
        time.sleep(3)
        self.assertLessEqual(daemon.log().count("node-slow") - lines, 3, "the log is bounded")
        Far.WAY = 0
        self.addCleanup(setattr, Far, "WAY", 0.06)
        for i in range(3):
            self.becomes(daemon, "joined", None, i)
        client.ok("LOCK a wait=5s")


class Jittery(Relay):
    """A real Redis with a short round trip, most of the time."""
    ways = itertools.cycle([0, 0, 0, 0.3])

    def took(self, sock, data):
        time.sleep(next(self.ways))
        super().took(sock, data)


class NowAndThen(HealthTest):
    COST = 3

    def test_some_round_trips_above_the_timeout(self):
        store = self.redis()
        relay = Jittery(os.path.join(self.folder(), "sock"), store.path).start()
        self.addCleanup(relay.stop)
        daemon = self.daemon(on_redis(["unix:" + relay.path], LEASE_1S, {"redis": {"timeout": "100ms"}, "guard": "trust-first-start"}))
        client = self.client(daemon)

        def shown():
            client.ask("LOCK a wait=1s")
            client.ask("UNLOCK a")
            return self.row(daemon).get("cause") == "late"
        self.waits(shown, "LIST nodes says that answers are late", [])
        relay.ways = itertools.repeat(0)
        self.becomes(daemon, "joined", "late")
        self.advises(daemon, "slow", "were slower than redis.timeout (100 ms)", "set a longer redis.timeout")
        self.assertRegex(self.row(daemon)["reason"], r"^[1-9]\d? % of the round trips of the last minute were slower than redis\.timeout \(100 ms\)$")
        found = []

        def warned():
            found[:] = self.doctor(daemon)
            return [row["status"] for row in found if row["check"] == "slow"] == ["warn"]
        self.waits(warned, "doctor warns", found)
        self.assertIn("late", self.call_redlock(daemon, "ping")[1])


class AgainAndAgain(HealthTest):
    """Between two times all looks well."""
    COST = 10

    def test_connections_that_break(self):
        store, web = self.redis(), free_web()
        relay = Relay(os.path.join(self.folder(), "sock"), store.path).start()
        self.addCleanup(relay.stop)
        daemon = self.daemon(on_redis(["unix:" + relay.path], LEASE_1S, {"listen": {"http": web.listen}})).joined()
        times = 0
        while "cause" not in self.row(daemon):
            times += 1
            relay.instead = b"close"
            until(lambda: self.row(daemon)["state"] != "joined", "it is down")
            relay.instead = None
            until(lambda: self.row(daemon)["state"] == "joined", "it is joined")
        self.becomes(daemon, "joined", "breaks")
        self.assertIn(times, (3, 4, 5))  # one that breaks while it is slow is asked anew, and not counted
        self.assertRegex(self.row(daemon)["reason"], r"^its connection broke [345] times within \d+ s: ")
        self.advises(daemon, "breaks", "its connection broke ", "a proxy or firewall")
        self.assertIn('cause="breaks"} 1', web.ask("/metrics").body.decode())
        self.assertIn("breaks", web.ask("/readyz").body.decode())
        self.assertIn("breaks", self.call_redlock(daemon, "ping")[1])

    def test_a_store_that_is_flushed(self):
        store = self.redis()
        daemon = self.daemon(on_redis([store], LEASE_1S, {"max_lease": "20s"})).joined()
        for times in (1, 2, 3):
            store.cli.flushall()
            until(lambda: daemon.log().count(" state=quarantine ") == times, "it is in quarantine")
        self.becomes(daemon, "quarantine", "forgets")
        self.advises(daemon, "quarantine", "had to be quarantined 3 times within", "somebody flushes it")
        found = self.doctor(daemon)
        self.assertIn("fail", {row["status"] for row in found if row["check"] == "quorum"})
        self.assertNotIn("only wait", str(found))
        mark = daemon.log_size()
        daemon.send_signal(signal.SIGUSR2)
        daemon.logged("notice restarted ", mark)
        self.becomes(daemon, "quarantine", "forgets")


del HealthTest

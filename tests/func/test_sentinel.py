# SPDX-License-Identifier: BSD-2-Clause
"""A server whose address real sentinels tell: a fail-over costs no exclusion, and the daemons find the new master."""
import contextlib
import json
import signal
import time

import redis

from contended import Contended
from daemon import on_redis
from lease import Lease
from process import private, until
from sentinels import Watched

LEASE = {"lease": "2s", "max_lease": "2s"}
QUARANTINE = 2.0  # seconds, max_lease: a promoted replica grants nothing for so long
PATIENCE = 30  # seconds in which a fail-over and the quarantine after it are over


class SentinelTest(Contended):
    COST = 60

    def watched(self, **options):
        watched = Watched(**options)
        self.addCleanup(watched.stop)
        return watched.start()

    def hosts(self, servers, tree=None):
        """Two daemons on these servers."""
        self.a, self.b = [self.daemon(on_redis(servers, LEASE, tree)) for _ in range(2)]
        self.asker = self.client(self.a)
        for daemon in (self.a, self.b):
            with daemon.client() as client:
                until(lambda: client.joined() == len(servers), "all stores are joined")

    def row(self, label, client=None):
        return next(row for row in (client or self.asker).ok("LIST nodes").rows if row["node"] == label)

    def is_at_master(self, former, state="joined"):
        """Both daemons use the server that the sentinels name in place of the former one, under the name that it always has. Returns the seconds that it took.
        On a busy machine the sentinels may name one after the other."""
        begin = time.monotonic()

        def is_found(client):
            server = self.w.master()
            return server not in (None, former) and self.row(self.w.label, client).fields.get("address") == "127.0.0.1:%d" % server.port
        for daemon in (self.a, self.b):
            with daemon.client() as client:
                until(lambda client=client: is_found(client), "the new master is found")
                found = time.monotonic() - begin
                until(lambda: self.row(self.w.label, client)["state"] == state, "the new master is " + state)
        return found


class OneBehindSentinels(SentinelTest):
    """N = 1: all locks are in one server, which has replicas."""

    def one(self):
        self.w = self.watched()
        self.hosts([self.w])
        self.contend()

    def fails_over(self, fault, least=QUARANTINE - 0.5):
        """The fault makes the sentinels promote a replica. Nobody holds the lock beside another, and all goes on there, under a larger fence."""
        before = self.w.master()
        seconds = self.no_second_holder(fault, patience=PATIENCE)
        self.w.moved(before)
        self.assertGreaterEqual(seconds, least)
        self.is_at_master(before)
        self.figure("granted again %.1f s after it" % seconds)
        return self.w.master()

    def test_a_failover_by_command(self):
        self.one()
        self.fails_over(self.w.fail_over)
        self.assertRegex(self.a.log(), "node=sentinel:locks state=quarantine")
        status, out, _ = self.call_redlock(self.a, "nodes", "--json")
        row = json.loads(out.splitlines()[0])
        self.assertEqual((status, row["node"], row["address"]), (0, "sentinel:locks", "127.0.0.1:%d" % self.w.master().port))

    def test_the_master_is_killed_and_returns(self):
        self.one()
        first = self.w.master()
        self.fails_over(first.kill)
        first.restart()

        def is_replica():
            with contextlib.suppress(redis.exceptions.ConnectionError):  # the sentinels turn clients away as they tell it
                return first.cli.info("replication")["role"] == "slave"
            return False
        until(is_replica, "the former master is a replica", 100)
        until(self.w.ready, "all replicas follow", 30)
        for client in self.waiters:
            client.close()
        self.contend()
        self.fails_over(self.w.fail_over)

    def test_the_master_hangs_and_wakes(self):
        """It still calls itself the master when it wakes, and forgot nothing: who is connected to it may go on there until the sentinels are heard."""
        self.one()
        first = self.w.master()

        def hangs():
            first.freeze()
            self.w.moved(first)
            first.thaw()
        self.fails_over(hangs, least=0)

    def test_a_replica_that_lacks_the_lock_is_promoted(self):
        """What a fail-over can lose: the replica is cut off before the lock is taken."""
        self.w = self.watched(replicas=1)
        self.hosts([self.w])
        copy = self.w.servers[1]
        copy.cli.config_set("masterauth", "wrong")  # so that the link is refused once it is cut
        self.w.servers[0].cli.config_set("requirepass", "secret")
        copy.cli.execute_command("CLIENT", "KILL", "TYPE", "master")
        self.w.servers[0].cli.config_set("requirepass", "")
        copy.freeze()
        self.contend()
        self.w.servers[0].kill()
        copy.thaw()
        self.assertEqual(copy.cli.get("lock:precious"), None)
        self.fails_over(lambda: None)


class OneOfThree(SentinelTest):
    """Of three servers one is behind sentinels: its fail-over costs nobody a lock."""

    def three(self):
        self.w = self.watched()
        self.plain = [self.redis(), self.redis()]
        self.hosts([self.w, *self.plain])
        self.contend()

    def test_its_master_is_killed(self):
        self.three()
        before = self.w.master()
        self.no_second_holder(before.kill, lost_at_all=False, patience=PATIENCE)
        self.w.moved(before)
        found = self.is_at_master(before)
        self.figure("found %.1f s after the sentinels named it" % found)
        self.plain[0].freeze()  # now its vote is needed
        until(lambda: self.asker.ask("LOCK works wait=1s").kind == "OK", "the vote of the new master counts")

    def test_the_daemon_leaves_a_master_that_still_works(self):
        """Only the sentinels tell: the connection to the former master never breaks, as if nobody could tell it that it was replaced."""
        self.three()
        before, other = self.w.master(), self.w.servers[1]
        for sentinel in self.w.sentinels:
            sentinel.ask("remove", self.w.name)
            sentinel.ask("monitor", self.w.name, "127.0.0.1", str(other.port), "2")
        other.cli.execute_command("REPLICAOF", "NO", "ONE")
        self.no_second_holder(lambda: None, lost_at_all=False)
        self.is_at_master(before)
        self.assertRegex(self.a.log(), "the sentinels name another master: 127.0.0.1:%d" % other.port)
        self.assertEqual(before.cli.info("replication")["role"], "master")

    def test_it_waits_for_a_replica_to_be_promoted(self):
        """An operator makes a replica of the master behind the back of the sentinels, and undoes it."""
        self.three()
        master = self.w.master()
        for sentinel in self.w.sentinels:
            sentinel.ask("set", self.w.name, "quorum", "3")
        self.w.sentinels[0].process.send_signal(signal.SIGSTOP)  # else they would undo it
        master.cli.execute_command("REPLICAOF", "127.0.0.1", str(self.w.servers[1].port))
        until(lambda: self.row(self.w.label)["state"] == "down", "it has no vote")
        self.assertIn("sentinel", self.row(self.w.label)["cause"])
        master.cli.execute_command("REPLICAOF", "NO", "ONE")
        until(lambda: self.row(self.w.label)["state"] == "joined", "it votes again")
        self.no_second_holder(lambda: None, lost_at_all=False)


class AnotherSpelling(SentinelTest):
    """The sentinels name the host of a master by its name, and then by its number, or the other way round."""

    def is_called(self, host):
        until(lambda: self.row(self.w.label, self.asker).fields.get("address") == "%s:%d" % (host, self.w.servers[0].port), "it is called " + host)

    def begin(self):
        self.w = self.watched(replicas=0, host="localhost", lines=["sentinel resolve-hostnames yes"])
        self.w.call_by_name(True)
        daemon = self.daemon(on_redis([self.w], {"lease": "5s", "max_lease": "10s"})).joined()
        self.asker = self.client(daemon)
        self.is_called("localhost")
        return daemon

    def test_while_the_daemon_runs(self):
        daemon = self.begin()
        lease, mark = Lease(self.asker, "kept"), daemon.log_size()
        self.w.call_by_name(False)
        self.is_called("127.0.0.1")
        self.w.call_by_name(True)
        self.is_called("localhost")
        self.assertEqual(lease.check().kind, "OK")
        self.assertNotIn("state=", daemon.log(mark))

    def test_before_a_restart_in_place(self):
        """Whether the process before hears of it or not: it is the same server."""
        daemon = self.begin()
        fence = self.asker.ok("LOCK kept").num("fence")
        for host in ("127.0.0.1", "localhost", "127.0.0.1"):
            mark = daemon.log_size()
            self.w.call_by_name(host == "localhost")
            daemon.send_signal(signal.SIGUSR2)
            daemon.logged("notice restarted ", mark)
            self.assertEqual(self.asker.ok("CHECK kept").num("fence"), fence)
            self.is_called(host)
            self.assertNotIn("another master", daemon.log(mark))


class NoWord(SentinelTest):
    """The sentinels do not say where the master is."""

    def never_up(self, tree, reason):
        daemon = self.daemon(on_redis([self.w], LEASE, tree))
        client = self.client(daemon)
        until(lambda: reason in self.row(self.w.label, client).fields.get("reason", ""), "the reason is told: " + reason)
        client.err("LOCK a", "QUORUM")
        return daemon

    def test_a_master_of_another_name(self):
        self.w = self.watched(replicas=0)
        self.w.node["sentinel"]["master"], self.w.label = "looks", "sentinel:looks"
        daemon = self.never_up(None, "no sentinel knows a master named looks")
        status, out, _ = self.call_redlock(daemon, "doctor")
        self.assertEqual(status, 1)
        self.assertIn("store sentinel:looks is down: no sentinel knows a master named looks", out)
        self.assertIn("the name of the master in redis.nodes", out)

    def test_a_password_of_the_sentinels(self):
        """It is theirs alone: the server has none."""
        self.w = self.watched(replicas=0, lines=["requirepass secret-4711", "sentinel sentinel-pass secret-4711"], password="secret-4711")
        for tree, said in ((None, "NOAUTH"), ({"redis": {"sentinel_password_file": self.secret("wrong-0815")}}, "WRONGPASS")):
            daemon = self.never_up(tree, "refuses: " + said)
            self.assertEqual(self.client(daemon).ok("LIST nodes").rows[0]["cause"], "sentinel-password")
            status, out, _ = self.call_redlock(daemon, "doctor")
            self.assertEqual(status, 1)
            self.assertRegex(out, "fail .*refuses: %s.*; fix: .*redis.sentinel_password_file and redis.sentinel_user" % said)
        daemon = self.daemon(on_redis([self.w], {"redis": {"sentinel_password_file": self.secret("secret-4711"), "sentinel_user": "default"}}))
        daemon.joined()
        self.assertNotIn("4711", daemon.log())

    def test_a_password_where_none_is_needed(self):
        self.w = self.watched(replicas=0)
        daemon = self.never_up({"redis": {"sentinel_password_file": self.secret("secret-4711")}}, "refuses: ERR AUTH")
        self.assertEqual(self.client(daemon).ok("LIST nodes").rows[0]["cause"], "sentinel-password")

    def test_a_master_that_is_not_there(self):
        self.w = self.watched(replicas=0, down_ms=60000)
        server = self.w.servers[0]
        server.kill()
        self.never_up(None, "127.0.0.1:%d, which the sentinels told: Connection refused" % server.port)

    def secret(self, text):
        path = self.folder() + "/secret"
        with open(path, "w", opener=private) as out:
            out.write(text + "\n")
        return path

    def test_a_restart_in_place_while_the_sentinels_are_away(self):
        """The process before would have served on."""
        self.w = self.watched(replicas=0)
        daemon = self.daemon(on_redis([self.w], {"lease": "4s", "max_lease": "6s"})).joined()
        client = self.client(daemon)
        fence = client.ok("LOCK kept").num("fence")
        for sentinel in self.w.sentinels:
            sentinel.process.kill()
            sentinel.process.wait()
        mark = daemon.log_size()
        daemon.send_signal(signal.SIGUSR2)
        daemon.logged("notice restarted ", mark)
        time.sleep(7)  # longer than any lease
        self.assertEqual(client.ok("CHECK kept").num("fence"), fence)
        until(lambda: self.row(self.w.label, client).fields.get("cause") == "sentinel", "a fail-over would not be noticed")
        self.assertEqual(self.row(self.w.label, client)["state"], "joined")

    def test_the_only_sentinel_that_answers_names_another_master(self):
        """A daemon that runs stays and says so; one that starts waits: no two daemons use two masters."""
        self.w = self.watched(replicas=0)
        other = self.redis(tcp=True)
        daemon = self.daemon(on_redis([self.w], {"lease": "4s", "max_lease": "6s"})).joined()
        client = self.client(daemon)
        lease = Lease(client, "kept")
        for sentinel in self.w.sentinels[1:]:
            sentinel.process.kill()
            sentinel.process.wait()
        until(lambda: "too few sentinels (1 of 3) tell" in self.row(self.w.label, client).fields.get("reason", ""), "a fail-over would not be noticed")
        self.w.sentinels[0].ask("remove", self.w.name)
        self.w.sentinels[0].ask("monitor", self.w.name, "127.0.0.1", str(other.port), "2")
        said = "the sentinels that answer name another master (127.0.0.1:%d), but they are too few (1 of 3)" % other.port
        until(lambda: self.row(self.w.label, client).fields.get("reason") == said, "the other is told")
        row = self.row(self.w.label, client)
        self.assertEqual((row["state"], row.fields.get("cause")), ("joined", "sentinel"))
        late = self.daemon(on_redis([self.w], {"lease": "4s", "max_lease": "6s"}))
        waits = self.client(late)
        until(lambda: "too few sentinels (1 of 3) tell" in self.row(self.w.label, waits).fields.get("reason", ""), "it waits")
        waits.err("LOCK kept", "QUORUM")
        self.assertEqual(lease.check().kind, "OK")
        self.w.sentinels[1].start()
        time.sleep(2)
        self.assertNotEqual(self.row(self.w.label, waits)["state"], "joined")  # one against one
        self.w.sentinels[2].start()
        until(lambda: self.row(self.w.label, waits)["state"] == "joined", "most agree", 20)
        self.assertEqual(self.row(self.w.label, waits).fields.get("address"), "127.0.0.1:%d" % self.w.servers[0].port)
        self.assertEqual(waits.ask("LOCK kept").kind, "BUSY")
        self.assertEqual(lease.check().kind, "OK")

    def test_sentinels_that_end_and_return(self):
        self.w = self.watched(replicas=0)
        self.hosts([self.w])
        lease = Lease(self.asker, "kept")
        for sentinel in self.w.sentinels:
            sentinel.process.kill()
            sentinel.process.wait()
        self.a.logged("node node=sentinel:locks state=joined cause=sentinel reason=")
        until(lambda: self.row(self.w.label).fields.get("cause") == "sentinel", "a fail-over would not be noticed")
        self.assertEqual(self.row(self.w.label)["state"], "joined")
        self.assertIn("start the sentinels", self.call_redlock(self.a, "doctor")[1])
        self.assertEqual(lease.check().kind, "OK")  # the connection stays
        mark = self.a.log_size()
        self.w.servers[0].cut_connections()
        self.a.logged("node node=sentinel:locks state=joined", mark)
        self.assertEqual(lease.check().kind, "OK")  # it is the same server
        self.w.servers[0].kill()
        self.w.servers[0].restart()
        until(lambda: "no sentinel tells where locks is" in self.row(self.w.label).fields.get("reason", ""), "a server that began anew is not believed")
        time.sleep(1)
        self.assertEqual(self.row(self.w.label)["state"], "down")
        for sentinel in self.w.sentinels:
            sentinel.start()
        until(lambda: self.row(self.w.label)["state"] == "joined", "it votes again", 20)
        until(lambda: "cause" not in self.row(self.w.label).fields, "all is well")
        for sentinel in self.w.sentinels:
            sentinel.process.kill()
            sentinel.process.wait()
        until(lambda: self.row(self.w.label).fields.get("cause") == "sentinel", "they are gone again")
        for sentinel in self.w.sentinels:
            sentinel.start()
        until(lambda: "cause" not in self.row(self.w.label).fields, "and back, though the connection stayed", 20)

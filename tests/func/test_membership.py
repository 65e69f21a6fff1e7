# SPDX-License-Identifier: BSD-2-Clause
"""One of three Redis servers is unfit: the daemon does not use it, LIST nodes, the log and `redlock nodes` say why, and it is used again once it is fit."""
import json
import os
import time

from daemon import on_redis
from harness import FuncTest
from process import LATE, merged, until
from quorum import LEASE_2S


class Membership(FuncTest):
    COST = 40

    def trio(self, tree=None, odd=None):
        """Three servers, the last of which is `odd`, and a daemon on them."""
        self.servers = [self.redis(), self.redis(), odd or self.redis()]
        self.odd = self.servers[2]
        self.host = self.daemon(on_redis(self.servers, LEASE_2S, tree))
        self.asker = self.client(self.host)

    def row(self, number=2, client=None):
        return (client or self.asker).ok("LIST nodes").rows[number]

    def state(self, word, reason=""):
        until(lambda: self.row()["state"] == word and reason in self.row().fields.get("reason", ""),
              "%s: %s" % (word, reason))

    def grants(self):
        """The daemon grants a lock. Returns its fence."""
        granted = self.asker.ok("LOCK works wait=10s")
        self.asker.ok("UNLOCK works sync=yes")
        return granted.num("fence")

    def quiet(self):
        """Whether the log repeats nothing about the server over two health checks."""
        since = self.host.log().count("state=refused")
        time.sleep(2.2)
        return self.host.log().count("state=refused") == since

    def unfit(self, reason):
        """The server is refused for this reason. The log says so once, and so does `redlock nodes`, and the daemon goes on granting."""
        self.state("refused", reason)
        first = self.grants()
        quiet = self.quiet() or self.quiet()  # a server that has also lost its data gets its marker first, and is then refused again
        self.assertTrue(quiet, "the log repeats at each health check that the server is refused")
        self.names(reason)
        self.assertGreater(self.grants(), first)

    def table(self, daemon=None, options=()):
        """The lines of `redlock nodes`, one for each server."""
        status, out, err = self.call_redlock(daemon or self.host, *options, "nodes")
        self.assertEqual(status, 0, err)
        return out.splitlines()

    def names(self, reason, daemon=None, servers=1):
        """The log names the reason, and `redlock nodes` does so for this many servers."""
        self.assertRegex((daemon or self.host).log(), "state=refused .*" + reason)
        self.assertEqual(len([line for line in self.table(daemon) if "refused" in line and reason in line]), servers)

    def fit(self):
        """The server is joined again, and its vote counts: the daemon grants while one of the other two is stopped."""
        self.state("joined")
        self.servers[0].freeze()
        self.grants()
        self.servers[0].thaw()

    def make_replica(self, server, master=None):
        """REPLICAOF: of this master, or of none."""
        server.cli.execute_command("REPLICAOF", *(("127.0.0.1", master.port) if master else ("NO", "ONE")))

    def test_a_replica(self):
        self.trio()
        self.state("joined")
        other = self.redis(tcp=True)
        self.make_replica(self.odd, other)
        self.unfit("only a master may hold locks")
        self.make_replica(self.odd)
        self.fit()

    @staticmethod
    def replication_id(server):
        return server.cli.info("replication")["master_replid"]

    def test_replicas_that_come_and_go(self):
        """Each replica changes the replication id of its master, which costs no quarantine."""
        odd = self.redis(tcp=True)
        odd.cli.config_set("repl-backlog-ttl", 1)
        self.trio(odd=odd)
        self.state("joined")
        replica, ids = self.redis(tcp=True), {self.replication_id(odd)}
        for _ in range(2):
            self.make_replica(replica, odd)
            until(lambda: odd.cli.info("replication")["connected_slaves"] == 1, "a replica is attached")
            self.grants()
            ids.add(self.replication_id(odd))
            self.make_replica(replica)
            until(lambda: self.replication_id(odd) not in ids, "its backlog is freed, and its replication id has changed")
            ids.add(self.replication_id(odd))
        time.sleep(1.5)
        self.state("joined")
        self.assertGreaterEqual(len(ids), 4)
        self.assertNotIn("state=quarantine", self.host.log())

    def test_a_master_that_was_a_replica_of_its_own_replica(self):
        """The run id and the marker of such a server are right, but its last writes may be missing: the daemon must quarantine it."""
        odd, copy = self.redis(tcp=True), self.redis(tcp=True)
        for server in (odd, copy):
            server.cli.config_set("repl-backlog-ttl", 1)
            server.cli.config_set("repl-diskless-sync-delay", 0)
        self.trio(odd=odd)
        self.state("joined")
        self.make_replica(copy, odd)
        until(lambda: copy.cli.get("redlockd:lock:!meta"), "the marker is copied")
        self.make_replica(copy)
        run_id = odd.cli.info("server")["run_id"]
        self.host.freeze()  # so that the daemon sees nothing of what follows
        odd.cli.set("later", 1)  # a write that the copy lacks, so that the copy replaces the data
        self.make_replica(odd, copy)
        until(lambda: odd.cli.info("replication")["master_link_status"] == "up", "it has the data of the copy")
        self.make_replica(odd)
        until(lambda: not str(odd.cli.info("replication")["master_replid2"]).strip("0"), "its backlog is freed, and its former id forgotten", 20)
        self.host.thaw()
        self.assertEqual(odd.cli.info("server")["run_id"], run_id)
        self.assertIsNone(odd.cli.get("later"))
        until(lambda: "state=quarantine" in self.host.log(), "the server is quarantined")
        self.state("joined")

    def test_a_policy_that_evicts_locks(self):
        self.trio()
        self.state("joined")
        self.odd.cli.config_set("maxmemory", "100mb")
        self.odd.cli.config_set("maxmemory-policy", "volatile-lru")
        self.unfit("set noeviction")
        self.odd.cli.config_set("maxmemory-policy", "noeviction")
        self.fit()

    def test_a_server_that_cannot_save(self):
        odd = self.redis(save=True)
        self.trio(odd=odd)
        self.state("joined")
        self.grants()
        os.mkdir(os.path.join(odd.folder, "dump.rdb"))  # a folder in the place of the file
        odd.cli.bgsave()
        until(lambda: odd.cli.info("persistence")["rdb_last_bgsave_status"] == "err", "a save has failed")
        for _ in range(3):
            self.grants()  # the server refuses these writes
        self.unfit("it refuses SET: MISCONF")
        os.rmdir(os.path.join(odd.folder, "dump.rdb"))
        odd.cli.bgsave()
        self.fit()

    def test_no_permission(self):
        self.trio()
        self.state("joined")
        self.odd.cli.execute_command("ACL", "SETUSER", "default", "-evalsha", "-eval")
        self.unfit("NOPERM")
        self.odd.cli.execute_command("ACL", "SETUSER", "default", "+evalsha", "+eval")
        self.fit()

    def test_cluster_mode(self):
        self.trio(odd=self.redis(tcp=True, args=["--cluster-enabled", "yes"]))
        self.unfit("it is in cluster mode")

    def test_the_same_server_twice(self):
        odd = self.redis(tcp=True)
        self.servers = [self.redis(), odd, odd]
        self.odd = odd
        self.host = self.daemon(on_redis([self.servers[0], odd, "127.0.0.1:%d" % odd.port], LEASE_2S))
        self.asker = self.client(self.host)
        until(lambda: sorted(self.row(i)["state"] for i in range(3)) == ["joined", "joined", "refused"], "one of two addresses is refused")
        self.assertTrue(any("it is the same server as" in self.row(i).fields.get("reason", "") for i in range(3)))
        self.names("it is the same server as")
        self.grants()
        odd.freeze()
        self.asker.err("LOCK one:vote", "QUORUM")  # two addresses of one server are one vote
        odd.thaw()

    def test_another_set_and_a_higher_generation(self):
        self.trio({"redis": {"set": "ours"}})
        self.state("joined")
        stranger = self.daemon(on_redis(self.servers, LEASE_2S, {"redis": {"set": "theirs"}}))
        other = self.client(stranger)
        until(lambda: all("another configuration" in self.row(i, other).fields.get("reason", "") for i in range(3)), "another set is refused")
        self.names("another configuration", stranger, 3)
        other.err("LOCK a", "QUORUM")
        self.grants()
        higher = self.client(self.daemon(on_redis(self.servers, LEASE_2S, {"redis": {"set": "theirs", "generation": 2}})))
        higher.ok("LOCK a wait=20s", 25)
        until(lambda: "generation 2" in self.row().fields.get("reason", ""), "the daemon of the old generation refuses the servers")
        self.asker.err("LOCK a", "QUORUM")

    def test_another_list_of_named_servers_under_the_same_set(self):
        node = {name: "%s=%s" % (name, self.redis().node) for name in "abcde"}
        asks = [self.client(self.daemon(merged(LEASE_2S, {"store": "redis", "redis": {"set": "ours", "nodes": [node[name] for name in names]}})))
                for names in ("abc", "ade")]
        until(lambda: sorted("another configuration" in self.row(0, c).fields.get("reason", "") for c in asks) == [False, True],
              "the server that both list takes one of them")

    def test_a_clock_that_is_an_hour_off(self):
        odd = self.redis(clock=True)
        odd.clock.set(-3600)
        self.trio(odd=odd)
        self.unfit("behind the other servers'")
        odd.clock.set(3600)
        self.unfit("ahead of the other servers'")
        odd.clock.set(0)
        self.fit()

    def test_a_quarantine_is_counted_down(self):
        self.trio({"guard": "strict"})
        retry = self.asker.err("LOCK a", "QUORUM")
        self.assertIn("retry_ms=", str(retry))
        self.state("quarantine")
        self.assertRegex(self.table()[-1], r" quarantine +[0-9]+ +([12]s|[0-9]+ms) +it carries no marker")
        left = []
        for _ in range(2):
            left.append(json.loads(self.table(options=["--json"])[-1])["left_ms"])
            self.asker.listen(0.3)
        self.assertLessEqual(left[0], 2100)
        self.assertTrue(0 < left[1] <= left[0] - 300, left)
        self.asker.ok("LOCK a wait=20s", 25)

    def test_a_slow_or_stopped_server_delays_nobody(self):
        self.trio({"redis": {"timeout": "10s"}})
        self.state("joined")
        self.odd.freeze()
        begun = time.monotonic()
        for number in range(20):
            self.asker.ok("LOCK quick:%d" % number)
            self.asker.ok("UNLOCK quick:%d" % number)
        self.assertLess(time.monotonic() - begun, LATE, "the stopped server delays a lock")
        self.odd.thaw()

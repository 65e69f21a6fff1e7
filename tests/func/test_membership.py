# SPDX-License-Identifier: BSD-2-Clause
"""One of three Redis servers is unfit: it is not used, LIST nodes, the log and `redlock nodes` say why, and it is used again once it is mended."""
import json
import os
import subprocess
import time

from harness import FuncTest
from process import REDLOCK, merged, until

SHORT = {"lease": "2s", "max_lease": "2s"}


class Membership(FuncTest):
    COST = 40

    def trio(self, tree=None, odd=None):
        """Three servers, the last one as given, and a daemon that has looked at all of them."""
        self.servers = [self.redis(), self.redis(), odd or self.redis()]
        self.odd = self.servers[2]
        self.host = self.daemon(merged({"store": "redis", "redis": {"nodes": [server.node for server in self.servers]}}, merged(SHORT, tree or {})))
        self.person = self.client(self.host)

    def row(self, number=2, client=None):
        return (client or self.person).ok("LIST nodes").rows[number]

    def state(self, word, reason=""):
        until(lambda: self.row()["state"] == word and reason in self.row().fields.get("reason", ""),
              "%s: %s" % (word, reason))

    def goes_on(self):
        """The other two serve, and the unfit one has no key of it."""
        granted = self.person.ok("LOCK goes:on wait=10s")
        self.person.ok("UNLOCK goes:on sync=yes")
        return granted.num("fence")

    def quiet(self):
        """Nothing new is said of it over two looks."""
        since = self.host.log().count("state=refused")
        time.sleep(2.2)
        return self.host.log().count("state=refused") == since

    def unfit(self, reason):
        """Refused for this reason, said once in the log, and in the table for people."""
        self.state("refused", reason)
        first = self.goes_on()
        said = self.quiet() or self.quiet()  # one that lost its memory as well is marked first, and then refused anew
        self.assertTrue(said, "told once, not at each look")
        self.told_of(reason)
        self.assertGreater(self.goes_on(), first)

    def table(self, daemon=None, options=()):
        """What `redlock nodes` prints, a line per server."""
        said = subprocess.run([REDLOCK, "--addr", (daemon or self.host).addr, *options, "nodes"], capture_output=True, text=True, timeout=30, check=True)
        return said.stdout.splitlines()

    def told_of(self, reason, daemon=None, servers=1):
        """In the log, and in the table for people."""
        self.assertRegex((daemon or self.host).log(), "state=refused .*" + reason)
        self.assertEqual(len([line for line in self.table(daemon) if "refused" in line and reason in line]), servers)

    def mended(self):
        self.state("joined")
        for server in self.servers[:1]:
            server.freeze()
        self.goes_on()  # its vote counts
        for server in self.servers[:1]:
            server.thaw()

    def test_a_replica(self):
        self.trio()
        self.state("joined")
        other = self.redis(tcp=True)
        self.odd.cli.execute_command("REPLICAOF", "127.0.0.1", other.port)
        self.unfit("only a master may hold locks")
        self.odd.cli.execute_command("REPLICAOF", "NO", "ONE")
        self.mended()

    def replication(self, server):
        told = server.cli.info("replication")
        return told["role"], told["master_replid"]

    def test_replicas_that_come_and_go(self):
        """Each changes the replication id of its master, and costs nothing. As a master of its own a replica is another server."""
        odd = self.redis(tcp=True)
        odd.cli.config_set("repl-backlog-ttl", 1)
        self.trio(odd=odd)
        self.state("joined")
        replica, ids = self.redis(tcp=True), {self.replication(odd)[1]}
        for _ in range(2):
            replica.cli.execute_command("REPLICAOF", "127.0.0.1", odd.port)
            until(lambda: odd.cli.info("replication")["connected_slaves"] == 1, "a replica is attached")
            self.goes_on()
            ids.add(self.replication(odd)[1])
            replica.cli.execute_command("REPLICAOF", "NO", "ONE")
            until(lambda: self.replication(odd)[1] not in ids, "its backlog is freed, and its id another")
            ids.add(self.replication(odd)[1])
        time.sleep(1.5)
        self.state("joined")
        self.assertGreaterEqual(len(ids), 4)
        self.assertNotIn("state=quarantine", self.host.log())

    def test_a_master_that_was_the_replica_of_its_own_replica(self):
        """Run id and marker are right, and its last writes may be missing: however it is told, it is quarantined."""
        odd, copy = self.redis(tcp=True), self.redis(tcp=True)
        for server in (odd, copy):
            server.cli.config_set("repl-backlog-ttl", 1)
            server.cli.config_set("repl-diskless-sync-delay", 0)
        self.trio(odd=odd)
        self.state("joined")
        copy.cli.execute_command("REPLICAOF", "127.0.0.1", odd.port)
        until(lambda: copy.cli.get("redlockd:lock:!meta"), "the marker is copied")
        copy.cli.execute_command("REPLICAOF", "NO", "ONE")
        run_id = odd.cli.info("server")["run_id"]
        self.host.freeze()  # it sees nothing of it
        odd.cli.set("later", 1)  # what the copy has not got: else nothing is replaced, and nothing lost
        odd.cli.execute_command("REPLICAOF", "127.0.0.1", copy.port)
        until(lambda: odd.cli.info("replication")["master_link_status"] == "up", "it has the data of its copy")
        odd.cli.execute_command("REPLICAOF", "NO", "ONE")
        until(lambda: not str(odd.cli.info("replication")["master_replid2"]).strip("0"), "its backlog is freed, and the former id forgotten", 20)
        self.host.thaw()
        self.assertEqual(odd.cli.info("server")["run_id"], run_id)
        self.assertIsNone(odd.cli.get("later"))
        until(lambda: "state=quarantine" in self.host.log(), "it is quarantined")
        self.state("joined")

    def test_a_policy_that_evicts_locks(self):
        self.trio()
        self.state("joined")
        self.odd.cli.config_set("maxmemory", "100mb")
        self.odd.cli.config_set("maxmemory-policy", "volatile-lru")
        self.unfit("set noeviction")
        self.odd.cli.config_set("maxmemory-policy", "noeviction")
        self.mended()

    def test_a_server_that_cannot_save(self):
        odd = self.redis(save=True)
        self.trio(odd=odd)
        self.state("joined")
        self.goes_on()
        os.mkdir(os.path.join(odd.folder, "dump.rdb"))  # in the way of the file
        odd.cli.bgsave()
        until(lambda: odd.cli.info("persistence")["rdb_last_bgsave_status"] == "err", "a save has failed")
        for _ in range(3):
            self.goes_on()  # it refuses these, and is known by that
        self.unfit("it refuses writes")
        os.rmdir(os.path.join(odd.folder, "dump.rdb"))
        odd.cli.bgsave()
        self.mended()

    def test_no_permission(self):
        self.trio()
        self.state("joined")
        self.odd.cli.execute_command("ACL", "SETUSER", "default", "-evalsha", "-eval")
        self.unfit("REDIS ACCESS")
        self.odd.cli.execute_command("ACL", "SETUSER", "default", "+evalsha", "+eval")
        self.mended()

    def test_cluster_mode(self):
        self.trio(odd=self.redis(tcp=True, args=["--cluster-enabled", "yes"]))
        self.unfit("it is in cluster mode")

    def test_the_same_server_twice(self):
        odd = self.redis(tcp=True)
        self.servers = [self.redis(), odd, odd]
        self.odd = odd
        self.host = self.daemon(merged({"store": "redis", "redis": {"nodes": [self.servers[0].node, odd.node, "127.0.0.1:%d" % odd.port]}}, SHORT))
        self.person = self.client(self.host)
        until(lambda: sorted(self.row(i)["state"] for i in range(3)) == ["joined", "joined", "refused"], "one of two addresses is refused")
        self.assertTrue(any("it is the same server as" in self.row(i).fields.get("reason", "") for i in range(3)))
        self.told_of("it is the same server as")
        self.goes_on()
        odd.freeze()
        self.person.err("LOCK one:vote", "QUORUM")  # two addresses, one vote
        odd.thaw()

    def test_another_set_and_a_higher_generation(self):
        self.trio({"redis": {"set": "ours"}})
        self.state("joined")
        nodes = {"store": "redis", "redis": {"nodes": [server.node for server in self.servers]}}
        stranger = self.daemon(merged(nodes, merged(SHORT, {"redis": {"set": "theirs"}})))
        other = self.client(stranger)
        until(lambda: all("another configuration" in self.row(i, other).fields.get("reason", "") for i in range(3)), "another set is refused")
        self.told_of("another configuration", stranger, 3)
        other.err("LOCK a", "QUORUM")
        self.goes_on()
        higher = self.client(self.daemon(merged(nodes, merged(SHORT, {"redis": {"set": "theirs", "generation": 2}}))))
        higher.ok("LOCK a wait=20s", 25)
        until(lambda: "generation 2" in self.row().fields.get("reason", ""), "the former generation is refused")
        self.person.err("LOCK a", "QUORUM")

    def test_a_clock_that_is_off(self):
        odd = self.redis(clock=True)
        odd.clock.step(-3600)
        self.trio(odd=odd)
        self.unfit("behind the other servers'")
        odd.clock.step(3600)
        self.unfit("ahead of the other servers'")
        odd.clock.step(0)
        self.mended()

    def test_a_join_that_is_pending_is_counted_down(self):
        self.trio({"guard": "strict"})
        retry = self.person.err("LOCK a", "QUORUM")
        self.assertIn("retry_ms=", str(retry))
        self.state("quarantine")
        self.assertRegex(self.table()[-1], r" quarantine +[0-9]+ +([12]s|[0-9]+ms) +it carries no marker")
        left = []
        for _ in range(2):
            left.append(json.loads(self.table(options=["--json"])[-1])["left_ms"])
            self.person.listen(0.3)
        self.assertLessEqual(left[0], 2100)
        self.assertTrue(0 < left[1] <= left[0] - 300, left)
        self.person.ok("LOCK a wait=20s", 25)

    def test_a_slow_or_stopped_server_delays_nobody(self):
        self.trio({"redis": {"timeout": "5s"}})
        self.state("joined")
        self.odd.freeze()
        begun = time.monotonic()
        for number in range(20):
            self.person.ok("LOCK quick:%d" % number)
            self.person.ok("UNLOCK quick:%d" % number)
        self.assertLess(time.monotonic() - begun, 4.0, "less than the timeout of the one that is stopped")
        self.odd.thaw()

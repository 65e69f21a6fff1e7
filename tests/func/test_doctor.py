# SPDX-License-Identifier: BSD-2-Clause
"""redlock doctor finds each mistake of an installation, in a real one."""
import json
import os
import re
import shutil
import signal
import stat
import time

from daemon import on_redis
from fakes import Relay, Server
from harness import LEASE_1S, FuncTest
from process import REDLOCK, ROOT, call, merged, private, until

KEYS = {"check", "status", "text", "fix"}


class DoctorTest(FuncTest):
    def examine(self, daemon, *argv, program=REDLOCK, **options):
        """The findings by check, of each check the worst; and the exit code."""
        addr = daemon if isinstance(daemon, str) else daemon.addr
        status, out, err = call(program, "--addr", addr, "doctor", "--json", *argv, **options)
        self.assertEqual(err, "")
        rows = [json.loads(line) for line in out.splitlines()]
        for row in rows:
            self.assertEqual(set(row), KEYS)
            self.assertEqual(row["status"] == "ok", row["fix"] == "", row)
        self.assertEqual(status, int(any(row["status"] == "fail" for row in rows)), rows)
        return {row["check"]: row for row in sorted(rows, key=lambda row: ("ok", "warn", "fail").index(row["status"]))}

    def finds(self, daemon, check, status, text):
        """Waits for the finding. Returns it with the others."""
        found = {}

        def there():
            found.update(seen=self.examine(daemon))
            row = found["seen"].get(check, {"status": "", "text": ""})
            return row["status"] == status and re.search(text, row["text"])
        until(there, "doctor finds %s" % check)
        return found["seen"]

    def three(self, *first, **redis):
        """Three servers, the given ones first."""
        servers = [*first, *[self.redis() for _ in range(3 - len(first))]]
        return self.daemon(on_redis(servers, LEASE_1S, {"redis": redis})), servers


class Well(DoctorTest):
    COST = 4

    def test_the_memory_store(self):
        seen = self.examine(self.daemon())
        self.assertEqual({row["status"] for row in seen.values()}, {"ok"})
        self.assertIn("this host only", seen["quorum"]["text"])

    def test_a_configuration_that_could_not_be_read_again(self):
        daemon = self.daemon()
        good = daemon.config
        daemon.config = "nonsense: yes\n"
        daemon.write_config()
        daemon.send_signal(signal.SIGHUP)
        self.finds(daemon, "reload", "fail", "a restart would fail")
        daemon.config = good
        daemon.write_config()
        daemon.send_signal(signal.SIGHUP)
        until(lambda: "reload" not in self.examine(daemon), "doctor is content")

    def test_three_servers_that_save(self):
        servers = [self.redis(args=("--appendonly", "yes")) for _ in range(3)]
        daemon = self.daemon(on_redis(servers, LEASE_1S)).joined()
        seen = self.finds(daemon, "quorum", "ok", "3 of 3")
        self.assertEqual({row["status"] for row in seen.values()}, {"ok"}, seen)

    def test_a_line_for_each_check(self):
        status, out, err = self.call_redlock(self.daemon(), "doctor")
        self.assertEqual((status, err), (0, ""))
        for line in out.splitlines():
            self.assertRegex(line, r"^(ok|warn|fail) +\S")


class NoDaemon(DoctorTest):
    def test_no_daemon(self):
        row = self.examine(os.path.join(self.folder(), "sock"))["daemon"]
        self.assertEqual(row["status"], "fail")
        self.assertIn("systemctl start redlockd", row["fix"])

    def test_a_socket_that_is_not_permitted(self):
        daemon = self.daemon()
        if os.geteuid() != 0:
            os.chmod(daemon.addr, 0)
            self.assertEqual(self.examine(daemon)["socket"]["status"], "fail")
            return
        os.chmod(daemon.addr, stat.S_IRUSR | stat.S_IWUSR)
        parent = os.path.dirname(daemon.addr)
        while parent != "/tmp" and len(parent) > 1:
            os.chmod(parent, 0o755)
            parent = os.path.dirname(parent)
        copy = shutil.copy(REDLOCK, os.path.dirname(daemon.addr))  # the other user may not look into the folder of the build
        self.assertEqual(self.examine(daemon, program=copy, user=65534)["socket"]["status"], "fail")

    def test_a_daemon_that_is_stopped(self):
        daemon = self.daemon()
        daemon.freeze()
        self.addCleanup(daemon.thaw)
        self.assertIn("does not answer", self.examine(daemon)["daemon"]["text"])

    def test_long_holds_on_every_page(self):
        daemon = self.daemon({"alarm": {"held": "100ms"}})
        for k in range(2):
            holder = self.client(daemon)
            for i in range(6):
                requests = ["LOCK n-%d-%d-%d" % (k, i, j) for j in range(100)]
                holder.send(*requests)
                for _ in requests:
                    self.assertEqual(holder.reply().kind, "OK")
        until(lambda: "1190 further locks" in self.call_redlock(daemon, "doctor")[1], "doctor has seen all 1200")

    def test_a_permit_that_is_held_for_long(self):
        daemon = self.daemon({"alarm": {"held": "100ms"}})
        self.client(daemon).ok("ACQUIRE s limit=2")
        self.finds(daemon, "held", "warn", "^a permit of s is held for longer than alarm.held$")

    def test_another_version_and_an_alarm(self):
        """A daemon of another version, in front of a lock that is held for longer than an alarm allows."""
        fake = Fake(os.path.join(self.folder(), "sock")).start()
        self.addCleanup(fake.stop)
        seen = self.examine(fake.path)
        self.assertEqual((seen["version"]["status"], seen["held"]["status"]), ("warn", "warn"))
        self.assertIn("redlockd/0.0.1", seen["version"]["text"])
        self.assertIn("nightly is held by ana for 1h00m", seen["held"]["text"])

    def test_a_user_who_may_not_look(self):
        fake = Fake(os.path.join(self.folder(), "sock"))
        fake.answers["LIST nodes"] = "ERR DENIED by rule 3"
        fake.start()
        self.addCleanup(fake.stop)
        self.assertIn("DENIED by rule 3", self.examine(fake.path)["rights"]["text"])

    def test_a_daemon_that_takes_no_more_connections(self):
        daemon = self.daemon({"limits": {"clients": 1}})
        client = self.client(daemon)
        row = self.examine(daemon)["daemon"]
        self.assertEqual(row["status"], "fail")
        self.assertIn("LIMIT", row["text"])
        self.assertIn("raise that limit", row["fix"])
        client.close()
        until(lambda: self.examine(daemon)["daemon"]["status"] == "ok", "there is a place again")


class Fake(Server):
    """Answers each request by a text of its own."""

    def __init__(self, path):
        super().__init__(path)
        self.answers = {
            "HELLO": "OK proto=1 server=redlockd/0.0.1 session=1 secret=s store=memory nodes=1 quorum=1 lease_ms=10000",
            "LIST nodes": "* node=memory state=joined\nOK n=1 more=0",
            "LIST queues": "OK n=0 more=0", "STATS": "OK n=0",
            "LIST locks": "* name=calm held_ms=3600000\n* name=nightly holder=ana held_ms=3600000 alarm=held\nOK n=2 more=0"}

    def took(self, sock, data):
        for line in data.decode().splitlines():
            sock.sendall(next(text for begin, text in self.answers.items() if line.startswith(begin)).encode() + b"\n")


class Far(Relay):
    """A real Redis with a long round trip."""

    def took(self, sock, data):
        time.sleep(0.12)
        super().took(sock, data)


class Stores(DoctorTest):
    COST = 30

    def test_a_store_that_is_down(self):
        daemon, servers = self.three()
        daemon.joined()
        servers[1].kill()
        seen = self.finds(daemon, "store", "fail", re.escape(servers[1].path) + " is down")
        self.assertEqual(seen["quorum"]["status"], "ok")
        servers[2].kill()
        self.finds(daemon, "quorum", "fail", "no quorum: 1 of 3")

    def test_a_new_store_without_the_others(self):
        """At the first start the trust in blank stores needs a quorum of them."""
        daemon = self.daemon(on_redis([self.redis(), "127.0.0.1:1", "127.0.0.1:2"], LEASE_1S))
        says = "warn .*it votes once enough of the others are reached; fix: .*fix the other stores"
        until(lambda: re.search(says, self.call_redlock(daemon, "doctor")[1]), "doctor tells what the store waits for")

    def test_a_replica(self):
        master, server = self.redis(tcp=True), self.redis()
        server.cli.execute_command("REPLICAOF", "127.0.0.1", str(master.port))
        self.finds(self.three(server)[0], "replica", "fail", "only a master")

    def test_a_server_that_evicts(self):
        server = self.redis(args=("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"))
        self.finds(self.three(server)[0], "eviction", "fail", "allkeys-lru")

    def test_a_server_that_does_not_save(self):
        server = self.redis(save=True)
        daemon = self.daemon(on_redis([server], LEASE_1S)).joined()
        self.assertNotIn("persistence", self.examine(daemon), "locks need none")
        self.client(daemon).ok("DEFER later job")
        seen = self.finds(daemon, "persistence", "warn", "does not save to disk")
        self.assertIn("appendonly yes", seen["persistence"]["fix"])
        self.assertEqual(seen["quorum"]["status"], "ok")

    def test_rate_limits_need_a_server_that_saves(self):
        daemon = self.daemon(on_redis([self.redis(save=True)], LEASE_1S)).joined()
        self.client(daemon).ok("LOCK a")
        self.assertNotIn("persistence", self.examine(daemon), "locks need none")
        self.client(daemon).ok("RATE r limit=2 per=24h")
        self.finds(daemon, "persistence", "warn", "jobs and rate limits are lost")

    def test_a_snapshot_is_enough(self):
        server = self.redis(save=True)
        server.cli.save()
        server.cli.bgsave()
        until(lambda: server.cli.info("persistence")["rdb_last_bgsave_time_sec"] >= 0, "the snapshot is written")
        daemon = self.daemon(on_redis([server], LEASE_1S)).joined()
        self.client(daemon).ok("DEFER later job")
        until(lambda: "persistence" not in self.examine(daemon), "nothing is wrong")

    def test_the_same_server_twice(self):
        server = self.redis(tcp=True)
        daemon = self.daemon(on_redis([server, self.redis()], LEASE_1S, {"redis": {"nodes": [
            server.node, "127.0.0.1:%d" % server.port, self.redis().node]}}))
        self.finds(daemon, "duplicate", "fail", "the same server as")

    def test_missing_permissions(self):
        for missing, text in (("-info", "INFO: .*can.t run"), ("-evalsha", "permi"), ("-eval", "permi"), ("-get", "can't run"), ("-subscribe", "permi")):
            server = self.redis()
            server.cli.execute_command("ACL", "SETUSER", "default", missing)
            seen = self.finds(self.three(server)[0], "permission", "fail", text)
            self.assertIn("--print-acl", seen["permission"]["fix"], missing)

    def test_no_password(self):
        server = self.redis()
        daemon = self.three(server)[0]
        server.cli.config_set("requirepass", "right")
        server.cut_connections()
        self.finds(daemon, "password", "fail", "NOAUTH")

    def test_what_print_acl_prints_is_enough(self):
        status, out, _ = call(REDLOCK, "doctor", "--print-acl")
        self.assertEqual(status, 0)
        with open(os.path.join(ROOT, "daemon", "redlockd.8"), encoding="utf-8") as page:
            rules = re.search(r"^~lock:.*?(?=^\.Ed)", page.read(), re.MULTILINE | re.DOTALL).group()
        self.assertEqual(out.split(), ["ACL", "SETUSER", "redlockd", "on", ">PASSWORD", *rules.split()])
        server = self.redis()
        server.cli.execute_command(*out.split())
        secret = os.path.join(self.folder(), "password")
        with open(secret, "w", opener=private) as file:
            file.write("PASSWORD\n")
        os.chmod(secret, 0o600)
        daemon = self.daemon(on_redis([server], LEASE_1S, {"redis": {"user": "redlockd", "password_file": secret}})).joined()
        self.assertEqual(self.finds(daemon, "store", "ok", "votes")["quorum"]["status"], "ok")

    def test_an_even_number(self):
        daemon = self.daemon(on_redis([self.redis(), self.redis()], LEASE_1S)).joined()
        self.finds(daemon, "even", "warn", "2 stores")

    def test_a_store_in_quarantine(self):
        daemon, servers = self.three()
        daemon.joined()
        servers[0].restart()
        self.finds(daemon, "quarantine", "warn", "votes in")

    def test_a_round_trip_above_a_tenth_of_the_lease(self):
        relay = Far(os.path.join(self.folder(), "sock"), self.redis().path).start()
        self.addCleanup(relay.stop)
        daemon = self.daemon(merged(on_redis([self.redis()], LEASE_1S), {"redis": {"nodes": ["unix:" + relay.path], "timeout": "500ms"}}))
        self.finds(daemon, "round-trip", "warn", "tenth of the lease of 1000 ms")

    def test_a_slow_store(self):
        daemon, servers = self.three(timeout="2s")
        daemon.joined()
        servers[0].freeze()
        self.addCleanup(servers[0].thaw)
        self.finds(daemon, "slow", "fail", "has not answered")

    def test_clocks_apart(self):
        servers = [self.redis(clock=True) for _ in range(3)]
        servers[0].clock.set(0.9)
        daemon = self.daemon(on_redis(servers, {"lease": "10s", "max_lease": "30s"}))
        seen = self.finds(daemon, "clocks", "warn", r"are up to (0\.9|1\.0) s apart")
        self.assertEqual(seen["quorum"]["status"], "ok")

    def test_a_clock_of_this_host_that_is_not_that_of_the_stores(self):
        servers = [self.redis(clock=True) for _ in range(3)]
        for server in servers:
            server.clock.set(0.9)
        daemon = self.daemon(on_redis(servers, {"lease": "10s", "max_lease": "30s"}))
        self.finds(daemon, "clocks", "warn", r"this host's clock is (0\.9|1\.0) s behind the stores'")
        until(lambda: daemon.client().stats()["clock_apart"] == 1, "a figure shows it")

    def test_a_clock_too_far_off_to_vote(self):
        servers = [self.redis(clock=True) for _ in range(3)]
        servers[0].clock.set(60)
        self.finds(self.daemon(on_redis(servers, {"lease": "10s", "max_lease": "30s"})), "clocks", "fail", "is refused: its clock is")


del DoctorTest

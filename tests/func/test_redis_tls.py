# SPDX-License-Identifier: BSD-2-Clause
"""TLS to Redis: real servers with a TLS port, and what must be refused."""
import os
import shutil
import signal
import time

from authority import Authority
from harness import FuncTest
from process import REDLOCK, REDLOCKD, WAIT, call, free_port, merged, until
from redis_server import Redis
from sentinels import Sentinel


class RedisTls(FuncTest):
    COST = 35

    @classmethod
    def setUpClass(cls):
        cls.ca, cls.other = Authority("servers"), Authority("others")
        cls.addClassCleanup(cls.ca.remove)
        cls.addClassCleanup(cls.other.remove)
        cls.pair = cls.ca.sign("/CN=redis", names="DNS:redis,IP:127.0.0.1")
        cls.client = cls.ca.sign("/CN=redlockd", names="DNS:redlockd")

    def tls_server(self, pair=None, clients="no", ca=None):
        """A server that speaks nothing but TLS, besides the Unix socket of the test."""
        cert, key = pair or self.pair
        port = free_port()
        server = Redis(args=["--tls-port", str(port), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", ca or self.ca.cert,
                             "--tls-auth-clients", clients])
        server.secure = "127.0.0.1:%d" % port
        self.addCleanup(server.stop)
        return server.start()

    def tls_daemon(self, servers, tls=None, **options):
        tree = {"store": "redis", "redis": {"nodes": [s.secure for s in servers], "tls": merged({"ca_file": self.ca.cert}, tls)}}
        return self.daemon(tree, **options)

    def works(self, daemon, servers):
        daemon.joined()
        holder, waiter = self.client_of(daemon), self.client_of(daemon)
        holder.ok("LOCK a")
        for server in servers:
            until(lambda server=server: server.cli.exists("lock:a") == 1, "each server has the key; a quorum was enough for the answer")
        waiter.begin("@w LOCK a wait=20s")
        holder.ok("UNLOCK a sync=yes")
        self.assertEqual(waiter.reply("@w").kind, "OK")
        holder.ok("LOCKALL %s" % " ".join("many/%d" % i for i in range(60)))

    def client_of(self, daemon):
        client = daemon.client()
        self.addCleanup(client.close)
        return client

    def never_up(self, daemon, why):
        daemon.logged(why)
        self.client_of(daemon).err("LOCK a", "QUORUM")

    def troubles(self, daemon, seconds):
        """What LIST nodes says of the first server within that time."""
        client, found, end = self.client_of(daemon), set(), time.monotonic() + seconds
        while time.monotonic() < end:
            row = client.ok("LIST nodes").rows[0].fields
            found.add((row.get("cause"), row.get("reason")))
            time.sleep(0.02)
        return found

    def test_one_and_three_servers(self):
        for count in (1, 3):
            servers = [self.tls_server() for _ in range(count)]
            self.works(self.tls_daemon(servers), servers)
            for server in servers:
                self.assertEqual(len(server.cli.client_list(_type="pubsub")), 1, "nobody subscribes")

    def test_two_daemons_wake_each_other(self):
        server = self.tls_server()
        one, two = self.tls_daemon([server]).joined(), self.tls_daemon([server]).joined()
        holder, waiter = self.client_of(one), self.client_of(two)
        holder.ok("LOCK a")
        waiter.begin("@w LOCK a wait=20s")
        holder.ok("UNLOCK a")
        self.assertEqual(waiter.reply("@w", 2).kind, "OK")

    def test_a_server_that_wants_a_certificate(self):
        server = self.tls_server(clients="yes")
        self.never_up(self.tls_daemon([server]), r"state=down .*(certificate required|alert|reset)")
        self.works(self.tls_daemon([server], {"cert_file": self.client[0], "key_file": self.client[1]}), [server])

    def test_a_certificate_that_has_ended_is_the_one_cause(self):
        """Whether the daemon first reads why the server closes, or first writes what the server no longer reads."""
        server = self.tls_server(clients="yes")
        cert, key = self.ca.sign("/CN=redlockd", days=-1)
        daemon = self.tls_daemon([server], {"cert_file": cert, "key_file": key})
        daemon.logged(r"state=down .*cause=tls reason=.*certificate expired")
        self.assertEqual({cause for cause, _ in self.troubles(daemon, 8)}, {"tls"})

    def test_a_certificate_of_a_server_that_ends_soon_is_told_ahead(self):
        pairs = [self.ca.sign("/CN=redis", names="IP:127.0.0.1", days=days) for days in (20, 25, 25)]
        servers = [self.tls_server(pair) for pair in pairs]
        daemon = self.tls_daemon(servers).joined()
        daemon.logged(r"warn certificate server=%s ends=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ days=(19|20) note="
                      r"\"it or its authority \(redis\.tls\.ca_file\) ends: renew the one with this date" % servers[0].secure)
        self.assertTrue(19 * 86400 < daemon.client().stats()["certificate_expires_seconds"] <= 20 * 86400)
        cert, key = pairs[0]
        servers[1].cli.config_set("tls-key-file", key, "tls-cert-file", cert)  # only connections that are made from now on show it
        daemon.logged(r"warn certificate server=%s ends=" % servers[1].secure, timeout=40)
        servers[0].cut_connections("normal")
        daemon.logged(r"notice node node=%s state=joined" % servers[0].secure, daemon.log().rindex("certificate"))
        self.assertEqual(daemon.log().count(" certificate server="), 2, "once a day")

    def test_a_certificate_of_a_server_that_has_ended(self):
        daemon = self.tls_daemon([self.tls_server(self.ca.sign("/CN=redis", names="IP:127.0.0.1", days=-1))])
        self.never_up(daemon, r"state=down .*cause=tls reason=.*certificate has expired")
        status, out, _ = call(REDLOCK, "--addr", daemon.addr, "doctor")
        self.assertEqual(status, 1)
        self.assertIn("renew what has expired: the server's certificate", out)
        self.assertIn("not yet valid", out)

    def test_a_name_that_is_not_in_the_certificate(self):
        server = self.tls_server()
        self.never_up(self.tls_daemon([server], {"server_name": "elsewhere"}), r"state=down .*certificate refused: hostname mismatch")
        self.works(self.tls_daemon([server], {"server_name": "redis"}), [server])
        named = self.tls_server(self.ca.sign("/CN=redis", names="DNS:redis"))
        self.never_up(self.tls_daemon([named]), r"state=down .*certificate refused: IP address mismatch")

    def test_a_certificate_that_is_replaced_by_another_one(self):
        """What is connected stays; the connection for messages, which breaks, is refused, and the reason is told."""
        server = self.tls_server()
        daemon = self.tls_daemon([server]).joined()
        cert, key = self.ca.sign("/CN=other", names="DNS:other")
        server.cli.config_set("tls-key-file", key, "tls-cert-file", cert)
        server.cut_connections("pubsub")
        daemon.logged(r"subscriber node=.* state=refused reason=.*certificate verify failed")
        self.assertEqual(self.client_of(daemon).ok("LIST nodes").rows[0].fields["cause"], "tls")

    def test_a_certificate_that_is_no_longer_accepted_for_SUBSCRIBE(self):
        server = self.tls_server(clients="yes")
        daemon = self.tls_daemon([server], {"cert_file": self.client[0], "key_file": self.client[1]}).joined()
        server.cli.config_set("tls-ca-cert-file", self.other.cert)
        server.cut_connections("pubsub")
        daemon.logged(r"subscriber node=.* state=refused reason=.*unknown ca")
        self.assertEqual(self.troubles(daemon, 8), {("tls", "it does not carry out SUBSCRIBE: tlsv1 alert unknown ca")})

    def test_an_authority_that_is_not_trusted(self):
        server = self.tls_server(self.other.sign("/CN=redis"), ca=self.other.cert)
        self.never_up(self.tls_daemon([server]), r"state=down .*certificate refused: (unable to get local issuer|self.signed)")
        plain = self.redis(tcp=True)
        plain.secure = "127.0.0.1:%d" % plain.port
        self.never_up(self.tls_daemon([plain]), r"state=down .*(wrong version number|packet length|handshake timed out|closed)")

    def test_the_system_does_not_trust_it_either(self):
        server = self.tls_server()
        daemon = self.daemon({"store": "redis", "redis": {"nodes": [server.secure], "tls": "yes"}})
        self.never_up(daemon, r"state=down .*certificate refused: (unable to get local issuer|self.signed)")

    def test_a_reload_takes_a_new_authority(self):
        """The authority is replaced while the daemon runs; what is connected stays."""
        server, ca = self.tls_server(), os.path.join(self.folder(), "ca.pem")
        shutil.copy(self.ca.cert, ca)
        daemon = self.tls_daemon([server], {"ca_file": ca}).joined()
        client = self.client_of(daemon)
        client.ok("LOCK a")
        with open(ca, "w") as out:
            out.write(open(self.other.cert).read())
        mark = daemon.log_size()
        daemon.send_signal(signal.SIGHUP)
        server.cut_connections("normal")
        daemon.logged(r"state=down .*certificate refused", mark)
        with open(ca, "a") as out:
            out.write(open(self.ca.cert).read())
        daemon.send_signal(signal.SIGHUP)
        daemon.logged(r"state=joined", daemon.log_size(), 2 * WAIT)
        client.ok("LOCK b wait=5s")

    def test_a_unix_socket_needs_no_tls(self):
        server, secure = self.redis(), self.tls_server()
        daemon = self.daemon({"store": "redis", "redis": {"nodes": [server.node, secure.secure], "tls": {"ca_file": self.ca.cert}}})
        self.works(daemon, [server, secure])

    def tls_sentinel(self, server, pair, ca, clients="no"):
        """A sentinel that speaks TLS, to the server as well. Its address."""
        port = free_port()
        sentinel = Sentinel("locks", "127.0.0.1", int(server.secure.rpartition(":")[2]), 1, 60000, [
            "tls-port %d" % port, "tls-cert-file " + pair[0], "tls-key-file " + pair[1], "tls-ca-cert-file " + ca, "tls-auth-clients " + clients,
            "tls-replication yes"])
        self.addCleanup(sentinel.stop)
        sentinel.start()
        until(lambda: sentinel.ask("masters"), "the sentinel answers")
        return "127.0.0.1:%d" % port

    def test_sentinels(self):
        """They are reached with TLS as well, and one that shows a certificate of others tells nothing."""
        server = self.tls_server()
        bad = self.tls_sentinel(server, self.other.sign("/CN=redis", names="IP:127.0.0.1"), self.other.cert)
        good = [self.tls_sentinel(server, self.pair, self.ca.cert) for _ in range(2)]
        server.secure = {"sentinel": {"master": "locks", "addresses": [bad]}}
        self.never_up(self.tls_daemon([server]), r"state=down .*no sentinel tells where locks is: %s fails in TLS: certificate verify failed" % bad)
        server.secure["sentinel"]["addresses"] += good
        self.works(self.tls_daemon([server]), [server])

    def test_a_sentinel_that_does_not_accept_the_certificate(self):
        server = self.tls_server()
        at = self.tls_sentinel(server, self.pair, self.ca.cert, "yes")
        cert, key = self.ca.sign("/CN=redlockd", days=-1)
        server.secure = {"sentinel": {"master": "locks", "addresses": [at]}}
        daemon = self.tls_daemon([server], {"cert_file": cert, "key_file": key})
        daemon.logged(r"state=down .*cause=sentinel reason=.*certificate expired")
        self.assertEqual({cause + ": " + reason.partition(at)[2] for cause, reason in self.troubles(daemon, 8)},
                         {"sentinel:  fails in TLS: sslv3 alert certificate expired"})

    def test_wrong_files(self):
        folder = self.folder()
        path = os.path.join(folder, "c.yaml")
        with open(path, "w") as out:
            out.write("store: redis\nredis:\n  nodes: [127.0.0.1:1]\n  tls: {ca_file: /nonexistent/ca.pem}\n")
        status, _, complaint = call(REDLOCKD, "--config", path, "--check-config")
        self.assertEqual(status, 78)
        self.assertIn("c.yaml:4:18: error: /nonexistent/ca.pem: cannot be read: No such file or directory", complaint)

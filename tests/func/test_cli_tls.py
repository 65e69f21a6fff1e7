# SPDX-License-Identifier: BSD-2-Clause
"""redlock, and with it libredlock, inside TLS: tls://HOST:PORT."""
import os
import signal
import subprocess

from authority import Authority
from process import PipeLines, REDLOCK, call, merged, reap, spawn, until
from guard import crypt_line
from test_tls import TlsTest as _TlsTest


class CliTls(_TlsTest):
    COST = 8

    def redlock(self, *argv, env=None, options=(), host="localhost"):
        """Returns (status, stdout, stderr)."""
        return call(REDLOCK, "--addr", "tls://%s:%d" % (host, self.address[1]), *(options or ("--tls-ca", self.ca.cert)), *argv,
                    env=dict(os.environ, **(env or {})))

    def test_commands_work_inside_tls(self):
        daemon = self.secure_daemon()
        self.assertEqual(self.redlock("ping")[0], 0)
        status, out, complaint = self.redlock("run", "a", "--", "sh", "-c", "echo $REDLOCK_NAME")
        self.assertEqual((status, out), (0, "a\n"), complaint)
        self.assertEqual(self.redlock("run", "a", "--", "false")[0], 1)
        self.client(daemon).ok("LOCK held")
        self.assertEqual(self.redlock("try", "held", "--", "true")[0], 124)
        status, out, _ = self.redlock("ls", "--json")
        self.assertEqual((status, out.count('"name"')), (0, 1))

    def test_the_environment_names_files_and_address(self):
        self.secure_daemon()
        env = dict(os.environ, REDLOCK_ADDR="tls://127.0.0.1:%d" % self.address[1], REDLOCK_TLS_CA=self.ca.cert)
        self.assertEqual(call(REDLOCK, "ping", env=env)[0], 0)

    def test_what_is_not_trusted_is_refused(self):
        self.secure_daemon(pair=self.ca.sign("/CN=db3", names="DNS:db3"))
        strangers = Authority("strangers")
        self.addCleanup(strangers.remove)
        trusted, place = ("--tls-ca", self.ca.cert), "tls://localhost:%d" % self.address[1]
        for status, text, options in (
                (69, "no TLS with redlockd at %s: certificate refused: " % place, ("--tls-ca", strangers.cert)),
                (69, "no TLS with redlockd at %s: certificate refused: " % place, ("--tls-name", "db3")),
                (69, "no TLS with redlockd at %s: certificate refused: hostname mismatch" % place, trusted),
                (0, "", (*trusted, "--tls-name", "db3")),
                (64, "/nonexistent/ca.pem: cannot be read: No such file or directory", ("--tls-ca", "/nonexistent/ca.pem")),
                (64, "a certificate needs its key", (*trusted, "--tls-cert", self.server[0])),
                (64, "%s: it holds no private key" % self.server[0], (*trusted, "--tls-cert", self.server[0], "--tls-key", self.server[0]))):
            got = self.redlock("ping", options=options)
            self.assertEqual(got[0], status, got)
            self.assertIn(text, got[2])
        self.assertEqual(self.redlock("run", "a", "true", options=("--tls-ca", "/nonexistent"))[0], 125)

    def test_a_plain_port_is_no_tls(self):
        daemon = self.secure_daemon(tcp=True)
        status, _, complaint = call(REDLOCK, "--addr", "tls://127.0.0.1:%d" % daemon.tcp[1], "ping")
        self.assertEqual(status, 69)
        self.assertIn("no TLS with redlockd at tls://127.0.0.1:%d" % daemon.tcp[1], complaint)

    def test_addresses(self):
        for addr, text in (("tls://", "an address inside TLS is tls://host:port"), ("tls:///run/x", "an address inside TLS is tls://host:port"),
                           ("tls://[::1", "a bracket is open"), ("tls://a:b", "a port is a number")):
            status, _, complaint = call(REDLOCK, "--addr", addr, "ping")
            self.assertEqual(status, 69)
            self.assertIn(text, complaint)

    def test_a_certificate_is_shown(self):
        clients = Authority("clients")
        self.addCleanup(clients.remove)
        self.secure_daemon({"tls": {"client_ca_file": clients.cert}})
        status, _, complaint = self.redlock("ping")
        self.assertEqual(status, 69)
        self.assertRegex(complaint, "alert|certificate")
        cert, key = clients.sign("/CN=worker")
        status, out, _ = self.redlock("clients", "--json", options=("--tls-ca", self.ca.cert, "--tls-cert", cert, "--tls-key", key))
        self.assertEqual(status, 0)
        self.assertIn('"cert": "CN=worker"', out.replace('":"', '": "'))
        _, out, _ = self.redlock("clients", options=("--tls-ca", self.ca.cert, "--tls-cert", cert, "--tls-key", key))
        self.assertRegex(out, r"\d+ +CN=worker  ")
        self.assertEqual(self.redlock("ping", env={"REDLOCK_TLS_CERT": cert, "REDLOCK_TLS_KEY": key})[0], 0)

    def test_a_user_runs_commands(self):
        """The secret is shown inside TLS by the process that connects, and another one holds the lock."""
        path = os.path.join(self.folder(), "users")
        with open(path, "w") as users:
            users.write(crypt_line("ann", "secret"))
        self.secure_daemon({"auth": {"users_file": path}})
        env = {"REDLOCK_USER": "ann", "REDLOCK_SECRET": "secret"}
        for argv in (("run", "a", "--"), ("try", "b", "--"), ("run", "a", "b", "--"), ("lead", "c", "--")):
            status, out, complaint = self.redlock(*argv, "sh", "-c", "sleep 0.1; echo $REDLOCK_NAME", env=env)
            self.assertEqual((status, out, complaint), (0, argv[1] + "\n", ""), argv)

    def test_run_resumes_after_a_restart(self):
        """The daemon is restarted, by SIGTERM and by SIGKILL: the command goes on, and the lock is kept."""
        daemon = self.secure_daemon({"store": "memory", "lease": "5s"})
        runner = spawn([REDLOCK, "--addr", "tls://localhost:%d" % self.address[1], "--tls-ca", self.ca.cert, "run", "a", "--", "sh", "-c",
                        "echo begun; read line; echo $line"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(reap, runner)
        said = PipeLines(runner.stdout)
        self.assertEqual(said.next("run"), "begun")
        daemon.finish()
        daemon.start()
        until(lambda: [row for row in self.client(daemon).ok("LIST sessions").rows if row.fields.get("peer", "").startswith("127.") and
                       row.num("held") == 1], "the session is resumed")
        self.client(daemon).busy("LOCK a")
        runner.stdin.write(b"done\n")
        runner.stdin.flush()
        self.assertEqual(said.next("run"), "done")
        self.assertEqual(runner.wait(10), 0)
        self.client(daemon).ok("LOCK a wait=1s")

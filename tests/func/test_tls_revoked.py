# SPDX-License-Identifier: BSD-2-Clause
"""Certificates of clients that their authority has revoked."""
import os

from authority import Authority, openssl
from test_tls import TlsTest


class Revoked(TlsTest):
    COST = 5

    def setUp(self):
        super().setUp()
        self.clients = Authority("clients")
        self.addCleanup(self.clients.remove)
        self.conf = self.clients.path("ca.conf")
        with open(self.conf, "w") as out:
            out.write("[ca]\ndefault_ca=own\n[own]\ndatabase=%s\ncertificate=%s\nprivate_key=%s\ndefault_md=sha256\ndefault_crl_days=30\n" %
                      (self.clients.path("index"), self.clients.cert, self.clients.key))
        with open(self.clients.path("index"), "w"):
            pass
        self.file = os.path.join(self.folder(), "clients.pem")

    def install(self, *revoked, more=""):
        """The authority with its list, on which these certificates stand."""
        for cert, _ in revoked:
            openssl("ca", "-config", self.conf, "-revoke", cert)
        openssl("ca", "-config", self.conf, "-gencrl", "-out", self.clients.path("crl.pem"))
        with open(self.file, "w") as out:
            out.write(open(self.clients.path("crl.pem")).read() + open(self.clients.cert).read() + more)

    def test_who_is_revoked_does_not_come_in_any_more(self):
        good, bad = (self.ca.client_context(self.clients.sign("/CN=" + name)) for name in ("good", "bad"))
        pair = self.clients.sign("/CN=worse")
        worse = self.ca.client_context(pair)
        self.install()
        daemon = self.secure_daemon({"tls": {"client_ca_file": self.file}})
        there = self.secure_client(context=worse)
        for context in (good, bad, worse):
            self.secure_client(context=context).ok("PING")
        self.install(pair)
        daemon.reload()
        self.refused_shake(worse)
        daemon.logged(r'tls-handshake .*error="certificate refused: certificate revoked"')
        there.ok("PING")
        self.secure_client(context=good).ok("PING")

    def test_an_authority_without_a_list_is_refused_where_there_is_one_of_another(self):
        other = Authority("other")
        self.addCleanup(other.remove)
        self.install(more=open(other.cert).read())
        daemon = self.secure_daemon({"tls": {"client_ca_file": self.file}})
        self.secure_client(context=self.ca.client_context(self.clients.sign("/CN=one"))).ok("PING")
        self.refused_shake(self.ca.client_context(other.sign("/CN=two")))
        daemon.logged(r"certificate refused: unable to get certificate CRL")

    def test_a_list_that_is_damaged_is_no_list(self):
        self.install()
        lines = open(self.file).read().splitlines(True)
        with open(self.file, "w") as out:
            out.write("".join(lines[:1] + lines[2:]))
        self.refused({"listen": {"tls": "127.0.0.1:0"}, "tls": {"cert_file": self.server[0], "key_file": self.server[1], "client_ca_file": self.file}},
                     "revocation list in it cannot be read", 78)

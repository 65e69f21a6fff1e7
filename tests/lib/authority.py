# SPDX-License-Identifier: BSD-2-Clause
"""Certificates for tests, made by openssl(1): an authority, and what it signs."""
import os
import shutil
import socket
import ssl

from process import WAIT, call, temp_folder
from wire import Client


def openssl(*argv):
    status, _, complaint = call("openssl", *argv)
    if status:
        raise AssertionError("openssl %s: %s" % (" ".join(argv), complaint))


class Authority:
    """An authority in a folder of its own. cert: the path of its certificate."""

    def __init__(self, name="test authority"):
        self.folder, self.count = temp_folder("redlockd-tls-"), 0
        self.cert, self.key = self.path("ca.pem"), self.path("ca.key")
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj", "/CN=" + name,
                "-keyout", self.key, "-out", self.cert)

    def path(self, name):
        return os.path.join(self.folder, name)

    def sign(self, subject, names="DNS:localhost,IP:127.0.0.1", days=30):
        """A certificate for this subject, as in /CN=db3, and these names. Returns the paths of certificate and key."""
        self.count += 1
        stem = self.path("%d" % self.count)
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", subject, "-utf8", "-addext", "subjectAltName=" + names,
                "-keyout", stem + ".key", "-out", stem + ".csr")
        openssl("x509", "-req", "-in", stem + ".csr", "-CA", self.cert, "-CAkey", self.key, "-CAcreateserial", "-days", str(days), "-copy_extensions", "copy",
                "-out", stem + ".pem")
        return stem + ".pem", stem + ".key"

    def sign_authority(self, subject):
        """An authority below this one."""
        other = Authority("unused")
        openssl("req", "-new", "-key", other.key, "-subj", subject, "-addext", "basicConstraints=critical,CA:TRUE", "-out", other.path("ca.csr"))
        openssl("x509", "-req", "-in", other.path("ca.csr"), "-CA", self.cert, "-CAkey", self.key, "-CAcreateserial", "-days", "30",
                "-copy_extensions", "copy", "-out", other.cert)
        return other

    def client_context(self, pair=None):
        """What a client uses that trusts this authority, and shows this pair of certificate and key."""
        context = ssl.create_default_context(cafile=self.cert)
        if pair:
            context.load_cert_chain(*pair)
        return context

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class TlsClient(Client):
    """A client of the line protocol inside TLS."""

    def __init__(self, address, context, name=None):
        plain = socket.create_connection(address, WAIT)
        try:
            super().__init__(context.wrap_socket(plain, server_hostname="localhost"), name)
        except BaseException:
            plain.close()
            raise

    def fill(self, timeout):
        if self.sock.pending():
            timeout = 0
        try:
            return super().fill(timeout)
        except ssl.SSLEOFError:
            self.ended = True
            return True

    def cut(self):
        """Ends the connection without close_notify."""
        os.close(self.sock.detach())

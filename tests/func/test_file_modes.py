# SPDX-License-Identifier: BSD-2-Clause
"""Secrets and keys that every user may read, and files of users and authorities that every user may write, are refused."""
import os

from authority import Authority
from guard import GuardTest
from process import REDLOCKD, call


class FileModes(GuardTest):
    COST = 5

    def write(self, folder, name, text, mode):
        path = os.path.join(folder, name)
        with open(path, "w") as out:
            out.write(text)
        os.chmod(path, mode)
        return path

    def refusal(self, path, *sets):
        """What --check-config says with these settings; a start must say the same."""
        argv = [word for one in sets for word in ("--set", one)]
        status, _, err = call(REDLOCKD, *argv, "--check-config")
        self.assertEqual(status, 78, err)
        started, _, said = call(REDLOCKD, *argv, "--set", "runtime_dir=" + os.path.join(os.path.dirname(path), "run"))
        self.assertEqual(started, 78, said)
        self.assertIn(err.split("error: ")[1].split("\n")[0], said)
        return err

    def test_secrets_that_others_may_read(self):
        folder = self.folder()
        path = self.write(folder, "secret", "word\n", 0o644)
        for key in ("redis.password_file", "redis.sentinel_password_file", "http.token_file", "http.metrics_token_file"):
            more = ("store=redis", "redis.nodes=[127.0.0.1:6379]", "listen.http=127.0.0.1:0", "listen.tcp=no", "%s=%s" % (key, path))
            self.assertIn("every user of this host may read %s (mode 0644): chmod 0640 %s" % (path, path), self.refusal(path, *more), key)
            os.chmod(path, 0o640)
            status, _, err = call(REDLOCKD, *[word for one in more for word in ("--set", one)], "--check-config")
            self.assertEqual((status, "chmod" in err), (0, False), err)
            os.chmod(path, 0o644)

    def test_keys_that_others_may_read(self):
        ca = Authority()
        self.addCleanup(ca.remove)
        cert, key = ca.sign("/CN=server")
        sets = ("listen.tls=127.0.0.1:0", "listen.tcp=no", "tls.cert_file=" + cert, "tls.key_file=" + key, "tls.client_ca_file=" + ca.cert)
        os.chmod(key, 0o604)
        self.assertIn("may read %s (mode 0604): chmod 0640 %s" % (key, key), self.refusal(key, *sets))
        os.chmod(key, 0o600)
        os.chmod(ca.cert, 0o646)
        self.assertIn("may write %s (mode 0646): chmod 0644 %s" % (ca.cert, ca.cert), self.refusal(key, *sets))

    def test_a_directory_is_no_secret(self):
        path = os.path.join(self.folder(), "secret")
        os.mkdir(path)
        sets = ("store=redis", "redis.nodes=[127.0.0.1:6379]", "listen.tcp=no", "redis.password_file=" + path)
        argv = [word for one in sets for word in ("--set", one)]
        status, _, err = call(REDLOCKD, *argv, "--check-config")
        self.assertEqual((status, "Is a directory" in err), (78, True), err)

    def test_users_that_others_may_write(self):
        d = self.guarded("", users={"ann": "secret"})
        os.chmod(d.users, 0o666)
        self.assertIn("every user of this host may write %s (mode 0666): chmod 0644 %s" % (d.users, d.users), self.refusal(d.users, "auth.users_file=" + d.users))
        d.reload()
        self.assertIn("may write", d.log())
        self.assertIn("nothing was changed", d.log())
        os.chmod(d.users, 0o644)
        d.reload()
        self.client(d).ok("AUTH ann secret")

    def test_the_configuration_itself(self):
        path = self.write(self.folder(), "redlockd.yaml", "listen: {tcp: no}\n", 0o666)
        status, _, err = call(REDLOCKD, "--config", path, "--check-config")
        self.assertEqual(status, 78, err)
        self.assertIn("every user of this host may write %s (mode 0666): chmod 0644 %s" % (path, path), err)

# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of users, their secrets and the rules have in common: a guarded daemon, and connections of other users."""
import contextlib
import os

from harness import FuncTest
from process import REDLOCK, call
from wire import Client

SECRET = "correct horse battery"


def crypt_line(name, secret):
    """A line of the file of users, as redlock passwd prints it."""
    status, out, err = call(REDLOCK, "passwd", name, input=secret + "\n", stdin=None)
    assert status == 0, err
    return out


@contextlib.contextmanager
def user(uid, gid, groups=()):
    """Within it a connection to a Unix socket is that of another user. Only root may."""
    saved = os.getgroups()
    os.setgroups(list(groups))
    os.setegid(gid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(saved)


class GuardTest(FuncTest):
    def guarded(self, text, tree=None, start=True, users=None, **options):
        """A daemon with this text behind its configuration, and these users: {name: secret}."""
        daemon = self.daemon(tree, start=False, **options)
        os.chmod(daemon.folder, 0o755)
        daemon.users = os.path.join(daemon.folder, "users")
        if users is not None:
            self.write_users(daemon, users)
            daemon.config += "auth: {users_file: users}\n"
        daemon.config += text
        return daemon.start() if start else daemon

    def write_users(self, daemon, users):
        with open(daemon.users, "w") as out:
            out.write("# users\n\n" + "".join(crypt_line(name, secret) for name, secret in users.items()))

    def client_as(self, daemon, uid, gid, groups=()):
        if os.geteuid() != 0:
            self.skipTest("only root can be another user")
        with user(uid, gid, groups):
            client = Client(daemon.addr)
        self.addCleanup(client.close)
        return client

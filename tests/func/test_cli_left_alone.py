# SPDX-License-Identifier: BSD-2-Clause
"""What a keeper that stays behind still has open."""
import contextlib
import fcntl
import os
import subprocess
import time

from harness import LEASE_1S, FuncTest
from process import until


class LeftAlone(FuncTest):
    COST = 1

    def setUp(self):
        super().setUp()
        self.d = self.daemon(LEASE_1S)

    def test_a_keeper_that_waits_for_its_daemon_has_let_go_of_all_that_redlock_inherited(self):
        name, path = self.name(), os.path.join(self.folder(), "f")
        with open(path, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            process = self.start_redlock(self.d, "run", "--ttl", "2s", name, "--", "sh", "-c", "echo up; read line; exit 7",
                                         stdin=subprocess.PIPE, pass_fds=(file.fileno(),))
            self.assertEqual(process.stdout.readline(), b"up\n")
        self.d.finish()
        process.stdin.close()
        self.assertEqual(process.wait(10), 7)
        with open(path, "w") as file:
            begin = time.monotonic()
            until(lambda: self.flocked(file), "flock(1) gets the file", 1.5)
        self.figure("a lingering keeper lets go after %.0f ms" % ((time.monotonic() - begin) * 1000))
        self.d.start()
        with self.d.client() as client:
            until(lambda: len(client.ok("LIST sessions").rows) == 1, "the keeper has ended the session")

    def flocked(self, file):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False

# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of a restart have in common."""
import os
import shutil
import signal
import sys

from daemon import on_redis
from harness import FuncTest
from process import BUILD, REDLOCKD, merged, sanitized

CONF = {"lease": "5s", "max_lease": "10s"}


class RestartTest(FuncTest):
    """Tests that restart a daemon in place, by SIGUSR2. STORES: how many Redis servers it has; 0: the memory store."""
    STORES, CONFIG = 0, {}

    def begin(self, tree=None, start=True, **options):
        """A daemon on the stores of the class."""
        tree = merged(CONF, self.CONFIG, tree)
        if not self.STORES:
            return self.daemon(tree, start, **options)
        self.servers = [self.redis() for _ in range(self.STORES)]
        daemon = self.daemon(on_redis(self.servers, tree), start, **options)
        return daemon.joined() if start else daemon

    def restart(self, daemon, times=1, quietly=True):
        """Restarts it, and waits until the next process goes on. quietly: nothing is out of order."""
        for _ in range(times):
            mark, pid = daemon.log_size(), daemon.pid
            daemon.send_signal(signal.SIGUSR2)
            daemon.logged(r"notice restarted ", mark)
            self.assertTrue(daemon.alive() and daemon.pid == pid)
            if quietly and not sanitized():  # which makes the pause long
                self.assertNotRegex(daemon.log(mark), r" (warn|error) (?!auth-failed|node-slow)")

    @staticmethod
    def own_program(daemon):
        """Has a daemon that is not started yet run a copy of the program, which a test can replace. Returns its path."""
        path = os.path.join(daemon.folder, "redlockd")
        shutil.copy(REDLOCKD, path)
        daemon.argv = [path, *daemon.command()[1:]]
        return path

    @staticmethod
    def replace(path, program):
        """Puts another program in its place, as a package does."""
        shutil.copy(program, path + ".new")
        os.rename(path + ".new", path)

    @staticmethod
    def without_state(folder):
        """The path of a program that does not find what the process before has written."""
        path = os.path.join(folder, "without-state")
        with open(path, "w", encoding="utf-8") as out:
            out.write('#!/bin/bash\n[ "$REDLOCKD_CARRIED" ] && eval "exec $(cut -d: -f2 <<<"$REDLOCKD_CARRIED")</dev/null"\nexec -a "$0" %s "$@"\n' % REDLOCKD)
        os.chmod(path, 0o755)
        return path

    def of_another_build(self):
        """The path of a redlockd whose structures in memory are others."""
        path = os.path.join(BUILD, "other-structures", "redlockd")
        if sanitized():
            self.skipTest("the build of other structures is not made with sanitizers")
        self.assertTrue(os.path.exists(path), "make func builds it")
        return path


def on_stores(*numbers, base=RestartTest):
    """Class decorator: runs the tests of body on each of these numbers of Redis servers; 0: the memory store."""
    def decorate(body):
        module = sys.modules[body.__module__]
        for number in numbers:
            name = body.__name__ + {0: "OnMemory", 1: "OnRedis"}.get(number, "On%dRedis" % number)
            setattr(module, name, type(name, (body, base), {"STORES": number, "__module__": body.__module__}))
        return body
    return decorate

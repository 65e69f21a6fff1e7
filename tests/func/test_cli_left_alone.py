# SPDX-License-Identifier: BSD-2-Clause
"""redlock run when one of its processes is killed and the command cannot be, and what a keeper that stays behind still has open."""
import contextlib
import fcntl
import os
import signal
import subprocess
import time

from harness import LEASE_1S, FuncTest, safety
from process import GONE, QUIET, REDLOCK, PipeLines, merged, reap, spawn, state_of, until

ATTEMPTS = 5
NOBODY = "65534"
ANOTHER_USER = "setpriv --reuid %s --clear-groups -- " % NOBODY
# root without CAP_KILL may signal its own processes alone
HARMLESS = ["setpriv", "--bounding-set", "-kill", "--"]


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


class LeftAlone(FuncTest):
    COST = 8

    def setUp(self):
        super().setUp()
        self.d = self.daemon(LEASE_1S)

    def free(self, name):
        with self.d.client() as client:
            return not client.roles(name)

    def losses(self):
        with self.d.client() as client:
            return client.stats()["losses_total"]

    def harmless_run(self, name, script, **options):
        """A run that can kill none of its processes that have become another user's."""
        if os.geteuid() or subprocess.run([*HARMLESS, *ANOTHER_USER.split(), "true"], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("no other user's process can be started here")
        process = spawn([*HARMLESS, REDLOCK, "--addr", self.d.addr, "run", name, "--", "sh", "-c", script], **merged(QUIET, options))
        self.addCleanup(reap, process)
        return process

    def pids(self, process):
        """What the script told. The processes are killed in the end."""
        pids = [int(word) for word in process.stdout.readline().split()]
        for pid in pids:
            self.addCleanup(kill, pid)
        return pids

    def stays_taken(self, name):
        with safety(), self.d.client("rival") as rival:
            self.assertEqual(rival.ask("LOCK %s wait=1500ms" % name).kind, "TIMEOUT", "the lock is free while the command runs")

    def free_after(self, name, command):
        self.assertNotIn(state_of(command), GONE)
        kill(command)
        until(lambda: self.free(name), "the lock is free")

    def test_a_killed_run_holds_the_lock_for_a_command_that_it_cannot_kill(self):
        name = self.name()
        process = self.harmless_run(name, "exec %s sh -c 'echo $$ $PPID; exec sleep 1000'" % ANOTHER_USER)
        command, keeper = self.pids(process)
        process.kill()
        self.stays_taken(name)
        said = PipeLines(process.stderr).next("the keeper says what became of the lock")
        self.assertRegex(said, "^redlock: redlock was killed, and the command could not be stopped; process %d holds on to %s$" % (keeper, name))
        self.free_after(name, command)
        until(lambda: state_of(keeper) in GONE, "the keeper has ended")

    def test_what_a_killed_command_was_waiting_for_is_protected_too(self):
        name = self.name()
        process = self.harmless_run(name, "%s sh -c 'echo $$; exec sleep 1000'; true" % ANOTHER_USER)
        child, = self.pids(process)
        process.kill()
        self.stays_taken(name)
        self.free_after(name, child)

    def test_a_command_that_outlives_the_patience_of_redlock_keeps_the_lock_as_long_as_the_daemon_agrees(self):
        for _ in range(ATTEMPTS):
            if self.outlives_patience(self.name()):
                return
        self.skipTest("the daemon went on too late each time, when the lease was over")

    def outlives_patience(self, name):
        """False: the daemon went on too late, and the lock was lost."""
        before = self.losses()
        process = self.harmless_run(name, "%s sh -c \"echo \\$\\$ $$ $PPID; exec sleep 1000\"; true" % ANOTHER_USER)
        child, command, keeper = self.pids(process)
        self.d.freeze()
        until(lambda: state_of(command) in GONE, "the lease is about to end")
        self.d.thaw()
        self.assertEqual(process.wait(10), 123)
        self.assertRegex(process.stderr.readline().decode(), "^redlock: %s was lost .*could not be stopped; process %d keeps the lock if" % (name, keeper))
        if self.losses() > before:
            kill(child)
            return False
        self.stays_taken(name)
        self.free_after(name, child)
        return True

    def test_redlock_takes_the_lock_over_when_its_keeper_is_killed_and_the_command_cannot_be(self):
        name = self.name()
        process = self.harmless_run(name, "exec %s sh -c 'echo $$ $PPID; exec sleep 1000'" % ANOTHER_USER)
        command, keeper = self.pids(process)
        os.kill(keeper, signal.SIGKILL)
        self.stays_taken(name)
        self.assertIsNone(process.poll())
        self.free_after(name, command)
        self.assertEqual(process.wait(10), 123)
        self.assertRegex(process.stderr.read().decode(), "the process that held the lock was killed, and the command could not be")

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

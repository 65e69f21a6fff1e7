# SPDX-License-Identifier: BSD-2-Clause
"""redlock run and hold are paused with their commands, as by docker pause, kill -STOP or a suspended virtual machine, and go on later."""
import os
import signal
import subprocess

from harness import FuncTest
from process import REDLOCK, children_of, reap, spawn, state_of, until


class Paused(FuncTest):
    """One daemon with a short lease, which sees the connection all the time."""
    COST = 8

    def setUp(self):
        super().setUp()
        self.d = self.daemon({"lease": "4s", "max_lease": "12s"})
        self.c = self.client(self.d)

    def pause(self, *pids):
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        until(lambda: all(state_of(pid) == "T" for pid in pids), "they are stopped")

    @staticmethod
    def go_on(*pids):
        for pid in pids:
            os.kill(pid, signal.SIGCONT)

    def run_and_pause(self):
        """Returns (the process of redlock run, the pids of redlock, its keeper and its command)."""
        run = self.start_redlock(self.d, "run", "a", "--", "sh", "-c", "echo up; read line; echo $line", stdin=subprocess.PIPE)
        self.assertEqual(run.stdout.readline(), b"up\n")
        keeper, = children_of(run.pid)
        command, = children_of(keeper)
        self.pause(run.pid, keeper, command)
        return run, (command, keeper, run.pid)

    def test_a_command_goes_on_if_the_daemon_has_kept_its_lock(self):
        run, pids = self.run_and_pause()
        self.assertEqual(self.c.ask("LOCK a wait=5s").kind, "TIMEOUT", "a pause beyond the lease frees the lock")
        self.go_on(*pids)
        self.assertEqual(run.communicate(b"on\n", timeout=10), (b"on\n", b""))
        self.assertEqual(run.returncode, 0)

    def test_a_command_that_ended_meanwhile_has_its_own_code(self):
        run, (command, keeper, front) = self.run_and_pause()
        self.go_on(command)
        run.stdin.write(b"end\n")
        run.stdin.close()
        until(lambda: state_of(command) == "Z", "it has ended")
        self.assertEqual(self.c.ask("LOCK a wait=5s").kind, "TIMEOUT")
        self.go_on(keeper, front)
        run.wait(10)
        self.assertEqual((run.returncode, run.stdout.read(), run.stderr.read()), (0, b"end\n", b""))

    def test_a_lock_that_was_taken_away_meanwhile_is_lost_and_the_pause_is_told(self):
        run, pids = self.run_and_pause()
        self.c.ok("BREAK a")
        self.c.ok("LOCK a wait=9s")
        self.go_on(*pids)
        self.assertEqual(run.wait(10), 123)
        self.assertRegex(run.stderr.read(), rb"^redlock: a was lost \([a-z]+; this process was paused for [0-9]+m?s\); the command was stopped\n$")

    def test_a_daemon_that_does_not_answer_behind_a_pause_is_not_waited_for(self):
        run, pids = self.run_and_pause()
        self.assertEqual(self.c.ask("LOCK a wait=5s").kind, "TIMEOUT")
        self.d.freeze()
        self.go_on(*pids)
        self.assertEqual(run.wait(10), 123)
        self.d.thaw()
        self.assertIn(b"(redlockd does not answer; this process was paused for", run.stderr.read())

    def test_a_script_goes_on_with_the_lock_that_it_holds(self):
        env = dict(os.environ, REDLOCK_ADDR=self.d.addr)
        script = spawn(["sh", "-c", '%s hold --pid $$ a; read line; echo $line' % REDLOCK], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE)
        self.addCleanup(reap, script)
        script.stdout.readline()
        keeper = int(self.c.ok("SHOW a").rows[0]["pid"])
        self.pause(keeper)
        self.assertEqual(self.c.ask("LOCK a wait=5s").kind, "TIMEOUT")
        self.go_on(keeper)
        until(lambda: state_of(keeper) == "S", "it waits again")
        self.assertEqual(script.communicate(b"on\n", timeout=10), (b"on\n", b""))

# SPDX-License-Identifier: BSD-2-Clause
"""What redlock inherits: signals that are ignored, as under nohup or in the background of a script, and the variables of an outer redlock, and the terminal."""
import contextlib
import os
import pty
import shutil
import signal
import subprocess
import unittest

from harness import FuncTest
from process import QUIET, REDLOCK, call, merged, reap, spawn, state_of, until

FRONT = 'trap "" %s; export FRONT=$$; exec "$@"'


class Inherited(FuncTest):
    """One daemon."""
    COST = 4

    def setUp(self):
        super().setUp()
        self.d = self.daemon()

    def ignoring(self, signals, *argv):
        """redlock, whose pid is in FRONT, was started with these signals ignored."""
        process = spawn(["sh", "-c", FRONT % signals, "sh", REDLOCK, "--addr", self.d.addr, *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE)
        self.addCleanup(reap, process)
        return process

    def ends(self, process):
        out, err = process.communicate(timeout=20)
        return process.returncode, out.decode(), err.decode()

    def test_a_hold_outlives_a_signal_that_is_ignored(self):
        """The script ignores it, too, and runs on."""
        hold = self.ignoring("HUP INT", "hold", "a")
        hold.stdout.readline()
        for number in (signal.SIGHUP, signal.SIGINT):
            hold.send_signal(number)
        self.assertEqual(self.ends(hold)[0], 0)
        hold = self.ignoring("HUP", "hold", "a")
        hold.stdout.readline()
        hold.terminate()
        self.assertEqual(hold.wait(10), 128 + signal.SIGTERM)

    def test_a_worker_goes_on_after_a_signal_that_is_ignored(self):
        for text in ("one", "two"):
            self.assertEqual(self.call_redlock(self.d, "defer", "q", text + "\n")[0], 0)
        work = self.ignoring("INT", "work", "--wait", "100ms", "q", "--", "sh", "-c", "kill -INT $FRONT; cat")
        self.assertEqual(self.ends(work)[:2], (0, "one\ntwo\n"))

    def test_a_run_is_not_stopped_by_a_signal_that_is_ignored(self):
        run = self.ignoring("TSTP", "run", "a", "sh", "-c", "kill -TSTP $FRONT; echo done")
        self.assertEqual(self.ends(run)[:2], (0, "done\n"))

    def test_the_code_of_a_hold_is_told_although_the_ends_of_children_are_ignored(self):
        holder = self.client(self.d)
        holder.ok("LOCK a")
        hold = ("hold", "--pid", str(os.getpid()), "--wait", "0s", "-E", "7", "a")
        self.assertEqual(self.call_redlock(self.d, *hold, preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))[0], 7)

    def test_a_command_finds_no_locks_of_an_outer_redlock_beside_its_own(self):
        tell = ("sh", "-c", 'echo "$REDLOCK_NAME,$REDLOCK_NAME_2,${REDLOCK_FENCE:+f},$REDLOCK_FENCE_2"')
        inner = (REDLOCK, "--addr", self.d.addr)
        self.assertEqual(self.call_redlock(self.d, "run", "a", "b", "--", *inner, "run", "c", *tell)[:2], (0, "c,,f,\n"))
        self.assertEqual(self.call_redlock(self.d, "defer", "q", "x")[0], 0)
        self.assertEqual(self.call_redlock(self.d, "run", "a", "b", "--", *inner, "work", "--wait", "0s", "q", "--", *tell)[:2], (0, ",,,\n"))

    @unittest.skipUnless(os.geteuid() == 0, "only root makes such a program")
    def test_a_program_with_the_rights_of_another_user_asks_no_daemon_of_its_caller(self):
        """Else the caller has it believe in locks that nobody else respects."""
        copy = shutil.copy(REDLOCK, self.folder())
        os.chmod(os.path.dirname(copy), 0o755)
        os.chmod(copy, 0o4755)
        holder = self.client(self.d)
        holder.ok("LOCK mine")
        env = dict(os.environ, REDLOCK_ADDR=self.d.addr)
        self.assertIn("mine", call(copy, "--addr", self.d.addr, "ls", user=65534)[1])
        self.assertNotIn("mine", call(copy, "ls", user=65534, env=env)[1])
        self.assertIn("mine", call(copy, "ls", env=env)[1])


class Nested(FuncTest):
    """One daemon. A script holds a lock, and asks for it again."""
    COST = 6

    def setUp(self):
        super().setUp()
        self.d = self.daemon()
        self.env = dict(os.environ, REDLOCK_ADDR=self.d.addr, RL=REDLOCK)

    def script(self, text):
        return call("bash", "-c", text, env=self.env)

    def test_a_script_that_holds_a_lock_twice_is_told_so(self):
        for first, second in (("", ""), ("", "--shared"), ("--shared", ""), ("--shared", "--shared")):
            status, _, err = self.script("$RL hold %s --pid $$ a || exit 1; $RL hold %s --pid $$ a; code=$?; $RL ls | grep -q a && exit $code" % (first, second))
            self.assertEqual(status, 125)
            self.assertRegex(err, r"^redlock: process [0-9]+ holds a already, and would wait for itself: redlock hold --release comes first\n$")
        hold, release = "$RL hold --pid $$ a || exit 1;", "$RL hold --release --pid $$ a || exit 2;"
        self.assertEqual(self.script(5 * (hold + release))[0], 0)

    def test_a_run_below_a_run_of_the_same_name_says_that_it_waits_for_itself(self):
        for names in ("a", "b a"):
            status, _, err = self.script("$RL run %s -- $RL run --wait 4s a -- echo inner" % names)
            self.assertEqual(status, 124)
            self.assertRegex(err, "^redlock: waiting for a .*held by .*, which runs this command: it waits for itself\n")
            self.assertEqual(err.count("itself"), 1)

    def test_other_waits_wait_for_others(self):
        """A name that an outer redlock has left behind, and the name of another lock."""
        self.client(self.d).ok("LOCK a")
        for text in ("export REDLOCK_NAME=a REDLOCK_FENCE=1; $RL run --wait 3s a -- true", "$RL run b -- $RL run --wait 3s a -- true"):
            status, _, err = self.script(text)
            self.assertEqual(status, 124)
            self.assertNotIn("itself", err)


class Alone(FuncTest):
    """redlock leads the session, as under ssh -t: no shell controls its jobs."""
    COST = 3

    def leading(self, name, script):
        self.master, slave = self.terminal()
        self.d = self.daemon()
        process = spawn(["setsid", "--ctty", REDLOCK, "--addr", self.d.addr, "run", name, "--", "sh", "-c", "echo $$; " + script],
                        **merged(QUIET, {"stdin": slave}))
        os.close(slave)
        self.addCleanup(reap, process)
        return process, int(process.stdout.readline())

    def test_a_terminal_stops_nothing_that_nobody_could_continue(self):
        process, _ = self.leading("a", 'read line; echo "$line"')
        os.write(self.master, b"\x1ago\n")
        self.assertEqual(process.communicate(timeout=20)[0], b"go\n")
        self.assertEqual(process.returncode, 0)

    def test_a_terminal_that_closes_ends_a_command_that_is_stopped(self):
        process, pid = self.leading("a", "kill -STOP $$")
        until(lambda: state_of(pid) == "T", "it is stopped")
        os.close(self.master)
        self.assertEqual(process.wait(10), 128 + signal.SIGHUP)


class Foreground(FuncTest):
    """A shell leads the session of a terminal, and redlock runs below it. Standard input of redlock is not the terminal, but its command asks there."""
    COST = 4

    def shell(self, script):
        """Runs a script at a terminal of its own, in which $RL is redlock. Returns (its pid, the other end of the terminal)."""
        self.d = self.daemon()
        pid, master = pty.fork()
        if pid == 0:
            os.execvpe("bash", ["bash", "--norc", "-c", script], dict(os.environ, REDLOCK_ADDR=self.d.addr, RL=REDLOCK))
        self.addCleanup(os.close, master)
        self.addCleanup(self.end, pid)
        return pid, master

    def end(self, pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)

    def test_a_command_may_ask_at_the_terminal(self):
        _, master = self.shell("echo data | $RL run a -- sh -c 'cat; echo ask >/dev/tty; read line </dev/tty; echo got $line' | cat; echo code $?")
        self.assertIn(b"ask", self.terminal_shows(master, b"ask"))
        os.write(master, b"hello\n")
        self.assertRegex(self.terminal_shows(master, b"code"), rb"got hello\r\n.*code")

    def test_an_interrupt_of_the_terminal_reaches_the_command_once(self):
        script = "trap \"echo int\" INT; echo up; until read line; do :; done </dev/tty; echo last $line"
        _, master = self.shell("$RL run a -- bash -c '%s' </dev/null; :" % script)
        self.terminal_shows(master, b"up\r")
        os.write(master, b"\x03")
        self.assertIn(b"int\r", self.terminal_shows(master, b"int\r"))
        os.write(master, b"end\n")
        shown = self.terminal_shows(master, b"last end")
        self.assertIn(b"last end", shown)
        self.assertNotIn(b"int\r", shown)

    def test_the_end_of_the_shell_ends_a_command_that_asks(self):
        pid, master = self.shell("echo data | $RL run a -- sh -c 'echo ask >/dev/tty; read line </dev/tty'; :")
        self.terminal_shows(master, b"ask")
        os.kill(pid, signal.SIGKILL)
        c = self.client(self.d)
        until(lambda: not c.roles("a"), "the lock is free")


class Stopped(FuncTest):
    """The command of a run has been stopped, by a debugger or by kill -STOP."""
    COST = 2

    def test_a_signal_that_is_to_end_the_command_is_followed_by_SIGCONT(self):
        d = self.daemon()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            run = self.start_redlock(d, "run", "a", "--", "sh", "-c", "ulimit -c 0; echo $$; exec sleep 1000")
            command = int(run.stdout.readline())
            os.kill(command, signal.SIGSTOP)
            until(lambda: state_of(command) == "T", "it is stopped")
            run.send_signal(number)
            self.assertEqual(run.wait(10), 128 + number)

# SPDX-License-Identifier: BSD-2-Clause
"""redlock hold: a lock for a shell script."""
import os
import select
import signal
import subprocess

from harness import FuncTest, on_each_store
from process import BUILD, REDLOCK, call, reap, spawn, until
from test_manual import example

PATH = "%s:%s" % (os.path.abspath(BUILD), os.environ["PATH"])


class Scripts:
    """Runs shell scripts beside the daemon of the class."""

    def script(self, text, *argv, shell="bash", **options):
        env = dict(os.environ, REDLOCK_ADDR=self.d.addr, PATH=PATH)
        process = spawn([shell, "-c", text, *argv], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        self.addCleanup(reap, process)
        return process

    def redlock(self, *argv, **options):
        return call(REDLOCK, "--addr", self.d.addr, *argv, **options)

    def becomes_free(self, name):
        until(lambda: not self.connect().roles(name), "%s is free" % name)


@on_each_store
class ForAProcess(Scripts):
    COST, CONFIG = 6, {"lease": "2s", "max_lease": "4s"}

    def holding(self, name, rest="echo $fence; read line", shell="sh", **options):
        process = self.script("fence=$(redlock hold --pid $$ %s) || exit; %s" % (name, rest), shell=shell, **options)
        self.assertRegex(process.stdout.readline(), rb"^[1-9][0-9]+\n$")
        return process

    def test_the_lock_is_held_while_the_script_runs(self):
        name, c = self.name(), self.connect()
        process = self.holding(name)
        row, = c.ok("SHOW " + name).rows
        self.assertEqual(row["name"].split("/")[0], "redlock hold sh")
        self.assertTrue(row["note"].startswith("sh -c fence="), row)
        self.assertEqual(c.ask("LOCK %s wait=3s" % name).kind, "TIMEOUT", "it outlives the lease")
        process.stdin.close()
        self.assertEqual(process.wait(10), 1)  # read at the end of its input
        self.becomes_free(name)

    def test_a_script_may_take_the_complaints_along_with_the_fence(self):
        name = self.name()
        process = self.script("out=$(redlock hold --pid $$ %s 2>&1) || exit; echo $out; read line" % name)
        self.assertTrue(select.select([process.stdout], [], [], 10)[0], "the shell waits for the end of that pipe")
        self.assertRegex(process.stdout.readline(), rb"^[1-9][0-9]+\n$")
        self.assertTrue(self.connect().roles(name))

    def test_a_script_that_is_killed_frees_the_lock(self):
        for number in (signal.SIGKILL, signal.SIGTERM):
            name = self.name()
            process = self.holding(name)
            process.send_signal(number)
            process.wait(10)
            self.becomes_free(name)

    def test_release_frees_the_lock_before_it_returns(self):
        name = self.name()
        process = self.holding(name, "echo $fence; redlock hold --release %s; echo $?; redlock show %s >/dev/null; echo $?" % (name, name))
        out, err = process.stdout.read(), process.stderr.read()  # the reader may have the rest along with the fence
        self.assertEqual(out, b"0\n1\n", err)

    def test_release_as_the_last_command_of_a_script(self):
        """The shell becomes redlock."""
        name = self.name()
        process = self.script("redlock hold --pid $$ %s >/dev/null || exit 9; exec redlock hold --release %s" % (name, name))
        self.assertEqual(process.wait(10), 0)
        self.assertEqual(self.connect().roles(name), [])

    def test_release_of_what_is_not_held_is_1(self):
        process = self.script("redlock hold --release %s; exit $?" % self.name())
        err = process.communicate(timeout=10)[1]
        self.assertEqual((process.returncode, err), (1, b"redlock: nothing holds this lock for process %d\n" % process.pid))

    def test_the_lock_that_is_not_free_in_time_is_124(self):
        name = self.name()
        self.connect("the-other").ok("LOCK " + name)
        process = self.script("fence=$(redlock hold --wait 100ms --pid $$ %s) || exit; echo granted" % name)
        out, err = process.communicate(timeout=10)
        self.assertEqual((process.returncode, out), (124, b""))
        self.assertIn(b"the-other", err)

    def test_a_script_that_is_killed_while_it_waits_gives_up_its_place(self):
        name, holder = self.name(), self.connect()
        holder.ok("LOCK " + name)
        process = self.script("fence=$(redlock hold --pid $$ %s); echo granted" % name)
        until(lambda: holder.roles(name) == ["holder", "waiter"], "it waits")
        process.kill()
        until(lambda: holder.roles(name) == ["holder"], "it does not wait any more", 2)

    def test_an_interrupted_wait_gives_up_its_place(self):
        name, holder = self.name(), self.connect()
        holder.ok("LOCK " + name)
        process = self.script("exec redlock hold --pid 1 %s" % name) if os.geteuid() == 0 else self.script("exec redlock hold --pid %d %s" % (os.getpid(), name))
        until(lambda: holder.roles(name) == ["holder", "waiter"], "it waits")
        process.send_signal(signal.SIGINT)
        process.wait(10)
        until(lambda: holder.roles(name) == ["holder"], "it does not wait any more", 2)

    def test_a_fence_that_cannot_be_printed_is_a_failure_and_leaves_no_lock(self):
        name = self.name()
        process = self.script("redlock hold --pid $$ %s >/dev/full; echo $?; read line" % name)
        self.assertEqual(process.stdout.readline(), b"125\n")
        self.assertEqual(self.connect().roles(name), [])

    def test_a_lost_lock_stops_the_script(self):
        name = self.name()
        if not self.r:
            return
        process = self.holding(name, "trap 'echo stopped; exit 3' TERM; echo $fence; while :; do sleep 0.05; done")
        self.r.cli.delete("lock:" + name)
        out, err = process.communicate(timeout=10)
        self.assertEqual((process.returncode, out), (3, b"stopped\n"))
        self.assertIn(b"was lost (evicted", err)

    def test_a_script_that_ignores_the_loss_is_killed(self):
        name = self.name()
        if not self.r:
            return
        process = self.holding(name, "trap '' TERM; echo $fence; while :; do sleep 0.05; done")
        self.r.cli.delete("lock:" + name)
        self.assertEqual(process.wait(10), -signal.SIGKILL)

    def test_the_holder_keeps_no_descriptor_of_the_script(self):
        """The process in the background keeps no descriptor of the script, such as one that holds a lock of a file."""
        name, path = self.name(), os.path.join(self.folder(), "file")
        process = self.script("exec 9>%s; flock 9; fence=$(redlock hold --pid $$ %s) || exit; exec 9>&-; flock -n %s true; echo $?; read line" % (path, name, path))
        self.assertEqual(process.stdout.readline(), b"0\n")

    def test_mistakes(self):
        for argv, text in ((("--pid", "x", "a"), "$$"), (("--pid", "0", "a"), "$$"), (("--pid", "4194303", "a"), "no process 4194303"), ((), "missing"),
                           (("a", "b"), "too much")):
            status, out, err = self.redlock("hold", *argv)
            self.assertEqual((status, out), (125, ""), argv)
            self.assertIn(text, err)


@on_each_store
class ForAnInput(Scripts):
    COST, CONFIG = 3, {"lease": "2s", "max_lease": "4s"}

    def hold(self, name, *argv):
        process = self.start_redlock(self.d, "hold", *argv, name, stdin=subprocess.PIPE)
        return process

    def test_the_end_of_the_input_frees_the_lock(self):
        name = self.name()
        process = self.hold(name)
        self.assertRegex(process.stdout.readline(), rb"^[1-9][0-9]+\n$")
        process.stdin.write(b"what is written says nothing\n")
        process.stdin.flush()
        self.assertEqual(self.connect().ask("LOCK %s wait=100ms" % name).kind, "TIMEOUT")
        process.stdin.close()
        self.assertEqual(process.wait(10), 0)
        self.becomes_free(name)

    def test_a_signal_frees_the_lock(self):
        name = self.name()
        process = self.hold(name)
        process.stdout.readline()
        process.terminate()
        self.assertEqual(process.wait(10), 128 + signal.SIGTERM)
        self.becomes_free(name)

    def test_a_signal_ends_the_wait_with_its_code(self):
        name, holder = self.name(), self.connect()
        holder.ok("LOCK " + name)
        process = self.hold(name)
        until(lambda: holder.roles(name) == ["holder", "waiter"], "it waits")
        process.terminate()
        self.assertEqual(process.wait(10), 128 + signal.SIGTERM)
        self.assertEqual(holder.roles(name), ["holder"])

    def test_the_end_of_the_input_ends_the_wait(self):
        name, holder = self.name(), self.connect()
        holder.ok("LOCK " + name)
        process = self.hold(name)
        until(lambda: holder.roles(name) == ["holder", "waiter"], "it waits")
        process.stdin.close()
        process.wait(10)
        self.assertEqual(holder.roles(name), ["holder"])

    def test_123_when_the_lock_is_lost(self):
        if not self.r:
            return
        name = self.name()
        process = self.hold(name)
        process.stdout.readline()
        self.r.cli.delete("lock:" + name)
        self.assertEqual(process.wait(10), 123)

    def test_an_input_that_never_was_is_refused(self):
        status, out, err = self.redlock("hold", "a", stdin=subprocess.DEVNULL)
        self.assertEqual((status, out), (125, ""))
        self.assertIn("--pid $$", err)


class Away(Scripts, FuncTest):
    """The daemon has gone, or hangs, when a name is to be kept: it is not, and somebody must know."""
    COST = 4

    def setUp(self):
        super().setUp()
        self.d = self.daemon()

    def ends(self, befalls, name):
        process = self.start_redlock(self.d, "hold", "--keep", "5s", name, stdin=subprocess.PIPE)
        process.stdout.readline()
        befalls()
        process.stdin.close()
        return process.wait(10), process.stderr.read().decode()

    def test_a_name_that_could_not_be_kept_is_told_once(self):
        status, err = self.ends(self.d.freeze, "a")
        self.d.thaw()
        self.assertEqual((status, err.count("\n")), (0, 1), err)
        self.assertTrue(err.startswith("redlock: unlocking a: "), err)
        status, err = self.ends(self.d.kill, "b")
        self.assertEqual((status, err.count("\n")), (0, 1), err)
        self.assertTrue(err.startswith("redlock: unlocking b: "), err)

    def test_release_waits_for_the_daemon(self):
        """What release says is true: the lock is free."""
        process = self.script("redlock hold --pid $$ a || exit; read line; redlock hold --release a; echo $?; redlock show a >/dev/null; echo $?")
        process.stdout.readline()
        self.d.finish()
        process.stdin.write(b"\n")
        process.stdin.flush()
        self.assertFalse(select.select([process.stdout], [], [], 2.5)[0], "it is not free: the session has grace")
        self.d.start()
        out, err = process.communicate(timeout=30)
        self.assertEqual(out, b"0\n1\n", err)

    def test_the_end_of_a_lock_that_was_not_to_be_kept_needs_no_daemon(self):
        process = self.start_redlock(self.d, "hold", "c", stdin=subprocess.PIPE)
        process.stdout.readline()
        self.d.kill()
        process.stdin.close()
        self.assertEqual((process.wait(10), process.stderr.read()), (0, b""))


class Printed(Scripts, FuncTest):
    """The scripts of redlock(1), as they are printed."""
    COST = 2

    def setUp(self):
        super().setUp()
        self.d = self.daemon()
        self.connect = lambda: self.client(self.d)

    def printed(self, begin):
        folder = self.folder()
        for word in ("dump", "upload"):
            path = os.path.join(folder, word)
            with open(path, "w") as script:
                script.write('#!/bin/sh\necho %s "$1"\nredlock show backup/db >/dev/null 2>&1 && echo held || echo free\nread go\n' % word)
            os.chmod(path, 0o755)
        return self.script(example(begin).replace("\\&", ""), cwd=folder)

    def goes_through(self, process):
        dumps = process.stdout.readline().split()
        self.assertEqual((dumps[0], process.stdout.readline()), (b"dump", b"held\n"))
        process.stdin.write(b"go\n")
        process.stdin.flush()
        self.assertEqual((process.stdout.readline(), process.stdout.readline()), (b"upload %s\n" % dumps[1], b"free\n"))
        process.stdin.close()
        self.assertEqual(process.wait(10), 1)  # read at the end of its input

    def dies(self, process):
        process.stdout.readline(), process.stdout.readline()
        process.kill()
        self.becomes_free("backup/db")

    def test_with_a_process(self):
        self.goes_through(self.printed("protects a part of a shell script"))
        self.dies(self.printed("protects a part of a shell script"))

    def test_with_a_coprocess(self):
        self.goes_through(self.printed("This is for a coprocess"))
        self.dies(self.printed("This is for a coprocess"))

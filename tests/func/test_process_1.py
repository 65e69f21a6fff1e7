# SPDX-License-Identifier: BSD-2-Clause
"""redlock as process 1 of a container. The kernel drops each signal for process 1 that has no handler there, so redlock must not leave it to the default."""
import os
import signal

from harness import FuncTest
from process import REDLOCK, call, children_of, reap, spawn, state_of, until

NEW = ["unshare", "--pid", "--fork", "--mount-proc"]


class Process1(FuncTest):
    """One daemon, whose lock "held" another session has."""
    COST = 6

    def setUp(self):
        super().setUp()
        if call(*NEW, "true")[0]:
            self.skipTest("no pid namespaces here")
        self.d = self.daemon()
        self.holder = self.client(self.d)
        self.holder.ok("LOCK held")

    def begin(self, *argv, addr=None, **options):
        """Starts redlock in a pid namespace of its own. Returns unshare, which ends as redlock does, and the pid of redlock as it is seen here."""
        process = spawn([*NEW, REDLOCK, "--addr", addr or self.d.addr, *argv], **options)
        self.addCleanup(reap, process)
        pid, = until(lambda: children_of(process.pid), "unshare has forked")
        until(lambda: open("/proc/%d/comm" % pid).read() == "redlock\n", "it is redlock")
        return process, pid

    def ends_by(self, number, ready, *argv, **options):
        """ready: returns true when redlock waits."""
        null = os.open(os.devnull, os.O_RDWR)
        self.addCleanup(os.close, null)
        inlet, outlet = os.pipe()
        self.addCleanup(os.close, outlet)
        process, pid = self.begin(*argv, stdin=inlet, stdout=null, stderr=null, **options)
        os.close(inlet)
        until(lambda: ready(pid), "%s waits" % argv[0])
        os.kill(pid, number)
        self.assertEqual(process.wait(10), 128 + number, argv)

    def sessions(self):
        return len(self.holder.ok("LIST sessions").rows)

    def test_a_signal_ends_what_waits(self):
        def waits_for_the_lock(_):
            return len(self.holder.roles("held")) == 2

        def is_there(_):
            return self.sessions() == 2

        def runs(pid):
            return state_of(pid) == "S" and children_of(pid)

        for number in (signal.SIGTERM, signal.SIGINT):
            for argv in (("run", "held", "--", "sleep", "100"), ("lead", "held", "--", "sleep", "100"), ("hold", "held")):
                self.ends_by(number, waits_for_the_lock, *argv)
                until(lambda: len(self.holder.roles("held")) == 1, "its request is withdrawn")
            for argv in (("work", "queue", "--", "cat"), ("watch",), ("raw", "TAKE queue wait=60s")):
                self.ends_by(number, is_there, *argv)
                until(lambda: self.sessions() == 1, "its session has ended")
            self.ends_by(number, runs, "run", "--wait", "60s", "free", "--", "true", addr="/nonexistent.sock")

    def test_a_signal_ends_a_drain_that_waits(self):
        self.ends_by(signal.SIGTERM, lambda _: self.sessions() == 2, "drain", "--wait", "--in", "60s")

    def test_the_code_is_that_of_the_command(self):
        self.assertEqual(self.call_in_container("run", "free", "--", "sh", "-c", "echo $$; exit 7")[0], 7)
        self.assertEqual(self.call_in_container("run", "free", "--", "sh", "-c", "kill -9 $$")[0], 128 + 9)
        self.assertEqual(self.call_in_container("try", "held", "--", "true")[0], 124)

    def call_in_container(self, *argv):
        return call(*NEW, REDLOCK, "--addr", self.d.addr, *argv)

    def test_a_signal_is_passed_on_to_the_command_once(self):
        process, pid = self.begin("run", "free", "--", "sh", "-c", "trap 'echo term' TERM; echo up; read line || read line; echo $line", stdin=-1, stdout=-1)
        self.assertEqual(process.stdout.readline(), b"up\n")
        os.kill(pid, signal.SIGTERM)
        self.assertEqual(process.stdout.readline(), b"term\n")
        process.stdin.write(b"end\n")
        process.stdin.close()
        self.assertEqual(process.stdout.read(), b"end\n")
        self.assertEqual(process.wait(10), 0)

    def test_a_name_is_kept_when_a_signal_has_ended_the_command(self):
        """The keeper has said so to the daemon before process 1 ends, for that ends all others."""
        process, pid = self.begin("run", "--keep", "5s", "free", "--", "sh", "-c", "echo up; exec sleep 100", stdout=-1)
        self.assertEqual(process.stdout.readline(), b"up\n")
        os.kill(pid, signal.SIGTERM)
        self.assertEqual(process.wait(10), 128 + signal.SIGTERM)
        self.assertEqual(self.holder.roles("free"), ["kept"])

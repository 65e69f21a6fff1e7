# SPDX-License-Identifier: BSD-2-Clause
"""redlock run when its daemon ends: the command runs on under the same lock or is stopped in time, and a run that waits goes on waiting."""
import os
import signal
import subprocess
import threading
import time

from harness import FuncTest
from process import GONE, state_of, until
from wire import Client

REPORT = 'echo "$REDLOCK_FENCE $$"; '  # what a command prints first


class Rival(threading.Thread):
    """Asks another daemon for the name over and over. granted: the moment and the fence of each grant."""

    def __init__(self, daemon, name):
        super().__init__(daemon=True)
        self.addr, self.lock, self.granted, self.asked, self.over = daemon.addr, name, [], 0, threading.Event()

    def run(self):
        with Client(self.addr, "rival") as client:
            while not self.over.wait(0.005):
                reply = client.ask("LOCK %s" % self.lock)
                self.asked += 1
                if reply.kind == "OK":
                    self.granted.append((time.monotonic(), int(reply["fence"])))
                    client.ok("UNLOCK %s sync=yes" % self.lock)

    def end(self):
        self.over.set()
        self.join(10)
        return self.granted


class RunTest(FuncTest):
    def run_under(self, daemon, name, script, *options, **more):
        return self.start_redlock(daemon, "run", *options, name, "--", "sh", "-c", script, **more)

    def begun(self, process):
        """(fence, pid) of a command that prints REPORT."""
        fence, pid = process.stdout.readline().split()
        return int(fence), int(pid)

    def ended(self, process, timeout=30):
        out, err = process.communicate(timeout=timeout)
        return process.returncode, out.decode(), err.decode()

    def rival(self, daemon, name):
        rival = Rival(daemon, name)
        rival.start()
        self.addCleanup(rival.end)
        until(lambda: rival.asked, "the rival asks")
        return rival

    def sessions(self, daemon):
        with daemon.client() as client:
            return [row for row in client.ok("LIST sessions").rows if "name" in row and row["name"].startswith("redlock run")]

    def resumed(self, daemon):
        """Its sessions that are resumed, whether or not the stores have confirmed their locks: a daemon that is killed while it adopts loses nothing."""
        return [row for row in self.sessions(daemon) if "grace_ms" not in row]

    def free_soon(self, daemon, name):
        with daemon.client() as client:
            client.ok("LOCK %s wait=9s" % name, 15)


class OnRedis(RunTest):
    """One Redis and two daemons. One daemon ends, and a client of the other wants the lock."""
    COST = 25
    CONFIG = {"lease": "6s", "max_lease": "12s"}

    def setUp(self):
        super().setUp()
        self.server = self.redis()
        self.d = self.redis_daemon(self.server, self.CONFIG)
        self.other = self.redis_daemon(self.server, self.CONFIG)

    def survives(self, end):
        name = self.name()
        process = self.run_under(self.d, name, REPORT + "read line; echo \"$REDLOCK_FENCE\"; exit 7", stdin=subprocess.PIPE)
        fence, pid = self.begun(process)
        rival = self.rival(self.other, name)
        for _ in range(2):
            end()
            self.assertNotIn(state_of(pid), GONE)
            self.d.start()
            until(lambda: self.resumed(self.d), "the run has resumed its session")
        with self.other.client("patient") as patient:
            self.assertEqual(patient.ask("LOCK %s wait=6500ms" % name, 20).kind, "TIMEOUT", "the lock outlives the lease of 6 s")
        self.assertNotIn(state_of(pid), GONE)
        self.assertEqual(rival.granted, [], "the lock was free for a moment")
        row = self.held(self.d, name)
        self.assertEqual(int(row["fence"]), fence)
        process.stdin.write(b"\n")
        process.stdin.flush()
        code, out, err = self.ended(process)
        self.assertEqual((code, out, err), (7, "%d\n" % fence, ""))
        until(lambda: rival.granted, "the rival gets the lock at the end")
        self.assertGreater(rival.end()[0][1], fence)
        self.assertEqual(self.sessions(self.d), [])

    def held(self, daemon, name):
        with daemon.client() as client:
            rows = [row for row in client.ok("SHOW " + name).rows if row["role"] == "holder"]
        self.assertEqual(len(rows), 1, rows)
        return rows[0]

    def test_a_command_outlives_two_kills_of_its_daemon(self):
        self.survives(self.d.kill)

    def test_a_command_outlives_two_orderly_restarts(self):
        self.survives(self.d.finish)

    def test_a_command_is_stopped_in_time_when_the_daemon_does_not_come_back(self):
        name = self.name()
        process = self.run_under(self.d, name, "trap '' TERM; " + REPORT + "while :; do sleep 0.05; done")
        fence, pid = self.begun(process)
        with self.other.client("next") as client:
            client.begin("LOCK %s wait=30s" % name)
            self.d.kill()
            granted = client.reply(timeout=30)
            state = state_of(pid)
        self.assertEqual(granted.kind, "OK")
        self.assertIn(state, GONE, "the command still ran when the next client had the lock")
        self.assertGreater(int(granted["fence"]), fence)
        code, _, err = self.ended(process)
        self.assertEqual(code, 123)
        self.assertIn("was lost", err)

    def test_a_run_that_waits_is_served_after_a_restart_of_its_daemon(self):
        for end in (self.d.kill, self.d.finish):
            name = self.name()
            with self.other.client("holder") as holder:
                first = int(holder.ok("LOCK " + name)["fence"])
                process = self.run_under(self.d, name, REPORT)
                until(lambda: self.waits(self.d, name), "it waits")
                end()
                self.d.start()
                until(lambda: self.waits(self.d, name), "it waits again", 15)
                self.assertIsNone(process.poll())
                holder.ok("UNLOCK " + name)
                code, out, err = self.ended(process)
            self.assertEqual((code, err), (0, ""))
            self.assertGreater(int(out.split()[0]), first)

    def waits(self, daemon, name):
        with daemon.client() as client:
            return "waiter" in client.roles(name)

    def test_a_run_that_waits_for_several_locks_is_served_after_a_restart_of_its_daemon(self):
        for options, most in (([], 2), (["--any"], 1)):
            names = [self.name(), self.name()]
            with self.other.client("holder") as holder:
                for name in names:
                    holder.ok("LOCK " + name)
                process = self.start_redlock(self.d, "run", *options, *names, "--", "sh", "-c", REPORT + "read line", stdin=subprocess.PIPE)
                until(lambda: any(self.waits(self.d, name) for name in names), "it waits")
                self.d.kill()
                self.d.start()
                until(lambda: any(self.waits(self.d, name) for name in names), "it waits again", 15)
                self.assertIsNone(process.poll())
                for name in names:
                    holder.ok("UNLOCK " + name)
                self.assertTrue(process.stdout.readline().split())
                with self.d.client() as client:
                    held = [row for name in names for row in client.ok("SHOW " + name).rows if row["role"] == "holder"]
                self.assertEqual([row["count"] for row in held], ["1"] * most, held)
                code, out, err = self.ended(process)
            self.assertEqual((code, out, err), (1, "", ""))
            for name in names:
                self.free_soon(self.d, name)

    def test_a_wait_that_ends_while_the_daemon_restarts_is_124(self):
        name = self.name()
        with self.other.client("holder") as holder:
            holder.ok("LOCK " + name)
            process = self.run_under(self.d, name, "echo never", "--wait", "2s")
            until(lambda: self.waits(self.d, name), "it waits")
            self.d.kill()
            self.d.start()
            code, out, _ = self.ended(process)
        self.assertEqual((code, out), (124, ""))

    def test_a_command_that_ends_while_the_daemon_is_away_leaves_no_lock(self):
        name = self.name()
        process = self.run_under(self.d, name, REPORT + "read line; exit 7", stdin=subprocess.PIPE)
        self.begun(process)
        self.d.kill()
        begin = time.monotonic()
        process.stdin.close()
        process.stdin = None
        self.assertEqual(process.wait(30), 7)
        self.figure("without a daemon a run ends %.1f s after its command" % (time.monotonic() - begin))
        self.d.start()
        until(lambda: not self.sessions(self.d), "the session has ended")
        self.free_soon(self.other, name)


class OnMemory(RunTest):
    COST = 8
    CONFIG = {"lease": "5s", "max_lease": "8s"}

    def setUp(self):
        super().setUp()
        self.d = self.daemon(self.CONFIG)

    def test_a_daemon_that_is_stopped_when_the_command_ends_keeps_the_name_afterwards(self):
        name = self.name()
        process = self.run_under(self.d, name, REPORT + "read line; exit 7", "--keep", "8s", stdin=subprocess.PIPE)
        self.begun(process)
        self.d.freeze()
        time.sleep(2.1)  # a third of the lease after the grant redlock sends a CHECK, which is not answered now
        process.stdin.close()
        process.stdin = None
        self.assertEqual(process.wait(10), 7)
        self.d.thaw()
        with self.d.client() as client:
            until(lambda: not self.sessions(self.d), "the session has ended")
            self.assertEqual(client.roles(name), ["kept"])

    def test_a_command_outlives_an_orderly_restart(self):
        name = self.name()
        process = self.run_under(self.d, name, REPORT + "read line; exit 7", stdin=subprocess.PIPE)
        fence, pid = self.begun(process)
        self.d.finish()
        self.d.start()
        until(lambda: self.resumed(self.d), "the run has resumed its session")
        with self.d.client("rival") as rival:
            self.assertEqual(rival.ask("LOCK %s wait=5500ms" % name, 20).kind, "TIMEOUT", "the lock outlives the lease of 5 s")
            self.assertNotIn(state_of(pid), GONE)
            process.stdin.close()
            process.stdin = None
            self.assertEqual(process.wait(30), 7)
            self.assertGreater(int(rival.ok("LOCK %s wait=10s" % name)["fence"]), fence)

    # --- grace is for connections that break, not for processes that end ----------------------------------------------

    def begin_waiter(self, name):
        waiter = self.client(self.d, "next")
        waiter.begin("LOCK %s wait=30s" % name)
        return waiter

    def free_at_once(self, waiter, begin):
        granted = waiter.reply(timeout=30)
        self.assertEqual(granted.kind, "OK")
        self.figure("free after %.0f ms" % ((granted.at - begin) * 1000))
        self.assertLess(granted.at - begin, 4, "only the lease of 5 s freed it")

    def test_kill_of_run_frees_at_once(self):
        name = self.name()
        process = self.run_under(self.d, name, REPORT + "exec sleep 1000")
        _, pid = self.begun(process)
        waiter, begin = self.begin_waiter(name), time.monotonic()
        process.kill()
        self.free_at_once(waiter, begin)
        self.assertIn(state_of(pid), GONE)

    def test_kill_of_the_process_that_keeps_the_lock_frees_it_at_once(self):
        name = self.name()
        process = self.run_under(self.d, name, REPORT + "echo $PPID; exec sleep 1000")
        _, pid = self.begun(process)
        keeper = int(process.stdout.readline())
        waiter, begin = self.begin_waiter(name), time.monotonic()
        os.kill(keeper, signal.SIGKILL)
        self.free_at_once(waiter, begin)
        self.assertIn(state_of(pid), GONE)
        self.assertEqual(process.wait(10), 123)

    def test_kill_of_a_run_that_waits_withdraws_it(self):
        for number in (signal.SIGKILL, signal.SIGINT, signal.SIGTERM):
            name, holder = self.name(), self.client(self.d)
            holder.ok("LOCK " + name)
            process = self.run_under(self.d, name, "true")
            until(lambda: len(holder.roles(name)) == 2, "it waits")
            process.send_signal(number)
            self.assertEqual(process.wait(10), -number)
            until(lambda: len(holder.roles(name)) == 1, "it has left the queue")
            self.assertEqual(self.sessions(self.d), [])

    def test_a_normal_end_leaves_no_session(self):
        name = self.name()
        for argv, code in ((["true"], 0), (["false"], 1), (["/nonexistent/program"], 127)):
            self.assertEqual(self.call_redlock(self.d, "run", name, "--", *argv)[0], code)
            self.assertEqual(self.sessions(self.d), [])
            with self.d.client() as client:
                self.assertEqual(client.roles(name), [])

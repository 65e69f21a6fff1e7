# SPDX-License-Identifier: BSD-2-Clause
"""The command line of redlock, as a person and as a script uses it."""
import fcntl
import json
import os
import signal
import struct
import subprocess
import termios
import time

from daemon import on_redis
from harness import on_each_store
from process import GONE, QUIET, REDLOCK, call, merged, reap, spawn, state_of, until


class Tool:
    """redlock with the daemon of the class."""

    def redlock(self, *argv, **options):
        return self.call_redlock(self.d, *argv, **options)

    def spawn(self, *argv, **options):
        return self.start_redlock(self.d, *argv, **options)

    def free(self, name):
        return not self.connect().roles(name)

    def held(self, name):
        return [row for row in self.connect().ok("SHOW " + name).rows if row["role"] == "holder"]


@on_each_store
class Run(Tool):
    """redlock run and try: exit codes, environment, signals."""
    COST, TCP = 12, True
    CONFIG = {"lease": "2s", "max_lease": "5s"}

    def test_the_child_finds_its_lock_in_the_environment(self):
        name = self.name()
        status, out, err = self.redlock("run", name, "--", "sh", "-c", 'echo "$REDLOCK_NAME $REDLOCK_FENCE"')
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"^%s [1-9][0-9]*\n$" % name)
        self.assertTrue(self.free(name))

    def test_fences_of_runs_grow(self):
        name = self.name()
        fences = [int(self.redlock("run", name, "--", "sh", "-c", "echo $REDLOCK_FENCE")[1]) for _ in range(5)]
        self.assertEqual(fences, sorted(set(fences)))

    def test_the_status_is_that_of_the_child(self):
        name = self.name()
        for code in (0, 1, 7, 122, 200, 255):
            self.assertEqual(self.redlock("run", name, "--", "sh", "-c", "exit %d" % code)[0], code)
        self.assertEqual(self.redlock("run", name, "sh", "-c", "exit 3")[0], 3, "without --")
        self.assertEqual(self.redlock("run", name, "--", "sh", "-c", "kill -TERM $$")[0], 128 + 15)
        self.assertEqual(self.redlock("run", name, "--", "sh", "-c", "kill -KILL $$")[0], 128 + 9)

    def test_126_and_127_when_the_command_cannot_be_run(self):
        name = self.name()
        self.assertEqual(self.redlock("run", name, "--", "/nonexistent/program")[0], 127)
        self.assertEqual(self.redlock("run", name, "--", "no-such-program-anywhere")[0], 127)
        self.assertEqual(self.redlock("run", name, "--", "/etc/passwd")[0], 126)
        self.assertTrue(self.free(name))

    def test_124_when_the_lock_is_not_free_in_time(self):
        name = self.name()
        self.connect("the other").ok("LOCK " + name)
        for argv in (["try", name, "--", "true"], ["run", name, "--wait", "0", "--", "true"], ["run", "--wait", "0s", name, "true"]):
            status, out, _ = self.redlock(*argv)
            self.assertEqual((status, out), (124, ""), argv)
        begin = time.monotonic()
        self.assertEqual(self.redlock("run", name, "--wait", "300ms", "--", "true")[0], 124)
        self.assertTrue(0.3 <= time.monotonic() - begin < 2)
        self.assertEqual(self.redlock("try", "-E", "55", name, "--", "true")[0], 55)

    def test_125_when_redlock_itself_fails(self):
        status, _, err = call(REDLOCK, "--addr", "/nonexistent/sock", "run", "a", "--", "true")
        self.assertEqual(status, 125)
        self.assertIn("/nonexistent/sock", err)
        for wrong in (["run"], ["run", "a"], ["run", "a", "--nonsense", "--", "true"], ["run", "", "--", "true"]):
            status, _, err = self.redlock(*wrong)
            self.assertEqual(status, 125, wrong)
            self.assertTrue(err)

    def test_a_wait_without_a_unit_is_refused_with_a_hint(self):
        status, _, err = self.redlock("run", "a", "--wait", "10", "--", "true")
        self.assertEqual(status, 125)
        self.assertRegex(err, r"10s")

    def test_run_waits_for_its_turn(self):
        name, holder = self.name(), self.connect()
        holder.ok("LOCK " + name)
        process = self.spawn("run", name, "--", "echo", "my turn")
        until(lambda: len(holder.roles(name)) == 2, "it waits")
        self.assertIsNone(process.poll())
        holder.ok("UNLOCK " + name)
        out, err = process.communicate(timeout=10)
        self.assertEqual((process.returncode, out, err), (0, b"my turn\n", b""))

    def test_two_runs_exclude_each_other(self):
        name, door = self.name(), os.path.join(self.folder(), "door")
        runs = [self.spawn("run", name, "--", "sh", "-c", "mkdir %s && sleep 0.05 && rmdir %s" % (door, door)) for _ in range(8)]
        self.assertEqual([run.wait(30) for run in runs], [0] * 8)

    def test_input_and_output_belong_to_the_child(self):
        name = self.name()
        done = subprocess.run([REDLOCK, "--addr", self.d.addr, "run", name, "--", "tr", "a-z", "A-Z"], input=b"through and through\n" * 1000,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=20)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"THROUGH AND THROUGH\n" * 1000, b""))

    def test_signals_are_forwarded(self):
        for number, letter in ((signal.SIGTERM, "TERM"), (signal.SIGINT, "INT"), (signal.SIGHUP, "HUP"), (signal.SIGUSR1, "USR1"), (signal.SIGUSR2, "USR2")):
            name = self.name()
            process = self.spawn("run", name, "--", "sh", "-c", "trap 'echo got; exit 42' %s; echo ready; while :; do sleep 0.05; done" % letter)
            self.assertEqual(process.stdout.readline(), b"ready\n")
            process.send_signal(number)
            self.assertEqual(process.wait(10), 42, letter)
            until(lambda: self.free(name), "the lock is free")

    def test_a_killed_run_takes_its_child_along(self):
        name = self.name()
        process = self.spawn("run", name, "--", "sh", "-c", "echo $$; exec sleep 1000")
        child = int(process.stdout.readline())
        process.kill()
        until(lambda: state_of(child) in GONE, "the child is gone")
        until(lambda: self.free(name), "the lock is free")

    def test_the_lock_is_held_as_long_as_the_child_runs(self):
        name = self.name()
        process = self.spawn("run", name, "--", "sh", "-c", "echo up; read line; exit 0", stdin=subprocess.PIPE)
        process.stdout.readline()
        row = self.held(name)
        self.assertEqual(len(row), 1)
        c = self.connect()
        busy = c.busy("LOCK " + name)
        self.assertIn("pid=%d" % process.pid, busy["holder"])
        self.assertEqual(c.ask("LOCK %s wait=2500ms" % name).kind, "TIMEOUT", "the lock outlives the lease of 2 s")
        process.stdin.close()
        self.assertEqual(process.wait(10), 0)
        c.ok("LOCK %s wait=5s" % name)

    def test_keep_leaves_the_name_taken_after_a_short_job(self):
        name, c = self.name(), self.connect()
        begin = time.monotonic()
        self.assertEqual(self.redlock("run", "--keep", "1500ms", name, "--", "true")[0], 0)
        self.assertEqual(self.redlock("try", name, "--", "true")[0], 124)
        granted = c.ok("LOCK %s wait=10s" % name)
        self.assertGreaterEqual(granted.at - begin, 1.5)

    def test_a_keep_beyond_max_keep_is_refused_before_the_job_runs(self):
        name = self.name()
        code, out, err = self.redlock("run", "--keep", "61m", name, "--", "echo", "done")
        self.assertEqual((code, out), (125, ""))
        self.assertRegex(err, r"^redlock: --keep 61m is longer than the daemon's max_keep of 1h\n$")
        self.assertTrue(self.free(name))

    def test_123_when_the_lock_is_lost_and_the_child_is_stopped(self):
        if not self.r:
            return self.killed_daemon()
        name = self.name()
        process = self.spawn("run", name, "--", "sh", "-c", "echo $$; exec sleep 1000")
        child = int(process.stdout.readline())
        self.r.cli.delete("lock:" + name)
        self.assertEqual(process.wait(10), 123)
        self.assertIn(state_of(child), GONE)

    def killed_daemon(self):
        """The loss on the memory store: the daemon is killed, and nobody renews the lease."""
        daemon = self.daemon(self.CONFIG)
        process = self.start_redlock(daemon, "run", "a", "--", "sh", "-c", "echo $$; exec sleep 1000")
        child = int(process.stdout.readline())
        daemon.kill()
        self.assertEqual(process.wait(10), 123)
        self.assertIn(state_of(child), GONE)

    def test_odd_names(self):
        for name in ("a b", "grün", "a=b", "x\"y'z\\", "-dash", "@at", "#hash"):
            status, out, err = self.redlock("run", "--", name, "sh", "-c", 'printf %s "$REDLOCK_NAME"') if name == "-dash" else \
                self.redlock("run", name, "--", "sh", "-c", 'printf %s "$REDLOCK_NAME"')
            self.assertEqual((status, out), (0, name), err)

    def test_the_address_may_come_from_the_environment(self):
        name = self.name()
        for addr in (self.d.addr, "%s:%d" % self.d.tcp):
            status, out, err = call(REDLOCK, "run", name, "--", "echo", "ok", env=dict(os.environ, REDLOCK_ADDR=addr))
            self.assertEqual((status, out), (0, "ok\n"), err)
            status, _, err = call(REDLOCK, "--addr", addr, "ping")
            self.assertEqual(status, 0, err)

    def test_a_terminal_shows_the_holder_that_a_run_waits_for(self):
        name, holder = "tty-%d" % os.getpid(), self.connect("the-long-job")  # the name is short, because the terminal cuts its line
        holder.ok("LOCK " + name)
        master, slave = self.terminal()
        process = self.spawn("run", name, "--", "true", stderr=slave, stdin=slave)
        os.close(slave)
        said = self.terminal_shows(master, b"the-long-job")
        holder.ok("UNLOCK " + name)
        self.assertIn(b"the-long-job", said)
        self.assertIn(name.encode(), said)
        self.assertEqual(process.wait(10), 0)

    def test_a_terminal_shows_the_place_in_the_queue(self):
        name, holder, first = "tty-%d" % os.getpid(), self.connect("the-long-job"), self.connect()
        holder.ok("LOCK " + name)
        first.begin("LOCK %s wait=60s" % name)
        master, slave = self.terminal()
        process = self.spawn("run", name, "--", "true", stderr=slave, stdin=slave)
        os.close(slave)
        self.assertRegex(self.terminal_shows(master, b"2nd in line, held by the-long-job"), rb"waiting for %s  00:0\d  2nd in line" % name.encode())
        first.close()
        self.assertIn(b"1st in line", self.terminal_shows(master, b"1st in line"))
        holder.ok("UNLOCK " + name)
        self.assertEqual(process.wait(10), 0)

    def test_quiet_says_nothing_about_the_wait(self):
        name, holder = self.name(), self.connect("the-long-job")
        holder.ok("LOCK " + name)
        self.assertEqual(self.redlock("try", "--quiet", name, "--", "true"), (124, "", ""))
        master, slave = self.terminal()
        process = self.spawn("run", "-q", "--wait", "2500ms", name, "--", "true", stderr=slave, stdin=slave)
        os.close(slave)
        self.assertEqual(process.wait(10), 124)
        try:
            self.assertEqual(os.read(master, 100), b"")
        except OSError:  # the terminal is closed, and nothing was left in it
            pass

    def test_a_terminal_whose_output_is_stopped_delays_no_command(self):
        """As after ^S: a run that waited for the terminal would hold the lock and run nothing."""
        name, holder = self.name(), self.connect()
        holder.ok("LOCK " + name)
        _, slave = self.terminal()
        termios.tcflow(slave, termios.TCOOFF)
        process = self.spawn("run", name, "--", "true", stderr=slave)
        os.close(slave)
        time.sleep(1.5)  # redlock prints its line about the wait after one second
        holder.ok("UNLOCK " + name)
        self.assertEqual(process.wait(5), 0)

    def test_a_terminal_that_closes_hangs_up_the_command(self):
        """redlock leads the session, as under ssh -t: the kernel tells no other process."""
        name = self.name()
        master, slave = self.terminal()
        process = spawn(["setsid", "--ctty", REDLOCK, "--addr", self.d.addr, "run", name, "--", "sh", "-c", "echo up; exec sleep 1000"],
                        **merged(QUIET, {"stdin": slave}))
        os.close(slave)
        self.addCleanup(reap, process)
        self.assertEqual(process.stdout.readline(), b"up\n")
        os.close(master)
        self.assertEqual(process.wait(10), 128 + signal.SIGHUP)
        until(lambda: self.free(name), "the lock is free")


@on_each_store
class Query(Tool):
    """ls, show, ping, nodes, stats, clients, raw."""
    COST = 4

    def json(self, *argv):
        status, out, err = self.redlock(*argv, "--json")
        self.assertEqual((status, err), (0, ""), argv)
        return [json.loads(line) for line in out.splitlines()]

    def test_ls_lists_what_is_held(self):
        prefix = self.name()
        c = self.connect("lister")
        c.ok("LOCK %s-1" % prefix)
        c.ok('LOCK "%s 2"' % prefix)
        c.ok("LOCK zzz-elsewhere wait=5s")
        status, out, err = self.redlock("ls", prefix)
        self.assertEqual((status, err), (0, ""))
        self.assertIn(prefix + "-1", out)
        self.assertNotIn("zzz-elsewhere", out)
        self.assertEqual(sorted(row["name"] for row in self.json("ls", prefix)), sorted([prefix + "-1", prefix + " 2"]))

    def test_a_narrow_terminal_cuts_no_row(self):
        name, holder = self.name(), "the-holder-" + "h" * 90
        self.connect(holder).ok("LOCK %s" % name)
        master, slave = self.terminal()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
        self.assertEqual(self.spawn("ls", name, stdout=slave).wait(10), 0)
        self.addCleanup(os.close, slave)
        self.assertRegex(self.terminal_shows(master, b" 0\r\n"), rb"NAME +HOLDER +HELD +WAITERS\r\n%s  %s pid=\d+ uid=\d+  \d+m?s +0\r\n" %
                         (name.encode(), holder.encode()))

    def test_ls_lists_a_thousand_locks(self):
        prefix, c = self.name(), self.connect()
        c.send(*["LOCK %s-%d" % (prefix, i) for i in range(1000)])
        for _ in range(1000):
            self.assertEqual(c.reply().kind, "OK")
        self.assertEqual(len({row["name"] for row in self.json("ls", prefix)}), 1000)

    def test_show_lists_the_holder_and_the_waiters(self):
        name, holder, waiter = self.name(), self.connect("holder-x"), self.connect("waiter-y")
        self.assertEqual(self.redlock("show", name)[0], 1, "a free lock")
        holder.ok('LOCK %s note="the note"' % name)
        waiter.begin("LOCK %s wait=30s" % name)
        status, out, _ = self.redlock("show", name)
        self.assertEqual(status, 0)
        for word in ("holder-x", "waiter-y", "the note"):
            self.assertIn(word, out)
        self.assertEqual([row["role"] for row in self.json("show", name)], ["holder", "waiter"])

    def test_a_note_is_cut_where_a_character_begins(self):
        for pad in ("a", "aa", "aaa"):
            name = self.name()
            holder = self.spawn("run", name, "--", "sh", "-c", "echo up; exec cat", pad, "\u20ac" * 100, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE)
            self.assertEqual(holder.stdout.readline(), b"up\n")
            self.assertRegex(self.connect().ok("SHOW " + name).rows[0]["note"], "^sh -c .* %s \u20ac{70,}$" % pad)

    def test_ping(self):
        status, out, err = self.redlock("ping")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("redlockd", out)

    def test_ping_without_a_daemon(self):
        status, out, err = call(REDLOCK, "--addr", "/nonexistent/sock", "ping")
        self.assertEqual((status, out), (69, ""))
        self.assertIn("/nonexistent/sock", err)

    def test_ping_without_a_quorum(self):
        if not self.r:
            return
        server = self.redis()
        server.kill()
        daemon = self.daemon(on_redis([server]))
        self.assertEqual(call(REDLOCK, "--addr", daemon.addr, "ping")[0], 1)

    def test_nodes_stats_clients(self):
        self.connect("a-label")
        self.assertEqual(len(self.json("nodes")), 1)
        rows = self.json("stats")
        self.assertTrue(rows)
        for row in rows:
            self.assertIsInstance(row["metric"], str)
            self.assertIsInstance(row["value"], (int, float))
        self.assertIn("a-label", json.dumps(self.json("clients")))
        for command in ("nodes", "stats", "clients"):
            status, out, _ = self.redlock(command)
            self.assertEqual(status, 0)
            self.assertTrue(out.strip())

    def test_raw_prints_what_the_daemon_answers(self):
        name = self.name()
        status, out, _ = self.redlock("raw", "LOCK " + name)
        self.assertEqual(status, 0)
        self.assertRegex(out, r"^OK name=%s fence=\d+ .*count=1\n$" % name)
        self.assertEqual(self.redlock("raw", "PING")[:2], (0, "OK\n"))
        status, out, _ = self.redlock("raw", "NONSENSE")
        self.assertEqual(status, 1)
        self.assertRegex(out, r"^ERR UNKNOWN ")
        status, out, _ = self.redlock("raw", "HELP")
        self.assertRegex(out, r"(?s)^\* .*\nOK n=\d+\n$")

    def test_usage_errors_are_64(self):
        for argv in ([], ["nonsense"], ["ls", "--nonsense"], ["ls", "a", "b"], ["show"], ["raw"], ["--nonsense"]):
            status, out, err = self.redlock(*argv)
            self.assertEqual((status, out), (64, ""), argv)
            self.assertTrue(err, argv)
        self.assertRegex(self.redlock("shwo", "a")[2], r"show")

    def test_version_and_help(self):
        status, out, _ = call(REDLOCK, "--version")
        self.assertEqual(status, 0)
        self.assertRegex(out, r"^redlock [0-9]+\.[0-9]+")
        status, out, _ = call(REDLOCK, "--help")
        self.assertEqual(status, 0)
        for word in ("run", "try", "lead", "ls", "show", "ping", "nodes", "stats", "clients", "raw"):
            self.assertRegex(out, r"\b%s\b" % word)

    def test_an_output_that_is_full_or_closed_is_told_once_and_exits_with_69(self):
        """Of a closed descriptor the errno is that of a write to it."""
        c, name = self.connect(), self.name()
        c.ok("LOCK " + name)
        commands = ["ls", "ls --json", "show " + name, "clients", "nodes", "stats", "stats --json", "ping", "doctor --print-acl", "doctor", "top --once",
                    "recent", "complete", "raw PING", "raw HELP", "rate r --limit 9 --per 1m", "rate r --limit 9 --per 1m --json", "defer q text",
                    "defer --json q text", "queues", "jobs q", "passwd ana", "--help", "ls --help", "--version", "watch"]
        for target, reason in ((">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")):
            for command in commands:
                script = "echo secret | $0 --addr $1 %s %s" % (command, target)
                if command == "watch":
                    script = "while $0 --addr $1 raw 'LOCK w-%s' >/dev/null; do :; done & %s; code=$?; kill $!; exit $code" % (name, script)
                status, _, err = call("sh", "-c", script, REDLOCK, self.d.addr)
                self.assertEqual((status, err), (69, "redlock: cannot write to standard output: %s\n" % reason), (command, target))

    def test_an_input_that_is_closed_is_no_empty_job(self):
        status, _, err = call("sh", "-c", "$0 --addr $1 defer q <&-", REDLOCK, self.d.addr)
        self.assertEqual((status, err), (64, "redlock: cannot read the input: Bad file descriptor\n"))

    def test_output_into_a_closed_pipe_ends_the_command(self):
        process = self.spawn("stats")
        process.stdout.close()
        process.stdout = None
        self.assertIsNotNone(process.wait(10))

# SPDX-License-Identifier: BSD-2-Clause
"""The harness itself, which must be able to fail, and tests/run.py."""
import os
import random
import shutil
import signal
import socket
import sys
import time
import unittest

import redis

import fakes
from daemon import REPORTS
from harness import FuncTest
from process import ROOT, call, temp_folder, yaml
from wire import Client, Line, quoted, split


class Protocol(unittest.TestCase):
    def test_quoted_words_are_split_again(self):
        rng = random.Random(1)
        for _ in range(500):
            value = bytes(rng.randrange(256) for _ in range(rng.randrange(20)))
            self.assertEqual([(f, v) for f, v, _ in split(("x=%s " % quoted(value)).encode() + quoted(value).encode())], [("x", value), (None, value)])

    def test_lines_are_parsed_as_the_protocol_says(self):
        line = Line(b'@a BUSY name="a b" holder="w pid=1" held_ms=12', 1.0)
        self.assertEqual((line.tag, line.kind, line["name"], line["holder"], line.num("held_ms"), line.written["name"]),
                         ("@a", "BUSY", "a b", "w pid=1", 12, '"a b"'))
        line = Line(b"ERR LIMIT too many = \" quotes", 1.0)
        self.assertEqual((line.kind, line.code, line.text), ("ERR", "LIMIT", 'too many = " quotes'))
        line = Line(b"! LOST name=x fence=7", 1.0)
        self.assertEqual((line.kind, line.code, line.num("fence")), ("!", "LOST", 7))
        self.assertEqual(Line(b'HTTP/1.1 400 "', 1.0).fields, {})

    def test_reports_of_sanitizers_are_recognised(self):
        for text in ("==1==ERROR: AddressSanitizer: heap-use-after-free", "a.c:3:4: runtime error: signed integer overflow",
                     "==1==ERROR: LeakSanitizer: detected memory leaks", "SUMMARY: UndefinedBehaviorSanitizer: x"):
            self.assertTrue(REPORTS.search(text), text)
        self.assertFalse(REPORTS.search("info ready listen=/x"))

    def test_configuration_is_written_as_yaml(self):
        self.assertEqual(yaml({"a": "1s", "b": {"c": "/x y", "d": ["u:1"]}}), 'a: 1s\nb:\n  c: "/x y"\n  d: ["u:1"]\n')


class Deadlines(unittest.TestCase):
    """A Client whose server is this process."""

    def setUp(self):
        self.folder = temp_folder()
        path = os.path.join(self.folder, "sock")
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(path)
        self.server.listen(1)
        self.client = Client(path)
        self.peer, _ = self.server.accept()
        self.addCleanup(lambda: (self.client.close(), self.peer.close(), self.server.close(), os.unlink(path), os.rmdir(self.folder)))

    def test_a_line_that_does_not_come_is_given_up(self):
        begin = time.monotonic()
        with self.assertRaises(AssertionError):
            self.client.line(0.2)
        self.assertTrue(0.2 <= time.monotonic() - begin < 1)

    def test_a_machine_that_stands_still_uses_up_one_second_at_most(self):
        """What comes after the deadline is in time, if this process stood still meanwhile."""
        parent = os.getpid()
        if not os.fork():
            time.sleep(0.1)
            os.kill(parent, signal.SIGSTOP)
            time.sleep(2)
            os.kill(parent, signal.SIGCONT)
            time.sleep(0.1)
            self.peer.sendall(b"OK n=1\n")
            os._exit(0)
        self.assertEqual(self.client.reply(timeout=1.8)["n"], "1")
        os.wait()

    def test_an_unfinished_line_is_no_line(self):
        self.peer.sendall(b"OK nam")
        with self.assertRaises(AssertionError):
            self.client.reply(timeout=0.1)
        self.peer.sendall(b"e=x\n")
        self.assertEqual(self.client.reply()["name"], "x")

    def test_replies_are_found_among_pushes_rows_and_tags(self):
        self.peer.sendall(b"* a=1\n! LOST name=x fence=1\n@t * b=1\n* a=2\n@t OK n=1\nOK n=2\n")
        answer = self.client.reply()
        self.assertEqual([row["a"] for row in answer.rows], ["1", "2"])
        self.assertEqual(len(self.client.reply("@t").rows), 1)
        self.assertEqual([line.code for line in self.client.inbox], ["LOST"])
        self.client.push("LOST", "x")

    def test_the_end_of_the_connection_is_noticed(self):
        self.peer.sendall(b"OK\n")
        self.peer.shutdown(socket.SHUT_RDWR)
        self.assertEqual([line.raw for line in self.client.eof()], [b"OK"])
        with self.assertRaises(AssertionError):
            self.client.reply(timeout=5)


SUITES = """
good: ; @echo '2 passed, 0 failed'
bad: ; @echo 'failed this: 3 != 4'; echo told; echo '2 passed, 1 failed'; exit 1
torn: ; @echo '2 passed, 0 failed'; exit 3
mute: ; @printf told
killed: ; @kill -9 $$PPID
stuck: ; @echo $$$$; echo '2 passed, 0 failed'; trap '' TERM; sleep 60 & wait; sleep 60
polite: ; @nice; sleep 1; echo '1 passed, 0 failed'
"""


class Suites(unittest.TestCase):
    """tests/run.py, which runs all suites of `make check`."""

    def play(self, *names, limit=60):
        """Runs these suites. Returns (status, lines, output)."""
        folder = temp_folder()
        self.addCleanup(shutil.rmtree, folder)
        with open(os.path.join(folder, "Makefile"), "w", encoding="utf-8") as makefile:
            makefile.write(SUITES)
        env = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
        status, out, err = call(sys.executable, "-B", os.path.join(ROOT, "tests/run.py"), os.path.join(folder, "check"), *names,
                                env=dict(env, MAKE="make -f %s/Makefile" % folder, SUITE_SECONDS=str(limit)), timeout=60)
        self.assertEqual(err, "")
        return status, out.splitlines(), out

    @staticmethod
    def lives(pid):
        """Whether a process runs. A zombie has no command line."""
        try:
            with open("/proc/%s/cmdline" % pid, encoding="utf-8") as cmdline:
                return cmdline.read() != ""
        except FileNotFoundError:
            return False

    def test_the_last_line_is_the_sum_of_both_lanes(self):
        status, lines, out = self.play("good", "good", "--", "polite")
        self.assertEqual((status, lines[-1]), (0, "5 passed, 0 failed"))
        self.assertIn("== polite\n19\n1 passed, 0 failed\n== polite took ", out)  # it ran at the lowest priority, and its output is shown in one piece
        self.assertEqual(lines[0], "== good")  # the first lane did not wait for the second

    def test_a_suite_that_ends_in_any_other_way_has_failed(self):
        for names, passed, failed in ((["bad"], 2, 1), (["torn"], 2, 1), (["mute"], 0, 1), (["killed"], 0, 1), (["nothing-makes-it"], 0, 1),
                                      (["good", "bad", "--", "torn", "killed"], 6, 3)):
            status, lines, _ = self.play(*names)
            self.assertEqual((status, lines[-1]), (1, "%d passed, %d failed" % (passed, failed)), names)
            end = lines[max(at for at, line in enumerate(lines) if line.startswith("== ")) + 1:-1]
            self.assertEqual({line.split(":")[0] for line in end}, set(names) - {"good", "--"})
            self.assertEqual("bad: failed this: 3 != 4" in end, "bad" in names)

    def test_a_suite_that_is_stuck_is_killed_with_all_its_processes(self):
        status, lines, out = self.play("stuck", "good", "--", "good", limit=1)
        self.assertEqual((status, lines[-1]), (1, "6 passed, 1 failed"))
        self.assertIn("stuck was killed after 1 s", out)
        self.assertFalse(self.lives(lines[lines.index("== stuck") + 1]))


class Servers(FuncTest):
    def test_a_clock_of_a_redis_is_set_for_that_redis_only(self):
        server = self.redis(clock=True)
        server.cli.set("k", "v", px=30000)
        before = server.cli.time()[0]
        server.clock.set(40)
        self.assertTrue(39 <= server.cli.time()[0] - before <= 45)
        self.assertIsNone(server.cli.get("k"))
        server.clock.set(-40)
        self.assertTrue(-41 <= server.cli.time()[0] - before <= -30)
        self.assertLess(abs(time.time() - before), 30)

    def test_a_redis_restarts_blank_unless_it_has_saved(self):
        for save, left in ((False, None), (True, b"v")):
            server = self.redis(save=save)
            server.cli.set("k", "v")
            if save:
                server.cli.save()
            server.restart()
            self.assertEqual(server.cli.get("k"), left)

    def test_a_frozen_redis_answers_nothing_until_it_is_thawed(self):
        server = self.redis()
        server.freeze()
        quick = redis.Redis(unix_socket_path=server.path, socket_timeout=0.1)
        with self.assertRaises(redis.exceptions.TimeoutError):
            quick.ping()
        server.thaw()
        self.assertTrue(server.cli.ping())

    def test_the_relay_replaces_replies_and_holds_requests(self):
        server = self.redis()
        relay = fakes.Relay(os.path.join(self.folder(), "sock"), server.path).start()
        self.addCleanup(relay.stop)
        cli = redis.Redis(unix_socket_path=relay.path, socket_timeout=0.3)
        self.assertTrue(cli.ping())
        relay.instead = b"-WEIRD x\r\n"
        with self.assertRaises(redis.exceptions.ResponseError):
            cli.get("k")
        relay.instead = None
        relay.hold_requests = True
        with self.assertRaises(redis.exceptions.TimeoutError):
            cli.set("k", "v")
        self.assertIsNone(server.cli.get("k"))
        relay.release()
        cli.connection_pool.disconnect()
        self.assertTrue(cli.ping())

# SPDX-License-Identifier: BSD-2-Clause
"""What is particular to the Python client: blocks, tasks, threads, its README and its package."""
import ast
import asyncio
import copy
import glob
import os
import pickle
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
LIB = os.path.join(os.path.dirname(HERE), "lib")
SOURCE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "client", "python")
sys.path[:0] = [HERE, LIB, SOURCE]

import pypi  # the paths stand above
import redlockd
import redlockd.aio
import verdict
from daemon import Daemon
from history import History
from redlockd import _base, _core
from redlockd._requests import Ready
from process import BUILD, ROOT, reap, spawn, temp_folder, until

OTHERS = re.compile(r"^(?:import|from) (?:pytest|django|celery|apscheduler)\b", re.M)  # programs that test_python_users.py runs


class WithDaemon(unittest.TestCase):
    """Tests that share a daemon on the memory store."""

    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon({"lease": "3s", "max_lease": "30s"})
        cls.addClassCleanup(cls.daemon.stop)
        cls.daemon.start()

    def connect(self, **options):
        client = redlockd.connect(self.daemon.addr, **options)
        self.addCleanup(client.close)
        return client

    def admin(self, request):
        with self.daemon.client() as client:
            return client.ok(request)

    def roles(self, name):
        with self.daemon.client() as client:
            return client.roles(name)

    def holds(self, name):
        until(lambda: self.roles(name) == ["holder"], "somebody has " + name)

    def free(self, name):
        until(lambda: self.roles(name) == [], "nobody has " + name)


class Threads(WithDaemon):
    def test_the_methods_of_a_lock_are_those_of_threading(self):
        client = self.connect()
        one, other = client.lock("t"), client.lock("t")
        self.assertTrue(one.acquire())
        self.assertTrue(one.locked())
        self.assertFalse(other.acquire(blocking=False))
        self.assertFalse(other.acquire(timeout=0.05))
        self.assertRaises(ValueError, other.acquire, False, 1)
        self.assertRaises(ValueError, other.acquire, True, -2)
        one.release()
        self.assertFalse(one.locked())
        self.assertRaises(RuntimeError, one.release)
        self.assertTrue(other.acquire(True, 5))
        other.release()

    def test_one_object_serves_threads_in_turn(self):
        lock, counts = self.connect().lock("turns", wait=20), [0, 0]

        def work():
            for _ in range(50):
                with lock:
                    counts[0] += 1
                    counts[1] = max(counts[1], counts[0])
                    counts[0] -= 1
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        self.assertEqual(counts, [0, 1])

    def test_a_block_whose_lock_was_lost_raises_at_its_end(self):
        with self.assertRaises(redlockd.LockLost) as caught, self.connect().lock("b") as lock:
            self.admin("BREAK b")
            self.assertTrue(lock.lost.wait(5))
            self.assertEqual((lock.remaining, lock.locked(), lock.reason), (0.0, False, "broken"))
        self.assertEqual((caught.exception.reason, caught.exception.name), ("broken", "b"))

    def test_an_exception_of_the_block_comes_first(self):
        with self.assertRaises(KeyError), self.connect().lock("b2") as lock:
            self.admin("BREAK b2")
            self.assertTrue(lock.lost.wait(5))
            raise KeyError

    def test_functions_of_users_are_called_once_and_may_use_the_client(self):
        seen, done = [], threading.Event()
        client = self.connect()

        def on_lost(lock):
            seen.append((lock.name, lock.reason))
            with client.lock("of-on-lost", wait=5):
                done.set()
        with self.assertRaises(redlockd.LockLost), client.lock("c", on_lost=on_lost):
            self.admin("BREAK c")
            self.assertTrue(done.wait(5))
        self.assertEqual(seen, [("c", "broken")])

    def test_a_decorated_function_runs_under_a_lock_of_its_argument(self):
        client = self.connect()

        @client.locked("u/{0}/{kind}", wait=5)
        def work(user, kind="x"):
            """says"""
            return self.roles("u/%s/%s" % (user, kind))
        self.assertEqual(work("ann", kind="mail"), ["holder"])
        self.assertEqual((work.__name__, work.__doc__), ("work", "says"))
        self.assertEqual(self.roles("u/ann/mail"), [])

    def test_jobs_are_done_or_tried_again(self):
        client, seen = self.connect(), []
        for payload in ("one", "two"):
            client.defer("q", payload, id=payload)
        for job in client.jobs("q", wait=0):
            seen.append((job.id, job.attempt))
            if job.id == "two" and job.attempt == 1:
                with self.assertRaises(KeyError), job:
                    raise KeyError
        self.assertEqual(seen, [("one", 1), ("two", 1), ("two", 2)])
        self.assertRaises(redlockd.Busy, client.job, "q", wait=0)

    def test_leaders_follow_each_other_and_a_loss_is_the_end_of_a_term(self):
        first, second, led = self.connect(), self.connect(), []
        terms = first.lead("leader")
        term = next(terms)
        thread = threading.Thread(target=lambda: led.append(next(second.lead("leader")).locked()))
        thread.start()
        until(lambda: self.roles("leader") == ["holder", "waiter"], "the second waits")
        with term:
            self.admin("BREAK leader")
            self.assertTrue(term.lost.wait(5))
            term.ensure()
            self.fail("a lost term goes on")
        thread.join(20)
        self.assertEqual(led, [True])

    def test_a_lock_that_nobody_refers_to_warns_and_stays(self):
        client = self.connect()
        lock = client.lock("dropped")
        lock.acquire()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            del lock
        self.assertIn("'dropped' was not released", str(caught[0].message))
        self.assertEqual(self.roles("dropped"), ["holder"])
        client.close()
        self.free("dropped")

    def test_an_interrupted_wait_is_withdrawn(self):
        program = "import redlockd\nclient = redlockd.connect()\ntry:\n    client.lock('busy').acquire()\n" \
                  "except KeyboardInterrupt:\n    print(client.ask('SHOW busy').rows[-1]['role'])\n"
        with self.connect().lock("busy"):
            process = spawn([sys.executable, "-c", program], env=dict(os.environ, REDLOCK_ADDR=self.daemon.addr, PYTHONPATH=SOURCE), stdout=subprocess.PIPE)
            until(lambda: "waiter" in self.roles("busy"), "it waits")
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.communicate(timeout=120)[0], b"holder\n")

    def test_a_signal_that_does_not_interrupt_the_wait_ends_it_soon(self):
        """One that comes just before the wait begins, or that the kernel gives to another thread: this one has it from the first on."""
        program = "import redlockd, signal, sys, threading\nclient = redlockd.connect()\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\n" \
                  "if sys.argv[1] == 'second':\n    threading.Thread(target=client.lock('busy').acquire, daemon=True).start()\n" \
                  "try:\n    client.lock('busy').acquire()\n" \
                  "except KeyboardInterrupt:\n    print(*[row['role'] for row in client.ask('SHOW busy').rows])\n"
        for place, roles in (("first", "holder"), ("second", "holder waiter")):
            with self.subTest(place), self.connect().lock("busy"):
                process = spawn([sys.executable, "-c", program, place], env=dict(os.environ, REDLOCK_ADDR=self.daemon.addr, PYTHONPATH=SOURCE),
                                stdout=subprocess.PIPE)
                self.addCleanup(reap, process)
                until(lambda: self.roles("busy") == (roles + " waiter").split(), "it waits")
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.communicate(timeout=30)[0].decode().strip(), roles)

    def test_a_client_that_nobody_closed_warns(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            redlockd.connect(self.daemon.addr)
        self.assertIn("was not closed", str(caught[0].message))

    def test_the_locks_of_a_session_with_grace_are_free_when_its_process_ends(self):
        program = "import redlockd\nlock = redlockd.connect(grace=30).lock('exit')\nlock.acquire()\n"
        done = subprocess.run([sys.executable, "-c", program], env=dict(os.environ, REDLOCK_ADDR=self.daemon.addr, PYTHONPATH=SOURCE), timeout=120, check=False)
        self.assertEqual((done.returncode, self.roles("exit")), (0, []))

    def test_a_reader_that_was_torn_out_of_its_part_is_replaced(self):
        client = self.connect()
        with client.lock("torn", wait=5):
            client._engine.reader = object()  # as a signal leaves it that raises between two steps
        with client.lock("torn", wait=5) as lock:
            self.assertGreater(lock.ensure(), 0)

    def test_texts_name_the_address_and_no_secret(self):
        with self.assertRaises(redlockd.Disconnected) as caught:
            redlockd.connect("/nowhere/at/all")
        self.assertIn("/nowhere/at/all", str(caught.exception))
        self.assertIsInstance(caught.exception, ConnectionError)
        with self.assertRaises(redlockd.Denied) as caught:
            redlockd.connect(self.daemon.addr, user="ann", secret="tr0ub4dor")
        self.assertNotIn("tr0ub4dor", str(caught.exception))
        client = self.connect()
        self.assertNotIn("secret='", repr(client._engine.core.settings))
        client.close()
        self.assertIn(self.daemon.addr, str(self.assertRaises_text(client.lock("x").acquire)))

    def assertRaises_text(self, function):
        with self.assertRaises(redlockd.Disconnected) as caught:
            function()
        return caught.exception

    def test_addresses(self):
        place = redlockd._place.place_of
        self.assertEqual((place("a:1").host, place("a:1").port, place("[::1]:5").host, place("[::1]").port), ("a", 1, "::1", 7420))
        self.assertEqual((place("host").port, place(":99").host, place("tls://h").port, place("tls://h:8").tls), (7420, "127.0.0.1", 7422, True))
        self.assertEqual((place("unix:/a/b").path, place("unix:b").path, place("./b").path), ("/a/b", "b", "./b"))
        for wrong in ("", "unix:", "::1", "a:b", "a:0", "a:70000", "tls://", "tls:///x", "[::1"):
            self.assertRaises(ValueError, place, wrong)


class Once(WithDaemon):
    """once() of both clients, and `redlock once`, which has the same records."""

    def tool(self, *words):
        return subprocess.run([os.path.join(BUILD, "redlock"), "once", *words], env=dict(os.environ, REDLOCK_ADDR=self.daemon.addr), timeout=30,
                              capture_output=True, text=True)

    def records(self, name):
        return self.admin("LIST jobs prefix=once/" + name).rows

    def both(self, name, function, every=3600):
        """What the client for threads answers, and then that for tasks."""
        async def of_tasks():
            async def call():
                return function()
            async with redlockd.aio.connect(self.daemon.addr) as client:
                return await client.once(name, every, call)
        return self.connect().once(name, every, function), asyncio.run(of_tasks())

    def statuses(self, name):
        async def of_tasks():
            async with redlockd.aio.connect(self.daemon.addr) as client:
                return await client.once_status(name)
        return self.connect().once_status(name), asyncio.run(of_tasks())

    def test_one_of_both_runs_it_and_the_tool_tells(self):
        runs = []
        self.assertEqual(self.both("o1", lambda: runs.append(1)), (True, False))
        self.assertEqual(runs, [1])
        told = self.tool("--status", "o1")
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertRegex(told.stdout, r"^o1 ran on \S+ at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ for \S+, status 0; it may begin again in \S+\n$")
        ran = self.tool("--every", "1h", "o1", "--", "echo", "ran")
        self.assertEqual((ran.returncode, ran.stdout), (0, ""))
        self.assertIn("o1 ran on", ran.stderr)
        self.free("o1")

    def test_neither_runs_what_the_tool_has_run(self):
        ran = self.tool("--every", "1h", "o2", "--", "echo", "ran")
        self.assertEqual((ran.returncode, ran.stdout), (0, "ran\n"), ran.stderr)
        self.assertEqual(self.both("o2", self.fail), (False, False))

    def test_both_tell_of_a_run_of_the_tool(self):
        self.assertEqual(self.statuses("o9"), (None, None))
        self.assertEqual(self.tool("--every", "1h", "o9", "--", "sh", "-c", "exit 7").returncode, 7)
        for last in self.statuses("o9"):
            self.assertEqual((last.host, last.status), (socket.gethostname(), 7))
            self.assertLess(abs(time.time() - last.began.timestamp()), 30)
            self.assertTrue(0 <= last.took < 30 and 3500 < last.next <= 3600, last)

    def test_a_run_is_not_begun_beside_another(self):
        with self.connect().lock("o3", wait=0):
            self.assertEqual(self.both("o3", self.fail), (False, False))
        self.assertEqual(self.records("o3"), [])

    def test_it_runs_again_when_the_time_is_over_counted_from_its_begin(self):
        runs = []
        self.assertEqual(self.both("o4", lambda: runs.append(time.sleep(0.3)), 0.3), (True, True))
        self.assertEqual(len(runs), 2)
        self.assertEqual(len(self.records("o4")), 1, "the old record is left")

    def test_a_call_that_raises_counts_and_is_told(self):
        for name, call in (("o5", lambda client: client.once("o5", 3600, dict().popitem)), ("o6", None)):
            if call:
                self.assertRaises(KeyError, call, self.connect())
            else:
                async def of_tasks():
                    async def raises():
                        raise KeyError
                    async with redlockd.aio.connect(self.daemon.addr) as client:
                        await client.once("o6", 3600, raises)
                self.assertRaises(KeyError, asyncio.run, of_tasks())
            told = self.tool("--status", name)
            self.assertEqual(told.returncode, 1)
            self.assertIn("status 1;", told.stdout)
            self.assertEqual(self.both(name, self.fail), (False, False))

    def test_a_run_whose_lock_was_lost_does_not_count(self):
        def breaks(name):
            with self.daemon.client() as client:
                client.ok("BREAK " + name)
        self.assertRaises(redlockd.LockLost, self.connect().once, "o7", 3600, lambda: breaks("o7"))
        self.assertEqual(self.records("o7"), [])

        async def of_tasks():
            async def is_broken():
                breaks("o8")
                await asyncio.sleep(20)
            async with redlockd.aio.connect(self.daemon.addr) as client:
                await client.once("o8", 3600, is_broken)
        self.assertRaises(redlockd.LockLost, asyncio.run, of_tasks())
        self.assertEqual(self.records("o8"), [])


class Tasks(WithDaemon):
    def run_(self, body):
        async def main():
            async with redlockd.aio.connect(self.daemon.addr) as client:
                return await asyncio.wait_for(body(client), 30)
        return asyncio.run(main())

    def test_a_loss_cancels_the_block_and_becomes_LockLost(self):
        async def body(client):
            with self.assertRaises(redlockd.LockLost) as caught:
                async with client.lock("a"):
                    await client.ask("BREAK a")
                    await asyncio.sleep(20)
            self.assertIsInstance(caught.exception.__cause__, asyncio.CancelledError)
            await asyncio.sleep(0.01)  # the task goes on
            return "on"
        self.assertEqual(self.run_(body), "on")

    def test_a_block_that_awaits_nothing_any_more(self):
        async def body(client):
            lock = client.lock("b")
            with self.assertRaises(redlockd.LockLost):
                async with lock:
                    await client.ask("BREAK b")
                    while not lock.reason:  # the loss comes with the answer, or soon after
                        try:
                            await asyncio.sleep(0.01)
                        except asyncio.CancelledError:
                            break
            await asyncio.sleep(0.01)
        self.run_(body)

    def test_a_cancellation_of_others_stays_one(self):
        async def body(client):
            async def hold():
                async with client.lock("c"):
                    await asyncio.sleep(20)
            task = asyncio.ensure_future(hold())
            await asyncio.sleep(0.2)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            async with client.lock("c", wait=5):  # it was given back
                pass
        self.run_(body)

    def test_a_time_out_around_a_block_stays_one(self):
        async def body(client):
            async def hold():
                async with client.lock("d"):
                    await asyncio.sleep(20)
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(hold(), 0.2)
            async with client.lock("d", wait=5):
                pass
        self.run_(body)

    def test_the_outer_of_two_locks_is_lost(self):
        async def body(client):
            with self.assertRaises(redlockd.LockLost) as caught:
                async with client.lock("e1"), client.lock("e2"):
                    await client.ask("BREAK e1")
                    await asyncio.sleep(20)
            self.assertEqual(caught.exception.name, "e1")
            async with client.lock("e2", wait=0):
                pass
        self.run_(body)

    def test_a_wait_that_is_cancelled_leaves_no_place(self):
        async def body(client):
            async with client.lock("f"):
                task = asyncio.ensure_future(client.lock("f").acquire())
                await asyncio.sleep(0.1)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                return [row["role"] for row in (await client.ask("SHOW f")).rows]
        self.assertEqual(self.run_(body), ["holder"])

    def test_functions_of_users_may_be_coroutine_functions(self):
        async def body(client):
            seen = asyncio.Event()

            async def on_lost(lock):
                await asyncio.sleep(0)
                if lock.reason == "broken":
                    seen.set()
            lock = client.lock("g", on_lost=on_lost)
            await lock.acquire()
            await client.ask("BREAK g")
            await asyncio.wait_for(seen.wait(), 5)
            with self.assertRaises(redlockd.LockLost):
                await lock.release()
        self.run_(body)

    def test_jobs_terms_and_decorators(self):
        async def body(client):
            await client.defer("aq", b"\x00\xff", id="one")
            seen = []
            async for job in client.jobs("aq", wait=0):
                async with job:
                    seen.append((job.id, job.payload))
            self.assertEqual(seen, [("one", b"\x00\xff")])

            @client.locked("au/{0}", wait=5)
            async def work(user):
                return (await client.ask("SHOW au/%s" % user)).rows[0]["role"]
            self.assertEqual(await work("ann"), "holder")
            async for term in client.lead("al"):
                async with term:
                    await client.ask("BREAK al")
                    await asyncio.sleep(20)
                break
            async with client.lock("al", wait=20):
                pass
        self.run_(body)

    def test_two_tasks_of_a_circle_are_seen(self):
        async def body(client):
            ready = asyncio.Barrier(2) if hasattr(asyncio, "Barrier") else None

            async def take(one, other):
                async with client.lock(one):
                    if ready:
                        await ready.wait()
                    else:
                        await asyncio.sleep(0.5)
                    async with client.lock(other, wait=15):
                        pass
            return await asyncio.gather(take("h1", "h2"), take("h2", "h1"), return_exceptions=True)
        outcomes = [type(outcome).__name__ for outcome in self.run_(body)]
        self.assertEqual(sorted(outcomes), ["Deadlock", "NoneType"])


class WithoutIO(unittest.TestCase):
    """The core alone: the test is the daemon, the connection and the clock."""

    def setUp(self):
        self.core = _core.Core(_core.Settings("here", grace=30.0))
        self.core.open(0.0)
        self.connect(0.0, "OK session=17 secret=s lease_ms=10000")

    def connect(self, now, *lines):
        self.core.connected(now)
        self.answer(self.sent()[-1], now, *lines)

    def sent(self):
        return self.core.take_output().decode().splitlines()

    def answer(self, request, now, *lines):
        self.core.receive("".join("%s %s\n" % (request.split()[0], line) for line in lines).encode(), now)

    def hold(self, now, name="x"):
        request = self.core.take(_base.terms("LOCK", [name], 5.0), "t1", now)
        self.answer(self.sent()[-1], now, "OK name=%s fence=7 valid_ms=9900 ttl_ms=10000 count=1" % name)
        return request.result[0]

    def test_what_is_overdue_when_the_session_comes_back_is_told_and_not_sent(self):
        hold = self.hold(1.0)
        request = self.core.check(hold, 1.0)
        self.sent()
        self.core.disconnected("cut", 2.0)
        self.connect(7.0, "* name=x fence=7 valid_ms=9000 count=1 owner=t1", "OK session=17 n=1")
        self.assertEqual(self.sent(), [])
        self.assertIsInstance(request.error, redlockd.Disconnected)
        self.core.tick(7.0)
        self.assertTrue(self.core.online)
        self.assertEqual(hold.left(7.0), 9.0)

    def test_a_release_that_is_overdue_is_sent_all_the_same(self):
        hold = self.hold(1.0)
        request = self.core.free(hold, 1.0)
        self.sent()
        self.core.disconnected("cut", 2.0)
        self.core.tick(6.5)
        self.assertIsInstance(request.error, redlockd.Disconnected)
        self.connect(7.0, "* name=x fence=7 valid_ms=9000 count=1 owner=t1", "OK session=17 n=1")
        sent, = self.sent()
        self.assertIn("UNLOCK x owner=t1 fence=7 count=0", sent)
        self.core.tick(7.5)
        self.assertTrue(self.core.online)
        self.answer(sent, 8.0, "OK name=x count=0")
        self.assertEqual((self.core.holds, self.core.used), ({}, set()))

    def test_what_is_not_released_because_its_keep_is_refused_is_released_without_it(self):
        hold = self.hold(1.0)
        request = self.core.free(hold, 1.0, " keep=90000s")
        self.answer(self.sent()[-1], 1.0, "ERR LIMIT keep may be at most 3600000ms (max_keep)")
        self.assertEqual(request.error.code, "LIMIT")
        sent, = self.sent()
        self.assertTrue(sent.endswith("UNLOCK x owner=t1 fence=7 count=0"), sent)
        self.assertEqual(self.core.used, {("x", "t1")})
        self.answer(sent, 1.0, "OK name=x count=0")
        self.assertEqual((self.core.holds, self.core.used), ({}, set()))

    def test_a_connection_that_ends_after_QUIT_is_no_loss_of_it(self):
        hold = self.hold(1.0)
        request = self.core.quit(2.0)
        self.answer(self.sent()[-1], 2.0, "OK")
        self.core.disconnected("the daemon closed the connection", 2.0)
        self.assertEqual((request.error, hold.reason, self.core.state.name), (None, "closed", "CLOSED"))

    def test_nothing_is_left_behind_by_a_lock_and_its_release(self):
        for at in range(5):
            hold = self.hold(float(at))
            self.core.free(hold, at + 0.5)
            self.answer(self.sent()[-1], at + 0.6, "OK name=x count=0")
        core = self.core
        self.assertEqual((core.holds, core.used, core.sent, core.later), ({}, set(), {}, []))

    def test_many_holds_are_checked_at_one_moment(self):
        for number in range(50):
            self.hold(number * 0.001, "n%d" % number)
        self.core.tick(3.4)
        self.assertEqual(len([line for line in self.sent() if " CHECK " in line]), 50)
        self.assertGreater(self.core.wake, 3.5)

    def test_pauses_double_up_to_half_a_second_and_end_with_the_grace(self):
        self.core.disconnected("cut", 10.0)
        pauses, now = [], 10.0
        self.assertEqual(self.core.dial_at, 10.0)
        while self.core.dial_at < float("inf"):
            pauses.append(self.core.dial_at - now)
            now = self.core.dial_at
            self.core.not_connected("refused", now)
        self.assertLessEqual(max(pauses), 0.5)
        self.assertLess(pauses[1], 0.011)
        self.assertLess(abs(now - 40.0), 0.6)
        self.assertEqual(self.core.state.name, "OFF")

    def test_who_waits_in_vain_for_the_first_connection_is_told_the_address(self):
        core, ready = _core.Core(self.core.settings), Ready(5.0)
        core.submit(ready, 0.0)
        core.tick(5.0)
        self.assertIn(self.core.settings.address + ": ", str(ready.error))

    def test_while_somebody_dials_the_core_asks_for_no_tick(self):
        self.core.disconnected("cut", 10.0)
        self.core.tick(12.0)
        self.assertEqual(self.core.dial_at, 10.0)
        self.assertGreater(self.core.wake, 12.0)


class Words(unittest.TestCase):
    def test_the_core_does_no_io_and_reads_no_clock(self):
        for name in ("_core", "_requests", "_holds", "_wire", "_errors", "_fake"):
            with open(os.path.join(SOURCE, "redlockd", name + ".py"), encoding="utf-8") as text:
                tree = ast.parse(text.read())
            used = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
            used |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
            self.assertFalse(used & {"time", "socket", "threading", "asyncio", "select", "os", "ssl", "_place", "_engine"}, name)

    def test_the_version_is_that_of_the_daemon(self):
        with open(os.path.join(ROOT, "Makefile"), encoding="utf-8") as text:
            version = re.search(r"^VERSION := (\S+)", text.read(), re.M)[1]
        with open(os.path.join(SOURCE, "pyproject.toml"), encoding="utf-8") as text:
            self.assertIn('\nversion = "%s"\n' % version, text.read())
        self.assertEqual(redlockd.__version__, version)

    def test_an_exception_goes_to_another_process_as_it_is(self):
        for error in (redlockd.LockLost("x", "quorum", 7), redlockd.LockLost("x", "short"), redlockd.Busy("busy", "x", "ann", 0.5),
                      redlockd.LockTimeout("late", "x", "ann"), redlockd.NoQuorum("no", "QUORUM"), redlockd.Disconnected("/a: gone")):
            for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
                self.assertEqual((type(again), str(again), vars(again)), (type(error), str(error), vars(error)))

    def test_a_history_that_cannot_be_is_found(self):
        right = [("n1", None, 1.0, 2.0, 5), ("n1", None, 2.0, 3.0, 6), ("s", 0, 1.0, 3.0, 7), ("s", 1, 1.0, 3.0, 7)]
        for wrong in (("n1", None, 1.5, 1.7, 9), ("n1", None, 4.0, 5.0, 6), ("s", 0, 2.0, 2.5, 9), ("s", 0, 5.0, 6.0, 7)):
            history = History()
            history.rows = list(right)
            history.check()
            history.rows.append(wrong)
            self.assertRaises(AssertionError, history.check)


class Readme(WithDaemon):
    def test_its_programs_run_as_printed(self):
        with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as text:
            programs = [program for program in re.findall(r"```python\n(.*?)```", text.read(), re.S) if not OTHERS.search(program)]
        wanted = [r"mine, fence \d+\nacting, for True\n", r"mine, fence \d+\n",
                  r"\['a', 'b'\]\na\n[0-4]\nb'to=ann' 1\nupdated ann\nruns\nTrue\n0\nleading True\n"]
        self.assertEqual(len(programs), len(wanted))
        self.assertLessEqual(len(programs[0].splitlines()), 15)
        for program, output in zip(programs, wanted):
            done = subprocess.run([sys.executable, "-W", "error", "-c", program], env=dict(os.environ, REDLOCK_ADDR=self.daemon.addr, PYTHONPATH=SOURCE),
                                  capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, "^%s$" % output)


class Tools(unittest.TestCase):
    """What needs tools from PyPI."""

    def run_(self, *argv, **options):
        done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False, **options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_mypy_strict(self):
        self.run_(pypi.installed("tools") + "/mypy", "--strict", "--cache-dir", pypi.folder_of("tools") + "/mypy-cache", "redlockd", cwd=SOURCE)

    def test_pyright(self):
        self.run_(pypi.installed("tools") + "/basedpyright", "--project", SOURCE, cwd=SOURCE)

    def test_ruff(self):
        self.run_(pypi.installed("tools") + "/ruff", "check", "--no-cache", "redlockd", cwd=SOURCE)

    def test_wheel_and_sdist_build_and_install_into_a_clean_root(self):
        binaries, scratch = pypi.installed("tools"), temp_folder("redlock-clients-")
        self.addCleanup(shutil.rmtree, scratch)
        shutil.copytree(SOURCE, scratch + "/source", ignore=shutil.ignore_patterns("__pycache__"))
        self.run_(binaries + "/python", "-c", "from setuptools.build_meta import *; build_wheel('..'); build_sdist('..')", cwd=scratch + "/source")
        wheel, = glob.glob(scratch + "/*.whl")
        self.assertTrue(glob.glob(scratch + "/redlockd-*.tar.gz"))
        self.run_(binaries + "/pip", "install", "-q", "--disable-pip-version-check", "--no-index", "--target", scratch + "/root", wheel)
        self.assertTrue(os.path.exists(scratch + "/root/redlockd/py.typed"))
        program = "import redlockd, redlockd.aio, redlockd.testing; print(redlockd.__file__)"
        said = self.run_(sys.executable, "-I", "-c", "import sys; sys.path.insert(0, %r); %s" % (scratch + "/root", program))
        self.assertIn(scratch + "/root", said)


def main():
    """Last line: "N passed, N failed". --short leaves out what needs PyPI."""
    return verdict.run([Threads, Once, Tasks, WithoutIO, Words, Readme] + ([] if "--short" in sys.argv else [Tools]))


if __name__ == "__main__":
    sys.exit(main())

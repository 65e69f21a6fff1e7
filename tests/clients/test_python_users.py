# SPDX-License-Identifier: BSD-2-Clause
"""What users of the Python client test with, and what they combine it with: redlockd.testing, and the modules for Django, Celery and APScheduler."""
import asyncio
import contextlib
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "client", "python")
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "lib"), SOURCE]

import pypi  # the paths stand above
import redlockd
import redlockd.aio
import redlockd.apscheduler
import redlockd.testing
import verdict
from process import REDLOCKD, temp_folder, until
from redis_server import Redis
from redlockd import _guard
from test_python import OTHERS


class Alike:
    """What a fake and a daemon do alike."""

    lease = 10.0

    def setUp(self):
        self.server = self.begin(self.lease)
        self.addCleanup(self.server.close)
        self.client = self.server.client(label="worker")

    def free(self, name):
        with self.client.lock(name, wait=20):
            pass

    def test_a_lock_is_lost(self):
        for name in ("x", "Köln =1"):
            with self.assertRaises(redlockd.LockLost), self.client.lock(name) as lock:
                self.server.lose(name)
                self.assertTrue(lock.lost.wait(20))
                self.assertFalse(lock.locked())
            with self.client.lock(name, wait=20) as again:
                self.assertGreater(again.fence, lock.fence)

    def test_what_nobody_holds_cannot_be_lost(self):
        with self.assertRaises(redlockd.RedlockError) as caught:
            self.server.lose("nobody's")
        self.assertEqual(caught.exception.code, "NOTFOUND")

    def test_a_task_loses_its_lock(self):
        async def main():
            async with redlockd.aio.connect(self.server.address) as client, client.lock("t"):
                self.server.lose("t")
                await asyncio.sleep(20)
        self.assertRaises(redlockd.LockLost, asyncio.run, main())
        self.free("t")

    def test_nothing_is_answered_for_a_while(self):
        begun = time.monotonic()
        self.server.freeze(0.3)
        with self.client.lock("x", wait=0) as lock:
            self.assertGreaterEqual(time.monotonic() - begun, 0.29)
            self.server.freeze(0.1)
            self.assertGreater(lock.ensure(1), 1)

    def test_somebody_else_has_it(self):
        with self.server.held_elsewhere("x") as trouble:
            with self.assertRaises(redlockd.Busy) as caught:
                self.client.lock("x", wait=0).__enter__()
            self.assertIn("elsewhere", caught.exception.holder)
            self.assertFalse(self.client.lock("x").acquire(timeout=0.02))
            self.assertRaises(redlockd.Busy, self.server.held_elsewhere, "x")
            threading.Timer(0.05, trouble.end).start()
            self.free("x")
        self.free("x")
        self.server.held_elsewhere("never given back")

    def test_who_waits_gets_it_in_turn(self):
        trouble, got = self.server.held_elsewhere("x"), []

        def wait(number):
            with self.client.lock("x", wait=20):
                got.append(number)
        threads = [threading.Thread(target=wait, args=[number]) for number in range(3)]
        for thread in threads:
            thread.start()
            time.sleep(0.1)
        self.assertEqual(got, [])
        trouble.end()
        for thread in threads:
            thread.join(20)
        self.assertEqual(got, [0, 1, 2])

    def test_an_aborted_wait_is_withdrawn(self):
        async def main():
            async with redlockd.aio.connect(self.server.address) as client:
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(client.lock("x").acquire(), 0.05)
        with self.client.lock("x"):
            asyncio.run(main())
        with self.client.lock("x", wait=0):
            pass

    def test_several_readers_and_permits(self):
        with self.client.locks(["a", "b"], wait=0) as both, self.client.any_lock(["a", "c"], wait=0) as one:
            self.assertEqual((sorted(both.fences), one.name), (["a", "b"], "c"))
            self.assertFalse(self.client.locks(["b", "d"]).acquire(False))
            with self.client.lock("d", wait=0):
                pass
        with self.client.lock("r", wait=0, shared=True), self.client.lock("r", wait=0, shared=True):
            self.assertFalse(self.client.lock("r").acquire(False))
        with self.client.semaphore("s", 2, wait=0) as one, self.client.semaphore("s", 2, wait=0) as other:
            self.assertEqual({one.permit, other.permit}, {0, 1})
            self.assertFalse(self.client.semaphore("s", 2).acquire(False))

    def test_a_name_is_kept(self):
        lock = self.client.lock("k", wait=0)
        lock.acquire()
        lock.release(keep=0.3)
        self.assertFalse(lock.acquire(False))
        self.assertTrue(lock.acquire(timeout=20))
        lock.release()

    def test_jobs(self):
        self.client.defer("q", 'it\'s "x=1"', id="one")
        self.client.defer("q", "later", delay=0.1)
        with contextlib.suppress(KeyError), self.client.job("q", wait=0):
            raise KeyError
        seen = [(job.payload, job.attempt) for job in self.client.jobs("q", wait=0.5)]
        self.assertEqual(sorted(seen), [(b'it\'s "x=1"', 2), (b"later", 1)])
        self.assertRaises(redlockd.Busy, self.client.job, "q", wait=0)

    def test_once(self):
        runs = []
        for _ in range(2):
            self.client.once("nightly", 3600, lambda: runs.append(1))
        self.assertEqual((runs, self.client.once_status("nightly").status), ([1], 0))
        with self.assertRaises(redlockd.LockLost):
            self.client.once("hourly", 3600, lambda: self.server.lose("hourly"))
        self.assertIsNone(self.client.once_status("hourly"))

    def test_a_rate_limit(self):
        self.assertEqual(self.client.rate("api", 2, 60).left, 1)
        self.client.rate("api", 2, 60)
        with self.assertRaises(redlockd.Busy) as caught:
            self.client.rate("api", 2, 60)
        self.assertGreater(caught.exception.retry_after, 50)

    def test_what_a_client_had_is_free_when_it_closes(self):
        with redlockd.connect(self.server.address) as other:
            lock = other.lock("x")
            lock.acquire()
        self.free("x")
        self.assertEqual(lock.reason, "closed")


class Fakes(Alike, unittest.TestCase):
    def begin(self, lease):
        return redlockd.testing.Fake(lease)

    def test_a_lock_is_at_risk(self):
        told = threading.Event()
        with self.client.lock("x", on_risk=lambda lock: told.set()) as lock:
            self.server.risk("x")
            self.assertTrue(told.wait(20))
            self.assertGreater(lock.ensure(5), 5)
        self.assertRaises(redlockd.RedlockError, self.server.risk, "x")

    def test_there_is_no_quorum(self):
        with self.assertRaises(redlockd.LockLost) as caught, self.client.lock("x") as lock:
            with self.server.no_quorum():
                self.assertTrue(lock.lost.wait(20))
                self.assertRaises(redlockd.NoQuorum, self.client.lock("y").acquire)
        self.assertEqual(caught.exception.reason, "quorum")
        self.free("x")

    def test_a_connection_breaks(self):
        with self.assertRaises(redlockd.LockLost) as caught, self.client.lock("x") as lock:
            self.server.cut()
            self.assertTrue(lock.lost.wait(20))
        self.assertEqual(caught.exception.reason, "disconnected")
        self.free("x")

    def test_a_session_of_a_fake_ends_with_its_connection(self):
        with redlockd.connect(self.server.address, grace=20) as client:
            with self.assertRaises(redlockd.LockLost), client.lock("g", wait=0) as lock:
                self.server.cut()
                self.assertTrue(lock.lost.wait(20))
            with client.lock("g", wait=20):
                pass

    def test_what_a_fake_does_not_know_is_an_error(self):
        for request in ("SHOW x", "LIST locks", "WAKE"):
            with self.assertRaises(redlockd.RedlockError) as caught:
                self.client.ask(request)
            self.assertEqual(caught.exception.code, "UNKNOWN")

    def test_nothing_is_left_of_it(self):
        before = threading.active_count(), len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            with redlockd.testing.Fake() as fake:
                lock = fake.client().lock("x")
                lock.acquire()
        until(lambda: (threading.active_count(), len(os.listdir("/proc/self/fd"))) <= before, "threads and files are gone")


class QuickFakes(unittest.TestCase):
    def test_a_lock_expires_while_nothing_is_answered(self):
        for server in (redlockd.testing.Fake(lease=0.5), redlockd.testing.Daemon("lease=500ms", program=REDLOCKD)):
            with server, self.assertRaises(redlockd.LockLost) as caught, server.client().lock("x") as lock:
                server.freeze(1.5)
                self.assertTrue(lock.lost.wait(20))
            self.assertEqual(caught.exception.reason, "expired")


class Daemons(Alike, unittest.TestCase):
    def begin(self, lease):
        return redlockd.testing.Daemon("lease=%ds" % lease, program=REDLOCKD)

    def test_nothing_is_left_of_it(self):
        address, process = self.server.address, self.server._process
        self.server.freeze(60)
        self.server.close()
        self.assertIsNotNone(process.returncode)
        self.assertFalse(os.path.exists(os.path.dirname(address)))

    def test_one_that_does_not_begin_says_why(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch("tempfile.tempdir", folder):
            with self.assertRaises(redlockd.RedlockError) as caught:
                redlockd.testing.Daemon("lease=never", program=REDLOCKD)
            self.assertIn("never", str(caught.exception))
            self.assertRaises(FileNotFoundError, redlockd.testing.Daemon, program="/no/such/redlockd")
            self.assertEqual(os.listdir(folder), [])

    def test_it_ends_with_the_process_that_started_it(self):
        program = "import redlockd.testing\nserver = redlockd.testing.Daemon()\nprint(server._process.pid, server.address)\n"
        done = subprocess.run([sys.executable, "-c", program], env=dict(os.environ, PYTHONPATH=SOURCE, REDLOCKD=REDLOCKD), capture_output=True, text=True,
                              timeout=120, check=False)
        pid, address = done.stdout.split()
        self.assertEqual((done.returncode, os.path.exists("/proc/" + pid), os.path.exists(os.path.dirname(address))), (0, False, False), done.stderr)

    def test_the_program_is_found_by_the_environment(self):
        program = "import redlockd.testing; print(redlockd.testing.Daemon.found())"
        for env, said in (({"REDLOCKD": "/a/redlockd"}, "/a/redlockd"), ({"PATH": os.path.dirname(REDLOCKD)}, REDLOCKD), ({"PATH": "/nowhere"}, "None")):
            done = subprocess.run([sys.executable, "-B", "-c", program], env=dict(env, PYTHONPATH=SOURCE), capture_output=True, text=True, timeout=120, check=True)
            self.assertEqual(done.stdout.strip(), said)


class Guard(unittest.TestCase):
    """A function under a lock, as the modules for other packages run it. That for APScheduler imports nothing of it."""

    @classmethod
    def setUpClass(cls):
        cls.server = redlockd.testing.Daemon(program=REDLOCKD)
        cls.addClassCleanup(cls.server.close)
        cls.client = cls.server.client()

    def job(self, function, keep=20.0):
        return redlockd.apscheduler.one_host(self.id(), keep, client=self.client)(function)

    def free(self):
        with self.client.lock(self.id(), wait=0):
            pass

    def test_a_function_whose_lock_is_lost_already_does_not_begin(self):
        with self.assertRaises(redlockd.LockLost), self.client.lock(self.id()) as lock:
            self.server.lose(self.id())
            self.assertTrue(lock.lost.wait(20))
            _guard._Run().begin(lock)
            self.fail("it has begun")

    def test_a_function_that_has_ended_is_not_aborted(self):
        run, told = _guard._Run(), []
        with self.client.lock(self.id()) as lock, unittest.mock.patch.object(_guard, "_raise", lambda thread, what: told.append((thread, what))):
            run.abort(lock)
            run.begin(lock)
            run.end()
            run.abort(lock)
        self.assertEqual(told, [])

    def test_an_exception_that_is_late_is_taken_back(self):
        run, told = _guard._Run(), []
        with self.client.lock(self.id()) as lock, unittest.mock.patch.object(_guard, "_raise", lambda thread, what: told.append((thread, what))):
            run.begin(lock)
            run.abort(lock)
            run.end()
        self.assertEqual((told, _guard._lost), ([(threading.get_ident(), _guard._Aborted), (threading.get_ident(), None)], {}))

    def test_the_exception_can_go_to_another_process(self):
        lock = self.client.lock(self.id())
        with unittest.mock.patch.dict(_guard._lost, {threading.get_ident(): lock}):
            error = _guard._Aborted()
        self.assertIs(type(pickle.loads(pickle.dumps(error))), redlockd.LockLost)

    def test_a_keep_that_is_refused_is_told_after_a_run_that_went_well(self):
        with self.assertRaises(redlockd.RedlockError) as caught:
            self.job(lambda: None, keep=1e6)()
        self.assertEqual(caught.exception.code, "LIMIT")
        self.free()

    def test_it_does_not_hide_what_the_function_raised(self):
        self.assertRaises(KeyError, self.job({}.popitem, keep=1e6))
        self.free()

    def test_the_name_is_kept_after_a_coroutine_function(self):
        async def twice(function):
            async with redlockd.aio.connect(self.server.address) as client:
                work = redlockd.apscheduler.one_host(function.__name__, 20, client=client)(function)
                return [await asyncio.gather(work(), return_exceptions=True) for _ in range(2)]

        async def works():
            return "ran"

        async def fails():
            raise KeyError
        self.assertEqual(asyncio.run(twice(works)), [["ran"], [None]])
        (first,), (second,) = asyncio.run(twice(fails))
        self.assertEqual((type(first), second), (KeyError, None))

    def test_a_process_has_one_client_for_an_address_and_closes_it(self):
        program = "import redlockd._guard as g, threading\nseen = set()\n" \
                  "def ask():\n    with g.shared().lock('x', wait=20):\n        seen.add(g.shared())\n" \
                  "threads = [threading.Thread(target=ask) for _ in range(8)]\n[t.start() for t in threads]\n[t.join() for t in threads]\nprint(len(seen))\n"
        done = subprocess.run([sys.executable, "-W", "error", "-c", program], env=dict(os.environ, PYTHONPATH=SOURCE, REDLOCK_ADDR=self.server.address),
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual((done.stdout, done.stderr), ("1\n", ""))


class Packages(unittest.TestCase):
    """Tests that need packages from PyPI, each in a process of its own."""

    def run_(self, *argv, cwd=HERE, env=None):
        python = pypi.installed("users") + "/python"
        done = subprocess.run([python, "-B", "-W", "error::ResourceWarning", *argv], cwd=cwd, capture_output=True, text=True, timeout=300, check=False,
                              env=dict(os.environ, PYTHONPATH=SOURCE, REDLOCKD=REDLOCKD, **(env or {})))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_programs_of_the_readme(self):
        with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as text:
            programs = [program for program in re.findall(r"```python\n(.*?)```", text.read(), re.S) if OTHERS.search(program)]
        wanted = [r"[\s\S]*\b1 passed in [\s\S]*", r":1:orders/42\n", r"billed 42\n", r"runs on this host\n"]
        self.assertEqual(len(programs), len(wanted))
        folder = temp_folder("redlock-clients-")
        self.addCleanup(shutil.rmtree, folder)
        with redlockd.testing.Daemon(program=REDLOCKD) as server:
            for program, output in zip(programs, wanted):
                with open(os.path.join(folder, "test_readme.py"), "w", encoding="utf-8") as out:
                    out.write(program)
                how = ["-m", "pytest", "-q", "-p", "no:cacheprovider"] if "pytest" in program else []
                self.assertRegex(self.run_(*how, "test_readme.py", cwd=folder, env={"REDLOCK_ADDR": server.address}), "^%s$" % output)

    def test_django(self):
        self.assertRegex(self.run_("-m", "unittest", "python_users.django_cache"), r"Ran [6-9] tests")

    def test_apscheduler(self):
        self.assertRegex(self.run_("-m", "unittest", "python_users.apscheduler_job"), r"Ran 1[0-9] tests")

    def test_celery(self):
        server = Redis()
        self.addCleanup(shutil.rmtree, server.folder)
        server.start()
        self.addCleanup(server.kill)
        env = {"BROKER": "redis+socket://" + server.path, "NOTES": os.path.join(server.folder, "notes")}
        self.assertRegex(self.run_("-m", "unittest", "python_users.celery_task", env=env), r"Ran 2[0-9] tests")


def main():
    """Last line: "N passed, N failed". --short leaves out what needs PyPI."""
    return verdict.run([Fakes, Daemons, QuickFakes, Guard] + ([] if "--short" in sys.argv else [Packages]))


if __name__ == "__main__":
    sys.exit(main())

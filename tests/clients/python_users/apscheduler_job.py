# SPDX-License-Identifier: BSD-2-Clause
"""redlockd.apscheduler, with APScheduler 3."""
import asyncio
import contextlib
import datetime
import os
import random
import threading
import time
import unittest

import redlockd.aio
import redlockd.apscheduler
import redlockd.testing
from apscheduler.events import EVENT_JOB_ERROR, EVENT_JOB_EXECUTED
from apscheduler.executors.asyncio import AsyncIOExecutor
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.schedulers.background import BackgroundScheduler

one_host = redlockd.apscheduler.one_host


def soon():
    return datetime.datetime.now().astimezone() + datetime.timedelta(seconds=0.2)


def never_ends():
    while True:
        time.sleep(0.01)


class OneHost(unittest.TestCase):
    def setUp(self):
        self.server = redlockd.testing.Fake()
        self.addCleanup(self.server.close)
        self.clients = [self.server.client() for _ in range(3)]

    def hosts(self, functions, **trigger):
        """A scheduler for each function, as if each were on a host of its own. Returns them, and an event that is set when all jobs have ended."""
        ended, left = threading.Event(), [len(functions)]
        self.events = []

        def told(event):
            self.events.append(event)
            left[0] -= 1
            if not left[0]:
                ended.set()
        for function in functions:
            scheduler = BackgroundScheduler(executors={"default": ThreadPoolExecutor(2)})
            scheduler.add_listener(told, EVENT_JOB_EXECUTED | EVENT_JOB_ERROR)
            scheduler.add_job(function, id="nightly", misfire_grace_time=None, **trigger)
            scheduler.start()
            self.addCleanup(scheduler.shutdown)
        return ended

    def test_one_of_three_hosts_runs_a_fire(self):
        runs = []

        def work():
            runs.append(time.sleep(0.05))
            return "ran"
        ended = self.hosts([one_host("nightly", keep=20, client=client)(work) for client in self.clients], trigger="date", run_date=soon())
        self.assertTrue(ended.wait(20))
        self.assertEqual(len(runs), 1)
        self.assertEqual(sorted(str(event.retval) for event in self.events), ["None", "None", "ran"])

    def test_a_run_that_fails_counts_and_is_told(self):
        def work():
            raise KeyError("x")
        ended = self.hosts([one_host("nightly", keep=20, client=client)(work) for client in self.clients], trigger="date", run_date=soon())
        self.assertTrue(ended.wait(20))
        self.assertEqual([type(event.exception) for event in self.events if event.code == EVENT_JOB_ERROR], [KeyError])

    def test_the_name_is_free_after_keep(self):
        runs = []
        work = one_host("nightly", keep=0.2, client=self.clients[0])(lambda: runs.append(1))
        work()
        work()
        self.assertEqual(runs, [1])
        with self.clients[1].lock("nightly", wait=20):
            pass
        work()
        self.assertEqual(runs, [1, 1])

    def test_a_run_whose_lock_is_lost_is_aborted(self):
        ended = self.hosts([one_host("nightly", keep=20, client=self.clients[0])(never_ends)], trigger="date", run_date=soon())
        self.lose("nightly")
        self.assertTrue(ended.wait(20))
        self.assertIs(type(self.events[0].exception), redlockd.LockLost)
        self.assertEqual(self.events[0].exception.reason, "quorum")
        with self.clients[1].lock("nightly", wait=0):
            pass

    def lose(self, name):
        for _ in range(2000):
            try:
                return self.server.lose(name)
            except redlockd.RedlockError:
                time.sleep(0.01)
        self.fail("nobody held it")

    def test_a_loss_at_any_moment_hits_the_function_or_nothing(self):
        over, lost = threading.Event(), []

        def loses():
            while not over.wait(random.uniform(0, 0.002)):
                with contextlib.suppress(redlockd.RedlockError):
                    self.server.lose("short")
        at = threading.Thread(target=loses)
        at.start()
        for number in range(300):
            try:
                self.assertEqual(one_host("short", keep=0, client=self.clients[0])(lambda: sum(range(20 * number)))(), sum(range(20 * number)))
            except redlockd.LockLost as error:
                lost.append(type(error))
        over.set()
        at.join()
        self.assertEqual(set(lost), {redlockd.LockLost})
        with self.clients[1].lock("short", wait=0):
            pass

    def test_the_function_may_clean_up(self):
        seen = []

        def work():
            try:
                never_ends()
            except redlockd.LockLost as lost:
                seen.append(lost.name)
                raise
        at = threading.Thread(target=self.lose, args=["nightly"])
        at.start()
        self.assertRaises(redlockd.LockLost, one_host("nightly", keep=20, client=self.clients[0])(work))
        at.join()
        self.assertEqual(seen, ["nightly"])

    def test_a_function_under_another_one(self):
        """The outer lock is lost while the inner function runs."""
        inner = one_host("inner", keep=0, client=self.clients[0])(never_ends)
        at = threading.Thread(target=self.lose, args=["outer"])
        at.start()
        with self.assertRaises(redlockd.LockLost) as caught:
            one_host("outer", keep=0, client=self.clients[0])(inner)()
        at.join()
        self.assertEqual(caught.exception.name, "outer")
        with self.clients[1].locks(["inner", "outer"], wait=0):
            pass

    def test_no_quorum_is_an_error_of_the_job(self):
        with self.server.no_quorum():
            ended = self.hosts([one_host("nightly", keep=20, client=self.clients[0])(self.fail)], trigger="date", run_date=soon())
            self.assertTrue(ended.wait(20))
        self.assertIsInstance(self.events[0].exception, redlockd.NoQuorum)

    def test_without_a_client_it_is_that_of_the_process(self):
        os.environ["REDLOCK_ADDR"] = self.server.address
        self.addCleanup(os.environ.pop, "REDLOCK_ADDR")
        runs = []
        work = one_host("nightly", keep=20)(runs.append)
        work(1)
        work(2)
        self.assertEqual(runs, [1])

    def test_coroutine_functions(self):
        os.environ["REDLOCK_ADDR"] = self.server.address
        self.addCleanup(os.environ.pop, "REDLOCK_ADDR")
        runs = []

        async def work():
            runs.append(await asyncio.sleep(0.05))

        async def sleeps():
            await asyncio.sleep(20)

        async def main():
            ended, events = asyncio.Event(), []

            def told(event):
                events.append(event)
                if len(events) == 4:
                    ended.set()
            async with redlockd.aio.connect() as client:
                jobs = [one_host("a", keep=20)(work), one_host("a", keep=20, client=client)(work), one_host("a", keep=20)(work), one_host("b", 20)(sleeps)]
                for function in jobs:
                    scheduler = AsyncIOScheduler(executors={"default": AsyncIOExecutor()})
                    scheduler.add_listener(told, EVENT_JOB_EXECUTED | EVENT_JOB_ERROR)
                    scheduler.add_job(function, "date", run_date=soon(), misfire_grace_time=None)
                    scheduler.start()
                await asyncio.get_running_loop().run_in_executor(None, self.lose, "b")
                await asyncio.wait_for(ended.wait(), 20)
            return [type(event.exception) for event in events if event.code == EVENT_JOB_ERROR]
        self.assertEqual(asyncio.run(main()), [redlockd.LockLost])
        self.assertEqual(len(runs), 1)


if __name__ == "__main__":
    unittest.main()

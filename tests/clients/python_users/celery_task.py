# SPDX-License-Identifier: BSD-2-Clause
"""redlockd.celery, with Celery: in a worker of threads, and in one of processes."""
import os
import time
import unittest

import redlockd.celery
import redlockd.testing
from celery import Celery, chain, states
from celery.contrib.testing.worker import start_worker
from celery.exceptions import Ignore, TaskRevokedError

NOTES = os.environ["NOTES"]  # a file in which tasks tell what they do
app = Celery("tests", broker=os.environ["BROKER"], backend=os.environ["BROKER"])
app.conf.update(worker_hijack_root_logger=False, broker_connection_retry_on_startup=False, worker_send_task_events=False)
Locked = redlockd.celery.LockedTask


def note(text):
    with open(NOTES, "a", encoding="utf-8") as out:
        out.write(text + "\n")


def notes():
    with open(NOTES, encoding="utf-8") as text:
        return text.read().split()


@app.task(base=Locked, lock="order/{0}")
def bill(order, until="begins"):
    note("begins-%d" % order)
    while until not in " ".join(notes()):
        time.sleep(0.01)
    return order


@app.task(base=Locked, lock="kept/{order}", lock_keep=20)
def once(order):
    note("once-%d" % order)
    return order


@app.task(base=Locked, lock="patient", lock_wait=20)
def patient():
    return "ran"


@app.task(base=Locked, bind=True, lock_busy="retry", max_retries=400, default_retry_delay=0.05)
def stubborn(self):
    return self.request.retries > 0 and self.name


@app.task(base=Locked, lock="resigns", lock_busy="retry", max_retries=1, default_retry_delay=0.05)
def resigns():
    return "ran"


@app.task(base=Locked, lock="endless")
def endless():
    note("endless")
    while True:
        time.sleep(0.01)


@app.task(base=Locked, lock="fails", lock_keep=20, autoretry_for=(KeyError,), max_retries=3, retry_backoff=False, default_retry_delay=0.01)
def fails_once():
    note("fails")
    if notes().count("fails") < 2:
        raise KeyError
    return "ran"


@app.task(base=Locked, bind=True, lock="again")
def again(self):
    if self.request.retries:
        return "ran"
    try:
        raise self.retry(countdown=0)
    finally:
        until(lambda: "told" in notes(), "it is told")


@app.task(base=Locked, bind=True)
def who(self):
    return self.request.id


def until(condition, what):
    end = time.monotonic() + 30
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("not yet: " + what)
        time.sleep(0.01)


class InWorker:
    """Tests with a worker, of one kind or the other."""

    @classmethod
    def setUpClass(cls):
        cls.server = redlockd.testing.Fake()
        cls.addClassCleanup(cls.server.close)
        os.environ["REDLOCK_ADDR"] = cls.server.address
        cls.addClassCleanup(os.environ.pop, "REDLOCK_ADDR")
        worker = start_worker(app, pool=cls.pool, concurrency=2, perform_ping_check=False, shutdown_timeout=60)
        worker.__enter__()
        cls.addClassCleanup(worker.__exit__, None, None, None)

    def setUp(self):
        with open(NOTES, "w", encoding="utf-8"):
            pass

    def noted(self, text):
        until(lambda: text in notes(), text)

    def waits(self, name):
        return any(asked.name == name for asked in self.server._core.waiting)

    def free(self, name):
        with redlockd.connect(self.server.address) as client, client.lock(name, wait=20):
            pass

    def test_a_task_runs_under_its_lock(self):
        with self.server.held_elsewhere("order/2"):
            self.assertEqual(bill.delay(1).get(timeout=30), 1)
        self.free("order/1")

    def test_a_task_whose_lock_somebody_else_has_is_dropped(self):
        first = bill.delay(3, until="told")
        self.noted("begins-3")
        second = bill.delay(3)
        with self.assertRaises(TaskRevokedError) as caught:
            second.get(timeout=30)
        self.assertIn("order/3", str(caught.exception))
        self.assertEqual(second.state, states.REVOKED)
        note("told")
        self.assertEqual((first.get(timeout=30), notes().count("begins-3")), (3, 1))

    def test_a_chain_does_not_go_on(self):
        with self.server.held_elsewhere("order/4"):
            result = chain(bill.si(4), bill.si(5))()
            self.assertRaises(TaskRevokedError, result.parent.get, timeout=30)
        self.assertNotIn("begins-5", notes())

    def test_it_waits_if_told_so(self):
        with self.server.held_elsewhere("patient") as trouble:
            result = patient.delay()
            until(lambda: self.waits("patient"), "it waits")
            trouble.end()
            self.assertEqual(result.get(timeout=30), "ran")

    def test_it_is_tried_again_if_told_so(self):
        with self.server.held_elsewhere("celery/" + stubborn.name):
            result = stubborn.delay()
            until(lambda: result.state == states.RETRY, "it is tried again")
        self.assertEqual(result.get(timeout=30), stubborn.name)

    def test_a_second_try_waits_until_the_first_has_given_the_lock_back(self):
        result = again.delay()
        until(lambda: self.waits("again"), "it waits")
        note("told")
        self.assertEqual(result.get(timeout=30), "ran")

    def test_it_fails_with_Busy_in_the_end(self):
        with self.server.held_elsewhere("resigns"), self.assertRaises(redlockd.Busy) as caught:
            resigns.delay().get(timeout=30)
        self.assertIn("elsewhere", str(caught.exception))

    def test_a_message_that_is_delivered_twice_runs_once(self):
        self.assertEqual(once.delay(order=6).get(timeout=30), 6)
        self.assertRaises(TaskRevokedError, once.delay(order=6).get, timeout=30)
        self.assertEqual(notes(), ["once-6"])

    def test_a_task_whose_lock_is_lost_is_aborted(self):
        result = endless.delay()
        self.noted("endless")
        self.server.lose("endless")
        with self.assertRaises(redlockd.LockLost) as caught:
            result.get(timeout=30)
        self.assertEqual((caught.exception.name, caught.exception.reason), ("endless", "quorum"))
        self.free("endless")

    def test_a_run_that_failed_keeps_no_name(self):
        self.assertEqual(fails_once.delay().get(timeout=30), "ran")

    def test_a_task_has_its_request(self):
        result = who.delay()
        self.assertEqual(result.get(timeout=30), result.id)


class Threads(InWorker, unittest.TestCase):
    pool = "threads"


class Processes(InWorker, unittest.TestCase):
    pool = "prefork"


class Direct(unittest.TestCase):
    """A task that is called like a function, or at once."""

    def setUp(self):
        self.server = redlockd.testing.Fake()
        self.addCleanup(self.server.close)

        @app.task(base=Locked, bind=True, name=self.id(), lock="d", lock_client=self.server.client())
        def direct(task, text):
            return text.upper(), task.request.id, list(task.request.args)
        self.direct = direct

    def test_a_call(self):
        self.assertEqual(self.direct("a"), ("A", None, ["a"]))
        with self.server.held_elsewhere("d"):
            self.assertRaises(redlockd.Busy, self.direct, "a")

    def test_a_message_that_is_delivered_again_leaves_the_result_to_the_run_that_has_the_lock(self):
        for redelivered, state in ((True, states.PENDING), (False, states.REVOKED)):
            self.direct.push_request(id="of-" + state, called_directly=False, delivery_info={"redelivered": redelivered})
            with self.server.held_elsewhere("d"):
                self.assertRaises(Ignore, self.direct, "a")
            self.direct.pop_request()
            self.assertEqual(app.AsyncResult("of-" + state).state, state)

    def test_an_eager_call(self):
        result = self.direct.apply(["a"])
        self.assertEqual(result.get(), ("A", result.id, ["a"]))
        with self.server.held_elsewhere("d"):
            result = self.direct.apply(["a"])
        self.assertEqual((result.state, app.AsyncResult(result.id).state), (states.IGNORED, states.PENDING))


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: BSD-2-Clause
"""Tests of what the checker knows of modes, of BREAK and KILL, of watchers, and of several names at once; and of the table of operations."""
import random
import tempfile
import unittest

import lock_client
import operations
from checker import Verdict
from history import MS, History
from registers import Registers
from session import MODES, Options
from test_checker import Story, rules


class MixedStory(Story):
    def read(self, at, to, fence, **options):
        return self.lock(at, to, fence, mode="shared", **options)

    def force(self, verb, at, to, kind="OK", **fields):
        return self.ask(verb, at, to, kind=kind, **fields)


def story(**options):
    return MixedStory(**options)


class Mix(unittest.TestCase):
    def shows(self, expected, *stories, **more):
        self.assertEqual(rules(*stories, **more), sorted(expected))

    # --- S6: readers together, writers alone -------------------------------------------------------------------------

    def test_readers_believe_together_and_writers_alone(self):
        self.shows([], story().read(0, 10, 1), story().read(500, 510, 2), story().read(600, 610, 2))
        self.shows(["S6", "S13"], story().read(0, 10, 1), story().lock(500, 510, 2))
        self.shows(["S6", "S13"], story().lock(0, 10, 1), story().read(500, 510, 2))

    def test_a_writer_overlaps_the_first_of_two_readers(self):
        self.shows(["S6", "S13"], story().read(0, 10, 1, valid=2000), story().read(20, 30, 2, valid=100), story().lock(500, 510, 3))

    def test_an_answer_of_another_mode_than_that_of_the_request(self):
        self.shows(["S6"], story().lock(0, 10, 1, answer={"mode": "shared"}))
        self.shows(["S6"], story().read(0, 10, 1, answer={"mode": None}))
        self.shows(["S6"], story().read(0, 10, 1).check(20, 30, 1))

    # --- fences ------------------------------------------------------------------------------------------------------

    def test_readers_may_share_a_fence_and_have_no_order_and_writers_do_not(self):
        self.shows([], story().read(0, 10, 5).unlock(20, 21).read(30, 40, 5).unlock(50, 51).read(60, 70, 4), kind="X")
        self.shows(["S2", "S3"], story().read(0, 10, 5).unlock(20, 21).lock(30, 40, 5), kind="X")
        self.shows(["S3"], story().read(0, 10, 5).unlock(20, 21).lock(30, 40, 4), kind="X")
        self.shows(["S3"], story().lock(0, 10, 5).unlock(20, 21).read(30, 40, 4), kind="X")

    def test_a_reader_is_compared_with_the_largest_fence_of_a_writer(self):
        writer = story().lock(0, 10, 5).unlock(20, 21)
        self.shows(["S3"], writer.read(30, 40, 9).unlock(50, 51).read(60, 70, 3).unlock(80, 81), kind="X")

    # --- downgrades --------------------------------------------------------------------------------------------------

    def test_a_downgraded_hold_is_shared_from_the_moment_of_its_request(self):
        writer = story().lock(0, 10, 1).read(300, 500, 1)
        self.shows([], writer, story().read(400, 450, 3))
        self.shows(["S6", "S13"], writer, story().read(200, 290, 3))

    def test_a_downgrade_that_failed_leaves_the_trust_in_a_shared_hold_until_an_answer(self):
        writer = story().lock(0, 10, 1).ask("LOCK", 300, 400, kind="ERR", code="QUORUM", mode="shared")
        self.shows([], writer, story().read(400, 450, 2, valid=100))
        writer.check(600, 610, 1)
        self.shows([], writer, story().read(400, 450, 2, valid=100))
        self.shows(["S6", "S13"], writer, story().read(600, 650, 3))

    def test_a_downgrade_keeps_the_fence_and_the_count(self):
        self.shows([], story().lock(0, 10, 1).read(20, 30, 1).check(40, 50, 1, mode="shared").unlock(80, 90))
        self.shows(["S15"], story().lock(0, 10, 1).read(20, 30, 2).unlock(80, 90))
        self.shows(["S15"], story().lock(0, 10, 1).lock(11, 12, 1, count=2).read(20, 30, 1))
        self.shows(["S6"], story().lock(0, 10, 1).read(20, 30, 1).check(40, 50, 1))

    def test_a_resumed_hold_has_the_mode_that_its_row_tells(self):
        def resumed(mode, fence, first):
            return first.add("gone", 100, how="eof").add("open", 200).ask("RESUME", 300, 310, name=None, rows=[["n", fence, 1000, mode]])
        self.shows([], resumed("shared", 1, story().read(0, 10, 1)), story().read(400, 410, 2))
        self.shows(["S6", "S13"], resumed(None, 2, story().read(0, 10, 1)), story().read(400, 410, 3))
        self.shows(["S6"], resumed(None, 1, story().read(0, 10, 1)))

    def test_a_lock_that_was_granted_unheard_after_RESUME_may_have_been_counted(self):
        def counted(*resume):
            told = story().ask("LOCK", 0, None, mode="shared", wait=900).add("gone", 100, how="eof").add("open", 200)
            if resume:
                told.ask("RESUME", 210, 211, name=None)
            else:
                told.ask("HELLO", 210, 211, name=None)
            return told.read(300, 310, 4, count=2).unlock(320, 321, count=1).unlock(330, 331)
        self.shows([], counted("RESUME"))
        self.shows(["S15"], counted())

    # --- S4: what readers read ---------------------------------------------------------------------------------------

    def test_a_reader_that_sees_an_update(self):
        def read(plain=(3, 3), fenced=(7, 7), late=False):
            return story().add("read", 5, name="n", late=late, plain=plain, fenced=fenced)
        self.shows([], read(), counts={"n": 0})
        self.shows(["S4"], read(plain=(3, 4)), counts={"n": 0})
        self.shows([], read(plain=(3, 4), late=True), counts={"n": 0})
        self.shows([], read(plain=(3, 4)), counts={"n": 0}, kind="X")
        self.shows(["S4"], read(fenced=(7, 8)), kind="X")
        self.shows([], read(fenced=(7, None)), kind="X")

    def test_the_register_refuses_by_the_fences_of_readers_and_writers(self):
        with tempfile.TemporaryDirectory() as folder:
            registers = Registers(folder, ["m", "n"])
            self.addCleanup(registers.close)
            self.assertEqual(registers.access("n", 5), 0)
            self.assertEqual(registers.access("n", 5, 1), 1)
            self.assertEqual(registers.access("n", 9, shared=True), 1)
            self.assertEqual(registers.access("n", 6, shared=True), 1, "readers have no order among themselves")
            self.assertIsNone(registers.access("n", 4, shared=True), "a writer had 5")
            self.assertIsNone(registers.access("n", 8, 2), "a reader had 9")
            self.assertEqual(registers.access("n", 10, 2), 2)
            self.assertEqual(registers.fenced_state()["n"], (2, 2, 2))

    # --- BREAK, KILL -------------------------------------------------------------------------------------------------

    def test_a_broken_lock_is_granted_when_its_holder_has_acknowledged_that_or_its_validity_is_over(self):
        admin = story().force("BREAK", 100, 110, free_in_ms=900)

        def broken(*more):
            told = story().lock(0, 10, 1).add("push", 105, code="LOST", name="n", fence=1, reason="broken")
            return told.unlock(200, 201, kind="ERR", code="LOST") if more else told
        self.shows(["S13"], broken(), admin, story().lock(290, 300, 2))
        self.shows([], broken(), admin, story().lock(990, 1010, 2))
        self.shows([], broken("acknowledged"), admin, story().lock(290, 300, 2))

    def test_a_loss_by_force_that_nobody_asked_for(self):
        lost = story().lock(0, 10, 1).add("push", 105, code="LOST", name="n", fence=1, reason="broken")
        self.shows(["S27"], lost)
        self.shows(["S27"], lost, story().force("BREAK", 90, 91, name="m"))
        self.shows([], lost, story().force("BREAK", 90, None))
        self.shows([], lost, story().force("KILL", 90, 91, name=None, sid=7))

    def test_a_broken_lock_is_not_renewed(self):
        holder = story().lock(0, 10, 1).check(500, 510, 1, valid=900)
        self.shows([], holder, story(daemon=1).force("BREAK", 100, 110, free_in_ms=1300))
        self.shows(["S27"], holder, story(daemon=1).force("BREAK", 100, 110, free_in_ms=900))
        self.shows(["S27"], holder, story().force("BREAK", 100, 110, free_in_ms=1300))
        self.shows([], holder, story().force("BREAK", 100, 110, kind="ERR", code="NOTFOUND"))
        self.shows([], story().lock(0, 10, 1).unlock(90, 91).lock(120, 130, 2), story().force("BREAK", 100, 110, free_in_ms=0))

    def test_a_killed_session_is_not_resumed(self):
        def killed(sid, at):
            told = story().ask("HELLO", 0, 1, name=None, session=7).add("gone", 100, how="eof").add("open", 200)
            told.ask("RESUME", at, at + 1, name=None, sid=7)
            return told, story().force("KILL", 90, 95, name=None, sid=sid)
        self.shows(["S27"], *killed(7, 300))
        self.shows([], *killed(8, 300))
        self.shows([], *killed(7, 93))

    # --- S19: the line of a daemon -----------------------------------------------------------------------------------

    def in_line(self, late=450, daemon=0, priorities=(0, 0), modes=(None, None), fences=(2, 3)):
        """One holds until 1000. The first and then another one, from `late` on, wait for it. The first is granted with the second of the two fences."""
        def waits(at, to, i, fence, daemon):
            told = story(daemon=daemon).ask("LOCK", at, to, fence=fence, valid=1000, count=1, wait=5000, mode=modes[i])
            told.rows[-2]["priority"] = priorities[i]
            return told.unlock(to + 10, to + 11)
        first = waits(100, 1020 if fences[0] > fences[1] else 1050, 0, fences[1], 0)
        return story().lock(0, 10, 1).unlock(1000, 1001), first, waits(late, 1050 if fences[0] > fences[1] else 1020, 1, fences[0], daemon)

    def test_who_came_first_is_served_first(self):
        self.shows(["S19"], *self.in_line())
        self.shows(["S19"], *self.in_line(), kind="X")
        self.shows([], *self.in_line(fences=(3, 2)))
        self.shows([], *self.in_line(late=290), kind="X")
        self.shows([], *self.in_line(daemon=1))
        for what in ("d0", "c1"):
            self.shows([], *self.in_line(), nemesis=[{"e": "stop", "what": what, "t": 50 * MS, "to": 500 * MS}])

    def test_a_higher_priority_is_served_first_whoever_came_first(self):
        self.shows([], *self.in_line(priorities=(0, 1)))
        self.shows(["S19"], *self.in_line(priorities=(0, 1), fences=(3, 2)))
        self.shows([], *self.in_line(priorities=(0, 1), fences=(3, 2)), kind="X")
        self.shows([], *self.in_line(late=850, priorities=(0, 1), fences=(3, 2)))

    def test_a_reader_does_not_pass_a_writer_that_waits(self):
        self.shows(["S19"], *self.in_line(modes=(None, "shared")))
        self.shows([], *self.in_line(modes=("shared", "shared")))

    # --- L6: a free name is granted ----------------------------------------------------------------------------------

    def idle(self, *stories):
        verdict = Verdict(History({i: one.rows for i, one in enumerate(stories)}, [{"e": "window", "t": 0, "to": 5000 * MS}]))
        return round(verdict.longest_idle() * 1000)

    def test_how_long_somebody_waits_for_a_free_name(self):
        def waits(at, to):
            return story().lock(at, to, 2, wait=3000).unlock(to + 1, to + 2)
        self.assertEqual(self.idle(story().lock(0, 10, 1).unlock(500, 501), waits(100, 700)), 200)
        self.assertEqual(self.idle(story().lock(0, 10, 1), waits(100, 1300)), 300, "its validity ends at 1000")
        self.assertEqual(self.idle(story().lock(0, 10, 1).unlock(500, 501), waits(600, 700)), 100, "free, and nobody waits")
        free, several = story().lock(0, 10, 1).unlock(500, 501), self.several("LOCKALL", 400, 600, kind="ERR", code="TIMEOUT")
        self.assertEqual(self.idle(free, waits(100, 700), several), 100, "a LOCKALL that waits for another name may keep this one")

    def test_what_readers_held_is_not_free_when_one_of_them_acknowledges_that_it_is_broken(self):
        def broken(how):
            told = getattr(story(), how)(0, 10, 1).add("push", 105, code="LOST", name="n", fence=1, reason="broken")
            return told.unlock(200, 201, kind="ERR", code="LOST"), story().lock(150, 1000, 2, wait=3000).unlock(1001, 1002)
        self.assertEqual((self.idle(*broken("lock")), self.idle(*broken("read"))), (800, 0))

    # --- SUBSCRIBE, WATCH --------------------------------------------------------------------------------------------

    def test_CONTENDED_is_about_what_is_held(self):
        self.shows([], story().lock(0, 10, 1).add("push", 20, code="CONTENDED", name="n", fence=1))
        self.shows(["S14"], story().add("push", 5, code="CONTENDED", name="n", fence=1).lock(0, 10, 1))
        self.shows(["S14"], story().lock(0, 10, 1).unlock(11, 12).add("push", 20, code="CONTENDED", name="n", fence=1))

    def watched(self, *events, until=900, begin=5):
        """A watcher of daemon 0: events are (at, kind, session, fence, whether it is shared)."""
        told = story().ask("WATCH", begin - 1, begin, name=None)
        told.rows[-2]["prefix"] = "n"
        for at, kind, session, *more in events:
            told.add("event", at, kind=kind, name="n", session=session, label="c%02d" % session, shared=more[1:] == [True],
                     **({"fence": more[0]} if more else {}))
        return told.ask("PING", until, until + 1, name=None)

    def test_a_watcher_is_told_each_grant_and_its_end(self):
        client = story().lock(100, 110, 1).unlock(200, 210)
        self.shows([], client, self.watched((110, "granted", 0, 1), (205, "released", 0, 1)))
        self.shows(["S28"], client, self.watched((205, "released", 0, 1)))
        self.shows(["S28"], client, self.watched((110, "granted", 0, 1)))
        self.shows([], client, self.watched(until=90))
        self.shows([], client, self.watched(begin=105, until=108))
        self.shows([], client, self.watched((205, "released", 0, 1), begin=150))
        self.shows(["S28"], client, self.watched(begin=150))

    def test_a_watcher_is_told_of_an_UNLOCK_by_the_daemon_that_frees_the_lock_whichever_granted_it(self):
        def moved(granted, freed):
            client = story(daemon=granted).lock(100, 110, 1).add("gone", 120, how="eof").add("open", 130, d=freed)
            return client.ask("RESUME", 140, 150, name=None, rows=[["n", 1, 900]]).unlock(200, 210)
        grant, end = (110, "granted", 0, 1), (205, "released", 0, 1)
        self.shows([], moved(0, 4), self.watched(grant))
        self.shows(["S28"], moved(0, 4), self.watched())
        self.shows([], moved(4, 0), self.watched(end))
        self.shows(["S28"], moved(4, 0), self.watched())

    def test_a_watcher_is_told_of_no_grant_that_nobody_had(self):
        self.shows(["S28"], story(), self.watched((110, "granted", 0, 1)))
        self.shows([], story(), self.watched((110, "granted", 0, 1)), nemesis=[{"e": "strangers", "t": 0, "names": ["n"]}])
        self.shows([], story().ask("LOCK", 100, None), self.watched((110, "granted", 0, 1)), answer_ms=10 ** 6)
        self.shows(["S28"], story().lock(100, 110, 1, valid=100), self.watched((110, "granted", 5, 1)))

    def test_a_watcher_is_told_that_a_lock_is_free_before_it_is_told_of_the_next_grant(self):
        def two(first, second, *events):
            return first(story(), 100, 110, 1).unlock(150, 151), second(story(), 160, 170, 2).unlock(200, 210), self.watched(*events)

        def told(first, second):
            granted = (110, "granted", 0, 1, first), (170, "granted", 1, 2, second)
            return granted[0], (151, "released", 0, 1), granted[1], (210, "released", 1, 2)

        def early(first, second):
            events = told(first, second)
            return events[0], events[2], events[1], events[3]
        self.shows([], *two(Story.lock, Story.lock, *told(False, False)))
        self.shows(["S28"], *two(Story.lock, Story.lock, *early(False, False)))
        self.shows(["S28"], *two(MixedStory.read, Story.lock, *early(True, False)))
        self.shows([], *two(MixedStory.read, MixedStory.read, *early(True, True)))

    def test_a_watcher_is_told_the_mode_and_downgrades(self):
        client = story().lock(100, 110, 1).read(120, 130, 1).unlock(200, 210)
        granted, shared, released = (110, "granted", 0, 1), (130, "granted", 0, 1, True), (205, "released", 0, 1, True)
        self.shows([], client, self.watched(granted, shared, released))
        self.shows(["S28"], client, self.watched(granted, released))
        self.shows(["S28"], client, self.watched(granted, (130, "granted", 0, 1), released))

    def test_a_watcher_is_told_fences_in_order(self):
        client = story().lock(100, 110, 5).unlock(150, 151).lock(160, 170, 4).unlock(200, 210)
        told = (110, "granted", 0, 5), (151, "released", 0, 5), (170, "granted", 0, 4), (210, "released", 0, 4)
        self.shows(["S3", "S28"], client, self.watched(*told))

    def test_a_watcher_is_told_who_waits_in_vain(self):
        client = story().ask("HELLO", 6, 7, name=None).ask("LOCK", 100, 1110, kind="TIMEOUT", wait=1000)
        self.shows([], client, self.watched((100, "waiting", 0), until=1200))
        self.shows(["S28"], client, self.watched(until=1200))
        self.shows([], client, self.watched(until=1200), nemesis=[{"e": "far", "t": 0}])

    # --- several names -----------------------------------------------------------------------------------------------

    def several(self, verb, at, to, **fields):
        told = story().ask(verb, at, to, name=None, **fields)
        told.rows[-2]["names"] = ["m", "n"]
        return told

    def test_LOCKALL_holds_all_names_and_LOCKANY_one(self):
        rows = [["m", 1, 1000, None], ["n", 1, 1000, None]]
        self.shows([], self.several("LOCKALL", 0, 10, rows=rows), story().lock(500, 510, 2, name="o"))
        self.shows(["S1", "S13"], self.several("LOCKALL", 0, 10, rows=rows), story().lock(500, 510, 2))
        self.shows(["S7"], self.several("LOCKALL", 0, 10, rows=rows[:1]))
        got = {"fence": 1, "valid": 1000, "count": 1}
        self.shows(["S1", "S13"], self.several("LOCKANY", 0, 10, answer=dict(got, name="n")), story().lock(500, 510, 2))
        self.shows([], self.several("LOCKANY", 0, 10, answer=dict(got, name="m")), story().lock(500, 510, 2))
        self.shows(["S7"], self.several("LOCKANY", 0, 10, answer=dict(got, name="o")))


class Rates(unittest.TestCase):
    @staticmethod
    def uses(times, cost=1, took=10):
        told = Story()
        for at in times:
            told.ask("RATE", at, at + took, kind="OK").rows[-2].update(limit=3, per=1000, cost=cost)
        return told

    def test_no_window_has_more_uses_than_the_limit(self):
        self.assertEqual(rules(self.uses([0, 100, 200, 900])), ["S31"])
        self.assertEqual(rules(self.uses([0, 100]), self.uses([500, 600])), ["S31"])
        self.assertEqual(rules(self.uses([0, 900], cost=2)), ["S31"])

    def test_uses_that_may_lie_further_apart_are_allowed(self):
        self.assertEqual(rules(self.uses([0, 100, 200, 1000, 1100, 1200])), [])
        self.assertEqual(rules(self.uses([0, 100, 200, 900], took=200)), [])

    def test_a_fault_allows_as_many_again(self):
        fault = [{"e": "fault", "t": 300 * MS, "what": "node"}, {"e": "heal", "t": 400 * MS, "what": "node"}]
        self.assertEqual(rules(self.uses([0, 100, 200, 500, 600, 700]), nemesis=fault), [])
        self.assertEqual(rules(self.uses([0, 100, 200, 500, 600, 700, 800]), nemesis=fault), ["S31"])


class Jobs(unittest.TestCase):
    @staticmethod
    def has(at, job="j", valid=1000, **more):
        return Story().ask("TAKE", at, at + 10, kind="OK", job=job, valid=valid, **more)

    @staticmethod
    def ends(told, verb, at, to, job="j", **more):
        told.ask(verb, at, to, **more)
        next(row for row in reversed(told.rows) if row["e"] == "call")["job"] = job
        return told

    def test_two_clients_never_believe_in_one_job(self):
        self.assertEqual(rules(self.has(0), self.has(500)), ["S33"])
        self.assertEqual(rules(self.has(0), self.has(500, job="other")), [])
        self.assertEqual(rules(self.has(0), self.has(1000)), [])
        self.assertEqual(rules(self.ends(self.has(0), "RETRY", 400, 410), self.has(500)), [])
        self.assertEqual(rules(self.ends(self.has(0), "RETRY", 400, None), self.has(500)), [])

    def test_a_job_that_is_done_is_not_handed_out_again(self):
        done = self.ends(self.has(0), "DONE", 400, 410)
        self.assertEqual(rules(done, self.has(500)), ["S32"])
        self.assertEqual(rules(done, self.has(405)), [])
        fault = [{"e": "fault", "t": 300 * MS, "what": "node"}, {"e": "heal", "t": 400 * MS, "what": "node"}]
        self.assertEqual(rules(done, self.has(500), nemesis=fault), [])


class Table(unittest.TestCase):
    """The table of operations, on sessions that only note what they are asked."""

    class Noting:
        def __init__(self, grants=True):
            self.said, self.grants, self.modes = [], grants, {}

        def lock(self, name, wait=0, **fields):
            self.said.append((name, fields))
            self.modes.update({name: fields.get("shared", False)} if self.grants else {})
            return self.grants

        def lock_several(self, verb, names, wait=0, **fields):
            self.said.append((verb, tuple(names)))
            return list(names) if self.grants else []

        def fence(self, name):
            return 1 if name in self.modes else None

    def test_each_operation_returns_what_it_holds(self):
        for key, operation in operations.TABLE.items():
            for grants in (True, False):
                session, names = self.Noting(grants), ["n", "m", "o"][:operation.names]
                held = operation.take(session, random.Random(1), names, 0, lambda _: None)
                self.assertEqual(held, names if grants else [], key)
                self.assertTrue(session.said, key)

    def test_a_request_that_the_daemons_do_not_know_is_not_made(self):
        self.assertNotIn("all", operations.known(["LOCK"]))
        self.assertIn("all", operations.known(["LOCK", "LOCKALL"]))

    def test_the_mix_of_a_row_is_drawn_by_its_weights(self):
        rng, options = random.Random(1), Options(verbs=["LOCK"])
        drawn = {operations.drawn(rng, options, True) for _ in range(500)}
        self.assertEqual(drawn, set(operations.known(["LOCK"]).values()))
        self.assertFalse(any(operations.drawn(rng, options, False).renewed for _ in range(100)))
        options["mix"] = {"shared": 1}
        self.assertEqual({operations.drawn(rng, options, True) for _ in range(50)}, {operations.TABLE["shared"]})
        self.assertEqual({operations.drawn(rng, options, False) for _ in range(50)}, {operations.TABLE["exclusive"]})

    def test_each_mode_of_a_worker_is_one(self):
        for mode in MODES:
            self.assertTrue(callable(getattr(lock_client.Worker, "do_" + mode)))

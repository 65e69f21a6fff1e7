# SPDX-License-Identifier: BSD-2-Clause
"""Tests of the checker: histories in each of which one promise is broken, and sound ones that come close. Times are milliseconds."""
import os
import tempfile
import unittest

from checker import Verdict
from history import MS, History, Log, load


class Story:
    """Writes the rows of one client."""

    def __init__(self, eof_ends=False, daemon=0):
        self.rows, self.n = [{"e": "start", "t": 0, "d": daemon, "eof_ends": eof_ends}, {"e": "open", "t": 0}], 0

    def add(self, event, at, **fields):
        self.rows.append({"e": event, "t": int(at * MS), **fields})
        return self

    def ask(self, verb, at, to, kind="OK", name="n", wait=0, renew=True, code=None, mode=None, sid=None, answer=(), **fields):
        """mode: of request and answer, unless `answer` has another one."""
        self.n += 1
        about = {key: value for key, value in (("mode", mode), ("sid", sid)) if value is not None}
        self.add("call", at, n=self.n, q=verb, name=name, wait=wait, renew=renew, **about)
        if to is None:
            return self
        return self.add("answer", to, n=self.n, kind=kind, code=code, **{**({"mode": mode} if mode else {}), **fields, **dict(answer)})

    def lock(self, at, to, fence, valid=1000, count=1, **options):
        return self.ask("LOCK", at, to, fence=fence, valid=valid, count=count, **options)

    def check(self, at, to, fence, valid=1000, **options):
        return self.ask("CHECK", at, to, fence=fence, valid=valid, count=1, **options)

    def unlock(self, at, to, count=0, **options):
        return self.ask("UNLOCK", at, to, count=count, **options)

    def lost(self, at, fence, name="n"):
        return self.add("push", at, code="LOST", name=name, fence=fence)


def rules(*stories, kind="T", nemesis=(), **more):
    history = History({i: story.rows for i, story in enumerate(stories)}, list(nemesis))
    return sorted({violation.rule for violation in Verdict(history, kind, **more).violations})


class Checker(unittest.TestCase):
    def shows(self, expected, *stories, **more):
        self.assertEqual(rules(*stories, **more), sorted(expected))

    # --- S1, S13: exclusion ------------------------------------------------------------------------------------------

    def test_two_beliefs_at_one_moment(self):
        self.shows(["S1", "S13"], Story().lock(0, 10, 1), Story().lock(500, 510, 2))

    def test_two_beliefs_are_allowed_where_a_fault_breaks_assumptions_about_time(self):
        self.shows([], Story().lock(0, 10, 1), Story().lock(500, 510, 2), kind="X")

    def test_two_names_do_not_exclude_each_other(self):
        self.shows([], Story().lock(0, 10, 1), Story().lock(500, 510, 2, name="m"))

    def test_a_belief_ends_at_its_deadline(self):
        self.shows([], Story().lock(0, 10, 1), Story().lock(990, 1000, 2))
        self.shows(["S1", "S13"], Story().lock(0, 10, 1), Story().lock(990, 999, 2))

    def test_a_belief_counts_from_before_the_request(self):
        self.shows([], Story().lock(0, 600, 1), Story().lock(900, 1001, 2))

    def test_CHECK_lengthens_a_belief(self):
        self.shows(["S1", "S13"], Story().lock(0, 10, 1).check(900, 901, 1), Story().lock(1490, 1500, 2))

    def test_a_belief_ends_when_UNLOCK_is_sent(self):
        self.shows([], Story().lock(0, 10, 1).unlock(500, 520), Story().lock(499, 501, 2))

    def test_UNLOCK_of_an_inner_count_ends_nothing(self):
        self.shows(["S1", "S13"], Story().lock(0, 10, 1).lock(20, 30, 1, count=2).unlock(40, 41, count=1), Story().lock(499, 501, 2))

    def test_LOST_ends_a_belief_but_another_grant_before_its_deadline_breaks_S13(self):
        self.shows(["S13"], Story().lock(0, 10, 1).lost(400, 1), Story().lock(490, 500, 2))
        self.shows([], Story().lock(0, 10, 1).lost(400, 1), Story().lock(1010, 1020, 2))

    def test_UNLOCK_after_LOST_gives_up_the_rest(self):
        self.shows([], Story().lock(0, 10, 1).lost(400, 1).unlock(410, 411, kind="ERR", code="LOST"), Story().lock(490, 500, 2))

    def test_a_client_that_ends_its_session_ends_its_belief(self):
        self.shows([], Story().lock(0, 10, 1).add("gone", 300, how="closed"), Story().lock(301, 302, 2))

    def test_a_daemon_that_hangs_up_ends_no_belief(self):
        self.shows(["S1", "S13"], Story().lock(0, 10, 1).add("gone", 300, how="eof"), Story().lock(301, 302, 2))

    def test_a_hang_up_ends_a_belief_if_the_client_ends_with_its_connection(self):
        self.shows([], Story(eof_ends=True).lock(0, 10, 1).add("gone", 300, how="eof"), Story().lock(301, 302, 2))

    def test_a_killed_client_believes_in_nothing(self):
        self.shows([], Story().lock(0, 10, 1), Story().lock(301, 302, 2), nemesis=[{"e": "kill", "t": 300 * MS, "c": 0}])
        self.shows(["S1", "S13"], Story().lock(0, 10, 1), Story().lock(301, 302, 2), nemesis=[{"e": "kill", "t": 400 * MS, "c": 0}])

    # --- S2, S3: fences ----------------------------------------------------------------------------------------------

    def test_a_fence_that_is_given_twice(self):
        self.shows(["S2", "S3"], Story().lock(0, 10, 5).unlock(20, 21), Story().lock(30, 40, 5), kind="X")

    def test_one_fence_for_two_names_is_allowed(self):
        self.shows([], Story().lock(0, 10, 5).unlock(20, 21), Story().lock(30, 40, 5, name="m"), kind="X")

    def test_a_fence_smaller_than_one_that_was_told_before_the_request(self):
        self.shows(["S3"], Story().lock(0, 10, 5).unlock(20, 21), Story().lock(30, 40, 4), kind="X")

    def test_grants_that_overlap_have_no_order_in_kind_X(self):
        self.shows([], Story().lock(0, 40, 5).unlock(50, 51), Story().lock(30, 60, 4), kind="X")

    def test_fences_grow_in_the_order_of_beliefs_in_kind_T(self):
        self.shows(["S3"], Story().lock(0, 40, 5).unlock(50, 51), Story().lock(30, 60, 4))

    # --- S4: what the lock protects ----------------------------------------------------------------------------------

    def test_a_lost_update_of_the_register(self):
        self.shows(["S4"], fenced={"n": (9, 10, 0)}, kind="X")
        self.shows([], fenced={"n": (10, 10, 3)}, kind="X")

    def test_a_lost_update_of_the_counter(self):
        twice = Story().add("try", 1, name="n").add("done", 2, name="n", late=False).add("try", 3, name="n").add("done", 4, name="n", late=False)
        self.shows(["S4"], twice, counts={"n": 1})
        self.shows([], twice, counts={"n": 2})

    def test_an_update_cut_short_may_count_or_not(self):
        story = Story().add("try", 1, name="n").add("done", 2, name="n", late=False).add("try", 3, name="n")
        self.shows([], story, counts={"n": 1})
        self.shows([], story, counts={"n": 2})
        self.shows(["S4"], story, counts={"n": 3})

    def test_a_counter_with_a_late_update_is_not_judged(self):
        self.shows([], Story().add("try", 1, name="n").add("done", 2, name="n", late=True), counts={"n": 0})

    # --- S14, S15: truth about a grant -------------------------------------------------------------------------------

    def test_OK_after_LOST(self):
        for verb in ("CHECK", "EXTEND", "UNLOCK"):
            self.shows(["S14"], Story().lock(0, 10, 1).lost(20, 1).ask(verb, 30, 31, fence=1, valid=900, count=0))

    def test_a_loss_that_is_not_pushed(self):
        for verb in ("CHECK", "EXTEND", "UNLOCK"):
            self.shows(["L5"], Story().lock(0, 10, 1).ask(verb, 30, 31, kind="ERR", code="LOST"), kind="X")
            self.shows([], Story().lock(0, 10, 1).lost(20, 1).ask(verb, 30, 31, kind="ERR", code="LOST"), kind="X")

    def test_OK_that_is_read_after_LOST(self):
        story = Story().lock(0, 10, 1)
        story.ask("CHECK", 20, None).lost(21, 1).add("answer", 22, n=story.n, kind="OK", code=None, fence=1, valid=900)
        self.shows(["S14"], story)

    def test_LOST_of_an_older_grant_is_no_loss_of_this_one(self):
        self.shows([], Story().lock(0, 10, 1).unlock(12, 13).lock(20, 30, 2).lost(31, 1).check(32, 33, 2))

    def test_a_new_grant_after_a_loss_is_judged_by_itself(self):
        self.shows([], Story().lock(0, 10, 1).lost(20, 1).lock(30, 40, 2).check(50, 51, 2).unlock(60, 61))

    def test_OK_about_a_lock_that_has_ended(self):
        self.shows(["S14"], Story().lock(0, 10, 1, valid=200, renew=False).unlock(300, 301))
        self.shows([], Story().lock(0, 10, 1, valid=200, renew=False).unlock(205, 206))
        self.shows([], Story().lock(0, 10, 1, valid=200).unlock(300, 301))

    def test_OK_about_a_lock_that_ended_while_the_daemon_was_stopped(self):
        stop = [{"e": "stop", "what": "d0", "t": 500 * MS, "to": 2500 * MS}]
        story = Story().ask("LOCK", 0, 10, fence=1, valid=900, count=1)
        story.rows[-2]["ttl"] = 1000
        self.shows(["S14"], story.check(600, 2510, 1), nemesis=stop, kind="X")
        for still, go in ((700, 2500), (500, 1500), (500, 550)):  # asked before it surely stood still, awake in time, asked when it was awake
            self.shows([], story, nemesis=[dict(stop[0], still=still * MS, go=go * MS)], kind="X")

    def test_OK_from_another_daemon_than_the_stopped_one(self):
        stop = [{"e": "stop", "what": "d0", "t": 500 * MS, "to": 2500 * MS}]

        def resumed(**to):
            story = Story().ask("LOCK", 0, 10, fence=1, valid=900, count=1)
            story.rows[-2]["ttl"] = 1000
            story.add("gone", 600, how="eof").add("open", 700, **to)
            return story.ask("RESUME", 800, 810, name=None, rows=[["n", 1, 900]]).check(1600, 1610, 1)
        self.shows([], resumed(d=1), nemesis=stop)
        self.shows(["S14"], resumed(), nemesis=stop)

    def test_an_EXTEND_without_an_answer_may_have_been_executed(self):
        self.shows([], Story().lock(0, 10, 1, valid=200, renew=False).ask("EXTEND", 100, 150, kind="ERR", code="QUORUM").unlock(300, 301))

    def test_a_count_that_does_not_add_up(self):
        self.shows(["S15"], Story().lock(0, 10, 1).lock(20, 30, 1, count=2).unlock(40, 41, count=0))
        self.shows(["S15"], Story().lock(0, 10, 1).lock(20, 30, 1, count=3))

    def test_a_lock_that_the_daemon_has_forgotten(self):
        for verb in ("CHECK", "EXTEND", "UNLOCK"):
            self.shows(["S15"], Story().lock(0, 10, 1).ask(verb, 30, 31, kind="ERR", code="NOTHELD"))
            self.shows([], Story().lock(0, 10, 1).unlock(20, 21).ask(verb, 30, 31, kind="ERR", code="NOTHELD"))

    def test_an_answer_without_a_request(self):
        self.shows(["S21"], Story().add("answer", 5, n=9, kind="OK", code=None))

    # --- RESUME ------------------------------------------------------------------------------------------------------

    def resumed(self, fence, valid=1000, before=None):
        story = before or Story().lock(0, 10, 1)
        story.add("gone", 100, how="eof").add("open", 200)
        return story.ask("RESUME", 300, 310, name=None, rows=[["n", fence, valid]])

    def test_a_resumed_lock_is_the_same_grant_and_lasts_longer(self):
        self.shows([], self.resumed(1).check(400, 401, 1).unlock(500, 501))
        self.shows(["S1", "S13"], self.resumed(1), Story().lock(1190, 1200, 2))
        self.shows([], self.resumed(1), Story().lock(1290, 1310, 2))

    def test_a_lock_granted_without_a_connection_is_a_new_grant(self):
        self.shows(["S1", "S13"], self.resumed(7), Story().lock(390, 400, 8))
        self.shows(["S3"], self.resumed(7, before=Story().lock(0, 10, 9).unlock(20, 21)))
        self.shows([], self.resumed(7, before=Story().lock(0, 10, 9).unlock(20, 21)), kind="X")

    def test_a_grant_to_a_dropped_session_has_the_ttl_and_renew_of_its_first_LOCK(self):
        def story(verb):
            told = Story().ask("LOCK", 0, None, wait=500).add("gone", 100, how="eof").add("open", 200).ask(verb, 210, 211, name=None)
            return told.lock(300, 310, 4, valid=200, renew=False).check(600, 601, 4)
        self.shows([], story("RESUME"))
        self.shows(["S14"], story("HELLO"))

    def test_a_count_is_unknown_until_an_answer_tells_it(self):
        self.shows([], self.resumed(1).unlock(400, 401, count=1).unlock(410, 411))
        self.shows(["S15"], self.resumed(1).check(400, 401, 1).unlock(410, 411, count=1))

    def test_a_lost_lock_is_not_resumed(self):
        story = Story().lock(0, 10, 1).lost(20, 1)
        story.add("gone", 100, how="eof").add("open", 200)
        self.shows([], story.ask("RESUME", 300, 310, name=None, rows=[]))
        self.shows(["S2"], self.resumed(1, before=Story().lock(0, 10, 1).lost(20, 1)), kind="X")

    # --- L7: answers in time -----------------------------------------------------------------------------------------

    def test_an_answer_that_comes_too_late(self):
        late = Story().ask("LOCK", 0, 2600, kind="TIMEOUT", wait=500)
        self.shows(["L7"], late, answer_ms=2000)
        self.shows([], late, answer_ms=2200)

    def test_the_time_for_which_the_daemon_or_the_client_is_stopped_does_not_count(self):
        late = Story(daemon=1).ask("LOCK", 0, 2600, kind="TIMEOUT", wait=500)
        self.shows([], late, answer_ms=2000, nemesis=[{"e": "stop", "what": "d1", "t": 100 * MS, "to": 600 * MS}])
        self.shows(["L7"], late, answer_ms=2000, nemesis=[{"e": "stop", "what": "d0", "t": 100 * MS, "to": 600 * MS}])
        self.shows([], late, answer_ms=2000, nemesis=[{"e": "stop", "what": "host", "t": 100 * MS, "to": 600 * MS}])
        self.shows([], late.add("stalled", 100, to=600 * MS), answer_ms=2000)

    def test_no_answer_at_all(self):
        silent, busy = Story().ask("LOCK", 0, None, wait=100), Story().ask("PING", 9000, 9001)
        self.shows(["L7"], silent, busy, answer_ms=2000)
        self.shows([], silent, busy, answer_ms=2000, nemesis=[{"e": "kill", "c": 0, "t": 1000 * MS}])
        self.shows([], Story().ask("LOCK", 0, None, wait=100).add("gone", 50, how="eof"), busy, answer_ms=2000)

    # --- figures -----------------------------------------------------------------------------------------------------

    def test_the_longest_gap_and_the_recovery(self):
        story = Story().lock(100, 110, 1).unlock(120, 121).lock(900, 910, 2).unlock(920, 921)
        rows = [{"e": "heal", "t": 400 * MS, "what": ""}, {"e": "window", "t": 0, "to": 1000 * MS}]
        verdict = Verdict(History({0: story.rows}, rows))
        self.assertAlmostEqual(verdict.longest_gap(), 0.8)
        self.assertAlmostEqual(verdict.recovery(), 0.51)
        rows.append({"e": "fault", "t": 500 * MS, "what": ""})
        self.assertAlmostEqual(Verdict(History({0: story.rows}, rows)).recovery(), 0, msg="a grant after another fault is no recovery")

    def test_a_sound_history(self):
        first = Story().lock(0, 10, 1).check(300, 301, 1).unlock(400, 401).lock(900, 1600, 3, wait=1000).check(1601, 1602, 3).unlock(1700, 1701)
        self.shows([], first, Story().lock(100, 420, 2, wait=800).check(421, 422, 2).unlock(800, 801))


class Files(unittest.TestCase):
    def test_a_log_is_read_again_without_a_torn_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "c03.log")
            log = Log(path)
            log.tell("open")
            os.write(log.fd, b'{"e":"ca')
            os.close(log.fd)
            self.assertEqual([row["e"] for row in load(path)], ["open"])
            self.assertEqual(list(History.of(folder).clients), [3])

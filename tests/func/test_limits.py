# SPDX-License-Identifier: BSD-2-Clause
"""Each bound in the table LIMITS of redlock-protocol(7) is reached, and what is beyond is refused by its name. A bound without a case fails."""
import glob
import os
import re

from guard import GuardTest
from process import ROOT, until

MANUAL = os.path.join(ROOT, "proto", "redlock-protocol.7")
COLUMNS = ("each", "peer", "all")
OTHER = 61234  # a user who is neither root nor that of the daemon
CONFIG = {"lease": "5s", "jobs": {"attempts": 1, "keep": "1s"}, "redis": {"timeout": "1s"},
          "limits": {"name": 64, "locks": 10, "waiting": 5, "mistakes": 20, "jobs": 5, "renewals": 200, "stored": "64k", "line": "136k"}}


def table():
    """The cells of the table that are not empty: {(what, column): bound}."""
    with open(MANUAL, encoding="utf-8") as manual:
        text = manual.read()
    text = text[text.index("\n.Sh LIMITS\n"):]
    rows = [line[len(".It "):] for line in text[:text.index("\n.El\n")].splitlines() if line.startswith(".It ")]
    cells = {}
    for row in rows[1:]:
        what, *bounds = [cell.strip() for cell in re.split(r" Ta\b", row)]
        assert len(bounds) == len(COLUMNS), row
        cells.update({(what, column): bound for column, bound in zip(COLUMNS, bounds) if bound})
    return cells


def unit(suite, test):
    """A unit test that shows it. The names of suites are unique."""
    found = glob.glob("tests/unit/**/%s_test.c" % suite, root_dir=ROOT, recursive=True)
    return found[0] if found else "tests/unit/%s_test.c" % suite, r"^(LOOP_)?TEST\(%s[,)]" % test


def func(module, test):
    return "tests/func/%s.py" % module, r"^    def %s\(" % test


# What another test shows, which must be there.
ELSEWHERE = {
    ("connections", "peer"): func("test_guard", "test_one_peer_has_so_many_sessions_and_no_more"),
    ("connections", "all"): func("test_greedy", "test_connections_beyond_the_limit_get_ERR_LIMIT_until_another_one_ends"),
    ("TLS handshakes", "all"): unit("secure", "there_are_so_many_handshakes_and_no_more"),
    ("sessions without connection", "peer"): unit("origin", "sessions_of_one_peer_have_half_of_the_places_without_a_connection"),
    ("sessions without connection", "all"): unit("too_many_detached", "more_detached_sessions_than_the_limit_are_not_kept"),
    ("requests that wait", "peer"): unit("crowd", "requests_of_a_peer_that_wait_have_a_quarter_and_leave_room_when_they_end"),
    ("requests that wait", "all"): unit("crowd", "requests_of_all_that_wait_have_a_bound"),
    ("requests at the stores", "each"): unit("show", "looks_in_flight_are_bounded_and_end_with_their_session"),
    ("requests at the stores", "peer"): unit("crowd", "requests_of_a_peer_under_way_have_a_quarter_and_leave_room_when_they_end"),
    ("requests at the stores", "all"): unit("origin", "requests_under_way_have_a_bound_for_a_peer_and_for_all"),
    ("bytes of jobs in flight there", "peer"): unit("origin", "jobs_of_a_peer_on_their_way_to_a_store_leave_room_for_those_of_others"),
    ("bytes of jobs in flight there", "all"): unit("origin", "jobs_of_a_peer_on_their_way_to_a_store_leave_room_for_those_of_others"),
    ("LISTs under way", "each"): unit("list", "sessions_take_turns_and_have_so_many_lists_at_most"),
    ("AUTHs under way", "each"): unit("auth", "one_session_has_one_auth_under_way"),
    ("newest AUTHs of one user that wait", "peer"): unit("auth", "of_one_user_and_origin_64_wait_and_the_oldest_is_told_so_when_one_more_comes"),
    ("users remembered for failed AUTHs", "peer"): unit("auth", "one_address_does_not_make_the_daemon_forget_who_failed_at_others"),
    ("users remembered for failed AUTHs", "all"): unit("auth", "those_who_failed_last_are_remembered_at_all_addresses_together"),
    ("prefixes of WATCH", "peer"): unit("origin", "sessions_of_one_peer_have_half_of_the_prefixes"),
    ("queues that TAKEs wait for", "peer"): unit("origin", "sessions_of_one_peer_wait_for_the_jobs_of_so_many_queues"),
    ("queues that TAKEs wait for", "all"): unit("origin", "sessions_of_one_peer_wait_for_the_jobs_of_so_many_queues"),
    ("TAKEs that wait for a queue", "peer"): unit("origin", "half_of_the_TAKEs_that_wait_for_the_jobs_of_a_queue_are_of_one_peer"),
    ("TAKEs that wait for a queue", "all"): unit("origin", "so_many_TAKEs_wait_for_the_jobs_of_a_queue"),
    ("lines read ahead", "each"): unit("session", "reading_stops_at_256_lines_and_goes_on_when_they_are_served"),
    ("lines read ahead", "all"): unit("session", "all_sessions_together_are_read_ahead_so_far"),
    ("bytes unread or unfinished", "each"): unit("backpressure", "pushes_still_go_out_and_they_alone_can_overflow"),
    ("bytes unread or unfinished", "all"): unit("backpressure", "of_all_that_are_behind_those_go_that_are_so_most"),
    ("renewals a second", "peer"): unit("renewal_limits", "the_sessions_of_a_peer_share_half_and_another_peer_is_still_served"),
    ("renewals a second", "all"): unit("renewal_limits", "all_sessions_have_the_whole_and_no_more"),
    ("EXTENDs of a lock under way, likewise", "all"): unit("step_time_of_crowds", "many_extends_of_a_name_are_answered"),
    ("LOCKs of an owner", "each"): unit("restore", "an_owner_holds_a_lock_so_often_and_no_more"),
    ("slots waited for as the first", "each"): unit("step_time_of_permits", "a_session_is_the_first_in_line_for_so_many_slots_and_no_more"),
    ("readers of a lock, at a daemon", "all"): unit("reader_crowd", "one_more_reader_is_told_BUSY_or_waits"),
    ("bytes of jobs, queues, rate limits", "peer"): unit("jobs_limits", "the_clients_of_a_user_fill_half_and_those_of_another_are_still_served"),
    ("bytes of names in use", "peer"): unit("origin", "names_of_a_peer_take_a_quarter_and_those_of_all_the_whole"),
    ("bytes of names in use", "all"): unit("origin", "names_of_a_peer_take_a_quarter_and_those_of_all_the_whole"),
    ("bytes of names left taken", "peer"): unit("kept", "kept_names_of_a_peer_take_a_quarter_and_those_of_all_the_whole"),
    ("bytes of names left taken", "all"): unit("kept", "kept_names_of_a_peer_take_a_quarter_and_those_of_all_the_whole"),
    ("rows of an answer", "each"): unit("help_stats", "rows_of_an_answer_end_when_they_fill_a_quarter_of_the_output"),
}

# Requests that reach a bound, and one beyond it: n is the number that the manual says. An error names the bound.
SIMPLE = {
    "bytes of a name": (lambda n: "LOCK " + "n" * CONFIG["limits"]["name"], lambda n: "LOCK " + "n" * (CONFIG["limits"]["name"] + 1), "LIMIT"),
    "characters of a tag": (lambda n: "@" + "t" * n + " PING", lambda n: "@" + "t" * (n + 1) + " PING", "ARG"),
    "bytes of the id of a job": (lambda n: "DEFER q x id=" + "i" * n, lambda n: "DEFER q x id=" + "i" * (n + 1), "LIMIT"),
    "bytes of a payload": (lambda n: "DEFER p " + "p" * n, lambda n: "DEFER p " + "p" * (n + 1), "LIMIT"),
    "names of a LOCKALL": (None, lambda n: "LOCKALL " + " ".join("n%d" % i for i in range(n + 1)), "ARG"),
    "limit of a semaphore": (lambda n: "ACQUIRE s limit=%d" % n, lambda n: "ACQUIRE t limit=%d" % (n + 1), "LIMIT"),
    "wait, heartbeat": (lambda n: "HELLO 1 heartbeat=87600h", lambda n: "LOCK a wait=87601h", "LIMIT"),
    "ttl of a lock": (lambda n: "LOCK c ttl=30s", lambda n: "LOCK d ttl=30001ms", "LIMIT"),
    "delay of a lock": (lambda n: "LOCK e delay=0s", lambda n: "LOCK f delay=1s", "LIMIT"),
    "keep of an UNLOCK": (None, lambda n: "UNLOCK c keep=3601s", "LIMIT"),
    "grace of a session": (lambda n: "HELLO 1 grace=10m", lambda n: "HELLO 1 grace=11m", "LIMIT"),
    "limit of a RATE": (lambda n: "RATE r limit=%d per=1s" % n, lambda n: "RATE r limit=%d per=1s" % (n + 1), "LIMIT"),
    "per of a RATE": (lambda n: "RATE w limit=1 per=744h", lambda n: "RATE w limit=1 per=745h", "LIMIT"),
    "delay of a job": (lambda n: "DEFER y x delay=87600h", lambda n: "DEFER y x delay=87601h", "LIMIT"),
}


def number(bound):
    return {"2^30": 2 ** 30, "10^9": 10 ** 9}.get(bound) or (int(bound) if bound.isdigit() else 0)


class Limits(GuardTest):
    COST = 6

    def test_each_bound_is_reached_and_refused_by_its_name(self):
        self.d = self.daemon(CONFIG)
        cells = table()
        shown = dict(ELSEWHERE)
        for (what, column), bound in cells.items():
            if (what, column) in ELSEWHERE:
                continue
            with self.subTest(what=what, column=column):
                case = getattr(self, "case_" + re.sub(r"[^a-z]+", "_", what.lower()), None) or (self.simple if what in SIMPLE else None)
                self.assertIsNotNone(case, "the manual has a bound that no case reaches")
                case(what, column, bound)
                shown[what, column] = case
        self.assertEqual(set(shown), set(cells), "a case has no bound in the manual")

    def test_what_other_tests_show_is_there(self):
        for cell, (path, pattern) in ELSEWHERE.items():
            with self.subTest(cell=cell), open(os.path.join(ROOT, path), encoding="utf-8") as text:
                self.assertTrue(re.search(pattern, text.read(), re.M), "%s has no %s" % (path, pattern))

    def refused(self, c, request, bound, code="LIMIT"):
        """By the name of the bound, or by its value."""
        c.send(request)
        answer = c.line()
        self.assertEqual(answer.code, code, answer)
        if code == "LIMIT":
            self.assertIn(bound if "_" in bound or "." in bound else {"2^30": str(2 ** 30), "10^9": str(10 ** 9)}.get(bound, bound), answer.text)
        c.ok("PING")

    def simple(self, what, _column, bound):
        within, beyond, code = SIMPLE[what]
        c = self.client(self.d)
        if within:
            c.ok(within(number(bound)))
        self.refused(c, beyond(number(bound)), bound, code)

    def case_bytes_of_an_owner(self, _what, _column, bound):
        n, c = number(bound), self.client(self.d)
        c.ok("LOCK a owner=" + "o" * n)
        self.refused(c, "LOCK b owner=" + "o" * (n + 1), bound)

    def case_bytes_of_a_note_or_label(self, _what, _column, bound):
        n, c = number(bound), self.client(self.d)
        c.ok("HELLO 1 name=" + "l" * n)
        c.ok("LOCK n note=" + "o" * n)
        for beyond in ("HELLO 1 name=" + "l" * (n + 1), "LOCK b note=" + "o" * (n + 1)):
            self.refused(c, beyond, bound)

    def case_bytes_of_a_line(self, _what, _column, _bound):
        most, c = 136 * 1024, self.client(self.d)
        c.ok("PING" + " " * (most - 5))
        c.send("PING" + " " * (most - 4))
        self.assertEqual(c.line().code, "TOOLONG")

    def case_locks_permits_and_jobs(self, _what, _column, bound):
        c = self.client(self.d)
        for i in range(10):
            c.ok("LOCK l%d" % i)
        for request in ("LOCK l10", "ACQUIRE m limit=1", "LOCKALL l10 l11"):
            self.refused(c, request, bound)

    def case_requests_that_wait(self, _what, _column, bound):
        holder, c = self.client(self.d), self.client(self.d)
        holder.ok("LOCK w")
        c.begin(*["@w%d LOCK w wait=1m owner=o%d" % (i, i) for i in range(5)])
        self.refused(c, "LOCK w wait=1m owner=o5", bound)

    def case_prefixes_of_watch(self, _what, column, bound):
        each = number(table()["prefixes of WATCH", "each"])
        for k in range(1 if column == "each" else number(bound) // each):
            c = self.client(self.d)
            c.send(*["WATCH p%d-%d" % (k, i) for i in range(each)])
            self.assertEqual([c.line().kind for _ in range(each)], ["OK"] * each)
        last = c if column == "each" else self.client(self.d)
        self.refused(last, "WATCH more", bound)
        c.close()

    def case_mistakes_in_a_row(self, _what, _column, _bound):
        c = self.client(self.d)
        c.send(*["NONSENSE"] * 19, "PING", *["NONSENSE"] * 20)
        said = c.eof()
        self.assertEqual([line.kind for line in said[:20]], ["ERR"] * 19 + ["OK"])
        self.assertIn("mistakes=20", str(said[-1]))

    def case_renewals_a_second(self, _what, _column, bound):
        c = self.client(self.d)
        for i in range(3):
            c.ok("LOCK r%d ttl=1s" % i)
        self.refused(c, "LOCK r3 ttl=1s", "limits.renewals")
        self.assertEqual(bound, "a 20th")

    def case_failed_jobs(self, _what, _column, _bound):
        c = self.client(self.d)
        c.ok("DEFER f x id=failed")
        c.ok("TAKE f")
        c.ok("RETRY failed")
        self.assertEqual(c.ok("LIST jobs prefix=f").num("n"), 1)
        until(lambda: c.ok("LIST jobs prefix=f").num("n") == 0, "it is gone")

    def case_jobs_of_a_queue(self, _what, _column, bound):
        c = self.client(self.d)
        for i in range(5):
            c.ok("DEFER j x id=%d" % i)
        self.refused(c, "DEFER j x id=5", bound)

    def case_bytes_of_jobs_queues_rate_limits(self, _what, _column, bound):
        c, told = self.client(self.d), None
        for i in range(200):
            told = c.ask("RATE full%d limit=5 per=1h" % i)
            if told.kind == "ERR":
                break
        self.assertEqual(told.code, "LIMIT")
        self.assertIn(bound, told.text)


class RatesThatAreOver(GuardTest):
    """They make room for jobs, whether or not anybody asks for a rate limit again."""
    COST = 6

    def make_room(self, daemon):
        client = self.client(daemon)
        for i in range(2000):
            told = client.ask("RATE r%d limit=50 per=1s cost=40" % i)
            if told.kind == "ERR":
                break
        self.assertEqual(told.code, "LIMIT")
        until(lambda: client.ask("DEFER q %s" % ("p" * 800)).kind == "OK", "the rate limits are over")

    def test_on_redis(self):
        self.make_room(self.redis_daemon(self.redis(), {"limits": {"stored": "64k"}}))

    def test_on_memory(self):
        self.make_room(self.daemon({"limits": {"stored": "64k"}}))


class FullStore(GuardTest):
    """One user takes as many names as it can get."""
    COST = 12

    def test_one_user_cannot_fill_the_store(self):
        server = self.redis(args=("--maxmemory", "40mb", "--maxmemory-policy", "noeviction"))
        daemon = self.redis_daemon(server)
        os.chmod(daemon.folder, 0o755)
        calm, told = self.client(daemon), None
        for k in range(58):
            c = self.client_as(daemon, OTHER, OTHER)
            c.send(*["@%d LOCK %s ttl=30s" % (i, ("%d-%d-" % (k, i)).ljust(490, "x")) for i in range(1024)])
            told = [c.line() for _ in range(1024)][-1]
            if told.kind == "ERR":
                break
        self.assertEqual(told.code, "LIMIT")
        self.assertIn("limits.stored", told.text)
        for i in range(20):
            calm.ok("LOCK calm%d" % i)
        self.assertLess(server.cli.info("memory")["used_memory"], 30 << 20)

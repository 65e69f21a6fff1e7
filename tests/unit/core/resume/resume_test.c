/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/resume/resume.c: what a session keeps when its connection drops, how RESUME takes it over, and how it ends when nobody resumes it. */
#include "tests/fixture/resumable.h"

#include <check.h>

static struct secret s1;

/* --- what is kept --- */

FIXTURE(.teardown = cluster_close)

LOOP_TEST(a_dropped_session_keeps_its_locks_and_resume_says_which, 4)
{
	static const enum gone how[] = {GONE_HANGUP, GONE_RESET, GONE_KEEPALIVE, GONE_OVERFLOW};
	int64_t fence;

	held_with_grace(3, "grace=60s", "", &s1);
	says(1, "LOCK b owner=t2");
	says(1, "LOCK b owner=t2");
	ignores(1);
	goes(1, how[_i]);
	passes(40 * SEC);
	says(2, "LOCK a");
	hears(2, "BUSY name=a *");
	resumes(3, &s1);
	fence = number_in(hears(3, ROW_A), "fence");
	hears(3, "\\* name=b fence=* valid_ms=* count=2 owner=t2");
	ck_assert_int_eq(number_in(hears(3, "OK session=* n=2"), "session"), s1.serial);
	says(3, "CHECK a");
	ck_assert_int_eq(number_in(hears(3, "OK name=a * count=1"), "fence"), fence);
	says(3, "UNLOCK b owner=t2");
	hears(3, "OK name=b count=1");
	says(3, "UNLOCK b owner=t2");
	hears(3, "OK name=b count=0");
}

TEST(quit_ends_a_session_with_grace_at_once)
{
	held_with_grace(3, "grace=60s", "", &s1);
	says(1, "QUIT");
	hears(1, "OK");
	says(2, "LOCK a");
	hears(2, GRANT);
	resumes(3, &s1);
	hears(3, "ERR NOTFOUND *");
}

TEST(without_grace_there_is_nothing_to_resume)
{
	held_with_grace(3, "name=x", "", &s1);
	resumes(2, &s1);
	hears(2, "ERR NOTFOUND *");
	goes(1, GONE_HANGUP);
	resumes(2, &s1);
	hears(2, "ERR NOTFOUND *");
	says(2, "LOCK a");
	hears(2, GRANT);
}

TEST(grace_may_be_given_up_and_asked_for_again)
{
	held_with_grace(3, "grace=60s", "", &s1);
	says(1, "HELLO 1 grace=0");
	hears(1, "OK proto=1 *");
	resumes(2, &s1);
	hears(2, "ERR NOTFOUND *");
	says(1, "HELLO 1 grace=5s");
	hears(1, "OK proto=1 *");
	goes(1, GONE_HANGUP);
	resumes(2, &s1);
	hears(2, ROW_A);
	hears(2, "OK session=* n=1");
}

TEST(a_grace_that_is_given_up_and_asked_for_again_is_one_record)
{
	unsigned before;

	held_with_grace(3, "grace=60s", "", &s1);
	for (int i = 0; i < 20; i++)
		says(1, "LOCK a%d", i), hears(1, "OK *");
	before = journal_length(0);
	for (unsigned i = 1; i <= 3; i++) {
		says(1, "HELLO 1 grace=0"), hears(1, "OK proto=1 *");
		says(1, "HELLO 1 grace=5s"), hears(1, "OK proto=1 *");
		ck_assert_uint_eq(journal_length(0), before + 2 * i);
	}
}

/* What it takes and lets go without grace. */
static void without_grace(void)
{
	says(1, "HELLO 1 grace=0"), hears(1, "OK *");
	says(1, "LOCK b"), hears(1, "OK *");
	says(1, "UNLOCK a"), hears(1, "OK *");
}

LOOP_TEST(the_next_run_resumes_what_a_session_has_that_asked_for_grace_again, 2)
{
	held_with_grace(3, "grace=60s", "", &s1);
	without_grace();
	if (_i)
		journal_is_compacted(0);
	says(1, "HELLO 1 grace=20s"), hears(1, "OK *");
	daemon_returns(0);
	passes(SEC);
	session_opens(2, 0);
	resumes(2, &s1);
	hears(2, "\\* name=b *");
	hears(2, "OK session=* n=1");
}

LOOP_TEST(the_next_run_resumes_nothing_of_a_session_that_gave_its_grace_up, 2)
{
	held_with_grace(3, "grace=60s", "", &s1);
	without_grace();
	if (_i)
		journal_is_compacted(0);
	daemon_returns(0);
	passes(20 * SEC);
	session_opens(2, 0);
	resumes(2, &s1);
	hears(2, "ERR NOTFOUND *");
	says(2, "LOCK b"), hears(2, "OK *");
}

static void earlier_builds_read(struct journal_record *r)
{
	ck_assert_int_eq(r->kind, JOURNAL_SESSION);
	ck_assert_int_gt(r->grace_us, 0);
}

/* They refuse a session without grace, and with it the whole journal. */
TEST(a_session_that_gave_its_grace_up_has_a_record_that_earlier_builds_read)
{
	held_with_grace(3, "grace=60s", "", &s1);
	says(1, "HELLO 1 grace=0"), hears(1, "OK *");
	journal_changes(0, journal_length(0) - 1, earlier_builds_read);
}

TEST(a_session_that_gave_its_grace_up_ends_with_its_connection)
{
	held_with_grace(3, "grace=60s", "", &s1);
	without_grace();
	half_closes(1);
	says(2, "LOCK b");
	hears(2, "OK *");
}

TEST(a_grace_beyond_the_limit_is_refused_and_changes_nothing)
{
	held_with_grace(3, "grace=60s", "", &s1);
	says(1, "HELLO 1 name=other grace=101s");
	hears(1, "ERR LIMIT grace may be at most 100000ms (max_grace)");
	says(1, "LIST sessions prefix=other");
	hears(1, "OK n=0 *");
	goes(1, GONE_HANGUP);
	passes(59 * SEC);
	says(2, "LOCK a");
	hears(2, "BUSY *");
}

TEST(half_close_detaches_too)
{
	held_with_grace(3, "grace=20s", "", &s1);
	half_closes(1);
	ck_assert(hung_up(1));
	resumes(2, &s1);
	hears(2, ROW_A);
	hears(2, "OK session=* n=1");
}

TEST(a_missed_heartbeat_cuts_the_connection_and_loses_nothing)
{
	held_with_grace(3, "grace=20s heartbeat=1s", "", &s1);
	passes(1010 * MSEC);
	ck_assert(hung_up(1));
	hears_nothing(1);
	resumes(2, &s1);
	hears(2, ROW_A);
	hears(2, "OK session=* n=1");
	/* The heartbeat is the session's, not the connection's. */
	passes(1010 * MSEC);
	ck_assert(hung_up(2));
}

TEST(what_HELLO_said_over_the_new_connection_stays)
{
	held_with_grace(3, "name=old grace=20s heartbeat=1s", "", &s1);
	says_hello(2, "name=\"\" grace=0 heartbeat=0");
	resumes(2, &s1);
	hears(2, ROW_A);
	hears(2, "OK session=* n=1");
	says(3, "LIST sessions prefix=old");
	hears(3, "OK n=0 *");
	passes(1010 * MSEC);
	ck_assert(!hung_up(2));
	goes(2, GONE_HANGUP);
	resumes(3, &s1);
	hears(3, "ERR NOTFOUND *");
	says(3, "LOCK a");
	hears(3, GRANT);
}

TEST(nothing_of_a_session_resumed_before_stays)
{
	struct secret s2;

	held_with_grace(3, "name=old grace=20s", "", &s1);
	s2 = says_hello(2, "grace=60s");
	says(2, "LOCK b");
	hears(2, "OK name=b *");
	resumes(3, &s1);
	hears(3, ROW_A);
	hears(3, "OK session=* n=1");
	says(3, "UNLOCK a");
	hears(3, "OK *");
	resumes(3, &s2);
	hears(3, "\\* name=b *");
	hears(3, "OK session=* n=1");
	says(4, "LIST sessions prefix=old");
	hears(4, "OK n=0 *");
	goes(3, GONE_HANGUP);
	passes(40 * SEC);
	resumes(4, &s2);
	hears(4, "\\* name=b *");
	hears(4, "OK session=* n=1");
}

TEST(a_flood_of_mistakes_cuts_the_connection_and_loses_nothing)
{
	held_with_grace(3, "grace=20s", "", &s1);
	for (unsigned i = 0; i < 100; i++)
		says(1, "NONSENSE");
	ck_assert(hung_up(1));
	resumes(2, &s1);
	hears(2, ROW_A);
	hears(2, "OK session=* n=1");
}

/* --- how it ends --- */

/* A closed connection does not say that its client is gone: a proxy may be all that went. */
LOOP_TEST(after_the_grace_the_locks_of_a_session_end_with_the_validity_it_was_told, 3)
{
	static const enum gone how[] = {GONE_HANGUP, GONE_RESET, GONE_KEEPALIVE};

	cluster_begin(3);
	passes(2 * SEC);
	s1 = says_hello(1, "grace=3s");
	says(1, "LOCK a");
	hears(1, GRANT);
	says(2, "LOCK a wait=1m");
	passes(4 * SEC);
	/* Renewed at 3.333 s, and by grace at 6.666 s: D was 13.230 s at the drop, on a slow clock 13.330 s, whatever came after. */
	goes(1, how[_i]);
	passes(9320 * MSEC);
	hears_nothing(2);
	resumes(3, &s1);
	hears(3, "ERR NOTFOUND *");
	passes(20 * MSEC);
	hears(2, GRANT);
}

TEST(the_validity_that_a_session_was_told_may_end_before_its_grace)
{
	cluster_begin(3);
	passes(2 * SEC);
	session_opens_from_afar(1, 0);
	s1 = says_hello(1, "grace=15s");
	says(1, "LOCK a");
	hears(1, GRANT);
	says(2, "LOCK a wait=1m");
	goes(1, GONE_KEEPALIVE);
	passes(14990 * MSEC);
	hears_nothing(2);
	passes(20 * MSEC);
	hears(2, GRANT);
}

/* --- RESUME --- */

TEST(a_wrong_number_or_secret_is_not_found)
{
	static const char *const wrong[] = {"0", "99999999999999999999", "-1", "\"\"", "1x"};

	held_with_grace(3, "grace=20s", "", &s1);
	goes(1, GONE_HANGUP);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		says(2, "RESUME %s %s", wrong[i], s1.text);
		hears(2, "ERR NOTFOUND *");
	}
	says(2, "RESUME %lld %.31s", (long long)s1.serial, s1.text);
	hears(2, "ERR NOTFOUND *");
	says(2, "RESUME %lld %s0", (long long)s1.serial, s1.text);
	hears(2, "ERR NOTFOUND *");
	says(2, "RESUME %lld \"\"", (long long)s1.serial);
	hears(2, "ERR NOTFOUND *");
	for (unsigned i = 0; i < 32; i += 31) {
		struct secret other = s1;

		other.text[i] ^= 1;
		resumes(2, &other);
		hears(2, "ERR NOTFOUND *");
	}
	resumes(2, &s1);
	hears(2, ROW_A);
}

TEST(RESUME_is_for_a_session_that_holds_nothing)
{
	held_with_grace(3, "grace=20s", "", &s1);
	goes(1, GONE_HANGUP);
	says(2, "LOCK b");
	hears(2, "OK name=b *");
	resumes(2, &s1);
	hears(2, "ERR ARG RESUME is for a session that holds nothing*");
	says(3, "@w LOCK b wait=1m");
	resumes(3, &s1);
	hears(3, "ERR ARG *");
	says(2, "UNLOCK b");
	hears(2, "OK *");
	hears(3, "@w OK name=b *");
	all_feel(MOOD_SILENT);
	says(4, "@s SHOW c");
	resumes(4, &s1);
	hears(4, "ERR ARG RESUME is for a session that holds nothing*");
	all_feel(MOOD_WELL);
	hears(4, "@s OK n=0 free=yes");
	resumes(2, &s1);
	hears(2, ROW_A);
}

TEST(rows_that_the_answer_has_no_room_for_are_counted)
{
	struct secret s;

	cluster_open(1);
	cluster.conf.limits.output = 16 * 64;
	daemon_starts(0);
	passes(2 * SEC);
	s = says_hello(1, "grace=20s");
	says(1, "LOCK a");
	says(1, "LOCK b");
	says(1, "LOCK c");
	ignores(1);
	goes(1, GONE_HANGUP);
	resumes(2, &s);
	hears(2, "\\* name=a *");
	hears(2, "\\* name=b *");
	hears(2, "OK session=* n=2 more=1");
	says(2, "CHECK c");
	hears(2, "OK name=c *");
}

/* A lock fills what there is room for. */
LOOP_TEST(permits_and_jobs_that_the_answer_has_no_room_for_are_counted, 2)
{
	struct secret s;

	cluster_open(1);
	cluster.conf.limits.output = 16 * 48;
	daemon_starts(0);
	passes(2 * SEC);
	s = says_hello(1, "grace=20s");
	says(1, "DEFER mail x id=j");
	says(1, _i == 0 ? "LOCK a" : "PING");
	says(1, "ACQUIRE p limit=1");
	says(1, "ACQUIRE q limit=1");
	says(1, "TAKE mail");
	says(1, "DEFER mail y id=k");
	says(1, "TAKE mail");
	ignores(1);
	goes(1, GONE_HANGUP);
	resumes(2, &s);
	hears(2, _i == 0 ? "\\* name=a *" : "\\* name=p *");
	hears(2, _i == 0 ? "OK session=* n=1 more=4" : "OK session=* n=1 more=3");
	passes(10 * SEC);
	says(2, "CHECK q");
	hears(2, "OK name=q *");
	says(2, "DONE j");
	hears(2, "OK queue=mail job=j");
	hears_nothing(2);
}

TEST(RESUME_takes_over_and_closes_a_connection_that_still_stands)
{
	held_with_grace(3, "name=worker grace=20s", "", &s1);
	resumes(2, &s1);
	ck_assert(hung_up(1));
	hears_nothing(1);
	hears(2, ROW_A);
	hears(2, "OK session=* n=1");
	says(2, "LIST sessions prefix=worker");
	hears(2, "\\* session=* name=worker peer=unix pid=1002 * held=1 waiting=0");
	hears(2, "OK n=1 *");
}

TEST(the_secret_serves_again_and_its_last_user_has_the_session)
{
	held_with_grace(3, "grace=20s", "", &s1);
	goes(1, GONE_HANGUP);
	resumes(2, &s1);
	resumes(3, &s1);
	hears(2, ROW_A);
	hears(2, "OK *");
	ck_assert(hung_up(2));
	hears(3, ROW_A);
	hears(3, "OK *");
	goes(3, GONE_RESET);
	passes(15 * SEC);
	resumes(4, &s1);
	hears(4, ROW_A);
	hears(4, "OK session=* n=1");
}

TEST(resuming_itself_changes_nothing)
{
	cluster_begin(1);
	s1 = says_hello(1, "grace=20s");
	is_resumed_with_nothing(1, &s1);
	ck_assert(!hung_up(1));
}

static void opens_over_HTTP(unsigned k)
{
	const struct peer peer = {.is_unix = true, .is_local = true, .pid = 1000, .uid = 1000, .address = "unix", .heartbeat_us = 30 * SEC};

	session_opens_from(k, 0, &peer);
}

static void is_cut_off_after(unsigned k, int64_t us)
{
	passes(us - SEC / 10);
	ck_assert(!hung_up(k));
	passes(SEC / 5);
	ck_assert(hung_up(k));
}

TEST(a_session_that_goes_on_over_HTTP_has_a_heartbeat)
{
	held_with_grace(3, "grace=20s", "", &s1);
	opens_over_HTTP(2);
	resumes(2, &s1);
	ignores(2);
	is_cut_off_after(2, 30 * SEC);
	passes(20 * SEC);
	resumes(3, &s1);
	hears(3, "ERR NOTFOUND *");
}

LOOP_TEST(over_HTTP_a_session_keeps_the_heartbeat_that_it_has, 2)
{
	static const int64_t own[] = {SEC, 60 * SEC};

	held_with_grace(3, _i == 0 ? "grace=20s heartbeat=1s" : "grace=20s heartbeat=60s", "", &s1);
	opens_over_HTTP(2);
	resumes(2, &s1);
	ignores(2);
	is_cut_off_after(2, own[_i]);
}

/* 1: the daemon is killed meanwhile. */
LOOP_TEST(the_heartbeat_that_HTTP_has_given_a_session_stays_its_own, 2)
{
	held_with_grace(3, "grace=20s", "", &s1);
	opens_over_HTTP(2);
	resumes(2, &s1);
	ignores(2);
	if (_i == 1)
		daemon_returns(0);
	resumes(3, &s1);
	ignores(3);
	is_cut_off_after(3, 30 * SEC);
}

TEST(a_HELLO_before_RESUME_counts_for_the_session_that_goes_on)
{
	struct secret fresh;

	held_with_grace(3, "name=old grace=20s", "", &s1);
	goes(1, GONE_HANGUP);
	fresh = says_hello(2, "name=new grace=5s");
	ck_assert_int_ne(fresh.serial, s1.serial);
	resumes(2, &s1);
	ignores(2);
	says(2, "HELLO 1");
	ck_assert_int_eq(number_in(hears(2, "OK proto=1 *"), "session"), s1.serial);
	resumes(3, &fresh);
	hears(3, "ERR NOTFOUND *");
	goes(2, GONE_HANGUP);
	passes(4900 * MSEC);
	says(3, "LIST sessions prefix=new");
	hears(3, "\\* session=* name=new peer=unix * held=1 waiting=0");
	hears(3, "OK *");
	passes(200 * MSEC);
	resumes(3, &s1);
	hears(3, "ERR NOTFOUND *");
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/hold.c, releases.c, admin.c: readers of daemon 0 leave, and what they leave behind holds for other daemons, too. */
#include "tests/fixture/readers.h"
#include "tests/fixture/resumable.h"

#include <check.h>

#define ADMIN 6

/* Sessions 1 and 3 of daemon 0 read, and the first has asked for more than the lease. */
static void one_keeps_beyond_the_lease(void)
{
	two_daemons(3);
	reads(1);
	reads(3);
	says(1, "UNLOCK a keep=30s");
	hears(1, "OK *count=0");
}

static void is_kept_from_writers(void)
{
	passes(25 * SEC);
	says(2, "LOCK a");
	hears(2, "BUSY *");
	passes(6 * SEC);
	says(2, "LOCK a");
	hears(2, GRANT);
}

START_TEST(keep_of_one_reader_beyond_the_lease_counts_when_the_last_one_has_left)
{
	one_keeps_beyond_the_lease();
	says(3, "UNLOCK a");
	hears(3, "OK *count=0");
	reads(2);
	says(2, "UNLOCK a");
	hears(2, "OK *count=0");
	is_kept_from_writers();
}
END_TEST

START_TEST(keep_of_one_reader_beyond_the_lease_counts_when_the_session_of_the_last_one_ends)
{
	static const enum gone how[] = {GONE_HANGUP, GONE_KEEPALIVE};

	one_keeps_beyond_the_lease();
	goes(3, how[_i]);
	is_kept_from_writers();
}
END_TEST

START_TEST(the_longer_keep_counts)
{
	static const char *const keep[] = {"UNLOCK a keep=30s", "UNLOCK a keep=1s"};

	one_keeps_beyond_the_lease();
	passes(_i == 0 ? 5 * SEC : 0);
	says(3, "%s", keep[_i]);
	hears(3, "OK *count=0");
	is_kept_from_writers();
}
END_TEST

/* The reader of daemon 0 has gone and may believe, and nobody holds the lock there any more. */
/* Session 3 gets the lock together with session 1. It had lost its connection while it waited, and its client does not ask again. */
START_TEST(keep_of_one_reader_counts_when_the_turn_of_the_last_one_lapses)
{
	const int64_t keep_s = _i == 0 ? 25 : 30;
	struct secret s3;

	two_daemons(3);
	says(5, "LOCK a");
	hears(5, GRANT);
	s3 = says_hello(3, "grace=20s");
	says(3, "LOCK a mode=shared wait=1m");
	says(1, "LOCK a mode=shared wait=1m");
	goes(3, GONE_RESET);
	is_resumed_with_nothing(4, &s3);
	says(5, "UNLOCK a");
	hears(5, "OK *");
	passes(SEC);
	hears(1, "OK name=a *");
	says(1, "UNLOCK a keep=%llds", (long long)keep_s);
	hears(1, "OK *count=0");
	passes((keep_s - 1) * SEC);
	says(2, "LOCK a");
	hears(2, "BUSY *");
	passes(2 * SEC);
	says(2, "LOCK a");
	hears(2, GRANT);
	hears_nothing(4);
}
END_TEST

/* The last reader loses the lock before its client must have ceased to believe: by its own end, by KILL, by BREAK. */
START_TEST(keep_of_one_reader_counts_when_the_last_one_loses_the_lock)
{
	struct secret s;

	two_daemons(3);
	passes(SEC);
	reads(1);
	s = says_hello(3, "");
	says(3, _i == 0 ? "LOCK a mode=shared renew=no" : "LOCK a mode=shared");
	hears(3, READER);
	says(1, "UNLOCK a keep=30s");
	hears(1, "OK *count=0");
	session_opens_as_admin(ADMIN, 0);
	if (_i == 0) {
		passes(9800 * MSEC);
	} else if (_i == 1) {
		says(ADMIN, "KILL session=%lld", (long long)s.serial);
		hears(ADMIN, "OK *");
	} else {
		says(ADMIN, "BREAK a");
		ck_assert_int_gt(number_in(hears(ADMIN, "OK name=a free_in_ms=*"), "free_in_ms"), 29000);
	}
	hears(3, "! LOST *");
	passes(_i == 0 ? 1200 * MSEC : 11 * SEC);
	says(2, "LOCK a");
	hears(2, "BUSY *");
	passes(18 * SEC);
	says(2, "LOCK a");
	hears(2, "BUSY *");
	passes(2 * SEC);
	says(2, "LOCK a");
	hears(2, GRANT);
}
END_TEST

/* The stores are silent since the daemon was started again. Its lease is not confirmed yet. A writer's keep= is the rule that readers follow. */
START_TEST(keep_counts_while_the_lease_is_being_adopted)
{
	struct secret s;

	stores_have_room(3);
	s = says_hello(1, "grace=1m");
	says(1, _i == 0 ? "LOCK a mode=shared" : "LOCK a");
	hears(1, "OK *");
	all_feel(MOOD_SILENT);
	daemon_returns(0);
	passes(100 * MSEC);
	session_opens(3, 0);
	resumes(3, &s);
	passes(2100 * MSEC);
	hears(3, "OK session=* n=0 open=1");
	says(3, "UNLOCK a keep=30s");
	hears(3, "OK *count=0");
	all_feel(MOOD_WELL);
	passes(29 * SEC);
	session_opens(4, 0);
	says(4, "LOCK a");
	hears(4, "BUSY *");
	passes(2 * SEC);
	says(4, "LOCK a");
	hears(4, GRANT);
}
END_TEST

/* The lease was handed on to readers, and stands alone at the stores. */
START_TEST(a_break_of_a_lease_that_stands_alone_tells_for_how_long_the_name_is_kept)
{
	stores_have_room(3);
	passes(2 * SEC);
	says(5, "LOCK a");
	hears(5, GRANT);
	says(1, "LOCK a mode=shared wait=1m");
	says(3, "LOCK a mode=shared wait=1m");
	says(5, "UNLOCK a");
	hears(5, "OK *");
	hears(1, READER);
	hears(3, READER);
	says(1, "UNLOCK a keep=30s");
	hears(1, "OK *count=0");
	session_opens_as_admin(ADMIN, 0);
	says(ADMIN, "BREAK a");
	ck_assert_int_gt(number_in(hears(ADMIN, "OK name=a free_in_ms=*"), "free_in_ms"), 29000);
	hears(3, "! LOST *");
	says(3, "UNLOCK a");
	hears(3, "ERR LOST *"); /* it believes no more, but what is left behind stays */
	passes(29 * SEC);
	says(2, "LOCK a");
	hears(2, "BUSY *");
	passes(2 * SEC);
	says(2, "LOCK a");
	hears(2, GRANT);
}
END_TEST

START_TEST(a_break_while_a_reader_that_has_gone_may_believe_ends_the_holds_of_other_daemons)
{
	two_daemons(3);
	reads(1);
	reads(2);
	goes(1, GONE_KEEPALIVE);
	session_opens_as_admin(ADMIN, 0);
	says(ADMIN, "BREAK a");
	hears(ADMIN, "OK name=a free_in_ms=*");
	is_broken_elsewhere(1, 0, "a");
	passes(MSEC);
	hears(2, "! LOST name=a fence=* reason=broken");
	passes(11 * SEC);
	says(2, "LOCK a");
	hears(2, GRANT);
}
END_TEST

/* Somebody has deleted the keys, but the reader has not heard of that. */
START_TEST(a_break_that_ends_a_hold_here_says_so_whatever_the_stores_have)
{
	two_daemons(3);
	reads(1);
	for (unsigned i = 0; i < 3; i++)
		memory_remove(cluster.node[i].memory, SPAN("a"));
	session_opens_as_admin(ADMIN, 0);
	says(ADMIN, "BREAK a");
	hears(1, "! LOST name=a fence=* reason=broken");
	ck_assert_int_gt(number_in(hears(ADMIN, "OK name=a free_in_ms=*"), "free_in_ms"), 9000);
	passes(SEC);
	says(ADMIN, "BREAK a");
	ck_assert_int_gt(number_in(hears(ADMIN, "OK name=a free_in_ms=*"), "free_in_ms"), 8000);
	says(ADMIN, "BREAK b");
	hears(ADMIN, "ERR NOTFOUND *");
}
END_TEST

/* A share that is left behind keeps no other out: a renewal over an earlier connection may put the old one beside it. */
START_TEST(a_late_renewal_leaves_no_share_beside_the_one_that_is_left_behind)
{
	two_daemons(3);
	reads(1);
	feels(2, MOOD_SILENT);
	says(1, "EXTEND a");
	breaks(2);
	says(1, "UNLOCK a keep=1s");
	arrives(2);
	ignores(1);
	ck_assert(key_is_there(2, "a"));
	passes(1500 * MSEC);
	ck_assert(!key_is_there(2, "a"));
}
END_TEST

Suite *readers_leave_suite(void)
{
	Suite *s = suite_create("readers_leave");
	TCase *c = tcase_create("readers leave");

	tcase_add_checked_fixture(c, NULL, cluster_close);
	tcase_add_test(c, keep_of_one_reader_beyond_the_lease_counts_when_the_last_one_has_left);
	tcase_add_loop_test(c, keep_of_one_reader_beyond_the_lease_counts_when_the_session_of_the_last_one_ends, 0, 2);
	tcase_add_loop_test(c, the_longer_keep_counts, 0, 2);
	tcase_add_loop_test(c, keep_of_one_reader_counts_when_the_turn_of_the_last_one_lapses, 0, 2);
	tcase_add_loop_test(c, keep_of_one_reader_counts_when_the_last_one_loses_the_lock, 0, 3);
	tcase_add_loop_test(c, keep_counts_while_the_lease_is_being_adopted, 0, 2);
	tcase_add_test(c, a_break_of_a_lease_that_stands_alone_tells_for_how_long_the_name_is_kept);
	tcase_add_test(c, a_break_while_a_reader_that_has_gone_may_believe_ends_the_holds_of_other_daemons);
	tcase_add_test(c, a_break_that_ends_a_hold_here_says_so_whatever_the_stores_have);
	tcase_add_test(c, a_late_renewal_leaves_no_share_beside_the_one_that_is_left_behind);
	suite_add_tcase(s, c);
	return s;
}

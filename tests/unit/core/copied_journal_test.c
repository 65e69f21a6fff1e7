/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two daemons run on copies of one state directory. The later one takes over the locks of the other. Each may end what it knows of a lock. Neither may
 * release what the other has promised to its client.
 */
#include "tests/fixture/resumable.h"

#include <check.h>

static struct secret s1;

/* Session 1 holds a at daemon 0. Daemon 2 stands by for others. */
static void held_at_0(const char *grace)
{
	passes(2 * SEC);
	s1 = says_hello(1, grace);
	says(1, "LOCK a");
	hears(1, "OK name=a *");
}

/* Daemon 1 starts on a copy of the present journal of daemon 0. */
static void copy_runs(void)
{
	journal_is_compacted(0);
	runs_share_values();
	ck_assert_uint_eq(daemon_inherits(1, 0), 0);
	journal_is_compacted(0);
}

/* The copy is stopped before it has heard of any store. */
static void copy_stops_at_once(void)
{
	all_feel(MOOD_SILENT);
	copy_runs();
	cluster.daemon[1].stopped = true;
	all_feel(MOOD_WELL);
}

static void copy_goes_on(void)
{
	cluster.daemon[1].stopped = false;
	wakes(1);
}

static void held_while_store_1_is_away(void)
{
	cluster_begin(3);
	daemon_starts(2);
	session_opens(4, 2);
	passes(2 * SEC);
	falls(1);
	held_at_0("grace=30s");
}

FIXTURE(.teardown = cluster_close)

/*
 * Store 2 has the key and is late for the copy. Daemon 0 finds the value of the copy at store 0, and store 1 never gave a vote: daemon 0 has lost the lease.
 * The client is away. Until the copy is heard at store 2, only the key there keeps others out. [0]: the client returns to the copy. [1]: the copy ends, and
 * nobody returns.
 */
LOOP_TEST(a_renewal_that_meets_the_value_of_a_copy_frees_nothing_that_a_client_may_believe_in, 2)
{
	held_while_store_1_is_away();
	goes(1, GONE_RESET);
	comes(1);
	feels(2, MOOD_SILENT);
	serves_daemon(0, 2, waiting_at(2));
	copy_runs();
	for (unsigned step = 0; step < 40; step++) {
		passes(100 * MSEC);
		serves_daemon(0, 2, waiting_at(2));
	}
	ck_assert_int_eq(figure(0, METRIC_LOSSES), 1);
	if (_i)
		daemon_ends(1);
	says(4, "LOCK a wait=1m");
	feels(2, MOOD_WELL);
	passes(5 * SEC);
	hears_nothing(4);
	if (_i) {
		session_opens(2, 0);
		is_resumed_with_nothing(2, &s1);
		hears(2, "! LOST name=a fence=* reason=evicted");
		passes(6 * SEC);
		hears(4, "OK name=a *");
		return;
	}
	session_opens(3, 1);
	resumes(3, &s1);
	hears(3, ROW_A);
	hears(3, "OK session=* n=1");
}

/* The copy gives up by its own clock: [0] the adoption, [1] the session. Daemon 0 has renewed the lease of the same value meanwhile. */
LOOP_TEST(a_copy_that_wakes_up_when_its_locks_are_long_over_frees_none_of_them, 2)
{
	cluster_begin(3);
	held_at_0(_i ? "grace=1s" : "grace=30s");
	copy_stops_at_once();
	passes(15 * SEC);
	copy_goes_on();
	passes(15 * SEC);
	for (unsigned i = 0; i < 3; i++)
		ck_assert(key_is_there(i, "a"));
	says(1, "CHECK a");
	hears(1, "OK name=a *");
}

/* The copy knows what the client was told before. Daemon 0 told it more, until the copy took over the lock. */
TEST(a_copy_that_nobody_returns_to_keeps_what_daemon_0_told_later)
{
	cluster_begin(3);
	daemon_starts(2);
	session_opens(4, 2);
	held_at_0("grace=1s");
	copy_stops_at_once();
	passes(7 * SEC);
	says(1, "CHECK a");
	ck_assert_int_gt(number_in(hears(1, "OK name=a *"), "valid_ms"), 9000);
	copy_goes_on();
	ck_assert_int_eq(figure(1, METRIC_ADOPTIONS), 1);
	daemon_ends(0);
	says(4, "LOCK a wait=1m");
	passes(9 * SEC);
	hears_nothing(4);
	passes(2 * SEC);
	hears(4, "OK name=a *");
}

/* The copy replaced the value at one store, and no other answered in time. Shortly before, daemon 0 told its client a validity that counts that vote. */
TEST(a_copy_that_cannot_adopt_leaves_what_it_has_put_in_place)
{
	held_while_store_1_is_away();
	copy_stops_at_once();
	passes(10200 * MSEC);
	says(1, "CHECK a");
	ck_assert_int_gt(number_in(hears(1, "OK name=a *"), "valid_ms"), 9000);
	daemon_ends(0);
	comes(1);
	feels(2, MOOD_SILENT);
	copy_goes_on();
	says(4, "LOCK a wait=1m");
	passes(9 * SEC);
	ck_assert_int_eq(figure(1, METRIC_ADOPTIONS_FAILED), 1);
	hears_nothing(4);
	passes(3 * SEC);
	hears(4, "OK name=a *");
}

/* The calls of the copy were carried out late, after daemon 0 had renewed the lease. The copy's own lease ends sooner. */
TEST(a_copy_that_loses_what_it_adopted_late_keeps_what_daemon_0_told_before)
{
	cluster_begin(3);
	daemon_starts(2);
	session_opens(4, 2);
	held_at_0("grace=30s");
	all_feel(MOOD_SILENT);
	copy_runs();
	for (unsigned i = 0; i < 3; i++)
		serves_daemon(1, i, 1);
	for (unsigned step = 0; step < 200; step++) {
		passes(20 * MSEC);
		for (unsigned i = 0; i < 3; i++)
			serves_daemon(0, i, waiting_at(i));
	}
	says(1, "CHECK a");
	ck_assert_int_gt(number_in(hears(1, "OK name=a *"), "valid_ms"), 9000);
	for (unsigned i = 0; i < 3; i++)
		serves_daemon(1, i, 1);
	ck_assert_int_eq(figure(1, METRIC_ADOPTIONS), 1);
	daemon_ends(0);
	passes(6500 * MSEC);
	ck_assert_int_eq(figure(1, METRIC_LOSSES), 1);
	all_feel(MOOD_WELL);
	says(4, "LOCK a wait=1m");
	passes(2 * SEC);
	hears_nothing(4);
	passes(3 * SEC);
	hears(4, "OK name=a *");
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/core/adopt.c, remember.c: runs of the daemon that end one after the other while the stores are asked. Whatever the stores carried out, the next
 * run knows all values that may stand there.
 */
#include "tests/fixture/resumable.h"

#include <check.h>

static struct secret s1;
static int64_t fence;
static const unsigned sizes[] = {1, 3, 5};

/* The lock is held, and its daemon has crashed. */
static void held_and_left(unsigned nodes, const char *fields)
{
	cluster_begin(nodes);
	passes(2 * SEC);
	s1 = says_hello(1, "grace=30s");
	says(1, "LOCK a %s", fields);
	fence = number_in(hears(1, "OK name=a *"), "fence");
	daemon_ends(0);
}

/* A run that has asked the stores and hears no answer. */
static void asks_in_vain(void)
{
	passes(MSEC);
	all_feel(MOOD_SILENT);
	ck_assert_uint_eq(daemon_inherits(0, 0), 0);
	for (unsigned i = 0; i < cluster.conf.nodes; i++)
		serves(i, 1); /* the probe */
	passes(0);
	for (unsigned i = 0; i < cluster.conf.nodes; i++)
		ck_assert_uint_eq(waiting_at(i), 1);
}

/* … and ends. The stores whose bits are set have carried out its calls. */
static void ends_within_a_round_trip(unsigned done)
{
	asks_in_vain();
	for (unsigned i = 0; i < cluster.conf.nodes; i++) {
		if (done >> i & 1)
			feels(i, MOOD_TARDY);
		feels(i, MOOD_SILENT);
	}
	daemon_ends(0);
	all_feel(MOOD_WELL);
}

static void comes_back(void)
{
	passes(MSEC);
	ck_assert_uint_eq(daemon_inherits(0, 0), 0);
}

static void comes_to_its_session(void)
{
	resumes(2, &s1);
	ck_assert_int_eq(number_in(hears(2, "\\* name=a fence=* valid_ms=* count=1"), "fence"), fence);
	hears(2, "OK session=* n=1");
}

static void is_resumed(void)
{
	ck_assert_int_eq(figure(0, METRIC_ADOPTIONS), 1);
	comes_to_its_session();
}

static void is_unlocked_everywhere(void)
{
	says(2, "UNLOCK a");
	hears(2, "OK name=a count=0");
	passes(SEC);
	for (unsigned i = 0; i < cluster.conf.nodes; i++)
		ck_assert(!key_is_there(i, "a"));
}

static void is_lost(void)
{
	ck_assert_int_eq(figure(0, METRIC_ADOPTIONS_FAILED), 1);
	is_resumed_with_nothing(2, &s1);
	hears(2, "! LOST name=a fence=* reason=evicted");
	for (unsigned i = 0; i < cluster.conf.nodes; i++)
		ck_assert(!key_is_there(i, "a"));
}

FIXTURE(.teardown = cluster_close)

LOOP_TEST(a_run_that_ends_within_the_round_trip_of_an_adoption_costs_nothing, 96)
{
	unsigned nodes = sizes[_i / 32];

	held_and_left(nodes, "");
	ends_within_a_round_trip((unsigned)_i % 32);
	comes_back();
	is_resumed();
	passes(30 * SEC);
	says(2, "CHECK a");
	ck_assert_int_eq(number_in(hears(2, "OK name=a *"), "fence"), fence);
	is_unlocked_everywhere();
}

LOOP_TEST(two_runs_that_end_within_a_round_trip_cost_nothing_whichever_stores_carried_out_their_calls, 64)
{
	held_and_left(3, "");
	ends_within_a_round_trip((unsigned)_i % 8);
	ends_within_a_round_trip((unsigned)_i / 8);
	comes_back();
	is_resumed();
	is_unlocked_everywhere();
}

LOOP_TEST(as_many_runs_that_end_within_a_round_trip_as_a_record_remembers_cost_nothing, 5)
{
	static const unsigned done[][JOURNAL_PRIORS] = {{0, 0, 0}, {7, 7, 7}, {1, 2, 4}, {0, 3, 0}, {6, 1, 2}};

	held_and_left(3, "");
	for (unsigned k = 0; k < JOURNAL_PRIORS; k++)
		ends_within_a_round_trip(done[_i][k]);
	comes_back();
	is_resumed();
	is_unlocked_everywhere();
}

/* With more runs the oldest value is forgotten. The lock is kept where the stores have carried out the calls, else it is lost, and the client hears so. */
LOOP_TEST(one_more_run_than_a_record_remembers_loses_the_lock_if_the_stores_did_nothing, 2)
{
	held_and_left(3, "");
	for (unsigned k = 0; k <= JOURNAL_PRIORS; k++)
		ends_within_a_round_trip(_i == 0 ? 0 : 7);
	comes_back();
	if (_i > 0) {
		is_resumed();
		is_unlocked_everywhere();
		return;
	}
	ck_assert_int_eq(figure(0, METRIC_ADOPTIONS_FAILED), 1);
	is_resumed_with_nothing(2, &s1);
	hears(2, "! LOST name=a fence=* reason=evicted");
}

/*
 * A store that was away while more runs ended than a record has room for may have the value that was forgotten. So its denial of the other values proves
 * nothing, although it makes a quorum with stores that never had the key. The client may still believe.
 */
TEST(a_lock_that_is_denied_where_a_value_was_forgotten_may_still_be_valid)
{
	cluster_begin(3);
	passes(2 * SEC);
	s1 = says_hello(1, "grace=30s");
	falls(1);
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	daemon_ends(0);
	comes(1);
	falls(2);
	for (unsigned k = 0; k <= JOURNAL_PRIORS; k++) {
		comes_back();
		daemon_ends(0);
	}
	comes(2);
	comes_back();
	is_resumed_with_nothing(2, &s1);
	hears(2, "! LOST name=a fence=* reason=evicted");
	says(3, "LOCK a wait=1m"); /* the cluster sees to it: see cluster_promises.c */
	passes(9 * SEC);
	hears_nothing(3);
	passes(2 * SEC);
	hears(3, "OK name=a *");
}

TEST(runs_that_asked_nobody_leave_no_values)
{
	held_and_left(3, "");
	for (unsigned i = 0; i < 3; i++)
		falls(i);
	for (unsigned k = 0; k < 10; k++) {
		comes_back();
		if (k % 2)
			journal_is_compacted(0);
		daemon_ends(0);
	}
	for (unsigned i = 0; i < 3; i++)
		comes(i);
	comes_back();
	is_resumed();
}

LOOP_TEST(a_value_is_recorded_before_it_is_sent_and_in_a_snapshot, 2)
{
	held_and_left(3, "");
	asks_in_vain();
	if (_i > 0)
		journal_is_compacted(0);
	ck_assert(journal_ends_with(0, JOURNAL_ADOPTING, "a"));
	all_feel(MOOD_TARDY);
	all_feel(MOOD_SILENT);
	daemon_ends(0);
	all_feel(MOOD_WELL);
	comes_back();
	ck_assert(journal_ends_with(0, JOURNAL_ADOPTING, "a")); /* once for each adoption */
	is_resumed();
	journal_is_compacted(0);
	ck_assert(journal_ends_with(0, JOURNAL_HELD, "a")); /* all stores have the one value */
}

TEST(terms_of_a_lease_without_renewal_survive_as_well)
{
	held_and_left(3, "renew=no ttl=8s");
	passes(2 * SEC);
	ends_within_a_round_trip(5);
	passes(SEC);
	ends_within_a_round_trip(2);
	comes_back();
	is_resumed();
	passes(5500 * MSEC);
	hears(2, "! LOST name=a fence=* reason=expired");
}

/* A store that was away during later runs has any of the values. When it is back, the daemon takes it over or releases it. */
LOOP_TEST(a_store_that_comes_later_has_any_of_the_values, 8)
{
	held_and_left(3, "");
	ends_within_a_round_trip(_i & 1 ? 4 : 0);
	ends_within_a_round_trip(_i & 2 ? 4 : 0);
	falls(2);
	comes_back();
	is_resumed();
	ck_assert(key_is_there(2, "a"));
	if (_i & 4) {
		says(2, "UNLOCK a");
		hears(2, "OK name=a count=0");
		comes(2);
		passes(SEC);
		ck_assert(!key_is_there(2, "a"));
		return;
	}
	comes(2);
	passes(20 * SEC);
	ck_assert(key_is_there(2, "a"));
	is_unlocked_everywhere();
}

LOOP_TEST(an_adoption_that_fails_releases_all_the_values, 4)
{
	held_and_left(3, "");
	ends_within_a_round_trip(_i & 1);
	ends_within_a_round_trip(_i >> 1 & 1);
	key_is_overwritten(1, "a", "nobody", MSEC);
	key_is_overwritten(2, "a", "nobody", MSEC);
	passes(5 * MSEC);
	comes_back();
	passes(100 * MSEC);
	is_lost();
}

/* The previous run still exists. It stands still, asks again when it wakes up, and finds a value that is not its own. */
LOOP_TEST(a_run_that_stood_still_within_its_round_trip_has_lost_the_lock, 8)
{
	held_and_left(3, "");
	asks_in_vain();
	cluster.daemon[0].stopped = true;
	for (unsigned i = 0; i < 3; i++)
		feels(i, _i >> i & 1 ? MOOD_TARDY : MOOD_SILENT);
	passes(MSEC);
	ck_assert_uint_eq(daemon_inherits(1, 0), 0);
	for (unsigned i = 0; i < 3; i++)
		serves_daemon(1, i, 1);
	passes(0);
	for (unsigned i = 0; i < 3; i++)
		serves_daemon(1, i, 1);
	cluster.daemon[0].stopped = false;
	all_feel(MOOD_WELL);
	wakes(0);
	ck_assert_int_eq(figure(1, METRIC_ADOPTIONS), 1);
	session_opens(2, 1);
	comes_to_its_session();
	passes(20 * SEC);
	ck_assert_int_eq(figure(0, METRIC_LOCKS_HELD), 0); /* at its first renewal at the latest */
	says(2, "CHECK a");
	ck_assert_int_eq(number_in(hears(2, "OK name=a *"), "fence"), fence);
}

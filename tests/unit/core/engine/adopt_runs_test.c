/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/adopt.c, restore.c: runs of the daemon that end one after the other while the stores are asked, and what an earlier version left. */
#include "tests/fixture/resumable.h"

#include <check.h>
#include <stdlib.h>

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

TEST(any_number_of_runs_that_asked_nobody_costs_nothing)
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

/* When the store is back, the daemon takes it over or releases it. */
LOOP_TEST(a_store_that_was_away_during_later_runs_has_the_value, 8)
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

LOOP_TEST(an_adoption_that_fails_releases_the_value, 4)
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

TEST(a_third_run_adopts_from_the_second)
{
	fence = held_with_grace(3, "grace=30s", "", &s1);
	daemon_returns(0);
	daemon_returns(0);
	passes(15 * SEC);
	daemon_returns(0);
	is_resumed_as(2, &s1, fence);
}

/*
 * A call that sets the key runs late, when the other votes are over and somebody else has had the lock. To the next run this key must not look like one that
 * stood there all the time. Of a, b, c only a renews the lock; c gets the late call, an ACQUIRE or a renewal that puts the key back.
 */
LOOP_TEST(a_key_that_is_set_when_the_lock_may_be_over_is_no_proof_that_it_was_held, 2)
{
	enum call_kind kind = _i ? CALL_ACQUIRE : CALL_EXTEND;
	struct answer answer;
	struct call late;

	cluster_open(3);
	cluster.conf.timeout_us = _i ? 2 * SEC : 500 * MSEC;
	daemon_starts(0);
	daemon_starts(1);
	passes(2 * SEC);
	session_opens(5, 1);
	s1 = says_hello(1, "grace=30s");
	if (_i)
		feels(2, MOOD_SILENT);
	says(1, "LOCK a ttl=1s");
	fence = number_in(hears(1, "OK name=a *"), "fence");
	refuses(1, "BUSY");
	passes(400 * MSEC);
	memory_remove(cluster.node[2].memory, SPAN("a"));
	feels(2, MOOD_SILENT);
	passes(280 * MSEC);
	late = late_call(2, kind);
	daemon_ends(0);
	all_feel(MOOD_WELL);
	passes(330 * MSEC);
	says(5, "LOCK a ttl=1s");
	ck_assert_int_gt(number_in(hears(5, "OK name=a *"), "fence"), fence);
	passes(40 * MSEC);
	says(5, "UNLOCK a");
	hears(5, "OK *");
	passes(40 * MSEC);
	memory_call(cluster.node[2].memory, &late, cluster.now, &answer);
	ck_assert_int_eq(answer.code, _i ? 'L' : 'M');
	ck_assert_uint_eq(daemon_inherits(0, 0), 0);
	passes(20 * MSEC);
	resumes(2, &s1);
	hears(2, "OK session=* n=0*");
	hears(2, "! LOST *");
}

/* --- what an earlier version left --- */

static char stands[VALUE_MAX], stood[VALUE_MAX];

/* It gave the lease another value when it adopted it. */
static void was_adopted_before(struct journal_record *r)
{
	r->kind = JOURNAL_ADOPTING;
	r->value = span_of(stands);
	r->prior = span_of(stood);
	r->prior_until_us = INT64_MAX;
}

/* … and named no daemon. The stores whose bits are set have the later of the two values. */
static void left_by_an_earlier_version(unsigned later)
{
	unsigned last;

	held_and_left(3, "");
	last = journal_length(0) - 1;
	snprintf(stood, sizeof(stood), "%s", cluster.node[0].last[CALL_ACQUIRE].value);
	snprintf(stands, sizeof(stands), "fedcba9876543210.old:5:%s", strrchr(stood, ':') + 1);
	journal_changes(0, last, was_adopted_before);
	journal_forgets(0, 0);
	for (unsigned i = 0; i < 3; i++)
		if (later >> i & 1)
			key_is_overwritten(i, "a", stands, 9 * SEC);
}

LOOP_TEST(a_lock_that_an_earlier_version_has_adopted_is_held_by_the_value_that_it_has_now, 2)
{
	left_by_an_earlier_version(_i ? 7 : 3);
	comes_back();
	ck_assert_str_eq(cluster.node[0].last[CALL_EXTEND].value, stands);
	is_resumed();
	passes(20 * SEC);
	daemon_ends(0);
	comes_back();
	passes(20 * MSEC);
	resumes(3, &s1);
	ck_assert_int_eq(number_in(hears(3, ROW_A), "fence"), fence);
	hears(3, "OK session=* n=1");
}

/* The earlier version was killed before a quorum had the later value. Whoever held it may rely on it until its end, and the keys keep others out. */
TEST(a_lock_that_an_earlier_version_has_not_adopted_yet_is_lost_and_stays_closed)
{
	left_by_an_earlier_version(1);
	comes_back();
	is_resumed_with_nothing(2, &s1);
	hears(2, "! LOST name=a fence=* reason=evicted");
	says(3, "LOCK a wait=1m"); /* the cluster sees to it: see cluster_promises.c */
	passes(8 * SEC);
	hears_nothing(3);
	passes(4 * SEC);
	hears(3, "OK name=a *");
}

static void is_of_another_daemon(struct journal_record *r)
{
	r->value = SPAN("fedcba9876543210.old:5:00112233445566778899aabbccddeeff");
}

TEST(a_value_of_another_daemon_than_that_of_the_journal_is_lost)
{
	held_and_left(3, "");
	journal_changes(0, journal_length(0) - 1, is_of_another_daemon);
	comes_back();
	passes(20 * MSEC);
	ck_assert_int_eq(figure(0, METRIC_ADOPTIONS_FAILED), 1);
	is_resumed_with_nothing(2, &s1);
	hears(2, "! LOST name=a fence=* reason=quorum");
}

/* What a run makes has other numbers than what all runs before it made. */
TEST(the_next_run_has_the_id_of_the_previous_one_and_other_numbers)
{
	char id[VALUE_MAX];

	held_and_left(3, "");
	snprintf(id, sizeof(id), "%s", cluster.node[0].last[CALL_ACQUIRE].value);
	*(strchr(id, ':') + 1) = '\0';
	for (unsigned k = 1; k < 4; k++) {
		comes_back();
		if (k == 2)
			journal_is_compacted(0);
		session_opens(4 + k, 0);
		says(4 + k, "LOCK b%u", k);
		hears(4 + k, "OK *");
		ck_assert(span_starts(span_of(cluster.node[0].last[CALL_ACQUIRE].value), span_of(id)));
		ck_assert_uint_eq(strtoull(cluster.node[0].last[CALL_ACQUIRE].value + strlen(id), NULL, 10) >> 40, k);
		daemon_ends(0);
	}
}

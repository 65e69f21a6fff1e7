/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/adopt.c: a daemon that restarts takes over what its previous run granted (S8, S11). */
#include "tests/fixture/resumable.h"

#include <check.h>

static struct secret s1;
static int64_t fence;
static const unsigned sizes[] = {1, 3, 5};

static void held_by_1(unsigned nodes, const char *fields)
{
	fence = held_with_grace(nodes, "grace=30s", fields, &s1);
}

FIXTURE(.teardown = cluster_close)

LOOP_TEST(a_held_lock_goes_on_with_its_fence_and_its_value, 3)
{
	char value[VALUE_MAX];

	held_by_1(sizes[_i], "");
	strcpy(value, cluster.node[0].last[CALL_ACQUIRE].value);
	daemon_returns(0);
	ck_assert_str_eq(cluster.node[0].last[CALL_EXTEND].value, value);
	ck_assert_str_eq(cluster.node[0].last[CALL_EXTEND].new_value, value);
	ck_assert(!cluster.node[0].last[CALL_EXTEND].call.create);
	ck_assert_int_eq(cluster.node[0].last[CALL_EXTEND].call.fence, fence);
	is_resumed_as(2, &s1, fence);
	ck_assert_int_eq(figure(0, METRIC_ADOPTIONS), 1);
	passes(60 * SEC);
	says(2, "CHECK a");
	ck_assert_int_eq(number_in(hears(2, "OK name=a * count=1"), "fence"), fence);
	says(2, "UNLOCK a");
	hears(2, "OK name=a count=0");
	passes(SEC);
	for (unsigned i = 0; i < sizes[_i]; i++)
		ck_assert(!key_is_there(i, "a"));
}

/* A shorter lease was asked for before the crash. No store lets the key end sooner for it, so only the stores know its end. */
TEST(a_key_that_lasts_longer_than_its_lease_is_released_however_late_that_comes)
{
	held_by_1(1, "ttl=9s");
	says(1, "EXTEND a ttl=200ms");
	hears(1, "OK name=a *");
	daemon_returns(0);
	is_resumed_as(2, &s1, fence);
	cluster.node[0].refusal = "READONLY";
	feels(0, MOOD_REFUSING);
	says(2, "UNLOCK a");
	hears(2, "OK name=a count=0");
	passes(5 * SEC);
	ck_assert(key_is_there(0, "a"));
	feels(0, MOOD_WELL);
	passes(2 * SEC);
	ck_assert(!key_is_there(0, "a"));
}

TEST(counts_owners_and_terms_are_as_they_were)
{
	held_by_1(3, "");
	says(1, "LOCK a");
	says(1, "LOCK b owner=t1 note=why ttl=20s");
	ignores(1);
	passes(SEC);
	daemon_returns(0);
	resumes(2, &s1);
	hears(2, "\\* name=a fence=* valid_ms=* count=2");
	hears(2, "\\* name=b fence=* valid_ms=19* count=1 owner=t1");
	hears(2, "OK session=* n=2");
	says(2, "SHOW b");
	hears(2, "\\* role=holder * held_ms=1* owner=t1 note=why");
	hears(2, "OK *");
	says(2, "UNLOCK a");
	hears(2, "OK name=a count=1");
	daemon_returns(0);
	resumes(3, &s1);
	hears(3, "\\* name=b *");
	hears(3, "\\* name=a fence=* valid_ms=* count=1");
	hears(3, "OK session=* n=2");
}

TEST(an_adopted_lease_is_handed_to_nobody)
{
	held_by_1(3, "");
	says(1, "@w LOCK a owner=t2 wait=1m"); /* a range of tokens for the next grant */
	daemon_returns(0);
	is_resumed_as(2, &s1, fence);
	says(3, "LOCK a wait=1m");
	says(4, "LOCK a wait=1m");
	says(2, "UNLOCK a");
	hears(2, "OK *");
	ck_assert_int_gt(number_in(hears(3, GRANT), "fence"), fence);
	ck_assert_int_eq(figure(0, METRIC_HANDOFFS), 0);
}

TEST(a_session_that_is_never_resumed_has_its_locks_released_after_the_grace)
{
	held_by_1(3, "");
	daemon_returns(0);
	says(2, "LOCK a wait=1m");
	passes(29900 * MSEC);
	hears_nothing(2);
	passes(200 * MSEC);
	ck_assert_int_gt(number_in(hears(2, GRANT), "fence"), fence);
}

TEST(a_node_that_does_not_know_the_value_does_not_matter_to_the_others)
{
	held_by_1(3, "");
	key_is_overwritten(2, "a", "somebody", 100 * SEC);
	daemon_returns(0);
	is_resumed_as(2, &s1, fence);
}

TEST(fewer_than_a_quorum_is_a_loss_and_the_value_is_released)
{
	char value[VALUE_MAX];

	held_by_1(3, "");
	strcpy(value, cluster.node[0].last[CALL_ACQUIRE].value);
	passes(12 * SEC); /* nobody renews: the cluster's clients rely on nothing older */
	daemon_ends(0);
	passes(11 * SEC);
	/* One store alone has it still, as if its clock went slower. */
	key_is_overwritten(0, "a", value, 100 * SEC);
	ck_assert_uint_eq(daemon_inherits(0, 0), 0);
	ck_assert(!key_is_there(0, "a"));
	is_resumed_with_nothing(2, &s1);
	hears(2, "! LOST name=a fence=* reason=evicted");
	says(2, "CHECK a");
	hears(2, "ERR LOST *");
	says(3, "LOCK a");
	ck_assert_int_gt(number_in(hears(3, GRANT), "fence"), fence);
}

/* The daemon is back, its stores are joined, and its calls for the adoption wait there. */
static void adoption_waits(void)
{
	held_by_1(3, "");
	daemon_ends(0);
	all_feel(MOOD_SILENT);
	ck_assert_uint_eq(daemon_inherits(0, 0), 0);
	for (unsigned i = 0; i < 3; i++)
		serves(i, 1);
	passes(0);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(waiting_at(i), 1);
}

TEST(an_adoption_whose_outcome_is_unknown_is_asked_again)
{
	adoption_waits();
	feels(0, MOOD_LOSSY); /* carried out */
	feels(0, MOOD_SILENT);
	loses(1, 1);
	loses(2, 1);
	ck_assert_int_eq(figure(0, METRIC_ADOPTIONS) + figure(0, METRIC_ADOPTIONS_FAILED), 0);
	passes(490 * MSEC);
	ck_assert_uint_eq(waiting_at(0), 0);
	passes(20 * MSEC);
	all_feel(MOOD_WELL);
	ck_assert_int_eq(figure(0, METRIC_ADOPTIONS), 1);
	is_resumed_as(2, &s1, fence);
}

TEST(late_answers_count_when_they_come)
{
	adoption_waits();
	serves(0, 1);
	passes(60 * MSEC);
	ck_assert_int_eq(figure(0, METRIC_ADOPTIONS), 0);
	serves(1, 1);
	ck_assert_int_eq(figure(0, METRIC_ADOPTIONS), 1);
	all_feel(MOOD_WELL);
	is_resumed_as(2, &s1, fence);
	passes(20 * SEC);
	says(2, "CHECK a");
	hears(2, "OK name=a *");
}

/* What stands in the way may be the value that an earlier version has replaced, so nothing is released as long as the client may rely on its lock. */
TEST(an_adoption_by_one_less_than_a_quorum_fails_and_ends_with_its_lease)
{
	held_by_1(3, "");
	key_is_overwritten(1, "a", "somebody", 5 * SEC);
	key_is_overwritten(2, "a", "somebody", 5 * SEC);
	daemon_returns(0);
	ck_assert_int_eq(figure(0, METRIC_ADOPTIONS_FAILED), 1);
	ck_assert(key_is_there(1, "a") && key_is_there(2, "a"));
	is_resumed_with_nothing(2, &s1);
	hears(2, "! LOST name=a fence=* reason=evicted");
	ck_assert_int_gt(key_ttl_us(0, "a"), 9800 * MSEC);
	passes(10200 * MSEC);
	ck_assert(!key_is_there(0, "a"));
}

/* A store that was away during the adoption has the value. The daemon renews it, or releases it. */
LOOP_TEST(a_store_that_comes_later_is_taken_over_or_released, 2)
{
	held_by_1(3, "");
	daemon_ends(0);
	falls(2);
	ck_assert_uint_eq(daemon_inherits(0, 0), 0);
	is_resumed_as(2, &s1, fence);
	passes(SEC);
	comes(2);
	if (_i == 0) {
		passes(3 * SEC);
		ck_assert_str_eq(cluster.node[2].last[CALL_EXTEND].value, cluster.node[0].last[CALL_EXTEND].value);
		passes(10 * SEC);
		ck_assert(key_is_there(2, "a"));
	}
	says(2, "UNLOCK a");
	hears(2, "OK *");
	passes(SEC);
	ck_assert(!key_is_there(2, "a"));
}

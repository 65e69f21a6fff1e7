/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/member/members.c: the arithmetic of votes, and how long a quarantine is. */
#include "daemon/core/member/members.h"

#include <check.h>

static struct votes votes_of(unsigned n, const int64_t *until)
{
	struct votes v;

	votes_clear(v.until, NODES_MAX);
	for (unsigned i = 0; i < n; i++)
		v.until[i].us = until[i];
	return v;
}

/* The rule itself: how many votes are greater than now. */
static unsigned votes_at(const struct votes *v, unsigned nodes, struct instant now)
{
	unsigned n = 0;

	for (unsigned i = 0; i < nodes; i++)
		n += instant_before(now, v->until[i]);
	return n;
}

TEST(a_quorum_is_more_than_half)
{
	static const unsigned quorum[] = {0, 1, 2, 2, 3, 3, 4, 4, 5, 5};

	for (unsigned n = 1; n <= NODES_MAX; n++)
		ck_assert_uint_eq(quorum_of(n), quorum[n]);
}

TEST(a_vote_lasts_from_the_send_for_the_lease_less_drift_and_slack)
{
	/* 10 s - 1 % - 2 ms - 1 ms */
	ck_assert_int_eq(vote_until((struct instant){5 * SEC}, 10 * SEC).us, 5 * SEC + 9897 * MSEC);
	ck_assert_int_eq(vote_until((struct instant){0}, 100 * MSEC).us, 96 * MSEC);
	ck_assert_int_eq(vote_until((struct instant){0}, 1234567).us, 1234567 - 12345 - 3000);
}

TEST(a_lease_of_years_does_not_overflow)
{
	int64_t years = INT64_C(3650) * 24 * 3600 * SEC;

	ck_assert_int_eq(vote_until((struct instant){0}, years).us, years - years / 100 - 3 * MSEC);
	ck_assert_int_gt(quarantine_us(years, years), 2 * years);
}

TEST(the_deadline_is_the_quorumth_largest_vote)
{
	static const int64_t three[] = {30, 10, 20}, five[] = {5, 50, 10, 40, 30};
	struct votes v = votes_of(3, three);

	ck_assert_int_eq(votes_deadline(v.until, 1).us, 30);
	ck_assert_int_eq(votes_deadline(v.until, 3).us, 20);
	v = votes_of(5, five);
	ck_assert_int_eq(votes_deadline(v.until, 5).us, 30);
}

TEST(without_a_quorum_of_votes_the_deadline_has_always_passed)
{
	static const int64_t one[] = {100};
	struct votes v = votes_of(1, one);

	ck_assert_int_eq(votes_deadline(v.until, 3).us, INSTANT_PAST.us);
	votes_clear(v.until, NODES_MAX);
	ck_assert_int_eq(votes_deadline(v.until, 1).us, INSTANT_PAST.us);
}

TEST(an_even_number_of_stores_needs_one_more_than_half)
{
	static const int64_t two[] = {7, 9}, four[] = {1, 2, 3, 4};
	struct votes v = votes_of(2, two);

	ck_assert_int_eq(votes_deadline(v.until, 2).us, 7);
	v = votes_of(4, four);
	ck_assert_int_eq(votes_deadline(v.until, 4).us, 2);
}

TEST(a_vote_that_ends_now_has_ended)
{
	static const int64_t three[] = {10, 11, 12};
	struct votes v = votes_of(3, three);

	ck_assert_uint_eq(votes_at(&v, 3, (struct instant){9}), 3);
	ck_assert_uint_eq(votes_at(&v, 3, (struct instant){10}), 2);
	ck_assert_uint_eq(votes_at(&v, 3, (struct instant){12}), 0);
	ck_assert_uint_eq(votes_at(&v, 1, (struct instant){9}), 1);
}

TEST(a_lease_holds_exactly_while_a_quorum_of_votes_does)
{
	static const int64_t five[] = {5, 50, 10, 40, 30};
	struct votes v = votes_of(5, five);

	for (int64_t x = 0; x < 60; x++)
		ck_assert_int_eq(votes_at(&v, 5, (struct instant){x}) >= 3, x < votes_deadline(v.until, 5).us);
}

TEST(a_quarantine_outlasts_every_lease_and_its_delay)
{
	/* (30 s + 10 s) * 1.02 + 3 ms */
	ck_assert_int_eq(quarantine_us(30 * SEC, 10 * SEC), 40800 * MSEC + 3 * MSEC);
	ck_assert_int_eq(quarantine_us(500 * MSEC, 0), 510 * MSEC + 3 * MSEC);
}

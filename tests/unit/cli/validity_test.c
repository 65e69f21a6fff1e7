/* SPDX-License-Identifier: BSD-2-Clause */
/* client/cli/run/lease.c: for how long redlock run may go on with its lock, at given moments. */
#include "client/cli/run/lease.h"

#include <check.h>

#define S INT64_C(1000000)

/* The answer to a CHECK at `asked`. */
static struct redlock_grant granted(int64_t asked, int64_t ttl_ms, int64_t valid_ms)
{
	return (struct redlock_grant){.ttl_ms = ttl_ms, .valid_ms = valid_ms, .until_us = asked + valid_ms * 1000};
}

TEST(the_command_ends_before_the_validity_does)
{
	struct redlock_grant grant = granted(100 * S, 10000, 10000);
	struct validity b = {.longest_us = 0};

	validity_set(&b, &grant);
	ck_assert_int_eq(b.term_at, 108 * S);
	ck_assert_int_eq(validity_kill_at(&b), 109 * S);
}

/* The daemon renews when two thirds are left. redlock asks CHECK a twentieth of the ttl later, and every third of the ttl at the latest. */
LOOP_TEST(the_next_CHECK_comes_behind_the_renewal, 4)
{
	static const int64_t valid_ms[] = {9000, 7500, 6000, 3000}, after_ms[] = {3000, 1950, 450, 450};
	struct redlock_grant grant = granted(100 * S, 9000, valid_ms[_i]);
	struct validity b = {.longest_us = 0};

	validity_set(&b, &grant);
	ck_assert_int_eq(b.check_at, 100 * S + after_ms[_i] * 1000);
}

/* An answer with a short validity leaves the margins as large as they were. */
TEST(margins_are_shares_of_the_longest_validity)
{
	struct redlock_grant first = granted(100 * S, 10000, 10000), second = granted(101 * S, 0, 5000);
	struct validity b = {.longest_us = 0};

	validity_set(&b, &first);
	validity_set(&b, &second);
	ck_assert_int_eq(b.grant.ttl_ms, 10000); /* the second does not tell */
	ck_assert_int_eq(b.term_at, 104 * S);
	ck_assert_int_eq(validity_kill_at(&b), 105 * S);
}

TEST(an_answer_gets_a_moment_and_never_beyond_the_SIGKILL)
{
	struct redlock_grant grant = granted(100 * S, 10000, 10000);
	struct validity b = {.longest_us = 0};

	validity_set(&b, &grant);
	validity_asked(&b, 103 * S);
	ck_assert_int_eq(b.term_at, 108 * S);
	validity_asked(&b, 107800000);
	ck_assert_int_eq(b.term_at, 108300000);
	validity_asked(&b, 108900000);
	ck_assert_int_eq(b.term_at, 109 * S);
	validity_unknown(&b, 104 * S);
	ck_assert_int_eq(b.check_at, 104500000);
}

/* It is stopped between the answer and its first look at the clock. */
TEST(a_process_that_stood_still_from_the_answer_on_asks_as_well)
{
	struct redlock_grant grant = granted(100 * S, 10000, 10000);
	struct validity b = {.longest_us = 0};
	char still[STILL_BYTES];

	validity_set(&b, &grant);
	validity_awake(&b, 150 * S);
	ck_assert_str_eq(validity_still(&b, still), "; this process was paused for 50s");
	ck_assert(validity_may_ask(&b, 150 * S));
	ck_assert_int_gt(b.term_at, 150 * S);
}

/* As in a paused container: the daemon may have kept the lock, and CHECK asks it. */
TEST(a_process_that_stood_still_asks_before_its_command_is_stopped)
{
	struct redlock_grant grant = granted(100 * S, 10000, 10000), fresh = granted(150 * S, 10000, 8000);
	struct validity b = {.longest_us = 0};
	char still[STILL_BYTES];

	validity_set(&b, &grant);
	validity_awake(&b, 100 * S);
	validity_sleeps(&b, 103 * S);
	validity_awake(&b, 150 * S);
	ck_assert_str_eq(validity_still(&b, still), "; this process was paused for 47s");
	ck_assert(validity_may_ask(&b, 150 * S));
	ck_assert_int_eq(b.term_at, 150 * S + S / 2);
	validity_set(&b, &grant); /* the answer to a CHECK of before */
	ck_assert_int_eq(b.term_at, 150 * S + S / 2);
	ck_assert(!validity_may_ask(&b, b.term_at));
	validity_set(&b, &fresh);
	ck_assert_int_eq(b.term_at, 156 * S);
	ck_assert_str_eq(validity_still(&b, still), "");
}

TEST(a_process_that_is_on_time_did_not_stand_still)
{
	struct redlock_grant grant = granted(100 * S, 10000, 10000);
	struct validity b = {.longest_us = 0};
	char still[STILL_BYTES];

	validity_set(&b, &grant);
	validity_awake(&b, 100 * S);
	validity_sleeps(&b, 103 * S);
	validity_awake(&b, 101 * S); /* something came */
	validity_sleeps(&b, 103 * S);
	validity_awake(&b, 103 * S + 90000);
	ck_assert_str_eq(validity_still(&b, still), "");
	ck_assert_int_eq(b.term_at, 108 * S);
	ck_assert(!validity_may_ask(&b, 109 * S));
}

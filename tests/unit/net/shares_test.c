/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/net/shares.c: who may have one more session. */
#include "daemon/net/shares.h"

#include <check.h>

#define OWN   ((uid_t)900)
#define ALICE ((uid_t)1000)
#define BOB   ((uid_t)1001)
#define CAROL ((uid_t)1002)

static struct shares s;
static unsigned live;

static void setup(void)
{
	live = 0;
	shares_init(&s, OWN);
}

static void teardown(void)
{
	shares_release(&s);
}

/* Takes sessions until one is refused. Returns how many were taken. */
static unsigned takes_all(uid_t uid, unsigned most, enum share refused_as)
{
	enum share share;
	unsigned n = 0;

	while ((share = shares_ask(&s, uid, live, most)) == SHARE_LEFT) {
		shares_take(&s, uid);
		live++, n++;
	}
	ck_assert_int_eq(share, refused_as);
	return n;
}

/* 0: Unix, 1: TCP. */
FIXTURE(.setup = setup, .teardown = teardown)

TEST(a_64th_of_the_sessions_is_kept_and_16_at_most)
{
	static const struct {
		unsigned most, kept;
	} row[] = {{0, 0}, {1, 0}, {2, 1}, {63, 1}, {64, 1}, {127, 1}, {128, 2}, {1000, 15}, {1024, 16}, {10000, 16}, {1000000, 16}};

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		ck_assert_uint_eq(shares_kept(row[i].most), row[i].kept);
}

TEST(what_is_kept_is_for_root_and_the_user_of_the_daemon)
{
	ck_assert_uint_eq(takes_all(ALICE, 100, SHARE_KEPT), 99);
	ck_assert_int_eq(shares_ask(&s, BOB, live, 100), SHARE_KEPT);
	ck_assert_int_eq(shares_ask(&s, SHARES_TCP, live, 100), SHARE_KEPT);
	ck_assert_int_eq(shares_ask(&s, OWN, live, 100), SHARE_LEFT);
	ck_assert_uint_eq(takes_all(0, 100, SHARE_FULL), 1);
	ck_assert_int_eq(shares_ask(&s, OWN, live, 100), SHARE_FULL);
}

LOOP_TEST(a_user_alone_may_have_all_others, 2)
{
	ck_assert_int_eq(shares_ask(&s, 0, live, 10000), SHARE_LEFT);
	ck_assert_int_eq(shares_ask(&s, OWN, live, 10000), SHARE_LEFT);
	ck_assert_uint_eq(takes_all(_i ? SHARES_TCP : ALICE, 10000, SHARE_KEPT), 9984);
}

LOOP_TEST(a_greedy_user_leaves_some_to_others, 2)
{
	ck_assert_int_eq(shares_ask(&s, BOB, live, 10000), SHARE_LEFT);
	ck_assert_uint_eq(takes_all(_i ? SHARES_TCP : ALICE, 10000, SHARE_USED_UP), 9361);
	ck_assert_uint_eq(takes_all(BOB, 10000, SHARE_USED_UP), 585);
	ck_assert_int_eq(shares_ask(&s, CAROL, live, 10000), SHARE_LEFT);
}

TEST(a_user_who_is_refused_may_have_more_when_others_leave)
{
	ck_assert_int_eq(shares_ask(&s, BOB, live, 10000), SHARE_LEFT);
	takes_all(ALICE, 10000, SHARE_USED_UP);
	for (unsigned i = 0; i < 100; i++, live--)
		shares_give(&s, ALICE);
	ck_assert_uint_eq(takes_all(BOB, 10000, SHARE_USED_UP), 678);
	ck_assert_int_eq(shares_ask(&s, ALICE, live, 10000), SHARE_USED_UP);
	for (; live > 9261; live--)
		shares_give(&s, BOB);
	ck_assert_uint_eq(takes_all(ALICE, 10000, SHARE_USED_UP), 100);
}

TEST(few_sessions_are_not_shared)
{
	ck_assert_int_eq(shares_ask(&s, BOB, live, 16), SHARE_LEFT);
	ck_assert_uint_eq(takes_all(ALICE, 16, SHARE_KEPT), 15);
}

TEST(a_limit_that_was_lowered_refuses)
{
	ck_assert_int_eq(shares_ask(&s, ALICE, 500, 100), SHARE_FULL);
	ck_assert_int_eq(shares_ask(&s, 0, 500, 100), SHARE_FULL);
	ck_assert_int_eq(shares_ask(&s, 0, 0, 0), SHARE_FULL);
}

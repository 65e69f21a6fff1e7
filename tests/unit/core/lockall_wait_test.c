/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/gather.c: LOCKALL waits without keeping names from others, insists from time to time, and is served. */
#include "tests/fixture/groups.h"

#include <check.h>
#include <fnmatch.h>

/* a and b are held in turn, so that one of them is taken whenever the other is free. */
static void holders_take_turns(unsigned turns, int64_t held_us)
{
	for (unsigned i = 0; i < turns; i++) {
		says(1, "@a LOCK a wait=1m");
		passes(held_us);
		says(1, "UNLOCK b");
		says(2, "@b LOCK b wait=1m");
		passes(held_us);
		says(1, "UNLOCK a");
		says(2, "UNLOCK b");
		says(1, "@b LOCK b wait=1m");
		passes(held_us);
	}
}

START_TEST(lockall_is_served_although_one_of_its_names_is_always_held)
{
	cluster_begin(1);
	takes(1, "b");
	says(3, "@w LOCKALL a b wait=1h");
	holders_take_turns(30, SEC);
	for (const char *line = next_line(3);; line = next_line(3)) {
		ck_assert_ptr_nonnull(line);
		if (!fnmatch("@w OK n=2", line, 0))
			break;
	}
	ignores(1);
	ignores(2);
}
END_TEST

START_TEST(lockall_that_insists_keeps_a_free_name_for_a_while_and_gives_it_back)
{
	int64_t kept_us = 0, begun_us;

	cluster_begin(1);
	takes(1, "a");
	takes(2, "b");
	says(3, "@w LOCKALL a b wait=1h");
	passes(2 * SEC);
	gives_back(1, "a");
	begun_us = cluster.now.us;
	says(4, "@a LOCK a wait=1m");
	while (!next_line(4)) {
		passes(10 * MSEC);
		kept_us = cluster.now.us - begun_us;
		ck_assert_int_lt(kept_us, SEC);
	}
	ck_assert_int_ge(kept_us, 200 * MSEC);
	ck_assert_int_le(kept_us, 300 * MSEC);
	gives_back(4, "a");
	gives_back(2, "b");
	passes(10 * MSEC);
	hears_all(3, "@w ", "ab");
}
END_TEST

static void cross_groups(unsigned first, unsigned second)
{
	unsigned done[8] = {0};

	for (unsigned i = 0; i < 200; i++) {
		for (unsigned k = first; k <= second; k += second - first) {
			const char *line;

			if (!unanswered(k))
				says(k, k == first ? "@w LOCKALL a b c wait=1h" : "@w LOCKALL c b a wait=1h");
			while ((line = next_line(k))) {
				if (fnmatch("@w OK n=3", line, 0))
					continue;
				done[k]++;
				says(k, "UNLOCK a");
				says(k, "UNLOCK b");
				says(k, "UNLOCK c");
			}
		}
		passes(20 * MSEC);
	}
	ck_assert_uint_ge(done[first], 20);
	ck_assert_uint_ge(done[second], 20);
	ignores(first);
	ignores(second);
}

START_TEST(lockalls_in_opposite_orders_do_not_block_each_other)
{
	cluster_begin(1);
	cross_groups(1, 2);
}
END_TEST

START_TEST(lockalls_of_two_daemons_in_opposite_orders_do_not_block_each_other)
{
	two_daemons(3);
	cross_groups(1, 2);
}
END_TEST

START_TEST(lockall_waits_until_all_names_are_free_at_once)
{
	cluster_begin(1);
	takes(1, "a");
	takes(2, "b");
	says(3, "@w LOCKALL a b c wait=1m");
	passes(10 * MSEC);
	ck_assert(!key_is_there(0, "c"));
	gives_back(1, "a");
	passes(10 * MSEC);
	ck_assert(!key_is_there(0, "a"));
	hears_nothing(3);
	gives_back(2, "b");
	passes(10 * MSEC);
	hears_all(3, "@w ", "abc");
}
END_TEST

START_TEST(lockall_that_waits_keeps_no_free_name_from_others)
{
	cluster_begin(1);
	takes(1, "a");
	says(3, "@w LOCKALL a b wait=1m");
	for (unsigned i = 0; i < 20; i++) {
		takes(2, "b");
		gives_back(2, "b");
		passes(SEC);
	}
	gives_back(1, "a");
	passes(10 * MSEC);
	hears_all(3, "@w ", "ab");
}
END_TEST

START_TEST(lockall_that_waits_in_vain_is_told_timeout)
{
	cluster_begin(1);
	takes(1, "b");
	says(2, "LOCKALL a b wait=3s");
	passes(3 * SEC);
	hears(2, "TIMEOUT name=b waited_ms=3000 holder=* held_ms=3000 waiters=0");
	ck_assert(!key_is_there(0, "a"));
	takes(2, "a");
	ignores(1);
}
END_TEST

START_TEST(a_name_that_is_broken_before_the_lockall_is_answered_is_asked_for_again)
{
	cluster_begin(1);
	session_opens_as_admin(9, 0);
	takes(1, "b");
	takes(2, "a");
	says(3, "@w LOCKALL a b wait=1m");
	passes(2 * SEC);
	gives_back(2, "a");
	passes(10 * MSEC);
	ck_assert(key_is_there(0, "a"));
	says(9, "BREAK a");
	hears(9, "OK name=a *");
	passes(10 * MSEC);
	hears_nothing(3);
	gives_back(1, "b");
	passes(15 * SEC);
	hears_all(3, "@w ", "ab");
}
END_TEST

Suite *lockall_wait_suite(void)
{
	Suite *s = suite_create("lockall_wait");
	TCase *t = tcase_create("lockall_wait");

	tcase_add_checked_fixture(t, NULL, cluster_close);
	tcase_add_test(t, lockall_is_served_although_one_of_its_names_is_always_held);
	tcase_add_test(t, lockall_that_insists_keeps_a_free_name_for_a_while_and_gives_it_back);
	tcase_add_test(t, lockalls_in_opposite_orders_do_not_block_each_other);
	tcase_add_test(t, lockalls_of_two_daemons_in_opposite_orders_do_not_block_each_other);
	tcase_add_test(t, lockall_waits_until_all_names_are_free_at_once);
	tcase_add_test(t, lockall_that_waits_keeps_no_free_name_from_others);
	tcase_add_test(t, lockall_that_waits_in_vain_is_told_timeout);
	tcase_add_test(t, a_name_that_is_broken_before_the_lockall_is_answered_is_asked_for_again);
	suite_add_tcase(s, t);
	return s;
}

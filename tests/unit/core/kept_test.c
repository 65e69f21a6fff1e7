/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/kept_names.c, owned.c: UNLOCK keep= leaves a name taken that nobody holds. */
#include "daemon/core/kept_names.h"
#include "tests/fixture/readers.h"

#include <check.h>

static void is_left_for(const char *keep)
{
	two_daemons(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	says(1, "UNLOCK a keep=%s", keep);
	hears(1, "OK name=a count=0");
}

static void is_busy(unsigned k)
{
	says(k, "LOCK a");
	hears(k, "BUSY *");
}

START_TEST(a_name_may_be_kept_for_longer_than_any_lease)
{
	is_left_for("10m");
	passes(595 * SEC);
	is_busy(2);
	is_busy(1);
	passes(10 * SEC);
	says(2, "LOCK a");
	hears(2, GRANT);
}
END_TEST

START_TEST(max_keep_bounds_it)
{
	two_daemons(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	says(1, "UNLOCK a keep=61m");
	hears(1, "ERR LIMIT keep may be at most 3600000ms (max_keep)");
	says(1, "UNLOCK a keep=60m");
	hears(1, "OK name=a count=0");
}
END_TEST

/* Nobody relies on a kept name, so no quarantine is longer for it. */
START_TEST(stores_that_forget_a_kept_name_vote_after_their_quarantine)
{
	is_left_for("10m");
	passes(SEC);
	is_flushed(0);
	is_flushed(1);
	passes(25 * SEC);
	says(2, "LOCK a");
	hears(2, "ERR QUORUM *");
	passes(10 * SEC);
	says(2, "LOCK a");
	hears(2, GRANT);
}
END_TEST

START_TEST(another_run_of_the_daemon_finds_it_kept)
{
	is_left_for("10m");
	passes(SEC);
	daemon_returns(0);
	passes(100 * SEC);
	session_opens(3, 0);
	is_busy(3);
}
END_TEST

START_TEST(kept_names_count_until_they_end)
{
	struct kept_names k = {0};
	struct instant now = {7 * 24 * 3600 * SEC};

	for (unsigned i = 0; i < 24; i++)
		kept_names_add(&k, now, (i + 1) * 3600 * SEC);
	for (unsigned i = 0; i < 24; i++) {
		ck_assert_uint_eq(kept_names_count(&k, now), 24 - i);
		now = instant_add(now, 3600 * SEC + (i == 0 ? KEPT_STEP_US : 0));
	}
	ck_assert_uint_eq(kept_names_count(&k, now), 0);
	kept_names_add(&k, now, 24 * 3600 * SEC);
	ck_assert_uint_eq(kept_names_count(&k, instant_add(now, 24 * 3600 * SEC)), 1);
	ck_assert_uint_eq(kept_names_count(&k, instant_add(now, 24 * 3600 * SEC + KEPT_STEP_US)), 0);
	kept_names_add(&k, instant_add(now, 300 * 24 * 3600 * SEC), SEC);
	ck_assert_uint_eq(kept_names_count(&k, instant_add(now, 900 * 24 * 3600 * SEC)), 0);
}
END_TEST

/* One name stands for many: its key is removed each time. */
START_TEST(a_daemon_keeps_so_many_names_and_no_more)
{
	cluster_begin(1);
	for (unsigned i = 0; i <= KEPT_MOST; i++) {
		says(1, "LOCK a");
		hears(1, "OK *");
		says(1, "UNLOCK a keep=31s");
		hears(1, i < KEPT_MOST ? "OK *" : "ERR LIMIT at most 65536 names may be kept for longer than max_lease: UNLOCK it without keep=");
		if (i < KEPT_MOST)
			memory_remove(cluster.node[0].memory, SPAN("a"));
	}
	says(1, "UNLOCK a keep=30s");
	hears(1, "OK *");
	passes(11 * 60 * SEC);
	says(1, "LOCK a");
	hears(1, "OK *");
	says(1, "UNLOCK a keep=31s");
	hears(1, "OK *");
}
END_TEST

START_TEST(a_permit_is_not_kept)
{
	cluster_begin(1);
	says(1, "ACQUIRE a limit=1");
	hears(1, "OK *");
	says(1, _i == 0 ? "UNLOCK a keep=20s" : "UNLOCK a sync=yes");
	hears(1, _i == 0 ? "ERR ARG keep= is for locks: *" : "ERR ARG sync= is for locks: *");
	says(2, "ACQUIRE a limit=1");
	hears(2, "BUSY *");
	says(1, "UNLOCK a keep=0s sync=no");
	hears(1, "OK name=a count=0");
	passes(MSEC);
	says(2, "ACQUIRE a limit=1");
	hears(2, "OK *");
}
END_TEST

START_TEST(a_group_of_a_semaphore_and_a_lock_is_refused_at_once)
{
	static const char *const request[] = {"LOCKALL s t", "LOCKALL t s wait=1m", "LOCKANY t s", "LOCKANY s t wait=1m"};

	cluster_begin(1);
	says(1, "ACQUIRE s limit=2");
	hears(1, "OK *");
	says(2, "%s", request[_i]);
	hears(2, "ERR KIND name ? is in use by a semaphore*");
	says(1, "RELEASE s");
	hears(1, "OK *");
	says(1, "LOCK t");
	hears(1, "OK *");
}
END_TEST

Suite *kept_suite(void)
{
	Suite *s = suite_create("kept");
	TCase *c = tcase_create("kept names");

	tcase_set_timeout(c, 60);
	tcase_add_checked_fixture(c, NULL, cluster_close);
	tcase_add_test(c, a_name_may_be_kept_for_longer_than_any_lease);
	tcase_add_test(c, max_keep_bounds_it);
	tcase_add_test(c, stores_that_forget_a_kept_name_vote_after_their_quarantine);
	tcase_add_test(c, another_run_of_the_daemon_finds_it_kept);
	tcase_add_test(c, kept_names_count_until_they_end);
	tcase_add_test(c, a_daemon_keeps_so_many_names_and_no_more);
	tcase_add_loop_test(c, a_permit_is_not_kept, 0, 2);
	tcase_add_loop_test(c, a_group_of_a_semaphore_and_a_lock_is_refused_at_once, 0, 4);
	suite_add_tcase(s, c);
	return s;
}

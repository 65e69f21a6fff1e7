/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client/tracking.c, repeat.c, undecided.c, surplus.c: what the library knows of its locks, and what becomes of a request when its connection broke. No
 * connection, no clock.
 */
#include "client/repeat.h"
#include "client/surplus.h"
#include "client/tracking.h"
#include "client/undecided.h"

#include <check.h>
#include <stdio.h>

#define GRANTED "OK name=n fence=17 valid_ms=9000 count=1"

struct known {
	struct holds holds;
	struct pending p;
	char text[REPLY_MAX];
	struct reply_line line;
	struct repeat_answer answer;
};

static const struct reply_line *said(struct known *k, const char *text)
{
	snprintf(k->text, sizeof(k->text), "%s", text);
	ck_assert_int_eq(reply_parse(k->text, strlen(k->text), &k->line), 0);
	return &k->line;
}

static void asked(struct known *k, enum pending_kind kind, const char *line)
{
	pending_set(&k->p, kind, "n", line, strlen(line));
	if (kind == PENDING_LOCK)
		ck_assert_int_eq(holds_reserve(&k->holds, "n"), 0);
	pending_begin(&k->p, 1000);
	k->p.sent = true;
}

static void answered(struct known *k, const char *text)
{
	k->p.in_flight = false;
	tracking_answer(&k->holds, &k->p, said(k, text));
}

static struct hold *held(struct known *k)
{
	return holds_find(&k->holds, SPAN("n"));
}

static void begin(struct known *k)
{
	memset(k, 0, sizeof(*k));
	holds_init(&k->holds);
	asked(k, PENDING_LOCK, "LOCK n");
	answered(k, GRANTED);
	ck_assert_int_eq(held(k)->until_us, 9001000);
}

/* RESUME is answered; row may be NULL. */
static void resumed(struct known *k, const char *row, const char *end)
{
	tracking_resume(&k->holds, &k->p);
	if (row)
		tracking_row(&k->holds, &k->p, said(k, row), 2000);
	if (!undecided_resumed(&k->holds, said(k, end)))
		tracking_end(&k->holds, &k->p, "evicted");
}

static void repeats(struct known *k, enum repeat what, const char *line)
{
	ck_assert_int_eq(repeat_resumed(&k->holds, &k->p, 5000, &k->answer), what);
	if (what == REPEAT_SEND)
		ck_assert_msg(k->p.n == strlen(line) && !memcmp(k->p.line, line, k->p.n), "%.*s", (int)k->p.n, k->p.line);
	else
		ck_assert_str_eq(k->answer.line, line);
	holds_release(&k->holds);
}

START_TEST(a_lock_without_a_row_is_lost_and_told_once)
{
	char push[REPLY_MAX];
	struct known k;

	begin(&k);
	resumed(&k, NULL, "OK session=7");
	ck_assert_int_eq(held(&k)->state, HOLD_LOST);
	tracking_loss(held(&k), push);
	ck_assert_str_eq(push, "! LOST name=n fence=17 reason=evicted");
	ck_assert_ptr_null(held(&k)->reason);
	ck_assert(!tracking_push(&k.holds, &k.p, said(&k, push)));
	ck_assert(tracking_push(&k.holds, &k.p, said(&k, "! LOST name=n fence=18 reason=quorum")));
	asked(&k, PENDING_READ, "CHECK n");
	repeats(&k, REPEAT_LOST, "ERR LOST the session did not hold it any more when it was resumed");
}
END_TEST

START_TEST(a_LOCK_that_is_given_up_after_the_loss_is_given_back)
{
	char line[SURPLUS_BYTES];
	struct known k;

	begin(&k);
	asked(&k, PENDING_LOCK, "LOCK n wait=9000ms");
	ck_assert(tracking_push(&k.holds, &k.p, said(&k, "! LOST name=n fence=17 reason=quorum")));
	surplus_given_up(&k.holds, &k.p);
	k.p.in_flight = false;
	resumed(&k, "* name=n fence=18 valid_ms=7000 count=1", "OK session=7");
	ck_assert_ptr_nonnull(surplus_next(&k.holds, &k.p));
	surplus_line(held(&k), line);
	ck_assert_str_eq(line, "UNLOCK n fence=18");
	holds_release(&k.holds);
}
END_TEST

START_TEST(a_row_counts_from_before_it_was_asked_for)
{
	struct known k;

	begin(&k);
	resumed(&k, "* name=n fence=17 valid_ms=7 count=1", "OK session=7");
	ck_assert_int_eq(held(&k)->state, HOLD_HELD);
	ck_assert_int_eq(held(&k)->until_us, 9000);
	asked(&k, PENDING_READ, "CHECK n");
	repeats(&k, REPEAT_SEND, "CHECK n");
}
END_TEST

START_TEST(an_UNLOCK_in_flight_is_done_or_frees_that_grant_only)
{
	struct known k;

	begin(&k);
	asked(&k, PENDING_UNLOCK, "UNLOCK n");
	resumed(&k, _i ? "* name=n fence=17 valid_ms=7 count=1" : NULL, "OK session=7");
	if (_i)
		repeats(&k, REPEAT_SEND, "UNLOCK n fence=17");
	else
		repeats(&k, REPEAT_DONE, "OK name=n count=0");
}
END_TEST

START_TEST(a_LOCK_whose_grant_a_row_tells_is_not_sent_again)
{
	struct known k;

	memset(&k, 0, sizeof(k));
	holds_init(&k.holds);
	asked(&k, PENDING_LOCK, "LOCK n");
	resumed(&k, "* name=n fence=18 valid_ms=7 count=1", "OK session=7");
	ck_assert_ptr_null(surplus_next(&k.holds, &k.p));
	repeats(&k, REPEAT_DONE, "OK name=n count=1 fence=18 valid_ms=7");
}
END_TEST

START_TEST(a_LOCK_waits_for_the_rest_of_its_time)
{
	static const int64_t until[] = {5000 + 40 * 1000, 4000, INT64_MAX};
	static const char *const line[] = {"LOCK n wait=40ms ttl=9ms", "LOCK n wait=1ms ttl=9ms", "LOCK n wait=500ms ttl=9ms"};
	struct known k;

	memset(&k, 0, sizeof(k));
	holds_init(&k.holds);
	asked(&k, PENDING_LOCK, "LOCK n wait=500ms ttl=9ms");
	pending_wait(&k.p, 6, 11, until[_i]);
	resumed(&k, NULL, "OK session=7");
	repeats(&k, REPEAT_SEND, line[_i]);
}
END_TEST

START_TEST(a_LOCK_that_was_given_up_and_granted_is_given_back)
{
	char line[SURPLUS_BYTES];
	struct known k;

	memset(&k, 0, sizeof(k));
	holds_init(&k.holds);
	asked(&k, PENDING_LOCK, "LOCK n");
	surplus_given_up(&k.holds, &k.p);
	k.p.in_flight = false;
	resumed(&k, "* name=n fence=18 valid_ms=7 count=1", "OK session=7");
	ck_assert_ptr_eq(surplus_next(&k.holds, &k.p), held(&k));
	line[surplus_line(held(&k), line)] = '\0';
	ck_assert_str_eq(line, "UNLOCK n fence=18");
	surplus_answered(&k.holds, "n", said(&k, "OK name=n count=0"));
	ck_assert_ptr_null(held(&k));
	holds_release(&k.holds);
}
END_TEST

/* The caller knows of one hold, which the session keeps. */
START_TEST(the_surplus_of_a_lock_that_is_held_twice_is_released_alone)
{
	struct known k;

	begin(&k);
	asked(&k, PENDING_LOCK, "LOCK n");
	surplus_given_up(&k.holds, &k.p);
	k.p.in_flight = false;
	resumed(&k, _i ? "* name=n fence=17 valid_ms=7 count=2" : "* name=n fence=17 valid_ms=7 count=1", "OK session=7");
	if (_i) {
		ck_assert_ptr_eq(surplus_next(&k.holds, &k.p), held(&k));
		surplus_answered(&k.holds, "n", said(&k, "OK name=n count=1"));
	}
	ck_assert_ptr_null(surplus_next(&k.holds, &k.p));
	ck_assert_int_eq(held(&k)->state, HOLD_HELD);
	ck_assert_int_eq(held(&k)->count, 1);
	holds_release(&k.holds);
}
END_TEST

START_TEST(an_undecided_lock_is_neither_lost_nor_valid_for_longer)
{
	struct known k;

	begin(&k);
	resumed(&k, NULL, "OK session=7 open=1");
	ck_assert_str_eq(undecided_next(&k.holds, &k.p), "n");
	ck_assert(undecided_checked(&k.holds, &k.p, "n", said(&k, "ERR QUORUM not yet"), 3000));
	ck_assert_ptr_null(undecided_next(&k.holds, &k.p));
	ck_assert_int_eq(held(&k)->state, HOLD_HELD);
	ck_assert_int_eq(held(&k)->until_us, 9001000);
	holds_release(&k.holds);
}
END_TEST

START_TEST(a_LOCK_in_flight_waits_until_its_lock_is_decided)
{
	struct known k;

	memset(&k, 0, sizeof(k));
	holds_init(&k.holds);
	asked(&k, PENDING_LOCK, "LOCK n");
	resumed(&k, NULL, "OK session=7 open=1");
	ck_assert_str_eq(undecided_next(&k.holds, &k.p), "n");
	ck_assert(!undecided_checked(&k.holds, &k.p, "n", said(&k, "ERR QUORUM not yet"), 3000));
	ck_assert(undecided_checked(&k.holds, &k.p, "n",
				    said(&k, _i ? "OK name=n fence=18 valid_ms=7 count=1" : "ERR NOTHELD no"), 3000));
	ck_assert_ptr_null(undecided_next(&k.holds, &k.p));
	if (_i)
		repeats(&k, REPEAT_DONE, "OK name=n count=1 fence=18 valid_ms=7");
	else
		repeats(&k, REPEAT_SEND, "LOCK n");
}
END_TEST

/* As something else than a daemon may. The lock is then believed for long, and for no shorter. */
START_TEST(numbers_that_no_daemon_tells_stay_numbers)
{
	struct known k;

	begin(&k);
	asked(&k, PENDING_LOCK, "LOCK n");
	answered(&k, "OK name=n fence=17 valid_ms=9223372036854775807 count=9223372036854775807");
	ck_assert(held(&k)->until_us > 9001000);
	asked(&k, PENDING_LOCK, "LOCK n");
	answered(&k, "OK name=n fence=17 valid_ms=-9223372036854775807 count=1");
	ck_assert(held(&k)->until_us < 0);
	resumed(&k, "* name=n fence=17 valid_ms=9223372036854775807 count=-9223372036854775807", "OK session=7 n=1");
	ck_assert(held(&k)->until_us > 9001000);
	holds_release(&k.holds);
}
END_TEST

Suite *tracking_suite(void)
{
	Suite *suite = suite_create("tracking");
	TCase *tests = tcase_create("tracking");

	tcase_add_test(tests, a_lock_without_a_row_is_lost_and_told_once);
	tcase_add_test(tests, a_LOCK_that_is_given_up_after_the_loss_is_given_back);
	tcase_add_test(tests, a_row_counts_from_before_it_was_asked_for);
	tcase_add_loop_test(tests, an_UNLOCK_in_flight_is_done_or_frees_that_grant_only, 0, 2);
	tcase_add_test(tests, a_LOCK_whose_grant_a_row_tells_is_not_sent_again);
	tcase_add_loop_test(tests, a_LOCK_waits_for_the_rest_of_its_time, 0, 3);
	tcase_add_test(tests, a_LOCK_that_was_given_up_and_granted_is_given_back);
	tcase_add_loop_test(tests, the_surplus_of_a_lock_that_is_held_twice_is_released_alone, 0, 2);
	tcase_add_test(tests, an_undecided_lock_is_neither_lost_nor_valid_for_longer);
	tcase_add_loop_test(tests, a_LOCK_in_flight_waits_until_its_lock_is_decided, 0, 2);
	tcase_add_test(tests, numbers_that_no_daemon_tells_stay_numbers);
	suite_add_tcase(suite, tests);
	return suite;
}

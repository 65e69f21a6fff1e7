/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client/lib/holds.c: what the library knows of its locks, and what becomes of a request when its connection broke. No
 * connection, no clock.
 */
#include "client/lib/holds.h"

#include <check.h>
#include <stdio.h>

#define GRANTED "OK name=n fence=17 valid_ms=9000 count=1"

struct known {
	struct holds holds;
	struct pending p;
	struct draft draft;
	char text[REPLY_MAX];
	struct reply_line line;
};

static const struct reply_line *said(struct known *k, const char *text)
{
	snprintf(k->text, sizeof(k->text), "%s", text);
	ck_assert_int_eq(reply_parse(k->text, strlen(k->text), &k->line), 0);
	return &k->line;
}

static void asked(struct known *k, enum pending_kind kind, const char *line)
{
	draft_verb(&k->draft, line);
	ck_assert_int_eq(pending_set(&k->p, kind, "n", &k->draft), 0);
	if (kind == PENDING_LOCK)
		ck_assert_int_eq(holds_ask(&k->holds, &(const char *){"n"}, 1), 0);
	pending_begin(&k->p, 1000);
	k->p.sent = true;
}

static void says(struct known *k, const char *line)
{
	count_field_draft(&k->holds, &k->p, &k->draft);
	ck_assert_str_eq(k->draft.line.p, line);
}

static void settles(struct known *k, const char *line)
{
	const struct hold *h = count_field_next_unsure(&k->holds, &k->p);

	ck_assert_ptr_nonnull(h);
	count_field_draft_unlock(h, &k->draft);
	ck_assert_str_eq(k->draft.line.p, line);
	count_field_corrected(&k->holds, h->name);
	ck_assert_ptr_null(count_field_next_unsure(&k->holds, &k->p));
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
	asked(k, PENDING_LOCK, "LOCK n");
	says(k, "LOCK n count=1");
	answered(k, GRANTED);
	ck_assert_int_eq(held(k)->until_us, 9001000);
}

static void forget(struct known *k)
{
	holds_release(&k->holds);
	buffer_release(&k->p.line);
	buffer_release(&k->draft.line);
}

/* RESUME is answered; row may be NULL. */
static void resumed(struct known *k, const char *row)
{
	tracking_resume(&k->holds);
	if (row)
		tracking_row(&k->holds, said(k, row), 2000);
	count_field_resume(&k->holds, &k->p);
	tracking_end(&k->holds, &k->p, "evicted");
}

TEST(a_lock_without_a_row_is_lost_and_told_once)
{
	struct known k;

	begin(&k);
	resumed(&k, NULL);
	ck_assert_int_eq(held(&k)->state, HOLD_LOST);
	tracking_loss(held(&k), &k.draft);
	ck_assert_str_eq(k.draft.line.p, "! LOST name=n fence=17 reason=evicted");
	ck_assert_ptr_null(held(&k)->reason);
	ck_assert(!tracking_push(&k.holds, said(&k, k.draft.line.p)));
	ck_assert(tracking_push(&k.holds, said(&k, "! LOST name=n fence=18 reason=quorum")));
	asked(&k, PENDING_READ, "CHECK n");
	ck_assert(tracking_knows_loss(&k.holds, &k.p));
	asked(&k, PENDING_LOCK, "LOCK n");
	ck_assert(!tracking_knows_loss(&k.holds, &k.p));
	says(&k, "LOCK n count=1");
	forget(&k);
}

LOOP_TEST(a_LOCK_that_is_given_up_is_undone, 2)
{
	struct known k;

	begin(&k);
	asked(&k, PENDING_LOCK, "LOCK n wait=9000ms");
	says(&k, "LOCK n wait=9000ms count=2");
	if (_i)
		ck_assert(tracking_push(&k.holds, said(&k, "! LOST name=n fence=17 reason=quorum")));
	count_field_give_up(&k.holds, &k.p);
	k.p.in_flight = false;
	resumed(&k, _i ? "* name=n fence=18 valid_ms=7000 count=1" : "* name=n fence=17 valid_ms=7000 count=2");
	settles(&k, _i ? "UNLOCK n count=0" : "UNLOCK n fence=17 count=1");
	if (_i)
		ck_assert_ptr_null(held(&k));
	else
		ck_assert_int_eq(held(&k)->count, 1);
	forget(&k);
}

TEST(a_LOCK_that_is_refused_for_a_loss_is_sent_again_as_the_first)
{
	struct known k;

	begin(&k);
	asked(&k, PENDING_LOCK, "LOCK n");
	says(&k, "LOCK n count=2");
	ck_assert(!count_field_is_outdated(&k.holds, &k.p, said(&k, "ERR LOST gone")));
	ck_assert(tracking_push(&k.holds, said(&k, "! LOST name=n fence=17 reason=quorum")));
	ck_assert(count_field_is_outdated(&k.holds, &k.p, said(&k, "ERR LOST gone")));
	says(&k, "LOCK n count=1");
	forget(&k);
}

TEST(a_change_of_the_mode_keeps_the_count)
{
	struct known k;

	begin(&k);
	asked(&k, PENDING_LOCK, "LOCK n mode=shared");
	k.p.shared = true;
	says(&k, "LOCK n mode=shared count=1");
	answered(&k, GRANTED);
	asked(&k, PENDING_LOCK, "LOCK n mode=shared");
	k.p.shared = true;
	says(&k, "LOCK n mode=shared count=2");
	forget(&k);
}

TEST(a_row_counts_from_before_it_was_asked_for)
{
	struct known k;

	begin(&k);
	resumed(&k, "* name=n fence=17 valid_ms=7 count=1");
	ck_assert_int_eq(held(&k)->state, HOLD_HELD);
	ck_assert_int_eq(held(&k)->until_us, 9000);
	asked(&k, PENDING_READ, "CHECK n");
	says(&k, "CHECK n");
	forget(&k);
}

LOOP_TEST(an_UNLOCK_says_the_same_whatever_became_of_it, 2)
{
	struct known k;

	begin(&k);
	asked(&k, PENDING_UNLOCK, "UNLOCK n");
	says(&k, "UNLOCK n fence=17 count=0");
	resumed(&k, _i ? "* name=n fence=17 valid_ms=7 count=1" : NULL);
	says(&k, "UNLOCK n fence=17 count=0");
	if (_i)
		count_field_give_up(&k.holds, &k.p);
	k.p.in_flight = false;
	resumed(&k, NULL);
	asked(&k, PENDING_UNLOCK, "UNLOCK n");
	if (_i)
		says(&k, "UNLOCK n fence=17 count=0");
	else
		ck_assert(tracking_knows_loss(&k.holds, &k.p));
	forget(&k);
}

/* The caller was not told whether its UNLOCK was done. It calls it again, after a LOCK: that one is not freed. */
TEST(a_LOCK_behind_an_UNLOCK_that_was_given_up_is_held_by_itself)
{
	struct known k;

	begin(&k);
	asked(&k, PENDING_UNLOCK, "UNLOCK n");
	count_field_give_up(&k.holds, &k.p);
	asked(&k, PENDING_LOCK, "LOCK n");
	says(&k, "LOCK n count=1");
	answered(&k, "OK name=n fence=18 valid_ms=9000 count=1");
	asked(&k, PENDING_UNLOCK, "UNLOCK n");
	says(&k, "UNLOCK n fence=18 count=1");
	answered(&k, "OK name=n count=1");
	asked(&k, PENDING_UNLOCK, "UNLOCK n");
	says(&k, "UNLOCK n fence=18 count=0");
	answered(&k, "OK name=n count=0");
	ck_assert_ptr_null(held(&k));
	forget(&k);
}

LOOP_TEST(a_LOCK_waits_for_the_rest_of_its_time, 3)
{
	static const int64_t until[] = {5000 + 40 * 1000, 4000, INT64_MAX};
	static const char *const line[] = {"LOCK n wait=40ms ttl=9ms count=1", "LOCK n wait=1ms ttl=9ms count=1", "LOCK n wait=forever ttl=9ms count=1"};
	struct known k;

	memset(&k, 0, sizeof(k));
	asked(&k, PENDING_LOCK, "LOCK n ttl=9ms");
	k.p.wait_at = 6, k.p.wait_ms = _i < 2 ? 500 : -1, k.p.wait_until_us = until[_i];
	resumed(&k, NULL);
	pending_wait_rest(&k.p, 5000);
	says(&k, line[_i]);
	forget(&k);
}

/* As something else than a daemon may. The lock is then believed for long, and for no shorter. */
TEST(numbers_that_no_daemon_tells_stay_numbers)
{
	struct known k;

	begin(&k);
	asked(&k, PENDING_LOCK, "LOCK n");
	answered(&k, "OK name=n fence=17 valid_ms=9223372036854775807 count=9223372036854775807");
	ck_assert(held(&k)->until_us > 9001000);
	asked(&k, PENDING_LOCK, "LOCK n");
	answered(&k, "OK name=n fence=17 valid_ms=-9223372036854775807 count=1");
	ck_assert(held(&k)->until_us < 0);
	resumed(&k, "* name=n fence=17 valid_ms=9223372036854775807 count=-9223372036854775807");
	ck_assert(held(&k)->until_us > 9001000);
	forget(&k);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* See tracking.h. */
#include "client/tracking.h"
#include "client/line.h"
#include "client/moment.h"

#include <inttypes.h>
#include <stdio.h>

/* --- what answers tell --- */

bool tracking_says_lost(const struct reply_line *line)
{
	return line->kind == LINE_ERR && (span_equal(line->code, SPAN("LOST")) || span_equal(line->code, SPAN("NOTHELD")));
}

/*
 * An answer tells how often h is held. What exceeds the expected number is surplus, if a LOCK was given up. Returns the caller's
 * number.
 */
static int64_t count_split(struct holds *holds, struct hold *h, int64_t told, int64_t expected)
{
	bool surplus = h->lock_given_up && told > expected;

	h->lock_given_up = surplus;
	if (!surplus)
		return told;
	h->row = (struct hold_row){.told = true, .fence = h->fence, .count = told - h->unlock_counted};
	holds->surplus = true;
	return expected;
}

static void hold_take(struct holds *holds, struct hold *h, const struct pending *p, const struct hold_row *told)
{
	int64_t expected = (h->state == HOLD_HELD ? h->count : 0) + pending_locks(p);

	h->unlock_counted |= h->unlock_given_up && told->count && told->count < expected;
	if (told->count)
		h->count = count_split(holds, h, told->count + h->unlock_counted, expected);
	else if (h->state != HOLD_HELD)
		h->count = 1;
	h->state = HOLD_HELD;
	h->fence = told->fence;
	h->until_us = p->sent_us + told->valid_ms * US_PER_MS;
}

static void hold_granted(struct holds *holds, struct hold *h, const struct pending *p, const struct reply_line *line)
{
	const struct hold_row told = {
		.told = true,
		.fence = reply_number(line, "fence", h->fence),
		.valid_ms = line_bounded(line, "valid_ms", 0),
		.count = line_bounded(line, "count", 0),
	};

	hold_take(holds, h, p, &told);
}

static void hold_unlocked(struct holds *holds, struct hold *h, const struct reply_line *line)
{
	int64_t told = line_bounded(line, "count", 0), left = count_split(holds, h, told, h->count - 1);

	h->unlock_counted = h->unlock_given_up = false;
	if (left > 0)
		h->count = left;
	else if (told > 0)
		h->state = HOLD_UNWANTED;
	else
		holds_forget(holds, h);
}

/* The rows have told what LOCKALL got; LOCKANY has none, and tells it here. */
static void bundle_answered(struct holds *holds, const struct pending *p, const struct reply_line *answer)
{
	struct hold *h, *one = p->kind == PENDING_LOCKANY ? holds_find(holds, reply_find(answer, "name")) : NULL;

	if (answer->kind == LINE_OK && one && one->in_bundle)
		hold_granted(holds, one, p, answer);
	LIST_FOREACH(h, &holds->all, next)
		if (answer->kind == LINE_OK && p->kind == PENDING_LOCKALL && h->in_bundle && h->part.told)
			hold_take(holds, h, p, &h->part);
	holds_unbundle(holds);
}

void tracking_answer(struct holds *holds, const struct pending *p, const struct reply_line *answer)
{
	struct hold *h = p->name[0] ? holds_find(holds, span_of(p->name)) : NULL;

	if (p->kind == PENDING_LOCKALL || p->kind == PENDING_LOCKANY)
		bundle_answered(holds, p, answer);
	if (!h)
		return;
	/* A loss that the daemon told needs no tracking: the daemon tells it again. */
	if (tracking_says_lost(answer) || (h->state == HOLD_ASKED && answer->kind != LINE_OK))
		holds_forget(holds, h);
	else if (p->kind == PENDING_UNLOCK && answer->kind == LINE_ERR && span_equal(answer->code, SPAN("QUORUM")))
		holds_forget(holds, h); /* sync=yes: nobody knows whether it is free, but the session holds it no more */
	else if (p->kind == PENDING_UNLOCK && answer->kind == LINE_OK)
		hold_unlocked(holds, h, answer);
	else if (answer->kind == LINE_OK)
		hold_granted(holds, h, p, answer);
}

/* --- what pushes tell --- */

/* A LOCK in flight takes the name anew: its grant is tracked, or given back if the LOCK is given up. */
static void hold_lost(struct holds *holds, struct hold *h, const struct pending *p)
{
	if (!pending_asks_for(p, h)) {
		holds_forget(holds, h);
		return;
	}
	h->state = HOLD_ASKED;
	h->unlock_counted = h->unlock_given_up = false;
}

bool tracking_push(struct holds *holds, const struct pending *p, const struct reply_line *push)
{
	struct hold *h;

	if (!span_equal(push->code, SPAN("LOST")) || reply_find(push, "owner").p || reply_find(push, "job").p)
		return true;
	h = holds_find(holds, reply_find(push, "name"));
	if (!h)
		return true;
	if (h->loss_told && reply_number(push, "fence", 0) == h->loss_told)
		return false;
	if (h->state == HOLD_HELD && reply_number(push, "fence", h->fence) == h->fence)
		hold_lost(holds, h, p);
	return true;
}

size_t tracking_loss(struct hold *h, char out[REPLY_MAX])
{
	char name[4 * NAME_MAX_BYTES + 3];
	size_t n = quote(span_of(h->name), name, sizeof(name) - 1);

	name[n] = '\0';
	n = (size_t)snprintf(out, REPLY_MAX, "! LOST name=%s fence=%" PRId64 " reason=%s", name, h->fence, h->reason);
	h->reason = NULL;
	h->loss_told = h->fence;
	return n;
}

/* --- what RESUME tells --- */

void tracking_resume(struct holds *holds, struct pending *p)
{
	struct hold *h;

	p->row.told = p->gone = false;
	holds->surplus = false;
	holds->open = holds->more = 0;
	LIST_FOREACH(h, &holds->all, next)
		h->seen = h->row.told = h->gone = false;
}

void tracking_row(struct holds *holds, struct pending *p, const struct reply_line *line, int64_t asked_us)
{
	struct span name = reply_find(line, "name");
	struct hold *h = holds_find(holds, name);
	const struct hold_row row = {
		.told = true,
		.fence = reply_number(line, "fence", 0),
		.valid_ms = line_bounded(line, "valid_ms", 0),
		.count = line_bounded(line, "count", 0),
		.asked_us = asked_us,
	};

	if (reply_find(line, "owner").p || reply_find(line, "job").p)
		return;
	if (!h && p->in_flight && span_equal(name, span_of(p->name)))
		p->row = row;
	if (!h)
		return;
	h->row = row;
	if ((h->state != HOLD_HELD && h->state != HOLD_UNWANTED) || (h->state == HOLD_HELD && h->fence != row.fence))
		return;
	h->seen = true;
	h->fence = row.fence;
	h->until_us = row.asked_us + row.valid_ms * US_PER_MS;
	h->unlock_counted = h->unlock_given_up = h->unlock_given_up && row.count && row.count < h->count;
}

/* The UNLOCK in flight was asked for while the lock was believed: it was done, or nothing is left to do. */
static bool is_being_unlocked(const struct hold *h, const struct pending *p)
{
	return pending_is(p, PENDING_UNLOCK, h->name) && p->asked_us < h->until_us;
}

static void hold_end(struct holds *holds, struct hold *h, struct pending *p, const char *reason)
{
	if (h->state == HOLD_HELD && h->unlock_given_up && h->count <= 1) {
		h->state = HOLD_FREED;
	} else if (h->state == HOLD_UNWANTED || is_being_unlocked(h, p)) {
		p->gone |= h->state != HOLD_UNWANTED;
		holds_forget(holds, h);
	} else {
		h->state = HOLD_LOST;
		h->reason = reason;
		h->unlock_counted = h->unlock_given_up = false;
	}
}

void tracking_end(struct holds *holds, struct pending *p, const char *reason)
{
	struct hold *h, *next;

	for (h = LIST_FIRST(&holds->all); h; h = next) {
		next = LIST_NEXT(h, next);
		if (!h->seen && (h->state == HOLD_HELD || h->state == HOLD_UNWANTED))
			hold_end(holds, h, p, reason);
	}
}

void tracking_checked(struct holds *holds, struct pending *p, const char *name, const struct reply_line *answer, int64_t asked_us)
{
	struct hold *h = holds_find(holds, span_of(name));

	if (answer->kind == LINE_OK)
		tracking_row(holds, p, answer, asked_us);
	if (!h || h->state != HOLD_HELD || h->seen)
		return;
	h->seen = true;
	if (answer->kind == LINE_OK || tracking_says_lost(answer))
		hold_end(holds, h, p, "evicted");
}

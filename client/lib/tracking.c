/* SPDX-License-Identifier: BSD-2-Clause */
/* See tracking.h. */
#include "client/lib/tracking.h"
#include "client/lib/boottime.h"
#include "client/lib/line.h"

#include <inttypes.h>
#include <stdio.h>

/* --- what answers tell --- */

bool tracking_says_lost(const struct reply_line *line)
{
	return line->kind == LINE_ERR && (span_equal(line->code, SPAN("LOST")) || span_equal(line->code, SPAN("NOTHELD")));
}

/* The answer to a LOCK: the session holds just what its caller knows of. */
static bool tracking_decides(const struct reply_line *answer)
{
	return answer->kind != LINE_ERR;
}

/* count: how often the daemon counts it; an UNLOCK that was given up is among that for the caller. */
static void hold_take(struct hold *h, const struct pending *p, int64_t fence, int64_t valid_ms, int64_t count)
{
	bool held = h->state == HOLD_HELD;

	h->count = count >= 0 ? count + (held && h->unlock_open) : (held ? h->count : 0) + 1;
	h->unlock_open &= held;
	h->unsettled = false;
	h->shared = p->shared;
	h->permit = p->permit;
	h->state = HOLD_HELD;
	h->fence = fence;
	h->until_us = p->sent_us + valid_ms * US_PER_MS;
}

static void hold_granted(struct hold *h, const struct pending *p, const struct reply_line *line, int64_t count)
{
	hold_take(h, p, reply_number(line, "fence", h->fence), line_bounded(line, "valid_ms", 0), count);
}

/*
 * A LOCK of several names whose holds differ says no count: each name has one more. A LOCKALL that is repeated and refused may have waited for some of its
 * names alone: the first one had taken the others.
 */
static void lockall_answered(struct holds *holds, const struct pending *p, const struct reply_line *answer)
{
	bool partly = answer->kind != LINE_OK && p->kind == PENDING_LOCKALL && p->again;
	struct hold *h, *one = p->kind == PENDING_LOCKANY ? holds_find(holds, reply_find(answer, "name")) : NULL;

	if (answer->kind == LINE_OK && one && one->in_bundle)
		hold_granted(one, p, answer, line_bounded(answer, "count", p->count));
	LIST_FOREACH(h, &holds->all, next) {
		if (answer->kind == LINE_OK && p->kind == PENDING_LOCKALL && h->in_bundle && h->part.told)
			hold_take(h, p, h->part.fence, h->part.valid_ms, p->count);
		h->unsettled &= !(h->in_bundle && tracking_decides(answer));
		h->unsettled |= h->in_bundle && partly;
	}
	holds->unsettled |= partly;
	holds_end_lockall(holds);
}

static void lock_answered(struct holds *holds, struct hold *h, const struct pending *p, const struct reply_line *answer)
{
	if (answer->kind == LINE_OK)
		hold_granted(h, p, answer, p->count);
	h->unsettled &= !tracking_decides(answer);
	if (h->state == HOLD_ASKED && !h->unsettled)
		holds_forget(holds, h);
}

static void unlock_answered(struct holds *holds, struct hold *h, const struct pending *p, const struct reply_line *answer)
{
	/* After QUORUM of sync=yes nobody knows whether it is free, but the session holds it no more. */
	if (answer->kind == LINE_ERR && !span_equal(answer->code, SPAN("QUORUM")))
		return;
	h->unlock_open = false;
	h->count = p->count >= 0 ? p->count : line_bounded(answer, "count", 0);
	if (h->count <= 0 || answer->kind == LINE_ERR)
		holds_forget(holds, h);
}

static void hold_renewed(struct hold *h, const struct pending *p, const struct reply_line *line)
{
	if (h->state != HOLD_HELD)
		return;
	h->fence = reply_number(line, "fence", h->fence);
	h->until_us = p->sent_us + line_bounded(line, "valid_ms", 0) * US_PER_MS;
}

static void hold_forget_loss(struct holds *holds, struct hold *h)
{
	if (h->unsettled)
		h->state = HOLD_ASKED;
	else
		holds_forget(holds, h);
}

void tracking_answer(struct holds *holds, const struct pending *p, const struct reply_line *answer)
{
	struct hold *h = p->name[0] ? holds_find(holds, span_of(p->name)) : NULL;

	if (p->kind == PENDING_LOCKALL || p->kind == PENDING_LOCKANY)
		lockall_answered(holds, p, answer);
	if (!h)
		return;
	/* A loss that the daemon told needs no tracking: the daemon tells it again. */
	if (tracking_says_lost(answer))
		hold_forget_loss(holds, h);
	else if (p->kind == PENDING_LOCK)
		lock_answered(holds, h, p, answer);
	else if (p->kind == PENDING_UNLOCK)
		unlock_answered(holds, h, p, answer);
	else if (answer->kind == LINE_OK)
		hold_renewed(h, p, answer);
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
	h->unlock_open = false;
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

void tracking_resume(struct holds *holds)
{
	struct hold *h;

	LIST_FOREACH(h, &holds->all, next)
		h->seen = false;
}

void tracking_row(struct holds *holds, const struct reply_line *line, int64_t asked_us)
{
	struct hold *h = holds_find(holds, reply_find(line, "name"));

	if (!h || h->state != HOLD_HELD || reply_find(line, "owner").p || reply_find(line, "job").p)
		return;
	if (!h->permit && h->fence != reply_number(line, "fence", 0))
		return;
	h->seen = true;
	h->until_us = asked_us + line_bounded(line, "valid_ms", 0) * US_PER_MS;
}

/* The UNLOCK in flight was asked for while the lock was believed: it was done, or its answer tells of the loss. */
static bool is_being_unlocked(const struct hold *h, const struct pending *p)
{
	return pending_is(p, PENDING_UNLOCK, h->name) && p->asked_us < h->until_us;
}

static void hold_end(struct hold *h, const struct pending *p, const char *reason)
{
	if (is_being_unlocked(h, p) || (h->unlock_open && h->count <= 1))
		return;
	h->state = HOLD_LOST;
	h->reason = reason;
	h->unlock_open = false;
}

void tracking_end(struct holds *holds, const struct pending *p, const char *reason)
{
	struct hold *h;

	LIST_FOREACH(h, &holds->all, next)
		if (!h->seen && h->state == HOLD_HELD)
			hold_end(h, p, reason);
}

const char *tracking_unseen(const struct holds *holds)
{
	const struct hold *h;

	LIST_FOREACH(h, &holds->all, next)
		if (!h->seen && h->state == HOLD_HELD)
			return h->name;
	return NULL;
}

void tracking_checked(struct holds *holds, const struct pending *p, const char *name, const struct reply_line *answer, int64_t asked_us)
{
	struct hold *h = holds_find(holds, span_of(name));

	if (answer->kind == LINE_OK)
		tracking_row(holds, answer, asked_us);
	if (!h || h->state != HOLD_HELD || h->seen)
		return;
	h->seen = true;
	if (answer->kind == LINE_OK || tracking_says_lost(answer))
		hold_end(h, p, "evicted");
}

bool tracking_knows_loss(const struct holds *holds, const struct pending *p)
{
	const struct hold *h = p->name[0] ? holds_find(holds, span_of(p->name)) : NULL;

	return h && h->state == HOLD_LOST && p->kind != PENDING_LOCK;
}

void tracking_loss_acknowledged(struct holds *holds, const struct pending *p)
{
	struct hold *h = holds_find(holds, span_of(p->name));

	if (h && p->kind == PENDING_UNLOCK)
		hold_forget_loss(holds, h);
}

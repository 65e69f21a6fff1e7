/* SPDX-License-Identifier: BSD-2-Clause */
/* See surplus.h. */
#include "client/surplus.h"
#include "client/bundle.h"

#include <inttypes.h>
#include <stdio.h>

#define FENCE_BYTES 40 /* " fence=…" */

void surplus_given_up(struct holds *holds, const struct pending *p)
{
	struct hold *h = p->name[0] ? holds_find(holds, span_of(p->name)) : NULL;

	if (!p->name[0])
		bundle_given_up(holds, p);
	if (!h)
		return;
	if (p->kind == PENDING_LOCK && h->state == HOLD_ASKED)
		h->state = HOLD_UNWANTED;
	else if (p->kind == PENDING_LOCK)
		h->lock_given_up |= p->sent;
	else if (p->kind == PENDING_UNLOCK && h->state == HOLD_HELD)
		h->unlock_given_up |= p->sent && p->asked_us < h->until_us;
}

bool surplus_refused(struct holds *holds, const char *name, bool up)
{
	struct hold *h = holds_find(holds, span_of(name));

	if (!h || h->state != HOLD_HELD)
		return false;
	h->row = (struct hold_row){.told = up, .fence = h->fence, .count = h->count - h->unlock_counted};
	if (h->count <= 1) {
		h->state = HOLD_UNWANTED;
	} else {
		h->lock_given_up = true;
		h->count--;
	}
	holds->surplus = true;
	return true;
}

static bool hold_has_surplus(const struct hold *h)
{
	if (h->state == HOLD_UNWANTED)
		return true;
	if (!h->lock_given_up || !h->row.told)
		return false;
	if (h->state == HOLD_LOST)
		return h->row.fence != h->fence;
	return h->state == HOLD_HELD && h->row.fence == h->fence && h->row.count > h->count - h->unlock_counted;
}

const struct hold *surplus_next(struct holds *holds, const struct pending *p)
{
	struct hold *h;

	holds->surplus = false;
	LIST_FOREACH(h, &holds->all, next) {
		if (bundle_is_torn(holds, p, h))
			return h;
		if (pending_asks_for(p, h))
			continue;
		if (hold_has_surplus(h))
			return h;
		/* The row shows that the LOCK that was given up did not count. */
		if (h->row.told && h->state != HOLD_LOST)
			h->lock_given_up = false;
	}
	return NULL;
}

/* The fence of a grant that no answer told is unknown, and not needed: the session has no other grant of that name. */
size_t surplus_line(const struct hold *h, char out[SURPLUS_BYTES])
{
	int64_t fence = h->row.told ? h->row.fence : h->fence;
	size_t n = (size_t)snprintf(out, SURPLUS_BYTES, "UNLOCK ");

	n += quote(span_of(h->name), out + n, SURPLUS_BYTES - n - FENCE_BYTES);
	if (fence)
		n += (size_t)snprintf(out + n, SURPLUS_BYTES - n, " fence=%" PRId64, fence);
	return n;
}

void surplus_answered(struct holds *holds, const char *name, const struct reply_line *answer)
{
	struct hold *h = holds_find(holds, span_of(name));
	int64_t left = answer->kind == LINE_OK ? reply_number(answer, "count", 0) : 0;

	if (!h)
		return;
	if (left > 0 && (!h->row.told || left < h->row.count))
		h->row.count = left;
	else if (h->state == HOLD_UNWANTED)
		holds_forget(holds, h);
	else
		h->row.told = h->lock_given_up = false;
}

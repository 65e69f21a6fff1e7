/* SPDX-License-Identifier: BSD-2-Clause */
/* See repeat.h. */
#include "client/repeat.h"

#include <inttypes.h>
#include <stdio.h>

static enum repeat repeat_done(const char *of, const struct hold_row *grant, int64_t count, struct repeat_answer *ret)
{
	char name[4 * NAME_MAX_BYTES + 3];
	size_t n = quote(span_of(of), name, sizeof(name) - 1);

	name[n] = '\0';
	n = (size_t)snprintf(ret->line, sizeof(ret->line), "OK name=%s count=%" PRId64, name, count);
	if (grant && grant->fence)
		n += (size_t)snprintf(ret->line + n, sizeof(ret->line) - n, " fence=%" PRId64 " valid_ms=%" PRId64, grant->fence,
				      grant->valid_ms);
	ret->n = n;
	return REPEAT_DONE;
}

static enum repeat repeat_lost(struct repeat_answer *ret)
{
	ret->n = (size_t)snprintf(ret->line, sizeof(ret->line),
				  "ERR LOST the session did not hold it any more when it was resumed");
	return REPEAT_LOST;
}

enum repeat repeat_known(const struct holds *holds, const struct pending *p, struct repeat_answer *ret_answer)
{
	const struct hold *h = p->name[0] ? holds_find(holds, span_of(p->name)) : NULL;

	if (!h)
		return REPEAT_SEND;
	if (p->kind == PENDING_UNLOCK && h->state == HOLD_FREED)
		return repeat_done(p->name, NULL, 0, ret_answer);
	if (p->kind == PENDING_UNLOCK && h->unlock_counted)
		return repeat_done(p->name, NULL, h->count - 1, ret_answer);
	return h->state == HOLD_LOST && p->kind != PENDING_LOCK ? repeat_lost(ret_answer) : REPEAT_SEND;
}

/*
 * The session holds a grant that no answer told, of this request or of one that was given up before. Sent again, it would
 * count twice.
 */
bool repeat_was_granted(const struct hold *h, const struct pending *p)
{
	if (!h || !h->row.told)
		return false;
	return h->state != HOLD_HELD || h->fence != h->row.fence || (h->row.count > h->count && (p->sent || h->lock_given_up));
}

static enum repeat lock_repeat(const struct hold *h, struct pending *p, int64_t now, struct repeat_answer *ret_answer)
{
	if (repeat_was_granted(h, p)) {
		p->sent_us = h->row.asked_us;
		return repeat_done(p->name, &h->row, h->row.count ? h->row.count : 1, ret_answer);
	}
	pending_wait_rest(p, now);
	return REPEAT_SEND;
}

bool repeat_has_all(const struct holds *holds, const struct pending *p)
{
	const struct hold *h;

	LIST_FOREACH(h, &holds->all, next)
		if (h->in_bundle && !repeat_was_granted(h, p))
			return false;
	return true;
}

/* A LOCKALL of which only some were granted has given them back by now (bundle_is_torn). */
static enum repeat several_repeat(const struct holds *holds, struct pending *p, int64_t now, struct repeat_answer *ret_answer)
{
	struct hold *h, *granted = NULL;

	LIST_FOREACH(h, &holds->all, next) {
		h->part.told = false;
		if (!h->in_bundle || !repeat_was_granted(h, p))
			continue;
		granted = h;
		h->part = h->row;
		h->part.count = h->row.count ? h->row.count : 1;
	}
	if (!granted || (p->kind == PENDING_LOCKALL && !repeat_has_all(holds, p))) {
		pending_wait_rest(p, now);
		return REPEAT_SEND;
	}
	p->sent_us = granted->row.asked_us;
	if (p->kind == PENDING_LOCKANY)
		return repeat_done(granted->name, &granted->part, granted->part.count, ret_answer);
	ret_answer->n = (size_t)snprintf(ret_answer->line, sizeof(ret_answer->line), "OK");
	return REPEAT_DONE;
}

static enum repeat unlock_repeat(const struct hold *h, struct pending *p, struct repeat_answer *ret_answer)
{
	const struct hold_row *row = h ? &h->row : &p->row;

	/* An UNLOCK that was never sent is still to be done. */
	if (p->gone || (p->sent && (!row->told || (h && h->fence != row->fence))))
		return repeat_done(p->name, NULL, 0, ret_answer);
	if (h && row->told && row->count && row->count < h->count && (p->sent || h->unlock_given_up))
		return repeat_done(p->name, NULL, h->count - 1, ret_answer);
	if (h || row->told)
		pending_fence(p, h ? h->fence : row->fence);
	return REPEAT_SEND;
}

enum repeat repeat_resumed(const struct holds *holds, struct pending *p, int64_t now, struct repeat_answer *ret_answer)
{
	const struct hold *h = p->name[0] ? holds_find(holds, span_of(p->name)) : NULL;
	enum repeat known = repeat_known(holds, p, ret_answer);

	if (known != REPEAT_SEND)
		return known;
	if (p->kind == PENDING_LOCK)
		return lock_repeat(h, p, now, ret_answer);
	if (pending_locks(p))
		return several_repeat(holds, p, now, ret_answer);
	return p->kind == PENDING_UNLOCK ? unlock_repeat(h, p, ret_answer) : REPEAT_SEND;
}

enum repeat repeat_later(const struct holds *holds, struct pending *p, int64_t now, struct repeat_answer *ret_answer)
{
	enum repeat known = repeat_known(holds, p, ret_answer);

	if (known == REPEAT_SEND && pending_locks(p))
		pending_wait_rest(p, now);
	return known;
}

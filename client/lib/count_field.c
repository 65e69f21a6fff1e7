/* SPDX-License-Identifier: BSD-2-Clause */
/* See count_field.h. */
#include "client/lib/count_field.h"

#include <inttypes.h>
#include <stdio.h>

/* An UNLOCK that was given up is taken for done: the next one asks for the same count. */
static int64_t hold_count(const struct hold *h)
{
	return h && h->state == HOLD_HELD ? h->count - h->unlock_open : 0;
}

/* --- the count of a request; -1: it says none --- */

/* LOCK in the other mode converts, which keeps the count, or is refused. */
static int64_t lock_count(const struct hold *h, const struct pending *p)
{
	bool converts = hold_count(h) > 0 && h->shared != p->shared;

	return hold_count(h) + !converts;
}

/* LOCKALL says one count for all names. */
static int64_t all_count(const struct holds *holds)
{
	const struct hold *h;
	int64_t count = -1;

	LIST_FOREACH(h, &holds->all, next) {
		if (!h->in_bundle)
			continue;
		if (count >= 0 && count != hold_count(h) + 1)
			return -1;
		count = hold_count(h) + 1;
	}
	return count;
}

/* LOCKANY is about the first name that the session has, if it has any. */
static int64_t any_count(const struct holds *holds)
{
	const struct hold *h, *first = NULL;

	LIST_FOREACH(h, &holds->all, next)
		if (h->in_bundle && hold_count(h) > 0 && (!first || h->rank < first->rank))
			first = h;
	return hold_count(first) + 1;
}

static int64_t request_count(const struct holds *holds, const struct pending *p)
{
	const struct hold *h = p->name[0] ? holds_find(holds, span_of(p->name)) : NULL;

	switch (p->kind) {
	case PENDING_LOCK:
		return lock_count(h, p);
	case PENDING_LOCKALL:
		return all_count(holds);
	case PENDING_LOCKANY:
		return any_count(holds);
	case PENDING_UNLOCK:
		return h && h->state == HOLD_HELD ? h->count - 1 : -1;
	default:
		return -1;
	}
}

/* Permits of one name have a fence each. */
static size_t put_fence(const struct hold *h, char *out, size_t size)
{
	return h && h->state == HOLD_HELD && h->fence && !h->permit ? (size_t)snprintf(out, size, " fence=%" PRId64, h->fence) : 0;
}

struct span count_field_line(const struct holds *holds, struct pending *p)
{
	char *out = p->line.p;
	size_t n = p->n, most = n + COUNTED_BYTES;

	p->count = request_count(holds, p);
	if (p->kind == PENDING_UNLOCK)
		n += put_fence(holds_find(holds, span_of(p->name)), out + n, most - n);
	if (p->count >= 0)
		n += (size_t)snprintf(out + n, most - n, " count=%" PRId64, p->count);
	return (struct span){out, n};
}

bool count_field_is_outdated(const struct holds *holds, const struct pending *p, const struct reply_line *answer)
{
	bool refused = answer->kind == LINE_ERR && (span_equal(answer->code, SPAN("LOST")) || span_equal(answer->code, SPAN("ARG")));

	return refused && pending_locks(p) && !p->cancelled && p->count >= 0 && p->count != request_count(holds, p);
}

/* --- calls that were given up --- */

static void hold_unsettle(struct holds *holds, struct hold *h)
{
	h->unsettled = true;
	holds->unsettled = true;
}

void count_field_give_up(struct holds *holds, const struct pending *p)
{
	struct hold *h;

	LIST_FOREACH(h, &holds->all, next) {
		if (pending_asks_for(p, h) && (p->sent || h->state != HOLD_HELD))
			hold_unsettle(holds, h);
		else if (p->sent && h->state == HOLD_HELD && pending_is(p, PENDING_UNLOCK, h->name))
			h->unlock_open = true;
		h->in_bundle = false;
	}
}

bool count_field_refuse(struct holds *holds, const char *name)
{
	struct hold *h = holds_find(holds, span_of(name));

	if (!h || h->state != HOLD_HELD)
		return false;
	if (--h->count <= 0)
		h->state = HOLD_ASKED;
	hold_unsettle(holds, h);
	return true;
}

void count_field_resume(struct holds *holds, const struct pending *p)
{
	struct hold *h;

	if (!p->in_flight || !p->sent || !pending_locks(p) || request_count(holds, p) >= 0)
		return;
	LIST_FOREACH(h, &holds->all, next)
		if (h->in_bundle)
			hold_unsettle(holds, h);
}

const struct hold *count_field_unsettled(struct holds *holds, const struct pending *p)
{
	bool counted = request_count(holds, p) >= 0;
	const struct hold *h;

	holds->unsettled = false;
	LIST_FOREACH(h, &holds->all, next)
		if (h->unsettled && !(counted && pending_asks_for(p, h)))
			return h;
	return NULL;
}

size_t count_field_settle(const struct hold *h, char out[SETTLE_BYTES])
{
	size_t n = (size_t)snprintf(out, SETTLE_BYTES, "UNLOCK ");

	n += quote(span_of(h->name), out + n, SETTLE_BYTES - n - 80);
	n += put_fence(h, out + n, SETTLE_BYTES - n);
	return n + (size_t)snprintf(out + n, SETTLE_BYTES - n, " count=%" PRId64, hold_count(h));
}

void count_field_settled(struct holds *holds, const struct pending *p, const char *name)
{
	struct hold *h = holds_find(holds, span_of(name));

	if (!h)
		return;
	h->unsettled = false;
	if (h->state == HOLD_ASKED && !pending_asks_for(p, h))
		holds_forget(holds, h);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* See undecided.h. */
#include "client/undecided.h"
#include "client/bundle.h"
#include "client/tracking.h"

bool undecided_resumed(struct holds *holds, const struct reply_line *answer)
{
	holds->open = reply_number(answer, "open", 0);
	holds->more = reply_number(answer, "more", 0);
	return holds->open > 0 || holds->more > 0;
}

bool undecided_unlock(struct holds *holds, const struct pending *p)
{
	struct hold *h = p->kind == PENDING_UNLOCK ? holds_find(holds, span_of(p->name)) : NULL;

	if (!h || h->state != HOLD_HELD || !h->unlock_given_up)
		return false;
	h->row.told = false;
	holds->open = 0;
	holds->more = 1;
	return true;
}

/* The session holds the locks that RESUME left out. If a call was given up, nobody knows how often. */
static bool hold_is_undecided(const struct holds *holds, const struct hold *h)
{
	if (h->state != HOLD_HELD || h->seen)
		return false;
	return holds->open > 0 || (holds->more > 0 && (h->lock_given_up || h->unlock_given_up));
}

static bool pending_is_undecided(const struct holds *holds, const struct pending *p)
{
	const struct hold *h = p->in_flight && p->name[0] ? holds_find(holds, span_of(p->name)) : NULL;

	if (!p->in_flight || p->gone || (holds->open <= 0 && holds->more <= 0) || (h ? h->row.told : p->row.told))
		return false;
	return (p->kind == PENDING_LOCK || p->kind == PENDING_UNLOCK) && (p->sent || (h && h->lock_given_up));
}

const char *undecided_next(const struct holds *holds, const struct pending *p)
{
	const struct hold *h;

	LIST_FOREACH(h, &holds->all, next)
		if (hold_is_undecided(holds, h))
			return h->name;
	if (holds->open > 0 || holds->more > 0)
		return pending_is_undecided(holds, p) ? p->name : bundle_undecided(holds, p);
	return NULL;
}

/* Decides the request in flight by the answer to CHECK of its lock. False: it stays undecided. */
static bool pending_decide(const struct holds *holds, struct pending *p, const struct reply_line *answer)
{
	struct hold *h = holds_find(holds, span_of(p->name));

	if (answer->kind == LINE_OK || tracking_says_lost(answer)) {
		p->gone = true;
	} else if (p->kind == PENDING_UNLOCK && h && h->state == HOLD_HELD && h->count <= 1) {
		/* The lock is held once, so this UNLOCK was not done. If it is held more often, nobody knows. */
		h->row = (struct hold_row){.told = true, .fence = h->fence};
	}
	return p->gone || (h && h->row.told);
}

bool undecided_checked(struct holds *holds, struct pending *p, const char *name, const struct reply_line *answer,
		       int64_t asked_us)
{
	struct hold *h = holds_find(holds, span_of(name));

	if (h && h->in_bundle) {
		h->gone = tracking_says_lost(answer);
		tracking_checked(holds, p, name, answer, asked_us);
		return h->gone || h->row.told;
	}
	tracking_checked(holds, p, name, answer, asked_us);
	return !pending_is_undecided(holds, p) || strcmp(name, p->name) != 0 || pending_decide(holds, p, answer);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A search along "waits for", breadth first, so that the cycle that is told is a shortest one. Each lock is looked at once. */
#include "daemon/core/deadlock.h"

#include <string.h>

#define CYCLE_PATH 32

struct search {
	struct commander *x;
	const struct session *session;
	struct span owner;
	struct locks queue;
};

static void search_visit(struct search *q, struct lock *l, struct lock *from)
{
	if (l->seen == q->x->engine->search)
		return;
	l->seen = q->x->engine->search;
	l->seen_from = from;
	TAILQ_INSERT_TAIL(&q->queue, l, in_search);
}

/* Follows one that stands in the way at l. True: it is the asking owner itself. */
static bool search_follow(struct search *q, const struct claim *blocker, struct lock *l)
{
	const struct session *s = blocker->session;
	struct claim *c;

	if (s == q->session && span_equal(claim_owner(blocker), q->owner))
		return true;
	if (s->waiting == 0 || blocker->seen == q->x->engine->search)
		return false;
	TAILQ_FOREACH(c, &s->claims, in_session) {
		if (c->state != CLAIM_WAITING || !claim_same_owner(c, blocker))
			continue;
		c->seen = q->x->engine->search; /* what it waits for is followed once */
		if (c->lock != l)
			search_visit(q, c->lock, l);
	}
	return false;
}

static bool search_lock(struct search *q, struct lock *l, const struct lock *first)
{
	const struct claim *c;

	if (l->holder && search_follow(q, l->holder, l))
		return true;
	TAILQ_FOREACH(c, &l->line, in_lock) {
		/* An earlier request of the asker in the same line is granted together with this one. */
		bool own = c->session == q->session && span_equal(claim_owner(c), q->owner);

		if (own && l == first)
			continue;
		if (search_follow(q, c, l))
			return true;
	}
	return false;
}

/* A name goes in whole, or dots in its place as soon as what must follow might not fit. */
static void cycle_add(char *cycle, size_t *n, struct span word)
{
	static const char dots[] = "...";

	if (*n + word.n + (CYCLE_PATH + 1) * sizeof("<-...") > CYCLE_MAX)
		word = span_of(dots);
	memcpy(cycle + *n, word.p, word.n);
	*n += word.n;
}

/* The path, from the asked lock to the one that the asker has, and back. */
static struct span search_tell(const struct lock *first, const struct lock *last, char *cycle)
{
	const struct lock *path[CYCLE_PATH];
	unsigned n = 0;
	size_t used = 0;

	for (const struct lock *l = last; l && n < CYCLE_PATH; l = l == first ? NULL : l->seen_from)
		path[n++] = l;
	for (unsigned i = 0; i <= n; i++) {
		if (i > 0) {
			memcpy(cycle + used, "<-", 2);
			used += 2;
		}
		cycle_add(cycle, &used, lock_name(i < n ? path[n - 1 - i] : first));
	}
	return (struct span){cycle, used};
}

/* Who has nothing and waits for nothing is in nobody's way. */
static bool owner_is_in_the_way(const struct session *s, struct span owner)
{
	const struct claim *c;

	TAILQ_FOREACH(c, &s->claims, in_session) {
		if ((c->state == CLAIM_HELD || c->state == CLAIM_WAITING) && span_equal(claim_owner(c), owner))
			return true;
	}
	return false;
}

bool deadlock_closes(struct commander *x, const struct session *s, struct span owner, struct lock *l, char *cycle, struct span *ret_cycle)
{
	struct search q = {.x = x, .session = s, .owner = owner};
	struct lock *at;

	if (!owner_is_in_the_way(s, owner))
		return false;
	TAILQ_INIT(&q.queue);
	x->engine->search++;
	search_visit(&q, l, NULL);
	while ((at = TAILQ_FIRST(&q.queue))) {
		TAILQ_REMOVE(&q.queue, at, in_search);
		if (!search_lock(&q, at, l))
			continue;
		*ret_cycle = search_tell(l, at, cycle);
		return true;
	}
	return false;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A search along "waits for", breadth first, so that the cycle that is told is a shortest one. The search looks at each
 * claim in a queue once, and only if it has reached a claim that waits behind it. */
#include "daemon/core/deadlock.h"

#include "daemon/core/group.h"
#include "daemon/core/rules.h"

#include <limits.h>
#include <string.h>

#define CYCLE_PATH 32

struct search {
	struct commander *x;
	const struct session *session;
	struct span owner;
	struct claim *via; /* the waiting claim whose blockers are looked at; NULL: the asker */
	const struct claim *behind; /* the first waiter that the asker would overtake; NULL: none */
	struct claim place;         /* where the asker would stand: see claim_stands_before() */
	const struct lock *through[CYCLE_PATH]; /* of the cycle: names of groups at its end, the last one first */
	unsigned throughs;
	struct contenders *queue;
};

/* The claim upto waits for k, for the holder and for all ahead of it. NULL: the asker, for the holder and all waiters. */
static void search_visit(struct search *q, struct contender *k, struct claim *upto)
{
	uint64_t search = q->x->engine->search;

	if (k->seen != search) {
		k->seen = search;
		k->seen_next = TAILQ_FIRST(&k->waiters);
		k->seen_goals = upto ? 0 : UINT_MAX;
		k->seen_holder = k->in_queue = false;
	}
	if (upto && k->seen_goals != UINT_MAX && upto->asking->ahead != search) {
		upto->asking->ahead = search;
		upto->asking->goal = true;
		upto->asking->via = q->via;
		k->seen_goals++;
	}
	if (!k->in_queue)
		TAILQ_INSERT_TAIL(q->queue, k, in_search);
	k->in_queue = true;
}

/* The first claim of this session that waits. A thousand owners of a session may be met, and none of them looks through all that the others hold. */
static struct claim *search_waits(const struct search *q, struct session *s)
{
	struct claim *c, **end = &s->waits;

	if (s->searched == q->x->engine->search)
		return s->waits;
	s->searched = q->x->engine->search;
	TAILQ_FOREACH(c, &s->claims, in_session) {
		if (c->state != CLAIM_WAITING)
			continue;
		*end = c;
		end = &c->asking->next_waits;
	}
	*end = NULL;
	return s->waits;
}

/* The owner of this claim waits for the asker, which would overtake it. If another LOCK of it stands before the asker, both are granted together. */
static bool search_overtakes(const struct search *q, const struct claim *blocker)
{
	const struct claim *c;
	bool behind = false;

	if (!q->behind)
		return false;
	for (c = search_waits(q, blocker->session); c; c = c->asking->next_waits) {
		if (c->lock != q->behind->lock || !claim_same_owner(c, blocker))
			continue;
		if (!claim_stands_before(&q->place, c))
			return false;
		behind = true;
	}
	return behind;
}

static bool search_follow(struct search *q, const struct claim *blocker, struct lock *l);

/* A LOCKALL waits for the holders of all its names, and for those who wait there, since it stands behind them. */
static bool search_name(struct search *q, struct lock *l)
{
	const struct claim *c;
	bool found = false;

	for (c = l->holder; c && !found; c = lock_next_holder(l, c))
		found = search_follow(q, c, l);
	for (c = TAILQ_FIRST(&l->contender->waiters); c && !found; c = TAILQ_NEXT(c, in_lock))
		found = search_follow(q, c, l);
	if (found && q->throughs < CYCLE_PATH)
		q->through[q->throughs++] = l;
	return found;
}

/* Follows the LOCKALLs of the owner, each once. A LOCKANY goes on as soon as it gets any of its names, so it is in nobody's way. */
static bool search_groups(struct search *q, const struct session *s, struct span owner)
{
	struct group *g;

	LIST_FOREACH(g, &s->groups, in_session) {
		if (g->any || g->seen == q->x->engine->search || !span_equal(group_owner(g), owner))
			continue;
		g->seen = q->x->engine->search;
		for (unsigned i = 0; i < g->parts; i++) {
			struct lock *l = lock_find(&q->x->engine->table, part_name(&g->part[i]));

			if (l && !lock_holder_of(l, s, owner) && search_name(q, l))
				return true;
		}
	}
	return false;
}

/*
 * Follows a claim that stands in the way at l. True: the asking owner has it, or would be in the way of its owner. A group keeps nothing from others for as
 * long as it waits itself. But when it has all its names, its owner keeps them as long as it waits for something else.
 */
static bool search_follow(struct search *q, const struct claim *blocker, struct lock *l)
{
	struct session *s = blocker->session->principal ? blocker->session->principal : blocker->session;
	struct claim *c;

	if (s == q->session && span_equal(claim_owner(blocker), q->owner))
		return s == blocker->session;
	if (s->waiting == 0 || (blocker->state == CLAIM_WAITING && blocker->asking->seen == q->x->engine->search))
		return false;
	if (search_overtakes(q, blocker))
		return true;
	for (c = search_waits(q, s); c; c = c->asking->next_waits) {
		if (!claim_is_of(c, s, claim_owner(blocker)))
			continue;
		c->asking->seen = q->x->engine->search; /* what it waits for is followed once */
		if (c->lock != l)
			search_visit(q, c->lock->contender, c);
	}
	return s == blocker->session && !LIST_EMPTY(&s->groups) && search_groups(q, s, claim_owner(blocker));
}

static struct claim *search_next_goal(const struct search *q, const struct contender *k)
{
	struct claim *c = k->seen_goals == UINT_MAX ? NULL : k->seen_next;

	while (c && !(c->asking->goal && c->asking->ahead == q->x->engine->search))
		c = TAILQ_NEXT(c, in_lock);
	return c;
}

/* Follows the waiters of l, from where the search left them to q->via. */
static bool search_stretch(struct search *q, struct lock *l, const struct lock *first)
{
	struct contender *k = l->contender;
	struct claim *c;

	while ((c = k->seen_next) && c != q->via && (l != first || c != q->behind)) {
		/* An earlier request of the asker in the same queue is granted together with this one. */
		bool asked = q->via ? claim_is_of(q->via, q->session, q->owner) : l == first, own = asked && claim_is_of(c, q->session, q->owner);

		k->seen_next = TAILQ_NEXT(c, in_lock);
		c->asking->goal &= c->asking->ahead == q->x->engine->search;
		c->asking->ahead = q->x->engine->search;
		if (!own && search_follow(q, c, l))
			return true;
	}
	return false;
}

/* Follows the holders. The asker may be one of those of the lock that it asks for: it would be alone. */
static bool search_holders(struct search *q, struct lock *l, const struct lock *first)
{
	for (const struct claim *c = l->holder; c; c = lock_next_holder(l, c)) {
		bool own = l == first && c->session == q->session && span_equal(claim_owner(c), q->owner);

		if (!own && search_follow(q, c, l))
			return true;
	}
	return false;
}

static bool search_lock(struct search *q, struct lock *l, const struct lock *first)
{
	struct contender *k = l->contender;

	q->via = search_next_goal(q, k);
	if (!k->seen_holder && search_holders(q, l, first))
		return true;
	k->seen_holder = true;
	if (l == first && lock_holder_of(l, q->session, q->owner))
		return false; /* its request stands before all that wait */
	for (; k->seen_goals > 0; q->via = search_next_goal(q, k)) {
		if (search_stretch(q, l, first))
			return true;
		if (!q->via)
			break;
		q->via->asking->goal = false;
		k->seen_goals--;
	}
	return false;
}

/* Adds the whole name, or dots in its place once the rest of the path might not fit. */
static void cycle_add(char *cycle, size_t *n, struct span word)
{
	static const char dots[] = "...";

	if (*n + word.n + (CYCLE_PATH + 1) * sizeof("<-...") > CYCLE_MAX)
		word = span_of(dots);
	memcpy(cycle + *n, word.p, word.n);
	*n += word.n;
}

/* The asker is shown no name that it may not look at, but the one that it asks for. */
static struct span search_shows(const struct search *q, const struct lock *l, const struct lock *first)
{
	return l == first || session_knows(q->x->core, q->session, lock_name(l)) ? lock_name(l) : SPAN("...");
}

/* The path, from the asked lock to the one that the asker has, and back. */
static struct span search_tell(const struct search *q, const struct lock *first, const struct lock *last, char *cycle)
{
	const struct lock *path[CYCLE_PATH];
	unsigned n = 0;
	size_t used = 0;

	while (n < q->throughs && n < CYCLE_PATH / 2)
		path[n] = q->through[n], n++;
	path[n++] = last;
	for (const struct claim *c = q->via; c && n < CYCLE_PATH; c = c->asking->via)
		path[n++] = c->asking->via ? c->asking->via->lock : first;
	for (unsigned i = 0; i <= n; i++) {
		if (i > 0) {
			memcpy(cycle + used, "<-", 2);
			used += 2;
		}
		cycle_add(cycle, &used, search_shows(q, i < n ? path[n - 1 - i] : first, first));
	}
	return (struct span){cycle, used};
}

/* An owner that holds nothing and waits for nothing is in nobody's way. */
static bool owner_is_in_the_way(const struct session *s, struct span owner)
{
	const struct claim *c;

	TAILQ_FOREACH(c, &s->claims, in_session) {
		if ((c->state == CLAIM_HELD || c->state == CLAIM_WAITING) && span_equal(claim_owner(c), owner))
			return true;
	}
	return false;
}

/* Who is overtaken waits for all of the asker's requests: what these wait for is followed as well. */
static void search_visit_others(struct search *q, const struct lock *first)
{
	struct claim *c;

	TAILQ_FOREACH(c, &q->session->claims, in_session) {
		if (c->state == CLAIM_WAITING && c->lock != first && span_equal(claim_owner(c), q->owner))
			search_visit(q, c->lock->contender, c);
	}
}

static void search_overtake(struct search *q, const struct contender *k)
{
	const struct claim *c = TAILQ_LAST(&k->waiters, claims);

	for (; c && claim_stands_before(&q->place, c); c = TAILQ_PREV(c, claims, in_lock))
		q->behind = c;
	if (q->behind)
		search_visit_others(q, q->behind->lock);
}

bool deadlock_closes(struct commander *x, const struct session *s, struct span owner, unsigned priority, struct lock *l, char *cycle,
                     struct span *ret_cycle)
{
	struct asking asking = {.asked_at = x->core->now, .order = UINT32_MAX};
	struct search q = {.x = x, .session = s, .owner = owner, .place = {.asking = &asking, .priority = priority & 15}};
	struct contender *k;

	if (!owner_is_in_the_way(s, owner))
		return false;
	q.queue = &x->engine->searched;
	TAILQ_INIT(q.queue);
	x->engine->search++;
	search_visit(&q, lock_contend(&x->engine->table, l), NULL);
	if (priority > 0)
		search_overtake(&q, l->contender);
	while ((k = TAILQ_FIRST(q.queue))) {
		TAILQ_REMOVE(q.queue, k, in_search);
		k->in_queue = false;
		if (!search_lock(&q, lock_of_contender(k), l))
			continue;
		*ret_cycle = search_tell(&q, l, lock_of_contender(k), cycle);
		lock_drop_if_unused(&x->engine->table, l);
		return true;
	}
	return false;
}

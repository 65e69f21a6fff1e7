/* SPDX-License-Identifier: BSD-2-Clause */
/* See local_circle.h. A walk goes into the depth, and looks at so many claims, requests and names at most. */
#include "daemon/core/deadlock/local_circle.h"

#include "daemon/core/engine/holders.h"
#include "daemon/core/reply/tell.h"
#include "daemon/core/session/group.h"
#include "daemon/core/session/rules.h"

#define LOOKS_MOST 1024
#define STEPS_MOST 64

struct walk {
	struct request_context *x;
	const struct session *s; /* the owner that asks */
	struct span owner;
	struct span name[STEPS_MOST]; /* what it asks for, what the holder of that waits for, … */
	unsigned steps;
	unsigned looks;
};

static bool walk_name(struct walk *w, struct span name);

static bool walk_may_look(struct walk *w)
{
	return w->looks++ < LOOKS_MOST;
}

static bool group_waits_for_all(const struct group *g, struct span owner)
{
	return !g->any && g->patient && !g->leaving && g->state != GROUP_CANCELLED && span_equal(group_owner(g), owner);
}

/* A reader need not wait for the readers that hold the name. */
static bool name_is_open(const struct walk *w, struct span name, bool shared, unsigned priority)
{
	const struct lock *l = shared ? lock_find(&w->x->engine->table, name) : NULL;

	return l && holders_are_open(w->x->engine, l, priority);
}

static bool walk_group(struct walk *w, struct group *g)
{
	for (unsigned i = 0; i < g->parts && walk_may_look(w); i++) {
		const struct part *p = &g->part[i];

		if (!part_is_had(w->x, g, p) && !name_is_open(w, part_name(p), g->shared, g->priority) && walk_name(w, part_name(p)))
			return true;
	}
	return false;
}

/* What this owner waits for leads back to the one that asks. */
static bool walk_owner(struct walk *w, struct session *s, struct span owner)
{
	struct claim *c;
	struct group *g;

	if (s->over || s->waiting == 0)
		return false;
	TAILQ_FOREACH(c, &s->claims, in_session) {
		if (!walk_may_look(w))
			return false;
		if (c->state == CLAIM_WAITING && c->patient && !c->ending && !c->leaving && span_equal(claim_owner(c), owner) &&
		    !lock_holder_of(c->lock, s, owner) && walk_name(w, lock_name(c->lock)))
			return true;
	}
	LIST_FOREACH(g, &s->groups, in_session) {
		if (!walk_may_look(w))
			return false;
		if (group_waits_for_all(g, owner) && walk_group(w, g))
			return true;
	}
	return false;
}

/* What a LOCKALL of the owner has got is not in the way of what the owner asks for besides. */
static bool walk_holder(struct walk *w, const struct claim *c)
{
	struct session *s = c->session->principal ? c->session->principal : c->session;

	if (c->ending)
		return false;
	if (s == w->s && span_equal(claim_owner(c), w->owner))
		return s == c->session || w->steps > 1;
	return walk_owner(w, s, claim_owner(c));
}

static bool walk_name(struct walk *w, struct span name)
{
	const struct lock *l = lock_find(&w->x->engine->table, name);

	if (!l || l->lease.limit > 0 || w->steps == STEPS_MOST)
		return false;
	w->name[w->steps++] = name;
	for (const struct claim *c = l->holder; c && walk_may_look(w); c = lock_next_holder(l, c))
		if (walk_holder(w, c))
			return true;
	w->steps--;
	return false;
}

static void local_circle_put(const struct walk *w, unsigned step, struct buf *out)
{
	struct span name = step == 0 || session_knows(w->x->core, w->s, w->name[step]) ? w->name[step] : SPAN("...");

	buf_append(out, name.p, name.n);
}

/* Once the rest does not fit, dots take the place of all but the last name. */
static void local_circle_write(const struct walk *w, struct buf *out)
{
	local_circle_put(w, 0, out);
	for (unsigned i = 1; i < w->steps; i++) {
		buf_append(out, "<-", 2);
		if (buf_length(out) + w->name[i].n + w->name[0].n + sizeof("<-...<-") > CIRCLE_MAX) {
			buf_append(out, "...", 3);
			break;
		}
		local_circle_put(w, i, out);
	}
	buf_append(out, "<-", 2);
	local_circle_put(w, 0, out);
}

bool local_circle_is_refused(struct request_context *x, struct session *s, const struct span *names, unsigned n)
{
	const struct request *q = &x->request;
	struct walk w = {.x = x, .s = s, .owner = request_owner(q)};
	bool closes = false;
	struct buf text = {0};

	for (unsigned i = 0; i < n && (s->held > 0 || !LIST_EMPTY(&s->groups)) && !closes; i++) {
		const struct lock *l = lock_find(&x->engine->table, names[i]);

		closes = l && !lock_holder_of(l, s, w.owner) && !name_is_open(&w, names[i], request_is_shared(q), request_priority(q)) &&
		         walk_name(&w, names[i]);
	}
	if (!closes)
		return false;
	local_circle_write(&w, &text);
	tell_cycle(x, s, q->tag, (struct span){buf_begin(&text), buf_length(&text)});
	buf_release(&text);
	return true;
}

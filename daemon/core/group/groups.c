/* SPDX-License-Identifier: BSD-2-Clause */
/* See groups.h. */
#include "daemon/core/group/groups.h"

#define GAINERS_A_STEP 2048 /* 1 for a name, 8 for a group that goes on */
#define GAINER_GROUP   8

void groups_gain(struct request_context *x, struct session *s)
{
	session_set_gains(x->sessions, s, true);
	request_context_again(x);
}

/* Its client has got what it asks for. */
static bool group_gains(const struct request_context *x, const struct group *g)
{
	for (unsigned i = 0; i < g->parts; i++) {
		const struct part *p = &g->part[i];
		const struct lock *l = p->claim ? p->claim->lock : p->seen;
		bool asked = p->claim ? p->claim->state != CLAIM_HELD : g->any;

		if (asked && l && lock_holder_of(l, g->session, group_owner(g)) && part_is_had(x, g, p))
			return true;
	}
	return false;
}

/* False: the step has no time for all of its groups. Those that go on are not found again. */
static bool session_gains(struct request_context *x, const struct session *s, int64_t *left)
{
	struct group *g;

	LIST_FOREACH(g, &s->groups, in_session) {
		if (g->due || !group_gains(x, g))
			continue;
		group_make_due(x, g);
		*left -= GAINER_GROUP;
		if (*left <= 0)
			return false;
	}
	*left -= 1 + s->waiting;
	return true;
}

void groups_again(struct request_context *x)
{
	int64_t left = core_portion(x->core, GAINERS_A_STEP);
	struct session *s;

	while (left > 0 && (s = TAILQ_FIRST(&x->sessions->gainers)))
		if (session_gains(x, s, &left))
			session_set_gains(x->sessions, s, false);
	if (!TAILQ_EMPTY(&x->sessions->gainers))
		request_context_again(x);
}

struct group *group_waiting(const struct session *s, struct span tag)
{
	struct group *g;

	LIST_FOREACH(g, &s->groups, in_session)
		if (span_equal(span_of(g->tag), tag))
			return g;
	return NULL;
}

static bool group_has_name(const struct group *g, struct span name)
{
	for (unsigned i = 0; i < g->parts; i++)
		if (span_equal(part_name(&g->part[i]), name))
			return true;
	return false;
}

struct group *group_in_other_mode(const struct session *s, struct span name, struct span owner, bool shared)
{
	struct group *g;

	LIST_FOREACH(g, &s->groups, in_session)
		if (!g->ending && g->shared != shared && span_equal(group_owner(g), owner) && group_has_name(g, name))
			return g;
	return NULL;
}

bool groups_give_up(struct session *s, struct span name, struct span owner)
{
	struct group *g;
	bool ending = false;

	LIST_FOREACH(g, &s->groups, in_session)
		if (g->not_notified && !g->ending && span_equal(group_owner(g), owner) && group_has_name(g, name)) {
			group_is_ending(g);
			ending = true;
		}
	return ending;
}

bool groups_wait(const struct session *s, bool patient)
{
	const struct group *g;

	LIST_FOREACH(g, &s->groups, in_session)
		if (!g->not_notified && g->patient == patient)
			return true;
	return false;
}

unsigned groups_patient(const struct session *s)
{
	const struct group *g;
	unsigned n = 0;

	LIST_FOREACH(g, &s->groups, in_session)
		n += g->patient;
	return n;
}

/* --- the connection --- */

void groups_detach(struct request_context *x, struct session *s)
{
	struct group *g;

	LIST_FOREACH(g, &s->groups, in_session) {
		g->tag[0] = '\0';
		g->not_notified = true;
		g->leaving = false;
		heap_cancel(&x->core->timers, &g->lapse);
	}
}

void groups_take_over(struct session *to, struct session *from)
{
	struct group *g;

	while ((g = LIST_FIRST(&from->groups))) {
		LIST_REMOVE(g, in_session);
		LIST_INSERT_HEAD(&to->groups, g, in_session);
		g->session = g->agent.principal = to;
		g->agent.serial = from->serial;
	}
}

void groups_bound(struct request_context *x, struct session *s, struct instant until)
{
	struct group *g;

	LIST_FOREACH(g, &s->groups, in_session)
		if (g->not_notified)
			heap_set(&x->core->timers, &g->lapse, until);
}

/* --- the end --- */

void groups_are_ending(struct session *s)
{
	struct group *g;

	LIST_FOREACH(g, &s->groups, in_session)
		group_is_ending(g);
}

void groups_end(struct request_context *x, struct session *s, bool waiting)
{
	struct group *g, *next;

	for (g = LIST_FIRST(&s->groups); g; g = next) {
		next = LIST_NEXT(g, in_session);
		if (!g->ending)
			continue;
		if (waiting)
			group_leave_queues(x, g);
		else
			group_free(x, g);
	}
}

static void groups_release(struct request_context *x, struct session *s)
{
	while (s && !LIST_EMPTY(&s->groups))
		group_release(x, LIST_FIRST(&s->groups));
}

void groups_free_all(struct request_context *x)
{
	struct session *s;

	for (uint32_t i = 0; i < x->sessions->slots; i++)
		groups_release(x, x->sessions->slot[i]);
	TAILQ_FOREACH(s, &x->sessions->detached, lasting->in_detached)
		groups_release(x, s);
}

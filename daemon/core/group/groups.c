/* SPDX-License-Identifier: BSD-2-Clause */
/* See groups.h. */
#include "daemon/core/group/groups.h"

void groups_make_due(struct request_context *x, struct session *s)
{
	struct group *g;

	LIST_FOREACH(g, &s->groups, in_session)
		group_make_due(x, g);
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

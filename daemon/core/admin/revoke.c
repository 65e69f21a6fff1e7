/* SPDX-License-Identifier: BSD-2-Clause */
/* See revoke.h. */
#include "daemon/core/admin/revoke.h"

#include "daemon/core/engine/convert.h"
#include "daemon/core/engine/wait.h"
#include "daemon/core/job/take.h"
#include "daemon/core/rate/rate_turns.h"
#include "daemon/core/semaphore/permits.h"
#include "daemon/core/session/group.h"
#include "daemon/core/session/rules.h"

/* So many requests are refused in a step, and beyond one session so many looked at for each. */
#define REVOKED_A_STEP  768
#define LOOKS_A_REFUSAL 4

static bool revoke_claims(struct request_context *x, struct session *s, int64_t *left, int64_t *looks)
{
	struct claim *c, *next;
	unsigned line;

	for (c = TAILQ_FIRST(&s->claims); c; c = next) {
		next = TAILQ_NEXT(c, in_session);
		if (c->state != CLAIM_WAITING)
			continue;
		(*looks)++;
		if (session_may_lock(x->core, s, lock_name(c->lock), &line))
			continue;
		if ((*left)-- <= 0)
			return false;
		wait_withdraw(x->engine, c, REFUSED_DENIED);
	}
	return true;
}

/* Readers behind a writer: once nobody waits any more who may not. */
static void look_behind_denied(struct request_context *x)
{
	const struct notices *n = &x->engine->notices;

	for (size_t i = 0; i < n->count; i++)
		if (n->item[i].kind == NOTICE_REFUSED && n->item[i].refusal == REFUSED_DENIED)
			convert_look(x->engine, n->item[i].claim->lock);
}

static bool group_may_lock(const struct request_context *x, const struct group *g)
{
	unsigned line;

	for (unsigned i = 0; i < g->parts; i++)
		if (!session_may_lock(x->core, g->session, part_name(&g->part[i]), &line))
			return false;
	return true;
}

/* Groups and permits are answered before the step ends. They give back what they have of it. */
static bool revoke_gathering(struct request_context *x, struct session *s, int64_t *left, int64_t *looks)
{
	struct group *g;
	struct permit *p;
	unsigned line;

	LIST_FOREACH(g, &s->groups, in_session) {
		*looks += g->parts;
		if (g->take || g->state == GROUP_CANCELLED || group_may_lock(x, g))
			continue;
		if (*left <= 0)
			return false;
		*left -= g->parts;
		g->denied = true;
		group_cancel(x, g);
	}
	TAILQ_FOREACH(p, &s->permits, in_session) {
		(*looks)++;
		if (p->state == PERMIT_HELD || p->state == PERMIT_LOST || p->state == PERMIT_CANCELLED ||
		    session_may_lock(x->core, s, semaphore_name(p->semaphore), &line))
			continue;
		if (*left <= 0)
			return false;
		*left -= 1 + p->asked_n / LOOKS_A_REFUSAL;
		p->denied = true;
		permit_cancel(x, p);
	}
	return true;
}

/* False: some of the session's requests are not judged. */
static bool revoke_of(struct session *s, void *context)
{
	struct walk_step *r = context;
	struct request_context *x = r->x;
	int64_t looks = 1;

	if (s->over || s->judged == x->revoke.rules)
		return true;
	if (r->left <= 0)
		return false;
	if (!takes_revoke(x, s, &r->left) || !rate_turns_revoke(x, s, &r->left) || !revoke_claims(x, s, &r->left, &looks) ||
	    !revoke_gathering(x, s, &r->left, &looks))
		return false;
	r->left -= looks / LOOKS_A_REFUSAL;
	s->judged = x->revoke.rules;
	return true;
}

void revoke_again(struct request_context *x)
{
	struct walk_step r = {x, core_portion(x->core, REVOKED_A_STEP)};

	x->revoke.more = !session_table_walk(x->sessions, &x->revoke.walk, core_portion(x->core, SESSIONS_A_STEP), revoke_of, &r);
	look_behind_denied(x);
	if (x->revoke.more)
		request_context_again(x);
}

void revoke_waiting(struct request_context *x)
{
	x->revoke.rules++;
	x->revoke.walk = (struct session_walk){0};
	revoke_again(x);
}

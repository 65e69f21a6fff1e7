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

static void revoke_claims(struct request_context *x, struct session *s)
{
	struct claim *c, *next;
	unsigned line;

	for (c = TAILQ_FIRST(&s->claims); c; c = next) {
		next = TAILQ_NEXT(c, in_session);
		if (c->state == CLAIM_WAITING && !session_may_lock(x->core, s, lock_name(c->lock), &line))
			wait_withdraw(x->engine, c, REFUSED_DENIED);
	}
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
static void revoke_of(struct request_context *x, struct session *s)
{
	struct group *g;
	struct permit *p;
	unsigned line;

	takes_revoke(x, s);
	rate_turns_revoke(x, s);
	revoke_claims(x, s);
	LIST_FOREACH(g, &s->groups, in_session) {
		if (g->take || group_may_lock(x, g))
			continue;
		g->denied = true;
		group_cancel(x, g);
	}
	TAILQ_FOREACH(p, &s->permits, in_session) {
		if (p->state == PERMIT_HELD || p->state == PERMIT_LOST || session_may_lock(x->core, s, semaphore_name(p->semaphore), &line))
			continue;
		p->denied = true;
		permit_cancel(x, p);
	}
}

void revoke_waiting(struct request_context *x)
{
	struct session_table *t = x->sessions;
	struct session *s;

	if (!x->core->conf.rules)
		return;
	for (uint32_t i = 0; i < t->slots; i++)
		if (t->slot[i] && !t->slot[i]->over)
			revoke_of(x, t->slot[i]);
	TAILQ_FOREACH(s, &t->detached, lasting->in_detached)
		revoke_of(x, s);
	look_behind_denied(x);
}

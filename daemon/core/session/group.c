/* SPDX-License-Identifier: BSD-2-Clause */
/* See group.h. */
#include "daemon/core/session/group.h"

#include "daemon/base/mem.h"
#include "daemon/core/engine/asking.h"
#include "daemon/core/engine/engine.h"
#include "daemon/core/engine/holding.h"
#include "daemon/core/event/core.h"

void inner_session_init(struct session *agent, struct session *principal)
{
	agent->principal = principal;
	agent->over = agent->detached = true;
	agent->serial = principal->serial;
	TAILQ_INIT(&agent->claims);
	TAILQ_INIT(&agent->permits);
	TAILQ_INIT(&agent->pendings);
	TAILQ_INIT(&agent->listings);
}

struct claim *inner_session_claim(struct engine *e, struct session *agent, struct span owner, struct remark remark, struct instant asked_at)
{
	struct claim *c = claim_new(&e->table);

	c->session = agent;
	c->let_in = true;
	c->origin = agent->principal->origin;
	claim_set_texts(c, owner, remark);
	claim_begin_asking(&e->table, c);
	c->asking->asked_at = asked_at;
	TAILQ_INSERT_TAIL(&agent->claims, c, in_session);
	return c;
}

void inner_session_set_terms(struct session *agent, bool renew, int64_t ttl_us, int64_t delay_us, struct remark remark)
{
	struct claim *c;

	TAILQ_FOREACH(c, &agent->claims, in_session) {
		if (c->state != CLAIM_WAITING)
			continue;
		c->renew = renew;
		c->ttl_us = ttl_us;
		c->delay_us = delay_us;
		claim_set_remark(c, remark);
	}
}

void inner_session_drop(struct engine *e, struct claim *c)
{
	TAILQ_REMOVE(&c->session->claims, c, in_session);
	if (c->state == CLAIM_HELD)
		hold_unlock(e, c, 0, NULL);
	else if (c->state == CLAIM_LOST)
		hold_acknowledge(e, c, &c->session->claims);
	else
		hold_abandon(e, c, INSTANT_PAST);
}

static char *text_copy(struct span text)
{
	return text.n > 0 ? mem_copy(text.p, text.n) : NULL;
}

/* Sets the terms of the leases. */
static void group_set_lease(struct request_context *x, struct group *g)
{
	const struct request *q = &x->request;

	g->renew = request_is_renewed(q);
	g->ttl_us = request_has(q, FIELD_TTL) ? q->field[FIELD_TTL].number : x->core->conf.lease_us;
	g->delay_us = request_has(q, FIELD_DELAY) ? q->field[FIELD_DELAY].number : 0;
	g->count = request_count(q);
}

static void group_set_terms(struct request_context *x, struct group *g)
{
	const struct request *q = &x->request;
	int64_t wait = request_has(q, FIELD_WAIT) ? q->field[FIELD_WAIT].number : 0;

	group_set_lease(x, g);
	g->any = q->verb == VERB_LOCKANY;
	g->shared = request_is_shared(q);
	g->priority = request_priority(q);
	g->patient = wait > 0;
	g->asked_at = x->core->asked_at;
	g->wait_until = wait == WAIT_FOREVER ? INSTANT_NEVER : instant_add(g->asked_at, wait);
}

/* Creates a group without terms, which is not due. */
static struct group *group_begin(struct session *s, const struct span *name, unsigned names, struct span owner, struct remark remark)
{
	struct group *g = mem_alloc(sizeof(*g));

	g->session = s;
	inner_session_init(&g->agent, s);
	g->lapse.kind = TIMER_LAPSE;
	g->owner = text_copy(owner);
	g->owner_n = owner.n;
	kept_remark_set(&g->remark, remark);
	g->parts = names;
	g->part = mem_alloc(g->parts * sizeof(*g->part));
	for (unsigned i = 0; i < g->parts; i++) {
		g->part[i].name = text_copy(name[i]);
		g->part[i].n = name[i].n;
	}
	LIST_INSERT_HEAD(&s->groups, g, in_session);
	s->waiting += g->parts;
	g->origin = s->origin;
	origin_crowd(g->origin, g->parts);
	return g;
}

struct group *group_new(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;
	struct group *g = group_begin(s, q->word, q->words, request_owner(q), request_remark(q));

	request_keep_tag(q, g->tag);
	group_set_terms(x, g);
	group_make_due(x, g);
	return g;
}

struct group *group_new_of_take(struct request_context *x, struct session *s, struct take *take, struct span name, struct span owner, int64_t ttl_us)
{
	struct group *g = group_begin(s, &name, 1, owner, remark_of(NULL, 0, false));

	g->take = take;
	g->renew = true;
	g->ttl_us = ttl_us;
	g->asked_at = g->wait_until = x->core->now;
	group_make_due(x, g);
	return g;
}

void group_make_due(struct request_context *x, struct group *g)
{
	if (g->due)
		return;
	g->due = true;
	x->due++;
	TAILQ_INSERT_TAIL(&x->groups_due, g, in_due);
}

void group_cancel(struct request_context *x, struct group *g)
{
	g->state = GROUP_CANCELLED;
	group_make_due(x, g);
}

/* --- parts --- */

struct claim *group_own(const struct request_context *x, const struct group *g, const struct part *p)
{
	struct lock *l = lock_find(&x->engine->table, part_name(p));

	return l ? lock_holder_of(l, g->session, group_owner(g)) : NULL;
}

bool part_is_had(const struct request_context *x, const struct group *g, const struct part *p)
{
	struct claim *c = group_own(x, g, p);

	if (!c || c->shared != g->shared)
		c = p->claim && p->claim->state == CLAIM_HELD ? p->claim : NULL;
	return c && c->lock->lease.state == LEASE_HELD && !lock_is_over(&x->engine->table, c->lock);
}

static void part_forget_refusal(struct request_context *x, struct part *p)
{
	if (!p->seen)
		return;
	p->seen->name.refs--;
	lock_drop_if_unused(&x->engine->table, p->seen);
	p->seen = NULL;
}

void part_ask(struct request_context *x, struct group *g, struct part *p, bool patient)
{
	struct claim *c = inner_session_claim(x->engine, &g->agent, group_owner(g), kept_remark(&g->remark), x->core->asked_at);

	p->claim = c;
	p->why = NOT_REFUSED;
	part_forget_refusal(x, p);
	c->renew = g->renew;
	c->ttl_us = g->ttl_us;
	c->delay_us = g->delay_us;
	c->shared = g->shared;
	c->priority = g->priority & 15;
	c->asking->order = ++x->engine->asked;
	c->asking->others = g->any ? (uint8_t)(g->parts - 1) : 0;
	c->patient = patient;
	lock_request_ask(x->engine, c, part_name(p), patient ? g->wait_until : x->core->now);
}

void part_drop(struct request_context *x, struct part *p)
{
	struct claim *c = p->claim;

	if (!c)
		return;
	p->claim = NULL;
	inner_session_drop(x->engine, c);
}

/* First the waiting parts leave their queues: what is given back must not be granted to a group that is leaving. */
static void group_drop_part_of(struct request_context *x, struct group *g, bool waiting, const struct part *but)
{
	for (unsigned i = 0; i < g->parts; i++) {
		struct part *p = &g->part[i];

		if (p != but && p->claim && (p->claim->state == CLAIM_WAITING) == waiting)
			part_drop(x, p);
	}
}

void group_drop_parts(struct request_context *x, struct group *g, const struct part *but)
{
	group_drop_part_of(x, g, true, but);
	group_drop_part_of(x, g, false, but);
}

void group_leave_queues(struct request_context *x, struct group *g)
{
	group_drop_part_of(x, g, true, NULL);
}

static struct part *part_of(struct group *g, const struct claim *c)
{
	struct part *p = g->part;

	while (p->claim != c)
		p++;
	return p;
}

bool group_note(struct request_context *x, const struct notice *n)
{
	struct group *g = group_of(n->claim);
	struct part *p;

	switch (n->kind) {
	case NOTICE_GRANTED:
		claim_end_asking(&x->engine->table, n->claim);
		break;
	case NOTICE_REFUSED:
		p = part_of(g, n->claim);
		p->claim = NULL;
		p->why = n->refusal;
		p->seen = n->claim->lock;
		p->seen->name.refs++;
		TAILQ_REMOVE(&g->agent.claims, n->claim, in_session);
		break;
	case NOTICE_LOST:
		break; /* the claim itself records that */
	case NOTICE_WAITING:
	case NOTICE_WANTED:
		return false;
	default:
		return true;
	}
	group_make_due(x, g);
	return true;
}

/* --- the request repeated --- */

/* The rows of the answer have the order of the present request. */
static void group_reorder(struct group *g, const struct request *q)
{
	for (unsigned i = 0; i < g->parts; i++) {
		unsigned k = i;
		struct part p;

		while (!span_equal(part_name(&g->part[k]), q->word[i]))
			k++;
		p = g->part[k];
		g->part[k] = g->part[i];
		g->part[i] = p;
	}
	for (unsigned i = 0; i < g->parts && g->state == GROUP_WAITING; i++)
		if (g->part[i].claim)
			g->next = i;
}

void group_repeat(struct request_context *x, struct group *g)
{
	const struct request *q = &x->request;
	int64_t wait = q->field[FIELD_WAIT].number, ttl_us = g->ttl_us, delay_us = g->delay_us;

	g->not_notified = false;
	heap_cancel(&x->core->timers, &g->lapse);
	if (!g->any)
		group_reorder(g, q);
	request_keep_tag(q, g->tag);
	group_set_lease(x, g);
	kept_remark_set(&g->remark, request_remark(q));
	if (g->ttl_us != ttl_us || g->delay_us != delay_us)
		group_drop_part_of(x, g, false, NULL); /* it asks for these names anew */
	inner_session_set_terms(&g->agent, g->renew, g->ttl_us, g->delay_us, request_remark(q));
	g->wait_until = wait == WAIT_FOREVER ? INSTANT_NEVER : instant_add(x->core->now, wait);
	for (unsigned i = 0; i < g->parts; i++)
		if (g->part[i].claim && g->part[i].claim->state == CLAIM_WAITING && g->part[i].claim->patient)
			wait_set_end(x->engine, g->part[i].claim, g->wait_until);
	group_make_due(x, g);
}

/* --- the end --- */

void group_release(struct request_context *x, struct group *g)
{
	heap_cancel(&x->core->timers, &g->lapse);
	origin_thin(g->origin, g->parts);
	alarms_forget(x->core, &g->agent);
	LIST_REMOVE(g, in_session);
	for (unsigned i = 0; i < g->parts; i++)
		mem_free(g->part[i].name);
	mem_free(g->part);
	mem_free(g->owner);
	kept_remark_release(&g->remark);
	mem_free(g);
}

void group_free(struct request_context *x, struct group *g)
{
	group_drop_parts(x, g, NULL);
	if (g->due) {
		TAILQ_REMOVE(&x->groups_due, g, in_due);
		x->due--;
	}
	g->session->waiting -= g->parts;
	for (unsigned i = 0; i < g->parts; i++)
		part_forget_refusal(x, &g->part[i]);
	group_release(x, g);
}

void group_is_ending(struct group *g)
{
	struct claim *c;

	g->ending = true;
	TAILQ_FOREACH(c, &g->agent.claims, in_session)
		c->ending = true;
}

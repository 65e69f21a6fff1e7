/* SPDX-License-Identifier: BSD-2-Clause */
/* See group.h. */
#include "daemon/core/session/group.h"

#include "daemon/base/mem.h"
#include "daemon/core/engine/asking.h"
#include "daemon/core/engine/engine.h"
#include "daemon/core/session/semaphore.h"

/* Its bid is open. */
static void group_begin(struct request_context *x, struct group *g, const struct span *name, unsigned names)
{
	inner_session_init(&g->agent, &g->bid);
	g->parts = names;
	g->part = mem_alloc(g->parts * sizeof(*g->part));
	for (unsigned i = 0; i < g->parts; i++)
		g->part[i].name = mem_span(name[i]);
	bid_set_due(x, &g->bid, DUE_NOW);
}

/* Sets the terms of the leases. */
static void group_set_lease(struct group *g, const struct request *q)
{
	g->renew = request_is_renewed(q);
	g->delay_us = request_has(q, FIELD_DELAY) ? q->field[FIELD_DELAY].number : 0;
}

struct group *group_new(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;
	struct group *g = mem_alloc(sizeof(*g));

	bid_open_request(x, &g->bid, BID_GROUP, s, q->words);
	group_set_lease(g, q);
	g->any = q->verb == VERB_LOCKANY;
	g->shared = request_is_shared(q);
	group_begin(x, g, q->word, q->words);
	return g;
}

struct group *group_new_of_take(struct request_context *x, struct session *s, struct take *take, struct span name, struct span owner, int64_t ttl_us)
{
	struct group *g = mem_alloc(sizeof(*g));

	bid_open(&g->bid, BID_GROUP, s, 1, owner, remark_of(NULL, 0, false));
	g->take = take;
	g->renew = true;
	g->bid.ttl_us = ttl_us;
	g->bid.asked_at = g->bid.wait_until = x->core->now;
	group_begin(x, g, &name, 1);
	return g;
}

/* --- parts --- */

struct claim *group_own(const struct request_context *x, const struct group *g, const struct part *p)
{
	struct lock *l = lock_find(&x->engine->table, p->name);

	return l ? lock_holder_of(l, g->bid.session, g->bid.owner) : NULL;
}

bool part_is_had(const struct request_context *x, const struct group *g, const struct part *p)
{
	const struct claim *c = group_own(x, g, p);

	return inner_session_has(x->engine, c && c->shared == g->shared ? c : p->claim);
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
	struct claim *c = inner_session_claim(x->engine, &g->bid, x->core->asked_at);

	p->claim = c;
	p->why = NOT_REFUSED;
	part_forget_refusal(x, p);
	c->renew = g->renew;
	c->delay_us = g->delay_us;
	c->shared = g->shared;
	c->asking->order = ++x->engine->asked;
	c->asking->others = g->any ? (uint8_t)(g->parts - 1) : 0;
	c->patient = patient;
	lock_request_ask(x->engine, c, p->name, patient ? g->bid.wait_until : x->core->now);
}

/* First the waiting parts leave their queues: what is given back must not be granted to a group that is leaving. */
static void group_drop_part_of(struct request_context *x, struct group *g, bool waiting, const struct part *but)
{
	for (unsigned i = 0; i < g->parts; i++) {
		struct part *p = &g->part[i];

		if (p != but && p->claim && (p->claim->state == CLAIM_WAITING) == waiting)
			inner_session_drop(x->engine, &p->claim);
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

bool group_on_notice(struct request_context *x, const struct notice *n)
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
	bid_set_due(x, &g->bid, DUE_NOW);
	return true;
}

/* --- the request repeated --- */

/* The rows of the answer have the order of the present request. */
static void group_reorder(struct group *g, const struct request *q)
{
	for (unsigned i = 0; i < g->parts; i++) {
		unsigned k = i;
		struct part p;

		while (!span_equal(g->part[k].name, q->word[i]))
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
	int64_t ttl_us = g->bid.ttl_us, delay_us = g->delay_us;

	if (!g->any)
		group_reorder(g, q);
	bid_repeat(x, &g->bid);
	group_set_lease(g, q);
	if (g->bid.ttl_us != ttl_us || g->delay_us != delay_us)
		group_drop_part_of(x, g, false, NULL); /* it asks for these names anew */
	inner_session_set_terms(&g->bid, g->renew, g->delay_us);
	for (unsigned i = 0; i < g->parts; i++)
		if (g->part[i].claim && g->part[i].claim->state == CLAIM_WAITING && g->part[i].claim->patient)
			wait_set_end(x->engine, g->part[i].claim, g->bid.wait_until);
	bid_set_due(x, &g->bid, DUE_NOW);
}

/* --- the end --- */

void group_release(struct request_context *x, struct group *g)
{
	bid_answered(&g->bid, g->parts);
	alarms_forget(x->core, &g->agent);
	bid_close(x, &g->bid);
	for (unsigned i = 0; i < g->parts; i++)
		mem_span_free(&g->part[i].name);
	mem_free(g->part);
	mem_free(g);
}

void group_free(struct request_context *x, struct group *g)
{
	group_drop_parts(x, g, NULL);
	for (unsigned i = 0; i < g->parts; i++)
		part_forget_refusal(x, &g->part[i]);
	group_release(x, g);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* See bid.h. */
#include "daemon/core/session/bid.h"

#include "daemon/base/mem.h"
#include "daemon/core/engine/asking.h"
#include "daemon/core/engine/holding.h"
#include "daemon/core/event/core.h"

/* Permits are in the order of their requests, all others in the opposite order. */
static void bid_join(struct bid *b, struct session *s)
{
	b->session = s;
	if (b->kind == BID_PERMIT)
		TAILQ_INSERT_TAIL(&s->bids[b->kind], b, in_session);
	else
		TAILQ_INSERT_HEAD(&s->bids[b->kind], b, in_session);
}

void bid_open(struct bid *b, enum bid_kind kind, struct session *s, unsigned names, struct span owner, struct remark remark)
{
	static const enum timer_kind timer[] = {[BID_TAKE] = TIMER_TAKE, [BID_GROUP] = TIMER_LAPSE, [BID_PERMIT] = TIMER_PERMIT};

	b->kind = kind;
	b->timer.kind = timer[kind];
	b->owner = mem_span(owner);
	kept_remark_set(&b->remark, remark);
	bid_join(b, s);
	s->waiting += names;
	b->origin = s->origin;
	origin_crowd(b->origin, names);
}

static void bid_set_terms(struct request_context *x, struct bid *b, struct instant from)
{
	const struct request *q = &x->request;
	int64_t wait = request_has(q, FIELD_WAIT) ? q->field[FIELD_WAIT].number : 0;

	request_keep_tag(q, b->tag);
	b->ttl_us = request_has(q, FIELD_TTL) ? q->field[FIELD_TTL].number : x->core->conf.lease_us;
	b->count = request_count(q);
	b->patient |= wait > 0;
	b->wait_until = wait == WAIT_FOREVER ? INSTANT_NEVER : instant_add(from, wait);
	b->session->busy |= q->tag.n == 0;
}

void bid_open_request(struct request_context *x, struct bid *b, enum bid_kind kind, struct session *s, unsigned names)
{
	const struct request *q = &x->request;

	bid_open(b, kind, s, names, request_owner(q), request_remark(q));
	b->asked_at = x->core->asked_at;
	b->priority = request_priority(q);
	bid_set_terms(x, b, b->asked_at);
}

void bid_repeat(struct request_context *x, struct bid *b)
{
	b->not_notified = false;
	heap_cancel(&x->core->timers, &b->timer);
	kept_remark_set(&b->remark, request_remark(&x->request));
	bid_set_terms(x, b, x->core->now);
}

void bid_answered(struct bid *b, unsigned names)
{
	b->session->waiting -= names;
	origin_thin(b->origin, names);
	b->origin = NULL;
	b->answered = true;
}

void bid_close(struct request_context *x, struct bid *b)
{
	heap_cancel(&x->core->timers, &b->timer);
	bid_set_due(x, b, DUE_NOT);
	TAILQ_REMOVE(&b->session->bids[b->kind], b, in_session);
	mem_span_free(&b->owner);
	kept_remark_release(&b->remark);
}

void bid_set_due(struct request_context *x, struct bid *b, enum bid_due due)
{
	struct bids *const list[] = {[DUE_NOW] = &x->bids_due[b->kind], [DUE_LATER] = &x->bids_later};

	if (b->due == due)
		return;
	if (b->due != DUE_NOT)
		TAILQ_REMOVE(list[b->due], b, in_due);
	if (due != DUE_NOT)
		TAILQ_INSERT_TAIL(list[due], b, in_due);
	x->due += due == DUE_NOW;
	x->due -= b->due == DUE_NOW;
	b->due = due;
}

void bid_withdraw(struct request_context *x, struct bid *b)
{
	b->withdrawn = true;
	bid_set_due(x, b, DUE_NOW);
}

void bid_is_ending(struct bid *b)
{
	struct claim *c;

	b->ending = true;
	TAILQ_FOREACH(c, &b->agent->claims, in_session)
		c->ending = true;
}

static struct bid *bid_first_of(const struct session *s, unsigned kind)
{
	while (kind < BID_KINDS && TAILQ_EMPTY(&s->bids[kind]))
		kind++;
	return kind < BID_KINDS ? TAILQ_FIRST(&s->bids[kind]) : NULL;
}

struct bid *bid_first(const struct session *s)
{
	return bid_first_of(s, 0);
}

struct bid *bid_next(const struct bid *b)
{
	struct bid *next = TAILQ_NEXT(b, in_session);

	return next ? next : bid_first_of(b->session, b->kind + 1);
}

struct bid *bid_waiting(const struct session *s, struct span tag)
{
	struct bid *b;

	for (b = bid_first(s); b; b = bid_next(b))
		if (!b->answered && span_equal(span_of(b->tag), tag))
			break;
	return b;
}

bool bids_wait(const struct session *s, bool patient)
{
	for (const struct bid *b = bid_first(s); b; b = bid_next(b))
		if (!b->answered && !b->not_notified && b->patient == patient)
			return true;
	return false;
}

unsigned bids_patient(const struct session *s)
{
	unsigned n = 0;

	for (const struct bid *b = bid_first(s); b; b = bid_next(b))
		n += b->kind != BID_TAKE && !b->answered && b->patient;
	return n;
}

void bid_detach(struct bid *b)
{
	b->tag[0] = '\0';
	b->leaving = false;
	b->not_notified |= !b->answered;
}

void bids_take_over(struct session *to, struct session *from)
{
	struct bid *b;

	to->slots += from->slots;
	from->slots = 0;
	while ((b = bid_first(from))) {
		TAILQ_REMOVE(&from->bids[b->kind], b, in_session);
		bid_join(b, to);
		b->agent->principal = to;
		b->agent->serial = from->serial;
		if (!from->origin)
			session_count_claims(b->agent, to->origin);
	}
}

/* --- agents --- */

void inner_session_init(struct session *agent, struct bid *b)
{
	b->agent = agent;
	agent->principal = b->session;
	agent->over = agent->detached = true;
	agent->serial = b->session->serial;
	TAILQ_INIT(&agent->claims);
	TAILQ_INIT(&agent->pendings);
	TAILQ_INIT(&agent->listings);
	for (unsigned i = 0; i < BID_KINDS; i++)
		TAILQ_INIT(&agent->bids[i]);
}

struct claim *inner_session_claim(struct engine *e, const struct bid *b, struct instant asked_at)
{
	struct claim *c = claim_new(&e->table);

	c->session = b->agent;
	c->let_in = true;
	c->origin = b->session->origin;
	c->ttl_us = b->ttl_us;
	c->priority = b->priority & 15;
	claim_set_texts(c, b->owner, kept_remark(&b->remark));
	claim_begin_asking(&e->table, c);
	c->asking->asked_at = asked_at;
	TAILQ_INSERT_TAIL(&b->agent->claims, c, in_session);
	return c;
}

void inner_session_set_terms(const struct bid *b, bool renew, int64_t delay_us)
{
	struct claim *c;

	TAILQ_FOREACH(c, &b->agent->claims, in_session) {
		if (c->state != CLAIM_WAITING)
			continue;
		c->renew = renew;
		c->ttl_us = b->ttl_us;
		c->delay_us = delay_us;
		claim_set_remark(c, kept_remark(&b->remark));
	}
}

bool inner_session_has(const struct engine *e, const struct claim *c)
{
	return c && c->state == CLAIM_HELD && c->lock->lease.state == LEASE_HELD && !lock_is_over(&e->table, c->lock);
}

void inner_session_drop(struct engine *e, struct claim **claim)
{
	struct claim *c = *claim;

	*claim = NULL;
	if (!c)
		return;
	TAILQ_REMOVE(&c->session->claims, c, in_session);
	if (c->state == CLAIM_HELD)
		hold_unlock(e, c, 0, NULL);
	else if (c->state == CLAIM_LOST)
		hold_acknowledge(e, c, &c->session->claims);
	else
		hold_abandon(e, c, INSTANT_PAST);
}

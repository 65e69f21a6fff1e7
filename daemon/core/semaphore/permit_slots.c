/* SPDX-License-Identifier: BSD-2-Clause */
/* See permit_slots.h. The names of slots begin with bytes that the stores know: daemon/redis/batch.c gives them keys of their own. */
#include "daemon/core/semaphore/permit_slots.h"

#include "daemon/base/mem.h"
#include "daemon/core/engine/lock_request.h"
#include "daemon/core/engine/hold.h"
#include "daemon/core/event/alarms.h"
#include "daemon/core/session/inner_session.h"
#include "proto/decimal.h"


static struct span slot_name(struct permit *p, char out[SLOT_NAME_MAX], unsigned slot)
{
	struct span name = semaphore_name(p->semaphore);
	char digits[DECIMAL_MAX], *end = digits + sizeof(digits), *number = decimal_write(end, slot), *at = out + sizeof(SLOT_PREFIX) - 1;

	_Static_assert(SLOT_NAME_MAX >= sizeof(SLOT_PREFIX) - 1 + NAME_MAX_BYTES + 1 + 4, "there is room for the longest name");

	memcpy(out, SLOT_PREFIX, sizeof(SLOT_PREFIX) - 1);
	memcpy(at, name.p, name.n);
	at += name.n;
	*at++ = '#';
	memcpy(at, number, (size_t)(end - number));
	return (struct span){out, (size_t)(at - out) + (size_t)(end - number)};
}

static void seat_ask(struct request_context *x, struct permit *p, struct seat *seat, struct span name, unsigned limit, bool patient)
{
	struct claim *c = inner_session_claim(x->engine, &p->agent, permit_owner(p), kept_remark(&p->remark), p->asked_at);

	seat->claim = c;
	seat->why = NOT_REFUSED;
	c->asking->order = p->order;
	c->renew = true;
	c->ttl_us = p->ttl_us;
	c->limit = (uint16_t)limit;
	c->shared = limit != SLOT_OF_SEMAPHORE;
	c->priority = p->priority & 15;
	c->patient = patient;
	/* The end of the wait is the permit's. */
	lock_request_ask(x->engine, c, name, patient ? INSTANT_NEVER : x->core->now);
}

void permit_ask_mark(struct request_context *x, struct permit *p, bool patient)
{
	seat_ask(x, p, &p->mark, semaphore_name(p->semaphore), p->semaphore->limit, patient);
}

void permit_ask_again(struct request_context *x, struct permit *p, struct seat *seat, bool patient)
{
	char out[SLOT_NAME_MAX];

	seat_ask(x, p, seat, slot_name(p, out, seat->slot), SLOT_OF_SEMAPHORE, patient);
}

void permit_ask_slot(struct request_context *x, struct permit *p, unsigned slot, bool patient)
{
	if (p->asked_n == p->cap) {
		p->cap = p->cap ? 2 * p->cap : 4;
		p->asked = mem_grow(p->asked, p->cap, sizeof(*p->asked));
	}
	p->asked[p->asked_n] = (struct seat){.slot = (uint16_t)slot};
	p->semaphore->used[slot] = (uint8_t)(p->semaphore->used[slot] + (p->state == PERMIT_TRYING));
	permit_ask_again(x, p, &p->asked[p->asked_n++], patient);
}

bool seat_is_asked(const struct seat *seat)
{
	return seat->claim && seat->claim->state != CLAIM_HELD && seat->claim->state != CLAIM_LOST;
}

bool seat_is_had(const struct request_context *x, const struct seat *seat)
{
	const struct claim *c = seat->claim;

	return c && c->state == CLAIM_HELD && c->lock->lease.state == LEASE_HELD && !lock_is_over(&x->engine->table, c->lock);
}

void seat_drop(struct request_context *x, struct seat *seat)
{
	struct claim *c = seat->claim;

	if (!c)
		return;
	seat->claim = NULL;
	inner_session_drop(x->engine, c);
}

static void seat_drop_asked(struct request_context *x, struct seat *seat)
{
	if (seat_is_asked(seat))
		seat_drop(x, seat);
}

static void slots_drop_asked(struct request_context *x, struct permit *p)
{
	for (unsigned i = 0; i < p->asked_n; i++)
		seat_drop_asked(x, &p->asked[i]);
}

void permit_drop_asked(struct request_context *x, struct permit *p)
{
	slots_drop_asked(x, p);
	seat_drop_asked(x, &p->mark);
}

/* Its own slot, or one that it got while it asked. */
static void slot_drop(struct request_context *x, struct permit *p, struct seat *seat)
{
	if (seat->claim)
		p->semaphore->next = seat->slot;
	seat_drop(x, seat);
}

/* First those that wait: what is given back must not be granted to a permit that is about to leave. */
static void slots_drop(struct request_context *x, struct permit *p)
{
	slots_drop_asked(x, p);
	for (unsigned i = 0; i < p->asked_n; i++) {
		if (p->state == PERMIT_TRYING)
			p->semaphore->used[p->asked[i].slot]--;
		slot_drop(x, p, &p->asked[i]);
	}
	mem_free(p->asked);
	p->asked = NULL;
	p->asked_n = p->cap = 0;
}

void permit_keep_slot(struct request_context *x, struct permit *p)
{
	unsigned i = 0;

	while (!seat_is_had(x, &p->asked[i]))
		i++;
	p->slot = p->asked[i];
	p->asked[i].claim = NULL;
	slots_drop(x, p);
}

void permit_drop_all(struct request_context *x, struct permit *p)
{
	slots_drop(x, p);
	slot_drop(x, p, &p->slot);
	seat_drop(x, &p->mark); /* last: it stands while a slot does */
}

static void seat_abandon(struct request_context *x, struct permit *p, struct seat *seat, struct instant until)
{
	struct claim *c = seat->claim;

	if (!c)
		return;
	seat->claim = NULL;
	TAILQ_REMOVE(&p->agent.claims, c, in_session);
	hold_abandon(x->engine, c, until);
}

void permit_abandon(struct request_context *x, struct permit *p, struct instant until)
{
	seat_abandon(x, p, &p->slot, until);
	seat_abandon(x, p, &p->mark, until);
}

void permit_lose_seats(struct request_context *x, struct permit *p, enum loss why)
{
	if (p->slot.claim && p->slot.claim->state == CLAIM_HELD)
		hold_lose_one(x->engine, p->slot.claim, why);
	if (p->mark.claim && p->mark.claim->state == CLAIM_HELD)
		seat_abandon(x, p, &p->mark, INSTANT_NEVER);
}

bool permit_has_slot(const struct request_context *x, const struct permit *p)
{
	for (unsigned i = 0; i < p->asked_n; i++)
		if (seat_is_had(x, &p->asked[i]))
			return true;
	return false;
}

bool permit_asks_slots(const struct permit *p)
{
	for (unsigned i = 0; i < p->asked_n; i++)
		if (seat_is_asked(&p->asked[i]))
			return true;
	return false;
}

static bool seat_is_lost(const struct seat *seat)
{
	return seat->claim && seat->claim->state == CLAIM_LOST;
}

const struct seat *permit_lost_seat(const struct permit *p)
{
	return seat_is_lost(&p->mark) ? &p->mark : seat_is_lost(&p->slot) ? &p->slot : NULL;
}

struct seat *permit_seat(struct permit *p, const struct claim *c)
{
	if (p->mark.claim == c)
		return &p->mark;
	if (p->slot.claim == c)
		return &p->slot;
	/* Most often it is the one behind the last. */
	for (unsigned i = 0; i < p->asked_n; i++) {
		struct seat *seat = &p->asked[(p->looked_at + 1 + i) % p->asked_n];

		if (seat->claim != c)
			continue;
		p->looked_at = (unsigned)(seat - p->asked);
		return seat;
	}
	return NULL;
}

void permit_free(struct request_context *x, struct permit *p)
{
	struct semaphore *m = p->semaphore;

	permit_drop_all(x, p);
	heap_cancel(&x->core->timers, &p->timer);
	permit_is_due_no_more(x, p);
	permit_enter(x, p, PERMIT_LOST);
	p->session->held--;
	TAILQ_REMOVE(&m->lost, p, in_line);
	TAILQ_REMOVE(&p->session->permits, p, in_session);
	alarms_forget(x->core, p);
	permit_release(p);
}

/* --- permits --- */

struct permit *permit_add(struct request_context *x, struct session *s, struct semaphore *m)
{
	struct permit *p = mem_alloc(sizeof(*p));

	p->session = s;
	p->semaphore = m;
	inner_session_init(&p->agent, s);
	p->agent.of_permit = true;
	p->timer.kind = TIMER_PERMIT;
	p->asked_at = x->core->asked_at;
	p->state = PERMIT_TRYING;
	TAILQ_INSERT_TAIL(&m->others, p, in_line);
	TAILQ_INSERT_TAIL(&s->permits, p, in_session);
	s->waiting++;
	return p;
}

void permit_set_terms(struct request_context *x, struct permit *p)
{
	const struct request *q = &x->request;

	kept_remark_set(&p->remark, request_remark(q));
	p->ttl_us = request_has(q, FIELD_TTL) ? q->field[FIELD_TTL].number : x->core->conf.lease_us;
	p->counted = request_has(q, FIELD_COUNT);
	inner_session_set_terms(&p->agent, true, p->ttl_us, 0, request_remark(q));
}

struct permit *permit_new(struct request_context *x, struct session *s, struct semaphore *m)
{
	const struct request *q = &x->request;
	int64_t wait = request_has(q, FIELD_WAIT) ? q->field[FIELD_WAIT].number : 0;
	struct permit *p = permit_add(x, s, m);

	p->origin = s->origin;
	origin_crowd(p->origin, 1);
	p->priority = request_priority(q);
	p->order = ++x->engine->asked;
	p->owner_n = request_owner(q).n;
	p->owner = p->owner_n > 0 ? mem_copy(request_owner(q).p, p->owner_n) : NULL;
	permit_set_terms(x, p);
	p->patient = wait > 0;
	p->wait_until = wait == WAIT_FOREVER ? INSTANT_NEVER : instant_add(p->asked_at, wait);
	memcpy(p->tag, q->tag.p ? q->tag.p : "", q->tag.n);
	return p;
}

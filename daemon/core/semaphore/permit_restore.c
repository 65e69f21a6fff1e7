/* SPDX-License-Identifier: BSD-2-Clause */
/* See permit.h. */
#include "daemon/core/semaphore/permit.h"

#include "daemon/base/mem.h"
#include "daemon/core/engine/holding.h"
#include "daemon/core/event/core.h"

#include <errno.h>
#include <limits.h>

/* The content of the owner of a record. */
struct seat_record {
	unsigned order, limit, slots, slot;
	struct span owner, semaphore;
	bool is_mark;
};

static bool take_number(struct span *rest, unsigned *ret)
{
	uint64_t n = 0;
	size_t i;

	for (i = 0; i < rest->n && rest->p[i] >= '0' && rest->p[i] <= '9' && n <= UINT_MAX; i++)
		n = 10 * n + (unsigned)(rest->p[i] - '0');
	if (i == 0 || i == rest->n || rest->p[i] != ' ' || n > UINT_MAX)
		return false;
	*ret = (unsigned)n;
	*rest = (struct span){rest->p + i + 1, rest->n - i - 1};
	return true;
}

bool permit_restore_is_loss(const struct journal_record *r)
{
	return span_starts(r->owner, SPAN(JOURNAL_LOSS_OWNER));
}

/* Reads and checks the numbers that both kinds of records have. */
static bool numbers_read(struct span *rest, struct seat_record *ret)
{
	return take_number(rest, &ret->order) && take_number(rest, &ret->limit) && take_number(rest, &ret->slots) && ret->limit >= 1 &&
	       ret->limit <= LIMIT_MOST;
}

static bool loss_read(const struct journal_record *r, struct seat_record *ret)
{
	size_t head = sizeof(JOURNAL_LOSS_OWNER) - 1;
	struct span rest;

	if (!permit_restore_is_loss(r))
		return false;
	rest = (struct span){r->owner.p + head, r->owner.n - head};
	ret->semaphore = r->name;
	if (!numbers_read(&rest, ret))
		return false;
	if (ret->slots == 1 && (!take_number(&rest, &ret->slot) || ret->slot >= LIMIT_MOST))
		return false;
	ret->owner = rest;
	return true;
}

/* Reads the name of a slot: its number and its semaphore. */
static bool take_slot(struct span name, struct seat_record *ret)
{
	size_t at = name.n;

	while (at > 0 && name.p[at - 1] >= '0' && name.p[at - 1] <= '9')
		at--;
	if (at == name.n || name.n - at > 4 || at < 2 || name.p[at - 1] != '#')
		return false;
	ret->slot = 0;
	for (size_t i = at; i < name.n; i++)
		ret->slot = 10 * ret->slot + (unsigned)(name.p[i] - '0');
	ret->semaphore = (struct span){name.p, at - 1};
	return ret->slot < ret->limit;
}

static bool seat_read(const struct journal_record *r, struct seat_record *ret)
{
	struct span rest = r->owner, name = r->name;
	size_t head = sizeof(SEAT_OWNER) - 1, cut = sizeof(SLOT_PREFIX) - 1;

	if (!span_starts(rest, SPAN(SEAT_OWNER)))
		return false;
	rest = (struct span){rest.p + head, rest.n - head};
	if (!numbers_read(&rest, ret))
		return false;
	ret->owner = rest;
	ret->is_mark = !span_starts(name, SPAN(SLOT_PREFIX));
	ret->semaphore = name_unescaped(name);
	return ret->is_mark || take_slot((struct span){name.p + cut, name.n - cut}, ret);
}

static struct permit *permit_recorded(const struct session *s, const struct seat_record *r)
{
	struct permit *p;

	PERMITS_FOREACH(p, s)
		if (p->order == r->order && p->semaphore->limit == r->limit && span_equal(p->semaphore->name, r->semaphore))
			return p;
	return NULL;
}

static struct seat *seat_recorded(struct permit *p, const struct seat_record *r)
{
	return r->is_mark ? &p->mark : &p->slot;
}

void permit_restore_drop(struct request_context *x, struct claim *c)
{
	struct permit *p = permit_of(c->session);

	permit_seat(p, c)->claim = NULL;
	TAILQ_REMOVE(&p->agent.claims, c, in_session);
	adopt_drop(x->engine, c);
}

/* Sends nothing, because this run has nothing at the stores yet. */
static void permit_drop(struct request_context *x, struct permit *p)
{
	struct semaphore *m = p->semaphore;

	while (!TAILQ_EMPTY(&p->agent.claims))
		permit_restore_drop(x, TAILQ_FIRST(&p->agent.claims));
	permit_free(x, p);
	semaphore_drop_if_unused(x, m);
}

void permit_restore_drop_all(struct request_context *x, struct session *s)
{
	while (permit_first(s))
		permit_drop(x, permit_first(s));
}

/* After the loss another limit may have been granted. The records need not show that. */
static struct permit *loss_recorded(const struct session *s, const struct seat_record *r)
{
	struct permit *p;

	PERMITS_FOREACH(p, s)
		if (p->order == r->order && span_equal(p->semaphore->name, r->semaphore))
			return p;
	return NULL;
}

static bool permit_restore_loss_freed(struct request_context *x, const struct session *s, const struct journal_record *r)
{
	struct seat_record record;
	struct permit *p = loss_read(r, &record) ? loss_recorded(s, &record) : NULL;

	if (p)
		permit_drop(x, p);
	return p;
}

static struct permit *permit_from_record(struct request_context *x, struct session *s, const struct seat_record *r, const struct journal_record *record)
{
	struct permit *p = mem_alloc(sizeof(*p));

	bid_open(&p->bid, BID_PERMIT, s, 1, r->owner, remark_read(record->note, record->trace));
	permit_add(p, semaphore_find_or_add(x, r->semaphore, r->limit));
	p->order = r->order;
	if (x->engine->asked < r->order)
		x->engine->asked = r->order;
	p->relied_until = INSTANT_NEVER; /* no bound but the leases of its claims */
	return p;
}

int permit_restore_seat(struct request_context *x, struct session *s, const struct journal_record *r, const struct prior_lease *from)
{
	struct seat_record record;
	struct semaphore *m;
	struct permit *p;
	struct seat *seat;
	struct claim *c;

	if (!seat_read(r, &record))
		return -EBADMSG;
	if (record.slots != 1)
		return 0;
	m = semaphore_find(x, record.semaphore);
	if (m && m->limit != record.limit && !semaphore_is_vacant(m))
		return -EBADMSG; /* its permits had been freed before another limit was granted */
	p = permit_recorded(s, &record);
	if (!p)
		p = permit_from_record(x, s, &record, r);
	seat = seat_recorded(p, &record);
	if (seat->claim)
		permit_restore_drop(x, seat->claim);
	if (!record.is_mark)
		seat->slot = (uint16_t)record.slot;
	c = seat->claim = claim_new(&x->engine->table);
	c->session = &p->agent;
	claim_set_texts(c, record.owner, remark_read(r->note, r->trace));
	c->token = r->fence;
	c->count = 1;
	c->renew = true;
	c->shared = record.is_mark;
	c->limit = (uint16_t)(record.is_mark ? record.limit : SLOT_OF_SEMAPHORE);
	c->ttl_us = r->ttl_us < x->core->conf.max_lease_us ? r->ttl_us : x->core->conf.max_lease_us;
	c->granted_at = p->granted_at = (struct instant){r->granted_at_us};
	p->bid.ttl_us = c->ttl_us;
	p->bid.not_notified = !r->notified;
	p->at_risk |= (r->flags & JOURNAL_RISK) != 0;
	TAILQ_INSERT_TAIL(&p->agent.claims, c, in_session);
	lock_find_or_add_text(&x->engine->table, r->name)->lease.limit = c->limit;
	adopt_expect(x->engine, c, from);
	return 0;
}

int permit_restore_loss(struct request_context *x, struct session *s, const struct journal_record *r, enum loss why)
{
	struct seat_record record;
	struct semaphore *m;
	struct permit *p;

	if (!loss_read(r, &record))
		return -EBADMSG;
	if (record.slots != 1)
		return 0;
	p = loss_recorded(s, &record);
	if (p)
		permit_drop(x, p);
	m = semaphore_find(x, record.semaphore);
	if (m)
		record.limit = m->limit;
	p = permit_from_record(x, s, &record, r);
	p->slot.slot = (uint16_t)record.slot;
	p->fence = r->fence;
	p->loss = why;
	p->bid.not_notified = !(r->flags & JOURNAL_NOTIFIED); /* if that is not known, the loss is reported again */
	permit_enter(x, p, PERMIT_LOST);
	return 0;
}

bool permit_restore_freed(struct request_context *x, struct session *s, const struct journal_record *r)
{
	struct seat_record record;
	struct permit *p = seat_read(r, &record) ? permit_recorded(s, &record) : NULL;
	struct seat *seat = p ? seat_recorded(p, &record) : NULL;

	if (!p)
		return permit_restore_loss_freed(x, s, r);
	if (seat->claim)
		permit_restore_drop(x, seat->claim);
	if (TAILQ_EMPTY(&p->agent.claims))
		permit_drop(x, p);
	return true;
}

static bool permit_is_whole(const struct permit *p)
{
	return p->mark.claim && p->slot.claim;
}

void permit_restore_end(struct request_context *x, struct session *s)
{
	struct permit *p, *next;

	for (p = permit_first(s); p; p = next) {
		next = permit_next(p);
		if (p->state == PERMIT_LOST)
			continue;
		if (!permit_is_whole(p)) {
			permit_drop(x, p);
			continue;
		}
		permit_enter(x, p, PERMIT_HELD);
		p->fence = p->slot.claim->token;
		alarms_set(x->core, ALARM_OF_PERMIT, p, ALARM_HELD, p->granted_at);
		adopt_start(x->engine, &p->mark.claim->lock->lease);
		adopt_start(x->engine, &p->slot.claim->lock->lease);
	}
}

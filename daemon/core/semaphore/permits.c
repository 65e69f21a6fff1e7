/* SPDX-License-Identifier: BSD-2-Clause */
/* The claims of a permit on the mark and on slots; losses and renewals of permits; CONTENDED. */
#include "daemon/core/semaphore/permit.h"

#include "daemon/base/mem.h"
#include "daemon/core/engine/engine.h"
#include "daemon/core/engine/holding.h"
#include "daemon/core/event/core.h"
#include "daemon/core/reply/records.h"
#include "daemon/core/reply/send.h"
#include "daemon/core/session/client.h"
#include "daemon/core/session/group.h"
#include "proto/decimal.h"

/* The names of slots begin with bytes that the stores recognize: daemon/redis/batch.c gives them their own keys. */

static struct span slot_name(struct permit *p, char out[SLOT_NAME_MAX], unsigned slot)
{
	struct span name = p->semaphore->name;
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
	struct claim *c = inner_session_claim(x->engine, &p->bid, p->bid.asked_at);

	seat->claim = c;
	seat->why = NOT_REFUSED;
	c->asking->order = p->order;
	c->renew = true;
	c->limit = (uint16_t)limit;
	c->shared = limit != SLOT_OF_SEMAPHORE;
	c->patient = patient;
	/* The claims wait for as long as the permit. */
	lock_request_ask(x->engine, c, name, patient ? INSTANT_NEVER : x->core->now);
}

void permit_ask_mark(struct request_context *x, struct permit *p, bool patient)
{
	seat_ask(x, p, &p->mark, p->semaphore->name, p->semaphore->limit, patient);
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

static void seat_drop_asked(struct request_context *x, struct seat *seat)
{
	if (seat_is_asked(seat))
		inner_session_drop(x->engine, &seat->claim);
}

static void slots_drop_asked(struct request_context *x, struct permit *p)
{
	for (unsigned i = 0; i < p->asked_n; i++)
		seat_drop_asked(x, &p->asked[i]);
}

/* It leaves all queues. */
static void permit_drop_asked(struct request_context *x, struct permit *p)
{
	slots_drop_asked(x, p);
	seat_drop_asked(x, &p->mark);
}

/* For its slot, or for one that it got while it was asking. */
static void slot_drop(struct request_context *x, struct permit *p, struct seat *seat)
{
	if (seat->claim)
		p->semaphore->next = seat->slot;
	inner_session_drop(x->engine, &seat->claim);
}

/* First the waiting claims leave their queues: what is given back must not be granted to a permit that is leaving. */
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

	while (!inner_session_has(x->engine, p->asked[i].claim))
		i++;
	p->slot = p->asked[i];
	p->asked[i].claim = NULL;
	slots_drop(x, p);
}

void permit_drop_all(struct request_context *x, struct permit *p)
{
	slots_drop(x, p);
	slot_drop(x, p, &p->slot);
	inner_session_drop(x->engine, &p->mark.claim); /* last: the mark exists as long as a slot */
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

/* The permit is lost. Its lost claims stay until the client acknowledges the loss. A mark that is not lost is abandoned. */
static void permit_lose_seats(struct request_context *x, struct permit *p, enum loss why)
{
	if (p->slot.claim && p->slot.claim->state == CLAIM_HELD)
		hold_lose_one(x->engine, p->slot.claim, why);
	if (p->mark.claim && p->mark.claim->state == CLAIM_HELD)
		seat_abandon(x, p, &p->mark, INSTANT_NEVER);
}

bool permit_has_slot(const struct request_context *x, const struct permit *p)
{
	for (unsigned i = 0; i < p->asked_n; i++)
		if (inner_session_has(x->engine, p->asked[i].claim))
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
	/* Usually its place is at the end. */
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
	permit_enter(x, p, PERMIT_LOST);
	p->bid.session->held--;
	TAILQ_REMOVE(&m->lost, p, in_line);
	alarms_forget(x->core, p);
	permit_release(x, p);
}

/* --- permits --- */

void permit_add(struct permit *p, struct semaphore *m)
{
	p->semaphore = m;
	inner_session_init(&p->agent, &p->bid);
	p->agent.of_permit = true;
	p->state = PERMIT_TRYING;
	TAILQ_INSERT_TAIL(&m->others, p, in_line);
}

struct permit *permit_new(struct request_context *x, struct session *s, struct semaphore *m)
{
	struct permit *p = mem_alloc(sizeof(*p));

	bid_open_request(x, &p->bid, BID_PERMIT, s, 1);
	permit_add(p, m);
	p->order = ++x->engine->asked;
	return p;
}

#define APART_US (100 * MSEC) /* between two CONTENDED about the same permit */

/* If another daemon has permits waiting, the first of them waits in the queues of all slots, so in this one too. It counts as one waiter. */
static unsigned permit_waiters(const struct request_context *x, const struct permit *p)
{
	return p->semaphore->waiters + (p->slot.claim && lock_is_wanted(x, p->slot.claim->lock));
}

/* Nothing is sent about a permit that RESUME still has to report, or whose session has no connection. */
static bool permit_may_notify(const struct request_context *x, const struct permit *p)
{
	return p->state == PERMIT_HELD && !p->bid.not_notified && watch_is_subscribed(p->bid.session) && !p->bid.session->resuming &&
	       permit_waiters(x, p) > 0 && session_may_look(x->core, p->bid.session, p->semaphore->name);
}

void contended_send(struct request_context *x, struct permit *p, enum contended_why why)
{
	if (why == CONTENDED_NEWS && p->contended_at.us && instant_diff(x->core->now, p->contended_at) < APART_US)
		return;
	if (!permit_may_notify(x, p))
		return;
	p->contended_at = x->core->now;
	push(x, report_of_permit(p), "! CONTENDED", "waiters", permit_waiters(x, p));
}

void contended_send_all(struct request_context *x, const struct semaphore *m)
{
	struct permit *p = x->engine->watched > 0 ? TAILQ_FIRST(&m->others) : NULL;

	for (; p; p = TAILQ_NEXT(p, in_line))
		contended_send(x, p, CONTENDED_NEWS);
}

void serve_SUBSCRIBE(struct request_context *x, struct session *s)
{
	struct permit *p;

	if (!watch_subscribe(x, s))
		return;
	PERMITS_FOREACH(p, s)
		contended_send(x, p, CONTENDED_NEWS);
}

void semaphore_stir(struct request_context *x, struct semaphore *m)
{
	struct permit *p = TAILQ_FIRST(&m->line);

	if (p && p->state == PERMIT_WAITING)
		bid_set_due(x, &p->bid, DUE_NOW);
	if (m->first && m->first != p)
		bid_set_due(x, &m->first->bid, DUE_NOW);
	for (p = TAILQ_FIRST(&m->others); p && p->stalled; p = TAILQ_NEXT(p, in_line))
		bid_set_due(x, &p->bid, DUE_NOW);
}

static bool leases_are_at_risk(const struct permit *p)
{
	return (p->mark.claim && p->mark.claim->lock->lease.at_risk) || (p->slot.claim && p->slot.claim->lock->lease.at_risk);
}

void permit_note_risk(struct request_context *x, struct permit *p)
{
	bool at_risk = leases_are_at_risk(p);

	if (p->state != PERMIT_HELD || p->at_risk == at_risk)
		return;
	p->at_risk = at_risk;
	permit_send_push(x, p, at_risk ? "! RISK" : "! SAFE", at_risk ? "left_ms" : "valid_ms");
}

/* Both EXTENDs of its claims are answered. */
static void permit_extended(struct request_context *x, struct permit *p, enum refusal why)
{
	struct pending *client = p->extend;

	p->extend = NULL;
	notices_add(&x->engine->notices, NOTICE_EXTENDED, NULL, client, why);
}

static void permit_on_extend(struct request_context *x, const struct notice *n)
{
	struct permit *p = permit_of(n->pending->session);

	TAILQ_REMOVE(&p->agent.pendings, n->pending, in_session);
	if (n->refusal != NOT_REFUSED)
		p->extended = n->refusal;
	if (--p->extending == 0)
		permit_extended(x, p, permit_lost_seat(p) ? REFUSED_LOST : p->extended); /* LOST is sent after these notices */
}

/* Returns the limit with which the name is in use instead. */
static unsigned limit_in_use(const struct permit *p, const struct lock *l)
{
	return lock_is_idle(l) || l->lease.limit == p->semaphore->limit ? l->contender->elsewhere.limit : l->lease.limit;
}

bool permit_is_adopting(const struct permit *p)
{
	const struct claim *c;

	TAILQ_FOREACH(c, &p->agent.claims, in_session)
		if (c->state == CLAIM_HELD && c->lock->lease.state == LEASE_ADOPTING)
			return true;
	return false;
}

unsigned permits_open(const struct session *s)
{
	const struct permit *p;
	unsigned n = 0;

	PERMITS_FOREACH(p, s)
		n += permit_is_adopting(p);
	return n;
}

/* A claim of it is held again. RESUME waits until both are. If it did not, the client is told now. */
static void permit_adopted(struct request_context *x, struct permit *p)
{
	bid_set_due(x, &p->bid, DUE_NOW); /* see permit_look() */
	if (permit_is_adopting(p) || permit_lost_seat(p))
		return;
	permit_send_push(x, p, "! SAFE", "valid_ms");
	session_wake(x->sessions, p->bid.session);
}

void permits_on_notice(struct request_context *x, const struct notice *n)
{
	struct permit *p;
	struct seat *seat;

	if (!n->claim) {
		permit_on_extend(x, n);
		return;
	}
	p = permit_of(n->claim->session);
	seat = permit_seat(p, n->claim);
	switch (n->kind) {
	case NOTICE_GRANTED:
		claim_end_asking(&x->engine->table, n->claim);
		break;
	case NOTICE_REFUSED:
	case NOTICE_FORGOTTEN:
		TAILQ_REMOVE(&p->agent.claims, n->claim, in_session);
		if (!seat)
			return;
		seat->claim = NULL;
		seat->why = n->kind == NOTICE_REFUSED ? n->refusal : NOT_REFUSED;
		if (seat == &p->mark && n->refusal == REFUSED_IN_USE)
			p->other = limit_in_use(p, n->claim->lock);
		break;
	case NOTICE_LOST: /* the claim itself records that */
		session_wake(x->sessions, p->bid.session);
		break;
	case NOTICE_LENGTHENS:
		record_permit(x, p);
		return;
	case NOTICE_ADOPTED:
		permit_adopted(x, p);
		return;
	case NOTICE_WANTED:
		contended_send(x, p, CONTENDED_NEWS);
		return;
	case NOTICE_RISK:
	case NOTICE_SAFE:
		permit_note_risk(x, p);
		return;
	default:
		return;
	}
	bid_set_due(x, &p->bid, DUE_NOW);
}

static void permit_drop_extend(struct request_context *x, struct permit *p, enum refusal why)
{
	struct pending *part;

	while ((part = TAILQ_FIRST(&p->agent.pendings))) {
		TAILQ_REMOVE(&p->agent.pendings, part, in_session);
		part->session = NULL;
	}
	p->extending = 0;
	if (!p->extend)
		return;
	p->extend->permit = NULL;
	permit_extended(x, p, why);
}

void permit_lose(struct request_context *x, struct permit *p, enum loss why)
{
	p->loss = why;
	permit_drop_extend(x, p, REFUSED_LOST);
	report_log_lost(x, report_of_permit(p));
	if (p->bid.not_notified)
		record_permit_freed(x, p);
	else
		record_permit_lost(x, p);
	permit_watch(x, p, WATCH_LOST);
	permit_send_push(x, p, "! LOST", NULL);
	if (p->bid.not_notified) {
		permit_abandon(x, p, INSTANT_NEVER);
		permit_enter(x, p, PERMIT_LOST);
		permit_end(x, p); /* the client was never told of it */
		return;
	}
	permit_lose_seats(x, p, why);
	permit_enter(x, p, PERMIT_LOST);
	p->bid.not_notified = p->bid.session->detached || p->bid.session->resuming;
}

void permits_lose(struct request_context *x, struct session *s, enum loss why)
{
	struct permit *p, *next;

	for (p = permit_first(s); p; p = next) {
		next = permit_next(p);
		if (p->state == PERMIT_HELD)
			permit_lose(x, p, why);
	}
}

void permit_end(struct request_context *x, struct permit *p)
{
	struct semaphore *m = p->semaphore;

	record_permit_freed(x, p);
	permit_drop_extend(x, p, REFUSED_CANCELLED);
	if (p->stalled)
		m->stalled--;
	permit_free(x, p);
	semaphore_stir(x, m);
	semaphore_drop_if_unused(x, m);
}

void permits_give_up(struct request_context *x, struct session *s, struct span name, struct span owner)
{
	struct permit *p;

	PERMITS_FOREACH(p, s)
		if (p->bid.not_notified && permit_is_asking(p) && !p->bid.withdrawn && span_equal(p->bid.owner, owner) &&
		    span_equal(p->semaphore->name, name))
			bid_withdraw(x, &p->bid);
}

/* --- with their sessions --- */

/* A session without a connection: its client was told how long to rely on its permits, and does not rely on those that it does not know of. */
static void permit_leave(struct request_context *x, struct permit *p, bool sure)
{
	if (p->state == PERMIT_HELD)
		permit_watch(x, p, WATCH_RELEASED);
	if (p->state == PERMIT_HELD && !sure && !p->bid.not_notified)
		permit_abandon(x, p, p->bid.session->detached ? p->relied_until : INSTANT_NEVER);
	else if (p->state == PERMIT_LOST && !sure)
		permit_abandon(x, p, INSTANT_NEVER);
	permit_end(x, p);
}

void permits_end(struct request_context *x, struct session *s, bool waiting, bool sure)
{
	struct permit *p, *next;

	for (p = permit_first(s); p; p = next) {
		next = permit_next(p);
		if (waiting)
			permit_drop_asked(x, p);
		else
			permit_leave(x, p, sure);
	}
}

/* Returns until when the client may rely on it: until the later of its two leases ends. */
static struct instant permit_relied_until(const struct request_context *x, const struct permit *p)
{
	return instant_max(validity_of_lease(x->engine, p->mark.claim->lock), validity_of_lease(x->engine, p->slot.claim->lock));
}

void permits_detach(struct request_context *x, struct session *s)
{
	struct permit *p;

	PERMITS_FOREACH(p, s) {
		bid_detach(&p->bid);
		p->contended_at = (struct instant){0};
		if (p->state == PERMIT_HELD && !permit_is_adopting(p))
			p->relied_until = p->bid.not_notified ? INSTANT_PAST : permit_relied_until(x, p);
		if (p->state == PERMIT_HELD)
			heap_cancel(&x->core->timers, &p->bid.timer);
		else if (p->state == PERMIT_LOST)
			heap_cancel(&x->core->timers, &p->bid.timer); /* the RELEASE may be repeated after RESUME */
		else if (timer_is_set(&p->bid.timer))
			heap_set(&x->core->timers, &p->bid.timer, p->bid.wait_until); /* permits_bound() may have made it earlier */
		permit_drop_extend(x, p, REFUSED_CANCELLED);
	}
}

void permits_finish_up(struct request_context *x, struct session *s)
{
	struct permit *p;

	PERMITS_FOREACH(p, s) {
		p->bid.leaving = true;
		if (p->state == PERMIT_WAITING || p->state == PERMIT_FIRST)
			bid_withdraw(x, &p->bid);
	}
}

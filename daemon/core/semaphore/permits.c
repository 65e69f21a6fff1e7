/* SPDX-License-Identifier: BSD-2-Clause */
/* See permits.h. */
#include "daemon/core/semaphore/permits.h"

#include "daemon/core/engine/validity.h"
#include "daemon/core/engine/hold.h"
#include "daemon/core/reply/records.h"
#include "daemon/core/reply/rows.h"
#include "daemon/core/reply/tell.h"

#include <inttypes.h>

void semaphore_stir(struct request_context *x, struct semaphore *m)
{
	struct permit *p = TAILQ_FIRST(&m->line);

	if (p && p->state == PERMIT_WAITING)
		permit_make_due(x, p);
	if (m->first && m->first != p)
		permit_make_due(x, m->first);
	if (m->stalled == 0)
		return;
	TAILQ_FOREACH(p, &m->others, in_line)
		if (p->stalled)
			permit_make_due(x, p);
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
	permit_tell(x, p, at_risk ? "! RISK" : "! SAFE", at_risk ? "left_ms" : "valid_ms");
}

/* Both of its claims have been extended, or cannot be. */
static void permit_extended(struct request_context *x, struct permit *p, enum refusal why)
{
	struct pending *client = p->extend;

	p->extend = NULL;
	notices_add(&x->engine->notices, NOTICE_EXTENDED, NULL, client, why);
}

static void note_pending(struct request_context *x, const struct notice *n)
{
	struct permit *p = permit_of(n->pending->session);

	TAILQ_REMOVE(&p->agent.pendings, n->pending, in_session);
	if (n->refusal != NOT_REFUSED)
		p->extended = n->refusal;
	if (--p->extending == 0)
		permit_extended(x, p, permit_lost_seat(p) ? REFUSED_LOST : p->extended); /* LOST is told behind these notices */
}

/* What the name of the mark is used as instead. */
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

	TAILQ_FOREACH(p, &s->permits, in_session)
		n += permit_is_adopting(p);
	return n;
}

/* A claim of it is held again. RESUME waits until both are; if it did not, the client is told now. */
static void permit_adopted(struct request_context *x, struct permit *p)
{
	permit_make_due(x, p); /* see permit_look() */
	if (permit_is_adopting(p) || permit_lost_seat(p))
		return;
	permit_tell(x, p, "! SAFE", "valid_ms");
	session_wake(x->sessions, p->session);
}

void permits_note(struct request_context *x, const struct notice *n)
{
	struct permit *p;
	struct seat *seat;

	if (!n->claim) {
		note_pending(x, n);
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
	case NOTICE_LOST: /* the claim says so itself */
		session_wake(x->sessions, p->session);
		break;
	case NOTICE_LENGTHENS:
		record_permit(x, p);
		return;
	case NOTICE_ADOPTED:
		permit_adopted(x, p);
		return;
	case NOTICE_WANTED:
		contended_permit(x, p, CONTENDED_NEWS);
		return;
	case NOTICE_RISK:
	case NOTICE_SAFE:
		permit_note_risk(x, p);
		return;
	default:
		return;
	}
	permit_make_due(x, p);
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
	char who[WHO_MAX];

	p->loss = why;
	permit_drop_extend(x, p, REFUSED_LOST);
	if (core_may_log(x->core, BURST_LOST))
		core_log(x->core, LOG_WARN, "lost", "peer=%s session=%" PRIu64 " name=%s fence=%" PRId64 " reason=%s",
		         core_quoted(x->core, (struct span){who, session_who(p->session, who)}), p->session->serial,
		         core_quoted(x->core, semaphore_name(p->semaphore)), p->fence, loss_word(why));
	if (p->not_notified)
		record_permit_freed(x, p);
	else
		record_permit_lost(x, p);
	permit_watch(x, p, WATCH_LOST);
	permit_tell(x, p, "! LOST", NULL);
	if (p->not_notified) {
		permit_abandon(x, p, INSTANT_NEVER);
		permit_enter(x, p, PERMIT_LOST);
		permit_end(x, p); /* the client never heard of it */
		return;
	}
	permit_lose_seats(x, p, why);
	permit_enter(x, p, PERMIT_LOST);
	p->not_notified = p->session->detached || p->session->resuming;
}

void permits_lose(struct request_context *x, struct session *s, enum loss why)
{
	struct permit *p, *next;

	for (p = TAILQ_FIRST(&s->permits); p; p = next) {
		next = TAILQ_NEXT(p, in_session);
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

	TAILQ_FOREACH(p, &s->permits, in_session)
		if (p->not_notified && permit_is_asking(p) && p->state != PERMIT_CANCELLED && span_equal(permit_owner(p), owner) &&
		    span_equal(semaphore_name(p->semaphore), name))
			permit_cancel(x, p);
}

/* --- with their sessions --- */

void permits_are_ending(struct session *s)
{
	struct permit *p;
	struct claim *c;

	TAILQ_FOREACH(p, &s->permits, in_session)
		TAILQ_FOREACH(c, &p->agent.claims, in_session)
			c->ending = true;
}

/* A session without a connection has been told when its client ceases to believe; what such a client does not know of it does not rely on. */
static void permit_leave(struct request_context *x, struct permit *p, bool sure)
{
	if (p->state == PERMIT_HELD)
		permit_watch(x, p, WATCH_RELEASED);
	if (p->state == PERMIT_HELD && !sure && !p->not_notified)
		permit_abandon(x, p, p->session->detached ? p->believed : INSTANT_NEVER);
	else if (p->state == PERMIT_LOST && !sure)
		permit_abandon(x, p, INSTANT_NEVER);
	permit_end(x, p);
}

void permits_end(struct request_context *x, struct session *s, bool waiting, bool sure)
{
	struct permit *p, *next;

	for (p = TAILQ_FIRST(&s->permits); p; p = next) {
		next = TAILQ_NEXT(p, in_session);
		if (waiting)
			permit_drop_asked(x, p);
		else
			permit_leave(x, p, sure);
	}
}

/* Until when the client may believe: as long as each of its leases lasts. */
static struct instant permit_belief(const struct request_context *x, const struct permit *p)
{
	return instant_max(validity_of_lease(x->engine, p->mark.claim->lock), validity_of_lease(x->engine, p->slot.claim->lock));
}

void permits_detach(struct request_context *x, struct session *s)
{
	struct permit *p;

	TAILQ_FOREACH(p, &s->permits, in_session) {
		p->tag[0] = '\0';
		p->leaving = false;
		p->contended_at = (struct instant){0};
		if (permit_is_asking(p))
			p->not_notified = true;
		else if (p->state == PERMIT_HELD && !permit_is_adopting(p))
			p->believed = p->not_notified ? INSTANT_PAST : permit_belief(x, p);
		if (p->state == PERMIT_HELD)
			heap_cancel(&x->core->timers, &p->timer);
		else if (p->state == PERMIT_LOST)
			heap_cancel(&x->core->timers, &p->timer); /* the RELEASE may be repeated after RESUME */
		else if (timer_is_set(&p->timer))
			heap_set(&x->core->timers, &p->timer, p->wait_until); /* permits_bound() may have set it to a sooner moment */
		permit_drop_extend(x, p, REFUSED_CANCELLED);
	}
}

struct permit *permit_waiting(const struct session *s, struct span tag)
{
	struct permit *p;

	TAILQ_FOREACH(p, &s->permits, in_session)
		if (permit_is_asking(p) && span_equal(span_of(p->tag), tag))
			return p;
	return NULL;
}

bool permits_wait(const struct session *s, bool patient)
{
	const struct permit *p;

	TAILQ_FOREACH(p, &s->permits, in_session)
		if (permit_is_asking(p) && !p->not_notified && p->patient == patient)
			return true;
	return false;
}

unsigned permits_patient(const struct session *s)
{
	const struct permit *p;
	unsigned n = 0;

	TAILQ_FOREACH(p, &s->permits, in_session)
		n += permit_is_asking(p) && p->patient;
	return n;
}

void permits_finish_up(struct request_context *x, struct session *s)
{
	struct permit *p;

	TAILQ_FOREACH(p, &s->permits, in_session) {
		p->leaving = true;
		if (p->state == PERMIT_WAITING || p->state == PERMIT_FIRST)
			permit_cancel(x, p);
	}
}

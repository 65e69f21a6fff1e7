/* SPDX-License-Identifier: BSD-2-Clause */
/* See held_permits.h. */
#include "daemon/core/request/held_permits.h"

#include "daemon/base/mem.h"
#include "daemon/core/engine/engine.h"
#include "daemon/core/reply/pending.h"
#include "daemon/core/reply/records.h"
#include "daemon/core/reply/renewal_limits.h"
#include "daemon/core/reply/tell.h"
#include "daemon/core/request/held_locks.h"
#include "daemon/core/resume/resume.h"

#include <inttypes.h>
#include <stdlib.h>

static bool permit_is_of_request(const struct permit *p, const struct request *q)
{
	if (permit_is_asking(p) || !span_equal(semaphore_name(p->semaphore), q->word[0]))
		return false;
	if (request_has(q, FIELD_OWNER) && !span_equal(permit_owner(p), request_owner(q)))
		return false;
	if (request_has(q, FIELD_FENCE) && q->field[FIELD_FENCE].number != p->fence)
		return false; /* RELEASE, UNLOCK */
	return request_has(q, FIELD_PERMIT) ? q->field[FIELD_PERMIT].number == p->slot.slot : span_equal(permit_owner(p), request_owner(q));
}

/* The one with this slot that it has, or has lost; without `permit` the one that the owner was granted last. NULL: it has none. */
static struct permit *permit_of_request(struct request_context *x, struct session *s)
{
	struct permit *p, *found = NULL;

	TAILQ_FOREACH(p, &s->permits, in_session) {
		if (!permit_is_of_request(p, &x->request))
			continue;
		/* A slot may have been granted again since another permit of it was lost. */
		if (!found || (found->state == PERMIT_LOST) > (p->state == PERMIT_LOST) ||
		    (found->state == p->state && instant_diff(p->granted_at, found->granted_at) >= 0))
			found = p;
	}
	return found;
}

/* What the owner holds comes before a permit of that name that was lost earlier. */
static struct permit __attribute__((noinline)) *permit_before_lock(struct request_context *x, struct session *s)
{
	struct permit *p = permit_of_request(x, s);
	const struct lock *l = p && p->state == PERMIT_LOST ? lock_find(&x->engine->table, x->request.word[0]) : NULL;

	return l && lock_holder_of(l, s, request_owner(&x->request)) ? NULL : p;
}

/* The same of a request that may be about a lock; NULL: it is. */
static inline struct permit *permit_not_lock(struct request_context *x, struct session *s)
{
	return TAILQ_EMPTY(&s->permits) ? NULL : permit_before_lock(x, s);
}

void tell_permit_adopting(struct request_context *x, struct session *s)
{
	tell_error(x, s, x->request.tag, ERROR_QUORUM,
	           "the daemon was restarted, and fewer than %u of %u stores have confirmed the permit since: ask again in a moment",
	           quorum_of(x->core->conf.nodes), x->core->conf.nodes);
}

static void tell_not_held(struct request_context *x, struct session *s)
{
	tell_error(x, s, x->request.tag, ERROR_NOTHELD, "this session does not hold %s of that semaphore%s",
	           request_has(&x->request, FIELD_PERMIT) ? "this permit" : "a permit", request_has(&x->request, FIELD_OWNER) ? " as this owner" : "");
}

static void tell_lost_before(struct request_context *x, struct session *s, const struct permit *p)
{
	tell_error(x, s, x->request.tag, ERROR_LOST, "fence=%" PRId64 " reason=%s: lost before this request", p->fence, loss_word(p->loss));
}

/* Its client is told that it has it. NULL: answered. */
static struct permit *permit_held(struct request_context *x, struct session *s)
{
	struct permit *p = permit_of_request(x, s);
	const struct seat *lost = p && p->state == PERMIT_HELD ? permit_lost_seat(p) : NULL;

	if (lost) {
		permit_lose(x, p, lost->claim->loss);
		p = permit_of_request(x, s); /* one that its client did not know of is over */
	}
	if (!p) {
		tell_not_held(x, s);
	} else if (p->state == PERMIT_LOST) {
		tell_lost_before(x, s, p);
	} else if (permit_is_adopting(p)) {
		tell_permit_adopting(x, s);
	} else {
		permit_hear(x, p);
		return p;
	}
	return NULL;
}

/* free: how many slots are free now; count: how many permits the owner has, or, as for a lock, how often it holds it. */
static void reply_given_back(struct request_context *x, struct session *s, int64_t free, int64_t count)
{
	const struct request *q = &x->request;
	struct reply r;

	reply_begin(&r, session_line(x->sessions), q->tag, "OK");
	reply_text(&r, "name", q->word[0]);
	if (q->verb == VERB_RELEASE && free >= 0)
		reply_int(&r, "free", free);
	if (q->verb == VERB_UNLOCK || request_has(q, FIELD_COUNT))
		reply_int(&r, "count", count);
	tell_line(x, s, &r);
}

/* RELEASE count=0 may be repeated after RESUME, and is answered likewise. */
static void permit_acknowledge(struct request_context *x, struct session *s, struct permit *p)
{
	if (!request_has(&x->request, FIELD_COUNT) || s->grace_us == 0) {
		permit_end(x, p);
		return;
	}
	p->acknowledged = true;
	permit_drop_all(x, p);
	heap_set(&x->core->timers, &p->timer, resume_repeat_until(x, s));
}

/* The owner wants none and has none: the answer names the last loss, and the others were pushed as they came. */
static void permits_acknowledge(struct request_context *x, struct session *s, const struct permit *last)
{
	struct permit *p, *next;

	tell_lost_before(x, s, last);
	for (p = TAILQ_FIRST(&s->permits); p; p = next) {
		next = TAILQ_NEXT(p, in_session);
		if (p->state == PERMIT_LOST && permit_is_of_request(p, &x->request))
			permit_acknowledge(x, s, p);
	}
}

static void permit_give_back(struct request_context *x, struct session *s, struct permit *p)
{
	if (p->state == PERMIT_LOST) {
		tell_lost_before(x, s, p);
		permit_acknowledge(x, s, p);
		return;
	}
	permit_watch(x, p, WATCH_RELEASED);
	reply_given_back(x, s, semaphore_free_slots(p->semaphore) + 1, 0);
	permit_end(x, p);
}

/* How many permits that it has now the request may be about. */
static unsigned permits_held(struct request_context *x, const struct session *s)
{
	const struct permit *p;
	unsigned n = 0;

	TAILQ_FOREACH(p, &s->permits, in_session)
		n += p->state == PERMIT_HELD && permit_is_of_request(p, &x->request);
	return n;
}

/* The fence is of an earlier grant of what the owner has. */
static bool fence_is_old(struct request_context *x, struct session *s)
{
	struct request *q = &x->request;
	uint32_t given = q->given;
	bool old;

	if (!request_has(q, FIELD_FENCE))
		return false;
	q->given &= ~(UINT32_C(1) << FIELD_FENCE);
	old = permits_held(x, s) > 0;
	q->given = given;
	return old;
}

/* For qsort: those that were granted last come first. */
static int permit_compare(const void *a, const void *b)
{
	const struct permit *p = *(struct permit *const *)a, *q = *(struct permit *const *)b;
	int64_t later = instant_diff(q->granted_at, p->granted_at);

	if (later == 0)
		later = q->fence - p->fence;
	return (later > 0) - (later < 0);
}

/* Of the permits that the owner has, those that were granted last. */
static void permits_give_back(struct request_context *x, struct session *s, unsigned has, unsigned count)
{
	struct permit **held = mem_alloc(has * sizeof(struct permit *)), *p;
	unsigned n = 0;

	TAILQ_FOREACH(p, &s->permits, in_session)
		if (p->state == PERMIT_HELD && permit_is_of_request(p, &x->request))
			held[n++] = p;
	qsort(held, n, sizeof(struct permit *), permit_compare);
	for (unsigned i = 0; i < has - count; i++) {
		permit_watch(x, held[i], WATCH_RELEASED);
		permit_end(x, held[i]);
	}
	mem_free(held);
}

/* Gives back permits, until the owner has no more than count= says. p: the one that was granted last; NULL: it has none. */
static void permits_give_back_to(struct request_context *x, struct session *s, const struct permit *p)
{
	const struct request *q = &x->request;
	unsigned has = permits_held(x, s), count = request_count(q);
	const struct semaphore *m = semaphore_find(x, q->word[0]);
	int64_t free = m ? (int64_t)semaphore_free_slots(m) : -1;

	if (p && p->state == PERMIT_LOST && count > 0) {
		tell_lost_before(x, s, p); /* the owner relies on having it */
	} else if (p && p->state == PERMIT_LOST) {
		permits_acknowledge(x, s, p);
	} else if (has == 0 && fence_is_old(x, s)) {
		tell_not_held(x, s);
	} else if (count > has) {
		tell_mistake(x, s, ERROR_ARG, "count=%u, but this owner has %u permits: RELEASE lowers the count", count, has);
	} else {
		permits_give_back(x, s, has, count);
		reply_given_back(x, s, free + has - count, count);
	}
}

/* With fence= the request is about that grant alone. */
static inline void gives_up_waits(struct request_context *x, struct session *s)
{
	if (s->resumed && request_has(&x->request, FIELD_COUNT) && !request_has(&x->request, FIELD_FENCE))
		resume_give_up(x, s);
}

void serve_RELEASE(struct request_context *x, struct session *s)
{
	struct permit *p = permit_of_request(x, s);

	gives_up_waits(x, s);
	if (request_has(&x->request, FIELD_COUNT))
		permits_give_back_to(x, s, p);
	else if (p)
		permit_give_back(x, s, p);
	else
		tell_not_held(x, s);
}

static bool unlock_suits_permit(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;
	bool keeps = request_has(q, FIELD_KEEP) && q->field[FIELD_KEEP].number > 0, waits = request_has(q, FIELD_SYNC) && q->field[FIELD_SYNC].number;

	if (keeps || waits)
		tell_mistake(x, s, ERROR_ARG, "%s is for locks: RELEASE a permit without it", keeps ? "keep=" : "sync=");
	return !keeps && !waits;
}

/* For clients that treat a permit like a lock. False: the request is about a lock. */
static bool __attribute__((noinline)) permit_unlock(struct request_context *x, struct session *s)
{
	struct permit *p = permit_before_lock(x, s);

	if (!p && !fence_is_old(x, s))
		return false;
	if (!p)
		tell_not_held(x, s);
	else if (!unlock_suits_permit(x, s))
		return true;
	else if (request_has(&x->request, FIELD_COUNT))
		permits_give_back_to(x, s, p);
	else
		permit_give_back(x, s, p);
	return true;
}

void serve_UNLOCK(struct request_context *x, struct session *s)
{
	gives_up_waits(x, s);
	if (TAILQ_EMPTY(&s->permits) || !permit_unlock(x, s))
		lock_unlock(x, s);
}

/* --- EXTEND and CHECK --- */

/* Whether the request is about a permit; else about a lock. */
static bool request_is_of_permit(struct request_context *x, struct session *s)
{
	return request_has(&x->request, FIELD_PERMIT) || permit_not_lock(x, s);
}

static void extend_claim(struct request_context *x, struct permit *p, struct claim *c)
{
	struct pending *part = pool_get(&x->engine->table.pendings);

	part->session = &p->agent;
	part->lock = c->lock;
	part->verb = VERB_EXTEND;
	TAILQ_INSERT_TAIL(&p->agent.pendings, part, in_session);
	p->extending++;
	c->ttl_us = p->ttl_us;
	engine_extend(x->engine, c, part);
}

/* Each of its claims is extended by itself; the request is answered when both are. */
static void permit_extend(struct request_context *x, struct session *s)
{
	struct permit *p;

	if (!ttl_is_allowed(x, s))
		return;
	p = permit_held(x, s);
	if (!p || !pendings_within_limit(x, s))
		return;
	if (p->extend) {
		tell_error(x, s, x->request.tag, ERROR_LIMIT, "another EXTEND of this permit is under way: ask again when it is answered");
		return;
	}
	if (request_has(&x->request, FIELD_TTL))
		p->ttl_us = x->request.field[FIELD_TTL].number;
	p->extended = NOT_REFUSED;
	p->extend = pending_of_request(x, s, p->mark.claim->lock);
	p->extend->permit = p;
	extend_claim(x, p, p->mark.claim);
	extend_claim(x, p, p->slot.claim);
}

void serve_EXTEND(struct request_context *x, struct session *s)
{
	if (request_is_of_permit(x, s))
		permit_extend(x, s);
	else
		lock_extend(x, s);
}

static void permit_check(struct request_context *x, struct session *s)
{
	struct permit *p = permit_held(x, s);
	struct reply r;

	if (!p)
		return;
	reply_begin(&r, session_line(x->sessions), x->request.tag, "OK");
	reply_permit(&r, p);
	reply_ms(&r, "valid_ms", permit_valid_us(x, p));
	reply_int(&r, "count", 1);
	tell_line(x, s, &r);
}

void serve_CHECK(struct request_context *x, struct session *s)
{
	if (request_is_of_permit(x, s))
		permit_check(x, s);
	else
		lock_check(x, s);
}

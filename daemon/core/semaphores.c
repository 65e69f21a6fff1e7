/* SPDX-License-Identifier: BSD-2-Clause */
/* See semaphores.h. */
#include "daemon/core/semaphores.h"

#include "daemon/core/engine.h"
#include "daemon/core/locks.h"
#include "daemon/core/owned.h"
#include "daemon/core/pending.h"
#include "daemon/core/remember.h"
#include "daemon/core/tell.h"
#include "daemon/core/terms.h"

#include <inttypes.h>

static unsigned request_weight(const struct request *q)
{
	return request_has(q, FIELD_WEIGHT) ? (unsigned)q->field[FIELD_WEIGHT].number : 1;
}

static bool weight_is_allowed(struct commander *x, struct session *s)
{
	const struct request *q = &x->request;
	int64_t limit = q->field[FIELD_LIMIT].number, weight = request_has(q, FIELD_WEIGHT) ? q->field[FIELD_WEIGHT].number : 1;

	if (limit < 1 || limit > LIMIT_MOST) {
		tell_mistake(x, s, limit < 1 ? ERROR_ARG : ERROR_LIMIT, "limit must be from 1 to %d", LIMIT_MOST);
		return false;
	}
	if (weight >= 1 && weight <= WEIGHT_MOST && weight <= limit)
		return true;
	tell_mistake(x, s, ERROR_ARG, "weight must be from 1 to %d, and no more than limit", WEIGHT_MOST);
	return false;
}

static bool permit_is_within_limits(struct commander *x, struct session *s, bool patient)
{
	const struct core_conf *conf = &x->core->conf;

	if (patient && session_waits_enough(s, conf->limits.waiting)) {
		tell_error(x, s, x->request.tag, ERROR_LIMIT, "a session may have at most %" PRIu64 " waiting requests (limits.waiting)",
		           conf->limits.waiting);
		return false;
	}
	if (s->held + s->waiting < conf->limits.locks)
		return true;
	tell_error(x, s, x->request.tag, ERROR_LIMIT, "a session may have at most %" PRIu64 " locks and permits (limits.locks)", conf->limits.locks);
	return false;
}

/* The limit of the permits that this daemon has, or is asking for. */
static bool limit_suits(struct commander *x, struct session *s, const struct semaphore *m)
{
	if (!m || m->limit == x->request.field[FIELD_LIMIT].number || semaphore_is_vacant(m))
		return true;
	tell_error(x, s, x->request.tag, ERROR_LIMIT,
	           "limit=%u is that of this semaphore at present: ask with the same limit, or when nobody has a permit of it", m->limit);
	return false;
}

static bool permit_is_repeated_by(const struct permit *p, const struct request *q)
{
	return p->not_notified && p->weight == request_weight(q) && p->semaphore->limit == q->field[FIELD_LIMIT].number &&
	       span_equal(semaphore_name(p->semaphore), q->word[0]) && span_equal(permit_owner(p), request_owner(q));
}

/* It asked, with a wait, before the session was resumed, and would not wait any more: the place is given up. */
static bool permit_gives_up(struct commander *x, struct permit *p, int64_t wait)
{
	if (!permit_is_asking(p) || wait != 0)
		return false;
	if (p->state != PERMIT_CANCELLED)
		permit_cancel(x, p);
	return true;
}

/* An ACQUIRE repeated after RESUME has its old place, or its turn. */
static bool permit_is_repeated(struct commander *x, struct session *s)
{
	const struct request *q = &x->request;
	int64_t wait = request_has(q, FIELD_WAIT) ? q->field[FIELD_WAIT].number : 0;
	struct permit *p;

	TAILQ_FOREACH(p, &s->permits, in_session) {
		if (!permit_is_repeated_by(p, q) || permit_is_adopting(p) || p->state == PERMIT_LOST || permit_gives_up(x, p, wait) ||
		    (permit_is_asking(p) && !p->patient))
			continue;
		if (p->state == PERMIT_HELD) {
			permit_hear(x, p);
			permit_tell_granted(x, p, q->tag);
			contended_permit(x, p, CONTENDED_FIRST);
			return true;
		}
		p->not_notified = false;
		heap_cancel(&x->core->timers, &p->timer);
		request_keep_tag(q, p->tag);
		permit_set_terms(x, p);
		p->wait_until = wait == WAIT_FOREVER ? INSTANT_NEVER : instant_add(x->core->now, wait);
		if (p->state != PERMIT_TRYING)
			heap_set(&x->core->timers, &p->timer, p->wait_until);
		s->busy |= q->tag.n == 0;
		return true;
	}
	return false;
}

void serve_ACQUIRE(struct commander *x, struct session *s)
{
	const struct request *q = &x->request;
	struct semaphore *m;

	if (!name_is_allowed(x, s) || !ttl_is_allowed(x, s) || !weight_is_allowed(x, s))
		return;
	if (x->engine->draining) {
		tell_draining(x, s, q->tag);
		return;
	}
	m = semaphore_find(x, q->word[0]);
	if (!limit_suits(x, s, m) || permit_is_repeated(x, s) ||
	    !permit_is_within_limits(x, s, request_has(q, FIELD_WAIT) && q->field[FIELD_WAIT].number > 0))
		return;
	m = semaphore_find_or_add(x, q->word[0], (unsigned)q->field[FIELD_LIMIT].number);
	permit_make_due(x, permit_new(x, s, m, request_weight(q)));
	s->busy |= q->tag.n == 0;
}

/* --- what it has --- */

static bool permit_is_of_request(const struct permit *p, const struct request *q)
{
	char text[SLOTS_TEXT];

	if (permit_is_asking(p) || !span_equal(semaphore_name(p->semaphore), q->word[0]))
		return false;
	if (request_has(q, FIELD_OWNER) && !span_equal(permit_owner(p), request_owner(q)))
		return false;
	if (request_has(q, FIELD_FENCE) && q->field[FIELD_FENCE].number != p->fence)
		return false; /* RELEASE, UNLOCK */
	return request_has(q, FIELD_PERMIT) ? span_equal(permit_text(p, text), q->field[FIELD_PERMIT].text) : span_equal(permit_owner(p), request_owner(q));
}

/* The one with these slots that it has, or has lost; without `permit` the one that the owner was granted last. NULL: it has none. */
static struct permit *permit_of_request(struct commander *x, struct session *s)
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
static struct permit __attribute__((noinline)) *permit_before_lock(struct commander *x, struct session *s)
{
	struct permit *p = permit_of_request(x, s);
	const struct lock *l = p && p->state == PERMIT_LOST ? lock_find(&x->engine->table, x->request.word[0]) : NULL;

	return l && lock_holder_of(l, s, request_owner(&x->request)) ? NULL : p;
}

/* The same of a request that may be about a lock; NULL: it is. */
static inline struct permit *permit_not_lock(struct commander *x, struct session *s)
{
	return TAILQ_EMPTY(&s->permits) ? NULL : permit_before_lock(x, s);
}

static void tell_not_held(struct commander *x, struct session *s)
{
	tell_error(x, s, x->request.tag, ERROR_NOTHELD, "this session does not hold %s of that semaphore%s",
	           request_has(&x->request, FIELD_PERMIT) ? "this permit" : "a permit", request_has(&x->request, FIELD_OWNER) ? " as this owner" : "");
}

static void tell_lost_before(struct commander *x, struct session *s, const struct permit *p)
{
	tell_error(x, s, x->request.tag, ERROR_LOST, "fence=%" PRId64 " reason=%s: lost before this request", p->fence, loss_word(p->loss));
}

/* Its client is told that it has it. NULL: answered. */
static struct permit *permit_held(struct commander *x, struct session *s)
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
		tell_error(x, s, x->request.tag, ERROR_QUORUM,
		           "the daemon was restarted, and fewer than %u of %u stores have confirmed the permit since: ask again in a moment",
		           quorum_of(x->core->conf.nodes), x->core->conf.nodes);
	} else {
		permit_hear(x, p);
		return p;
	}
	return NULL;
}

/* Gives the permit back; the answer has how many slots are free then, or, as for a lock, how often it is held. */
static void permit_give_back(struct commander *x, struct session *s, struct permit *p)
{
	struct reply r;

	if (p->state == PERMIT_LOST) {
		tell_lost_before(x, s, p);
		permit_end(x, p);
		return;
	}
	permit_watch(x, p, WATCH_RELEASED);
	reply_begin(&r, session_line(x->sessions), x->request.tag, "OK");
	reply_text(&r, "name", x->request.word[0]);
	if (x->request.verb == VERB_RELEASE)
		reply_int(&r, "free", semaphore_free_slots(p->semaphore) + p->weight);
	else
		reply_int(&r, "count", 0);
	tell_line(x, s, &r);
	permit_end(x, p);
}

void serve_RELEASE(struct commander *x, struct session *s)
{
	struct permit *p = permit_of_request(x, s);

	if (p)
		permit_give_back(x, s, p);
	else
		tell_not_held(x, s);
}

/* For clients that treat a permit like a lock. */
void serve_UNLOCK(struct commander *x, struct session *s)
{
	struct permit *p = permit_not_lock(x, s);

	if (p)
		permit_give_back(x, s, p);
	else
		lock_unlock(x, s);
}

/* --- EXTEND and CHECK --- */

/* Whether the request is about a permit; else about a lock. */
static bool request_is_of_permit(struct commander *x, struct session *s)
{
	return request_has(&x->request, FIELD_PERMIT) || permit_not_lock(x, s);
}

static void extend_claim(struct commander *x, struct permit *p, struct claim *c)
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

/* Each of its claims is extended by itself; the request is answered when all are. */
static void permit_extend(struct commander *x, struct session *s)
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
	for (unsigned i = 0; i < p->seats; i++)
		extend_claim(x, p, p->seat[i].claim);
}

void serve_EXTEND(struct commander *x, struct session *s)
{
	if (request_is_of_permit(x, s))
		permit_extend(x, s);
	else
		lock_extend(x, s);
}

static void permit_check(struct commander *x, struct session *s)
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

void serve_CHECK(struct commander *x, struct session *s)
{
	if (request_is_of_permit(x, s))
		permit_check(x, s);
	else
		lock_check(x, s);
}

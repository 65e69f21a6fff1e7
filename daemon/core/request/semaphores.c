/* SPDX-License-Identifier: BSD-2-Clause */
/* The requests ACQUIRE and RELEASE; UNLOCK, EXTEND and CHECK of a permit. */
#include "daemon/core/request/requests.h"

#include "daemon/base/mem.h"
#include "daemon/core/engine/engine.h"
#include "daemon/core/rate/rate.h"
#include "daemon/core/reply/records.h"
#include "daemon/core/reply/send.h"
#include "daemon/core/resume/resume.h"

#include <inttypes.h>
#include <stdlib.h>

static bool permit_is_of_request(const struct permit *p, const struct request *q)
{
	if (permit_is_asking(p) || !span_equal(p->semaphore->name, q->word[0]))
		return false;
	if (request_has(q, FIELD_OWNER) && !span_equal(p->bid.owner, request_owner(q)))
		return false;
	if (request_has(q, FIELD_FENCE) && q->field[FIELD_FENCE].number != p->fence)
		return false; /* RELEASE, UNLOCK */
	return request_has(q, FIELD_PERMIT) ? q->field[FIELD_PERMIT].number == p->slot.slot : span_equal(p->bid.owner, request_owner(q));
}

/* Returns the permit with this slot that the owner has, or has lost. Without `permit`, the one that was granted last. NULL: there is none. */
static struct permit *permit_of_request(struct request_context *x, struct session *s)
{
	struct permit *p, *found = NULL;

	PERMITS_FOREACH(p, s) {
		if (!permit_is_of_request(p, &x->request))
			continue;
		/* A slot may have been granted again since a permit with it was lost. */
		if (!found || (found->state == PERMIT_LOST) > (p->state == PERMIT_LOST) ||
		    (found->state == p->state && instant_diff(p->granted_at, found->granted_at) >= 0))
			found = p;
	}
	return found;
}

/* A lock that the owner holds comes before a permit of the same name that was lost earlier. */
static struct permit __attribute__((noinline)) *permit_before_lock(struct request_context *x, struct session *s)
{
	struct permit *p = permit_of_request(x, s);
	const struct lock *l = p && p->state == PERMIT_LOST ? lock_find(&x->engine->table, x->request.word[0]) : NULL;

	return l && lock_holder_of(l, s, request_owner(&x->request)) ? NULL : p;
}

/* The same for a request that may be about a lock; NULL: it is about a lock. */
static inline struct permit *permit_not_lock(struct request_context *x, struct session *s)
{
	return !permit_first(s) ? NULL : permit_before_lock(x, s);
}

/* ERR QUORUM: it was held in the previous run, and the stores have not confirmed yet that it still is. */
static void permit_send_adopting(struct request_context *x, struct session *s)
{
	send_error(x, s, x->request.tag, ERROR_QUORUM,
	           "the daemon was restarted, and fewer than %u of %u stores have confirmed the permit since: ask again in a moment",
	           quorum_of(x->core->conf.nodes), x->core->conf.nodes);
}

static void send_not_held(struct request_context *x, struct session *s)
{
	send_error(x, s, x->request.tag, ERROR_NOTHELD, "this session does not hold %s of that semaphore%s",
	           request_has(&x->request, FIELD_PERMIT) ? "this permit" : "a permit", request_has(&x->request, FIELD_OWNER) ? " as this owner" : "");
}

static void send_lost_before(struct request_context *x, struct session *s, const struct permit *p)
{
	send_error(x, s, x->request.tag, ERROR_LOST, "fence=%" PRId64 " reason=%s: lost before this request", p->fence, loss_word(p->loss));
}

/* Returns the permit that the request is about. Its client knows from now on that it has it. NULL: the request was answered. */
static struct permit *permit_held(struct request_context *x, struct session *s)
{
	struct permit *p = permit_of_request(x, s);
	const struct seat *lost = p && p->state == PERMIT_HELD ? permit_lost_seat(p) : NULL;

	if (lost) {
		permit_lose(x, p, lost->claim->loss);
		p = permit_of_request(x, s); /* a permit of which its client did not know is gone now */
	}
	if (!p) {
		send_not_held(x, s);
	} else if (p->state == PERMIT_LOST) {
		send_lost_before(x, s, p);
	} else if (permit_is_adopting(p)) {
		permit_send_adopting(x, s);
	} else {
		permit_notified(x, p);
		return p;
	}
	return NULL;
}

/* free: how many slots are free now. count: how many permits the owner has; or, as for a lock, how many times it holds it. */
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
	send_line(x, s, &r);
}

/* RELEASE count=0 may be repeated after RESUME, and gets the same answer. */
static void permit_acknowledge(struct request_context *x, struct session *s, struct permit *p)
{
	if (!request_has(&x->request, FIELD_COUNT) || s->grace_us == 0) {
		permit_end(x, p);
		return;
	}
	p->acknowledged = true;
	permit_drop_all(x, p);
	heap_set(&x->core->timers, &p->bid.timer, resume_repeat_until(x, s));
}

/* The owner wants none and has none. The answer names the last loss. The others were reported when they happened. */
static void permits_acknowledge(struct request_context *x, struct session *s, const struct permit *last)
{
	struct permit *p, *next;

	send_lost_before(x, s, last);
	for (p = permit_first(s); p; p = next) {
		next = permit_next(p);
		if (p->state == PERMIT_LOST && permit_is_of_request(p, &x->request))
			permit_acknowledge(x, s, p);
	}
}

static void permit_give_back(struct request_context *x, struct session *s, struct permit *p)
{
	if (p->state == PERMIT_LOST) {
		send_lost_before(x, s, p);
		permit_acknowledge(x, s, p);
		return;
	}
	permit_watch(x, p, WATCH_RELEASED);
	reply_given_back(x, s, semaphore_free_slots(p->semaphore) + 1, 0);
	permit_end(x, p);
}

/* Returns how many of its present permits the request may be about. */
static unsigned permits_held(struct request_context *x, const struct session *s)
{
	const struct permit *p;
	unsigned n = 0;

	PERMITS_FOREACH(p, s)
		n += p->state == PERMIT_HELD && permit_is_of_request(p, &x->request);
	return n;
}

/* The fence belongs to an earlier grant. */
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

/* For qsort: the latest grants come first. */
static int permit_compare(const void *a, const void *b)
{
	const struct permit *p = *(struct permit *const *)a, *q = *(struct permit *const *)b;
	int64_t later = instant_diff(q->granted_at, p->granted_at);

	if (later == 0)
		later = q->fence - p->fence;
	return (later > 0) - (later < 0);
}

/* Gives back the latest permits of the owner. */
static void permits_give_back(struct request_context *x, struct session *s, unsigned has, unsigned count)
{
	struct permit **held = mem_alloc(has * sizeof(struct permit *)), *p;
	unsigned n = 0;

	PERMITS_FOREACH(p, s)
		if (p->state == PERMIT_HELD && permit_is_of_request(p, &x->request))
			held[n++] = p;
	qsort(held, n, sizeof(struct permit *), permit_compare);
	for (unsigned i = 0; i < has - count; i++) {
		permit_watch(x, held[i], WATCH_RELEASED);
		permit_end(x, held[i]);
	}
	mem_free(held);
}

/* Gives back permits until the owner has at most count=. p: the latest one; NULL: it has none. */
static void permits_give_back_to(struct request_context *x, struct session *s, const struct permit *p)
{
	const struct request *q = &x->request;
	unsigned has = permits_held(x, s), count = request_count(q);
	const struct semaphore *m = semaphore_find(x, q->word[0]);
	int64_t free = m ? (int64_t)semaphore_free_slots(m) : -1;

	if (p && p->state == PERMIT_LOST && count > 0) {
		send_lost_before(x, s, p); /* the owner relies on it */
	} else if (p && p->state == PERMIT_LOST) {
		permits_acknowledge(x, s, p);
	} else if (has == 0 && fence_is_old(x, s)) {
		send_not_held(x, s);
	} else if (count > has) {
		send_invalid(x, s, ERROR_ARG, "count=%u, but this owner has %u permits: RELEASE lowers the count", count, has);
	} else {
		permits_give_back(x, s, has, count);
		reply_given_back(x, s, free + has - count, count);
	}
}

/* With fence= the request is only about the grant with that fence. */
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
		send_not_held(x, s);
}

static bool unlock_suits_permit(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;
	bool keeps = request_has(q, FIELD_KEEP) && q->field[FIELD_KEEP].number > 0, waits = request_has(q, FIELD_SYNC) && q->field[FIELD_SYNC].number;

	if (keeps || waits)
		send_invalid(x, s, ERROR_ARG, "%s is for locks: RELEASE a permit without it", keeps ? "keep=" : "sync=");
	return !keeps && !waits;
}

/* For clients that handle a permit like a lock. False: the request is about a lock. */
static bool __attribute__((noinline)) permit_unlock(struct request_context *x, struct session *s)
{
	struct permit *p = permit_before_lock(x, s);

	if (!p && !fence_is_old(x, s))
		return false;
	if (!p)
		send_not_held(x, s);
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
	if (!permit_first(s) || !permit_unlock(x, s))
		lock_unlock(x, s);
}

/* --- EXTEND and CHECK --- */

/* Whether the request is about a permit, and not about a lock. */
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
	c->ttl_us = p->bid.ttl_us;
	engine_extend(x->engine, c, part);
}

/* Each claim is extended separately. The request is answered after both. */
static void permit_extend(struct request_context *x, struct session *s)
{
	struct permit *p;

	if (!ttl_is_allowed(x, s))
		return;
	p = permit_held(x, s);
	if (!p || !pendings_within_limit(x, s))
		return;
	if (p->extend) {
		send_error(x, s, x->request.tag, ERROR_LIMIT, "another EXTEND of this permit is under way: ask again when it is answered");
		return;
	}
	if (request_has(&x->request, FIELD_TTL))
		p->bid.ttl_us = x->request.field[FIELD_TTL].number;
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
	send_line(x, s, &r);
}

void serve_CHECK(struct request_context *x, struct session *s)
{
	if (request_is_of_permit(x, s))
		permit_check(x, s);
	else
		lock_check(x, s);
}

static bool limit_is_allowed(struct request_context *x, struct session *s)
{
	int64_t limit = x->request.field[FIELD_LIMIT].number;

	if (limit >= 1 && limit <= LIMIT_MOST)
		return true;
	send_invalid(x, s, limit < 1 ? ERROR_ARG : ERROR_LIMIT, "limit must be from 1 to %d", LIMIT_MOST);
	return false;
}

static bool permit_is_within_limits(struct request_context *x, struct session *s, bool patient)
{
	const struct core_conf *conf = &x->core->conf;

	if (patient && !waits_have_room(x, s))
		return false;
	if (!crowd_has_room(x, s))
		return false;
	if (s->held + s->waiting < conf->limits.locks)
		return names_have_room(x, s, 2 * (x->request.word[0].n + NAME_BYTES), false);
	send_error(x, s, x->request.tag, ERROR_LIMIT, "a session may have at most %" PRIu64 " locks and permits (limits.locks)", conf->limits.locks);
	return false;
}

/* Checks the limit against the permits that this daemon has, or is asking for. */
static bool limit_suits(struct request_context *x, struct session *s, const struct semaphore *m)
{
	if (!m || m->limit == x->request.field[FIELD_LIMIT].number || semaphore_is_vacant(m))
		return true;
	send_error(x, s, x->request.tag, ERROR_LIMIT,
	           "limit=%u is that of this semaphore at present: ask with the same limit, or when nobody has a permit of it", m->limit);
	return false;
}

static bool permit_is_counted(const struct permit *p, const struct request *q)
{
	return permit_is_asking(p) && p->bid.count > 0 && request_has(q, FIELD_COUNT) && !p->bid.withdrawn;
}

/* After RESUME: the same request. If both have count=, also before RESUME. */
static bool permit_is_repeated_by(const struct permit *p, const struct request *q)
{
	return (p->bid.not_notified || permit_is_counted(p, q)) && p->semaphore->limit == q->field[FIELD_LIMIT].number &&
	       span_equal(p->semaphore->name, q->word[0]) && span_equal(p->bid.owner, request_owner(q));
}

/* It waits, but the repeated request would not wait: it gives up its place. */
static bool permit_gives_up(struct request_context *x, struct permit *p, int64_t wait)
{
	if (!permit_is_asking(p) || wait != 0 || !(p->bid.not_notified || p->bid.patient))
		return false;
	if (!p->bid.withdrawn)
		bid_withdraw(x, &p->bid);
	return true;
}

/* From now on it waits for this request. */
static void permit_waits_again(struct request_context *x, struct permit *p)
{
	if (!p->bid.not_notified)
		send_replaced(x, p->bid.session, span_of(p->bid.tag));
	bid_repeat(x, &p->bid);
	inner_session_set_terms(&p->bid, true, 0);
	if (p->state != PERMIT_TRYING)
		heap_set(&x->core->timers, &p->bid.timer, p->bid.wait_until);
}

/* An ACQUIRE that is repeated after RESUME gets its old place, or finds that it was granted. */
static bool permit_is_repeated(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;
	int64_t wait = request_has(q, FIELD_WAIT) ? q->field[FIELD_WAIT].number : 0;
	struct permit *p;

	PERMITS_FOREACH(p, s) {
		if (!permit_is_repeated_by(p, q) || permit_is_adopting(p) || p->state == PERMIT_LOST || permit_gives_up(x, p, wait) ||
		    (permit_is_asking(p) && !p->bid.patient && !permit_is_counted(p, q)))
			continue;
		if (p->state == PERMIT_HELD) {
			permit_notified(x, p);
			permit_send_granted(x, p, q->tag);
			contended_send(x, p, CONTENDED_FIRST);
			return true;
		}
		permit_waits_again(x, p);
		return true;
	}
	return false;
}

static bool permit_is_of_owner(const struct permit *p, const struct request *q)
{
	return span_equal(p->semaphore->name, q->word[0]) && span_equal(p->bid.owner, request_owner(q));
}

/* The owner has so many permits already. Answers with the latest one. */
static void permit_is_had(struct request_context *x, struct session *s, struct permit *p)
{
	bool not_known_yet;

	if (permit_is_adopting(p)) {
		permit_send_adopting(x, s);
		return;
	}
	not_known_yet = p->bid.not_notified;
	permit_notified(x, p);
	permit_send_granted(x, p, x->request.tag);
	if (not_known_yet)
		contended_send(x, p, CONTENDED_FIRST);
}

/* The request is refused. If it repeats an earlier one that waits, that one ends as well. */
static void permits_end_repeated(struct request_context *x, struct session *s)
{
	struct permit *p;

	PERMITS_FOREACH(p, s)
		if (permit_is_asking(p) && !p->bid.withdrawn && permit_is_repeated_by(p, &x->request))
			bid_withdraw(x, &p->bid);
}

/* Applies count= to the permits that its owner has. True: that answers the request. */
static bool permit_count_answers(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;
	int64_t count = q->field[FIELD_COUNT].number, has = 0;
	struct permit *p, *last = NULL;

	PERMITS_FOREACH(p, s) {
		if (p->state != PERMIT_HELD || !permit_is_of_owner(p, q))
			continue;
		has++;
		if (!last || instant_diff(p->granted_at, last->granted_at) >= 0)
			last = p;
	}
	if (count == has && last)
		permit_is_had(x, s, last);
	else if (count != has + 1)
		send_invalid(x, s, ERROR_ARG, "count=%" PRId64 ", but this owner has %" PRId64 " permits: %s", count, has,
		             count == 0 ? "count of ACQUIRE is from 1" : count < has ? "RELEASE lowers the count" : "each ACQUIRE adds one at most");
	else
		return false;
	if (count != has)
		permits_end_repeated(x, s);
	return true;
}

void serve_ACQUIRE(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;
	struct semaphore *m;

	if (!name_is_allowed(x, s) || !ttl_is_allowed(x, s) || !limit_is_allowed(x, s))
		return;
	m = semaphore_find(x, q->word[0]);
	if (!limit_suits(x, s, m) || (request_has(q, FIELD_COUNT) && permit_count_answers(x, s)))
		return;
	if (x->engine->draining) {
		send_draining(x, s, q->tag);
		return;
	}
	if (permit_is_repeated(x, s) ||
	    !permit_is_within_limits(x, s, request_has(q, FIELD_WAIT) && q->field[FIELD_WAIT].number > 0))
		return;
	m = semaphore_find_or_add(x, q->word[0], (unsigned)q->field[FIELD_LIMIT].number);
	bid_set_due(x, &permit_new(x, s, m)->bid, DUE_NOW);
}

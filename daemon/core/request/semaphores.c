/* SPDX-License-Identifier: BSD-2-Clause */
/* See semaphores.h. */
#include "daemon/core/request/semaphores.h"

#include "daemon/core/rate/stored_limits.h"
#include "daemon/core/reply/records.h"
#include "daemon/core/reply/renewal_limits.h"
#include "daemon/core/reply/tell.h"
#include "daemon/core/reply/request_terms.h"
#include "daemon/core/request/locks.h"
#include "daemon/core/request/held_permits.h"

#include <inttypes.h>

static bool limit_is_allowed(struct request_context *x, struct session *s)
{
	int64_t limit = x->request.field[FIELD_LIMIT].number;

	if (limit >= 1 && limit <= LIMIT_MOST)
		return true;
	tell_mistake(x, s, limit < 1 ? ERROR_ARG : ERROR_LIMIT, "limit must be from 1 to %d", LIMIT_MOST);
	return false;
}

static bool permit_is_within_limits(struct request_context *x, struct session *s, bool patient)
{
	const struct core_conf *conf = &x->core->conf;

	if (patient && session_waits_enough(s, conf->limits.waiting)) {
		tell_error(x, s, x->request.tag, ERROR_LIMIT, "a session may have at most %" PRIu64 " waiting requests (limits.waiting)",
		           conf->limits.waiting);
		return false;
	}
	if (!crowd_has_room(x, s))
		return false;
	if (s->held + s->waiting < conf->limits.locks)
		return names_have_room(x, s, 2 * (x->request.word[0].n + NAME_BYTES), false);
	tell_error(x, s, x->request.tag, ERROR_LIMIT, "a session may have at most %" PRIu64 " locks and permits (limits.locks)", conf->limits.locks);
	return false;
}

/* The limit of the permits that this daemon has, or is asking for. */
static bool limit_suits(struct request_context *x, struct session *s, const struct semaphore *m)
{
	if (!m || m->limit == x->request.field[FIELD_LIMIT].number || semaphore_is_vacant(m))
		return true;
	tell_error(x, s, x->request.tag, ERROR_LIMIT,
	           "limit=%u is that of this semaphore at present: ask with the same limit, or when nobody has a permit of it", m->limit);
	return false;
}

static bool permit_is_counted(const struct permit *p, const struct request *q)
{
	return permit_is_asking(p) && p->counted && request_has(q, FIELD_COUNT) && p->state != PERMIT_CANCELLED;
}

/* After RESUME the same request; with count= on both of them also before. */
static bool permit_is_repeated_by(const struct permit *p, const struct request *q)
{
	return (p->not_notified || permit_is_counted(p, q)) && p->semaphore->limit == q->field[FIELD_LIMIT].number &&
	       span_equal(semaphore_name(p->semaphore), q->word[0]) && span_equal(permit_owner(p), request_owner(q));
}

/* It asked, with a wait, and would not wait any more: the place is given up. */
static bool permit_gives_up(struct request_context *x, struct permit *p, int64_t wait)
{
	if (!permit_is_asking(p) || wait != 0 || !(p->not_notified || p->patient))
		return false;
	if (p->state != PERMIT_CANCELLED)
		permit_cancel(x, p);
	return true;
}

/* It waits for this request from now on. */
static void permit_waits_again(struct request_context *x, struct permit *p, int64_t wait)
{
	const struct request *q = &x->request;

	if (!p->not_notified)
		tell_replaced(x, p->session, span_of(p->tag));
	p->not_notified = false;
	heap_cancel(&x->core->timers, &p->timer);
	request_keep_tag(q, p->tag);
	permit_set_terms(x, p);
	p->patient |= wait > 0;
	p->wait_until = wait == WAIT_FOREVER ? INSTANT_NEVER : instant_add(x->core->now, wait);
	if (p->state != PERMIT_TRYING)
		heap_set(&x->core->timers, &p->timer, p->wait_until);
	p->session->busy |= q->tag.n == 0;
}

/* An ACQUIRE repeated after RESUME has its old place, or its turn. */
static bool permit_is_repeated(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;
	int64_t wait = request_has(q, FIELD_WAIT) ? q->field[FIELD_WAIT].number : 0;
	struct permit *p;

	TAILQ_FOREACH(p, &s->permits, in_session) {
		if (!permit_is_repeated_by(p, q) || permit_is_adopting(p) || p->state == PERMIT_LOST || permit_gives_up(x, p, wait) ||
		    (permit_is_asking(p) && !p->patient && !permit_is_counted(p, q)))
			continue;
		if (p->state == PERMIT_HELD) {
			permit_hear(x, p);
			permit_tell_granted(x, p, q->tag);
			contended_permit(x, p, CONTENDED_FIRST);
			return true;
		}
		permit_waits_again(x, p, wait);
		return true;
	}
	return false;
}

static bool permit_is_of_owner(const struct permit *p, const struct request *q)
{
	return span_equal(semaphore_name(p->semaphore), q->word[0]) && span_equal(permit_owner(p), request_owner(q));
}

/* The owner has so many permits already: this is the one that it was granted last. */
static void permit_is_had(struct request_context *x, struct session *s, struct permit *p)
{
	bool unheard;

	if (permit_is_adopting(p)) {
		tell_permit_adopting(x, s);
		return;
	}
	unheard = p->not_notified;
	permit_hear(x, p);
	permit_tell_granted(x, p, x->request.tag);
	if (unheard)
		contended_permit(x, p, CONTENDED_FIRST);
}

/* The request is refused: an earlier one that waits, and that it repeats, is over as well. */
static void permits_end_repeated(struct request_context *x, struct session *s)
{
	struct permit *p;

	TAILQ_FOREACH(p, &s->permits, in_session)
		if (permit_is_asking(p) && p->state != PERMIT_CANCELLED && permit_is_repeated_by(p, &x->request))
			permit_cancel(x, p);
}

/* What count= says of the permits that its owner has. True: that answers the request. */
static bool permit_count_answers(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;
	int64_t count = q->field[FIELD_COUNT].number, has = 0;
	struct permit *p, *last = NULL;

	TAILQ_FOREACH(p, &s->permits, in_session) {
		if (p->state != PERMIT_HELD || !permit_is_of_owner(p, q))
			continue;
		has++;
		if (!last || instant_diff(p->granted_at, last->granted_at) >= 0)
			last = p;
	}
	if (count == has && last)
		permit_is_had(x, s, last);
	else if (count != has + 1)
		tell_mistake(x, s, ERROR_ARG, "count=%" PRId64 ", but this owner has %" PRId64 " permits: %s", count, has,
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
		tell_draining(x, s, q->tag);
		return;
	}
	if (permit_is_repeated(x, s) ||
	    !permit_is_within_limits(x, s, request_has(q, FIELD_WAIT) && q->field[FIELD_WAIT].number > 0))
		return;
	m = semaphore_find_or_add(x, q->word[0], (unsigned)q->field[FIELD_LIMIT].number);
	permit_make_due(x, permit_new(x, s, m));
	s->busy |= q->tag.n == 0;
}

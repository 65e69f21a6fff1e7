/* SPDX-License-Identifier: BSD-2-Clause */
/* See renewal_limits.h. Figures are thousandths of a renewal a second. */
#include "daemon/core/reply/renewal_limits.h"

#include "daemon/core/reply/tell.h"
#include "daemon/core/session/group.h"
#include "daemon/core/session/jobs.h"
#include "daemon/core/session/semaphore.h"

#include <inttypes.h>

#define LONG_US      (10 * SEC)
#define AGAIN_US     (100 * MSEC)
#define COUNTED_MOST 4096 /* leases that are counted anew at each sum */

#define LEASES_OF_PERMIT 2 /* the mark and one slot, whatever lines it stands in */
#define LEASES_OF_TAKE   2 /* the job and its lock */

/* A loss of which only the journal tells has no ttl. */
static int64_t milli_of(int64_t ttl_us)
{
	return ttl_us > 0 && ttl_us < LONG_US ? 3 * 1000 * SEC / ttl_us : 0;
}

/*
 * What the session has and what it may come to hold, by whatever it asks and waits for. repeatable: only the requests that its client may repeat, as their
 * answers were lost with the connection.
 */
static int64_t session_milli(const struct session *s, bool repeatable)
{
	int64_t sum = 0;
	const struct claim *c;
	const struct permit *p;
	const struct group *g;
	const struct take *take;
	const struct job *job;

	TAILQ_FOREACH(c, &s->claims, in_session)
		if ((c->not_notified || !repeatable) && c->renew && c->state != CLAIM_LOST)
			sum += milli_of(c->ttl_us);
	TAILQ_FOREACH(p, &s->permits, in_session)
		if ((p->not_notified || !repeatable) && p->state != PERMIT_LOST)
			sum += LEASES_OF_PERMIT * milli_of(p->ttl_us);
	LIST_FOREACH(g, &s->groups, in_session)
		if ((g->not_notified || !repeatable) && g->renew && !g->take)
			sum += (g->any ? 1 : g->parts) * milli_of(g->ttl_us);
	LIST_FOREACH(job, &s->jobs, in_session)
		if (!repeatable && job->state != JOB_LOST)
			sum += milli_of(job->ttl_us);
	LIST_FOREACH(take, &s->takes, in_session)
		if (!repeatable)
			sum += LEASES_OF_TAKE * milli_of(take->ttl_us);
	return sum;
}

/* Likewise. */
static int64_t leases_asked_for(const struct request *q)
{
	switch (q->verb) {
	case VERB_LOCKALL:
		return q->words;
	case VERB_ACQUIRE:
		return LEASES_OF_PERMIT;
	case VERB_TAKE:
		return LEASES_OF_TAKE;
	case VERB_EXTEND:
		return 0; /* it has that lease already, and it counts from the next request on */
	default:
		return 1;
	}
}

/* A client that was resumed may say again what it had said: that much is no more than it has. */
static int64_t milli_asked_for(const struct session *s, int64_t leases, int64_t ttl_us)
{
	int64_t more = leases * milli_of(ttl_us), again = s->resumed ? session_milli(s, true) : 0;

	return more > again ? more - again : 0;
}

static void session_set_renewals(struct request_context *x, struct session *s, int64_t milli)
{
	s->renewals = milli;
	if (milli > 0 && !s->in_short.le_prev) {
		LIST_INSERT_HEAD(&x->renewals.sessions, s, in_short);
	} else if (milli == 0 && s->in_short.le_prev) {
		LIST_REMOVE(s, in_short);
		s->in_short.le_prev = NULL;
	}
}

/* Some of them in each sum, so that each has its turn: they may have lost or released what was counted last. */
static void count_anew(struct request_context *x)
{
	struct session *s, *next;
	uint64_t counted = 0;

	for (s = LIST_FIRST(&x->renewals.sessions); s && counted < COUNTED_MOST; s = next) {
		next = LIST_NEXT(s, in_short);
		if (s->recounted == x->renewals.recounts)
			continue;
		s->recounted = x->renewals.recounts;
		counted += 1 + s->held + s->waiting;
		session_set_renewals(x, s, session_milli(s, false));
	}
	if (!s)
		x->renewals.recounts++;
}

static struct renewals_sum *sum_of(struct request_context *x, uint64_t origin)
{
	struct renewals_sum *sum = &x->renewals.sum[origin % RENEWALS_SUMS];
	const struct session *s;

	if (sum->origin == origin && instant_before(x->core->now, sum->until))
		return sum;
	count_anew(x);
	*sum = (struct renewals_sum){.origin = origin, .until = instant_add(x->core->now, AGAIN_US)};
	LIST_FOREACH(s, &x->renewals.sessions, in_short)
		if (origin == 0 || origin_id(s->origin) == origin)
			sum->milli += s->renewals;
	return sum;
}

static bool refuse(struct request_context *x, struct session *s, int64_t ttl_us, int64_t leases, const char *whose, int64_t most, int64_t used)
{
	int64_t left = most * 1000 - used, right_us = left > 0 ? 3 * 1000 * SEC * leases / left + MSEC : LONG_US;

	tell_error(x, s, x->request.tag, ERROR_LIMIT,
	           "a lease of %" PRId64 "ms is renewed every %" PRId64 "ms, and the leases below %dms of %s may have at most %" PRId64
	           " renewals a second (limits.renewals): a ttl of %" PRId64 "ms or more is right now",
	           ttl_us / MSEC, ttl_us / 3 / MSEC, (int)(LONG_US / MSEC), whose, most,
	           (right_us < LONG_US ? right_us : LONG_US) / MSEC);
	return false;
}

static bool renewals_allow(struct request_context *x, struct session *s, int64_t ttl_us)
{
	int64_t all = (int64_t)x->core->conf.limits.renewals, leases = leases_asked_for(&x->request), before, own, more;
	struct renewals_sum *of_all, *of_peer;

	if (all == 0 || !request_is_renewed(&x->request))
		return true;
	more = milli_asked_for(s, leases, ttl_us);
	own = session_milli(s, false);
	of_all = sum_of(x, 0);
	of_peer = sum_of(x, origin_id(s->origin));
	before = s->renewals;
	session_set_renewals(x, s, own);
	if (own + more > all / 20 * 1000)
		return refuse(x, s, ttl_us, leases, "one session", all / 20, own);
	if (!session_is_owner(x->core, s) && of_peer->milli + more > all / 2 * 1000)
		return refuse(x, s, ttl_us, leases, "the sessions of one peer", all / 2, of_peer->milli);
	if (of_all->milli + more > all * 1000)
		return refuse(x, s, ttl_us, leases, "all sessions", all, of_all->milli);
	session_set_renewals(x, s, own + more);
	of_all->milli += own + more - before;
	of_peer->milli += own + more - before;
	return true;
}

bool ttl_is_allowed(struct request_context *x, struct session *s)
{
	const struct core_conf *conf = &x->core->conf;
	int64_t ttl = request_has(&x->request, FIELD_TTL) ? x->request.field[FIELD_TTL].number : conf->lease_us;

	if (!request_has(&x->request, FIELD_TTL) || (ttl >= conf->min_lease_us && ttl <= conf->max_lease_us))
		return ttl >= LONG_US || renewals_allow(x, s, ttl);
	tell_mistake(x, s, ERROR_LIMIT, "ttl must be from %" PRId64 "ms (min_lease) to %" PRId64 "ms (max_lease)",
	             conf->min_lease_us / MSEC, conf->max_lease_us / MSEC);
	return false;
}

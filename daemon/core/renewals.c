/* SPDX-License-Identifier: BSD-2-Clause */
/* See renewals.h. Figures are thousandths of a renewal a second. */
#include "daemon/core/renewals.h"

#include "daemon/core/jobs.h"
#include "daemon/core/semaphore.h"
#include "daemon/core/tell.h"

#include <inttypes.h>

#define AGAIN_US     (100 * MSEC)
#define COUNTED_MOST 4096 /* leases that are counted anew at each sum */

/* A loss of which only the journal tells has no ttl. */
static int64_t milli_of(int64_t ttl_us)
{
	return ttl_us > 0 && ttl_us < RENEWALS_LONG_US ? 3 * 1000 * SEC / ttl_us : 0;
}

static int64_t claims_milli(const struct claims *claims)
{
	const struct claim *c;
	int64_t sum = 0;

	TAILQ_FOREACH(c, claims, in_session)
		sum += c->renew && c->state != CLAIM_LOST ? milli_of(c->ttl_us) : 0;
	return sum;
}

static int64_t session_milli(const struct session *s)
{
	int64_t sum = claims_milli(&s->claims);
	const struct permit *p;
	const struct take *take;
	const struct job *job;

	TAILQ_FOREACH(p, &s->permits, in_session)
		sum += claims_milli(&p->agent.claims);
	LIST_FOREACH(job, &s->jobs, in_session)
		sum += job->state != JOB_LOST ? milli_of(job->ttl_us) : 0;
	LIST_FOREACH(take, &s->takes, in_session)
		sum += milli_of(take->ttl_us);
	return sum;
}

/* One lock each; of an ACQUIRE its mark and slots, of a TAKE the job and its lock. */
static int64_t leases_asked_for(const struct request *q)
{
	switch (q->verb) {
	case VERB_LOCKALL:
	case VERB_LOCKANY:
		return q->words;
	case VERB_ACQUIRE:
	case VERB_TAKE:
		return 2;
	case VERB_EXTEND:
		return 0; /* it has that lease already, and it counts from the next request on */
	default:
		return 1;
	}
}

static void session_set_renewals(struct commander *x, struct session *s, int64_t milli)
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
static void count_anew(struct commander *x)
{
	struct session *s, *next;
	uint64_t counted = 0;

	for (s = LIST_FIRST(&x->renewals.sessions); s && counted < COUNTED_MOST; s = next) {
		next = LIST_NEXT(s, in_short);
		if (s->recounted == x->renewals.recounts)
			continue;
		s->recounted = x->renewals.recounts;
		counted += 1 + s->held + s->waiting + s->slots;
		session_set_renewals(x, s, session_milli(s));
	}
	if (!s)
		x->renewals.recounts++;
}

static struct renewals_sum *sum_of(struct commander *x, uint64_t origin)
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

static bool refuse(struct commander *x, struct session *s, int64_t ttl_us, int64_t leases, const char *whose, int64_t most, int64_t used)
{
	int64_t left = most * 1000 - used, right_us = left > 0 ? 3 * 1000 * SEC * leases / left + MSEC : RENEWALS_LONG_US;

	tell_error(x, s, x->request.tag, ERROR_LIMIT,
	           "a lease of %" PRId64 "ms is renewed every %" PRId64 "ms, and the leases below %dms of %s may have at most %" PRId64
	           " renewals a second (limits.renewals): a ttl of %" PRId64 "ms or more is right now",
	           ttl_us / MSEC, ttl_us / 3 / MSEC, (int)(RENEWALS_LONG_US / MSEC), whose, most,
	           (right_us < RENEWALS_LONG_US ? right_us : RENEWALS_LONG_US) / MSEC);
	return false;
}

bool renewals_allow(struct commander *x, struct session *s, int64_t ttl_us)
{
	int64_t all = (int64_t)x->core->conf.limits.renewals, leases = leases_asked_for(&x->request), before, own, more;
	struct renewals_sum *of_all, *of_peer;

	if (all == 0 || ttl_us >= RENEWALS_LONG_US)
		return true;
	more = leases * milli_of(ttl_us);
	own = session_milli(s);
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

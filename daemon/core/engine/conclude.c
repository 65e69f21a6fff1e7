/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/engine/conclude.h"

#include "daemon/core/engine/acquire.h"
#include "daemon/core/engine/break.h"
#include "daemon/core/engine/grant.h"
#include "daemon/core/engine/lessee.h"
#include "daemon/core/engine/look.h"
#include "daemon/core/engine/move.h"
#include "daemon/core/engine/renew.h"
#include "daemon/core/engine/retry.h"

void conclude_adoption(struct engine *e, struct lease *x, const struct round *r, enum adopt_outcome outcome)
{
	switch (outcome) {
	case ADOPT_GOES_ON:
		break;
	case ADOPT_WON:
		lessee_adopted(e, x, r);
		break;
	case ADOPT_DENIED:
		lessee_evicted(e, x);
		break;
	case ADOPT_OVER:
		lessee_expire(e, x);
		break;
	}
}

static void conclude_acquire(struct engine *e, struct round *r, enum round_outcome outcome, int64_t token)
{
	if (outcome == ROUND_WON)
		grant_won(e, r, token);
	else if (outcome != ROUND_PENDING)
		retry_after(e, r, outcome);
}

static void conclude_acquire_expired(struct engine *e, struct round *r)
{
	int64_t token = 0;
	enum round_outcome outcome = acquire_expired(e, r, &token);

	conclude_acquire(e, r, outcome, token);
	retire_round(e, r);
}

static void conclude_acquire_answered(struct engine *e, struct round *r, const struct answer *a)
{
	int64_t token = 0;
	enum round_outcome outcome = acquire_answered(e, r, a, &token);

	conclude_acquire(e, r, outcome, token);
}

static void conclude_renewal(struct engine *e, struct round *r, enum renew_outcome outcome)
{
	switch (outcome) {
	case RENEW_GOES_ON:
		lessee_renewed(e, r);
		break;
	case RENEW_IS_ADOPTION:
		conclude_adoption(e, r->lease, r, adopt_decide(e, r));
		break;
	case RENEW_EVICTED:
		lessee_evicted(e, r->lease);
		break;
	case RENEW_LEASE_OVER:
		lessee_expire(e, r->lease);
		break;
	}
}

static void conclude_renewal_expired(struct engine *e, struct round *r)
{
	conclude_renewal(e, r, renew_expired(e, r));
	retire_round(e, r);
}

static void conclude_expired(struct engine *e, struct round *r)
{
	switch (r->question) {
	case QUESTION_ACQUIRE:
	case QUESTION_RAISE:
		conclude_acquire_expired(e, r);
		break;
	case QUESTION_RENEW:
		conclude_renewal_expired(e, r);
		break;
	case QUESTION_ADOPT:
		adopt_expired(e, r);
		break;
	case QUESTION_LOOK:
		look_expired(e, r);
		break;
	case QUESTION_HOLDER:
	case QUESTION_BREAK:
		break_expired(e, r);
		break;
	}
}

void conclude_fired(struct engine *e, struct round *r)
{
	struct instant slow_at;

	if (r->question == QUESTION_ACQUIRE && !r->decided && acquire_ask_more(e, r))
		return;
	r->expired = true;
	calls_stall(&e->calls, &r->calls);
	slow_at = calls_slow_at(&e->calls, &r->calls);
	if (instant_before(e->core->now, slow_at))
		heap_set(&e->core->timers, &r->timer, slow_at); /* the round was decided early: the stores that have not answered have time until then */
	if (!r->decided)
		conclude_expired(e, r);
}

void conclude_answered(struct engine *e, struct round *r, const struct answer *a)
{
	switch (r->question) {
	case QUESTION_ACQUIRE:
	case QUESTION_RAISE:
		conclude_acquire_answered(e, r, a);
		break;
	case QUESTION_RENEW:
	case QUESTION_ADOPT: /* sends EXTENDs as well: renew_answered() counts their votes, adopt_decide() concludes */
		conclude_renewal(e, r, renew_answered(e, r, a));
		break;
	case QUESTION_LOOK:
		look_answered(e, r, a);
		break;
	case QUESTION_HOLDER:
	case QUESTION_BREAK:
		break_answered(e, r, a);
		break;
	}
	retire_round(e, r);
}

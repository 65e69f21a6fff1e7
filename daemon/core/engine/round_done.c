/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/engine/round_done.h"

#include "daemon/core/engine/acquire.h"
#include "daemon/core/engine/break.h"
#include "daemon/core/engine/convert.h"
#include "daemon/core/engine/grant.h"
#include "daemon/core/engine/lease_owner.h"
#include "daemon/core/engine/ask_holder.h"
#include "daemon/core/engine/move.h"
#include "daemon/core/engine/renew.h"
#include "daemon/core/engine/retry.h"

void round_done_adoption(struct engine *e, struct lease *x, const struct round *r, enum adopt_outcome outcome)
{
	switch (outcome) {
	case ADOPT_GOES_ON:
		break;
	case ADOPT_WON:
		grant_adopted(e, lock_of_lease(x), r);
		convert_look(e, lock_of_lease(x));
		break;
	case ADOPT_DENIED:
		lease_owner_evicted(e, x);
		break;
	case ADOPT_OVER:
		lease_owner_expire(e, x);
		break;
	}
}

static void round_done_acquire(struct engine *e, struct round *r, enum round_outcome outcome, int64_t token)
{
	if (outcome == ROUND_WON)
		grant_won(e, r, token);
	else if (outcome != ROUND_PENDING)
		retry_after(e, r, outcome);
}

static void round_done_acquire_expired(struct engine *e, struct round *r)
{
	int64_t token = 0;
	enum round_outcome outcome = acquire_expired(e, r, &token);

	round_done_acquire(e, r, outcome, token);
	retire_round(e, r);
}

static void round_done_acquire_answered(struct engine *e, struct round *r, const struct answer *a)
{
	int64_t token = 0;
	enum round_outcome outcome = acquire_answered(e, r, a, &token);

	round_done_acquire(e, r, outcome, token);
}

static void round_done_renewal(struct engine *e, struct round *r, enum renew_outcome outcome)
{
	switch (outcome) {
	case RENEW_GOES_ON:
		convert_renewed(e, r);
		break;
	case RENEW_IS_ADOPTION:
		round_done_adoption(e, r->lease, r, adopt_decide(e, r));
		break;
	case RENEW_EVICTED:
		lease_owner_evicted(e, r->lease);
		break;
	case RENEW_LEASE_OVER:
		lease_owner_expire(e, r->lease);
		break;
	}
}

static void round_done_renewal_expired(struct engine *e, struct round *r)
{
	round_done_renewal(e, r, renew_expired(e, r));
	retire_round(e, r);
}

static void round_done_expired(struct engine *e, struct round *r)
{
	switch (r->question) {
	case QUESTION_ACQUIRE:
	case QUESTION_RAISE:
		round_done_acquire_expired(e, r);
		break;
	case QUESTION_RENEW:
		round_done_renewal_expired(e, r);
		break;
	case QUESTION_ADOPT:
		adopt_expired(e, r);
		break;
	case QUESTION_LOOK:
		ask_holder_expired(e, r);
		break;
	case QUESTION_HOLDER:
	case QUESTION_BREAK:
		break_expired(e, r);
		break;
	}
}

void round_done_fired(struct engine *e, struct round *r)
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
		round_done_expired(e, r);
}

void round_done_answered(struct engine *e, struct round *r, const struct answer *a)
{
	switch (r->question) {
	case QUESTION_ACQUIRE:
	case QUESTION_RAISE:
		round_done_acquire_answered(e, r, a);
		break;
	case QUESTION_RENEW:
	case QUESTION_ADOPT: /* sends EXTENDs as well: renew_answered() counts their votes, adopt_decide() concludes */
		round_done_renewal(e, r, renew_answered(e, r, a));
		break;
	case QUESTION_LOOK:
		ask_holder_answered(e, r, a);
		break;
	case QUESTION_HOLDER:
	case QUESTION_BREAK:
		break_answered(e, r, a);
		break;
	}
	retire_round(e, r);
}

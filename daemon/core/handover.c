/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Local hand-over: the lease stays as it is, the next in line gets it with the next token of its range, without a round. Only on the same terms,
 * with validity left that is worth having, and within bounds as soon as somebody elsewhere wants it. Source: lock cohorting, Dice, Marathe, Shavit 2012.
 * See ALGORITHMS.md, Hand-over.
 */
#include "daemon/core/move.h"
#include "daemon/core/engine_part.h"

#define HANDOFF_LEAST_US (50 * MSEC)
#define HANDOFF_TIME_US  (100 * MSEC)
#define HANDOFFS_MOST    64
#define YIELD_US         (150 * MSEC)

/* Nobody elsewhere could have had it for so long: it went from one to the next here, under one lease or several. */
static bool lock_is_due_elsewhere(const struct engine *e, const struct lock *l)
{
	return l->handed_since.us && instant_diff(e->core->now, l->handed_since) >= HANDOFF_TIME_US;
}

static bool lock_may_be_handed_on(const struct engine *e, const struct lock *l)
{
	const struct claim *next = TAILQ_FIRST(&l->line);
	int64_t left = instant_diff(lock_deadline(&e->table, l), e->core->now), least = l->ttl_us / 10;

	if (!next || !next->renew || !l->holder->renew || next->ttl_us != l->ttl_us || next->delay_us != l->delay_us)
		return false;
	/* An EXTEND to other terms is under way. */
	if (l->renew_ttl_us != l->ttl_us)
		return false;
	/* A journal that cannot be written would let the former holder adopt it. */
	if (l->recorded && e->core->journal_off)
		return false;
	if (l->fence >= l->fence_end && !MUTATED(HANDOFF_BEYOND_RANGE))
		return false;
	if (left < (least > HANDOFF_LEAST_US ? least : HANDOFF_LEAST_US) && !MUTATED(HANDOFF_UNVOUCHED))
		return false;
	if (e->core->conf.foreign && lock_is_due_elsewhere(e, l))
		return false;
	return l->want_since.us == INT64_MAX || MUTATED(WANT_IGNORED) ||
	       (l->handoffs < HANDOFFS_MOST && instant_diff(e->core->now, l->want_since) < HANDOFF_TIME_US);
}

bool hand_over(struct engine *e, struct lock *l)
{
	bool at_risk = l->at_risk;

	if (!lock_may_be_handed_on(e, l))
		return false;
	lock_hold_ended(e, l->holder);
	lease_refuse_extends(e, l, REFUSED_CANCELLED);
	l->handoffs++;
	if (!l->handed_since.us)
		l->handed_since = e->core->now;
	l->holder = NULL;
	l->fence++;
	lease_safe(e, l);
	metric_add(&e->core->metrics, METRIC_HANDOFFS, 1);
	line_grant(e, TAILQ_FIRST(&l->line));
	/* The next holder is told as well, and the lease is on the list of those that are renewed when a quorum is back. */
	if (at_risk)
		l->renew_at = e->core->now;
	lease_schedule(e, l);
	return true;
}

/*
 * Clients that poll never win against a line that is served without a pause, be it by hand-overs, be it by rounds, each of which asks right behind the
 * release: after a while of that the name is left alone.
 */
void hand_back(struct engine *e, struct lock *l, enum cause why)
{
	bool due;

	lease_move(e, l, LEASE_NONE, why);
	if (!e->core->conf.foreign || MUTATED(LINE_UNBROKEN)) {
		engine_next(e, l);
		return;
	}
	due = l->handoffs > 0 || lock_is_due_elsewhere(e, l);
	if (due || TAILQ_EMPTY(&l->line))
		l->handed_since.us = 0;
	else if (!l->handed_since.us)
		l->handed_since = e->core->now;
	if (!due || TAILQ_EMPTY(&l->line)) {
		engine_next(e, l);
		return;
	}
	contender_move(e, l, CONTENDER_YIELDING, CAUSE_USED_UP);
	heap_set(&e->core->timers, &l->timer, instant_add(e->core->now, YIELD_US));
}

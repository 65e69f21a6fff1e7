/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A round was not won: somebody else has the lock, the votes are split, or too few stores answered. Its votes are given back. Claims that do not wait are
 * answered with the reason. For those that wait the name is asked for again: at once, when it may be free, or after a pause.
 * See ALGORITHMS.md, Rounds; Split votes.
 */
#include "daemon/core/engine/asking.h"

#include "daemon/core/engine/move.h"
#include "daemon/core/round/round.h"

#define POLL_LEAST_US (25 * MSEC)
#define POLL_MOST_US SEC
#define POLL_FOREIGN_US (200 * MSEC) /* clients that poll would win against a daemon that rarely asks */

static void retry_pause(struct engine *e, struct contender *k, int64_t us)
{
	/* A random time from half of it to all of it, so that daemons that collided once do not collide again, and none asks later than that. */
	us = us / 2 + (int64_t)rng_below(e->rng, (uint64_t)us / 2 + 1);
	heap_set(&e->core->timers, &k->timer, instant_add(e->core->now, us));
}

/* Somebody else holds the name. It is asked for again when the holder's TTL may be over, and often enough to notice a release that nobody announces. */
static void retry_held_elsewhere(struct engine *e, struct contender *k, const struct round *r)
{
	/* A redlockd wakes the next daemon. Any other holder wakes nobody: it is polled, in the end every 200 ms. */
	bool will_wake = !k->elsewhere.foreign && e->core->conf.shared;
	int64_t poll = will_wake ? POLL_MOST_US : POLL_LEAST_US << (k->lost_rounds < 6 ? k->lost_rounds : 6), left;

	k->elsewhere.known = true;
	k->elsewhere.outdated = false;
	k->elsewhere.split = false;
	k->same_splits = 0;
	k->handed_since.us = 0;
	k->elsewhere.reserved = !nodeset_any(r->taken);
	k->elsewhere.pttl_ms = round_pttl_ms(r, e->core->conf.nodes);
	k->elsewhere.at = e->core->now;
	k->lost_rounds++;
	if (!wait_continue(e, k, REFUSED_BUSY, WAITERS_IMPATIENT))
		return;
	contender_move(e, k, CONTENDER_HELD_ELSEWHERE, CAUSE_HELD_BY_OTHER);
	if (ticket_is_unseen(e, k)) {
		acquire_begin(e, k, CAUSE_UNSEEN); /* the first waiter came during that round, which had no ticket */
		return;
	}
	if (nodeset_any(k->woken))
		poll = MSEC; /* it was freed while the round asked */
	else if (nodeset_any(r->queued_behind))
		poll = members_reserve_us(&e->members);
	if (poll > (will_wake ? POLL_MOST_US : POLL_FOREIGN_US))
		poll = will_wake ? POLL_MOST_US : POLL_FOREIGN_US;
	/* Stores that reserve it for an older ticket count as 0 left, too. */
	left = k->elsewhere.pttl_ms > 0 || (k->elsewhere.pttl_ms == 0 && !nodeset_any(r->queued_behind)) ? k->elsewhere.pttl_ms * MSEC + MSEC : INT64_MAX;
	if (left < poll)
		heap_set(&e->core->timers, &k->timer, instant_add(e->core->now, left + (int64_t)rng_below(e->rng, 2 * MSEC)));
	else
		retry_pause(e, k, poll);
}

/* Somebody uses the name as another kind, or as a semaphore of another limit. */
static bool retry_is_in_use(struct engine *e, struct contender *k, const struct round *r)
{
	unsigned limit = lock_of_contender(k)->lease.limit;

	return limit != SLOT_OF_SEMAPHORE && round_is_in_use(r, e->core->conf.nodes, limit, &k->elsewhere.limit);
}

/* Nobody has a quorum. The next try comes after a pause of random length. */
static void retry_split(struct engine *e, struct contender *k, const struct round *r, bool leader_taken)
{
	int64_t pause = split_note(e, k, r, leader_taken);

	k->elsewhere.known = false;
	k->elsewhere.split |= !leader_taken;
	if (!wait_continue(e, k, REFUSED_BUSY, k->lost_rounds < SPLIT_TRIES ? WAITERS_OVERDUE : WAITERS_IMPATIENT))
		return;
	contender_move(e, k, CONTENDER_BACKING_OFF, leader_taken ? CAUSE_LEADER_TAKEN : CAUSE_SPLIT);
	wait_look_at(e, k, instant_add(e->core->now, pause));
}

static void retry_no_answer(struct engine *e, struct contender *k)
{
	metric_add(&e->core->metrics, METRIC_ROUNDS_FAILED, 1);
	if (members_that_may_grant(&e->members) < engine_quorum(e)) {
		wait_for_quorum(e, k);
		return;
	}
	k->elsewhere.split = false;
	k->elsewhere.outdated = true;
	if (!wait_continue(e, k, REFUSED_QUORUM, WAITERS_IMPATIENT))
		return;
	contender_move(e, k, CONTENDER_BACKING_OFF, CAUSE_NO_ANSWER);
	retry_pause(e, k, RETRY_US);
}

/* None of the waiters can have the name. The rest of a crowd is answered after the next round, which begins in the next step. */
static void retry_for_nobody(struct engine *e, struct contender *k, enum refusal why)
{
	if (wait_continue(e, k, why, WAITERS_ALL))
		contender_move(e, k, CONTENDER_BACKING_OFF, CAUSE_WRONG_TYPE);
}

void retry_after(struct engine *e, struct round *r, enum round_outcome why)
{
	struct contender *k = contender_of_name(r->calls.name);

	release_round(e, r);
	k->taught = true;
	split_remember(e, k, r);
	if (r->question == QUESTION_RAISE && nodeset_any(r->range_refused))
		tokens_be_modest(&e->tokens, e->core);
	if (TAILQ_EMPTY(&k->waiters)) {
		contender_move(e, k, CONTENDER_IDLE, CAUSE_NOBODY_WAITS);
		return;
	}
	switch (why) {
	case ROUND_RANGE_REFUSED:
		tokens_be_narrow(&e->tokens, e->core->now);
		acquire_begin(e, k, CAUSE_RANGE_REFUSED);
		break;
	case ROUND_LEADER_TAKEN:
	case ROUND_SPLIT:
		retry_split(e, k, r, why == ROUND_LEADER_TAKEN);
		break;
	case ROUND_WRONG_TYPE:
		retry_for_nobody(e, k, REFUSED_KIND);
		break;
	case ROUND_HELD_ELSEWHERE:
		if (retry_is_in_use(e, k, r))
			retry_for_nobody(e, k, REFUSED_IN_USE);
		else
			retry_held_elsewhere(e, k, r);
		break;
	default:
		retry_no_answer(e, k);
		break;
	}
	if (k->crowd && contender_is_between_rounds(k))
		wait_look_soon(e, k);
}

void retry_woken(struct engine *e, struct span name, unsigned node)
{
	struct lock *l = lock_find_text(&e->table, name);
	struct contender *k;
	struct instant soon;

	if (!l)
		return;
	k = l->contender;
	if (k->state != CONTENDER_ACQUIRING && k->state != CONTENDER_HELD_ELSEWHERE && k->state != CONTENDER_BACKING_OFF)
		return;
	nodeset_add(&k->woken, node);
	if (k->state == CONTENDER_ACQUIRING)
		return; /* the round under way may have asked too early: if it fails, retry_after() and acquire.c look at woken */
	if (nodeset_count(k->woken) >= engine_quorum(e)) {
		acquire_begin(e, k, CAUSE_WOKEN);
		return;
	}
	/* The other stores are about to report it, too. If such a message is lost, that costs one round trip. */
	soon = instant_add(e->core->now, members_rtt_us(&e->members) + MSEC);
	if (!timer_is_set(&k->timer) || instant_before(soon, k->timer.at))
		heap_set(&e->core->timers, &k->timer, soon);
}

/* A name that finds no quorum after all goes to the end of the list. */
bool retry_quorum_back(struct engine *e)
{
	struct contender *k;

	for (unsigned left = core_portion(e->core, BACK_A_STEP); left > 0; left--) {
		k = TAILQ_FIRST(&e->no_quorum);
		if (!k || k->back == e->back.count)
			return true;
		k->back = e->back.count;
		acquire_begin(e, k, CAUSE_QUORUM_BACK);
	}
	return false;
}

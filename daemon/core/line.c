/* SPDX-License-Identifier: BSD-2-Clause */
/* The line of a lock: who enters it, and who leaves it with which answer. It moves the lock itself only where the line
 * begins or ends: the states are engine.c's. */
#include "daemon/core/move.h"
#include "daemon/core/engine_part.h"

#define HURRY_US SEC /* a request that does not wait for a holder is asked for no longer than that */
#define HURRY_APART_US (5 * MSEC) /* of many such requests of one lock, those that are due about now are answered in one pass over the line */
#define ADOPTION_ROUNDS 3

void line_leave(struct engine *e, struct claim *c)
{
	metric_add(&e->core->metrics, METRIC_WAITERS, -(int64_t)c->patient);
	heap_cancel(&e->core->timers, &c->timer);
	lock_dequeue(c->lock, c);
}

/* Nobody here waits any more: our place in line among daemons is given back. */
void line_emptied(struct engine *e, struct lock *l)
{
	if (!TAILQ_EMPTY(&l->line) || l->contender == CONTENDER_ASKING)
		return;
	turn_spend(e, l, NODESET_NONE);
	if (lock_waits(l))
		contender_move(e, l, CONTENDER_IDLE, CAUSE_NOBODY_WAITS);
}

void engine_wait_until(struct engine *e, struct claim *c, struct instant until)
{
	c->overdue = false;
	c->wait_until = until;
	heap_set(&e->core->timers, &c->timer, until);
}

/* Out of the line, with an answer. One that waited is told TIMEOUT where others are told BUSY. */
static void line_refuse(struct engine *e, struct claim *c, enum refusal why)
{
	struct lock *l = c->lock;

	if (c->patient && why == REFUSED_BUSY)
		why = c->leaving ? REFUSED_CANCELLED : REFUSED_TIMEOUT;
	line_leave(e, c);
	notices_add(&e->notices, NOTICE_REFUSED, c, NULL, why);
	line_emptied(e, l);
}

/* By when it is to be answered, unless a round under way does so. One that waits has a timer of its own until then. */
static struct instant claim_due(const struct claim *c)
{
	if (c->overdue)
		return INSTANT_PAST;
	return c->patient ? INSTANT_NEVER : instant_add(c->asked_at, HURRY_US);
}

static bool line_includes(const struct engine *e, const struct claim *c, enum line_part part)
{
	return part == LINE_ALL || (part == LINE_IMPATIENT && !c->patient) || !instant_before(e->core->now, claim_due(c));
}

void line_look_at(struct engine *e, struct lock *l, struct instant at)
{
	struct instant due = INSTANT_NEVER;
	struct claim *c;

	TAILQ_FOREACH(c, &l->line, in_lock)
	due = instant_min(due, claim_due(c));
	at = instant_min(at, instant_max(due, instant_add(e->core->now, HURRY_APART_US)));
	if (instant_before(at, INSTANT_NEVER))
		heap_set(&e->core->timers, &l->timer, at);
}

void line_refuse_part(struct engine *e, struct lock *l, enum refusal why, enum line_part part)
{
	struct claim *c, *next;

	for (c = TAILQ_FIRST(&l->line); c; c = next) {
		next = TAILQ_NEXT(c, in_lock);
		if (line_includes(e, c, part))
			line_refuse(e, c, why);
	}
}

static bool lock_is_taken(const struct lock *l)
{
	if (lock_waits(l))
		return l->contender == CONTENDER_YIELDING || (l->elsewhere.known && !l->elsewhere.outdated);
	return l->lease != LEASE_NONE;
}

/* So long a LOCK that does not wait is kept for the adoption of what its owner may have. */
static int64_t adoption_us(const struct engine *e)
{
	int64_t rounds = ADOPTION_ROUNDS * e->core->conf.timeout_us;

	return rounds < HURRY_US ? rounds : HURRY_US;
}

void engine_lock(struct engine *e, struct claim *c, struct span name, struct instant wait_until)
{
	struct lock *l = lock_find_or_add(&e->table, name);

	c->lock = l;
	c->wait_until = wait_until;
	if (l->lease == LEASE_HELD && claim_same_owner(l->holder, c)) {
		bool more = l->holder->count < HOLDS_MOST;

		l->holder->count += more;
		notices_add(&e->notices, more ? NOTICE_REENTERED : NOTICE_REFUSED, c, NULL, more ? REFUSED_NOT : REFUSED_COUNT);
		return;
	}
	/* Of what the same owner may have from the former life, the adoption decides. */
	if (!c->patient && lock_is_taken(l) && !(l->lease == LEASE_ADOPTING && claim_same_owner(l->holder, c))) {
		notices_add(&e->notices, NOTICE_REFUSED, c, NULL, REFUSED_BUSY);
		return;
	}
	if (lock_is_idle(l))
		l->elsewhere.known = l->elsewhere.split = false; /* what was seen while somebody waited is old */
	lock_enqueue(l, c);
	metric_add(&e->core->metrics, METRIC_WAITERS, c->patient);
	if (c->patient && !MUTATED(WAIT_ENDLESS))
		heap_set(&e->core->timers, &c->timer, wait_until);
	else if (l->lease == LEASE_ADOPTING)
		heap_set(&e->core->timers, &c->timer, instant_add(e->core->now, adoption_us(e)));
	if (lock_is_idle(l) || l->contender == CONTENDER_NO_QUORUM || l->contender == CONTENDER_QUEUED)
		acquire_begin(e, l, CAUSE_REQUEST);
	else if (lock_waits(l) && !lock_is_taken(l) && !c->patient)
		split_hurry(e, l);
}

/* It waits until the stores have room. */
static bool lock_is_queued(const struct lock *l)
{
	return l->asks.waits || l->keeps.waits;
}

/* Why what waits is not had, when nobody is known to hold it: the stores were not asked, or did not grant. */
static enum refusal line_trouble(const struct lock *l)
{
	return lock_is_queued(l) ? REFUSED_NO_TURN : REFUSED_QUORUM;
}

void line_hurry(struct engine *e, struct lock *l)
{
	bool taken = l->elsewhere.known && !l->elsewhere.outdated;

	line_refuse_part(e, l, taken || (l->elsewhere.split && !lock_is_queued(l)) ? REFUSED_BUSY : line_trouble(l), LINE_OVERDUE);
}

/* The wait is over, or the time to ask for a turn that came. A round under way may still say who holds it, or grant: it decides within the timeout of a command. */
void line_fired(struct engine *e, struct claim *c)
{
	struct lock *l = c->lock;

	if (c->state == CLAIM_HELD) {
		engine_lapse(e, c);
		return;
	}
	if (l->contender == CONTENDER_ASKING && !l->elsewhere.known) {
		c->overdue = true;
		return;
	}
	if (!c->patient) { /* it waited for an adoption; if that is over, a round answers it */
		if (l->lease == LEASE_ADOPTING)
			line_refuse(e, c, line_trouble(l));
		return;
	}
	line_refuse(e, c, lock_is_taken(l) || l->elsewhere.known || l->elsewhere.split ? REFUSED_TIMEOUT : line_trouble(l));
}

void engine_finish_up(struct engine *e, struct claim *c)
{
	c->leaving = true;
	if (c->lock->contender == CONTENDER_ASKING || !c->patient)
		c->overdue = true;
	else
		line_refuse(e, c, REFUSED_CANCELLED);
}

void engine_withdraw(struct engine *e, struct claim *c, enum refusal why)
{
	line_refuse(e, c, why);
}

void engine_stop(struct engine *e)
{
	struct map_node *at = NULL;

	e->draining = true;
	debts_hurry(e);
	turns_hurry(e);
	while ((at = map_next(&e->table.map, at))) {
		struct lock *l = container_of(at, struct lock, node);

		line_refuse_part(e, l, REFUSED_DRAINING, LINE_ALL);
	}
}

int64_t engine_retry_us(const struct engine *e, const struct lock *l)
{
	int64_t left;

	switch (l->lease) {
	case LEASE_HELD:
		left = instant_diff(lock_deadline(&e->table, l), e->core->now);
		break;
	case LEASE_CLOSING:
		left = instant_diff(l->close_at, e->core->now);
		break;
	default:
		if (!l->elsewhere.known || l->elsewhere.pttl_ms < 0)
			return -1;
		left = l->elsewhere.pttl_ms * MSEC - instant_diff(e->core->now, l->elsewhere.at);
	}
	return left > 0 ? left : 0;
}

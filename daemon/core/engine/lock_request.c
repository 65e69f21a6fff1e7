/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/engine/lock_request.h"

#include "daemon/core/engine/acquire.h"
#include "daemon/core/engine/hold.h"
#include "daemon/core/engine/holders.h"
#include "daemon/core/engine/split_vote.h"
#include "daemon/core/engine/ticket.h"
#include "daemon/core/engine/shared_lease.h"
#include "daemon/core/engine/wait.h"
#include "daemon/core/engine/waiters.h"

#define ADOPTION_ROUNDS 3

/* How long a LOCK that does not wait is kept while a lock that its owner may hold already is being adopted. */
static int64_t adoption_us(const struct engine *e)
{
	int64_t rounds = ADOPTION_ROUNDS * e->core->conf.timeout_us;

	return rounds < WAITERS_HURRY_US ? rounds : WAITERS_HURRY_US;
}

static void lock_request_again(struct engine *e, struct claim *holder, struct claim *c)
{
	bool more = holder->count < HOLDS_MOST;

	holder->count += more;
	notices_add(&e->notices, more ? NOTICE_REENTERED : NOTICE_REFUSED, c, NULL, more ? NOT_REFUSED : REFUSED_COUNT);
}

/* Its owner holds the name, or may hold it from the previous run. False: the adoption decides. */
static bool lock_request_held(struct engine *e, struct lock *l, struct claim *c, struct claim *holder)
{
	if (holder->shared && !c->shared)
		notices_add(&e->notices, NOTICE_REFUSED, c, NULL, REFUSED_SHARED);
	else if (l->lease.state != LEASE_HELD)
		return false;
	else
		lock_request_again(e, holder, c);
	return true;
}

/* It would stay beside others, and not only until the stores have answered for an owner that is there already. */
static bool lock_request_adds(const struct lock *l, const struct claim *c)
{
	const struct claim *own = lock_claim_of(l, c->session, claim_owner(c));

	if (own)
		return c->patient && !(own->state == CLAIM_HELD && l->lease.state == LEASE_HELD);
	return c->patient || c->shared || !lock_is_taken(l);
}

/* The name counts for somebody already, so the claim counts for itself. True: there is no room for it, it is refused. */
static bool lock_request_crowd(struct engine *e, struct lock *l, struct claim *c)
{
	if (!c->let_in && origin_is_crowded(c->origin, e->core->conf.limits.waiting) && lock_request_adds(l, c)) {
		if (l->lease.state == LEASE_CLOSING)
			hold_ask_again(l, c->session, claim_owner(c));
		notices_add(&e->notices, NOTICE_REFUSED, c, NULL, REFUSED_CROWD);
		return true;
	}
	claim_crowd(c);
	return false;
}

/* The claim waits, and the stores are asked if its coming makes that worth while. */
static void lock_request_queue(struct engine *e, struct lock *l, struct claim *c)
{
	struct contender *k = lock_contend(&e->table, l);

	if (lock_is_idle(l))
		elsewhere_forget(&k->elsewhere); /* what the stores said to earlier waiters is old */
	if (c->patient && l->lease.state == LEASE_HELD)
		tokens_expect(&e->tokens, e->core, &l->name);
	contender_enqueue(k, c);
	metric_add(&e->core->metrics, METRIC_WAITERS, claim_queues(c));
	if (c->patient)
		heap_set(&e->core->timers, &c->timer, c->asking->wait_until);
	else if (l->lease.state == LEASE_ADOPTING)
		heap_set(&e->core->timers, &c->timer, instant_add(e->core->now, adoption_us(e)));
	if (lock_is_idle(l) || k->state == CONTENDER_NO_QUORUM || k->state == CONTENDER_QUEUED)
		acquire_begin(e, k, CAUSE_REQUEST);
	else if (k->state == CONTENDER_HELD_ELSEWHERE && c->patient && (c->priority > 0 || k->ticket.kind == STAMP_READER) && ticket_is_outdated(k))
		acquire_begin(e, k, CAUSE_UNSEEN); /* the stores are shown its ticket now, not at the next poll */
	else if (contender_is_between_rounds(k) && !contender_is_kept_off(k) && !c->patient)
		split_hurry(e, k);
	if (lock_is_taken(l))
		wait_announce(e, k);
	if (l->lease.shared && c->patient)
		shared_lease_line_up(e, l);
}

void lock_request_ask(struct engine *e, struct claim *c, struct span name, struct instant wait_until)
{
	struct lock *l = c->limit == SLOT_OF_SEMAPHORE ? lock_find_or_add_text(&e->table, name) : lock_find_or_add(&e->table, name);
	struct claim *holder;

	c->lock = l;
	c->asking->wait_until = wait_until;
	if (!lock_charge(l, c->origin) && lock_request_crowd(e, l, c))
		return;
	if (l->lease.limit != c->limit && !lock_use_as(l, c->limit)) {
		notices_add(&e->notices, NOTICE_REFUSED, c, NULL, REFUSED_IN_USE);
		return;
	}
	holder = lock_holder_of(l, c->session, claim_owner(c));
	if (holder && lock_request_held(e, l, c, holder))
		return;
	if (l->lease.state == LEASE_CLOSING)
		hold_ask_again(l, c->session, claim_owner(c));
	if (holder)
		holder->asked_again = true; /* it may be lost before the adoption is decided */
	if (c->shared) {
		if (holders_join_at_once(e, c))
			return;
		if (c->limit == 0)
			tokens_expect(&e->tokens, e->core, &l->name); /* each reader that joins later has a token of its own, as long as the range lasts */
	}
	/* If the same owner may hold the lock from the previous run, the adoption decides. */
	if (!c->patient && lock_is_taken(l) && !holder) {
		notices_add(&e->notices, NOTICE_REFUSED, c, NULL, REFUSED_BUSY);
		if (c->shared)
			shared_lease_refused(e, l);
		return;
	}
	lock_request_queue(e, l, c);
}

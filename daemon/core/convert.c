/* SPDX-License-Identifier: BSD-2-Clause */
/* See convert.h. */
#include "daemon/core/convert.h"

#include "daemon/core/grant.h"
#include "daemon/core/holders.h"
#include "daemon/core/move.h"
#include "daemon/core/rebase.h"
#include "daemon/core/together.h"
#include "daemon/core/wait.h"

bool convert_is_asked(const struct lock *l)
{
	return l->contender->converts != NULL;
}

/* Its owner has the hold in common with others from now on, under a new token. Its count and its terms stay. */
static void convert_done(struct engine *e, struct lock *l, struct claim *c)
{
	struct claim *holder = l->holder;

	wait_leave(e, c);
	lock_remove_holder(l, holder);
	holder->shared = true;
	holder->asked_to_share = false;
	holder->token = ++l->lease.token;
	lock_add_holder(&e->table, l, holder);
	notices_add(&e->notices, NOTICE_CONVERTED, c, NULL, NOT_REFUSED);
	holders_fold(e, holder);
}

/* The request that may convert the hold of its owner now; NULL: none. One whose client is away waits until it is repeated. */
static struct claim *convert_ready(const struct lock *l)
{
	struct claim *c = l->contender->converts;

	return c && !c->ending && !c->not_notified && l->lease.state == LEASE_HELD ? c : NULL;
}

/*
 * The next renewal asks for a token, and is due now. A hold that is to be shared is recorded so before the stores are asked: where they share it already, the
 * next run would find no key that is held alone.
 */
static void convert_want_token(struct engine *e, struct lock *l)
{
	struct lease *x = &l->lease;
	struct renewal *b = lease_renewal(&e->table, x);

	if (b->wants_token || b->round)
		return; /* a round that is under way is followed by another look */
	if (!rebase_is_possible(e, x))
		return;
	if (!l->share && x->recorded)
		notices_add(&e->notices, NOTICE_TO_BE_SHARED, l->holder, NULL, NOT_REFUSED);
	b->wants_token = true;
	x->renew_at = e->core->now;
	lease_schedule(e, x);
}

/* Readers hold an adopted lease. One that would join needs a token that no exclusive hold had. */
static bool lock_lacks_token(const struct lock *l)
{
	return l->share && l->lease.token_is_old;
}

void convert_look(struct engine *e, struct lock *l)
{
	if (l->lease.shared)
		together_line_up(e, l);
	if (convert_ready(l) || (l->lease.state == LEASE_HELD && lock_lacks_token(l)))
		convert_want_token(e, l);
	else if (l->share)
		holders_let_in(e, l);
}

void convert_ask(struct engine *e, struct claim *c, struct instant until)
{
	struct lock *l = c->lock;
	struct contender *k = lock_contend(&e->table, l);

	contender_enqueue(k, c);
	contender_convert(k, l->holder, c);
	metric_add(&e->core->metrics, METRIC_WAITERS, claim_queues(c));
	heap_set(&e->core->timers, &c->timer, until);
	convert_look(e, l);
	wait_announce(e, k);
}

/* A renewal tells whether a writer elsewhere waits. If no store of a quorum knows of one, whoever waited has given up. */
static void convert_hear_writer(struct engine *e, struct lock *l, const struct round *r)
{
	if (!l->lease.shared || !l->share || r->form != FORM_SHARED || l->lease.state != LEASE_HELD || l->lease.value.number != r->value.number)
		return;
	if (r->writer_us)
		grant_barred(e, l, r->writer_us);
	else if (l->contender->want_since.us && nodeset_count(r->granted) >= engine_quorum(e))
		l->contender->want_since.us = 0;
}

void convert_renewed(struct engine *e, struct round *r)
{
	struct lease *x = r->lease;
	struct lock *l = lock_of_lease(x);
	bool idle;

	convert_hear_writer(e, l, r);
	if (x->state == LEASE_HELD && l->share && !x->shared && l->contender->want_since.us)
		together_open(e, l);
	idle = TAILQ_EMPTY(&l->contender->waiters) && !r->token && !lock_lacks_token(l);
	if (idle || x->state != LEASE_HELD || x->value.number != r->value.number)
		return;
	if (r->token && nodeset_count(r->lifted) < engine_quorum(e))
		return;
	if (r->token > x->token_end) {
		x->token = r->token - 1;
		x->token_end = r->token + r->range;
		x->token_is_old = false;
		if (convert_ready(l))
			convert_done(e, l, l->contender->converts);
	}
	if (l->share && !x->shared)
		together_open(e, l);
	convert_look(e, l);
}

void convert_withdraw(struct engine *e, struct lock *l)
{
	while (l->contender->converts)
		wait_withdraw(e, l->contender->converts, REFUSED_CANCELLED);
}

void convert_forfeit(struct lock *l)
{
	if (convert_is_asked(l))
		l->contender->converts = NULL;
}

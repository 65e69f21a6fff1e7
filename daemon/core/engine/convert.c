/* SPDX-License-Identifier: BSD-2-Clause */
/* See convert.h. */
#include "daemon/core/engine/convert.h"

#include "daemon/core/engine/grant.h"
#include "daemon/core/engine/holders.h"
#include "daemon/core/engine/rebase.h"
#include "daemon/core/engine/shared_lease.h"

/* The token of the lease may be that of an exclusive hold. A reader that would join needs one that no such hold had. */
static bool lock_lacks_token(const struct lock *l)
{
	return l->share && l->lease.token_is_old;
}

/* The next renewal asks for a token, and is due now. */
static void convert_want_token(struct engine *e, struct lease *x)
{
	struct renewal *b = lease_renewal(&e->table, x);

	if (b->wants_token || b->round || !rebase_is_possible(e, x))
		return; /* each round that ends is followed by another look */
	b->wants_token = true;
	shared_lease_ask_again(e, x, e->core->now);
}

void convert_look(struct engine *e, struct lock *l)
{
	if (l->lease.shared)
		shared_lease_line_up(e, l);
	if (l->lease.state == LEASE_HELD && lock_lacks_token(l))
		convert_want_token(e, &l->lease);
	else if (l->share)
		holders_let_in(e, l);
}

void convert_to_shared(struct engine *e, struct claim *holder)
{
	struct lock *l = holder->lock;

	lock_remove_holder(l, holder);
	holder->shared = true;
	lock_add_holder(&e->table, l, holder);
	l->lease.token_is_old = true;
	convert_look(e, l);
}

/* A renewal shows whether a writer elsewhere waits. If no store of a quorum knows of one, whoever waited has given up. */
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
		shared_lease_open(e, l);
	idle = TAILQ_EMPTY(&l->contender->waiters) && !r->token && !lock_lacks_token(l);
	if (idle || x->state != LEASE_HELD || x->value.number != r->value.number)
		return;
	if (r->token && nodeset_count(r->lifted) < engine_quorum(e))
		return;
	if (r->token > x->token_end) {
		x->token = r->token - 1;
		x->token_end = r->token + r->range;
		x->token_is_old = false;
	}
	if (l->share && !x->shared)
		shared_lease_open(e, l);
	convert_look(e, l);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/together.h"

#include "daemon/core/move.h"
#include "daemon/core/rebase.h"
#include "daemon/core/ticket.h"

#define POLL_US SEC /* a ticket that is shown with renewals lasts for TICKET_US, and messages may be lost */

void together_ask_again(struct engine *e, struct lease *x, struct instant at)
{
	if (x->state != LEASE_HELD)
		return;
	if (!instant_before(at, x->renew_at))
		return;
	x->renew_at = at;
	lease_schedule(e, x);
}

/*
 * If the lease is adopted, the other run may have made a hold exclusive since its record was written. Until nobody can believe that any more, a store that has
 * the value alone keeps it so. One that has it beside other shares shows that nobody has it alone. The mark of a semaphore is never held alone.
 */
static bool together_keeps_alone(const struct engine *e, const struct lease *x)
{
	return x->value.limit == 0 && (x->state == LEASE_ADOPTING || instant_before(e->core->now, x->believed_until));
}

void together_begin(struct engine *e, struct round *r)
{
	struct lease *x = r->lease;

	if (!lock_of_lease(x)->share)
		return;
	x->shared = true;
	r->form = together_keeps_alone(e, x) ? FORM_ALONE : FORM_SHARED;
}

void together_upgrade(struct engine *e, struct round *r)
{
	struct lease *x = r->lease;

	r->form = FORM_UPGRADE;
	x->renewal->upgrade = r;
	x->renewal->mends = true;
	x->renewal->upgrade_at = instant_add(e->core->now, POLL_US);
	lock_of_lease(x)->contender->woken = NODESET_NONE;
}

void together_upgrade_again(struct engine *e, struct lease *x)
{
	x->renewal->mends = false;
	x->renewal->upgrade_at = e->core->now;
	together_ask_again(e, x, e->core->now);
}

bool together_asks(const struct round *r)
{
	return r->form == FORM_UPGRADE && r->lease->renewal->upgrade == r;
}

/* Readers may join where the value does not stand alone. What is in the way there is often the share of a round that failed, or a release under way. */
static void together_complete(struct engine *e, struct lease *x)
{
	together_ask_again(e, x, instant_add(e->core->now, e->core->conf.timeout_us));
}

/*
 * A store that shares the value does not keep others out for one who holds it alone. Nor does one that may yet carry out a call of ours which shares it: that
 * call was sent over an earlier connection.
 */
void together_note(struct engine *e, struct round *r, const struct answer *a)
{
	struct lease *x = r->lease;

	r->forestalled |= a->code == 'S' && a->found.n > 0;
	if (r->form == FORM_UPGRADE && a->code == 'E')
		nodeset_add(&r->alone, a->node);
	if (a->code == 'S') {
		nodeset_add(&x->placed.shares, a->node);
		if (x->shared)
			nodeset_add(&r->granted, a->node);
	} else if (r->form != FORM_SHARED && (a->code == 'E' || a->code == 'A') && rebase_is_sure(e, r, a->node)) {
		nodeset_remove(&x->placed.shares, a->node);
	}
	if (!x->shared && nodeset_has(x->placed.shares, a->node))
		nodeset_remove(&r->granted, a->node);
	if (!x->shared && r->form == FORM_UPGRADE && !nodeset_has(r->alone, a->node))
		together_complete(e, x);
}

void together_is_alone(struct engine *e, struct round *r)
{
	struct lease *x = r->lease;

	x->shared = false;
	x->renewal->upgrade = NULL;
	x->renewal->mends = false;
	x->renewal->upgrade_at.us = 0;
	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (!nodeset_has(r->lifted, i))
			x->votes[i] = INSTANT_PAST;
	r->granted = nodeset_and(r->granted, r->lifted);
	lease_schedule(e, x);
	if (nodeset_any(nodeset_without(r->calls.asked, nodeset_or(r->alone, r->calls.open))))
		together_complete(e, x);
}

/* A store that has the value alone keeps readers out for nobody: it is asked to share it again, now. */
bool together_missed(struct engine *e, struct round *r)
{
	struct lease *x = r->lease;
	struct nodeset open = r->expired ? NODESET_NONE : r->calls.open;
	bool over = nodeset_count(r->lifted) >= engine_quorum(e) || nodeset_count(nodeset_or(r->lifted, open)) < engine_quorum(e);

	if (x->renewal->mends && over && !nodeset_any(r->alone) && !nodeset_any(open))
		x->renewal->mends = false;
	if (x->renewal->round)
		return over;
	if (over && nodeset_any(r->alone))
		together_ask_again(e, x, e->core->now);
	else if (x->renewal->upgrade_at.us)
		together_ask_again(e, x, x->renewal->upgrade_at);
	return over;
}

void together_woken(struct engine *e, struct lock *l, unsigned node)
{
	struct lease *x = &l->lease;
	struct contender *k = l->contender;
	struct instant at = e->core->now;

	if (x->state != LEASE_HELD || !x->shared || renewal_is_none(x->renewal) || k->ticket.kind != STAMP_UPGRADE)
		return;
	nodeset_add(&k->woken, node);
	if (nodeset_count(k->woken) < engine_quorum(e))
		at = instant_add(at, members_rtt_us(&e->members) + MSEC); /* the others are about to say so, too */
	x->renewal->upgrade_at = instant_min(x->renewal->upgrade_at, at);
	together_ask_again(e, x, x->renewal->upgrade_at);
}

void together_open(struct engine *e, struct lock *l)
{
	if (l->lease.shared)
		return;
	together_ask_again(e, &l->lease, e->core->now);
}

void together_refused(struct engine *e, struct lock *l)
{
	if (l->lease.shared && l->share && l->contender->want_since.us)
		together_ask_again(e, &l->lease, instant_max(e->core->now, instant_add(l->share->want_at, POLL_US)));
}

/* Somebody waits here to hold alone what readers share, or what one that has gone may believe in. */
static bool together_has_writer(const struct lock *l)
{
	return l->contender->writers > 0 && (l->lease.state == LEASE_HELD || l->lease.state == LEASE_CLOSING) && l->lease.shared;
}

void together_line_up(struct engine *e, struct lock *l)
{
	struct contender *k = l->contender;

	if (k->state != CONTENDER_IDLE)
		return;
	if (!together_has_writer(l)) {
		if (k->ticket.us)
			ticket_spend(e, k, NODESET_NONE);
		if (l->lease.renewal->mends)
			together_ask_again(e, &l->lease, e->core->now);
		else if (l->lease.renewal->upgrade_at.us)
			l->lease.renewal->upgrade_at.us = 0;
	} else if (e->core->conf.shared && !together_keeps_alone(e, &l->lease) && (!k->ticket.us || ticket_is_outdated(k))) {
		together_ask_again(e, &l->lease, e->core->now);
	}
	if (k->patient && e->core->conf.shared) /* the memory store has one daemon */
		together_ask_again(e, &l->lease, instant_add(e->core->now, POLL_US));
}

struct span together_ticket(struct engine *e, const struct round *r)
{
	struct lock *l = lock_of_lease(r->lease);

	if (r->form == FORM_ALONE || !together_has_writer(l))
		return SPAN("");
	ticket_take(e, l->contender);
	return ticket_text(e, l->contender);
}

void together_show(struct engine *e, struct lease *x, struct call *call, struct span ticket)
{
	(void)e;
	call->ticket = ticket;
	call->ticket_ms = TICKET_US / MSEC;
	nodeset_add(&lock_of_lease(x)->contender->ticket_at, call->node);
}

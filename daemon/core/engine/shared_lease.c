/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/engine/shared_lease.h"

#include "daemon/core/engine/move.h"
#include "daemon/core/engine/ticket.h"

#define POLL_US SEC /* a ticket that is shown with renewals lasts for TICKET_US, and messages may be lost */

void shared_lease_ask_again(struct engine *e, struct lease *x, struct instant at)
{
	if (x->state != LEASE_HELD)
		return;
	if (!instant_before(at, x->renew_at))
		return;
	x->renew_at = at;
	lease_schedule(e, x);
}

void shared_lease_begin(struct round *r)
{
	struct lease *x = r->lease;

	if (!lock_of_lease(x)->share)
		return;
	x->shared = true;
	r->form = FORM_SHARED;
}

void shared_lease_open(struct engine *e, struct lock *l)
{
	if (l->lease.shared)
		return;
	shared_lease_ask_again(e, &l->lease, e->core->now);
}

void shared_lease_refused(struct engine *e, struct lock *l)
{
	if (l->lease.shared && l->share && l->contender->want_since.us)
		shared_lease_ask_again(e, &l->lease, instant_max(e->core->now, instant_add(l->share->want_at, POLL_US)));
}

/* Somebody waits here to hold alone what readers share, or what one that has gone may rely on. */
static bool shared_lease_has_writer(const struct lock *l)
{
	return l->contender->writers > 0 && (l->lease.state == LEASE_HELD || l->lease.state == LEASE_CLOSING) && l->lease.shared;
}

void shared_lease_line_up(struct engine *e, struct lock *l)
{
	struct contender *k = l->contender;

	if (k->state != CONTENDER_IDLE)
		return;
	if (!shared_lease_has_writer(l)) {
		ticket_end(e, k);
	} else if (e->core->conf.shared && (!k->ticket.us || ticket_is_outdated(k))) {
		shared_lease_ask_again(e, &l->lease, e->core->now);
	}
	if (k->patient && e->core->conf.shared) /* the memory store has one daemon */
		shared_lease_ask_again(e, &l->lease, instant_add(e->core->now, POLL_US));
}

struct span shared_lease_ticket(struct engine *e, const struct round *r)
{
	struct lock *l = lock_of_lease(r->lease);

	if (r->form == FORM_ALONE || !shared_lease_has_writer(l))
		return SPAN("");
	ticket_take(e, l->contender);
	return ticket_text(e, l->contender);
}

void shared_lease_show(struct engine *e, struct lease *x, struct call *call, struct span ticket)
{
	(void)e;
	call->ticket = ticket;
	call->ticket_ms = TICKET_US / MSEC;
	nodeset_add(&lock_of_lease(x)->contender->ticket_at, call->node);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* See contended.h. */
#include "daemon/core/semaphore/contended.h"

#include "daemon/core/reply/tell.h"
#include "daemon/core/session/rules.h"

#define APART_US (100 * MSEC) /* between two CONTENDED about one permit */

static bool lock_is_wanted(const struct request_context *x, const struct lock *l)
{
	return l->contender->want_since.us && instant_diff(x->core->now, l->contender->wanted_at) < TICKET_US;
}

/* The first of the line of another daemon stands in the queues of all slots, so in that of this permit: it counts as one. */
static unsigned permit_waiters(const struct request_context *x, const struct permit *p)
{
	return p->semaphore->waiters + (p->slot.claim && lock_is_wanted(x, p->slot.claim->lock));
}

/* One whose session is about to be told of it, or has lost its connection, is told nothing. */
static bool permit_hears(const struct request_context *x, const struct permit *p)
{
	return p->state == PERMIT_HELD && !p->not_notified && watch_is_subscribed(p->session) && !p->session->resuming && permit_waiters(x, p) > 0 &&
	       session_may_look(x->core, p->session, semaphore_name(p->semaphore));
}

void contended_tell(struct request_context *x, struct permit *p, enum contended_why why)
{
	struct reply r;

	if (why == CONTENDED_NEWS && p->contended_at.us && instant_diff(x->core->now, p->contended_at) < APART_US)
		return;
	if (!permit_hears(x, p))
		return;
	p->contended_at = x->core->now;
	reply_begin(&r, session_line(x->sessions), SPAN(""), "! CONTENDED");
	reply_permit(&r, p);
	reply_int(&r, "waiters", permit_waiters(x, p));
	if (p->owner_n > 0)
		reply_text(&r, "owner", permit_owner(p));
	tell_line(x, p->session, &r);
}

void contended_tell_all(struct request_context *x, const struct semaphore *m)
{
	struct permit *p;

	TAILQ_FOREACH(p, &m->others, in_line)
		contended_tell(x, p, CONTENDED_NEWS);
}

void serve_SUBSCRIBE(struct request_context *x, struct session *s)
{
	struct permit *p;

	if (!watch_subscribe(x, s))
		return;
	TAILQ_FOREACH(p, &s->permits, in_session)
		contended_tell(x, p, CONTENDED_NEWS);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* See permit_resume.h. */
#include "daemon/core/semaphore/permit_resume.h"

#include "daemon/core/reply/records.h"
#include "daemon/core/reply/rows.h"
#include "daemon/core/reply/tell.h"

void permits_take_over(struct session *to, struct session *from)
{
	struct permit *p;

	to->slots += from->slots;
	from->slots = 0;
	while ((p = TAILQ_FIRST(&from->permits))) {
		TAILQ_REMOVE(&from->permits, p, in_session);
		TAILQ_INSERT_TAIL(&to->permits, p, in_session);
		p->session = p->agent.principal = to;
		p->agent.serial = from->serial;
		if (!from->origin)
			session_count_claims(&p->agent, to->origin);
	}
}

void permit_forget_losses(struct request_context *x, struct permit *p)
{
	struct permit *loss, *next;

	for (loss = TAILQ_FIRST(&p->session->permits); loss && loss->state == PERMIT_LOST; loss = next) {
		next = TAILQ_NEXT(loss, in_session);
		if (!loss->not_notified && loss->semaphore == p->semaphore &&
		    span_equal(permit_owner(loss), permit_owner(p)) && loss->slot.slot == p->slot.slot) {
			permit_abandon(x, loss, INSTANT_NEVER); /* its client has not read so far */
			permit_end(x, loss);
		}
	}
}

void permit_hear(struct request_context *x, struct permit *p)
{
	if (!p->not_notified)
		return;
	p->not_notified = false;
	heap_cancel(&x->core->timers, &p->timer);
	record_permit(x, p);
	permit_forget_losses(x, p);
}

unsigned permits_tell_resumed(struct request_context *x, struct session *s, size_t begin, int64_t *more)
{
	struct permit *p;
	struct reply r;
	unsigned n = 0;

	TAILQ_FOREACH(p, &s->permits, in_session) {
		if (p->state != PERMIT_HELD || permit_is_adopting(p) || permit_valid_us(x, p) <= 0)
			continue;
		if (rows_take_long(x, s->unsent - begin)) {
			++*more;
			continue;
		}
		heap_cancel(&x->core->timers, &p->timer);
		permit_hear(x, p);
		reply_begin(&r, session_line(x->sessions), span_of(s->lasting->resume_tag), "*");
		reply_permit(&r, p);
		reply_ms(&r, "valid_ms", permit_valid_us(x, p));
		reply_int(&r, "count", 1);
		reply_int(&r, "limit", p->semaphore->limit);
		if (p->owner_n > 0)
			reply_text(&r, "owner", permit_owner(p));
		session_send(x->sessions, s, r.start, reply_end(&r));
		n++;
	}
	return n;
}

void permit_bound(struct request_context *x, struct permit *p, struct instant until)
{
	if (!p->not_notified || permit_is_adopting(p))
		return;
	if (!timer_is_set(&p->timer) || instant_before(until, p->timer.at))
		heap_set(&x->core->timers, &p->timer, until);
}

void permits_bound(struct request_context *x, struct session *s, struct instant until)
{
	struct permit *p;

	TAILQ_FOREACH(p, &s->permits, in_session) {
		if (p->not_notified && p->state == PERMIT_LOST) {
			p->not_notified = false;
			permit_tell(x, p, "! LOST", NULL);
		} else if (p->state == PERMIT_LOST && p->acknowledged) {
			heap_set(&x->core->timers, &p->timer, until);
		} else {
			permit_bound(x, p, until);
		}
	}
}

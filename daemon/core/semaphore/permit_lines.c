/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines about permits, to their clients and to the sessions that watch. */
#include "daemon/core/semaphore/permit.h"

#include "daemon/core/reply/send.h"

void reply_permit(struct reply *r, const struct permit *p)
{
	reply_text(r, "name", p->semaphore->name);
	reply_int(r, "permit", p->slot.slot);
	reply_int(r, "fence", p->fence);
}

struct report report_of_permit(const struct permit *p)
{
	return (struct report){.session = p->bid.session,
	                       .name = p->semaphore->name,
	                       .owner = p->bid.owner,
	                       .remark = kept_remark(&p->bid.remark),
	                       .fence = p->fence,
	                       .permit = p->slot.slot,
	                       .limit = p->semaphore->limit,
	                       .waiters = p->semaphore->waiters,
	                       .asked_at = p->bid.asked_at,
	                       .granted_at = p->granted_at,
	                       .loss = p->loss};
}

void permit_send_push(struct request_context *x, const struct permit *p, const char *word, const char *field)
{
	if (!p->bid.not_notified && !p->bid.session->detached && !p->bid.session->resuming)
		push(x, report_of_permit(p), word, field, field ? permit_valid_us(x, p) / MSEC : 0);
}

unsigned semaphore_free_slots(const struct semaphore *m)
{
	return m->limit > m->held ? m->limit - m->held : 0;
}

void permit_send_granted(struct request_context *x, struct permit *p, struct span tag)
{
	struct reply r;

	core_answers(x->core, VERB_ACQUIRE);
	reply_begin(&r, session_line(x->sessions), tag, "OK");
	reply_permit(&r, p);
	reply_ms(&r, "valid_ms", permit_valid_us(x, p));
	reply_ms(&r, "ttl_ms", p->bid.ttl_us);
	reply_int(&r, "count", 1);
	reply_int(&r, "free", semaphore_free_slots(p->semaphore));
	send_line(x, p->bid.session, &r);
}

void permit_send_extended(struct request_context *x, const struct pending *p)
{
	struct reply r;

	reply_begin(&r, session_line(x->sessions), span_of(p->tag), "OK");
	reply_permit(&r, p->permit);
	reply_ms(&r, "valid_ms", permit_valid_us(x, p->permit));
	send_line(x, p->session, &r);
}

/* For alarms and the slow log. */
static void permit_attend(struct request_context *x, const struct permit *p, enum watch_kind kind)
{
	if (kind == WATCH_GRANTED)
		slow_wait(x, p->bid.session, p->semaphore->name, kept_remark(&p->bid.remark).trace, p->bid.asked_at, "granted");
	if (kind == WATCH_WAITING)
		alarms_set(x->core, ALARM_OF_PERMIT, p, ALARM_WAITED, p->bid.asked_at);
	else if (kind == WATCH_GRANTED)
		alarms_set(x->core, ALARM_OF_PERMIT, p, ALARM_HELD, p->granted_at);
	else
		alarms_forget(x->core, p); /* a lost permit stays until its client has acknowledged the loss */
}

static void permit_count(struct request_context *x, const struct permit *p, enum watch_kind kind)
{
	struct span name = p->semaphore->name;

	if (kind == WATCH_GRANTED)
		core_name_waited(x->core, name, RESULT_OK, instant_diff(p->granted_at, p->bid.asked_at));
	else if (kind != WATCH_WAITING)
		core_name_held(x->core, name, instant_diff(x->core->now, p->granted_at));
	if (kind == WATCH_LOST)
		core_name_lost(x->core, name);
}

void permit_watch(struct request_context *x, const struct permit *p, enum watch_kind kind)
{
	if (x->engine->watched == 0 && !x->core->name_groups)
		return;
	if (x->core->name_groups)
		permit_count(x, p, kind);
	if (x->attends)
		permit_attend(x, p, kind);
	report_send(x, report_of_permit(p), kind);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* See permit_answer.h. */
#include "daemon/core/semaphore/permit_answer.h"

#include "daemon/core/deadlock/deadlock.h"
#include "daemon/core/reply/name_history.h"
#include "daemon/core/reply/refusal.h"
#include "daemon/core/reply/records.h"
#include "daemon/core/reply/tell.h"

/* The ACQUIRE is answered, or has no client left that could be. */
static void permit_answered(struct request_context *x, struct session *s, bool tagged)
{
	session_answered(x->sessions, s, tagged);
}

static bool permit_is_tagged(const struct permit *p)
{
	return p->not_notified || p->tag[0] != '\0';
}

void permit_win(struct request_context *x, struct permit *p)
{
	struct session *s = p->session;
	bool tagged = permit_is_tagged(p);

	permit_keep_slot(x, p);
	heap_cancel(&x->core->timers, &p->timer);
	permit_enter(x, p, PERMIT_HELD);
	p->granted_at = x->core->now;
	p->fence = p->slot.claim->token;
	record_permit(x, p);
	name_history_add(x, s, semaphore_name(p->semaphore));
	if (!p->not_notified) {
		permit_forget_losses(x, p);
		permit_tell_granted(x, p, span_of(p->tag));
	} else if (s->detached || s->resuming) {
		p->believed = INSTANT_PAST;
	} else {
		heap_set(&x->core->timers, &p->timer, s->lasting->repeat_until);
	}
	permit_watch(x, p, WATCH_GRANTED);
	contended_permit(x, p, CONTENDED_FIRST);
	permit_note_risk(x, p);
	permit_answered(x, s, tagged);
	deadlock_note(x, s);
	semaphore_stir(x, p->semaphore);
}

/* The one that asked first of those who have a permit here. NULL: other daemons have all of them. */
static const struct permit *permit_in_the_way(const struct semaphore *m)
{
	const struct permit *p;

	TAILQ_FOREACH(p, &m->others, in_line)
		if (p->state == PERMIT_HELD)
			break;
	return p;
}

static void reply_permit_holder(const struct request_context *x, struct reply *r, const struct permit *p)
{
	char who[WHO_MAX];

	reply_text(r, "holder", (struct span){who, session_who(p->session, who)});
	reply_ms(r, "held_ms", instant_diff(x->core->now, p->granted_at));
	reply_remark(r, kept_remark(&p->remark));
}

static void tell_full(struct request_context *x, const struct permit *p, const char *word)
{
	struct semaphore *m = p->semaphore;
	const struct permit *holder = permit_in_the_way(m);
	struct reply r;

	reply_begin(&r, session_line(x->sessions), span_of(p->tag), word);
	reply_text(&r, "name", semaphore_name(m));
	if (word[0] == 'T')
		reply_ms(&r, "waited_ms", instant_diff(x->core->now, p->asked_at));
	reply_int(&r, "limit", m->limit);
	reply_int(&r, "free", 0); /* other daemons have what seems to be free here */
	reply_int(&r, "waiters", m->waiters); /* it has left the line */
	if (holder)
		reply_permit_holder(x, &r, holder);
	tell_line(x, p->session, &r);
}

static void tell_in_use(struct request_context *x, const struct permit *p)
{
	if (p->other)
		tell_error(x, p->session, span_of(p->tag), ERROR_LIMIT,
		           "limit=%u is that of this semaphore at present: ask with the same limit, or when nobody has a permit of it", p->other);
	else
		tell_error(x, p->session, span_of(p->tag), ERROR_KIND, "the name is in use by a lock: take another name, or ask when nobody holds the lock");
}

static void permit_tell_refused(struct request_context *x, const struct permit *p, enum refusal why)
{
	int64_t waited = instant_diff(x->core->now, p->asked_at);

	core_answers(x->core, VERB_ACQUIRE);
	metric_waited(&x->core->metrics, refusal_result(why), waited);
	core_name_waited(x->core, semaphore_name(p->semaphore), refusal_result(why), waited);
	if (why == REFUSED_BUSY) {
		metric_add(&x->core->metrics, METRIC_REFUSALS, 1);
		tell_full(x, p, "BUSY");
	} else if (why == REFUSED_TIMEOUT) {
		metric_add(&x->core->metrics, METRIC_TIMEOUTS, 1);
		tell_full(x, p, "TIMEOUT");
	} else if (why == REFUSED_IN_USE) {
		tell_in_use(x, p);
	} else {
		deliver_refusal(x, p->session, span_of(p->tag), why);
	}
}

void permit_refuse(struct request_context *x, struct permit *p, enum refusal why)
{
	struct session *s = p->session;
	bool tagged = permit_is_tagged(p);

	if (why == REFUSED_BUSY && p->patient)
		why = p->leaving ? REFUSED_CANCELLED : REFUSED_TIMEOUT;
	permit_enter(x, p, PERMIT_CANCELLED);
	if (!p->not_notified && !p->told && !s->over && !s->detached)
		permit_tell_refused(x, p, why);
	metric_add(&x->core->metrics, METRIC_FAILURES, why == REFUSED_QUORUM || why == REFUSED_NOT_ADMITTED);
	permit_end(x, p);
	permit_answered(x, s, tagged);
}

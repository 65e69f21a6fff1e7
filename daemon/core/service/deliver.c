/* SPDX-License-Identifier: BSD-2-Clause */
/* See deliver.h. */
#include "daemon/core/service/deliver.h"

#include "daemon/core/admin/admin.h"
#include "daemon/core/deadlock/deadlock.h"
#include "daemon/core/event/alarms.h"
#include "daemon/core/group/groups.h"
#include "daemon/core/job/take.h"
#include "daemon/core/reply/busy.h"
#include "daemon/core/reply/former_holders.h"
#include "daemon/core/reply/name_history.h"
#include "daemon/core/reply/refusal.h"
#include "daemon/core/reply/records.h"
#include "daemon/core/reply/rows.h"
#include "daemon/core/reply/show.h"
#include "daemon/core/reply/slow_log.h"
#include "daemon/core/reply/tell.h"
#include "daemon/core/reply/watch.h"
#include "daemon/core/semaphore/permits.h"

#include <inttypes.h>
#include <stdio.h>

static void claim_is_over(const struct claim *c)
{
	c->session->waiting--;
	c->session->waits_not_notified -= c->not_notified;
}

/* The LOCK of this claim is answered, or has no client left that could be. */
static void claim_answered(struct request_context *x, const struct claim *c)
{
	claim_is_over(c);
	session_answered(x->sessions, c->session, c->not_notified || c->asking->tag[0] != '\0');
}

/* Whether the client can be told now: it has a connection, and either no RESUME is unanswered or this connection has told it of the grant. */
static bool session_listens(const struct claim *c)
{
	const struct session *s = c->session;

	return !s->detached && (!s->resuming || c->here);
}

static void deliver_granted(struct request_context *x, struct claim *c, unsigned count)
{
	struct session *s = c->session;

	record_held(x, c);
	name_history_add(x, c->session, lock_name(c->lock));
	if (!c->not_notified) {
		core_answers(x->core, VERB_LOCK);
		tell_granted(x, c, span_of(c->asking->tag), count);
	} else if (session_listens(c)) {
		claim_bound(x, c, s->lasting->repeat_until); /* else once RESUME is answered */
	}
	s->held++;
	if (x->attends)
		slow_wait(x, s, lock_name(c->lock), claim_remark(c).trace, c->asking->asked_at, "granted");
	claim_answered(x, c);
	claim_end_asking(&x->engine->table, c);
	if (!LIST_EMPTY(&s->groups))
		groups_gain(x, s);
	deadlock_note(x, s);
	watch_granted(x, c);
}

static void deliver_refused(struct request_context *x, struct claim *c, enum refusal why)
{
	struct session *s = c->session;

	if (!s->over && !c->not_notified && why != REFUSED_AND_TOLD) {
		core_answers(x->core, VERB_LOCK);
		if (why == REFUSED_BUSY)
			busy_tell(x, s, span_of(c->asking->tag), c->lock, claim_owner(c));
		else if (why == REFUSED_TIMEOUT)
			busy_tell_timeout(x, s, span_of(c->asking->tag), c->lock, claim_owner(c), claim_remark(c).trace, c->asking->asked_at);
		else
			deliver_refusal(x, s, span_of(c->asking->tag), why);
		metric_add(&x->core->metrics, METRIC_FAILURES, why == REFUSED_QUORUM || why == REFUSED_NOT_ADMITTED);
		metric_waited(&x->core->metrics, refusal_result(why), instant_diff(x->core->now, c->asking->asked_at));
		core_name_waited(x->core, lock_name(c->lock), refusal_result(why), instant_diff(x->core->now, c->asking->asked_at));
	}
	TAILQ_REMOVE(&s->claims, c, in_session);
	claim_is_over(c);
	session_answered(x->sessions, s, c->not_notified || c->asking->tag[0] != '\0');
}

static void deliver_reentered(struct request_context *x, struct claim *c, unsigned count)
{
	struct claim *holder = lock_holder_of(c->lock, c->session, claim_owner(c));
	bool hears = !c->not_notified && holder->not_notified;

	if (!c->not_notified) {
		if (hears)
			claim_hear(x, holder);
		else
			record_held(x, holder);
		core_answers(x->core, VERB_LOCK);
		tell_granted(x, holder, span_of(c->asking->tag), count);
	}
	metric_add(&x->core->metrics, METRIC_REENTRIES, 1);
	if (x->attends) /* it waited beside another request of its owner */
		slow_wait(x, c->session, lock_name(c->lock), claim_remark(c).trace, c->asking->asked_at, "granted");
	TAILQ_REMOVE(&c->session->claims, c, in_session);
	claim_answered(x, c);
	if (hears)
		watch_who_waits(x, holder);
}

static void deliver_lost(struct request_context *x, struct claim *c)
{
	char who[WHO_MAX];

	if (core_may_log(x->core, BURST_LOST))
		core_log(x->core, LOG_WARN, "lost", "peer=%s session=%" PRIu64 " name=%s fence=%" PRId64 " reason=%s",
		         core_quoted(x->core, (struct span){who, session_who(c->session, who)}), c->session->serial,
		         core_quoted(x->core, lock_name(c->lock)), c->token, loss_word(c->loss));
	record_lost(x, c);
	former(x, c, loss_word(c->loss));
	watch(x, c, WATCH_LOST);
	c->not_notified = true;
	if (session_listens(c))
		tell_lost(x, c);
	request_context_let_go(x, c->session);
}

static void deliver_validity(struct request_context *x, const struct claim *c, const char *word, const char *field)
{
	if (!c->not_notified && session_listens(c))
		tell_validity(x, c, word, field);
}

/* A grant that the client was not told of may be asked for from now on, for a time. */
static void deliver_adopted(struct request_context *x, struct claim *c)
{
	if (!c->session->returns || c->risked)
		deliver_validity(x, c, "! SAFE", "valid_ms");
	if (c->not_notified && session_listens(c))
		claim_bound(x, c, resume_repeat_until(x, c->session));
	alarms_set(x->core, ALARM_OF_CLAIM, c, ALARM_HELD, c->granted_at);
	session_wake(x->sessions, c->session);
}

static void reply_pending_ok(struct request_context *x, const struct pending *p)
{
	struct reply r;

	reply_begin(&r, session_line(x->sessions), span_of(p->tag), "OK");
	if (p->verb == VERB_EXTEND) {
		reply_grant(x, &r, p->claim);
		reply_mode(&r, p->claim);
	} else {
		reply_text(&r, "name", lock_name(p->lock));
		reply_int(&r, "count", 0);
	}
	tell_line(x, p->session, &r);
}

static void pending_tell_done(struct request_context *x, const struct pending *p)
{
	if (p->permit)
		permit_tell_extended(x, p);
	else
		reply_pending_ok(x, p);
}

static void deliver_pending(struct request_context *x, struct pending *p, enum refusal why)
{
	struct session *s = p->session;
	bool told = true, extended = why == NOT_REFUSED && p->verb == VERB_EXTEND;

	if (extended && !p->permit && p->claim->state == CLAIM_HELD)
		record_held(x, p->claim); /* a client that is away may resume it after a restart */
	if (!s)
		return;
	TAILQ_REMOVE(&s->pendings, p, in_session);
	core_answers(x->core, p->verb);
	if (extended && p->permit)
		record_permit(x, p->permit);
	if (s->over)
		; /* nothing is sent any more */
	else if (p->verb == VERB_SHOW)
		told = show_answer(x, s, p); /* else a copy of it is held back */
	else if (why == NOT_REFUSED && p->verb == VERB_BREAK)
		broken_answer(x, s, p);
	else if (why == NOT_REFUSED)
		pending_tell_done(x, p);
	else
		deliver_refusal(x, s, span_of(p->tag), why);
	if (told)
		session_answered(x->sessions, s, p->tag[0] != '\0');
}

static void deliver_one(struct request_context *x, const struct notice *n)
{
	switch (n->kind) {
	case NOTICE_GRANTED:
		deliver_granted(x, n->claim, n->count);
		break;
	case NOTICE_REENTERED:
		deliver_reentered(x, n->claim, n->count);
		break;
	case NOTICE_REFUSED:
		deliver_refused(x, n->claim, n->refusal);
		break;
	case NOTICE_FORGOTTEN:
		/* The name was taken anew while RESUME is not answered: nothing else would tell the client of the loss. */
		if (n->claim->state == CLAIM_LOST && n->claim->not_notified && !n->claim->session->detached)
			tell_lost(x, n->claim);
		if (n->claim->state == CLAIM_HELD)
			watch(x, n->claim, WATCH_RELEASED);
		record_freed(x, n->claim);
		TAILQ_REMOVE(&n->claim->session->claims, n->claim, in_session);
		n->claim->session->held--;
		request_context_let_go(x, n->claim->session);
		session_wake(x->sessions, n->claim->session);
		break;
	case NOTICE_LENGTHENS:
		record_held(x, n->claim);
		break;
	case NOTICE_ADOPTED:
		deliver_adopted(x, n->claim);
		break;
	case NOTICE_LOST:
		deliver_lost(x, n->claim);
		session_wake(x->sessions, n->claim->session);
		break;
	case NOTICE_WAITING:
		if (n->claim->state == CLAIM_WAITING) /* else it was let in meanwhile */
			watch(x, n->claim, WATCH_WAITING);
		watch_tell_contended(x, n->claim->lock);
		break;
	case NOTICE_WANTED:
		watch_tell_contended(x, n->claim->lock);
		break;
	case NOTICE_RISK:
		deliver_validity(x, n->claim, "! RISK", "left_ms");
		break;
	case NOTICE_SAFE:
		deliver_validity(x, n->claim, "! SAFE", "valid_ms");
		break;
	case NOTICE_EXTENDED:
	case NOTICE_RELEASED:
	case NOTICE_SEEN:
		deliver_pending(x, n->pending, n->refusal);
		break;
	}
}

/* What is about a part of a group, or about a claim of a permit, is told to no client as it is. False: it is about neither. */
static bool __attribute__((noinline)) deliver_to_agent(struct request_context *x, const struct notice *n, const struct session *agent)
{
	if (agent->of_permit) {
		permits_note(x, n);
		return true;
	}
	return n->claim && group_note(x, n);
}

static inline bool deliver_within(struct request_context *x, const struct notice *n)
{
	const struct session *s = n->claim ? n->claim->session : n->pending ? n->pending->session : NULL;

	return s && s->principal && deliver_to_agent(x, n, s);
}

void deliver_notices(struct request_context *x)
{
	for (size_t i = 0; i < x->engine->notices.count; i++) {
		const struct notice n = x->engine->notices.item[i];

		if (!deliver_within(x, &n))
			deliver_one(x, &n);
		notices_delivered(&x->engine->notices, &n);
	}
	x->engine->notices.count = 0;
}

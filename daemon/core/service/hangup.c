/* SPDX-License-Identifier: BSD-2-Clause */
/* See hangup.h. */
#include "daemon/core/service/hangup.h"

#include "daemon/core/engine/convert.h"
#include "daemon/core/engine/wait.h"
#include "daemon/core/group/group_step.h"
#include "daemon/core/group/groups.h"
#include "daemon/core/job/take.h"
#include "daemon/core/rate/rate_turns.h"
#include "daemon/core/reply/tell.h"
#include "daemon/core/resume/session_end.h"
#include "daemon/core/rights/auth.h"
#include "daemon/core/semaphore/permits.h"
#include "daemon/core/service/deliver.h"

#define PAUSE_US (100 * MSEC) /* a heartbeat that is found missing later than this shows a pause of our own */

/* Whether a LOCK of the session waits. patient: for a holder; else one that is answered before long. */
static bool session_waits(const struct session *s, bool patient)
{
	const struct claim *c;

	TAILQ_FOREACH(c, &s->claims, in_session) {
		if (c->state == CLAIM_WAITING && !c->not_notified && c->patient == patient)
			return true;
	}
	return groups_wait(s, patient) || permits_wait(s, patient) || takes_wait(s, patient);
}

/*
 * A session with grace has sent its last line. Requests that do not wait are still answered. A waiting request keeps its place, and lines behind it are
 * dropped.
 */
static void hangup_with_grace(struct request_context *x, struct session *s)
{
	bool blocked;

	rate_turns_finish_up(x, s);
	if (s->ready || s->resuming || !TAILQ_EMPTY(&s->pendings) || !TAILQ_EMPTY(&s->listings) || session_waits(s, false))
		return;
	blocked = session_waits(s, true);
	if (!s->eof && !(blocked && s->busy))
		return; /* lines not read yet are served first, unless they stand behind a request that waits */
	if (s->ahead.count > 0 && !(blocked && s->busy))
		return;
	if (blocked && !s->lingered) {
		/* A round under way may still answer it. */
		if (!timer_is_set(&s->timer))
			heap_set(&x->core->timers, &s->timer, instant_add(x->core->now, core_soon_us(x->core)));
		return;
	}
	session_hang_up(x->sessions, s, "eof");
	session_end_connection(x, s, ENDING_CLEAN);
}

/* The session has sent its last line: it waits for nobody any more, but a round that is under way may still answer. */
static void half_close(struct request_context *x, struct session *s)
{
	struct claim *c, *next;

	for (c = TAILQ_FIRST(&s->claims); c; c = next) {
		next = TAILQ_NEXT(c, in_session);
		if (c->state != CLAIM_WAITING || c->leaving)
			continue;
		wait_finish_up(x->engine, c);
		convert_look(x->engine, c->lock);
	}
	group_step_finish_up(x, s);
	permits_finish_up(x, s);
	takes_finish_up(x, s);
	rate_turns_finish_up(x, s);
}

void hangup_settle(struct request_context *x, struct session *s)
{
	if (s->killed) {
		session_ended(x->sessions, s, "killed");
		session_hang_up(x->sessions, s, "killed");
		session_end(x, s, ENDING_UNSURE);
		return;
	}
	if (s->over) {
		session_end_connection(x, s, ENDING_UNSURE);
		return;
	}
	if (!s->leaving)
		return;
	if (s->grace_us > 0) {
		hangup_with_grace(x, s);
		return;
	}
	half_close(x, s);
	deliver_notices(x);
	if (!s->eof || s->busy || s->ready || s->resuming || s->ahead.count > 0 || s->waiting > 0 || !TAILQ_EMPTY(&s->pendings) ||
	    !TAILQ_EMPTY(&s->listings))
		return;
	session_hang_up(x->sessions, s, "eof");
	session_end(x, s, ENDING_CLEAN);
}

static void refuse_stopping(struct request_context *x, struct session *s, enum verb verb, const char *tag)
{
	core_answers(x->core, verb);
	tell_draining(x, s, span_of(tag));
	session_answered(x->sessions, s, tag[0] != '\0');
}

bool hangup_refuse(struct request_context *x, struct session *s)
{
	bool asked = s->resuming && !s->returns, some = asked || !TAILQ_EMPTY(&s->pendings) || !LIST_EMPTY(&s->takes);
	int64_t all = INT64_MAX;
	struct pending *p;

	if (s->resuming) {
		s->resuming = s->returns = false;
		heap_cancel(&x->core->timers, &s->lasting->grace);
	}
	if (asked)
		refuse_stopping(x, s, VERB_RESUME, s->lasting->resume_tag);
	(void)takes_refuse(x, s, &all);
	(void)rate_turns_refuse(x, s, &all);
	while ((p = TAILQ_FIRST(&s->pendings))) {
		TAILQ_REMOVE(&s->pendings, p, in_session);
		p->session = NULL;
		refuse_stopping(x, s, p->verb, p->tag);
		if (p->auth)
			auth_drop(x, p->auth);
	}
	return some;
}

static void cut_off(struct request_context *x, struct session *s, const char *reason)
{
	session_ended(x->sessions, s, reason);
	session_hang_up(x->sessions, s, reason);
	session_end_connection(x, s, ENDING_UNSURE);
}

/*
 * A heartbeat is missing. The session loses its locks, which are free when nobody can rely on them, and is told so in case it lives. A session with grace
 * keeps them: it is only cut off, and may come back.
 */
static void session_fell_silent(struct request_context *x, struct session *s)
{
	int64_t late_us = instant_diff(x->core->now, s->heard_at) - s->heartbeat_us;

	/* The daemon was not reading, or was stopped: what the session sent meanwhile lies unread. */
	if (!s->reading || late_us > PAUSE_US) {
		session_heard(x->sessions, s);
		return;
	}
	if (s->grace_us == 0)
		session_loses_all(x, s, LOSS_IDLE);
	deliver_notices(x);
	cut_off(x, s, "heartbeat");
}

void hangup_too_far_ahead(struct request_context *x)
{
	struct session *s;

	while ((s = session_too_far_ahead(x->sessions)))
		cut_off(x, s, "overflow");
}

void hangup_fired(struct request_context *x, struct session *s)
{
	if (x->engine->stopping)
		return; /* it was hung up on when the daemon stopped, and its client may believe until the deadline */
	if (!s->leaving) {
		session_fell_silent(x, s);
		return;
	}
	s->lingered = true;
	hangup_settle(x, s);
}

/*
 * A reset by this host's own kernel is as good as an EOF. So is a reset after the client has closed its side: nobody was left there to be answered.
 * In all other cases the client may be alive behind a broken path.
 */
void hangup_gone(struct request_context *x, struct session *s, enum gone how)
{
	static const char *const word[] = {
		[GONE_HANGUP] = "hangup", [GONE_RESET] = "reset", [GONE_KEEPALIVE] = "keepalive", [GONE_OVERFLOW] = "overflow",
		[GONE_RESTART] = "restart"};
	bool sure = how == GONE_HANGUP || (how == GONE_RESET && (s->is_local || s->leaving));

	s->over = true;
	if (!sure)
		session_ended(x->sessions, s, word[how]);
	session_end_connection(x, s, sure ? ENDING_CLEAN : ENDING_UNSURE);
}

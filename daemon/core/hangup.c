/* SPDX-License-Identifier: BSD-2-Clause */
/* See hangup.h. */
#include "daemon/core/hangup.h"

#include "daemon/core/deliver.h"
#include "daemon/core/end.h"
#include "daemon/core/hold.h"
#include "daemon/core/tell.h"
#include "daemon/core/wait.h"

#define PAUSE_US (100 * MSEC) /* a heartbeat found missing this much later than it could be is our own pause */

/* Whether a request is in flight that is answered before long; if patient: one that waits for others. */
static bool session_waits(const struct session *s, bool patient)
{
	const struct claim *c;

	TAILQ_FOREACH(c, &s->claims, in_session) {
		if (c->state == CLAIM_WAITING && !c->not_notified && c->patient == patient)
			return true;
	}
	return false;
}

/*
 * A session with grace has sent its last line. Requests that are answered before long still are; a request that waits keeps its place; lines behind it are
 * dropped.
 */
static void hangup_with_grace(struct commander *x, struct session *s)
{
	bool blocked;

	if (s->ready || s->resuming || !TAILQ_EMPTY(&s->pendings) || !TAILQ_EMPTY(&s->listings) || session_waits(s, false))
		return;
	blocked = session_waits(s, true);
	if (!s->eof && !(blocked && s->busy))
		return; /* lines that are not read yet come first, unless they stand behind what waits */
	if (s->ahead_count > 0 && !(blocked && s->busy))
		return;
	if (blocked && !s->lingered) {
		/* Its round may be under way. */
		if (!timer_is_set(&s->timer))
			heap_set(&x->core->timers, &s->timer, instant_add(x->core->now, core_soon_us(x->core)));
		return;
	}
	session_hang_up(x->sessions, s, "eof");
	end_connection(x, s, ENDING_CLEAN);
}

/* The session has sent its last line: it waits for nobody any more, but a round that is under way may still answer. */
static void half_close(struct commander *x, struct session *s)
{
	struct claim *c, *next;

	for (c = TAILQ_FIRST(&s->claims); c; c = next) {
		next = TAILQ_NEXT(c, in_session);
		if (c->state == CLAIM_WAITING && !c->leaving)
			wait_finish_up(x->engine, c);
	}
}

void hangup_settle(struct commander *x, struct session *s)
{
	if (s->over) {
		end_connection(x, s, ENDING_UNSURE);
		return;
	}
	if (!s->leaving)
		return;
	if (s->known) {
		hangup_with_grace(x, s);
		return;
	}
	half_close(x, s);
	deliver_notices(x);
	if (!s->eof || s->busy || s->ready || s->resuming || s->ahead_count > 0 || s->waiting > 0 || !TAILQ_EMPTY(&s->pendings) ||
	    !TAILQ_EMPTY(&s->listings))
		return;
	session_hang_up(x->sessions, s, "eof");
	end_session(x, s, ENDING_CLEAN);
}

static void refuse_stopping(struct commander *x, struct session *s, const char *tag)
{
	tell_error(x, s, span_of(tag), ERROR_DRAINING, "the daemon is stopping");
	session_answered(x->sessions, s, tag[0] != '\0');
}

bool hangup_refuse(struct commander *x, struct session *s)
{
	bool some = s->resuming || !TAILQ_EMPTY(&s->pendings);
	struct pending *p;

	if (s->resuming) {
		s->resuming = false;
		heap_cancel(&x->core->timers, &s->grace);
		refuse_stopping(x, s, s->resume_tag);
	}
	while ((p = TAILQ_FIRST(&s->pendings))) {
		TAILQ_REMOVE(&s->pendings, p, in_session);
		p->session = NULL;
		refuse_stopping(x, s, p->tag);
	}
	return some;
}

/*
 * A heartbeat is missing. The locks of the session are not renewed any more, and are free at their deadlines; it is told, in case it lives. A session with
 * grace is cut off instead, and may come back.
 */
static void session_fell_silent(struct commander *x, struct session *s)
{
	int64_t late_us = instant_diff(x->core->now, s->heard_at) - s->heartbeat_us;
	struct claim *c, *next;

	/* This daemon did not listen, or was stopped: what the session said meanwhile is not read yet. */
	if (!s->reading || late_us > PAUSE_US) {
		session_heard(x->sessions, s);
		return;
	}
	for (c = TAILQ_FIRST(&s->claims); c && !s->known; c = next) {
		next = TAILQ_NEXT(c, in_session);
		if (c->state == CLAIM_HELD)
			hold_lose(x->engine, c->lock, LOSS_IDLE);
	}
	deliver_notices(x);
	session_ended(x->sessions, s, "heartbeat");
	session_hang_up(x->sessions, s, "heartbeat");
	end_connection(x, s, ENDING_UNSURE);
}

void hangup_fired(struct commander *x, struct session *s)
{
	if (x->engine->draining)
		return; /* it was hung up on when the daemon stopped, and its client may believe until the deadline */
	if (!s->leaving) {
		session_fell_silent(x, s);
		return;
	}
	s->lingered = true;
	hangup_settle(x, s);
}

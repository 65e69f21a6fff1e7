/* SPDX-License-Identifier: BSD-2-Clause */
/* When a session leaves its connection: it has said its last word, is cut off, has fallen silent, or the daemon stops. */
#include "daemon/core/command.h"

#include "daemon/core/hold.h"
#include "daemon/core/tell.h"

#define PAUSE_US (100 * MSEC) /* a heartbeat found missing this much later than it could be is our own pause */

/* A request in flight that is answered before long; or one that waits in line, if patient. */
static bool session_waits(const struct session *s, bool patient)
{
	const struct claim *c;

	TAILQ_FOREACH(c, &s->claims, in_session) {
		if (c->state == CLAIM_WAITING && !c->unheard && c->patient == patient)
			return true;
	}
	return false;
}

/* One with grace has said all: what is answered before long is, what waits in line keeps its place, and lines behind that are dropped. */
static void session_leave(struct commander *x, struct session *s)
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
			heap_set(&x->core->timers, &s->timer, instant_add(x->core->now, core_patience_us(x->core)));
		return;
	}
	session_hang_up(x->sessions, s, "eof");
	command_drop_session(x, s, ENDING_CLEAN);
}

void command_settle(struct commander *x, struct session *s)
{
	if (s->over) {
		command_drop_session(x, s, ENDING_UNSURE);
		return;
	}
	if (!s->leaving)
		return;
	if (s->known) {
		session_leave(x, s);
		return;
	}
	command_half_close(x, s);
	command_deliver(x);
	if (!s->eof || s->busy || s->ready || s->resuming || s->ahead_count > 0 || s->waiting > 0 || !TAILQ_EMPTY(&s->pendings) ||
	    !TAILQ_EMPTY(&s->listings))
		return;
	session_hang_up(x->sessions, s, "eof");
	command_end_session(x, s, ENDING_CLEAN);
}

static void refuse_stopping(struct commander *x, struct session *s, const char *tag)
{
	tell_error(x, s, span_of(tag), ERROR_DRAINING, "the daemon is stopping");
	session_answered(x->sessions, s, tag[0] != '\0');
}

bool command_refuse_flying(struct commander *x, struct session *s)
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

/* A heartbeat was missed: what the session holds is not renewed any more and is free at its deadline; it is told, in case it lives. With grace it
 * is cut off, and may come back. */
static void session_fell_silent(struct commander *x, struct session *s)
{
	int64_t late_us = instant_diff(x->core->now, s->heard_at) - s->heartbeat_us;
	struct claim *c, *next;

	/* It is we who do not listen, or who were stopped: what it said meanwhile is not read yet. */
	if (!s->reading || late_us > PAUSE_US) {
		session_heard(x->sessions, s);
		return;
	}
	for (c = TAILQ_FIRST(&s->claims); c && !s->known; c = next) {
		next = TAILQ_NEXT(c, in_session);
		if (c->state == CLAIM_HELD)
			hold_lose(x->engine, c->lock, LOSS_IDLE);
	}
	command_deliver(x);
	session_ended(x->sessions, s, "heartbeat");
	session_hang_up(x->sessions, s, "heartbeat");
	command_drop_session(x, s, ENDING_UNSURE);
}

void command_session_fired(struct commander *x, struct session *s)
{
	if (!s->leaving) {
		session_fell_silent(x, s);
		return;
	}
	s->lingered = true;
	command_settle(x, s);
}

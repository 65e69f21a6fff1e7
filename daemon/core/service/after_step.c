/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a step: delivers, continues groups and permits, serves ready sessions, and decides when a session is over. */
#include "daemon/core/service/step.h"

#include "daemon/core/engine/asking.h"
#include "daemon/core/engine/engine.h"
#include "daemon/core/engine/holding.h"
#include "daemon/core/group/groups.h"
#include "daemon/core/job/job.h"
#include "daemon/core/rate/rate.h"
#include "daemon/core/reply/send.h"
#include "daemon/core/resume/resume.h"
#include "daemon/core/rights/rights.h"
#include "daemon/core/round/home.h"
#include "daemon/core/semaphore/permit.h"

#define PAUSE_US (100 * MSEC) /* if a heartbeat is found missing later than this, the daemon itself has paused */

/* Whether a LOCK of the session waits. patient: for a holder; else for an answer that comes soon. */
static bool session_waits(const struct session *s, bool patient)
{
	const struct claim *c;

	TAILQ_FOREACH(c, &s->claims, in_session) {
		if (c->state == CLAIM_WAITING && !c->not_notified && c->patient == patient)
			return true;
	}
	return bids_wait(s, patient);
}

/*
 * A session with grace has sent its last line. Requests that do not wait are still answered. Waiting requests keep their places, and the lines after them are
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
		return; /* lines not read yet are served first, unless they come after a request that waits */
	if (s->ahead.count > 0 && !(blocked && s->busy))
		return;
	if (blocked && !s->lingered) {
		/* A round that is under way may still answer it. */
		if (!timer_is_set(&s->timer))
			heap_set(&x->core->timers, &s->timer, instant_add(x->core->now, core_soon_us(x->core)));
		return;
	}
	session_hang_up(x->sessions, s, "eof");
	session_end_connection(x, s, ENDING_CLEAN);
}

/* The session has sent its last line. It waits for nobody any longer, but a round that is under way may still answer. */
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

void hangup_if_due(struct request_context *x, struct session *s)
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
	send_draining(x, s, span_of(tag));
	session_answered(x->sessions, s, tag[0] != '\0');
}

bool hangup_refuse(struct request_context *x, struct session *s)
{
	bool asked = s->resuming && !s->returns, some = asked || !TAILQ_EMPTY(&s->pendings) || take_first(s);
	int64_t all = INT64_MAX;
	struct pending *p;

	if (s->resuming) {
		s->resuming = s->returns = false;
		heap_cancel(&x->core->timers, &s->lasting->grace);
	}
	if (asked)
		refuse_stopping(x, s, VERB_RESUME, s->lasting->resume_tag);
	(void)takes_refuse(x, s, &all);
	(void)rate_turns_refuse(x, s, false, &all);
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
 * A heartbeat is missing. The session loses its locks, which become free when nobody can rely on them. It is told so, in case it lives. A session with grace
 * keeps them. It is only cut off, and may come back.
 */
static void session_fell_silent(struct request_context *x, struct session *s)
{
	int64_t late_us = instant_diff(x->core->now, s->active_at) - s->heartbeat_us;

	/* The daemon did not read, or was stopped: there may be unread lines of the session. */
	if (!s->reading || late_us > PAUSE_US) {
		session_touch(x->sessions, s);
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
		return; /* it was hung up on when the daemon stopped, and its client may rely on its locks until the deadline */
	if (!s->leaving) {
		session_fell_silent(x, s);
		return;
	}
	s->lingered = true;
	hangup_if_due(x, s);
}

/*
 * A reset by this host's own kernel is as certain as an EOF. So is a reset after the client has closed its side, because nobody was left to be answered. In all
 * other cases the client may be alive behind a broken path.
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

void after_step_due(struct request_context *x)
{
	if (!TAILQ_EMPTY(&x->bids_due[BID_GROUP]))
		group_step_next(x);
	else
		permit_step_next(x);
	deliver_notices(x);
}

bool after_step_line(struct request_context *x, struct session *session, struct input line)
{
	uint64_t id = session->id;

	command_line(x, session, line);
	after_step_notices(x);
	session = session_find(x->sessions, id);
	if (!session || !(session->over || session->leaving))
		return session != NULL;
	hangup_if_due(x, session);
	return session_find(x->sessions, id) != NULL;
}

#define SERVED_A_STEP 4 /* lines read ahead: one event may free 256 of them, and a LOCKALL of a session with many requests takes 0.2 ms */
#define SAID_A_LINE   ((size_t)64 << 10) /* bytes of an answer that count as one line more: a SHOW may have 256 KiB */

bool after_step_session(struct request_context *x, struct session *session)
{
	struct input line;
	size_t unsent;

	if (session->resuming && resume_goes_on(x, session))
		after_step_notices(x); /* losses are reported before the next line is served, because that may end their claims */
	while (session->ahead.count > 0 && !session->over && !session->busy && !session_must_await(x->sessions, session)) {
		if (x->served >= SERVED_A_STEP && !x->core->conf.serves_all && !x->engine->stopping) { /* the last step delays nobody */
			session_goes_on(x->sessions, session);
			request_context_again(x);
			return false;
		}
		if (!session_next_line(x->sessions, session, &line))
			break;
		unsent = session->unsent;
		x->served++;
		if (!after_step_line(x, session, line))
			return true;
		x->served += (unsigned)((session->unsent - unsent) / SAID_A_LINE);
	}
	if (session->killed || session->over || session->leaving)
		hangup_if_due(x, session);
	return true;
}

#define HANDED_A_STEP 1024 /* 1 for a name that is asked for, 8 for a record */
#define HANDED_RECORD 8

static unsigned after_step_waiting(const struct request_context *x, uint64_t session)
{
	const struct session *s = session_find(x->sessions, session);

	return s ? s->waiting : 0;
}

/* False: that was the last. ret_work: the approximate work. */
static bool after_step_restored(struct request_context *x, unsigned *ret_work)
{
	struct restored_line line;
	bool more = restore_next(x, &line);
	uint64_t id = line.session ? line.session->id : 0;
	unsigned before = after_step_waiting(x, id), after;

	if (line.session && line.asked_at.us == 0) {
		session_read_ahead(x->sessions, line.session, line.line);
		session_goes_on(x->sessions, line.session);
	} else if (line.session) {
		x->core->asked_at = line.asked_at;
		after_step_line(x, line.session, line.line);
		x->core->asked_at = x->core->now;
	}
	after = after_step_waiting(x, id);
	*ret_work = HANDED_RECORD + (after > before ? after - before : 0);
	return more;
}

void after_step_handed(struct request_context *x)
{
	unsigned most = core_portion(x->core, HANDED_A_STEP), done = 0, work;

	for (bool more = restore_may_go_on(x); more && done < most; done += work)
		more = after_step_restored(x, &work);
}

void after_step_handed_all(struct request_context *x)
{
	unsigned work;

	while (x->handed)
		(void)after_step_restored(x, &work);
}

static void after_step_job(struct request_context *x, struct home_question *q)
{
	if (q->pending)
		take_again_on_outcome(x, q);
	switch (q->about ? *(const enum job_asker *)q->about : ASKER_GONE) {
	case ASKER_JOB:
		job_on_outcome(x, q);
		break;
	case ASKER_QUEUE:
		queue_on_outcome(x, q);
		break;
	case ASKER_CLOSED_QUEUE: /* a TAKE that has come since may have been asked for before: the home is told again that it waits */
		job_queue_note(x, name_text(&q->name));
		break;
	case ASKER_ORDER:
		job_order_on_outcome(x, q);
		break;
	case ASKER_SURVEY:
		job_list_on_outcome(x, q);
		break;
	case ASKER_QUEUE_LIST:
		queue_list_on_outcome(x, q);
		break;
	case ASKER_GONE:
		break;
	}
	home_question_free(x->engine, q);
	if (x->queue_due)
		takes_look(x);
}

/* Passes on the answers to questions to homes, which are in `told`: see home.h. True: sessions may continue. */
static bool after_step_homes(struct request_context *x)
{
	struct home_question *q;

	while ((q = home_next_outcome(x->engine))) {
		switch (q->of) {
		case HOME_OF_RATE:
			(q->about ? rate_line_on_outcome : rate_on_outcome)(x, q);
			break;
		case HOME_OF_QUEUE:
			after_step_job(x, q);
			break;
		case HOME_OF_NONE: /* home.c handles its own questions */
			break;
		}
	}
	return true;
}

static void after_step_once(struct request_context *x)
{
	struct session *session;

	x->step_again = false;
	engine_after_step(x->engine);
	after_step_notices(x);
	while ((session = session_next_ready(x->sessions))) {
		bool has_time = after_step_session(x, session);
		after_step_notices(x); /* its end may concern other sessions */
		if (!has_time)
			break;
	}
}

void after_step_all(struct request_context *x)
{
	after_step_notices(x);
	do
		after_step_once(x);
	while (x->step_again || (!TAILQ_EMPTY(&x->engine->homes.finished) && after_step_homes(x)));
}

void __attribute__((cold)) after_step_fallen(struct request_context *x)
{
	struct engine *e = x->engine;

	e->fell = false;
	for (unsigned i = 0; i < x->core->conf.nodes; i++) {
		if (e->fell_us[i])
			jobs_shorten(x, i, e->fell_us[i]);
		e->fell_us[i] = 0;
	}
}

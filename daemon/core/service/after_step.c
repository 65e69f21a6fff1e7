/* SPDX-License-Identifier: BSD-2-Clause */
/* See after_step.h. */
#include "daemon/core/service/after_step.h"
#include "daemon/core/job/job_order.h"

#include "daemon/core/engine/engine.h"
#include "daemon/core/group/group_step.h"
#include "daemon/core/job/job.h"
#include "daemon/core/job/queue_pass.h"
#include "daemon/core/job/job_list.h"
#include "daemon/core/job/queue_list.h"
#include "daemon/core/job/take_again.h"
#include "daemon/core/rate/rate_turns.h"
#include "daemon/core/resume/restore.h"
#include "daemon/core/resume/resume.h"
#include "daemon/core/round/home.h"
#include "daemon/core/semaphore/permit_step.h"
#include "daemon/core/service/command.h"
#include "daemon/core/service/hangup.h"

void after_step_due(struct request_context *x)
{
	if (!TAILQ_EMPTY(&x->groups_due))
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
	hangup_settle(x, session);
	return session_find(x->sessions, id) != NULL;
}

#define SERVED_A_STEP 4 /* lines read ahead: one event may free 256 of them, and a LOCKALL of a session with many requests takes 0.2 ms */

bool after_step_session(struct request_context *x, struct session *session)
{
	struct input line;

	if (session->resuming && resume_goes_on(x, session))
		after_step_notices(x); /* losses are told before the next line is served: it may end their claims */
	while (session->ahead.count > 0 && !session->over && !session->busy && !session_must_await(x->sessions, session)) {
		if (x->served >= SERVED_A_STEP && !x->core->conf.serves_all && !x->engine->stopping) { /* the last step keeps nobody waiting */
			session_goes_on(x->sessions, session);
			request_context_again(x);
			return false;
		}
		if (!session_next_line(x->sessions, session, &line))
			break;
		x->served++;
		if (!after_step_line(x, session, line))
			return true;
	}
	if (session->killed || session->over || session->leaving)
		hangup_settle(x, session);
	return true;
}

#define HANDED_A_STEP 1024 /* 1 for a name that is asked for, 8 for a record */
#define HANDED_RECORD 8

static unsigned after_step_waiting(const struct request_context *x, uint64_t session)
{
	const struct session *s = session_find(x->sessions, session);

	return s ? s->waiting : 0;
}

/* False: that was the last. ret_work: about how much it was. */
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
		take_again_told(x, q);
	switch (q->about ? *(const enum job_asker *)q->about : ASKER_GONE) {
	case ASKER_JOB:
		job_told(x, q);
		break;
	case ASKER_QUEUE:
		queue_told(x, q);
		break;
	case ASKER_CLOSED_QUEUE: /* a TAKE that has come since may have been asked for before: the home is told again that it waits */
		job_queue_note(x, name_text(&q->name));
		break;
	case ASKER_ORDER:
		job_order_told(x, q);
		break;
	case ASKER_SURVEY:
		job_list_told(x, q);
		break;
	case ASKER_QUEUE_LIST:
		queue_list_told(x, q);
		break;
	case ASKER_GONE:
		break;
	}
	home_question_free(x->engine, q);
	if (x->queue_due)
		takes_look(x);
}

/* Tells the outcomes of questions to homes, which are in `told`: see home.h. True: sessions may go on. */
static bool after_step_homes(struct request_context *x)
{
	struct home_question *q;

	while ((q = home_next_told(x->engine))) {
		switch (q->of) {
		case HOME_OF_RATE:
			(q->about ? rate_line_told : rate_told)(x, q);
			break;
		case HOME_OF_QUEUE:
			after_step_job(x, q);
			break;
		case HOME_OF_NONE: /* home.c hears of its own questions itself */
			break;
		}
	}
	return true;
}

static void after_step_once(struct request_context *x)
{
	struct session *session;

	x->gathered = false;
	engine_settle(x->engine);
	after_step_notices(x);
	while ((session = session_next_ready(x->sessions))) {
		bool has_time = after_step_session(x, session);
		after_step_notices(x); /* its end may concern others */
		if (!has_time)
			break;
	}
}

void settle(struct request_context *x)
{
	after_step_notices(x);
	do
		after_step_once(x);
	while (x->gathered || (!TAILQ_EMPTY(&x->engine->homes.told) && after_step_homes(x)));
}

void __attribute__((cold)) after_step_fallen(struct request_context *x)
{
	struct engine *e = x->engine;

	e->fell = false;
	for (unsigned i = 0; i < x->core->conf.nodes; i++) {
		if (e->fell_us[i])
			jobs_lower(x, i, e->fell_us[i]);
		e->fell_us[i] = 0;
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One step: what is due (due_timers.c), then the event, then what became possible (after_step.c). The order in which these happen is decided here and nowhere
 * else.
 */
#include "daemon/core/service/service.h"
#include "daemon/core/job/job_order.h"

#include "daemon/base/mem.h"
#include "daemon/core/admin/alarm.h"
#include "daemon/core/admin/drain.h"
#include "daemon/core/admin/revoke.h"
#include "daemon/core/deadlock/deadlock.h"
#include "daemon/core/engine/break.h"
#include "daemon/core/engine/engine.h"
#include "daemon/core/engine/grant.h"
#include "daemon/core/engine/release.h"
#include "daemon/core/engine/retry.h"
#include "daemon/core/event/alarms.h"
#include "daemon/core/job/queue_pass.h"
#include "daemon/core/job/take.h"
#include "daemon/core/member/health.h"
#include "daemon/core/rate/rate_turns.h"
#include "daemon/core/reply/ask_daemon.h"
#include "daemon/core/reply/former_holders.h"
#include "daemon/core/reply/watch_news.h"
#include "daemon/core/reply/name_history.h"
#include "daemon/core/reply/records.h"
#include "daemon/core/reply/show.h"
#include "daemon/core/reply/watch.h"
#include "daemon/core/reply/lists.h"
#include "daemon/core/resume/session_end.h"
#include "daemon/core/resume/handover.h"
#include "daemon/core/resume/restore.h"
#include "daemon/core/rights/auth.h"
#include "daemon/core/round/home.h"
#include "daemon/core/service/due_timers.h"
#include "daemon/core/service/hangup.h"
#include "daemon/core/service/after_step.h"
#include "daemon/core/service/service_data.h"
#include "daemon/core/session/rules.h"
#include "daemon/core/session/semaphore.h"
#include "daemon/core/session/client_identity.h"

#include <assert.h>
#include <errno.h>

struct service *service_new(const struct core_conf *conf)
{
	struct service *s = mem_alloc(sizeof(*s));

	core_init(&s->core, conf);
	engine_init(&s->engine, &s->core);
	session_table_init(&s->sessions, &s->core);
	s->context.core = &s->core;
	s->context.engine = &s->engine;
	s->context.sessions = &s->sessions;
	lists_init(&s->context);
	TAILQ_INIT(&s->context.watchings);
	news_init(&s->context);
	s->context.again.kind = TIMER_AGAIN;
	TAILQ_INIT(&s->context.groups_due);
	semaphores_init(&s->context);
	rate_lines_init(&s->context);
	alarm_configure(&s->context);
	s->engine.watched += conf->audit;
	return s;
}

void service_free(struct service *s)
{
	if (!s)
		return;
	deadlock_free(&s->context);
	ask_daemon_free(&s->context);
	auths_free(&s->context);
	orders_free_all(&s->context);
	restore_free(&s->context);
	session_end_all(&s->context);
	home_release(&s->engine);
	engine_release(&s->engine);
	session_table_release(&s->sessions);
	name_history_free(&s->context);
	alarms_free(&s->core);
	formers_free(&s->context);
	core_release(&s->core);
	mem_free(s);
}

static int on_open(struct service *s, const struct event *event)
{
	if (session_find(&s->sessions, event->session.id))
		return -EINVAL;
	session_set_peer(&s->sessions, session_open(&s->sessions, event->session.id, event->session.peer->is_web), event->session.peer);
	return 0;
}

static int on_line(struct service *s, const struct event *event)
{
	struct session *session = session_find(&s->sessions, event->session.id);
	struct input line = {.p = event->session.line, .n = event->session.n, .is_cut = event->kind == EVENT_TOO_LONG};

	if (!session || session->eof)
		return -EINVAL;
	session_heard(&s->sessions, session);
	if ((session->busy || session->ahead.count > 0) && !line_is_tagged(line.p, line.n)) {
		session_read_ahead(&s->sessions, session, line);
		hangup_too_far_ahead(&s->context);
	} else {
		after_step_line(&s->context, session, line);
	}
	return 0;
}

static int on_eof(struct service *s, const struct event *event)
{
	struct session *session = session_find(&s->sessions, event->session.id);

	if (!session)
		return -EINVAL;
	session->leaving = true;
	session->eof |= event->kind == EVENT_EOF;
	heap_cancel(&s->core.timers, &session->timer);
	hangup_settle(&s->context, session);
	return 0;
}

/* The client has read what it was sent: it is alive, and its next lines may be served. */
static int on_sent(struct service *s, const struct event *event)
{
	struct session *session = session_find(&s->sessions, event->session.id);

	if (!session || !session->awaiting)
		return -EINVAL;
	session->awaiting = false;
	session->unsent = 0;
	session_heard(&s->sessions, session);
	takes_sent(&s->context, session);
	after_step_session(&s->context, session);
	return 0;
}

static int on_gone(struct service *s, const struct event *event)
{
	struct session *session = session_find(&s->sessions, event->session.id);

	if (!session)
		return -EINVAL;
	hangup_gone(&s->context, session, event->session.how);
	return 0;
}

/* Ends LISTs, and requests that wait for the stores, RESUME among them. False: there were none. */
static bool on_stop_refuse(struct service *s)
{
	bool some = release_answer_syncs(&s->engine);

	after_step_notices(&s->context);
	some |= lists_stop(&s->context);
	for (uint32_t i = 0; i < s->sessions.slots; i++)
		if (s->sessions.slot[i] && !s->sessions.slot[i]->over)
			some |= hangup_refuse(&s->context, s->sessions.slot[i]);
	return some;
}

static void on_stop(struct service *s)
{
	engine_stop(&s->engine);
	watch_drain(&s->context);
	after_step_handed_all(&s->context);
	/* Lines that were read behind the refused requests are served before the hang-up, until there is nothing more to refuse. */
	for (settle(&s->context); on_stop_refuse(s);)
		settle(&s->context);
	for (uint32_t i = 0; i < s->sessions.slots; i++)
		if (s->sessions.slot[i] && !s->sessions.slot[i]->over)
			session_hang_up(&s->sessions, s->sessions.slot[i], "shutdown");
}

static int on_restore(struct service *s, const struct event *event)
{
	if (s->run == RUN_BEGUN)
		return -EINVAL;
	s->run = RUN_RESTORING;
	return restore_record(&s->context, event->journal.record);
}

static int on_restored(struct service *s)
{
	if (s->run == RUN_BEGUN)
		return -EINVAL;
	s->run = RUN_BEGUN;
	restore_end(&s->context);
	return 0;
}

static int on_node(struct service *s, const struct event *event)
{
	unsigned node = event->node.index;

	if (node >= s->core.conf.nodes)
		return -EINVAL;
	if (event->kind == EVENT_NODE_UP)
		engine_node_up(&s->engine, node, event->node.address);
	else if (event->kind == EVENT_NODE_DOWN)
		engine_node_down(&s->engine, node, event->node.defect, event->node.reason, event->node.address);
	else if (event->kind == EVENT_UNWATCHED)
		member_unwatched(&s->engine.members, node, event->node.defect, event->node.reason, event->node.address);
	else
		member_subscribed(&s->engine.members, node, event->node.defect, event->node.reason);
	if (s->engine.fell)
		after_step_fallen(&s->context);
	return 0;
}

static int on_answer(struct service *s, const struct answer *a)
{
	if (a->node >= s->core.conf.nodes || !engine_answer(&s->engine, a))
		return -EINVAL;
	if (s->engine.fell)
		after_step_fallen(&s->context);
	if (s->context.deadlocks)
		deadlock_answered(&s->context, a);
	if (s->context.remote_holders)
		show_answered(&s->context, a);
	return 0;
}

static int service_handle(struct service *s, const struct event *event)
{
	/* Any other event ends the restoring. */
	if (s->run == RUN_RESTORING && event->kind != EVENT_RESTORE && event->kind != EVENT_RESTORED)
		(void)on_restored(s);
	if (event->kind != EVENT_RESTORE && event->kind != EVENT_RESTORED)
		s->run = RUN_BEGUN;
	switch (event->kind) {
	case EVENT_TIME:
		return 0;
	case EVENT_OPEN:
		return on_open(s, event);
	case EVENT_LINE:
	case EVENT_TOO_LONG:
		return on_line(s, event);
	case EVENT_HALF_CLOSED:
	case EVENT_EOF:
		return on_eof(s, event);
	case EVENT_SENT:
		return on_sent(s, event);
	case EVENT_GONE:
		return on_gone(s, event);
	case EVENT_NODE_UP:
	case EVENT_NODE_DOWN:
	case EVENT_SUBSCRIBED:
	case EVENT_UNWATCHED:
		return on_node(s, event);
	case EVENT_ANSWER:
		return on_answer(s, &event->answer);
	case EVENT_WOKEN:
		retry_woken(&s->engine, event->message.name, event->message.node);
		return 0;
	case EVENT_WANTED:
		grant_wanted(&s->engine, event->message.name);
		return 0;
	case EVENT_BROKEN:
		break_heard(&s->engine, event->message.name);
		return 0;
	case EVENT_DUE:
		takes_wake(&s->context, event->message.name);
		return 0;
	case EVENT_QUESTION:
		ask_daemon_question(&s->context, event->message.node, event->message.name);
		return 0;
	case EVENT_CARD:
		show_card(&s->context, event->message.name);
		return 0;
	case EVENT_VERIFIED:
		auth_verified(&s->context, event->verified.number, event->verified.ok);
		return 0;
	case EVENT_RULES:
		revoke_waiting(&s->context);
		return 0;
	case EVENT_STOP:
		on_stop(s);
		return 0;
	case EVENT_RESTORE:
		return on_restore(s, event);
	case EVENT_RESTORED:
		return on_restored(s);
	case EVENT_JOURNAL:
		return 0; /* service_step() has handled it before the timers */
	}
	return -EINVAL;
}

int service_step(struct service *s, const struct event *event, struct effects *ret_effects)
{
	int r;

	assert(!s->stepping);
	s->stepping = true;
	s->core.now = s->core.asked_at = event->now;
	s->core.wall_us = event->wall_us;
	s->core.out = ret_effects;
	s->context.news.told = 0;
	s->context.served = 0;
	s->context.slots_asked = 0;
	s->engine.homes.tried = 0;
	/* Before the timers: what they end now was still held in the snapshot that this event follows, so it is to be recorded. */
	if (event->kind == EVENT_JOURNAL)
		s->core.journal_off = !event->journal.ok;
	due_timers_timers(&s->context);
	r = service_handle(s, event);
	settle(&s->context);
	s->core.out = NULL;
	s->stepping = false;
	return r;
}

bool service_snapshot(struct service *s, struct effects *ret_effects)
{
	bool more;

	assert(!s->stepping);
	s->core.out = ret_effects;
	more = record_more(&s->context);
	s->core.out = NULL;
	return more;
}

void service_snapshot_drop(struct service *s)
{
	s->context.snapshot = false;
}

void service_hand_over(struct service *s, struct effects *ret_effects)
{
	assert(!s->stepping);
	s->core.out = ret_effects;
	hand_over(&s->context);
	s->core.out = NULL;
}

bool service_deadline(const struct service *s, struct instant *ret_when)
{
	const struct timer *t = heap_first(&s->core.timers);

	if (!t)
		return false;
	*ret_when = t->at;
	return true;
}

void service_reload(struct service *s, const struct core_conf *conf)
{
	bool alarms = core_conf_alarms_differ(&s->core.conf, conf);

	core_conf_take_live(&s->core.conf, conf);
	core_group_names(&s->core);
	if (alarms)
		alarm_configure(&s->context);
}

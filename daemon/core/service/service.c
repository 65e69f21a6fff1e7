/* SPDX-License-Identifier: BSD-2-Clause */
/* See service.h. */
#include "daemon/core/service/service.h"

#include "daemon/base/mem.h"
#include "daemon/core/admin/admin.h"
#include "daemon/core/deadlock/deadlock.h"
#include "daemon/core/engine/asking.h"
#include "daemon/core/engine/engine.h"
#include "daemon/core/engine/holding.h"
#include "daemon/core/event/core.h"
#include "daemon/core/group/groups.h"
#include "daemon/core/job/job.h"
#include "daemon/core/member/health.h"
#include "daemon/core/member/membership.h"
#include "daemon/core/rate/rate.h"
#include "daemon/core/reply/history.h"
#include "daemon/core/reply/listing.h"
#include "daemon/core/reply/records.h"
#include "daemon/core/reply/remote_holders.h"
#include "daemon/core/reply/show.h"
#include "daemon/core/reply/watch.h"
#include "daemon/core/request/requests.h"
#include "daemon/core/resume/resume.h"
#include "daemon/core/rights/rights.h"
#include "daemon/core/round/home.h"
#include "daemon/core/semaphore/permit.h"
#include "daemon/core/service/step.h"
#include "daemon/core/session/client.h"
#include "daemon/core/session/request_context.h"
#include "daemon/core/session/semaphore.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Passes each timer that is due to its owner. */

/* Sessions that can continue are served at the end of each step. */
static void again(struct request_context *x)
{
	news_again(x);
	permits_again(x);
	groups_again(x);
	if (x->drain.more)
		drain_again(x);
	if (x->revoke.more)
		revoke_again(x);
}

static void timer_fired(struct request_context *x, struct timer *t)
{
	switch ((enum timer_kind)t->kind) {
	case TIMER_SESSION:
		hangup_fired(x, container_of(t, struct session, timer));
		break;
	case TIMER_GRACE:
		resume_grace_over(x, container_of(t, struct lasting, grace)->session);
		break;
	case TIMER_HANDED:
		after_step_handed(x);
		break;
	case TIMER_WAITS:
		deadlock_fired(x);
		break;
	case TIMER_HISTORY:
		name_history_fired(x);
		break;
	case TIMER_AGAIN:
		again(x);
		break;
	case TIMER_ASK_DAEMON:
		show_fired(x);
		break;
	case TIMER_DRAIN:
		drain_fired(x);
		break;
	case TIMER_ALARM:
		alarm_fired(x, t);
		break;
	case TIMER_FAILURES:
		alarm_count_failures(x);
		break;
	case TIMER_AUTH:
		auth_fired(x, t);
		break;
	case TIMER_LISTS:
		lists_go_on(x);
		break;
	case TIMER_LAPSE:
		group_step_fired(x, t);
		break;
	case TIMER_PERMIT:
		permit_step_fired(x, container_of(t, struct permit, bid.timer));
		break;
	case TIMER_JOB:
		job_fired(x, container_of(t, struct job, timer));
		break;
	case TIMER_QUEUE:
		queue_look(x, container_of(t, struct job_queue, timer));
		break;
	case TIMER_TAKE:
		take_fired(x, container_of(t, struct take, bid.timer));
		break;
	case TIMER_ORDER:
		job_order_fired(x, t);
		break;
	case TIMER_RATE_LINE:
	case TIMER_RATE_TURN:
		rate_timer_fired(x, t);
		break;
	case TIMER_CONTENDER:
	case TIMER_LEASE:
	case TIMER_CLAIM:
	case TIMER_ROUND:
	case TIMER_RELEASE:
	case TIMER_MEMBER:
	case TIMER_ADMISSION:
	case TIMER_BACK:
	case TIMER_HOME:
		engine_fired(x->engine, t);
		break;
	}
}

#define WORK_A_STEP 2048
#define WORK_A_WAIT 8 /* for a request that ends */
#define SLOTS_A_WORK 4 /* slots that count as 1, when the first in line leaves their queues */

static unsigned session_work(const struct session *s)
{
	return WORK_A_WAIT * (1 + s->held + s->waiting) + s->slots / SLOTS_A_WORK;
}

/* A group that ends gives back what it holds. */
static unsigned claim_work(const struct claim *c)
{
	const struct session *s = c->session;

	return WORK_A_WAIT * (s->principal && !s->of_permit ? group_of(c)->parts : 1);
}

/* Returns the approximate work of the timer. To renew a lease is 2. */
static unsigned timer_work(struct timer *t)
{
	switch ((enum timer_kind)t->kind) {
	case TIMER_LEASE: /* all readers lose it together */
		return 1 + lock_holders(lock_of_lease(container_of(t, struct lease, timer)));
	case TIMER_JOB:
		return 4;
	case TIMER_AGAIN:
	case TIMER_HANDED:
		return WORK_A_STEP;
	case TIMER_SESSION:
		return session_work(container_of(t, struct session, timer));
	case TIMER_GRACE:
		return session_work(container_of(t, struct lasting, grace)->session);
	case TIMER_CLAIM:
		return claim_work(container_of(t, struct claim, timer));
	case TIMER_LAPSE:
		return WORK_A_WAIT * container_of(t, struct group, bid.timer)->parts;
	case TIMER_PERMIT:
		return WORK_A_WAIT + container_of(t, struct permit, bid.timer)->asked_n / SLOTS_A_WORK;
	default:
		return WORK_A_WAIT;
	}
}

/* After a certain amount of work, the remaining timers are left to the next steps, which follow at once: a client can make many timers due at one moment. */
static void __attribute__((noinline)) due_timers_fire(struct request_context *x, struct timer *t)
{
	int64_t late_us = instant_diff(x->core->now, t->at);
	unsigned work = 0, most = core_portion(x->core, WORK_A_STEP);

	x->core->late = x->engine->falls;
	x->core->metrics.value[METRIC_LOOP_LAG] = late_us;
	metric_peak(&x->core->metrics, METRIC_GAP_LONGEST, late_us);
	for (unsigned n = 0; t && !instant_before(x->core->now, t->at); t = heap_first(&x->core->timers), n++) {
		work += timer_work(t);
		if (work > most && n > 0) {
			x->core->late = true;
			break;
		}
		heap_cancel(&x->core->timers, t);
		timer_fired(x, t);
		if (x->engine->fell)
			after_step_fallen(x);
		after_step_notices(x);
	}
}

static inline void due_timers_look(struct request_context *x)
{
	struct timer *t = heap_first(&x->core->timers);

	if (t && !instant_before(x->core->now, t->at))
		due_timers_fire(x, t);
}

/* One step: first what is due, then the event, then what has become possible (after_step.c). This order is defined only here. */

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
	for (unsigned i = 0; i < BID_KINDS; i++)
		TAILQ_INIT(&s->context.bids_due[i]);
	TAILQ_INIT(&s->context.bids_later);
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
	sessions_free_all(&s->context);
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
	session_touch(&s->sessions, session);
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
	hangup_if_due(&s->context, session);
	return 0;
}

/* The client has read its output. So it is alive, and its next lines may be served. */
static int on_sent(struct service *s, const struct event *event)
{
	struct session *session = session_find(&s->sessions, event->session.id);

	if (!session || !session->awaiting)
		return -EINVAL;
	session->awaiting = false;
	session->unsent = 0;
	session_touch(&s->sessions, session);
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

/* Ends LISTs, and requests that wait for the stores, including RESUME. False: there were none. */
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
	/* Lines after the refused requests are served before the hang-up, until there is nothing more to refuse. */
	for (after_step_all(&s->context); on_stop_refuse(s);)
		after_step_all(&s->context);
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
		break_reported(&s->engine, event->message.name);
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
	s->context.news.cost = 0;
	s->context.served = 0;
	s->context.slots_asked = 0;
	s->engine.homes.tried = 0;
	/* Before the timers: what they end now was still held in the snapshot before this event, so it has to be recorded. */
	if (event->kind == EVENT_JOURNAL)
		s->core.journal_off = !event->journal.ok;
	due_timers_look(&s->context);
	r = service_handle(s, event);
	after_step_all(&s->context);
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

/* What the daemon asks the service about outside a step: for the supervisor, the log, the page and /metrics. This changes only figures. */

size_t service_status(const struct service *s, char *out, size_t size)
{
	const struct metrics *m = &s->core.metrics;
	int n = snprintf(out, size, "%u/%u stores, %lld sessions, %lld locks, %lld waiters%s", members_serving(&s->engine.members), s->core.conf.nodes,
	                 (long long)m->value[METRIC_SESSIONS], (long long)m->value[METRIC_LOCKS_HELD], (long long)m->value[METRIC_WAITERS],
	                 s->engine.stopping ? ", stopping" : s->engine.draining ? ", draining" : "");

	return n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
}

bool service_lets_look(const struct service *s, const struct peer *peer, bool some)
{
	return peer_may_look(&s->core, peer, some);
}

bool service_is_draining(const struct service *s)
{
	return s->engine.draining;
}

bool service_is_drained(struct service *s)
{
	return drain_is_over(&s->context);
}

bool service_sets_timers(const struct service *s)
{
	return s->engine.falls;
}

bool service_is_judging(const struct service *s)
{
	return s->context.revoke.more;
}

bool service_stores_checked(const struct service *s)
{
	return members_are_checked(&s->engine.members);
}

bool service_is_awaited(const struct service *s)
{
	return hand_over_is_awaited(&s->context);
}

bool service_has_other_stores(const struct service *s)
{
	return s->context.handed && !s->context.handed->same_stores;
}

bool service_returns(const struct service *s)
{
	return s->context.handed;
}

void service_tally(const struct service *s, const struct sampler *to)
{
	tally(&s->context, to);
}

void service_store(const struct service *s, unsigned node, struct service_store *ret_store)
{
	const struct member *m = &s->engine.members.node[node];

	*ret_store = (struct service_store){.name = core_calls(&s->core, node),
	                                    .state = member_state_reported(&s->engine.members, m),
	                                    .cause = defect_table[member_trouble(&s->engine.members, m).defect].word,
	                                    .usable = member_serves(&s->engine.members, m),
	                                    .rtt_us = m->rtt_us,
	                                    .trips = &m->trips,
	                                    .trips_us = m->trips_us,
	                                    .address = strlen(m->address) < sizeof(m->address) - 1 ? m->address : "",
	                                    .run_id = m->run_id,
	                                    .answered_at = m->clock.at};
}

bool service_has_quorum(const struct service *s)
{
	return members_serving(&s->engine.members) >= quorum_of(s->core.conf.nodes);
}

const struct metrics *service_metrics(struct service *s)
{
	s->core.metrics.value[METRIC_NAMES] = (int64_t)s->engine.table.map.count;
	s->core.metrics.value[METRIC_TIMERS] = (int64_t)s->core.timers.count;
	return &s->core.metrics;
}

const char *service_daemon_id(const struct service *s)
{
	return s->core.daemon_id;
}

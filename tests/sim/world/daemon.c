/* SPDX-License-Identifier: BSD-2-Clause */
/* Events go into a service and its effects out into the world; what stops, kills and starts a daemon. */
#include "tests/sim/world/world.h"

#include <stdlib.h>

struct instant daemon_boot(const struct sim_daemon *d)
{
	return host_boot(&d->host, d->world->now);
}

bool daemon_sent(const struct sim_daemon *d, uint64_t run, int64_t depart)
{
	return (run == d->run && daemon_is_up(d)) || depart <= d->died_at[run % RUNS_MAX];
}

void daemon_init(struct sim_daemon *d, struct world *w, unsigned index)
{
	const struct plan *p = w->plan;
	struct stream hosts;

	d->world = w;
	d->index = index;
	stream_init(&d->stream, (uint64_t)p->seed, DRAW_DAEMON, index);
	stream_init(&hosts, (uint64_t)p->seed, DRAW_HOSTS, index);
	d->host.ppm = stream_either(&hosts, p->drift_ppm);
	d->host.base_us = stream_range(&hosts, SEC, 1000000 * SEC);
	d->host.offset_us = INT64_C(1700000000000000) - d->host.base_us + stream_range(&hosts, -p->daemon_offset_us, p->daemon_offset_us);
	TAILQ_INIT(&d->inbox);
	effects_init(&d->effects);
	journal_init(&d->journal);
	daemon_configure(d, p->stranger && index + (p->strangers ? p->strangers : 1) >= p->daemons);
	for (unsigned i = 0; i < p->nodes; i++)
		link_init(&d->link[i], d, &w->server[i]), subscriber_init(&d->subscriber[i], d, i);
	daemon_start(d);
}

void daemon_release(struct sim_daemon *d)
{
	if (daemon_is_up(d))
		daemon_die(d);
	effects_release(&d->effects);
	journal_release(&d->journal);
}

/* --- effects --------------------------------------------------------------------------------------------------------- */

static struct conn *daemon_conn(struct sim_daemon *d, uint64_t session)
{
	struct conn *c = d->slot[(uint32_t)session % 256];

	return c && c->session == session ? c : NULL;
}

static void effect_send(struct sim_daemon *d, const struct effect *e, int64_t depart)
{
	struct conn *c = daemon_conn(d, e->send.session);

	if (!c && (d->shutting || e->send.session == d->admin))
		return; /* the request came behind one that the shutdown answered, or was no client's */
	if (!c) {
		checker_fail(d->world, INVARIANT_S21, -1, "daemon %u sends to a session that is over", d->index);
		return;
	}
	world_note(d->world, 3, hash_bytes(e->send.bytes.p, e->send.bytes.n),
		   "d%u to c%u.%u: %.*s", d->index, c->client->index, c->number, (int)e->send.bytes.n - 1, e->send.bytes.p);
	track_line(c, e->send.bytes);
	conn_send(c, e->send.bytes.p, e->send.bytes.n, depart);
}

static void effect_call(struct sim_daemon *d, const struct call *call, int64_t depart)
{
	struct call mine = *call;

	mine.node = d->server_of[call->node];
	call = &mine;
	world_note(d->world, (uint64_t)call->kind << 8 | call->node,
		   hash_bytes(call->value.p ? call->value.p : "", call->value.n), "d%u calls n%u %s %.*s %.*s px=%lld %.*s", d->index,
		   call->node, call_word(call->kind), (int)call->name.n, call->name.p, (int)call->value.n, call->value.p,
		   (long long)call->px_ms, (int)call->ticket.n, call->ticket.p ? call->ticket.p : "");
	track_syncs(d->world, name_number(call->name));
	recount_call(d, call);
	link_call(&d->link[call->node], call, depart);
}

static void effect_carry_out(struct sim_daemon *d, const struct effect *e, int64_t depart)
{
	struct conn *c;

	switch (e->kind) {
	case EFFECT_SEND:
		effect_send(d, e, depart);
		break;
	case EFFECT_HANGUP:
		c = daemon_conn(d, e->hangup.session);
		if (c && span_equal(e->hangup.reason, SPAN("killed")))
			broken_hung_up(c);
		if (c)
			conn_hang_up(c, depart);
		break;
	case EFFECT_AWAIT:
		c = daemon_conn(d, e->await.session);
		if (c)
			conn_await(c);
		break;
	case EFFECT_READ:
		c = daemon_conn(d, e->read.session);
		if (c)
			conn_set_reading(c, e->read.on);
		break;
	case EFFECT_CALL:
		effect_call(d, &e->call, depart);
		break;
	case EFFECT_JOURNAL:
		journal_append(d, e->journal.record);
		break;
	case EFFECT_VERIFY: /* no world has users, or an audit log */
	case EFFECT_AUDIT:
		break;
	case EFFECT_LOG:
		world_log(d->world, d->index, e);
		break;
	}
}

/* Sets the timer of the service, which rings a little late, as timers do. */
static void daemon_arm(struct sim_daemon *d)
{
	struct instant when;

	if (service_deadline(d->service, &when))
		world_at(d->world, &d->timer, AT_DAEMON, host_deadline(&d->host, when) + stream_skewed(&d->stream, 1, 300));
	else
		heap_cancel(&d->world->heap, &d->timer);
}

/*
 * The service may refuse an event that comes too late: an answer after NODE_DOWN, for a call that was sent after the connection broke; or a line or a read of a
 * session that was cut off for its silence in the same step.
 */
static bool may_be_refused(struct sim_daemon *d, const struct event *event)
{
	return event->kind == EVENT_ANSWER || event->kind == EVENT_GONE ||
	       ((event->kind == EVENT_LINE || event->kind == EVENT_TOO_LONG || event->kind == EVENT_EOF || event->kind == EVENT_SENT) &&
		!daemon_conn(d, event->session.id));
}

void daemon_step(struct sim_daemon *d, struct event *event)
{
	struct world *w = d->world;
	int64_t depart = d->state == DAEMON_STOPPING ? d->thaw_at : w->now + stream_skewed(&d->stream, 2, 60);

	bool refused;

	event->now = daemon_boot(d);
	event->wall_us = host_wall(&d->host, w->now);
	w->checker.step++;
	journal_pass(d, depart);
	refused = service_step(d->service, event, &d->effects) != 0;
	for (size_t i = 0; i < d->effects.count; i++)
		effect_carry_out(d, &d->effects.item[i], depart);
	for (unsigned i = 0; i < w->plan->nodes; i++)
		if (d->link[i].batch)
			link_flush(&d->link[i]);
	effects_reset(&d->effects);
	if (refused && !may_be_refused(d, event))
		checker_fail(w, INVARIANT_S21, -1, "daemon %u refused event %d", d->index, (int)event->kind);
	track_syncs(w, -1);
	recount_step(d);
	reply_time_check(d);
	daemon_metrics_step(d);
	daemon_drain_step(d);
	daemon_arm(d);
	journal_settle(d);
}

/* --- arrivals -------------------------------------------------------------------------------------------------------- */

static void arrival_handle(enum arrival_kind kind, void *what, uint64_t epoch)
{
	switch (kind) {
	case ARRIVAL_PACKET:
		conn_on_packet(what);
		break;
	case ARRIVAL_REPLY:
		link_on_reply(what);
		break;
	case ARRIVAL_UP:
		link_on_up(what, epoch);
		break;
	case ARRIVAL_BROKEN:
		link_on_broken(what, epoch);
		break;
	case ARRIVAL_MESSAGE:
		message_heard(what);
		break;
	}
}

static bool arrival_is_owned(enum arrival_kind kind)
{
	return kind == ARRIVAL_PACKET || kind == ARRIVAL_MESSAGE;
}

/* The pass in which the daemon was to be stopped is over. */
static void daemon_end_pass(struct sim_daemon *d)
{
	if (d->state == DAEMON_STOPPING)
		d->state = DAEMON_STOPPED;
}

void daemon_arrive(struct sim_daemon *d, enum arrival_kind kind, void *what, uint64_t epoch)
{
	struct arrival *a;

	if (d->state == DAEMON_RUNNING || d->state == DAEMON_STOPPING) {
		arrival_handle(kind, what, epoch);
		daemon_end_pass(d);
		return;
	}
	if (!daemon_is_up(d)) {
		if (arrival_is_owned(kind))
			free(what);
		return;
	}
	a = calloc(1, sizeof(*a));
	if (!a)
		abort();
	*a = (struct arrival){.kind = kind, .what = what, .epoch = epoch};
	TAILQ_INSERT_TAIL(&d->inbox, a, next);
}

void daemon_fired(struct sim_daemon *d)
{
	struct event event = {.kind = EVENT_TIME};

	if (d->state == DAEMON_STOPPED)
		return; /* daemon_thaw steps the service */
	daemon_step(d, &event);
	daemon_end_pass(d);
}

/* --- starting and ending ----------------------------------------------------------------------------------------------- */

void daemon_start(struct sim_daemon *d)
{
	struct world *w = d->world;
	struct stream seed;

	d->run++;
	d->started_at = w->now;
	d->started_run_us = host_run_us(&d->host, w->now);
	d->first_lease_us = d->conf.lease_us;
	stream_init(&seed, (uint64_t)w->plan->seed, DRAW_SERVICE, d->index * 1000 + d->run);
	d->conf.seed[0] = stream_next(&seed);
	d->conf.seed[1] = stream_next(&seed);
	d->conf.trust_first_start = w->plan->trust && (d->run == 1 || d->newcomer);
	daemon_lend_memory(d);
	d->service = service_new(&d->conf);
	d->state = DAEMON_RUNNING;
	d->drains = d->drained = false;
	memset(d->slot, 0, sizeof(d->slot));
	recount_run_begins(d);
	storm_run_begins(d);
	world_note(w, 5, d->run, "d%u starts", d->index);
	journal_restore(d);
	for (unsigned i = 0; i < d->conf.nodes; i++)
		link_begin(&d->link[d->server_of[i]]);
}

static void inbox_drop(struct sim_daemon *d)
{
	struct arrival *a;

	while ((a = TAILQ_FIRST(&d->inbox))) {
		TAILQ_REMOVE(&d->inbox, a, next);
		if (arrival_is_owned(a->kind))
			free(a->what);
		free(a);
	}
}

void daemon_die(struct sim_daemon *d)
{
	struct world *w = d->world;
	struct conn *c;

	world_note(w, 6, d->run, "d%u dies", d->index);
	d->died_at[d->run % RUNS_MAX] = w->now;
	journal_died(d);
	d->state = DAEMON_DOWN;
	heap_cancel(&w->heap, &d->timer);
	heap_cancel(&w->heap, &d->thaw);
	heap_cancel(&w->heap, &d->drain);
	inbox_drop(d);
	for (unsigned i = 0; i < w->plan->nodes; i++)
		link_end(&d->link[i]);
	TAILQ_FOREACH(c, &w->conns, in_world)
	{
		if (c->daemon == d && c->run == d->run)
			conn_daemon_died(c);
	}
	for (int64_t name = 0; name < w->plan->names; name++) {
		w->checker.lease[d->index][name].held = false;
		checker_excuse(w, name, w->now + (w->plan->max_lease_us + w->plan->delay_us) * 51 / 50);
	}
	service_free(d->service);
	d->service = NULL;
	daemon_take_memory(d);
	daemon_metrics_died(d);
}

void daemon_shut(struct sim_daemon *d)
{
	struct event event = {.kind = EVENT_STOP};

	if (d->state != DAEMON_RUNNING)
		return;
	d->shutting = true;
	daemon_step(d, &event);
	d->shutting = false;
	daemon_die(d);
}

void daemon_stop(struct sim_daemon *d, int64_t for_us, bool sending)
{
	int64_t left = d->world->plan->length_us - d->world->now;

	if (d->state != DAEMON_RUNNING)
		return;
	/* The healing lets the daemon go on, and what it was about to send leaves then. */
	if (sending && left > 0 && for_us > left)
		for_us = left;
	world_note(d->world, 7, (uint64_t)for_us, "d%u is stopped for %lld us", d->index, (long long)for_us);
	d->state = sending ? DAEMON_STOPPING : DAEMON_STOPPED;
	d->stopped_us = for_us > d->stopped_us ? for_us : d->stopped_us;
	d->thaw_at = d->world->now + for_us;
	world_at(d->world, &d->thaw, AT_THAW, d->thaw_at);
	reply_time_stopped(d);
}

void daemon_thaw(struct sim_daemon *d)
{
	struct event event = {.kind = EVENT_TIME};
	struct arrival *a;

	if (!daemon_is_up(d))
		return;
	world_note(d->world, 8, 0, "d%u goes on", d->index);
	if (d->carries)
		daemon_carry(d);
	d->state = DAEMON_RUNNING;
	tickets_thawed(d);
	notice_awake(d);
	/* The event loop may serve timers or sockets first: the service must not depend on that. */
	if (stream_chance(&d->stream, 50))
		daemon_step(d, &event);
	while ((a = TAILQ_FIRST(&d->inbox))) {
		TAILQ_REMOVE(&d->inbox, a, next);
		arrival_handle(a->kind, a->what, a->epoch);
		free(a);
	}
	if (d->journal.mended)
		journal_settle(d);
	daemon_arm(d);
}

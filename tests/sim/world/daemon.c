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
	if (p->memory)
		d->store = store_new(d);
	daemon_rules_begin(d);
	daemon_start(d);
}

void daemon_release(struct sim_daemon *d)
{
	if (daemon_is_up(d))
		daemon_die(d);
	effects_release(&d->effects);
	journal_release(&d->journal);
	if (d->store)
		store_free(d->store);
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

/* Clients are not read before a service that goes on has all that waited. */
static bool may_handle(const struct sim_daemon *d, enum arrival_kind kind)
{
	return !daemon_is_killed(d) && (kind != ARRIVAL_PACKET || !service_returns(d->service));
}

static struct arrival *inbox_first(struct sim_daemon *d)
{
	struct arrival *a;

	TAILQ_FOREACH(a, &d->inbox, next)
		if (may_handle(d, a->kind))
			return a;
	return NULL;
}

static void inbox_read(struct sim_daemon *d)
{
	struct arrival *a;

	while ((a = inbox_first(d))) {
		TAILQ_REMOVE(&d->inbox, a, next);
		arrival_handle(a->kind, a->what, a->epoch);
		free(a);
	}
}

void daemon_arrive(struct sim_daemon *d, enum arrival_kind kind, void *what, uint64_t epoch)
{
	bool reads = daemon_is_up(d) && d->state != DAEMON_STOPPED;
	struct arrival *a;

	if (reads && TAILQ_EMPTY(&d->inbox) && may_handle(d, kind)) {
		arrival_handle(kind, what, epoch);
		inbox_read(d);
		daemon_end_pass(d);
		return;
	}
	if (!daemon_is_up(d) || daemon_is_killed(d)) {
		if (arrival_is_owned(kind))
			free(what);
		return;
	}
	a = calloc(1, sizeof(*a));
	if (!a)
		abort();
	*a = (struct arrival){.kind = kind, .what = what, .epoch = epoch};
	TAILQ_INSERT_TAIL(&d->inbox, a, next);
	if (!reads)
		return;
	inbox_read(d); /* what came before comes first */
	daemon_end_pass(d);
}

void daemon_fired(struct sim_daemon *d)
{
	struct event event = {.kind = EVENT_TIME};

	if (d->state == DAEMON_STOPPED)
		return; /* daemon_thaw steps the service */
	daemon_step(d, &event);
	inbox_read(d);
	daemon_end_pass(d);
}

/* --- starting and ending ----------------------------------------------------------------------------------------------- */

void daemon_start(struct sim_daemon *d)
{
	struct world *w = d->world;
	struct stream seed;

	if (d->store && d->store->off)
		return;
	d->run++;
	d->started_at = w->now;
	d->restored_run_us = host_run_us(&d->host, w->now);
	d->first_lease_us = d->conf.lease_us;
	stream_init(&seed, (uint64_t)w->plan->seed, DRAW_SERVICE, d->index * 1000 + d->run);
	d->conf.seed[0] = stream_next(&seed);
	d->conf.seed[1] = stream_next(&seed);
	d->conf.trust_first_start = w->plan->trust && (d->run == 1 || d->newcomer);
	if (d->store)
		store_start(d->store);
	d->service = service_new(&d->conf);
	d->state = DAEMON_RUNNING;
	d->drains = d->drained = false;
	memset(d->slot, 0, sizeof(d->slot));
	recount_run_begins(d);
	storm_run_begins(d);
	world_note(w, 5, d->run, "d%u starts", d->index);
	journal_restore(d);
	recount_run_is_named(d);
	if (d->store)
		store_up(d->store);
	for (unsigned i = 0; i < d->conf.nodes && !d->store; i++)
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
	d->pass_depart = 0;
	if (d->store)
		store_end(d->store);
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
	d->carries = false;
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
	if (d->store)
		store_finish(d->store);
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
	inbox_read(d);
	if (daemon_is_killed(d))
		return;
	if (d->journal.mended)
		journal_settle(d);
	daemon_arm(d);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A restart: a service writes all that it has as records, and another one goes on from them, as in the daemon. Connections of clients stay, links end. */
#include "tests/sim/world/world.h"

#include <stdlib.h>

/* Of what is on its way to the process before, that of clients alone goes on. */
static void inbox_keep_lines(struct sim_daemon *d)
{
	struct arrival *a, *next;

	for (a = TAILQ_FIRST(&d->inbox); a; a = next) {
		next = TAILQ_NEXT(a, next);
		if (a->kind == ARRIVAL_PACKET)
			continue;
		TAILQ_REMOVE(&d->inbox, a, next);
		if (a->kind == ARRIVAL_MESSAGE)
			free(a->what);
		free(a);
	}
}

static void records_take(struct sim_daemon *d, const struct effects *records)
{
	struct event event = {.kind = EVENT_RESTORE};

	for (size_t i = 0; i < records->count; i++) {
		event.journal.record = records->item[i].journal.record;
		daemon_step(d, &event);
	}
	event.kind = EVENT_RESTORED;
	daemon_step(d, &event);
}

static void process_ends(struct sim_daemon *d)
{
	inbox_keep_lines(d);
	if (d->store) {
		store_finish(d->store);
		store_end(d->store);
	}
	for (unsigned i = 0; i < d->world->plan->nodes; i++)
		link_end(&d->link[i]);
	service_free(d->service);
}

static void process_begins(struct sim_daemon *d, const struct effects *records)
{
	d->conf.seed[0]++;
	d->conf.trust_first_start = false;
	if (d->store)
		store_start(d->store);
	d->service = service_new(&d->conf);
	d->restored_run_us = host_run_us(&d->host, d->world->now);
	d->state = DAEMON_RUNNING;
	recount_goes_on(d);
	d->journal.failed = d->journal.mended = d->journal.rewriting = false;
	records_take(d, records);
	recount_run_is_named(d);
	journal_go_on(d);
	if (d->store)
		store_up(d->store);
	for (unsigned i = 0; i < d->conf.nodes && !d->store; i++)
		link_begin(&d->link[d->server_of[i]]);
}

void daemon_carry(struct sim_daemon *d)
{
	struct effects records;

	d->carries = false;
	if (service_is_draining(d->service) || service_returns(d->service))
		return;
	effects_init(&records);
	service_hand_over(d->service, &records);
	process_ends(d);
	process_begins(d, &records);
	reply_time_restarted(d);
	effects_release(&records);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The heap of events, and who handles each of them. */
#include "tests/sim/world/world.h"

#include <stdarg.h>
#include <stdlib.h>

#define EVENTS_MAX 10000000 /* more than any world needs: such a world hangs (S21) */

uint64_t hash_bytes(const void *p, size_t n)
{
	const unsigned char *at = p;
	uint64_t h = n;

	for (; n >= 8; at += 8, n -= 8) {
		uint64_t word;

		memcpy(&word, at, 8);
		h = mix(h, word);
	}
	for (; n > 0; at++, n--)
		h = mix(h, *at);
	return h;
}

bool world_hash(struct world *w, uint64_t a, uint64_t b)
{
	w->hash = mix(w->hash, (uint64_t)w->now);
	w->hash = mix(mix(w->hash, a), b);
	return w->trace != NULL;
}

void world_tell(struct world *w, const char *format, ...)
{
	va_list list;

	fprintf(w->trace, "%10lld ", (long long)w->now);
	va_start(list, format);
	vfprintf(w->trace, format, list);
	va_end(list);
	fputc('\n', w->trace);
}

/* The state changes of a name are logged only where a trace is wanted: they are no part of the hash, which must not depend on that. */
void world_log(struct world *w, unsigned daemon, const struct effect *e)
{
	int n = (int)e->log.text.n;

	if (strcmp(e->log.event, "contender") != 0 && strcmp(e->log.event, "lease") != 0)
		world_note(w, 4, (uint64_t)e->log.level, "d%u log %s %.*s", daemon, e->log.event, n, e->log.text.p);
	else if (w->trace)
		fprintf(w->trace, "%10lld d%u %s %.*s\n", (long long)w->now, daemon, e->log.event, n, e->log.text.p);
}

void world_at(struct world *w, struct timer *t, enum sim_timer kind, int64_t at)
{
	t->kind = kind;
	heap_set(&w->heap, t, (struct instant){at < w->now ? w->now : at});
}

static void client_timer_fired(enum sim_timer kind, struct timer *t)
{
	if (kind == AT_CLIENT)
		client_fired(container_of(t, struct sim_client, timer));
	else if (kind == AT_SIDE)
		side_requests_fired(container_of(t, struct sim_client, side_timer));
	else if (kind == AT_READER)
		reader_fired(container_of(t, struct sim_client, reader_timer));
	else if (kind == AT_NESTER)
		nester_fired(container_of(t, struct sim_client, nest.timer));
	else if (kind == AT_RATER)
		rater_fired(container_of(t, struct sim_client, rate_timer));
	else if (kind == AT_PERMITTER)
		permitter_fired(container_of(t, struct sim_client, permits.timer));
	else if (kind == AT_WORKER)
		worker_fired(container_of(t, struct sim_client, work.timer));
	else if (kind == AT_REPEATER)
		repeater_fired(container_of(t, struct sim_client, repeats.timer));
	else
		client_thaw(container_of(t, struct sim_client, thaw));
}

static void fault_timer_fired(struct world *w, enum sim_timer kind, struct timer *t)
{
	if (kind == AT_FAULT) {
		fault_begin(w, container_of(t, struct active_fault, timer));
	} else if (kind == AT_FAULT_END) {
		fault_ends(w, container_of(t, struct active_fault, end));
	} else {
		struct active_fault *f = container_of(t, struct active_fault, snapshot);

		sim_node_snapshot(w->server[w->plan->fault[f->index].a % w->plan->nodes].node);
	}
}

static void daemon_timer_fired(enum sim_timer kind, struct timer *t)
{
	if (kind == AT_DAEMON)
		daemon_fired(container_of(t, struct sim_daemon, timer));
	else if (kind == AT_THAW)
		daemon_thaw(container_of(t, struct sim_daemon, thaw));
	else if (kind == AT_DRAIN)
		daemon_drain_fired(container_of(t, struct sim_daemon, drain));
	else if (kind == AT_RULES)
		daemon_rules_fired(container_of(t, struct sim_daemon, rules.timer));
	else if (kind == AT_KILLED)
		store_ended_fired(t);
	else if (kind == AT_LINK)
		link_fired(container_of(t, struct sim_link, timer));
	else
		link_watch_fired(container_of(t, struct sim_link, watch));
}

static void world_fire(struct world *w, struct timer *t)
{
	enum sim_timer kind = (enum sim_timer)t->kind;

	switch (kind) {
	case AT_FAULT:
	case AT_FAULT_END:
	case AT_SNAPSHOT:
		fault_timer_fired(w, kind, t);
		break;
	case AT_TASK:
		task_fired(container_of(t, struct task, timer));
		break;
	case AT_PACKET:
		packet_fired(container_of(t, struct packet, timer));
		break;
	case AT_FLIGHT:
		flight_fired(container_of(t, struct flight, timer));
		break;
	case AT_MESSAGE:
		message_fired(container_of(t, struct message, timer));
		break;
	case AT_DAEMON:
	case AT_THAW:
	case AT_DRAIN:
	case AT_RULES:
	case AT_KILLED:
	case AT_LINK:
	case AT_WATCH:
		daemon_timer_fired(kind, t);
		break;
	case AT_CLIENT:
	case AT_CLIENT_THAW:
	case AT_SIDE:
	case AT_READER:
	case AT_NESTER:
	case AT_RATER:
	case AT_PERMITTER:
	case AT_WORKER:
	case AT_REPEATER:
		client_timer_fired(kind, t);
		break;
	case AT_ACCESS:
		access_fired(w, t);
		break;
	case AT_IDLE:
		server_resume(container_of(t, struct server, idle));
		break;
	case AT_STAGE:
		stage_fired(w);
		break;
	}
}

static void world_schedule(struct world *w)
{
	const struct plan *p = w->plan;

	for (unsigned i = 0; i < p->faults; i++) {
		w->fault[i].index = i;
		world_at(w, &w->fault[i].timer, AT_FAULT, p->fault[i].at_us);
		if (p->fault[i].kind == FAULT_NODE_OLD || p->fault[i].kind == FAULT_NODE_SAME_REPLID || p->fault[i].kind == FAULT_NODE_ROLLBACK)
			world_at(w, &w->fault[i].snapshot, AT_SNAPSHOT, p->fault[i].at_us - p->fault[i].x);
	}
	for (unsigned i = 0; i < p->jobs; i++) {
		struct task *r = task_add(w, &p->job[i]);

		world_at(w, &r->timer, AT_TASK, p->job[i].at_us);
	}
	world_at(w, &w->stage_timer, AT_STAGE, p->warm_us);
}

static void world_init(struct world *w, const struct plan *plan, FILE *trace)
{
	memset(w, 0, sizeof(*w));
	w->plan = plan;
	w->class = plan_class(plan);
	w->set_back_us = plan_set_back_us(plan);
	w->strange = plan->stranger != STRANGER_NONE;
	for (unsigned i = 0; i < plan->faults; i++)
		w->flaps |= fault_is_late(plan, &plan->fault[i]);
	w->trace = trace;
	w->hash = (uint64_t)plan->seed;
	heap_init(&w->heap);
	TAILQ_INIT(&w->conns);
	TAILQ_INIT(&w->requests);
	TAILQ_INIT(&w->holds);
	TAILQ_INIT(&w->spare);
	stream_init(&w->finale, (uint64_t)plan->seed, DRAW_FINALE, 0);
	checker_init(w);
	for (unsigned i = 0; i < plan->nodes; i++)
		server_init(&w->server[i], w, i);
	for (unsigned i = 0; i < plan->daemons; i++)
		daemon_init(&w->daemon[i], w, i);
	for (unsigned i = 0; i < plan->clients; i++)
		client_init(&w->client[i], w, i);
	world_schedule(w);
}

void world_run(struct world *w, const struct plan *plan, FILE *trace, struct step_watch *watch)
{
	struct timer *t;

	world_init(w, plan, trace);
	w->watch = watch;
	while (!w->failed && w->stage != STAGE_OVER && (t = heap_first(&w->heap))) {
		w->now = t->at.us;
		heap_cancel(&w->heap, t);
		world_fire(w, t);
		check_progress(w);
		if (++w->tally.events > EVENTS_MAX)
			checker_fail(w, INVARIANT_S21, -1, "it does not end: %d events", EVENTS_MAX);
	}
}

/* Frees what only the heap holds. */
static void world_forget_flying(struct world *w)
{
	struct timer *t;

	while ((t = heap_first(&w->heap))) {
		heap_cancel(&w->heap, t);
		if (t->kind == AT_PACKET)
			free(container_of(t, struct packet, timer));
		else if (t->kind == AT_FLIGHT)
			flight_drop(container_of(t, struct flight, timer));
		else if (t->kind == AT_MESSAGE)
			free(container_of(t, struct message, timer));
		else if (t->kind == AT_ACCESS)
			access_drop(t);
	}
}

void world_release(struct world *w)
{
	struct request_sim *q;
	struct hold *h;

	world_forget_flying(w);
	for (unsigned i = 0; i < w->plan->clients; i++)
		client_release(&w->client[i]);
	for (unsigned i = 0; i < w->plan->daemons; i++)
		daemon_release(&w->daemon[i]);
	world_forget_flying(w); /* what the end of the daemons has set off */
	for (unsigned i = 0; i < w->plan->nodes; i++)
		server_release(&w->server[i]);
	while ((q = TAILQ_FIRST(&w->requests))) {
		TAILQ_REMOVE(&w->requests, q, in_world);
		free(q);
	}
	while ((h = TAILQ_FIRST(&w->holds))) {
		TAILQ_REMOVE(&w->holds, h, in_world);
		free(h);
	}
	flights_release(&w->spare);
	conns_release(w);
	checker_release(w);
	heap_release(&w->heap);
}

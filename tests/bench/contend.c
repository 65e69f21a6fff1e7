/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Votes that split: K daemons ask N stores for one free name at the same moment. How long until the first grant, and how many commands did the stores
 * get by then? One way takes 100 us and an exponentially distributed 50 us more; what a daemon sent a store arrives in order.
 *
 *   build/contend [N K [ROUNDS]]     without arguments: the table
 */
#include "daemon/base/map.h"
#include "daemon/base/mem.h"
#include "daemon/base/rng.h"
#include "daemon/core/service/service.h"
#include "daemon/store/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>

#define WALL_US     INT64_C(1700000000000000)
#define DAEMONS_MAX 100
#define WAY_US      100
#define NOISE_US    50

/* A call on its way to a store, or its answer on the way back. */
struct parcel {
	struct timer timer;
	unsigned daemon;
	bool back;
	struct call call;
	struct answer answer;
	struct probe probe;
	char name[64], value[VALUE_MAX], new_value[VALUE_MAX], marker[MARKER_MAX], new_marker[MARKER_MAX];
	char found[MARKER_MAX], seen[MARKER_MAX];
};

static struct {
	unsigned nodes, daemons;
	struct instant now;
	struct heap flights;
	struct rng rng;
	struct core_conf conf[DAEMONS_MAX];
	struct service *service[DAEMONS_MAX];
	struct effects effects[DAEMONS_MAX];
	struct instant clear[DAEMONS_MAX][NODES_MAX][2]; /* when the last parcel in that direction arrives */
	struct memory *store[NODES_MAX];
	unsigned commands, granted;
	unsigned by;
} w;

static int64_t way_us(void)
{
	double u = (double)(rng_below(&w.rng, 1000000) + 1) / 1000001.0;

	return WAY_US + (int64_t)(-NOISE_US * log(u));
}

static void fly(struct parcel *p)
{
	struct instant *clear = &w.clear[p->daemon][p->call.node][p->back];

	*clear = instant_max(instant_add(w.now, way_us()), instant_add(*clear, 1));
	heap_set(&w.flights, &p->timer, *clear);
}

static struct span keep(struct span from, char *to)
{
	if (from.n)
		memcpy(to, from.p, from.n);
	return (struct span){to, from.n};
}

static void call_leaves(unsigned d, const struct call *call)
{
	struct parcel *p = mem_alloc(sizeof(*p));

	p->daemon = d;
	p->call = *call;
	p->call.name = keep(call->name, p->name);
	p->call.value = keep(call->value, p->value);
	p->call.new_value = keep(call->new_value, p->new_value);
	p->call.marker = keep(call->marker, p->marker);
	p->call.new_marker = keep(call->new_marker, p->new_marker);
	p->call.ticket = SPAN(""); /* these stores keep no queue */
	fly(p);
}

static void step(unsigned d, struct event *event)
{
	struct effects *out = &w.effects[d];

	event->now = w.now;
	event->wall_us = WALL_US + w.now.us;
	if (service_step(w.service[d], event, out))
		abort();
	for (size_t i = 0; i < out->count; i++) {
		const struct effect *e = &out->item[i];

		if (e->kind == EFFECT_CALL)
			call_leaves(d, &e->call);
		if (e->kind != EFFECT_SEND)
			continue;
		if (span_starts(e->send.bytes, SPAN("@t OK name="))) {
			w.granted++;
			w.by = d;
		}
	}
	effects_reset(out);
}

static void call_arrives(struct parcel *p)
{
	memory_call(w.store[p->call.node], &p->call, w.now, &p->answer);
	w.commands += p->call.kind != CALL_PROBE && p->call.kind != CALL_MARK;
	p->answer.found = keep(p->answer.found, p->found);
	if (p->answer.probe) {
		p->probe = *p->answer.probe;
		p->probe.marker = keep(p->probe.marker, p->seen);
		p->answer.probe = &p->probe;
	}
	p->back = true;
	fly(p);
}

static void parcel_arrives(struct parcel *p)
{
	struct event event = {.kind = EVENT_ANSWER, .answer = p->answer};
	unsigned d = p->daemon;

	if (!p->back) {
		call_arrives(p);
		return;
	}
	step(d, &event);
	free(p);
}

/* Carries out the event that is due first, at its time. False: none is due by `until`. */
static bool world_turns(struct instant until)
{
	struct timer *first = heap_first(&w.flights);
	struct instant when = first ? first->at : INSTANT_NEVER, due;
	unsigned d = w.daemons;

	for (unsigned i = 0; i < w.daemons; i++)
		if (service_deadline(w.service[i], &due) && instant_before(due, when)) {
			when = due;
			d = i;
		}
	if (instant_before(until, when))
		return false;
	w.now = instant_max(w.now, when);
	if (d < w.daemons) {
		struct event event = {.kind = EVENT_TIME};

		step(d, &event);
	} else {
		heap_cancel(&w.flights, first);
		parcel_arrives(container_of(first, struct parcel, timer));
	}
	return true;
}

static void passes(int64_t us)
{
	struct instant until = instant_add(w.now, us);

	while (world_turns(until))
		;
	w.now = until;
}

static void says(unsigned d, const char *text)
{
	char line[128];
	struct event event = {.kind = EVENT_LINE, .session = {.id = 1, .line = line, .n = strlen(text)}};

	memcpy(line, text, strlen(text) + 1);
	step(d, &event);
}

static void daemon_starts(unsigned d)
{
	static const struct peer peer = {.is_unix = true, .is_local = true, .pid = 1, .address = "unix"};
	struct event up = {.kind = EVENT_NODE_UP}, open = {.kind = EVENT_OPEN, .session = {.id = 1, .peer = &peer}};

	w.conf[d] = (struct core_conf){
		.nodes = w.nodes, .label = {"a", "b", "c", "d", "e", "f", "g", "h", "i"}, .store = "redis", .shared = true, .set = "set",
		.generation = 1, .host = "h", .seed = {d, rng_next(&w.rng)}, .trust_first_start = true, .timeout_us = 50 * MSEC,
		.lease_us = 10 * SEC, .min_lease_us = 100 * MSEC, .max_lease_us = 30 * SEC, .skew_us = 60 * SEC,
		.limits = {.locks = 1024, .waiting = 256, .name = 512, .mistakes = 100, .line = 8192},
	};
	effects_init(&w.effects[d]);
	w.service[d] = service_new(&w.conf[d]);
	for (up.node.index = 0; up.node.index < w.nodes; up.node.index++)
		step(d, &up);
	step(d, &open);
}

static void world_begins(unsigned nodes, unsigned daemons)
{
	static char run_id[NODES_MAX][16];

	memset(&w, 0, sizeof(w));
	w.nodes = nodes;
	w.daemons = 0;
	w.now.us = SEC;
	heap_init(&w.flights);
	rng_init(&w.rng, (uint64_t[2]){nodes, daemons});
	for (unsigned i = 0; i < nodes; i++) {
		snprintf(run_id[i], sizeof(run_id[i]), "run-%u", i);
		w.store[i] = memory_new(&(struct memory_conf){.seed = {i, 1}, .epoch_us = WALL_US, .skew_us = 60 * SEC, .run_id = run_id[i]});
	}
	for (unsigned d = 0; d < daemons; d++, w.daemons++) {
		daemon_starts(d);
		if (d == 0)
			w.daemons = 1, passes(5 * SEC), w.daemons = 0;
	}
	passes(5 * SEC);
}

static void world_ends(void)
{
	struct timer *t;

	while ((t = heap_first(&w.flights))) {
		heap_cancel(&w.flights, t);
		free(container_of(t, struct parcel, timer));
	}
	heap_release(&w.flights);
	for (unsigned d = 0; d < w.daemons; d++) {
		service_free(w.service[d]);
		effects_release(&w.effects[d]);
	}
	for (unsigned i = 0; i < w.nodes; i++)
		memory_free(w.store[i]);
}

static int order(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* All daemons ask at once. Returns the time until the first grant. */
static int64_t round_us(unsigned number)
{
	struct instant begun = w.now;
	char text[64];

	w.commands = w.granted = 0;
	snprintf(text, sizeof(text), "@t LOCK name-%u wait=5s", number);
	for (unsigned d = 0; d < w.daemons; d++)
		says(d, text);
	while (!w.granted && world_turns(INSTANT_NEVER))
		;
	return instant_diff(w.now, begun);
}

static void round_is_cleared(unsigned number)
{
	char text[64];

	snprintf(text, sizeof(text), "UNLOCK name-%u", number);
	for (unsigned d = 0; d < w.daemons; d++)
		says(d, "CANCEL @t");
	says(w.by, text);
	passes(2 * SEC);
}

static void measure(unsigned nodes, unsigned daemons, unsigned rounds)
{
	int64_t *us = mem_alloc(rounds * sizeof(*us)), commands = 0;

	world_begins(nodes, daemons);
	for (unsigned i = 0; i < rounds; i++) {
		us[i] = round_us(i);
		commands += w.commands;
		round_is_cleared(i);
	}
	world_ends();
	qsort(us, rounds, sizeof(*us), order);
	printf("N=%u k=%-3u  first grant: median %.2f ms, p99 %.2f ms; commands until then: %.0f\n", nodes, daemons,
	       (double)us[rounds / 2] / 1000, (double)us[rounds * 99 / 100] / 1000, (double)commands / rounds);
	free(us);
}

int main(int argc, char **argv)
{
	static const unsigned table[][2] = {{3, 2}, {3, 5}, {3, 20}, {3, 100}, {5, 2}, {5, 5}, {5, 20}, {5, 100}};

	if (argc >= 3) {
		measure((unsigned)atoi(argv[1]), (unsigned)atoi(argv[2]), argc > 3 ? (unsigned)atoi(argv[3]) : 200);
		return 0;
	}
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		measure(table[i][0], table[i][1], 200);
	return 0;
}

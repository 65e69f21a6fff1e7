/* SPDX-License-Identifier: BSD-2-Clause */
/* The stage: daemons, one step of one, and time. The stores are in stage_stores.c, the sessions in stage_audience.c. */
#include "tests/unit/stage.h"

#include "daemon/base/mem.h"
#include "tests/unit/stage_part.h"

#include <stdio.h>
#include <stdlib.h>

struct stage stage;

static const struct core_conf stage_conf = {
	.label = {"a", "b", "c", "d", "e", "f", "g", "h", "i"},
	.store = "redis",
	.shared = true,
	.set = "set",
	.generation = 1,
	.trust_first_start = true,
	.timeout_us = 50 * MSEC,
	.lease_us = 10 * SEC,
	.min_lease_us = 100 * MSEC,
	.max_lease_us = 30 * SEC,
	.max_grace_us = 100 * SEC,
	.skew_us = 30 * SEC,
	.limits = {.locks = 1024, .waiting = 256, .name = 512, .mistakes = 100, .line = 8192},
};

void stage_open(unsigned nodes)
{
	stage = (struct stage){.conf = stage_conf, .now = {100 * SEC}};
	stage.conf.nodes = nodes;
	for (unsigned i = 0; i < nodes; i++) {
		TAILQ_INIT(&stage.node[i].astray);
		node_is_born(i);
		stage.node[i].up = true;
	}
	audience_opens();
	promises_open();
	journals_open();
}

/* --- one step --- */

/* The call and its bytes, which the daemon only lends. */
static void parcel_fill(struct parcel *p, const struct call *c)
{
	struct {
		struct span *span;
		char *to;
		size_t size;
	} const part[] = {
		{&p->call.name, p->name, sizeof(p->name)},
		{&p->call.value, p->value, sizeof(p->value)},
		{&p->call.new_value, p->new_value, sizeof(p->new_value)},
		{&p->call.marker, p->marker, sizeof(p->marker)},
		{&p->call.new_marker, p->new_marker, sizeof(p->new_marker)},
		{&p->call.ticket, p->ticket, sizeof(p->ticket)},
		{&p->call.prior, p->prior, sizeof(p->prior)},
	};

	p->call = *c;
	for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
		ck_assert_uint_le(part[i].span->n, part[i].size);
		if (part[i].span->n)
			memcpy(part[i].to, part[i].span->p, part[i].span->n);
		part[i].span->p = part[i].to;
	}
}

static void effect_call(unsigned d, const struct call *c)
{
	struct stage_node *n = &stage.node[c->node];
	struct parcel *p = mem_alloc(sizeof(*p));

	ck_assert_uint_lt(c->node, stage.daemon[d].conf.nodes);
	promise_call(c);
	parcel_fill(p, c);
	parcel_fill(&n->last[c->kind], c);
	n->count[c->kind]++;
	TAILQ_INSERT_TAIL(&stage.daemon[d].queue[c->node], p, link);
}

static void effect_carry_out(unsigned d, const struct effect *e)
{
	switch (e->kind) {
	case EFFECT_SEND:
		audience_hears(e->send.session, e->send.bytes);
		break;
	case EFFECT_HANGUP:
		audience_is_hung_up(e->hangup.session, e->hangup.reason);
		break;
	case EFFECT_AWAIT:
		audience_is_awaited(e->await.session);
		break;
	case EFFECT_READ:
		audience_is_read(e->read.session, e->read.on);
		break;
	case EFFECT_CALL:
		effect_call(d, &e->call);
		break;
	case EFFECT_JOURNAL:
		journal_keeps(d, e->journal.record);
		break;
	case EFFECT_LOG:
		audience_log(e->log.event, e->log.text);
		break;
	}
}

int daemon_step(unsigned d, struct event *event)
{
	struct stage_daemon *daemon = &stage.daemon[d];
	int r;

	event->now = stage.now;
	event->wall_us = STAGE_WALL_US + stage.now.us;
	r = service_step(daemon->service, event, &daemon->effects);
	for (size_t i = 0; i < daemon->effects.count; i++)
		effect_carry_out(d, &daemon->effects.item[i]);
	effects_reset(&daemon->effects);
	daemon->ending |= event->kind == EVENT_STOP;
	return r;
}

void daemon_node_event(unsigned d, unsigned node, enum event_kind kind)
{
	struct event event = {.kind = kind, .node = {.index = node, .reason = SPAN("connection lost")}};

	if (stage.daemon[d].service)
		ck_assert_int_eq(daemon_step(d, &event), 0);
}

/* --- time --- */

void wakes(unsigned d)
{
	struct event event = {.kind = EVENT_TIME};

	ck_assert_int_eq(daemon_step(d, &event), 0);
	runs();
}

void is_woken(unsigned d, unsigned node, const char *name)
{
	struct event event = {.kind = EVENT_WOKEN, .message = {.node = node, .name = span_of(name)}};

	ck_assert_int_eq(daemon_step(d, &event), 0);
	runs();
}

static bool daemon_due(unsigned *ret_daemon, struct instant *ret_when)
{
	bool any = false;

	for (unsigned d = 0; d < STAGE_DAEMONS; d++) {
		struct instant when;

		if (!stage.daemon[d].service || stage.daemon[d].stopped || !service_deadline(stage.daemon[d].service, &when))
			continue;
		if (any && !instant_before(when, *ret_when))
			continue;
		*ret_when = when;
		*ret_daemon = d;
		any = true;
	}
	return any;
}

void passes(int64_t us)
{
	struct instant until = instant_add(stage.now, us), due;
	unsigned d, turns = 0;

	while (daemon_due(&d, &due) && !instant_before(until, due)) {
		ck_assert_msg(turns++ < 1000000, "timers without end");
		stage.now = instant_max(stage.now, due);
		wakes(d);
	}
	stage.now = until;
}

void jumps(int64_t us)
{
	stage.now = instant_add(stage.now, us);
}

/* --- daemons --- */

void daemon_is_made(unsigned d)
{
	struct stage_daemon *daemon = &stage.daemon[d];

	snprintf(daemon->host, sizeof(daemon->host), "h%u", d);
	daemon->conf = stage.conf;
	daemon->conf.host = daemon->host;
	daemon->conf.seed[0] = 17 + d;
	daemon->conf.seed[1] = (uint64_t)stage.now.us;
	effects_init(&daemon->effects);
	for (unsigned i = 0; i < NODES_MAX; i++)
		TAILQ_INIT(&daemon->queue[i]);
	daemon->service = service_new(&daemon->conf);
}

void daemon_connects(unsigned d)
{
	for (unsigned i = 0; i < stage.daemon[d].conf.nodes; i++)
		if (stage.node[i].up)
			daemon_node_event(d, i, EVENT_NODE_UP);
	runs();
}

void daemon_starts(unsigned d)
{
	daemon_is_made(d);
	daemon_connects(d);
}

void daemon_ends(unsigned d)
{
	struct stage_daemon *daemon = &stage.daemon[d];

	service_free(daemon->service);
	daemon->service = NULL;
	daemon->ending = false;
	runs();
	for (unsigned i = 0; i < daemon->conf.nodes; i++) {
		struct parcel *p;

		while ((p = TAILQ_FIRST(&daemon->queue[i]))) {
			TAILQ_REMOVE(&daemon->queue[i], p, link);
			free(p);
		}
	}
	daemon->conf.nodes = 0;
	effects_release(&daemon->effects);
	audience_loses_daemon(d);
}

static bool daemon_is_ready(unsigned d)
{
	return figure(d, METRIC_NODES_JOINED) > stage.conf.nodes / 2;
}

void stage_begin(unsigned nodes)
{
	stage_open(nodes);
	daemon_starts(0);
	for (unsigned turn = 0; turn < 100 && !daemon_is_ready(0); turn++)
		passes(SEC);
	ck_assert_msg(daemon_is_ready(0), "no quorum of stores has joined");
}

static void daemon_is_left_clean(unsigned d)
{
	static const enum metric empty[] = {METRIC_LOCKS_HELD, METRIC_WAITERS, METRIC_DEBTS, METRIC_SESSIONS_DETACHED};

	audience_leaves(d);
	passes(200 * SEC);
	for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++)
		ck_assert_msg(figure(d, empty[i]) == 0, "%s is %lld when all have gone", metric_table[empty[i]].name,
			      (long long)figure(d, empty[i]));
	ck_assert_msg(audience_asks(d, "names") == 0, "names are left when all have gone");
	ck_assert_int_le(audience_asks(d, "timers"), stage.daemon[d].conf.nodes);
	ck_assert_int_eq(figure(d, METRIC_SESSIONS), 0);
	daemon_ends(d);
}

void stage_close(void)
{
	for (unsigned i = 0; i < stage.conf.nodes; i++) {
		serves_astray(i, 0);
		if (!stage.node[i].up)
			comes(i);
		feels(i, MOOD_WELL);
	}
	for (unsigned d = 0; d < STAGE_DAEMONS; d++) {
		stage.daemon[d].stopped = false;
		runs();
		if (stage.daemon[d].service)
			daemon_is_left_clean(d);
	}
	for (unsigned i = 0; i < NODES_MAX; i++)
		memory_free(stage.node[i].memory);
	audience_closes();
	promises_close();
	journals_open();
}

int64_t figure(unsigned d, enum metric which)
{
	return service_metrics(stage.daemon[d].service)->value[which];
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The stores of the stage: what they do with the calls that wait for them, and what others do to them. */
#include "tests/unit/stage_part.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static struct memory *node_memory(const struct stage_node *n)
{
	const struct memory_conf conf = {
		.seed = {5, n->lives}, .epoch_us = STAGE_WALL_US, .skew_us = stage.conf.skew_us, .tolerance_us = 2 * stage.conf.clock_tol_us, .run_id = n->run_id};

	return memory_new(&conf);
}

void node_is_born(unsigned i)
{
	struct stage_node *n = &stage.node[i];

	snprintf(n->run_id, sizeof(n->run_id), "run-%u-%u", i, ++n->lives);
	memory_free(n->memory);
	n->memory = node_memory(n);
	serves_astray(i, 0); /* nothing reaches it over a connection of before */
}

/* --- stores at work --- */

static void probe_told(struct stage_node *n, struct parcel *p)
{
	const struct probe *set = &n->probe;

	p->probe = *p->answer.probe;
	memcpy(p->seen, p->probe.marker.p ? p->probe.marker.p : "", p->probe.marker.n);
	p->probe.marker.p = p->seen;
	strcpy(p->run_id, n->run_id);
	p->probe.run_id = p->probe.replid = span_of(p->run_id);
	if (set->run_id.p)
		p->probe.run_id = p->probe.replid = set->run_id;
	if (set->replid.p)
		p->probe.replid = set->replid;
	if (set->role.p)
		p->probe.role = set->role;
	if (set->policy.p)
		p->probe.policy = set->policy;
	p->probe.maxmemory = set->maxmemory;
	p->probe.evicted = set->evicted;
	p->probe.loading = set->loading;
	p->probe.bgsave_failed = set->bgsave_failed;
	p->probe.own_data = set->own_data;
	p->answer.probe = &p->probe;
}

static void parcel_carry_out(struct parcel *p)
{
	struct stage_node *n = &stage.node[p->call.node];

	if (p->done)
		return;
	p->done = true;
	memory_call(n->memory, &p->call, instant_add(stage.now, n->clock_us), &p->answer);
	memcpy(p->holder, p->answer.holder.p ? p->answer.holder.p : "", p->answer.holder.n);
	p->answer.holder.p = p->holder;
	if (p->answer.fence > 0)
		p->answer.fence -= n->fence_lost;
	if (p->answer.probe)
		probe_told(n, p);
}

/* It leaves the queue, and the daemon hears. */
static void parcel_tell(unsigned d, struct parcel *p, enum answer_class class, const char *text)
{
	struct event event = {.kind = EVENT_ANSWER, .answer = p->answer};

	TAILQ_REMOVE(&stage.daemon[d].queue[p->call.node], p, link);
	if (class != ANSWER_EXECUTED)
		event.answer = (struct answer){.class = class, .fence = -1, .pttl_ms = -2, .text = span_of(text)};
	event.answer.call = p->call.id;
	event.answer.node = p->call.node;
	if (stage.daemon[d].service)
		ck_assert_int_eq(daemon_step(d, &event), 0);
}

static void parcel_answer(unsigned d, struct parcel *p, enum answer_class class, const char *text)
{
	parcel_tell(d, p, class, text);
	free(p);
}

/* What the store does with the first that waits. False: nothing now. */
static bool node_works(unsigned d, unsigned node)
{
	struct stage_node *n = &stage.node[node];
	struct parcel *p = TAILQ_FIRST(&stage.daemon[d].queue[node]), *each;

	if (!p || n->mood == MOOD_SILENT)
		return false;
	if (n->mood == MOOD_TARDY || (stage.daemon[d].stopped && n->mood == MOOD_WELL)) {
		TAILQ_FOREACH(each, &stage.daemon[d].queue[node], link)
		parcel_carry_out(each);
		return false;
	}
	if (!n->up || (n->mood == MOOD_REFUSING && (n->mute || p->call.kind != CALL_PROBE))) {
		parcel_answer(d, p, ANSWER_REFUSED, n->up ? n->refusal : "not connected");
		return true;
	}
	parcel_carry_out(p);
	parcel_answer(d, p, n->mood == MOOD_LOSSY ? ANSWER_UNKNOWN : ANSWER_EXECUTED, "connection reset");
	return true;
}

void runs(void)
{
	bool busy = true;

	for (unsigned turn = 0; busy; turn++) {
		ck_assert_msg(turn < 100000, "the daemons and stores never come to rest");
		busy = audience_reads();
		for (unsigned d = 0; d < STAGE_DAEMONS; d++)
			for (unsigned i = 0; i < stage.conf.nodes && stage.daemon[d].conf.nodes; i++)
				busy |= node_works(d, i);
	}
}

void feels(unsigned node, enum mood mood)
{
	stage.node[node].mood = mood;
	runs();
}

void all_feel(enum mood mood)
{
	for (unsigned i = 0; i < stage.conf.nodes; i++)
		feels(i, mood);
}

void refuses(unsigned node, const char *text)
{
	stage.node[node].refusal = text;
	feels(node, MOOD_REFUSING);
}

void serves_daemon(unsigned d, unsigned node, unsigned many)
{
	struct parcel *p;

	for (; many && (p = TAILQ_FIRST(&stage.daemon[d].queue[node])); many--) {
		parcel_carry_out(p);
		parcel_answer(d, p, ANSWER_EXECUTED, "");
	}
	ck_assert_msg(many == 0, "store %u was not asked %u more", node, many);
	runs();
}

void serves(unsigned node, unsigned many)
{
	serves_daemon(0, node, many);
}

unsigned waiting_at(unsigned node)
{
	struct parcel *p;
	unsigned n = 0;

	TAILQ_FOREACH(p, &stage.daemon[0].queue[node], link)
	n++;
	return n;
}

void loses(unsigned node, unsigned many)
{
	struct parcel *p;

	for (; many && (p = TAILQ_FIRST(&stage.daemon[0].queue[node])); many--)
		parcel_answer(0, p, ANSWER_UNKNOWN, "timeout");
	ck_assert_uint_eq(many, 0);
	runs();
}

void comes(unsigned node)
{
	stage.node[node].up = true;
	for (unsigned d = 0; d < STAGE_DAEMONS; d++)
		daemon_node_event(d, node, EVENT_NODE_UP);
	runs();
}

void falls(unsigned node)
{
	stage.node[node].up = false;
	for (unsigned d = 0; d < STAGE_DAEMONS; d++) {
		struct parcel *p;

		while (stage.daemon[d].conf.nodes && (p = TAILQ_FIRST(&stage.daemon[d].queue[node])))
			parcel_answer(d, p, ANSWER_UNKNOWN, "connection lost");
		daemon_node_event(d, node, EVENT_NODE_DOWN);
	}
	runs();
}

void breaks(unsigned node)
{
	struct stage_node *n = &stage.node[node];

	for (unsigned d = 0; d < STAGE_DAEMONS; d++) {
		struct parcel *p;

		while (stage.daemon[d].conf.nodes && (p = TAILQ_FIRST(&stage.daemon[d].queue[node]))) {
			parcel_tell(d, p, ANSWER_UNKNOWN, "connection lost");
			TAILQ_INSERT_TAIL(&n->astray, p, link);
		}
	}
	falls(node);
	n->mood = MOOD_WELL;
	comes(node);
}

void serves_astray(unsigned node, unsigned many)
{
	struct stage_node *n = &stage.node[node];
	struct parcel *p;

	for (; (p = TAILQ_FIRST(&n->astray)); many -= many > 0) {
		TAILQ_REMOVE(&n->astray, p, link);
		if (many > 0)
			parcel_carry_out(p);
		free(p);
	}
}

void arrives(unsigned node)
{
	serves_astray(node, UINT_MAX);
}

void restarts_blank(unsigned node)
{
	falls(node);
	node_is_born(node);
	comes(node);
}

void is_flushed(unsigned node)
{
	struct stage_node *n = &stage.node[node];

	memory_free(n->memory);
	n->memory = node_memory(n);
}

struct call late_call(unsigned node, enum call_kind kind)
{
	static char name[16], value[VALUE_MAX], marker[MARKER_MAX];
	struct call late = stage.node[node].last[kind].call;

	memcpy(name, late.name.p, late.name.n);
	memcpy(value, late.value.p, late.value.n);
	memcpy(marker, late.marker.p, late.marker.n);
	late.name.p = name;
	late.value.p = value;
	if (kind == CALL_EXTEND)
		late.new_value.p = value;
	late.marker.p = marker;
	late.ticket = late.prior = SPAN("");
	return late;
}

/* --- what a store holds --- */

static bool key_look(unsigned node, const char *name, struct instant *ret_until)
{
	const struct stage_node *n = &stage.node[node];
	struct span value;

	return memory_get(n->memory, span_of(name), instant_add(stage.now, n->clock_us), &value, ret_until);
}

bool key_is_there(unsigned node, const char *name)
{
	struct instant until;

	return key_look(node, name, &until);
}

int64_t key_ttl_us(unsigned node, const char *name)
{
	struct instant until;

	return key_look(node, name, &until) ? instant_diff(until, instant_add(stage.now, stage.node[node].clock_us)) : -1;
}

void key_is_overwritten(unsigned node, const char *name, const char *value, int64_t ttl_us)
{
	struct stage_node *n = &stage.node[node];
	struct instant until = ttl_us < 0 ? INSTANT_NEVER : instant_add(stage.now, n->clock_us + ttl_us);

	memory_put(n->memory, span_of(name), span_of(value), until);
}

void marker_is_set(unsigned node, const char *marker)
{
	struct stage_node *n = &stage.node[node];
	struct span now = memory_marker(n->memory);
	struct call call = {.kind = CALL_JOIN, .marker = now, .new_marker = span_of(marker)};
	struct answer answer;

	memory_call(n->memory, &call, stage.now, &answer);
	ck_assert_int_eq(answer.code, 'J');
}

unsigned asked(enum call_kind kind)
{
	unsigned n = 0;

	for (unsigned i = 0; i < stage.conf.nodes; i++)
		n += stage.node[i].count[kind];
	return n;
}

const char *marker_of(unsigned node)
{
	static char text[MARKER_MAX + 1];
	struct span marker = memory_marker(stage.node[node].memory);

	snprintf(text, sizeof(text), "%.*s", (int)marker.n, marker.p ? marker.p : "");
	return text;
}

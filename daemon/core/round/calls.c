/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/round/calls.h"

#include "daemon/base/mem.h"
#include "daemon/core/member/member.h"
#include "daemon/core/member/observe.h"

#include <inttypes.h>
#include <string.h>

void call_table_init(struct call_table *t, struct core *core, struct members *members)
{
	*t = (struct call_table){.core = core, .members = members, .free_head = CALLS_SLOT_NONE};
}

void call_table_release(struct call_table *t)
{
	mem_free(t->slot);
	mem_free(t->next_free);
}

void call_table_grow(struct call_table *t)
{
	uint32_t old = t->slots;

	t->slots = old ? 2 * old : 256;
	t->slot = mem_grow(t->slot, t->slots, sizeof(struct calls *));
	t->next_free = mem_grow(t->next_free, t->slots, sizeof(*t->next_free));
	for (uint32_t i = t->slots; i-- > old;) {
		t->slot[i] = NULL;
		t->next_free[i] = t->free_head;
		t->free_head = i;
	}
}

/* A second round, or a key that is left behind, may go to a node that is not joined any more. The marker of its quarantine would open that to votes. */
static struct span calls_marker(const struct member *m)
{
	return m->marker[0] == 'j' ? span_of(m->marker) : SPAN("none");
}

struct call *calls_send(struct call_table *t, struct calls *c, unsigned node, enum call_kind kind)
{
	struct call *call = core_call(t->core);

	*call = (struct call){
		.id = c->slot, .node = node, .kind = kind, .name = name_text(c->name), .marker = calls_marker(&t->members->node[node]),
		.seen = t->members->node[node].fence_seen};
	c->sent[node] = t->core->now;
	nodeset_add(&c->asked, node);
	nodeset_add(&c->open, node);
	flow_sent(&t->members->node[node].flow, t->core->now);
	return call;
}

/* From when an answer counts: earlier than `sent` if the store's clock shows that the call ran earlier, because a clock has jumped meanwhile. */
static struct instant calls_sent(const struct member *m, const struct answer *a, struct instant sent)
{
	struct instant earliest = {a->server_us - m->clock.high};

	return a->server_us && m->clock.known ? instant_min(sent, earliest) : sent;
}

/* Each answer that came late by slow.store, whatever it says. */
static void calls_tell_slow(const struct call_table *t, const struct calls *c, const struct answer *a)
{
	static const char *const word[] = {[ANSWER_EXECUTED] = "executed", [ANSWER_REFUSED] = "refused", [ANSWER_UNKNOWN] = "unknown"};
	int64_t us = instant_diff(t->core->now, c->sent[a->node]);

	if (us >= t->core->conf.slow_store_us && core_may_log(t->core, BURST_SLOW))
		core_log(t->core, LOG_NOTICE, "slow", "kind=store node=%s name=%s took_ms=%" PRId64 " outcome=%s", t->core->conf.label[a->node],
		         core_quoted(t->core, name_unescaped(name_text(c->name))), us / MSEC, word[a->class]);
}

struct calls *calls_answered(struct call_table *t, const struct answer *a)
{
	struct calls *c = a->call < t->slots ? t->slot[a->call] : NULL;
	struct member *m;

	if (!c || !nodeset_has(c->open, a->node))
		return NULL;
	m = &t->members->node[a->node];
	if (t->core->conf.slow_store_us > 0)
		calls_tell_slow(t, c, a);
	nodeset_remove(&c->open, a->node);
	flow_answered(&m->flow, c->sent[a->node], t->core->now, a->class == ANSWER_EXECUTED, t->core->conf.timeout_us);
	member_observe(t->members, a, c->sent[a->node]);
	c->sent[a->node] = calls_sent(m, a, c->sent[a->node]);
	return c;
}

struct instant calls_sent_last(const struct call_table *t, const struct calls *c, struct nodeset nodes)
{
	struct instant last = c->begun;

	for (unsigned i = 0; i < t->core->conf.nodes; i++)
		if (nodeset_has(nodes, i))
			last = instant_max(last, c->sent[i]);
	return last;
}

struct instant calls_slow_at(const struct call_table *t, const struct calls *c)
{
	return instant_add(calls_sent_last(t, c, c->open), t->core->conf.timeout_us);
}

void calls_stall(struct call_table *t, const struct calls *c)
{
	for (unsigned i = 0; i < t->core->conf.nodes; i++)
		if (nodeset_has(c->open, i) && instant_diff(t->core->now, c->sent[i]) >= t->core->conf.timeout_us)
			member_stall(t->members, i);
}

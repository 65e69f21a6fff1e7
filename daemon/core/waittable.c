/* SPDX-License-Identifier: BSD-2-Clause */
/* See waittable.h. */
#include "daemon/core/waittable.h"

#include "daemon/base/mem.h"
#include "daemon/core/deadlock.h"
#include "daemon/core/rules.h"
#include "daemon/core/waitcycle.h"
#include "daemon/core/waitrecords.h"

#include <inttypes.h>
#include <stdlib.h>

/* A member that is judged. */
struct judged {
	struct span member;
	int64_t since, until;
	const struct wait_owner *own; /* NULL: of another daemon */
};

struct waittable {
	struct timer timer;
	struct name name; /* of the calls: they are about no lock */
	char nothing[1];  /* the text of that name */
	struct calls calls;
	uint64_t exchange; /* how many times members were exchanged … */
	struct instant exchanged; /* … and when last */
	struct wait_owners owners;
	struct records records;
	struct {
		uint64_t exchange;        /* the last one; 0: none over this connection */
		int64_t number;           /* of the last answer, as the store counts; 0: none over this connection */
		struct instant connected; /* the connection */
		bool left;                /* members of ours may be there */
	} store[NODES_MAX];
	struct judged *judged;
	unsigned judges, judge_cap;
	struct buf list; /* members of ours */
	struct waitgraph graph;
};

void waittable_free(struct commander *x)
{
	struct waittable *w = x->waittable;

	if (!w)
		return;
	heap_cancel(&x->core->timers, &w->timer);
	calls_close(&x->engine->calls, &w->calls);
	waitowners_release(&w->owners);
	graph_release(&w->graph);
	buf_release(&w->list);
	records_release(&w->records);
	mem_free(w->judged);
	mem_free(w);
	x->waittable = NULL;
}

void waittable_pack(struct commander *x)
{
	struct waittable *w = x->waittable;

	if (!w)
		return;
	graph_release(&w->graph);
	mem_free(w->judged);
	w->judged = NULL;
	w->judges = w->judge_cap = 0;
}

static struct waittable *waittable_new(struct commander *x)
{
	struct waittable *w = mem_alloc(sizeof(*w));

	w->timer.kind = TIMER_WAITS;
	w->name.text = w->nothing;
	calls_open(&x->engine->calls, &w->calls, CALLS_OF_TABLE, &w->name);
	return w;
}

void waittable_note(struct commander *x)
{
	if (!x->waittable)
		x->waittable = waittable_new(x);
	if (!timer_is_set(&x->waittable->timer))
		heap_set(&x->core->timers, &x->waittable->timer, instant_add(x->core->now, waitowner_after_us(x->core)));
}

/* --- what this daemon tells --- */

static void member_put(struct commander *x, struct buf *list, const struct wait_owner *o, const struct record *r, unsigned node, int64_t until)
{
	const struct waittable *w = x->waittable;

	entry_put(list,
	          &(struct entry_head){.daemon = span_of(x->core->daemon_id),
	                               .session = o->session->serial,
	                               .owner = o->owner_hash,
	                               .since = r->since[node],
	                               .until = until,
	                               .place = r->place},
	          waitowner_rows(&w->owners, o));
}

/* A connection that broke may lead to another server now, which counts anew. */
static void store_meet(struct commander *x, unsigned node)
{
	struct waittable *w = x->waittable;
	struct instant connected = x->engine->members.node[node].up_since;

	if (w->store[node].connected.us == connected.us)
		return;
	w->store[node].connected = connected;
	w->store[node].number = 0;
	w->store[node].exchange = 0;
	records_forget(&w->records, node);
}

static void exchange_with(struct commander *x, unsigned node)
{
	struct waittable *w = x->waittable;
	struct span id = span_of(x->core->daemon_id);
	struct call *call;

	store_meet(x, node);
	buf_clear(&w->list);
	for (unsigned i = 0; i < w->owners.count && buf_length(&w->list) < TABLE_MAX / 2; i++)
		member_put(x, &w->list, &w->owners.item[i], &w->records.now.item[i], node, w->store[node].number);
	w->store[node].left = w->owners.count > 0;
	w->store[node].exchange = w->exchange;
	call = calls_send(&x->engine->calls, &w->calls, node, CALL_TABLE);
	call->value = (struct span){arena_copy(&x->core->out->arena, buf_begin(&w->list), buf_length(&w->list)), buf_length(&w->list)};
	call->ticket = (struct span){arena_copy(&x->core->out->arena, id.p, id.n), id.n};
	call->ticket_ms = TABLE_LIFE_US / MSEC;
}

/* When the last owner has gone, its members are withdrawn. Where that fails they are over soon. */
static void exchange_all(struct commander *x)
{
	struct waittable *w = x->waittable;

	w->exchange++;
	w->exchanged = x->core->now;
	records_renew(&w->records, &w->owners, w->exchange);
	for (unsigned i = 0; i < x->core->conf.nodes; i++) {
		if (member_usable(&x->engine->members.node[i]) && !nodeset_has(w->calls.open, i) && (w->owners.count > 0 || w->store[i].left))
			exchange_with(x, i);
		w->store[i].left &= w->owners.count > 0;
	}
	records_sort(&w->records);
}

/* --- what it makes of a table --- */

static void judged_add(struct waittable *w, const struct judged *j)
{
	if (w->judges == w->judge_cap) {
		w->judge_cap = w->judge_cap ? 2 * w->judge_cap : 16;
		w->judged = mem_grow(w->judged, w->judge_cap, sizeof(*w->judged));
	}
	w->judged[w->judges++] = *j;
}

/* Of a member that was not exchanged twice it is not known when it was true. */
static int64_t since_of(int64_t since)
{
	return since > 0 ? since : INT64_MAX;
}

/* Our own owners as they are now. */
static void judged_add_own(struct commander *x, int node)
{
	struct waittable *w = x->waittable;
	struct span list;

	buf_clear(&w->list);
	for (unsigned i = 0; i < w->owners.count; i++) {
		static const struct record alone = {.since = {1}};
		const struct record *r = node < 0 ? &alone : records_find(&w->records, w->owners.item[i].hash);

		if (!r)
			continue;
		member_put(x, &w->list, &w->owners.item[i], r, node < 0 ? 0 : (unsigned)node, 0);
		judged_add(w, &(struct judged){.since = since_of(r->since[node < 0 ? 0 : node]), .until = INT64_MAX, .own = &w->owners.item[i]});
	}
	list = (struct span){buf_begin(&w->list), buf_length(&w->list)};
	for (unsigned i = 0; i < w->judges; i++)
		if (!entry_next(&list, &w->judged[i].member))
			abort();
}

static void judged_add_others(struct waittable *w, struct span list)
{
	struct span member, rows;
	struct entry_head h;

	while (entry_next(&list, &member))
		if (entry_read(member, &h, &rows))
			judged_add(w, &(struct judged){.member = member, .since = since_of(h.since), .until = h.until});
}

static bool refuse(struct commander *x, const struct judged *j, unsigned owner)
{
	char cycle[CYCLE_MAX];
	const struct graph_want *want = NULL;
	size_t n;

	waitowner_hide(x, j->own->session, &x->waittable->graph, owner);
	n = cycle_tell(&x->waittable->graph, owner, cycle, sizeof(cycle), &want);

	return waitowner_refuse(x, j->own, want->name, (struct span){cycle, n});
}

/* The graph of the members that were true at that moment; EVER: of all. False: nobody is stuck. */
#define EVER INT64_MIN
static bool graph_of_moment(struct waittable *w, int64_t at)
{
	graph_clear(&w->graph);
	for (unsigned i = 0; i < w->judges; i++) {
		struct judged *j = &w->judged[i];

		/* What is not sound, or was not true then, is an owner that goes on. */
		if ((at != EVER && (j->since > at || at > j->until)) || !entry_to_graph(&w->graph, j->member, j->own))
			graph_add_owner(&w->graph, &(struct graph_owner){.who = SPAN("")});
	}
	return graph_reduce(&w->graph);
}

static bool an_own_is_stuck(const struct waittable *w)
{
	bool stuck = false;

	for (unsigned i = 0; i < w->judges; i++)
		stuck |= w->judged[i].own && w->graph.owner[i].stuck;
	return stuck;
}

static bool refuse_victims(struct commander *x)
{
	struct waittable *w = x->waittable;
	bool refused = false;

	cycle_find_victims(&w->graph);
	for (unsigned i = 0; i < w->judges; i++)
		if (w->judged[i].own && w->graph.owner[i].stuck && w->graph.owner[i].victim)
			refused |= refuse(x, &w->judged[i], i);
	return refused;
}

/* The last moment before this one that may be common to members: an exchange of one of the daemons. number: of ours. 0: there is none. */
static int64_t moment_before(const struct waittable *w, int64_t last, int64_t number)
{
	int64_t at = 0;

	for (unsigned i = 0; i < w->judges; i++) {
		int64_t until = w->judged[i].own ? number : w->judged[i].until;

		if (until < last && until > at)
			at = until;
	}
	return at;
}

enum judgement { NO_DEADLOCK, SUSPECTED, REFUSED };

/* Each moment has a part of all members, so nobody is stuck then who is not stuck among all. */
static enum judgement judge(struct commander *x, int node, struct span list, int64_t number)
{
	struct waittable *w = x->waittable;

	w->judges = 0;
	judged_add_own(x, node);
	if (w->judges == 0)
		return NO_DEADLOCK;
	judged_add_others(w, list);
	if (!graph_of_moment(w, EVER) || !an_own_is_stuck(w))
		return NO_DEADLOCK;
	for (int64_t at = moment_before(w, INT64_MAX, number); at > 0; at = moment_before(w, at, number))
		if (graph_of_moment(w, at) && refuse_victims(x))
			return REFUSED;
	return SUSPECTED;
}

/* --- events --- */

/* A store counts on, unless it lost its memory and its clock was set back: then what it said before says nothing any more. */
static void number_note(struct waittable *w, unsigned node, int64_t number)
{
	if (number < w->store[node].number)
		records_forget(&w->records, node);
	w->store[node].number = number;
	records_answered(&w->records, node, w->store[node].exchange, number);
}

static void answer_use(struct commander *x, const struct answer *a)
{
	struct waittable *w = x->waittable;
	struct span list = a->found;
	int64_t number;

	if (a->class != ANSWER_EXECUTED || a->code != 'T' || w->store[a->node].exchange == 0 || !entry_take_number(&list, &number) || number <= 0)
		return;
	number_note(w, a->node, number);
	waitowners_collect(x, &w->owners);
	switch (judge(x, (int)a->node, list, number)) {
	case NO_DEADLOCK:
		break;
	case SUSPECTED: /* two exchanges more will tell */
		heap_set(&x->core->timers, &w->timer, instant_min(w->timer.at, instant_add(w->exchanged, TABLE_AGAIN_US)));
		break;
	case REFUSED: /* the others are told at once */
		heap_set(&x->core->timers, &w->timer, x->core->now);
		break;
	}
}

void waittable_answered(struct commander *x, const struct answer *a)
{
	struct waittable *w = x->waittable;

	if (a->call != w->calls.slot)
		return;
	answer_use(x, a);
	if (!timer_is_set(&w->timer) && !nodeset_any(w->calls.open))
		waittable_free(x);
}

/* Without owners it ends, with the last answer to what is under way. */
void waittable_fired(struct commander *x)
{
	struct waittable *w = x->waittable;

	calls_stall(&x->engine->calls, &w->calls);
	waitowners_collect(x, &w->owners);
	if (x->core->conf.shared)
		exchange_all(x);
	else if (judge(x, -1, SPAN(""), 1) == REFUSED)
		waitowners_collect(x, &w->owners);
	if (w->owners.count > 0)
		heap_set(&x->core->timers, &w->timer, instant_add(x->core->now, TABLE_EVERY_US));
	else if (instant_before(w->owners.next, INSTANT_NEVER))
		heap_set(&x->core->timers, &w->timer, w->owners.next);
	else if (!nodeset_any(w->calls.open))
		waittable_free(x);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* See waittable.h. */
#include "daemon/core/waittable.h"

#include "daemon/base/mem.h"
#include "daemon/core/deadlock.h"
#include "daemon/core/waitcycle.h"
#include "daemon/core/waitentry.h"
#include "daemon/core/waitowners.h"

#include <string.h>

#define LOOKS_A_PASS   4096   /* how much is looked at before others have their turn: see wait_owners.looks */
#define LOOKS_SESSION  64     /* what a session costs at least */
#define PASSES_APART   MSEC
#define REFUSED_A_PASS 16
#define TABLE_OWN      (TABLE_MAX / 2) /* bytes of the members of this daemon */

struct waittable {
	struct timer timer;
	struct name name; /* of the calls: they are about no lock */
	char nothing[1];  /* the text of that name */
	struct calls calls;
	struct buf own;   /* members of this daemon, as they were looked at last */
	unsigned owners;  /* how many … */
	struct instant next;  /* … and when there may be another; NEVER: nobody waits while it holds something */
	struct instant begun; /* when that look began … */
	unsigned left;        /* … and how many sessions it has yet to look at; 0: it is over */
	unsigned node;
	bool there;       /* members of this daemon may be at that store */
};

void waittable_free(struct commander *x)
{
	struct waittable *w = x->waittable;

	if (!w)
		return;
	heap_cancel(&x->core->timers, &w->timer);
	calls_close(&x->engine->calls, &w->calls);
	buf_release(&w->own);
	mem_free(w);
	x->waittable = NULL;
}

static struct waittable *waittable_new(struct commander *x)
{
	struct waittable *w = mem_alloc(sizeof(*w));

	w->timer.kind = TIMER_WAITS;
	w->name.text = w->nothing;
	calls_open(&x->engine->calls, &w->calls, CALLS_OF_TABLE, &w->name);
	return w;
}

static bool session_nests(const struct session *s)
{
	return s->waiting > 0 && !s->over && (s->held > 0 || !TAILQ_EMPTY(&s->permits));
}

void waittable_note(struct commander *x, struct session *s)
{
	if (!session_nests(s))
		return;
	session_set_nested(x->sessions, s, true);
	if (!x->waittable)
		x->waittable = waittable_new(x);
	if (!timer_is_set(&x->waittable->timer))
		heap_set(&x->core->timers, &x->waittable->timer, instant_add(x->core->now, WAITED_US));
}

/* --- a look at the sessions of this daemon ---------------------------------------------------------------------------- */

static bool table_is_full(const struct waittable *w)
{
	return w->owners >= GRAPH_OWNERS_MOST / 2 || buf_length(&w->own) + ENTRY_MAX > TABLE_OWN;
}

/* Only who also holds something can be in the way of others. */
static void owners_put(struct commander *x, const struct wait_owners *o)
{
	struct waittable *w = x->waittable;

	for (unsigned i = 0; i < o->graph.owners && !table_is_full(w); i++) {
		const struct graph_owner *owner = &o->graph.owner[i];
		struct entry_head h = {.daemon = span_of(x->core->daemon_id),
		                       .session = o->owner[i].session->serial,
		                       .owner = waitowner_hash(o->owner[i].owner),
		                       .place = owner->place};

		if (owner->want != NOBODY && owner->hold != NOBODY)
			w->owners += entry_put(&w->own, &h, &o->graph, i);
	}
}

static unsigned session_look(struct commander *x, struct session *s)
{
	struct waittable *w = x->waittable;
	struct wait_owners *o;
	unsigned looks;

	if (!session_nests(s)) {
		session_set_nested(x->sessions, s, false);
		return LOOKS_SESSION;
	}
	o = waitowners_new(x, instant_add(w->begun, -WAITED_US));
	waitowners_add_session(o, s);
	if (o->graph.owners > 0)
		waitowners_add_holds(o, s);
	owners_put(x, o);
	if (instant_before(o->next, INSTANT_NEVER))
		w->next = instant_min(w->next, instant_add(o->next, WAITED_US));
	looks = o->looks;
	waitowners_free(o);
	return looks + LOOKS_SESSION;
}

/* Each session that is looked at goes to the end. So if not all have room, the others are the first the next time. False: more is left to another pass. */
static bool sessions_look(struct commander *x)
{
	struct waittable *w = x->waittable;
	struct session *s;

	for (unsigned looks = 0; w->left > 0 && looks < LOOKS_A_PASS && (s = TAILQ_FIRST(&x->sessions->nested)); w->left--) {
		TAILQ_REMOVE(&x->sessions->nested, s, in_nested);
		TAILQ_INSERT_TAIL(&x->sessions->nested, s, in_nested);
		looks += session_look(x, s);
		if (table_is_full(w))
			w->left = 1;
	}
	return w->left == 0 || TAILQ_EMPTY(&x->sessions->nested);
}

static void look_begins(struct commander *x)
{
	struct waittable *w = x->waittable;

	buf_clear(&w->own);
	w->owners = 0;
	w->next = INSTANT_NEVER;
	w->begun = x->core->now;
	w->left = x->sessions->nested_count;
}

/* --- who is refused --------------------------------------------------------------------------------------------------- */

/* Of the graph: whom its own owners belong to, under the same numbers. */
struct judged {
	struct waitgraph graph;
	struct entry_head head[GRAPH_OWNERS_MOST];
	unsigned victim[REFUSED_A_PASS], victims; /* of this daemon */
};

static void judged_add(struct judged *j, struct span list, bool own)
{
	struct span member;
	struct entry_head h;

	while (entry_next(&list, &member)) {
		unsigned i = entry_to_graph(&j->graph, member, own, &h);

		if (i != NOBODY)
			j->head[i] = h;
	}
}

static void victims_find(struct judged *j)
{
	if (!graph_reduce(&j->graph))
		return;
	cycle_find_victims(&j->graph);
	for (unsigned i = 0; i < j->graph.owners && j->victims < REFUSED_A_PASS; i++)
		if (j->graph.owner[i].own && j->graph.owner[i].stuck && j->graph.owner[i].victim)
			j->victim[j->victims++] = i;
}

static void victim_refuse(struct commander *x, struct session *s, struct judged *j, unsigned victim)
{
	const struct wait_view view = {x->core, s};
	const struct graph_want *want;
	char room[CYCLE_MAX];
	size_t n = cycle_tell(&j->graph, victim, waitowner_shows, &view, room, sizeof(room), &want);

	if (n > 0)
		waitowner_refuse(x, s, j->head[victim].owner, instant_add(x->core->now, -WAITED_US), want->name, (struct span){room, n});
}

static void victims_refuse(struct commander *x, struct judged *j)
{
	struct session *s, *next;

	for (s = j->victims > 0 ? TAILQ_FIRST(&x->sessions->nested) : NULL; s; s = next) {
		next = TAILQ_NEXT(s, in_nested);
		for (unsigned i = 0; i < j->victims; i++)
			if (j->head[j->victim[i]].session == s->serial)
				victim_refuse(x, s, j, j->victim[i]);
	}
}

/* others: members of other daemons. */
static void judge(struct commander *x, struct span others)
{
	const struct waittable *w = x->waittable;
	struct judged *j = mem_alloc(sizeof(*j));

	graph_init(&j->graph, x->sessions->known.key);
	judged_add(j, (struct span){buf_begin(&w->own), buf_length(&w->own)}, true);
	judged_add(j, others, false);
	victims_find(j);
	victims_refuse(x, j);
	graph_release(&j->graph);
	mem_free(j);
}

/* --- the store -------------------------------------------------------------------------------------------------------- */

/*
 * All daemons take the same one of those that they can use, whatever they call it: that of the smallest marker. False: there is none, or it has not answered
 * the last exchange yet.
 */
static bool store_find(const struct commander *x, unsigned *ret_node)
{
	const struct member *m = x->engine->members.node;
	unsigned found = NODES_MAX;

	for (unsigned i = 0; i < x->core->conf.nodes; i++)
		if (member_usable(&m[i]) && (found == NODES_MAX || strcmp(m[i].marker, m[found].marker) < 0))
			found = i;
	*ret_node = found;
	return found < NODES_MAX && !nodeset_has(x->waittable->calls.open, found);
}

/* When the last owner has gone, its members are withdrawn. Where that fails they are over soon. */
static void exchange(struct commander *x)
{
	struct waittable *w = x->waittable;
	struct span id = span_of(x->core->daemon_id);
	struct call *call;
	unsigned node;

	if ((w->owners == 0 && !w->there) || !store_find(x, &node))
		return;
	w->node = node;
	w->there = w->owners > 0;
	call = calls_send(&x->engine->calls, &w->calls, node, CALL_TABLE);
	call->value = (struct span){arena_copy(&x->core->out->arena, buf_begin(&w->own), buf_length(&w->own)), buf_length(&w->own)};
	call->ticket = (struct span){arena_copy(&x->core->out->arena, id.p, id.n), id.n};
	call->ticket_ms = TABLE_LIFE_US / MSEC;
}

/* --- events ----------------------------------------------------------------------------------------------------------- */

void waittable_answered(struct commander *x, const struct answer *a)
{
	struct waittable *w = x->waittable;

	if (a->call != w->calls.slot)
		return;
	if (a->class == ANSWER_EXECUTED && a->code == 'T' && w->owners > 0 && w->left == 0)
		judge(x, a->found);
	if (!timer_is_set(&w->timer) && !nodeset_any(w->calls.open))
		waittable_free(x);
}

/* Without owners it ends, with the last answer to what is under way. */
static void look_is_over(struct commander *x)
{
	struct waittable *w = x->waittable;

	if (x->core->conf.shared)
		exchange(x);
	else if (w->owners > 0)
		judge(x, SPAN(""));
	if (w->owners > 0)
		heap_set(&x->core->timers, &w->timer, instant_add(w->begun, TABLE_EVERY_US));
	else if (instant_before(w->next, INSTANT_NEVER))
		heap_set(&x->core->timers, &w->timer, w->next);
	else if (!nodeset_any(w->calls.open))
		waittable_free(x);
}

void waittable_fired(struct commander *x)
{
	struct waittable *w = x->waittable;

	calls_stall(&x->engine->calls, &w->calls);
	if (w->left == 0)
		look_begins(x);
	if (sessions_look(x)) {
		w->left = 0;
		look_is_over(x);
	} else {
		heap_set(&x->core->timers, &w->timer, instant_add(x->core->now, PASSES_APART));
	}
}

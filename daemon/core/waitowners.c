/* SPDX-License-Identifier: BSD-2-Clause */
/* See waitowners.h. */
#include "daemon/core/waitowners.h"

#include "daemon/base/map.h"
#include "daemon/base/mem.h"
#include "daemon/core/convert.h"
#include "daemon/core/rules.h"
#include "daemon/core/tell.h"
#include "daemon/core/wait.h"

#include <string.h>

static const uint64_t owner_key[2] = {UINT64_C(0x77616974), UINT64_C(0x6f776e65)};

uint64_t waitowner_hash(struct span owner)
{
	return siphash(owner_key, owner.p ? owner.p : "", owner.n);
}

struct wait_owners *waitowners_new(struct commander *x, struct instant since)
{
	struct wait_owners *o = mem_alloc(sizeof(*o));

	o->x = x;
	o->since = since;
	o->next = INSTANT_NEVER;
	graph_init(&o->graph, x->sessions->known.key);
	memset(o->bucket, 0xff, sizeof(o->bucket)); /* NOBODY */
	return o;
}

void waitowners_free(struct wait_owners *o)
{
	graph_release(&o->graph);
	mem_free(o);
}

/* --- owners ----------------------------------------------------------------------------------------------------------- */

static unsigned owner_bucket(const struct wait_owners *o, const struct session *s, struct span owner)
{
	return (siphash(o->graph.key, owner.p ? owner.p : "", owner.n) ^ s->serial) % WAITOWNER_BUCKETS;
}

unsigned waitowners_find(const struct wait_owners *o, const struct session *s, struct span owner)
{
	unsigned i = o->bucket[owner_bucket(o, s, owner)];

	while (i != NOBODY && (o->owner[i].session != s || !span_equal(o->owner[i].owner, owner)))
		i = o->owner[i].next;
	return i;
}

unsigned waitowners_add(struct wait_owners *o, struct session *s, struct span owner)
{
	unsigned i = waitowners_find(o, s, owner), *first = &o->bucket[owner_bucket(o, s, owner)];

	if (i != NOBODY)
		return i;
	if (graph_is_full(&o->graph, 0)) {
		o->full = true;
		return NOBODY;
	}
	i = graph_add_owner(&o->graph, &(struct graph_owner){.who = owner, .host = SPAN(""), .own = true, .place = INT64_MIN});
	o->owner[i] = (struct wait_owner){.session = s, .owner = owner, .next = *first};
	return *first = i;
}

/* --- what counts ------------------------------------------------------------------------------------------------------ */

static bool counts_since(struct wait_owners *o, struct instant since)
{
	o->looks++;
	if (!instant_before(o->since, since))
		return true;
	o->next = instant_min(o->next, since);
	return false;
}

static bool claim_waits(const struct claim *c)
{
	return c->state == CLAIM_WAITING && c->patient && !c->ending && !c->leaving;
}

static bool group_waits(const struct group *g)
{
	return g->patient && !g->leaving && g->state != GROUP_CANCELLED;
}

static bool permit_waits(const struct permit *p)
{
	return (p->state == PERMIT_WAITING || p->state == PERMIT_FIRST) && !p->leaving;
}

/* The lines of a semaphore wait for the stores, too. */
static bool permit_has_no_quorum(const struct permit *p)
{
	const struct permit *first = TAILQ_FIRST(&p->semaphore->line);

	return first && seat_is_asked(&first->mark) && first->mark.claim->lock->contender->state == CONTENDER_NO_QUORUM;
}

bool waitowner_has_permit(const struct permit *p)
{
	return p->state == PERMIT_HELD && !p->mark.claim->ending;
}

static bool claim_holds(const struct claim *c)
{
	return c->state == CLAIM_HELD && !c->ending;
}

static bool claim_is_wanted(const struct claim *c)
{
	const struct contender *k = c->lock->contender;

	return k->want_since.us != 0 || !TAILQ_EMPTY(&k->waiters);
}

/* Without a quorum a request waits for the stores, and for no owner. */
static bool claim_waits_for_owners(const struct claim *c)
{
	return claim_waits(c) && c->lock->contender->state != CONTENDER_NO_QUORUM;
}

/* --- what they wait for ----------------------------------------------------------------------------------------------- */

/* Makes room for a request of so many names. NOBODY: there is none. */
static unsigned request_begins(struct wait_owners *o, struct session *s, struct span owner, int64_t place, unsigned names)
{
	unsigned i = waitowners_add(o, s, owner);

	if (i == NOBODY || graph_is_full(&o->graph, names)) {
		o->full = true;
		return NOBODY;
	}
	o->requests++;
	if (place > o->graph.owner[i].place)
		o->graph.owner[i].place = place;
	return i;
}

/*
 * Among the tickets. Where all requests count, nobody asks for it. What the clocks of the stores show changes a little with each answer, and a place that
 * changed would be another one at each daemon: so it is kept.
 */
static int64_t place_us(const struct wait_owners *o, int64_t *kept_us, struct instant asked_at, unsigned priority)
{
	if (o->since.us == INSTANT_NEVER.us)
		return 0;
	if (*kept_us == 0)
		*kept_us = members_clock_us(&o->x->engine->members, asked_at) - priority * PRIORITY_US;
	return *kept_us;
}

static void claim_add(struct wait_owners *o, struct session *s, struct claim *c)
{
	unsigned i;

	if (!claim_waits_for_owners(c) || !counts_since(o, c->asking->asked_at))
		return;
	i = request_begins(o, s, claim_owner(c), place_us(o, &c->asking->place_us, c->asking->asked_at, c->priority), 1);
	if (i != NOBODY)
		graph_add_want(&o->graph, i, &(struct graph_want){.name = lock_name(c->lock), .request = o->requests});
}

/* A LOCKALL needs all of its names, and a LOCKANY any of them. What it keeps of them for a while is in nobody's way. Those of the owner it does not ask for. */
static void group_add(struct wait_owners *o, struct session *s, struct group *g)
{
	unsigned i;

	o->looks += g->parts;
	if (!group_waits(g) || !counts_since(o, g->asked_at))
		return;
	i = request_begins(o, s, group_owner(g), place_us(o, &g->place_us, g->asked_at, g->priority), g->parts);
	for (unsigned k = 0; k < g->parts && i != NOBODY; k++)
		if (!group_own(o->x, g, &g->part[k]))
			graph_add_want(&o->graph, i, &(struct graph_want){.name = part_name(&g->part[k]), .request = o->requests, .any = g->any});
}

static void acquire_add(struct wait_owners *o, struct session *s, struct permit *p)
{
	unsigned i;

	if (!permit_waits(p) || permit_has_no_quorum(p) || !counts_since(o, p->asked_at))
		return;
	i = request_begins(o, s, permit_owner(p), place_us(o, &p->place_us, p->asked_at, p->priority), 1);
	if (i != NOBODY)
		graph_add_want(&o->graph, i, &(struct graph_want){
						     .name = semaphore_name(p->semaphore), .request = o->requests, .limit = p->semaphore->limit});
}

void waitowners_add_session(struct wait_owners *o, struct session *s)
{
	struct claim *c;
	struct group *g;
	struct permit *p;

	if (s->waiting == 0 || s->over)
		return;
	TAILQ_FOREACH(c, &s->claims, in_session) {
		o->looks++;
		claim_add(o, s, c);
	}
	LIST_FOREACH(g, &s->groups, in_session)
		group_add(o, s, g);
	TAILQ_FOREACH(p, &s->permits, in_session)
		acquire_add(o, s, p);
}

/* --- what they hold --------------------------------------------------------------------------------------------------- */

static void hold_add(struct wait_owners *o, struct session *s, struct span owner, struct instant since, struct span name, unsigned count)
{
	unsigned i = waitowners_find(o, s, owner);

	if (i == NOBODY || !counts_since(o, since))
		return;
	if (graph_is_full(&o->graph, 1))
		o->full = true;
	else
		graph_add_hold(&o->graph, i, name, count);
}

static void holds_add(struct wait_owners *o, struct session *s, bool wanted)
{
	const struct claim *c;

	TAILQ_FOREACH(c, &s->claims, in_session) {
		o->looks++;
		if (claim_holds(c) && claim_is_wanted(c) == wanted)
			hold_add(o, s, claim_owner(c), c->granted_at, lock_name(c->lock), 0);
	}
}

void waitowners_add_holds(struct wait_owners *o, struct session *s)
{
	const struct permit *p;

	holds_add(o, s, false);
	holds_add(o, s, true);
	TAILQ_FOREACH(p, &s->permits, in_session)
		if (waitowner_has_permit(p))
			hold_add(o, s, permit_owner(p), p->granted_at, semaphore_name(p->semaphore), 1);
}

bool waitowner_holds(struct wait_owners *o, const struct session *s, struct span owner)
{
	const struct claim *c;
	const struct permit *p;

	TAILQ_FOREACH(c, &s->claims, in_session) {
		o->looks++;
		if (claim_holds(c) && span_equal(claim_owner(c), owner))
			return true;
	}
	TAILQ_FOREACH(p, &s->permits, in_session)
		if (waitowner_has_permit(p) && span_equal(permit_owner(p), owner))
			return true;
	return false;
}

/* --- a refusal -------------------------------------------------------------------------------------------------------- */

static bool is_of(struct span owner, uint64_t owner_hash, struct instant asked_at, struct instant since)
{
	return waitowner_hash(owner) == owner_hash && !instant_before(since, asked_at);
}

static struct claim *claim_find(struct session *s, uint64_t owner_hash, struct instant since, struct span name)
{
	struct claim *c;

	TAILQ_FOREACH(c, &s->claims, in_session)
		if (claim_waits(c) && span_equal(lock_name(c->lock), name) && is_of(claim_owner(c), owner_hash, c->asking->asked_at, since))
			return c;
	return NULL;
}

static bool group_has(const struct group *g, struct span name)
{
	for (unsigned i = 0; i < g->parts; i++)
		if (span_equal(part_name(&g->part[i]), name))
			return true;
	return false;
}

static struct group *group_find(struct session *s, uint64_t owner_hash, struct instant since, struct span name)
{
	struct group *g;

	LIST_FOREACH(g, &s->groups, in_session)
		if (group_waits(g) && group_has(g, name) && is_of(group_owner(g), owner_hash, g->asked_at, since))
			return g;
	return NULL;
}

static struct permit *acquire_find(struct session *s, uint64_t owner_hash, struct instant since, struct span name)
{
	struct permit *p;

	TAILQ_FOREACH(p, &s->permits, in_session)
		if (permit_waits(p) && span_equal(semaphore_name(p->semaphore), name) && is_of(permit_owner(p), owner_hash, p->asked_at, since))
			return p;
	return NULL;
}

static void claim_refuse(struct commander *x, struct claim *c, struct span cycle)
{
	struct lock *l = c->lock;

	if (!c->not_notified) {
		core_answers(x->core, VERB_LOCK);
		tell_cycle(x, c->session, span_of(c->asking->tag), cycle);
	}
	wait_withdraw(x->engine, c, REFUSED_AND_TOLD);
	convert_look(x->engine, l);
}

static void group_refuse_told(struct commander *x, struct group *g, struct span cycle)
{
	if (!g->not_notified) {
		core_answers(x->core, group_verb(g));
		tell_cycle(x, g->session, span_of(g->tag), cycle);
	}
	g->told = true;
	group_cancel(x, g);
}

static void permit_refuse_told(struct commander *x, struct permit *p, struct span cycle)
{
	if (!p->not_notified) {
		core_answers(x->core, VERB_ACQUIRE);
		tell_cycle(x, p->session, span_of(p->tag), cycle);
	}
	p->told = true;
	permit_cancel(x, p);
}

bool waitowner_refuse(struct commander *x, struct session *s, uint64_t owner_hash, struct instant since, struct span name, struct span cycle)
{
	struct claim *c = claim_find(s, owner_hash, since, name);
	struct group *g = c ? NULL : group_find(s, owner_hash, since, name);
	struct permit *p = c || g ? NULL : acquire_find(s, owner_hash, since, name);

	if (c)
		claim_refuse(x, c, cycle);
	else if (g)
		group_refuse_told(x, g, cycle);
	else if (p)
		permit_refuse_told(x, p, cycle);
	return c || g || p;
}

bool waitowner_shows(const void *about, struct span name)
{
	const struct wait_view *v = about;

	return session_knows(v->core, v->session, name);
}

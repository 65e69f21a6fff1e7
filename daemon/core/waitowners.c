/* SPDX-License-Identifier: BSD-2-Clause */
/* See waitowners.h. */
#include "daemon/core/waitowners.h"

#include "daemon/base/mem.h"
#include "daemon/core/convert.h"
#include "daemon/core/rules.h"
#include "daemon/core/tell.h"
#include "daemon/core/ticket.h"
#include "daemon/core/wait.h"

static const uint64_t owner_key[2] = {UINT64_C(0x77616974), UINT64_C(0x6f776e65)};

void waitowners_release(struct wait_owners *o)
{
	mem_free(o->item);
	buf_release(&o->text);
	*o = (struct wait_owners){0};
}

static unsigned session_listed(const struct wait_owners *o, const struct session *s)
{
	return s->listed < o->count && o->item[s->listed].session == s ? s->listed : NOBODY;
}

bool wait_owners_have(const struct wait_owners *o, const struct session *s, struct span owner)
{
	for (unsigned i = session_listed(o, s); i != NOBODY; i = o->item[i].before)
		if (span_equal(o->item[i].owner, owner))
			return true;
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

static bool permit_holds(const struct permit *p)
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

static void owner_put(struct wait_owners *o, struct wait_owner *owner, const struct entry_row *r)
{
	if (entry_put_row(&o->text, owner->rows, r))
		owner->hash += entry_row_hash(r); /* whatever their order is */
}

/* What others are known to wait for comes first, in case that not all has room. */
static void owner_put_holds(struct wait_owners *o, struct wait_owner *owner, bool wanted)
{
	const struct claim *c;

	TAILQ_FOREACH(c, &owner->session->claims, in_session)
		if (claim_holds(c) && claim_is_wanted(c) == wanted && span_equal(claim_owner(c), owner->owner))
			owner_put(o, owner, &(struct entry_row){.kind = 'h', .when = c->granted_at.us, .name = lock_name(c->lock)});
}

/* A permit, and the slots that the first of a line keeps until they are enough. */
static void owner_put_permits(struct commander *x, struct wait_owners *o, struct wait_owner *owner)
{
	const struct permit *p;

	TAILQ_FOREACH(p, &owner->session->permits, in_session) {
		struct entry_row r = {.kind = 's', .when = p->granted_at.us, .count = p->weight, .name = semaphore_name(p->semaphore)};

		if (!span_equal(permit_owner(p), owner->owner))
			continue;
		if (permit_holds(p))
			owner_put(o, owner, &r);
		r.count = 1;
		for (unsigned i = 0; i < p->seats && permit_waits(p); i++) {
			if (!seat_is_had(x, &p->seat[i]))
				continue;
			r.when = p->seat[i].claim->granted_at.us;
			owner_put(o, owner, &r);
		}
	}
}

/* That of its last request. */
static void owner_set_place(struct wait_owner *owner, int64_t place, unsigned request)
{
	if (request == 0 || place > owner->place)
		owner->place = place;
}

/* A LOCKANY of which a name is missing would seem to wait although that one is free. */
static bool owner_has_room(const struct wait_owners *o, const struct wait_owner *owner, const struct group *g)
{
	size_t n = buf_length(&o->text) - owner->rows;

	for (unsigned i = 0; i < g->parts; i++)
		n += g->part[i].n + ENTRY_ROW_MAX;
	return n <= ENTRY_MAX;
}

/* A LOCKALL needs all of its names, and a LOCKANY any of them. What it keeps of them for a while is in nobody's way. Those of the owner it does not ask for. */
static void owner_put_group(struct commander *x, struct wait_owners *o, struct wait_owner *owner, const struct group *g, unsigned request)
{
	if (g->any && !owner_has_room(o, owner, g))
		return;
	for (unsigned i = 0; i < g->parts; i++)
		if (!group_own(x, g, &g->part[i]))
			owner_put(o, owner,
			          &(struct entry_row){
					  .kind = g->any ? 'a' : 'n', .request = request, .when = g->asked_at.us, .name = part_name(&g->part[i])});
}

static unsigned owner_put_groups(struct commander *x, struct wait_owners *o, struct wait_owner *owner, unsigned request)
{
	const struct group *g;

	LIST_FOREACH(g, &owner->session->groups, in_session) {
		if (!group_waits(g) || !span_equal(group_owner(g), owner->owner))
			continue;
		owner_set_place(owner, members_clock_us(&x->engine->members, g->asked_at) - g->priority * PRIORITY_US, request);
		owner_put_group(x, o, owner, g, request++);
	}
	return request;
}

/* Of a permit of several slots those that it has are not what it waits for. */
static void owner_put_acquires(struct commander *x, struct wait_owners *o, struct wait_owner *owner, unsigned request)
{
	const struct permit *p;

	TAILQ_FOREACH(p, &owner->session->permits, in_session) {
		struct entry_row r = {.kind = 'p', .request = request, .when = p->asked_at.us, .limit = p->semaphore->limit};
		unsigned had = permit_waits(p) ? permit_slots_had(x, p) : p->weight;

		if (had >= p->weight || permit_has_no_quorum(p) || !span_equal(permit_owner(p), owner->owner))
			continue;
		owner_set_place(owner, members_clock_us(&x->engine->members, p->asked_at) - p->priority * PRIORITY_US, request);
		r.count = p->weight - had;
		r.name = semaphore_name(p->semaphore);
		owner_put(o, owner, &r);
		request++;
	}
}

/* Without a quorum a request waits for the stores, and for no owner. So does a reader that is about to join. */
static bool claim_waits_for_owners(const struct claim *c)
{
	return claim_waits(c) && c->lock->contender->state != CONTENDER_NO_QUORUM;
}

static void owner_put_wants(struct commander *x, struct wait_owners *o, struct wait_owner *owner)
{
	unsigned request = 0;
	const struct claim *c;

	TAILQ_FOREACH(c, &owner->session->claims, in_session) {
		if (!claim_waits_for_owners(c) || !span_equal(claim_owner(c), owner->owner))
			continue;
		owner_set_place(owner, ticket_place_us(x->engine, c), request);
		owner_put(o, owner, &(struct entry_row){.kind = 'n', .request = request, .when = c->asking->asked_at.us, .name = lock_name(c->lock)});
		request++;
	}
	request = owner_put_groups(x, o, owner, request);
	owner_put_acquires(x, o, owner, request);
}

void waitowner_add(struct commander *x, struct wait_owners *o, struct session *s, struct span text, const struct entry_row *row, unsigned rows)
{
	unsigned before = session_listed(o, s);
	struct wait_owner *owner;

	if (o->count == o->cap) {
		o->cap = o->cap ? 2 * o->cap : 8;
		o->item = mem_grow(o->item, o->cap, sizeof(*o->item));
	}
	s->listed = o->count++;
	owner = &o->item[s->listed];
	*owner = (struct wait_owner){.session = s, .owner = text, .before = before, .rows = buf_length(&o->text)};
	owner->owner_hash = siphash(owner_key, text.p ? text.p : "", text.n);
	owner->hash = owner->owner_hash ^ s->serial;
	for (unsigned i = 0; i < rows; i++)
		owner_put(o, owner, &row[i]);
	owner_put_wants(x, o, owner);
	owner_put_permits(x, o, owner);
	owner_put_holds(o, owner, true);
	owner_put_holds(o, owner, false);
	owner->rows_n = buf_length(&o->text) - owner->rows;
}

bool waitowner_holds(const struct commander *x, const struct session *s, struct span owner)
{
	const struct claim *c;
	const struct permit *p;

	TAILQ_FOREACH(c, &s->claims, in_session)
		if (claim_holds(c) && span_equal(claim_owner(c), owner))
			return true;
	TAILQ_FOREACH(p, &s->permits, in_session)
		if ((permit_holds(p) || (permit_waits(p) && permit_slots_had(x, p) > 0)) && span_equal(permit_owner(p), owner))
			return true;
	return false;
}

/* A request of this owner has waited since then. */
static void owner_note(struct commander *x, struct wait_owners *o, struct session *s, struct span owner, struct instant since)
{
	struct instant due = instant_add(since, waitowner_after_us(x->core));

	if (wait_owners_have(o, s, owner) || !waitowner_holds(x, s, owner))
		return;
	if (instant_before(x->core->now, due))
		o->next = instant_min(o->next, due);
	else
		waitowner_add(x, o, s, owner, NULL, 0);
}

static void session_collect(struct commander *x, struct wait_owners *o, struct session *s)
{
	const struct claim *c;
	const struct group *g;

	const struct permit *p;

	if (s->waiting == 0 || (s->held == 0 && TAILQ_EMPTY(&s->permits)) || s->over)
		return;
	TAILQ_FOREACH(c, &s->claims, in_session)
		if (claim_waits(c))
			owner_note(x, o, s, claim_owner(c), c->asking->asked_at);
	LIST_FOREACH(g, &s->groups, in_session)
		if (group_waits(g))
			owner_note(x, o, s, group_owner(g), g->asked_at);
	TAILQ_FOREACH(p, &s->permits, in_session)
		if (permit_waits(p))
			owner_note(x, o, s, permit_owner(p), p->asked_at);
}

void waitowners_collect(struct commander *x, struct wait_owners *o)
{
	struct session *s;

	o->count = 0;
	o->next = INSTANT_NEVER;
	buf_clear(&o->text);
	for (uint32_t i = 0; i < x->sessions->slots; i++)
		if (x->sessions->slot[i])
			session_collect(x, o, x->sessions->slot[i]);
	TAILQ_FOREACH(s, &x->sessions->detached, lasting->in_detached)
		session_collect(x, o, s);
}

static struct claim *owner_claim(const struct wait_owner *owner, struct span name)
{
	struct claim *c;

	TAILQ_FOREACH(c, &owner->session->claims, in_session)
		if (claim_waits(c) && span_equal(claim_owner(c), owner->owner) && span_equal(lock_name(c->lock), name))
			return c;
	return NULL;
}

static struct group *owner_group(const struct wait_owner *owner, struct span name)
{
	struct group *g;

	LIST_FOREACH(g, &owner->session->groups, in_session) {
		if (!group_waits(g) || !span_equal(group_owner(g), owner->owner))
			continue;
		for (unsigned i = 0; i < g->parts; i++)
			if (span_equal(part_name(&g->part[i]), name))
				return g;
	}
	return NULL;
}

static struct permit *owner_acquire(const struct wait_owner *owner, struct span name)
{
	struct permit *p;

	TAILQ_FOREACH(p, &owner->session->permits, in_session)
		if (permit_waits(p) && span_equal(permit_owner(p), owner->owner) && span_equal(semaphore_name(p->semaphore), name))
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

bool waitowner_refuse(struct commander *x, const struct wait_owner *owner, struct span name, struct span cycle)
{
	struct claim *c = owner_claim(owner, name);
	struct group *g = c ? NULL : owner_group(owner, name);
	struct permit *p = c || g ? NULL : owner_acquire(owner, name);

	if (c)
		claim_refuse(x, c, cycle);
	else if (g)
		group_refuse_told(x, g, cycle);
	else if (p)
		permit_refuse_told(x, p, cycle);
	return c || g || p;
}

void waitowner_hide(const struct commander *x, const struct session *s, struct waitgraph *g, unsigned owner)
{
	for (unsigned i = 0; x->core->conf.rules && i < g->wants; i++)
		g->want[i].hidden = g->want[i].owner != owner && !session_knows(x->core, s, g->want[i].name);
}

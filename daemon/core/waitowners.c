/* SPDX-License-Identifier: BSD-2-Clause */
/* See waitowners.h. */
#include "daemon/core/waitowners.h"

#include "daemon/base/mem.h"
#include "daemon/core/convert.h"
#include "daemon/core/tell.h"
#include "daemon/core/ticket.h"
#include "daemon/core/wait.h"

#include <stdlib.h>

static const uint64_t owner_key[2] = {UINT64_C(0x77616974), UINT64_C(0x6f776e65)};

void waitowners_release(struct wait_owners *o)
{
	free(o->item);
	buf_release(&o->text);
	*o = (struct wait_owners){0};
}

static bool claim_waits(const struct claim *c)
{
	return c->state == CLAIM_WAITING && c->patient && !c->ending && !c->leaving;
}

static bool group_waits(const struct group *g)
{
	return g->patient && !g->leaving && g->state != GROUP_CANCELLED;
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

/* A LOCKALL needs all of its names, and a LOCKANY any of them. What it keeps of them for a while is in nobody's way. Those of the owner it does not ask for. */
static void owner_put_group(struct commander *x, struct wait_owners *o, struct wait_owner *owner, const struct group *g, unsigned request)
{
	for (unsigned i = 0; i < g->parts; i++)
		if (!group_own(x, g, &g->part[i]))
			owner_put(o, owner,
			          &(struct entry_row){
					  .kind = g->any ? 'a' : 'n', .request = request, .when = g->asked_at.us, .name = part_name(&g->part[i])});
}

static void owner_put_groups(struct commander *x, struct wait_owners *o, struct wait_owner *owner, unsigned request)
{
	const struct group *g;

	LIST_FOREACH(g, &owner->session->groups, in_session) {
		int64_t place;

		if (!group_waits(g) || !span_equal(group_owner(g), owner->owner))
			continue;
		place = members_clock_us(&x->engine->members, g->asked_at) - g->priority * PRIORITY_US;
		if (request == 0 || place > owner->place)
			owner->place = place;
		owner_put_group(x, o, owner, g, request++);
	}
}

/* Without a quorum a request waits for the stores, and for no owner. */
static void owner_put_wants(struct commander *x, struct wait_owners *o, struct wait_owner *owner)
{
	unsigned request = 0;
	const struct claim *c;

	TAILQ_FOREACH(c, &owner->session->claims, in_session) {
		int64_t place;

		if (!claim_waits(c) || c->lock->contender->state == CONTENDER_NO_QUORUM || !span_equal(claim_owner(c), owner->owner))
			continue;
		place = ticket_place_us(x->engine, c);
		if (request == 0 || place > owner->place)
			owner->place = place;
		owner_put(o, owner, &(struct entry_row){.kind = 'n', .request = request, .when = c->asking->asked_at.us, .name = lock_name(c->lock)});
		request++;
	}
	owner_put_groups(x, o, owner, request);
}

static void owner_add(struct commander *x, struct wait_owners *o, struct session *s, struct span text)
{
	struct wait_owner *owner;

	if (o->count == o->cap) {
		o->cap = o->cap ? 2 * o->cap : 8;
		o->item = mem_grow(o->item, o->cap, sizeof(*o->item));
	}
	owner = &o->item[o->count++];
	*owner = (struct wait_owner){.session = s, .owner = text, .owner_hash = siphash(owner_key, text.p ? text.p : "", text.n), .rows = buf_length(&o->text)};
	owner->hash = owner->owner_hash ^ s->serial;
	owner_put_wants(x, o, owner);
	owner_put_holds(o, owner, true);
	owner_put_holds(o, owner, false);
	owner->rows_n = buf_length(&o->text) - owner->rows;
}

static bool owner_holds(const struct session *s, struct span owner)
{
	const struct claim *c;

	TAILQ_FOREACH(c, &s->claims, in_session)
		if (claim_holds(c) && span_equal(claim_owner(c), owner))
			return true;
	return false;
}

static bool owner_is_known(const struct wait_owners *o, const struct session *s, struct span owner)
{
	for (unsigned i = o->count; i-- > 0 && o->item[i].session == s;)
		if (span_equal(o->item[i].owner, owner))
			return true;
	return false;
}

/* A request of this owner has waited since then. */
static void owner_note(struct commander *x, struct wait_owners *o, struct session *s, struct span owner, struct instant since)
{
	struct instant due = instant_add(since, waitowner_after_us(x->core));

	if (owner_is_known(o, s, owner) || !owner_holds(s, owner))
		return;
	if (instant_before(x->core->now, due))
		o->next = instant_min(o->next, due);
	else
		owner_add(x, o, s, owner);
}

static void session_collect(struct commander *x, struct wait_owners *o, struct session *s)
{
	const struct claim *c;
	const struct group *g;

	if (s->waiting == 0 || s->held == 0 || s->over)
		return;
	TAILQ_FOREACH(c, &s->claims, in_session)
		if (claim_waits(c))
			owner_note(x, o, s, claim_owner(c), c->asking->asked_at);
	LIST_FOREACH(g, &s->groups, in_session)
		if (group_waits(g))
			owner_note(x, o, s, group_owner(g), g->asked_at);
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

static void claim_refuse(struct commander *x, struct claim *c, struct span cycle)
{
	struct lock *l = c->lock;

	if (!c->not_notified)
		tell_cycle(x, c->session, span_of(c->asking->tag), cycle);
	wait_withdraw(x->engine, c, REFUSED_AND_TOLD);
	convert_look(x->engine, l);
}

static void group_refuse_told(struct commander *x, struct group *g, struct span cycle)
{
	if (!g->not_notified)
		tell_cycle(x, g->session, span_of(g->tag), cycle);
	g->told = true;
	group_cancel(x, g);
}

bool waitowner_refuse(struct commander *x, const struct wait_owner *owner, struct span name, struct span cycle)
{
	struct claim *c = owner_claim(owner, name);
	struct group *g = c ? NULL : owner_group(owner, name);

	if (c)
		claim_refuse(x, c, cycle);
	else if (g)
		group_refuse_told(x, g, cycle);
	return c || g;
}

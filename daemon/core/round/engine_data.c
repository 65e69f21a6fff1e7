/* SPDX-License-Identifier: BSD-2-Clause */
/* See engine_data.h. */
#include "daemon/core/round/engine_data.h"

#include "daemon/base/mem.h"
#include "daemon/core/lock/lock.h"

#include <string.h>

void releases_init(struct releases *rs, struct call_table *calls)
{
	rs->calls = calls;
	pool_init(&rs->pool, sizeof(struct release));
	TAILQ_INIT(&rs->outstanding);
}

static void release_put(struct releases *rs, struct release *r)
{
	calls_close(rs->calls, &r->calls);
	pool_put(&rs->pool, r);
}

void releases_release(struct releases *rs, struct pool *pendings)
{
	for (uint32_t i = 0; i < rs->calls->slots; i++) {
		struct calls *c = rs->calls->slot[i];

		if (!c || c->owner != CALLS_OF_RELEASE)
			continue;
		pending_free(pendings, release_of_calls(c)->pending);
		release_put(rs, release_of_calls(c));
	}
	pool_release(&rs->pool);
}

struct release *release_new(struct releases *rs, enum release_kind kind, struct name *name)
{
	struct release *r = pool_get(&rs->pool);

	calls_open(rs->calls, &r->calls, CALLS_OF_RELEASE, name);
	r->kind = kind;
	r->timer.kind = TIMER_RELEASE;
	r->entry.class = kind == RELEASE_LEAVE ? ADMISSION_LEAVE : ADMISSION_GIVE_BACK;
	r->entry.owner = OWNER_RELEASE;
	return r;
}

void release_free(struct releases *rs, struct release *r)
{
	heap_cancel(&rs->calls->core->timers, &r->timer);
	release_put(rs, r);
}

struct span release_text(const struct releases *rs, const struct release *r)
{
	return r->kind == RELEASE_TICKET ? stamp_in_text(rs->calls->core, &r->ticket) : value_in_text(rs->calls->core, &r->value);
}

struct release *release_of_value(struct releases *rs, enum release_kind kind, struct name *name, const struct lease_value *value)
{
	struct release *r = release_new(rs, kind, name);

	r->value = *value;
	return r;
}

void release_enlist(struct releases *rs, struct release *r, struct nodeset nodes, struct instant until)
{
	r->unconfirmed = nodes;
	r->absent = nodeset_without(nodeset_all(rs->calls->core->conf.nodes), nodes);
	r->until = until;
	r->outstanding = true;
	TAILQ_INSERT_TAIL(&rs->outstanding, r, in_list);
	metric_add(&rs->calls->core->metrics, METRIC_OUTSTANDING_RELEASES, 1);
}

void release_delist(struct releases *rs, struct release *r)
{
	TAILQ_REMOVE(&rs->outstanding, r, in_list);
	release_undo_put_off(r, r->unconfirmed); /* where nobody has confirmed, the key has expired */
	r->outstanding = false;
	metric_add(&rs->calls->core->metrics, METRIC_OUTSTANDING_RELEASES, -1);
}

bool release_is_left(const struct releases *rs, const struct release *r)
{
	bool left = false;

	for (unsigned i = 0; i < rs->calls->core->conf.nodes; i++)
		left |= release_may_ask(rs, r, i);
	return left;
}

void release_put_off(struct release *r, unsigned node)
{
	nodeset_add(&r->put_off, node);
	nodeset_add(&r->calls.name->put_off, node);
}

struct instant release_overtaken_until(const struct releases *rs, const struct release *r, const struct answer *a)
{
	struct instant until = calls_overtaken_until(rs->calls, a->node, r->value_since, r->calls.begun);

	if (r->kind != RELEASE_LEAVE || a->code != 'E' || r->shared)
		return until;
	return instant_before(until, vote_until(r->calls.sent[a->node], a->pttl_ms * MSEC)) ? INSTANT_PAST : until;
}

/* Q says nothing about the key. A store without our value is not `absent` if an earlier call of this release, of unknown outcome, may have deleted it. */
void release_note(const struct releases *rs, struct release *r, const struct answer *a)
{
	if (a->class == ANSWER_UNKNOWN)
		nodeset_add(&r->unsure, a->node);
	if (a->class != ANSWER_EXECUTED || a->code == 'Q') {
		nodeset_remove(&r->absent, a->node); /* not carried out: it is asked again */
		return;
	}
	nodeset_add(a->code == 'R' || a->code == 'E' ? &r->done : &r->absent, a->node);
	/* A late command may have come in between: the release ran no earlier than it was sent, which may be long ago. */
	if (!instant_before(r->calls.sent[a->node], release_overtaken_until(rs, r, a)))
		nodeset_remove(&r->unconfirmed, a->node);
	if (!nodeset_has(nodeset_or(r->unsure, r->done), a->node))
		return;
	nodeset_remove(&r->absent, a->node);
	if (r->kind == RELEASE_DELETE)
		nodeset_add(&r->done, a->node); /* the key is free: DELETE needs no more */
}

static void release_fill_leave(const struct releases *rs, const struct release *r, struct call *call)
{
	call->px_ms = whole_ms(r->px_us);
	call->exact = true;
	/* A lock-delay counts from the end of the hold: it does not begin anew at a store that receives it late. */
	call->at_most = r->px_us <= r->delay_us;
	call->new_value = value_in_text(rs->calls->core, &r->left);
}

void release_send_to(struct releases *rs, struct release *r, unsigned node, struct span text)
{
	static const enum call_kind kind[] = {[RELEASE_DELETE] = CALL_RELEASE, [RELEASE_LEAVE] = CALL_EXTEND, [RELEASE_TICKET] = CALL_WITHDRAW};
	struct call *call = calls_send(rs->calls, &r->calls, node, kind[r->kind]);

	call->form = r->shared ? FORM_SHARED : FORM_ALONE;
	switch (r->kind) {
	case RELEASE_DELETE:
		call->value = text;
		break;
	case RELEASE_LEAVE:
		call->value = text;
		release_fill_leave(rs, r, call);
		break;
	case RELEASE_TICKET:
		call->ticket = text;
		break;
	}
}

void engine_init(struct engine *e, struct core *core)
{
	memset(e, 0, sizeof(*e));
	e->core = core;
	e->rng = &core->rng;
	members_init(&e->members, core);
	lock_table_init(&e->table, core);
	call_table_init(&e->calls, core, &e->members);
	rounds_init(&e->rounds, &e->calls);
	releases_init(&e->releases, &e->calls);
	notices_init(&e->notices, &e->table);
	TAILQ_INIT(&e->no_quorum);
	TAILQ_INIT(&e->risks);
	TAILQ_INIT(&e->adopting);
	TAILQ_INIT(&e->homes.asked);
	for (unsigned i = 0; i < NODES_MAX; i++)
		for (unsigned k = 0; k < HOME_LINES; k++)
			turns_init(&e->homes.waiting[i][k]);
	TAILQ_INIT(&e->homes.finished);
	for (unsigned i = 0; i < NODES_MAX; i++)
		e->homes.name[i].at = INSTANT_PAST;
	admission_init(&e->admission);
	e->admission_timer.kind = TIMER_ADMISSION;
	e->back.timer.kind = TIMER_BACK;
}

void engine_release(struct engine *e)
{
	struct timer *t;

	while ((t = heap_first(&e->core->timers)))
		heap_cancel(&e->core->timers, t); /* while the structures that embed them still exist */
	admission_release(&e->admission);
	rounds_release(&e->rounds, &e->table.pendings);
	releases_release(&e->releases, &e->table.pendings);
	call_table_release(&e->calls);
	lock_table_release(&e->table);
	notices_release(&e->notices);
}

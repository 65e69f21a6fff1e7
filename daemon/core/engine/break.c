/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks the stores who has a name, for SHOW; BREAK of what another daemon holds. */
#include "daemon/core/engine/holding.h"

#include "daemon/core/engine/move.h"
#include "daemon/core/round/round.h"

#include <string.h>

/*
 * Who has a name: the question of SHOW. It goes to the stores that have room, and changes nothing there. Whatever waits for admission comes first, so a crowd
 * of SHOWs costs nobody a lease.
 */

static struct nodeset ask_holder_whom_to_ask(const struct engine *e)
{
	struct nodeset nodes = NODESET_NONE;

	for (unsigned i = 0; i < e->core->conf.nodes; i++) {
		const struct member *m = &e->members.node[i];

		if (member_usable(m) && flow_has_room(&m->flow))
			nodeset_add(&nodes, i);
	}
	return nodes;
}

static void ask_holder_close(struct engine *e, struct round *r)
{
	r->decided = true;
	notices_add(&e->notices, NOTICE_SEEN, NULL, r->pending, NOT_REFUSED);
	r->pending = NULL;
	if (!nodeset_any(r->calls.open))
		heap_cancel(&e->core->timers, &r->timer);
}

void ask_holder_begin(struct engine *e, struct pending *p)
{
	struct round *r = round_new(&e->rounds, QUESTION_LOOK, &p->lock->name, NULL);
	struct nodeset nodes = ask_holder_whom_to_ask(e);

	r->pending = p;
	if (nodeset_count(nodes) < engine_quorum(e)) {
		ask_holder_close(e, r);
		retire_round(e, r);
		return;
	}
	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (nodeset_has(nodes, i))
			ask_look(&e->calls, r, i);
	heap_set(&e->core->timers, &r->timer, instant_add(e->core->now, e->core->conf.timeout_us));
}

/* A quorum has the same value, and this answer completes it. */
static void ask_holder_found(struct engine *e, struct round *r, const struct answer *a)
{
	struct elsewhere *seen = &r->pending->elsewhere;

	seen->known = true;
	elsewhere_note(e->core, seen, a);
	seen->limit = value_limit(answer_holder(a));
	seen->pttl_ms = round_pttl_ms(r, e->core->conf.nodes);
	seen->at = e->core->now;
}

void ask_holder_answered(struct engine *e, struct round *r, const struct answer *a)
{
	unsigned quorum = engine_quorum(e);

	if (r->decided)
		return;
	if (a->class == ANSWER_EXECUTED && a->code != 'Q')
		ticket_seen_note(e->core, &r->pending->next, a);
	if (a->class == ANSWER_EXECUTED && a->code == 'M')
		nodeset_add(&r->absent, a->node);
	if (round_same_value_at(r, e->core->conf.nodes, a->node) >= quorum)
		ask_holder_found(e, r, a);
	r->pending->free = nodeset_count(r->absent) >= quorum;
	if (r->pending->elsewhere.known || r->pending->free || !nodeset_any(r->calls.open))
		ask_holder_close(e, r);
}

void ask_holder_expired(struct engine *e, struct round *r)
{
	ask_holder_close(e, r);
	retire_round(e, r);
}

/*
 * A lock of another daemon, or of an unknown holder, is taken from its holder by force. At each store, the value that a quorum has is replaced by one that
 * nobody can renew and that keeps the TTL. So nobody gets the lock before its holder can no longer rely on it. The daemon of the holder finds that at its
 * next renewal, and sends LOST; when the holder has acknowledged this, it releases the keys. A value that no redlockd wrote is deleted.
 * See ALGORITHMS.md, Breaking a lock.
 */

static void break_close(struct engine *e, struct round *r, enum refusal why)
{
	r->decided = true;
	notices_add(&e->notices, NOTICE_SEEN, NULL, r->pending, why);
	r->pending = NULL;
	if (!nodeset_any(r->calls.open))
		heap_cancel(&e->core->timers, &r->timer);
}

/* what: "" asks what is there. */
static void break_ask(struct engine *e, struct pending *p, enum question question, struct span what)
{
	struct round *r = round_new(&e->rounds, question, &p->lock->name, NULL);

	r->pending = p;
	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (member_usable(&e->members.node[i]))
			ask_break(&e->calls, r, i, what);
	if (nodeset_count(r->calls.asked) < engine_quorum(e))
		break_close(e, r, REFUSED_QUORUM);
	else
		heap_set(&e->core->timers, &r->timer, instant_add(e->core->now, e->core->conf.timeout_us));
	retire_round(e, r);
}

void break_begin(struct engine *e, struct pending *p)
{
	break_ask(e, p, QUESTION_HOLDER, SPAN(""));
}

/* A quorum has, or had, this value. If a session here has become the holder since then, it is not the one that was to be broken. */
static void break_found(struct engine *e, struct round *r, struct span what)
{
	struct pending *p = r->pending;
	char *text;

	if (p->lock->holder) {
		p->free = true;
		break_close(e, r, NOT_REFUSED);
		return;
	}
	r->decided = true;
	r->pending = NULL;
	text = arena_alloc(&e->core->out->arena, what.n + 1);
	memcpy(text, what.p, what.n);
	break_ask(e, p, QUESTION_BREAK, (struct span){text, what.n});
}

static void holder_answered(struct engine *e, struct round *r, const struct answer *a)
{
	unsigned nodes = e->core->conf.nodes, quorum = engine_quorum(e);

	if (a->class == ANSWER_EXECUTED && a->code == 'B' && round_same_value_at(r, nodes, a->node) >= quorum) {
		break_found(e, r, a->found);
	} else if (nodeset_count(r->wrong_type) >= quorum) {
		break_close(e, r, REFUSED_KIND);
	} else if (nodeset_count(r->absent) >= quorum || (!nodeset_any(r->calls.open) && nodeset_count(nodeset_or(r->absent, r->taken)) >= quorum)) {
		r->pending->free = true; /* free, or nobody has a quorum */
		break_close(e, r, NOT_REFUSED);
	} else if (!nodeset_any(r->calls.open)) {
		break_close(e, r, REFUSED_QUORUM);
	}
}

/*
 * The result of the answers so far. A store without the key breaks nothing: the daemon of the holder may put the key back there, as long as it finds enough
 * others. But if a quorum has no key, nobody holds the lock.
 */
static enum refusal broken_outcome(const struct engine *e, struct round *r)
{
	unsigned nodes = e->core->conf.nodes, quorum = engine_quorum(e);
	struct nodeset other = nodeset_without(r->taken, r->granted), stopped = nodeset_or(r->taken, r->granted);

	/* Its holder has changed, or has given it up. */
	r->pending->free = nodeset_count(other) >= quorum || (!nodeset_any(r->granted) && nodeset_count(r->absent) >= quorum);
	r->pending->elsewhere.pttl_ms = round_pttl_ms(r, nodes);
	return r->pending->free || nodeset_count(stopped) >= quorum || nodeset_count(r->absent) >= quorum ? NOT_REFUSED : REFUSED_QUORUM;
}

/* granted: the stores that have broken the value, or deleted it. */
static void broken_answered(struct engine *e, struct round *r, const struct answer *a)
{
	if (a->class == ANSWER_EXECUTED && a->code == 'X') {
		nodeset_add(&r->taken, a->node);
		r->pttl_ms[a->node] = a->pttl_ms;
	}
	if (a->class == ANSWER_EXECUTED && (a->code == 'X' || a->code == 'R'))
		nodeset_add(&r->granted, a->node);
	if (!nodeset_any(r->calls.open))
		break_close(e, r, broken_outcome(e, r));
}

void break_answered(struct engine *e, struct round *r, const struct answer *a)
{
	if (r->decided)
		return;
	if (a->class == ANSWER_EXECUTED && (a->code == 'M' || a->code == 'R'))
		nodeset_add(&r->absent, a->node);
	if (r->question == QUESTION_HOLDER)
		holder_answered(e, r, a);
	else
		broken_answered(e, r, a);
}

/* What a quorum has done by now counts, although other stores are silent. */
void break_expired(struct engine *e, struct round *r)
{
	break_close(e, r, r->question == QUESTION_BREAK ? broken_outcome(e, r) : REFUSED_QUORUM);
	retire_round(e, r);
}

void break_reported(struct engine *e, struct span name)
{
	struct lock *l = lock_find_text(&e->table, name);
	struct lease *x = l ? &l->lease : NULL;

	if (!x || x->state != LEASE_HELD || !x->auto_renew)
		return;
	if (x->renewal->round) {
		x->renewal->doubted = true;
		return;
	}
	x->renew_at = e->core->now;
	lease_schedule(e, x);
}

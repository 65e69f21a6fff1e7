/* SPDX-License-Identifier: BSD-2-Clause */
/* The invariants, what the faults of a plan leave of them, and the first violation. */
#include "tests/sim/world/world.h"

#include <stdarg.h>
#include <stdlib.h>

#define CHECKED true
#define PENDING false

const struct invariant_row invariant_table[INVARIANT_N] = {
	[INVARIANT_NONE] = {"none", CLASS_X, false, ""},
#define INVARIANT(id, class, state, what) [INVARIANT_##id] = {#id, CLASS_##class, state, what},
#include "tests/sim/check/invariant.def"
#undef INVARIANT
};

bool fault_forgets(const struct fault *f)
{
	return f->kind == FAULT_NODE_BLANK || f->kind == FAULT_NODE_OLD || f->kind == FAULT_NODE_FLUSH || (f->kind == FAULT_NODE_SAME_REPLID && f->x != 0);
}

/* How far the clock of the node can fall behind its latest reading. The healing sets back a clock that is ahead. */
static int64_t falls_back_us(const struct plan *p, int64_t node)
{
	int64_t ahead = 0, back = 0;

	for (unsigned i = 0; i < p->faults; i++) {
		if (p->fault[i].kind != FAULT_NODE_CLOCK || p->fault[i].a % p->nodes != node)
			continue;
		if (p->fault[i].x > 0)
			ahead += p->fault[i].x;
		else
			back -= p->fault[i].x;
	}
	return ahead > back ? ahead : back;
}

/*
 * redlockd(8) promises growing tokens whatever the clocks do, as long as no more than a minority of the servers loses its memory; else as long as no clock
 * falls back by more than half of max_lease. It promises nothing about a host that was set back to a snapshot, until its older fence is noticed. A server of
 * another configuration hides its fence: to the others it counts as one that lost its memory.
 */
static bool tokens_are_safe(const struct plan *p)
{
	bool forgets[NODES_MAX] = {false};
	unsigned count = 0;
	int64_t back = 0;

	for (unsigned i = 0; i < p->faults; i++) {
		const struct fault *f = &p->fault[i];

		if (f->kind == FAULT_NODE_ROLLBACK)
			return false;
		if (fault_forgets(f) && !forgets[f->a % p->nodes])
			forgets[f->a % p->nodes] = true, count++;
	}
	for (int64_t i = 0; i < p->nodes; i++)
		back = falls_back_us(p, i) > back ? falls_back_us(p, i) : back;
	return back <= p->max_lease_us / 2 || (2 * count < p->nodes && !p->stranger);
}

/*
 * redlockd(8) promises exclusion while no more than a minority of the servers has its clock set forward, however far. The healing sets a clock forward that was
 * set back.
 */
static bool exclusion_is_safe(const struct plan *p)
{
	bool ahead[NODES_MAX] = {false};
	unsigned count = 0;

	for (unsigned i = 0; i < p->faults; i++) {
		const struct fault *f = &p->fault[i];

		if (fault_table[f->kind].class == CLASS_T)
			continue;
		if (f->kind != FAULT_NODE_CLOCK)
			return false;
		if (!ahead[f->a % p->nodes])
			ahead[f->a % p->nodes] = true, count++;
	}
	return 2 * count < plan_nodes_least(p);
}

void checker_init(struct world *w)
{
	struct checker *k = &w->checker;

	w->tokens_are_safe = tokens_are_safe(w->plan);
	w->exclusion_is_safe = exclusion_is_safe(w->plan);
	TAILQ_INIT(&k->syncs);
	for (unsigned d = 0; d < DAEMONS_MAX; d++) {
		k->due[d] = INT64_MAX;
		for (unsigned n = 0; n < NAMES_MAX; n++)
			TAILQ_INIT(&k->waiters[d][n]);
	}
	for (unsigned n = 0; n < NAMES_MAX; n++)
		k->free_since[n] = INT64_MAX;
}

void checker_release(struct world *w)
{
	for (unsigned d = 0; d < DAEMONS_MAX; d++)
		free(w->checker.serials[d].released);
	free(w->checker.tokens.slot);
	free(w->checker.read_tokens.item);
	free(w->checker.delays.row);
}

/*
 * A daemon that never asked a server before its clock was set forward does not notice that, unless the clock is too far off; and none notices a step of less
 * than 50 ms: see redlockd(8). What it granted since is no breach as long as keys may stand that the step has shortened.
 */
static bool step_is_unseen(const struct world *w)
{
	int64_t longest = w->plan->max_lease_us + w->plan->delay_us;

	for (unsigned i = 0; i < w->plan->nodes; i++) {
		const struct server *s = &w->server[i];

		if (s->nudged_at && w->now - s->nudged_at <= longest)
			return true;
		if (!s->ahead_at || w->now - s->ahead_at > longest)
			continue;
		for (unsigned d = 0; d < w->plan->daemons; d++)
			if (w->daemon[d].link[i].met_at != INT64_MAX && w->daemon[d].link[i].met_at > s->ahead_at)
				return true;
	}
	return false;
}

/*
 * Invariants of class T that hold in this world of class X as well. Where all clocks were set back alike no key ends early; but tickets, which are times of
 * those clocks, are no longer ordered, and a key that nobody releases blocks its name for longer.
 */
static bool holds_in_x_too(const struct world *w, enum invariant what, int64_t name)
{
	bool in_the_way = what >= INVARIANT_L1 && name >= 0 && outlives_its_lease(w, name);

	return (what == INVARIANT_S1 && w->exclusion_is_safe && !step_is_unseen(w)) || (w->set_back_us > 0 && what != INVARIANT_S20 && !in_the_way);
}

void checker_fail(struct world *w, enum invariant what, int64_t name, const char *format, ...)
{
	struct violation *v = &w->checker.violation;
	va_list list;

	if (w->strange && (what == INVARIANT_L4 || (what >= INVARIANT_L1 && what <= INVARIANT_L3) || what == INVARIANT_L6 || what == INVARIANT_L9))
		return;
	if (v->what != INVARIANT_NONE || (invariant_table[what].class == CLASS_T && w->class == CLASS_X && !holds_in_x_too(w, what, name)))
		return;
	v->what = what;
	v->at = w->now;
	v->name = name;
	va_start(list, format);
	vsnprintf(v->text, sizeof(v->text), format, list);
	va_end(list);
	w->failed = true;
	world_note(w, 0xdead, what, "VIOLATION %s: %s", invariant_table[what].word, v->text);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Values that one run of a daemon adopts from another: each value is adopted once (S12), and a later run is not refused what previous runs left (L10). */
#include "tests/sim/world/world.h"

#include <stdlib.h>

static bool is_adoption(const struct call *call)
{
	return call->kind == CALL_EXTEND && !call->exact && !span_equal(call->value, call->new_value);
}

bool lineage_has(const struct lineage *k, struct span value)
{
	uint64_t hash = hash_bytes(value.p, value.n);

	for (unsigned i = 0; i < k->count && i < LINEAGE_MAX; i++)
		if (k->value[i] == hash)
			return true;
	return false;
}

static void lineage_push(struct lineage *k, struct span value)
{
	memmove(k->value + 1, k->value, (LINEAGE_MAX - 1) * sizeof(k->value[0]));
	k->value[0] = hash_bytes(value.p, value.n);
	k->count++;
}

/* A store is asked to replace a value of the lease by another. */
static void lineage_add(struct lineage *k, const struct call *call)
{
	if (!lineage_has(k, call->value)) {
		k->count = 0;
		lineage_push(k, call->value);
	}
	if (!lineage_has(k, call->new_value))
		lineage_push(k, call->new_value);
}

void lineage_call(struct sim_daemon *d, const struct call *call, int64_t name)
{
	if (is_adoption(call))
		lineage_add(&d->world->checker.lineage[d->index][name], call);
}

static bool is_quorum(const struct sim_daemon *d, uint16_t nodes)
{
	return 2 * (unsigned)__builtin_popcount(nodes) > d->conf.nodes;
}

static struct adoption *adoption_add(struct adoptions *all)
{
	if (all->count == all->cap) {
		all->cap = all->cap ? 2 * all->cap : 16;
		all->item = realloc(all->item, all->cap * sizeof(*all->item));
		if (!all->item)
			abort();
	}
	return &all->item[all->count++];
}

/* S12: a quorum of nodes replaces each value once at most. */
static void adoption_check(struct server *s, const struct flight *f, unsigned i)
{
	struct world *w = s->world;
	struct adoptions *all = &w->checker.adoptions;
	const struct call *call = &f->call[i];
	uint64_t from, to;
	struct adoption *mine = NULL, *a;

	if (f->answer[i].code != 'E')
		return;
	from = hash_bytes(call->value.p, call->value.n);
	to = hash_bytes(call->new_value.p, call->new_value.n);
	for (a = all->item; a < all->item + all->count; a++)
		if (a->from == from && a->to == to)
			mine = a;
	if (!mine) {
		mine = adoption_add(all);
		*mine = (struct adoption){.from = from, .to = to, .daemon = f->daemon->index};
	}
	mine->nodes |= (uint16_t)(1u << s->index);
	mine->done |= is_quorum(f->daemon, mine->nodes);
	w->tally.adopted += mine->done && 2 * (unsigned)(__builtin_popcount(mine->nodes) - 1) <= f->daemon->conf.nodes;
	for (a = all->item; a < all->item + all->count; a++)
		if (a != mine && a->from == from && a->done && mine->done)
			checker_fail(w, INVARIANT_S12, name_number(call->name), "%.*s: adopted twice", (int)call->name.n, call->name.p);
}

static void adoption_undo(struct adoption *a, const struct server *s)
{
	a->nodes &= (uint16_t)~(1u << s->index);
	a->done = is_quorum(&s->world->daemon[a->daemon], a->nodes);
}

void lineage_set_back(struct server *s)
{
	struct adoptions *all = &s->world->checker.adoptions;

	for (struct adoption *a = all->item; a < all->item + all->count; a++)
		adoption_undo(a, s);
}

/* A daemon put its own value back that another daemon, on a copy of its journal, had adopted and released. */
static void put_back_check(struct server *s, const struct flight *f, unsigned i)
{
	struct adoptions *all = &s->world->checker.adoptions;
	const struct call *call = &f->call[i];
	uint64_t value = hash_bytes(call->new_value.p, call->new_value.n);

	for (struct adoption *a = all->item; a < all->item + all->count; a++)
		if (a->from == value && a->daemon != f->daemon->index)
			adoption_undo(a, s);
}

/* L10: a node refuses a value to the present run of a daemon, though a quorum of nodes has what previous runs of that daemon left. */
static void lineage_check(struct server *s, const struct flight *f, unsigned i)
{
	struct world *w = s->world;
	const struct call *call = &f->call[i];
	int64_t name = name_number(call->name), expires;
	const struct lineage *k = &w->checker.lineage[f->daemon->index][name < 0 ? 0 : name];
	struct span value;
	unsigned stands = 0;

	if (name < 0 || f->answer[i].code != 'B' || f->run != f->daemon->run || !daemon_is_up(f->daemon) || k->count > LINEAGE_MAX)
		return;
	if (!sim_node_get(s->node, call->name, server_wall(s), &value, &expires) || !lineage_has(k, value))
		return;
	for (unsigned n = 0; n < w->plan->nodes; n++)
		stands += daemon_has_server(f->daemon, n) && sim_node_get(w->server[n].node, call->name, server_wall(&w->server[n]), &value, &expires) &&
			  lineage_has(k, value);
	if (2 * stands > f->daemon->conf.nodes)
		checker_fail(w, INVARIANT_L10, name, "%s: node %u refuses daemon %u what a previous run of it left there", name_of(name), s->index,
			     f->daemon->index);
}

/* S11: a key that UNLOCK or a lock-delay left behind is never extended, however late the extension arrives. */
static void left_behind_check(struct server *s, const struct call *call, char code)
{
	int64_t name = name_number(call->name);
	uint64_t value;

	if (name < 0 || call->kind != CALL_EXTEND || code != 'E')
		return;
	value = hash_bytes(call->new_value.p, call->new_value.n);
	if (call->exact)
		s->left_behind[name] = value;
	else if (s->left_behind[name] == value)
		checker_fail(s->world, INVARIANT_S11, name, "%s: node %u extends a key that was left behind", name_of(name), s->index);
}

void lineage_ran(struct server *s, const struct flight *f, unsigned i)
{
	left_behind_check(s, &f->call[i], f->answer[i].code);
	if (is_adoption(&f->call[i])) {
		adoption_check(s, f, i);
		lineage_check(s, f, i);
	} else if (f->call[i].kind == CALL_EXTEND && f->answer[i].code == 'A') {
		put_back_check(s, f, i);
	}
}

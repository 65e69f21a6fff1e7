/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values that a daemon gave up: they do not stay at a node that it can reach (L8), whatever became of the command that set them or of the first release.
 * Neither this run of the daemon nor a later one adopts them (S11).
 */
#include "tests/sim/world/world.h"

#define CHECK_EVERY_US (50 * MSEC)
#define LEFTOVER_US    (300 * MSEC) /* a reachable node loses the value within this time and two timeouts */
#define FULL           32           /* calls per node that a daemon keeps under way where no window is drawn: see daemon/core/member/admission.h */

void released_note(struct sim_daemon *d, struct span value)
{
	struct released_values *all = &d->world->checker.released[d->index];

	all->value[all->count % RELEASED_MAX] = hash_bytes(value.p, value.n);
	all->run[all->count++ % RELEASED_MAX] = d->run;
}

static bool was_released(const struct sim_daemon *d, uint64_t hash)
{
	const struct released_values *all = &d->world->checker.released[d->index];

	for (unsigned i = 0; i < all->count && i < RELEASED_MAX; i++)
		if (all->value[i] == hash && all->run[i] == d->run)
			return true;
	return false;
}

/* A value whose release a torn journal may have lost is adopted in good faith. */
void released_adopted(struct sim_daemon *d, const struct call *call, int64_t name)
{
	const struct released_values *all = &d->world->checker.released[d->index];
	uint64_t value = hash_bytes(call->value.p, call->value.n);

	for (unsigned i = 0; i < all->count && i < RELEASED_MAX; i++)
		if (all->value[i] == value && all->run[i] > d->journal.torn)
			checker_fail(d->world, INVARIANT_S11, name,
				     "%s: daemon %u adopts a value that was released", name_of(name), d->index);
}

/* A command of a previous run came late, perhaps after the last release: that run may have known the node's clock badly. */
static bool is_stray(const struct flight *f)
{
	return f->run != f->daemon->run && f->server->world->now - f->wanted_at > f->server->world->plan->timeout_us;
}

void released_ran(struct server *s, const struct flight *f, unsigned i)
{
	int64_t name = name_number(f->call[i].name);

	if (name >= 0 && (f->answer[i].code == 'G' || f->answer[i].code == 'A' || f->answer[i].code == 'E'))
		s->stray[name] = is_stray(f);
}

/* The value at the node, as a hash, if this run of the daemon has released it; 0: none such. */
static uint64_t leftover_value(const struct sim_daemon *d, const struct server *s, int64_t name)
{
	struct span value;
	int64_t expires;
	bool left = !s->stray[name] && sim_node_get(s->node, name_span(name), server_wall(s), &value, &expires) &&
		    was_released(d, hash_bytes(value.p, value.n));

	return left ? hash_bytes(value.p, value.n) : 0;
}

static bool is_full(const struct sim_link *l, int64_t window)
{
	const struct flight *f;
	unsigned open = 0;

	TAILQ_FOREACH(f, &l->flights, in_link)
	{
		open += f->count;
	}
	return open >= (window > 0 ? (unsigned)window : FULL);
}

static bool is_reachable(const struct sim_daemon *d, const struct server *s)
{
	return d->link[s->index].up && !s->down && sim_node_is_well(s->node) && s->stepped_us == 0;
}

static void leftover_check(struct sim_daemon *d, unsigned node, bool reachable, int64_t name)
{
	struct world *w = d->world;
	struct leftover *l = &w->checker.leftover[d->index][node][name];
	uint64_t value = reachable ? leftover_value(d, &w->server[node], name) : 0;
	int64_t from, prompt;

	if (value != l->value || (value != 0 && is_full(&d->link[node], w->plan->window)))
		*l = (struct leftover){.value = value, .since = w->now};
	if (value == 0)
		return;
	prompt = link_prompt_since(&d->link[node]);
	from = l->since > prompt ? l->since : prompt;
	from = from > d->link[node].up_since ? from : d->link[node].up_since; /* without a link the daemon may have had nothing to do, so nobody looked */
	from = from > w->checker.awake_since[d->index] ? from : w->checker.awake_since[d->index];
	from = from > d->admission_waited_at ? from : d->admission_waited_at; /* late renewals go before releases, and may take all the room */
	if (prompt != INT64_MAX && w->now - from > LEFTOVER_US + 2 * w->plan->timeout_us)
		checker_fail(w, INVARIANT_L8, name,
			     "%s: daemon %u gave up a value, can reach node %u since %lld us, and its key still stands there", name_of(name), d->index,
			     node, (long long)from);
}

void released_step(struct sim_daemon *d)
{
	struct world *w = d->world;
	int64_t *at = &w->checker.leftover_at[d->index];

	if (w->now < *at)
		return;
	*at = w->now + CHECK_EVERY_US;
	for (unsigned node = 0; node < w->plan->nodes; node++) {
		bool reachable = is_reachable(d, &w->server[node]);

		for (int64_t name = 0; name < w->plan->names; name++)
			leftover_check(d, node, reachable, name);
	}
}

void released_run_begins(struct sim_daemon *d)
{
	memset(d->world->checker.leftover[d->index], 0, sizeof(d->world->checker.leftover[d->index]));
}

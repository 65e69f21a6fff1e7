/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values that a daemon gave up: they do not stay at a node that it can reach (L8), whatever became of the command that set them or of the first release; nor do
 * the values that they were to replace. No later run of the daemon adopts them (S11).
 */
#include "tests/sim/world/world.h"

#define CHECK_EVERY_US (50 * MSEC)
#define LEFTOVER_US    (300 * MSEC) /* a reachable node loses the value within this time and two timeouts */
#define FULL           32           /* calls per node that a daemon keeps under way where no window is drawn: see daemon/core/flow.h */

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
		if (all->value[i] == value && all->run[i] < d->run && all->run[i] > d->journal.torn[d->index])
			checker_fail(d->world, INVARIANT_S11, name,
				     "%s: daemon %u adopts a value that a previous run of it had released", name_of(name), d->index);
}

/* The value belongs to another daemon that is up: one runs on a copy of the other's directory. */
static bool is_of_another(const struct sim_daemon *d, struct span value)
{
	for (unsigned i = 0; i < d->world->plan->daemons; i++) {
		const struct sim_daemon *other = &d->world->daemon[i];

		if (other != d && daemon_is_up(other) && daemon_wrote(other, value))
			return true;
	}
	return false;
}

/* A value of this run was to replace that value, and was released. */
static bool was_replaced(const struct sim_daemon *d, int64_t name, struct span value)
{
	const struct lineage *k = &d->world->checker.lineage[d->index][name];

	return k->count > 1 && k->count <= LINEAGE_MAX && lineage_has(k, value) && was_released(d, k->value[0]);
}

/* A released value of this run, or a value that it was to replace. */
static bool is_given_up(const struct sim_daemon *d, int64_t name, struct span value)
{
	if (recount_is_released(d, value) && was_released(d, hash_bytes(value.p, value.n)))
		return true;
	return was_replaced(d, name, value) && !is_of_another(d, value);
}

/* The daemon put back a value of its own that another daemon, on a copy of its directory, gave up: the other one did all it could. */
static bool is_put_back(const struct flight *f, unsigned i, int64_t name)
{
	const struct world *w = f->daemon->world;

	for (unsigned d = 0; d < w->plan->daemons; d++)
		if (&w->daemon[d] != f->daemon && was_replaced(&w->daemon[d], name, f->call[i].value))
			return true;
	return false;
}

/* A command of a previous run came late, perhaps after the last release: that run may have known the node's clock badly. */
static bool is_stray(const struct flight *f)
{
	return f->run != f->daemon->run && f->server->world->now - f->wanted_at > f->server->world->plan->timeout_us;
}

void released_ran(struct server *s, const struct flight *f, unsigned i)
{
	int64_t name = name_number(f->call[i].name);

	if (name >= 0 && (f->answer[i].code == 'G' || f->answer[i].code == 'A' || f->answer[i].code == 'E')) {
		s->stray[name] = is_stray(f) || is_put_back(f, i, name);
		s->setter[name].daemon = f->daemon;
		s->setter[name].at = s->world->now;
	}
}

/* Another daemon, on a copy of the directory, set the value while this one had it as well: the key is not this one's to release. */
static bool is_of_a_copy(const struct sim_daemon *d, const struct server *s, int64_t name)
{
	return s->setter[name].daemon && s->setter[name].daemon != d && s->setter[name].at > d->started_at;
}

/* The value at the node, as a hash, if this run of the daemon has given it up; 0: none such. */
static uint64_t leftover_value(const struct sim_daemon *d, const struct server *s, int64_t name)
{
	struct span value;
	int64_t expires;
	bool left = !s->stray[name] && !is_of_a_copy(d, s, name) && sim_node_get(s->node, name_span(name), server_wall(s), &value, &expires) &&
		    is_given_up(d, name, value);

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

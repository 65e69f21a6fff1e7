/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock-delay of each value, and of each grant, where each job has its own. A key has the TTL of lease and delay together. In such worlds each LOCK asks for
 * a multiple of DELAY_STEP_MS, and the rest of a division by that tells the delay: see plan/spread.c.
 */
#include "tests/sim/world/world.h"

#include <stdlib.h>

static struct delay_row *row_of(const struct delays *all, uint64_t key)
{
	size_t at = mix(key, 0) & (all->cap - 1);

	while (all->row[at].key && all->row[at].key != key)
		at = (at + 1) & (all->cap - 1);
	return &all->row[at];
}

static void row_put(struct delays *all, uint64_t key, int64_t delay_us)
{
	struct delay_row *row = row_of(all, key);

	all->count += !row->key;
	*row = (struct delay_row){key, delay_us};
}

static void delay_put(struct delays *all, uint64_t key, int64_t delay_us)
{
	struct delays old = *all;

	if (2 * all->count >= all->cap) {
		*all = (struct delays){.cap = old.cap ? 2 * old.cap : 256};
		all->row = calloc(all->cap, sizeof(*all->row));
		if (!all->row)
			abort();
		for (size_t i = 0; i < old.cap; i++)
			if (old.row[i].key)
				row_put(all, old.row[i].key, old.row[i].delay_us);
		free(old.row);
	}
	row_put(all, key, delay_us);
}

/* False: nothing is known of that key. */
static bool delay_get(const struct delays *all, uint64_t key, int64_t *ret_delay_us)
{
	const struct delay_row *row = all->cap ? row_of(all, key) : NULL;

	if (!row || !row->key)
		return false;
	*ret_delay_us = row->delay_us;
	return true;
}

static uint64_t value_key(struct span value)
{
	return hash_bytes(value.p, value.n) | 1;
}

static uint64_t grant_key(int64_t name, int64_t fence)
{
	return mix((uint64_t)fence, (uint64_t)name) << 1 | 1;
}

static struct span value_of(const struct call *call)
{
	return call->kind == CALL_EXTEND ? call->new_value : call->value;
}

void delays_call(struct sim_daemon *d, const struct call *call)
{
	struct world *w = d->world;
	struct delays *all = &w->checker.delays;
	int64_t delay_us;

	if (!plan_mixes_delays(w->plan) || (call->kind != CALL_ACQUIRE && call->kind != CALL_EXTEND))
		return;
	if (call->kind == CALL_ACQUIRE) {
		delay_put(all, value_key(call->value), plan_delay_us(w->plan, call->px_ms % DELAY_STEP_MS));
		return;
	}
	if (!delay_get(all, value_key(call->value), &delay_us))
		return;
	if (delay_us > d->conf.max_delay_us)
		delay_us = d->conf.max_delay_us; /* of the next generation: it is adopted on its terms */
	delay_put(all, value_key(call->new_value), delay_us);
}

int64_t delay_of_call(const struct world *w, const struct call *call)
{
	int64_t delay_us = w->plan->delay_us;

	if (plan_mixes_delays(w->plan) && !call->exact)
		delay_get(&w->checker.delays, value_key(value_of(call)), &delay_us);
	return delay_us;
}

void delay_granted(struct world *w, int64_t name, int64_t fence, int64_t delay_us)
{
	if (plan_mixes_delays(w->plan))
		delay_put(&w->checker.delays, grant_key(name, fence), delay_us);
}

int64_t delay_of_grant(const struct world *w, int64_t name, int64_t fence)
{
	int64_t delay_us = 0;

	if (!plan_mixes_delays(w->plan))
		return w->plan->delay_us;
	delay_get(&w->checker.delays, grant_key(name, fence), &delay_us);
	return delay_us;
}

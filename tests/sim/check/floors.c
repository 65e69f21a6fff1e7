/* SPDX-License-Identifier: BSD-2-Clause */
/* S3: which token each grant of a lease must exceed: the largest that was returned before the lease began, also when another run continues it. */
#include "tests/sim/world/world.h"

static const int64_t *floor_of(const struct floors *k, struct span value)
{
	uint64_t hash = hash_bytes(value.p, value.n);

	for (unsigned i = 0; i < k->count && i < FLOORS_MAX; i++)
		if (k->value[i] == hash)
			return &k->floor[i];
	return NULL;
}

void floor_keep(struct world *w, int64_t name, uint64_t value, int64_t floor)
{
	struct floors *k = &w->checker.floors[name];

	k->value[k->count % FLOORS_MAX] = value;
	k->floor[k->count % FLOORS_MAX] = floor;
	k->count++;
}

/* An adoption continues a lease. */
int64_t floor_of_lease(const struct world *w, const struct call *call, int64_t name)
{
	const int64_t *floor = call->kind == CALL_EXTEND ? floor_of(&w->checker.floors[name], call->value) : NULL;

	return floor ? *floor : w->checker.returned[name];
}

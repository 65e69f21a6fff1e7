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

/*
 * An adoption continues a lease. A daemon that stood still while another was started on a copy of its directory may have handed the lease over before the other
 * adopts it, or before it was itself ended and started on the copy: the adopted token is smaller than one that was returned since.
 */
int64_t floor_of_lease(const struct world *w, const struct call *call, int64_t name)
{
	struct span rest = call->prior, value = call->value;
	const int64_t *floor = NULL;

	if (call->kind != CALL_EXTEND || span_equal(call->value, call->new_value))
		return w->checker.returned[name];
	do
		floor = floor_of(&w->checker.floors[name], value);
	while (!floor && span_word(&rest, &value));
	return floor ? *floor : w->checker.returned[name];
}

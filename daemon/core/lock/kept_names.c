/* SPDX-License-Identifier: BSD-2-Clause */
/* See kept_names.h. */
#include "daemon/core/lock/kept_names.h"

static int64_t step_of(unsigned ring, struct instant at)
{
	return at.us / (SEC << 4 * ring);
}

static void ring_look(struct kept_ring *r, int64_t step)
{
	if (step - r->step >= KEPT_STEPS)
		r->step = step - KEPT_STEPS; /* each place is cleared once */
	for (; r->step < step; r->step++) {
		uint32_t *over = &r->ends[r->step % KEPT_STEPS];

		r->total -= *over;
		*over = 0;
	}
}

uint64_t kept_bytes_count(struct kept_bytes *k, struct instant now)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < KEPT_RINGS; i++) {
		ring_look(&k->ring[i], step_of(i, now));
		total += k->ring[i].total;
	}
	return total;
}

static void kept_bytes_add(struct kept_bytes *k, struct instant now, int64_t keep_us, size_t bytes)
{
	unsigned i = 0;

	while (i + 1 < KEPT_RINGS && keep_us > 64 * (SEC << 4 * i))
		i++;
	(void)kept_bytes_count(k, now);
	k->ring[i].ends[step_of(i, instant_add(now, keep_us)) % KEPT_STEPS] += (uint32_t)bytes;
	k->ring[i].total += bytes;
}

void kept_names_add(struct kept_names *k, const struct origin *o, struct instant now, int64_t us, size_t n)
{
	kept_bytes_add(&k->all, now, us, n + NAME_BYTES);
	kept_bytes_add(kept_of_peer(k, o), now, us, n + NAME_BYTES);
}

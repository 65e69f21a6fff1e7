/* SPDX-License-Identifier: BSD-2-Clause */
/* Computes pauses. It never waits and reads no clock. */
#include "daemon/base/backoff.h"

#include <assert.h>

void backoff_init(struct backoff *b, int64_t base_us, int64_t cap_us)
{
	assert(base_us > 0 && cap_us >= base_us);
	*b = (struct backoff){.base_us = base_us, .cap_us = cap_us};
}

static int64_t backoff_ceiling(const struct backoff *b)
{
	if (b->base_us > b->cap_us >> b->tries) /* cap >> 63 is 0, so tries never exceeds 63 */
		return b->cap_us;
	return b->base_us << b->tries;
}

int64_t backoff_next(struct backoff *b, struct rng *r)
{
	int64_t ceiling = backoff_ceiling(b), half = ceiling - ceiling / 2;

	if (ceiling < b->cap_us)
		b->tries++;
	return half + (int64_t)rng_below(r, (uint64_t)(ceiling - half) + 1);
}

void backoff_reset(struct backoff *b)
{
	b->tries = 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* See kept_names.h. */
#include "daemon/core/kept_names.h"

static int64_t step_of(struct instant at)
{
	return at.us / KEPT_STEP_US;
}

uint32_t kept_names_count(struct kept_names *k, struct instant now)
{
	int64_t step = step_of(now);

	if (step - k->step >= KEPT_STEPS)
		k->step = step - KEPT_STEPS; /* each place is cleared once */
	for (; k->step < step; k->step++) {
		uint32_t *over = &k->ends[k->step % KEPT_STEPS];

		k->total -= *over;
		*over = 0;
	}
	return k->total;
}

void kept_names_add(struct kept_names *k, struct instant now, int64_t keep_us)
{
	(void)kept_names_count(k, now);
	k->ends[step_of(instant_add(now, keep_us)) % KEPT_STEPS]++;
	k->total++;
}

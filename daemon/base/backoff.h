/* SPDX-License-Identifier: BSD-2-Clause */
/* Capped exponential back-off with jitter: the n-th pause is uniform in [0.5, 1.0] x min(cap, base x 2^n). */
#ifndef BASE_BACKOFF_H
#define BASE_BACKOFF_H

#include "daemon/base/rng.h"
#include <stdint.h>

struct backoff {
	int64_t base_us, cap_us;
	unsigned tries;
};

void backoff_init(struct backoff *b, int64_t base_us, int64_t cap_us);
int64_t backoff_next(struct backoff *b, struct rng *r); /* microseconds to wait now */
void backoff_reset(struct backoff *b);

#endif

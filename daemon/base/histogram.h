/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A histogram of durations: how many were at most 1, 2, 5, 10, 20, 50 … microseconds. The bounds are exact. To add one takes a few instructions, because
 * there is at most one bound between two powers of two. It does not keep their sum.
 */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BOUNDS 31 /* the last one is 10^10 us, almost three hours */

struct histogram {
	uint64_t count[HISTOGRAM_BOUNDS + 1]; /* the last: longer than all bounds */
};

extern const int64_t histogram_bound_us[HISTOGRAM_BOUNDS + 1]; /* the last: INT64_MAX */
extern const uint8_t histogram_first[64]; /* by the number of the highest bit: where the search begins */

/* A negative duration counts as the longest. */
static inline void histogram_add(struct histogram *h, int64_t us)
{
	unsigned i = histogram_first[63 - __builtin_clzll((uint64_t)us | 1)];

	i += us > histogram_bound_us[i];
	h->count[i]++;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many names an UNLOCK keep= of this daemon has left taken for longer than any lease: each is a key at the stores that nobody else counts. Data alone.
 * They are counted by the step of time in which they end, so a name counts for up to one step longer than it is kept.
 */
#ifndef CORE_KEPT_NAMES_H
#define CORE_KEPT_NAMES_H

#include "daemon/base/instant.h"

#define KEPT_MOST    65536
#define KEPT_STEP_US (10 * 60 * SEC)
#define KEPT_STEPS   (24 * 6 + 2) /* the longest max_keep, and the steps in which it begins and ends */

struct kept_names {
	uint32_t total, ends[KEPT_STEPS]; /* ends: of steps that are not over, at their number modulo KEPT_STEPS */
	int64_t step;                     /* of the last look */
};

/* How many there are now. */
uint32_t kept_names_count(struct kept_names *k, struct instant now);
void kept_names_add(struct kept_names *k, struct instant now, int64_t keep_us);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* A session of the stage that holds one lock. */
#ifndef UNIT_HOLDER_H
#define UNIT_HOLDER_H

#include "tests/unit/stage.h"

/* 1 says this request for a, at this many stores, and is granted it. Its fence. */
static inline int64_t held_after_lock(unsigned nodes, const char *request)
{
	stage_begin(nodes);
	passes(2 * SEC);
	says(1, "%s", request);
	return number_in(hears(1, "OK name=a fence=* valid_ms=* ttl_ms=* count=1"), "fence");
}

/* What CHECK tells 1 of a. */
static inline int64_t valid_ms(void)
{
	says(1, "CHECK a");
	return number_in(hears(1, "OK name=a fence=* valid_ms=* count=1"), "valid_ms");
}

#endif

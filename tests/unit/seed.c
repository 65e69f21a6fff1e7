/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/seed.h"

#include "daemon/base/rng.h"

#include <stdio.h>
#include <stdlib.h>

uint64_t seed_pick(const char *test)
{
	const char *given = getenv("REDLOCKD_SEED");
	uint64_t key[2], seed;

	if (given) {
		seed = strtoull(given, NULL, 10);
	} else {
		rng_seed_from_system(key);
		seed = key[0] >> 16;
	}
	printf("%s: REDLOCKD_SEED=%llu\n", test, (unsigned long long)seed);
	fflush(stdout);
	return seed;
}

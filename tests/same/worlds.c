/* SPDX-License-Identifier: BSD-2-Clause */
/* worlds from count : simulated worlds, by seed. */
#include "tests/same/same.h"

#include "tests/sim/sweep/sweep.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	struct plan *p = malloc(sizeof(*p));
	uint64_t from = argc == 3 ? strtoull(argv[1], NULL, 10) : 0, count = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
	struct report r;
	char seed[32];

	if (!p || count == 0) {
		fprintf(stderr, "usage: worlds from count\n");
		return 2;
	}
	for (uint64_t i = 0; i < count; i++) {
		snprintf(seed, sizeof(seed), "%llu", (unsigned long long)(from + i));
		same_begin("seed", seed);
		plan_draw(p, from + i);
		report_of(p, NULL, &r);
	}
	free(p);
	return 0;
}

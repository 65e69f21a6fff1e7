/* SPDX-License-Identifier: BSD-2-Clause */
/* The environment variables in which CMD finds its locks: REDLOCK_NAME and REDLOCK_FENCE, REDLOCK_NAME_2 and REDLOCK_FENCE_2, and so on. */
#ifndef CLIENT_VARIABLES_H
#define CLIENT_VARIABLES_H

#include <stdio.h>

struct variables {
	char name[32], fence[32];
};

static inline struct variables variables_of(unsigned i)
{
	struct variables v = {"REDLOCK_NAME", "REDLOCK_FENCE"};

	if (i > 0) {
		snprintf(v.name, sizeof(v.name), "REDLOCK_NAME_%u", i + 1);
		snprintf(v.fence, sizeof(v.fence), "REDLOCK_FENCE_%u", i + 1);
	}
	return v;
}

#endif

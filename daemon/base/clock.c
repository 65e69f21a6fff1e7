/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads clocks. It keeps nothing: a cached time must never decide whether a lease is valid. */
#include "daemon/base/clock.h"

#include <stdlib.h>
#include <time.h>

static int64_t clock_read_us(clockid_t id)
{
	struct timespec t;

	if (clock_gettime(id, &t))
		abort();
	return (int64_t)t.tv_sec * SEC + t.tv_nsec / 1000;
}

struct instant clock_boottime(void)
{
	return (struct instant){clock_read_us(CLOCK_BOOTTIME)};
}

int64_t clock_wall_us(void)
{
	return clock_read_us(CLOCK_REALTIME);
}

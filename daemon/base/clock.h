/* SPDX-License-Identifier: BSD-2-Clause */
/* The one place where clocks are read. Never included by daemon/core or daemon/store. Thread-safe. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include "daemon/base/instant.h"

/* CLOCK_BOOTTIME: counts suspend, so a lease cannot outlive a sleeping host unnoticed. */
struct instant clock_boottime(void);

/* CLOCK_REALTIME in microseconds since 1970: for fence proposals and log lines, never for deadlines. */
int64_t clock_wall_us(void);

#endif

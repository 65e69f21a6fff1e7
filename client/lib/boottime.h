/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moments are microseconds of CLOCK_BOOTTIME, as redlock_now_us() reads it. INT64_MAX is the moment that never
 * comes.
 */
#ifndef CLIENT_BOOTTIME_H
#define CLIENT_BOOTTIME_H

#include <stdint.h>

#define US_PER_MS 1000

/*
 * The moment that is so many milliseconds from now; INT64_MAX for a negative number (REDLOCK_FOREVER) and for a sum that
 * overflows.
 */
int64_t boottime_after(int64_t ms);
/* When this process was forked by one that uses the library; 0: it was not. What was granted before is not its own. */
int64_t boottime_forked_us(void);
/*
 * How many milliseconds poll(2) may wait for a moment: -1 for ever, 0 when it has passed. poll counts by another clock, so
 * compare again afterwards.
 */
int boottime_poll_ms(int64_t until_us);

#endif

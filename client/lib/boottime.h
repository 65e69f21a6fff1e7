/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moments are microseconds of CLOCK_BOOTTIME, as redlock_now_us() reads it. INT64_MAX means never.
 */
#ifndef CLIENT_BOOTTIME_H
#define CLIENT_BOOTTIME_H

#include <stdint.h>

#define US_PER_MS 1000

/* Returns the moment in ms milliseconds. INT64_MAX if ms is negative (REDLOCK_FOREVER) or the sum overflows. */
int64_t boottime_after(int64_t ms);
/* When this process was forked from a process that uses the library; 0: it was not. Grants from before that moment belong to the parent. */
int64_t boottime_forked_us(void);
/*
 * How many milliseconds poll(2) may wait for a moment: -1 means for ever, 0 that the moment has passed. poll uses another clock, so compare again
 * afterwards.
 */
int boottime_poll_ms(int64_t until_us);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An instant is a moment of CLOCK_BOOTTIME in microseconds; a duration is an int64_t in microseconds.
 * Only clock.h reads an instant from the clock; the deterministic parts (core, store) never include clock.h.
 */
#ifndef BASE_INSTANT_H
#define BASE_INSTANT_H

#include <stdbool.h>
#include <stdint.h>

struct instant {
	int64_t us;
};

#define MSEC INT64_C(1000)
#define SEC INT64_C(1000000)

/* Later and earlier than every other instant. Adding a duration does not change them. */
#define INSTANT_NEVER ((struct instant){INT64_MAX})
#define INSTANT_PAST ((struct instant){INT64_MIN})

static inline struct instant instant_add(struct instant t, int64_t us)
{
	if (t.us == INT64_MAX || t.us == INT64_MIN)
		return t;
	return (struct instant){t.us + us};
}

/* a - b, saturating when either is NEVER or PAST. */
static inline int64_t instant_diff(struct instant a, struct instant b)
{
	int64_t d;

	if (__builtin_sub_overflow(a.us, b.us, &d))
		return a.us > b.us ? INT64_MAX : INT64_MIN;
	return d;
}

static inline bool instant_before(struct instant a, struct instant b)
{
	return a.us < b.us;
}

static inline struct instant instant_min(struct instant a, struct instant b)
{
	return a.us < b.us ? a : b;
}

static inline struct instant instant_max(struct instant a, struct instant b)
{
	return a.us > b.us ? a : b;
}

#endif

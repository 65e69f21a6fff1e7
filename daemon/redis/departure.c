/* SPDX-License-Identifier: BSD-2-Clause */
/* See departure.h. */
#include "daemon/redis/departure.h"

#define AT_ONCE_US    INT64_C(100) /* a call that follows within that time came at once */
#define FOLLOWED_MOST 8

void departure_init(struct departure *d)
{
	*d = (struct departure){.alone = INSTANT_NEVER};
}

void departure_collect(struct departure *d, bool release)
{
	d->urgent |= !release;
}

/* A call is collected after releases that left alone, or together with releases that waited. */
static void departure_learn(struct departure *d, struct instant now)
{
	if (d->alone.us == INSTANT_NEVER.us)
		return;
	if (instant_diff(now, d->alone) >= AT_ONCE_US)
		d->followed = 0;
	else if (d->followed < FOLLOWED_MOST)
		d->followed++;
	d->alone = INSTANT_NEVER;
}

static bool releases_are_due(struct departure *d, struct instant now)
{
	if (d->waited) {
		d->followed = 0; /* no call followed */
		d->alone = INSTANT_NEVER;
		return true;
	}
	departure_learn(d, now);
	d->alone = now;
	d->waited = d->followed == FOLLOWED_MOST;
	return !d->waited;
}

bool departure_is_due(struct departure *d, struct instant now)
{
	if (d->urgent)
		departure_learn(d, now);
	else if (!releases_are_due(d, now))
		return false;
	d->urgent = d->waited = false;
	return true;
}

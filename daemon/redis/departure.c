/* SPDX-License-Identifier: BSD-2-Clause */
/* See departure.h. */
#include "daemon/redis/departure.h"

#define NEAR_US       INT64_C(100) /* a server that answers sooner is near */
#define BLOCK         32           /* replies */
#define AT_ONCE_US    INT64_C(100) /* a call that follows sooner came at once */
#define FOLLOWED_MOST 8

void departure_init(struct departure *d)
{
	*d = (struct departure){.alone = INSTANT_NEVER, .least_us = {INT64_MAX, INT64_MAX}};
}

void departure_collect(struct departure *d, bool release)
{
	d->urgent |= !release;
}

void departure_reply(struct departure *d, int64_t us)
{
	if (d->replies == BLOCK) {
		d->least_us[0] = d->least_us[1];
		d->least_us[1] = INT64_MAX;
		d->replies = 0;
	}
	d->replies++;
	if (us < d->least_us[1])
		d->least_us[1] = us;
}

static bool server_is_near(const struct departure *d)
{
	return d->least_us[0] < NEAR_US || d->least_us[1] < NEAR_US;
}

/* Something is collected behind releases that left alone, or beside releases that waited. */
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

static enum departs departure_of_releases(struct departure *d, struct instant now)
{
	if (d->waited) {
		d->followed = 0; /* nobody came */
		d->alone = INSTANT_NEVER;
		return DEPARTS_NOW;
	}
	departure_learn(d, now);
	d->alone = now;
	d->waited = d->followed == FOLLOWED_MOST;
	return d->waited ? DEPARTS_NEXT_PASS : DEPARTS_NOW;
}

enum departs departure_decide(struct departure *d, struct instant now, bool flying)
{
	enum departs departs = DEPARTS_NOW;

	if (d->urgent || flying)
		departure_learn(d, now);
	if (flying && server_is_near(d))
		return DEPARTS_WITH_REPLY;
	if (!d->urgent)
		departs = departure_of_releases(d, now);
	if (departs == DEPARTS_NOW)
		d->urgent = d->waited = false;
	return departs;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* See rest.h. */
#include "daemon/main/rest.h"

#define AT_ONCE_US   INT64_C(100)      /* an event that comes within that time came at once; it includes the time to fall asleep and to wake */
#define QUICK_MOST   16
#define POLL_US      INT64_C(50)       /* the loop sleeps after that time without an event */
#define YIELD_US     (1 * MSEC)        /* in a yield that took longer, somebody else was computing */
#define NO_YIELD_US  (1 * SEC)

void rest_init(struct rest *r)
{
	*r = (struct rest){.ended = INSTANT_PAST, .no_yield_until = INSTANT_PAST};
}

void rest_note_pass(struct rest *r, struct instant begun, struct instant ended)
{
	if (!instant_before(begun, instant_add(r->ended, AT_ONCE_US)))
		r->quick = 0;
	else if (r->quick < QUICK_MOST)
		r->quick++;
	r->ended = ended;
}

bool rest_polls(struct rest *r, struct instant now)
{
	if (r->quick < QUICK_MOST || !rest_may_yield(r, now))
		return false;
	if (instant_before(now, instant_add(r->ended, POLL_US)))
		return true;
	r->quick = 0; /* no event came */
	return false;
}

bool rest_may_yield(const struct rest *r, struct instant now)
{
	return !instant_before(now, r->no_yield_until);
}

void rest_note_yield(struct rest *r, struct instant before, struct instant after)
{
	if (instant_diff(after, before) > YIELD_US)
		r->no_yield_until = instant_add(after, NO_YIELD_US);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* See clock_bounds.h. */
#include "daemon/core/member/clock_bounds.h"

int64_t clock_measure(struct member_clock *clock, int64_t server_us, struct instant sent, struct instant received)
{
	/* The store may have run the call as soon as it was sent, and the clocks may have drifted apart since. */
	int64_t low = server_us - received.us, high = server_us - sent.us + drift_of(instant_diff(received, sent)), jump = 0;

	if (clock->known) {
		int64_t widen = drift_of(instant_diff(received, clock->at)) + JUMP_SLACK_US;
		int64_t old_low = clock->low - widen, old_high = clock->high + widen;

		if (low > old_high) {
			jump = high - clock->low;
		} else if (high >= old_low) {
			/* Both are true of one clock: keep what both allow. */
			low = low > old_low ? low : old_low;
			high = high < old_high ? high : old_high;
		}
	}
	clock->known = true;
	clock->low = low;
	clock->high = high;
	clock->at = received;
	return jump;
}

void clock_confirm(struct member_clock *c)
{
	struct clock_bounds seen = clock_now(c), both = seen;
	int64_t drift = drift_us(instant_diff(seen.at, c->firm.at));

	if (c->firm.low - drift > both.low)
		both.low = c->firm.low - drift;
	if (c->firm.high + drift < both.high)
		both.high = c->firm.high + drift;
	c->firm = c->firm.known && both.low <= both.high ? both : seen;
}

int64_t clock_went_back_beyond_drift(const struct clock_bounds *then, const struct member_clock *c)
{
	int64_t back = then->low - c->high - JUMP_SLACK_US - drift_us(instant_diff(c->at, then->at));

	return back > 0 ? back : 0;
}

struct move clock_move(const struct clock_bounds *then, const struct clock_bounds *now)
{
	int64_t drift = drift_us(instant_diff(now->at, then->at));

	return (struct move){now->low - then->high - drift, now->high - then->low + drift};
}

struct clock_bounds bounds_moved(struct clock_bounds b, struct move by)
{
	b.low += by.least;
	b.high += by.most;
	return b;
}

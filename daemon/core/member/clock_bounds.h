/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is known of a store's clock: one reply bounds (server clock - CLOCK_BOOTTIME) by [server - received, server - sent], in microseconds. Arithmetic only.
 * See ALGORITHMS.md, Jumping clocks.
 */
#ifndef CORE_CLOCK_BOUNDS_H
#define CORE_CLOCK_BOUNDS_H

#include "daemon/core/member/members.h"
#include "daemon/core/member/quorum.h"

/* The drift of two clocks within this time, by whole seconds: the drift of the rest is within JUMP_SLACK_US. */
static inline int64_t drift_of(int64_t us)
{
	return us / 1000000 * DRIFT_PPM;
}

/*
 * Notes what a reply shows. Returns by how much at most the server's clock has jumped ahead; 0 if no jump is proven. Drift within rho, 50 ms, and the time that
 * a reply lay unread are no jump.
 */
int64_t clock_measure(struct member_clock *clock, int64_t server_us, struct instant sent, struct instant received);
/* Narrows `firm` by the last look, or replaces it if they disagree. So late answers take nothing from it: many would hide what was seen in time. */
void clock_confirm(struct member_clock *c);
/*
 * By how much at least the clock went back, beyond the drift and what is not noticed; 0: perhaps not at all. A stop of this host never moves a clock back:
 * somebody has set it.
 */
int64_t clock_went_back_beyond_drift(const struct clock_bounds *then, const struct member_clock *c);
static inline int64_t clock_went_back(const struct clock_bounds *then, const struct member_clock *c)
{
	/* Each answer comes here, and nearly always the result is 0: the drift is computed only if it matters. */
	return then->known && then->low - c->high > JUMP_SLACK_US ? clock_went_back_beyond_drift(then, c) : 0;
}

static inline struct clock_bounds clock_now(const struct member_clock *c)
{
	return (struct clock_bounds){.known = c->known, .low = c->low, .high = c->high, .at = c->at};
}

static inline int64_t clock_width(const struct clock_bounds *b)
{
	return b->high - b->low;
}

/* By how much a clock went ahead of ours: at least, at most. */
struct move {
	int64_t least, most;
};

struct move clock_move(const struct clock_bounds *then, const struct clock_bounds *now);
struct clock_bounds bounds_moved(struct clock_bounds b, struct move by);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether the clocks of two stores show the same jump. See clock_jump.h for what is made of that. */
#ifndef CORE_SAME_JUMP_H
#define CORE_SAME_JUMP_H

#include "daemon/core/member/clock_bounds.h"
#include "daemon/core/member/members.h"

enum likeness { LIKE, UNLIKE, NOT_KNOWN_YET, LOOK_AGAIN };

/* By how much the clock of m has jumped. */
static inline struct move jump_move(const struct member *m)
{
	return clock_move(&m->jump.before, &m->clock.firm);
}

/* How much two moves that are one stop may differ: a clock may move by too little to be noticed, and the two drift apart while ours stands still. */
int64_t move_slack(struct move its);
/* The answer came so late that it is true of the clock as it was, and half a jump on. */
bool look_may_hide(const struct member_clock *c, struct move its);
/* Another store was asked after the jump was first seen, has answered soon, and shows less than half of it. */
bool jump_is_denied(const struct members *ms, const struct member *m);
/* Whether another store's clock shows the jump of m. LOOK_AGAIN: it may, or it shows more; another look at m would tell. */
enum likeness jump_likeness(const struct member *m, const struct member *other);

#endif

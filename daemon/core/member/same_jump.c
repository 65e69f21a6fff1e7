/* SPDX-License-Identifier: BSD-2-Clause */
/* See same_jump.h. */
#include "daemon/core/member/same_jump.h"

int64_t move_slack(struct move its)
{
	return JUMP_SLACK_US + drift_us(its.most);
}

/* Their bounds overlap, and the other move is certainly more than half of the least of this one. A move that may be 0 is like no other. */
static bool moves_are_alike(struct move its, struct move others)
{
	return its.least > 0 && 2 * others.least > its.least && others.least <= its.most + move_slack(its) && its.least <= others.most + move_slack(its);
}

/* Both have jumped, perhaps at the same moment. What was known of each just before its jump says more than what was known at the last look at m. */
static bool jumps_are_alike(const struct member *m, const struct member *other)
{
	bool meet = other->jump.open && instant_before(m->jump.before.at, other->jump.seen) && instant_before(other->jump.before.at, m->jump.seen);

	return meet && moves_are_alike(jump_move(m), jump_move(other));
}

/* The answer of m came so late that the jump may be twice as long, and another look at m would tell. */
static bool clock_is_rough(const struct member *m, struct move its)
{
	return m->connected && clock_width(&m->clock.firm) > its.least + move_slack(its);
}

bool look_may_hide(const struct member_clock *c, struct move its)
{
	return 2 * instant_diff(c->at, c->sent) >= its.least;
}

/*
 * The jump of m was denied, so it is m's own, unless the clock of the store that denied it stood still or was set back. A jump of another store that is seen
 * later may be a stop that m has not shown yet. A new look at m tells.
 */
static bool jump_is_disputed(const struct member *m, const struct member *other)
{
	return m->jump.open && m->jump.denied && other->jump.open && instant_before(m->clock.sent, other->jump.seen);
}

bool jump_is_denied(const struct members *ms, const struct member *m)
{
	struct move its = jump_move(m);

	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		const struct clock_bounds *then = &m->jump.beside[i];
		const struct member_clock *c = &ms->node[i].clock;

		if (i != m->index && then->known && !instant_before(c->sent, m->jump.first) && !look_may_hide(c, its) &&
		    2 * clock_move(then, &c->firm).most < its.least)
			return true;
	}
	return false;
}

enum likeness jump_likeness(const struct member *m, const struct member *other)
{
	const struct clock_bounds *then = &m->jump.beside[other->index];
	struct move its = jump_move(m), others = clock_move(then, &other->clock.firm);

	if (!then->known || (other->jump.open && other->jump.undone))
		return UNLIKE;
	if (moves_are_alike(its, others) || jumps_are_alike(m, other)) {
		if (clock_is_rough(m, its) || jump_is_disputed(m, other))
			return LOOK_AGAIN;
		return clock_is_rough(other, its) || jump_is_disputed(other, m) ? NOT_KNOWN_YET : LIKE;
	}
	if (others.least > its.most + move_slack(its) && m->connected && instant_before(m->clock.sent, other->clock.at))
		return LOOK_AGAIN;
	return instant_before(other->clock.sent, m->jump.seen) || look_may_hide(&other->clock, its) ? NOT_KNOWN_YET : UNLIKE;
}

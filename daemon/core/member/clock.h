/* SPDX-License-Identifier: BSD-2-Clause */
/* Jumps of clocks: what is known of a store's clock, whether it was ahead at the first look, and whose clock jumped. */
#ifndef CORE_CLOCK_H
#define CORE_CLOCK_H

#include "daemon/core/member/members.h"

/*
 * What is known of a store's clock: one reply bounds (server clock - CLOCK_BOOTTIME) by [server - received, server - sent], in microseconds. Arithmetic only.
 * See ALGORITHMS.md, Jumping clocks.
 */

/* The drift of two clocks within this time, for its whole seconds. JUMP_SLACK_US covers the drift of the rest. */
static inline int64_t drift_of(int64_t us)
{
	return us / 1000000 * DRIFT_PPM;
}

/*
 * Notes what a reply shows. Returns the upper bound of the server clock's jump ahead; 0 if no jump is proven. Drift within rho, 50 ms, and the time that a
 * reply lay unread are no jump.
 */
int64_t clock_measure(struct member_clock *clock, int64_t server_us, struct instant sent, struct instant received);
/*
 * The lower bound by which the clock went back, beyond the drift and what is too little to notice; 0: perhaps not at all. A stop of this host never moves a
 * clock back, so somebody has set the clock.
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

/* By how much a clock moved ahead of ours: lower and upper bound. */
struct move {
	int64_t least, most;
};

struct move clock_move(const struct clock_bounds *then, const struct clock_bounds *now);

/*
 * A store whose clock was set forward before this daemon first looked at it shows no jump, but keys may have expired early there. So a store is suspected if
 * its clock is too far ahead of the others', and of this host's as well: otherwise the others may have been set back. It is compared again when a step may
 * hide between two looks at it, because they are far apart or show little of its clock.
 *
 * The daemon compares a clock until it is certain that it is not ahead: a late answer shows little of a clock, and if a minority of stores that are ahead
 * answers first, they agree with each other. A clock that seems to be ahead is suspected only once the others were asked later than its store. For if this
 * host stood still since they were last asked, the first store seen after the stop seems to be ahead. Until then the store is not used. A clock that goes
 * back before that is certain was ahead, and was corrected. It must go back by more than the tolerance or, once it seemed to be ahead, by any amount.
 * See ALGORITHMS.md, Restart guard.
 */

/* Compares the clock of m with the others', if that is not done yet. True: it was too far ahead, so m may have lost keys; returned only once. */
bool first_look_was_ahead(struct members *ms, struct member *m);

/*
 * Decides whose clock jumped. If a store's clock seems to jump ahead, either that clock was set forward, or this host stood still: a stopped virtual
 * machine does not count the time. In the first case all daemons quarantine the store, since keys of others ended early there. In the second case the
 * votes of all stores are lowered by the jump, and no store is marked. Answers come one after the other, so the first jump does not show which case it is.
 * Until that is known the votes of the store do not count, and the other stores are asked for their clocks:
 *
 *   ours    a majority of all stores shows a jump of that size between the same two moments
 *   theirs  so many others answered later without the jump, or did not answer within the timeout of a command, that there is no such majority; or the
 *           store's clock was set back meanwhile
 *
 * A host that stood still often resumes in fits and starts, and after a stop of this process alone the answers of the others lie unread. So the others
 * count as silent only at a second look, after the timeout and half a timeout after the first look.
 *
 * What the others show counts from the last look at the store before it jumped. What they showed earlier comes from earlier stops, which may have been too
 * short to be noticed. An answer that came so late that it fits both cases decides nothing: that store is asked again. Nor does a late answer make known
 * bounds less certain: all answers that agree are true of one clock.
 *
 * A store denies a jump if it was asked after the jump was seen, answers soon, and shows less than half of it. A denied jump is compared with later jumps of
 * others only after a new look at its store. For a stop of that length may come before the jump is judged, and the others may show it before this store does.
 *
 * A call sent before a stop may run during it: then that store shows only a part of the stop. A store whose clock had jumped by itself shows more. Once the
 * others show the whole stop, such a store is judged again: the rest is a jump of its own, or none.
 *
 * A single store has no others to agree with: theirs. CLOCK_REALTIME of this host is no evidence: it is often set when a stopped machine resumes.
 * See ALGORITHMS.md, Jumping clocks.
 */

enum jump_whose { JUMP_OPEN, JUMP_OURS, JUMP_THEIRS, JUMP_NONE /* no jump is left */ };

/* Notes the clock of a store from the answer to a call sent at `sent`. True: that clock has certainly jumped, see clock_measure. */
bool jump_note(struct members *ms, struct member *m, int64_t server_us, struct instant sent);
/* When an open jump must be looked at if no answer comes first. */
struct instant jump_look_at(const struct members *ms, const struct member *m);
/* Notes the first look, which stores have reported their time since the jump, and whether one denies it. Each answer leads to a look. */
void jump_look(const struct members *ms, struct member *m);
/* This process was stopped after the first looks, so the others' answers lie unread. Each first look that was noted counts as made now. */
void jumps_look_anew(struct members *ms);
/*
 * Which open jump of these stores is judged next; NULL: none is open. A jump that is ours comes first, because it explains jumps of other stores. Of several
 * the shortest comes first, because the excess of a longer one is judged by itself.
 */
struct member *jump_next(struct members *ms, struct nodeset among);
/* Judges an open jump. */
enum jump_whose jump_judge(const struct members *ms, const struct member *m);
/* The stores that must be asked for their time to judge it. */
struct nodeset jump_asks(const struct members *ms, const struct member *m);
/* The jump is ours: closes it and those that show no more, lowers the votes of all nodes, and corrects what is known of their clocks. */
void jump_is_ours(struct members *ms, struct member *m);
void jump_is_theirs(struct members *ms, struct member *m);
void jump_is_none(struct members *ms, struct member *m);

#endif

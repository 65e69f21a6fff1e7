/* SPDX-License-Identifier: BSD-2-Clause */
/* The only functions that write the states of a name, and the admission of a name that waits. */
#ifndef CORE_MOVE_H
#define CORE_MOVE_H

#include "daemon/core/round/engine_data.h"

#include <assert.h>

/* Admission for the engine: adds the room at the stores, a metric, and a timer that is set while something waits. */

/* Whether the entry may begin now. If not, the engine begins it when it may. See admission_queue(). */
bool admit(struct engine *e, struct admission_entry *x, struct instant urgent_at, struct origin *whose);
/* The next entry that may begin now; NULL: none. */
struct admission_entry *admission_wait_next(struct engine *e);
/* Sets the timer, so that entries that wait are looked at even if no store answers. */
void admission_wait_watch(struct engine *e);

/*
 * The only writers of the state of a contender and of a lease. A move clears what belongs to the old state: its list, its timer, its place in admission. It
 * asserts that move.def has the row, and logs the move at level debug.
 */

void contender_log(struct engine *e, const struct contender *k, enum contender_state to, enum cause why);
/* Clears what belongs to a state between rounds: its list, its place in admission, its timer. */
void contender_leave(struct engine *e, struct contender *k);

/* Inline, since each LOCK makes two of these moves. */
static inline void contender_move(struct engine *e, struct contender *k, enum contender_state to, enum cause why)
{
	assert(contender_moves[k->state][to][why] && lock_of_contender(k)->lease.state == LEASE_NONE);
	if (e->core->conf.log_moves)
		contender_log(e, k, to, why);
	if (contender_is_between_rounds(k))
		contender_leave(e, k);
	k->state = to;
	if (to == CONTENDER_NO_QUORUM)
		TAILQ_INSERT_TAIL(&e->no_quorum, k, in_no_quorum);
	if (to == CONTENDER_IDLE)
		k->same_splits = k->lost_rounds = k->leads = 0; /* the next request starts anew */
}

void lease_move(struct engine *e, struct lease *x, enum lease_state to, enum cause why);
/* Into and out of the list of leases that are renewed as soon as a quorum is back. A move takes the lease out by itself. */
void lease_at_risk(struct engine *e, struct lease *x);
void lease_safe(struct engine *e, struct lease *x);
/* Sets the timer for the next renewal, or for the report of its loss. */
void lease_schedule(struct engine *e, struct lease *x);
/* Its round, if there is one, decides nothing any more. */
void lease_end_round(struct lease *x);
/* Answers all EXTENDs that wait with this refusal. */
void lease_refuse_extends(struct engine *e, struct lease *x, enum refusal why);
void lease_refuse_extends_of(struct engine *e, struct lease *x, const struct claim *holder, enum refusal why); /* those of this holder */
/* Frees a round that is decided, or a release that is over, and has no call open. Its name may go with it. */
void retire_round(struct engine *e, struct round *r);
void retire_release(struct engine *e, struct release *r);

#endif

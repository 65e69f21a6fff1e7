/* SPDX-License-Identifier: BSD-2-Clause */
/* How a wait ends without a grant: claims are refused, withdrawn, or out of time; and how a name waits for a quorum of stores. */
#ifndef CORE_WAIT_H
#define CORE_WAIT_H

#include "daemon/core/engine/waiters.h"
#include "daemon/core/round/engine_data.h"

/* Refuses this part of the waiters, and takes them out. The name stays in its state. False: a crowd, of which some are left for the next step. */
bool wait_refuse_part(struct engine *e, struct contender *k, enum refusal why, enum waiters_part part);
/* The name is looked after again in the next step. */
void wait_look_soon(struct engine *e, struct contender *k);
/* Likewise, before the name goes on waiting; sets k->crowd if some are left. False: nobody waits any more, and the wait is over. */
bool wait_continue(struct engine *e, struct contender *k, enum refusal why, enum waiters_part part);
/* Nobody here waits any more: the ticket is withdrawn, and the name asks for nothing. */
void wait_over(struct engine *e, struct contender *k, enum cause why);
/* A claim left. If it was the last, the wait is over; while a round is under way, the end of that round sees to it. */
void wait_left(struct engine *e, struct contender *k);
/* Sets the timer of a name that waits: at this moment, or sooner, when its first claim is overdue. NEVER: only for an overdue claim. */
void wait_look_at(struct engine *e, struct contender *k, struct instant at);
/* Takes a claim out, without an answer. */
void wait_leave(struct engine *e, struct claim *c);
/* Too few usable stores to ask: those who wait keep their place until there are enough. */
void wait_for_quorum(struct engine *e, struct contender *k);
/* The claim has waited long enough. */
void wait_fired(struct engine *e, struct claim *c);

/* A waiting claim waits until then instead. */
void wait_set_end(struct engine *e, struct claim *c, struct instant until);
/* The session of this waiting claim has sent its last line. A round under way decides; without a round, a claim that would go on waiting is withdrawn. */
void wait_finish_up(struct engine *e, struct claim *c);
/* A waiting claim is withdrawn: NOTICE_REFUSED. */
void wait_withdraw(struct engine *e, struct claim *c, enum refusal why);

void wait_announce_all(struct engine *e, struct contender *k);

/* Those who wait for a holder and were not announced yet are: for WATCH. As long as nobody watches, that costs one test. */
static inline void wait_announce(struct engine *e, struct contender *k)
{
	if (e->watched > 0)
		wait_announce_all(e, k);
}

#endif

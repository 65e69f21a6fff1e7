/* SPDX-License-Identifier: BSD-2-Clause */
/* Votes that end sooner than was reckoned, because the clock of their store has jumped. See ALGORITHMS.md, Jumping clocks. */
#ifndef CORE_VOTES_FALL_H
#define CORE_VOTES_FALL_H

#include "daemon/core/round/engine_data.h"

/* Lowers the votes that fall: members.votes_fall. */
void votes_fall(struct engine *e);
void votes_fall_schedule(struct engine *e); /* sets the timers of some leases: engine.falls */
/* Votes fell: a lease that this has ended is lost before another line is served, which would be told OK. Of many some are lost in the next steps: core.late. */
void votes_fall_lose_over(struct engine *e);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* What follows from the outcome of a round: a grant, another try, a hold that goes on or is lost. */
#ifndef CORE_ROUND_DONE_H
#define CORE_ROUND_DONE_H

#include "daemon/core/engine/adopt.h"
#include "daemon/core/round/engine_data.h"
#include "daemon/core/round/round.h"

/* Acts on what an adoption has come to. r: the round whose answer shows it; NULL: the timer of the lease. */
void round_done_adoption(struct engine *e, struct lease *x, const struct round *r, enum adopt_outcome outcome);
/* The answer is counted already. The round may be gone afterwards. */
void round_done_answered(struct engine *e, struct round *r, const struct answer *a);
void round_done_fired(struct engine *e, struct round *r); /* its timer */

#endif

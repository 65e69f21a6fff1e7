/* SPDX-License-Identifier: BSD-2-Clause */
/* Rounds that ask for a name. The outcome of a round is a value, on which the caller acts. */
#ifndef CORE_ACQUIRE_H
#define CORE_ACQUIRE_H

#include "daemon/core/round/engine_data.h"
#include "daemon/core/round/round.h"

/* Asks the stores for the name, for the first waiter, now or once it is admitted. No round is under way, and the name is not ours. */
void acquire_begin(struct engine *e, struct contender *k, enum cause why);
void acquire_start(struct engine *e, struct contender *k, enum cause why); /* now */
bool acquire_admitted(struct engine *e, struct contender *k); /* it has waited for admission; false: it waits on, until release_admitted() */
void acquire_next(struct engine *e, struct lock *l); /* the name is not ours any more: asks for it if somebody waits */
/* An answer, or the end of the round's time. ROUND_PENDING: the round goes on, or was decided before. Else it is decided now; ROUND_WON sets the token. */
enum round_outcome acquire_answered(struct engine *e, struct round *r, const struct answer *a, int64_t *ret_token);
enum round_outcome acquire_expired(struct engine *e, struct round *r, int64_t *ret_token);
/*
 * The timer of an undecided round has fired. If the leading store has not answered in time, the others are asked as well. If busy stores were left out,
 * those that have room by now are asked. False: no store is asked, and the round is at its end.
 */
bool acquire_ask_more(struct engine *e, struct round *r);

#endif

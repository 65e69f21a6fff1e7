/* SPDX-License-Identifier: BSD-2-Clause */
/* Rounds that ask for a name. What a round comes to is a value, on which the caller acts. */
#ifndef CORE_ACQUIRE_H
#define CORE_ACQUIRE_H

#include "daemon/core/parts.h"
#include "daemon/core/round.h"

/* Asks for the name, for the first waiter, now or once it is admitted. No round is under way, and the name is not ours. */
void acquire_begin(struct engine *e, struct contender *k, enum cause why);
void acquire_start(struct engine *e, struct contender *k, enum cause why); /* now */
void acquire_next(struct engine *e, struct contender *k); /* the name is not ours any more: for the next waiter, or for nobody */
/* An answer, or the end of the round's time. ROUND_PENDING: it goes on, or was decided before. Else it is decided; ROUND_WON tells the token. */
enum round_outcome acquire_answered(struct engine *e, struct round *r, const struct answer *a, int64_t *ret_token);
enum round_outcome acquire_expired(struct engine *e, struct round *r, int64_t *ret_token);
/*
 * The timer of a round that is not decided. If the leading store has not answered in its time, the others are asked as well. If busy stores were left out,
 * those that have room by now are asked. False: neither; the round is at its end.
 */
bool acquire_ask_more(struct engine *e, struct round *r);

/* What wakes names that wait. A store published that the name was freed, which may be lost, repeated, late. */
void acquire_woken(struct engine *e, struct span name, unsigned node);
void acquire_quorum_back(struct engine *e); /* enough usable stores again: those without a quorum are asked for */

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A new token for a lease that has used up its range. A renewal lifts the fences to a floor that is beyond all that stores have shown this daemon, and beyond
 * the range of the lease. The token is the lease's alone if Q stores that are sure answer that very floor. See ALGORITHMS.md, Shared locks.
 */
#ifndef CORE_REBASE_H
#define CORE_REBASE_H

#include "daemon/core/round/engine_data.h"

/* False: too few stores can be used, or the clocks of too many lie too far behind their fences. */
bool rebase_is_possible(const struct engine *e, const struct lease *x);
/* The renewal begins: if its lease wants a token, it asks for one. */
void rebase_begin(struct engine *e, struct round *r);
/* A store has answered: perhaps it has extended the key. */
void rebase_note(struct engine *e, struct round *r, const struct answer *a);

#endif

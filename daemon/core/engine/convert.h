/* SPDX-License-Identifier: BSD-2-Clause */
/* An owner that holds a lock alone shares it from now on, and who waits behind a held lock. See ALGORITHMS.md, Shared locks. */
#ifndef CORE_CONVERT_H
#define CORE_CONVERT_H

#include "daemon/core/round/engine_data.h"

/* This exclusive hold is shared from now on. Others join as soon as the stores have it in the shared form, and have given a token. */
void convert_to_shared(struct engine *e, struct claim *holder);
/* The line of a held lock may move: a waiter or a holder has left, or the lease was renewed. Asks for the token that readers need, and lets them in. */
void convert_look(struct engine *e, struct lock *l);
/* An answer to this renewal was counted. */
void convert_renewed(struct engine *e, struct round *r);

#endif

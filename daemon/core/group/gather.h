/* SPDX-License-Identifier: BSD-2-Clause */
/* What a group does next: it asks for names, gives them back, waits, insists, and is answered. See ALGORITHMS.md, Groups. */
#ifndef CORE_GATHER_H
#define CORE_GATHER_H

#include "daemon/core/session/group.h"

/* Looks at the first of the groups that are due, of which there is one. Call when no notice is left, and deliver notices afterwards. */
void gather_next(struct commander *x);
/* TIMER_INSISTING: it has kept what it has for long enough. TIMER_LAPSE: the client has not repeated the request. */
void gather_fired(struct commander *x, struct timer *t);
/* The session has sent its last line: its groups wait for no holder any more. A group that asks without waiting is still answered. */
void gather_finish_up(struct commander *x, struct session *s);

#endif

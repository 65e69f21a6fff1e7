/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The only writers of what a name asks for and of what it has. A move ends what belongs to the state that is left: its list, its timer, its place in admission.
 * It asserts that move.def has the row, and is told at log level debug.
 */
#ifndef CORE_MOVE_H
#define CORE_MOVE_H

#include "daemon/core/engine.h"

void contender_move(struct engine *e, struct lock *l, enum contender_state to, enum cause why);
void lease_move(struct engine *e, struct lock *l, enum lease_state to, enum cause why);
/* Into and out of the list of those that are renewed as soon as a quorum is back; which a move leaves by itself. */
void lease_at_risk(struct engine *e, struct lock *l);
void lease_safe(struct engine *e, struct lock *l);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* What acts on one store: the two questions of the membership, and the only writer of a store's state. Decides nothing. */
#ifndef CORE_PROBE_H
#define CORE_PROBE_H

#include "daemon/core/members.h"

const char *member_state_word(enum member_state state);
/* The only writer of a state. Tells the log, once for each state and reason. */
void member_become(struct members *ms, struct member *m, enum member_state state, const char *reason);
/* Asks the store who it is and which marker stands there. */
void member_probe(struct members *ms, struct member *m);
/* Compare-and-set: from what stands there to a fresh marker of the kind 'q' or 'j'. */
void member_mark(struct members *ms, struct member *m, struct span from, char kind);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The two calls of the membership to a store, PROBE and MARK, and the only writer of a store's state. Decides nothing. */
#ifndef CORE_PROBE_H
#define CORE_PROBE_H

#include "daemon/core/member/members.h"

/*
 * The only writer of a store's state. Logs a change, unless the log was told the same state and reason last, or has no room (member_may_tell); PROBING always.
 * defect: of a reason that is not about its memory.
 */
void member_become(struct members *ms, struct member *m, enum member_state state, enum defect defect, const char *reason);
/* Logs what there was no room for. False: there is none yet. */
bool member_tell(struct members *ms, struct member *m);
/* Asks the store who it is and which marker stands there. */
void member_probe(struct members *ms, struct member *m);
/* Compare-and-set of the store's marker: from `from` to a fresh one of the kind 'q' or 'j'. */
void member_mark(struct members *ms, struct member *m, struct span from, char kind);

#endif

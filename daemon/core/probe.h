/* SPDX-License-Identifier: BSD-2-Clause */
/* The two calls of the membership to a store, PROBE and MARK, and the only writer of a store's state. Decides nothing. */
#ifndef CORE_PROBE_H
#define CORE_PROBE_H

#include "daemon/core/members.h"

const char *member_state_word(enum member_state state);
/* The only writer of a store's state. Logs a change, unless the log was told the same state and reason last; PROBING always. */
void member_become(struct members *ms, struct member *m, enum member_state state, const char *reason);
/* Asks the store who it is and which marker stands there. */
void member_probe(struct members *ms, struct member *m);
/* Compare-and-set of the store's marker: from `from` to a fresh one of the kind 'q' or 'j'. */
void member_mark(struct members *ms, struct member *m, struct span from, char kind);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The questions of a round, as calls. Each that may set its value notes where the value may stand from now on, and until when. */
#ifndef CORE_ASK_H
#define CORE_ASK_H

#include "daemon/core/round/round.h"

void ask_acquire(struct call_table *t, struct round *r, unsigned node, struct span value, int64_t proposal, struct span ticket, int64_t reserve_us);
/* A missing key is put back if the call runs before put_back; PAST: never. */
struct call *ask_extend(struct call_table *t, struct round *r, unsigned node, struct span value, int64_t floor, struct instant put_back);
/* The second round of an acquire. beyond: the fence is lifted even beyond the limit. */
void ask_raise(struct call_table *t, struct round *r, unsigned node, struct span value, bool beyond);
/* what: see lua/break.lua. */
void ask_break(struct call_table *t, struct round *r, unsigned node, struct span what);
void ask_look(struct call_table *t, struct round *r, unsigned node);

#endif

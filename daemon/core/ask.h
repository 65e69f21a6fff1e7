/* SPDX-License-Identifier: BSD-2-Clause */
/* The questions of a round, as calls. Each notes where its value may stand from now on, and until when. */
#ifndef CORE_ASK_H
#define CORE_ASK_H

#include "daemon/core/round.h"

void ask_acquire(struct call_table *t, struct round *r, unsigned node, int64_t proposal, struct span ticket, int64_t reserve_us);
/* from: the values, separated by blanks, one of which may stand there in the place of the round's, which it becomes. */
void ask_adopt(struct call_table *t, struct round *r, unsigned node, int64_t floor, struct span from);
/* A key that is gone is put back, if that happens before put_back; PAST: it is not. */
void ask_extend(struct call_table *t, struct round *r, unsigned node, int64_t floor, struct instant put_back);
/* The second round of an acquire. beyond: the fence is lifted even beyond the limit. */
void ask_raise(struct call_table *t, struct round *r, unsigned node, bool beyond);
void ask_look(struct call_table *t, struct round *r, unsigned node);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Outstanding releases. From debt_begin on our value is dead: every store where it may stand is told until it says so, or the key has expired by itself.
 * So are the prior values that may stand in its place.
 */
#ifndef CORE_DEBT_H
#define CORE_DEBT_H

#include "daemon/core/parts.h"

/* OP_RELEASE deletes, OP_LEAVE leaves the key for px_us. The pending, if any, is answered once a quorum has confirmed. */
void debt_begin(struct engine *e, struct lock *l, enum op_kind kind, int64_t px_us, struct pending *p);
struct instant debt_retry_at(struct engine *e); /* when to ask again what refused, or had too much to do: each call takes a moment of its own */
void debt_go_on(struct engine *e, struct op *op); /* its turn has come */
void debt_answered(struct engine *e, struct op *op, const struct answer *a);
void debt_fired(struct engine *e, struct op *op);
void debts_resume(struct engine *e); /* a store is back, or works again: what it missed or was put off has its turn before those who ask */
void debts_tell(struct engine *e, const struct lock *l); /* of this lock: what was put off is sent now, where there is room */
void debts_hurry(struct engine *e); /* the daemon stops: there will be no turn */
/* When it stops: nobody waits for the stores any more, so every UNLOCK sync=yes is answered. Whether there was one. */
bool debts_answer_syncs(struct engine *e);

#endif

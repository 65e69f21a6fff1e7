/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Outstanding releases. From release_begin on our value is dead: every store where it may stand is told until it says so, or the key has expired by itself.
 * So are the prior values that may stand in its place.
 */
#ifndef CORE_RELEASE_H
#define CORE_RELEASE_H

#include "daemon/core/parts.h"

/* RELEASE_LEAVE leaves the key for px_us. The pending, if any, is answered once a quorum has confirmed. */
void release_begin(struct engine *e, struct lease *x, enum release_kind kind, int64_t px_us, struct pending *p);
void release_round(struct engine *e, struct round *r); /* a round that is not won, or for nobody: its value is deleted */
struct instant release_retry_at(struct engine *e); /* when to ask again what refused, or had too much to do: each call takes a moment of its own */
void release_go_on(struct engine *e, struct release *r); /* it is admitted */
void release_answered(struct engine *e, struct release *r, const struct answer *a);
void release_fired(struct engine *e, struct release *r);
void release_resume_all(struct engine *e); /* a store is back, or works again: what it missed or was put off is admitted before those who ask */
void release_tell_put_off(struct engine *e, const struct name *name); /* of this name: what was put off is sent now, where there is room */
void release_hurry_all(struct engine *e); /* the daemon stops: nothing is admitted any more */
/* When it stops: nobody waits for the stores any more, so every UNLOCK sync=yes is answered. Whether there was one. */
bool release_answer_syncs(struct engine *e);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines about permits: to their clients, and to sessions that watch. */
#ifndef CORE_PERMIT_LINES_H
#define CORE_PERMIT_LINES_H

#include "daemon/core/reply/watch.h"
#include "daemon/core/session/semaphore.h"

/* Fields: name, permit, fence. */
void reply_permit(struct reply *r, const struct permit *p);
/* OK of its EXTEND. */
void permit_tell_extended(struct request_context *x, const struct pending *p);
/* "! LOST …" and the like; without a field if `field` is NULL. */
void permit_tell(struct request_context *x, const struct permit *p, const char *word, const char *field);
/* How many permits could be had, as far as this daemon knows. */
unsigned semaphore_free_slots(const struct semaphore *m);
/* OK of an ACQUIRE, also one that is repeated. */
void permit_tell_granted(struct request_context *x, struct permit *p, struct span tag);
/* SHOW: rows for the permits that sessions of this daemon have, and those that wait. */
void semaphore_show(struct request_context *x, struct session *s, const struct semaphore *m);
void permit_watch_tell(struct request_context *x, const struct permit *p, enum watch_kind kind);
static inline void permit_watch(struct request_context *x, const struct permit *p, enum watch_kind kind)
{
	if (x->engine->watched > 0 || x->core->name_groups)
		permit_watch_tell(x, p, kind);
}

#endif

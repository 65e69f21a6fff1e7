/* SPDX-License-Identifier: BSD-2-Clause */
/* SUBSCRIBE, and CONTENDED about permits: whoever has one is told that others wait for permits of the semaphore. For locks see watch.h. */
#ifndef CORE_CONTENDED_H
#define CORE_CONTENDED_H

#include "daemon/core/reply/permit_lines.h"

enum contended_why {
	CONTENDED_NEWS,  /* the session has subscribed, or somebody has begun to wait, or says again that he waits; it is told at most every 100 ms */
	CONTENDED_FIRST, /* the session has got the permit */
};

void contended_tell(struct request_context *x, struct permit *p, enum contended_why why);
/* A request of this daemon has begun to wait. */
void contended_tell_all(struct request_context *x, const struct semaphore *m);

static inline void contended_permit(struct request_context *x, struct permit *p, enum contended_why why)
{
	if (x->engine->watched > 0)
		contended_tell(x, p, why);
}

static inline void contended_semaphore(struct request_context *x, const struct semaphore *m)
{
	if (x->engine->watched > 0)
		contended_tell_all(x, m);
}

void serve_SUBSCRIBE(struct request_context *x, struct session *s);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* LOCK: what it asks of the engine, and the bounds that a request that waits must keep. */
#ifndef CORE_LOCKS_H
#define CORE_LOCKS_H

#include "daemon/core/session/request_context.h"

void serve_LOCK(struct request_context *x, struct session *s);

/* Whether the session has as many waiting requests as it may. */
bool session_waits_enough(const struct session *s, uint64_t most);
/* An owner that waits for a lock in one mode and had it in the other would wait for itself. False: the request, which asks for that name, was refused. */
bool mode_is_free(struct request_context *x, struct session *s, struct span name);
static inline bool mode_is_allowed(struct request_context *x, struct session *s, struct span name)
{
	return (s->waiting == 0 && LIST_EMPTY(&s->groups)) || mode_is_free(x, s, name);
}

#endif

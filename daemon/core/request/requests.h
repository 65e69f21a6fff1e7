/* SPDX-License-Identifier: BSD-2-Clause */
/* One handler for each request. */
#ifndef CORE_REQUESTS_H
#define CORE_REQUESTS_H

#include "daemon/core/event/metric.h"
#include "daemon/core/semaphore/permit.h"
#include "daemon/core/session/group.h"
#include "daemon/core/session/jobs.h"
#include "daemon/core/session/request_context.h"

/* UNLOCK, EXTEND, CHECK: requests about a lock that the session has. */

void lock_unlock(struct request_context *x, struct session *s);
void lock_extend(struct request_context *x, struct session *s);
void lock_check(struct request_context *x, struct session *s);

/* LOCK: what it asks of the engine, and the bounds on requests that wait. */

void serve_LOCK(struct request_context *x, struct session *s);

/* Whether the session may have one more waiting request. False: the request was refused. */
bool waits_have_room(struct request_context *x, struct session *s);
/* An owner that has a lock in one mode, and waits for it in the other, would wait for itself. False: the request, which asks for that name, was refused. */
bool mode_is_free(struct request_context *x, struct session *s, struct span name);
static inline bool mode_is_allowed(struct request_context *x, struct session *s, struct span name)
{
	return (s->waiting == 0 && TAILQ_EMPTY(&s->bids[BID_GROUP])) || mode_is_free(x, s, name);
}

/* The requests LOCKALL and LOCKANY: their bounds, and the group that they create. */

void serve_LOCKALL(struct request_context *x, struct session *s);
void serve_LOCKANY(struct request_context *x, struct session *s);

/* RELEASE; and UNLOCK, EXTEND and CHECK. These three are about a permit if the session has one of that name, else about a lock. */

void serve_RELEASE(struct request_context *x, struct session *s);
void serve_UNLOCK(struct request_context *x, struct session *s);
void serve_EXTEND(struct request_context *x, struct session *s);
void serve_CHECK(struct request_context *x, struct session *s);

/* The request ACQUIRE. */

void serve_ACQUIRE(struct request_context *x, struct session *s);

/* The requests DEFER, TAKE, DONE and RETRY. */

void serve_DEFER(struct request_context *x, struct session *s);
void serve_TAKE(struct request_context *x, struct session *s);
void serve_DONE(struct request_context *x, struct session *s);
void serve_RETRY(struct request_context *x, struct session *s);
void serve_DROP(struct request_context *x, struct session *s);

/* LIST. */

void serve_LIST(struct request_context *x, struct session *s);

/* All figures, as samples: those of the service, and those of the outer layer. */

/* In the order of metric.def. Changes nothing. */
void tally(const struct request_context *x, const struct sampler *to);

/* HELP and STATS: they change nothing, and are answered at once. */

void serve_HELP(struct request_context *x, struct session *s);
void serve_STATS(struct request_context *x, struct session *s);

#endif

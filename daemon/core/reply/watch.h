/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WATCH and SUBSCRIBE: what happens to locks at this daemon is told to sessions that asked for it, and to the audit log. As long as there is neither, each
 * call below costs one test of engine.watched. Nothing here waits for a client: what one does not read is output like any other, and ends its connection at
 * limits.output.
 */
#ifndef CORE_WATCH_H
#define CORE_WATCH_H

#include "daemon/core/event/journal.h"
#include "daemon/core/session/request_context.h"

enum watch_kind {
	WATCH_GRANTED,  /* the claim holds the lock, or has converted its hold */
	WATCH_RELEASED, /* its hold is about to end: UNLOCK, the end of its session, or nobody has asked for it in time */
	WATCH_LOST,     /* it has lost the lock */
	WATCH_WAITING,  /* it is in the queue, and did not get the lock at once */
};

void watch_tell(struct request_context *x, const struct claim *c, enum watch_kind kind);
/* The claim was told OK: who watches hears of it, and the claim itself of those who wait for it. */
void watch_tell_granted(struct request_context *x, struct claim *c);
/* The latter alone. */
void watch_tell_who_waits(struct request_context *x, struct claim *c);
/* Tells the holders that have subscribed that others wait; but not more often than every 100 ms. For the notices that are made only where sessions watch. */
void watch_tell_contended(struct request_context *x, const struct lock *l);

static inline void watch(struct request_context *x, const struct claim *c, enum watch_kind kind)
{
	if (x->engine->watched > 0)
		watch_tell(x, c, kind);
}

static inline void watch_granted(struct request_context *x, struct claim *c)
{
	if (x->engine->watched > 0)
		watch_tell_granted(x, c);
}

static inline void watch_who_waits(struct request_context *x, struct claim *c)
{
	if (x->engine->watched > 0)
		watch_tell_who_waits(x, c);
}

/* The daemon drains or stops: tells subscribers DRAIN. */
void watch_drain(struct request_context *x);
/* What it has asked for, as records; and back, in the next process. What waited before is no news to it; events that it was not told yet were missed. */
void watch_remember(struct request_context *x, const struct session *s);
void watch_restore(struct request_context *x, struct session *s, const struct journal_record *r);
/* The session has no connection any more: it is told nothing from now on. */
void watch_drop(struct request_context *x, struct session *s);

void serve_WATCH(struct request_context *x, struct session *s);
void serve_UNWATCH(struct request_context *x, struct session *s);
/* SUBSCRIBE is answered, and the session told who waits for the locks that it holds. False: it had subscribed already. */
bool watch_subscribe(struct request_context *x, struct session *s);
bool watch_is_subscribed(const struct session *s);
void serve_UNSUBSCRIBE(struct request_context *x, struct session *s);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* WATCH and SUBSCRIBE: reports the locks and permits of others to a session, and who waits for its own. */
#ifndef CORE_WATCH_H
#define CORE_WATCH_H

#include "daemon/core/event/journal.h"
#include "daemon/core/session/request_context.h"
#include "daemon/core/session/semaphore.h"

/*
 * Events for the sessions that watch. A step tells so much; the rest waits in a line, and the next steps, which follow at once, tell it in order: of the first
 * event perhaps only some are left to be told. While the line is full, events are only counted: once it is empty, who watches hears how many were missed.
 */

struct prefix {
	TAILQ_ENTRY(prefix) next; /* the first was watched first */
	struct instant since;     /* when it was watched … */
	uint64_t after;           /* … and the number of the last event before that */
	size_t n;
	char bytes[];
};

/* What a session has only while it watches or has subscribed. */
struct watching {
	TAILQ_ENTRY(watching) in_watchings; /* count > 0 */
	struct session *session;
	TAILQ_HEAD(prefixes, prefix) prefixes;
	unsigned count; /* of prefixes */
	uint64_t told;  /* the number of the last event that was compared with them, or was before all of them */
	bool subscribed;
};

void news_init(struct request_context *x);
void news_free(struct request_context *x);
/* Ends the reply. Each session that watches the name now, and has since that moment, gets the same bytes, in this or one of the next steps. */
void news_send(struct request_context *x, struct span name, struct instant since, struct reply *r);
/* Tells what the last steps had no time for. */
void news_again(struct request_context *x);

/*
 * WATCH and SUBSCRIBE: what happens to locks at this daemon is told to sessions that asked for it, and to the audit log. As long as there is neither, each
 * call below costs one test of engine.watched. Nothing here waits for a client: what one does not read is output like any other, and ends its connection at
 * limits.output.
 */

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

/* The lines about permits: to their clients, and to sessions that watch. */

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

/* SPDX-License-Identifier: BSD-2-Clause */
/* WATCH and SUBSCRIBE: report to a session the locks and permits of others, and who waits for its own. */
#ifndef CORE_WATCH_H
#define CORE_WATCH_H

#include "daemon/core/event/journal.h"
#include "daemon/core/reply/send.h"
#include "daemon/core/session/request_context.h"
#include "daemon/core/session/semaphore.h"

/*
 * Events for the sessions that watch. A step sends a bounded amount. The rest waits in a line, and the next steps, which follow at once, send it in order. The
 * first event in the line may have been sent to some sessions already. While the line is full, events are only counted. When it is empty again, the sessions
 * are told how many they missed.
 */

struct prefix {
	TAILQ_ENTRY(prefix) next; /* the oldest is the first */
	struct instant since;     /* when the watch began … */
	uint64_t after;           /* … and the number of the last event before that */
	size_t n;
	char bytes[];
};

/* What a session needs only if it watches or has subscribed. */
struct watching {
	TAILQ_ENTRY(watching) in_watchings; /* if count > 0 */
	struct session *session;
	TAILQ_HEAD(prefixes, prefix) prefixes;
	unsigned count; /* the number of prefixes */
	uint64_t compared; /* the number of the last event that was compared with the prefixes, or came before all of them */
	bool subscribed;
};

void news_init(struct request_context *x);
void news_free(struct request_context *x);
/* Ends the reply. Sends it to each session that watches the name now, and has done so since that moment: in this step or one of the next. */
void news_send(struct request_context *x, struct span name, struct instant since, struct reply *r);
/* Sends what the last steps had no time for. */
void news_again(struct request_context *x);

/*
 * WATCH and SUBSCRIBE: what happens to locks at this daemon is reported to the sessions that asked for it, and to the audit log. If there is neither, each call
 * below costs one test of engine.watched. Nothing here waits for a client. What a client does not read counts as its output, and ends its connection at
 * limits.output.
 */

enum watch_kind {
	WATCH_GRANTED,  /* the claim holds the lock, or has converted its hold */
	WATCH_RELEASED, /* its hold is about to end: by UNLOCK, with its session, or because nobody has asked for it in time */
	WATCH_LOST,     /* it has lost the lock */
	WATCH_WAITING,  /* it is in the queue, because it did not get the lock at once */
};

/* Reports to the sessions that watch, to the audit log and to the slow log. */
void report_send(struct request_context *x, struct report of, enum watch_kind kind);
void watch_report(struct request_context *x, const struct claim *c, enum watch_kind kind);
/* Only reports who waits for it. */
void watch_send_waiters(struct request_context *x, struct claim *c);
/* Tells the holders that have subscribed that others wait, at most every 100 ms. For notices that exist only if sessions watch. */
void watch_send_contended(struct request_context *x, const struct lock *l);

/* Other daemons want the name. Each of them repeats that before its ticket ends. */
static inline bool lock_is_wanted(const struct request_context *x, const struct lock *l)
{
	return l->contender->want_since.us && instant_diff(x->core->now, l->contender->wanted_at) < TICKET_US;
}

static inline void watch(struct request_context *x, const struct claim *c, enum watch_kind kind)
{
	if (x->engine->watched > 0)
		watch_report(x, c, kind);
}

static inline void watch_granted(struct request_context *x, struct claim *c)
{
	if (x->engine->watched == 0)
		return;
	watch_report(x, c, WATCH_GRANTED);
	watch_send_waiters(x, c);
}

static inline void watch_who_waits(struct request_context *x, struct claim *c)
{
	if (x->engine->watched > 0)
		watch_send_waiters(x, c);
}

/* The daemon drains or stops: sends DRAIN to subscribers. */
void watch_drain(struct request_context *x);
/*
 * Writes what it has asked for as records, and restores that in the next process. Requests that waited before are not reported again. Events that were not sent
 * yet count as missed.
 */
void watch_remember(struct request_context *x, const struct session *s);
void watch_restore(struct request_context *x, struct session *s, const struct journal_record *r);
/* The session has no connection any longer: nothing is sent to it from now on. */
void watch_drop(struct request_context *x, struct session *s);

void serve_WATCH(struct request_context *x, struct session *s);
void serve_UNWATCH(struct request_context *x, struct session *s);
/* Answers SUBSCRIBE, and reports who waits for the locks that the session holds. False: it had subscribed already. */
bool watch_subscribe(struct request_context *x, struct session *s);
bool watch_is_subscribed(const struct session *s);
void serve_UNSUBSCRIBE(struct request_context *x, struct session *s);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The request in flight, or the one answered last: its line, and what has to be known to send it again over another connection.
 */
#ifndef CLIENT_PENDING_H
#define CLIENT_PENDING_H

#include "client/lib/buffer.h"
#include "client/lib/holds.h"

/* Whether, and how, a request is repeated over the next connection. */
enum pending_kind {
	PENDING_ONCE,  /* not repeated: the caller is told that nobody knows whether it was done */
	PENDING_HELLO, /* not repeated; its answer opens a session */
	PENDING_READ,  /* CHECK, EXTEND, and what only asks: repeated, which does no harm, unless the caller has got rows of its answer */
	PENDING_LOCK,
	PENDING_LOCKALL, /* this and the next: its names are those that are in_bundle */
	PENDING_LOCKANY,
	PENDING_TAKE,   /* repeated: after RESUME the daemon answers with the job that it has given and of which nobody has heard */
	PENDING_UNLOCK, /* repeated if it says its count, which it does where the lock is tracked */
};

#define COUNTED_BYTES 80 /* room behind the line for " fence=… count=…" */

struct pending {
	bool in_flight;
	enum pending_kind kind;
	char name[NAME_MAX_BYTES + 1]; /* "" for the first two, and for several names */
	struct buffer line;
	size_t n; /* of line, which is sent with fence= and count= behind it (count_field.h) */
	size_t wait_at, wait_n; /* of a request that may wait: where " wait=…" stands in line */
	int64_t wait_until_us;  /* likewise: 0 does not wait; INT64_MAX for ever */
	int64_t asked_us;       /* when the caller asked; the line may be sent more than once */
	int64_t sent_us;        /* read before it was last sent */
	bool sent;              /* over some connection: the daemon may have done it */
	bool again;             /* over more than one: what is not granted now may have been granted before */
	bool told;              /* the caller has got a row of the answer */
	bool cancelled;         /* the caller has withdrawn it: whenever a TAKE is sent, CANCEL follows; a LOCK is not sent again */
	bool anchors;           /* the CHECK after a LOCK */
	bool shared, permit;    /* LOCK: how its lock is to be held */
	bool unsure;            /* RESUME has left open whether the session holds all that it held: the stores have not confirmed it yet */
	int64_t count;          /* what count= said when it was last sent; -1: nothing */
};

/* Sets the next request, of n bytes; name is "" unless the request is about a lock. -ENOMEM. */
int pending_set(struct pending *p, enum pending_kind kind, const char *name, const char *line, size_t n) REDLOCK_MUST;
void pending_release(struct pending *p);
/* Until when it waits, and where " wait=…" stands in its line. */
void pending_wait(struct pending *p, size_t at, size_t n, int64_t until_us);
/* The request is in flight from now on; it is not sent yet. */
void pending_begin(struct pending *p, int64_t now);
bool pending_is(const struct pending *p, enum pending_kind kind, const char *name);
/* Whether it goes on over the next connection. */
bool pending_is_repeated(const struct pending *p);
/* Whether it asks for locks: only then it may wait. */
bool pending_locks(const struct pending *p);
/* Whether it is in flight and asks for this lock. */
bool pending_asks_for(const struct pending *p, const struct hold *h);
/* The request asks for the rest of its wait. At least a millisecond is left, so that the end is TIMEOUT and not BUSY. */
void pending_wait_rest(struct pending *p, int64_t now);
/*
 * Whether an answer does not end the request, which is sent again soon: the daemon is about to stop and another may come, or the
 * daemon does not know yet whether the lock that it granted, or the job that it gave, is still held.
 */
bool pending_goes_on(const struct pending *p, const struct reply_line *answer, int64_t now);

#endif

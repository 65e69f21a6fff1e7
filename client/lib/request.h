/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A request: its line while it is drafted, and its state while it is in flight.
 */
#ifndef CLIENT_REQUEST_H
#define CLIENT_REQUEST_H

#include "client/lib/line.h"

#define TAG_TO_CANCEL "@lock " /* the tag of a request that redlock_cancel can withdraw */

struct draft {
	struct buffer line; /* with a NUL and without LF; less than LINE_MAX_DEFAULT bytes */
	size_t n;
	size_t wait_at;  /* the place in line for " wait=…", if the request may wait */
	int64_t wait_ms; /* how long it may wait; 0: it does not wait */
	int error; /* -EMSGSIZE: something did not fit; -ENOMEM. The line must not be sent */
};

/* "VERB" alone. */
void draft_verb(struct draft *d, const char *verb);
/* "VERB name", quoted. */
void draft_begin(struct draft *d, const char *verb, const char *name);
void draft_text(struct draft *d, const char *text);
/* Appends `before` as it is, then text, quoted if necessary. NULL: appends nothing. */
void draft_quoted(struct draft *d, const char *before, const char *text);
/* The same for any bytes. */
void draft_bytes(struct draft *d, const char *before, struct redlock_bytes text);
/* " field=…" */
void draft_number(struct draft *d, const char *field, int64_t number);
/* " field=…ms" */
void draft_ms(struct draft *d, const char *field, int64_t ms);
/* " field=…" and the unit, if the number is more than 0. */
void draft_positive(struct draft *d, const char *field, int64_t number, const char *unit);
/* Marks the place for " wait=…", which pending_draft writes, unless wait_ms is 0. */
void draft_wait(struct draft *d, int64_t wait_ms);
/* The options of a LOCK. */
void draft_options(struct draft *d, const struct redlock_options *o);

/* --- the request in flight, or the one answered last: its line, and what is needed to send it again over another connection --- */

/* Whether and how a request is repeated over the next connection. */
enum pending_kind {
	PENDING_ONCE,  /* not repeated: the caller learns that it is not known whether it was done */
	PENDING_HELLO, /* not repeated; its answer opens a session */
	PENDING_READ,  /* CHECK, EXTEND and queries: repeated, which does no harm, unless the caller has got rows of its answer */
	PENDING_LOCK,
	PENDING_LOCKALL,
	PENDING_LOCKANY,
	PENDING_TAKE,   /* repeated: after RESUME the daemon answers with the job that it gave, if the client has not shown that it knows the job */
	PENDING_UNLOCK, /* repeated if it has a count, which it has if the lock is tracked */
};

#define COUNTED_BYTES 96 /* room that a line leaves for " wait=… fence=… count=…" */

struct pending {
	bool in_flight;
	enum pending_kind kind;
	char name[NAME_MAX_BYTES + 1]; /* "" for the first two kinds, and for several names */
	struct buffer line;
	size_t n; /* length of line; it is sent with wait= inside, and fence= and count= after it (count_field_draft) */
	size_t wait_at;         /* as in struct draft */
	int64_t wait_ms;        /* likewise; over the next connection it is the rest of the wait */
	int64_t wait_until_us;  /* the end of that wait; INT64_MAX: never */
	int64_t busy_ms;        /* how long the answer may take in addition to timeout_ms, or REDLOCK_FOREVER */
	int64_t timeout_ms;     /* the timeout of the connection when the caller sent the request */
	int64_t asked_us;       /* when the caller sent the request; the line may be sent more than once */
	int64_t sent_us;        /* the moment before it was last sent */
	bool sent;              /* over any connection: the daemon may have done it */
	bool again;             /* sent over more than one connection: an earlier one may have been granted what this one was not */
	bool row_passed;        /* the caller has got a row of the answer */
	bool cancelled;         /* the caller has withdrawn it: CANCEL follows each time a TAKE is sent; a LOCK is not sent again */
	bool anchors;           /* it is the CHECK after a LOCK */
	bool shared, permit;    /* for a LOCK: how the lock will be held */
	bool unsure;            /* after RESUME the stores have not confirmed yet that the session still holds everything that it held */
	int64_t count;          /* the count= with which it was last sent; -1: none */
};

/* Sets the next request; name is "" unless the request is about a lock. -ENOMEM. */
int pending_set(struct pending *p, enum pending_kind kind, const char *name, const struct draft *d) REDLOCK_MUST;
/* Puts the request in flight; it is not sent yet. */
void pending_begin(struct pending *p, int64_t now);
bool pending_is(const struct pending *p, enum pending_kind kind, const char *name);
/* Whether it is sent again over the next connection. */
bool pending_is_repeated(const struct pending *p);
bool pending_locks(const struct pending *p);
/* Drafts the request with its wait=. */
void pending_draft(const struct pending *p, struct draft *d);
/* Reduces wait= to what is left of the wait. It stays at least a millisecond, so that the answer is TIMEOUT and not BUSY. */
void pending_wait_rest(struct pending *p, int64_t now);
/*
 * Whether the request is sent again soon, because this answer does not end it. Either the daemon is about to stop, and another may come. Or it does
 * not know yet whether the lock or the job that it gave is still held.
 */
bool pending_goes_on(const struct pending *p, const struct reply_line *answer, int64_t now);

#endif

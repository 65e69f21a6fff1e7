/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A request: its line while it is put together, and what has to be known of it while it is in flight.
 */
#ifndef CLIENT_REQUEST_H
#define CLIENT_REQUEST_H

#include "client/lib/line.h"

#define TAG_TO_CANCEL "@lock " /* of a request that redlock_cancel can withdraw */

struct draft {
	struct buffer line; /* with a NUL and without LF; less than LINE_MAX_DEFAULT bytes */
	size_t n;
	size_t wait_at;  /* of a request that may wait: where its " wait=…" will stand in line */
	int64_t wait_ms; /* likewise: for how long; 0: it does not wait */
	int error; /* -EMSGSIZE: something did not fit; -ENOMEM. The line is not to be sent */
};

/* "VERB" alone. */
void draft_verb(struct draft *d, const char *verb);
/* "VERB name", quoted. */
void draft_begin(struct draft *d, const char *verb, const char *name);
void draft_text(struct draft *d, const char *text);
/* Appends `before` as it is, then text, quoted where it must be. NULL: nothing. */
void draft_quoted(struct draft *d, const char *before, const char *text);
/* The same for any bytes. */
void draft_bytes(struct draft *d, const char *before, struct redlock_bytes text);
/* " field=…" */
void draft_number(struct draft *d, const char *field, int64_t number);
/* " field=…ms" */
void draft_ms(struct draft *d, const char *field, int64_t ms);
/* " field=…" and the unit, if the number is more than 0. */
void draft_positive(struct draft *d, const char *field, int64_t number, const char *unit);
/* " wait=…" is to be said here, unless it is 0: see pending_draft. */
void draft_wait(struct draft *d, int64_t wait_ms);
/* The options of a LOCK. */
void draft_options(struct draft *d, const struct redlock_options *o);

/* --- the request in flight, or the one answered last: its line, and what has to be known to send it again over another connection --- */

/* Whether, and how, a request is repeated over the next connection. */
enum pending_kind {
	PENDING_ONCE,  /* not repeated: the caller is told that nobody knows whether it was done */
	PENDING_HELLO, /* not repeated; its answer opens a session */
	PENDING_READ,  /* CHECK, EXTEND, and what only asks: repeated, which does no harm, unless the caller has got rows of its answer */
	PENDING_LOCK,
	PENDING_LOCKALL,
	PENDING_LOCKANY,
	PENDING_TAKE,   /* repeated: after RESUME the daemon answers with the job that it has given and of which nobody has heard */
	PENDING_UNLOCK, /* repeated if it says its count, which it does where the lock is tracked */
};

#define COUNTED_BYTES 96 /* room that a line leaves for " wait=… fence=… count=…" */

struct pending {
	bool in_flight;
	enum pending_kind kind;
	char name[NAME_MAX_BYTES + 1]; /* "" for the first two, and for several names */
	struct buffer line;
	size_t n; /* of line, which is sent with wait= in it, and with fence= and count= behind it (count_field_draft) */
	size_t wait_at;         /* as in struct draft */
	int64_t wait_ms;        /* likewise; over the next connection it is what is left */
	int64_t wait_until_us;  /* the end of that wait; INT64_MAX: never */
	int64_t busy_ms;        /* how much longer than the timeout of the connection the answer may take, or REDLOCK_FOREVER */
	int64_t timeout_ms;     /* that one, when the caller asked */
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

/* Sets the next request; name is "" unless the request is about a lock. -ENOMEM. */
int pending_set(struct pending *p, enum pending_kind kind, const char *name, const struct draft *d) REDLOCK_MUST;
/* The request is in flight from now on; it is not sent yet. */
void pending_begin(struct pending *p, int64_t now);
bool pending_is(const struct pending *p, enum pending_kind kind, const char *name);
/* Whether it goes on over the next connection. */
bool pending_is_repeated(const struct pending *p);
/* Whether it asks for locks: only then it may wait. */
bool pending_locks(const struct pending *p);
/* Drafts the request with its wait. */
void pending_draft(const struct pending *p, struct draft *d);
/* The request asks for the rest of its wait. At least a millisecond is left, so that the end is TIMEOUT and not BUSY. */
void pending_wait_rest(struct pending *p, int64_t now);
/*
 * Whether an answer does not end the request, which is sent again soon: the daemon is about to stop and another may come, or the
 * daemon does not know yet whether the lock that it granted, or the job that it gave, is still held.
 */
bool pending_goes_on(const struct pending *p, const struct reply_line *answer, int64_t now);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session is one client as the service sees it: who it is, its claims, its requests in flight, and the lines that were read ahead while an untagged
 * request is under way. It holds no socket. One that asked for grace outlives its connection: it is detached until RESUME, or until its grace is over.
 * See ALGORITHMS.md, Sessions.
 */
#ifndef CORE_SESSION_H
#define CORE_SESSION_H

#include "daemon/base/buf.h"
#include "daemon/core/listing.h"
#include "daemon/core/lock.h"

#define READ_AHEAD_MAX 256
#define UNSENT_MAX 16384 /* bytes that lines read ahead may be answered with before the outer layer is asked whether they are read */

#define WHO_MAX 384 /* bytes of session_who: the longest label, and the peer */

struct session {
	TAILQ_ENTRY(session) in_ready;
	TAILQ_ENTRY(session) in_detached;
	struct map_node by_serial; /* of those with grace */
	uint64_t id;             /* the outer layer's number; 0: detached */
	uint64_t serial;         /* what people call it */
	struct peer peer;
	char *label;             /* HELLO name=; NULL */
	char secret[33];         /* "" until the first HELLO */
	struct instant opened_at, heard_at;
	int64_t heartbeat_us;    /* 0: none asked for */
	struct timer timer;      /* of the heartbeat; once it has said its last word, of the rounds that may still answer */
	int64_t grace_us;        /* how long it outlives its connection; 0: not */
	struct timer grace;      /* detached: end of the grace. Else: RESUME waits no longer for adoptions */
	struct instant detached_at;
	char resume_tag[TAG_MAX + 1];
	struct claims claims;    /* all of them, waiting, held and lost */
	struct pendings pendings;
	struct listings listings; /* LISTs that are not answered yet */
	unsigned held, waiting;  /* claims held or lost; LOCKs that are not answered yet */
	unsigned orphans;        /* waiting, and unheard */
	struct buf ahead;        /* lines read ahead: length, then bytes */
	unsigned ahead_count;
	size_t unsent;           /* bytes sent since EVENT_SENT was last heard, as far as is known here */
	bool awaiting;           /* EVENT_SENT was asked for */
	bool reading;            /* false: told to stop */
	bool busy;               /* an untagged request is under way */
	bool ready;              /* in the list of sessions that have lines to go on with */
	bool leaving;            /* its end of input is near or here: it waits for nobody any more */
	bool eof;                /* no further line will come */
	bool over;               /* being ended: nothing is sent any more */
	bool lingered;           /* leaving, and the rounds that may answer it have had their time */
	bool known;              /* can be resumed, and is in the journal: in the map, grace_us > 0 */
	bool detached;           /* without a connection: nothing is sent, and nothing of its input goes on */
	bool sure;               /* detached: its client closed the connection itself */
	bool resuming;           /* RESUME is not answered yet */
	unsigned open;           /* resuming: adoptions that were not decided when they were counted last, less those that were since */
	bool resumed;            /* it has taken over another: there may be places and turns to come back to */
	uint64_t mistakes;       /* in a row */
};
TAILQ_HEAD(sessions, session);

struct session_table {
	struct core *core;
	struct session **slot;
	uint32_t slots;
	struct pool pool;
	struct sessions ready, detached;
	struct map known;
	uint64_t serial;
	unsigned count, detached_count; /* with and without a connection */
};

void session_table_init(struct session_table *t, struct core *core);
void session_table_release(struct session_table *t); /* their claims are the lock table's to free */

struct session *session_open(struct session_table *t, uint64_t id, const struct peer *peer);
struct session *session_find(struct session_table *t, uint64_t id); /* NULL: none of this id */
void session_close(struct session_table *t, struct session *s);     /* its claims and pendings are gone */

/* With grace it can be found by its number, without it not any more. */
void session_set_known(struct session_table *t, struct session *s, bool known);
struct session *session_of_serial(struct session_table *t, uint64_t serial); /* NULL: none that can be resumed */
/* One of the former life. */
struct session *session_restore(struct session_table *t, uint64_t serial);
/* Leaves its connection: what was read of it and is not served is dropped. */
void session_detach(struct session_table *t, struct session *s);
/* What `from`, detached, is and has goes over to `to`, which has nothing; from is no more. */
void session_take_over(struct session_table *t, struct session *to, struct session *from);

/* A line for later: p = NULL stands for one that was too long. */
void session_read_ahead(struct session_table *t, struct session *s, const char *p, size_t n);
/* The next line of those, in place; NULL p: it was too long. False: none. Valid until the next read_ahead. */
bool session_next_line(struct session_table *t, struct session *s, char **ret_line, size_t *ret_n);
/* The next line must wait: much was sent and is perhaps not read. Asks for EVENT_SENT, unless it has. */
bool session_must_await(struct session_table *t, struct session *s);
/* A request that took its time is answered: after an untagged one the next line may go. */
void session_answered(struct session_table *t, struct session *s, bool tagged);
/* One thing less that RESUME waits for. After the last of those that were counted it is looked at with those that are ready. */
void session_wake(struct session_table *t, struct session *s);
struct session *session_next_ready(struct session_table *t);

void session_heard(struct session_table *t, struct session *s);
void session_set_label(struct session *s, struct span label);
/* What is in flight under this tag. */
struct claim *session_waiting(const struct session *s, struct span tag);
bool session_tag_in_use(const struct session *s, struct span tag);

/* Effects: room for one line; then how much of it was used. */
char *session_line(struct session_table *t);
void session_send(struct session_table *t, struct session *s, const char *line, size_t n);
void session_hang_up(struct session_table *t, struct session *s, const char *reason);

/* A line for the log: a session ended otherwise than by its own wish. */
void session_ended(struct session_table *t, const struct session *s, const char *reason);

/* "label pid=1 uid=2", "label 10.0.0.5:51234", of the former life "label session=3": who it is, for people. Returns the length; out has WHO_MAX bytes. */
size_t session_who(const struct session *s, char *out);

#endif

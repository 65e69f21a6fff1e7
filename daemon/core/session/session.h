/* SPDX-License-Identifier: BSD-2-Clause */
/* One client: identity, claims, requests in flight, lines read ahead; and the names that each user locked last. */
#ifndef CORE_SESSION_H
#define CORE_SESSION_H

#include "daemon/base/arena.h"
#include "daemon/base/buf.h"
#include "daemon/base/map.h"
#include "daemon/base/roll.h"
#include "daemon/core/lock/lock.h"
#include "proto/span.h"

#include <stdbool.h>

struct session;

/* Users, as RECENT distinguishes them, and the names that each of them locked last. A session has a user from its first grant on. */

#define USER_MAX     96   /* bytes of its name; a longer one is cut */
#define USERS_MOST   1000 /* so many without a session are remembered */
#define USER_RECENTS 100  /* names that a user locked last */

struct user {
	struct map_node by_name;
	TAILQ_ENTRY(user) in_users; /* the oldest is the first */
	unsigned refs;  /* how many sessions are of this user */
	unsigned notes; /* grants that were noted in this second: see history.h */
	struct roll recent;
	size_t n;
	char name[];    /* see history.c */
};

struct users {
	struct map by_name;
	TAILQ_HEAD(, user) all;
};

void users_init(struct users *t, const uint64_t key[2]);
void users_release(struct users *t);
struct user *users_find_or_add(struct users *t, struct span name);
/* Forgets the oldest users without a session if there are too many. Nothing else refers to such a user. */
void users_trim(struct users *t);

static inline void user_leave(struct user *u)
{
	if (u)
		u->refs--;
}

/* Lines read ahead: lines that a session sent while its untagged request is under way. Zeroed memory is ready for use. */

/* At either bound, of lines or bytes, the session is read no further until both have fallen to half. The line that reaches a bound is kept whole. */
#define READ_AHEAD_LINES 256
#define READ_AHEAD_BYTES 65536
#define READ_AHEAD_WHOLE 16 /* times limits.output: bytes of all sessions. Above it, each is read no further after its first line */
#define READ_AHEAD_MOST  64 /* times limits.output: the same, with long first lines. Above it, the largest session of the largest peer is cut off */

/* A line of a client, or the beginning of one that was too long. The parser may overwrite the bytes. */
struct input {
	char *p;
	size_t n;
	bool is_cut;
};

struct lines_ahead {
	struct buf *lines; /* each is a head followed by its bytes; NULL: there was none yet */
	unsigned count;
};

/* Returns the first line in place. There must be one. It is valid until the next lines_ahead_add. True: lines and bytes are down to half. */
bool lines_ahead_next(struct lines_ahead *a, struct input *ret_line);

/*
 * A session is one client as the service sees it: its identity, its claims, its requests in flight, and the lines read ahead while an untagged
 * request is under way. It holds no socket. A session with grace outlives its connection: it is detached until RESUME, or until its grace is over.
 * See ALGORITHMS.md, Sessions.
 */

TAILQ_HEAD(listings, listing); /* listing.h */
TAILQ_HEAD(watchings, watching); /* watch.c */
TAILQ_HEAD(bids, bid); /* bid.h */
enum bid_kind { BID_TAKE, BID_GROUP, BID_PERMIT, BID_KINDS };
LIST_HEAD(jobs, job); /* jobs.h */
TAILQ_HEAD(places, take_place); /* job.h */

#define UNSENT_MAX 16384 /* bytes of answers to lines read ahead. Above it, the session waits until the outer layer has sent them */

#define UNIX_ADDRESS "unix" /* the address in struct peer for a Unix socket */

/*
 * What a session needs to outlive its connection, and to take over another one. It is created by its first HELLO or RESUME, or from its record in the journal.
 */
struct lasting {
	struct session *session;
	struct map_node by_serial; /* in session_table.known: sessions with grace */
	TAILQ_ENTRY(session) in_detached, in_vacant, in_vacant_of_peer;
	bool vacant;             /* in session_table.vacant, and in origin.vacant */
	char secret[33];
	char resume_tag[TAG_MAX + 1];
	struct timer grace;      /* detached: the end of the grace; else: when RESUME stops waiting for adoptions */
	struct instant detached_at;
	struct instant repeat_until; /* resumed: until then a repeated LOCK finds its old place, or the grant that came meanwhile */
};

/* What is known about a peer besides its uid, if it has shown a secret or a certificate. With rules, all groups of a Unix peer. */
struct identity {
	char *user;      /* from AUTH; NULL: none */
	unsigned failed; /* failed AUTHs since the last that succeeded */
	unsigned groups_n;
	uint32_t groups[];
};

struct session {
	TAILQ_ENTRY(session) in_ready;
	uint64_t id;             /* the number in the outer layer; 0: detached */
	uint64_t serial;         /* the number for users and for RESUME */
	struct lasting *lasting; /* NULL: nothing has needed it yet */
	char *label;             /* name= of HELLO; NULL: none */
	char *address;           /* address of the peer as text; NULL: none, or that of all Unix sockets. After it, if has_subject, the subject. See client.h */
	struct instant opened_at, active_at;
	int64_t heartbeat_us;    /* 0: no heartbeat */
	int64_t resumed_heartbeat_us; /* for a session that it takes over, if that one has no heartbeat: see struct peer */
	struct timer timer;      /* the heartbeat; after the end of input: how long rounds may still answer */
	int64_t grace_us;        /* how long the session outlives its connection; 0: not at all */
	uint32_t hello_fields;   /* the fields that HELLO has set over this connection: RESUME does not change them */
	struct claims claims;    /* all of them, waiting, held and lost */
	struct pendings pendings;
	struct listings listings; /* LISTs that are not answered yet */
	struct bids bids[BID_KINDS]; /* TAKEs, LOCKALLs, LOCKANYs and ACQUIREs that are not answered yet, and permits that it has or has lost */
	struct jobs jobs;        /* the jobs that it has taken */
	struct places places;    /* the places of TAKEs that were lost with their connection */
	struct session *principal; /* if this is the agent of a group or a permit: the session of the client. Else NULL */
	struct identity *identity; /* NULL: the fields below are all that is known */
	struct user *user;       /* NULL: nothing was granted to it yet */
	struct watching *watching; /* watch.c: what it watches; NULL: it has not asked for anything */
	LIST_ENTRY(session) in_short; /* in request_context.renewals; le_prev NULL: it is not there */
	uint32_t judged;         /* the number of the rules that it was last checked against: see admin.h */
	unsigned recounted;      /* when `renewals` was last counted: see send.c */
	int64_t renewals;        /* how many a second its short leases need, in thousandths: see send.h */
	struct origin *origin;   /* the peer that limits count; NULL: of the previous run */
	struct lines_ahead ahead;
	uint64_t mistakes;       /* consecutive erroneous requests */
	int64_t pid, uid;        /* of the peer, if is_unix */
	size_t unsent;           /* bytes sent since the last EVENT_SENT */
	unsigned held, waiting;  /* claims held or lost; LOCKs not answered yet, where a LOCKALL or LOCKANY counts once for each name */
	unsigned slots;          /* the slots of all semaphores in whose lines its permit is the first */
	unsigned waits_not_notified;        /* waiting claims whose requests were lost with the connection: a repeated LOCK takes one over */
	TAILQ_ENTRY(session) in_nested;
	bool nested;             /* in session_table.nested */
	TAILQ_ENTRY(session) in_gainers; /* in session_table.gainers; tqe_prev NULL: it is not there */
	unsigned open;           /* resuming: the adoptions that were undecided at the last count, minus those decided since */
	bool is_unix, is_local, is_admin; /* of the peer: see struct peer */
	bool is_web;             /* of the peer: it is in no figure and in no list */
	bool at_unix;            /* its address is UNIX_ADDRESS */
	bool has_subject;        /* it has shown a certificate */
	bool awaiting;           /* EVENT_SENT was asked for */
	bool reading;            /* false: EFFECT_READ told the outer layer to stop */
	bool busy;               /* an untagged request is under way */
	bool ready;              /* in session_table.ready: lines read ahead can be served */
	bool leaving;            /* half-closed or at the end of input: its requests wait no longer */
	bool eof;                /* no further line will come */
	bool proven;             /* its first request was valid: it is no web page, see command.c */
	bool refused;            /* DRAIN has refused all its waiting requests */
	bool over;               /* it is being ended: nothing more is sent */
	bool killed;             /* KILL: it ends as soon as its losses are reported */
	bool lingered;           /* leaving, and the time for rounds that may answer it is over */
	bool known;              /* it has, or had, grace: it is in the journal and in session_table.known */
	bool detached;           /* without a connection: nothing is sent, and none of its input is served */
	bool resuming;           /* its RESUME is not answered yet */
	bool returns;            /* resuming because of a restart, not by a request: no answer is sent */
	bool of_permit;          /* this is the agent of a permit */
	bool resumed;            /* it has taken over another session, whose LOCKs may be repeated */
};
TAILQ_HEAD(sessions, session);

struct session_table {
	struct core *core;
	struct session **slot;
	uint32_t slots;
	struct pool pool, lastings;
	struct origins origins;
	size_t ahead; /* bytes that sessions have read ahead */
	struct sessions ready, detached;
	struct vacants vacant; /* detached sessions without a claim, in the order in which they lost their connections or their last claims */
	struct sessions nested; /* those that may wait while they hold something: see deadlock.h */
	unsigned nested_count;
	struct sessions gainers; /* those that got something for which their own groups may wait: see groups.h */
	struct map known;
	uint64_t serial;
	unsigned count, detached_count; /* sessions with and without a connection */
};

#define SESSIONS_A_STEP 16384 /* a walk looks at so many */

/* A walk through all sessions, in portions. Between portions sessions may come and go. It begins zero-filled. */
struct session_walk {
	uint32_t slot;         /* first the sessions of all connections … */
	struct map_walk known; /* … then those that can be resumed. One that a connection takes over meanwhile is still among them */
};

void session_table_init(struct session_table *t, struct core *core);
void session_table_release(struct session_table *t); /* the lock table frees their claims */

/*
 * Calls `each` for every session that exists from the first portion to the last, at least once. Others may be included. If `each` returns false, the walk will
 * continue later with this session, and perhaps with some before it. It also stops after `most` sessions. True: that was the last portion, and the walk is back
 * at its beginning.
 */
bool session_table_walk(const struct session_table *t, struct session_walk *w, int64_t most, bool (*each)(struct session *s, void *context), void *context);

/* The caller sets its peer with session_set_peer() of client.h. */
struct session *session_open(struct session_table *t, uint64_t id, bool is_web);
void session_close(struct session_table *t, struct session *s);     /* its claims and pendings must be gone */

/* Returns what the session needs to outlive its connection, and allocates it if need be. */
struct lasting *session_lasting(struct session_table *t, struct session *s);
/* known: session_of_serial can find the session. */
void session_set_known(struct session_table *t, struct session *s, bool known);
struct session *session_of_serial(struct session_table *t, uint64_t serial); /* NULL: no known session has it */
/* Opens a detached session of the previous run. */
struct session *session_restore(struct session_table *t, uint64_t serial);
/* Separates the session from its connection, and drops its lines read ahead. */
void session_detach(struct session_table *t, struct session *s);
/* A detached session that has no claim left becomes vacant. It stays vacant, because only a connection brings claims. */
void session_note_vacant(struct session_table *t, struct session *s);
/* Moves claims, secret and serial of the detached session `from` to `to`, which must have no claims. Frees `from`. */
void session_take_over(struct session_table *t, struct session *to, struct session *from);

/* Adds it to session_table.nested, or removes it. */
void session_set_nested(struct session_table *t, struct session *s, bool nested);

/* Adds it to session_table.gainers, or removes it. */
void session_set_gains(struct session_table *t, struct session *s, bool gains);

/* Stores a line for later. At READ_AHEAD_LINES or READ_AHEAD_BYTES the outer layer is told to stop reading. */
void session_read_ahead(struct session_table *t, struct session *s, struct input line);
/* If the sessions together have read too much ahead: of the peer with the most, returns the session with the most. Else NULL. */
struct session *session_too_far_ahead(const struct session_table *t);
/* Returns the next stored line in place. False: there is none. Valid until the next session_read_ahead. */
bool session_next_line(struct session_table *t, struct session *s, struct input *ret_line);
/* Whether the next line must wait, because much was sent that the client may not have read. If so, asks for EVENT_SENT once. */
bool session_must_await(struct session_table *t, struct session *s);
/* Asks for EVENT_SENT, unless that was done already. */
void session_await(struct session_table *t, struct session *s);
/* The session becomes ready. It is served at the end of this step, or in one of the next. */
void session_goes_on(struct session_table *t, struct session *s);
/* After a restart it is not known for which peer its claims counted. From now on they count for this one. */
void session_count_claims(struct session *s, struct origin *origin);
/* A request in flight was answered. After an untagged one the next line may be served. */
void session_answered(struct session_table *t, struct session *s, bool tagged);
/* RESUME waits for one adoption less. After the last that was counted, the session becomes ready. */
void session_wake(struct session_table *t, struct session *s);
struct session *session_next_ready(struct session_table *t);

/* It has no claim, permit, group or job. */
static inline bool session_is_empty(const struct session *s)
{
	return TAILQ_EMPTY(&s->claims) && TAILQ_EMPTY(&s->bids[BID_PERMIT]) && TAILQ_EMPTY(&s->bids[BID_GROUP]) && LIST_EMPTY(&s->jobs);
}

void session_set_label(struct session *s, struct span label);
/* Returns the claim that waits under this tag; NULL: none. */
struct claim *session_waiting(const struct session *s, struct span tag);

/* NULL: no session has this id. */
static inline struct session *session_find(const struct session_table *t, uint64_t id)
{
	uint32_t slot = (uint32_t)id;
	struct session *s = slot < t->slots ? t->slot[slot] : NULL;

	return s && s->id == id ? s : NULL;
}

static inline void session_touch(struct session_table *t, struct session *s)
{
	s->active_at = t->core->now;
	if (s->heartbeat_us > 0 && !s->leaving)
		heap_set(&t->core->timers, &s->timer, instant_add(s->active_at, s->heartbeat_us));
}

/*
 * Effects. session_line returns room for REPLY_MAX bytes, and session_long_line for `more` in addition. session_send gets the number of bytes that were used.
 */
static inline char *session_long_line(struct session_table *t, size_t more)
{
	return arena_reserve(&t->core->out->arena, REPLY_MAX + more);
}
static inline char *session_line(struct session_table *t)
{
	return session_long_line(t, 0);
}
/* session_send counts the line as an answer. session_send_raw does not, because rows and remarks are no answers. */
void session_send_raw(struct session_table *t, struct session *s, const char *line, size_t n);
void session_send(struct session_table *t, struct session *s, const char *line, size_t n);
void session_hang_up(struct session_table *t, struct session *s, const char *reason);

#endif

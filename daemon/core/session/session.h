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

/* Users, as RECENT tells them apart, and the names that each of them locked last. A session has a user from its first grant on. */

#define USER_MAX     96   /* bytes of its name; what is longer is cut */
#define USERS_MOST   1000 /* those without a session that are remembered */
#define USER_RECENTS 100  /* names that a user locked last */

struct user {
	struct map_node by_name;
	TAILQ_ENTRY(user) in_users; /* the one that came first, first */
	unsigned refs;  /* sessions */
	unsigned notes; /* of this second: see history.h */
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
/* Forgets those that are too many and have no session. Nothing else refers to any. */
void users_trim(struct users *t);

static inline void user_leave(struct user *u)
{
	if (u)
		u->refs--;
}

/* Lines read ahead: those of a session that has an untagged request under way. Embedded; zeroed memory is ready. */

/* Lines, and their bytes. At either bound the session is read no further, until both fell to half. The line that reaches a bound is kept whole. */
#define READ_AHEAD_LINES 256
#define READ_AHEAD_BYTES 65536
#define READ_AHEAD_WHOLE 16 /* times limits.output: bytes of all sessions. Beyond, each is read no further behind its first line */
#define READ_AHEAD_MOST  64 /* times limits.output: bytes of all sessions, with long first lines. Beyond, the greatest of the peer that has most is cut off */

/* A line of a client; or of one that was too long the beginning. The parser may overwrite the bytes. */
struct input {
	char *p;
	size_t n;
	bool is_cut;
};

struct lines_ahead {
	struct buf *lines; /* each as a head and its bytes; NULL: there was none yet */
	unsigned count;
};

/* The first of them, of which there must be one, in place. Valid until the next lines_ahead_add. True: both are down to half. */
bool lines_ahead_next(struct lines_ahead *a, struct input *ret_line);

/*
 * A session is one client as the service sees it: its identity, its claims, its requests in flight, and the lines read ahead while an untagged
 * request is under way. It holds no socket. A session with grace outlives its connection: it is detached until RESUME, or until its grace is over.
 * See ALGORITHMS.md, Sessions.
 */

TAILQ_HEAD(listings, listing); /* listing.h */
TAILQ_HEAD(watchings, watching); /* watch.c */
LIST_HEAD(groups, group); /* group.h */
TAILQ_HEAD(permits, permit); /* semaphore.h */
LIST_HEAD(jobs, job); /* jobs.h */
LIST_HEAD(take_list, take); /* jobs.h */
TAILQ_HEAD(places, take_place); /* job.h */

#define UNSENT_MAX 16384 /* bytes of answers to lines read ahead; beyond, the session waits until the outer layer has sent them */

#define UNIX_ADDRESS "unix" /* what struct peer says of a Unix socket */

/* What a session needs to outlive its connection, and to take over another one. Its first HELLO makes it, or RESUME, or its record in the journal. */
struct lasting {
	struct session *session;
	struct map_node by_serial; /* in session_table.known: sessions with grace */
	TAILQ_ENTRY(session) in_detached, in_vacant, in_vacant_of_peer;
	bool vacant;             /* in session_table.vacant, and in origin.vacant */
	char secret[33];
	char resume_tag[TAG_MAX + 1];
	struct timer grace;      /* detached: end of the grace; else: when RESUME stops waiting for adoptions */
	struct instant detached_at;
	struct instant repeat_until; /* resumed: until then a repeated LOCK finds its old place, or the turn that came meanwhile */
};

/* What is known of a peer besides its uid: who has shown a secret or a certificate. With rules, all groups of a Unix peer. */
struct identity {
	char *user;      /* of AUTH; NULL */
	unsigned failed; /* AUTHs since the last that succeeded */
	unsigned groups_n;
	uint32_t groups[];
};

struct session {
	TAILQ_ENTRY(session) in_ready;
	uint64_t id;             /* number of the outer layer; 0: detached */
	uint64_t serial;         /* number for people and for RESUME */
	struct lasting *lasting; /* NULL: it was never asked for */
	char *label;             /* HELLO name=; NULL */
	char *address;           /* of the peer, as text; NULL: none, or that of all Unix sockets; then, if has_subject, its subject. See client.h */
	struct instant opened_at, heard_at;
	int64_t heartbeat_us;    /* 0: no heartbeat */
	int64_t resumed_heartbeat_us; /* of a session without one that it takes over: see struct peer */
	struct timer timer;      /* the heartbeat; after the end of input: how long rounds may still answer */
	int64_t grace_us;        /* how long the session outlives its connection; 0: not at all */
	uint32_t said;           /* the fields of the HELLOs over this connection: RESUME leaves them as they are */
	struct claims claims;    /* all of them, waiting, held and lost */
	struct pendings pendings;
	struct listings listings; /* LISTs that are not answered yet */
	struct groups groups;    /* LOCKALLs and LOCKANYs that are not answered yet */
	struct jobs jobs;        /* that it has taken */
	struct take_list takes;  /* TAKEs that are not answered yet */
	struct places places;    /* of TAKEs that went with their connection */
	struct permits permits;  /* ACQUIREs that are not answered yet, and permits that it has or has lost */
	struct session *principal; /* of the agent of a group or a permit: the session that that is of. Else NULL */
	struct identity *identity; /* NULL: nothing but the fields below */
	struct user *user;       /* NULL: nothing was granted to it yet */
	struct watching *watching; /* watch.c: what it watches; NULL: nothing was asked for */
	LIST_ENTRY(session) in_short; /* of request_context.renewals; le_prev NULL: it has none */
	uint32_t judged;         /* by which rules it was: see admin.h */
	unsigned recounted;      /* when that was counted last: see tell.c */
	int64_t renewals;        /* a second, of its short leases, in thousandths: see tell.h */
	struct origin *origin;   /* whose client it is; NULL: of the previous run */
	struct lines_ahead ahead;      /* lines read ahead */
	uint64_t mistakes;       /* consecutive erroneous requests */
	int64_t pid, uid;        /* of the peer, if is_unix */
	size_t unsent;           /* bytes sent since the last EVENT_SENT */
	unsigned held, waiting;  /* number of claims held or lost; number of LOCKs not answered yet; a LOCKALL or LOCKANY counts as one for each name */
	unsigned slots;          /* of the semaphores in whose lines it is the first */
	unsigned waits_not_notified;        /* waiting claims whose requests went with the connection: a repeated LOCK takes one over */
	TAILQ_ENTRY(session) in_nested;
	bool nested;             /* in session_table.nested */
	TAILQ_ENTRY(session) in_gainers; /* of session_table; tqe_prev NULL: it is not there */
	unsigned open;           /* resuming: adoptions undecided at the last count, less those decided since */
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
	bool proven;             /* its first request was valid: no web page speaks here, see command.c */
	bool refused;            /* DRAIN has refused all that waited here */
	bool over;               /* it is being ended: nothing more is sent */
	bool killed;             /* KILL: it ends as soon as it was told of what it lost */
	bool lingered;           /* leaving, and the time of the rounds that may answer it is over */
	bool known;              /* it has, or had, grace: it is in the journal and in session_table.known */
	bool detached;           /* without a connection: nothing is sent, and none of its input is served */
	bool resuming;           /* its RESUME is not answered yet */
	bool returns;            /* resuming, by a restart and not by a request: nobody is answered */
	bool of_permit;          /* an agent: that of a permit */
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
	struct vacants vacant; /* of the detached ones those without a claim, in the order in which they lost their connections or their last claims */
	struct sessions nested; /* those that may wait while they hold something: see deadlock.h */
	unsigned nested_count;
	struct sessions gainers; /* those that have got something which their groups may wait for: see groups.h */
	struct map known;
	uint64_t serial;
	unsigned count, detached_count; /* number of sessions with, and without, a connection */
};

#define SESSIONS_A_STEP 16384 /* that a walk looks at */

/* A walk through all sessions, in portions between which they may come and go. A zero-filled one is at the beginning. */
struct session_walk {
	uint32_t slot;         /* first those of all connections … */
	struct map_walk known; /* … then those that can be resumed: one that a connection takes over meanwhile is among them still */
};

void session_table_init(struct session_table *t, struct core *core);
void session_table_release(struct session_table *t); /* the lock table frees their claims */

/*
 * `each` is given some sessions at least once, among them all that were there from the first portion to the last. It says false: the walk goes on later, with
 * this session and perhaps some before it. So does it beyond `most` sessions. True: that was the last portion, and the walk is at its beginning again.
 */
bool session_table_walk(const struct session_table *t, struct session_walk *w, int64_t most, bool (*each)(struct session *s, void *context), void *context);

/* Its peer is told by session_set_peer() of client.h. */
struct session *session_open(struct session_table *t, uint64_t id, bool is_web);
void session_close(struct session_table *t, struct session *s);     /* its claims and pendings must be gone */

/* What the session needs to outlive its connection, made if need be. */
struct lasting *session_lasting(struct session_table *t, struct session *s);
/* known: session_of_serial can find it. */
void session_set_known(struct session_table *t, struct session *s, bool known);
struct session *session_of_serial(struct session_table *t, uint64_t serial); /* NULL: none that is known */
/* Opens a detached session of the previous run. */
struct session *session_restore(struct session_table *t, uint64_t serial);
/* Separates the session from its connection, and drops its lines read ahead. */
void session_detach(struct session_table *t, struct session *s);
/* A detached session that has no claim left becomes vacant. It stays so, because only a connection brings claims. */
void session_note_vacant(struct session_table *t, struct session *s);
/* Moves claims, secret and serial of the detached session `from` to `to`, which must have no claims. Frees `from`. */
void session_take_over(struct session_table *t, struct session *to, struct session *from);

/* Into session_table.nested, and out of it. */
void session_set_nested(struct session_table *t, struct session *s, bool nested);

/* Into session_table.gainers, and out of it. */
void session_set_gains(struct session_table *t, struct session *s, bool gains);

/* Stores a line for later. Beyond READ_AHEAD_LINES or READ_AHEAD_BYTES the outer layer is told to read no more. */
void session_read_ahead(struct session_table *t, struct session *s, struct input line);
/* Of the peer that has most read ahead the one that has most, if all together have too much; else NULL. */
struct session *session_too_far_ahead(const struct session_table *t);
/* The next stored line, in place. False: none. Valid until the next session_read_ahead. */
bool session_next_line(struct session_table *t, struct session *s, struct input *ret_line);
/* Whether the next line must wait, because much was sent and is perhaps not read. Asks for EVENT_SENT then, once. */
bool session_must_await(struct session_table *t, struct session *s);
/* Asks for EVENT_SENT, unless it was asked for. */
void session_await(struct session_table *t, struct session *s);
/* It becomes ready, and is served at the end of this step, or in one of the next. */
void session_goes_on(struct session_table *t, struct session *s);
/* After a restart nobody knows for whom its claims counted: from now on for this peer. */
void session_count_claims(struct session *s, struct origin *origin);
/* A request in flight was answered. After an untagged one the next line may be served. */
void session_answered(struct session_table *t, struct session *s, bool tagged);
/* RESUME waits for one adoption less. After the last one that was counted the session becomes ready. */
void session_wake(struct session_table *t, struct session *s);
struct session *session_next_ready(struct session_table *t);

/* It has no claim, no group and no job. */
static inline bool session_is_empty(const struct session *s)
{
	return TAILQ_EMPTY(&s->claims) && TAILQ_EMPTY(&s->permits) && LIST_EMPTY(&s->groups) && LIST_EMPTY(&s->jobs);
}

void session_set_label(struct session *s, struct span label);
/* The claim that waits under this tag; NULL: none. */
struct claim *session_waiting(const struct session *s, struct span tag);

/* NULL: none of this id. */
static inline struct session *session_find(const struct session_table *t, uint64_t id)
{
	uint32_t slot = (uint32_t)id;
	struct session *s = slot < t->slots ? t->slot[slot] : NULL;

	return s && s->id == id ? s : NULL;
}

static inline void session_heard(struct session_table *t, struct session *s)
{
	s->heard_at = t->core->now;
	if (s->heartbeat_us > 0 && !s->leaving)
		heap_set(&t->core->timers, &s->timer, instant_add(s->heard_at, s->heartbeat_us));
}

/* Effects. session_line returns room for REPLY_MAX bytes, and session_long_line for `more`; session_send tells how many were used. */
static inline char *session_long_line(struct session_table *t, size_t more)
{
	return arena_reserve(&t->core->out->arena, REPLY_MAX + more);
}
static inline char *session_line(struct session_table *t)
{
	return session_long_line(t, 0);
}
/* session_send counts answers; session_say does not, for what is none: a row, a remark. */
void session_say(struct session_table *t, struct session *s, const char *line, size_t n);
void session_send(struct session_table *t, struct session *s, const char *line, size_t n);
void session_hang_up(struct session_table *t, struct session *s, const char *reason);

#endif

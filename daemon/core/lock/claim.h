/* SPDX-License-Identifier: BSD-2-Clause */
/* A claim, one stake of a session in a name; the texts that requests show to others, and how daemons ask who holds a lock; claims that share a lock. */
#ifndef CORE_CLAIM_H
#define CORE_CLAIM_H

#include "daemon/base/buf.h"
#include "daemon/base/heap.h"
#include "daemon/base/map.h"
#include "daemon/base/pool.h"
#include "daemon/core/event/origin.h"
#include "proto/proto.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/*
 * What a request for a lock or a permit shows to others: its note=, a text for people, and its trace=, by which a span elsewhere can link to it. A request
 * without them takes no memory for them.
 */

struct remark {
	struct span note, trace; /* "": none. A trace has TRACE_BYTES */
};

/* Reads a remark from bytes of another process or run: a malformed trace is left out. */
struct remark remark_read(struct span note, struct span trace);
/* note= and trace=, if there are any. */
void reply_remark(struct reply *r, struct remark remark);

/* A copy. */
struct kept_remark {
	char *bytes; /* NULL: empty */
	uint16_t note_n;
	bool traced;
};

void kept_remark_set(struct kept_remark *k, struct remark remark); /* replaces the present one */
void kept_remark_release(struct kept_remark *k);

static inline struct remark remark_of(const char *bytes, size_t note_n, bool traced)
{
	return (struct remark){note_n > 0 ? (struct span){bytes, note_n} : SPAN(""), traced ? (struct span){bytes + note_n, TRACE_BYTES} : SPAN("")};
}

static inline struct remark kept_remark(const struct kept_remark *k)
{
	return remark_of(k->bytes, k->note_n, k->traced);
}

/*
 * Messages about the holder of a lock, which daemons send each other through a store: a question, and a card, which answers it. A value machine. What it reads
 * may be anything, since whoever may publish at a store can write such a message. So a card is shown to people, and decides nothing.
 *
 *   question  <daemon-id> <name> <number>
 *   card      <daemon-id> <name> <number> <held_ms> <label> <peer> <pid> <uid> <owner> <note> <trace>
 *
 * Each word is preceded by its length, see netstring.h. Later versions may add words; earlier ones send no trace. The id is that of the daemon that sends the
 * message. The number is that of the value at the stores, see value.h.
 */

#define CARD_TEXT_MAX  256  /* bytes of a label, a peer or a note */
#define CARD_OWNER_MAX 640  /* bytes of an owner: the owner of a job's lock is long, see job_owner() */
#define CARD_MAX       2560 /* bytes of a message: a longer one is invalid */

/* The texts are borrowed. A question has only the first three fields. */
struct holder_text {
	struct span daemon, name;
	int64_t number;
	int64_t held_ms; /* at least 0 */
	struct span label, peer; /* "": none; a peer of a Unix socket is "unix" */
	int64_t pid, uid;        /* -1: not known */
	struct span owner; /* "": none */
	struct remark remark;
};

void holder_text_put_question(struct buf *out, const struct holder_text *c);
void holder_text_put(struct buf *out, const struct holder_text *c);
/* False: the message is malformed. The texts of ret_card point into the message. */
bool holder_text_read_question(struct span message, struct holder_text *ret_card);
bool holder_text_read(struct span message, struct holder_text *ret_card);

/* The label, as shown to people: in quotes if it could be taken for something that a daemon knows: pid=1, an address, or @host. At most two bytes longer. */
char *label_put(char *at, struct span label);
/* The client, in the format of session_who(): "label pid=1 uid=2", "label 10.0.0.5:51234". Returns the length, 0: not known; out has CARD_WHO_MAX bytes. */
#define CARD_WHO_MAX (2 * CARD_TEXT_MAX + 64)
size_t holder_text_who(const struct holder_text *c, char *out);

/*
 * A claim is one stake of a session in a name: it waits, holds, or has lost. A session may have several: one for each owner text, and one for each waiting
 * LOCK. A value machine: it sends nothing and notifies nobody.
 */

#define READERS_MOST 4096 /* readers that hold a name together at this daemon: one step reports a loss to all of them. More than that wait */
#define HOLDS_MOST (1U << 30) /* of one owner at once; only waiting LOCKs that are granted together may exceed it */

/*
 * What a name is used as: 0 as a lock; 1 to LIMIT_MOST as the mark of a semaphore of that limit; SLOT_OF_SEMAPHORE as one of its slots.
 * See ALGORITHMS.md, Semaphores.
 */
#define LIMIT_MOST        1024
#define SLOT_OF_SEMAPHORE 0xffff

struct session;
struct lock;

enum claim_state {
	CLAIM_NEW,     /* being asked for; in no list of a lock */
	CLAIM_WAITING, /* among the lock's waiters, see claim_comes_before() */
	CLAIM_HELD,    /* the lock's holder, or one of its holders */
	CLAIM_LOST,    /* lost while held, not acknowledged, and not known to be taken again: among the lock's losses */
};

#define LOSSES(row) \
	row(QUORUM, "quorum") row(EXPIRED, "expired") row(EVICTED, "evicted") row(BROKEN, "broken") row(IDLE, "idle") row(SHUTDOWN, "shutdown")
enum loss {
#define LOSS_ROW(id, word) LOSS_##id,
	LOSSES(LOSS_ROW)
#undef LOSS_ROW
	LOSS_N
};
const char *loss_word(enum loss loss);
bool loss_find(struct span word, enum loss *ret_loss);

struct claim;

/*
 * A higher priority counts as a request that came this much earlier for each level. So nobody waits longer than that for requests of higher priority that
 * come later: see ALGORITHMS.md, Tickets.
 */
#define PRIORITY_US (60 * SEC)
/* A prioritised request overtakes at most this many waiters, for all its names together, so that the walk is short however many wait. */
#define PASSED_MOST 8192

/* What a claim has until its LOCK is answered. */
struct asking {
	struct instant asked_at;
	struct instant wait_until; /* patient: end of the wait, as requested */
	int64_t stores_us;         /* asked_at by the clock of the stores, when deadlock.c first converted it; 0: not yet */
	/* Other waiting requests of its owner for the name in the same mode, in the order in which they were made; NULL: none. */
	struct claim *twin_before, *twin_next;
	uint32_t order;            /* among requests of the same moment */
	uint32_t count;            /* count= of the LOCK; 0: it has none */
	uint8_t others;            /* other names that its request waits for */
	char tag[TAG_MAX + 1];     /* of the LOCK */
};

struct claim {
	TAILQ_ENTRY(claim) in_lock;
	TAILQ_ENTRY(claim) in_session;
	struct session *session;
	struct origin *origin;   /* of the session; NULL: it is not known */
	struct lock *lock;
	struct asking *asking;   /* CLAIM_NEW, CLAIM_WAITING, and CLAIM_HELD until the grant is delivered; else NULL */
	char *texts;             /* the owner, then the note, then the trace; on the heap; NULL: all are empty */
	int64_t ttl_us, delay_us;
	struct timer timer;      /* CLAIM_WAITING: end of the wait. Not notified: when the time to repeat the LOCK is over, if that is sooner */
	/* CLAIM_HELD, CLAIM_LOST */
	int64_t token;
	struct instant granted_at;
	struct instant relied_until; /* of a session without a connection: by then its client has stopped relying on the lock */
	struct instant contended_at; /* when CONTENDED was last sent to its client over the present connection; 0: never */
	unsigned count;
	unsigned closing;        /* CLAIM_LOST: the contender's `closing` at the loss; 0: it was acknowledged, or does not count there */
	uint16_t owner_n, note_n;
	uint16_t limit;          /* the use of the name that it asks for; 0: as a lock */
	enum claim_state state : 8;
	enum loss loss : 4;      /* CLAIM_LOST: why */
	unsigned priority : 4;   /* 0 to 9 */
	bool renew : 1;
	bool shared : 1;         /* it holds, or asks to hold, together with other readers: its client relies on no more than that */
	bool traced : 1;         /* it has a trace */
	bool crowds : 1;         /* it counts in the crowd of its origin */
	bool patient;            /* wait > 0: goes on waiting while somebody holds */
	bool overdue;            /* its wait is over; the round under way decides */
	bool acknowledged : 1; /* CLAIM_LOST: an UNLOCK count= was answered so, and may be repeated until its timer fires */
	bool asked_again : 1;    /* CLAIM_LOST: a LOCK of the same owner came after the loss, or during the adoption */
	bool announced : 1;      /* NOTICE_WAITING was added */
	bool ending : 1;         /* its session is being ended: it is granted nothing any more */
	bool leaving : 1;        /* its session is half-closed or at the end of input */
	/*
	 * The connection was lost, so the client does not know. CLAIM_WAITING: the request is gone with the connection, and the repeated LOCK takes its
	 * place. CLAIM_HELD: it was granted since. CLAIM_LOST: it was lost since.
	 */
	bool not_notified : 1;
	bool let_in : 1;         /* of a group or a permit whose request was admitted already: it is not refused because of the crowd */
	bool risked : 1;         /* CLAIM_HELD, adopted after a restart: RISK was sent before that */
	bool here : 1;           /* CLAIM_HELD: the grant was sent over the present connection, though RESUME may not be answered yet */
};
TAILQ_HEAD(claims, claim);

/* Whether it is a client's request in a queue. A part of a request for permits is not: that request counts itself. */
static inline int claim_queues(const struct claim *c)
{
	return c->patient && c->limit == 0;
}

static inline struct span claim_owner(const struct claim *c)
{
	return (struct span){c->texts, c->owner_n};
}

static inline struct remark claim_remark(const struct claim *c)
{
	return c->texts ? remark_of(c->texts + c->owner_n, c->note_n, c->traced) : remark_of(NULL, 0, false);
}

static inline bool claim_is_of(const struct claim *c, const struct session *session, struct span owner)
{
	return c->session == session && span_equal(claim_owner(c), owner);
}

/* When a request of priority 0 would have to come to have the same place: each level counts as PRIORITY_US of waiting. */
static inline struct instant claim_place(const struct claim *c)
{
	return instant_add(c->asking->asked_at, -c->priority * PRIORITY_US);
}

/* The order of waiters: first come, first served, by claim_place(). */
static inline bool claim_comes_before(const struct claim *a, const struct claim *b)
{
	return instant_diff(claim_place(a), claim_place(b)) < (a->asking->order < b->asking->order);
}

/* Whether a request of this priority that comes now would overtake this waiter. */
static inline bool claim_yields_to(const struct claim *c, struct instant now, unsigned priority)
{
	return instant_before(instant_add(now, -(int64_t)priority * PRIORITY_US), claim_place(c));
}

/* c waits, and is the last request of its owner for this name that precedes `twin`. */
static inline void claim_join_twins(struct claim *twin, struct claim *c)
{
	twin->asking->twin_before = c;
	c->asking->twin_next = twin;
}

static inline void claim_leave_twins(struct claim *c)
{
	struct asking *a = c->asking;

	if (a->twin_before)
		a->twin_before->asking->twin_next = a->twin_next;
	if (a->twin_next)
		a->twin_next->asking->twin_before = a->twin_before;
	a->twin_before = a->twin_next = NULL;
}

/* The name is taken, or others came earlier. */
static inline void claim_crowd(struct claim *c)
{
	c->crowds = c->origin != NULL;
	origin_crowd(c->origin, c->crowds);
}

static inline void claim_leave_crowd(struct claim *c)
{
	if (__builtin_expect(!c->crowds, true))
		return;
	c->crowds = false;
	origin_thin(c->origin, 1);
}

bool claim_same_owner(const struct claim *a, const struct claim *b);
void claim_set_texts(struct claim *c, struct span owner, struct remark remark);
void claim_set_remark(struct claim *c, struct remark remark); /* replaces the present one */

/* The claims that share a lock, or the claims that have lost one, by lock, session and owner: one of thousands is found at once. Data alone. */

struct readers {
	struct map map;
	struct pool pool;
};

void readers_init(struct readers *r, const uint64_t key[2]);
void readers_release(struct readers *r);

void readers_add(struct readers *r, struct claim *c);
void readers_remove(struct readers *r, const struct claim *c);
struct claim *readers_find(const struct readers *r, const struct lock *l, const struct session *session, struct span owner); /* NULL: none */

#endif

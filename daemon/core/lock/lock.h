/* SPDX-License-Identifier: BSD-2-Clause */
/* `struct lock`, all that is known about one name; the table of names; and the notices for sessions, in order. */
#ifndef CORE_LOCK_H
#define CORE_LOCK_H

#include "daemon/base/instant.h"
#include "daemon/base/pool.h"
#include "daemon/core/event/core.h"
#include "daemon/core/event/event.h"
#include "daemon/core/event/origin.h"
#include "daemon/core/lock/claim.h"
#include "daemon/core/lock/lease.h"
#include "proto/proto.h"

#include <assert.h>
#include <stddef.h>
#include <sys/queue.h>

/*
 * Counts the bytes that left names take at a store: names that this daemon left by UNLOCK keep=, with a lock-delay, or because the client of a permit may
 * still rely on it. Each is a key that no session has any more. Data alone. A name counts for up to a quarter, or two seconds, longer than its key lasts.
 */

#define KEPT_RINGS  5   /* of steps of 1 s, 16 s, 4 min, 68 min, 18 h */
#define KEPT_STEPS  66  /* 64, and the steps in which a time begins and ends */
#define KEPT_GROUPS 16  /* of peers, by their hash */

struct kept_ring {
	int64_t step; /* of the last look */
	uint64_t total;
	uint32_t ends[KEPT_STEPS]; /* bytes whose time ends in steps to come, at the number of the step modulo KEPT_STEPS */
};

struct kept_bytes {
	struct kept_ring ring[KEPT_RINGS];
};

struct kept_names {
	struct kept_bytes all, of_group[KEPT_GROUPS];
};

static inline struct kept_bytes *kept_of_peer(struct kept_names *k, const struct origin *o)
{
	return &k->of_group[origin_id(o) / 2 % KEPT_GROUPS];
}

/* A name of n bytes, which counted for that peer, is left. */
void kept_names_add(struct kept_names *k, const struct origin *o, struct instant now, int64_t us, size_t n);

/* How many bytes there are now. */
uint64_t kept_bytes_count(struct kept_bytes *k, struct instant now);

/*
 * A lock is one name as this daemon sees it: what it asks the stores for, the lease that it has there, which session holds it. A value machine: it sends
 * nothing and notifies nobody.
 */

/* The struct in which an entry of admission is embedded. */
enum admission_owner {
	OWNER_CONTENDER, /* struct contender, entry */
	OWNER_LEASE,     /* struct lease, entry */
	OWNER_RELEASE,   /* struct release, entry */
};

struct session;
struct permit;
struct lock;

/* A request in flight that is not a waiting LOCK: EXTEND, UNLOCK sync=yes, SHOW. */
struct pending {
	TAILQ_ENTRY(pending) in_session;
	TAILQ_ENTRY(pending) in_lease; /* EXTEND; SHOW that is held back: in a list of remote_holders.c */
	struct session *session;      /* NULL: it is gone, and nobody needs the answer */
	struct origin *origin;        /* the peer in whose `under_way` it counts; NULL: it is part of a request that counts */
	struct lock *lock;
	struct claim *claim;        /* EXTEND: the hold */
	enum verb verb;
	char tag[TAG_MAX + 1];
	struct instant asked_at;    /* EXTEND */
	uint32_t nth;               /* EXTEND: its number among those of the lease */
	struct permit *permit;      /* EXTEND of a permit: see permit.h; NULL: of a lock */
	size_t bytes;               /* DEFER: the bytes that it takes */
	struct rate_turn *turn;     /* RATE that waits: see rate.h; NULL: it does not */
	struct auth *auth;          /* AUTH; NULL: another request */
	bool formers;               /* SHOW: also the former holders */
	bool free;                  /* SHOW: a quorum has nothing of that name */
	bool broken;                /* BREAK: sessions of this daemon have lost it */
	struct elsewhere elsewhere; /* SHOW: or, if known, a quorum has this; neither: not known */
	struct ticket_seen next;    /* SHOW: the first ticket that any store has */
	struct instant held_until;  /* SHOW that is held back: until then at most */
};

/* p may be NULL. */
static inline void pending_free(struct pool *pendings, struct pending *p)
{
	if (p)
		origin_asked(p->origin);
	pool_put(pendings, p);
}

/* What a lock has while readers hold it, even only one, or while its lease is being adopted for readers. */
struct share {
	struct readers *readers;    /* of all locks */
	struct claims holders;      /* claims in CLAIM_HELD, in the order of their grants */
	unsigned count;             /* how many there are */
	struct instant want_at;     /* when a daemon elsewhere last reported that it waits */
	int64_t want_us;            /* the moment in its ticket, if it is a writer; 0: not known */
	struct instant ghost_until; /* a reader that is gone may rely on the lease until then; PAST: none */
};

struct lock {
	struct name name;
	struct claim *holder;   /* LEASE_HELD, LEASE_ADOPTING: the holder; of several readers the one that has held longest */
	struct share *share;    /* NULL: held exclusively, or not at all */
	struct origin *origin;  /* the peer for whom the name counts: see lock_charge(); NULL: nobody */
	struct contender *contender; /* what it asks for, who waits, and who has lost it; contender_none: nothing, and nobody */
	struct lease lease;       /* what it has at the stores. The votes follow, then the name */
};

/* It has no lease, and nobody waits for it. It is kept only while losses, calls or notices refer to it. */
static inline bool lock_is_idle(const struct lock *l)
{
	return l->contender->state == CONTENDER_IDLE && l->lease.state == LEASE_NONE;
}

/* The limit in its values. */
static inline unsigned lock_mark(const struct lock *l)
{
	return l->lease.limit <= LIMIT_MOST ? l->lease.limit : 0;
}

/* Sets the use of a name that nobody has or waits for here: any use is possible, and the stores tell of uses elsewhere. False: it has another use. */
static inline bool lock_use_as(struct lock *l, unsigned limit)
{
	if (!lock_is_idle(l))
		return false;
	l->lease.limit = (uint16_t)limit;
	return true;
}

/* Somebody has it, or this daemon leaves it to others: a request that does not wait is refused at once. */
static inline bool lock_is_taken(const struct lock *l)
{
	return l->lease.state != LEASE_NONE || contender_is_kept_off(l->contender);
}

/* LEASE_CLOSING: until then a client may rely on it. D of the last renewal, by the slowest clock that a client may have. */
static inline struct instant lock_close_at(const struct lock *l)
{
	return l->lease.timer.at;
}

/* The name that clients use. */
static inline struct span lock_name(const struct lock *l)
{
	return name_unescaped(name_text(&l->name));
}

static inline struct lock *lock_of_lease(struct lease *x)
{
	return container_of(x, struct lock, lease);
}

/* So far each struct name is embedded in a struct lock, and each struct contender is that of a lock: the next three functions rely on that. */
static inline struct lock *lock_of_name(struct name *name)
{
	return container_of(name, struct lock, name);
}

static inline struct lock *lock_of_contender(struct contender *k)
{
	return lock_of_name(k->name);
}

static inline struct contender *contender_of_name(struct name *name)
{
	return lock_of_name(name)->contender;
}

/* What a claim waits for. */
static inline struct contender *contender_of_claim(const struct claim *c)
{
	return c->lock->contender;
}

#define LOCK_SIZES 2

struct lock_table {
	struct core *core;
	struct map map;
	struct pool locks[LOCK_SIZES]; /* by the length of the name */
	size_t name_most[LOCK_SIZES];
	struct pool contenders, renewals, claims, askings, pendings, shares;
	struct contender no_contender; /* see contender_is_none(): never written to */
	struct renewal no_renewal;     /* likewise */
	uint64_t values; /* the number of the last value */
	struct readers readers;
	struct readers losses;      /* … and the claims that have lost one */
};

void lock_table_init(struct lock_table *t, struct core *core);
void lock_table_release(struct lock_table *t);

/* By the text of a name, which may be a slot: see NAME_ESCAPE. */
struct lock *lock_find_text(struct lock_table *t, struct span text); /* NULL if this daemon knows nothing of it */
struct lock *lock_find_or_add_text(struct lock_table *t, struct span text);
/* By a client's name that begins with NAME_ESCAPE. */
struct lock *lock_find_escaped(struct lock_table *t, struct span name);
struct lock *lock_find_or_add_escaped(struct lock_table *t, struct span name);

static inline bool name_needs_escape(struct span name)
{
	return name.n > 0 && __builtin_expect(name.p[0] == NAME_ESCAPE, false);
}

/* By a client's name. */
static inline struct lock *lock_find(struct lock_table *t, struct span name)
{
	return name_needs_escape(name) ? lock_find_escaped(t, name) : lock_find_text(t, name);
}

static inline struct lock *lock_find_or_add(struct lock_table *t, struct span name)
{
	return name_needs_escape(name) ? lock_find_or_add_escaped(t, name) : lock_find_or_add_text(t, name);
}

/* Frees the lock if nothing refers to it. Otherwise frees its contender if that is blank, and the renewal of a lease that is at rest. */
void lock_drop_if_unused(struct lock_table *t, struct lock *l);
/*
 * The name takes room at the stores, and counts for this peer from now on: first for the peer that asked first, then for the one that holds it longest. It
 * counts for the last of them until this daemon forgets the name.
 */
void lock_charge_anew(struct lock *l, struct origin *o);

/* False: the name counts already. */
static inline bool lock_charge(struct lock *l, struct origin *o)
{
	if (__builtin_expect(l->origin != NULL, false))
		return false;
	if (!o)
		return true;
	l->origin = o;
	o->names += l->name.n + NAME_BYTES;
	o->all->names += l->name.n + NAME_BYTES;
	return true;
}

void lock_make_contender(struct lock_table *t, struct lock *l);

/* The name's own contender; made if it has none, because the name is about to be waited for, or was lost. */
static inline struct contender *lock_contend(struct lock_table *t, struct lock *l)
{
	if (contender_is_none(l->contender))
		lock_make_contender(t, l);
	return l->contender;
}

void lease_make_renewal(struct lock_table *t, struct lease *x);

/* The lease's own renewal; made if it has none, because the lease is about to be renewed, extended or adopted. */
static inline struct renewal *lease_renewal(struct lock_table *t, struct lease *x)
{
	if (renewal_is_none(x->renewal))
		lease_make_renewal(t, x);
	return x->renewal;
}

/* Its lease has this value from now on. */
void lock_begin_lease(struct lock *l, const struct lease_value *value, const struct placed *placed);
/* A fresh value, for one attempt. since_us: since when the value holds the name, by the stores' clock. */
void lock_value_make(struct lock_table *t, int64_t since_us, struct lease_value *ret_value);

/* These are about its lease: see lease.h. */
static inline struct instant lock_deadline(const struct lock_table *t, const struct lock *l)
{
	return lease_deadline(&l->lease, t->core->conf.nodes);
}

static inline bool lock_is_over(const struct lock_table *t, const struct lock *l)
{
	return lease_loss_is_due(&l->lease, t->core->conf.nodes, t->core->now);
}

static inline int64_t lock_valid_us(const struct lock_table *t, const struct lock *l)
{
	return lease_valid_us(&l->lease, t->core->conf.nodes, t->core->now);
}

/* How much longer the lease that is in the way may last, in microseconds; -1: not known. */
int64_t lock_retry_us(const struct lock_table *t, const struct lock *l);

struct claim *claim_new(struct lock_table *t);
void claim_begin_asking(struct lock_table *t, struct claim *c); /* a LOCK begins */
void claim_end_asking(struct lock_table *t, struct claim *c);   /* it is answered */
void claim_free(struct lock_table *t, struct claim *c); /* in no list of a lock */
void lock_add_reader(struct lock_table *t, struct lock *l, struct claim *c);
void lock_order_reader(struct lock *l, struct claim *c); /* from the end to where it belongs by the moment of its grant */
void lock_remove_reader(struct lock *l, struct claim *c);
void lock_end_share(struct lock_table *t, struct lock *l); /* it has no holder */

/* Into and out of the holders. A shared claim is alone with other shared ones. Inline, since each LOCK does both. */
static inline void lock_add_holder(struct lock_table *t, struct lock *l, struct claim *c)
{
	assert(c->shared || (!l->holder && !l->share));
	c->state = CLAIM_HELD;
	if (c->shared)
		lock_add_reader(t, l, c);
	else
		l->holder = c;
	if (l->holder->origin != l->origin)
		lock_charge_anew(l, l->holder->origin);
}

static inline void lock_remove_holder(struct lock *l, struct claim *c)
{
	l->holder = NULL;
	if (l->share)
		lock_remove_reader(l, c);
}

/* The claim belongs to this session from now on. */
void lock_pass_claim(struct claim *c, struct session *to);

struct claim *lock_find_reader(const struct lock *l, const struct session *session, struct span owner);

/* The holder that is (session, owner); NULL: (session, owner) does not hold it. */
static inline struct claim *lock_holder_of(const struct lock *l, const struct session *session, struct span owner)
{
	if (l->share)
		return lock_find_reader(l, session, owner);
	return l->holder && claim_is_of(l->holder, session, owner) ? l->holder : NULL;
}

/* The next one; NULL: that was the last. The first is l->holder. */
static inline struct claim *lock_next_holder(const struct lock *l, const struct claim *c)
{
	return l->share ? TAILQ_NEXT(c, in_lock) : NULL;
}

/*
 * The ttl of renewals after an EXTEND: the longest ttl of its holders. While there are several, no less than now: one of them may know of the longer lease of
 * another that has left.
 */
int64_t lock_extended_ttl(const struct lock *l);

static inline unsigned lock_holders(const struct lock *l)
{
	return l->share ? l->share->count : l->holder != NULL;
}

/* Until when a reader that is gone excludes writers; PAST: none does. */
static inline struct instant lock_haunted_until(const struct lock *l)
{
	return l->share ? l->share->ghost_until : INSTANT_PAST;
}

static inline bool lock_is_haunted(const struct lock *l, struct instant now)
{
	return l->share && instant_before(now, lock_haunted_until(l));
}

/* The claim of (session, owner) that holds or has lost the lock; NULL: none. */
struct claim *lock_claim_of(const struct lock *l, const struct session *session, struct span owner);
void lock_add_loss(struct lock_table *t, struct claim *c); /* into the losses of its lock, as CLAIM_LOST */
void lock_remove_loss(struct claim *c);
/* The loss of (session, owner), even if a later grant exists of which its client does not know; NULL: none. */
struct claim *lock_loss_of(const struct lock *l, const struct session *session, struct span owner);

/*
 * What is to be sent to sessions, in order. The files that decide add notices. command.c delivers them when the decisions of the step are made, and adds
 * none. A notice keeps its lock, its claim and its pending alive until it is delivered.
 */

enum notice_kind {
	NOTICE_GRANTED,   /* claim: that of the LOCK, now the lock's holder */
	NOTICE_REENTERED, /* claim was folded into the lock's holder; freed on delivery */
	NOTICE_REFUSED,   /* claim is out of the lock; freed on delivery */
	NOTICE_FORGOTTEN, /* claim was a loss whose name is taken again, or a hold that ended before its client knew of it; freed on delivery */
	NOTICE_LOST,      /* claim is among the losses */
	NOTICE_ADOPTED,   /* claim: it holds what it held in the previous run */
	NOTICE_LENGTHENS, /* claim: the stores are asked for a longer lease than it was promised so far */
	NOTICE_WAITING,   /* claim was not granted the name at once, and stays in the queue */
	NOTICE_WANTED,    /* claim: another daemon waits for what it holds */
	NOTICE_RISK,
	NOTICE_SAFE,
	NOTICE_EXTENDED,  /* pending; freed on delivery */
	NOTICE_RELEASED,  /* pending; likewise */
	NOTICE_SEEN,      /* pending; likewise */
};

enum refusal {
	NOT_REFUSED,
	REFUSED_BUSY,
	REFUSED_TIMEOUT,
	REFUSED_QUORUM,
	REFUSED_NOT_ADMITTED, /* the stores were busy: the lock was not asked for, or not released, in time */
	REFUSED_NOT_EXTENDED, /* EXTEND: the same; its lease goes on */
	REFUSED_KIND,
	REFUSED_IN_USE, /* the name is in use as another kind, lock or semaphore, or as a semaphore of another limit */
	REFUSED_AND_SENT, /* LOCK: its client has got the reason already */
	REFUSED_CANCELLED,
	REFUSED_DRAINING,
	REFUSED_DENIED, /* the rules were read again, and no longer allow it */
	REFUSED_CROWD, /* LOCK: too many wait, or share a lock */
	REFUSED_SLOTS, /* ACQUIRE: its session is first in line for as many slots as a session may be */
	REFUSED_COUNT, /* LOCK: this owner holds it as often as one may */
	REFUSED_SHARED, /* LOCK: its owner holds the name shared, and asks for it alone */
	REFUSED_LOST, /* EXTEND, UNLOCK sync=yes: the stores report that it was not ours any more */
};

struct notice {
	enum notice_kind kind;
	enum refusal refusal;
	struct claim *claim;
	struct pending *pending;
	unsigned count; /* GRANTED, REENTERED: the count of the hold at that moment */
};

struct notices {
	struct lock_table *table;
	struct notice *item;
	size_t count, cap;
};

void notices_init(struct notices *n, struct lock_table *table);
void notices_release(struct notices *n);
/* About a claim, or about a pending. */
void notices_add(struct notices *n, enum notice_kind kind, struct claim *c, struct pending *p, enum refusal why);
/* The notice was delivered: frees its claim or its pending, if its kind says so, and its lock if nothing else needs it. */
void notices_delivered(struct notices *n, const struct notice *delivered);
/* Answers this many of the EXTENDs that wait for a renewal of this lease, from the head of its list. */
void notices_extended(struct notices *n, struct lease *x, unsigned count, enum refusal why);

#endif

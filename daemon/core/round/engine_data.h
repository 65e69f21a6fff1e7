/* SPDX-License-Identifier: BSD-2-Clause */
/* `struct engine`, on which all files of the engine act; values and tickets that some stores must still delete. */
#ifndef CORE_ENGINE_DATA_H
#define CORE_ENGINE_DATA_H

#include "daemon/base/pool.h"
#include "daemon/core/lock/lease.h"
#include "daemon/core/lock/lock.h"
#include "daemon/core/member/admission.h"
#include "daemon/core/round/round.h"

/*
 * A release: a dead value or a withdrawn ticket, and the stores that must still delete it. It lives until each store has confirmed, or the key has expired by
 * itself, and no call is open. release.c and wait.c decide when to send to a store.
 * See ALGORITHMS.md, Outstanding releases.
 */

struct pending;

enum release_kind {
	RELEASE_DELETE, /* the key is deleted; repeated until every store has confirmed, or the key has expired by itself */
	RELEASE_LEAVE,  /* the same, but the key stays for px_us without a holder, under a fresh value that no late command matches */
	RELEASE_TICKET, /* our ticket is withdrawn from the queue; not repeated */
};

struct release {
	struct calls calls;
	TAILQ_ENTRY(release) in_list; /* outstanding */
	uint32_t back;                /* the return of a store after which it was last looked at */
	struct admission_entry entry;
	struct timer timer;           /* next try */
	enum release_kind kind;
	bool shared;                  /* DELETE: its value may be among shares; LEAVE: it stays as a share */
	bool outstanding;             /* DELETE, LEAVE: some store has not confirmed yet */
	struct pending *pending;      /* UNLOCK sync=yes … */
	struct instant answer_by;     /* … which is answered by then; 0: the release waits for admission */
	struct nodeset unconfirmed;   /* DELETE, LEAVE: stores that have yet to confirm */
	struct nodeset unsent;        /* TICKET: stores to which it was not sent yet */
	struct nodeset put_off;       /* the unconfirmed stores that were too busy */
	struct nodeset unsure;        /* stores with an earlier call of unknown outcome */
	struct nodeset done;          /* deleted, or left as requested */
	struct nodeset absent;        /* stores that certainly do not have our value: no key, or another value */
	struct instant until;         /* all of its keys have expired by then */
	struct instant value_since;   /* no store was asked for its value before this moment */
	int64_t px_us;                /* LEAVE: how long the key stays */
	int64_t delay_us;             /* LEAVE: the lock-delay of the lease */
	union {
		struct lease_value value; /* DELETE, LEAVE: the dead value */
		struct stamp ticket;      /* TICKET */
	};
	struct lease_value left;      /* LEAVE: the value that the key is left with */
};
TAILQ_HEAD(release_list, release);

struct releases {
	struct call_table *calls;
	struct pool pool;
	struct release_list outstanding;
};

void releases_init(struct releases *rs, struct call_table *calls);
void releases_release(struct releases *rs, struct pool *pendings); /* frees all releases, and their pendings */

struct release *release_new(struct releases *rs, enum release_kind kind, struct name *name);
void release_free(struct releases *rs, struct release *r); /* no call is open */
/* DELETE, LEAVE: a release of a value, which is dead from now on. */
struct release *release_of_value(struct releases *rs, enum release_kind kind, struct name *name, const struct lease_value *value);
/* The release becomes outstanding: each of these stores may have its value, at most until `until`. */
void release_enlist(struct releases *rs, struct release *r, struct nodeset nodes, struct instant until);
void release_delist(struct releases *rs, struct release *r);

static inline struct release *release_of_calls(struct calls *c)
{
	return container_of(c, struct release, calls);
}

/* Whether a call may be sent to the store now: it has not confirmed, it is connected (LEAVE: and joined), and no call to it is open. */
static inline bool release_may_ask(const struct releases *rs, const struct release *r, unsigned node)
{
	const struct member *m = &rs->calls->members->node[node];

	return nodeset_has(r->unconfirmed, node) && !nodeset_has(r->calls.open, node) && m->connected &&
	       (r->kind == RELEASE_DELETE || m->state == MEMBER_JOINED);
}

/* Whether a call may be sent to some store now. */
bool release_is_left(const struct releases *rs, const struct release *r);
/* The store is too busy: the call is sent later. */
void release_put_off(struct release *r, unsigned node);
/* Calls are sent to these stores now. Clears the mark of the name only where this release was put off. */
static inline void release_undo_put_off(struct release *r, struct nodeset nodes)
{
	r->calls.name->put_off = nodeset_without(r->calls.name->put_off, nodeset_and(r->put_off, nodes));
	r->put_off = nodeset_without(r->put_off, nodes);
}

/* Notes what an answer shows about the key. */
void release_note(const struct releases *rs, struct release *r, const struct answer *a);
/*
 * Until when a command that was sent to the store over an earlier connection may still set the key. A key that was left excludes it while it lasts; a share
 * does not.
 */
struct instant release_overtaken_until(const struct releases *rs, const struct release *r, const struct answer *a);

/* Nothing is left to send, and no answer is awaited. */
static inline bool release_is_over(const struct release *r)
{
	return !nodeset_any(r->calls.open) && !r->outstanding && !r->entry.waits && !nodeset_any(r->unsent);
}

/* The value or the ticket that its calls name, in memory of the effects. */
struct span release_text(const struct releases *rs, const struct release *r);
void release_send_to(struct releases *rs, struct release *r, unsigned node, struct span text);

/* The engine consists of these value machines. The files of the engine act on them; only the functions of move.h write their states. */

struct home_question;
TAILQ_HEAD(home_questions, home_question); /* home.h */

struct engine {
	struct core *core;
	struct members members;
	struct lock_table table;
	struct call_table calls;
	struct rounds rounds;
	struct releases releases;
	struct contenders no_quorum; /* those in CONTENDER_NO_QUORUM */
	struct leases risks;     /* the leases in LEASE_HELD for which RISK was sent */
	struct leases adopting;  /* those in LEASE_ADOPTING */
	struct admission admission;
	struct timer admission_timer;
	uint32_t admitted;      /* how many entries were admitted after a wait */
	struct instant retry_next; /* no release or withdrawal is repeated before this moment: see release_retry_at() */
	uint64_t tickets;
	uint32_t asked;         /* how many LOCKs */
	struct {
		uint32_t count;     /* how often a store came back. What was looked at since then has this number … */
		bool releases, leases, names; /* … and some outstanding releases, or leases and names that lack a quorum, have an earlier one */
		uint32_t asks;      /* admission.asks_later: ASKs begin once no release has a number before this one */
		bool due;           /* this step looks at some of them … */
		struct timer timer; /* … and the next one at others */
	} back;                 /* see engine_after_step() */
	struct kept_names kept; /* names that were left at the stores */
	struct tokens tokens;   /* fencing tokens that were seen, and what may be proposed */
	struct {
		struct home_questions asked, finished; /* sent; and those with an outcome that nobody has taken yet */
#define HOME_LINES 3
		/* To be sent as soon as the store can be asked: urgent questions, those that only a joined store may answer, and the others. */
		struct turns waiting[NODES_MAX][HOME_LINES];
		size_t waiting_n;
		bool odd[NODES_MAX]; /* the last one came from the second line: so a flood in one line does not block the other */
		unsigned tried;    /* how many of them in this step */
		struct {
			enum { NAME_UNKNOWN, NAME_ASKED, NAME_SAME, NAME_OTHER } is; /* whether the other daemons call the store as this one does */
			struct instant at;                                           /* when that was last learned, or asked in vain */
			uint64_t markers; /* of the store, then: with another marker now, it may have forgotten its name */
		} name[NODES_MAX];
		uint32_t turn[NODES_MAX]; /* the value of `admitted` when a question was sent to the store in place of a waiting round */
	} homes;
	int64_t fell_us[NODES_MAX]; /* the votes of this store end this much sooner: for code that keeps votes of its own, see job.h. 0: they do not */
	bool fell;              /* some of them are not 0 */
	bool falls;             /* some leases whose votes fell still have their old timers, from here … */
	struct map_walk fall_walk; /* … on: see hold.c */
	unsigned held;          /* leases in LEASE_HELD, of locks and of parts of permits */
	bool draining;          /* nothing new is granted: a drain, or the end */
	bool stopping;          /* the daemon ends now: what was not sent yet never is */
	unsigned watched;       /* how many sessions want reports of waiters: see watch.h */
	struct notices notices;
	struct rng *rng;
};

void engine_init(struct engine *e, struct core *core);
void engine_release(struct engine *e);

#define RETRY_US (100 * MSEC) /* before a store is asked again that refused, was too busy or did not answer */
#define RETRY_APART_US 50     /* between two repeats of releases or withdrawals: so a store that refuses many takes only a few per cent of a core */

#define BACK_A_STEP 1024 /* releases, leases or names */

static inline unsigned engine_quorum(const struct engine *e)
{
	return quorum_of(e->core->conf.nodes);
}

#endif

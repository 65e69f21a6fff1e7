/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A release: a dead value or a withdrawn ticket, and the stores that are still to be told of it. It lives until each has confirmed, or the key has expired
 * by itself, and no call is open. release.c and ticket.c decide when a store is told.
 * See ALGORITHMS.md, Outstanding releases.
 */
#ifndef CORE_RELEASES_H
#define CORE_RELEASES_H

#include "daemon/base/pool.h"
#include "daemon/core/lock/lease.h"
#include "daemon/core/member/admission.h"
#include "daemon/core/round/calls.h"

struct pending;

enum release_kind {
	RELEASE_DELETE, /* the key is deleted; repeated until every store has confirmed, or the key has expired by itself */
	RELEASE_LEAVE,  /* likewise, but the key stays for px_us without a holder, under a fresh value that no late command matches */
	RELEASE_TICKET, /* our ticket is withdrawn from the queue; not repeated */
};

struct release {
	struct calls calls;
	TAILQ_ENTRY(release) in_list; /* outstanding */
	uint32_t back;                /* the return of a store after which it was looked at: see engine_data.h */
	struct admission_entry entry;
	struct timer timer;           /* next try */
	enum release_kind kind;
	bool shared;                  /* DELETE: its value may be among shares; LEAVE: it is left as a share */
	bool outstanding;             /* DELETE, LEAVE: some store has not confirmed yet */
	struct pending *pending;      /* UNLOCK sync=yes … */
	struct instant answer_by;     /* … which is answered by then; 0: it waits for admission */
	struct nodeset unconfirmed;   /* DELETE, LEAVE: still to be confirmed */
	struct nodeset unsent;        /* TICKET: stores still to be told */
	struct nodeset put_off;       /* of the unconfirmed, those that were too busy */
	struct nodeset unsure;        /* stores with an earlier call of unknown outcome */
	struct nodeset done;          /* freed, or left behind as asked */
	struct nodeset absent;        /* our value is certainly not there: no key, or another's */
	struct instant until;         /* all of its keys have expired by then */
	struct instant value_since;   /* no store was asked for its value before this moment */
	int64_t px_us;                /* LEAVE: how long the key stays */
	int64_t delay_us;             /* LEAVE: the lock-delay of the lease */
	union {
		struct lease_value value; /* DELETE, LEAVE: the dead value */
		struct stamp ticket;      /* TICKET */
	};
	struct lease_value left;      /* LEAVE: what the key is left with */
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
/* DELETE, LEAVE: a release of a value, which is dead from here on. */
struct release *release_of_value(struct releases *rs, enum release_kind kind, struct name *name, const struct lease_value *value);
/* The release becomes outstanding: its value may stand at each of these stores, until `until` at most. */
void release_enlist(struct releases *rs, struct release *r, struct nodeset nodes, struct instant until);
void release_delist(struct releases *rs, struct release *r);

static inline struct release *release_of_calls(struct calls *c)
{
	return container_of(c, struct release, calls);
}

/* Whether the store may be told now: it has not confirmed, it is connected (LEAVE: and joined), and no call to it is open. */
static inline bool release_may_ask(const struct releases *rs, const struct release *r, unsigned node)
{
	const struct member *m = &rs->calls->members->node[node];

	return nodeset_has(r->unconfirmed, node) && !nodeset_has(r->calls.open, node) && m->connected &&
	       (r->kind == RELEASE_DELETE || m->state == MEMBER_JOINED);
}

/* Whether some store may be told now. */
bool release_is_left(const struct releases *rs, const struct release *r);
/* The store is too busy: it is told later. */
void release_put_off(struct release *r, unsigned node);
/* These stores are told now. Clears the mark of the name only where this release was put off. */
static inline void release_undo_put_off(struct release *r, struct nodeset nodes)
{
	r->calls.name->put_off = nodeset_without(r->calls.name->put_off, nodeset_and(r->put_off, nodes));
	r->put_off = nodeset_without(r->put_off, nodes);
}

/* Notes what an answer says of the key. */
void release_note(const struct releases *rs, struct release *r, const struct answer *a);
/*
 * Until when a command that was sent to the store over an earlier connection may still set the key. A key that was left behind keeps it out while it stands; a
 * share does not.
 */
struct instant release_overtaken_until(const struct releases *rs, const struct release *r, const struct answer *a);

/* Nothing is to be told, and no answer is awaited. */
static inline bool release_is_over(const struct release *r)
{
	return !nodeset_any(r->calls.open) && !r->outstanding && !r->entry.waits && !nodeset_any(r->unsent);
}

/* The value or the ticket that its calls name, in memory of the effects. */
struct span release_text(const struct releases *rs, const struct release *r);
void release_send_to(struct releases *rs, struct release *r, unsigned node, struct span text);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A release: a dead value, or a ticket, that stores are still to be told of. It lives until each has confirmed it or the key has expired by itself, and no call
 * is open. Asks nobody; release.c and ticket.c do.
 * See ALGORITHMS.md, Outstanding releases.
 */
#ifndef CORE_RELEASES_H
#define CORE_RELEASES_H

#include "daemon/base/pool.h"
#include "daemon/core/admission.h"
#include "daemon/core/calls.h"
#include "daemon/core/lease.h"

struct pending;

enum release_kind {
	RELEASE_DELETE, /* repeated until every node said so, or the key has expired by itself */
	RELEASE_LEAVE,  /* the same, but the key stays for px_us without a holder, under a value of its own: what runs late does not match it */
	RELEASE_TICKET, /* our ticket leaves the queue; not repeated */
};

struct release {
	struct calls calls;
	TAILQ_ENTRY(release) in_list; /* outstanding */
	struct admission_entry entry;
	struct timer timer;           /* next try */
	enum release_kind kind;
	bool outstanding;             /* DELETE, LEAVE: some node has not confirmed yet */
	struct pending *pending;      /* UNLOCK sync=yes */
	struct nodeset unconfirmed;   /* DELETE, LEAVE: still to be confirmed */
	struct nodeset unsent;        /* TICKET: to be asked once it is admitted */
	struct nodeset put_off;       /* of the unconfirmed, those that were too busy */
	struct nodeset unsure;        /* it was sent there before, and nobody knows whether it was carried out */
	struct nodeset done;          /* freed, or left behind as asked */
	struct nodeset absent;        /* certainly not there: missing, or another's */
	struct instant until;         /* nothing is left by then */
	struct instant value_since;   /* no store was asked before for the values that it frees */
	int64_t px_us;                /* LEAVE: how long the key stays */
	int64_t delay_us;             /* LEAVE: of the lease */
	struct lease_value value;     /* DELETE: the dead value; LEAVE: what the key is left with; TICKET: the ticket */
	char *others;                 /* further values that may stand there, separated by blanks; heap, NULL: none */
};
TAILQ_HEAD(release_list, release);

struct releases {
	struct call_table *calls;
	struct pool pool;
	struct release_list outstanding;
};

void releases_init(struct releases *rs, struct call_table *calls);
void releases_release(struct releases *rs, struct pool *pendings); /* frees those that live, and their pendings */

struct release *release_new(struct releases *rs, enum release_kind kind, struct name *name);
void release_free(struct releases *rs, struct release *r); /* no call is open */
/* DELETE, LEAVE: of a value, and of prior ones, separated by blanks. From here on they are dead. */
struct release *release_of_value(struct releases *rs, enum release_kind kind, struct name *name, const struct lease_value *value, struct span prior);
/* Becomes outstanding: at these stores a value may stand, until then at most. */
void release_list(struct releases *rs, struct release *r, struct nodeset nodes, struct instant until);
void release_unlist(struct releases *rs, struct release *r);

static inline struct release *release_of_calls(struct calls *c)
{
	return container_of(c, struct release, calls);
}

/* The store may be told: it is there, and no call is open. */
static inline bool release_may_ask(const struct releases *rs, const struct release *r, unsigned node)
{
	const struct member *m = &rs->calls->members->node[node];

	return nodeset_has(r->unconfirmed, node) && !nodeset_has(r->calls.open, node) && m->connected &&
	       (r->kind == RELEASE_DELETE || m->state == MEMBER_JOINED);
}

/* Some such store is left. */
bool release_is_left(const struct releases *rs, const struct release *r);
/* The store has too much to do: it is told later. */
void release_put_off(struct release *r, unsigned node);
/* It is told now. That another release of this name is sent there says nothing of this one. */
static inline void release_undo_put_off(struct release *r, struct nodeset nodes)
{
	r->calls.name->put_off = nodeset_without(r->calls.name->put_off, nodeset_and(r->put_off, nodes));
	r->put_off = nodeset_without(r->put_off, nodes);
}

/* What an answer says of the key. */
void release_note(const struct releases *rs, struct release *r, const struct answer *a);
/* What was sent to this node before over another connection may set the key yet, until then. What was left behind keeps that out while it stands. */
struct instant release_overtaken_until(const struct releases *rs, const struct release *r, const struct answer *a);

/* Nothing is to be told, and no answer is awaited. */
static inline bool release_is_over(const struct release *r)
{
	return !nodeset_any(r->calls.open) && !r->outstanding && !r->entry.waits && !nodeset_any(r->unsent);
}

/* Tells the store. */
void release_send_to(struct releases *rs, struct release *r, unsigned node);

#endif

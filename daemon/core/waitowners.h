/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The owners of this daemon that wait, as a wait graph: what each waits for and holds. A session comes in as a whole, so that it is looked through once,
 * however many owners it has. A detached session waits and holds as any other. See ALGORITHMS.md, Deadlocks.
 */
#ifndef CORE_WAITOWNERS_H
#define CORE_WAITOWNERS_H

#include "daemon/core/commander.h"
#include "daemon/core/group.h"
#include "daemon/core/permits.h"
#include "daemon/core/waitgraph.h"

#define WAITOWNER_BUCKETS 256

/* An owner of the graph, under the same number. */
struct wait_owner {
	struct session *session;
	struct span owner;   /* its text, borrowed */
	unsigned next;       /* in its bucket */
	bool reached;        /* of deadlock.c */
};

struct wait_owners {
	struct commander *x;
	struct waitgraph graph;
	struct wait_owner owner[GRAPH_OWNERS_MOST];
	unsigned bucket[WAITOWNER_BUCKETS];
	unsigned queue[GRAPH_OWNERS_MOST], queued; /* of deadlock.c: those that were reached */
	struct instant since; /* only requests and holds count that are no later … */
	struct instant next;  /* … and then this is when the first of the others was made; NEVER: there is no other */
	unsigned requests;    /* how many are in the graph */
	unsigned looks;       /* how many claims, permits, names of groups and slots were looked at: what it costs */
	bool full;            /* there was no room for something */
};

/* Empty. Before the next event only: it borrows from sessions. since: NEVER, all count. */
struct wait_owners *waitowners_new(struct commander *x, struct instant since);
void waitowners_free(struct wait_owners *o);

/* Adds the owner, if it is not there yet. NOBODY: there is no room. */
unsigned waitowners_add(struct wait_owners *o, struct session *s, struct span owner);
unsigned waitowners_find(const struct wait_owners *o, const struct session *s, struct span owner); /* NOBODY: it is not there */
/* Adds the owners of this session that wait, with all that they wait for. */
void waitowners_add_session(struct wait_owners *o, struct session *s);
/* Adds what those of its owners that are there hold, those names last that others are known to wait for: these come first, in case that not all has room. */
void waitowners_add_holds(struct wait_owners *o, struct session *s);

/* It is in the way of others. */
bool waitowner_has_permit(const struct permit *p);
/* It holds a lock or a permit. */
bool waitowner_holds(struct wait_owners *o, const struct session *s, struct span owner);
/* Whether the session may look at the name: of a cycle it is shown no others, but those that it asks for. */
struct wait_view {
	const struct core *core;
	const struct session *session;
};
bool waitowner_shows(const void *view, struct span name);
/* Its request that has waited for the name since then is answered DEADLOCK, with the cycle, and withdrawn. False: there is none. */
bool waitowner_refuse(struct commander *x, struct session *s, uint64_t owner_hash, struct instant since, struct span name, struct span cycle);
uint64_t waitowner_hash(struct span owner);

#endif

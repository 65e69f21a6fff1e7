/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who waits for whom, by the names that owners hold and wait for, and which of them can never go on. A value machine: it knows no session, no store and no
 * clock.
 *
 * The graph is reduced: an owner whose requests can all be granted, because those in the way go on, goes on as well, and frees what it holds. Who is left is
 * stuck. A search for a cycle alone would be wrong: a request that is content with any of several names waits in a cycle and goes on all the same, and so
 * does one that waits for a permit, of which several owners have one, if enough of them go on.
 * Source: Holt, Some Deadlock Properties of Computer Systems (1972).
 *
 * Owners wait for names, and names are had by owners: so many owners that wait for a name which many have are no more than their sum. Apart from sorting, the
 * time grows with the number of wants and holds.
 * See waitcycle.h, and ALGORITHMS.md, Deadlocks.
 */
#ifndef CORE_WAITGRAPH_H
#define CORE_WAITGRAPH_H

#include "proto/span.h"

#include <stdbool.h>
#include <stdint.h>

#define NOBODY UINT32_MAX

/* So many of each have a graph that is judged in less than a millisecond. */
#define GRAPH_OWNERS_MOST 512
#define GRAPH_EDGES_MOST  4096 /* wants and holds */

/* One name that an owner waits for: a lock, or a permit of a semaphore. */
struct graph_want {
	struct span name;
	unsigned request; /* the names of one request are added one after the other, and have the same number */
	bool any;         /* one of the names of the request is enough; false: it needs all of them */
	unsigned limit;       /* of the semaphore; 0: it is a lock */
	unsigned owner;       /* whose it is */
	unsigned next;        /* the next one of this owner */
	unsigned of;          /* the name, of the graph */
	unsigned first, left; /* the first of its request, and there: how many names the request lacks */
	bool blocked;         /* result */
};

struct graph_owner {
	struct span who, host; /* unique, for an order that is the same on all hosts; where it is, for people */
	int64_t place;         /* of its last request: the largest of a cycle is refused */
	bool own;              /* of this daemon */
	bool stuck;            /* result */
	bool victim;           /* result of cycle_find_victims */
	unsigned want, last_want; /* the first and the last of its wants; NOBODY: it has none */
	unsigned hold;         /* the first of its holds; NOBODY: it has none */
	unsigned lacks;        /* how many of its requests cannot be granted */
	unsigned via, by;      /* of cycle_tell: who waits for it, by which want */
};

struct graph_hold {
	unsigned owner;
	unsigned count;   /* of permits; 0: it is a lock */
	unsigned of;      /* the name, of the graph */
	unsigned next;    /* the next one of this owner … */
	unsigned next_of; /* … and of this name */
};

/* A lock or a semaphore. */
struct graph_name {
	struct span name;
	bool permits;         /* a lock and a semaphore may have the same name */
	unsigned next;        /* in its bucket */
	unsigned hold;        /* the first of its holds; NOBODY: it has none */
	unsigned turn, turns; /* the first of the turns that are left, and how many */
	uint64_t taken;       /* how many permits or shares of it the stuck owners have */
	unsigned own, own_of; /* how many of its holds are of that owner */
	bool followed;        /* of whoever fills the graph: its holders are in it */
	bool reached, start;  /* of cycle_tell: it was looked at; where the search began has it */
};

/* The wants of a name, in the order in which they can be granted. */
struct graph_turn {
	unsigned of, want;
	uint64_t room; /* it can be granted when no more than this is taken */
};

struct waitgraph {
	struct graph_owner *owner;
	struct graph_want *want;
	struct graph_hold *hold;
	struct graph_name *name;
	struct graph_turn *turn; /* made of the wants, as many at most */
	unsigned *bucket, buckets; /* of names: the first of each */
	unsigned owners, wants, holds, names, turns;
	unsigned owner_cap, want_cap, hold_cap, name_cap, turn_cap;
	unsigned *stuck, stucks; /* result: the numbers of the stuck owners */
	unsigned stuck_cap;
	uint64_t key[2];
};

/* key: of the hash of names, such that no client can choose names that make it slow. */
void graph_init(struct waitgraph *g, const uint64_t key[2]);
void graph_release(struct waitgraph *g);

/* Adds an owner, and returns its number. The spans are borrowed. */
unsigned graph_add_owner(struct waitgraph *g, const struct graph_owner *o);
/* Those of one request have the same owner, and nothing is added between them. */
void graph_add_want(struct waitgraph *g, unsigned owner, const struct graph_want *w);
/* count: see graph_hold. */
void graph_add_hold(struct waitgraph *g, unsigned owner, struct span name, unsigned count);
/* There is no more room for owners, or for so many wants and holds. */
static inline bool graph_is_full(const struct waitgraph *g, unsigned edges)
{
	return g->owners >= GRAPH_OWNERS_MOST || g->wants + g->holds + edges > GRAPH_EDGES_MOST;
}

/* Finds the stuck owners. False: there are none. */
bool graph_reduce(struct waitgraph *g);

/* The first of two owners is refused rather than the second. All daemons have the same order. */
bool graph_came_later(const struct graph_owner *a, const struct graph_owner *b);

#endif

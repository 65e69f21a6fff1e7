/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who waits for whom, by the names that owners hold and wait for, and which of them can never go on. A value machine: it knows no session, no store and no
 * clock.
 *
 * The graph is reduced: an owner whose requests can all be granted, because those in the way go on, goes on as well, and frees what it holds. Who is left is
 * stuck. A search for a cycle alone would be wrong: a request that is content with any of several names waits in a cycle and goes on all the same, and so
 * does one that waits for a permit, of which several owners have one, if enough of them go on.
 * Source: Holt, Some Deadlock Properties of Computer Systems (1972).
 * See ALGORITHMS.md, Deadlocks over several daemons.
 */
#ifndef CORE_WAITGRAPH_H
#define CORE_WAITGRAPH_H

#include "proto/span.h"

#include <stdbool.h>
#include <stdint.h>

#define NOBODY UINT32_MAX

/* One name that an owner waits for: a lock, or some permits of a semaphore. */
struct graph_want {
	struct span name;
	unsigned request; /* the names of one request stand behind each other, and have the same number */
	bool any;         /* one of the names of the request is enough; false: it needs all of them */
	unsigned need, limit; /* so many permits of a semaphore with so many; need 0: it is a lock */
	unsigned owner, from, to; /* whose it is; the holds of the name: of the graph */
	unsigned by;              /* who was found in the way last: of the reduction */
	bool hidden;              /* graph_cycle writes "..." in place of the name */
};

struct graph_owner {
	struct span who, host; /* unique, for an order that is the same on all hosts; where it is, for people */
	int64_t place;         /* of its last request: the largest of a cycle is refused */
	bool own;              /* of this daemon */
	bool stuck;            /* result */
	unsigned want, wants;  /* the first of its wants, and how many */
	unsigned hold;         /* the first of its holds; NOBODY: it has none */
	unsigned node;         /* its number among the stuck ones */
};

struct graph_hold {
	struct span name;
	unsigned owner;
	unsigned count; /* of permits; 0: it is a lock */
	unsigned next;  /* the next one of this owner */
	unsigned first; /* the first one of this name, … */
	uint64_t taken; /* … and there: how many permits of it the stuck owners have */
};

struct waitgraph {
	struct graph_owner *owner;
	struct graph_want *want;
	struct graph_hold *hold;
	unsigned owners, wants, holds;
	unsigned owner_cap, want_cap, hold_cap;
	unsigned *stuck, stucks; /* result: the numbers of the stuck owners */
	uint64_t *edge;          /* of the stuck owners: bit j of row i is set if i waits for j */
	unsigned words;          /* of a row */
};

void graph_init(struct waitgraph *g);
void graph_release(struct waitgraph *g);
void graph_clear(struct waitgraph *g);

/* Adds an owner. What is added next belongs to it. The spans are borrowed. count: see graph_hold. */
void graph_add_owner(struct waitgraph *g, const struct graph_owner *o);
void graph_add_want(struct waitgraph *g, const struct graph_want *w);
void graph_add_hold(struct waitgraph *g, struct span name, unsigned count);

/* Finds the stuck owners. False: there are none, and the functions below may not be called. */
bool graph_reduce(struct waitgraph *g);

/* Whether this stuck owner waits for itself, through others. */
bool graph_is_in_cycle(const struct waitgraph *g, unsigned owner);
/* Whether it does, and has the largest place of all that it waits for and that wait for it. */
bool graph_is_victim(const struct waitgraph *g, unsigned owner);

/*
 * A shortest cycle of this owner: "a@h1<-b@h2<-a@h1", or "a<-b<-a" where the host is empty. The first name is what it waits for, with the host of the
 * owner that is in the way; that one waits for the next name, and so on. Returns the bytes written, at most size, which is at least 2000; ret_want: the want
 * that the cycle begins with.
 */
size_t graph_cycle(const struct waitgraph *g, unsigned owner, char *out, size_t size, const struct graph_want **ret_want);

#endif

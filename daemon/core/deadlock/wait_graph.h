/* SPDX-License-Identifier: BSD-2-Clause */
/* Who waits for whom: the rows that daemons exchange, the circles in them, and a circle that a request would close here. */
#ifndef CORE_WAIT_GRAPH_H
#define CORE_WAIT_GRAPH_H

#include "daemon/base/buf.h"
#include "daemon/core/session/request_context.h"
#include "proto/span.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Who waits for whom: the rows that daemons exchange, and the circles in them. A value machine: it knows no session, no store and no clock. What it
 * reads may be anything, since others can write to a store.
 *
 *   text   <id of a daemon> <its rows> …                    in the order of the ids; each of these is a netstring, and each word of a row is one
 *   row    <kind> <session> <owner> <place> <count> <name>…
 *   kind   w  the owner waits for a lock, with several names for any of them      h  it holds that lock
 *          p  it waits for a permit of a semaphore that has `count` of them       s  it has `count` permits
 *
 * An owner goes on when each of its requests can be granted, and then frees what it holds. Those that are left wait for each other. A search for a circle
 * alone would be wrong: a request for any of several names, or for a permit that several owners have, waits in a circle and may go on all the same.
 * Source: Holt, Some Deadlock Properties of Computer Systems (1972). See ALGORITHMS.md, Deadlocks.
 */

#define ROWS_MAX      65536 /* bytes of the rows of all daemons: a store shows no more, see lua/table.lua. They are searched in less than a millisecond */
#define ROW_HEAD_MAX  96    /* bytes of a row in front of its names */
#define VICTIMS_MOST  16

struct wait_row {
	char kind;
	int64_t session, owner; /* together they are an owner of that daemon */
	int64_t place;          /* a request: the largest of a circle is refused */
	int64_t count;          /* a lock: 1 */
	struct span names;      /* netstrings */
};

void row_put(struct buf *rows, const struct wait_row *r);
/* Takes the next row from the list. One that is not sound is left out. False: there is none, or the list is not sound. */
bool row_next(struct span *rows, struct wait_row *ret_row);

struct victim {
	int64_t session, owner;
	struct span name; /* what it waits for in the circle … */
	bool permits;     /* … is a semaphore */
	const struct graph_owner *of;
};

struct wait_graph;

/* Reads the text, which is borrowed. key: of hashes, such that no client can choose names that make it slow. ret_daemons: how many share it, 1 at least. */
struct wait_graph *wait_graph_new(struct span text, const uint64_t key[2], unsigned *ret_daemons);
void wait_graph_free(struct wait_graph *g);
/* Of each circle that is found, the owner with the last place, if it is of this daemon. Returns how many. Once. All daemons find the same in the same text. */
unsigned wait_graph_find(struct wait_graph *g, struct span daemon, struct victim ret_victims[VICTIMS_MOST]);

/* Whether a name may be shown: else dots stand in its place. */
typedef bool circle_shows(const void *about, struct span name);
/*
 * Appends the circle: "a@h1<-b@h2<-a@h1". The first name is what the victim waits for, which is always shown, with the host of the owner that is in the way;
 * that one waits for the next name, and so on. It has so many bytes at most: 1200 at least, for two of the longest names.
 */
void wait_graph_write(const struct victim *v, circle_shows *shows, const void *about, struct buf *out, size_t most);

/*
 * A circle of locks at this daemon, before a request closes it. An owner that waits for a lock waits for all that hold it, and a LOCKALL for each of its names:
 * so a walk from holder to holder that comes back to the owner is a deadlock for certain. LOCKANY and permits, where one of several is enough, circles over
 * daemons, and those that are too large to be walked, are found later: see deadlock.h.
 */

#define CIRCLE_MAX 2000 /* bytes of its text: quoted at its worst it still fits into a reply */

/*
 * The owner of the present request is about to wait for these names. True: it would wait for itself, and ERR DEADLOCK was sent, with the names along the
 * circle: "a<-b<-a". It waits for the first one, whose holder waits for the next one, and so on; names that its user may not know are dots.
 */
bool local_circle_is_refused(struct request_context *x, struct session *s, const struct span *names, unsigned n);

#endif

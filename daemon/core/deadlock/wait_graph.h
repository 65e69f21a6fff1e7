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
 *   text   <id of a daemon> <its rows> …                    in the order of the ids; each part is a netstring, and so is each word of a row
 *   row    <kind> <session> <owner> <place> <count> <name>…
 *   kind   w  the owner waits for a lock, with several names for any of them      h  it holds that lock
 *          p  it waits for a permit of a semaphore that has `count` of them       s  it has `count` permits
 *
 * An owner goes on when each of its requests can be granted, and then frees what it holds. The owners that are left wait for each other. A search for circles
 * alone would be wrong: a request for any of several names, or for a permit that several owners have, can be part of a circle and still go on. Source: Holt,
 * Some Deadlock Properties of Computer Systems (1972).
 * See ALGORITHMS.md, Deadlocks.
 */

#define ROWS_MAX      65536 /* bytes of the rows of all daemons: a store shows no more, see lua/table.lua. The search takes less than a millisecond */
#define ROW_HEAD_MAX  96    /* bytes of a row before its names */
#define VICTIMS_MOST  16

struct wait_row {
	char kind;
	int64_t session, owner; /* together they identify an owner of that daemon */
	int64_t place;          /* a request: the largest in a circle is refused */
	int64_t count;          /* a lock: 1 */
	struct span names;      /* netstrings */
};

void row_put(struct buf *rows, const struct wait_row *r);
/* Takes the next row from the list. A malformed row is skipped. False: there is none, or the list is malformed. */
bool row_next(struct span *rows, struct wait_row *ret_row);

struct victim {
	int64_t session, owner;
	struct span name; /* what it waits for in the circle … */
	bool permits;     /* … which is a semaphore */
	const struct graph_owner *of;
};

struct wait_graph;

/*
 * Reads the text, which is borrowed. key: of hashes, so that no client can choose names that make it slow. ret_daemons: how many share the table, at least 1.
 */
struct wait_graph *wait_graph_new(struct span text, const uint64_t key[2], unsigned *ret_daemons);
void wait_graph_free(struct wait_graph *g);
/*
 * For each circle found: the owner with the last place, if it belongs to this daemon. Returns the number of victims. Call it once. All daemons find the same
 * circles in the same text.
 */
unsigned wait_graph_find(struct wait_graph *g, struct span daemon, struct victim ret_victims[VICTIMS_MOST]);

/* Whether a name may be shown; if not, dots replace it. */
typedef bool circle_shows(const void *about, struct span name);
/*
 * Appends the circle: "a@h1<-b@h2<-a@h1". The first name is the one that the victim waits for, which is always shown, with the host of the owner that is in
 * the way. That owner waits for the next name, and so on. The text has at most this many bytes: at least 1200, for two of the longest names.
 */
void wait_graph_write(const struct victim *v, circle_shows *shows, const void *about, struct buf *out, size_t most);

/*
 * A circle of locks at this daemon, before a request closes it. An owner that waits for a lock waits for all its holders, and a LOCKALL for each of its
 * names. So a walk from holder to holder that comes back to the owner proves a deadlock. Other circles are found later: those of LOCKANY and permits, where
 * one of several is enough, those across daemons, and those too large to walk. See deadlock.h.
 */

#define CIRCLE_MAX 2000 /* bytes of its text: even with the longest quoting it fits into a reply */

/*
 * The owner of the present request is about to wait for these names. True: it would wait for itself, and ERR DEADLOCK was sent with the names along the
 * circle: "a<-b<-a". It waits for the first name, whose holder waits for the next one, and so on. Dots replace names that its user may not know.
 */
bool local_circle_is_refused(struct request_context *x, struct session *s, const struct span *names, unsigned n);

#endif

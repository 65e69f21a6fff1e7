/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wait table at a store has one member for each owner that has waited for long while it holds something: a text, which this file writes and reads. A value
 * machine. What it reads may be anything, since a store can be written to by others.
 *
 *   member  <daemon-id> <session> <hash of the owner> <since> <until> <place> <row>…
 *   row     n<request>,<when>,<length>:<name>   a request that needs the name, and all others of its number
 *           a<request>,<when>,<length>:<name>   a request that any of the names of its number is enough for
 *           h0,<when>,<length>:<name>           a name that the owner holds, and since when
 *           p<request>,<when>,<count>,<limit>,<length>:<name>   a request for so many permits of a semaphore, which has <limit>
 *           s0,<when>,<count>,0,<length>:<name>                 so many permits that the owner has
 *
 * A daemon that does not know a kind of row takes the member to be unsound, and its owner to go on.
 */
#ifndef CORE_WAITENTRY_H
#define CORE_WAITENTRY_H

#include "daemon/base/buf.h"
#include "daemon/core/waitgraph.h"

#define ENTRY_MAX      4000   /* bytes of the rows of a member */
#define ENTRY_HEAD_MAX 256    /* bytes in front of them */
#define ENTRY_ROW_MAX  128    /* bytes of a row in front of its name */
#define TABLE_MAX      196608 /* bytes of all members of a table: a store takes no more, see table.lua */

/* What stands in front of the rows. since, until: moments of the store's own count between which the owner held and waited like this; 0: not known yet. */
struct entry_head {
	struct span daemon;
	uint64_t session, owner;
	struct span who; /* read: the three above, as they stand there */
	int64_t since, until;
	int64_t place;
};

struct entry_row {
	char kind; /* n, a, h, p or s */
	unsigned request;
	unsigned count, limit; /* p and s: of permits */
	int64_t when;
	struct span name;
};

/* Appends a row. False: it has no room. */
bool entry_put_row(struct buf *rows, size_t begin, const struct entry_row *r);
/* The same as long as the owner has waited or held without a gap: all but the number of the request. */
uint64_t entry_row_hash(const struct entry_row *r);
/* Appends a member to a list of members: each with its length in front. */
void entry_put(struct buf *list, const struct entry_head *h, struct span rows);

/* Takes the number in front of a list, and the blank behind it. False: there is none. */
bool entry_take_number(struct span *list, int64_t *ret_number);
/* Takes the next member from a list. False: there is none, or the list is not sound. */
bool entry_next(struct span *list, struct span *ret_member);
/* Reads the head of a member, and leaves the rows. False: it is not sound. */
bool entry_read(struct span member, struct entry_head *ret_head, struct span *ret_rows);
/* Takes the next row. 1; 0: that was the last; negative: it is not sound. */
int entry_read_row(struct span *rows, struct entry_row *ret_row);

/* The host in the id of a daemon. */
struct span entry_host(struct span daemon);

/* Adds rows to the graph, which are sound: they are those of the owner that was added last. */
void entry_rows_to_graph(struct waitgraph *g, struct span rows);
/* Adds the owner to the graph: who, place and the rows. False: they are not sound, and nothing was added. */
bool entry_to_graph(struct waitgraph *g, struct span member, bool own);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The texts by which daemons tell each other who waits for what: one member for each owner that has waited for long while it holds something. A value machine.
 * What it reads may be anything, since a store can be written to by others.
 *
 *   list    <length>:<member>…
 *   member  <daemon-id> <session> <hash of the owner> <place> <row>…
 *   row     <kind><request>,<count>,<limit>,<length>:<name>
 *   kind    n  a request that needs the name, and all others of its number     h  a name that the owner holds
 *           a  a request that any of the names of its number is enough for     s  so many permits that it has
 *           p  a request for a permit, of a semaphore of that limit
 *
 * A daemon that does not know a kind of row takes the member to be unsound, and its owner to go on.
 */
#ifndef CORE_WAITENTRY_H
#define CORE_WAITENTRY_H

#include "daemon/base/buf.h"
#include "daemon/core/waitgraph.h"

#define ENTRY_MAX      8000 /* bytes of the rows of a member */
#define ENTRY_HEAD_MAX 256  /* bytes in front of them */

/* An owner: this daemon, its session and the hash of its text. */
struct entry_head {
	struct span daemon;
	uint64_t session, owner;
	struct span who; /* read: the three above, as they stand there */
	int64_t place;
};

/* Appends the owner of the graph to a list, with what it waits for, and holds as far as there is room. False: there is no room for what it waits for. */
bool entry_put(struct buf *list, const struct entry_head *h, const struct waitgraph *g, unsigned owner);

/* Takes the next member from a list. False: there is none, or the list is not sound. */
bool entry_next(struct span *list, struct span *ret_member);
/* Adds the owner to the graph. NOBODY: it is not sound, or there is no room, and nothing was added. ret_head: what stands in front of its rows. */
unsigned entry_to_graph(struct waitgraph *g, struct span member, bool own, struct entry_head *ret_head);

#endif

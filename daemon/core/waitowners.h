/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The owners of this daemon that have waited for long while they hold something: what each waits for and holds, as rows of the wait table. A detached session
 * waits and holds as any other. See ALGORITHMS.md, Deadlocks over several daemons.
 */
#ifndef CORE_WAITOWNERS_H
#define CORE_WAITOWNERS_H

#include "daemon/core/commander.h"
#include "daemon/core/group.h"
#include "daemon/core/permits.h"
#include "daemon/core/waitentry.h"

/* How long an owner has waited before it counts. */
static inline int64_t waitowner_after_us(const struct core *core)
{
	return core->conf.deadlock_us ? core->conf.deadlock_us : SEC;
}

struct wait_owner {
	struct session *session;
	struct span owner;   /* its text, borrowed from a claim */
	unsigned before;     /* another owner of this session; NOBODY: there is none */
	uint64_t owner_hash;
	uint64_t hash;       /* of the rows: another one if it did not wait and hold like this without a gap */
	int64_t place;       /* of its last request among the tickets, when it was looked at */
	size_t rows, rows_n; /* where its rows begin in the text, and how many bytes they have */
};

struct wait_owners {
	struct wait_owner *item;
	unsigned count, cap;
	struct buf text;
	struct instant next; /* when the next owner will have waited for long enough; NEVER: none waits while it holds something */
};

void waitowners_release(struct wait_owners *o); /* to be empty */
/* Looks at all sessions. Before the next event only. */
void waitowners_collect(struct commander *x, struct wait_owners *o);

/* Adds this one, whether it has waited for long or not. Rows of requests that it is about to make come first. */
void waitowner_add(struct commander *x, struct wait_owners *o, struct session *s, struct span text, const struct entry_row *row, unsigned rows);
/* It holds a lock or a permit, or has some slots of a permit that it waits for. */
bool waitowner_holds(const struct commander *x, const struct session *s, struct span owner);
bool wait_owners_have(const struct wait_owners *o, const struct session *s, struct span owner);

static inline struct span waitowner_rows(const struct wait_owners *o, const struct wait_owner *owner)
{
	return (struct span){buf_begin(&o->text) + owner->rows, owner->rows_n};
}

/* In the cycles of this graph the session is shown no name that it may not look at, but those that the owner asks for, who is one of its own. */
void waitowner_hide(const struct commander *x, const struct session *s, struct waitgraph *g, unsigned owner);
/* Its request that waits for the name is answered DEADLOCK, with the cycle, and withdrawn. False: there is none. */
bool waitowner_refuse(struct commander *x, const struct wait_owner *owner, struct span name, struct span cycle);

#endif

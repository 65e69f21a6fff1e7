/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The locks that the session holds, each with its name, fence and count as the answers told them; for sessions with grace only.
 * Locks with an owner, and locks taken by redlock_request, are not tracked. tracking.h changes them by what the daemon tells.
 */
#ifndef CLIENT_HOLDS_H
#define CLIENT_HOLDS_H

#include "client/lib/redlock.h"
#include "proto/proto.h"
#include <sys/queue.h>

/* A row of LOCKALL. */
struct hold_row {
	bool told;
	int64_t fence, valid_ms;
};

enum hold_state {
	HOLD_ASKED, /* its LOCK, LOCKALL or LOCKANY is in flight, or was given up and may have been granted */
	HOLD_HELD,  /* an answer granted it, and nothing since has told of its loss */
	HOLD_LOST,  /* RESUME did not bring it back; until an UNLOCK is told so, or a LOCK takes it anew */
};

struct hold {
	LIST_ENTRY(hold) next;
	enum hold_state state;
	bool seen;           /* a row of this RESUME told of it, or a CHECK asked for it since */
	const char *reason;  /* LOST: evicted or expired; NULL once a push has told the loss */
	int64_t loss_told;   /* the fence of that push; after RESUME the daemon tells this loss, too, even if the name is held again by then; 0: none */
	bool shared, permit; /* how it is held */
	bool unsettled;      /* a LOCK was given up, so an UNLOCK is to tell the daemon how often it is held (count_field.h) */
	bool unlock_open;    /* an UNLOCK was given up, and the caller has not called it again: the daemon may count one less */
	bool in_bundle;      /* the LOCKALL or LOCKANY in flight asks for it */
	unsigned rank;       /* … as the name of this place */
	struct hold_row part; /* … and a row of the answer granted it */
	int64_t fence, until_us;
	int64_t count; /* how often the caller believes it holds the lock */
	char name[NAME_MAX_BYTES + 1];
};

struct holds {
	LIST_HEAD(, hold) all;
	void *by_name; /* the same as a tree of tsearch(3) */
	bool unsettled; /* one of them may be */
};

void holds_init(struct holds *holds);
void holds_release(struct holds *holds);
struct hold *holds_find(const struct holds *holds, struct span name);
/* Before a LOCK, so that a grant is never lost to a lack of memory. -ENOMEM. */
int holds_reserve(struct holds *holds, const char *name) REDLOCK_MUST;
void holds_forget(struct holds *holds, struct hold *h);
/* No LOCKALL or LOCKANY is in flight any more. What it asked for and did not get is forgotten. */
void holds_end_lockall(struct holds *holds);

#endif

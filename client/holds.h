/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The locks that the session holds, each with its name, fence and count as the answers told them; for sessions with grace only.
 * Locks with an owner, and locks taken by redlock_request, are not tracked. tracking.h changes them by what the daemon tells.
 */
#ifndef CLIENT_HOLDS_H
#define CLIENT_HOLDS_H

#include "client/redlock.h"
#include "proto/proto.h"
#include <sys/queue.h>

/* A row of RESUME about a lock, or the OK to a CHECK after it. */
struct hold_row {
	bool told;
	int64_t fence, valid_ms, count;
	int64_t asked_us; /* read before the daemon was asked */
};

enum hold_state {
	HOLD_ASKED,    /* its LOCK, LOCKALL or LOCKANY is in flight */
	HOLD_HELD,     /* an answer granted it, and nothing since has told of its loss */
	HOLD_LOST,     /* RESUME did not bring it back; until an UNLOCK is told so, or a LOCK takes it anew */
	HOLD_UNWANTED, /* its LOCK was given up while the connection was away, and may have been granted all the same */
	HOLD_FREED,    /* its last UNLOCK was given up, and was done all the same; until the next UNLOCK is told so */
};

struct hold {
	LIST_ENTRY(hold) next;
	enum hold_state state;
	bool seen;            /* a row of this RESUME told of it, or a CHECK asked for it since */
	const char *reason;   /* LOST: evicted or expired; NULL once a push has told the loss */
	int64_t loss_told;    /* the fence of that push; after RESUME the daemon tells this loss, too, even if the name is held again by then; 0: none */
	bool lock_given_up;   /* a LOCK was given up that may have counted */
	bool unlock_given_up; /* an UNLOCK was given up that may have counted, asked for while the lock was believed */
	bool unlock_counted;  /* that UNLOCK has counted; count does not show it, since the caller does not know */
	struct hold_row row;
	bool in_bundle;        /* the LOCKALL or LOCKANY in flight asks for it */
	bool gone;            /* … and CHECK after RESUME told that the session does not hold it */
	struct hold_row part; /* … and a row of the answer granted it */
	int64_t fence, until_us;
	int64_t count; /* how often the caller believes it holds the lock */
	char name[NAME_MAX_BYTES + 1];
};

struct holds {
	LIST_HEAD(, hold) all;
	void *by_name; /* the same as a tree of tsearch(3) */
	int64_t open;  /* how many locks RESUME left undecided: the stores have not confirmed them yet */
	int64_t more;  /* how many locks RESUME left out, because there were too many to tell at once */
	bool surplus;  /* an answer showed that a LOCK that was given up has counted */
};

void holds_init(struct holds *holds);
void holds_release(struct holds *holds);
struct hold *holds_find(const struct holds *holds, struct span name);
/* Before a LOCK, so that a grant is never lost to a lack of memory. -ENOMEM. */
int holds_reserve(struct holds *holds, const char *name) REDLOCK_MUST;
void holds_forget(struct holds *holds, struct hold *h);
/* No LOCKALL or LOCKANY is in flight any more. What it asked for and did not get is forgotten. */
void holds_unbundle(struct holds *holds);

#endif

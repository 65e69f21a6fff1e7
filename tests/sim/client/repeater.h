/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients whose connections end before they have read an answer. They resume their sessions and send the same request again, with the same count=, until they
 * have read an answer to it: see "After a cut" in redlock-protocol(7). One request at a time, about the names a0 …, the semaphore y0 and the queue z0, by
 * owners that no other session has. What a client thinks it has, then is exactly what it has: see check/repeated.c.
 */
#ifndef SIM_REPEATER_H
#define SIM_REPEATER_H

#include "daemon/base/heap.h"
#include "daemon/base/instant.h"
#include "tests/sim/plan/stream.h"
#include "tests/sim/world/conn.h"

#define REPEATERS      4 /* clients that do so */
#define REPEAT_OWNERS  2
#define REPEAT_NAMES   3
#define REPEAT_MOST    2 /* how often an owner has a name, and how many permits there are */

enum repeat {
	REPEAT_LOCK,
	REPEAT_ALL,
	REPEAT_ANY,
	REPEAT_UNLOCK,
	REPEAT_CHECK,
	REPEAT_TOO_MANY, /* UNLOCK with one count more than the client thinks that it has: that is refused */
	REPEAT_ACQUIRE,
	REPEAT_RELEASE,
	REPEAT_TOO_MANY_PERMITS,
	REPEAT_DEFER,
	REPEAT_TAKE,
	REPEAT_KNOWN, /* CHECK of the job */
	REPEAT_DONE,
};

/* What a client thinks that one of its owners has of a name. */
struct repeat_hold {
	int64_t count, fence;
	bool shared, vague; /* vague: an answer left open what it has. It gives all back, and knows then */
	struct instant deadline;
	int64_t until; /* of its belief, in true time */
};

struct repeat_permit {
	int64_t fence, slot, until;
	struct instant deadline;
};

/* Of the queue z0. */
struct repeat_job {
	char id[24]; /* "": it has none */
	struct instant deadline;
	int64_t until;       /* of its belief, in true time */
	unsigned rows;       /* of the answer to RESUME */
	char unheard[24];    /* one of them, of a job that the client has not heard of … */
	struct instant unheard_until;
};

/* The request that is sent until an answer is read. */
struct repeat_ask {
	enum repeat what;
	bool open, cut, again; /* cut: the connection ends next; again: the answer said that nothing is decided yet */
	unsigned sent, owner;
	unsigned group;        /* bits of names */
	int64_t number;        /* of this request, whenever it is sent; 0: it is none */
	int64_t count, wait_ms;
	bool shared;
	unsigned last;         /* the tag with which it was sent last */
	char text[160];
	/* the checker's */
	int64_t lost_at;       /* when a daemon first answered LOST; 0: none has … */
	uint64_t lost_run;     /* … in this run */
};

struct repeating {
	struct timer timer;
	struct stream stream;
	unsigned life;            /* of its sessions, so far */
	char secret[SECRET_TEXT]; /* of the session that it is about */
	struct conn *conn;        /* over which it asked last */
	int64_t asked;            /* requests so far */
	struct repeat_ask ask;
	struct repeat_hold hold[REPEAT_OWNERS][REPEAT_NAMES];
	struct repeat_permit permit[REPEAT_OWNERS][REPEAT_MOST];
	int64_t permits[REPEAT_OWNERS];
	struct repeat_job job;
	bool vague[REPEAT_OWNERS];          /* of permits, as above */
	int64_t row_count[REPEAT_NAMES];    /* of the answer to LOCKALL … */
	int64_t row_fence[REPEAT_NAMES];
	unsigned rows, permit_rows[REPEAT_OWNERS]; /* … bits of names; of the answer to RESUME */
};

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long the session may believe that it holds a lock, when it asks again, and when it stops the command. Moments are those of
 * redlock.h.
 */
#ifndef CLIENT_VALIDITY_H
#define CLIENT_VALIDITY_H

#include "client/lib/redlock.h"

#define STILL_BYTES 80

struct validity {
	struct redlock_grant
		grant;      /* of the last answer; ttl_ms is that of an earlier answer where the last one does not tell it */
	int64_t longest_us; /* the longest validity that was told, at most the ttl; the margins are shares of it */
	int64_t check_at;   /* when CHECK is to be asked */
	int64_t term_at;    /* when the command is stopped if no answer came: a fifth of the validity is left */
	int64_t awake_us;   /* when this process last ran, or was to run */
	int64_t stood_us;   /* for how long this process stood still since the last validity that was not over; 0: it did not */
	int64_t late_until; /* after that: until then CHECK is asked although the validity is over */
};

/* Takes over the grant that an answer told. */
void validity_set(struct validity *b, const struct redlock_grant *grant);
/* CHECK is sent now. Postpones term_at if this process is late, so that the answer has a moment to come. */
void validity_asked(struct validity *b, int64_t now);
/*
 * validity_awake: this process runs. If it was to run sooner, it stood still, as in a paused container. The daemon has kept the lock for as long as it saw the
 * connection, so CHECK is asked before the command is stopped, and its answer has a moment to come. validity_sleeps: the process is to run again at due.
 */
void validity_awake(struct validity *b, int64_t now);
void validity_sleeps(struct validity *b, int64_t due);
/* "; this process was paused for 41s", or "". */
const char *validity_still(const struct validity *b, char out[STILL_BYTES]);
/* Whether it is of use to ask CHECK now. Behind the validity it is not: the lock was relied on for too long. */
bool validity_may_ask(const struct validity *b, int64_t now);
/* The daemon could not tell: CHECK is asked again soon. */
void validity_untold(struct validity *b, int64_t now);
/* When the command is killed: a tenth of the validity is left. */
int64_t validity_kill_at(const struct validity *b);

#endif

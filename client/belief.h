/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long the session may believe that it holds a lock, when it asks again, and when it stops the command. Moments are those of
 * redlock.h.
 */
#ifndef CLIENT_BELIEF_H
#define CLIENT_BELIEF_H

#include "client/redlock.h"

struct belief {
	struct redlock_grant
		grant;      /* of the last answer; ttl_ms is that of an earlier answer where the last one does not tell it */
	int64_t longest_us; /* the longest validity that was told, at most the ttl; the margins are shares of it */
	int64_t check_at;   /* when CHECK is to be asked */
	int64_t term_at;    /* when the command is stopped if no answer came: a fifth of the validity is left */
};

/* Takes over the grant that an answer told. */
void belief_set(struct belief *b, const struct redlock_grant *grant);
/* CHECK is sent now. Postpones term_at if this process is late, so that the answer has a moment to come. */
void belief_asked(struct belief *b, int64_t now);
/* The daemon could not tell: CHECK is asked again soon. */
void belief_untold(struct belief *b, int64_t now);
/* When the command is killed: a tenth of the validity is left. */
int64_t belief_kill_at(const struct belief *b);

#endif

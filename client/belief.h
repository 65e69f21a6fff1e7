/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long a lock may be believed to be held, and when to ask again and to stop the command for that. Moments are those of redlock.h.
 */
#ifndef CLIENT_BELIEF_H
#define CLIENT_BELIEF_H

#include "client/redlock.h"

struct belief {
	struct redlock_grant grant; /* as last answered; ttl_ms is known from an earlier answer where that does not tell */
	int64_t longest_us;         /* the longest validity that was told, at most the ttl: what the margins are a share of */
	int64_t check_at;           /* when CHECK is to be asked */
	int64_t term_at;            /* when the command is to be stopped, without news: a fifth of the validity is left */
};

/* An answer told this grant. */
void belief_set(struct belief *b, const struct redlock_grant *grant);
/* CHECK is sent now. Who comes late himself gives the answer a moment before he acts on its absence. */
void belief_asked(struct belief *b, int64_t now);
/* The daemon could not tell: CHECK is to be asked again soon. */
void belief_untold(struct belief *b, int64_t now);
/* When nothing of the command may run any more: a tenth of the validity is left. */
int64_t belief_kill_at(const struct belief *b);

#endif

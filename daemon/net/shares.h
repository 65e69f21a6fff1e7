/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who may have one more session. Each peer, as peer_origin() names it, has one share: limits.peer, and never the last sixteenth of all. Root and the user of
 * the daemon on the Unix socket may have any number, and the last few are kept for them. limits.peer does not bind loopback, where anybody on this host may
 * connect. A share also counts the bytes in the buffers of its sessions: see held.c. Its sessions wait for their turns together: see turns.h.
 */
#ifndef NET_SHARES_H
#define NET_SHARES_H

#include "daemon/base/map.h"
#include "daemon/base/peer.h"

#include <sys/queue.h>
#include <sys/types.h>

#define HELD_CLASSES 32 /* of bytes: class n has less than 2^n, and at least half of that; class 0 has none, and no list */

struct conn;
TAILQ_HEAD(conn_list, conn);

/* What a peer has. */
struct share {
	struct map_node by_peer;
	unsigned sessions;
	/* held.c: the memory of the buffers of its sessions, in bytes; its class of size, and the sessions of each class. */
	size_t held;
	unsigned char class;
	LIST_ENTRY(share) of_class;
	LIST_HEAD(, conn) sessions_of[HELD_CLASSES];
	struct conn_list waiting; /* for their turns */
	unsigned unread;          /* how many of these are to be read */
	TAILQ_ENTRY(share) in_turns; /* while some wait */
	size_t n;
	char name[PEER_ORIGIN_MAX];
};

struct shares {
	struct map by_peer;
	LIST_HEAD(, share) of_class[HELD_CLASSES]; /* shares that have a buffer */
	uid_t own; /* of the daemon */
};

enum share_left {
	SHARE_LEFT,
	SHARE_FULL,    /* nobody may have one more */
	SHARE_KEPT,    /* the rest is kept for root and the user of the daemon */
	SHARE_USED_UP, /* this peer may have no more */
};

void shares_init(struct shares *s, uid_t own);
void shares_release(struct shares *s); /* all sessions have left */

/* How many of `most` sessions are kept for root and the user of the daemon. */
unsigned shares_kept(unsigned most);
/* How many of them this peer may have. peer_max: limits.peer; 0: no bound. */
unsigned shares_most(const struct shares *s, const struct peer *peer, unsigned most, unsigned peer_max);
/* Whether the peer may have one more. live: how many sessions there are. */
enum share_left shares_ask(const struct shares *s, const struct peer *peer, unsigned live, unsigned most, unsigned peer_max);

/* Counts one more session. */
struct share *shares_enter(struct shares *s, const struct peer *peer);
/* Likewise, by the name of the share, in the next process. */
struct share *shares_join(struct shares *s, const char *name, size_t n);
void shares_leave(struct shares *s, struct share *share); /* NULL is allowed */

#endif

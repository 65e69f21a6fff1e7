/* SPDX-License-Identifier: BSD-2-Clause */
/* What jobs and rate limits take in the memory store, in bytes: of all clients, and of those of each peer. As in daemon/redis/lua/home.lua. */
#ifndef STORE_LEDGER_H
#define STORE_LEDGER_H

#include "daemon/base/map.h"
#include "proto/span.h"

struct ledger {
	struct map peers;
	int64_t all;
};

void ledger_init(struct ledger *l, const uint64_t key[2]);
void ledger_release(struct ledger *l);
/* So many bytes more; below 0: fewer. peer "": they are of none. */
void ledger_charge(struct ledger *l, struct span peer, int64_t bytes);
/* Whether so many bytes more are too many: '*' of all, 'p' of the peer; 0: they are not. peer_most 0: the peer may have all. */
char ledger_too_much(const struct ledger *l, struct span peer, int64_t bytes, int64_t most, int64_t peer_most);

#endif

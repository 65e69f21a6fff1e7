/* SPDX-License-Identifier: BSD-2-Clause */
/* The bytes that jobs and rate limits take in the memory store: of all clients, and of each peer. As in daemon/redis/lua/home.lua. */
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
/* Adds that many bytes; below 0: subtracts them. peer "": they belong to no peer. */
void ledger_charge(struct ledger *l, struct span peer, int64_t bytes);
/* Whether that many more bytes are too many: '*' for all, 'p' for the peer; 0: they are not. peer_most 0: no limit for the peer. */
char ledger_too_much(const struct ledger *l, struct span peer, int64_t bytes, int64_t most, int64_t peer_most);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What doctor asks the daemon about its stores, and what it finds in the answers. The daemon alone knows the addresses, secrets and certificates of its
 * stores, and how they look from its host; so doctor asks it, and connects to no store.
 */
#ifndef CLIENT_DOCTOR_STORES_H
#define CLIENT_DOCTOR_STORES_H

#include "client/cli/command/finding.h"
#include "client/lib/redlock.h"

#define NODES_TOLD 16

struct doctor_stores {
	struct findings *findings;
	int64_t lease_ms;                 /* as HELLO told it; 0: not told */
	int64_t nodes, joined;            /* stores */
	int64_t clock_least, clock_most;  /* of the host of the daemon and of the stores, as far ahead of the former, milliseconds */
	bool memory;
	bool needs_saving; /* there are jobs, or rate limits were asked for */
	int64_t queue_rows;
	int64_t quarantined, left_ms[NODES_TOLD]; /* stores in quarantine, and for how much longer */
};

/* Asks LIST nodes and STATS, and tells what it finds at each store, at all together, and of the journal. Returns what redlock_request returns. */
int doctor_stores_examine(struct doctor_stores *w, struct redlock *c) REDLOCK_MUST;

#endif

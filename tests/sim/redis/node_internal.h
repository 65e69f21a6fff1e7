/* SPDX-License-Identifier: BSD-2-Clause */
/* A simulated node as its two files know it: node.c (how it works) and node_faults.c (what happens to it). */
#ifndef SIM_NODE_INTERNAL_H
#define SIM_NODE_INTERNAL_H

#include "daemon/redis/script.h"
#include "tests/sim/redis/probe_memo.h"
#include "tests/sim/redis/node.h"
#include "tests/sim/redis/redis.h"

/* What was found under a key, NULL for nothing, when the data had changed so often. */
struct found {
	bool known;
	uint64_t changes;
	struct datum *datum;
};

struct sim_node {
	struct redis redis;
	struct script_keys keys;
	char sha[SCRIPT_N][SHA1_HEX + 1];
	struct data snapshot;
	char snapped_run_id[RUN_ID_LENGTH + 1], snapped_replid[RUN_ID_LENGTH + 1]; /* its identity at the snapshot */
	bool snapped;
	char *marker_key, *fence_key;
	struct found marker_found, fence_found;
	/* Of the call under way; arena is the memory of its answers. */
	struct batch batch;
	struct resp resp;
	struct buf command, reply, key, slot;
	char *name; /* the key prefix, and behind it the name that was last looked up */
	size_t name_at, name_n, name_cap;
	struct found name_found; /* of the name that was last looked up */
	struct words words;
	struct arena arena;
	struct memo memo;
	const struct call *call;
	struct answer *answer;
	size_t answered;
};

/* A new process: sets run id and replication id. */
void sim_node_name(struct sim_node *n, const char *run_id);

#endif

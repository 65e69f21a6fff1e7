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
	bool embedded;         /* see embedded.c … */
	struct memory *memory; /* … NULL: its daemon does not run */
	int64_t epoch_us;      /* of the memory that it has, or had last */
	struct redis redis;
	struct script_keys keys;
	char sha[SCRIPT_N][SHA1_HEX + 1];
	struct data snapshot;
	char snapped_run_id[RUN_ID_LENGTH + 1], snapped_replid[RUN_ID_LENGTH + 1]; /* its identity at the snapshot */
	bool snapped;
	char *marker_key, *fence_key, *called_key;
	struct found marker_found, fence_found, called_found;
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

/* embedded.c: what node.c asks of a node whose daemon is its own store. */
void embedded_call(struct sim_node *n, const struct call *call, size_t count, int64_t wall_us, struct answer *ret_answer);
bool embedded_get(struct sim_node *n, struct span name, int64_t wall_us, struct span *ret_value, int64_t *ret_expires_ms);
bool embedded_has_field(const struct sim_node *n, struct span key, struct span field);
void embedded_each(struct sim_node *n, int64_t wall_us, void (*visit)(void *context, struct span key, struct span value, int64_t expires_ms),
                   void *context);

#endif

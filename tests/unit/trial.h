/* SPDX-License-Identifier: BSD-2-Clause */
/* Random things that happen to a Redis node, to a memory store and to a simulated node alike, all of them from one seed. */
#ifndef UNIT_TRIAL_H
#define UNIT_TRIAL_H

#include "daemon/base/rng.h"
#include "daemon/redis/script.h"
#include "daemon/store/memory.h"
#include "tests/sim/redis/node.h"
#include "tests/unit/oracle.h"

#define CALLS_MAX 6
#define EPOCH_US  INT64_C(1700000000000000)
#define PREFIX    "lock:"
#define KEY_MAX   1024

struct trial {
	uint64_t seed;
	struct rng rng;
	struct oracle *redis;
	struct memory *memory;
	struct sim_node *node;
	struct instant now;
	int64_t skew_us, tolerance_us;
	struct script_keys keys;
	struct batch batch;
	struct resp resp;
	struct call call[CALLS_MAX];
	struct answer simulated[CALLS_MAX];
	unsigned calls, answered; /* of the batch under way */
	char prior[CALLS_MAX][4 * (VALUE_MAX + 1)];
};

void trial_begin(struct trial *t, struct oracle *redis, uint64_t seed); /* all are empty */
void trial_end(struct trial *t);

bool trial_chance(struct trial *t, unsigned percent);
int64_t trial_clock(const struct trial *t); /* of all servers */
void trial_pass(struct trial *t);           /* time */
void trial_foreign(struct trial *t);        /* what other clients do to a key */
struct call trial_call(struct trial *t, struct span marker);
struct span trial_marker(struct trial *t);

/* The names that occur: the i-th, or an empty one behind the last. And the key of a name, at most KEY_MAX bytes. */
struct span trial_name(size_t i);
size_t trial_key(struct span name, char *ret_key);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a lock protects: a register that refuses, on every access, a token smaller than the largest it has seen. In it is a counter that clients read, increment
 * and write back. If an update is ever lost, tokens do not protect (S4).
 */
#ifndef SIM_RESOURCE_H
#define SIM_RESOURCE_H

#include "daemon/base/heap.h"
#include "tests/sim/plan/stream.h"

struct world;
struct task;

struct resource {
	int64_t seen; /* the largest token seen */
	int64_t counter, writes;
	int64_t refused;
};

/* The client reads and then writes the counter. */
void resource_visit(struct world *w, struct task *r, int64_t token);
void access_fired(struct world *w, struct timer *t);
/* Frees an access that is under way when the world ends. */
void access_drop(struct timer *t);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a lock protects: a register that refuses a token smaller than the largest it has seen, on every access, and in it a counter that
 * clients read, add one to, and write back. If an update is ever lost, tokens do not protect (S4).
 */
#ifndef SIM_RESOURCE_H
#define SIM_RESOURCE_H

#include "daemon/base/heap.h"
#include "tests/sim/plan/stream.h"

struct world;
struct run;

struct resource {
	int64_t seen; /* the largest token */
	int64_t counter, writes;
	int64_t refused;
};

/* A read, and then a write, are on their way. */
void resource_visit(struct world *w, struct run *r, int64_t token);
void access_fired(struct world *w, struct timer *t);
/* One that is under way when the world ends. */
void access_drop(struct timer *t);

#endif

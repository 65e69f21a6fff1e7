/* SPDX-License-Identifier: BSD-2-Clause */
/* A server as a client sees it: the model's commands, and EVAL, EVALSHA, SCRIPT LOAD, EXISTS and FLUSH, and FLUSHALL. */
#ifndef SIM_REDIS_H
#define SIM_REDIS_H

#include "tests/sim/redis/binding.h"

struct redis {
	struct model model;
	struct binding *binding;
};

void redis_init(struct redis *r);
void redis_release(struct redis *r);

/* Runs one command at this time of the server's wall clock, and appends the reply. n > 0. */
void redis_command(struct redis *r, int64_t wall_us, const struct span *word, size_t n, struct buf *out);

#endif

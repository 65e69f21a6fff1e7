/* SPDX-License-Identifier: BSD-2-Clause */
/* A real redis-server and the simulated one, with one clock: both are told the same, and must say the same. */
#ifndef UNIT_DUEL_H
#define UNIT_DUEL_H

#include "tests/sim/redis/redis.h"
#include "tests/unit/oracle.h"

struct duel {
	struct oracle oracle;
	struct redis redis;
	int64_t now_us; /* see duel_clock */
	struct buf out;
	char note[64]; /* for the message of a failure */
};

void duel_start(struct duel *d, int64_t now_us);
void duel_stop(struct duel *d);
void duel_reset(struct duel *d); /* both empty, and without scripts */
void duel_clock(struct duel *d, int64_t now_us);

/* Fails the test unless both answer the same, to the byte. Returns REDIS_REPLY_…, of what both said. */
int duel_command(struct duel *d, const struct span *word, size_t n);

/* The words of the format are parted by single blanks; EVAL's text is given apart. */
int duel_tell(struct duel *d, const char *words);
int duel_eval(struct duel *d, const char *script, const char *words);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random numbers that nobody can predict without the key, and that a simulator can repeat: SipHash of a counter under a 128-bit key.
 * The key comes from getrandom(2) in the daemon (rng_seed_from_system) and from the seed in a simulation.
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

struct rng {
	uint64_t key[2];
	uint64_t counter;
};

void rng_init(struct rng *r, const uint64_t key[2]);
uint64_t rng_next(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t bound);  /* uniform in [0, bound), bound > 0 */
void rng_hex(struct rng *r, char *out, size_t n);   /* n lower-case hex digits, no NUL */
void hex_write(uint64_t bits, char out[16]);         /* 16 lower-case hex digits, the lowest first */

/* getrandom(2); aborts if it fails. Core and store never call it. */
void rng_seed_from_system(uint64_t ret_key[2]);

#endif

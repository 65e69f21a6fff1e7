/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random numbers that nobody can predict without the key, and that a simulator can repeat: SipHash of a counter under a 128-bit key.
 * The key comes from getrandom(2) in the daemon (rng_seed_from_system) and from the seed in a simulation.
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct rng {
	uint64_t key[2];
	uint64_t counter;
};

void rng_init(struct rng *r, const uint64_t key[2]);
uint64_t rng_next(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t bound);  /* uniform in [0, bound), bound > 0 */
void rng_hex(struct rng *r, char *out, size_t n);   /* n lower-case hex digits, no NUL */

/* 16 lower-case hex digits, the lowest first: each byte becomes two, all eight at once. Nibbles above 9 get 'a' - '9' - 1 more. */
static inline void hex_write(uint64_t bits, char out[16])
{
	typedef uint8_t bytes __attribute__((vector_size(8)));
	typedef uint16_t pairs __attribute__((vector_size(16)));
	bytes in;
	pairs x;

	bits = htole64(bits);
	memcpy(&in, &bits, sizeof(in));
	x = __builtin_convertvector(in, pairs);
	x = (x | x << 4) & 0x0f0f;
	x += 0x3030 + ((x + 0x0606) >> 4 & 0x0101) * ('a' - '9' - 1);
	for (unsigned i = 0; i < 8; i++)
		x[i] = htole16(x[i]);
	memcpy(out, &x, sizeof(x));
}

/* getrandom(2); aborts if it fails. Core and store never call it. */
void rng_seed_from_system(uint64_t ret_key[2]);

/* Capped exponential back-off with jitter: the n-th pause is uniform in [0.5, 1.0] x min(cap, base x 2^n). It never waits, and reads no clock. */
struct backoff {
	int64_t base_us, cap_us;
	unsigned tries;
};

void backoff_init(struct backoff *b, int64_t base_us, int64_t cap_us);
int64_t backoff_next(struct backoff *b, struct rng *r); /* microseconds to wait now */
void backoff_reset(struct backoff *b);

#endif

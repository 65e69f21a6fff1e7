/* SPDX-License-Identifier: BSD-2-Clause */
/* SipHash of a counter. Only rng_seed_from_system asks the system for anything. */
#include "daemon/base/rng.h"
#include "daemon/base/map.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

void rng_init(struct rng *r, const uint64_t key[2])
{
	*r = (struct rng){.key = {key[0], key[1]}};
}

uint64_t rng_next(struct rng *r)
{
	uint64_t n = htole64(r->counter++);

	return siphash(r->key, &n, sizeof(n));
}

/* D. Lemire, Fast Random Integer Generation in an Interval (2019): the upper half of a product, rejecting what would be biased. */
uint64_t rng_below(struct rng *r, uint64_t bound)
{
	unsigned __int128 product = (unsigned __int128)rng_next(r) * bound;

	if ((uint64_t)product < bound) {
		uint64_t biased = -bound % bound; /* cppcheck-suppress oppositeExpression ; 2^64 modulo bound */

		while ((uint64_t)product < biased)
			product = (unsigned __int128)rng_next(r) * bound;
	}
	return (uint64_t)(product >> 64);
}

void rng_hex(struct rng *r, char *out, size_t n)
{
	uint64_t bits;
	unsigned left;

	while (n) {
		bits = rng_next(r);
		for (left = 16; left && n; left--, n--, bits >>= 4)
			*out++ = "0123456789abcdef"[bits & 15];
	}
}

void rng_seed_from_system(uint64_t ret_key[2])
{
	/* A request of up to 256 bytes is answered whole, once the kernel is seeded; a signal can interrupt only the wait before that. */
	while (getrandom(ret_key, 16, 0) != 16)
		if (errno != EINTR)
			abort();
}

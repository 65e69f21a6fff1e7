/* SPDX-License-Identifier: BSD-2-Clause */
/* SipHash of a counter. Only rng_seed_from_system makes a system call. */
#include "daemon/base/rng.h"
#include "daemon/base/map.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

void rng_init(struct rng *r, const uint64_t key[2])
{
	*r = (struct rng){.key = {key[0], key[1]}};
}

uint64_t rng_next(struct rng *r)
{
	return siphash_word(r->key, r->counter++);
}

/* D. Lemire, Fast Random Integer Generation in an Interval (2019): the upper half of a product; biased products are rejected. */
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

/* The lowest eight nibbles as hex digits, one byte each, the lowest first. Nibbles above 9 get 'a' - '9' - 1 more. */
static uint64_t eight_digits(uint64_t bits)
{
	uint64_t x = bits & UINT32_MAX, above;

	x = (x | x << 16) & UINT64_C(0x0000ffff0000ffff);
	x = (x | x << 8) & UINT64_C(0x00ff00ff00ff00ff);
	x = (x | x << 4) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	above = (x + UINT64_C(0x0606060606060606)) >> 4 & UINT64_C(0x0101010101010101);
	return htole64(x + UINT64_C(0x3030303030303030) + above * ('a' - '9' - 1));
}

void rng_hex(struct rng *r, char *out, size_t n)
{
	uint64_t bits, text[2];

	for (; n; out += sizeof(text), n -= sizeof(text)) {
		bits = rng_next(r);
		text[0] = eight_digits(bits);
		text[1] = eight_digits(bits >> 32);
		if (n < sizeof(text)) {
			memcpy(out, text, n);
			return;
		}
		memcpy(out, text, sizeof(text)); /* a constant size: two stores, not a call */
	}
}

void rng_seed_from_system(uint64_t ret_key[2])
{
	/* Once the kernel is seeded, getrandom returns up to 256 bytes in full. A signal can only interrupt the wait before that. */
	while (getrandom(ret_key, 16, 0) != 16)
		if (errno != EINTR)
			abort();
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* SipHash of a counter. Only rng_seed_from_system makes a system call. */
#include "daemon/base/rng.h"
#include "daemon/base/map.h"

#include <assert.h>
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

void rng_hex(struct rng *r, char *out, size_t n)
{
	char text[16];

	for (; n >= sizeof(text); out += sizeof(text), n -= sizeof(text))
		hex_write(rng_next(r), out);
	if (n == 0)
		return;
	hex_write(rng_next(r), text);
	memcpy(out, text, n);
}

void rng_seed_from_system(uint64_t ret_key[2])
{
	/* Once the kernel is seeded, getrandom returns up to 256 bytes in full. A signal can only interrupt the wait before that. */
	while (getrandom(ret_key, 16, 0) != 16)
		if (errno != EINTR)
			abort();
}

/* --- back-off ----------------------------------------------------------------------------------------------------------- */

void backoff_init(struct backoff *b, int64_t base_us, int64_t cap_us)
{
	assert(base_us > 0 && cap_us >= base_us);
	*b = (struct backoff){.base_us = base_us, .cap_us = cap_us};
}

static int64_t backoff_ceiling(const struct backoff *b)
{
	if (b->base_us > b->cap_us >> b->tries) /* cap >> 63 is 0, so tries never exceeds 63 */
		return b->cap_us;
	return b->base_us << b->tries;
}

int64_t backoff_next(struct backoff *b, struct rng *r)
{
	int64_t ceiling = backoff_ceiling(b), half = ceiling - ceiling / 2;

	if (ceiling < b->cap_us)
		b->tries++;
	return half + (int64_t)rng_below(r, (uint64_t)(ceiling - half) + 1);
}

void backoff_reset(struct backoff *b)
{
	b->tries = 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* As the standard describes it, block by block; speed does not matter, since a script is hashed once. */
#include "tests/sim/redis/sha1.h"

#include <endian.h>
#include <stdint.h>
#include <stdio.h>

#define BLOCK 64

static uint32_t rotate(uint32_t x, unsigned n)
{
	return x << n | x >> (32 - n);
}

static uint32_t mix(unsigned t, uint32_t b, uint32_t c, uint32_t d)
{
	if (t < 20)
		return ((b & c) | (~b & d)) + 0x5a827999;
	if (t < 40)
		return (b ^ c ^ d) + 0x6ed9eba1;
	if (t < 60)
		return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
	return (b ^ c ^ d) + 0xca62c1d6;
}

static void block_add(uint32_t h[5], const unsigned char *block)
{
	uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], sum;
	unsigned t;

	memcpy(w, block, BLOCK);
	for (t = 0; t < 16; t++)
		w[t] = be32toh(w[t]);
	for (; t < 80; t++)
		w[t] = rotate(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
	for (t = 0; t < 80; t++) {
		sum = rotate(a, 5) + mix(t, b, c, d) + e + w[t];
		e = d;
		d = c;
		c = rotate(b, 30);
		b = a;
		a = sum;
	}
	h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
}

/* The rest of the text, a one bit, zeros, and the length in bits. */
static void end_add(uint32_t h[5], const char *rest, size_t n, uint64_t bits)
{
	unsigned char end[2 * BLOCK] = {0};
	size_t blocks = n < BLOCK - 8 ? 1 : 2;
	size_t i;

	if (n)
		memcpy(end, rest, n);
	end[n] = 0x80;
	bits = htobe64(bits);
	memcpy(end + blocks * BLOCK - 8, &bits, 8);
	for (i = 0; i < blocks; i++)
		block_add(h, end + i * BLOCK);
}

void sha1_hex(struct span text, char ret_hex[SHA1_HEX + 1])
{
	uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
	size_t i;

	for (i = 0; text.n - i >= BLOCK; i += BLOCK)
		block_add(h, (const unsigned char *)text.p + i);
	end_add(h, text.p + i, text.n - i, (uint64_t)text.n * 8);
	for (i = 0; i < 5; i++)
		snprintf(ret_hex + 8 * i, 9, "%08x", h[i]);
}

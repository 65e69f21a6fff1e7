/* SPDX-License-Identifier: BSD-2-Clause */
/* Up to eight bytes as a number, the first byte lowest. Whole loads are used, because a number that was copied byte by byte is slow to read back. */
#ifndef SIM_LOAD8_H
#define SIM_LOAD8_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t load8(const char *p, size_t n)
{
	const unsigned char *at = (const unsigned char *)p;
	uint32_t low, high;
	uint64_t word;

	if (n >= 8) {
		memcpy(&word, p, 8);
		return le64toh(word);
	}
	if (n >= 4) { /* they may overlap */
		memcpy(&low, p, 4);
		memcpy(&high, p + n - 4, 4);
		return le32toh(low) | (uint64_t)le32toh(high) << 8 * (n - 4);
	}
	return n ? at[0] | (uint64_t)at[n / 2] << 8 * (n / 2) | (uint64_t)at[n - 1] << 8 * (n - 1) : 0;
}

/* Are two texts of that length the same? For short ones, of which most are. */
static inline int same8(const char *p, const char *q, size_t n)
{
	for (; n >= 8; p += 8, q += 8, n -= 8)
		if (load8(p, 8) != load8(q, 8))
			return 0;
	return load8(p, n) == load8(q, n);
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers as RESP. */
#include "daemon/redis/word.h"

static unsigned digits_of(uint64_t n)
{
	static const uint64_t power[] = {
		1,
		UINT64_C(10),
		UINT64_C(100),
		UINT64_C(1000),
		UINT64_C(10000),
		UINT64_C(100000),
		UINT64_C(1000000),
		UINT64_C(10000000),
		UINT64_C(100000000),
		UINT64_C(1000000000),
		UINT64_C(10000000000),
		UINT64_C(100000000000),
		UINT64_C(1000000000000),
		UINT64_C(10000000000000),
		UINT64_C(100000000000000),
		UINT64_C(1000000000000000),
		UINT64_C(10000000000000000),
		UINT64_C(100000000000000000),
		UINT64_C(1000000000000000000),
		UINT64_C(10000000000000000000),
	};
	/* A number of k bits has 0.30103 k digits, rounded down, or one more. */
	unsigned k = (unsigned)(64 - __builtin_clzll(n | 1)) * 1233 >> 12;

	return k + (n >= power[k] || n == 0);
}

/* Writes the digits in front of end. */
static void digits_fill(char *end, uint64_t n)
{
	do
		*--end = (char)('0' + n % 10);
	while (n /= 10);
}

char *word_digits(char *at, uint64_t n)
{
	at += digits_of(n);
	digits_fill(at, n);
	return at;
}

char *word_number(char *at, int64_t n)
{
	uint64_t size = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
	unsigned digits = digits_of(size);

	at = word_head(at, '$', digits + (n < 0));
	if (n < 0)
		*at++ = '-';
	at += digits;
	digits_fill(at, size);
	return word_end(at);
}

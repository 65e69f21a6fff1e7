/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes decimal numbers backwards from their end, so it need not know the number of digits. Inline, because each answer has some. */
#ifndef PROTO_DECIMAL_H
#define PROTO_DECIMAL_H

#include <stdint.h>
#include <string.h>

#define DECIMAL_MAX 20 /* characters of UINT64_MAX or INT64_MIN; decimal_write needs an even number */

/* Writes 00 to 99 before `at`. Returns where it begins. */
static inline char *decimal_pair(char *at, unsigned pair)
{
	static const char pairs[] =
		"0001020304050607080910111213141516171819"
		"2021222324252627282930313233343536373839"
		"4041424344454647484950515253545556575859"
		"6061626364656667686970717273747576777879"
		"8081828384858687888990919293949596979899";

	return memcpy(at - 2, pairs + 2 * pair, 2);
}

/* Writes the number before `end`, where DECIMAL_MAX bytes are free. Returns its first character. A division by 10000 gives four digits at once. */
static inline char *decimal_write(char *end, uint64_t rest)
{
	unsigned four;
	char *first = end;

	for (; rest >= 10000; rest /= 10000) {
		four = (unsigned)(rest % 10000);
		first = decimal_pair(first, four % 100);
		first = decimal_pair(first, four / 100);
	}
	four = (unsigned)rest;
	if (four >= 100)
		first = decimal_pair(first, four % 100);
	first = decimal_pair(first, four >= 100 ? four / 100 : four);
	return first + (*first == '0');
}

static inline char *decimal_write_signed(char *end, int64_t value)
{
	char *first = decimal_write(end, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);

	if (value < 0)
		*--first = '-';
	return first;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replaces strtod() (by the linker). Scripts read the numbers in ARGV by it, and nearly all of them are short whole numbers, which need no general conversion.
 * Its results equal those of strtod(), to the last bit.
 */
#include <stdint.h>

double __real_strtod(const char *text, char **ret_end);
double __wrap_strtod(const char *text, char **ret_end);

#define EXACT (INT64_C(1) << 53) /* up to here a double holds every whole number */

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

double __wrap_strtod(const char *text, char **ret_end)
{
	const char *at = text;
	int64_t n = 0;

	while (is_digit(*at) && n < EXACT / 10 - 1)
		n = n * 10 + (*at++ - '0');
	/* Anything else: a sign, a fraction, an exponent, hexadecimal, another word, or more digits. */
	if (at == text || (*at != '\0' && *at != ' '))
		return __real_strtod(text, ret_end);
	if (ret_end)
		*ret_end = (char *)(uintptr_t)at;
	return (double)n;
}

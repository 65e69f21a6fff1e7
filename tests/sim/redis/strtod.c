/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Takes the place of strtod() (by the linker). Scripts read the numbers in ARGV with it, and nearly all of them are short whole numbers, which need no general
 * conversion. Its results equal those of strtod() to the last bit.
 */
#include <stdint.h>

double __real_strtod(const char *text, char **ret_end);
double __wrap_strtod(const char *text, char **ret_end);

#define EXACT (UINT64_C(1) << 53) /* up to here a double holds every whole number */
#define DIGITS 19 /* so many fit into n */

double __wrap_strtod(const char *text, char **ret_end)
{
	const char *at = text;
	unsigned digit;
	uint64_t n = 0;

	for (; (digit = (unsigned)(*at - '0')) <= 9; at++)
		n = n * 10 + digit;
	/* Anything else: a sign, a fraction, an exponent, hexadecimal, another word, or more digits. */
	if (at == text || at - text > DIGITS || n > EXACT || (*at != '\0' && *at != ' '))
		return __real_strtod(text, ret_end);
	if (ret_end)
		*ret_end = (char *)(uintptr_t)at;
	return (double)n;
}

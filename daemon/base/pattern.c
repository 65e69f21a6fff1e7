/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/base/pattern.h"

/*
 * On a mismatch only the last star takes one byte more: an earlier one need not, because
 * what follows it was found as soon as possible.
 */
bool pattern_matches(const char *pattern, struct span text)
{
	const char *star = NULL;
	size_t i = 0, again = 0;

	while (i < text.n) {
		if (*pattern == '*') {
			star = ++pattern;
			again = i;
		} else if (*pattern && *pattern == text.p[i]) {
			pattern++;
			i++;
		} else if (star) {
			pattern = star;
			i = ++again;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

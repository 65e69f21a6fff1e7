/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the nearest word by the Damerau-Levenshtein distance in its restricted form (optimal string alignment), among words of at
 * most TYPED_MAX bytes. Bounded work, no allocation.
 */
#include "proto/proto.h"
#include "proto/text.h"

#define EDITS_MAX 2
#define TYPED_MAX 32

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static bool same(struct span a, size_t i, struct span b, size_t j)
{
	return byte_fold((unsigned char)a.p[i]) == byte_fold((unsigned char)b.p[j]);
}

static unsigned edits_between(struct span a, struct span b)
{
	unsigned row[3][TYPED_MAX + 1];
	unsigned *before = row[0], *last = row[1], *now = row[2];

	for (unsigned j = 0; j <= b.n; j++)
		last[j] = j;
	for (size_t i = 1; i <= a.n; i++) {
		now[0] = (unsigned)i;
		for (size_t j = 1; j <= b.n; j++) {
			now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + !same(a, i - 1, b, j - 1));
			if (i > 1 && j > 1 && same(a, i - 1, b, j - 2) && same(a, i - 2, b, j - 1))
				now[j] = least(now[j], before[j - 2] + 1);
		}
		unsigned *spare = before;

		before = last;
		last = now;
		now = spare;
	}
	return last[b.n];
}

const char *nearest_word(struct span word, const char *const *words, size_t count)
{
	const char *found = NULL;
	unsigned best = EDITS_MAX + 1;

	if (word.n > TYPED_MAX)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		struct span candidate = span_of(words[i]);

		if (candidate.n > TYPED_MAX)
			continue;
		unsigned longer = (unsigned)(word.n > candidate.n ? word.n : candidate.n);
		unsigned edits = edits_between(word, candidate);

		if (edits < best && edits <= longer / 3) {
			best = edits;
			found = words[i];
		}
	}
	return found;
}

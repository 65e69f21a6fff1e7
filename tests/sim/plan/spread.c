/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kinds of worlds that widen what is drawn elsewhere, each by a draw of its own, so that a world has several of them at times and all others stay as they are:
 *
 *   even       2, 4, 6 or 8 stores
 */
#include "tests/sim/plan/plan.h"

#include "tests/sim/plan/stream.h"

#include <string.h>

static const struct {
	const char *word;
	int64_t in_a_thousand;
} kinds[SPREAD_N] = {
	[SPREAD_EVEN] = {"even", 20},
};

/* The stream goes on with what is drawn of that kind. */
static bool spread_begin(uint64_t seed, enum spread kind, struct stream *ret_stream)
{
	stream_init(ret_stream, seed, DRAW_SPREAD, kind);
	return stream_range(ret_stream, 0, 999) < kinds[kind].in_a_thousand;
}

enum spread spread_find(const char *word)
{
	int kind = 0;

	while (kind < SPREAD_N && strcmp(kinds[kind].word, word) != 0)
		kind++;
	return (enum spread)kind;
}

bool seed_is_spread(uint64_t seed, enum spread kind)
{
	struct stream s;

	return spread_begin(seed, kind, &s);
}

void spread_shape(struct plan *p)
{
	static const int64_t even[] = {2, 2, 4, 4, 4, 6, 8};
	struct stream s;

	if (spread_begin((uint64_t)p->seed, SPREAD_EVEN, &s))
		p->nodes = even[stream_range(&s, 0, (int64_t)(sizeof(even) / sizeof(even[0])) - 1)];
}

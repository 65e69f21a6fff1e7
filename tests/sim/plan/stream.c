/* SPDX-License-Identifier: BSD-2-Clause */
/* Splitmix64 as a hash (Steele, Lea, Flood 2014). */
#include "tests/sim/plan/stream.h"

void stream_init(struct stream *s, uint64_t seed, enum purpose purpose, uint64_t who)
{
	s->seed = mix(mix(mix(0, seed), purpose), who);
	s->counter = 0;
}

int64_t stream_range(struct stream *s, int64_t low, int64_t high)
{
	uint64_t span = (uint64_t)(high - low) + 1;

	return low + (int64_t)(span ? stream_next(s) % span : 0);
}

bool stream_chance(struct stream *s, unsigned percent)
{
	return stream_next(s) % 100 < percent;
}

/* How many of the next four draws, from the first on, are among the lower half. All four at once and without a branch, which a processor could not predict. */
static unsigned next_halves(const struct stream *s)
{
	unsigned upper = 1u << 4;

	for (unsigned i = 0; i < 4; i++)
		upper |= (unsigned)(mix(s->seed, s->counter + i) % 100 >= 50) << i;
	return (unsigned)__builtin_ctz(upper);
}

/* Half of the draws lie in the lowest quarter of what is left, as long as more than four numbers are left: each draw tells whether it goes on. */
int64_t stream_skewed(struct stream *s, int64_t low, int64_t high)
{
	int64_t left = high - low;

	while (left > 4) {
		unsigned power = (63 - (unsigned)__builtin_clzll((uint64_t)left)) / 2; /* of four, at most what is left */
		unsigned most = left >> 2 * (power - 1) == 4 ? power - 1 : power; /* quarters until four or fewer are left */
		unsigned draws = next_halves(s), quarters = draws < most ? draws : most;

		left >>= 2 * quarters;
		s->counter += quarters;
		if (quarters == most || draws == 4)
			continue;
		s->counter++; /* the draw that ended it */
		break;
	}
	return stream_range(s, low, low + left);
}

int64_t stream_either(struct stream *s, int64_t most)
{
	if (stream_chance(s, 50))
		return stream_chance(s, 50) ? most : -most;
	return stream_range(s, -most, most);
}

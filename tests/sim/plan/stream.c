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

int64_t stream_skewed(struct stream *s, int64_t low, int64_t high)
{
	int64_t top = high;

	/* Half of the draws lie in the lowest quarter of what is left. */
	while (top - low > 4 && stream_chance(s, 50))
		top = low + (top - low) / 4;
	return stream_range(s, low, top);
}

int64_t stream_either(struct stream *s, int64_t most)
{
	if (stream_chance(s, 50))
		return stream_chance(s, 50) ? most : -most;
	return stream_range(s, -most, most);
}

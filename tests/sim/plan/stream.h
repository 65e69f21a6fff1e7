/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chance. Each purpose, and each object that draws, has a stream of its own: the n-th number is a hash of (seed, purpose, who, n), so what one
 * stream draws does not move another. Pure.
 */
#ifndef SIM_STREAM_H
#define SIM_STREAM_H

#include <stdbool.h>
#include <stdint.h>

enum purpose {
	DRAW_SWARM,   /* the shape of the world */
	DRAW_FAULTS,  /* its schedule of faults */
	DRAW_JOBS,    /* its workload */
	DRAW_HOSTS,   /* clocks */
	DRAW_SERVICE, /* the seed of each life of a daemon */
	DRAW_DAEMON,  /* how fast it is */
	DRAW_LINK,    /* daemon to node: dialling, and what happens to commands in flight when it breaks */
	DRAW_TO_NODE,
	DRAW_FROM_NODE,
	DRAW_NODE,
	DRAW_TO_DAEMON, /* client to daemon: latency and fragments */
	DRAW_TO_CLIENT,
	DRAW_CLIENT,
	DRAW_RESOURCE,
	DRAW_FINALE,
	DRAW_EAR, /* what is published */
	DRAW_SCENE,
	DRAW_FLOW,    /* how much daemons ask a node at a time */
	DRAW_HALTS,   /* hosts that stand still, and nothing else */
	DRAW_SESSION_SCENE,
	DRAW_CHATTER, /* what clients say beside their work */
	DRAW_SELDOM,  /* what few worlds have */
	DRAW_FLAP,    /* what a minority of nodes does to a healed world */
	DRAW_STRANGER, /* how a daemon is configured otherwise */
	DRAW_ADOPT_SCENE,
	DRAW_IDENTITY, /* servers whose run id, replication id and memory do not change together */
	DRAW_DELETION_SCENE,
	DRAW_STORE_SCENE,
	DRAW_RARE, /* kinds of worlds that are few */
	DRAW_MEMORY_SCENE,
	DRAW_STEP, /* whose clock is set forward, and who is out of reach then */
	DRAW_OVERTAKE_SCENE,
	DRAW_CROSSING_SCENE,
	DRAW_TIGHT, /* what comes together */
	DRAW_FLUSHED_SCENE,
};

struct stream {
	uint64_t seed, counter;
};

void stream_init(struct stream *s, uint64_t seed, enum purpose purpose, uint64_t who);
int64_t stream_range(struct stream *s, int64_t low, int64_t high); /* both may be drawn */
bool stream_chance(struct stream *s, unsigned percent);
/* Mostly near low, seldom near high: for latencies and durations over several orders of magnitude. */
int64_t stream_skewed(struct stream *s, int64_t low, int64_t high);
/* Between -most and most; as often as not one of the two. */
int64_t stream_either(struct stream *s, int64_t most);
/* Splitmix64 as a hash (Steele, Lea, Flood 2014). Also used to hash what happened. */
static inline uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t z = a + b * UINT64_C(0x9e3779b97f4a7c15) + UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static inline uint64_t stream_next(struct stream *s)
{
	return mix(s->seed, s->counter++);
}

#endif

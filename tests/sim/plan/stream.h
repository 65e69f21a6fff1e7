/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chance. Each purpose and each object that draws has a stream of its own: the n-th number is a hash of (seed, purpose, who, n), so that draws from one stream
 * do not move another. Pure.
 */
#ifndef SIM_STREAM_H
#define SIM_STREAM_H

#include <stdbool.h>
#include <stdint.h>

enum purpose {
	DRAW_SWARM,   /* the shape of the world */
	DRAW_FAULTS,  /* the schedule of faults */
	DRAW_JOBS,    /* the workload */
	DRAW_HOSTS,   /* the clocks of hosts */
	DRAW_SERVICE, /* the seed of each run of a daemon */
	DRAW_DAEMON,  /* how fast a daemon is */
	DRAW_LINK,    /* daemon to node: dialling, and what becomes of commands when the link breaks */
	DRAW_TO_NODE,
	DRAW_FROM_NODE,
	DRAW_NODE,
	DRAW_TO_DAEMON, /* client to daemon: latency and fragments */
	DRAW_TO_CLIENT,
	DRAW_CLIENT,
	DRAW_RESOURCE,
	DRAW_FINALE,
	DRAW_SUBSCRIBER, /* published messages */
	DRAW_SCENE,
	DRAW_FLOW,  /* how many calls daemons send a node at a time */
	DRAW_HALTS, /* worlds in which hosts stand still and nothing else happens */
	DRAW_SESSION_SCENE,
	DRAW_SIDE_REQUESTS, /* what clients ask beside their jobs */
	DRAW_SELDOM,        /* properties that few worlds have */
	DRAW_FLAPPING,      /* flapping nodes in a healed world */
	DRAW_STRANGER,      /* the configuration of the stranger */
	DRAW_ADOPT_SCENE,
	DRAW_IDENTITY, /* servers whose run id, replication id and memory do not change together */
	DRAW_DELETION_SCENE,
	DRAW_STORE_SCENE,
	DRAW_RARE, /* rare kinds of worlds */
	DRAW_MEMORY_SCENE,
	DRAW_CLOCK_STEP, /* clocks that are set forward, and nodes out of reach */
	DRAW_OVERTAKE_SCENE,
	DRAW_CROSSING_SCENE,
	DRAW_BUNCHED, /* faults that come close together */
	DRAW_FLUSHED_SCENE,
	DRAW_SERVERS, /* a change of the set of servers */
	DRAW_RENEWAL_SCENE,
	DRAW_VARY,    /* variations of a plan */
	DRAW_SPREAD,  /* kinds of worlds that widen what is drawn elsewhere */
	DRAW_READERS, /* what readers and writers ask */
	DRAW_READ_TERMS, /* … and on which terms */
	DRAW_BREAKERS, /* what is broken of the names of readers */
	DRAW_NESTS,   /* what clients ask that hold some names and wait for more */
	DRAW_DELETIONS, /* keys that one node loses */
	DRAW_RATES,   /* rate limits, and what clients use of them */
	DRAW_PERMITS, /* what clients ask of semaphores */
	DRAW_CHORES,  /* what clients defer and take */
	DRAW_READ_FIELDS, /* further fields of what readers and writers ask */
	DRAW_NEST_PERMITS, /* whether clients that hold some names and wait for more hold permits, too, or ask by groups */
	DRAW_DRAINS,  /* daemons that drain */
	DRAW_CARRIES, /* daemons that are restarted in place */
	DRAW_WORDS,   /* messages by which daemons ask each other who holds a name */
	DRAW_READ_STAYS, /* which of them the watchdog does not keep, and their lock-delays */
	DRAW_STORE, /* the seeds of each run of a memory store */
	DRAW_TEAR,  /* which of its last stores a process has made that is killed */
	DRAW_MEMORY, /* worlds of a daemon that is its own store */
	DRAW_CHORE_LISTS, /* whether clients that defer and take also list */
	DRAW_REPEATS, /* requests whose answers are lost */
	DRAW_JOB_LOCKS, /* how jobs are taken whose locks are names of readers and writers, and what becomes of those */
	DRAW_PERMIT_OWNERS, /* the owners of permits */
	DRAW_RULES, /* the rules of daemons */
	DRAW_RATE_WAITS, /* uses of rate limits that are waited for in turn */
	DRAW_READ_SILENCES, /* readers that miss their heartbeats */
};

struct stream {
	uint64_t seed, counter;
};

void stream_init(struct stream *s, uint64_t seed, enum purpose purpose, uint64_t who);
int64_t stream_range(struct stream *s, int64_t low, int64_t high); /* low and high included */
bool stream_chance(struct stream *s, unsigned percent);
/* Mostly near low, seldom near high: for latencies and durations over several orders of magnitude. */
int64_t stream_skewed(struct stream *s, int64_t low, int64_t high);
/* Between -most and most; one of the two in half of the draws. */
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

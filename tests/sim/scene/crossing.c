/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scenes of crossing requests: several jobs of one client share one lock, as one owner, and each extends it to ttls of its own, short and long in turns, before
 * the previous EXTEND is answered. Others of the daemon wait for the lock and extend theirs; stores are slow, or links break.
 */
#include "tests/sim/scene/scene.h"

#include "daemon/base/instant.h"
#include "daemon/core/event/event.h"

#define SCENES_PERCENT 3
#define JOBS_MOST      6
#define RIVALS_MOST    8
#define JOBS_ROOM      (JOBS_MOST + 2 * RIVALS_MOST)
#define FAULTS_ROOM    (NODES_MAX + 6)
#define ACTS_MOST      120

static int64_t any_ttl_ms(struct scene *s)
{
	int64_t longest = s->plan->max_lease_us / MSEC;

	switch (stream_range(s->stream, 0, 3)) {
	case 0:
		return 100;
	case 1:
		return longest;
	default:
		return stream_skewed(s->stream, 100, longest);
	}
}

/* A job that extends about as often as replies arrive, or more often. */
static struct job *crossing_job(struct scene *s, int64_t client, int64_t after_us, int64_t hold_us)
{
	int64_t round = 2 * (s->plan->latency_us + s->plan->jitter_us) + s->plan->service_us + 500, apart = stream_range(s->stream, round / 4, 2 * round);
	struct job *j = scene_job(s, after_us, hold_us);

	j->client = client;
	j->ttl_ms = any_ttl_ms(s);
	j->extend_ms = any_ttl_ms(s);
	j->extend = -1;
	j->renew = stream_chance(s->stream, 80);
	j->tagged = stream_chance(s->stream, 95);
	j->acts = hold_us / apart < ACTS_MOST ? hold_us / apart : ACTS_MOST;
	j->reenter = stream_chance(s->stream, 20) ? stream_range(s->stream, 1, j->acts + 1) : 0;
	j->ending = stream_range(s->stream, END_UNLOCK, END_KEEP);
	return j;
}

static void crossing_rivals(struct scene *s, int64_t hold_us)
{
	int64_t daemon = s->daemon;

	for (int64_t i = stream_range(s->stream, 0, RIVALS_MOST); i > 0; i--) {
		int64_t for_us, after_us;
		struct job *j;

		s->daemon = stream_chance(s->stream, 70) ? daemon : stream_range(s->stream, 0, s->plan->daemons - 1);
		for_us = stream_range(s->stream, MSEC, 200 * MSEC);
		after_us = stream_range(s->stream, 0, hold_us);
		j = crossing_job(s, scene_client(s), after_us, for_us);
		if (stream_chance(s->stream, 50))
			j->name = stream_range(s->stream, 0, s->plan->names - 1);
	}
	s->daemon = daemon;
}

static void crossing_faults(struct scene *s, int64_t client, int64_t hold_us)
{
	static const enum fault_kind kind[] = {FAULT_LINK_STALL, FAULT_LINK_STALL, FAULT_LINK_SLOW, FAULT_LINK_RESET, FAULT_NODE_PAUSE,
					       FAULT_CLIENT_CUT, FAULT_CLIENT_ANEW, FAULT_CLIENT_STALL, FAULT_DAEMON_CRASH};

	for (int64_t i = stream_range(s->stream, 0, 5); i > 0; i--) {
		enum fault_kind k = kind[stream_range(s->stream, 0, (int64_t)(sizeof(kind) / sizeof(*kind)) - 1)];
		enum fault_of of = fault_table[k].of;
		int64_t for_us = stream_skewed(s->stream, MSEC, s->plan->lease_us);
		struct fault *f = scene_fault(s, k, of == OF_CLIENT ? client : s->daemon, stream_range(s->stream, 0, hold_us), for_us);

		f->b = stream_range(s->stream, 0, s->plan->nodes - 1);
		f->x = stream_range(s->stream, 1, 3);
		if (of == OF_NODE)
			f->a = f->b;
	}
}

void crossing_scene_draw(struct plan *p, uint64_t seed)
{
	struct stream stream;
	struct scene s = {.plan = p, .stream = &stream};
	int64_t hold_us, client;

	stream_init(&stream, seed, DRAW_CROSSING_SCENE, 0);
	if (!stream_chance(&stream, SCENES_PERCENT))
		return;
	scene_make_room(p, JOBS_ROOM, FAULTS_ROOM);
	scene_alone(&s, 50);
	scene_place(&s);
	hold_us = stream_range(&stream, 30, 600) * MSEC;
	client = scene_client_graced(&s);
	for (int64_t i = stream_range(&stream, 2, JOBS_MOST); i > 0; i--)
		crossing_job(&s, client, stream_skewed(&stream, 0, 20 * MSEC), hold_us);
	crossing_rivals(&s, hold_us);
	if (stream_chance(&stream, 60))
		crossing_faults(&s, client, hold_us);
}

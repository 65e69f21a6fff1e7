/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scene of adoption: a daemon is started anew, and its client gives up what it held, in one of many ways, while the stores are being asked, while they have
 * carried it out and the daemon does not know, or while they are out of reach. Drawn apart from the other scenes.
 */
#include "tests/sim/scene.h"

#include "daemon/base/instant.h"
#include "daemon/core/quorum.h"

#define SCENES_PERCENT 10
#define JOBS_ROOM      8
#define FAULTS_ROOM    (NODES_MAX + 4)
#define CRASH_US       (300 * MSEC)
#define LONG_MS        2700 /* a lease that outlives the time that RESUME waits for adoptions */

/* Those out of reach are all, or just too many, or too few to matter; commands do not arrive, or answers do not, or both. */
static void scene_cut_off(struct scene *s, int64_t for_us)
{
	const struct plan *p = s->plan;
	int64_t nodes = stream_chance(s->stream, 50) ? p->nodes : p->nodes / 2 + stream_range(s->stream, 0, 1);
	int64_t x = stream_range(s->stream, 1, 3), first = stream_range(s->stream, 0, p->nodes - 1);

	for (int64_t i = 0; i < nodes; i++) {
		struct fault *f = scene_fault(s, FAULT_LINK_STALL, s->daemon, CRASH_US, for_us);

		f->b = (first + i) % p->nodes;
		f->x = x;
	}
}

static void play_given_up(struct scene *s)
{
	struct plan *p = s->plan;
	int64_t down = stream_skewed(s->stream, MSEC, 100 * MSEC), open;
	bool lasting = p->trust && stream_chance(s->stream, 60);
	struct job *j;

	/* A longer lease takes a longer quarantine where stores are not trusted: the world would be over. */
	if (lasting && p->max_lease_us < LONG_MS * MSEC)
		p->max_lease_us = stream_range(s->stream, LONG_MS, 5000) * MSEC;
	if (p->grace_ms < 3000)
		p->grace_ms = 3000;
	open = stream_range(s->stream, 10 * MSEC, p->max_lease_us);
	j = scene_job(s, 0, 0);
	j->client = scene_client_graced(s);
	j->ttl_ms = p->max_lease_us / MSEC;
	j->acts = stream_range(s->stream, 0, 4);
	j->ending = stream_chance(s->stream, 40) ? END_KEEP : stream_range(s->stream, END_UNLOCK, END_HALF_CLOSE);
	j->hold_us = CRASH_US + stream_range(s->stream, 0, down + open + 200 * MSEC);
	scene_fault(s, FAULT_DAEMON_CRASH, s->daemon, CRASH_US, down);
	scene_cut_off(s, down + open);
	if (stream_chance(s->stream, 30))
		scene_fault(s, FAULT_DAEMON_CRASH, s->daemon, CRASH_US + down + stream_range(s->stream, 0, open), MSEC);
	for (int i = 0; i < 2; i++) {
		s->daemon = stream_range(s->stream, 0, p->daemons - 1);
		scene_job(s, stream_range(s->stream, CRASH_US, 3 * SEC), 20 * MSEC);
	}
}

void adopt_scene_draw(struct plan *p, uint64_t seed)
{
	struct stream stream;
	struct scene s = {.plan = p, .stream = &stream};
	int64_t latest = p->length_us - 2 * p->lease_us;

	stream_init(&stream, seed, DRAW_ADOPT_SCENE, 0);
	if (!stream_chance(&stream, SCENES_PERCENT))
		return;
	scene_make_room(p, JOBS_ROOM, FAULTS_ROOM);
	if (stream_chance(&stream, 60))
		p->faults = 0; /* nothing else comes in between */
	s.daemon = stream_range(&stream, 0, p->daemons > 1 ? p->daemons - 2 : 0);
	s.at_us = stream_range(&stream, p->warm_us, latest > p->warm_us ? latest : p->warm_us);
	scene_take_name(&s);
	play_given_up(&s);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scenes of deletion: the key of a held lock is deleted at several nodes within a moment, as when somebody deletes it everywhere. Such a world breaks the
 * assumptions: only invariants of class X are checked there, so that few worlds have such a scene.
 */
#include "tests/sim/scene/scene.h"

#include "daemon/base/instant.h"
#include "daemon/core/member/members.h"

#define SCENES_PERCENT 4
#define JOBS_ROOM      4

/* At all nodes, or at some. A deletion at a minority may show in the log only. */
static void play_deletion(struct scene *s)
{
	struct plan *p = s->plan;
	int64_t moment = stream_chance(s->stream, 50) ? 0 : p->lease_us / 4;
	int64_t gone = stream_chance(s->stream, 60) ? p->nodes : stream_range(s->stream, 1, p->nodes);
	int64_t first = stream_range(s->stream, 0, p->nodes - 1), at = 50 * MSEC + stream_range(s->stream, 0, p->lease_us / 2);

	scene_job(s, 0, stream_range(s->stream, p->lease_us, 3 * p->lease_us));
	scene_job(s, 20 * MSEC, 20 * MSEC);
	for (int64_t i = 0; i < gone; i++)
		scene_fault(s, FAULT_NODE_DELETE, (first + i) % p->nodes, at + stream_range(s->stream, 0, moment), 0)->b = s->name;
}

void deletion_scene_draw(struct plan *p, uint64_t seed)
{
	struct stream stream;
	struct scene s = {.plan = p, .stream = &stream};

	stream_init(&stream, seed, DRAW_DELETION_SCENE, 0);
	if (!stream_chance(&stream, SCENES_PERCENT))
		return;
	scene_make_room(p, JOBS_ROOM, NODES_MAX);
	scene_alone(&s, 60);
	scene_place(&s);
	play_deletion(&s);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scenes in which commands of a new connection overtake one of an old connection: an ACQUIRE is slow on its way to one node when its connection breaks. Its
 * client extends the lease to a much longer one at once, while the other votes are a bare quorum; or it releases a long lease at once.
 */
#include "tests/sim/scene/scene.h"

#include "daemon/base/instant.h"
#include "daemon/core/event/event.h"

#define SCENES_PERCENT 3
#define JOBS_ROOM      4
#define BREAKS_US      (15 * MSEC) /* after the LOCK: its command is under way */
#define LONG_US        (2500 * MSEC) /* a lease so long that a key which is left behind is noticed */
#define ACT_US         (50 * MSEC) /* the first act sends the EXTEND */

static struct fault *link_fault(struct scene *s, enum fault_kind kind, int64_t node, int64_t after_us, int64_t for_us)
{
	struct fault *f = scene_fault(s, kind, s->daemon, after_us, for_us);

	f->b = node % s->plan->nodes;
	return f;
}

static void play_overtaken(struct scene *s)
{
	const struct plan *p = s->plan;
	int64_t node = stream_range(s->stream, 0, p->nodes - 1), hold_us = p->max_lease_us * 9 / 10;
	struct job *j = scene_job(s, 0, hold_us);

	j->ttl_ms = stream_range(s->stream, 200, p->lease_us / MSEC);
	j->renew = stream_chance(s->stream, 25);
	j->acts = hold_us / ACT_US;
	j->extend = 1;
	j->extend_ms = p->max_lease_us / MSEC;
	link_fault(s, FAULT_LINK_SLOW, node, -MSEC, BREAKS_US)->x = 50;
	link_fault(s, FAULT_LINK_RESET, node, BREAKS_US, MSEC);
	for (int64_t i = 1; i <= (p->nodes - 1) / 2; i++)
		link_fault(s, FAULT_LINK_STALL, node + i, ACT_US - 5 * MSEC, p->max_lease_us)->x = 3;
	s->daemon = stream_range(s->stream, 0, p->daemons - 1);
	scene_job(s, stream_range(s->stream, 100 * MSEC, SEC), 20 * MSEC);
}

/* The release reaches the node before the ACQUIRE; or so late that the daemon no longer remembers that an ACQUIRE may arrive. */
static void play_release_first(struct scene *s)
{
	const struct plan *p = s->plan;
	bool late = stream_chance(s->stream, 40);
	struct job *j = scene_job(s, 0, stream_range(s->stream, late ? 700 : 16, late ? 1500 : 100) * MSEC);

	j->ttl_ms = p->max_lease_us / MSEC;
	j->renew = 0;
	link_fault(s, FAULT_LINK_SLOW, stream_range(s->stream, 0, p->nodes - 1), -MSEC, BREAKS_US)->x = 50;
	link_fault(s, FAULT_LINK_RESET, s->plan->fault[s->plan->faults - 1].b, BREAKS_US, MSEC);
}

void overtaking_scene_draw(struct plan *p, uint64_t seed)
{
	struct stream stream;
	struct scene s = {.plan = p, .stream = &stream};
	int64_t latest = p->length_us - 2 * p->max_lease_us;
	bool release_first = false;

	stream_init(&stream, seed, DRAW_OVERTAKE_SCENE, 0);
	if (p->nodes < 3)
		return;
	if (!stream_chance(&stream, SCENES_PERCENT)) {
		release_first = p->max_lease_us >= LONG_US && stream_chance(&stream, SCENES_PERCENT);
		if (!release_first)
			return;
	}
	scene_make_room(p, JOBS_ROOM, NODES_MAX + 2);
	scene_alone(&s, 60);
	if (p->timeout_us < 300 * MSEC && stream_chance(&stream, 70))
		p->timeout_us = stream_range(&stream, 300, release_first ? 600 : 1500) * MSEC; /* a node refuses what arrives later */
	p->ghost_percent = 90;
	s.daemon = stream_range(&stream, 0, p->daemons - 1);
	s.at_us = stream_range(&stream, p->warm_us, latest > p->warm_us ? latest : p->warm_us);
	scene_take_name(&s);
	if (release_first)
		play_release_first(&s);
	else
		play_overtaken(&s);
}

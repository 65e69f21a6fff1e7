/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scenes of EXTENDs. A short lease is extended to a long one, and nothing is wrong. Or the answers of the nodes come one by one: nothing reaches a node for a
 * moment, which then hears the ACQUIRE too late, and the EXTEND behind it in time, so it sets the key; or one node says that the key is gone, and the others
 * are silent until the lease is over by the votes that are left.
 */
#include "tests/sim/scene/scene.h"

#include "daemon/base/instant.h"
#include "daemon/core/event/event.h"

#define SCENES_PERCENT 4
#define JOBS_ROOM      8
#define LONG_US        (1600 * MSEC) /* a lease so long that a key which is left behind is noticed */
#define SHORT_MS       1000          /* so short a lease is over before a round of EXTENDs that nobody answers */

static void stall(struct scene *s, int64_t node, int64_t after_us, int64_t for_us)
{
	struct fault *f = scene_fault(s, FAULT_LINK_STALL, s->daemon, after_us, for_us);

	f->at_us &= ~INT64_C(15); /* both lanes */
	f->b = node % s->plan->nodes;
	f->x = 3;
}

/* The short lease is shorter than the time by which LOST comes before the end of the long one. */
static void play_prolonged(struct scene *s)
{
	s->plan->faults = 0;
	for (int i = 0; i < JOBS_ROOM; i++) {
		struct job *j = scene_job(s, i * 100 * MSEC, stream_range(s->stream, 50, 500) * MSEC);

		j->ttl_ms = stream_range(s->stream, 100, 200);
		j->extend_ms = s->plan->max_lease_us / MSEC;
		j->acts = stream_range(s->stream, 1, 8);
		j->extend = 1;
	}
}

static void play_set_by_the_second(struct scene *s)
{
	const struct plan *p = s->plan;
	int64_t percent = p->timeout_us / 100;
	struct job *j = scene_job(s, 0, 170 * percent);

	j->ttl_ms = p->max_lease_us / MSEC;
	j->extend_ms = j->ttl_ms;
	j->acts = 2; /* after a third of the time */
	j->extend = 1;
	stall(s, stream_range(s->stream, 0, p->nodes - 1), -MSEC, stream_range(s->stream, 120, 145) * percent);
}

/* Only a bare quorum hears the first EXTEND. Of these nodes one has lost the key when the second EXTEND comes. */
static void play_denied(struct scene *s)
{
	const struct plan *p = s->plan;
	int64_t quorum = p->nodes / 2 + 1, first = stream_range(s->stream, 0, p->nodes - 1);
	int64_t ttl_ms = stream_range(s->stream, 300, p->max_lease_us / MSEC < SHORT_MS ? p->max_lease_us / MSEC : SHORT_MS);
	int64_t percent = ttl_ms * MSEC / 100;
	struct job *j = scene_job(s, 0, 120 * percent);

	j->ttl_ms = ttl_ms;
	j->extend_ms = ttl_ms;
	j->renew = 0;
	j->acts = 2;
	j->extend = -1;
	for (int64_t i = quorum; i < p->nodes; i++) {
		stall(s, first + i, 30 * percent, 25 * percent);
		scene_fault(s, FAULT_LINK_RESET, s->daemon, 55 * percent, MSEC)->b = (first + i) % p->nodes;
	}
	scene_fault(s, FAULT_NODE_DELETE, first, 70 * percent, 0)->b = s->name;
	scene_fault(s, FAULT_FOREIGN_KEY, first, 70 * percent + 2, 2 * SEC)->b = s->name;
	for (int64_t i = 1; i < p->nodes; i++)
		stall(s, first + i, 75 * percent, 3 * p->timeout_us);
}

void renewal_scene_draw(struct plan *p, uint64_t seed)
{
	struct stream stream;
	struct scene s = {.plan = p, .stream = &stream};

	stream_init(&stream, seed, DRAW_RENEWAL_SCENE, 0);
	if (!stream_chance(&stream, SCENES_PERCENT))
		return;
	scene_make_room(p, JOBS_ROOM, 3 * NODES_MAX + 2);
	scene_alone(&s, 80);
	scene_place(&s);
	if (p->nodes < 3 || stream_chance(&stream, 30)) {
		play_prolonged(&s);
		return;
	}
	if (p->timeout_us < 200 * MSEC)
		p->timeout_us = stream_range(&stream, 200, 300) * MSEC;
	if (p->max_lease_us >= LONG_US && stream_chance(&stream, 75))
		play_set_by_the_second(&s);
	else
		play_denied(&s);
}

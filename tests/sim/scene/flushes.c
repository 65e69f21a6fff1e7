/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stores that are flushed again and again, with leases so short that a quarantine ends before every daemon has probed its stores: a daemon asks under a marker
 * that another one has replaced since.
 */
#include "tests/sim/plan/plan.h"

#include "daemon/base/instant.h"
#include "tests/sim/scene/scene.h"
#include "tests/sim/plan/stream.h"

#define SCENES_PERCENT 25
#define LONGEST_US     (900 * MSEC) /* each daemon probes its stores once a second */
#define FLUSHES_MOST   12
#define JOBS_ROOM      40

static void job_add(struct plan *p, struct stream *s)
{
	struct job *j = &p->job[p->jobs++];

	*j = (struct job){.wait_ms = 500, .ttl_ms = p->lease_us / MSEC, .renew = 1, .tagged = 1, .ending = END_UNLOCK};
	j->at_us = stream_range(s, p->warm_us, p->length_us);
	j->client = stream_range(s, 0, p->clients - 1);
	j->name = stream_range(s, 0, p->names - 1);
	j->hold_us = stream_skewed(s, 0, 50 * MSEC);
}

static void flush_add(struct plan *p, struct stream *s)
{
	struct fault *f = &p->fault[p->faults++];

	*f = (struct fault){.kind = FAULT_NODE_FLUSH};
	f->at_us = stream_range(s, p->warm_us, p->length_us);
	f->a = stream_range(s, 0, p->nodes - 1);
}

void flushes_scene_draw(struct plan *p, uint64_t seed)
{
	struct stream s;
	int64_t flushes;

	stream_init(&s, seed, DRAW_FLUSHED_SCENE, 0);
	if (p->daemons < 2 || p->stranger || p->max_lease_us + p->delay_us > LONGEST_US || plan_class(p) == CLASS_X || !stream_chance(&s, SCENES_PERCENT))
		return;
	scene_make_room(p, JOBS_ROOM, FLUSHES_MOST);
	flushes = stream_range(&s, 3, FLUSHES_MOST);
	for (int i = 0; i < JOBS_ROOM; i++)
		job_add(p, &s);
	for (; flushes > 0; flushes--)
		flush_add(p, &s);
}

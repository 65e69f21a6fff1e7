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

void flushes_scene_draw(struct plan *p, uint64_t seed)
{
	struct stream s;
	int64_t flushes, jobs;

	stream_init(&s, seed, DRAW_FLUSHED_SCENE, 0);
	if (p->daemons < 2 || p->stranger || p->max_lease_us + p->delay_us > LONGEST_US || plan_class(p) == CLASS_X || !stream_chance(&s, SCENES_PERCENT))
		return;
	scene_make_room(p, JOBS_ROOM, FLUSHES_MOST);
	flushes = stream_range(&s, 3, FLUSHES_MOST);
	for (jobs = 0; jobs < JOBS_ROOM; jobs++)
		p->job[p->jobs++] = (struct job){.at_us = stream_range(&s, p->warm_us, p->length_us),
						 .client = stream_range(&s, 0, p->clients - 1),
						 .name = stream_range(&s, 0, p->names - 1),
						 .wait_ms = 500,
						 .ttl_ms = p->lease_us / MSEC,
						 .renew = 1,
						 .tagged = 1,
						 .hold_us = stream_skewed(&s, 0, 50 * MSEC),
						 .ending = END_UNLOCK};
	for (; flushes > 0; flushes--)
		p->fault[p->faults++] = (struct fault){
			.kind = FAULT_NODE_FLUSH, .a = stream_range(&s, 0, p->nodes - 1), .at_us = stream_range(&s, p->warm_us, p->length_us)};
}

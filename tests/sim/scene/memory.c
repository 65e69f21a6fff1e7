/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scenes of memory: stores that run out of it and refuse some calls of a command, and stores that lose theirs while all clocks are set back. Each such world
 * has no other faults.
 */
#include "tests/sim/scene/scene.h"

#include "daemon/base/instant.h"
#include "daemon/core/member/members.h"

#define SCENES_PERCENT 6
#define JOBS_ROOM      48
#define ERROR_OOM      3 /* its place in error_text of fault.c */

/* --- memory that is short -------------------------------------------------------------------------------------------- */

#define PASSES  6
#define PASS_US (160 * MSEC)
#define STOP_US (80 * MSEC)

/*
 * Until some moment a store refuses what needs memory. A release needs none, and after the first write of a script Redis refuses nothing in it: so of one
 * command the calls before a release are refused, and those behind it are not. A daemon that stood still for a moment has much to ask for at once: acquires for
 * every second name, releases for the others, and some more.
 */
static void play_short(struct scene *s)
{
	struct plan *p = s->plan;
	int64_t first;

	p->chatter_ms = p->window = 0;
	p->stranger = STRANGER_NONE;
	if (stream_chance(s->stream, 70))
		p->jobs = 0;
	while (p->names < 6)
		scene_take_name(s);
	first = s->name - 5;
	for (int64_t i = 0; i < PASSES; i++) {
		scene_fault(s, FAULT_DAEMON_FREEZE, s->daemon, i * PASS_US, STOP_US);
		for (int64_t name = first; name <= s->name; name++) {
			bool is_free = (name + i) % 2;
			int64_t early = stream_range(s->stream, 0, STOP_US / 2), late = stream_range(s->stream, STOP_US / 2, STOP_US);
			struct job *j = scene_job(s, i * PASS_US + (is_free ? early : late), PASS_US - STOP_US + late);

			j->name = name;
			j->acts = stream_range(s->stream, 0, 2);
			j->extend = stream_chance(s->stream, 30);
			j->extend_ms = p->max_lease_us / MSEC;
		}
		for (int64_t node = 0; node < p->nodes; node++)
			if (stream_chance(s->stream, 50))
				scene_fault(s, FAULT_NODE_ERROR, node, i * PASS_US, STOP_US + stream_range(s->stream, 5, 40) * MSEC)->x = ERROR_OOM;
	}
}

/* --- memory that is lost --------------------------------------------------------------------------------------------- */

/*
 * Some nodes miss the last tokens. Then all clocks are set back, and as many nodes lose their memory as may: they join with lower fences than they had. The
 * others keep their memory. When those nodes count again, they and the nodes that missed the tokens answer first.
 */
static void play_fallen_back(struct scene *s)
{
	struct plan *p = s->plan;
	int64_t minority = p->nodes - p->nodes / 2 - 1, joined = p->trust ? 0 : plan_quarantine_us(p);
	int64_t again = SEC + plan_quarantine_us(p) + stream_range(s->stream, 1500, 2500) * MSEC;
	int64_t back = s->at_us + again - joined + stream_range(s->stream, -2 * p->max_lease_us, p->max_lease_us);

	p->jobs = 0;
	p->chatter_ms = p->window = 0;
	p->stranger = STRANGER_NONE;
	if (p->length_us < s->at_us + again + SEC)
		p->length_us = s->at_us + again + SEC;
	for (int64_t i = 0; i < 4; i++) {
		scene_job(s, 20 * MSEC * (i + 1), 5 * MSEC);
		scene_job(s, again + 20 * MSEC * (i + 1), 5 * MSEC);
	}
	for (int64_t i = 0; i < minority; i++) {
		struct fault *missed = scene_fault(s, FAULT_LINK_STALL, s->daemon, 0, 300 * MSEC), *slow;

		missed->b = p->nodes - 1 - i;
		missed->x = 3;
		scene_fault(s, stream_chance(s->stream, 50) ? FAULT_NODE_BLANK : FAULT_NODE_FLUSH, i, SEC, 20 * MSEC);
		slow = scene_fault(s, FAULT_LINK_SLOW, s->daemon, again, 500 * MSEC);
		slow->b = minority + i;
		slow->x = 4;
	}
	for (int64_t i = 0; i < p->nodes; i++)
		scene_fault(s, FAULT_NODE_CLOCK, i, 900 * MSEC, MSEC)->x = -back;
}

void memory_scene_draw(struct plan *p, uint64_t seed)
{
	struct stream stream;
	struct scene s = {.plan = p, .stream = &stream};
	bool lost;

	stream_init(&stream, seed, DRAW_MEMORY_SCENE, 0);
	if (!stream_chance(&stream, SCENES_PERCENT))
		return;
	lost = stream_chance(&stream, 50) && p->nodes > 2;
	scene_make_room(p, JOBS_ROOM, 0);
	p->faults = 0;
	scene_place(&s);
	if (lost)
		play_fallen_back(&s);
	else
		play_short(&s);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scenes of sessions: one client has many requests in flight, for several names and owners, when its connection or its daemon goes; then it resumes all of it.
 */
#include "tests/sim/scene/scene.h"

#include "daemon/base/instant.h"
#include "daemon/core/member/members.h"

#define SCENES_PERCENT 25
#define TAGS_MOST      50
#define JOBS_ROOM      (TAGS_MOST + 30)
#define FAULTS_ROOM    (NODES_MAX + 8)
#define ADOPTION_MS    2700 /* a lease longer than the time that RESUME waits for adoptions */

/* Both the hold and the wait are short, or as long as the scene. */
static void pipeline_job(struct scene *s, int64_t client, int64_t spread_us, int64_t names)
{
	struct stream *draw = s->stream;
	int64_t round = 2 * s->plan->latency_us + s->plan->jitter_us + 2 * s->plan->client_latency_us;
	struct job *j = &s->plan->job[s->plan->jobs++];

	*j = (struct job){.client = client, .ttl_ms = s->plan->lease_us / MSEC};
	j->at_us = s->at_us + stream_range(draw, 0, spread_us);
	j->name = s->name - stream_range(draw, 0, names - 1);
	j->owner = stream_range(draw, 0, OWNERS_MAX - 2);
	j->renew = stream_chance(draw, 75);
	j->tagged = stream_chance(draw, 92);
	j->hold_us = stream_skewed(draw, 0, stream_chance(draw, 70) ? 200 * MSEC : 2 * s->plan->lease_us);
	j->acts = stream_range(draw, 0, 4);
	j->wait_ms = stream_chance(draw, 15) ? 0 : stream_chance(draw, 20) ? -1 : stream_skewed(draw, 20, PATIENT_MS);
	j->cancel_us = stream_chance(draw, 25) ? stream_skewed(draw, 1, 4 * round) : 0;
	j->extend = stream_chance(draw, j->renew ? 15 : 70) ? stream_range(draw, 1, j->acts + 1) : 0;
	j->extend_ms = stream_range(draw, 100, s->plan->max_lease_us / MSEC);
	j->reenter = stream_chance(draw, 20) ? stream_range(draw, 1, j->acts + 1) : 0;
	j->ending = stream_range(draw, END_UNLOCK, END_KEEP);
}

/* Clients of any daemon want the same names now and then. */
static void pipeline_rivals(struct scene *s, int64_t spread_us, int64_t names)
{
	int64_t name = s->name, daemon = s->daemon;

	for (int64_t i = stream_range(s->stream, 0, 6); i > 0; i--) {
		int64_t hold_us;

		s->daemon = stream_range(s->stream, 0, s->plan->daemons - 1);
		s->name = name - stream_range(s->stream, 0, names - 1);
		hold_us = stream_skewed(s->stream, 0, 300 * MSEC);
		scene_job(s, stream_range(s->stream, 0, spread_us), hold_us);
	}
	s->name = name;
	s->daemon = daemon;
}

/* The client's connection breaks in one of several ways, or its daemon dies. */
static void pipeline_fault(struct scene *s, int64_t client, int64_t after_us)
{
	static const enum fault_kind kind[] = {FAULT_CLIENT_CUT, FAULT_CLIENT_SILENT, FAULT_CLIENT_ANEW, FAULT_CLIENT_ANEW, FAULT_CLIENT_STALL,
					       FAULT_CLIENT_SLOW};
	int64_t for_us = stream_skewed(s->stream, MSEC, SEC);
	struct fault *f;

	if (stream_chance(s->stream, 30)) {
		scene_fault(s, FAULT_DAEMON_CRASH, s->daemon, after_us, stream_skewed(s->stream, MSEC, s->plan->lease_us / 4));
		return;
	}
	f = scene_fault(s, kind[stream_range(s->stream, 0, (int64_t)(sizeof(kind) / sizeof(*kind)) - 1)], client, after_us, for_us);
	f->x = stream_range(s->stream, 1, 3);
}

/* Many tagged requests in flight, and a connection that breaks. */
static void play_pipeline(struct scene *s)
{
	int64_t client, spread = stream_skewed(s->stream, 1, stream_chance(s->stream, 50) ? 5 * MSEC : SEC), names = stream_range(s->stream, 1, 4);

	if (s->plan->grace_ms < 300 && stream_chance(s->stream, 80))
		s->plan->grace_ms = stream_range(s->stream, 300, 3000);
	client = scene_client_graced(s);
	for (int64_t i = 1; i < names; i++)
		scene_take_name(s);
	if (names > s->name + 1)
		names = s->name + 1;
	for (int64_t tags = stream_skewed(s->stream, 5, TAGS_MOST); tags > 0; tags--)
		pipeline_job(s, client, spread, names);
	pipeline_rivals(s, spread, names);
	for (int64_t faults = stream_range(s->stream, 0, 3); faults > 0; faults--)
		pipeline_fault(s, client, stream_skewed(s->stream, 0, spread + SEC));
}

/* A daemon is restarted and reaches its stores only after RESUME was answered: only then it decides what is still held. */
static void play_undecided(struct scene *s)
{
	struct plan *p = s->plan;
	int64_t down = stream_range(s->stream, MSEC, 100 * MSEC), client;

	if (p->trust && p->max_lease_us < ADOPTION_MS * MSEC)
		p->max_lease_us = stream_range(s->stream, ADOPTION_MS, 5000) * MSEC;
	if (p->max_lease_us < ADOPTION_MS * MSEC) {
		play_pipeline(s);
		return;
	}
	if (p->grace_ms < 3000)
		p->grace_ms = 3000;
	client = scene_client_graced(s);
	for (int i = 0; i < 5; i++) {
		struct job *j = &p->job[p->jobs++];

		*j = (struct job){.client = client,
				  .name = s->name,
				  .owner = i == 4,
				  .wait_ms = PATIENT_MS,
				  .ttl_ms = p->max_lease_us / MSEC,
				  .renew = 1,
				  .tagged = 1};
		j->at_us = s->at_us + (i == 0 ? 0 : stream_range(s->stream, 10 * MSEC, 4 * SEC));
		j->hold_us = stream_range(s->stream, 2 * SEC, 6 * SEC);
		j->acts = stream_range(s->stream, 2, 20);
	}
	scene_fault(s, FAULT_DAEMON_CRASH, s->daemon, 300 * MSEC, down);
	for (int64_t i = 0; i < p->nodes; i++) {
		struct fault *f = scene_fault(s, FAULT_LINK_STALL, s->daemon, 300 * MSEC, 0);

		f->b = i;
		f->x = 3;
		f->for_us = down + stream_range(s->stream, 1900 * MSEC, p->max_lease_us);
	}
	if (stream_chance(s->stream, 50))
		pipeline_fault(s, client, stream_range(s->stream, 2 * SEC, 4 * SEC));
}

void session_scene_draw(struct plan *p, uint64_t seed)
{
	struct stream stream;
	struct scene s = {.plan = p, .stream = &stream};

	stream_init(&stream, seed, DRAW_SESSION_SCENE, 0);
	if (!stream_chance(&stream, SCENES_PERCENT))
		return;
	scene_make_room(p, JOBS_ROOM, FAULTS_ROOM);
	scene_alone(&s, 40);
	scene_place(&s);
	if (stream_chance(&stream, 80))
		play_pipeline(&s);
	else
		play_undecided(&s);
}

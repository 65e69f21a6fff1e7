/* SPDX-License-Identifier: BSD-2-Clause */
/* Scenes around one holder: its lease fades, its waiters leave, clocks are set back, its connection or its daemon goes. */
#include "tests/sim/scene/scene.h"

#include "daemon/base/instant.h"
#include "daemon/core/member/members.h"

#define SCENES_PERCENT 36
#define JOBS_ROOM      16 /* more than any of these scenes needs */

/* The first holds the name briefly, so that the next one reserves tokens for those behind it. */
static void scene_queue(struct scene *s, int64_t brief_us, int64_t hold_us)
{
	scene_job(s, 0, brief_us);
	scene_job(s, 20 * MSEC, hold_us);
	scene_job(s, 40 * MSEC, 20 * MSEC);
	scene_job(s, 60 * MSEC, 20 * MSEC);
}

/* No renewal gets through, and the holder unlocks shortly before LOST; others wait. */
static void play_fading(struct scene *s)
{
	const struct plan *p = s->plan;
	int64_t lease = p->lease_us, least = lease / 10 < 50 * MSEC ? 50 * MSEC : lease / 10;
	int64_t valid = lease / 100 * 99 - 2 * (p->latency_us + p->client_latency_us) - p->jitter_us;

	scene_queue(s, 100 * MSEC, valid - stream_range(s->stream, lease / 18, least));
	for (int64_t i = 0; i < p->nodes; i++) {
		struct fault *f = scene_fault(s, FAULT_LINK_STALL, s->daemon, 100 * MSEC + lease / 6, lease);

		f->b = i;
		f->x = 3;
	}
}

/* In the healed world: the first waiter cancels during its round, and the next one wants other terms. */
static void play_withdrawal(struct scene *s)
{
	const struct plan *p = s->plan;
	int64_t round = 2 * p->latency_us + p->jitter_us, ttl = p->lease_us / 2 / MSEC;

	s->at_us = p->length_us + settle_us(p) - 300 * MSEC;
	for (int i = 0; i < 3; i++) {
		struct job *j;

		if (i > 0)
			scene_take_name(s);
		scene_job(s, 0, 0)->cancel_us = stream_range(s->stream, 1, round);
		j = scene_job(s, stream_range(s->stream, 1, round), 20 * MSEC);
		j->ttl_ms = ttl < 100 ? 100 : ttl;
		j->wait_ms = -1;
	}
}

/* All clocks of stores are set back further than a fence may be ahead of them, while waiters need ranges of tokens. */
static void play_clocks(struct scene *s)
{
	const struct plan *p = s->plan;
	int64_t back = SKEW_US + 2 * clock_tol_us((unsigned)p->nodes, p->max_lease_us, p->delay_us) + s->at_us;

	back += stream_range(s->stream, 0, 20 * SEC);
	for (int64_t i = 0; i < p->nodes; i++)
		scene_fault(s, FAULT_NODE_CLOCK, i, 0, MSEC)->x = -back;
	s->at_us += 100 * MSEC;
	scene_queue(s, 100 * MSEC, 50 * MSEC);
}

/* The connection of a holder is reset. It goes on believing, beyond its grace if it has one, and others wait. */
static void play_reset(struct scene *s)
{
	int64_t lease = s->plan->lease_us, quarter_ms = lease < 200 * MSEC ? 50 : lease / 4 / MSEC;
	struct job *j = scene_job(s, 0, 2 * lease);

	s->plan->remote_percent = 100;
	s->plan->grace_ms = stream_chance(s->stream, 50) ? 0 : stream_range(s->stream, 50, quarter_ms);
	scene_fault(s, FAULT_CLIENT_CUT, j->client, lease / 4, lease);
	scene_job(s, 50 * MSEC, 20 * MSEC);
	s->daemon = stream_range(s->stream, 0, s->plan->daemons - 1);
	scene_job(s, 60 * MSEC, 20 * MSEC);
}

/* A daemon dies and is back at once. The holder resumes its session and unlocks, and others wait for that. */
static void play_adoption(struct scene *s)
{
	struct plan *p = s->plan;

	if (p->grace_ms < 3 * SEC / MSEC)
		p->grace_ms = 3 * SEC / MSEC;
	scene_queue(s, 20 * MSEC, 1800 * MSEC);
	scene_fault(s, FAULT_DAEMON_CRASH, s->daemon, 200 * MSEC, stream_range(s->stream, MSEC, p->lease_us / 8));
	scene_job(s, 1000 * MSEC, 20 * MSEC);
	scene_job(s, 1100 * MSEC, 20 * MSEC);
}

/* The same, but the next runs end as quickly as they began, about when they have asked the stores. */
static void play_adoptions(struct scene *s)
{
	struct plan *p = s->plan;
	int64_t round = 2 * p->latency_us + p->jitter_us + 200, at = 200 * MSEC;

	if (p->grace_ms < 3 * SEC / MSEC)
		p->grace_ms = 3 * SEC / MSEC;
	scene_job(s, 0, 2500 * MSEC);
	for (int64_t kills = stream_range(s->stream, 2, 4); kills > 0; kills--) {
		int64_t down = stream_range(s->stream, 1, 5 * MSEC);

		scene_fault(s, FAULT_DAEMON_CRASH, s->daemon, at, down);
		at += down + stream_range(s->stream, 2 * round, 8 * round);
	}
	scene_job(s, 1100 * MSEC, 20 * MSEC);
}

void holder_scene_draw(struct plan *p, uint64_t seed)
{
	static void (*const play[])(struct scene *s) = {play_fading, play_withdrawal, play_clocks, play_reset, play_adoption, play_adoptions};
	struct stream stream;
	struct scene s = {.plan = p, .stream = &stream};

	stream_init(&stream, seed, DRAW_SCENE, 0);
	if (!stream_chance(&stream, SCENES_PERCENT))
		return;
	scene_make_room(p, JOBS_ROOM, NODES_MAX);
	scene_alone(&s, 50);
	scene_place(&s);
	play[stream_range(&stream, 0, (int64_t)(sizeof(play) / sizeof(play[0])) - 1)](&s);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scene of adoption: a daemon is restarted, and its client releases what it held, in one of many ways: while the stores are asked, while they have adopted
 * and the daemon does not know yet, or while they are out of reach.
 */
#include "tests/sim/scene/scene.h"

#include "daemon/base/instant.h"
#include "daemon/core/member/members.h"

#define SCENES_PERCENT 10
#define JOBS_ROOM      16
#define FAULTS_ROOM    (NODES_MAX + 8)
#define CRASH_US       (300 * MSEC)
#define LONG_MS        2700 /* a lease longer than the time that RESUME waits for adoptions */

/* Stalls the links to all nodes, or just too many, or too few to matter: commands, replies, or both. */
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
	struct job *j;

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

static struct job *client_job(struct scene *s, int64_t client, int64_t after_us, int64_t ttl_ms, int64_t hold_us)
{
	struct job *j = scene_job(s, after_us, hold_us);

	j->client = client;
	j->ttl_ms = ttl_ms;
	j->acts = hold_us / (400 * MSEC);
	return j;
}

/*
 * Some stores are out of reach and one has lost the key: a quorum answers, but the adoption stays undecided. Behind the RESUME that waits for it, the client
 * locks another name with a short ttl. It may have held that name before, and lost it while it was away.
 */
static void play_behind(struct scene *s)
{
	const struct plan *p = s->plan;
	int64_t first = stream_range(s->stream, 0, p->nodes - 1), client = scene_client_graced(s);

	client_job(s, client, 0, p->max_lease_us / MSEC, 4 * SEC);
	scene_fault(s, FAULT_NODE_DELETE, first, CRASH_US - 10 * MSEC, MSEC)->b = s->name;
	scene_fault(s, FAULT_DAEMON_CRASH, s->daemon, CRASH_US, stream_skewed(s->stream, MSEC, 50 * MSEC));
	for (int64_t i = 1; i <= p->nodes / 2; i++) {
		struct fault *f = scene_fault(s, FAULT_LINK_STALL, s->daemon, CRASH_US - 10 * MSEC, 3 * SEC);

		f->b = (first + i) % p->nodes;
		f->x = 3;
	}
	scene_take_name(s);
	for (int i = 0; i < 4; i++) {
		int64_t at = i == 0 ? 100 * MSEC : CRASH_US + stream_range(s->stream, 100 * MSEC, 1800 * MSEC);
		struct job *j = client_job(s, client, at, stream_range(s->stream, 100, 300), SEC);

		j->renew = 0;
		j->ending = END_LEAVE;
	}
}

/* An EXTEND to a much longer lease is carried out, but its replies are lost: it is answered ERR. Then the client is stopped, and its daemon dies. */
static void play_extended(struct scene *s)
{
	const struct plan *p = s->plan;
	int64_t client = scene_client_graced(s);
	struct job *j = client_job(s, client, 0, p->lease_us / 2 / MSEC < 400 ? 400 : p->lease_us / 2 / MSEC, 4 * SEC);

	j->acts = 7;
	j->extend = 1;
	j->extend_ms = p->max_lease_us / MSEC;
	for (int64_t i = 0; i < p->nodes; i++) {
		struct fault *f = scene_fault(s, FAULT_LINK_STALL, s->daemon, 490 * MSEC, 60 * MSEC + p->timeout_us);

		f->b = i;
		f->x = 2;
	}
	scene_fault(s, FAULT_CLIENT_STALL, client, 1800 * MSEC, 4 * SEC);
	scene_fault(s, FAULT_DAEMON_CRASH, s->daemon, 1810 * MSEC, stream_skewed(s->stream, MSEC, 50 * MSEC));
	s->daemon = stream_range(s->stream, 0, p->daemons - 1);
	scene_job(s, 1900 * MSEC, 20 * MSEC);
}

static void scene_lengthen(struct plan *p, struct stream *s)
{
	/* Not where stores are quarantined at first: a longer lease means a longer quarantine, and the world would be over. */
	if (p->trust && p->max_lease_us < LONG_MS * MSEC)
		p->max_lease_us = stream_range(s, LONG_MS, 5000) * MSEC;
}

void adoption_scene_draw(struct plan *p, uint64_t seed)
{
	struct stream stream;
	struct scene s = {.plan = p, .stream = &stream};

	stream_init(&stream, seed, DRAW_ADOPT_SCENE, 0);
	if (!stream_chance(&stream, SCENES_PERCENT))
		return;
	scene_make_room(p, JOBS_ROOM, FAULTS_ROOM);
	scene_alone(&s, 60);
	scene_place(&s);
	if (stream_chance(&stream, 70))
		scene_lengthen(p, &stream);
	if (stream_chance(&stream, 25)) {
		p->grace_ms = stream_range(&stream, 50, 1000);
		play_extended(&s);
		return;
	}
	if (p->grace_ms < 3000)
		p->grace_ms = 3000;
	if (p->nodes > 1 && stream_chance(&stream, 35))
		play_behind(&s);
	else
		play_given_up(&s);
}

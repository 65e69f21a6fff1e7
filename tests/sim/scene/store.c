/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scenes of stores: clocks that jump, memory that is lost, commands that arrive late. Chance alone would bring each about once in ten thousand worlds. Each
 * such world has no other faults.
 */
#include "tests/sim/scene/scene.h"

#include "daemon/base/instant.h"
#include "daemon/core/member/members.h"

#define SCENES_PERCENT 24
#define JOBS_ROOM      80
#define TICKS          8
#define BRIEF_US       (20 * MSEC)

static int64_t there_and_back(const struct plan *p)
{
	return 2 * p->latency_us + p->jitter_us + 200;
}

/* The node takes that percentage of the timeout to answer, for so long. */
static void scene_slow(struct scene *s, int64_t node, int64_t percent, int64_t after_us, int64_t for_us)
{
	const struct plan *p = s->plan;
	int64_t times = p->timeout_us * percent / 100 / there_and_back(p);
	struct fault *f = scene_fault(s, FAULT_LINK_SLOW, s->daemon, after_us, for_us);

	f->b = node;
	f->x = times < 2 ? 2 : times;
}

/* Nothing passes to or from the nodes from `first` on. */
static void scene_stall(struct scene *s, int64_t first, int64_t after_us, int64_t for_us)
{
	for (int64_t i = first; i < s->plan->nodes; i++) {
		struct fault *f = scene_fault(s, FAULT_LINK_STALL, s->daemon, after_us, for_us);

		f->b = i;
		f->x = 3;
	}
}

/* --- leases that change their length --------------------------------------------------------------------------------- */

/* All clients want one name, hold it for seconds with short leases, and extend it to a long one. */
static void all_extend(struct scene *s, int64_t acts, int64_t most_ms)
{
	struct plan *p = s->plan;
	int64_t longest = p->max_lease_us / MSEC < most_ms ? p->max_lease_us / MSEC : most_ms;

	p->nodes = 3;
	p->stranger = STRANGER_NONE;
	p->delay_us = p->window = 0;
	for (unsigned i = 0; i < p->jobs; i++) {
		struct job *j = &p->job[i];

		*j = (struct job){.at_us = j->at_us,
				  .client = j->client,
				  .wait_ms = PATIENT_MS,
				  .renew = 1,
				  .tagged = 1,
				  .acts = acts,
				  .extend = 1,
				  .extend_ms = longest};
		j->ttl_ms = stream_range(s->stream, 300, 600);
		j->hold_us = stream_range(s->stream, 500, 3500) * MSEC;
	}
}

static int64_t any_time(const struct scene *s)
{
	return stream_range(s->stream, s->plan->warm_us, s->plan->length_us - 100 * MSEC) - s->at_us;
}

/* Connections break or stall all the time, and commands that were on their way arrive late. */
static void play_ghosts(struct scene *s)
{
	struct plan *p = s->plan;

	if (p->daemons < 2)
		p->daemons = 2;
	p->ghost_percent = 90;
	all_extend(s, 4, 2500);
	while (p->faults < FAULTS_MAX - 4) {
		enum fault_kind kind = stream_chance(s->stream, 60) ? FAULT_LINK_RESET : FAULT_LINK_STALL;
		int64_t for_us = stream_range(s->stream, MSEC, 600 * MSEC), at = any_time(s);
		struct fault *f = scene_fault(s, kind, stream_range(s->stream, 0, p->daemons - 1), at, for_us);

		f->b = stream_range(s->stream, 0, p->nodes - 1);
		f->x = stream_range(s->stream, 1, 3);
		f->at_us |= stream_range(s->stream, 0, 1); /* odd: aimed at a holder */
	}
}

/* Replies come too late or not at all, and the daemon dies while its client stands still and believes. */
static void play_crashes(struct scene *s)
{
	struct plan *p = s->plan;

	p->heartbeat_ms = 0;
	p->max_lease_us = 5 * SEC;
	p->lease_us = 600 * MSEC;
	p->grace_ms = stream_range(s->stream, 100, 1000);
	if (p->clients < 6)
		p->clients = 6;
	all_extend(s, 6, 4900);
	while (p->faults < FAULTS_MAX - 4) {
		int64_t at = any_time(s), daemon = stream_range(s->stream, 0, p->daemons - 1);
		struct fault *f;

		if (stream_chance(s->stream, 85)) {
			f = scene_fault(s, FAULT_LINK_STALL, daemon, at, stream_range(s->stream, 60, 200) * MSEC);
			f->b = stream_range(s->stream, 0, p->nodes - 1);
			f->x = 2;
			f->at_us |= 1;
			continue;
		}
		scene_fault(s, FAULT_CLIENT_STALL, stream_range(s->stream, 0, p->clients - 1), at - MSEC, 4 * SEC)->x = 4;
		scene_fault(s, FAULT_DAEMON_CRASH, daemon, at, stream_range(s->stream, 1, 50) * MSEC)->at_us |= 1;
	}
}

/* A holder extends to a long and to a short lease in turns, before a slow node has answered the previous EXTEND. */
static void play_fickle(struct scene *s)
{
	const struct plan *p = s->plan;
	struct job *j = scene_job(s, BRIEF_US, TICKS * p->timeout_us / 3);

	j->acts = TICKS;
	j->extend = -1;
	j->extend_ms = stream_chance(s->stream, 50) ? p->max_lease_us / MSEC : 100;
	scene_slow(s, p->nodes - 1, stream_range(s->stream, 40, 90), 0, SEC);
	scene_job(s, 2 * BRIEF_US, BRIEF_US);
}

/* A node grants late. Meanwhile the lease was shortened, and the link to another node that had granted was broken. */
static void play_late_vote(struct scene *s)
{
	const struct plan *p = s->plan;
	int64_t asked = BRIEF_US + 2 * p->client_latency_us + there_and_back(p), half = p->timeout_us / 2;
	struct job *j = scene_job(s, BRIEF_US, 4 * half);
	int64_t quorum = p->nodes / 2 + 1;

	j->ttl_ms = p->max_lease_us / MSEC;
	j->acts = 3;
	j->extend = 1;
	j->extend_ms = 100;
	for (int64_t i = quorum; i < p->nodes; i++)
		scene_slow(s, i, stream_range(s->stream, 70, 95), 0, SEC);
	scene_fault(s, FAULT_LINK_RESET, s->daemon, asked + half / 2, MSEC)->b = quorum - 1;
}

/* A quorum is slow, so that leases are almost over when they are granted. */
static void play_worthless(struct scene *s)
{
	struct plan *p = s->plan;

	p->timeout_us = 100 * MSEC;
	for (int64_t i = p->nodes / 2; i < p->nodes; i++)
		scene_slow(s, i, stream_range(s->stream, 50, 99), 0, 2 * SEC);
	for (int i = 0; i < 12; i++) {
		struct job *j = scene_job(s, BRIEF_US + i * 150 * MSEC, BRIEF_US);

		j->ttl_ms = stream_range(s->stream, 60, 120);
		j->wait_ms = 1000;
	}
}

/* --- clocks ---------------------------------------------------------------------------------------------------------- */

/* A jump within the tolerance, but large enough to be proven. */
static int64_t jump_us(const struct scene *s)
{
	const struct plan *p = s->plan;

	return stream_range(s->stream, 200 * MSEC, 250 * MSEC + clock_tol_us((unsigned)p->nodes, p->max_lease_us, p->delay_us) / 2);
}

/* The clock of one node jumps ahead, and the node is asked again. */
static void play_jump(struct scene *s)
{
	struct fault *f = scene_fault(s, FAULT_NODE_CLOCK, stream_range(s->stream, 0, s->plan->nodes - 1), SEC / 4, 20 * SEC);

	f->x = jump_us(s);
	for (int i = 0; i < 12; i++)
		scene_job(s, i * 80 * MSEC, stream_range(s->stream, 0, 60 * MSEC));
}

/* Rounds wait for one slow node while the clock of another one, which has granted, jumps visibly. */
static void play_jump_in_round(struct scene *s)
{
	const struct plan *p = s->plan;
	int64_t quorum = p->nodes / 2 + 1;

	scene_fault(s, FAULT_NODE_CLOCK, 0, 200 * MSEC, 20 * SEC)->x = jump_us(s);
	scene_slow(s, quorum - 1, 80, 0, 600 * MSEC);
	scene_stall(s, quorum, 0, 600 * MSEC);
	for (int i = 0; i < 60; i++) {
		struct job *j = scene_job(s, 50 * MSEC + i * 5 * MSEC, 0);

		j->name = i % p->names;
		j->ttl_ms = p->max_lease_us / MSEC;
		j->wait_ms = 100;
	}
}

/* All clocks are set back while a lease is held that one node does not know yet. */
static void play_setback(struct scene *s)
{
	const struct plan *p = s->plan;
	int64_t back = SKEW_US + 2 * clock_tol_us((unsigned)p->nodes, p->max_lease_us, p->delay_us) + s->at_us;
	struct fault *f = scene_fault(s, FAULT_LINK_STALL, s->daemon, 0, 150 * MSEC);

	f->b = stream_range(s->stream, 0, p->nodes - 1);
	f->x = 3;
	back += stream_range(s->stream, 0, 20 * SEC);
	for (int64_t i = 0; i < p->nodes; i++)
		scene_fault(s, FAULT_NODE_CLOCK, i, 100 * MSEC, MSEC)->x = -back;
	for (int i = 0; i < 6; i++)
		scene_job(s, BRIEF_US + i * MSEC, i ? 0 : 2 * p->lease_us)->name = i ? 0 : s->name;
}

/* --- memory ---------------------------------------------------------------------------------------------------------- */

/* All daemons are down when a quorum is flushed and the rest is restarted. The first daemon to come back never ran before, so it would trust a first start. */
static void play_trust(struct scene *s)
{
	struct plan *p = s->plan;
	int64_t first = stream_range(s->stream, 0, p->nodes - 1), newcomer = p->daemons - 1;

	p->trust = 1;
	p->stranger = STRANGER_NONE;
	p->max_lease_us = 5 * SEC;
	s->daemon = 0;
	scene_job(s, 0, 4 * SEC)->ttl_ms = 5000;
	for (int64_t i = 0; i < newcomer; i++)
		scene_fault(s, FAULT_DAEMON_CRASH, i, 200 * MSEC, 3 * SEC);
	scene_fault(s, FAULT_DAEMON_CRASH, newcomer, 200 * MSEC, 200 * MSEC)->x = 8;
	for (int64_t i = 0; i < p->nodes; i++)
		scene_fault(s, i <= p->nodes / 2 ? FAULT_NODE_FLUSH : FAULT_NODE_WHOLE, (first + i) % p->nodes, 300 * MSEC, 20 * MSEC);
	s->daemon = newcomer;
	for (int i = 0; i < 6; i++)
		scene_job(s, SEC + i * 300 * MSEC, BRIEF_US);
}

/* A node is down when a lease is released, and comes back while its key still has some time left. */
static void play_away(struct scene *s)
{
	struct plan *p = s->plan;
	int64_t away;

	if (p->max_lease_us < 3 * SEC)
		p->max_lease_us = 3 * SEC;
	for (int i = 0; i < 3; i++) {
		scene_job(s, i * BRIEF_US, 80 * MSEC)->ttl_ms = p->max_lease_us / MSEC;
		if (i < 2)
			scene_take_name(s);
	}
	away = p->max_lease_us / 100 * stream_range(s->stream, 52, 70);
	scene_fault(s, FAULT_NODE_WHOLE, stream_range(s->stream, 0, p->nodes - 1), 70 * MSEC, away);
}

/* Shortly before the healing no store can be reached for a moment, and a client has just asked: it is served when the stores are back. */
static void play_silence(struct scene *s)
{
	const struct plan *p = s->plan;

	s->at_us = p->length_us - SEC;
	scene_stall(s, 0, 0, 4 * p->timeout_us);
	scene_job(s, BRIEF_US, BRIEF_US)->wait_ms = -1;
}

/* --- queues ------------------------------------------------------------------------------------------------------- */

/* A daemon dies twice within a moment and is down for a lease; another daemon holds the name by then. */
static void play_usurped(struct scene *s)
{
	struct plan *p = s->plan;
	int64_t down = stream_range(s->stream, 1, 5 * MSEC), round = there_and_back(p) + 200;

	if (p->grace_ms < 3 * SEC / MSEC)
		p->grace_ms = 3 * SEC / MSEC;
	for (int i = 0; i < 3; i++)
		scene_job(s, 0, 2500 * MSEC)->name = s->name - (s->name >= 2 ? i : 0);
	scene_fault(s, FAULT_DAEMON_CRASH, s->daemon, 200 * MSEC, down);
	down += 200 * MSEC + stream_range(s->stream, 2 * round, 8 * round);
	scene_fault(s, FAULT_DAEMON_CRASH, s->daemon, down, p->lease_us + stream_range(s->stream, 0, 600 * MSEC));
	s->daemon = (s->daemon + 1) % p->daemons;
	for (int i = 0; i < 3; i++)
		scene_job(s, 100 * MSEC, 2500 * MSEC)->name = s->name - (s->name >= 2 ? i : 0);
}

/* In the healed world: the lock is released, and at that moment the first daemon in the queue cancels; the next one is a third daemon. */
static void play_way_given(struct scene *s)
{
	struct plan *p = s->plan;
	int64_t way = 2 * p->client_latency_us + there_and_back(p);

	p->heard_percent = 100;
	p->echo_percent = 0;
	p->stranger = STRANGER_NONE;
	s->at_us = p->length_us + settle_us(p) + 100 * MSEC;
	for (int i = 0; i < 14; i++) {
		s->daemon = 0;
		scene_job(s, 0, 100 * MSEC);
		s->daemon = 1;
		scene_job(s, 30 * MSEC, 0)->cancel_us = 70 * MSEC + stream_range(s->stream, way / 2, 2 * way);
		s->daemon = 2;
		scene_job(s, 60 * MSEC, BRIEF_US);
		if (i % 2)
			s->at_us += 400 * MSEC;
		else
			scene_take_name(s);
	}
}

/* --- which scene ------------------------------------------------------------------------------------------------------ */

void store_scene_draw(struct plan *p, uint64_t seed)
{
	static const struct {
		void (*play)(struct scene *s);
		int64_t nodes, daemons; /* at least */
	} row[] = {
		{play_ghosts, 1, 1}, {play_crashes, 1, 1}, {play_fickle, 3, 1}, {play_late_vote, 3, 1}, {play_jump, 3, 1},
		{play_jump_in_round, 3, 1}, {play_worthless, 1, 1}, {play_setback, 3, 1}, {play_trust, 3, 2}, {play_away, 1, 1},
		{play_silence, 1, 1}, {play_usurped, 1, 2}, {play_way_given, 1, 3},
	};
	struct stream stream;
	struct scene s = {.plan = p, .stream = &stream};
	int64_t which;

	stream_init(&stream, seed, DRAW_STORE_SCENE, 0);
	if (!stream_chance(&stream, SCENES_PERCENT))
		return;
	which = stream_range(&stream, 0, (int64_t)(sizeof(row) / sizeof(row[0])) - 1);
	if (p->nodes < row[which].nodes || p->daemons < row[which].daemons)
		return;
	scene_make_room(p, JOBS_ROOM, 0);
	p->faults = 0;
	scene_place(&s);
	row[which].play(&s);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Draws a plan by its seed: which faults exist in this world, how fast it is, how many are in it, what they do. Each world enables only some kinds of faults
 * (swarm testing: Groce and others 2012).
 * The order of draws must stay: another order makes another world of each seed.
 */
#include "tests/sim/plan/plan.h"

#include "daemon/base/instant.h"
#include "daemon/core/event/event.h"
#include "tests/sim/plan/stream.h"

#include <stdlib.h>
#include <string.h>

static int64_t pick(struct stream *s, const int64_t *from, size_t count)
{
	return from[stream_range(s, 0, (int64_t)count - 1)];
}

#define PICK(s, ...) pick(s, (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static void draw_speed(struct plan *p, struct stream *s)
{
	int64_t most;

	p->max_lease_us = stream_skewed(s, 500, 5000) * MSEC;
	p->lease_us = stream_range(s, 300, p->max_lease_us / MSEC < 300 ? 300 : p->max_lease_us / MSEC) * MSEC;
	p->delay_us = stream_chance(s, 20) ? stream_range(s, 20, 1000) * MSEC : 0;
	p->timeout_us = stream_range(s, 20, 100) * MSEC;
	rare_speed(p);
	spread_speed(p);
	/* A round trip takes less than lease / 20, and a reply arrives well before the timeout when nothing is wrong. */
	most = p->lease_us / 40 < p->timeout_us / 4 ? p->lease_us / 40 : p->timeout_us / 4;
	p->latency_us = stream_skewed(s, 60, most / 2);
	p->jitter_us = stream_skewed(s, 0, most / 2);
	p->client_latency_us = stream_skewed(s, 20, 5 * MSEC);
}

/* Properties that few worlds have, from a stream of its own. */
static void draw_seldom(struct plan *p)
{
	struct stream s;

	stream_init(&s, (uint64_t)p->seed, DRAW_SELDOM, 0);
	if (stream_chance(&s, 3))
		p->nodes = PICK(&s, 7, NODES_MAX);
	if (stream_chance(&s, 8))
		p->chatter_ms = stream_range(&s, 50, 1000);
	p->foreign = stream_chance(&s, 6);
}

static void draw_shape(struct plan *p, struct stream *s)
{
	p->nodes = PICK(s, 1, 1, 3, 3, 3, 3, 3, 5, 5);
	p->daemons = PICK(s, 1, 1, 2, 2, 2, 3, 3, 4, DAEMONS_MAX);
	p->clients = stream_skewed(s, 1, CLIENTS_COMMON);
	p->names = stream_skewed(s, 1, NAMES_MAX);
	p->trust = stream_chance(s, 70);
	draw_seldom(p);
	spread_shape(p);
	draw_speed(p, s);
	/* The clocks of two nodes differ by no more than the slack of fences allows. */
	p->node_offset_us = PICK(s, 0, MSEC, 20 * MSEC, 20 * MSEC, p->max_lease_us / 20, p->max_lease_us / 10);
	p->daemon_offset_us = PICK(s, 0, MSEC, 20 * MSEC, SEC, 100 * SEC);
	p->drift_ppm = PICK(s, 0, 100, 4900, 4900);
	p->remote_percent = PICK(s, 0, 30, 50, 100);
	p->fragment_percent = PICK(s, 0, 10, 50);
	p->heartbeat_ms = stream_chance(s, 20) ? stream_range(s, 200, 2000) : 0;
	p->ghost_percent = PICK(s, 0, 50, 90);
	p->warm_us = (p->trust ? 0 : plan_quarantine_us(p)) + 1500 * MSEC;
	p->length_us = p->warm_us + stream_skewed(s, 4, 20) * SEC;
	p->heard_percent = PICK(s, 0, 0, 50, 90, 100, 100, 100, 100);
	p->echo_percent = PICK(s, 0, 0, 0, 20, 50);
	p->finale = stream_chance(s, 60) ? FINALE_REJOIN | FINALE_TAKEOVER | FINALE_HEAD : 0;
	p->grace_ms = stream_chance(s, 70) ? stream_skewed(s, 50, stream_chance(s, 50) ? p->lease_us / 2 / MSEC : 4000) : 0;
	p->stranger = p->daemons > 1 && stream_chance(s, 12) ? stream_range(s, STRANGER_SET, STRANGER_GENERATION) : STRANGER_NONE;
	rare_shape(p);
}

/* --- faults ---------------------------------------------------------------------------------------------------------- */

static int64_t fault_argument(struct stream *s, const struct plan *p, enum fault_kind kind)
{
	int64_t sign;

	switch (kind) {
	case FAULT_LINK_STALL:
	case FAULT_CLIENT_SLOW:
		return stream_range(s, 1, 3);
	case FAULT_LINK_SLOW:
		return stream_range(s, 2, 50);
	case FAULT_NODE_OLD:
		return stream_skewed(s, MSEC, 2 * p->max_lease_us);
	case FAULT_NODE_CLOCK:
		sign = stream_range(s, -2, 2);
		return sign * stream_skewed(s, 10 * MSEC, 5 * SEC);
	case FAULT_DAEMON_WALL:
		sign = stream_range(s, -1, 1);
		return sign * stream_skewed(s, 10 * MSEC, 3600 * SEC);
	default:
		return stream_range(s, 0, 7);
	}
}

static void draw_fault(struct plan *p, struct stream *s, const bool *enabled)
{
	struct fault *f = &p->fault[p->faults];
	int64_t of[] = {[OF_DAEMON] = p->daemons, [OF_NODE] = p->nodes, [OF_CLIENT] = p->clients}, longest;

	do
		f->kind = (enum fault_kind)stream_range(s, 0, FAULT_DRAWN - 1);
	while (!enabled[f->kind]);
	f->a = stream_range(s, 0, of[fault_table[f->kind].of] - 1);
	f->b = stream_range(s, 0, f->kind <= FAULT_LINK_SLOW ? p->nodes - 1 : p->names - 1);
	f->at_us = stream_range(s, p->warm_us, p->length_us - 100 * MSEC);
	longest = p->length_us - f->at_us < 2 * p->max_lease_us ? p->length_us - f->at_us : 2 * p->max_lease_us;
	f->for_us = stream_chance(s, 50) ? stream_skewed(s, MSEC, longest) : stream_range(s, MSEC, longest);
	if (stream_chance(s, 25))
		f->for_us = stream_range(s, p->lease_us / 2, 3 * p->lease_us / 2);
	/* A supervisor restarts quickly, while leases still run. */
	if ((f->kind == FAULT_DAEMON_CRASH || f->kind == FAULT_DAEMON_STOP) && stream_chance(s, 70))
		f->for_us = stream_skewed(s, MSEC, p->lease_us / 2);
	f->x = fault_argument(s, p, f->kind);
	p->faults++;
}

/* Repeats the last fault on other nodes, so that it meets a quorum at once. */
static void widen_fault(struct plan *p)
{
	struct fault f = p->fault[p->faults - 1];

	for (int64_t i = 1; i <= p->nodes / 2 && p->faults < FAULTS_MAX - 1; i++) {
		if (fault_table[f.kind].of == OF_NODE)
			f.a = (f.a + 1) % p->nodes;
		else if (f.kind <= FAULT_LINK_SLOW)
			f.b = (f.b + 1) % p->nodes;
		else
			return;
		p->fault[p->faults++] = f;
	}
}

static void draw_faults(struct plan *p, struct stream *s)
{
	bool enabled[FAULT_DRAWN], any = false, rough = stream_chance(s, 25), wide = stream_chance(s, 40);
	int64_t count = stream_chance(s, 8) ? 0 : stream_skewed(s, 1, 100);

	for (int kind = 0; kind < FAULT_DRAWN; kind++) {
		enabled[kind] = stream_chance(s, 40) && (rough || fault_table[kind].class == CLASS_T);
		any |= enabled[kind];
	}
	while (any && (int64_t)p->faults < count) {
		draw_fault(p, s, enabled);
		if (wide && stream_chance(s, 40))
			widen_fault(p);
	}
	/* A stranger that starts later finds the markers of the others. */
	if (p->stranger && stream_chance(s, 70))
		p->fault[p->faults++] = (struct fault){
			.kind = FAULT_DAEMON_CRASH, .a = p->daemons - 1, .at_us = 1, .for_us = stream_range(s, SEC, p->warm_us)};
}

/* --- work ------------------------------------------------------------------------------------------------------------ */

static int64_t draw_wait(struct stream *s)
{
	if (stream_chance(s, 30))
		return 0;
	return stream_chance(s, 10) ? -1 : stream_skewed(s, 1, 6000);
}

static int64_t draw_ttl(struct stream *s, const struct plan *p)
{
	int64_t least = p->lease_us / 4 / MSEC < 100 ? 100 : p->lease_us / 4 / MSEC;

	return stream_chance(s, 60) ? p->lease_us / MSEC : stream_range(s, least, p->max_lease_us / MSEC);
}

static enum ending draw_ending(struct stream *s, bool renew)
{
	if (!renew && stream_chance(s, 50))
		return END_LEAVE;
	if (stream_chance(s, 50))
		return END_UNLOCK;
	return (enum ending)stream_range(s, END_FENCE, END_HALF_CLOSE);
}

/*
 * A daemon of the crowd loses its links to a quorum for about a lease, so that its locks are lost, or just not; or the daemon dies; or one of its clients loses
 * its connection.
 */
static void draw_outage(struct plan *p, struct stream *s)
{
	struct fault f = {.kind = FAULT_LINK_STALL, .x = 3};

	f.at_us = p->warm_us + (p->length_us - p->warm_us) / 5 * stream_range(s, 0, 4);
	f.at_us += stream_skewed(s, 0, 800 * MSEC);
	if (f.at_us > p->length_us - 100 * MSEC)
		f.at_us = p->length_us - 100 * MSEC;
	f.at_us |= 1; /* odd: aimed at a holder */
	f.for_us = stream_range(s, p->lease_us / 2, 3 * p->lease_us / 2);
	if (stream_chance(s, 50)) {
		f.kind = stream_chance(s, 60) ? FAULT_DAEMON_CRASH : FAULT_CLIENT_CUT;
		f.x = f.kind == FAULT_CLIENT_CUT ? stream_range(s, 4, 6) : 0;
		f.for_us = f.kind == FAULT_CLIENT_CUT ? f.for_us : stream_skewed(s, MSEC, p->lease_us / 4);
		p->fault[p->faults++] = f;
		return;
	}
	if (f.for_us > p->length_us - f.at_us) /* nothing ends a stall before its time */
		f.for_us = p->length_us - f.at_us;
	for (int64_t i = 0; i <= p->nodes / 2 && p->faults < FAULTS_MAX; i++) {
		f.b = i;
		p->fault[p->faults++] = f;
	}
}

/* Many clients want one name at the same time, on the same terms, and hold it briefly. */
static void draw_crowd(const struct plan *p, struct stream *s, struct job *j)
{
	int64_t crowd = (p->length_us - p->warm_us) / 5 * stream_range(s, 0, 5);

	if (j->at_us > p->length_us)
		j->at_us = p->length_us + settle_us(p) + SETTLED_US / 4 + stream_skewed(s, 0, 500 * MSEC);
	else
		j->at_us = p->warm_us + crowd + stream_skewed(s, 0, 500 * MSEC);
	j->name = p->names > 1 && stream_chance(s, 30);
	j->ttl_ms = p->lease_us / MSEC;
	j->renew = 1;
	j->wait_ms = stream_range(s, 500, 6000);
	j->hold_us = stream_skewed(s, 0, stream_chance(s, 70) ? 60 * MSEC : 2 * p->lease_us);
	j->cancel_us = 0;
	j->ending = END_UNLOCK;
}

static void draw_job(struct plan *p, struct stream *s, bool crowded)
{
	struct job *j = &p->job[p->jobs++];

	j->at_us = stream_range(s, p->warm_us - 500 * MSEC, p->length_us);
	if (stream_chance(s, 25))
		j->at_us = p->length_us + settle_us(p) + stream_range(s, 0, SETTLED_US);
	j->client = stream_range(s, 0, p->clients - 1);
	j->name = stream_skewed(s, 0, p->names - 1);
	j->owner = stream_chance(s, 70) ? 0 : 1;
	j->wait_ms = draw_wait(s);
	j->ttl_ms = draw_ttl(s, p);
	j->renew = stream_chance(s, 85);
	j->tagged = stream_chance(s, 60);
	j->hold_us = stream_chance(s, 15) ? stream_range(s, 0, 2 * p->max_lease_us) : stream_skewed(s, 0, SEC);
	j->acts = stream_skewed(s, 0, 6);
	j->careless = stream_chance(s, 15);
	j->cancel_us = stream_chance(s, 15) ? stream_skewed(s, 1, 3 * SEC) : 0;
	j->extend = stream_chance(s, 20) ? stream_range(s, 1, j->acts + 1) : 0;
	j->extend_ms = draw_ttl(s, p);
	j->reenter = stream_chance(s, 15) ? stream_range(s, 1, j->acts + 1) : 0;
	j->ending = draw_ending(s, j->renew);
	if (crowded && stream_chance(s, 80))
		draw_crowd(p, s, j);
}

/*
 * Half of the strangers of a higher generation change the longest lease, mostly to a shorter one; a few worlds without a stranger get such a one. Most start
 * while the others work.
 */
static void draw_stranger(struct plan *p, uint64_t seed)
{
	struct fault late = {.kind = FAULT_DAEMON_CRASH, .a = p->daemons - 1, .at_us = 2};
	struct stream s;
	int64_t most;

	stream_init(&s, seed, DRAW_STRANGER, 0);
	if (p->daemons < 2 || (p->stranger != STRANGER_NONE && p->stranger != STRANGER_GENERATION))
		return;
	if (!stream_chance(&s, p->stranger == STRANGER_NONE ? 3 : 50))
		return;
	p->stranger = STRANGER_GENERATION;
	most = stream_chance(&s, 75) ? p->max_lease_us : 2 * p->max_lease_us;
	p->stranger_lease_us = stream_range(&s, p->max_lease_us / 8, most) / MSEC * MSEC;
	if (p->stranger_lease_us < 50 * MSEC)
		p->stranger_lease_us = 50 * MSEC; /* min_lease */
	late.for_us = stream_range(&s, p->warm_us, p->length_us);
	if (p->faults == FAULTS_MAX || !stream_chance(&s, 75))
		return;
	for (unsigned i = 0; i < p->faults; i++)
		if (p->fault[i].at_us == 1)
			p->fault[i] = p->fault[--p->faults]; /* the drawn start would come earlier */
	p->fault[p->faults++] = late;
}

/* In a few worlds the run id, the replication id and the memory of a server do not change together. */
static void draw_identities(struct plan *p, uint64_t seed)
{
	struct stream s;
	bool rolled_back;

	stream_init(&s, seed, DRAW_IDENTITY, 0);
	if (!stream_chance(&s, 8))
		return;
	rolled_back = stream_chance(&s, 25);
	for (int64_t n = stream_range(&s, 1, 4); n > 0 && p->faults < FAULTS_MAX; n--) {
		struct fault f = {.kind = rolled_back ? FAULT_NODE_ROLLBACK : FAULT_NODE_REPLID};

		f.a = stream_range(&s, 0, p->nodes - 1);
		f.b = stream_range(&s, 0, 1);
		if (!rolled_back && stream_chance(&s, 50))
			f.kind = FAULT_NODE_SAME_REPLID;
		f.at_us = stream_range(&s, p->warm_us, p->length_us - 100 * MSEC);
		f.for_us = stream_skewed(&s, MSEC, p->max_lease_us);
		f.x = f.kind != FAULT_NODE_REPLID && (rolled_back || stream_chance(&s, 60)) ? stream_skewed(&s, MSEC, 2 * p->max_lease_us) : 0;
		p->fault[p->faults++] = f;
	}
}

/* In a few worlds hosts stand still, clocks included, briefly, one after the other, and nothing else goes wrong. */
static void draw_halts(struct plan *p, uint64_t seed)
{
	struct stream s;
	int64_t at = p->warm_us;

	stream_init(&s, seed, DRAW_HALTS, 0);
	if (!stream_chance(&s, 2) || p->nodes < 3)
		return;
	p->faults = 0;
	while (p->faults < 6) {
		int64_t for_us = stream_range(&s, 20 * MSEC, p->lease_us);

		at += stream_range(&s, 200 * MSEC, 2 * SEC);
		if (at + for_us > p->length_us)
			break;
		p->fault[p->faults++] = (struct fault){
			.kind = FAULT_DAEMON_HALT, .a = stream_range(&s, 0, p->daemons - 1), .at_us = at, .for_us = for_us};
		at += for_us;
	}
}

/* What is added to the random plan: scenes, and properties of few worlds. The first `drawn` faults are random. */
static void draw_additions(struct plan *p, uint64_t seed, unsigned drawn)
{
	holder_scene_draw(p, seed);
	session_scene_draw(p, seed);
	adoption_scene_draw(p, seed);
	deletion_scene_draw(p, seed);
	draw_stranger(p, seed);
	draw_identities(p, seed);
	store_scene_draw(p, seed);
	memory_scene_draw(p, seed);
	overtaking_scene_draw(p, seed);
	crossing_scene_draw(p, seed);
	renewal_scene_draw(p, seed);
	bunched_draw(p, seed, drawn);
	draw_halts(p, seed);
	flapping_draw(p, seed);
	clock_step_draw(p, seed);
	flushes_scene_draw(p, seed);
	servers_draw(p, seed);
	if (p->finale & FINALE_REJOIN)
		plan_near_clocks(p); /* this trial takes a store away, as flapping does */
	rare_draw(p);
	spread_draw(p);
	drains_draw(p, seed);
	carries_draw(p, seed);
	memory_draw(p, seed);
}

void plan_draw(struct plan *ret_plan, uint64_t seed)
{
	struct plan *p = ret_plan;
	struct stream s;
	int64_t jobs;
	unsigned drawn;
	bool crowded;

	memset(p, 0, sizeof(*p));
	p->seed = (int64_t)seed;
	stream_init(&s, seed, DRAW_SWARM, 0);
	draw_shape(p, &s);
	stream_init(&s, seed, DRAW_FLOW, 0);
	if (!p->service_us)
		p->window = stream_chance(&s, 35) ? PICK(&s, 1, 2, 2, 4, 8) : 0;
	if (p->chatter_ms || p->storm)
		p->window = 0; /* the side requests alone would fill the window, and keep others waiting: as redlockd(8) says */
	stream_init(&s, seed, DRAW_FAULTS, 0);
	draw_faults(p, &s);
	drawn = p->faults;
	stream_init(&s, seed, DRAW_JOBS, 0);
	crowded = stream_chance(&s, 35);
	for (int64_t i = crowded && p->faults > 0 ? stream_range(&s, 0, 6) : 0; i > 0 && p->faults < FAULTS_MAX; i--)
		draw_outage(p, &s);
	jobs = p->clients * stream_skewed(&s, 1, 60);
	while ((int64_t)p->jobs < jobs && p->jobs < JOBS_MAX)
		draw_job(p, &s, crowded);
	draw_additions(p, seed, drawn);
}

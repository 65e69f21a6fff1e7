/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rare kinds of worlds, which cost too much, or are too special, to be frequent: crowds of hundreds before one name, sessions by the hundred with dozens of
 * tags in flight each, stores that run one call after the other and fall behind, leases of a tenth of a second, an hour of work. A stream of its own decides
 * the kind of a seed, so that all other worlds stay as they are.
 */
#include "tests/sim/plan/plan.h"

#include "daemon/base/instant.h"
#include "tests/sim/plan/stream.h"

#include <string.h>

#define KIND_SERVERS "servers"
#define BUSY_CALLS   16 /* calls of each daemon, where the window is the default */
#define BRIEF_LEAST  (100 * MSEC)
#define THRONG_LEAST 100
#define THRONG_MOST  200 /* more may fill the 256 sessions of a daemon, which has some that it does not know to be gone */
#define STORM_MOST   1000
#define HOUR         (3600 * SEC)
#define CROWD_US     (400 * MSEC) /* within which a crowd comes */
#define BUSY_WINDOW(p) ((p)->window ? (p)->window : BUSY_CALLS)

static const struct {
	const char *word;
	int64_t in_ten_thousand;
} kinds[RARE_N] = {
	[RARE_HOUR] = {"hour", 4}, [RARE_CROWD] = {"crowd", 60}, [RARE_BUSY] = {"busy", 40}, [RARE_BRIEF] = {"brief", 100},
	[RARE_STORM] = {"storm", 8}, [RARE_THRONG] = {"throng", 3},
};

enum rare rare_of(uint64_t seed)
{
	struct stream s;
	int64_t n;

	stream_init(&s, seed, DRAW_RARE, 0);
	n = stream_range(&s, 0, 9999);
	for (int kind = RARE_NONE + 1; kind < RARE_N; kind++) {
		n -= kinds[kind].in_ten_thousand;
		if (n < 0)
			return (enum rare)kind;
	}
	return RARE_NONE;
}

static enum rare rare_find(const char *word)
{
	for (int kind = RARE_NONE + 1; kind < RARE_N; kind++)
		if (!strcmp(kinds[kind].word, word))
			return (enum rare)kind;
	return RARE_NONE;
}

bool kind_is_known(const char *word)
{
	return !strcmp(word, KIND_SERVERS) || rare_find(word) != RARE_NONE || spread_find(word) != SPREAD_N;
}

bool seed_is_of(uint64_t seed, const char *word)
{
	static struct plan p;

	if (spread_find(word) != SPREAD_N) {
		if (seed_is_spread(seed, spread_find(word)))
			plan_draw(&p, seed);
		return seed_is_spread(seed, spread_find(word)) && spread_is_shown(&p, spread_find(word));
	}
	if (strcmp(word, KIND_SERVERS) != 0)
		return rare_of(seed) == rare_find(word);
	plan_draw(&p, seed);
	return plan_changes_servers(&p);
}

static enum rare rare_begin(const struct plan *p, struct stream *ret_stream, uint64_t what)
{
	stream_init(ret_stream, (uint64_t)p->seed, DRAW_RARE, what);
	return rare_of((uint64_t)p->seed);
}

/* --- leases ---------------------------------------------------------------------------------------------------------- */

void rare_speed(struct plan *p)
{
	static const int64_t longest[] = {5 * SEC, 30 * SEC, 300 * SEC};
	struct stream s;

	switch (rare_begin(p, &s, 1)) {
	case RARE_BRIEF:
		p->max_lease_us = stream_chance(&s, 50) ? p->max_lease_us : stream_skewed(&s, 100, 1000) * MSEC;
		p->lease_us = stream_skewed(&s, 100, p->max_lease_us < 300 * MSEC ? p->max_lease_us / MSEC : 300) * MSEC;
		p->timeout_us = stream_range(&s, 20, p->lease_us / 3 / MSEC) * MSEC; /* else no lease could be renewed twice */
		break;
	case RARE_HOUR:
		p->max_lease_us = longest[stream_range(&s, 0, 2)];
		p->lease_us = stream_skewed(&s, SEC / MSEC, p->max_lease_us / MSEC) * MSEC;
		break;
	default:
		break;
	}
}

/* --- shapes ---------------------------------------------------------------------------------------------------------- */

/*
 * All calls that the daemons may have under way take a store no more than a third of the timeout; and half of the store's time is enough to renew all that can
 * be held.
 */
static void shape_busy(struct plan *p, struct stream *s)
{
	bool storms = stream_chance(s, 60);
	int64_t most;

	p->names = NAMES_MAX;
	p->clients = stream_range(s, 10, CLIENTS_COMMON);
	p->chatter_ms = 0;
	p->storm = storms ? stream_range(s, 30, 100) : 0;
	p->window = storms ? 0 : INT64_C(1) << stream_range(s, 0, 3);
	most = p->timeout_us / (3 * BUSY_WINDOW(p) * p->daemons);
	if (most > p->lease_us / (6 * (p->storm + p->names)))
		most = p->lease_us / (6 * (p->storm + p->names));
	p->service_us = stream_range(s, most / 4, most) + 1;
}

void rare_shape(struct plan *p)
{
	struct stream s;

	switch (rare_begin(p, &s, 2)) {
	case RARE_BUSY:
		shape_busy(p, &s);
		break;
	case RARE_STORM:
		p->storm = stream_skewed(&s, 100, STORM_MOST);
		p->chatter_ms = 0;
		if (p->clients < 4)
			p->clients = 4;
		break;
	case RARE_THRONG:
		p->clients = p->throng = stream_range(&s, THRONG_LEAST, THRONG_MOST);
		p->storm = stream_skewed(&s, 60, STORM_MOST / 2);
		p->chatter_ms = 0;
		p->length_us = p->warm_us + stream_range(&s, 3, 6) * SEC;
		break;
	case RARE_BRIEF:
		plan_near_clocks(p);
		break;
	case RARE_HOUR:
		plan_near_clocks(p);
		p->length_us = p->warm_us + HOUR;
		p->heartbeat_ms = p->heartbeat_ms ? 20 * p->heartbeat_ms : 0;
		p->chatter_ms = 0;
		if (p->clients > 8)
			p->clients = 8;
		break;
	default:
		break;
	}
}

int64_t plan_queue_us(const struct plan *p)
{
	return (2 * BUSY_WINDOW(p) + 1) * p->daemons * p->service_us;
}

/* --- work ------------------------------------------------------------------------------------------------------------ */

/* Each name is held for long and renewed all the time. */
static void play_hour(struct plan *p, struct stream *s)
{
	for (int64_t name = 0; name < p->names && p->jobs < JOBS_MAX; name++) {
		int64_t at = stream_skewed(s, p->warm_us, p->length_us), left = p->length_us - at;
		struct job *j = &p->job[p->jobs++];

		*j = (struct job){.at_us = at, .name = name, .wait_ms = -1, .ttl_ms = p->lease_us / MSEC, .renew = 1, .tagged = 1};
		j->client = stream_range(s, 0, p->clients - 1);
		j->hold_us = stream_range(s, left / 4, left);
		j->acts = stream_range(s, 0, 40);
		j->extend = stream_chance(s, 30) ? -1 : 0;
		j->extend_ms = p->max_lease_us / MSEC;
		j->ending = stream_range(s, END_UNLOCK, END_KEEP);
	}
}

static void crowd_job(struct plan *p, struct stream *s, int64_t at_us, int64_t i)
{
	struct job *j = &p->job[p->jobs++];

	*j = (struct job){
		.client = i % p->clients, .owner = i / p->clients % (OWNERS_MAX - 1), .ttl_ms = p->lease_us / MSEC, .renew = 1, .tagged = 1};
	j->at_us = at_us + stream_skewed(s, 0, CROWD_US);
	j->hold_us = stream_skewed(s, 0, stream_chance(s, 95) ? 10 * MSEC : 2 * p->lease_us);
	j->wait_ms = stream_chance(s, 20) ? -1 : stream_range(s, 300, 6000);
	j->cancel_us = stream_chance(s, 15) ? stream_skewed(s, 1, 2 * SEC) : 0;
	j->ending = stream_chance(s, 90) ? END_UNLOCK : stream_range(s, END_FENCE, END_HALF_CLOSE);
}

/* Some clients hang up, stand still or die; often a daemon dies. */
static void crowd_faults(struct plan *p, struct stream *s, int64_t at_us)
{
	static const enum fault_kind kind[] = {FAULT_CLIENT_CUT, FAULT_CLIENT_CRASH, FAULT_CLIENT_SILENT, FAULT_CLIENT_STALL, FAULT_CLIENT_ANEW,
					       FAULT_CLIENT_HALF_CLOSE};

	for (int64_t n = stream_skewed(s, 0, 40); n > 0 && p->faults < FAULTS_MAX - 1; n--) {
		struct fault *f = &p->fault[p->faults++];

		*f = (struct fault){.kind = kind[stream_range(s, 0, (int64_t)(sizeof(kind) / sizeof(*kind)) - 1)]};
		f->at_us = at_us + stream_range(s, 0, 2 * SEC);
		f->for_us = stream_skewed(s, MSEC, SEC);
		f->a = stream_range(s, 0, p->clients - 1);
		f->x = stream_range(s, 0, 6);
	}
	if (stream_chance(s, 60) && p->faults < FAULTS_MAX) {
		struct fault *f = &p->fault[p->faults++];

		*f = (struct fault){.kind = FAULT_DAEMON_CRASH};
		f->at_us = at_us + stream_range(s, 50 * MSEC, 1500 * MSEC);
		f->for_us = stream_skewed(s, MSEC, p->lease_us / 2);
		f->a = stream_range(s, 0, p->daemons - 1);
	}
}

/* In some crowds clients are quick and hold the name for a moment only: one daemon hands it on dozens of times while another asks for it. */
static void crowd_hurries(struct plan *p, int64_t at_us)
{
	struct stream s;

	rare_begin(p, &s, 4);
	if (!stream_chance(&s, 30))
		return;
	p->client_latency_us = 20;
	for (unsigned i = 0; i < p->jobs; i++) {
		struct job *j = &p->job[i];

		if (j->name > 0 || j->at_us < at_us || j->at_us > at_us + CROWD_US)
			continue;
		j->at_us = at_us + stream_range(&s, MSEC, 10 * MSEC);
		j->hold_us = stream_skewed(&s, 0, 200);
		if (stream_chance(&s, 30))
			continue;
		j->at_us = at_us + stream_range(&s, 0, MSEC); /* most come to one daemon, before the others */
		j->owner = j->client % p->daemons % (OWNERS_MAX - 1);
		j->client -= j->client % p->daemons;
	}
}

/* Hundreds of clients want k0 at the same time, and again when the world is healed. */
static void play_crowd(struct plan *p, struct stream *s)
{
	int64_t healed = p->length_us + settle_us(p) + SETTLED_US / 8, at = stream_range(s, p->warm_us, (p->warm_us + p->length_us) / 2);

	p->clients = stream_range(s, 100, CLIENTS_MAX);
	if (p->jobs > 40)
		p->jobs = 40;
	if (stream_chance(s, 60))
		p->faults = 0; /* nothing else happens */
	for (int64_t i = 0, crowd = stream_range(s, 200, 400); i < crowd; i++)
		crowd_job(p, s, at, i);
	for (int64_t i = 0, crowd = stream_range(s, 20, 200); i < crowd; i++)
		crowd_job(p, s, healed, i);
	crowd_faults(p, s, at);
	crowd_hurries(p, at);
}

/* Faults strike in the middle of the requests, at two moments. */
static void play_throng(struct plan *p, struct stream *s)
{
	if (stream_chance(s, 60))
		p->faults = 0;
	for (int64_t n = stream_range(s, 1, 8); n > 0 && p->faults < FAULTS_MAX; n--) {
		struct fault *f = &p->fault[p->faults++];

		*f = (struct fault){.kind = FAULT_LINK_RESET};
		f->at_us = stream_range(s, p->warm_us, p->length_us);
		f->a = stream_range(s, 0, p->daemons - 1);
		f->b = stream_range(s, 0, p->nodes - 1);
	}
	crowd_faults(p, s, p->warm_us);
	crowd_faults(p, s, stream_range(s, p->warm_us, p->length_us - 2 * SEC));
}

void rare_draw(struct plan *p)
{
	struct stream s;

	switch (rare_begin(p, &s, 3)) {
	case RARE_HOUR:
		plan_near_clocks(p); /* a scene may have shortened the longest lease */
		play_hour(p, &s);
		break;
	case RARE_CROWD:
		play_crowd(p, &s);
		break;
	case RARE_THRONG:
		play_throng(p, &s);
		break;
	case RARE_BUSY:
		if (stream_chance(&s, 50))
			p->faults = 0; /* nothing is wrong except that the stores are busy */
		break;
	default:
		break;
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kinds of worlds that widen what is drawn elsewhere, each by a draw of its own, so that a world has several of them at times and all others stay as they are:
 *
 *   even       2, 4, 6 or 8 stores
 *   terms      UNLOCK keep= from 1 ms to max_lease, and in most of these worlds a LOCK delay= of each job from 0 to max_delay; else keep= is half a lease, and
 *              delay= always max_delay
 *   reloads    a reload changes lease, min_lease and limits.detached, and some LOCKs have no ttl=
 *   bounds     a next generation has another max_delay and min_lease
 *   sets       a next generation has two servers more or fewer, or one or two more than two
 *   priorities LOCK priority=, of half of the jobs
 *   rolls      LIST sessions while sessions come and go: in half of the worlds with storms and of crowds, in few others
 *   breaks     clients BREAK locks and KILL sessions, and watch
 *   readers    clients lock some names in both modes, with priorities where jobs have some, and share what they hold alone
 *   circles    clients hold some names and wait for more, in random order, over several daemons; in half of these worlds nothing else is wrong, and in half
 *              some of the names are semaphores
 *   rates      clients use rate limits
 *   permits    clients ask for permits of semaphores
 *   chores     clients defer work, and take it; in some of these worlds they list it, too
 *   gathers    clients LOCKALL and LOCKANY some names, beside what readers do with them
 *   inquires   daemons ask each other who holds a name; in some of these worlds the first daemon neither asks nor answers
 *   memory     the daemon is its own store, and dies with it
 *   cuts       connections of some clients end before an answer is read, and they repeat the request with count=
 *   rules      daemons have rules, which change
 *   owners     sessions ask for permits in the names of several owners, in half of the worlds with permits
 *   meets      the locks of jobs are names that readers and writers, groups, and clients that break locks have as well
 *   slices     a step has time for one timer that is due, so requests are served while others are left
 *   notes      clients COMPLETE and ask for RECENT
 */
#include "tests/sim/plan/plan.h"

#include "daemon/base/instant.h"
#include "tests/sim/plan/stream.h"

#include <string.h>

static const struct {
	const char *word;
	int64_t in_a_thousand;
} kinds[SPREAD_N] = {
	[SPREAD_EVEN] = {"even", 20},
	[SPREAD_TERMS] = {"terms", 40},
	[SPREAD_RELOADS] = {"reloads", 10},
	[SPREAD_BOUNDS] = {"bounds", 300},
	[SPREAD_SETS] = {"sets", 300},
	[SPREAD_ROLLS] = {"rolls", 500},
	[SPREAD_PRIORITIES] = {"priorities", 200},
	[SPREAD_BREAKS] = {"breaks", 100},
	[SPREAD_READERS] = {"readers", 250},
	[SPREAD_CIRCLES] = {"circles", 150},
	[SPREAD_GATHERS] = {"gathers", 150},
	[SPREAD_RATES] = {"rates", 120},
	[SPREAD_PERMITS] = {"permits", 150},
	[SPREAD_CHORES] = {"chores", 150},
	[SPREAD_NOTES] = {"notes", 150},
	[SPREAD_INQUIRES] = {"inquires", 400},
	[SPREAD_MEMORY] = {"memory", 60},
	[SPREAD_CUTS] = {"cuts", 150},
	[SPREAD_MEETS] = {"meets", 60},
	[SPREAD_OWNERS] = {"owners", 500},
	[SPREAD_RULES] = {"rules", 100},
	[SPREAD_SLICES] = {"slices", 150},
};

/* The stream goes on with what is drawn of that kind. */
static bool spread_begin(uint64_t seed, enum spread kind, struct stream *ret_stream)
{
	stream_init(ret_stream, seed, DRAW_SPREAD, kind);
	return stream_range(ret_stream, 0, 999) < kinds[kind].in_a_thousand;
}

enum spread spread_find(const char *word)
{
	int kind = 0;

	while (kind < SPREAD_N && strcmp(kinds[kind].word, word) != 0)
		kind++;
	return (enum spread)kind;
}

bool seed_is_spread(uint64_t seed, enum spread kind)
{
	struct stream s;

	return spread_begin(seed, kind, &s);
}

void spread_shape(struct plan *p)
{
	static const int64_t even[] = {2, 2, 4, 4, 4, 6, 8};
	struct stream s;

	if (spread_begin((uint64_t)p->seed, SPREAD_EVEN, &s))
		p->nodes = even[stream_range(&s, 0, (int64_t)(sizeof(even) / sizeof(even[0])) - 1)];
	if (spread_begin((uint64_t)p->seed, SPREAD_MEMORY, &s) && rare_of((uint64_t)p->seed) == RARE_NONE)
		p->memory = p->nodes = p->daemons = p->trust = 1;
	if (!spread_begin((uint64_t)p->seed, SPREAD_RELOADS, &s))
		return;
	p->reloads = 1;
	if (!p->chatter_ms)
		p->chatter_ms = stream_range(&s, 400, 4000); /* reloads happen between side requests */
}

/* --- terms ----------------------------------------------------------------------------------------------------------- */

int64_t plan_delay_us(const struct plan *p, int64_t which)
{
	int64_t ms = p->delay_us / MSEC * which / (DELAY_STEP_MS - 1);

	return (ms / DELAY_STEP_MS * DELAY_STEP_MS + which) * MSEC;
}

int64_t plan_lock_ms(const struct plan *p, int64_t ttl_ms)
{
	int64_t least = 4 * DELAY_STEP_MS; /* min_lease is less */

	if (!plan_mixes_delays(p))
		return ttl_ms;
	if (ttl_ms == 0)
		ttl_ms = p->lease_us / MSEC;
	return ttl_ms < least ? least : ttl_ms / DELAY_STEP_MS * DELAY_STEP_MS;
}

void spread_speed(struct plan *p)
{
	struct stream s;

	if (!spread_begin((uint64_t)p->seed, SPREAD_TERMS, &s) || !stream_chance(&s, 70))
		return;
	p->mixed_delays = 1;
	p->delay_us = (stream_range(&s, 2, 60) * DELAY_STEP_MS - 1) * MSEC; /* the last of plan_delay_us() */
}

static void job_spread(const struct plan *p, struct stream *s, struct job *j)
{
	int64_t longest = p->max_lease_us / MSEC;

	j->delay = stream_range(s, 0, DELAY_STEP_MS - 1);
	if (stream_chance(s, 40))
		j->delay = stream_chance(s, 50) ? 0 : DELAY_STEP_MS - 1;
	if (j->ending == END_UNLOCK && stream_chance(s, 20))
		j->ending = END_KEEP;
	j->keep_ms = stream_chance(s, 10) ? longest : stream_skewed(s, 1, longest);
}

/* A client asks a daemon for no longer delay than its max_delay: so each job has its own. */
static void draw_bounds(struct plan *p)
{
	struct stream s;
	int64_t longest = p->stranger_lease_us ? p->stranger_lease_us : p->max_lease_us;

	if (p->stranger < STRANGER_LEASE || !spread_begin((uint64_t)p->seed, SPREAD_BOUNDS, &s))
		return;
	if (p->stranger == STRANGER_LEASE) {
		p->stranger_delay_us = p->delay_us + stream_range(&s, 1, 500) * MSEC;
		return;
	}
	if (stream_chance(&s, 70)) {
		p->mixed_delays = 1;
		if (!p->delay_us || p->delay_us / MSEC % DELAY_STEP_MS != DELAY_STEP_MS - 1)
			p->delay_us = (stream_range(&s, 2, 30) * DELAY_STEP_MS - 1) * MSEC;
		p->stranger_delay_us = stream_chance(&s, 20) ? -1 : stream_range(&s, 1, 2 * p->delay_us / MSEC) * MSEC;
		for (unsigned i = 0; i < p->jobs; i++)
			p->job[i].delay = stream_range(&s, 0, DELAY_STEP_MS - 1);
	}
	if (!p->stranger_delay_us || stream_chance(&s, 50))
		p->stranger_min_us = stream_skewed(&s, MIN_LEASE_MS, longest / MSEC) * MSEC;
}

static void draw_priorities(struct plan *p)
{
	struct stream s;

	if (!spread_begin((uint64_t)p->seed, SPREAD_PRIORITIES, &s))
		return;
	for (unsigned i = 0; i < p->jobs; i++)
		p->job[i].priority = stream_chance(&s, 50) ? stream_skewed(&s, 1, 9) : 0;
}

static void draw_rolls(struct plan *p)
{
	struct stream s;
	bool many = p->storm || rare_of((uint64_t)p->seed) == RARE_CROWD;

	if (spread_begin((uint64_t)p->seed, SPREAD_ROLLS, &s))
		p->rolls = many || (p->grace_ms > 0 && stream_chance(&s, 1));
}

/* Only where clients ask nothing else beside their jobs. */
static void draw_breaks(struct plan *p)
{
	struct stream s;

	if (spread_begin((uint64_t)p->seed, SPREAD_BREAKS, &s) && !p->chatter_ms && !p->storm && !p->rolls)
		p->breaks_ms = stream_skewed(&s, 50, 4000);
}

/* Where the stores have time for more. */
static void draw_circles(struct plan *p)
{
	struct stream s;

	if (!spread_begin((uint64_t)p->seed, SPREAD_CIRCLES, &s) || p->clients < 2 || p->service_us || p->storm || rare_of((uint64_t)p->seed) != RARE_NONE)
		return;
	p->nests = 1;
	if (stream_chance(&s, 50))
		p->faults = 0;
	stream_init(&s, (uint64_t)p->seed, DRAW_NEST_PERMITS, 0);
	if ((p->window == 0 || p->window > 3) && stream_chance(&s, 50))
		p->nests = 2;
	stream_init(&s, (uint64_t)p->seed, DRAW_NEST_PERMITS, 1);
	p->nests_group = stream_chance(&s, 50);
}

/* Somebody deletes keys, mostly those of readers: all at one node, or each at some node. */
static void draw_deletions(struct plan *p)
{
	struct stream s;
	int64_t count, node;
	bool any;

	stream_init(&s, (uint64_t)p->seed, DRAW_DELETIONS, 0);
	if (!p->readers || p->nodes < 3 || !stream_chance(&s, 25))
		return;
	any = stream_chance(&s, 40);
	node = stream_range(&s, 0, p->nodes - 1);
	for (count = stream_skewed(&s, 4, 60); count > 0 && p->faults < FAULTS_MAX; count--) {
		struct fault *f = &p->fault[p->faults++];

		*f = (struct fault){.kind = FAULT_NODE_DELETE_ONE, .a = node, .b = p->names};
		f->at_us = stream_range(&s, p->warm_us, p->length_us - 100 * MSEC);
		if (any)
			f->a = stream_range(&s, 0, p->nodes - 1);
		if (stream_chance(&s, 80))
			f->b += stream_range(&s, 0, 3);
		else
			f->b = stream_range(&s, 0, p->names - 1);
	}
}

/* So short that a reader may be cut off while it believes. */
static void draw_beats(struct plan *p)
{
	struct stream s;

	stream_init(&s, (uint64_t)p->seed, DRAW_READ_SILENCES, CLIENTS_MAX);
	if (p->readers && !p->heartbeat_ms && p->lease_us >= 600 * MSEC && stream_chance(&s, 30))
		p->heartbeat_ms = stream_range(&s, 200, p->lease_us / MSEC / 3);
}

/* All daemons have the same stores, and these have time for more. */
static void draw_rates(struct plan *p)
{
	struct stream s;

	if (spread_begin((uint64_t)p->seed, SPREAD_RATES, &s) && !p->stranger && !p->service_us && !p->storm && rare_of((uint64_t)p->seed) == RARE_NONE)
		p->rates = stream_range(&s, RATES_CLOSED, RATES_NEXT);
}

static void draw_chores(struct plan *p)
{
	struct stream s;

	if (!seed_is_spread((uint64_t)p->seed, SPREAD_CHORES) || p->stranger || p->service_us || p->storm || rare_of((uint64_t)p->seed) != RARE_NONE)
		return;
	stream_init(&s, (uint64_t)p->seed, DRAW_CHORE_LISTS, 0);
	p->chores = stream_chance(&s, 40) ? 2 : 1;
}

static void draw_notes(struct plan *p)
{
	struct stream s;

	if (spread_begin((uint64_t)p->seed, SPREAD_NOTES, &s) && !p->chatter_ms && !p->storm && !p->rolls && !p->breaks_ms)
		p->notes = rare_of((uint64_t)p->seed) == RARE_NONE;
}

static void draw_inquiries(struct plan *p)
{
	struct stream s;

	if (spread_begin((uint64_t)p->seed, SPREAD_INQUIRES, &s))
		p->inquires = stream_chance(&s, 20) ? 2 : 1;
}

/* Who waits for a permit asks for each slot every second, as where clients ask for permits otherwise. */
static void draw_cuts(struct plan *p)
{
	struct stream s;

	if (!spread_begin((uint64_t)p->seed, SPREAD_CUTS, &s) || p->service_us || p->storm || rare_of((uint64_t)p->seed) != RARE_NONE ||
	    (p->window > 0 && p->window < 4))
		return;
	p->cuts = 1;
	if (!p->grace_ms)
		p->grace_ms = stream_skewed(&s, 500, 4000);
}

/* After readers, groups and chores are drawn: where there are no chores yet, there are some. */
static void draw_meets(struct plan *p)
{
	struct stream s;

	if (!spread_begin((uint64_t)p->seed, SPREAD_MEETS, &s) || p->service_us || p->storm || rare_of((uint64_t)p->seed) != RARE_NONE || p->stranger)
		return;
	p->meets = 1;
	if (!p->chores)
		p->chores = 1;
	if (!p->gathers)
		p->readers = 1;
	p->gathers |= stream_chance(&s, 30);
	if (!p->breaks_ms && !p->chatter_ms && !p->rolls && !p->notes && stream_chance(&s, 40))
		p->breaks_ms = stream_skewed(&s, 50, 4000);
}

/* Clients that wait in circles, in storms or again and again count on being granted what they ask for. */
static void draw_rules(struct plan *p)
{
	struct stream s;

	if (spread_begin((uint64_t)p->seed, SPREAD_RULES, &s) && !p->nests && !p->cuts && !p->storm && rare_of((uint64_t)p->seed) == RARE_NONE)
		p->rules_ms = stream_skewed(&s, 100, 4000);
}

bool spread_is_shown(const struct plan *p, enum spread kind)
{
	switch (kind) {
	case SPREAD_BOUNDS:
		return p->stranger_delay_us || p->stranger_min_us;
	case SPREAD_ROLLS:
		return p->rolls;
	case SPREAD_CIRCLES:
		return p->nests;
	case SPREAD_RATES:
		return p->rates;
	case SPREAD_CHORES:
		return p->chores;
	case SPREAD_BREAKS:
		return p->breaks_ms;
	case SPREAD_GATHERS:
		return p->gathers;
	case SPREAD_PERMITS:
		return p->permits;
	case SPREAD_NOTES:
		return p->notes;
	case SPREAD_INQUIRES:
		return p->inquires;
	case SPREAD_MEMORY:
		return p->memory;
	case SPREAD_CUTS:
		return p->cuts;
	case SPREAD_MEETS:
		return p->meets;
	case SPREAD_RULES:
		return p->rules_ms;
	case SPREAD_OWNERS:
		return p->owners;
	case SPREAD_SLICES:
		return p->slices;
	case SPREAD_SETS:
		return plan_changes_servers(p) && (p->changed || plan_nodes_least(p) == 2);
	default:
		return true;
	}
}

void spread_draw(struct plan *p)
{
	struct stream terms, reloads;
	bool has_terms = spread_begin((uint64_t)p->seed, SPREAD_TERMS, &terms), has_reloads = spread_begin((uint64_t)p->seed, SPREAD_RELOADS, &reloads);

	for (unsigned i = 0; i < p->jobs; i++) {
		if (has_terms)
			job_spread(p, &terms, &p->job[i]);
		if (has_reloads && stream_chance(&reloads, 40))
			p->job[i].ttl_ms = 0;
	}
	draw_bounds(p);
	draw_rolls(p);
	draw_priorities(p);
	draw_breaks(p);
	draw_circles(p);
	draw_rates(p);
	draw_chores(p);
	draw_notes(p);
	draw_inquiries(p);
	p->readers = seed_is_spread((uint64_t)p->seed, SPREAD_READERS);
	/* Who waits for a permit asks for each slot every second: a window of a call or two is too narrow for that. */
	p->permits = seed_is_spread((uint64_t)p->seed, SPREAD_PERMITS) && rare_of((uint64_t)p->seed) != RARE_HOUR && (p->window == 0 || p->window > 3);
	p->gathers = seed_is_spread((uint64_t)p->seed, SPREAD_GATHERS) && rare_of((uint64_t)p->seed) != RARE_HOUR; /* it would not end in time */
	p->owners = p->permits && seed_is_spread((uint64_t)p->seed, SPREAD_OWNERS);
	draw_meets(p);
	draw_beats(p);
	draw_deletions(p);
	draw_cuts(p);
	draw_rules(p);
	p->slices = seed_is_spread((uint64_t)p->seed, SPREAD_SLICES);
}

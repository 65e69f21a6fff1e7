/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worlds in which the set of servers changes: some daemons are started as the next generation, with a server less, one more, or one replaced, while the others
 * are at work, as CHANGING THE SERVERS in redlockd(8) says. Often they reach the servers that stay one after the other, and often the others follow.
 * Drawn from a stream of its own.
 */
#include "tests/sim/plan/plan.h"

#include "daemon/base/instant.h"
#include "daemon/core/event/event.h"
#include "tests/sim/plan/stream.h"
#include "tests/sim/scene/scene.h"

#define CHANGES_PERCENT 10
#define CONTEST_JOBS    12 /* of each side */

/* Adds a fault at a moment at which it meets exactly what it names. It is over when the world heals. */
static void fault_add(struct plan *p, struct fault f)
{
	f.at_us = f.at_us / 16 * 16;
	if (f.for_us > p->length_us - f.at_us)
		f.for_us = p->length_us - f.at_us;
	if (p->faults < FAULTS_MAX)
		p->fault[p->faults++] = f;
}

/* Draws a time about as long as the longest lease, or a few times as long, as quarantines are. */
static int64_t while_us(const struct plan *p, struct stream *s)
{
	return stream_chance(s, 50) ? stream_range(s, p->max_lease_us / 2, 2 * p->max_lease_us) : stream_skewed(s, 10 * MSEC, 4 * p->max_lease_us);
}

/* Draws which servers the daemon reaches first, and when it reaches the others. */
static void draw_reach(struct plan *p, struct stream *s, int64_t daemon, int64_t from_us)
{
	for (int64_t node = 0; node < p->nodes; node++)
		if (stream_chance(s, 40))
			fault_add(p, (struct fault){.kind = FAULT_LINK_STALL, .a = daemon, .b = node, .at_us = from_us, .for_us = while_us(p, s), .x = 3});
}

/* The daemon starts while the others work; some start as if they had never run before. */
static void draw_start(struct plan *p, struct stream *s, int64_t daemon)
{
	int64_t at = stream_range(s, p->warm_us / 2, (p->warm_us + 2 * p->length_us) / 3);

	fault_add(p, (struct fault){.kind = FAULT_DAEMON_CRASH, .a = daemon, .for_us = at, .x = stream_chance(s, 30) ? RESTART_FIRST : 0});
	if (stream_chance(s, 60))
		draw_reach(p, s, daemon, at);
}

/* The others follow one by one: in the end all hosts run the next generation. */
static void draw_followers(struct plan *p, struct stream *s)
{
	int64_t at = stream_range(s, p->warm_us, p->length_us - SEC);

	p->finale &= FINALE_TAKEOVER | (p->nodes > 4 ? FINALE_REJOIN : 0); /* of the smallest sets none can be spared */
	for (int64_t i = 0; i < p->daemons - p->strangers; i++) {
		struct fault f = {.a = i, .at_us = at, .x = RESTART_STRANGE};

		f.kind = stream_chance(s, 60) ? FAULT_DAEMON_STOP : FAULT_DAEMON_CRASH;
		f.for_us = stream_skewed(s, MSEC, 500 * MSEC);
		fault_add(p, f);
		at += stream_skewed(s, MSEC, p->length_us - SEC / 2 - at);
	}
}

/* Cuts the daemon off from the servers from node up to end. */
static void cut_off(struct plan *p, int64_t daemon, int64_t node, int64_t end, int64_t from_us, int64_t until_us)
{
	for (; node < end; node++)
		fault_add(p, (struct fault){.kind = FAULT_LINK_STALL, .a = daemon, .b = node, .at_us = from_us, .for_us = until_us - from_us, .x = 3});
}

/* Long enough for what was taken over to count, if nothing else is in the way. */
static int64_t quarantine_us(const struct plan *p)
{
	int64_t longest = p->max_lease_us > p->stranger_lease_us ? p->max_lease_us : p->stranger_lease_us;

	return (longest + p->delay_us) * 103 / 100 + 1200 * MSEC;
}

/* A client of one of these daemons wants the one name. */
static struct job *contest_job(struct plan *p, struct stream *s, int64_t first, int64_t last)
{
	struct job *j = &p->job[p->jobs++];

	*j = (struct job){.owner = OWNERS_MAX - 1, .renew = 1, .tagged = 1, .hold_us = stream_skewed(s, MSEC, SEC), .ending = END_UNLOCK};
	j->client = stream_range(s, first, last);
	j->client += p->daemons * stream_range(s, 0, p->clients / p->daemons - 1);
	j->wait_ms = stream_range(s, 500, 6000);
	return j;
}

/* The generation before holds the name for long when the last server that is needed is taken over. The next generation waits for it from then on. */
static void draw_contest(struct plan *p, struct stream *s, int64_t at_us)
{
	int64_t first = p->daemons - p->strangers, longest = p->stranger_lease_us ? p->stranger_lease_us : p->max_lease_us;

	scene_make_room(p, 2 * CONTEST_JOBS, 0);
	if (stream_chance(s, 70))
		p->jobs = 0; /* nobody else comes in between */
	if (p->clients < 2 * p->daemons)
		p->clients = 2 * p->daemons;
	for (int i = 0; i < CONTEST_JOBS; i++) {
		struct job *before = contest_job(p, s, 0, first - 1), *next = contest_job(p, s, first, p->daemons - 1);

		before->at_us = stream_range(s, at_us - SEC, at_us + 2 * SEC);
		before->ttl_ms = p->max_lease_us / MSEC;
		before->hold_us = stream_range(s, 100 * MSEC, 2 * p->max_lease_us);
		next->ttl_ms = (longest < p->lease_us ? longest : p->lease_us) / MSEC;
		next->at_us = stream_range(s, at_us, at_us + quarantine_us(p));
	}
}

/* The servers that stay are reached in two parts: first all but one of those that would do, then the rest, which the later daemons reach later. */
static void draw_parts(struct plan *p, struct stream *s, int64_t start, const int64_t part[2], int64_t late_us)
{
	int64_t some = (p->nodes - 2) / 2, first = p->daemons - p->strangers;

	for (int64_t i = first; i < p->daemons; i++) {
		fault_add(p, (struct fault){.kind = FAULT_DAEMON_CRASH, .a = i, .for_us = start});
		if (part[0] > start)
			cut_off(p, i, 0, some, start - MSEC, part[0]);
		cut_off(p, i, some, p->nodes - 2, start - MSEC, part[1] + (i > first ? late_us + stream_skewed(s, 0, 300 * MSEC) : 0));
	}
}

/*
 * A server is replaced, and the daemons of the next generation reach the others in parts. In one half of the worlds they join the new server before they know
 * of the set before. In the other half the last server is taken over by one daemon and becomes a replica before the other daemons reach it.
 */
static void draw_stages(struct plan *p, struct stream *s)
{
	bool blind = stream_chance(s, 50);
	int64_t start = p->warm_us + stream_range(s, 0, SEC), taken = stream_range(s, 0, 2100 * MSEC), part[2];

	p->faults = 0;
	part[0] = blind ? start + quarantine_us(p) : start;
	part[1] = part[0] + quarantine_us(p) + stream_range(s, 0, SEC);
	if (p->length_us < part[1] + quarantine_us(p) + 3 * SEC)
		p->length_us = part[1] + quarantine_us(p) + 3 * SEC;
	draw_contest(p, s, part[1]);
	if (!blind)
		fault_add(p, (struct fault){.kind = FAULT_NODE_ROLE, .a = (p->nodes - 2) / 2, .at_us = part[1] + taken,
		                            .for_us = stream_range(s, 500 * MSEC, 3 * SEC)});
	if (blind)
		part[1] += 2 * quarantine_us(p);
	draw_parts(p, s, start, part, taken);
}

/* The faults that were drawn at random know nothing of a server that was added since. */
static void draw_newcomer(struct plan *p, struct stream *s)
{
	static const enum fault_kind kind[] = {FAULT_NODE_PAUSE, FAULT_NODE_WHOLE, FAULT_NODE_BLANK, FAULT_NODE_FLUSH, FAULT_NODE_ERROR};

	for (int64_t n = stream_skewed(s, 0, 4); n > 0; n--) {
		struct fault f = {.kind = kind[stream_range(s, 0, 4)], .a = p->nodes - 1 - (n + 1) % plan_changed(p)};

		f.at_us = stream_range(s, p->warm_us, p->length_us - 100 * MSEC);
		f.for_us = stream_skewed(s, MSEC, p->max_lease_us);
		f.x = stream_range(s, 0, 7);
		fault_add(p, f);
	}
}

/* As short as min_lease lets them be, or twice as long as before. */
static int64_t draw_lease(const struct plan *p, struct stream *s)
{
	int64_t us = stream_range(s, p->max_lease_us / 8, 2 * p->max_lease_us) / MSEC * MSEC;

	return us < 50 * MSEC ? 50 * MSEC : us;
}

static bool is_eligible(const struct plan *p, bool wide)
{
	if (p->daemons < 2 || p->nodes < (wide ? 2 : 3) || p->stranger || rare_of((uint64_t)p->seed) != RARE_NONE)
		return false;
	for (unsigned i = 0; i < p->faults; i++)
		if (fault_is_late(p, &p->fault[i]))
			return false;
	return true;
}

/* Two servers are removed if half of the servers before are left, or added; two servers are not replaced one by one, and become three or four. */
static void draw_wide(struct plan *p)
{
	if (p->nodes == 2)
		p->stranger = STRANGER_MORE;
	if ((p->stranger == STRANGER_FEWER && p->nodes >= 4) || (p->stranger == STRANGER_MORE && p->nodes <= NODES_MAX - 2))
		p->changed = p->nodes > 2 || p->daemons > 2 ? 2 : 0;
}

void servers_draw(struct plan *p, uint64_t seed)
{
	struct stream s;

	bool wide = seed_is_spread(seed, SPREAD_SETS);

	stream_init(&s, seed, DRAW_SERVERS, 0);
	if (!is_eligible(p, wide) || !stream_chance(&s, CHANGES_PERCENT))
		return;
	p->stranger = p->nodes == NODES_MAX ? STRANGER_FEWER : stream_range(&s, STRANGER_FEWER, STRANGER_REPLACED);
	p->strangers = stream_range(&s, 1, p->daemons - 1);
	if (stream_chance(&s, 40))
		p->stranger_lease_us = draw_lease(p, &s);
	if (wide)
		draw_wide(p);
	if (p->stranger != STRANGER_FEWER)
		p->nodes += plan_changed(p);
	if (p->stranger == STRANGER_REPLACED && stream_chance(&s, 30)) {
		draw_stages(p, &s);
		return;
	}
	for (int64_t i = p->daemons - p->strangers; i < p->daemons; i++)
		draw_start(p, &s, i);
	if (p->stranger != STRANGER_FEWER)
		draw_newcomer(p, &s);
	if (stream_chance(&s, 60))
		draw_followers(p, &s);
}

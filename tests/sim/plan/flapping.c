/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worlds for L11: once healed, a minority of the nodes stays slow, hangs or flaps, one by one or all at once, while clients of all daemons want one name, each
 * for a moment. The majority and its clocks are right.
 */
#include "tests/sim/plan/plan.h"

#include "daemon/base/instant.h"
#include "tests/sim/plan/stream.h"

#define FLAP_PERCENT 12
#define JOBS_LEAST   40
#define JOBS_MOST    200

static const enum fault_kind flap_kind[] = {FAULT_LINK_STALL, FAULT_LINK_SLOW, FAULT_LINK_RESET, FAULT_NODE_PAUSE, FAULT_NODE_PAUSE, FAULT_NODE_WHOLE};

/* Behind what is checked at that moment. */
static int64_t settled_at(const struct plan *p)
{
	return p->length_us + settle_us(p) + 1;
}

/*
 * Adds a fault to one of the nodes from `first` on, as many as a quorum can do without. It lasts long enough for commands to time out, or only makes them late.
 */
static void flap_add(struct plan *p, struct stream *s, int64_t first)
{
	int64_t node = (first + stream_range(s, 0, (p->nodes - 1) / 2 - 1)) % p->nodes;
	int64_t at = settled_at(p) + stream_range(s, 0, SETTLED_US - SEC), longest = settled_at(p) + SETTLED_US - 100 * MSEC - at;
	struct fault f = {.kind = flap_kind[stream_range(s, 0, (int64_t)(sizeof(flap_kind) / sizeof(flap_kind[0])) - 1)], .a = node, .at_us = at};

	if (fault_table[f.kind].of == OF_DAEMON) {
		f.a = stream_range(s, 0, p->daemons - 1);
		f.b = node;
		f.x = f.kind == FAULT_LINK_SLOW ? stream_range(s, 2, 50) : stream_range(s, 1, 3);
	}
	f.for_us = stream_chance(s, 60) ? stream_skewed(s, MSEC, 4 * p->timeout_us) : stream_skewed(s, MSEC, longest);
	if (f.for_us > longest)
		f.for_us = longest;
	p->fault[p->faults++] = f;
}

static void job_add(struct plan *p, struct stream *s)
{
	struct job *j = &p->job[p->jobs++];

	*j = (struct job){.wait_ms = 6000, .ttl_ms = p->lease_us / MSEC, .renew = 1, .tagged = 1, .ending = END_UNLOCK};
	j->at_us = settled_at(p) + stream_range(s, 0, SETTLED_US - SEC);
	j->client = stream_range(s, 0, p->clients - 1);
	j->hold_us = stream_skewed(s, 0, 5 * MSEC);
}

void flapping_draw(struct plan *p, uint64_t seed)
{
	struct stream s;
	int64_t first, faults, jobs;

	stream_init(&s, seed, DRAW_FLAPPING, 0);
	if (p->nodes < 3 || p->daemons < 2 || p->stranger || plan_class(p) == CLASS_X || !stream_chance(&s, FLAP_PERCENT))
		return;
	if (stream_chance(&s, 50)) /* a long timeout of commands must not make rounds as slow */
		p->timeout_us = stream_skewed(&s, p->timeout_us, 3 * SEC);
	plan_near_clocks(p); /* with two clocks left nobody knows which one is off */
	p->finale = 0; /* the trials take a node away, and no node can be spared */
	first = stream_range(&s, 0, p->nodes - 1);
	faults = stream_skewed(&s, 1, 60);
	jobs = stream_range(&s, JOBS_LEAST, JOBS_MOST);
	if (p->clients < 2 * p->daemons)
		p->clients = 2 * p->daemons;
	for (; faults > 0 && p->faults < FAULTS_MAX; faults--)
		flap_add(p, &s, first);
	for (; jobs > 0 && p->jobs < JOBS_MAX; jobs--)
		job_add(p, &s);
}

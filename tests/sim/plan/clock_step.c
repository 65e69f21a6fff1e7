/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worlds in which the clocks of a minority of the nodes are set forward and nothing else breaks an assumption, while daemons reach the other nodes only now and
 * then: many locks have the votes of a bare quorum. Not where a first start is trusted: a daemon that reaches only nodes that lost their memory would not
 * notice that.
 */
#include "tests/sim/plan/plan.h"

#include "daemon/base/instant.h"
#include "tests/sim/plan/stream.h"

#define STEP_PERCENT 4
#define STEP_MOST_US (5 * SEC)

static int64_t moment(const struct plan *p, struct stream *s)
{
	return stream_range(s, p->warm_us, p->length_us - 100 * MSEC);
}

static void step_add(struct plan *p, struct stream *s, int64_t node)
{
	struct fault *f = &p->fault[p->faults++];

	*f = (struct fault){.kind = FAULT_NODE_CLOCK, .a = node, .for_us = MSEC};
	f->at_us = moment(p, s);
	f->x = stream_skewed(s, MSEC, STEP_MOST_US);
}

static void stall_add(struct plan *p, struct stream *s)
{
	int64_t at = moment(p, s), longest = p->length_us - at;
	int64_t for_us = stream_skewed(s, MSEC, 4 * p->lease_us);
	struct fault *f = &p->fault[p->faults++];

	*f = (struct fault){.kind = FAULT_LINK_STALL, .at_us = at, .for_us = for_us < longest ? for_us : longest};
	f->a = stream_range(s, 0, p->daemons - 1);
	f->b = stream_range(s, 0, p->nodes - 1);
	f->x = stream_range(s, 1, 3);
}

void clock_step_draw(struct plan *p, uint64_t seed)
{
	struct stream s;
	int64_t first, steps, stalls;

	stream_init(&s, seed, DRAW_CLOCK_STEP, 0);
	if (p->nodes < 3 || p->daemons < 2 || p->stranger || p->trust || plan_class(p) == CLASS_X || !stream_chance(&s, STEP_PERCENT))
		return;
	first = stream_range(&s, 0, p->nodes - 1);
	steps = stream_skewed(&s, 1, 6);
	stalls = stream_range(&s, 0, 40);
	for (; steps > 0 && p->faults < FAULTS_MAX; steps--)
		step_add(p, &s, (first + stream_range(&s, 0, (p->nodes - 1) / 2 - 1)) % p->nodes);
	for (; stalls > 0 && p->faults < FAULTS_MAX; stalls--)
		stall_add(p, &s);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* In a few of the worlds in which something goes wrong daemons are told to DRAIN, with much time or little, while all else goes on. */
#include "tests/sim/plan/plan.h"

#include "daemon/base/instant.h"
#include "tests/sim/plan/stream.h"

#define DRAINS_PERCENT 6

bool plan_allows_more_faults(const struct plan *p)
{
	for (unsigned i = 0; i < p->faults; i++)
		if (p->fault[i].kind == FAULT_DAEMON_HALT)
			return false;
	return p->faults > 0;
}

void drains_draw(struct plan *p, uint64_t seed)
{
	struct stream s;

	stream_init(&s, seed, DRAW_DRAINS, 0);
	if (!stream_chance(&s, DRAINS_PERCENT) || !plan_allows_more_faults(p))
		return;
	for (int64_t n = stream_skewed(&s, 1, 6); n > 0 && p->faults < FAULTS_MAX; n--) {
		struct fault *f = &p->fault[p->faults++];
		int64_t left;

		*f = (struct fault){.kind = FAULT_DAEMON_DRAIN, .a = stream_range(&s, 0, p->daemons - 1)};
		f->at_us = stream_range(&s, p->warm_us, p->length_us - 100 * MSEC);
		left = p->length_us - f->at_us;
		f->for_us = stream_range(&s, MSEC, left < 3 * p->max_lease_us ? left : 3 * p->max_lease_us);
		f->x = stream_chance(&s, 50) ? stream_skewed(&s, 0, f->for_us) : -1;
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* In some of the worlds in which something goes wrong daemons are restarted in place, while all else goes on. */
#include "tests/sim/plan/plan.h"

#include "daemon/base/instant.h"
#include "tests/sim/plan/stream.h"

#define CARRIES_PERCENT 12
#define PAUSE_MOST      (200 * MSEC)

void carries_draw(struct plan *p, uint64_t seed)
{
	struct stream s;

	stream_init(&s, seed, DRAW_CARRIES, 0);
	if (!stream_chance(&s, CARRIES_PERCENT) || !plan_allows_more_faults(p))
		return;
	for (int64_t n = stream_skewed(&s, 1, 8); n > 0 && p->faults < FAULTS_MAX; n--) {
		struct fault *f = &p->fault[p->faults++];

		*f = (struct fault){.kind = FAULT_DAEMON_CARRY, .a = stream_range(&s, 0, p->daemons - 1)};
		f->at_us = stream_range(&s, p->warm_us, p->length_us - PAUSE_MOST);
		f->for_us = stream_skewed(&s, MSEC, PAUSE_MOST);
	}
}

bool fault_pauses(const struct fault *f)
{
	return f->kind == FAULT_DAEMON_FREEZE || f->kind == FAULT_DAEMON_FREEZE_SENDING || f->kind == FAULT_DAEMON_CARRY;
}

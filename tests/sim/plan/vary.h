/* SPDX-License-Identifier: BSD-2-Clause */
/* What vary.c draws from, and the bounds that variations keep. */
#ifndef SIM_VARY_H
#define SIM_VARY_H

#include "daemon/base/instant.h"
#include "tests/sim/plan/plan.h"
#include "tests/sim/plan/stream.h"

#define CANCEL_MOST_US (3 * SEC)

/* The plan as it was, the plan that it becomes, and how many per cent of the faults and jobs change. */
struct variation {
	const struct plan *of;
	struct plan *plan;
	struct stream *s;
	unsigned percent;
};

int64_t within(int64_t low, int64_t value, int64_t high);
int64_t least(int64_t a, int64_t b);
int64_t most(int64_t a, int64_t b);

/* Mostly milliseconds, seldom seconds. */
int64_t vary_amount(struct stream *s);
int64_t vary_shift(struct stream *s); /* either way */
/* About as long as it was: a shift, or a part of it, or a few times as much. */
int64_t vary_length(struct stream *s, int64_t us);
/* The moment of any fault or job. */
int64_t vary_moment(struct variation *v);

/* Is it the late start of a stranger, which comes before the faults begin? */
bool fault_is_start(const struct plan *p, const struct fault *f);
/* Is it one of the faults that set all clocks back alike? None of them may change alone. */
bool fault_is_of_all(const struct variation *v, const struct fault *f);
/* May only the moment and the length of the fault change? */
bool fault_is_bound(const struct variation *v, const struct fault *f);
/* Bring a fault or a job back into the bounds; it is a variation of `old`. */
void fault_bound(const struct variation *v, struct fault *f, const struct fault *old);
void job_bound(const struct variation *v, struct job *j, const struct job *old);

#endif

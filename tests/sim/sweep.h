/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs worlds in processes of their own, so that one that crashes or hangs is a finding and not the end. */
#ifndef SIM_SWEEP_H
#define SIM_SWEEP_H

#include "tests/sim/world.h"

#include <stdio.h>

/* What is kept of a run. */
struct report {
	uint64_t seed, hash;
	enum invariant what;
	int64_t name;
	char text[400];
	int64_t sim_us, longest_free, longest_flapping, longest_woken;
	struct tally tally;
};

/* In this process. */
void report_of(const struct plan *p, FILE *trace, struct report *ret_report);
/* In a child: a crash, or more than a minute, is S21. */
void report_of_child(const struct plan *p, struct report *ret_report);

struct sweep {
	uint64_t from, count;
	unsigned jobs;
	bool keep_going; /* after a violation */
};

struct sweep_result {
	uint64_t seeds, failed;
	int64_t sim_us, longest_free, longest_flapping, longest_woken;
	struct tally tally;
	double seconds;
	struct report first; /* of the violations, by seed */
};
void sweep_run(const struct sweep *s, struct sweep_result *ret_result);
void sweep_print(const struct sweep_result *r);

/* Tells what was violated: the seed or file, the invariant, the last events of the name, and the line that replays it. */
void violation_print(const struct plan *p, const struct report *r, const char *replay);

/* shrink.c: the smallest plan that was found in which the same invariant fails. */
void plan_shrink(struct plan *p, enum invariant what, bool talk);

/* selftest.c: tests of the simulator itself; prints "N passed, N failed". Returns the number that failed. */
int selftest_run(void);

double sweep_clock(void); /* seconds: the only look at a real clock */

#endif

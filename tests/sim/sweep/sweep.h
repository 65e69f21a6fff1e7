/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs worlds in processes of their own, so that one that crashes or hangs is a finding and not the end. */
#ifndef SIM_SWEEP_H
#define SIM_SWEEP_H

#include "tests/sim/world/world.h"

#include <stdio.h>

#define SWEEP_JOBS_MAX 64
#define HANG_SECONDS   60 /* a world that computes for longer hangs */
#define HANG_WAITS     10 /* and so does one that takes so many times as long by the clock: it computes nothing */

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
/* This process ends by a signal once it has computed for so long, or has not ended by long after that; 0: no more. A loaded machine makes no world hang. */
void hang_after(unsigned seconds);
/* In a child: a crash, or more than HANG_SECONDS, is S21. */
void report_of_child(const struct plan *p, struct report *ret_report);
/* What is known of a world whose process ended with this status (waitpid). */
void report_crash(struct report *ret_report, uint64_t seed, int status);
/* Whole reports through a pipe that many write to. False: all of them have ended. */
bool report_read(int fd, struct report *ret_report);
void report_write(int fd, const struct report *r);

/* Tells what was violated: the seed or file, the invariant, the last events of the name, and the line that replays it. */
void violation_print(const struct plan *p, const struct report *r, const char *replay);

struct sweep {
	uint64_t from, count;
	enum rare only;      /* worlds of this kind; RARE_NONE: of all */
	unsigned jobs;
	bool keep_going;     /* after a violation */
	bool talk;           /* tell each minute how far it is */
	double seconds;      /* begin no world after so long; 0: until `count` have run */
	unsigned hang_after; /* seconds of computing; 0: HANG_SECONDS */
	void (*run)(const struct plan *p, FILE *trace, struct report *ret_report); /* NULL: report_of */
};

#define SWEEP_SEEDS_KEPT 5

/* The violations of one invariant. */
struct sweep_kind {
	uint64_t count;
	uint64_t seed[SWEEP_SEEDS_KEPT]; /* the lowest, in order */
	struct report first;             /* of the lowest */
};

struct sweep_result {
	uint64_t seeds, failed;
	uint64_t hash; /* of all worlds, in whatever order they ended */
	uint64_t next; /* all seeds from the first to this one have run, but for it; only when it keeps going */
	int64_t sim_us, longest_free, longest_flapping, longest_woken;
	struct tally tally;
	double seconds, cpu_seconds; /* of the clock; of all processors together */
	bool interrupted;            /* by SIGINT or SIGTERM */
	struct report first;         /* of the violations, by seed */
	struct sweep_kind kind[INVARIANT_N];
};

/* Each seed is run once, by whichever process is free. Without keep_going the first violation found is that of the lowest seed. */
void sweep_run(const struct sweep *s, struct sweep_result *ret_result);
void sweep_print(const struct sweep_result *r);

/*
 * campaign.c: a sweep that goes on where the last one stopped, as folder/sweep.next says; from: where to begin instead, 0: there, or at a seed drawn from the
 * clock. Tells violations by invariant and leaves a shrunken plan of each in folder/sweep. Returns 0, 1 after a violation, 2 when a file cannot be written.
 */
int campaign_run(const char *folder, struct sweep *s);

/* shrink.c: the smallest plan that was found in which the same invariant fails. */
void plan_shrink(struct plan *p, enum invariant what, bool talk);

/* selftest.c: tests of the simulator itself; prints "N passed, N failed". Returns the number that failed. */
int selftest_run(void);

/* The only looks at real clocks: seconds since some moment, and since 1970. */
double sweep_clock(void);
uint64_t sweep_date(void);

#endif

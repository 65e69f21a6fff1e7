/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs worlds in child processes, so that a world that crashes or hangs is a finding and does not end the sweep. */
#ifndef SIM_SWEEP_H
#define SIM_SWEEP_H

#include "tests/sim/world/world.h"

#include <stdio.h>

#define SWEEP_JOBS_MAX 64
#define HANG_SECONDS   240 /* a world that computes for longer counts as one that hangs */
#define HANG_WAITS     10 /* so does one that takes so many times as long by the clock, without computing */

/* What is kept of a world that ran. */
struct report {
	uint64_t seed, hash;
	enum invariant what;
	int64_t name;
	char text[400];
	int64_t sim_us, longest_free, longest_flapping, longest_woken;
	struct tally tally;
};

/* Runs the world in this process. */
void report_of(const struct plan *p, FILE *trace, struct report *ret_report);
/* Ends this process by a signal when it has computed for so long, or when a multiple of that has passed; 0: never. So a loaded machine makes no world hang. */
void hang_after(unsigned seconds);
/* Runs the world in a child: a crash, or more than HANG_SECONDS, violates S21. */
void report_of_child(const struct plan *p, struct report *ret_report);
/* The report of a world whose process ended with this status (of waitpid). */
void report_crash(struct report *ret_report, uint64_t seed, int status);
/* Whole reports through a pipe with many writers. False: all writers have ended. */
bool report_read(int fd, struct report *ret_report);
void report_write(int fd, const struct report *r);

/* Prints the violated invariant, the seed, the last events of the name, and the command that replays the world. */
void violation_print(const struct plan *p, const struct report *r, const char *replay);

struct sweep {
	uint64_t from, count;
	const void *of;                                                                 /* for `draw` and `found` */
	void (*draw)(const struct sweep *s, uint64_t seed, struct plan *ret_plan);      /* NULL: plan_draw */
	void (*found)(const struct sweep *s, const struct report *r);                   /* told of each violation; NULL: it is printed */
	const char *only;    /* only worlds of this kind; NULL: all worlds */
	unsigned jobs;
	bool keep_going;                                                           /* goes on after a violation */
	bool talk;                                                                 /* prints each minute how far it is */
	double seconds;                                                            /* begins no world after so long; 0: no limit */
	unsigned hang_after;                                                       /* seconds that a world may compute; 0: HANG_SECONDS */
	void (*run)(const struct plan *p, FILE *trace, struct report *ret_report); /* NULL: report_of */
};

#define SWEEP_SEEDS_KEPT 5

/* The violations of one invariant. */
struct sweep_kind {
	uint64_t count;
	uint64_t seed[SWEEP_SEEDS_KEPT]; /* the lowest seeds, in order */
	struct report first;             /* the report of the lowest seed */
};

struct sweep_result {
	uint64_t seeds, failed;
	uint64_t hash; /* of all worlds, whatever their order */
	uint64_t next; /* all seeds below it have run; only with keep_going */
	int64_t sim_us, longest_free, longest_flapping, longest_woken;
	struct tally tally;
	double seconds, cpu_seconds; /* by the clock; of all processors together */
	bool interrupted;            /* by SIGINT or SIGTERM */
	struct report first;         /* the violation with the lowest seed */
	struct sweep_kind kind[INVARIANT_N];
};

/* Runs each seed once. Without keep_going it ends with the violation of the lowest seed. */
void sweep_run(const struct sweep *s, struct sweep_result *ret_result);
void sweep_print(const struct sweep_result *r);

/*
 * campaign.c: a sweep that goes on where the last one stopped, as folder/sweep.next says. s->from: where to begin instead; 0: there, or at a seed drawn from
 * the clock. It prints violations by invariant and leaves a shrunk plan of each in folder/sweep. Returns 0, 1 after a violation, 2 when a file cannot be
 * written.
 */
int campaign_run(const char *folder, struct sweep *s);

/*
 * variations.c: runs s->count variations of each plan from number s->from on. Prints violations by invariant, and leaves the plan of each in the folder.
 * Returns 0, or 1 after a violation.
 */
struct variations {
	const struct plan *plan;
	const char *const *name; /* what each is called: its file, or its seed */
	unsigned plans;
	const char *folder;
};
int variations_run(const struct variations *v, struct sweep *s);

/* shrink.c: replaces the plan by the smallest one found in which the same invariant fails. */
void plan_shrink(struct plan *p, enum invariant what, bool talk);

/* selftest.c: tests of the simulator itself. Prints "N passed, N failed" and returns the number that failed. */
int selftest_run(void);

/* wrap.c: the only functions that read real clocks: seconds since some moment, and seconds since 1970. */
double sweep_clock(void);
int64_t sweep_elapsed_ns(void);
int64_t sweep_processor_ns(void); /* that this thread has used; a system call */
uint64_t sweep_date(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/store/job_keep.c: what the next run knows of the jobs of a run that was killed. REDLOCKD_SEED=n repeats the random one. */
#include "tests/fixture/files.h"
#include "tests/fixture/home_run.h"
#include "tests/fixture/seed.h"

#include "daemon/base/buf.h"
#include "daemon/base/rng.h"
#include "daemon/store/memory_part.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void passes(int64_t us)
{
	home_run.now.us += us;
}

FIXTURE(.setup = home_runs_start, .teardown = home_runs_stop, .seconds = 60)

TEST(what_was_acknowledged_is_there_after_a_kill)
{
	ck_assert_int_eq(home_run_ask("q", "j", "defer", "a", "first", "lock", "0", "10", "n", "0", "peer", "1000000000", "0", KEEP_MS, NULL), 'D');
	ck_assert_int_eq(defer("q", "b", "a payload"), 'D');
	ck_assert_int_eq(home_run_ask("q", "j", "defer", "c", "later", "", "5000", "10", "m", "0", "peer", "1000000000", "0", KEEP_MS, NULL), 'D');
	ck_assert_int_eq(defer("other", "a", "x"), 'D');
	home_run_again();
	ck_assert_uint_eq(home_run.found.jobs.jobs, 4);
	ck_assert_str_eq(jobs_shown("q"), "a due 0 first b due 0 a payload c due 0 later ");
	ck_assert_str_eq(jobs_shown("other"), "a due 0 x ");
	ck_assert_int_eq(take("q", "v1", "3000"), 'J');
	ck_assert(span_starts(home_run.answer.found, SPAN("1:a1:14:lock5:first")));
	ck_assert_int_eq(take("q", "v2", "3000"), 'J');
	ck_assert_int_eq(take("q", "v3", "3000"), 'W');
	passes(5 * SEC);
	ck_assert_int_eq(defer("q", "c", "another"), 'D');
	home_run_again();
	ck_assert_str_eq(jobs_shown("q"), "c due 0 later a leased 0 first b leased 0 a payload ");
}

TEST(a_leased_job_is_nobodys_until_its_lease_is_over_and_the_attempt_counts)
{
	defer("q", "a", "x");
	ck_assert_int_eq(take("q", "v1", "3000"), 'J');
	passes(SEC);
	ck_assert_int_eq(home_run_ask("q", "j", "renew", "v1", "3000", NULL), 'K');
	home_run_again();
	passes(2 * SEC + 900 * MSEC);
	ck_assert_int_eq(take("q", "v2", "3000"), 'W');
	ck_assert_int_eq(home_run_ask("q", "j", "renew", "v1", "100", NULL), 'K');
	home_run_again();
	passes(100 * MSEC);
	ck_assert_int_eq(take("q", "v2", "3000"), 'J');
	ck_assert_str_eq(jobs_shown("q"), "a leased 1 x ");
	ck_assert_int_eq(done("q", "v1"), 'M');
	home_run_again();
	ck_assert_int_eq(done("q", "v2"), 'R');
}

TEST(a_job_that_is_done_never_comes_back_and_an_empty_log_goes)
{
	defer("q", "a", "x");
	defer("q", "b", "y");
	ck_assert_int_eq(take("q", "v1", "3000"), 'J');
	ck_assert_int_eq(done("q", "v1"), 'R');
	home_run_again();
	ck_assert_str_eq(jobs_shown("q"), "b due 0 y ");
	ck_assert_int_eq(take("q", "v2", "3000"), 'J');
	ck_assert_int_eq(done("q", "v2"), 'R');
	ck_assert_int_eq(access(home_run_path("jobs"), F_OK), 0);
	home_run_again();
	ck_assert_int_eq(access(home_run_path("jobs"), F_OK), -1);
	ck_assert_int_eq(home_run_ask("q", "j", "queues", "0", NULL), 'T');
	ck_assert(span_equal(home_run.answer.found, SPAN("2:-1")));
}

TEST(the_dead_are_kept_and_may_be_revived)
{
	defer("q", "a", "x");
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(take("q", "v", "100"), 'J');
		home_run_again();
		passes(100 * MSEC);
		ck_assert_int_eq(take("other", "w", "100"), 'W');
		ck_assert_int_eq(home_run_ask("q", "j", "retry", "v", "0", "3", NULL), 'R');
		home_run_again();
	}
	ck_assert_str_eq(jobs_shown("q"), "a dead 3 x ");
	home_run_again();
	ck_assert_int_eq(home_run_ask("q", "j", "revive", "a", "0", NULL), 'R');
	home_run_again();
	ck_assert_str_eq(jobs_shown("q"), "a due 0 x ");
	ck_assert_int_eq(take("q", "v", "100"), 'J');
	ck_assert_int_eq(home_run_ask("q", "j", "back", "v", "0", NULL), 'R');
	home_run_again();
	ck_assert_str_eq(jobs_shown("q"), "a due 0 x ");
}

/* The clock of the store has jumped, as in another boot: what was left of the lease is left. */
TEST(a_lease_ends_no_sooner_by_another_clock)
{
	defer("q", "a", "x");
	ck_assert_int_eq(take("q", "v1", "3000"), 'J');
	home_run_kill();
	home_run.epoch_us += 10 * SEC;
	home_run.past.jobs.later_ms = 10000;
	home_run_begin();
	home_run.past.jobs.later_ms = 0;
	passes(2900 * MSEC);
	ck_assert_int_eq(take("q", "v2", "3000"), 'W');
	home_run_again();
	ck_assert_int_eq(take("q", "v2", "3000"), 'W');
	passes(100 * MSEC);
	ck_assert_int_eq(take("q", "v2", "3000"), 'J');
}

/* --- random ----------------------------------------------------------------------------------------------------------- */

static void one_operation(struct rng *rng)
{
	char id[16], value[16], queue[8];

	snprintf(queue, sizeof(queue), "q%u", (unsigned)rng_below(rng, 3));
	snprintf(id, sizeof(id), "id%u", (unsigned)rng_below(rng, 30));
	snprintf(value, sizeof(value), "v%u", (unsigned)rng_below(rng, 40));
	switch (rng_below(rng, 8)) {
	case 0:
	case 1:
	case 2:
		defer(queue, id, "a payload of some length, which is written once and not again");
		break;
	case 3:
	case 4:
		take(queue, value, rng_below(rng, 2) ? "50" : "1000");
		break;
	case 5:
		done(queue, value);
		break;
	case 6:
		home_run_ask(queue, "j", rng_below(rng, 2) ? "retry" : "back", value, "20", "3", NULL);
		break;
	default:
		home_run_ask(queue, "j", "revive", id, "10", NULL);
		home_run_ask(queue, "j", "renew", value, "200", NULL);
		break;
	}
}

static char *all_shown(void)
{
	struct buf b = {0};
	static const char *const queue[] = {"q0", "q1", "q2"};

	for (unsigned i = 0; i < 3; i++) {
		const char *shown = jobs_shown(queue[i]);

		buf_printf(&b, "%s: %s", queue[i], shown);
	}
	ck_assert_int_eq(home_run_ask("q0", "j", "queues", "0", NULL), 'T');
	buf_append(&b, home_run.answer.found.p, home_run.answer.found.n);
	buf_append(&b, "", 1);
	return buf_begin(&b);
}

static void live_is_counted(void)
{
	const struct job_store *s = &home_run.memory->home->jobs;
	size_t live = 0, ending = 0;

	for (size_t i = 0; i < s->count; i++)
		for (unsigned k = 0; k < KINDS; k++)
			for (size_t r = 0; r < s->queue[i]->list[k].count; r++) {
				const struct job_row *j = s->queue[i]->list[k].row[r];

				live += job_keep_bytes(s->queue[i]->name, j->id.n + j->value.n + j->lock.n + j->payload.n + j->peer.n);
				ending += k == LEASED ? job_keep_bytes(s->queue[i]->name, j->id.n) : 0;
			}
	ck_assert_uint_eq(s->live, live);
	ck_assert_uint_eq(s->ending, ending);
}

TEST(the_next_run_has_what_this_one_had_whenever_it_is_killed)
{
	uint64_t seed[2] = {seed_pick("jobs_kept"), 1};
	struct rng rng;

	rng_init(&rng, seed);
	for (unsigned i = 0; i < 5000; i++) {
		one_operation(&rng);
		passes((int64_t)rng_below(&rng, 10) * MSEC);
		if (rng_below(&rng, 50) == 0) {
			char *before = all_shown(), *after;

			live_is_counted();
			home_run_again();
			after = all_shown();
			ck_assert_msg(strcmp(before, after) == 0, "seed %llu, operation %u:\n%s\n%s", (unsigned long long)seed[0], i, before, after);
			ck_assert_uint_eq(home_run.found.jobs.log.damaged + home_run.found.jobs.log.torn + home_run.found.jobs.unknown, 0);
			live_is_counted();
			free(before);
			free(after);
		}
	}
}

/* --- the length of the log ----------------------------------------------------------------------------------------------- */

TEST(the_log_stays_a_few_times_as_long_as_what_is_live)
{
	static char payload[1001];
	char id[16];
	int64_t most = 0;

	memset(payload, 'p', sizeof(payload) - 1);
	for (unsigned i = 0; i < 100; i++) {
		snprintf(id, sizeof(id), "live%u", i);
		ck_assert_int_eq(defer("q", id, payload), 'D');
	}
	for (unsigned i = 0; i < 20000; i++) {
		ck_assert_int_eq(defer("busy", "id", payload), 'D');
		ck_assert_int_eq(take("busy", "v", "1000"), 'J');
		ck_assert_int_eq(done("busy", "v"), 'R');
		if (log_bytes() > most)
			most = log_bytes();
	}
	ck_assert_int_le(most, (int64_t)JOBLOG_SNAPSHOT + 2 * (int64_t)JOBLOG_SPARE + 300000);
	ck_assert_int_eq(access(home_run_path("jobs.new"), F_OK), -1);
	home_run_again();
	ck_assert_uint_eq(home_run.found.jobs.jobs, 100);
}

/* Where all is live a snapshot would gain nothing, and stop the daemon. */
TEST(a_log_that_only_grows_is_not_written_again)
{
	static char payload[5001];
	char id[16];
	struct stat before, after;

	memset(payload, 'p', sizeof(payload) - 1);
	defer("q", "first", "x");
	ck_assert_int_eq(stat(home_run_path("jobs"), &before), 0);
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(id, sizeof(id), "id%u", i);
		ck_assert_int_eq(defer("q", id, payload), 'D');
	}
	ck_assert_int_eq(stat(home_run_path("jobs"), &after), 0);
	ck_assert(before.st_ino == after.st_ino && after.st_size > 4 * (int64_t)JOBLOG_SNAPSHOT);
	home_run_again();
	ck_assert_uint_eq(home_run.found.jobs.jobs, 1001);
}

TEST(a_snapshot_that_was_not_finished_counts_for_nothing)
{
	FILE *f = fopen(home_run_path("jobs.new"), "w");

	fputs("half a file", f);
	fclose(f);
	defer("q", "a", "x");
	home_run_again();
	ck_assert_str_eq(jobs_shown("q"), "a due 0 x ");
	ck_assert_int_eq(access(home_run_path("jobs.new"), F_OK), -1);
}

/* --- another process goes on ------------------------------------------------------------------------------------------------- */

TEST(the_log_goes_on_with_the_store)
{
	const uint64_t seed[2] = {1, 1};
	const struct memory_conf conf = {.home = &home_run.files};

	defer("q", "a", "x");
	ck_assert_int_eq(take("q", "v", "3000"), 'J');
	memory_pack(home_run.memory);
	home_files_close(&home_run.files);
	ck_assert_int_eq(home_files_open(&home_run.files, home_run.dir, 99999, seed), 0);
	memory_adopt(home_run.memory, &conf);
	ck_assert_int_eq(memory_go_on_home(home_run.memory, &home_run.files), 0);
	defer("q", "b", "y");
	ck_assert_int_eq(done("q", "v"), 'R');
	home_run_again();
	ck_assert_str_eq(jobs_shown("q"), "b due 0 y ");
}

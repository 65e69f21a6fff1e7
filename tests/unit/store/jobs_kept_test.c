/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/store/job_keep.c: what the next run knows of the jobs of a run that was killed. REDLOCKD_SEED=n repeats the random one. */
#include "tests/fixture/home_run.h"
#include "tests/fixture/seed.h"

#include "daemon/base/buf.h"
#include "daemon/base/rng.h"
#include "daemon/store/memory_key.h"

#include <check.h>
#include <malloc.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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
	ck_assert_uint_eq(home_run.found.jobs, 4);
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

TEST(a_job_that_is_done_never_comes_back)
{
	defer("q", "a", "x");
	defer("q", "b", "y");
	ck_assert_int_eq(take("q", "v1", "3000"), 'J');
	ck_assert_int_eq(done("q", "v1"), 'R');
	home_run_again();
	ck_assert_str_eq(jobs_shown("q"), "b due 0 y ");
	ck_assert_int_eq(take("q", "v2", "3000"), 'J');
	ck_assert_int_eq(done("q", "v2"), 'R');
	home_run_again();
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
	home_run_write();
	home_run_kill();
	home_run.epoch_us += 10 * SEC;
	home_run.later_ms = 10000;
	home_run_begin();
	home_run.later_ms = 0;
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

			home_run_again();
			after = all_shown();
			ck_assert_msg(strcmp(before, after) == 0, "seed %llu, operation %u:\n%s\n%s", (unsigned long long)seed[0], i, before, after);
			ck_assert_int_eq(home_run.found.error | home_run.found.unwritten, 0);
			free(before);
			free(after);
		}
	}
}

TEST(what_is_set_aside_is_told)
{
	defer("q", "a", "x");
	home_run_write();
	ck_assert_int_eq(home_run.file.lost, 0);
	ck_assert_int_eq(truncate(home_run_path("jobs.db"), 0), 0);
	memory_look(home_run.memory);
	ck_assert_int_eq(home_run.file.lost, -ENODATA);
	ck_assert_int_eq(unlink(home_run_path("jobs.db")), 0);
	memory_look(home_run.memory);
	ck_assert_int_eq(home_run.file.lost, -EIDRM);
}

/* Its nonce, for as long as a try of it may come: about a hundred bytes, and no more of the job. */
TEST(a_defer_leaves_little_behind_once_its_job_is_gone)
{
	size_t before = 0;
	char nonce[32];

	for (unsigned i = 0; i < 12000; i++) {
		if (i == 2000)
			before = mallinfo2().uordblks;
		snprintf(nonce, sizeof(nonce), "0123456789abcdef-%010u", i);
		ck_assert_int_eq(home_run_ask("q", "j", "defer", "a", "x", "", "0", "9", nonce, "0", "peer", "1000000000", "0", KEEP_MS, NULL), 'D');
		ck_assert_int_eq(home_run_ask("q", "j", "drop", "a", NULL), 'R');
	}
	ck_assert_uint_le(mallinfo2().uordblks, before + 10000 * (size_t)112);
	home_run.now.us += 16 * SEC;
	for (unsigned i = 0; i < 1000; i++)
		defer("q", "a", "x");
	ck_assert_uint_le(mallinfo2().uordblks, before);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/store/rate.c, home_files.c: what the next run knows of the rate limits of a run that was killed. */
#include "tests/fixture/home_run.h"

#include "daemon/store/keyfile.h"
#include "daemon/store/keyspace.h"
#include "daemon/store/memory_part.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static char rate(const char *name, const char *limit, const char *per_us)
{
	return home_run_ask(name, "r", limit, per_us, "1", "peer", "1000000000", "0", NULL);
}

static char ten_a_minute(void)
{
	return rate("r", "10", "60000000");
}

FIXTURE(.setup = home_runs_start, .teardown = home_runs_stop)

TEST(what_was_consumed_stays_consumed)
{
	for (unsigned i = 0; i < 10; i++) {
		ck_assert_int_eq(ten_a_minute(), 'Y');
		home_run.now.us += SEC;
		home_run_again();
		ck_assert_uint_eq(home_run.found.rates, 1);
	}
	ck_assert_int_eq(ten_a_minute(), 'T');
	home_run.now.us += 50 * SEC;
	ck_assert_int_eq(ten_a_minute(), 'Y');
	ck_assert_int_eq(ten_a_minute(), 'T');
	home_run.now.us += 60 * SEC + 10 * MSEC;
	home_run_again();
	ck_assert_uint_eq(home_run.found.rates, 0);
	ck_assert_int_eq(home_run.found.rates_error, 0);
}

TEST(a_limit_with_many_pairs_is_kept)
{
	for (unsigned i = 0; i < 3000; i++) {
		ck_assert_int_eq(rate("many", "3000", "60000000"), 'Y');
		home_run.now.us += 2 * MSEC;
	}
	home_run_again();
	ck_assert_int_eq(rate("many", "3000", "60000000"), 'T');
	home_run.now.us += 120 * SEC;
	ck_assert_int_eq(rate("many", "3000", "60000000"), 'Y');
}

/* The instants of another boot say nothing, the clock of the store does. */
TEST(in_another_boot_windows_go_on_by_the_clock_of_the_store)
{
	for (unsigned i = 0; i < 10; i++)
		ck_assert_int_eq(ten_a_minute(), 'Y');
	home_run_kill();
	home_run.now.us -= 990 * SEC;
	home_run.epoch_us += 990 * SEC;
	home_run_begin();
	ck_assert_int_eq(ten_a_minute(), 'T');
	home_run.now.us += 60 * SEC;
	ck_assert_int_eq(ten_a_minute(), 'Y');
}

/* As if the run had been killed while it wrote the pairs; until_us above 0: and another bit had been flipped. */
static void tear(int64_t until_us)
{
	uint32_t id = keyfile_id(home_run.files.rates);
	char name[32], bytes[65536];
	ssize_t n;
	int fd;

	home_run_kill();
	snprintf(name, sizeof(name), KEYFILE_RATES "%08x", (unsigned)id);
	fd = open(home_run_path(name), O_RDWR);
	n = pread(fd, bytes, sizeof(bytes), 0);
	for (ssize_t at = 4096 + 64; at + 144 <= n; at += 144) {
		char *state = bytes + at + offsetof(struct key, state);

		if (*state == KEY_WHOLE && until_us > 0)
			memcpy(bytes + at + offsetof(struct key, until), &until_us, sizeof(until_us));
		if (*state == KEY_WHOLE)
			*state = KEY_CHANGING;
	}
	ck_assert_int_eq(pwrite(fd, bytes, (size_t)n, 0), n);
	close(fd);
}

TEST(a_limit_that_is_torn_is_full_until_its_window_is_over)
{
	ck_assert_int_eq(ten_a_minute(), 'Y');
	tear(0);
	home_run.now.us += SEC;
	home_run_begin();
	ck_assert_uint_eq(home_run.found.rates, 1);
	ck_assert_int_eq(ten_a_minute(), 'T');
	ck_assert(span_starts(home_run.answer.found, SPAN("0 590")));
	home_run_again();
	home_run.now.us += 58 * SEC;
	ck_assert_int_eq(ten_a_minute(), 'T');
	home_run.now.us += SEC + 3 * MSEC;
	ck_assert_int_eq(ten_a_minute(), 'Y');
}

TEST(a_limit_whose_end_is_damaged_is_full_for_the_longest_window_at_most)
{
	static const int64_t until_us[] = {INT64_MAX, INT64_MAX - 1, INT64_MAX / 2};

	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(ten_a_minute(), 'Y');
		tear(until_us[i]);
		home_run.past.shift_us = 10 * SEC;
		home_run_begin();
		ck_assert_int_eq(ten_a_minute(), 'T');
		ck_assert(span_equal(home_run.answer.found, SPAN("0 2678400000")));
		home_run.now.us += RATE_WINDOW_MAX;
	}
}

/* A window that no client can have asked for would be as good as for ever. */
TEST(a_limit_of_a_window_that_cannot_be_is_not_taken)
{
	int64_t now_us = home_run.epoch_us + home_run.now.us;
	int64_t pair[5] = {RATE_WINDOW_MAX + 1, 0, now_us, INT64_C(999999999999999), 0}; /* behind them the length of the peer, 0 */
	struct rates *r = &home_run.memory->home->rates;
	const struct span value = {(const char *)pair, 4 * sizeof(*pair) + 1};

	ck_assert(!rate_put(r, home_run.epoch_us, SPAN("r"), value, home_run.now, home_run.now));
	ck_assert_int_eq(ten_a_minute(), 'Y');
	pair[0] = RATE_WINDOW_MAX;
	pair[2] = now_us + 2 * RATE_WINDOW_MAX;
	ck_assert(rate_put(r, home_run.epoch_us, SPAN("s"), value, home_run.now, home_run.now));
	home_run.now.us += RATE_WINDOW_MAX;
	ck_assert_int_eq(rate("s", "10", "60000000"), 'Y');
}

TEST(a_torn_limit_of_an_unknown_clock_begins_anew)
{
	ck_assert_int_eq(ten_a_minute(), 'Y');
	tear(0);
	home_run.past.known = false;
	home_run_begin();
	ck_assert_uint_eq(home_run.found.rates, 0);
	ck_assert_int_eq(ten_a_minute(), 'Y');
}

TEST(a_damaged_file_is_told_and_limits_begin_anew)
{
	char name[32];
	int fd;

	ck_assert_int_eq(ten_a_minute(), 'Y');
	snprintf(name, sizeof(name), KEYFILE_RATES "%08x", (unsigned)keyfile_id(home_run.files.rates));
	home_run_kill();
	fd = open(home_run_path(name), O_RDWR);
	ck_assert_int_eq(pwrite(fd, "x", 1, 4096), 1);
	close(fd);
	home_run_begin();
	ck_assert_int_ne(home_run.found.rates_error, 0);
	ck_assert_int_eq(ten_a_minute(), 'Y');
	home_run_again();
	ck_assert_int_eq(home_run.found.rates_error, 0);
}

TEST(limits_go_on_with_the_store)
{
	const uint64_t seed[2] = {1, 1};
	const struct memory_conf conf = {.home = &home_run.files};

	for (unsigned i = 0; i < 9; i++)
		ck_assert_int_eq(ten_a_minute(), 'Y');
	memory_pack(home_run.memory);
	home_files_close(&home_run.files);
	ck_assert_int_eq(home_files_open(&home_run.files, home_run.dir, 99999, seed), 0);
	memory_adopt(home_run.memory, &conf);
	ck_assert_int_eq(memory_go_on_home(home_run.memory, &home_run.files), 0);
	ck_assert_int_eq(ten_a_minute(), 'Y');
	home_run_again();
	ck_assert_int_eq(ten_a_minute(), 'T');
}

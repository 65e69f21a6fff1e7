/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/store/joblog.c, job_keep.c: a log that is torn, cut or damaged anywhere, and a run that is killed at each instruction. */
#include "tests/fixture/files.h"
#include "tests/fixture/home_run.h"

#include "daemon/base/buf.h"
#include "daemon/base/file.h"
#include "daemon/base/pack.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEADER 64
#define JOBS   4

static struct buf sound;   /* the file */
static size_t end[JOBS + 1]; /* of the frames, after each DEFER */

static void file_put(size_t n)
{
	int fd = open(home_run_path("jobs"), O_RDWR | O_CREAT | O_TRUNC, 0600);

	ck_assert_int_eq(write(fd, buf_begin(&sound), n), (ssize_t)n);
	close(fd);
}

static void start(void)
{
	char id[16];
	int fd;

	home_runs_start();
	end[0] = HEADER;
	for (unsigned i = 0; i < JOBS; i++) {
		snprintf(id, sizeof(id), "id%02u", i);
		ck_assert_int_eq(defer("q", id, "payload"), 'D');
		end[i + 1] = home_run.files.jobs.end;
	}
	home_run_kill();
	buf_clear(&sound);
	fd = open(home_run_path("jobs"), O_RDONLY);
	ck_assert_int_eq(file_read_whole(fd, JOBLOG_MOST, &sound), 0);
	close(fd);
}

static void stop(void)
{
	folder_remove(home_run.dir);
	buf_release(&sound);
}

/* How many records end before this byte. */
static unsigned whole_before(size_t at)
{
	unsigned n = 0;

	while (n < JOBS && end[n + 1] <= at)
		n++;
	return n;
}

static size_t record_length(unsigned i)
{
	return get_u32(buf_begin(&sound) + end[i]);
}

/* The padding of the last record belongs to none. */
static unsigned sound_before(size_t at)
{
	unsigned n = whole_before(at);

	return n < JOBS && end[n] + 16 + record_length(n) <= at ? n + 1 : n;
}

static void next_run(void)
{
	home_run_begin();
}

/* Behind a record that is torn the log goes on, and what comes is kept. */
static void next_runs_have(unsigned jobs, const char *what, size_t at)
{
	next_run();
	ck_assert_msg(home_run.found.jobs.jobs == jobs, "%s at %zu: %zu jobs of %u", what, at, home_run.found.jobs.jobs, jobs);
	ck_assert_msg(home_run.found.jobs.log.damaged == 0, "%s at %zu: damaged", what, at);
	ck_assert_int_eq(defer("q", "new", "x"), 'D');
	home_run_again();
	ck_assert_msg(home_run.found.jobs.jobs == jobs + 1 && home_run.found.jobs.log.torn + home_run.found.jobs.log.damaged == 0, "%s at %zu: then %zu jobs",
	              what, at, home_run.found.jobs.jobs);
	home_run_kill();
}

START_TEST(a_log_that_is_cut_at_any_byte_has_what_stands_before)
{
	for (size_t n = HEADER; n <= end[JOBS]; n++) {
		file_put(n);
		next_runs_have(sound_before(n), "cut", n);
	}
}
END_TEST

START_TEST(a_log_that_is_torn_at_any_byte_has_what_stands_before)
{
	struct buf whole = sound;

	for (size_t n = HEADER; n <= end[JOBS]; n++) {
		sound = (struct buf){0};
		buf_append(&sound, buf_begin(&whole), n);
		memset(buf_reserve(&sound, buf_length(&whole) - n), 0, buf_length(&whole) - n);
		buf_commit(&sound, buf_length(&whole) - n);
		file_put(buf_length(&sound));
		buf_release(&sound);
		sound = whole;
		/* Of a record that ends in zeros all may be there. */
		next_run();
		ck_assert_uint_ge(home_run.found.jobs.jobs, sound_before(n));
		ck_assert_uint_le(home_run.found.jobs.jobs, sound_before(n) + 1);
		ck_assert_uint_eq(home_run.found.jobs.log.damaged, 0);
		home_run_kill();
	}
}
END_TEST

START_TEST(a_log_without_its_header_is_set_aside)
{
	for (size_t n = 0; n < HEADER; n++) {
		file_put(n);
		next_run();
		ck_assert_int_ne(home_run.found.jobs.log.error, 0);
		ck_assert_uint_eq(home_run.found.jobs.jobs, 0);
		ck_assert_int_eq(access(home_run_path("jobs.bad"), F_OK), 0);
		ck_assert_int_eq(defer("q", "new", "x"), 'D');
		home_run_kill();
	}
}
END_TEST

/* The last one is taken for one that was torn: nobody can tell. */
START_TEST(a_flipped_bit_costs_one_record_and_is_told)
{
	for (size_t bit = 8 * HEADER; bit < 8 * end[JOBS]; bit += 7) {
		size_t at = bit / 8;
		unsigned i = whole_before(at);
		bool pad = at >= end[i] + 16 + record_length(i);

		file_put(buf_length(&sound));
		file_flip(home_run_path("jobs"), (off_t)bit);
		next_run();
		ck_assert_msg(home_run.found.jobs.jobs == (pad ? JOBS : JOBS - 1), "bit %zu: %zu jobs", bit, home_run.found.jobs.jobs);
		ck_assert_msg((home_run.found.jobs.log.damaged > 0) == (!pad && i < JOBS - 1), "bit %zu", bit);
		home_run_kill();
	}
}
END_TEST

/* A job whose lease is not known may be in somebody's hands. */
START_TEST(of_a_damaged_log_no_job_is_handed_out_before_all_leases_are_over)
{
	file_put(buf_length(&sound));
	file_flip(home_run_path("jobs"), (off_t)(8 * (end[1] + 20)));
	home_run.past.jobs.hold_ms = (home_run.epoch_us + home_run.now.us) / 1000 + 5000;
	next_run();
	ck_assert_uint_gt(home_run.found.jobs.log.damaged, 0);
	ck_assert_int_eq(access(home_run_path("jobs.bad"), F_OK), 0);
	ck_assert_int_eq(take("q", "v", "1000"), 'W');
	home_run.now.us += 4999 * MSEC;
	home_run_again(); /* the log is whole again, and says so */
	ck_assert_uint_eq(home_run.found.jobs.log.damaged, 0);
	ck_assert_int_eq(take("q", "v", "1000"), 'W');
	home_run.now.us += MSEC;
	ck_assert_int_eq(take("q", "v", "1000"), 'J');
	home_run_kill();
}
END_TEST

/* A frame in a payload is none, wherever it stands. */
START_TEST(what_a_client_says_is_never_taken_for_a_record)
{
	struct joblog l;
	struct joblog_found found;
	const uint64_t seed[2] = {5, 6};
	int dir = open(home_run.dir, O_RDONLY);
	size_t n = end[1] - end[0];

	file_put(buf_length(&sound));
	next_run();
	for (unsigned shift = 0; shift < 8; shift++) { /* a record, as it would stand in another log */
		char *at;

		ck_assert_int_eq(joblog_room(&home_run.files.jobs, joblog_bytes(n + shift), 0), 0);
		at = joblog_begin(&home_run.files.jobs);
		memset(at, 'x', shift);
		memcpy(at + shift, buf_begin(&sound) + end[0], n);
		put_u64(at + shift + 8, checksum(at + shift + 16, record_length(0)));
		joblog_end(&home_run.files.jobs, n + shift);
		memset(home_run.files.jobs.at + home_run.files.jobs.end - joblog_bytes(n + shift), 0, 8); /* the outer one is not whole */
	}
	home_run_kill();
	joblog_init(&l, dir, seed);
	ck_assert(joblog_open(&l, NULL, NULL, &found));
	ck_assert_uint_eq(found.records, JOBS);
	joblog_close(&l);
	close(dir);
}
END_TEST

/* --- killed ------------------------------------------------------------------------------------------------------------ */

/* What the child does between two stops, and what the next run may find. */
static const struct story {
	const char *what;
	void (*before)(void);
	void (*change)(void);
	const char *was, *is;
} stories[];

static void nothing(void)
{
}

static void defer_one(void)
{
	defer("q", "a", "x");
}

static void defer_two(void)
{
	defer("q", "a", "x");
	defer("q", "b", "y");
}

static void defer_other(void)
{
	defer("q", "b", "y");
}

static void take_one(void)
{
	take("q", "v", "1000");
}

static void taken(void)
{
	defer_two();
	take_one();
}

static void end_it(void)
{
	done("q", "v");
}

static void fail_it(void)
{
	home_run_ask("q", "j", "retry", "v", "0", "3", NULL);
}

/* Less than half of the log is live. */
static void next_is_snapshot(void)
{
	defer_two();
	for (unsigned i = 0; i < 10; i++) {
		take_one();
		home_run_ask("q", "j", "back", "v", "0", NULL);
	}
	take_one();
	home_run.files.jobs.snapshot_at = 0;
}

static const struct story stories[] = {
	{"the first DEFER", nothing, defer_one, "", "a due 0 x "},
	{"a DEFER", defer_one, defer_other, "a due 0 x ", "a due 0 x b due 0 y "},
	{"a TAKE", defer_two, take_one, "a due 0 x b due 0 y ", "b due 0 y a leased 0 x "},
	{"a DONE", taken, end_it, "b due 0 y a leased 0 x ", "b due 0 y "},
	{"a RETRY", taken, fail_it, "b due 0 y a leased 0 x ", "a due 1 x b due 0 y "},
	{"a snapshot", next_is_snapshot, end_it, "b due 0 y a leased 0 x ", "b due 0 y "},
};

static void child_run(const struct story *s)
{
	home_run_begin();
	s->before();
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	s->change();
	if (home_run.files.jobs.snapshot_at != 0)
		raise(SIGSTOP);
	_exit(0);
}

static void file_copy(const char *from, const char *to, const char *file)
{
	struct buf b = {0};
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", from, file);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return;
	ck_assert_int_eq(file_read_whole(fd, JOBLOG_MOST, &b), 0);
	close(fd);
	snprintf(path, sizeof(path), "%s/%s", to, file);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	ck_assert_int_eq(write(fd, buf_begin(&b), buf_length(&b)), (ssize_t)buf_length(&b));
	close(fd);
	buf_release(&b);
}

/* What a run would find that began at this moment. */
static void found_now(char out[256])
{
	char copy[64] = "/dev/shm/home.XXXXXX", here[64];

	strcpy(here, home_run.dir);
	ck_assert_ptr_nonnull(mkdtemp(copy));
	file_copy(here, copy, "jobs");
	file_copy(here, copy, "jobs.new");
	strcpy(home_run.dir, copy);
	home_run_begin();
	snprintf(out, 256, "%s", jobs_shown("q"));
	ck_assert_uint_eq(home_run.found.jobs.log.damaged + home_run.found.jobs.unknown, 0);
	ck_assert_int_eq(home_run.found.jobs.log.error, 0);
	home_run_kill();
	folder_remove(copy);
	strcpy(home_run.dir, here);
}

START_TEST(a_run_may_be_killed_anywhere)
{
	const struct story *s = &stories[_i];
	bool changed = false;
	int status = 0;
	unsigned steps = 0;
	char found[256];
	pid_t child;

	unlink(home_run_path("jobs"));
	child = fork();
	if (child == 0)
		child_run(s);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	do {
		if (steps++ % 97 == 0) { /* another place in each story: they differ in length */
			found_now(found);
			ck_assert_msg(strcmp(found, s->is) == 0 || (!changed && strcmp(found, s->was) == 0), "%s, step %u: %s", s->what, steps, found);
			changed |= strcmp(found, s->was) != 0;
		}
		ck_assert_int_eq(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert(WIFSTOPPED(status));
	} while (WSTOPSIG(status) == SIGTRAP);
	ck_assert_uint_gt(steps, 500);
	found_now(found);
	ck_assert_str_eq(found, s->is);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
}
END_TEST

Suite *joblog_suite(void)
{
	Suite *s = suite_create("joblog");
	TCase *c = tcase_create("damage"), *k = tcase_create("killed");

	tcase_add_checked_fixture(c, start, stop);
	tcase_set_timeout(c, 60);
	tcase_add_test(c, a_log_that_is_cut_at_any_byte_has_what_stands_before);
	tcase_add_test(c, a_log_that_is_torn_at_any_byte_has_what_stands_before);
	tcase_add_test(c, a_log_without_its_header_is_set_aside);
	tcase_add_test(c, a_flipped_bit_costs_one_record_and_is_told);
	tcase_add_test(c, of_a_damaged_log_no_job_is_handed_out_before_all_leases_are_over);
	tcase_add_test(c, what_a_client_says_is_never_taken_for_a_record);
	suite_add_tcase(s, c);
	tcase_add_checked_fixture(k, start, stop);
	tcase_set_timeout(k, 60);
	tcase_add_loop_test(k, a_run_may_be_killed_anywhere, 0, sizeof(stories) / sizeof(*stories));
	suite_add_tcase(s, k);
	return s;
}

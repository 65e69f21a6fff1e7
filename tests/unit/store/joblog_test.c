/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/store/joblog.c, job_keep.c: a log that is torn, cut or damaged anywhere. */
#include "tests/fixture/files.h"
#include "tests/fixture/home_run.h"

#include "daemon/base/buf.h"
#include "daemon/base/file.h"
#include "daemon/base/pack.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
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

FIXTURE(.setup = start, .teardown = stop, .seconds = 60)

TEST(a_log_that_is_cut_at_any_byte_has_what_stands_before)
{
	for (size_t n = HEADER; n <= end[JOBS]; n++) {
		file_put(n);
		next_runs_have(sound_before(n), "cut", n);
	}
}

TEST(a_log_that_is_torn_at_any_byte_has_what_stands_before)
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

TEST(a_log_without_its_header_is_set_aside)
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

/* The next start may find what this one lacks. */
TEST(a_log_that_cannot_be_opened_for_now_stays)
{
	static const uint64_t seed[2];
	int dir = open(home_run.dir, O_RDONLY | O_DIRECTORY);
	struct joblog log;
	struct joblog_found found;
	struct rlimit before, none;

	file_put(buf_length(&sound));
	joblog_init(&log, dir, seed);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	ck_assert(!joblog_open(&log, NULL, NULL, &found));
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert_int_eq(found.error, -EMFILE);
	ck_assert(found.stays);
	ck_assert_int_ne(access(home_run_path("jobs.bad"), F_OK), 0);
	close(dir);
	next_run();
	ck_assert_uint_eq(home_run.found.jobs.jobs, JOBS);
	home_run_kill();
}

/* A file of zeros may say that it has a GiB. */
TEST(what_is_no_log_gets_no_space)
{
	int fd = open(home_run_path("jobs"), O_RDWR | O_CREAT | O_TRUNC, 0600);
	struct stat st;

	ck_assert_int_eq(ftruncate(fd, 1 << 24), 0);
	next_run();
	ck_assert_int_eq(home_run.found.jobs.log.error, -EBADMSG);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(st.st_blocks, 0);
	close(fd);
	home_run_kill();
}

/* The last one is taken for one that was torn: nobody can tell. */
TEST(a_flipped_bit_costs_one_record_and_is_told)
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

/* A job whose lease is not known may be in somebody's hands. */
TEST(of_a_damaged_log_no_job_is_handed_out_before_all_leases_are_over)
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

/* A frame in a payload is none, wherever it stands. */
TEST(what_a_client_says_is_never_taken_for_a_record)
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

/* Each head of a record that is none costs the reader no more than the longest record would. */
TEST(what_is_longer_than_any_record_is_none)
{
	struct joblog *l = &home_run.files.jobs;
	static const size_t longer[] = {0, 1, 100000};

	for (unsigned i = 0; i < 3; i++) {
		size_t n = JOBLOG_RECORD + longer[i];
		uint64_t word;
		char *frame;

		file_put(buf_length(&sound));
		next_run();
		ck_assert_int_eq(joblog_room(l, joblog_bytes(n), 0), 0);
		frame = l->at + l->end;
		memset(joblog_begin(l), 'x', n);
		put_u32(frame, (uint32_t)n);
		put_u64((char *)&word, checksum(frame, 4));
		memcpy(frame + 4, &word, 4);
		put_u64(frame + 8, siphash(l->file_seed, frame + 16, n));
		home_run_again();
		ck_assert_uint_eq(home_run.found.jobs.log.records, JOBS + (longer[i] == 0));
		ck_assert((home_run.found.jobs.log.torn > 0) == (longer[i] > 0));
		home_run_kill();
	}
}

/* They become due in the order in which they were, whatever their ids, and there may be many of them. */
TEST(of_a_damaged_log_jobs_keep_their_order)
{
	enum { MANY = 100000 };
	int64_t hold_ms;
	char id[16];

	file_put(buf_length(&sound));
	next_run();
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(id, sizeof(id), "%06u", MANY - i);
		ck_assert_int_eq(defer("many", id, "x"), 'D');
		home_run.now.us += MSEC;
	}
	home_run_kill();
	file_flip(home_run_path("jobs"), (off_t)(8 * (end[1] + 20)));
	hold_ms = (home_run.epoch_us + home_run.now.us) / 1000 + 5000;
	home_run.past.jobs.hold_ms = hold_ms;
	next_run();
	ck_assert_uint_gt(home_run.found.jobs.log.damaged, 0);
	home_run_again();
	home_run.now.us = hold_ms * 1000 - home_run.epoch_us - MSEC;
	ck_assert_int_eq(take("many", "v", "1000"), 'W');
	for (unsigned i = 0; i < 1000; i++) {
		home_run.now.us += MSEC;
		ck_assert_int_eq(take("many", "v", "1000000"), 'J');
		snprintf(id, sizeof(id), "6:%06u", MANY - i);
		ck_assert_msg(span_starts(home_run.answer.found, span_of(id)), "job %u: %.*s", i, 10, home_run.answer.found.p);
	}
	home_run_kill();
}

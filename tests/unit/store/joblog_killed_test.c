/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/store/joblog.c, job_keep.c: a run that is killed at each instruction of a change, and what the next one finds. */
#include "tests/fixture/files.h"
#include "tests/fixture/home_run.h"

#include "daemon/base/buf.h"
#include "daemon/base/file.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static void start(void)
{
	home_runs_start();
	home_run_kill();
}

static void stop(void)
{
	folder_remove(home_run.dir);
}

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

FIXTURE(.setup = start, .teardown = stop, .seconds = 60)

LOOP_TEST(a_run_may_be_killed_anywhere, sizeof(stories) / sizeof(*stories))
{
	const struct story *s = &stories[_i];
	bool changed = false;
	int status = 0;
	unsigned steps = 0;
	char found[256];
	pid_t child;

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

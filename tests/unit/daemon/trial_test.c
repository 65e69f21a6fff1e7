/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/restart/trial.c, with a script as the program on disk: what its check says, and one that never ends. */
#include "daemon/restart/trial.h"

#include "daemon/base/clock.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char file[64], said[TRIAL_OUTPUT_MAX];
static struct program image;
static struct trial t;
static const char *why;

/* Writes a file of these words. */
static void on_disk(const char *words)
{
	static char name[] = "redlockd", first[] = "--config", second[] = "x.yaml";
	static char *const argv[] = {name, first, second, NULL};
	FILE *out = fopen(file, "w");

	fprintf(out, "#!/bin/sh\n%s\n", words);
	fclose(out);
	chmod(file, 0755);
	image.argv = argv;
	snprintf(image.path, sizeof(image.path), "%s", file);
}

static void setup(void)
{
	int fd;

	snprintf(file, sizeof(file), "/tmp/trial-test-XXXXXX");
	fd = mkstemp(file);
	ck_assert_int_ge(fd, 0);
	close(fd);
	trial_init(&t);
	why = "";
}

static void teardown(void)
{
	trial_end(&t);
	unlink(file);
}

static enum verdict verdict_with(const char *words, unsigned passed)
{
	struct instant now = clock_boottime();
	enum verdict v;

	on_disk(words);
	ck_assert_int_eq(trial_begin(&t, &image, passed, now), 0);
	while ((v = trial_look(&t, now, said, &why)) == TRIAL_UNDER_WAY)
		poll(NULL, 0, 1);
	ck_assert_int_eq(t.pid, 0);
	return v;
}

static enum verdict verdict_of(const char *words)
{
	return verdict_with(words, 0);
}

FIXTURE(.setup = setup, .teardown = teardown)

TEST(a_program_that_finds_nothing_wrong_passes)
{
	ck_assert_int_eq(verdict_of("exit 0"), TRIAL_PASSED);
}

TEST(the_check_comes_before_the_arguments_of_the_daemon)
{
	ck_assert_int_eq(verdict_of("[ \"$*\" = '--check-config --quiet --trial --config x.yaml' ]"), TRIAL_PASSED);
	ck_assert_int_eq(verdict_with("[ \"$*\" = '--check-config --quiet --trial --passed=6 --config x.yaml' ]", 6), TRIAL_PASSED);
}

TEST(what_a_check_says_is_kept)
{
	ck_assert_int_eq(verdict_of("echo out; echo mistake >&2; exit 78"), TRIAL_FAILED);
	ck_assert_str_eq(said, "out\nmistake\n");
	ck_assert_str_eq(why, "the configuration has a mistake");
	ck_assert_int_eq(verdict_of("exit 1"), TRIAL_FAILED);
	ck_assert_str_eq(why, "it does not start");
	ck_assert_int_eq(verdict_of("kill -SEGV $$"), TRIAL_FAILED);
	ck_assert_str_eq(why, "it was ended by a signal");
}

TEST(a_next_process_without_a_quorum_is_told_apart)
{
	ck_assert_int_eq(verdict_of("echo why; exit 75"), TRIAL_NO_QUORUM);
	ck_assert_str_eq(said, "why\n");
	ck_assert_str_eq(why, "too few servers would take its connections");
}

TEST(a_check_that_says_too_much_is_cut)
{
	ck_assert_int_eq(verdict_of("yes | head -c 100000; exit 78"), TRIAL_FAILED);
	ck_assert_uint_eq(strlen(said), TRIAL_OUTPUT_MAX - 1);
}

TEST(a_program_that_is_none_cannot_be_tried)
{
	snprintf(image.path, sizeof(image.path), "/nonexistent/redlockd");
	image.argv = (char *const[]){file, NULL};
	ck_assert_int_eq(trial_begin(&t, &image, 0, clock_boottime()), -ENOENT);
	ck_assert_int_eq(t.pid, 0);
	image.path[0] = '\0';
	ck_assert_int_eq(trial_begin(&t, &image, 0, clock_boottime()), -ENOENT);
}

TEST(a_check_that_takes_too_long_is_ended)
{
	struct instant now = clock_boottime();
	pid_t pid;

	on_disk("exec sleep 1000");
	ck_assert_int_eq(trial_begin(&t, &image, 0, now), 0);
	pid = t.pid;
	ck_assert_int_eq(trial_look(&t, instant_add(now, TRIAL_US - 1), said, &why), TRIAL_UNDER_WAY);
	ck_assert_int_eq(trial_look(&t, instant_add(now, TRIAL_US), said, &why), TRIAL_FAILED);
	ck_assert_str_eq(why, "its check takes too long");
	ck_assert_int_eq(kill(pid, 0), -1);
}

TEST(a_trial_that_nobody_wants_any_more_is_ended)
{
	pid_t pid;

	on_disk("exec sleep 1000");
	ck_assert_int_eq(trial_begin(&t, &image, 0, clock_boottime()), 0);
	pid = t.pid;
	trial_end(&t);
	ck_assert_int_eq(kill(pid, 0), -1);
	trial_end(&t);
}

/* The daemon blocks and ignores some; a child that does could not be ended by its user. */
TEST(a_check_runs_with_all_signals)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	signal(SIGUSR1, SIG_IGN);
	ck_assert_int_eq(verdict_of("grep -q 'SigBlk:.*0000000$' /proc/self/status && grep -q 'SigIgn:.*0000000$' /proc/self/status"), TRIAL_PASSED);
}

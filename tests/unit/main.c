/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs the suites of suites.def, or those named on the command line, each in a process of its own and twice as many at a time as there are processors, since
 * the long ones mostly wait. Prints what they said and what failed, and then "N passed, N failed". With CK_FORK=no all is done here, for a debugger.
 * A test has a process of its own. With UNIT_SHARED=1 those of a suite share one: with sanitizers a process costs fifty times what most tests do.
 * No suite runs twice.
 */
#include "tests/unit/suites.h"

#include <stdbool.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct tally {
	int passed, failed;
	bool told;
};

struct job {
	const char *name;
	const char *file;
	bool processes;
	bool wanted;
	pid_t pid;
	FILE *said;
	struct tally *tally; /* in memory that the child shares */
};

static struct job jobs[] = {
#define SUITE(folder, noun)              {.name = #noun, .file = "tests/" #folder "/" #noun "_test.c"},
#define SUITE_OF_PROCESSES(folder, noun) {.name = #noun, .file = "tests/" #folder "/" #noun "_test.c", .processes = true},
#include "tests/unit/suites.def"
#undef SUITE
#undef SUITE_OF_PROCESSES
};

#define JOBS (sizeof(jobs) / sizeof(jobs[0]))

static bool tests_share_a_process;
static struct unit_row *rows;

void unit_row_add(struct unit_row *row)
{
	row->next = rows;
	rows = row;
}

/* The next one of the file, in the order of its lines; NULL: none, or, of a selection of the suites, it is not linked. */
static const struct unit_row *row_behind(const char *file, int line)
{
	const struct unit_row *next = NULL;

	for (const struct unit_row *row = rows; row; row = row->next)
		if (row->test.line > line && (!next || row->test.line < next->test.line) && !strcmp(row->test.file, file))
			next = row;
	return next;
}

static bool rows_have_suites(void)
{
	size_t i;

	for (const struct unit_row *row = rows; row; row = row->next) {
		for (i = 0; i < JOBS && strcmp(jobs[i].file, row->test.file) != 0; i++)
			;
		if (i == JOBS) {
			fprintf(stderr, "unit: %s is not in suites.def\n", row->test.file);
			return false;
		}
	}
	return true;
}

/* Tests of one fixture are a case. */
static Suite *job_suite(const struct job *job)
{
	Suite *suite = suite_create(job->name);
	TCase *tests = NULL;

	for (const struct unit_row *row = NULL; (row = row_behind(job->file, row ? row->test.line : 0));) {
		if (!row->test.fn || !tests) {
			tests = tcase_create(job->name);
			tcase_add_unchecked_fixture(tests, row->before_all, row->after_all);
			tcase_add_checked_fixture(tests, row->setup, row->teardown);
			if (row->seconds > 0)
				tcase_set_timeout(tests, row->seconds);
			suite_add_tcase(suite, tests);
		}
		if (row->test.fn)
			tcase_add_loop_test_raise_signal(tests, &row->test, row->signal, row->from, row->to);
	}
	return suite;
}

static int jobs_choose(int argc, char **argv)
{
	size_t i;
	int arg;

	for (arg = 1; arg < argc; arg++) {
		for (i = 0; i < JOBS && (!row_behind(jobs[i].file, 0) || strcmp(jobs[i].name, argv[arg]) != 0); i++)
			;
		if (i == JOBS) {
			fprintf(stderr, "unit: no suite '%s'; there are:", argv[arg]);
			for (i = 0; i < JOBS; i++)
				fprintf(stderr, " %s", row_behind(jobs[i].file, 0) ? jobs[i].name : "");
			fprintf(stderr, "\n");
			return -1;
		}
		jobs[i].wanted = true;
	}
	for (i = 0; i < JOBS && argc < 2; i++)
		jobs[i].wanted = row_behind(jobs[i].file, 0) != NULL;
	return 0;
}

static void job_run(struct job *job)
{
	SRunner *runner = srunner_create(job_suite(job));

	if (tests_share_a_process && !job->processes)
		srunner_set_fork_status(runner, CK_NOFORK);
	srunner_run_all(runner, CK_SILENT);
	job->tally->failed = srunner_ntests_failed(runner);
	job->tally->passed = srunner_ntests_run(runner) - job->tally->failed;
	job->tally->told = true;
	if (job->tally->failed)
		srunner_print(runner, CK_NORMAL);
	srunner_free(runner);
}

static void job_start(struct job *job)
{
	job->said = tmpfile();
	fflush(NULL);
	job->pid = fork();
	if (job->pid < 0 || !job->said) {
		perror("unit");
		exit(EXIT_FAILURE);
	}
	if (job->pid)
		return;
	dup2(fileno(job->said), STDOUT_FILENO);
	dup2(fileno(job->said), STDERR_FILENO);
	job_run(job);
	exit(EXIT_SUCCESS);
}

/* Waits for any child, and shows its output in one piece. */
static void job_reap(void)
{
	int status, c;
	pid_t pid = wait(&status);
	size_t i;

	for (i = 0; i < JOBS && jobs[i].pid != pid; i++)
		;
	if (i == JOBS)
		return;
	jobs[i].pid = 0; /* a later suite may have the same */
	rewind(jobs[i].said);
	while ((c = getc(jobs[i].said)) != EOF)
		putchar(c);
	fclose(jobs[i].said);
	if (jobs[i].tally->told && !status)
		return;
	printf("%s: the suite ended with status 0x%x\n", jobs[i].name, (unsigned)status);
	jobs[i].tally->failed++;
}

static void jobs_run(long at_a_time)
{
	long running = 0;
	size_t i;

	for (i = 0; i < JOBS; i++) {
		if (!jobs[i].wanted)
			continue;
		if (running == at_a_time) {
			job_reap();
			running--;
		}
		job_start(&jobs[i]);
		running++;
	}
	while (running--)
		job_reap();
}

/* A shell that runs the tests in the background may ignore these signals, and what is ignored stays so in all that the tests start. */
static void signals_restore(void)
{
	static const int number[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGPIPE};

	for (size_t i = 0; i < sizeof(number) / sizeof(*number); i++)
		signal(number[i], SIG_DFL);
}

int main(int argc, char **argv)
{
	const char *fork_wanted = getenv("CK_FORK");
	struct tally *tallies = mmap(NULL, JOBS * sizeof(*tallies), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int passed = 0, failed = 0;
	size_t i;

	signals_restore();
	tests_share_a_process = getenv("UNIT_SHARED") != NULL;
	if (tallies == MAP_FAILED || !rows_have_suites() || jobs_choose(argc, argv))
		return 2;
	for (i = 0; i < JOBS; i++)
		jobs[i].tally = &tallies[i];
	if (fork_wanted && !strcmp(fork_wanted, "no")) {
		for (i = 0; i < JOBS; i++)
			if (jobs[i].wanted)
				job_run(&jobs[i]);
	} else {
		jobs_run(2 * sysconf(_SC_NPROCESSORS_ONLN));
	}
	for (i = 0; i < JOBS; i++) {
		passed += tallies[i].passed;
		failed += tallies[i].failed;
	}
	printf("%d passed, %d failed\n", passed, failed);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client/cli/run/run.c, locks_held.c and waiting.c there: jobs and their commands, against a scripted daemon that goes and comes back. A job whose command has
 * succeeded is done once, and no command is stopped for a job that is still held.
 */
#include "client/cli/io/invocation.h"
#include "client/cli/run/waiting.h"
#include "tests/fixture/client_of_fake.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS 12000
#define PATIENCE_S 12
#define GRACE  "< HELLO 1 name=\"redlock work \n> OK proto=1 session=7 secret=s7\n"
#define TAKEN  GRACE "< TAKE q wait=\n> OK queue=q job=x attempt=1 valid_ms=9000 ttl_ms=9000 payload=p\n" CHECKED("9000")
#define BRIEF  GRACE "< TAKE q wait=\n> OK queue=q job=x attempt=1 valid_ms=900 ttl_ms=900 payload=p\n" CHECKED("900")
#define RESUME "< RESUME 7 s7$\n> OK session=7 n=0\n"
#define DONE   "< DONE x queue=q$\n"
#define QUIT   "< QUIT$\n> OK\n"
#define NO_JOB "+\n" GRACE "< TAKE q wait=\n> TIMEOUT queue=q\n" QUIT

#define CHECKED(ms) "< CHECK q job=x$\n> OK queue=q job=x attempt=1 valid_ms=" ms "\n"

/* A worker whose daemon has gone for good would wait for it without end. */
static pid_t patience_begin(pid_t redlock)
{
	pid_t pid = fork();

	if (pid == 0) {
		sleep(PATIENCE_S);
		kill(redlock, SIGKILL);
		_exit(0);
	}
	return pid;
}

static void work_says(const char *script, const char *command, const char *complaint)
{
	struct outcome o;
	pid_t redlock, patience;

	fake_daemon_begin(&f, script);
	redlock = redlock_begin(&f, (const char *const[]){"work", "--wait", "100ms", "q", "sh", "-c", command, NULL});
	patience = patience_begin(redlock);
	redlock_end(&f, redlock, &o);
	kill(patience, SIGKILL);
	waitpid(patience, NULL, 0);
	ck_assert_msg(o.code == 0, "%d %s", o.code, o.err);
	ck_assert_str_eq(o.out, "once\n");
	ck_assert_str_eq(o.err, complaint);
	fake_daemon_end(&f);
}

static void job_is_done(const char *script, const char *command)
{
	work_says(script, command, "");
}

FIXTURE(.seconds = 20)

TEST(a_job_whose_command_ended_while_the_daemon_was_away_is_done)
{
	job_is_done(TAKEN "- 2500\n+\n" RESUME CHECKED("9000") DONE "> OK queue=q job=x\n" QUIT NO_JOB, "echo once; sleep 0.2");
}

TEST(a_job_is_done_though_its_CHECK_was_never_answered)
{
	job_is_done(BRIEF "< CHECK q job=x$\n- 300\n+\n" RESUME CHECKED("900") DONE "> OK queue=q job=x\n" QUIT NO_JOB, "echo once; sleep 0.4");
}

TEST(a_command_outlives_a_daemon_that_goes_before_it_answers_CHECK)
{
	job_is_done(BRIEF "< CHECK q job=x$\n- 100\n+\n" RESUME "* OK queue=q job=x attempt=1 valid_ms=900\n" DONE "> OK queue=q job=x\n" QUIT NO_JOB,
	      "sleep 1; echo once");
}

static const char *const repeated[] = {"> OK queue=q job=x\n", "> ERR NOTHELD this session does not have the job\n"};

LOOP_TEST(a_DONE_whose_answer_was_lost_is_said_again, ARRAY_N(repeated))
{
	char script[1000];

	snprintf(script, sizeof(script), TAKEN DONE "+\n" RESUME DONE "%s" QUIT NO_JOB, repeated[_i]);
	job_is_done(script, "echo once");
}

/* A shell ends so where a command of the job is not there. */
LOOP_TEST(a_command_that_ends_with_127_ends_no_worker, 2)
{
	job_is_done(TAKEN "< RETRY \n> OK queue=q job=x\n" QUIT NO_JOB, _i ? "echo once; exit 127" : "echo once; exit 126");
}

/* Of earlier daemons: they stored ids of any bytes. */
TEST(a_job_whose_id_has_a_NUL_byte_is_given_back_and_the_next_one_is_run)
{
	static const char script[] = GRACE "< TAKE q wait=\n> OK queue=q job=\"a\\x00b\" attempt=3 valid_ms=9000 ttl_ms=9000 payload=p\n"
		"< RETRY \"a\\x00b\" queue=q delay=4000ms$\n> OK queue=q job=\"a\\x00b\"\n"
		"< TAKE q wait=\n> OK queue=q job=x attempt=1 valid_ms=9000 ttl_ms=9000 payload=p\n" CHECKED("9000") DONE "> OK queue=q job=x\n" QUIT NO_JOB;

	work_says(script, "echo once", "redlock: job a\\x00b of q cannot be run: its id, or the name of its lock, has a NUL byte\n");
}

FIXTURE()

TEST(a_command_line_of_many_empty_words_is_too_long_to_be_deferred)
{
	static char empty[1], *argv[WORDS + 1];
	struct invocation in = {.operand = "n", .defer_to = "q", .argv = argv, .quiet = true};

	for (size_t i = 0; i < WORDS; i++)
		argv[i] = empty;
	begins("=\n");
	ck_assert(!or_defer(&in, c));
	ends();
}

TEST(a_queue_without_a_name_is_a_mistake_of_the_caller)
{
	struct outcome o;

	PLAYED(&o, "=\n", "defer", "", "text");
	ck_assert_int_eq(o.code, EX_USAGE);
	ck_assert_str_eq(o.err, "redlock: the name of a queue has 1 to 512 bytes\n");
}

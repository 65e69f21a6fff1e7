/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * redlock run across daemons that go and come back, against a scripted daemon: what the command notices, what the next holder may rely on, and that no
 * session with grace is left behind.
 */
#include "client/cli/io/invocation.h"
#include "tests/fixture/run_transcript.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define GRACE "< HELLO 1 name=\"redlock run \n> OK proto=1 session=7 secret=s7\n"
#define ANEW  "< HELLO 1 name=\"redlock run \n> OK proto=1 session=8 secret=s8\n"
/* A lease that is longer than the grace that redlock asks for at first. */
#define LEASED     "< HELLO 1 name=\"redlock run \n> OK proto=1 session=7 secret=s7\n"
#define GRANTED    "< LOCK n wait=forever\n> OK name=n fence=17 valid_ms=100000 ttl_ms=100000 count=1\n" LEASED CHECK
#define BRIEFLY    "< LOCK n wait=forever\n" SHORT "< CHECK n\n" SHORT
#define RESUME     "< RESUME 7 s7$\n"
#define ROW        "> * name=n fence=17 valid_ms=600 count=1\n> OK session=7 n=1\n"
#define NONE       "> OK session=7 n=0\n"
#define NOTFOUND   "> ERR NOTFOUND no such session\n"
#define QUIT       "< QUIT$\n> OK\n"
#define QUIT_BY    "< @quit QUIT$\n> @quit OK\n" /* past a request that was not answered */
#define DONE       "< UNLOCK n fence=17 count=0$\n> OK name=n count=0\n" QUIT
#define STUBBORN   "trap '' TERM; echo $$ >$FOLDER/pid; while :; do sleep 0.05; done"
#define UNTIL_USR1 "trap 'exit 42' USR1; echo $PPID >$FOLDER/keeper; echo $$ >$FOLDER/pid; while :; do sleep 0.01; done"

FIXTURE(.seconds = 30)

TEST(a_command_outlives_a_daemon)
{
	struct outcome o;

	PLAYED(&o, GRACE BRIEFLY "- 100\n+\n" RESUME ROW "*" SHORT_CHECK "< UNLOCK n fence=17 count=0$\n> OK name=n count=0\n" QUIT, "run", "n",
	       "sh", "-c", "sleep 1; echo $REDLOCK_FENCE; exit 7");
	ck_assert_msg(o.code == 7, "%d %s", o.code, o.err);
	ck_assert_str_eq(o.out, "17\n");
	ck_assert_str_eq(o.err, "");
}

TEST(a_command_outlives_one_daemon_after_the_other)
{
	char script[2000] = GRACE BRIEFLY;
	struct outcome o;
	int i;

	for (i = 0; i < 5; i++)
		strcat(script, "< CHECK n$\n+\n" RESUME ROW "< CHECK n$\n" SHORT);
	strcat(script, "*" SHORT_CHECK DONE);
	PLAYED(&o, script, "run", "n", "sh", "-c", "sleep 2; exit 7");
	ck_assert_msg(o.code == 7, "%d %s", o.code, o.err);
}

/* The keeper stays to end the session, which nobody needs any more. */
TEST(a_daemon_that_does_not_come_back_in_time_ends_the_command)
{
	int64_t before = redlock_now_us();
	struct outcome o;

	PLAYED(&o, GRACE BRIEFLY "! 0\n- 600\n@ pid\n+\n" RESUME ROW "< CHECK n$\n" QUIT_BY, "run", "n", "sh", "-c", STUBBORN);
	ck_assert_int_eq(o.code, EXIT_LOST);
	ck_assert_str_eq(o.err,
			 "redlock: n was lost (redlockd went away and did not come back in time); the command was stopped\n");
	ck_assert_int_le(redlock_now_us() - before, 6 * SHORT_US);
}

static const char *const losses[] = {
	"! 0\n+\n" RESUME NOTFOUND ANEW QUIT "@ pid\n",                                  /* the session is gone */
	"! 0\n+\n" RESUME NONE QUIT "@ pid\n",                                           /* the lock is gone */
	"! 0\n+\n" RESUME "> * name=n fence=18 valid_ms=600\n> OK n=1\n" QUIT "@ pid\n", /* it is another grant, even if one of ours */
	"! 0\n+\n" RESUME ROW "< CHECK n$\n> ERR LOST gone\n" QUIT "@ pid\n",            /* it went when the daemon was back */
	"! 0\n+\n" RESUME "=\n@ pid\n+\n" RESUME ROW "< CHECK n$\n" QUIT_BY,             /* it does not say; given up after 3 s */
};

LOOP_TEST(a_lock_that_is_not_resumed_stops_the_command, (int)(sizeof(losses) / sizeof(losses[0])))
{
	char script[800];
	struct outcome o;

	snprintf(script, sizeof(script), GRACE BRIEFLY "%s", losses[_i]);
	PLAYED(&o, script, "run", "n", "sh", "-c", STUBBORN);
	ck_assert_int_eq(o.code, EXIT_LOST);
}

/* --- waiting --- */

static const char *const waits[] = {
	"+\n" RESUME NONE "< LOCK n wait=forever\n> OK name=n fence=17 valid_ms=9000 ttl_ms=10000\n",
	"- 300\n+\n" RESUME NOTFOUND ANEW "< LOCK n wait=forever\n> OK name=n fence=17 valid_ms=9000 ttl_ms=10000\n",
	"> ERR DRAINING leaving\n- 300\n+\n" RESUME NOTFOUND ANEW
	"< LOCK n wait=forever\n> OK name=n fence=17 valid_ms=9000 ttl_ms=10000\n",
	"- 50\n+\n" RESUME "> * name=n fence=17 valid_ms=90000\n> OK session=7 n=1\n< LOCK n wait=forever\n> OK name=n fence=17 valid_ms=9000 ttl_ms=10000\n",
};

LOOP_TEST(a_waiting_redlock_goes_on_waiting, (int)(sizeof(waits) / sizeof(waits[0])))
{
	char script[800];
	struct outcome o;

	snprintf(script, sizeof(script), GRACE "< LOCK n wait=forever\n%s" CHECK DONE, waits[_i]);
	PLAYED(&o, script, "run", "n", "sh", "-c", "exit 7");
	ck_assert_msg(o.code == 7, "%d %s", o.code, o.err);
}

TEST(a_wait_ends_when_its_time_is_over)
{
	struct outcome o;

	PLAYED(&o,
	       GRACE "< LOCK n wait=2000ms\n- 300\n+\n" RESUME NOTFOUND ANEW "< LOCK n wait=1\n> TIMEOUT name=n waited_ms=9\n"
		     "< SHOW n\n> OK n=0\n" QUIT,
	       "run", "--wait", "2s", "n", "true");
	ck_assert_int_eq(o.code, EXIT_NOT_ACQUIRED);
	PLAYED(&o, GRACE "< LOCK n note=true\n> BUSY name=n\n" QUIT, "try", "n", "true");
	ck_assert_int_eq(o.code, EXIT_NOT_ACQUIRED);
}

TEST(a_daemon_without_grace_is_used_without)
{
	struct outcome o;

	PLAYED(&o, "< HELLO 1 name=\"redlock run \n> ERR ARG unknown field grace\n" LOCK CHECK UNLOCK, "run", "n", "true");
	ck_assert_msg(o.code == 0, "%d %s", o.code, o.err);
}

/* --- no session is left behind --- */

static void killed(const char *script, const char *command, const char *whom, int signal)
{
	struct fake_daemon f;
	struct outcome o;
	pid_t pid;

	fake_daemon_begin(&f, script);
	pid = redlock_begin(&f, (const char *const[]){"run", "n", "sh", "-c", command, NULL});
	ck_assert_int_gt(fake_daemon_number(fake_daemon_path(&f, "pid")), 0);
	kill(whom ? (pid_t)fake_daemon_number(fake_daemon_path(&f, whom)) : pid, signal);
	redlock_end(&f, pid, &o);
	ck_assert_int_eq(o.code, whom ? EXIT_LOST : -1);
	fake_daemon_end(&f);
}

TEST(a_killed_redlock_leaves_no_session)
{
	/* redlock: its keeper says QUIT when the command is gone */
	killed(GRACE GRANTED "< QUIT$\n@ pid\n> OK\n", UNTIL_USR1, NULL, SIGKILL);
	/* the keeper: redlock comes back for it */
	killed(GRACE GRANTED "=\n+\n" RESUME "> * name=n fence=17 valid_ms=9000\n> OK session=7 n=1\n< QUIT$\n~ pid\n> OK\n",
	       UNTIL_USR1, "keeper", SIGKILL);
}

#define WITH_A_SESSION                                                                                                             \
	"setsid sh -c 'echo $$ >$FOLDER/child; while :; do sleep 1; done' & while [ ! -s $FOLDER/child ]; do sleep 0.01; done; "   \
	"echo $PPID >$FOLDER/keeper; echo $$ >$FOLDER/pid; wait"

TEST(a_descendant_in_a_session_of_its_own_dies_with_the_keeper_before_the_lock_goes)
{
	killed(GRACE GRANTED "=\n+\n" RESUME "@ pid\n@ child\n> OK session=7 n=1\n< QUIT$\n> OK\n", WITH_A_SESSION, "keeper", SIGKILL);
}

static const int deadly[] = {SIGKILL, SIGTERM, SIGINT, SIGHUP};

LOOP_TEST(a_killed_redlock_leaves_the_queue, (int)(sizeof(deadly) / sizeof(deadly[0])))
{
	struct fake_daemon f;
	struct outcome o;
	pid_t pid;

	fake_daemon_begin(&f, GRACE "< LOCK n wait=forever\n^ waits\n< @quit QUIT$\n> @quit OK\n");
	pid = redlock_begin(&f, (const char *const[]){"run", "n", "true", NULL});
	ck_assert_int_gt(fake_daemon_number(fake_daemon_path(&f, "waits")), 0);
	kill(pid, deadly[_i]);
	redlock_end(&f, pid, &o);
	ck_assert_int_eq(o.code, -1);
	fake_daemon_end(&f);
}

/* redlock ends at once, like its command. The keeper stays until the daemon is back. */
TEST(a_command_that_ends_while_the_daemon_is_away_is_reported_afterwards)
{
	int64_t before = redlock_now_us();
	struct fake_daemon f;
	struct outcome o;

	fake_daemon_begin(&f, GRACE GRANTED "- 6000\n+\n" RESUME "> * name=n fence=17 valid_ms=9000\n> OK session=7 n=1\n" QUIT);
	redlock_run(&f, &o, (const char *const[]){"run", "n", "sh", "-c", "sleep 0.2; exit 7", NULL});
	ck_assert_int_eq(o.code, 7);
	ck_assert_int_le(redlock_now_us() - before, 5800000);
	fake_daemon_end(&f);
	fake_daemon_begin(&f, GRACE GRANTED "- 2000\n+\n" RESUME "> * name=n fence=17 valid_ms=9000\n> OK session=7 n=1\n"
					    "< CHECK n$\n" SHORT "< UNLOCK n keep=5000ms fence=17 count=0$\n> OK name=n count=0\n" QUIT);
	redlock_run(&f, &o, (const char *const[]){"run", "--keep", "5s", "n", "sh", "-c", "sleep 0.2; exit 7", NULL});
	ck_assert_int_eq(o.code, 7);
	fake_daemon_end(&f);
}

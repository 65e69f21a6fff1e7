/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client/cli/run/keeper.c: redlock run ends its command in time however the lock is lost, and no sooner; and signals. The scripted daemon checks from its side:
 * "@ pid" behind "=" is a command that ended before its lock did.
 */
#include "client/cli/run/task.h"
#include "tests/fixture/in_time.h"
#include "tests/fixture/run_transcript.h"

#include <fnmatch.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

FIXTURE(.seconds = 20)

TEST(the_lock_is_checked_while_the_command_runs)
{
	struct outcome o;
	int64_t before = redlock_now_us();

	/* Longer than the lease: only answered CHECKs keep the command alive. */
	PLAYED(&o, SHORT_LOCK "*" SHORT_CHECK UNLOCK, "run", "n", "sleep", "1");
	ck_assert_int_eq(o.code, 0);
	ck_assert_int_ge(redlock_now_us() - before, 1000000);
}

/* Ignores SIGTERM, as does its child. Both write down their ids. */
#define STUBBORN                                                                                                                 \
	"trap '' TERM; sh -c 'trap \"\" TERM; echo $$ >$FOLDER/child; while :; do sleep 1; done' & echo $$ >$FOLDER/pid; wait; " \
	"sleep 60"

static void gone_in_time(struct outcome *o, const char *script, const char *command)
{
	/* Some CHECKs may have been answered; none of these scripts answers more than three. */
	IN_TIME(3 * SHORT_US, PLAYED(o, script, "run", "n", "sh", "-c", command));
	ck_assert_int_eq(o->code, EXIT_LOST);
}

TEST(a_daemon_that_stops_answering_ends_the_command_in_time)
{
	struct outcome o;

	setenv("FAKE_CHECKS", "0", 1);
	gone_in_time(&o, SHORT_LOCK "%" SHORT_CHECK "@ pid\n@ child\n", STUBBORN);
	ck_assert_str_eq(o.err, "redlock: n was lost (redlockd does not answer); the command was stopped\n");
	setenv("FAKE_CHECKS", "2", 1);
	gone_in_time(&o, SHORT_LOCK "%" SHORT_CHECK "@ pid\n@ child\n", STUBBORN);
}

#define LONG " OK name=n fence=17 valid_ms=3000 ttl_ms=3000 count=1\n"

TEST(TERM_comes_first_and_the_command_may_clean_up)
{
	struct outcome o;

	/* A lease of 3 s leaves time to clean up on a busy machine. */
	setenv("FAKE_CHECKS", "0", 1);
	PLAYED(&o, HELLO "< LOCK n wait=forever\n>" LONG "< CHECK n\n>" LONG "%" LONG, "run", "n", "sh", "-c",
	       "trap 'echo cleaned; exit 0' TERM; echo $$ >$FOLDER/pid; while :; do sleep 0.01; done");
	ck_assert_int_eq(o.code, EXIT_LOST);
	ck_assert_str_eq(o.out, "cleaned\n");
}

TEST(a_daemon_that_hangs_up_ends_the_command)
{
	struct outcome o;

	gone_in_time(&o, SHORT_LOCK "! 0\n", STUBBORN);
	ck_assert_msg(fnmatch("redlock: n was lost (redlockd at */sock closed the connection); the command was stopped\n", o.err, 0) == 0, "%s", o.err);
}

static const char *const losses[] = {"quorum", "expired", "evicted", "broken", "idle"};

LOOP_TEST(a_LOST_of_this_grant_stops_the_command, (int)(sizeof(losses) / sizeof(losses[0])))
{
	char script[800];
	struct outcome o;

	snprintf(script, sizeof(script),
		 SHORT_LOCK "! 0\n> ! LOST name=n fence=16 reason=quorum\n> ! LOST name=n fence=17 reason=%s\n*" SHORT_CHECK
			    "=\n@ pid\n@ child\n",
		 losses[_i]);
	gone_in_time(&o, script, STUBBORN);
	ck_assert_ptr_nonnull(strstr(o.err, losses[_i]));
}

TEST(a_loss_that_is_final_leaves_a_short_grace_only)
{
	struct outcome o;

	IN_TIME(3000000, PLAYED(&o, LOCK CHECK "! 0\n> ! LOST name=n fence=17 reason=evicted\n=\n@ pid\n", "run", "n", "sh", "-c", STUBBORN));
	ck_assert_int_eq(o.code, EXIT_LOST);
}

/* In a process of its own, because a keeper takes all its children for those of the command. Its exit code is that of redlock. */
static _Noreturn void keeps_what_was_lost_behind_its_CHECK(const char *addr)
{
	struct invocation in = {.operand = "n"};
	char sleeps[] = "sleep", three[] = "3", *argv[] = {sleeps, three, NULL};
	static const char *const names[] = {"n"};
	static struct redlock_grant grant;
	struct keeper_task task = {.in = &in, .names = names, .names_n = 1, .grants = &grant, .start = {.argv = argv, .grouped = true}};
	struct keeper_report report = {.code = EXIT_FAILED};
	struct pollfd fd = {.events = POLLIN};
	int ends[2];
	sigset_t all, before;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	task.start.mask = &before;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) || redlock_open(addr, 1000, &task.c) || redlock_lock(task.c, "n", NULL, &task.grant))
		_exit(EXIT_FAILED);
	task.front = ends[1];
	grant = task.grant;
	fd.fd = redlock_fd(task.c);
	/* Unless it was read behind the answer. */
	(void)!poll(&fd, 1, 300);
	if (redlock_process(task.c))
		_exit(EXIT_FAILED);
	supervise_run(&task, &report);
	_exit(report.code);
}

/* The line has been read already, so the descriptor is not readable. */
TEST(a_LOST_that_came_together_with_the_CHECK_stops_the_command)
{
	struct fake_daemon f;
	int status;
	pid_t pid;

	fake_daemon_begin(&f, "< LOCK n$\n> OK name=n fence=17 valid_ms=90000 ttl_ms=90000 count=1\n"
			      "< CHECK n$\n> OK name=n fence=17 valid_ms=90000 count=1\n> ! LOST name=n fence=17 reason=evicted\n=\n");
	pid = fork();
	if (pid == 0)
		keeps_what_was_lost_behind_its_CHECK(f.addr);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), EXIT_LOST);
	fake_daemon_end(&f);
}

TEST(a_CHECK_that_says_lost_stops_the_command)
{
	struct outcome o;

	gone_in_time(&o, SHORT_LOCK "< CHECK\n> ERR NOTHELD you do not hold n\n=\n@ pid\n", STUBBORN);
}

TEST(a_lease_that_is_not_renewed_ends_the_command_before_it)
{
	struct outcome o;

	gone_in_time(&o, SHORT_LOCK "< CHECK\n> OK name=n fence=17 valid_ms=100 ttl_ms=600 count=1\n=\n@ pid\n@ child\n",
		     STUBBORN);
	ck_assert_str_eq(o.err, "redlock: n was lost (redlockd could not renew it); the command was stopped\n");
}

#define WAITS_FOR_USR1 "trap 'exit 42' USR1; echo $$ >$FOLDER/pid; while :; do sleep 0.01; done"

static const int passed_on[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH};

LOOP_TEST(signals_reach_the_command, (int)(sizeof(passed_on) / sizeof(passed_on[0])))
{
	struct outcome o;
	struct fake_daemon f;
	char trap[200];
	pid_t pid;

	snprintf(trap, sizeof(trap), "trap 'exit 42' %d; echo $$ >$FOLDER/pid; while :; do sleep 0.01; done", passed_on[_i]);
	fake_daemon_begin(&f, LOCK CHECK UNLOCK);
	pid = redlock_begin(&f, (const char *const[]){"run", "n", "sh", "-c", trap, NULL});
	ck_assert_int_gt(fake_daemon_number(fake_daemon_path(&f, "pid")), 0);
	kill(pid, passed_on[_i]);
	redlock_end(&f, pid, &o);
	ck_assert_msg(o.code == 42, "%d %s", o.code, o.err);
	fake_daemon_end(&f);
}

/* redlock passes SIGTSTP on. It cannot pass on SIGSTOP to its own group, which is not that of the command. So the command goes on, rightly. */
static const struct {
	int group, signal;
} stops[] = {{0, SIGTSTP}, {1, SIGSTOP}};

LOOP_TEST(a_stop_of_redlock_leaves_the_lock_valid, 2)
{
	struct timespec longer_than_the_lease = {1, 0};
	struct fake_daemon f;
	struct outcome o;
	pid_t pid;
	int status;

	fake_daemon_begin(&f, SHORT_LOCK "*" SHORT_CHECK UNLOCK);
	pid = redlock_begin(&f, (const char *const[]){"run", "n", "sh", "-c", WAITS_FOR_USR1, NULL});
	ck_assert_int_gt(fake_daemon_number(fake_daemon_path(&f, "pid")), 0);
	kill(stops[_i].group ? -pid : pid, stops[_i].signal);
	ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
	ck_assert(WIFSTOPPED(status));
	nanosleep(&longer_than_the_lease, NULL);
	kill(pid, SIGUSR1);
	kill(pid, SIGCONT);
	redlock_end(&f, pid, &o);
	ck_assert_msg(o.code == 42, "%d %s", o.code, o.err);
	fake_daemon_end(&f);
}

TEST(a_keeper_that_was_stopped_beyond_the_lease_asks_before_it_stops_the_command)
{
	struct timespec longer_than_the_lease = {1, 0};
	struct fake_daemon f;
	struct outcome o;
	pid_t pid, keeper;

	fake_daemon_begin(&f, SHORT_LOCK "*" SHORT_CHECK UNLOCK);
	pid = redlock_begin(&f, (const char *const[]){"run", "n", "sh", "-c", "echo $PPID >$FOLDER/keeper; " WAITS_FOR_USR1, NULL});
	ck_assert_int_gt(fake_daemon_number(fake_daemon_path(&f, "pid")), 0);
	keeper = (pid_t)fake_daemon_number(fake_daemon_path(&f, "keeper"));
	kill(keeper, SIGSTOP);
	nanosleep(&longer_than_the_lease, NULL);
	kill(keeper, SIGCONT);
	kill(pid, SIGUSR1);
	redlock_end(&f, pid, &o);
	ck_assert_msg(o.code == 42, "%d %s", o.code, o.err);
	fake_daemon_end(&f);
}

TEST(signals_after_the_commands_end_change_nothing)
{
	struct fake_daemon f;
	struct outcome o;
	siginfo_t ended;
	pid_t pid;
	int i;

	for (i = 0; i < 10; i++) {
		fake_daemon_begin(&f, LOCK CHECK UNLOCK);
		pid = redlock_begin(&f, (const char *const[]){"run", "n", "sh", "-c", "echo $$ >$FOLDER/pid; exit 42", NULL});
		ck_assert_int_gt(fake_daemon_number(fake_daemon_path(&f, "pid")), 0);
		do {
			kill(pid, SIGWINCH);
			ended.si_pid = 0;
			ck_assert_int_eq(waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
		} while (!ended.si_pid);
		redlock_end(&f, pid, &o);
		ck_assert_msg(o.code == 42, "%d %s", o.code, o.err);
		fake_daemon_end(&f);
	}
}

TEST(a_killed_redlock_takes_the_command_along_before_the_lock_goes)
{
	struct outcome o;
	struct fake_daemon f;
	pid_t pid;

	fake_daemon_begin(&f, LOCK CHECK "=\n@ pid\n@ child\n");
	pid = redlock_begin(&f, (const char *const[]){"run", "n", "sh", "-c", STUBBORN, NULL});
	ck_assert_int_gt(fake_daemon_number(fake_daemon_path(&f, "pid")), 0);
	ck_assert_int_gt(fake_daemon_number(fake_daemon_path(&f, "child")), 0);
	kill(pid, SIGKILL);
	redlock_end(&f, pid, &o);
	ck_assert_int_eq(o.code, -1);
	fake_daemon_end(&f);
}

#define WITH_A_CHILD                                                                                                             \
	"trap '' USR1; sh -c 'echo $$ >$FOLDER/child; while :; do sleep 1; done' & trap 'echo got' USR1; "                       \
	"echo $PPID >$FOLDER/keeper; while [ ! -s $FOLDER/child ]; do sleep 0.01; done; echo $$ >$FOLDER/pid; "                  \
	"while :; do sleep 0.01; done"

/* A signal to all processes of a service reaches the keeper too. */
TEST(the_keeper_minds_no_signal_but_KILL)
{
	struct outcome o = {.code = 0};
	struct fake_daemon f;
	pid_t pid, keeper;

	fake_daemon_begin(&f, LOCK CHECK "=\n~ pid\n~ child\n");
	pid = redlock_begin(&f, (const char *const[]){"run", "n", "sh", "-c", WITH_A_CHILD, NULL});
	ck_assert_int_gt(fake_daemon_number(fake_daemon_path(&f, "pid")), 0);
	keeper = (pid_t)fake_daemon_number(fake_daemon_path(&f, "keeper"));
	ck_assert_int_ne(keeper, pid);
	kill(keeper, SIGTERM);
	kill(keeper, SIGINT);
	kill(keeper, SIGHUP);
	kill(pid, SIGUSR1);
	while (!strstr(o.out, "got"))
		redlock_peek(&f, &o);
	kill(keeper, SIGKILL);
	redlock_end(&f, pid, &o);
	ck_assert_int_eq(o.code, EXIT_LOST);
	ck_assert_ptr_nonnull(strstr(o.err, "redlock: the process that held the lock was killed; so was the command\n"));
	fake_daemon_end(&f);
}

TEST(a_descendant_in_a_session_of_its_own_is_stopped_as_well)
{
	struct outcome o;

	gone_in_time(&o, SHORT_LOCK "! 0\n> ! LOST name=n fence=17 reason=quorum\n*" SHORT_CHECK "=\n@ child\n",
		     "setsid sh -c 'echo $$ >$FOLDER/child; while :; do sleep 1; done' & while [ ! -s $FOLDER/child ]; do sleep "
		     "0.01; done; "
		     "echo $$ >$FOLDER/pid; wait");
}

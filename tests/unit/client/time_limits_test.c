/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client/lib/boottime.c, exchange.c: how long the client library waits, tries and lingers across connections that break, and who ends a session. What it asks
 * again: reconnect_test.c.
 */
#include "tests/fixture/scripted_session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* --- waiting --- */

#define WAITS "< LOCK n wait=2000ms note=x count=1$\n"
static const struct redlock_options waits = {.size = sizeof(waits), .wait_ms = 2000, .note = "x"};

FIXTURE(.seconds = 30)

TEST(a_wait_goes_on_for_what_is_left_of_it)
{
	struct scripted_session s;

	/* 300 ms are gone for certain, and 1 ms at least is left. */
	scripted_session_open(&s, HELLO WAITS "- 300\n" NOTHING "< LOCK n wait=1\n> " GRANT "\n" CHECK QUIT, PATIENCE);
	ck_assert_int_eq(redlock_lock(s.c, "n", &waits, &s.grant), 0);
	scripted_session_end(&s);
	scripted_session_open(&s, HELLO WAITS NOTHING "< LOCK n wait=\n> TIMEOUT name=n waited_ms=7\n" QUIT, PATIENCE);
	ck_assert_int_eq(redlock_lock(s.c, "n", &waits, &s.grant), REDLOCK_TIMEOUT);
	scripted_session_end(&s);
	scripted_session_open(&s, HELLO "< LOCK n wait=30ms count=1$\n- 100\n" NOTHING "< LOCK n wait=1ms count=1$\n> TIMEOUT name=n waited_ms=1\n" QUIT,
		   PATIENCE);
	ck_assert_int_eq(redlock_lock(s.c, "n", &(struct redlock_options){.size = sizeof(struct redlock_options), .wait_ms = 30}, &s.grant), REDLOCK_TIMEOUT);
	scripted_session_end(&s);
	scripted_session_open(&s, HELLO "< LOCK n wait=forever count=1$\n" GONE "< LOCK n wait=forever count=1$\n> " GRANT "\n" CHECK QUIT, PATIENCE);
	ck_assert_int_eq(redlock_lock(s.c, "n", &(struct redlock_options){.size = sizeof(struct redlock_options), .wait_ms = REDLOCK_FOREVER}, &s.grant), 0);
	scripted_session_end(&s);
}

TEST(a_daemon_that_leaves_refuses_and_the_wait_goes_on_at_the_next)
{
	struct scripted_session s;

	scripted_session_open(&s, HELLO WAITS "> ERR DRAINING leaving\n" NOTHING "< LOCK n wait=\n> " GRANT "\n" CHECK QUIT, PATIENCE);
	ck_assert_int_eq(redlock_lock(s.c, "n", &waits, &s.grant), 0);
	scripted_session_end(&s);
	/* It stays after all. */
	scripted_session_open(&s, HELLO WAITS "> ERR DRAINING leaving\n< LOCK n wait=\n> " GRANT "\n" CHECK QUIT, PATIENCE);
	ck_assert_int_eq(redlock_lock(s.c, "n", &waits, &s.grant), 0);
	scripted_session_end(&s);
	/* A LOCK without wait= hears it. */
	scripted_session_open(&s, HELLO "< LOCK n count=1$\n> ERR DRAINING leaving\n" QUIT, PATIENCE);
	scripted_session_refused(&s, redlock_lock(s.c, "n", NULL, &s.grant), "DRAINING");
	scripted_session_end(&s);
}

TEST(a_renewal_that_a_daemon_refuses_since_it_leaves_is_asked_for_at_the_next)
{
	struct scripted_session s;

	scripted_session_begin(&s, HELLO LOCK "< EXTEND n ttl=9000ms$\n> ERR DRAINING leaving\n" KEPT "< EXTEND n ttl=9000ms$\n> " CHECKED "\n" QUIT);
	ck_assert_int_eq(redlock_extend(s.c, "n", 9000, &s.grant), 0);
	scripted_session_end(&s);
}

TEST(a_grant_that_came_after_its_caller_gave_up_is_released)
{
	struct redlock_options brief = {.size = sizeof(brief), .wait_ms = 20};
	struct scripted_session s;

	scripted_session_open(&s,
		   HELLO "< LOCK n wait=20ms count=1$\n- 300\n+\n" RESUME ROW
			 "> OK session=7 n=1\n< UNLOCK n count=0$\n> OK name=n count=0\n"
			 "< PING$\n> OK\n" QUIT,
		   50);
	ck_assert_int_eq(redlock_lock(s.c, "n", &brief, &s.grant), -ECONNABORTED);
	ck_assert(redlock_away(s.c));
	redlock_set_timeout(s.c, PATIENCE);
	ck_assert_int_eq(redlock_request(s.c, "PING", 0, NULL, NULL), 0);
	ck_assert(!redlock_away(s.c));
	scripted_session_end(&s);
	/* The lock is granted but not confirmed: the CHECK behind it was not answered. */
	scripted_session_open(&s,
		   HELLO "< LOCK n count=1$\n> " GRANT "\n- 300\n+\n" RESUME ROW "> OK session=7 n=1\n< UNLOCK n count=0$\n> OK name=n "
			 "count=0\n< PING$\n> OK\n" QUIT,
		   50);
	ck_assert_int_eq(redlock_lock(s.c, "n", NULL, &s.grant), -ECONNABORTED);
	redlock_set_timeout(s.c, PATIENCE);
	ck_assert_int_eq(redlock_request(s.c, "PING", 0, NULL, NULL), 0);
	scripted_session_end(&s);
}

/* --- bounds --- */

static void pid_leave(const struct scripted_session *s)
{
	FILE *file = fopen(fake_daemon_path(&s->f, "pid"), "w");

	fprintf(file, "%d\n", (int)getpid());
	fclose(file);
}

/* After a while, writes the id of no process where the script looks for a process to signal. */
static pid_t pid_leave_in(const struct scripted_session *s, int ms)
{
	struct timespec pause = {ms / 1000, ms % 1000 * 1000000L};
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid > 0)
		return pid;
	nanosleep(&pause, NULL);
	pid_leave(s);
	_exit(0);
}

/* For as long as a daemon with busy stores repeats the refusal. */
TEST(a_LOCK_that_does_not_wait_may_take_the_daemon_a_second)
{
	struct scripted_session s;
	pid_t pid;

	scripted_session_open(&s, HELLO "< LOCK n count=1$\n! 0\n> BUSY name=n\n" QUIT, 300);
	pid = pid_leave_in(&s, 700);
	ck_assert_int_eq(redlock_lock(s.c, "n", NULL, &s.grant), REDLOCK_BUSY);
	waitpid(pid, NULL, 0);
	scripted_session_end(&s);
}

TEST(an_EXTEND_may_take_the_daemon_a_second)
{
	struct scripted_session s;
	pid_t pid;

	scripted_session_begin(&s, HELLO LOCK "< EXTEND n$\n! 0\n> ERR QUORUM busy\n" QUIT);
	redlock_set_timeout(s.c, 300);
	pid = pid_leave_in(&s, 700);
	ck_assert_int_eq(redlock_extend(s.c, "n", 0, &s.grant), REDLOCK_REFUSED);
	waitpid(pid, NULL, 0);
	scripted_session_end(&s);
}

TEST(no_call_lasts_longer_than_it_may_and_the_next_goes_on)
{
	struct scripted_session s;
	int64_t before;
	int i;

	scripted_session_begin(&s, HELLO LOCK "- 400\n" KEPT CHECK QUIT);
	redlock_set_timeout(s.c, 50);
	for (i = 0; i < 3; i++) {
		before = redlock_now_us();
		scripted_session_check(&s, -ECONNABORTED);
		ck_assert_int_ge(redlock_now_us() - before, 50000);
	}
	redlock_set_timeout(s.c, PATIENCE);
	scripted_session_check(&s, 0);
	scripted_session_end(&s);
}

TEST(a_RESUME_that_is_not_answered_is_given_up_for_another)
{
	struct scripted_session s;

	scripted_session_open(&s, HELLO LOCK "+\n" RESUME "=\n" KEPT CHECK QUIT, 400);
	ck_assert_int_eq(redlock_lock(s.c, "n", NULL, &s.grant), 0);
	scripted_session_check(&s, -ECONNABORTED);
	redlock_set_timeout(s.c, PATIENCE);
	scripted_session_check(&s, 0);
	scripted_session_end(&s);
}

TEST(a_temporary_refusal_is_asked_again)
{
	struct scripted_session s;

	scripted_session_begin(&s, HELLO LOCK "+\n" RESUME "> ERR QUORUM 1 of 3\n+\n" RESUME "> ERR DRAINING\n+\n" RESUME
				   "> BUSY\n" KEPT CHECK QUIT);
	scripted_session_check(&s, 0);
	ck_assert_ptr_null(redlock_next_push(s.c));
	scripted_session_end(&s);
}

TEST(endless_drops_are_followed_by_growing_pauses)
{
	char script[4000] = HELLO LOCK;
	struct scripted_session s;
	int64_t before;
	int i;

	for (i = 0; i < 20; i++)
		strcat(script, i % 2 ? "+\n" RESUME : "+\n");
	strcat(script, KEPT CHECK QUIT);
	scripted_session_begin(&s, script);
	redlock_set_timeout(s.c, 30000);
	before = redlock_now_us();
	scripted_session_check(&s, 0);
	/* 10 ms doubled up to 500 ms, each drawn between a half and the whole: twenty of them are more than 3 s. */
	ck_assert_int_ge(redlock_now_us() - before, 3000000);
	scripted_session_end(&s);
}

/* --- other requests --- */

TEST(a_request_of_unknown_fate_is_told_as_that)
{
	struct scripted_session s;

	scripted_session_begin(&s, HELLO LOCK "< BREAK x$\n" KEPT CHECK QUIT);
	ck_assert_int_eq(redlock_request(s.c, "BREAK x", 0, NULL, NULL), -ECONNABORTED);
	scripted_session_check(&s, 0);
	scripted_session_end(&s);
	/* A request that was not sent yet waits for the next connection. */
	scripted_session_open(&s, HELLO "- 50\n+\n" RESUME "> OK n=0\n< PING$\n> OK\n" QUIT, PATIENCE);
	while (!redlock_away(s.c))
		ck_assert_int_eq(redlock_process(s.c), 0);
	ck_assert_int_eq(redlock_fd(s.c), -1);
	ck_assert_int_lt(redlock_due_us(s.c), redlock_now_us() + 1000000);
	ck_assert_int_eq(redlock_request(s.c, "PING", 0, NULL, NULL), 0);
	scripted_session_end(&s);
}

TEST(nonsense_is_not_resumed)
{
	struct scripted_session s;

	scripted_session_begin(&s, HELLO LOCK "< CHECK n$\n> OK name=\"n\n" QUIT_BY);
	scripted_session_check(&s, -EPROTO);
	scripted_session_check(&s, -EPROTO);
	scripted_session_end(&s);
}

TEST(only_a_session_with_HELLO_says_QUIT)
{
	struct scripted_session s;
	pid_t pid;
	int status;

	scripted_session_begin(&s, HELLO LOCK CHECK QUIT);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		redlock_close(s.c);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	scripted_session_check(&s, 0);
	scripted_session_end(&s);
}

/* 0, or the line where it is not so. */
static int child_look(const struct scripted_session *s)
{
	struct redlock_grant grant;

	if (redlock_left_us(&s->grant))
		return __LINE__;
	if (redlock_check(s->c, "n", &grant) != -ESTALE || redlock_process(s->c) != -ESTALE || redlock_finish(s->c, 0) != -ESTALE)
		return __LINE__;
	if (redlock_fd(s->c) != -1 || redlock_cancel(s->c) != -ESTALE || redlock_ping(s->c) != -ESTALE)
		return __LINE__;
	redlock_close(s->c);
	return 0;
}

TEST(a_child_holds_nothing_and_leaves_the_connection_alone)
{
	struct scripted_session s;
	pid_t pid;
	int status;

	scripted_session_begin(&s, HELLO LOCK CHECK QUIT);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		_exit(child_look(&s) % 256);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(status == 0, "line %d", WEXITSTATUS(status));
	ck_assert_int_gt(redlock_left_us(&s.grant), 0);
	scripted_session_check(&s, 0);
	scripted_session_end(&s);
}

TEST(a_child_has_no_answer_of_its_parent)
{
	struct redlock_grant grant;
	struct scripted_session s;
	pid_t pid;
	int status;

	scripted_session_open(&s, HELLO "< CHECK n$\n> " CHECKED "\n" QUIT, PATIENCE);
	ck_assert_int_eq(redlock_check_send(s.c, "n"), 0);
	ck_assert_int_eq(redlock_finish(s.c, PATIENCE), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		_exit(redlock_finish(s.c, 0) == -ESTALE && redlock_grant(s.c, &grant) == -EINVAL ? 0 : 1);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(redlock_grant(s.c, &grant), 0);
	scripted_session_end(&s);
}

TEST(a_QUIT_overtakes_a_LOCK_that_waits)
{
	struct scripted_session s;

	scripted_session_open(&s, HELLO "< LOCK n wait=2000ms count=1$\n" QUIT_BY, PATIENCE);
	ck_assert_int_eq(redlock_lock_send(s.c, "n", &(struct redlock_options){.size = sizeof(struct redlock_options), .wait_ms = 2000}), 0);
	scripted_session_end(&s);
}

static volatile sig_atomic_t alarms;

static void alarm_count(int number)
{
	(void)number;
	alarms++;
}

TEST(signals_interrupt_nothing)
{
	struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
	struct sigaction action = {.sa_handler = alarm_count};
	struct scripted_session s;

	scripted_session_begin(&s, HELLO LOCK "< CHECK n$\n- 200\n" KEPT CHECK QUIT);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	scripted_session_check(&s, 0);
	setitimer(ITIMER_REAL, &never, NULL);
	ck_assert_int_gt(alarms, 0);
	scripted_session_end(&s);
}

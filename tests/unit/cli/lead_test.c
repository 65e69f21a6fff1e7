/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client/cli/run/run.c: redlock lead against a scripted daemon: it campaigns again when its term was lost, in a new session,
 * and ends when CMD ended by itself.
 */
#include "client/cli/io/invocation.h"
#include "tests/fixture/run_transcript.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>

#define CAMPAIGN "< HELLO 1 name=\"redlock lead \n> OK proto=1 session=7\n< LOCK n wait=forever note=\n"
#define TERM(fence) \
	CAMPAIGN "> OK name=n fence=" fence " valid_ms=100000 ttl_ms=100000 count=1\n< CHECK n\n> OK name=n fence=" fence " valid_ms=90000 count=1\n"
#define LOST(fence) "! 0\n> ! LOST name=n fence=" fence " reason=evicted\n=\n@ pid\n"
/* Ends by itself with the second token that it sees. */
#define LEADS "echo $REDLOCK_NAME $REDLOCK_FENCE; [ $REDLOCK_FENCE = 18 ] && exit 7; echo $$ >$FOLDER/pid; while :; do sleep 0.01; done"

FIXTURE(.seconds = 20)

TEST(a_lost_term_is_followed_by_another)
{
	struct outcome o;

	PLAYED(&o, TERM("17") LOST("17") "+\n" TERM("18") UNLOCK, "lead", "n", "--", "sh", "-c", LEADS);
	ck_assert_msg(o.code == 7, "%d %s", o.code, o.err);
	ck_assert_str_eq(o.out, "n 17\nn 18\n");
	ck_assert_str_eq(o.err, "redlock: n was lost (evicted); the command was stopped\n");
}

TEST(the_end_of_the_command_ends_the_term_and_lead)
{
	struct outcome o;

	PLAYED(&o, TERM("17") UNLOCK, "lead", "n", "true");
	ck_assert_int_eq(o.code, 0);
	PLAYED(&o, TERM("17") UNLOCK, "lead", "n", "sh", "-c", "exit 123");
	ck_assert_int_eq(o.code, 123);
	PLAYED(&o, TERM("17") UNLOCK, "lead", "n", "/nonexistent/command");
	ck_assert_int_eq(o.code, EXIT_NOT_FOUND);
}

TEST(a_term_that_was_lost_before_the_command_began_is_followed_by_another)
{
	struct outcome o;

	PLAYED(&o, CAMPAIGN "> OK name=n fence=16 valid_ms=100 ttl_ms=100 count=1\n< CHECK n\n> ERR LOST n was lost\n=\n+\n" TERM("18") UNLOCK, "lead", "n",
	       "sh", "-c", LEADS);
	ck_assert_msg(o.code == 7, "%d %s", o.code, o.err);
	ck_assert_str_eq(o.out, "n 18\n");
}

TEST(a_daemon_that_is_away_is_waited_for_after_the_first_term)
{
	struct outcome o;

	PLAYED(&o, TERM("17") "! 0\n- 700\n@ pid\n+\n" TERM("18") UNLOCK, "lead", "n", "--", "sh", "-c", LEADS);
	ck_assert_msg(o.code == 7, "%d %s", o.code, o.err);
	ck_assert_str_eq(o.out, "n 17\nn 18\n");
	PLAYED(&o, TERM("17") LOST("17") "+\n" CAMPAIGN "> ERR QUORUM\n=\n+\n" TERM("18") UNLOCK, "lead", "n", "--", "sh", "-c", LEADS);
	ck_assert_msg(o.code == 7, "%d %s", o.code, o.err);
}

TEST(options_reach_the_daemon)
{
	struct outcome o;

	PLAYED(&o,
	       "< HELLO 1 name=\"redlock lead \n> OK proto=1 session=7\n< LOCK n wait=forever ttl=3000ms note=text priority=7$\n"
	       "> OK name=n fence=17 valid_ms=3000 ttl_ms=3000 count=1\n" CHECK UNLOCK,
	       "lead", "--ttl", "3s", "-p7", "--note", "text", "n", "true");
	ck_assert_msg(o.code == 0, "%d %s", o.code, o.err);
}

TEST(a_first_campaign_that_is_refused_ends_lead)
{
	struct outcome o;

	PLAYED(&o, CAMPAIGN "> ERR LIMIT ttl must be shorter\n=\n", "lead", "n", "true");
	ck_assert_int_eq(o.code, EXIT_FAILED);
	ck_assert_str_eq(o.err, "redlock: LIMIT ttl must be shorter\n");
}

/* Notices the signal, and goes on. */
#define LINGERS "trap 'echo $$ >$FOLDER/pid' TERM INT QUIT HUP; echo $$ >$FOLDER/began; while :; do sleep 0.01; done"

static void signalled(struct outcome *o, int signal, const char *script)
{
	struct fake_daemon f;
	pid_t pid;

	fake_daemon_begin(&f, script);
	pid = redlock_begin(&f, (const char *const[]){"lead", "n", "sh", "-c", "[ $REDLOCK_FENCE = 18 ] && exit 7; " LINGERS, NULL});
	ck_assert_int_gt(fake_daemon_number(fake_daemon_path(&f, "began")), 0);
	kill(pid, signal);
	redlock_end(&f, pid, o);
	fake_daemon_end(&f);
}

static const int endings[] = {SIGTERM, SIGINT, SIGQUIT};

/* The command takes its time to end, and meanwhile its term is lost. Somebody who ends a leader wants no other term. */
LOOP_TEST(no_term_follows_a_signal_that_asks_the_command_to_end, ARRAY_N(endings))
{
	struct outcome o;

	signalled(&o, endings[_i], TERM("17") LOST("17"));
	ck_assert_msg(o.code == 128 + endings[_i], "%d %s", o.code, o.err);
}

/* It may ask for the configuration to be read again. */
TEST(a_term_follows_SIGHUP)
{
	struct outcome o;

	signalled(&o, SIGHUP, TERM("17") LOST("17") "+\n" TERM("18") UNLOCK);
	ck_assert_msg(o.code == 7, "%d %s", o.code, o.err);
}

TEST(a_signal_ends_a_campaign_after_a_term)
{
	struct fake_daemon f;
	struct outcome o;
	pid_t pid;

	fake_daemon_begin(&f, TERM("17") LOST("17") "+\n" CAMPAIGN "^ campaigns\n=\n");
	pid = redlock_begin(&f, (const char *const[]){"lead", "n", "sh", "-c", LEADS, NULL});
	ck_assert_int_gt(fake_daemon_number(fake_daemon_path(&f, "campaigns")), 0);
	kill(pid, SIGTERM);
	redlock_end(&f, pid, &o);
	ck_assert_int_eq(o.code, -1);
	fake_daemon_end(&f);
}

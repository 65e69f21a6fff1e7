/* SPDX-License-Identifier: BSD-2-Clause */
/* redlock run with several names, against a scripted daemon. */
#include "client/cli/io/invocation.h"
#include "tests/fixture/run_transcript.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define GRACE    "< HELLO 1 name=\"redlock run \n> OK proto=1 session=7 secret=s7\n"
#define LEASED   "< HELLO 1 name=\"redlock run \n> OK proto=1 session=7 secret=s7\n"
#define ROWS     "> * name=a fence=17 valid_ms=90000 ttl_ms=90000 count=1\n> * name=b fence=18 valid_ms=90000 ttl_ms=90000 count=1\n> OK n=2\n"
#define CHECK_A  "< CHECK a$\n> OK name=a fence=17 valid_ms=90000 count=1\n"
#define CHECK_B  "< CHECK b$\n> OK name=b fence=18 valid_ms=90000 count=1\n"
#define UNLOCKED "< UNLOCK a$\n> OK name=a count=0\n< UNLOCK b$\n> OK name=b count=0\n"
#define QUIT     "< QUIT$\n> OK\n"
#define SHOWN    "echo $REDLOCK_NAME $REDLOCK_FENCE $REDLOCK_NAME_2 $REDLOCK_FENCE_2; exit 7"

FIXTURE(.seconds = 20)

TEST(run_takes_all_names_before_the_dashes_and_releases_each)
{
	struct outcome o;

	PLAYED(&o, HELLO "< LOCKALL a b wait=forever note=\n" ROWS CHECK_A CHECK_B UNLOCKED "=\n", "run", "a", "b", "--", "sh", "-c", SHOWN);
	ck_assert_msg(o.code == 7, "%d %s", o.code, o.err);
	ck_assert_str_eq(o.out, "a 17 b 18\n");
}

TEST(options_may_stand_between_the_names)
{
	struct outcome o;

	PLAYED(&o, HELLO "< LOCKALL a b wait=5000ms mode=shared note=\n" ROWS CHECK_A CHECK_B UNLOCKED "=\n", "run", "a", "--wait", "5s", "b", "-s", "--",
	       "sh", "-c", SHOWN);
	ck_assert_msg(o.code == 7, "%d %s", o.code, o.err);
}

TEST(any_takes_one_of_the_names)
{
	struct outcome o;

	PLAYED(&o, HELLO "< LOCKANY a b wait=forever note=\n> OK name=b fence=18 valid_ms=90000 ttl_ms=90000 count=1\n" CHECK_B
	       "< UNLOCK b$\n> OK name=b count=0\n=\n", "run", "--any", "a", "b", "--", "sh", "-c", SHOWN);
	ck_assert_msg(o.code == 7, "%d %s", o.code, o.err);
	ck_assert_str_eq(o.out, "b 18\n");
}

TEST(one_name_needs_no_dashes_and_a_command_may_have_its_own)
{
	struct outcome o;

	PLAYED(&o, LOCK CHECK UNLOCK, "run", "n", "--", "echo", "a", "--", "b");
	ck_assert_msg(o.code == 0, "%d %s", o.code, o.err);
	ck_assert_str_eq(o.out, "a -- b\n");
}

TEST(the_loss_of_one_name_stops_the_command)
{
	struct outcome o;

	PLAYED(&o, HELLO "< LOCKALL a b wait=forever note=\n" ROWS CHECK_A CHECK_B "> ! LOST name=b fence=18 reason=evicted\n=\n", "run", "a", "b", "--",
	       "sleep", "5");
	ck_assert_int_eq(o.code, EXIT_LOST);
	ck_assert_str_eq(o.err, "redlock: b was lost (evicted); the command was stopped\n");
}

TEST(names_that_are_not_free_are_told_as_the_daemon_says)
{
	struct outcome o;

	PLAYED(&o, HELLO "< LOCKALL a b note=\n> BUSY name=b holder=x held_ms=1200 waiters=0\n=\n", "try", "a", "b", "--", "true");
	ck_assert_int_eq(o.code, EXIT_NOT_ACQUIRED);
	ck_assert_msg(strstr(o.err, "b is held by x"), "%s", o.err);
}

TEST(a_request_for_several_names_is_repeated_when_the_daemon_is_back)
{
	struct outcome o;

	PLAYED(&o, GRACE "< LOCKALL a b wait=forever note=\n- 100\n+\n< RESUME 7 s7$\n> OK session=7 n=0\n< LOCKALL a b wait=forever note=\n" ROWS
	       LEASED CHECK_A CHECK_B "< UNLOCK a fence=17 count=0$\n> OK name=a count=0\n"
	       "< UNLOCK b fence=18 count=0$\n> OK name=b count=0\n" QUIT, "run", "a", "b", "--", "sh", "-c", SHOWN);
	ck_assert_msg(o.code == 7, "%d %s", o.code, o.err);
}

/* UNLOCK of the first was answered already when the connection broke. */
TEST(each_name_is_kept_when_the_daemon_is_away_in_the_middle)
{
	struct outcome o;

	PLAYED(&o, GRACE "< LOCKALL a b wait=forever note=\n" ROWS LEASED CHECK_A CHECK_B
	       "< UNLOCK a keep=5000ms fence=17 count=0$\n> OK name=a count=0\n< UNLOCK b keep=5000ms fence=18 count=0$\n- 1500\n+\n< RESUME 7 s7$\n"
	       "> * name=b fence=18 valid_ms=80000 count=1\n> OK session=7 n=1\n< UNLOCK a keep=5000ms$\n> ERR NOTHELD no\n"
	       "< UNLOCK b keep=5000ms fence=18 count=0$\n> OK name=b count=0\n" QUIT, "run", "--keep", "5s", "a", "b", "--", "sh", "-c", SHOWN);
	ck_assert_msg(o.code == 7, "%d %s", o.code, o.err);
}

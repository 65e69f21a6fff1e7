/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client/lib/recovery.c: the daemon restarted, and RESUME leaves open whether the stores still have what the session held. The library gives up no lock
 * that the daemon may still adopt, trusts none for longer than before, and counts no request twice.
 */
#include "client/cli/io/invocation.h"
#include "tests/fixture/in_time.h"
#include "tests/fixture/scripted_session.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>

#define OPEN    "+\n" RESUME "> OK session=7 n=0 open=1\n"
#define NOT_YET "< CHECK n$\n> ERR QUORUM not confirmed yet\n"
#define ASKED   "< CHECK n$\n"

FIXTURE(.seconds = 30)

TEST(a_lock_that_RESUME_leaves_open_is_neither_lost_nor_given_up)
{
	struct scripted_session s;

	scripted_session_begin(&s, HELLO LOCK ASKED OPEN NOT_YET NOT_YET NOT_YET "> ! SAFE name=n fence=17 valid_ms=7000\n" CHECK QUIT);
	scripted_session_refused(&s, redlock_check(s.c, "n", &s.grant), "QUORUM");
	ck_assert(!redlock_away(s.c));
	scripted_session_refused(&s, redlock_check(s.c, "n", &s.grant), "QUORUM");
	scripted_session_check(&s, 0);
	ck_assert_int_eq(s.grant.fence, 17);
	scripted_session_lost_once(&s, "! SAFE name=n fence=17 valid_ms=7000");
	scripted_session_end(&s);
}

TEST(the_loss_of_an_open_lock_is_told_by_the_daemon)
{
	struct scripted_session s;

	scripted_session_begin(&s, HELLO LOCK ASKED OPEN NOT_YET "> ! LOST name=n fence=17 reason=quorum\n" ASKED "> ERR LOST gone\n" QUIT);
	scripted_session_refused(&s, redlock_check(s.c, "n", &s.grant), "LOST");
	scripted_session_lost_once(&s, "! LOST name=n fence=17 reason=quorum");
	scripted_session_end(&s);
}

/* The daemon left another lock open. It does not know this one. */
TEST(a_lock_that_the_daemon_does_not_know_is_a_loss_that_is_told_once)
{
	struct scripted_session s;

	scripted_session_begin(&s, HELLO LOCK ASKED OPEN ASKED "> ERR NOTHELD no\n" ASKED "> ERR NOTHELD no\n" QUIT);
	scripted_session_refused(&s, redlock_check(s.c, "n", &s.grant), "LOST");
	scripted_session_lost_once(&s, "! LOST name=n fence=17 reason=evicted");
	scripted_session_refused(&s, redlock_unlock(s.c, "n", 0), "LOST");
	scripted_session_refused(&s, redlock_check(s.c, "n", &s.grant), "NOTHELD");
	scripted_session_end(&s);
}

TEST(another_grant_is_no_answer_to_the_old_one)
{
	struct scripted_session s;

	scripted_session_begin(&s, HELLO LOCK ASKED OPEN ASKED "> OK name=n fence=18 valid_ms=9000 count=1\n" QUIT);
	scripted_session_refused(&s, redlock_check(s.c, "n", &s.grant), "LOST");
	scripted_session_lost_once(&s, "! LOST name=n fence=17 reason=evicted");
	scripted_session_end(&s);
}

#define UNLOCK_N "< UNLOCK n keep=70ms fence=17 count=0$\n"

/* Whatever CHECK says, the UNLOCK is sent again. It acts on what the daemon is about to adopt. */
static const char *const checks[] = {NOT_YET, CHECK, ASKED "> ERR NOTHELD no\n"};

LOOP_TEST(an_unlock_in_flight_is_done_once, ARRAY_N(checks))
{
	char script[1000];
	struct scripted_session s;

	snprintf(script, sizeof(script), HELLO LOCK UNLOCK_N OPEN "%s" UNLOCK_N "> OK name=n count=0\n" QUIT, checks[_i]);
	scripted_session_begin(&s, script);
	ck_assert_int_eq(redlock_unlock(s.c, "n", 70), 0);
	ck_assert_ptr_null(redlock_next_push(s.c));
	scripted_session_end(&s);
}

TEST(a_lock_in_flight_waits_until_its_lock_is_confirmed)
{
	struct scripted_session s;

	scripted_session_open(&s, HELLO "< LOCK n count=1$\n" OPEN "< LOCK n count=1$\n> ERR QUORUM not confirmed yet\n" LOCK QUIT, PATIENCE);
	ck_assert_int_eq(redlock_lock(s.c, "n", NULL, &s.grant), 0);
	ck_assert_int_eq(s.grant.fence, 17);
	scripted_session_end(&s);
}

TEST(a_lock_that_its_caller_gave_up_meanwhile_is_released)
{
	struct redlock_grant grant;
	struct scripted_session s;

	scripted_session_open(&s, HELLO "< LOCK n wait=20ms count=1$\n" OPEN "< LOCK n wait=\n> ERR QUORUM not yet\n"
			      "< CHECK m$\n> ERR NOTHELD no\n< UNLOCK n count=0$\n> OK name=n count=0\n" QUIT, PATIENCE);
	scripted_session_gives_up_put_off(&s);
	ck_assert_int_eq(redlock_lock(s.c, "n", &(struct redlock_options){.size = sizeof(struct redlock_options), .wait_ms = 20}, &grant), -ECONNABORTED);
	redlock_set_timeout(s.c, PATIENCE);
	scripted_session_refused(&s, redlock_check(s.c, "m", &grant), "NOTHELD");
	scripted_session_end(&s);
}

/* --- redlock run --- */

#define BEGUN(ms)                                                                                                                      \
	"< HELLO 1 name=\"redlock run \n> OK proto=1 session=7 secret=s7\n< LOCK n wait=forever\n> OK name=n fence=17 valid_ms=" ms " ttl_ms=" ms " count=1\n" \
	"< CHECK n\n> OK name=n fence=17 valid_ms=" ms " ttl_ms=" ms " count=1\n"

TEST(a_command_goes_on_while_its_lock_is_open)
{
	struct outcome o;

	PLAYED(&o, BEGUN("4000") OPEN NOT_YET NOT_YET "^ asked\n* OK name=n fence=17 valid_ms=4000 ttl_ms=4000 count=1\n"
	       "< UNLOCK n fence=17 count=0$\n> OK name=n count=0\n" QUIT, "run",
	       "n", "sh", "-c", "while [ ! -s $FOLDER/asked ]; do sleep 0.05; done; exit 7");
	ck_assert_msg(o.code == 7, "%d %s", o.code, o.err);
}

/* The daemon went away between the grant and the CHECK that confirms it. */
TEST(a_command_begins_when_its_grant_is_confirmed)
{
	struct outcome o;

	PLAYED(&o,
	       "< HELLO 1 name=\"redlock run \n> OK proto=1 session=7 secret=s7\n< LOCK n wait=forever\n" "> " GRANT "\n< CHECK n\n" OPEN NOT_YET NOT_YET
	       NOT_YET "* OK name=n fence=17 valid_ms=6000 count=1\n< UNLOCK n fence=17 count=0$\n> OK name=n count=0\n" QUIT,
	       "run", "n", "sh", "-c", "exit 7");
	ck_assert_msg(o.code == 7, "%d %s", o.code, o.err);
}

TEST(a_command_is_stopped_in_time_when_its_lock_stays_open)
{
	struct outcome o;

	IN_TIME(3900000, PLAYED(&o, BEGUN("3000") "! 0\n" OPEN NOT_YET "* ERR QUORUM not confirmed yet\nq\n@ pid\n", "run", "n", "sh", "-c",
				"trap '' TERM; echo $$ >$FOLDER/pid; while :; do sleep 0.05; done"));
	ck_assert_int_eq(o.code, EXIT_LOST);
}

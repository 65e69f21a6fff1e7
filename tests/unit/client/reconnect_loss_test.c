/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client/lib/recovery.c, holds.c: which locks the client library takes for lost when its connection broke, by what RESUME shows, and that each loss is told
 * once.
 */
#include "tests/fixture/scripted_session.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

FIXTURE(.seconds = 30)

TEST(a_row_that_is_missing_is_a_loss_that_is_told_once)
{
	struct scripted_session s;

	scripted_session_begin(&s, HELLO LOCK "< CHECK n$\n" NOTHING "< CHECK m$\n> ERR NOTHELD no\n< CHECK n$\n> ERR NOTHELD no\n" QUIT);
	scripted_session_refused(&s, redlock_check(s.c, "n", &s.grant), "LOST");
	scripted_session_lost_once(&s, "! LOST name=n fence=17 reason=evicted");
	scripted_session_refused(&s, redlock_extend(s.c, "n", 0, &s.grant), "LOST");
	scripted_session_refused(&s, redlock_check(s.c, "m", &s.grant), "NOTHELD");
	scripted_session_refused(&s, redlock_unlock(s.c, "n", 0), "LOST");
	scripted_session_refused(&s, redlock_check(s.c, "n", &s.grant), "NOTHELD");
	ck_assert_ptr_null(redlock_next_push(s.c));
	scripted_session_end(&s);
}

TEST(a_refused_RESUME_loses_all_and_begins_a_session)
{
	struct scripted_session s;

	scripted_session_begin(&s, HELLO LOCK
		    "< CHECK n$\n" GONE
		    "< LOCK n count=1$\n> OK name=n fence=18 valid_ms=9 count=1\n< CHECK n$\n> OK name=n fence=18 valid_ms=9 count=1\n+\n"
		    "< RESUME 8 s8$\n> * name=n fence=18 valid_ms=9\n> OK session=8 n=1\n< CHECK n$\n> OK name=n fence=18 "
		    "valid_ms=9 count=1\n" QUIT);
	scripted_session_refused(&s, redlock_check(s.c, "n", &s.grant), "LOST");
	scripted_session_lost_once(&s, "! LOST name=n fence=17 reason=expired");
	ck_assert_str_eq(redlock_session_id(s.c), "8");
	ck_assert_int_eq(redlock_lock(s.c, "n", NULL, &s.grant), 0);
	scripted_session_check(&s, 0);
	ck_assert_int_eq(s.grant.fence, 18);
	ck_assert_ptr_null(redlock_next_push(s.c));
	scripted_session_end(&s);
}

static const char *const refusals[] = {"LIMIT grace may be at most 0ms (max_grace)", "ARG HELLO has no field 'grace'"};

/* The daemon restarted with a smaller max_grace, or is an older version. A lock of a session without grace is free as soon as its connection breaks. */
LOOP_TEST(a_daemon_that_gives_less_grace_by_now_gets_a_session_without, ARRAY_N(refusals))
{
	char script[2000];
	struct scripted_session s;

	snprintf(script, sizeof(script),
		 HELLO LOCK "< CHECK n$\n+\n" RESUME "> ERR NOTFOUND no such session\n< HELLO 1 name=me grace=5000ms$\n"
			    "> ERR %s\n< HELLO 1 name=me$\n> OK session=8 secret=s8\n" LOCK
			    "< CHECK n$\n+\n< RESUME 8 s8$\n> ERR NOTFOUND no such session\n< HELLO 1 name=me grace=5000ms$\n"
			    "> OK session=9 secret=s9\n" QUIT,
		 refusals[_i]);
	scripted_session_begin(&s, script);
	scripted_session_refused(&s, redlock_check(s.c, "n", &s.grant), "LOST");
	scripted_session_lost_once(&s, "! LOST name=n fence=17 reason=expired");
	ck_assert_int_eq(redlock_lock(s.c, "n", NULL, &s.grant), 0);
	scripted_session_refused(&s, redlock_check(s.c, "n", &s.grant), "LOST");
	scripted_session_lost_once(&s, "! LOST name=n fence=17 reason=evicted");
	scripted_session_end(&s);
}

TEST(a_row_with_another_fence_is_no_answer_to_the_old_grant)
{
	struct scripted_session s;

	scripted_session_begin(&s, HELLO LOCK "< CHECK n$\n+\n" RESUME "> * name=n fence=18 valid_ms=7000\n> OK session=7 n=1\n" QUIT);
	scripted_session_refused(&s, redlock_check(s.c, "n", &s.grant), "LOST");
	scripted_session_lost_once(&s, "! LOST name=n fence=17 reason=evicted");
	scripted_session_end(&s);
}

TEST(a_loss_that_a_push_told_is_not_told_again)
{
	struct scripted_session s;

	/* The daemon tells a loss that nobody heard behind the OK. */
	scripted_session_begin(&s, HELLO LOCK "< CHECK n$\n+\n" RESUME
				   "> OK session=7 n=0\n> ! LOST name=n fence=17 reason=quorum\n< PING$\n> OK\n" QUIT);
	scripted_session_refused(&s, redlock_check(s.c, "n", &s.grant), "LOST");
	ck_assert_int_eq(redlock_request(s.c, "PING", 0, NULL, NULL), 0);
	scripted_session_lost_once(&s, "! LOST name=n fence=17 reason=evicted");
	scripted_session_end(&s);

	scripted_session_begin(&s, HELLO LOCK "> ! LOST name=n fence=17 reason=quorum\n< CHECK n$\n" NOTHING
				   "< CHECK n$\n> ERR LOST gone\n" QUIT);
	scripted_session_refused(&s, redlock_check(s.c, "n", &s.grant), "LOST");
	scripted_session_lost_once(&s, "! LOST name=n fence=17 reason=quorum");
	scripted_session_end(&s);
}

/* The name was lost and locked again while the connection was away: the row answers the LOCK, and the LOST behind the OK is of the grant before. */
TEST(a_loss_beside_a_row_of_the_same_lock_is_told_once)
{
	struct scripted_session s;

	scripted_session_begin(&s, HELLO LOCK "< LOCK n wait=2000ms count=2$\n+\n" RESUME
				   "> * name=n fence=18 valid_ms=7000 count=1\n> OK session=7 n=1\n> ! LOST name=n fence=17 reason=quorum\n"
				   "< LOCK n wait=\n> OK name=n fence=18 valid_ms=7000 count=1\n"
				   "< CHECK n$\n> OK name=n fence=18 valid_ms=6000 count=1\n< CHECK n$\n> OK name=n fence=18 valid_ms=5000 "
				   "count=1\n" QUIT);
	ck_assert_int_eq(redlock_lock(s.c, "n", &(struct redlock_options){.size = sizeof(struct redlock_options), .wait_ms = 2000}, &s.grant), 0);
	ck_assert_int_eq(s.grant.fence, 18);
	scripted_session_check(&s, 0);
	scripted_session_lost_once(&s, "! LOST name=n fence=17 reason=evicted");
	scripted_session_end(&s);
}

/* The push and the LOCK meet on the way: the LOCK takes the name anew. What it is granted is known to be held, and lost with the session. */
TEST(a_lock_that_is_lost_while_it_is_locked_again_is_tracked)
{
	struct scripted_session s;

	scripted_session_begin(&s, HELLO LOCK "< LOCK n wait=2000ms count=2$\n> ! LOST name=n fence=17 reason=quorum\n> ERR LOST gone\n< LOCK n wait=\n"
				   "> OK name=n fence=18 valid_ms=9000 count=1\n< CHECK n$\n> OK name=n fence=18 valid_ms=8000 count=1\n"
				   "< CHECK n$\n" GONE QUIT);
	ck_assert_int_eq(redlock_lock(s.c, "n", &(struct redlock_options){.size = sizeof(struct redlock_options), .wait_ms = 2000}, &s.grant), 0);
	ck_assert_int_eq(s.grant.fence, 18);
	scripted_session_lost_once(&s, "! LOST name=n fence=17 reason=quorum");
	scripted_session_refused(&s, redlock_check(s.c, "n", &s.grant), "LOST");
	scripted_session_lost_once(&s, "! LOST name=n fence=18 reason=expired");
	scripted_session_end(&s);
}

TEST(rows_that_were_left_out_are_no_losses)
{
	struct scripted_session s;

	scripted_session_begin(&s, HELLO LOCK "+\n" RESUME "> OK session=7 n=0 more=1\n" CHECK QUIT);
	scripted_session_check(&s, 0);
	ck_assert_ptr_null(redlock_next_push(s.c));
	scripted_session_end(&s);
}

TEST(rows_tell_many_locks_apart)
{
	char script[16000] = HELLO, name[16], expected[80];
	const struct redlock_line *push;
	struct redlock_bytes said;
	struct redlock_grant grant;
	struct scripted_session s;
	int i;

	for (i = 0; i < 50; i++)
		sprintf(script + strlen(script),
			"< LOCK m%d count=1$\n> OK name=m%d fence=%d valid_ms=9000\n< CHECK m%d$\n> OK name=m%d fence=%d "
			"valid_ms=9000\n",
			i, i, i + 1, i, i, i + 1);
	strcat(script, "+\n" RESUME);
	for (i = 0; i < 50; i += 2)
		sprintf(script + strlen(script), "> * name=m%d fence=%d valid_ms=9000\n", i, i + 1);
	strcat(script, "> * name=foreign fence=5 valid_ms=9000\n> * name=m1 owner=x fence=2 valid_ms=9000\n> OK session=7 n=27\n"
		       "< CHECK m0$\n> OK name=m0 fence=1 valid_ms=9000\n" QUIT);
	scripted_session_open(&s, script, PATIENCE);
	for (i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "m%d", i);
		ck_assert_int_eq(redlock_lock(s.c, name, NULL, &grant), 0);
	}
	ck_assert_int_eq(redlock_check(s.c, "m0", &grant), 0);
	for (i = 49; i > 0; i -= 2) {
		push = redlock_next_push(s.c);
		ck_assert_ptr_nonnull(push);
		snprintf(expected, sizeof(expected), "! LOST name=m%d fence=%d reason=evicted", i, i + 1);
		said = redlock_line_text(push);
		ck_assert_uint_eq(said.n, strlen(expected));
		ck_assert_int_eq(strncmp(said.p, expected, said.n), 0);
	}
	ck_assert_ptr_null(redlock_next_push(s.c));
	scripted_session_end(&s);
}

TEST(an_unlock_after_the_validity_ended_hears_of_the_loss)
{
	struct timespec pause = {0, 30000000};
	struct scripted_session s;

	scripted_session_open(
		&s,
		HELLO
		"< LOCK n count=1$\n> OK name=n fence=17 valid_ms=20\n< CHECK n$\n> OK name=n fence=17 valid_ms=20\n< UNLOCK n fence=17 count=0$\n" NOTHING
			QUIT,
		PATIENCE);
	ck_assert_int_eq(redlock_lock(s.c, "n", NULL, &s.grant), 0);
	nanosleep(&pause, NULL);
	scripted_session_refused(&s, redlock_unlock(s.c, "n", 0), "LOST");
	scripted_session_lost_once(&s, "! LOST name=n fence=17 reason=evicted");
	scripted_session_end(&s);
}

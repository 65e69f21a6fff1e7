/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client/lib/holds.c: how often a session holds a lock when calls about it were given up while the connection was away. The caller keeps what it was told
 * of. The rest is released. No UNLOCK counts twice.
 */
#include "tests/fixture/scripted_session.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define ROW_TWO   "> * name=n fence=17 valid_ms=7000 count=2\n> OK session=7 n=1\n"
#define ROW_ONE   "> * name=n fence=17 valid_ms=7000 count=1\n> OK session=7 n=1\n"
#define ROW_NONE  "> OK session=7 n=0\n"
#define TWICE     "OK name=n fence=17 valid_ms=9000 count=2"
#define LOCK_TWO  "< LOCK n count=2$\n> " TWICE "\n< CHECK n$\n> " TWICE "\n"
#define BACK_TO_1 "< UNLOCK n fence=17 count=1$\n> OK name=n count=1\n"
#define LAST      "< UNLOCK n fence=17 count=0$\n> OK name=n count=0\n"
#define PING      "< PING$\n> OK\n"

static void pinged(struct scripted_session *s)
{
	ck_assert_int_eq(redlock_request(s->c, "PING", 0, NULL, NULL), 0);
}

static void locks_again(struct scripted_session *s, int expected)
{
	ck_assert_int_eq(redlock_lock(s->c, "n", NULL, &s->grant), expected);
}

static const struct redlock_options brief = {.size = sizeof(brief), .wait_ms = 20};

static void locks_in_vain(struct scripted_session *s)
{
	scripted_session_gives_up_away(s);
	ck_assert_int_eq(redlock_lock(s->c, "n", &brief, &s->grant), -ECONNABORTED);
	scripted_session_back(s);
}

static void unlocks_in_vain(struct scripted_session *s)
{
	scripted_session_gives_up_away(s);
	ck_assert_int_eq(redlock_unlock(s->c, "n", 0), -ECONNABORTED);
	scripted_session_back(s);
}

static void unlocks(struct scripted_session *s, int64_t count)
{
	ck_assert_int_eq(redlock_unlock(s->c, "n", 0), 0);
	ck_assert_int_eq(redlock_line_number(redlock_answer(s->c), "count", -1), count);
}

/* --- LOCK --- */

static const char *const second_locks[] = {
	/* It was counted, or it was not. */
	"< LOCK n wait=20ms count=2$\n" AWAY ROW_TWO BACK_TO_1,
	"< LOCK n wait=20ms count=2$\n" AWAY ROW_ONE BACK_TO_1,
	/* The OK of the LOCK came, but the CHECK behind it was not answered. */
	"< LOCK n wait=20ms count=2$\n> " TWICE "\n< CHECK n$\n" AWAY ROW_TWO BACK_TO_1,
	/* The connection breaks again before the daemon reads the UNLOCK. */
	"< LOCK n wait=20ms count=2$\n" AWAY ROW_TWO "< UNLOCK n fence=17 count=1$\n+\n" RESUME ROW_TWO BACK_TO_1,
	"< LOCK n wait=20ms count=2$\n" AWAY ROW_TWO "< UNLOCK n fence=17 count=1$\n+\n" RESUME ROW_ONE BACK_TO_1,
};

FIXTURE(.seconds = 30)

LOOP_TEST(a_second_LOCK_that_was_given_up_is_released, ARRAY_N(second_locks))
{
	char script[2000];
	struct scripted_session s;

	snprintf(script, sizeof(script), HELLO LOCK "%s" PING "< UNLOCK n fence=17 count=0$\n> OK name=n count=0\n" QUIT, second_locks[_i]);
	scripted_session_begin(&s, script);
	locks_in_vain(&s);
	pinged(&s);
	unlocks(&s, 0);
	scripted_session_end(&s);
}

TEST(a_second_LOCK_that_is_tried_again_counts_once)
{
	struct scripted_session s;

	scripted_session_begin(&s, HELLO LOCK "< LOCK n wait=20ms count=2$\n" AWAY ROW_TWO "< LOCK n count=2$\n> " TWICE "\n< CHECK n$\n> " TWICE "\n" QUIT);
	locks_in_vain(&s);
	locks_again(&s, 0);
	ck_assert_int_eq(s.grant.count, 2);
	scripted_session_end(&s);
}

/* The caller has heard of the loss, asked for the lock anew, and given that up. */
TEST(a_grant_behind_a_loss_that_was_given_up_is_released)
{
	struct scripted_session s;

	scripted_session_begin(&s, HELLO LOCK "< CHECK n$\n" NOTHING "< LOCK n wait=20ms count=1$\n" AWAY
				   "> * name=n fence=18 valid_ms=7000 count=1\n> OK session=7 n=1\n"
				   "< UNLOCK n count=0$\n> OK name=n count=0\n" PING QUIT);
	scripted_session_refused(&s, redlock_check(s.c, "n", &s.grant), "LOST");
	locks_in_vain(&s);
	pinged(&s);
	scripted_session_refused(&s, redlock_unlock(s.c, "n", 0), "LOST");
	scripted_session_end(&s);
}

TEST(a_release_is_not_forgotten_before_it_is_answered)
{
	struct scripted_session s;

	scripted_session_open(&s,
		   HELLO "< LOCK n wait=20ms count=1$\n" AWAY ROW_ONE "< UNLOCK n count=0$\n+\n" RESUME ROW_ONE
			 "< UNLOCK n count=0$\n> OK name=n count=0\n" PING QUIT,
		   PATIENCE);
	locks_in_vain(&s);
	pinged(&s);
	scripted_session_end(&s);
}

/* A restarted daemon has not confirmed yet what is held. */
TEST(a_second_LOCK_is_released_though_its_lock_is_open)
{
	struct scripted_session s;

	scripted_session_begin(&s, HELLO LOCK "< LOCK n wait=20ms count=2$\n" AWAY "> OK session=7 n=0 open=1\n< CHECK n$\n> ERR QUORUM not yet\n"
			       BACK_TO_1 PING CHECK PING QUIT);
	locks_in_vain(&s);
	pinged(&s);
	scripted_session_check(&s, 0);
	pinged(&s);
	scripted_session_end(&s);
}

/* --- UNLOCK --- */

#define OPEN_YET "> OK session=7 n=0 open=1\n< CHECK n$\n> ERR QUORUM not yet\n"

static const char *const first_unlocks[] = {
	/* It was counted, or it was not. */
	ROW_ONE,
	ROW_TWO,
	/* A restarted daemon cannot say at once. */
	OPEN_YET,
};

LOOP_TEST(an_UNLOCK_that_was_given_up_counts_once, ARRAY_N(first_unlocks))
{
	char script[2000];
	struct scripted_session s;

	snprintf(script, sizeof(script), HELLO LOCK LOCK_TWO "< UNLOCK n fence=17 count=1$\n" AWAY "%s" PING BACK_TO_1 LAST QUIT, first_unlocks[_i]);
	scripted_session_begin(&s, script);
	locks_again(&s, 0);
	unlocks_in_vain(&s);
	pinged(&s);
	unlocks(&s, 1);
	unlocks(&s, 0);
	scripted_session_end(&s);
}

TEST(a_last_UNLOCK_that_was_given_up_and_done_is_no_loss)
{
	struct scripted_session s;

	scripted_session_begin(&s, HELLO LOCK "< UNLOCK n fence=17 count=0$\n" AWAY ROW_NONE PING LAST LOCK QUIT);
	unlocks_in_vain(&s);
	pinged(&s);
	ck_assert_ptr_null(redlock_next_push(s.c));
	unlocks(&s, 0);
	locks_again(&s, 0);
	scripted_session_end(&s);
}

/* The row was read before the UNLOCK was asked for, so the UNLOCK is still to be sent. */
TEST(an_UNLOCK_that_is_asked_in_the_middle_of_RESUME_is_sent)
{
	struct scripted_session s;
	FILE *file;

	scripted_session_begin(&s, HELLO LOCK "+\n" RESUME ROW "! 0\n> OK session=7 n=1\n< UNLOCK n fence=17 count=0$\n> OK name=n count=0\n" QUIT);
	redlock_set_timeout(s.c, 300);
	ck_assert_int_eq(redlock_request(s.c, "PING", 0, NULL, NULL), -ECONNABORTED);
	ck_assert_int_eq(redlock_request(s.c, "PING", 0, NULL, NULL), -ECONNABORTED);
	redlock_set_timeout(s.c, PATIENCE);
	file = fopen(fake_daemon_path(&s.f, "pid"), "w");
	fprintf(file, "%d\n", (int)getpid());
	fclose(file);
	unlocks(&s, 0);
	scripted_session_end(&s);
}

/* --- rows that were left out --- */

#define LEFT_OUT "+\n" RESUME "> OK session=7 n=0 more=1\n"

TEST(an_UNLOCK_of_a_lock_that_was_left_out_is_done)
{
	struct scripted_session s;

	scripted_session_begin(&s, HELLO LOCK "< UNLOCK n fence=17 count=0$\n" LEFT_OUT "< UNLOCK n fence=17 count=0$\n> OK name=n count=0\n" QUIT);
	unlocks(&s, 0);
	scripted_session_end(&s);
}

TEST(a_LOCK_that_was_granted_and_left_out_is_not_counted_twice)
{
	struct scripted_session s;

	scripted_session_open(&s, HELLO "< LOCK n count=1$\n" LEFT_OUT LOCK QUIT, PATIENCE);
	locks_again(&s, 0);
	ck_assert_int_eq(s.grant.count, 1);
	scripted_session_end(&s);
}

/* --- the CHECK behind a LOCK --- */

#define GRANTED_OPEN "> " GRANT "\n< CHECK n$\n+\n" RESUME "> OK session=7 n=0 open=1\n"
#define NOT_YET      "< CHECK n$\n> ERR QUORUM not confirmed yet\n"

TEST(a_LOCK_waits_until_its_grant_is_confirmed)
{
	struct scripted_session s;

	scripted_session_open(&s, HELLO "< LOCK n count=1$\n" GRANTED_OPEN NOT_YET NOT_YET NOT_YET CHECK QUIT, PATIENCE);
	locks_again(&s, 0);
	ck_assert_int_eq(s.grant.fence, 17);
	scripted_session_end(&s);
}

TEST(a_grant_that_is_not_confirmed_in_time_is_released)
{
	struct scripted_session s;

	scripted_session_open(&s, HELLO "< LOCK n wait=20ms count=1$\n" GRANTED_OPEN "* ERR QUORUM not confirmed yet\n< UNLOCK n count=0$\n"
			      "> OK name=n count=0\n" PING QUIT, PATIENCE);
	scripted_session_gives_up_put_off(&s);
	ck_assert_int_eq(redlock_lock(s.c, "n", &brief, &s.grant), -ECONNABORTED);
	redlock_set_timeout(s.c, PATIENCE);
	pinged(&s);
	scripted_session_end(&s);
}

/* --- grace --- */

TEST(grace_that_is_not_wanted_any_more_is_given_up)
{
	struct scripted_session s;

	scripted_session_begin(&s, HELLO LOCK "< HELLO 1 name=me grace=0ms$\n> OK proto=1 session=7 secret=s7\n=\n");
	ck_assert_int_eq(redlock_hello(s.c, &(struct redlock_session){.size = sizeof(struct redlock_session), .label = "me"}), 0);
	scripted_session_end(&s);
}

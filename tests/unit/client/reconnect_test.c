/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client/recovery.c, repeat.c: the client library across connections that break, against a scripted daemon: what it asks again, what it does not, and
 * what is lost. How long it tries: time_limits_test.c.
 */
#include "tests/fixture/scripted_session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

START_TEST(a_check_goes_on_over_the_next_connection)
{
	struct scripted_session s;
	int64_t before;

	scripted_session_begin(&s, HELLO LOCK "< CHECK n$\n" KEPT CHECK QUIT);
	before = redlock_now_us();
	scripted_session_check(&s, 0);
	ck_assert_int_eq(s.grant.fence, 17);
	ck_assert_int_eq(s.grant.valid_ms, 6000);
	ck_assert_int_ge(s.grant.until_us, before + 6000000);
	ck_assert_int_le(s.grant.until_us, redlock_now_us() + 6000000);
	ck_assert_ptr_null(redlock_next_push(s.c));
	scripted_session_end(&s);
}
END_TEST

START_TEST(without_grace_a_broken_connection_stays_broken)
{
	struct redlock_grant grant;
	struct redlock *c;
	struct fake_daemon f;

	fake_daemon_begin(&f, "< HELLO 1 name=me$\n> OK session=7 secret=s7\n< CHECK n\n");
	ck_assert_int_eq(redlock_open(f.addr, PATIENCE, &c), 0);
	ck_assert_int_eq(redlock_hello(c, &(struct redlock_session){.label = "me"}), 0);
	ck_assert_int_eq(redlock_check(c, "n", &grant), -ECONNRESET);
	ck_assert_int_eq(redlock_check(c, "n", &grant), -ECONNRESET);
	redlock_close(c);
	fake_daemon_end(&f);
}
END_TEST

START_TEST(a_daemon_that_gives_no_grace_leaves_the_session_without)
{
	struct scripted_session s;

	scripted_session_open(&s, "< HELLO 1 name=me grace=5000ms$\n> OK session=7\n< CHECK n\n", PATIENCE);
	scripted_session_check(&s, -ECONNRESET);
	scripted_session_end(&s);
}
END_TEST

START_TEST(a_daemon_that_is_stopped_breaks_no_connection)
{
	struct scripted_session s;

	scripted_session_open(&s, HELLO "< CHECK n\n" QUIT_BY, 50);
	scripted_session_check(&s, -ETIMEDOUT);
	scripted_session_check(&s, -ETIMEDOUT);
	scripted_session_end(&s);
}
END_TEST

/* --- drops at every byte --- */

/* A request, its answer, and what the daemon sends and reads over the next connection. */
struct exchange {
	const char *request, *answer, *resumed, *again;
	int (*call)(struct scripted_session *s);
};

static int lock_n(struct scripted_session *s)
{
	return redlock_lock(s->c, "n", NULL, &s->grant);
}

static int check_n(struct scripted_session *s)
{
	return redlock_check(s->c, "n", &s->grant);
}

static int extend_n(struct scripted_session *s)
{
	return redlock_extend(s->c, "n", 9000, &s->grant);
}

static int unlock_n(struct scripted_session *s)
{
	return redlock_unlock(s->c, "n", 70);
}

static const struct exchange exchanges[] = {
	/* not granted yet: asked again */
	{"LOCK n", GRANT, RESUME "> OK session=7 n=0\n", "< LOCK n$\n> " GRANT "\n" CHECK, lock_n},
	/* granted, but the answer was lost: not asked again, or it would count twice */
	{"LOCK n", GRANT, RESUME ROW "> OK session=7 n=1\n", CHECK, lock_n},
	/* a new session has to ask anew */
	{"LOCK n", GRANT, RESUME "> ERR NOTFOUND none\n< HELLO 1 name=me grace=5000ms$\n> OK session=8 secret=s8\n",
	 "< LOCK n$\n> " GRANT "\n" CHECK, lock_n},
	{"CHECK n", CHECKED, RESUME ROW "> OK session=7 n=1\n", CHECK, check_n},
	{"EXTEND n ttl=9000ms", CHECKED, RESUME ROW "> OK session=7 n=1\n", "< EXTEND n ttl=9000ms$\n> " CHECKED "\n", extend_n},
	/* not done yet: that grant only */
	{"UNLOCK n keep=70ms", "OK name=n count=0", RESUME ROW "> OK session=7 n=1\n",
	 "< UNLOCK n keep=70ms fence=17$\n> OK name=n count=0\n", unlock_n},
	/* done */
	{"UNLOCK n keep=70ms", "OK name=n count=0", RESUME "> OK session=7 n=0\n", "", unlock_n},
	{"UNLOCK n keep=70ms", "OK name=n count=0",
	 RESUME "> ERR NOTFOUND none\n< HELLO 1 name=me grace=5000ms$\n> OK session=8 secret=s8\n", "", unlock_n},
};

static void exchange_play(const struct exchange *x, const char *cut)
{
	struct scripted_session s;
	char script[2000];
	bool locks = x->call == lock_n;
	int r;

	snprintf(script, sizeof(script), HELLO "%s%s+\n%s%s" QUIT, locks ? "" : LOCK, cut, x->resumed, x->again);
	scripted_session_open(&s, script, PATIENCE);
	if (!locks)
		ck_assert_int_eq(redlock_lock(s.c, "n", NULL, &s.grant), 0);
	r = x->call(&s);
	ck_assert_msg(r == 0, "%d: %s; %s", r, redlock_errmsg(s.c), script);
	ck_assert_ptr_null(redlock_next_push(s.c));
	scripted_session_end(&s);
}

START_TEST(a_drop_at_any_byte_of_a_request_changes_nothing)
{
	const struct exchange *x = &exchanges[_i];
	char cut[32];
	size_t n;

	for (n = 0; n <= strlen(x->request); n++) {
		snprintf(cut, sizeof(cut), "# %zu\n", n);
		exchange_play(x, cut);
	}
}
END_TEST

START_TEST(a_drop_at_any_byte_of_an_answer_changes_nothing)
{
	const struct exchange *x = &exchanges[_i];
	char cut[400];
	size_t n;

	for (n = 0; n <= strlen(x->answer); n++) {
		snprintf(cut, sizeof(cut), "< %s$\n>> %.*s\n", x->request, (int)n, x->answer);
		exchange_play(x, cut);
	}
}
END_TEST

/* Without its line end the answer of RESUME does not count, so the next attempt asks for the same. */
static const char *const resumptions[] = {"* name=n fence=17 valid_ms=7000 count=1", "OK session=7 n=1", "ERR NOTFOUND none"};

START_TEST(a_drop_at_any_byte_of_RESUME_is_followed_by_another)
{
	const char *text = resumptions[_i];
	char script[1000];
	struct scripted_session s;
	size_t n;

	for (n = 0; n <= strlen(text); n++) {
		snprintf(script, sizeof(script), HELLO LOCK "< CHECK n$\n+\n" RESUME "%s>> %.*s\n" KEPT CHECK QUIT,
			 _i == 1 ? ROW : "", (int)n, text);
		scripted_session_begin(&s, script);
		scripted_session_check(&s, 0);
		ck_assert_ptr_null(redlock_next_push(s.c));
		scripted_session_end(&s);
	}
	for (n = 0; n <= strlen("RESUME 7 s7"); n++) {
		snprintf(script, sizeof(script), HELLO LOCK "< CHECK n$\n+\n# %zu\n" KEPT CHECK QUIT, n);
		scripted_session_begin(&s, script);
		scripted_session_check(&s, 0);
		scripted_session_end(&s);
	}
}
END_TEST

/* --- what is lost --- */

START_TEST(a_row_that_is_missing_is_a_loss_that_is_told_once)
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
END_TEST

START_TEST(a_refused_RESUME_loses_all_and_begins_a_session)
{
	struct scripted_session s;

	scripted_session_begin(&s, HELLO LOCK
		    "< CHECK n$\n" GONE
		    "< LOCK n$\n> OK name=n fence=18 valid_ms=9 count=1\n< CHECK n$\n> OK name=n fence=18 valid_ms=9 count=1\n+\n"
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
END_TEST

static const char *const refusals[] = {"LIMIT grace may be at most 0ms (max_grace)", "ARG HELLO has no field 'grace'"};

/* The daemon restarted with a smaller max_grace, or is an older version. A lock of a session without grace is free as soon as its connection breaks. */
START_TEST(a_daemon_that_gives_less_grace_by_now_gets_a_session_without)
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
END_TEST

START_TEST(a_row_with_another_fence_is_no_answer_to_the_old_grant)
{
	struct scripted_session s;

	scripted_session_begin(&s, HELLO LOCK "< CHECK n$\n+\n" RESUME "> * name=n fence=18 valid_ms=7000\n> OK session=7 n=1\n" QUIT);
	scripted_session_refused(&s, redlock_check(s.c, "n", &s.grant), "LOST");
	scripted_session_lost_once(&s, "! LOST name=n fence=17 reason=evicted");
	scripted_session_end(&s);
}
END_TEST

START_TEST(a_loss_that_a_push_told_is_not_told_again)
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
END_TEST

/* The name was lost and locked again while the connection was away: the row answers the LOCK, and the LOST behind the OK is of the grant before. */
START_TEST(a_loss_beside_a_row_of_the_same_lock_is_told_once)
{
	struct scripted_session s;

	scripted_session_begin(&s, HELLO LOCK "< LOCK n wait=2000ms$\n+\n" RESUME
				   "> * name=n fence=18 valid_ms=7000 count=1\n> OK session=7 n=1\n> ! LOST name=n fence=17 reason=quorum\n"
				   "< CHECK n$\n> OK name=n fence=18 valid_ms=6000 count=1\n< CHECK n$\n> OK name=n fence=18 valid_ms=5000 "
				   "count=1\n" QUIT);
	ck_assert_int_eq(redlock_lock(s.c, "n", &(struct redlock_options){.wait_ms = 2000}, &s.grant), 0);
	ck_assert_int_eq(s.grant.fence, 18);
	scripted_session_check(&s, 0);
	scripted_session_lost_once(&s, "! LOST name=n fence=17 reason=evicted");
	scripted_session_end(&s);
}
END_TEST

/* The push and the LOCK meet on the way: the LOCK takes the name anew. What it is granted is known to be held, and lost with the session. */
START_TEST(a_lock_that_is_lost_while_it_is_locked_again_is_tracked)
{
	struct scripted_session s;

	scripted_session_begin(&s, HELLO LOCK "< LOCK n wait=2000ms$\n> ! LOST name=n fence=17 reason=quorum\n"
				   "> OK name=n fence=18 valid_ms=9000 count=1\n< CHECK n$\n> OK name=n fence=18 valid_ms=8000 count=1\n"
				   "< CHECK n$\n" GONE QUIT);
	ck_assert_int_eq(redlock_lock(s.c, "n", &(struct redlock_options){.wait_ms = 2000}, &s.grant), 0);
	ck_assert_int_eq(s.grant.fence, 18);
	scripted_session_lost_once(&s, "! LOST name=n fence=17 reason=quorum");
	scripted_session_refused(&s, redlock_check(s.c, "n", &s.grant), "LOST");
	scripted_session_lost_once(&s, "! LOST name=n fence=18 reason=expired");
	scripted_session_end(&s);
}
END_TEST

START_TEST(rows_that_were_left_out_are_no_losses)
{
	struct scripted_session s;

	scripted_session_begin(&s, HELLO LOCK "+\n" RESUME "> OK session=7 n=0 more=1\n" CHECK QUIT);
	scripted_session_check(&s, 0);
	ck_assert_ptr_null(redlock_next_push(s.c));
	scripted_session_end(&s);
}
END_TEST

START_TEST(rows_tell_many_locks_apart)
{
	char script[16000] = HELLO, name[16], expected[80];
	const struct redlock_line *push;
	struct redlock_bytes said;
	struct redlock_grant grant;
	struct scripted_session s;
	int i;

	for (i = 0; i < 50; i++)
		sprintf(script + strlen(script),
			"< LOCK m%d$\n> OK name=m%d fence=%d valid_ms=9000\n< CHECK m%d$\n> OK name=m%d fence=%d "
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
END_TEST

START_TEST(an_unlock_after_the_validity_ended_hears_of_the_loss)
{
	struct timespec pause = {0, 30000000};
	struct scripted_session s;

	scripted_session_open(
		&s,
		HELLO
		"< LOCK n$\n> OK name=n fence=17 valid_ms=20\n< CHECK n$\n> OK name=n fence=17 valid_ms=20\n< UNLOCK n$\n" NOTHING
			QUIT,
		PATIENCE);
	ck_assert_int_eq(redlock_lock(s.c, "n", NULL, &s.grant), 0);
	nanosleep(&pause, NULL);
	scripted_session_refused(&s, redlock_unlock(s.c, "n", 0), "LOST");
	scripted_session_lost_once(&s, "! LOST name=n fence=17 reason=evicted");
	scripted_session_end(&s);
}
END_TEST

Suite *reconnect_suite(void)
{
	Suite *suite = suite_create("reconnect");
	TCase *tests = tcase_create("reconnect");

	tcase_add_test(tests, a_check_goes_on_over_the_next_connection);
	tcase_add_test(tests, without_grace_a_broken_connection_stays_broken);
	tcase_add_test(tests, a_daemon_that_gives_no_grace_leaves_the_session_without);
	tcase_add_test(tests, a_daemon_that_is_stopped_breaks_no_connection);
	tcase_add_loop_test(tests, a_drop_at_any_byte_of_a_request_changes_nothing, 0, ARRAY_N(exchanges));
	tcase_add_loop_test(tests, a_drop_at_any_byte_of_an_answer_changes_nothing, 0, ARRAY_N(exchanges));
	tcase_add_loop_test(tests, a_drop_at_any_byte_of_RESUME_is_followed_by_another, 0, ARRAY_N(resumptions));
	tcase_add_test(tests, a_row_that_is_missing_is_a_loss_that_is_told_once);
	tcase_add_test(tests, a_refused_RESUME_loses_all_and_begins_a_session);
	tcase_add_loop_test(tests, a_daemon_that_gives_less_grace_by_now_gets_a_session_without, 0, ARRAY_N(refusals));
	tcase_add_test(tests, a_row_with_another_fence_is_no_answer_to_the_old_grant);
	tcase_add_test(tests, a_loss_that_a_push_told_is_not_told_again);
	tcase_add_test(tests, a_loss_beside_a_row_of_the_same_lock_is_told_once);
	tcase_add_test(tests, a_lock_that_is_lost_while_it_is_locked_again_is_tracked);
	tcase_add_test(tests, rows_that_were_left_out_are_no_losses);
	tcase_add_test(tests, rows_tell_many_locks_apart);
	tcase_add_test(tests, an_unlock_after_the_validity_ended_hears_of_the_loss);
	tcase_set_timeout(tests, 30);
	suite_add_tcase(suite, tests);
	return suite;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client/lib/recovery.c, holds.c: the client library across connections that break, against a scripted daemon: what it asks again and what it does not.
 * What is lost: reconnect_loss_test.c. How long it tries: time_limits_test.c.
 */
#include "tests/fixture/scripted_session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

FIXTURE(.seconds = 30)

TEST(a_check_goes_on_over_the_next_connection)
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

TEST(without_grace_a_broken_connection_stays_broken)
{
	struct redlock_grant grant;
	struct redlock *c;
	struct fake_daemon f;

	fake_daemon_begin(&f, "< HELLO 1 name=me$\n> OK session=7 secret=s7\n< CHECK n\n");
	ck_assert_int_eq(redlock_open(f.addr, PATIENCE, &c), 0);
	ck_assert_int_eq(redlock_hello(c, &(struct redlock_session){.size = sizeof(struct redlock_session), .label = "me"}), 0);
	ck_assert_int_eq(redlock_check(c, "n", &grant), -ECONNRESET);
	ck_assert_int_eq(redlock_check(c, "n", &grant), -ECONNRESET);
	redlock_close(c);
	fake_daemon_end(&f);
}

TEST(a_daemon_that_gives_no_grace_leaves_the_session_without)
{
	struct scripted_session s;

	scripted_session_open(&s, "< HELLO 1 name=me grace=5000ms$\n> OK session=7\n< CHECK n\n", PATIENCE);
	scripted_session_check(&s, -ECONNRESET);
	scripted_session_end(&s);
}

TEST(the_connection_of_a_daemon_that_is_silent_is_closed_and_the_session_resumed)
{
	struct scripted_session s;

	scripted_session_open(&s, HELLO "< CHECK n$\n=\n" NOTHING "< PING$\n> OK\n" QUIT, 50);
	scripted_session_check(&s, -ECONNABORTED);
	ck_assert_msg(strstr(redlock_errmsg(s.c), "does not answer") != NULL, "%s", redlock_errmsg(s.c));
	redlock_set_timeout(s.c, PATIENCE);
	ck_assert_int_eq(redlock_ping(s.c), 0);
	scripted_session_end(&s);
}

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

#define UNLOCKED "< UNLOCK n keep=70ms fence=17 count=0$\n> OK name=n count=0\n"

static const struct exchange exchanges[] = {
	/* not granted yet: asked again */
	{"LOCK n count=1", GRANT, RESUME "> OK session=7 n=0\n", "< LOCK n count=1$\n> " GRANT "\n" CHECK, lock_n},
	/* granted, but the answer was lost: asked again, it counts once */
	{"LOCK n count=1", GRANT, RESUME ROW "> OK session=7 n=1\n", "< LOCK n count=1$\n> " GRANT "\n" CHECK, lock_n},
	/* a new session has to ask anew */
	{"LOCK n count=1", GRANT, RESUME "> ERR NOTFOUND none\n< HELLO 1 name=me grace=5000ms$\n> OK session=8 secret=s8\n",
	 "< LOCK n count=1$\n> " GRANT "\n" CHECK, lock_n},
	{"CHECK n", CHECKED, RESUME ROW "> OK session=7 n=1\n", CHECK, check_n},
	{"EXTEND n ttl=9000ms", CHECKED, RESUME ROW "> OK session=7 n=1\n", "< EXTEND n ttl=9000ms$\n> " CHECKED "\n", extend_n},
	/* done or not: that grant only */
	{"UNLOCK n keep=70ms fence=17 count=0", "OK name=n count=0", RESUME ROW "> OK session=7 n=1\n",
	 UNLOCKED, unlock_n},
	{"UNLOCK n keep=70ms fence=17 count=0", "OK name=n count=0", RESUME "> OK session=7 n=0\n", UNLOCKED, unlock_n},
	{"UNLOCK n keep=70ms fence=17 count=0", "OK name=n count=0",
	 RESUME "> ERR NOTFOUND none\n< HELLO 1 name=me grace=5000ms$\n> OK session=8 secret=s8\n", UNLOCKED, unlock_n},
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

LOOP_TEST(a_drop_at_any_byte_of_a_request_changes_nothing, ARRAY_N(exchanges))
{
	const struct exchange *x = &exchanges[_i];
	char cut[32];
	size_t n;

	for (n = 0; n <= strlen(x->request); n++) {
		snprintf(cut, sizeof(cut), "# %zu\n", n);
		exchange_play(x, cut);
	}
}

LOOP_TEST(a_drop_at_any_byte_of_an_answer_changes_nothing, ARRAY_N(exchanges))
{
	const struct exchange *x = &exchanges[_i];
	char cut[400];
	size_t n;

	for (n = 0; n <= strlen(x->answer); n++) {
		snprintf(cut, sizeof(cut), "< %s$\n>> %.*s\n", x->request, (int)n, x->answer);
		exchange_play(x, cut);
	}
}

/* Without its line end the answer of RESUME does not count, so the next attempt asks for the same. */
static const char *const resumptions[] = {"* name=n fence=17 valid_ms=7000 count=1", "OK session=7 n=1", "ERR NOTFOUND none"};

LOOP_TEST(a_drop_at_any_byte_of_RESUME_is_followed_by_another, ARRAY_N(resumptions))
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

/* It stands before the grace, which a later HELLO may leave out. */
TEST(a_heartbeat_is_said_again_for_a_new_session)
{
	struct fake_daemon f;
	struct redlock *c;

	fake_daemon_begin(&f, "< HELLO 1 name=me heartbeat=900ms grace=5000ms$\n> OK session=7 secret=s7\n+\n" RESUME "> ERR NOTFOUND no\n"
			      "< HELLO 1 name=me heartbeat=900ms grace=5000ms$\n> ERR LIMIT less\n< HELLO 1 name=me heartbeat=900ms$\n> OK session=8\n"
			      "< PING$\n> OK\n" QUIT);
	ck_assert_int_eq(redlock_open(f.addr, PATIENCE, &c), 0);
	ck_assert_int_eq(redlock_hello(c,
			&(struct redlock_session){.size = sizeof(struct redlock_session), .label = "me", .grace_ms = 5000, .heartbeat_ms = 900}), 0);
	ck_assert_int_eq(redlock_ping(c), 0);
	redlock_close(c);
	fake_daemon_end(&f);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client/lib/holds.c: LOCKALL and LOCKANY across connections that break, against a scripted daemon. Nothing counts twice, and nothing is
 * kept that nobody asks for.
 */
#include "tests/fixture/scripted_session.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define OF_A    "name=a fence=5 valid_ms=9000 count=1"
#define OF_B    "name=b fence=6 valid_ms=9000 count=1"
#define ROW_A   "> * " OF_A "\n"
#define ROW_B   "> * " OF_B "\n"
#define ROWS    ROW_A ROW_B "> OK n=2\n"
#define CHECK_A "< CHECK a$\n> OK " OF_A "\n"
#define CHECK_B "< CHECK b$\n> OK " OF_B "\n"
#define CHECKS  CHECK_A CHECK_B
#define ALL     "< LOCKALL a b count=1$\n"
#define ANY     "< LOCKANY a b count=1$\n"
#define BOTH    "< LOCKALL a b$\n"
#define ANEW    "> ERR NOTFOUND none\n< HELLO 1 name=me grace=5000ms$\n> OK session=8 secret=s8\n"

static const char *const names[] = {"a", "b"};
static struct redlock_grant grants[2];

static int all(struct scripted_session *s)
{
	return redlock_lock_all(s->c, names, 2, NULL, grants);
}

/* Takes b. */
static int any(struct scripted_session *s)
{
	size_t which = 0;
	int r = redlock_lock_any(s->c, names, 2, NULL, &which, &grants[1]);

	ck_assert(r || which == 1);
	return r;
}

/* A request, its answer in two parts, what the daemon tells over the next connection, and what it is asked there. */
static const struct exchange {
	const char *request, *rows, *answer, *resumed, *again;
	int (*call)(struct scripted_session *s);
} exchanges[] = {
	/* granted or not, asked again it counts once */
	{"LOCKALL a b count=1", ROW_A ROW_B, "OK n=2", "> OK session=7 n=0\n", ALL ROWS CHECKS, all},
	{"LOCKANY a b count=1", "", "OK " OF_B, "> OK session=7 n=0\n", ANY "> OK " OF_B "\n" CHECK_B, any},
	{"LOCKALL a b count=1", ROW_A ROW_B, "OK n=2", ROW_A ROW_B "> OK session=7 n=2\n", ALL ROWS CHECKS, all},
	{"LOCKANY a b count=1", "", "OK " OF_B, ROW_B "> OK session=7 n=1\n", ANY "> OK " OF_B "\n" CHECK_B, any},
	/* one was lost meanwhile */
	{"LOCKALL a b count=1", ROW_A ROW_B, "OK n=2", ROW_A "> OK session=7 n=1\n", ALL ROWS CHECKS, all},
	/* a new session has to ask anew */
	{"LOCKALL a b count=1", ROW_A ROW_B, "OK n=2", ANEW, ALL ROWS CHECKS, all},
	{"LOCKANY a b count=1", "", "OK " OF_B, ANEW, ANY "> OK " OF_B "\n" CHECK_B, any},
	/* RESUME leaves open what the session holds */
	{"LOCKALL a b count=1", ROW_A ROW_B, "OK n=2", "> OK session=7 n=0 more=2\n", ALL ROWS CHECKS, all},
};

static void exchange_play(const struct exchange *x, const char *cut)
{
	struct scripted_session s;
	char script[2000];
	int r;

	memset(grants, 0, sizeof(grants));
	snprintf(script, sizeof(script), HELLO "%s+\n" RESUME "%s%s" QUIT, cut, x->resumed, x->again);
	scripted_session_open(&s, script, PATIENCE);
	r = x->call(&s);
	ck_assert_msg(r == 0, "%d: %s; %s", r, redlock_errmsg(s.c), script);
	ck_assert_int_eq(grants[1].fence, 6);
	ck_assert_int_eq(grants[0].fence, x->call == all ? 5 : 0);
	ck_assert_ptr_null(redlock_next_push(s.c));
	scripted_session_end(&s);
}

FIXTURE(.seconds = 30)

LOOP_TEST(a_drop_at_any_byte_of_the_request_changes_nothing, ARRAY_N(exchanges))
{
	const struct exchange *x = &exchanges[_i];
	char cut[32];

	for (size_t n = 0; n <= strlen(x->request); n++) {
		snprintf(cut, sizeof(cut), "# %zu\n", n);
		exchange_play(x, cut);
	}
}

LOOP_TEST(a_drop_at_any_byte_of_the_answer_changes_nothing, ARRAY_N(exchanges))
{
	const struct exchange *x = &exchanges[_i];
	char cut[400];

	if (*x->rows) {
		snprintf(cut, sizeof(cut), "< %s$\n" ROW_A, x->request);
		exchange_play(x, cut);
	}
	for (size_t n = 0; n <= strlen(x->answer); n++) {
		snprintf(cut, sizeof(cut), "< %s$\n%s>> %.*s\n", x->request, x->rows, (int)n, x->answer);
		exchange_play(x, cut);
	}
}

TEST(a_request_for_several_names_is_repeated_within_its_wait)
{
	const struct redlock_options wait = {.size = sizeof(wait), .wait_ms = 10000};
	struct scripted_session s;

	scripted_session_open(&s, HELLO "< LOCKALL a b wait=10000ms note=x count=1$\n- 50\n+\n" RESUME "> OK session=7 n=0\n< LOCKALL a b wait=9\n"
			      ROWS CHECKS QUIT,
			      PATIENCE);
	ck_assert_int_eq(redlock_lock_all(s.c, names, 2,
			&(struct redlock_options){.size = sizeof(struct redlock_options), .wait_ms = 10000, .note = "x"}, grants), 0);
	scripted_session_end(&s);
	scripted_session_open(&s, HELLO "< LOCKANY a b wait=10000ms count=1$\n> ERR DRAINING leaving\n+\n" RESUME "> OK session=7 n=0\n< LOCKANY a b wait=9\n"
			      "> TIMEOUT name=a\n" QUIT, PATIENCE);
	ck_assert_int_eq(redlock_lock_any(s.c, names, 2, &wait, &(size_t){0}, grants), REDLOCK_TIMEOUT);
	scripted_session_end(&s);
}

/* The session holds a by a LOCK of before, so one count does not suit both: what it was granted is given back before it asks again. */
LOOP_TEST(what_was_held_before_is_held_once_more, 3)
{
	static const char *const after[] = {
		"> * name=a fence=5 valid_ms=9000 count=2\n" ROW_B "> OK session=7 n=2\n",
		ROW_A "> OK session=7 n=1\n",
		"> * name=a fence=5 valid_ms=9000 count=2\n> OK session=7 n=1\n",
	};
	struct scripted_session s;
	struct redlock_grant before;
	char script[2000];

	snprintf(script, sizeof(script), HELLO "< LOCK a count=1$\n> OK " OF_A " ttl_ms=9\n" CHECK_A BOTH "+\n" RESUME "%s< UNLOCK b count=0$\n"
		 "> OK name=b count=0\n< UNLOCK a fence=5 count=1$\n> OK name=a count=1\n" BOTH ROWS "< CHECK a$\n> OK name=a fence=5 valid_ms=9000 count=2\n"
		 CHECK_B "< UNLOCK a fence=5 count=1$\n> OK name=a count=1\n" QUIT,
		 after[_i]);
	scripted_session_open(&s, script, PATIENCE);
	ck_assert_int_eq(redlock_lock(s.c, "a", NULL, &before), 0);
	ck_assert_int_eq(all(&s), 0);
	ck_assert_int_eq(grants[0].count, 2);
	ck_assert_int_eq(redlock_unlock(s.c, "a", 0), 0);
	ck_assert_ptr_null(redlock_next_push(s.c));
	scripted_session_end(&s);
}

/* The repetition may have waited for some of the names alone, and got none: the first request had taken the others. */
TEST(a_group_that_is_refused_after_a_drop_is_given_back)
{
	const struct redlock_options wait = {.size = sizeof(wait), .wait_ms = 10000};
	struct scripted_session s;

	scripted_session_open(&s, HELLO "< LOCKALL a b wait=10000ms count=1$\n+\n" RESUME ROW_B "> OK session=7 n=1\n< LOCKALL a b wait=9\n"
			      "> TIMEOUT name=a waited_ms=10000\n< UNLOCK b count=0$\n> OK name=b count=0\n< UNLOCK a count=0$\n> OK name=a count=0\n< PING$\n"
			      "> OK\n" QUIT, PATIENCE);
	ck_assert_int_eq(redlock_lock_all(s.c, names, 2, &wait, grants), REDLOCK_TIMEOUT);
	ck_assert_int_eq(redlock_ping(s.c), 0);
	ck_assert_ptr_null(redlock_next_push(s.c));
	scripted_session_end(&s);
}

/* It is told as a loss when RESUME does not bring it back. */
TEST(each_lock_of_a_group_is_tracked)
{
	struct scripted_session s;

	scripted_session_open(&s, HELLO ALL ROWS CHECKS "< PING$\n+\n" RESUME ROW_A "> OK session=7 n=1\n" QUIT, PATIENCE);
	ck_assert_int_eq(all(&s), 0);
	ck_assert_int_eq(redlock_request(s.c, "PING", 0, NULL, NULL), -ECONNABORTED);
	while (redlock_away(s.c))
		ck_assert_int_eq(redlock_process(s.c), 0);
	scripted_session_lost_once(&s, "! LOST name=b fence=6 reason=evicted");
	scripted_session_end(&s);
}

TEST(what_nobody_waits_for_any_more_is_given_back)
{
	const struct redlock_options brief = {.size = sizeof(brief), .wait_ms = 20};
	struct scripted_session s;

	scripted_session_open(&s, HELLO "< LOCKALL a b wait=20ms count=1$\n" AWAY ROW_A ROW_B
			      "> OK session=7 n=2\n< UNLOCK b count=0$\n> OK name=b count=0\n"
			      "< UNLOCK a count=0$\n> OK name=a count=0\n< PING$\n> OK\n" QUIT, PATIENCE);
	scripted_session_gives_up_away(&s);
	ck_assert_int_eq(redlock_lock_all(s.c, names, 2, &brief, grants), -ECONNABORTED);
	scripted_session_back(&s);
	ck_assert_int_eq(redlock_request(s.c, "PING", 0, NULL, NULL), 0);
	scripted_session_end(&s);
	/* the connection breaks behind the answer, and CHECK is given up */
	scripted_session_open(&s, HELLO ALL ROWS "< CHECK a$\n" AWAY ROW_A ROW_B "> OK session=7 n=2\n< UNLOCK b count=0$\n> OK name=b count=0\n"
			      "< UNLOCK a count=0$\n> OK name=a count=0\n< PING$\n> OK\n" QUIT, PATIENCE);
	scripted_session_gives_up_away(&s);
	ck_assert_int_eq(all(&s), -ECONNABORTED);
	scripted_session_back(&s);
	ck_assert_int_eq(redlock_request(s.c, "PING", 0, NULL, NULL), 0);
	scripted_session_end(&s);
}

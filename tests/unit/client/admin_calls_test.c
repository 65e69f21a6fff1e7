/* SPDX-License-Identifier: BSD-2-Clause */
/* client/lib/commands.c: BREAK, KILL and DRAIN, against a scripted daemon. */
#include "tests/fixture/scripted_session.h"

#include <check.h>
#include <errno.h>

TEST(each_tells_the_number_of_its_answer)
{
	struct scripted_session s;
	int64_t number = 0;

	scripted_session_open(&s, HELLO "< BREAK \"a b\"$\n> OK name=\"a b\" free_in_ms=-1\n< KILL session=12$\n> OK session=12 n=3\n"
			      "< DRAIN$\n> OK locks=4 in_ms=-1\n< DRAIN in=0ms$\n> OK locks=5 in_ms=0\n< BREAK a$\n> OK name=a free_in_ms=7\n" QUIT, PATIENCE);
	ck_assert_int_eq(redlock_break(s.c, "a b", &number), 0);
	ck_assert_int_eq(number, -1);
	ck_assert_int_eq(redlock_kill(s.c, 12, &number), 0);
	ck_assert_int_eq(number, 3);
	ck_assert_int_eq(redlock_drain(s.c, REDLOCK_FOREVER, &number), 0);
	ck_assert_int_eq(number, 4);
	ck_assert_int_eq(redlock_drain(s.c, 0, &number), 0);
	ck_assert_int_eq(number, 5);
	ck_assert_int_eq(redlock_break(s.c, "a", NULL), 0);
	scripted_session_end(&s);
}

TEST(a_refusal_leaves_the_number_alone)
{
	struct scripted_session s;
	int64_t number = 77;

	scripted_session_open(&s, HELLO "< BREAK a$\n> ERR NOTFOUND nobody holds it\n< KILL session=1$\n> ERR DENIED no\n< DRAIN in=5ms$\n"
			      "> ERR DENIED no\n" QUIT,
			      PATIENCE);
	scripted_session_refused(&s, redlock_break(s.c, "a", &number), "NOTFOUND");
	scripted_session_refused(&s, redlock_kill(s.c, 1, &number), "DENIED");
	scripted_session_refused(&s, redlock_drain(s.c, 5, &number), "DENIED");
	ck_assert_int_eq(number, 77);
	scripted_session_end(&s);
}

/* Done twice, it could hit whoever comes next. */
TEST(none_is_sent_again_over_the_next_connection)
{
	struct scripted_session s;

	scripted_session_open(&s, HELLO "< BREAK a$\n+\n" RESUME "> OK session=7 n=0\n< KILL session=1$\n+\n" RESUME "> OK session=7 n=0\n"
			      "< DRAIN$\n+\n" RESUME "> OK session=7 n=0\n< PING$\n> OK\n" QUIT, PATIENCE);
	ck_assert_int_eq(redlock_break(s.c, "a", NULL), -ECONNABORTED);
	ck_assert_int_eq(redlock_kill(s.c, 1, NULL), -ECONNABORTED);
	ck_assert_int_eq(redlock_drain(s.c, REDLOCK_FOREVER, NULL), -ECONNABORTED);
	ck_assert_int_eq(redlock_ping(s.c), 0);
	scripted_session_end(&s);
}

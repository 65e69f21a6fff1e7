/* SPDX-License-Identifier: BSD-2-Clause */
/* client/lib/commands.c, client/lib/pushes.c: WATCH and SUBSCRIBE, and what becomes of them over connections that break, against a scripted daemon. */
#include "tests/fixture/in_time.h"
#include "tests/fixture/scripted_session.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define EVENT(name) "> ! EVENT kind=granted name=" name " fence=5\n"
#define AGAIN       "+\n" RESUME "> OK session=7 n=0\n"
#define WATCHED     "< WATCH a/$\n> OK prefixes=1\n"
#define SUBSCRIBED  "< SUBSCRIBE$\n> OK\n"
#define PINGED      "< PING$\n> OK\n"

static struct scripted_session s;

static void opens(const char *script)
{
	scripted_session_open(&s, script, PATIENCE);
}

static void pushed(const char *text)
{
	const struct redlock_line *push = redlock_next_push(s.c);
	struct redlock_bytes said;

	ck_assert_msg(push != NULL, "no %s", text);
	said = redlock_line_text(push);
	ck_assert_msg(said.n == strlen(text) && !memcmp(said.p, text, said.n), "%.*s", (int)said.n, said.p);
}

static void nothing_pushed(void)
{
	ck_assert_ptr_null(redlock_next_push(s.c));
}

TEST(events_come_as_pushes_until_unwatch)
{
	opens(HELLO "< WATCH \"a b\"$\n> OK prefixes=1\n< WATCH$\n> OK prefixes=2\n" "< PING$\n" EVENT("x") "> OK\n"
	      "< UNWATCH \"a b\"$\n> OK prefixes=1\n< UNWATCH$\n> OK prefixes=0\n< UNWATCH no$\n> ERR NOTFOUND not watched\n" AGAIN PINGED QUIT);
	ck_assert_int_eq(redlock_watch(s.c, "a b"), 0);
	ck_assert_int_eq(redlock_watch(s.c, NULL), 0);
	ck_assert_int_eq(redlock_ping(s.c), 0);
	ck_assert(redlock_line_is(redlock_next_push(s.c), "EVENT"));
	ck_assert_int_eq(redlock_unwatch(s.c, "a b"), 0);
	ck_assert_int_eq(redlock_unwatch(s.c, ""), 0);
	scripted_session_refused(&s, redlock_unwatch(s.c, "no"), "NOTFOUND");
	/* Nothing is asked for over the next connection. */
	ck_assert_int_eq(redlock_ping(s.c), 0);
	nothing_pushed();
	scripted_session_end(&s);
}

TEST(the_next_connection_watches_again_before_all_else_and_tells_the_gap)
{
	opens(HELLO WATCHED SUBSCRIBED "< WATCH b$\n> OK prefixes=2\n< PING$\n" EVENT("a/1") "+\n" RESUME "> OK session=7 n=0\n"
	      "< WATCH a/$\n" EVENT("a/2") "> OK prefixes=1\n" SUBSCRIBED "> ! CONTENDED name=n fence=17 waiters=1\n< WATCH b$\n> OK prefixes=2\n"
	      PINGED QUIT);
	ck_assert_int_eq(redlock_watch(s.c, "a/"), 0);
	ck_assert_int_eq(redlock_subscribe(s.c), 0);
	ck_assert_int_eq(redlock_watch(s.c, "b"), 0);
	ck_assert_int_eq(redlock_ping(s.c), 0);
	pushed("! EVENT kind=granted name=a/1 fence=5");
	pushed("! MISSED");
	pushed("! EVENT kind=granted name=a/2 fence=5");
	pushed("! CONTENDED name=n fence=17 waiters=1");
	nothing_pushed();
	scripted_session_end(&s);
}

/* The session goes on over the next connection, or another one is opened. */
LOOP_TEST(a_connection_that_ends_right_behind_the_answer_has_a_gap, 2)
{
	static const char *const script[] = {HELLO WATCHED AGAIN WATCHED PINGED QUIT, HELLO WATCHED GONE WATCHED PINGED QUIT};

	opens(script[_i]);
	ck_assert_int_eq(redlock_watch(s.c, "a/"), 0);
	ck_assert_int_eq(redlock_ping(s.c), 0);
	pushed("! MISSED");
	nothing_pushed();
	scripted_session_end(&s);
}

TEST(a_subscription_alone_has_no_gap)
{
	opens(HELLO SUBSCRIBED AGAIN SUBSCRIBED PINGED "< UNSUBSCRIBE$\n> OK\n" AGAIN PINGED QUIT);
	ck_assert_int_eq(redlock_subscribe(s.c), 0);
	ck_assert_int_eq(redlock_ping(s.c), 0);
	ck_assert_int_eq(redlock_unsubscribe(s.c), 0);
	ck_assert_int_eq(redlock_ping(s.c), 0);
	nothing_pushed();
	scripted_session_end(&s);
}

/* What is watched twice is asked for once; a gap is told once, however often connecting fails. */
TEST(a_connection_that_breaks_again_and_again_has_one_gap)
{
	opens(HELLO WATCHED WATCHED AGAIN "# 4\n+\n" RESUME "> OK session=7 n=0\n< WATCH a/$\n>> OK pref\n- 30\n"
			      "+\n" RESUME "> OK session=7 n=0\n" WATCHED PINGED QUIT);
	ck_assert_int_eq(redlock_watch(s.c, "a/"), 0);
	ck_assert_int_eq(redlock_watch(s.c, "a/"), 0);
	ck_assert_int_eq(redlock_ping(s.c), 0);
	pushed("! MISSED");
	nothing_pushed();
	scripted_session_end(&s);
}

TEST(what_is_refused_anew_is_told_and_not_asked_again)
{
	opens(HELLO "< WATCH \"a b\"$\n> OK prefixes=1\n" SUBSCRIBED "< WATCH$\n> OK prefixes=2\n" AGAIN "< WATCH \"a b\"$\n"
			      "> ERR DENIED no\n< SUBSCRIBE$\n> ERR DENIED no\n"
	      "< WATCH$\n> ERR LIMIT no\n" PINGED AGAIN PINGED QUIT);
	ck_assert_int_eq(redlock_watch(s.c, "a b"), 0);
	ck_assert_int_eq(redlock_subscribe(s.c), 0);
	ck_assert_int_eq(redlock_watch(s.c, NULL), 0);
	ck_assert_int_eq(redlock_ping(s.c), 0);
	pushed("! MISSED");
	pushed("! UNWATCHED prefix=\"a b\" code=DENIED");
	pushed("! UNSUBSCRIBED code=DENIED");
	pushed("! UNWATCHED code=LIMIT");
	ck_assert_int_eq(redlock_ping(s.c), 0);
	nothing_pushed();
	scripted_session_end(&s);
}

#define WATCH_LINE   "WATCH a/"
#define WATCH_ANSWER "OK prefixes=1"

/* The watch stands at the end of redlock_watch, wherever the connection breaks. */
TEST(a_drop_at_any_byte_of_watch_leaves_one_watch)
{
	char script[600];

	for (size_t n = 0; n < sizeof(WATCH_LINE) + sizeof(WATCH_ANSWER) - 1; n++) {
		if (n < sizeof(WATCH_LINE))
			snprintf(script, sizeof(script), HELLO "# %zu\n" AGAIN WATCHED AGAIN WATCHED PINGED QUIT, n);
		else
			snprintf(script, sizeof(script), HELLO "< WATCH a/$\n>> %.*s\n" AGAIN WATCHED AGAIN WATCHED PINGED QUIT,
				 (int)(n - sizeof(WATCH_LINE)), WATCH_ANSWER);
		opens(script);
		ck_assert_int_eq(redlock_watch(s.c, "a/"), 0);
		nothing_pushed();
		ck_assert_int_eq(redlock_ping(s.c), 0);
		pushed("! MISSED");
		scripted_session_end(&s);
	}
}

TEST(unwatch_over_a_connection_that_breaks_ends_the_watch)
{
	opens(HELLO WATCHED "< UNWATCH a/$\n" AGAIN WATCHED "< UNWATCH a/$\n> OK prefixes=0\n" AGAIN PINGED QUIT);
	ck_assert_int_eq(redlock_watch(s.c, "a/"), 0);
	ck_assert_int_eq(redlock_unwatch(s.c, "a/"), 0);
	pushed("! MISSED");
	ck_assert_int_eq(redlock_ping(s.c), 0);
	nothing_pushed();
	scripted_session_end(&s);
}

/* Given up while the daemon is away: the watch is not there, and the call returns before the daemon is back. */
TEST(a_watch_that_is_given_up_is_not_asked_for_later)
{
	opens(HELLO SUBSCRIBED AWAY "> OK session=7 n=0\n" SUBSCRIBED PINGED QUIT);
	ck_assert_int_eq(redlock_subscribe(s.c), 0);
	while (!redlock_away(s.c))
		ck_assert_int_eq(redlock_process(s.c), 0);
	scripted_session_gives_up_away(&s);
	ck_assert_int_eq(redlock_watch(s.c, "a/"), -ECONNABORTED);
	scripted_session_back(&s);
	ck_assert_int_eq(redlock_ping(s.c), 0);
	nothing_pushed();
	scripted_session_end(&s);
}

TEST(wait_push_waits_no_longer_than_it_may)
{
	const struct redlock_line *push;
	int64_t begun;

	opens(HELLO WATCHED EVENT("a/1") "< PING$\n> OK\n" QUIT);
	ck_assert_int_eq(redlock_watch(s.c, "a/"), 0);
	ck_assert_int_eq(redlock_wait_push(s.c, PATIENCE, &push), 0);
	ck_assert(redlock_line_is(push, "EVENT") && !redlock_line_is(push, "EVEN"));
	begun = redlock_now_us();
	ck_assert_int_eq(redlock_wait_push(s.c, 0, &push), -EAGAIN);
	ck_assert_int_eq(redlock_wait_push(s.c, 30, &push), -EAGAIN);
	ck_assert_int_ge(redlock_now_us() - begun, 30000);
	IN_TIME(2000000, ck_assert_int_eq(redlock_wait_push(s.c, 30, &push), -EAGAIN));
	ck_assert_int_eq(redlock_ping(s.c), 0);
	scripted_session_end(&s);
}

/* It connects again meanwhile. */
TEST(wait_push_goes_on_over_the_next_connection)
{
	const struct redlock_line *push;

	opens(HELLO WATCHED AGAIN WATCHED EVENT("a/1") QUIT);
	ck_assert_int_eq(redlock_watch(s.c, "a/"), 0);
	ck_assert_int_eq(redlock_wait_push(s.c, REDLOCK_FOREVER, &push), 0);
	ck_assert(redlock_line_is(push, "MISSED"));
	ck_assert_int_eq(redlock_wait_push(s.c, REDLOCK_FOREVER, &push), 0);
	ck_assert(redlock_line_is(push, "EVENT"));
	scripted_session_end(&s);
}

/* Without grace the connection ends; what had arrived is told first. */
TEST(wait_push_tells_the_end_behind_the_last_push)
{
	const struct redlock_line *push;
	struct fake_daemon f;
	struct redlock *c;

	fake_daemon_begin(&f, WATCHED EVENT("a/1"));
	ck_assert_int_eq(redlock_open(f.addr, PATIENCE, &c), 0);
	ck_assert_int_eq(redlock_watch(c, "a/"), 0);
	ck_assert_int_eq(redlock_wait_push(c, PATIENCE, &push), 0);
	ck_assert_int_eq(redlock_wait_push(c, PATIENCE, &push), -ECONNRESET);
	ck_assert_int_eq(redlock_watch(c, "b/"), -ECONNRESET);
	redlock_close(c);
	fake_daemon_end(&f);
}

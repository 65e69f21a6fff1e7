/* SPDX-License-Identifier: BSD-2-Clause */
/* redlock_cancel (client/lib/exchange.c), against a scripted daemon: the request ends once, and no grant is left that nobody asks for. */
#include "tests/fixture/scripted_session.h"

#include <check.h>
#include <errno.h>

#define WAITS  "< @lock LOCK n wait=forever count=1$\n"
#define UNLOCKED "< UNLOCK n fence=17 count=0$\n> OK name=n count=0\n"
#define CANCEL "< @cancel CANCEL @lock$\n"
#define PINGED "< PING$\n> OK\n"

static const struct redlock_options waiting = {.size = sizeof(waiting), .wait_ms = REDLOCK_FOREVER, .cancellable = true};
static const char *const names[] = {"a", "n"};
static struct scripted_session s;

static void waits(const char *script)
{
	scripted_session_open(&s, script, PATIENCE);
	ck_assert_int_eq(redlock_lock_send(s.c, "n", &waiting), 0);
}

static void ends(void)
{
	ck_assert_int_eq(redlock_ping(s.c), 0);
	ck_assert_ptr_null(redlock_next_push(s.c));
	scripted_session_end(&s);
}

/* The answers come in either order, and the next request does not take one for its own. */
LOOP_TEST(a_request_that_waits_is_withdrawn, 3)
{
	static const char *const orders[] = {
		HELLO WAITS CANCEL "> @cancel OK\n> @lock ERR CANCELLED withdrawn\n" PINGED QUIT,
		HELLO WAITS CANCEL "> @lock ERR CANCELLED withdrawn\n> @cancel OK\n" PINGED QUIT,
		HELLO WAITS CANCEL "> @lock ERR CANCELLED withdrawn\n< PING$\n> @cancel OK\n> OK\n" QUIT,
	};

	waits(orders[_i]);
	ck_assert_int_eq(redlock_cancel(s.c), 0);
	ck_assert_int_eq(redlock_cancel(s.c), 0);
	scripted_session_refused(&s, redlock_finish(s.c, PATIENCE), "CANCELLED");
	ends();
}

TEST(a_grant_that_was_quicker_stands)
{
	struct redlock_grant grant;

	waits(HELLO WAITS CANCEL "> @lock " GRANT "\n> @cancel ERR NOTFOUND answered\n" PINGED
	      UNLOCKED PINGED QUIT);
	ck_assert_int_eq(redlock_cancel(s.c), 0);
	ck_assert_int_eq(redlock_finish(s.c, PATIENCE), 0);
	ck_assert_int_eq(redlock_grant(s.c, &grant), 0);
	ck_assert_int_eq(grant.fence, 17);
	ck_assert_int_eq(redlock_ping(s.c), 0);
	ck_assert_int_eq(redlock_unlock(s.c, "n", 0), 0);
	ends();
}

#define WITHDRAWN "> @cancel OK\n> @lock ERR CANCELLED withdrawn\n"

#define RELEASED "< UNLOCK n count=0$\n> OK name=n count=0\n"
#define TAKES    "< @lock TAKE mail wait=forever$\n"

/* The session may still have its place in the queue, or the lock: an UNLOCK ends either. */
LOOP_TEST(without_a_connection_it_ends_at_once_and_is_undone_over_the_next, 5)
{
	static const char *const ways[] = {
		HELLO WAITS CANCEL NOTHING RELEASED PINGED QUIT,
		HELLO WAITS CANCEL KEPT RELEASED PINGED QUIT,
		HELLO WAITS CANCEL ">> @lock ERR CANC\n" NOTHING RELEASED PINGED QUIT,
		HELLO WAITS CANCEL "> @cancel OK\n" NOTHING RELEASED PINGED QUIT,
		HELLO WAITS CANCEL GONE PINGED RELEASED QUIT,
	};

	waits(ways[_i]);
	ck_assert_int_eq(redlock_cancel(s.c), 0);
	scripted_session_refused(&s, redlock_finish(s.c, PATIENCE), "CANCELLED");
	ends();
}

TEST(a_cancel_while_the_daemon_is_away_ends_it_at_once)
{
	waits(HELLO WAITS "- 100\n" NOTHING RELEASED PINGED QUIT);
	while (!redlock_away(s.c))
		ck_assert_int_eq(redlock_process(s.c), 0);
	ck_assert_int_eq(redlock_cancel(s.c), 0);
	scripted_session_refused(&s, redlock_finish(s.c, 0), "CANCELLED");
	ends();
}

/* A daemon that is about to stop has refused the request; it would be asked again soon, for another may come. */
TEST(a_cancel_before_it_is_asked_again_counts)
{
	waits(HELLO WAITS "> @lock ERR DRAINING leaving\n" RELEASED PINGED QUIT);
	while (redlock_due_us(s.c) == INT64_MAX)
		ck_assert_int_eq(redlock_process(s.c), 0);
	ck_assert_int_eq(redlock_cancel(s.c), 0);
	scripted_session_refused(&s, redlock_finish(s.c, 0), "CANCELLED");
	ends();
}

TEST(a_TAKE_is_asked_for_again_and_withdrawn_over_the_next_connection)
{
	scripted_session_open(&s, HELLO TAKES CANCEL NOTHING TAKES CANCEL WITHDRAWN PINGED QUIT, PATIENCE);
	ck_assert_int_eq(redlock_take_send(s.c, "mail", &waiting), 0);
	ck_assert_int_eq(redlock_cancel(s.c), 0);
	scripted_session_refused(&s, redlock_finish(s.c, PATIENCE), "CANCELLED");
	ends();
}

TEST(a_draining_daemon_does_not_make_it_wait_again)
{
	waits(HELLO WAITS CANCEL "> @lock ERR DRAINING leaving\n> @cancel ERR NOTFOUND answered\n" PINGED QUIT);
	ck_assert_int_eq(redlock_cancel(s.c), 0);
	scripted_session_refused(&s, redlock_finish(s.c, PATIENCE), "DRAINING");
	ends();
}

/* The next request is cancelled before the first CANCEL, which came too late, is answered. */
TEST(each_cancel_has_its_answer)
{
	waits(HELLO WAITS CANCEL "> @lock ERR DEADLOCK cycle=n<-a<-n\n" WAITS CANCEL "> @cancel ERR NOTFOUND answered\n" WITHDRAWN PINGED QUIT);
	ck_assert_int_eq(redlock_cancel(s.c), 0);
	scripted_session_refused(&s, redlock_finish(s.c, PATIENCE), "DEADLOCK");
	ck_assert_int_eq(redlock_lock_send(s.c, "n", &waiting), 0);
	ck_assert_int_eq(redlock_cancel(s.c), 0);
	scripted_session_refused(&s, redlock_finish(s.c, PATIENCE), "CANCELLED");
	ends();
}

LOOP_TEST(several_locks_are_withdrawn_likewise, 3)
{
	static const char *const ways[] = {
		HELLO "< @lock LOCKALL a n wait=forever count=1$\n" CANCEL "> @cancel OK\n> @lock ERR CANCELLED withdrawn\n" PINGED QUIT,
		HELLO "< @lock LOCKANY a n wait=forever count=1$\n" CANCEL "> @cancel OK\n> @lock ERR CANCELLED withdrawn\n" PINGED QUIT,
		HELLO "< @lock LOCKALL a n wait=forever count=1$\n" CANCEL KEPT
		"< UNLOCK n count=0$\n> OK name=n count=0\n< UNLOCK a count=0$\n> OK name=a count=0\n" PINGED QUIT,
	};

	scripted_session_open(&s, ways[_i], PATIENCE);
	ck_assert_int_eq(redlock_lock_many_send(s.c, _i == 1, names, 2, &waiting), 0);
	ck_assert_int_eq(redlock_cancel(s.c), 0);
	scripted_session_refused(&s, redlock_finish(s.c, PATIENCE), "CANCELLED");
	ends();
}

TEST(what_cannot_be_cancelled_goes_on)
{
	scripted_session_open(&s, HELLO "< LOCK n wait=9000ms count=1$\n> BUSY name=n\n< PING$\n> OK\n" PINGED QUIT, PATIENCE);
	ck_assert_int_eq(redlock_cancel(s.c), -EINVAL);
	ck_assert_int_eq(redlock_lock_send(s.c, "n", &(struct redlock_options){.size = sizeof(struct redlock_options), .wait_ms = 9000}), 0);
	ck_assert_int_eq(redlock_cancel(s.c), -EINVAL);
	ck_assert_int_eq(redlock_finish(s.c, PATIENCE), REDLOCK_BUSY);
	ck_assert_int_eq(redlock_send(s.c, "PING"), 0);
	ck_assert_int_eq(redlock_cancel(s.c), -EINVAL);
	ck_assert_int_eq(redlock_finish(s.c, PATIENCE), 0);
	ends();
}

TEST(a_TAKE_that_waits_is_withdrawn)
{
	const struct redlock_options options = {.size = sizeof(options), .wait_ms = REDLOCK_FOREVER, .ttl_ms = 4000, .cancellable = true};

	scripted_session_open(&s, HELLO "< @lock TAKE mail wait=forever ttl=4000ms$\n" CANCEL "> @cancel OK\n> @lock ERR CANCELLED withdrawn\n" PINGED QUIT,
			      PATIENCE);
	ck_assert_int_eq(redlock_take_send(s.c, "mail", &options), 0);
	ck_assert_int_eq(redlock_cancel(s.c), 0);
	scripted_session_refused(&s, redlock_finish(s.c, PATIENCE), "CANCELLED");
	ends();
}

TEST(a_release_and_a_renewal_are_sent_without_waiting)
{
	const struct redlock_unlocking sync = {.size = sizeof(sync), .sync = true};
	struct redlock_grant grant;

	scripted_session_begin(&s, HELLO LOCK "< EXTEND n ttl=20000ms$\n> OK name=n fence=17 valid_ms=19000\n"
			       "< UNLOCK n sync=yes fence=17 count=0$\n> OK name=n count=0\n"
			       PINGED QUIT);
	ck_assert_int_eq(redlock_extend_send(s.c, "n", 20000), 0);
	ck_assert_int_eq(redlock_finish(s.c, PATIENCE), 0);
	ck_assert_int_eq(redlock_grant(s.c, &grant), 0);
	ck_assert_int_eq(grant.valid_ms, 19000);
	ck_assert_int_eq(redlock_unlock_send(s.c, "n", &sync), 0);
	ck_assert_int_eq(redlock_finish(s.c, PATIENCE), 0);
	ends();
}

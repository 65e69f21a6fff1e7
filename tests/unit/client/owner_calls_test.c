/* SPDX-License-Identifier: BSD-2-Clause */
/* client/lib/lock.c: an UNLOCK that waits for the stores, and owners that share a connection, against a scripted daemon. */
#include "tests/fixture/scripted_session.h"

#include <check.h>
#include <errno.h>
#include <string.h>

#define OWNED_GRANT "OK name=n fence=17 valid_ms=9000 ttl_ms=10000 count=1\n"

static struct scripted_session s;

FIXTURE(.seconds = 20)

TEST(unlock_waits_for_the_stores_where_it_is_asked_to)
{
	scripted_session_begin(&s, HELLO LOCK "< UNLOCK n keep=70ms sync=yes fence=17 count=0$\n> OK name=n count=0\n" "< UNLOCK n$\n> ERR NOTHELD no\n" QUIT);
	ck_assert_int_eq(redlock_unlock_with(s.c, "n", &(struct redlock_unlocking){.size = sizeof(struct redlock_unlocking), .keep_ms = 70, .sync = true}), 0);
	scripted_session_refused(&s, redlock_unlock_with(s.c, "n", NULL), "NOTHELD");
	scripted_session_end(&s);
}

/* The connection breaks afterwards: a lock that was tracked still would be told as lost. */
TEST(a_lock_of_which_nobody_knows_whether_it_is_free_is_held_no_more)
{
	scripted_session_begin(&s, HELLO LOCK "< UNLOCK n sync=yes fence=17 count=0$\n> ERR QUORUM too few\n" NOTHING "< PING$\n> OK\n" QUIT);
	scripted_session_refused(&s, redlock_unlock_with(s.c, "n",
			&(struct redlock_unlocking){.size = sizeof(struct redlock_unlocking), .sync = true}), "QUORUM");
	ck_assert_int_eq(redlock_ping(s.c), 0);
	ck_assert_ptr_null(redlock_next_push(s.c));
	scripted_session_end(&s);
}

TEST(an_owner_speaks_until_another_does)
{
	static const char *const names[] = {"n", "m"};
	struct redlock_grant grant;
	struct fake_daemon f;
	struct redlock *c;

	fake_daemon_begin(&f, "< LOCK n owner=\"a b\" wait=70ms$\n> " OWNED_GRANT "< CHECK n owner=\"a b\"$\n> " OWNED_GRANT
	                      "< EXTEND n owner=\"a b\" ttl=70ms$\n> " OWNED_GRANT "< CHECK n owner=c$\n> ERR NOTHELD no\n"
	                      "< LOCKALL n m owner=c$\n> BUSY n=1\n< UNLOCK n owner=\"a b\" sync=yes$\n> OK name=n count=0\n"
	                      "< UNLOCK n$\n> ERR NOTHELD no\n=\n");
	ck_assert_int_eq(redlock_open(f.addr, PATIENCE, &c), 0);
	ck_assert_int_eq(redlock_set_owner(c, "a b"), 0);
	ck_assert_int_eq(redlock_lock(c, "n", &(struct redlock_options){.size = sizeof(struct redlock_options), .wait_ms = 70}, &grant), 0);
	ck_assert_int_eq(redlock_extend(c, "n", 70, &grant), 0);
	ck_assert_int_eq(redlock_set_owner(c, "c"), 0);
	ck_assert_int_eq(redlock_check(c, "n", &grant), REDLOCK_REFUSED);
	ck_assert_int_eq(redlock_lock_all(c, names, 2, NULL, &grant), REDLOCK_BUSY);
	ck_assert_int_eq(redlock_set_owner(c, "a b"), 0);
	ck_assert_int_eq(redlock_unlock_with(c, "n", &(struct redlock_unlocking){.size = sizeof(struct redlock_unlocking), .sync = true}), 0);
	ck_assert_int_eq(redlock_set_owner(c, NULL), 0);
	ck_assert_int_eq(redlock_unlock(c, "n", 0), REDLOCK_REFUSED);
	redlock_close(c);
	fake_daemon_end(&f);
}

TEST(an_owner_has_a_name_and_no_grace)
{
	char name[258];

	memset(name, 'o', sizeof(name));
	name[257] = '\0';
	scripted_session_open(&s, HELLO QUIT, PATIENCE);
	ck_assert_int_eq(redlock_set_owner(s.c, "o"), -EINVAL);
	ck_assert_str_eq(redlock_errmsg(s.c), "a session with grace has no owners");
	ck_assert_int_eq(redlock_set_owner(s.c, NULL), 0);
	scripted_session_end(&s);
	{
		struct fake_daemon f;
		struct redlock *c;

		fake_daemon_begin(&f, "< HELLO 1 name=x$\n> OK proto=1 session=7\n=\n");
		ck_assert_int_eq(redlock_open(f.addr, PATIENCE, &c), 0);
		ck_assert_int_eq(redlock_set_owner(c, ""), -EINVAL);
		ck_assert_int_eq(redlock_set_owner(c, name), -EINVAL);
		ck_assert_str_eq(redlock_errmsg(c), "an owner has 1 to 256 bytes");
		ck_assert_int_eq(redlock_set_owner(c, name + 1), 0);
		ck_assert_int_eq(redlock_hello(c, &(struct redlock_session){.size = sizeof(struct redlock_session), .grace_ms = 5000}), -EINVAL);
		ck_assert_int_eq(redlock_hello(c, &(struct redlock_session){.size = sizeof(struct redlock_session), .label = "x"}), 0);
		redlock_close(c);
		fake_daemon_end(&f);
	}
}

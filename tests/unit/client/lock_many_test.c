/* SPDX-License-Identifier: BSD-2-Clause */
/* client/lib/lock.c: several locks at once, against a scripted daemon. */
#include "tests/fixture/client_of_fake.h"

#include <errno.h>
#include <string.h>

#define ROWS "> * name=a fence=5 valid_ms=9000 ttl_ms=9500 count=1\n> * name=\"b c\" fence=6 valid_ms=9000 ttl_ms=9500 count=1\n> OK n=2\n"

static const char *const names[] = {"a", "b c"};

TEST(lock_all_asks_CHECK_for_each_grant)
{
	const struct redlock_options options = {.size = sizeof(options), .wait_ms = 5000};
	struct redlock_grant grants[2];

	begins("< LOCKALL a \"b c\" wait=5000ms$\n" ROWS "< CHECK a$\n> OK name=a fence=5 valid_ms=8000 count=1\n"
	       "< CHECK \"b c\"$\n> OK name=\"b c\" fence=6 valid_ms=7000 count=1\n=\n");
	ck_assert_int_eq(redlock_lock_all(c, names, 2, &options, grants), 0);
	ck_assert_int_eq(grants[0].fence, 5);
	ck_assert_int_eq(grants[1].fence, 6);
	ck_assert_int_eq(grants[1].valid_ms, 7000);
	ck_assert_int_eq(grants[1].ttl_ms, 9500);
	ends();
}

TEST(lock_all_that_is_refused_tells_why)
{
	struct redlock_grant grants[2];

	begins("< LOCKALL a \"b c\"$\n> BUSY name=a holder=x held_ms=10\n=\n");
	ck_assert_int_eq(redlock_lock_all(c, names, 2, NULL, grants), REDLOCK_BUSY);
	ck_assert_ptr_nonnull(strstr(redlock_errmsg(c), "a is held by x"));
	ends();
}

TEST(lock_all_gives_back_the_others_when_one_is_lost_already)
{
	struct redlock_grant grants[2];

	begins("< LOCKALL a \"b c\"$\n" ROWS "< CHECK a$\n> OK name=a fence=5 valid_ms=8000 count=1\n< CHECK \"b c\"$\n> ERR LOST gone\n"
	       "< UNLOCK a$\n> OK name=a count=0\n< CHECK \"b c\"$\n> ERR LOST gone\n=\n");
	ck_assert_int_eq(redlock_lock_all(c, names, 2, NULL, grants), REDLOCK_REFUSED);
	ck_assert_str_eq(redlock_code(c), "LOST");
	ends();
}

/* What is true of it changed while the others were given back: all or none. */
TEST(lock_all_gives_back_the_one_that_was_doubtful_too)
{
	struct redlock_grant grants[2];

	begins("< LOCKALL a \"b c\"$\n" ROWS "< CHECK a$\n> OK name=a fence=5 valid_ms=8000 count=1\n< CHECK \"b c\"$\n> ERR QUORUM not confirmed yet\n"
	       "< UNLOCK a$\n> OK name=a count=0\n< CHECK \"b c\"$\n> OK name=\"b c\" fence=6 valid_ms=8000 count=1\n"
	       "< UNLOCK \"b c\"$\n> OK name=\"b c\" count=0\n=\n");
	ck_assert_int_eq(redlock_lock_all(c, names, 2, NULL, grants), -ECONNABORTED);
	ends();
}

TEST(lock_any_tells_which_name_it_took)
{
	struct redlock_grant grant;
	size_t which;

	begins("< LOCKANY a \"b c\"$\n> OK name=\"b c\" fence=6 valid_ms=9000 ttl_ms=9500 count=1\n"
	       "< CHECK \"b c\"$\n> OK name=\"b c\" fence=6 valid_ms=8000 count=1\n=\n");
	ck_assert_int_eq(redlock_lock_any(c, names, 2, NULL, &which, &grant), 0);
	ck_assert_uint_eq(which, 1);
	ck_assert_int_eq(grant.fence, 6);
	ck_assert_int_eq(grant.valid_ms, 8000);
	ck_assert_int_eq(grant.ttl_ms, 9500);
	ends();
}

TEST(a_wrong_number_of_names_and_an_empty_name_are_refused_before_anything_is_sent)
{
	static const char *const empty[] = {"a", ""};
	struct redlock_grant grants[2];
	size_t which;

	begins("< PING$\n> OK\n=\n");
	ck_assert_int_eq(redlock_lock_all(c, names, 0, NULL, grants), -EINVAL);
	ck_assert_int_eq(redlock_lock_any(c, names, 65, NULL, &which, grants), -EINVAL);
	ck_assert_int_eq(redlock_lock_all(c, empty, 2, NULL, grants), -EINVAL);
	ck_assert_int_eq(redlock_request(c, "PING", 0, NULL, NULL), 0);
	ends();
}

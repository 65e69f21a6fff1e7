/* SPDX-License-Identifier: BSD-2-Clause */
/* client/lib/commands.c: a use of a rate limit, against a scripted daemon. */
#include "tests/fixture/client_of_fake.h"

#include <errno.h>
#include <string.h>

static struct redlock_rate rate;

static void asks(const char *script)
{
	begins(script);
	memset(&rate, 0x55, sizeof(rate));
}

TEST(an_admitted_use_tells_what_is_left)
{
	asks("< RATE \"web 1\" limit=20 per=60000ms cost=3$\n> OK left=17 reset_ms=60000\n=\n");
	ck_assert_int_eq(redlock_rate(c, "web 1", 20, 60000, 3, &rate), 0);
	ck_assert_int_eq(rate.left, 17);
	ck_assert_int_eq(rate.reset_ms, 60000);
	ck_assert_int_eq(rate.retry_ms, 0);
	ck_assert(!rate.unmetered);
	ends();
}

TEST(a_refused_use_tells_when_it_would_be_admitted)
{
	asks("< RATE n limit=20 per=60000ms cost=1$\n> BUSY retry_ms=1840 left=0\n=\n");
	ck_assert_int_eq(redlock_rate(c, "n", 20, 60000, 1, &rate), REDLOCK_BUSY);
	ck_assert_int_eq(rate.retry_ms, 1840);
	ck_assert_int_eq(rate.left, 0);
	ends();
}

TEST(a_use_that_is_not_counted_says_so)
{
	asks("< RATE n limit=1 per=1ms cost=1$\n> OK left=0 reset_ms=0 unmetered=yes\n=\n");
	ck_assert_int_eq(redlock_rate(c, "n", 1, 1, 1, &rate), 0);
	ck_assert(rate.unmetered);
	ends();
}

TEST(without_the_store_that_counts_it_is_refused)
{
	asks("< RATE n limit=1 per=1ms cost=1$\n> ERR UNAVAILABLE the store that keeps this limit cannot be used\n=\n");
	ck_assert_int_eq(redlock_rate(c, "n", 1, 1, 1, &rate), REDLOCK_REFUSED);
	ck_assert_str_eq(redlock_code(c), "UNAVAILABLE");
	ends();
}

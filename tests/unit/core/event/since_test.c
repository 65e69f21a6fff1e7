/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/event/value.c, show.c: for how long another daemon holds a name, which its value tells. */
#include "daemon/core/event/value.h"
#include "tests/fixture/resumable.h"

#include <check.h>

/* What session 2 at another daemon is shown of a. */
static int64_t shown_held_ms(void)
{
	int64_t ms;

	says(2, "SHOW a");
	ms = number_in(hears(2, "\\* role=holder pos=0 holder=@h0 held_ms=* ttl_ms=*"), "held_ms");
	hears(2, "OK n=1");
	return ms;
}

FIXTURE(.teardown = cluster_close)

TEST(another_daemon_tells_for_how_long_a_name_is_held_though_nobody_waits_there)
{
	two_daemons(3);
	says(1, "LOCK a");
	hears(1, "OK *");
	ck_assert_int_eq(shown_held_ms(), 0);
	passes(100 * SEC);
	ck_assert_int_eq(shown_held_ms(), 100000);
	says(2, "LOCK a");
	hears(2, "BUSY name=a holder=@h0 held_ms=100000 waiters=0 retry_ms=*");
	says(2, "LOCK a wait=1s");
	passes(2 * SEC);
	hears(2, "TIMEOUT name=a * holder=@h0 held_ms=10* waiters=0");
	says(1, "UNLOCK a");
	says(1, "LOCK a");
	ignores(1);
	ck_assert_int_eq(shown_held_ms(), 0);
}

TEST(a_daemon_that_has_restarted_holds_it_since_the_grant)
{
	struct secret s;

	(void)held_with_grace(3, "grace=30s", "", &s);
	passes(7 * SEC);
	daemon_returns(0);
	resumes(3, &s);
	ignores(3);
	passes(3 * SEC);
	daemon_starts(1);
	passes(2 * SEC);
	session_opens(2, 1);
	ck_assert_int_ge(shown_held_ms(), 12000);
}

/* They differ by less than the tolerance, and so a grant may seem to come later than the question. */
TEST(clocks_of_stores_that_differ_make_no_nonsense)
{
	two_daemons(3);
	cluster.node[0].clock_us = 1500 * MSEC;
	passes(10 * SEC);
	says(1, "LOCK a");
	hears(1, "OK *");
	ck_assert_int_le(shown_held_ms(), 1500);
	passes(10 * SEC);
	ck_assert_int_le(shown_held_ms(), 11500);
}

static int64_t held_us(const char *public, int64_t now_us)
{
	return value_held_us(span_of(public), now_us);
}

FIXTURE()

TEST(a_value_that_tells_no_likely_moment_tells_none)
{
	const int64_t then = INT64_C(0x1a2b3c4d5e6) * MSEC, year = INT64_C(365) * 86400 * SEC;

	ck_assert_int_eq(held_us("d.h:7:6e5d4c3b2a10", then + 1234), 1234);
	ck_assert_int_eq(held_us("d.h:7:6e5d4c3b2a10", then + year), year);
	ck_assert_int_eq(held_us("d.h:7:6e5d4c3b2a10", then + year + 1), -1);
	ck_assert_int_eq(held_us("d.h:7:6e5d4c3b2a10", then - 5 * SEC), 0);
	ck_assert_int_eq(held_us("d.h:7:6e5d4c3b2a10", then - 5 * SEC - 1), -1);
	ck_assert_int_eq(held_us("d.h:7:6e5d4c3b2ag0", then), -1);
	ck_assert_int_eq(held_us("d.h:7:6e5d4c3b2aA0", then), -1);
	ck_assert_int_eq(held_us("d.h:7:6e5d4c3b2a-0", then), -1);
	ck_assert_int_eq(held_us("d.h:7:6e5d4c3b2a1", then), -1);
	ck_assert_int_eq(held_us("d.h:7:6e5d4c3b2a100", then), -1);
	ck_assert_int_eq(held_us("d.h:7:ffffffffffff", then), -1);
	ck_assert_int_eq(held_us("d.h:7", then), -1);
	ck_assert_int_eq(held_us("d.h:", then), -1);
	ck_assert_int_eq(held_us("d.h", then), -1);
	ck_assert_int_eq(held_us("", then), -1);
}

FIXTURE(.teardown = cluster_close)

TEST(a_value_of_an_earlier_version_is_shown_without_it)
{
	two_daemons(3);
	for (unsigned i = 0; i < 3; i++)
		key_is_overwritten(i, "a", "0123456789abcdef.one:1:00112233445566778899aabbccddeeff", 60 * SEC);
	says(2, "SHOW a");
	hears(2, "\\* role=holder pos=0 holder=@one ttl_ms=*");
	hears(2, "OK n=1");
	says(2, "LOCK a");
	hears(2, "BUSY name=a holder=@one waiters=0 retry_ms=*");
}

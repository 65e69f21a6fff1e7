/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/member/members.c: a store that publishes for this daemon, or refuses to. */
#include "tests/fixture/cluster.h"

#include <check.h>

FIXTURE(.teardown = cluster_close)

TEST(a_store_that_refuses_the_subscriber_is_told_once_and_has_that_reason_while_it_is_joined)
{
	cluster_begin(3);
	subscribes(0, 1, "it refuses SUBSCRIBE: NOPERM");
	ck_assert(was_logged("subscriber node=b state=refused reason=\"it refuses SUBSCRIBE: NOPERM\" note=*"));
	subscribes(0, 1, "it refuses SUBSCRIBE: NOPERM");
	ck_assert(!was_logged("subscriber *"));
	says(1, "LIST nodes");
	hears(1, "\\* node=a state=joined clock_ms=*");
	hears(1, "\\* node=b state=joined reason=\"it refuses SUBSCRIBE: NOPERM\" cause=permission clock_ms=*");
	ignores(1);
	falls(1);
	says(1, "LIST nodes");
	hears(1, "\\* node=a *");
	hears(1, "\\* node=b state=down reason=\"connection lost\"*");
	ignores(1);
	comes(1);
	passes(SEC);
	ck_assert(!was_logged("subscriber *"));
	subscribes(0, 1, "");
	ck_assert(was_logged("subscriber node=b state=subscribed"));
	subscribes(0, 1, "");
	ck_assert(!was_logged("subscriber *"));
	says(1, "LIST nodes");
	hears(1, "\\* node=a *");
	hears(1, "\\* node=b state=joined fence=*");
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/request/lockall.c, groups.c: LOCKANY takes one of its names, the first that is free. */
#include "tests/fixture/groups.h"

#include <check.h>

FIXTURE(.teardown = cluster_close)

TEST(lockany_takes_the_first_name_that_is_free_and_no_other)
{
	cluster_begin(3);
	takes(1, "a");
	says(2, "LOCKANY a b c");
	hears(2, "OK name=b fence=* valid_ms=* ttl_ms=10000 count=1");
	for (unsigned i = 0; i < 3; i++)
		ck_assert(!key_is_there(i, "c"));
	says(3, "LOCKANY a b");
	hears(3, "BUSY name=a holder=* held_ms=0 waiters=0 retry_ms=*");
	gives_back(2, "b");
}

TEST(lockany_passes_names_that_are_held_elsewhere)
{
	two_daemons(3);
	takes(1, "a");
	takes(1, "b");
	says(2, "LOCKANY a b c");
	hears(2, "OK name=c fence=* count=1");
	says(2, "LOCKANY a b");
	hears(2, "BUSY name=a holder=@* waiters=0 retry_ms=*");
}

TEST(lockany_waits_for_all_its_names_and_leaves_the_other_queues_with_the_first_grant)
{
	cluster_begin(3);
	takes(1, "a");
	takes(2, "b");
	says(3, "@w LOCKANY a b wait=1m");
	says(4, "SHOW a");
	hears(4, "\\* role=holder *");
	hears(4, "\\* role=waiter pos=1 *");
	hears(4, "OK n=2");
	gives_back(2, "b");
	hears(3, "@w OK name=b fence=* count=1");
	says(4, "SHOW a");
	hears(4, "\\* role=holder *");
	hears(4, "OK n=1");
	gives_back(1, "a");
	for (unsigned i = 0; i < 3; i++)
		ck_assert(!key_is_there(i, "a"));
	hears_nothing(3);
}

TEST(lockany_has_one_name_when_two_are_freed_at_once)
{
	cluster_begin(3);
	takes(1, "a");
	takes(1, "b");
	says(2, "@w LOCKANY a b wait=1m");
	goes(1, GONE_HANGUP);
	hears(2, "@w OK name=? fence=* count=1");
	hears_nothing(2);
	ck_assert(key_is_there(0, "a") + key_is_there(0, "b") == 1);
	ck_assert(key_is_there(1, "a") + key_is_there(1, "b") == 1);
}

TEST(lockany_that_waits_in_vain_is_told_timeout)
{
	cluster_begin(1);
	takes(1, "a");
	takes(1, "b");
	says(2, "LOCKANY b a wait=3s");
	passes(3 * SEC);
	hears(2, "TIMEOUT name=b waited_ms=3000 holder=* held_ms=3000 *");
	hears_nothing(2);
	gives_back(1, "a");
	ck_assert(!key_is_there(0, "a"));
}

TEST(lockany_counts_up_what_its_owner_holds_already)
{
	cluster_begin(1);
	takes(1, "b");
	says(1, "LOCKANY a b");
	hears(1, "OK name=b fence=* count=2");
	ck_assert(!key_is_there(0, "a"));
}

TEST(lockany_is_cancelled_in_all_queues)
{
	cluster_begin(1);
	takes(1, "a");
	takes(1, "b");
	says(2, "@w LOCKANY a b wait=1m");
	says(2, "CANCEL @w");
	hears(2, "OK");
	hears(2, "@w ERR CANCELLED *");
	gives_back(1, "a");
	gives_back(1, "b");
	ck_assert(!key_is_there(0, "a") && !key_is_there(0, "b"));
}

TEST(a_name_that_is_won_after_another_was_granted_is_given_back)
{
	two_daemons(3);
	takes(1, "a");
	takes(2, "b");
	session_opens(3, 1);
	says(3, "@w LOCKANY a b wait=1m");
	passes(10 * MSEC);
	all_feel(MOOD_TARDY);
	gives_back(1, "a");
	passes(5 * MSEC);
	gives_back(2, "b");
	all_feel(MOOD_WELL);
	passes(100 * MSEC);
	hears(3, "@w OK name=? fence=* count=1");
	hears_nothing(3);
	passes(SEC);
	for (unsigned i = 0; i < 3; i++)
		ck_assert(key_is_there(i, "a") + key_is_there(i, "b") == 1);
}

TEST(lockany_of_readers_joins_those_who_hold_a_name)
{
	cluster_begin(1);
	passes(SEC);
	says(1, "LOCKALL b c mode=shared");
	hears_all(1, "", "bc");
	takes(2, "a");
	says(3, "LOCKANY a b c mode=shared");
	hears(3, "OK name=b fence=* count=1 mode=shared");
}

TEST(lockany_passes_a_name_that_no_lock_may_have)
{
	cluster_begin(1);
	key_is_overwritten(0, "a", "someone", -1);
	says(1, "LOCKANY a b");
	hears(1, "OK name=b *");
}

TEST(a_group_does_not_wait_for_a_key_of_another_type)
{
	cluster_begin(1);
	memory_put_foreign(cluster.node[0].memory, SPAN("a"), INSTANT_NEVER);
	takes(1, "b");
	says(2, "LOCKANY a b wait=1m");
	hears_nothing(2);
	gives_back(1, "b");
	hears(2, "OK name=b *");
	memory_put_foreign(cluster.node[0].memory, SPAN("d"), INSTANT_NEVER);
	says(3, "LOCKANY a d wait=1m");
	hears(3, "ERR KIND *");
	says(3, "LOCKALL a c wait=1m");
	hears(3, "ERR KIND *");
}

RANGE_TEST(nobody_is_told_of_a_grant_before_the_one_who_asked, 1, 4)
{
	cluster_begin(_i);
	says(1, "WATCH e");
	hears(1, "OK *");
	says(1, "@n LOCKANY e1 e2");
	hears(1, "@n OK name=e1 *");
	hears(1, "! EVENT kind=granted name=e1 *");
	says(1, "@l LOCKALL e3 e4");
	hears(1, "@l \\* name=e3 *");
	hears(1, "@l \\* name=e4 *");
	hears(1, "@l OK n=2");
	hears(1, "! EVENT kind=granted name=e3 *");
	hears(1, "! EVENT kind=granted name=e4 *");
	says(1, "@d DEFER mail x id=j lock=e5");
	hears(1, "@d OK *");
	says(1, "@t TAKE mail");
	hears(1, "@t OK queue=mail job=j *");
	hears(1, "! EVENT kind=granted name=e5 *");
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/request/lockall.c, groups.c: LOCKALL takes all names or none. */
#include "tests/fixture/groups.h"

#include <check.h>

FIXTURE(.teardown = cluster_close)

TEST(lockall_takes_all_names_and_tells_them_in_the_order_given)
{
	unsigned rounds;

	cluster_begin(3);
	rounds = asked(CALL_ACQUIRE);
	says(1, "LOCKALL b a c");
	hears_all(1, "", "bac");
	ck_assert_uint_eq(asked(CALL_ACQUIRE), rounds + 9);
	says(2, "LOCK c");
	hears(2, "BUSY name=c holder=*");
	gives_back(1, "c");
	takes(2, "c");
	gives_back(1, "a");
	gives_back(1, "b");
	ck_assert(!key_is_there(0, "a") && !key_is_there(0, "b"));
	ignores(2);
}

TEST(lockall_that_is_refused_names_the_first_that_is_held_and_leaves_nothing)
{
	cluster_begin(3);
	takes(1, "b");
	takes(1, "c");
	passes(2 * SEC);
	says(2, "LOCKALL a c b d");
	hears(2, "BUSY name=b holder=* held_ms=2000 waiters=0 retry_ms=*");
	for (unsigned i = 0; i < 3; i++)
		ck_assert(!key_is_there(i, "a") && !key_is_there(i, "d"));
	takes(3, "a");
	takes(3, "d");
}

TEST(lockall_that_finds_a_holder_elsewhere_leaves_nothing)
{
	two_daemons(3);
	takes(1, "b");
	says(2, "LOCKALL a b c");
	hears(2, "BUSY name=b holder=@* waiters=0 retry_ms=*");
	for (unsigned i = 0; i < 3; i++)
		ck_assert(!key_is_there(i, "a") && !key_is_there(i, "c"));
	takes(1, "a");
	takes(1, "c");
	says(2, "UNLOCK a");
	hears(2, "ERR NOTHELD *");
}

TEST(lockall_names_each_lock_once)
{
	cluster_begin(1);
	says(1, "LOCKALL a b a");
	hears(1, "ERR ARG the names 1 and 3 are the same: *");
	says(1, "LOCKALL a b keep=1s");
	hears(1, "ERR ARG *");
	ck_assert(!key_is_there(0, "a"));
}

TEST(one_name_is_a_group_too)
{
	cluster_begin(1);
	says(1, "LOCKALL a");
	hears(1, "\\* name=a fence=* count=1");
	hears(1, "OK n=1");
	says(2, "LOCKALL a");
	hears(2, "BUSY name=a *");
	says(2, "LOCKANY a");
	hears(2, "BUSY name=a *");
	says(2, "LOCKANY a wait=9s");
	says(1, "LOCKALL b wait=9s");
	hears(1, "\\* name=b *");
	hears(1, "OK n=1");
	says(1, "UNLOCK a");
	ignores(1);
	hears(2, "OK name=a fence=* count=1");
	takes(3, "c");
	says(3, "LOCKALL a wait=9s");
	says(2, "UNLOCK a");
	hears(3, "\\* name=a fence=* count=1");
	hears(3, "OK n=1");
}

TEST(what_the_owner_holds_already_is_counted_up)
{
	int64_t fence;
	const char *line;

	cluster_begin(1);
	says(1, "LOCK a");
	fence = number_in(hears(1, GRANT), "fence");
	says(1, "LOCKALL b a");
	hears(1, "\\* name=b fence=* count=1");
	line = hears(1, "\\* name=a fence=* count=2");
	ck_assert_int_eq(number_in(line, "fence"), fence);
	hears(1, "OK n=2");
	takes(2, "c");
	says(1, "LOCKALL a c");
	hears(1, "BUSY name=c *");
	says(1, "CHECK a");
	hears(1, "OK name=a fence=* count=2");
	says(1, "LOCKALL a d owner=x");
	hears(1, "BUSY name=a *");
}

TEST(what_the_owner_gives_back_meanwhile_is_asked_for_again)
{
	cluster_begin(1);
	takes(1, "a");
	takes(2, "b");
	says(1, "@w LOCKALL a b wait=1m");
	gives_back(1, "a");
	ck_assert(!key_is_there(0, "a"));
	gives_back(2, "b");
	passes(10 * MSEC);
	hears_all(1, "@w ", "ab");
}

TEST(what_the_owner_gives_back_while_the_others_are_asked_for_is_asked_for_as_well)
{
	cluster_begin(3);
	takes(1, "a");
	all_feel(MOOD_TARDY);
	says(1, "@w LOCKALL a b");
	gives_back(1, "a");
	all_feel(MOOD_WELL);
	passes(10 * MSEC);
	hears_all(1, "@w ", "ab");
	for (unsigned i = 0; i < 3; i++)
		ck_assert(key_is_there(i, "a"));
}

TEST(a_lock_of_the_same_owner_that_waits_is_granted_together_with_the_lockall)
{
	cluster_begin(1);
	takes(2, "a");
	says(1, "@x LOCKALL a b wait=1m");
	says(1, "@y LOCK a wait=1m");
	gives_back(2, "a");
	passes(10 * MSEC);
	hears_all(1, "@x ", "ab");
	hears(1, "@y OK name=a fence=* count=2");
}

TEST(a_lock_of_the_same_owner_that_is_granted_before_counts_for_the_lockall)
{
	cluster_begin(1);
	takes(2, "a");
	takes(2, "b");
	says(1, "@y LOCK a wait=1m");
	says(1, "@x LOCKALL a b wait=1m");
	gives_back(2, "a");
	hears(1, "@y OK name=a fence=* count=1");
	gives_back(2, "b");
	passes(10 * MSEC);
	hears(1, "@x \\* name=a fence=* count=2");
	hears(1, "@x \\* name=b fence=* count=1");
	hears(1, "@x OK n=2");
}

TEST(what_one_lockall_got_counts_for_another_of_the_same_owner)
{
	cluster_begin(1);
	takes(2, "a");
	says(1, "@x LOCKALL a b wait=1m");
	says(1, "@y LOCKALL c a wait=1m");
	says(1, "@z LOCKANY d a wait=1m owner=z");
	hears(1, "@z OK name=d *");
	gives_back(2, "a");
	passes(10 * MSEC);
	hears_all(1, "@x ", "ab");
	hears(1, "@y \\* name=c fence=* count=1");
	hears(1, "@y \\* name=a fence=* count=2");
	hears(1, "@y OK n=2");
}

TEST(an_owner_does_not_wait_in_both_modes)
{
	cluster_begin(1);
	passes(SEC);
	says(2, "LOCK b mode=shared");
	hears(2, "OK *");
	says(1, "@alone LOCK b wait=1m");
	says(1, "@all LOCKALL a b mode=shared");
	hears(1, "@all ERR ARG this owner waits for the lock in the other mode*");
	says(1, "@other LOCKALL a b mode=shared owner=o");
	ignores(1);
	says(3, "@all LOCKALL a b wait=1m");
	says(3, "@shared LOCK b mode=shared");
	hears(3, "@shared ERR ARG this owner waits for the lock in the other mode*");
	says(3, "@any LOCKANY c b mode=shared");
	hears(3, "@any ERR ARG this owner waits for the lock in the other mode*");
	hears_nothing(3);
}

TEST(lockall_holds_names_together_with_readers)
{
	cluster_begin(1);
	passes(SEC);
	says(1, "LOCKALL a b mode=shared");
	hears_all(1, "", "ab");
	says(2, "LOCKALL b a mode=shared");
	hears_all(2, "", "ba");
	says(3, "LOCKALL c b");
	hears(3, "BUSY name=b holder=* mode=shared holders=2 *");
	says(1, "LOCKALL a c");
	hears(1, "ERR ARG this owner holds name 1 shared: UNLOCK it first");
	ck_assert(!key_is_there(0, "c"));
}

TEST(lockall_without_a_quorum_is_told_so)
{
	cluster_begin(3);
	falls(0);
	falls(1);
	says(1, "LOCKALL a b");
	passes(SEC);
	hears(1, "ERR QUORUM *");
	says(1, "LOCKALL a b wait=1s");
	passes(2 * SEC);
	hears(1, "ERR QUORUM *");
	says(1, "LOCKALL a b wait=1m");
	passes(SEC);
	comes(0);
	passes(5 * SEC);
	hears_all(1, "", "ab");
}

TEST(a_session_waits_with_no_more_lockalls_than_it_may)
{
	cluster_open(1);
	cluster.conf.limits.waiting = 2;
	cluster.conf.limits.locks = 7;
	daemon_starts(0);
	passes(SEC);
	takes(2, "a");
	says(1, "@1 LOCKALL a b wait=1m");
	says(1, "@2 LOCKALL a c wait=1m");
	says(1, "@3 LOCKALL a d wait=1m");
	hears(1, "@3 ERR LIMIT *limits.waiting*");
	says(1, "@4 LOCK a wait=1m");
	hears(1, "@4 ERR LIMIT *limits.waiting*");
	says(1, "@5 LOCKALL e f g h");
	hears(1, "@5 ERR LIMIT *limits.locks*");
	says(1, "@6 LOCKALL e f g");
	hears_all(1, "@6 ", "efg");
}

TEST(a_session_that_has_all_locks_that_it_may_takes_them_once_more)
{
	cluster_open(1);
	cluster.conf.limits.locks = 3;
	daemon_starts(0);
	passes(SEC);
	says(1, "LOCKALL a b c");
	hears_all(1, "", "abc");
	says(1, "LOCKALL c a");
	hears_all(1, "", "ca");
	says(1, "LOCKANY b c");
	hears(1, "OK name=b * count=2");
	says(1, "LOCKALL a b owner=x");
	hears(1, "ERR LIMIT *limits.locks*");
}

TEST(the_terms_of_a_lockall_keep_the_bounds_of_those_of_a_lock)
{
	begins_with_delay(1, 5 * SEC);
	says(1, "LOCKALL a b delay=6s");
	hears(1, "ERR LIMIT *max_delay*");
	says(1, "LOCKALL a b ttl=1h");
	hears(1, "ERR LIMIT *max_lease*");
	cluster.conf.limits.name = 100;
	service_reload(cluster.daemon[0].service, &cluster.conf);
	says(1, "LOCKALL a %0101u", 0);
	hears(1, "ERR LIMIT *name*");
	says(1, "LOCKALL a b delay=5s renew=yes wait=forever");
	hears_all(1, "", "ab");
	says(2, "LOCKALL a b wait=0");
	hears(2, "BUSY name=a *");
	gives_back(1, "a");
	gives_back(1, "b");
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/request/semaphores.c, permit_step.c, permit_step.c: permits of one daemon. */
#include "tests/fixture/cluster.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

FIXTURE(.teardown = cluster_close)

TEST(a_semaphore_grants_as_many_permits_as_its_limit_and_no_more)
{
	cluster_begin(3);
	says(1, "ACQUIRE a limit=2 note=render");
	hears(1, "OK name=a permit=? fence=* valid_ms=* ttl_ms=10000 count=1 free=1");
	passes(MSEC);
	says(2, "ACQUIRE a limit=2");
	hears(2, "OK name=a permit=? fence=* valid_ms=* ttl_ms=10000 count=1 free=0");
	says(3, "ACQUIRE a limit=2");
	hears(3, "BUSY name=a limit=2 free=0 waiters=0 holder=\"pid=* uid=*\" held_ms=1 note=render");
	says(1, "RELEASE a");
	hears(1, "OK name=a free=1");
	says(3, "ACQUIRE a limit=2");
	hears(3, "OK name=a permit=? *");
}

TEST(a_permit_takes_one_round_of_its_slot_and_the_first_one_that_of_the_mark_beside_it)
{
	unsigned calls;

	cluster_begin(3);
	calls = asked(CALL_ACQUIRE);
	says(1, "ACQUIRE a limit=5");
	hears(1, "OK *");
	ck_assert_uint_eq(asked(CALL_ACQUIRE), calls + 6);
	says(1, "ACQUIRE a limit=5");
	hears(1, "OK *");
	ck_assert_uint_eq(asked(CALL_ACQUIRE), calls + 9);
	says(1, "RELEASE a");
	says(1, "RELEASE a");
	for (unsigned i = 0; i < 3; i++)
		ck_assert(!key_is_there(i, "a"));
}

TEST(permits_are_granted_in_the_order_of_the_line)
{
	cluster_begin(3);
	says(1, "ACQUIRE a limit=1");
	hears(1, "OK *");
	says(2, "ACQUIRE a limit=1 wait=1m");
	says(3, "ACQUIRE a limit=1 wait=1m");
	says(4, "ACQUIRE a limit=1");
	hears(4, "BUSY name=a limit=1 free=0 waiters=2 holder=* held_ms=*");
	says(1, "RELEASE a");
	hears(1, "OK *");
	hears(2, "OK *");
	hears_nothing(3);
	says(2, "RELEASE a");
	hears(3, "OK *");
}

TEST(a_higher_priority_stands_before_lower_ones)
{
	cluster_begin(3);
	says(1, "ACQUIRE a limit=1");
	says(2, "ACQUIRE a limit=1 wait=1m");
	says(3, "ACQUIRE a limit=1 wait=1m priority=1");
	says(1, "RELEASE a");
	hears_nothing(2);
	hears(3, "OK *");
	says(3, "RELEASE a");
	hears(2, "OK *");
}

TEST(another_limit_or_a_lock_of_that_name_is_refused_as_long_as_somebody_has_a_permit)
{
	cluster_begin(3);
	says(1, "ACQUIRE a limit=2");
	hears(1, "OK *");
	says(2, "ACQUIRE a limit=3");
	hears(2, "ERR LIMIT limit=2 *");
	says(2, "LOCK a");
	hears(2, "ERR KIND *");
	says(2, "LOCK a mode=shared wait=1m");
	hears(2, "ERR KIND *");
	says(1, "RELEASE a");
	says(2, "ACQUIRE a limit=3");
	hears(2, "OK *");
	says(2, "RELEASE a");
	hears(2, "OK *");
	says(2, "LOCK a");
	hears(2, "OK *");
	says(3, "ACQUIRE a limit=3 wait=1m");
	hears(3, "ERR KIND *");
}

TEST(a_wait_that_is_over_is_told_and_leaves_nothing)
{
	cluster_begin(3);
	says(1, "ACQUIRE a limit=1");
	hears(1, "OK *");
	says(2, "ACQUIRE a limit=1 wait=3s");
	says(3, "@c ACQUIRE a limit=1 wait=1m");
	passes(3 * SEC);
	hears(2, "TIMEOUT name=a waited_ms=3000 limit=1 free=0 waiters=1 holder=* held_ms=*");
	says(3, "CANCEL @c");
	hears(3, "OK");
	hears(3, "@c ERR CANCELLED *");
	says(1, "RELEASE a");
	hears(1, "OK name=a free=1");
	for (unsigned i = 0; i < 3; i++)
		ck_assert(!key_is_there(i, "a") && !key_is_there(i, SLOT_PREFIX "a#0"));
}

TEST(what_a_session_has_is_free_when_it_ends_and_the_next_is_served)
{
	cluster_begin(3);
	says(1, "ACQUIRE a limit=2");
	says(1, "ACQUIRE a limit=2");
	says(2, "@1 ACQUIRE a limit=2 wait=1m");
	says(2, "@2 ACQUIRE a limit=2 wait=1m");
	goes(1, GONE_HANGUP);
	hears(2, "@1 OK name=a permit=? *");
	hears(2, "@2 OK name=a permit=? *");
	session_opens_from_afar(3, 0);
	says(2, "RELEASE a count=0");
	says(3, "ACQUIRE a limit=2");
	hears(3, "OK *");
	says(3, "ACQUIRE a limit=2");
	hears(3, "OK *");
	goes(3, GONE_RESET);
	says(4, "ACQUIRE a limit=2 wait=1m");
	passes(5 * SEC);
	hears_nothing(4);
	passes(6 * SEC);
	hears(4, "OK *");
}

TEST(release_extend_and_check_name_a_permit_or_mean_the_one_granted_last)
{
	cluster_begin(3);
	says(1, "ACQUIRE a limit=3 owner=t");
	says(1, "ACQUIRE a limit=3");
	ignores(1);
	says(1, "CHECK a");
	hears(1, "OK name=a permit=? fence=* valid_ms=9897 count=1");
	says(1, "CHECK a owner=t");
	hears(1, "OK name=a permit=? fence=* valid_ms=9897 count=1");
	says(1, "EXTEND a ttl=20s");
	hears(1, "OK name=a permit=? fence=* valid_ms=19797");
	says(1, "RELEASE a permit=7");
	hears(1, "ERR NOTHELD *");
	says(2, "RELEASE a");
	hears(2, "ERR NOTHELD *");
	says(1, "RELEASE a owner=t");
	hears(1, "OK name=a free=2");
	says(1, "RELEASE a");
	hears(1, "OK name=a free=3");
	says(1, "RELEASE a");
	hears(1, "ERR NOTHELD *");
}

TEST(unlock_of_a_semaphore_gives_a_permit_back_and_with_its_fence_no_other)
{
	int64_t fence;

	cluster_begin(3);
	says(1, "ACQUIRE a limit=3");
	fence = number_in(hears(1, "OK *"), "fence");
	says(1, "UNLOCK a fence=%lld", (long long)fence + 1);
	hears(1, "ERR NOTHELD *");
	says(1, "UNLOCK a fence=%lld", (long long)fence);
	hears(1, "OK name=a count=0");
	says(1, "UNLOCK a");
	hears(1, "ERR NOTHELD *");
}

TEST(a_session_with_grace_keeps_its_permit_and_its_place)
{
	const char *secret;
	char line[128];
	int64_t id;

	cluster_begin(3);
	says(1, "HELLO 1 grace=20s");
	secret = hears(1, "OK proto=1 *");
	id = number_in(secret, "session");
	snprintf(line, sizeof(line), "RESUME %lld %.32s", (long long)id, strstr(secret, "secret=") + 7);
	says(1, "ACQUIRE a limit=1");
	hears(1, "OK *");
	says(1, "@w ACQUIRE a limit=1 wait=1m owner=o");
	goes(1, GONE_HANGUP);
	passes(12 * SEC);
	says(3, "ACQUIRE a limit=1");
	hears(3, "BUSY *");
	says(2, "%s", line);
	hears(2, "\\* name=a permit=0 fence=* valid_ms=* count=1 limit=1");
	hears(2, "OK session=* n=1");
	says(2, "@r ACQUIRE a limit=1 wait=1m owner=o");
	says(2, "RELEASE a");
	hears(2, "OK name=a free=1");
	hears(2, "@r OK name=a permit=0 *");
}

TEST(a_slot_that_is_lost_is_the_loss_of_the_permit_and_its_mark_stays_until_nobody_believes)
{
	cluster_begin(3);
	says(1, "ACQUIRE a limit=1");
	hears(1, "OK *");
	for (unsigned i = 0; i < 3; i++)
		key_is_overwritten(i, SLOT_PREFIX "a#0", "someone", 1000 * SEC);
	passes(4 * SEC);
	hears(1, "! LOST name=a permit=0 fence=* reason=evicted");
	says(2, "LOCK a");
	hears(2, "ERR KIND *");
	says(1, "CHECK a");
	hears(1, "ERR LOST *");
	says(1, "RELEASE a permit=0");
	hears(1, "ERR LOST *");
	says(1, "RELEASE a");
	hears(1, "ERR NOTHELD *");
	passes(10 * SEC);
	says(2, "LOCK a");
	hears(2, "OK name=a *");
}

TEST(watchers_hear_of_permits_under_the_name_of_the_semaphore)
{
	cluster_begin(3);
	says(9, "WATCH a");
	hears(9, "OK prefixes=1");
	says(1, "ACQUIRE a limit=1 note=hi");
	hears(9, "! EVENT kind=granted name=a session=* permit=0 fence=* limit=1 waiters=0 note=hi");
	says(2, "ACQUIRE a limit=1 wait=1m");
	hears(9, "! EVENT kind=waiting name=a * waited_ms=0 limit=1 waiters=1");
	says(1, "RELEASE a");
	hears(9, "! EVENT kind=released name=a * permit=0 fence=* held_ms=0 *");
	hears(9, "! EVENT kind=granted name=a * permit=0 *");
	hears_nothing(9);
}

TEST(break_takes_all_permits_and_keeps_the_slots_until_nobody_believes)
{
	cluster_begin(3);
	session_opens_as_admin(9, 0);
	says(1, "ACQUIRE a limit=2");
	says(2, "ACQUIRE a limit=2");
	ignores(1), ignores(2);
	says(9, "BREAK a");
	hears(9, "OK name=a free_in_ms=*");
	hears(1, "! LOST name=a permit=? fence=* reason=broken");
	hears(2, "! LOST name=a permit=? fence=* reason=broken");
	says(3, "ACQUIRE a limit=2");
	next_line(3);
	passes(11 * SEC);
	ignores(3);
	says(3, "ACQUIRE a limit=2");
	hears(3, "OK *");
}

TEST(show_and_list_tell_of_the_semaphore_and_not_of_its_slots)
{
	cluster_begin(3);
	says(1, "ACQUIRE a limit=1 note=n");
	says(2, "ACQUIRE a limit=1 wait=1m owner=o");
	ignores(1);
	says(3, "SHOW a");
	hears(3, "\\* role=holder pos=0 session=* permit=0 fence=* held_ms=0 valid_ms=* limit=1 note=n");
	hears(3, "\\* role=waiter pos=1 session=* waited_ms=0 limit=1 owner=o");
	hears(3, "OK n=2");
	says(3, "LIST");
	hears(3, "\\* name=a kind=semaphore limit=1 held=1 waiters=1");
	hears(3, "OK n=1 more=0");
}

TEST(a_session_that_is_killed_loses_its_permits)
{
	cluster_begin(3);
	session_opens_as_admin(9, 0);
	says(1, "ACQUIRE a limit=1");
	ignores(1);
	says(9, "KILL session=2");
	hears(9, "OK session=2 n=1");
	hears(1, "! LOST name=a permit=0 fence=* reason=broken");
	ck_assert(hung_up(1));
}

TEST(what_makes_no_sense_is_refused)
{
	cluster_begin(1);
	says(1, "ACQUIRE a");
	hears(1, "ERR ARG *limit=*");
	says(1, "ACQUIRE a limit=0");
	hears(1, "ERR ARG *");
	says(1, "ACQUIRE a limit=1025");
	hears(1, "ERR LIMIT *1024*");
	says(1, "ACQUIRE a limit=2 weight=2");
	hears(1, "ERR ARG ACQUIRE has no field 'weight'; a permit is one slot: ACQUIRE once for each, *");
	says(1, "RELEASE a permit=0,1");
	hears(1, "ERR ARG permit=*");
}

/* Two try the slots. Of those that do not wait so many are kept until it is known whether a slot is left. */
TEST(so_many_stall_while_others_try_all_slots_and_the_next_is_told_at_once)
{
	unsigned granted = 0, busy = 0;

	cluster_begin(1);
	says(1, "ACQUIRE a limit=2"), says(1, "RELEASE a"), ignores(1);
	all_feel(MOOD_SILENT);
	for (unsigned i = 0; i < 66; i++)
		says(2, "@%u ACQUIRE a limit=2", i);
	hears_nothing(2);
	says(2, "@x ACQUIRE a limit=2");
	hears(2, "@x BUSY *");
	all_feel(MOOD_WELL);
	for (const char *line = next_line(2); line; line = next_line(2))
		*(strstr(line, " OK ") ? &granted : &busy) += 1;
	ck_assert_uint_eq(granted, 2);
	ck_assert_uint_eq(busy, 64);
}

TEST(a_wait_without_a_quorum_keeps_its_place)
{
	cluster_begin(3);
	falls(0);
	falls(1);
	passes(SEC);
	says(1, "ACQUIRE a limit=2");
	hears(1, "ERR QUORUM *");
	says(1, "@w ACQUIRE a limit=2 wait=1m");
	passes(SEC);
	hears_nothing(1);
	comes(0);
	passes(40 * SEC);
	hears(1, "@w OK name=a permit=? *");
}

TEST(without_a_quorum_it_is_told_what_the_stores_refuse)
{
	cluster_begin(1);
	refuses(0, "NOPERM no permissions to access a key");
	says(1, "ACQUIRE a limit=2");
	hears(1, "ERR QUORUM 1 of 1 stores can be used, but fewer than 1 complied in time; a: it refused a call: NOPERM no permissions to access a key");
	feels(0, MOOD_WELL);
}

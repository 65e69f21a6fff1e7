/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/semaphore/permit_step.c, retry.c; daemon/store/memory.c: permits of several daemons, over the same stores. */
#include "tests/fixture/cluster.h"

#include <check.h>

FIXTURE(.teardown = cluster_close)

TEST(daemons_grant_as_many_permits_together_as_the_limit)
{
	unsigned granted = 0;

	three_daemons(3);
	for (unsigned k = 1; k <= 3; k++)
		for (unsigned i = 0; i < 4; i++) {
			says(k, "ACQUIRE a limit=5");
			granted += strncmp(next_line(k), "OK ", 3) == 0;
		}
	ck_assert_uint_eq(granted, 5);
	says(1, "RELEASE a");
	hears(1, "OK *");
	passes(10 * MSEC);
	says(3, "ACQUIRE a limit=5");
	hears(3, "OK *");
}

TEST(another_limit_elsewhere_is_told_and_a_lock_elsewhere)
{
	two_daemons(3);
	says(1, "ACQUIRE a limit=2");
	hears(1, "OK *");
	says(2, "ACQUIRE a limit=3");
	hears(2, "ERR LIMIT limit=2 *");
	says(2, "ACQUIRE a limit=3 wait=1m");
	hears(2, "ERR LIMIT limit=2 *");
	says(2, "LOCK a wait=1m");
	hears(2, "ERR KIND *");
	says(2, "LOCK a mode=shared");
	hears(2, "ERR KIND *");
	says(2, "SHOW a");
	hears(2, "\\* role=holder pos=0 holder=@* ttl_ms=* limit=2");
	hears(2, "OK n=1");
	says(2, "ACQUIRE a limit=2");
	hears(2, "OK *");
	says(1, "LOCK b mode=shared");
	hears(1, "OK *");
	says(2, "ACQUIRE b limit=2 wait=1m");
	hears(2, "ERR KIND *");
	says(1, "LOCK c");
	hears(1, "OK *");
	says(2, "ACQUIRE c limit=2 wait=1m");
	hears(2, "ERR KIND *");
}

/* Loop: LOCKANY, or LOCKALL, whose order of names is that of their bytes. */
LOOP_TEST(a_group_with_the_name_of_a_semaphore_elsewhere_is_refused_at_once, 4)
{
	static const char *const request[] = {"LOCKANY s t wait=1m", "LOCKANY a s wait=1m", "LOCKALL s t wait=1m", "LOCKANY s t"};

	two_daemons(3);
	says(1, "ACQUIRE s limit=2");
	hears(1, "OK *");
	for (unsigned i = 0; i < 2; i++) {
		says(2, "LOCK %c", "at"[i]);
		hears(2, "OK *");
	}
	session_opens(5, 1);
	says(5, "%s", request[_i]);
	hears(5, "ERR KIND the name is in use by a semaphore*");
	says(2, "UNLOCK a");
	hears(2, "OK *");
	says(2, "UNLOCK t");
	hears(2, "OK *");
	hears_nothing(5);
	for (unsigned i = 0; i < 3; i++)
		ck_assert(!key_is_there(i, "a") && !key_is_there(i, "t"));
}

TEST(a_release_wakes_who_waits_at_another_daemon)
{
	two_daemons(3);
	says(1, "ACQUIRE a limit=1");
	hears(1, "OK *");
	says(2, "ACQUIRE a limit=1 wait=1m");
	passes(100 * MSEC);
	hears_nothing(2);
	says(1, "RELEASE a");
	hears(1, "OK *");
	passes(1500 * MSEC);
	hears(2, "OK *");
}

/* Both need two of two slots, and ask at the same time, as the manual says: each with a lock around that. */
TEST(clients_that_ask_for_several_slots_within_a_lock_do_not_wait_for_each_other)
{
	static const char *const line[] = {"LOCK a/several wait=1m", "ACQUIRE a limit=2 wait=1m", "ACQUIRE a limit=2 wait=1m", "UNLOCK a/several"};

	three_daemons(3);
	for (unsigned i = 0; i < 4; i++)
		for (unsigned k = 2; k <= 3; k++) {
			says(k, "%s", line[i]);
			passes(100 * MSEC);
		}
	passes(20 * SEC);
	hears(2, "OK name=a/several *");
	hears(2, "OK name=a permit=? *");
	hears(2, "OK name=a permit=? *");
	hears(2, "OK name=a/several count=0");
	hears(3, "OK name=a/several *");
	hears_nothing(3);
	says(2, "RELEASE a count=0");
	hears(2, "OK *");
	passes(3 * SEC);
	hears(3, "OK name=a permit=? *");
	hears(3, "OK name=a permit=? *");
	hears(3, "OK name=a/several count=0");
}

TEST(a_daemon_that_dies_leaks_no_permit)
{
	two_daemons(3);
	says(1, "ACQUIRE a limit=1");
	hears(1, "OK *");
	daemon_ends(0);
	says(2, "ACQUIRE a limit=1 wait=1m");
	passes(5 * SEC);
	hears_nothing(2);
	passes(6 * SEC);
	hears(2, "OK *");
	says(2, "RELEASE a");
	hears(2, "OK *");
	says(2, "LOCK a");
	hears(2, "OK *");
}

TEST(a_mark_whose_key_is_deleted_is_put_back)
{
	two_daemons(3);
	says(1, "ACQUIRE a limit=2");
	hears(1, "OK *");
	is_flushed(0);
	passes(5 * SEC);
	hears_nothing(1);
	says(2, "ACQUIRE a limit=3");
	hears(2, "ERR LIMIT limit=2 *");
}

TEST(a_permit_whose_mark_is_lost_is_lost_with_it)
{
	const char *line;

	two_daemons(3);
	says(1, "ACQUIRE a limit=2");
	hears(1, "OK *");
	for (unsigned i = 0; i < 3; i++)
		key_is_overwritten(i, "a", "another:1~3:0123456789ab00000000000000000000", 60 * SEC);
	passes(11 * SEC);
	do
		line = next_line(1);
	while (line && strncmp(line, "! LOST", 6) != 0);
	ck_assert_ptr_nonnull(line);
	says(1, "CHECK a");
	hears(1, "ERR LOST *");
}

/* Nobody polls for a mark: whoever polls for the name finds it taken until the last permit is given back. */
TEST(permits_follow_each_other_for_as_long_as_slots_are_free_although_other_clients_use_the_stores)
{
	cluster_open(3);
	cluster.conf.foreign = true;
	daemon_starts(0);
	passes(2 * SEC);
	for (unsigned k = 1; k <= 4; k++) {
		says(k, "ACQUIRE a limit=5");
		hears(k, "OK *");
		passes(70 * MSEC);
	}
	says(5, "ACQUIRE a limit=5 wait=1m");
	hears(5, "OK *");
}

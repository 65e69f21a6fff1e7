/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/lock/lock.c, locks.c: UNLOCK keep= leaves a name taken that nobody holds. */
#include "daemon/core/lock/lock.h"
#include "tests/fixture/readers.h"

#include <check.h>

static void is_left_for(const char *keep)
{
	two_daemons(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	says(1, "UNLOCK a keep=%s", keep);
	hears(1, "OK name=a count=0");
}

static void is_busy(unsigned k)
{
	says(k, "LOCK a");
	hears(k, "BUSY *");
}

FIXTURE(.teardown = cluster_close, .seconds = 60)

TEST(a_name_may_be_kept_for_longer_than_any_lease)
{
	is_left_for("10m");
	passes(595 * SEC);
	is_busy(2);
	is_busy(1);
	passes(10 * SEC);
	says(2, "LOCK a");
	hears(2, GRANT);
}

TEST(max_keep_bounds_it)
{
	two_daemons(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	says(1, "UNLOCK a keep=61m");
	hears(1, "ERR LIMIT keep may be at most 3600000ms (max_keep)");
	says(1, "UNLOCK a keep=60m");
	hears(1, "OK name=a count=0");
}

/* Nobody relies on a kept name, so no quarantine is longer for it. */
TEST(stores_that_forget_a_kept_name_vote_after_their_quarantine)
{
	is_left_for("10m");
	passes(SEC);
	is_flushed(0);
	is_flushed(1);
	passes(25 * SEC);
	says(2, "LOCK a");
	hears(2, "ERR QUORUM *");
	passes(10 * SEC);
	says(2, "LOCK a");
	hears(2, GRANT);
}

TEST(another_run_of_the_daemon_finds_it_kept)
{
	is_left_for("10m");
	passes(SEC);
	daemon_returns(0);
	passes(100 * SEC);
	session_opens(3, 0);
	is_busy(3);
}

TEST(kept_names_count_until_they_end)
{
	static const int64_t keep[] = {1, 2, 5, 30, 64, 65, 300, 1000, 3600, 9000, 24 * 3600};
	struct instant now = {.us = 12345 * SEC};
	static struct kept_names k;

	for (size_t i = 0; i < sizeof(keep) / sizeof(keep[0]); i++, now = instant_add(now, 7 * 3600 * SEC + 1)) {
		struct instant end = instant_add(now, keep[i] * SEC);

		kept_names_add(&k, NULL, now, keep[i] * SEC, 300);
		kept_names_add(&k, NULL, now, keep[i] * SEC, 50);
		ck_assert_uint_eq(kept_bytes_count(&k.all, now), 350 + 2 * NAME_BYTES);
		ck_assert_uint_eq(kept_bytes_count(kept_of_peer(&k, NULL), instant_add(end, -1)), 350 + 2 * NAME_BYTES);
		now = instant_add(end, keep[i] * SEC / 4 + 2 * SEC);
		ck_assert_uint_eq(kept_bytes_count(&k.all, now), 0);
	}
}

/* One name stands for many: its key is removed each time. */
static const char *keeps(unsigned k, const char *keep)
{
	const char *told;

	says(k, "LOCK a");
	hears(k, "OK *");
	says(k, "UNLOCK a keep=%s", keep);
	told = next_line(k);
	memory_remove(cluster.node[0].memory, SPAN("a"));
	return told;
}

static unsigned keeps_until_refused(unsigned k, const char *keep, const char *refusal)
{
	const char *told = keeps(k, keep);
	unsigned n = 0;

	for (; told[0] == 'O' && n < 1000; n++)
		told = keeps(k, keep);
	ck_assert_str_eq(told, refusal);
	says(k, "UNLOCK a");
	hears(k, "OK *");
	return n;
}

#define REFUSED(whose, most) \
	"ERR LIMIT the names that " whose " keep or have left with a delay may take at most " most \
	" bytes at a store (limits.stored): ask without keep= or delay=, or later"

LOOP_TEST(kept_names_of_a_peer_take_a_quarter_and_those_of_all_the_whole, 2)
{
	static const char *const keep[] = {"20s", "1h"};
	const struct peer other = {.is_unix = true, .is_local = true, .uid = 33, .pid = 7, .address = "unix"};
	const struct peer root = {.is_unix = true, .is_local = true, .uid = 0, .pid = 8, .address = "unix"};

	cluster_open(1);
	cluster.conf.limits.stored = 20100; /* a name of one byte counts as 201 */
	cluster.conf.own_uid = 999;
	daemon_starts(0);
	passes(SEC);
	session_opens_from(3, 0, &other);
	session_opens_from(4, 0, &root);
	ck_assert_uint_eq(keeps_until_refused(3, keep[_i], REFUSED("clients of one peer", "5025")), 25);
	ck_assert_uint_eq(keeps_until_refused(4, keep[_i], REFUSED("all clients", "20100")), 75);
	says(3, "ACQUIRE s limit=1"); /* it keeps no name */
	hears(3, "OK name=s *");
	passes(_i == 0 ? 22 * SEC : 4500 * SEC);
	ck_assert_str_eq(keeps(3, keep[_i]), "OK name=a count=0");
}

LOOP_TEST(a_permit_is_not_kept, 2)
{
	cluster_begin(1);
	says(1, "ACQUIRE a limit=1");
	hears(1, "OK *");
	says(1, _i == 0 ? "UNLOCK a keep=20s" : "UNLOCK a sync=yes");
	hears(1, _i == 0 ? "ERR ARG keep= is for locks: *" : "ERR ARG sync= is for locks: *");
	says(2, "ACQUIRE a limit=1");
	hears(2, "BUSY *");
	says(1, "UNLOCK a keep=0s sync=no");
	hears(1, "OK name=a count=0");
	passes(MSEC);
	says(2, "ACQUIRE a limit=1");
	hears(2, "OK *");
}

LOOP_TEST(a_group_of_a_semaphore_and_a_lock_is_refused_at_once, 4)
{
	static const char *const request[] = {"LOCKALL s t", "LOCKALL t s wait=1m", "LOCKANY t s", "LOCKANY s t wait=1m"};

	cluster_begin(1);
	says(1, "ACQUIRE s limit=2");
	hears(1, "OK *");
	says(2, "%s", request[_i]);
	hears(2, "ERR KIND name ? is in use by a semaphore*");
	says(1, "RELEASE s");
	hears(1, "OK *");
	says(1, "LOCK t");
	hears(1, "OK *");
}

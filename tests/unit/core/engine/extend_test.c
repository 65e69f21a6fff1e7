/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/renew.c: EXTEND, and leases with renew=no. */
#include "tests/fixture/held_lock.h"

#include <check.h>
#include <string.h>

FIXTURE(.teardown = cluster_close)

TEST(without_renew_the_lease_ends_after_its_ttl_as_expired)
{
	int64_t fence = held_after_lock(1, "LOCK a renew=no ttl=1s");

	passes(920 * MSEC);
	hears_nothing(1);
	passes(70 * MSEC);
	ck_assert_int_eq(number_in(hears(1, "! LOST name=a fence=* reason=expired"), "fence"), fence);
	ck_assert_uint_eq(asked(CALL_EXTEND), 0);
	says(1, "CHECK a");
	hears(1, "ERR LOST *");
}

TEST(without_renew_an_extend_prolongs_once)
{
	held_after_lock(1, "LOCK a renew=no ttl=1s");
	passes(900 * MSEC);
	says(1, "EXTEND a");
	hears(1, "OK name=a fence=* valid_ms=987");
	passes(900 * MSEC);
	hears_nothing(1);
	passes(100 * MSEC);
	hears(1, "! LOST name=a fence=* reason=expired");
}

TEST(extend_answers_the_same_fence_and_a_whole_lease)
{
	int64_t fence = held_after_lock(3, "LOCK a");

	passes(2 * SEC);
	says(1, "EXTEND a");
	ck_assert_int_eq(number_in(hears(1, "OK name=a fence=* valid_ms=9897"), "fence"), fence);
}

TEST(the_ttl_of_an_extend_is_that_of_later_renewals_too)
{
	held_after_lock(3, "LOCK a");
	says(1, "EXTEND a ttl=20s");
	hears(1, "OK name=a fence=* valid_ms=19797");
	passes(6660 * MSEC);
	ck_assert_uint_eq(asked(CALL_EXTEND), 3);
	passes(20 * MSEC);
	ck_assert_uint_eq(asked(CALL_EXTEND), 6);
	ck_assert_int_eq(cluster.node[0].last[CALL_EXTEND].call.px_ms, 20000);
}

TEST(an_extend_without_a_quorum_says_so_and_the_lease_goes_on)
{
	held_after_lock(3, "LOCK a");
	falls(1);
	falls(2);
	says(1, "EXTEND a");
	hears(1, "! RISK *");
	hears(1, "ERR QUORUM 1 of 3 *");
	ck_assert_int_eq(valid_ms(), 9897);
	comes(1);
	comes(2);
	passes(SEC);
	hears(1, "! SAFE *");
}

/* Only a LOCK counts as a failed LOCK: operators measure their objective by this figure. */
TEST(only_a_lock_without_a_quorum_counts_as_a_failure)
{
	const char *line;

	held_after_lock(3, "LOCK a");
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	says(1, "UNLOCK a");
	hears(1, "OK name=a count=1");
	falls(1);
	falls(2);
	says(1, "EXTEND a");
	hears(1, "! RISK *");
	hears(1, "ERR QUORUM *");
	says(1, "UNLOCK a sync=yes");
	passes(SEC);
	hears(1, "ERR QUORUM *");
	ck_assert_int_eq(figure(0, METRIC_FAILURES), 0);
	says(1, "LOCK b");
	hears(1, "ERR QUORUM *");
	ck_assert_int_eq(figure(0, METRIC_FAILURES), 1);
	says(1, "STATS");
	do
		line = next_line(1);
	while (line && !strstr(line, "failure_rate_ppm"));
	ck_assert_ptr_nonnull(line);
	ck_assert_int_eq(number_in(line, "value"), 1000000 / 3);
	ignores(1);
}

TEST(extends_that_come_while_one_is_under_way_are_answered_by_the_next_round)
{
	held_after_lock(1, "LOCK a");
	feels(0, MOOD_SILENT);
	says(1, "@1 EXTEND a");
	says(1, "@2 EXTEND a ttl=20s");
	says(1, "@3 EXTEND a");
	ck_assert_uint_eq(waiting_at(0), 1);
	serves(0, 1);
	hears(1, "@1 OK name=a fence=* valid_ms=9897");
	hears_nothing(1);
	feels(0, MOOD_WELL);
	passes(MSEC);
	hears(1, "@2 OK name=a fence=* valid_ms=19797");
	hears(1, "@3 OK name=a fence=* valid_ms=19797");
}

TEST(a_store_that_has_not_answered_one_renewal_is_not_sent_another)
{
	held_after_lock(3, "LOCK a");
	feels(2, MOOD_SILENT);
	for (unsigned i = 0; i < 3; i++) {
		says(1, "EXTEND a");
		hears(1, "OK name=a *");
	}
	ck_assert_uint_eq(cluster.node[0].count[CALL_EXTEND], 3);
	ck_assert_uint_eq(cluster.node[2].count[CALL_EXTEND], 1);
	feels(2, MOOD_WELL);
	says(1, "EXTEND a");
	hears(1, "OK name=a *");
	ck_assert_uint_eq(cluster.node[2].count[CALL_EXTEND], 2);
}

TEST(unlocking_while_an_extend_is_under_way_cancels_it)
{
	held_after_lock(1, "LOCK a");
	feels(0, MOOD_SILENT);
	says(1, "@1 EXTEND a");
	says(1, "UNLOCK a");
	hears(1, "OK name=a count=0");
	hears(1, "@1 ERR CANCELLED *");
	feels(0, MOOD_WELL);
	ck_assert(!key_is_there(0, "a"));
}

/* The EXTEND that was sent to a store last, as it stands in the socket of a connection that has ended since. */
static struct call ghost_of(unsigned node)
{
	const struct parcel *p = &cluster.node[node].last[CALL_EXTEND];
	struct call ghost = p->call;

	static char name[16], value[VALUE_MAX], marker[MARKER_MAX];

	memcpy(name, ghost.name.p, ghost.name.n);
	memcpy(value, ghost.value.p, ghost.value.n);
	memcpy(marker, ghost.marker.p, ghost.marker.n);
	ghost.name.p = name;
	ghost.value.p = ghost.new_value.p = value;
	ghost.marker.p = marker;
	return ghost;
}

TEST(a_renewal_that_runs_late_takes_nothing_from_a_longer_one)
{
	struct call ghost;
	struct answer a;

	cluster_begin(3);
	daemon_starts(1);
	passes(2 * SEC);
	session_opens(3, 1);
	falls(2);
	says(1, "LOCK a ttl=1s");
	hears(1, "OK name=a *");
	feels(0, MOOD_SILENT);
	passes(345 * MSEC); /* the watchdog */
	ghost = ghost_of(0);
	ck_assert_int_eq(ghost.px_ms, 1000);
	loses(0, 1);
	falls(0);
	feels(0, MOOD_WELL);
	comes(0);
	passes(20 * MSEC);
	ignores(1);
	says(1, "EXTEND a ttl=30s");
	hears(1, "OK name=a fence=* valid_ms=29697");
	memory_call(cluster.node[0].memory, &ghost, cluster.now, &a);
	ck_assert_int_eq(a.code, 'E');
	ck_assert_int_gt(key_ttl_us(0, "a"), 29 * SEC);
	/* With c and a the other daemon would have a quorum, while b vouches to the holder. */
	comes(2);
	passes(1100 * MSEC);
	says(3, "LOCK a");
	hears(3, "BUSY *");
	ck_assert_int_gt(valid_ms(), 28 * 1000);
}

TEST(a_short_lease_is_extended_to_a_long_one)
{
	held_after_lock(3, "LOCK a ttl=200ms");
	says(1, "EXTEND a ttl=10s");
	hears(1, "OK name=a fence=* valid_ms=9897");
	passes(SEC);
	ck_assert_int_gt(valid_ms(), 8000);
}

TEST(a_lease_that_nobody_renews_is_extended_late_to_a_long_one)
{
	held_after_lock(3, "LOCK a ttl=1s renew=no");
	passes(900 * MSEC);
	says(1, "EXTEND a ttl=10s");
	hears(1, "OK name=a fence=* valid_ms=9897");
}

TEST(after_a_missed_extend_to_a_long_ttl_the_short_lease_is_renewed_in_time)
{
	held_after_lock(3, "LOCK a ttl=1s");
	refuses(1, "OOM");
	refuses(2, "OOM");
	says(1, "EXTEND a ttl=30s");
	hears(1, "! RISK *");
	hears(1, "ERR QUORUM *");
	passes(10 * MSEC);
	all_feel(MOOD_WELL);
	passes(50 * MSEC); /* a twentieth of the ttl that the standing votes have */
	hears(1, "! SAFE name=a fence=* valid_ms=29*");
}

TEST(a_lease_is_not_handed_on_while_an_extend_to_other_terms_is_under_way)
{
	held_after_lock(3, "LOCK a ttl=1s");
	says(2, "LOCK a wait=5s ttl=1s");
	says(3, "LOCK a wait=5s ttl=1s");
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(2, "OK name=a *");
	all_feel(MOOD_SILENT);
	says(2, "@e EXTEND a ttl=30s");
	says(2, "UNLOCK a");
	hears(2, "OK name=a count=0");
	hears(2, "@e ERR CANCELLED *");
	hears_nothing(3);
	all_feel(MOOD_WELL);
	hears(3, "OK name=a fence=* valid_ms=9??* ttl_ms=1000 *");
}

TEST(a_waiter_that_is_handed_a_lease_at_risk_hears_so_and_it_is_renewed_as_soon_as_possible)
{
	held_after_lock(3, "LOCK a");
	says(2, "LOCK a wait=60s");
	says(3, "LOCK a wait=60s");
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(2, "OK name=a *");
	falls(1);
	falls(2);
	passes(4 * SEC);
	hears(2, "! RISK name=a *");
	says(2, "UNLOCK a");
	hears(2, "OK name=a count=0");
	hears(3, "OK name=a *");
	passes(MSEC);
	hears(3, "! RISK name=a *");
	comes(1);
	comes(2);
	passes(SEC);
	hears(3, "! SAFE name=a *");
	passes(20 * SEC);
	hears_nothing(3);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/grant.c, locks.c, grant.c, engine.c: an owner that holds a lock asks for it in the other mode. */
#include "tests/fixture/full_window.h"

#include <check.h>

#define SHARED    "OK name=a fence=* valid_ms=* ttl_ms=10000 count=1 mode=shared"
#define EXCLUSIVE "OK name=a fence=* valid_ms=* ttl_ms=10000 count=1"

static int64_t fence;

/* Session 1 holds a in this mode. */
static void one_holds(unsigned nodes, const char *mode)
{
	cluster_begin(nodes);
	passes(SEC);
	says(1, "LOCK a mode=%s", mode);
	fence = number_in(hears(1, "OK name=a *"), "fence");
}

static void fence_grows(const char *line)
{
	ck_assert_int_gt(number_in(line, "fence"), fence);
	fence = number_in(line, "fence");
}

#define REFUSED "ERR ARG this owner holds it shared: UNLOCK it, then LOCK it exclusively"

FIXTURE(.teardown = cluster_close)

/* With and without other readers, with and without patience. */
LOOP_TEST(a_reader_that_asks_for_the_name_alone_is_told_to_unlock_it_first, 8)
{
	static const char *const request[] = {"LOCK a", "LOCK a wait=1m", "LOCK a count=1", "LOCK a count=2 wait=1m"};
	unsigned extends;

	one_holds(3, "shared");
	if (_i >= 4) {
		says(2, "LOCK a mode=shared");
		hears(2, SHARED);
		says(3, "LOCK a wait=1m");
	}
	passes(MSEC);
	extends = asked(CALL_EXTEND);
	says(1, "%s", request[_i % 4]);
	ck_assert_str_eq(hears(1, "ERR *"), REFUSED);
	says(1, _i % 2 ? "LOCKALL b a wait=1m" : "LOCKANY b a");
	hears(1, "ERR ARG this owner holds name 2 shared: UNLOCK it first");
	ck_assert_uint_eq(asked(CALL_EXTEND), extends);
	says(1, "CHECK a");
	ck_assert_int_eq(number_in(hears(1, "OK name=a *count=1 mode=shared"), "fence"), fence);
	says(1, "UNLOCK a");
	hears(1, "OK name=a count=0");
}

TEST(another_owner_of_the_same_session_waits_for_its_reader)
{
	one_holds(3, "shared");
	says(1, "@o LOCK a owner=o wait=1m");
	passes(MSEC);
	hears_nothing(1);
	says(1, "UNLOCK a");
	hears(1, "OK name=a count=0");
	passes(MSEC);
	fence_grows(hears(1, "@o OK *"));
}

TEST(unlock_and_lock_make_a_reader_a_writer_with_a_larger_fence)
{
	one_holds(3, "shared");
	says(1, "UNLOCK a");
	says(1, "LOCK a");
	hears(1, "OK name=a count=0");
	passes(MSEC);
	fence_grows(hears(1, EXCLUSIVE));
}

/* The answer of session 1, which held a alone: it needs no store for that, and its fence stays. */
static void one_shares(void)
{
	says(1, "LOCK a mode=shared");
	ck_assert_int_eq(number_in(hears(1, SHARED), "fence"), fence);
}

TEST(a_writer_becomes_a_reader_with_its_fence_and_others_join_with_larger_ones)
{
	one_holds(3, "exclusive");
	says(2, "LOCK a mode=shared wait=1m");
	one_shares();
	hears_nothing(2);
	passes(MSEC);
	fence_grows(hears(2, SHARED));
	says(3, "LOCK a mode=shared");
	fence_grows(hears(3, SHARED));
	says(1, "UNLOCK a");
	says(2, "UNLOCK a");
	says(3, "UNLOCK a");
	ck_assert_uint_eq(ignores(1) + ignores(2) + ignores(3), 3);
	says(2, "LOCK a");
	fence_grows(hears(2, EXCLUSIVE));
}

TEST(a_downgrade_keeps_the_count_and_a_second_request_counts)
{
	one_holds(3, "exclusive");
	says(1, "LOCK a");
	hears(1, "OK *count=2");
	says(1, "LOCK a mode=shared");
	hears(1, "OK *count=2 mode=shared");
	says(1, "CHECK a");
	hears(1, "OK name=a fence=* valid_ms=* count=2 mode=shared");
	says(1, "LOCK a mode=shared wait=1m");
	hears(1, "OK *count=3 mode=shared");
	for (int count = 2; count >= 0; count--) {
		says(1, "UNLOCK a");
		ck_assert_int_eq(number_in(hears(1, "OK name=a count=*"), "count"), count);
	}
}

/* No store answers: whatever the owner asks, no answer shows an exclusive hold again. */
LOOP_TEST(a_downgraded_hold_is_shared_for_good, 7)
{
	static const char *const asks[][2] = {
		{"CHECK a", "OK name=a *count=1 mode=shared"},
		{"LOCK a", REFUSED},
		{"LOCK a wait=1m", REFUSED},
		{"LOCK a count=1", REFUSED},
		{"LOCKALL b a wait=1m", "ERR ARG this owner holds name 2 shared: UNLOCK it first"},
		{"LOCK a mode=shared count=1", SHARED},
		{"UNLOCK a keep=1s", "ERR ARG keep= is for exclusive locks: *"},
	};

	one_holds(3, "exclusive");
	all_feel(MOOD_SILENT);
	one_shares();
	says(1, "%s", asks[_i][0]);
	hears(1, asks[_i][1]);
	all_feel(MOOD_WELL);
	passes(5 * SEC);
	ignores(1);
	says(1, "CHECK a");
	ck_assert_int_eq(number_in(hears(1, "OK name=a *count=1 mode=shared"), "fence"), fence);
}

TEST(readers_wait_until_the_stores_have_heard_of_a_downgrade)
{
	one_holds(3, "exclusive");
	all_feel(MOOD_SILENT);
	one_shares();
	says(2, "LOCK a mode=shared");
	hears(2, "BUSY *");
	says(2, "LOCK a mode=shared wait=1m");
	says(3, "LOCK a wait=1m");
	passes(SEC);
	hears_nothing(2);
	all_feel(MOOD_WELL);
	passes(5 * SEC);
	fence_grows(hears(2, SHARED));
	hears_nothing(3);
}

/* The stores have not heard that it was shared. */
LOOP_TEST(unlock_right_behind_a_downgrade_serves_the_next, 2)
{
	one_holds(3, "exclusive");
	says(2, _i ? "LOCK a mode=shared wait=1m" : "LOCK a wait=1m");
	says(3, "LOCK a mode=shared wait=1m");
	all_feel(MOOD_SILENT);
	one_shares();
	says(1, "UNLOCK a");
	hears(1, "OK name=a count=0");
	all_feel(MOOD_WELL);
	passes(10 * SEC);
	fence_grows(hears(2, _i ? SHARED : EXCLUSIVE));
	if (_i) {
		fence_grows(hears(3, SHARED));
		return;
	}
	hears_nothing(3);
	says(2, "LOCK a mode=shared");
	ck_assert_int_eq(number_in(hears(2, SHARED), "fence"), fence);
	passes(MSEC);
	fence_grows(hears(3, SHARED));
}

TEST(a_downgraded_hold_that_is_lost_waits_for_nothing)
{
	one_holds(3, "exclusive");
	says(2, "LOCK a wait=1m");
	all_feel(MOOD_SILENT);
	one_shares();
	passes(11 * SEC);
	hears(1, "! RISK *");
	hears(1, "! LOST name=a *");
	all_feel(MOOD_WELL);
	passes(10 * SEC);
	fence_grows(hears(2, EXCLUSIVE));
	hears_nothing(1);
}

/* The exclusive renewal that is under way brings no token. Session 2 has one of its own, and so has whoever follows it. */
TEST(a_downgraded_hold_that_is_handed_on_keeps_no_reader_out)
{
	cluster_begin(3);
	passes(SEC);
	says(3, "LOCK a");
	says(1, "LOCK a wait=1m");
	says(2, "LOCK a wait=1m");
	says(3, "UNLOCK a");
	ignores(3);
	passes(100 * MSEC);
	fence = number_in(hears(1, "OK name=a *"), "fence");
	all_feel(MOOD_SILENT);
	says(1, "@e EXTEND a");
	one_shares();
	says(1, "UNLOCK a");
	ignores(1);
	hears(2, "OK name=a *");
	all_feel(MOOD_WELL);
	passes(100 * MSEC);
	says(3, "LOCK a mode=shared wait=1m");
	says(2, "UNLOCK a");
	hears(2, "OK *");
	hears(3, SHARED);
	says(1, "LOCK a mode=shared");
	hears(1, SHARED);
}

/* --- the token of the readers that join --- */

/* Another name was granted with tokens for hand-overs: the fence of the store is beyond the last token that anybody was given. */
TEST(a_token_is_not_missed_for_tokens_that_this_daemon_has_in_store)
{
	unsigned before;

	cluster_begin(1);
	passes(SEC);
	says(1, "LOCK a");
	fence = number_in(hears(1, "OK name=a *"), "fence");
	says(2, "LOCK b");
	hears(2, "OK name=b *");
	for (int i = 0; i < 250; i++)
		says(3, "@%d LOCK b wait=1m owner=%d", i, i);
	says(2, "UNLOCK b");
	hears(2, "OK *");
	hears(3, "@0 OK name=b *");
	before = cluster.node[0].count[CALL_EXTEND];
	one_shares();
	passes(MSEC);
	says(2, "LOCK a mode=shared");
	fence_grows(hears(2, SHARED));
	ck_assert_uint_eq(cluster.node[0].count[CALL_EXTEND], before + 1);
}

TEST(a_store_that_granted_after_the_decision_gives_a_token_as_well)
{
	one_holds(3, "exclusive");
	feels(0, MOOD_SILENT);
	one_shares();
	passes(100 * MSEC);
	says(2, "LOCK a mode=shared");
	fence_grows(hears(2, SHARED));
}

/* The key ended early there, and was put back: another value may have been granted the token between. */
TEST(a_store_that_puts_the_key_back_gives_no_token_with_that_answer)
{
	one_holds(3, "exclusive");
	feels(0, MOOD_SILENT);
	memory_remove(cluster.node[1].memory, SPAN("a"));
	says(2, "LOCK a mode=shared wait=1m");
	one_shares();
	passes(SEC);
	hears_nothing(2);
	passes(4 * SEC);
	fence_grows(hears(2, SHARED));
}

/* The renewal whose connection broke may be carried out late, and set the key behind another value. */
TEST(a_store_with_a_renewal_under_way_on_a_broken_connection_gives_no_token)
{
	one_holds(3, "exclusive");
	says(2, "LOCK a mode=shared wait=1m");
	feels(0, MOOD_SILENT);
	feels(1, MOOD_SILENT);
	says(1, "@e EXTEND a");
	breaks(1);
	feels(1, MOOD_WELL);
	one_shares();
	passes(300 * MSEC);
	hears_nothing(2);
	passes(9 * SEC);
	fence_grows(hears(2, SHARED));
}

/* Another name has raised the fence there: nothing tells whether it was this one. */
TEST(a_store_whose_fence_is_beyond_the_floor_gives_no_token)
{
	two_daemons(1);
	passes(SEC);
	says(1, "LOCK a");
	fence = number_in(hears(1, EXCLUSIVE), "fence");
	says(3, "LOCK a mode=shared wait=1m");
	all_feel(MOOD_SILENT);
	one_shares();
	passes(0);
	for (unsigned i = 0; i < 200; i++)
		says(2, "@%u LOCK b%u", i, i);
	serves_daemon(1, 0, 200);
	ck_assert_uint_eq(ignores(2), 200);
	all_feel(MOOD_WELL);
	passes(MSEC);
	hears_nothing(3);
	passes(8 * SEC);
	fence_grows(hears(3, SHARED));
}

/* The floor of a renewal that waited for room lies beyond the limit by then: the store would be lifted beyond it, or refuse the renewal. */
TEST(no_token_is_asked_for_once_the_clock_was_set_back)
{
	int64_t before;

	begins_with_window(1, 1);
	says(1, "LOCK a");
	fence = number_in(hears(1, "OK name=a *"), "fence");
	all_feel(MOOD_SILENT);
	says(2, "LOCK b");
	one_shares();
	passes(MSEC);
	cluster.node[0].clock_us -= 67 * SEC;
	before = memory_fence(cluster.node[0].memory);
	all_feel(MOOD_WELL);
	passes(10 * MSEC);
	ignores(2);
	ck_assert_int_le(memory_fence(cluster.node[0].memory), before + 1);
	passes(20 * SEC);
	says(1, "CHECK a");
	hears(1, "OK name=a *");
}

/* The stores joined long ago, so that tokens follow the clocks of the daemons. */
TEST(grants_of_other_daemons_do_not_delay_a_token)
{
	two_daemons(3);
	passes(70 * SEC);
	for (unsigned i = 0; i < 8; i++) {
		says(1, "LOCK a");
		fence_grows(hears(1, EXCLUSIVE));
		for (unsigned k = 0; k < 3; k++) {
			says(2, "LOCK b%u-%u", i, k);
			hears(2, "OK *");
			passes(20 * MSEC);
		}
		one_shares();
		passes(2 * MSEC);
		says(3, "LOCK a mode=shared");
		fence_grows(hears(3, SHARED));
		says(1, "UNLOCK a");
		says(3, "UNLOCK a");
		ck_assert_uint_eq(ignores(1) + ignores(3), 2);
	}
}

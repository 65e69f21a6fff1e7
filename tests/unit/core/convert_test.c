/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/convert.c, rebase.c: an owner that holds a lock asks for it in the other mode. */
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

START_TEST(a_reader_that_is_alone_becomes_a_writer_with_a_larger_fence)
{
	one_holds(3, "shared");
	says(1, "LOCK a");
	passes(MSEC);
	fence_grows(hears(1, EXCLUSIVE));
	says(2, "LOCK a mode=shared");
	hears(2, "BUSY name=a holder=* held_ms=* waiters=0 *");
	says(1, "UNLOCK a fence=%lld", (long long)fence);
	hears(1, "OK name=a count=0");
	ck_assert(!key_is_there(0, "a"));
}
END_TEST

START_TEST(a_writer_becomes_a_reader_with_a_larger_fence_and_others_join)
{
	one_holds(3, "exclusive");
	says(2, "LOCK a mode=shared wait=1m");
	says(1, "LOCK a mode=shared");
	passes(MSEC);
	fence_grows(hears(1, SHARED));
	fence_grows(hears(2, SHARED));
	says(3, "LOCK a mode=shared");
	hears(3, SHARED);
}
END_TEST

START_TEST(a_hold_is_converted_again_and_again)
{
	one_holds(3, "exclusive");
	for (unsigned i = 0; i < 100; i++) {
		says(1, "LOCK a mode=shared");
		passes(MSEC);
		fence_grows(hears(1, SHARED));
		says(1, "LOCK a");
		passes(MSEC);
		fence_grows(hears(1, EXCLUSIVE));
	}
	says(1, "UNLOCK a");
	says(2, "LOCK a");
	fence_grows(hears(2, GRANT));
}
END_TEST

START_TEST(a_conversion_keeps_the_count)
{
	one_holds(3, "shared");
	says(1, "LOCK a mode=shared");
	hears(1, "OK *count=2 mode=shared");
	says(1, "LOCK a");
	passes(MSEC);
	hears(1, "OK *count=2");
	says(1, "CHECK a");
	hears(1, "OK name=a fence=* valid_ms=* count=2");
	says(1, "UNLOCK a");
	hears(1, "OK name=a count=1");
	says(1, "UNLOCK a");
	hears(1, "OK name=a count=0");
}
END_TEST

START_TEST(an_upgrade_waits_until_its_owner_is_alone_and_nobody_joins_meanwhile)
{
	one_holds(3, "shared");
	says(2, "LOCK a mode=shared");
	hears(2, SHARED);
	says(3, "LOCK a wait=1m");
	says(1, "LOCK a");
	hears(1, "BUSY *");
	says(1, "@u LOCK a wait=1m");
	says(4, "LOCK a mode=shared");
	hears(4, "BUSY *");
	hears_nothing(1);
	says(2, "UNLOCK a");
	passes(MSEC);
	fence_grows(hears(1, "@u " EXCLUSIVE));
	hears_nothing(3);
	says(1, "UNLOCK a");
	hears(3, GRANT);
}
END_TEST

START_TEST(the_second_of_two_upgraders_is_told_of_the_deadlock_and_keeps_its_hold)
{
	one_holds(3, "shared");
	says(2, "LOCK a mode=shared");
	hears(2, SHARED);
	says(1, "@u LOCK a wait=1m");
	says(2, "LOCK a wait=1m");
	ck_assert_str_eq(hears(2, "ERR DEADLOCK *"), "ERR DEADLOCK cycle=a<-a");
	says(2, "LOCK a");
	hears(2, "BUSY *");
	says(2, "CHECK a");
	hears(2, "OK *mode=shared");
	says(2, "UNLOCK a");
	passes(MSEC);
	hears(1, "@u " EXCLUSIVE);
}
END_TEST

START_TEST(an_upgrade_that_gives_up_leaves_the_hold_and_lets_readers_in)
{
	one_holds(3, "shared");
	says(2, "LOCK a mode=shared");
	hears(2, SHARED);
	says(1, "LOCK a wait=1s");
	says(3, "LOCK a mode=shared wait=1m");
	hears_nothing(3);
	passes(SEC);
	hears(1, "TIMEOUT *");
	hears(3, SHARED);
	says(1, "CHECK a");
	ck_assert_int_eq(number_in(hears(1, "OK *mode=shared"), "fence"), fence);
}
END_TEST

START_TEST(unlock_while_an_upgrade_waits_ends_both)
{
	one_holds(3, "shared");
	says(2, "LOCK a mode=shared");
	hears(2, SHARED);
	says(1, "@u LOCK a wait=1m");
	says(1, "@x UNLOCK a");
	hears(1, "@x OK name=a count=0");
	hears(1, "@u ERR CANCELLED *");
	says(1, "CHECK a");
	hears(1, "ERR NOTHELD *");
	says(2, "LOCK a");
	passes(MSEC);
	hears(2, EXCLUSIVE);
}
END_TEST

/* The reader that is gone may still read. */
START_TEST(an_upgrade_waits_for_the_belief_of_a_reader_that_went_unsurely)
{
	cluster_begin(3);
	passes(SEC);
	session_opens_from_afar(1, 0);
	says(1, "LOCK a mode=shared");
	hears(1, SHARED);
	says(2, "LOCK a mode=shared");
	hears(2, SHARED);
	goes(1, GONE_RESET);
	says(2, "LOCK a");
	hears(2, "BUSY *");
	says(2, "LOCK a wait=1m");
	passes(9 * SEC);
	hears_nothing(2);
	passes(6 * SEC);
	hears(2, EXCLUSIVE);
}
END_TEST

START_TEST(an_upgrader_whose_lease_is_lost_waits_on_as_any_writer)
{
	one_holds(3, "shared");
	says(2, "LOCK a mode=shared");
	hears(2, SHARED);
	says(1, "@u LOCK a wait=1m");
	all_feel(MOOD_SILENT);
	passes(11 * SEC);
	hears(1, "! RISK *");
	hears(1, "! LOST *");
	all_feel(MOOD_WELL);
	passes(10 * SEC);
	hears(1, "@u " EXCLUSIVE);
}
END_TEST

START_TEST(an_upgrader_whose_lease_is_lost_stands_behind_those_that_asked_before)
{
	one_holds(3, "shared");
	says(2, "LOCK a mode=shared");
	hears(2, SHARED);
	says(3, "LOCK a wait=1m");
	passes(MSEC);
	says(1, "@u LOCK a wait=1m");
	all_feel(MOOD_SILENT);
	passes(11 * SEC);
	ignores(1);
	all_feel(MOOD_WELL);
	passes(10 * SEC);
	hears(3, EXCLUSIVE);
	hears_nothing(1);
	says(3, "UNLOCK a");
	passes(SEC);
	hears(1, "@u " EXCLUSIVE);
}
END_TEST

/* --- tokens --- */

/* Another run of the daemon may have adopted the lease: the stores say whether it stands. */
START_TEST(each_conversion_asks_the_stores_for_a_token)
{
	unsigned extends;

	one_holds(3, "exclusive");
	extends = asked(CALL_EXTEND);
	says(1, "LOCK a mode=shared");
	passes(MSEC);
	fence_grows(hears(1, SHARED));
	ck_assert_uint_ge(asked(CALL_EXTEND), extends + 3);
	extends = asked(CALL_EXTEND);
	says(1, "LOCK a");
	passes(MSEC);
	fence_grows(hears(1, EXCLUSIVE));
	ck_assert_uint_eq(asked(CALL_EXTEND), extends + 3);
}
END_TEST

START_TEST(a_store_that_granted_after_the_decision_gives_a_token_as_well)
{
	one_holds(3, "exclusive");
	feels(0, MOOD_SILENT);
	says(1, "LOCK a mode=shared");
	passes(100 * MSEC);
	fence_grows(hears(1, SHARED));
}
END_TEST

START_TEST(without_a_quorum_a_conversion_changes_nothing)
{
	one_holds(3, "exclusive");
	feels(0, MOOD_SILENT);
	feels(1, MOOD_SILENT);
	says(1, "LOCK a mode=shared");
	passes(SEC);
	hears(1, "! RISK *");
	hears(1, "ERR QUORUM *");
	says(1, "CHECK a");
	ck_assert_int_eq(number_in(hears(1, "OK name=a fence=* valid_ms=* count=1"), "fence"), fence);
}
END_TEST

/* The key ended early there, and was put back: another value may have been granted the token between. */
START_TEST(a_store_that_puts_the_key_back_gives_no_token_with_that_answer)
{
	one_holds(3, "exclusive");
	feels(0, MOOD_SILENT);
	memory_remove(cluster.node[1].memory, SPAN("a"));
	says(1, "@c LOCK a mode=shared wait=1m");
	passes(SEC);
	hears_nothing(1);
	passes(4 * SEC);
	hears(1, "@c " SHARED);
}
END_TEST

/* The renewal whose connection broke may be carried out late, and set the key behind another value. */
START_TEST(a_store_with_a_renewal_under_way_on_a_broken_connection_gives_no_token)
{
	one_holds(3, "exclusive");
	feels(0, MOOD_SILENT);
	feels(1, MOOD_SILENT);
	says(1, "@e EXTEND a");
	breaks(1);
	feels(1, MOOD_WELL);
	says(1, "@c LOCK a mode=shared wait=1m");
	passes(300 * MSEC);
	ignores(1);
	says(1, "CHECK a");
	hears(1, "OK name=a fence=* valid_ms=* count=1");
	passes(9 * SEC);
	ignores(1);
	says(1, "CHECK a");
	hears(1, "OK name=a fence=* valid_ms=* count=1 mode=shared");
}
END_TEST

/* Another name has raised the fence there: nothing tells whether it was this one. */
START_TEST(a_store_whose_fence_is_beyond_the_floor_gives_no_token)
{
	two_daemons(1);
	passes(SEC);
	says(1, "LOCK a");
	fence = number_in(hears(1, EXCLUSIVE), "fence");
	all_feel(MOOD_SILENT);
	says(1, "@c LOCK a mode=shared wait=1m");
	passes(0);
	for (unsigned i = 0; i < 200; i++)
		says(2, "@%u LOCK b%u", i, i);
	serves_daemon(1, 0, 200);
	ck_assert_uint_eq(ignores(2), 200);
	all_feel(MOOD_WELL);
	passes(MSEC);
	hears_nothing(1);
	passes(8 * SEC);
	fence_grows(hears(1, "@c " SHARED));
}
END_TEST

/* The floor of a renewal that waited for room lies beyond the limit by then: the store would be lifted beyond it, or refuse the renewal. */
START_TEST(a_conversion_asks_for_no_token_once_the_clock_was_set_back)
{
	int64_t before;

	begins_with_window(1, 1);
	says(1, "LOCK a");
	fence = number_in(hears(1, "OK name=a *"), "fence");
	all_feel(MOOD_SILENT);
	says(2, "LOCK b");
	says(1, "@c LOCK a mode=shared wait=1m");
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
END_TEST

/* The stores joined long ago, so that tokens follow the clocks of the daemons. */
START_TEST(grants_of_other_daemons_do_not_delay_a_conversion)
{
	static const char *const mode[] = {"shared", "exclusive"};

	two_daemons(3);
	passes(70 * SEC);
	says(1, "LOCK a");
	hears(1, EXCLUSIVE);
	for (unsigned i = 0; i < 8; i++) {
		for (unsigned k = 0; k < 3; k++) {
			says(2, "LOCK b%u-%u", i, k);
			hears(2, "OK *");
			passes(20 * MSEC);
		}
		says(1, "LOCK a mode=%s", mode[i % 2]);
		passes(2 * MSEC);
		hears(1, i % 2 == 0 ? SHARED : EXCLUSIVE);
	}
}
END_TEST

Suite *convert_suite(void)
{
	Suite *s = suite_create("convert");
	TCase *c = tcase_create("convert");

	tcase_add_checked_fixture(c, NULL, cluster_close);
	tcase_add_test(c, a_reader_that_is_alone_becomes_a_writer_with_a_larger_fence);
	tcase_add_test(c, a_writer_becomes_a_reader_with_a_larger_fence_and_others_join);
	tcase_add_test(c, a_hold_is_converted_again_and_again);
	tcase_add_test(c, a_conversion_keeps_the_count);
	tcase_add_test(c, an_upgrade_waits_until_its_owner_is_alone_and_nobody_joins_meanwhile);
	tcase_add_test(c, the_second_of_two_upgraders_is_told_of_the_deadlock_and_keeps_its_hold);
	tcase_add_test(c, an_upgrade_that_gives_up_leaves_the_hold_and_lets_readers_in);
	tcase_add_test(c, unlock_while_an_upgrade_waits_ends_both);
	tcase_add_test(c, an_upgrade_waits_for_the_belief_of_a_reader_that_went_unsurely);
	tcase_add_test(c, an_upgrader_whose_lease_is_lost_waits_on_as_any_writer);
	tcase_add_test(c, an_upgrader_whose_lease_is_lost_stands_behind_those_that_asked_before);
	tcase_add_test(c, each_conversion_asks_the_stores_for_a_token);
	tcase_add_test(c, a_store_that_granted_after_the_decision_gives_a_token_as_well);
	tcase_add_test(c, without_a_quorum_a_conversion_changes_nothing);
	tcase_add_test(c, a_store_that_puts_the_key_back_gives_no_token_with_that_answer);
	tcase_add_test(c, a_store_with_a_renewal_under_way_on_a_broken_connection_gives_no_token);
	tcase_add_test(c, a_store_whose_fence_is_beyond_the_floor_gives_no_token);
	tcase_add_test(c, a_conversion_asks_for_no_token_once_the_clock_was_set_back);
	tcase_add_test(c, grants_of_other_daemons_do_not_delay_a_conversion);
	suite_add_tcase(s, c);
	return s;
}

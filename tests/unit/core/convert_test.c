/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/convert.c, rebase.c, enter.c: an owner that holds a lock asks for it in the other mode. */
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

TEST(a_writer_becomes_a_reader_with_a_larger_fence_and_others_join)
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

TEST(a_conversion_keeps_the_count)
{
	one_holds(3, "exclusive");
	says(1, "LOCK a");
	hears(1, "OK *count=2");
	says(1, "LOCK a mode=shared");
	passes(MSEC);
	hears(1, "OK *count=2 mode=shared");
	says(1, "CHECK a");
	hears(1, "OK name=a fence=* valid_ms=* count=2 mode=shared");
	says(1, "UNLOCK a");
	hears(1, "OK name=a count=1");
	says(1, "UNLOCK a");
	hears(1, "OK name=a count=0");
}

/* The second comes while the first waits for its token: the first converts the hold, the second counts. */
TEST(conversions_that_are_asked_for_together_are_answered_together)
{
	one_holds(3, "exclusive");
	says(2, "LOCK a wait=1m");
	all_feel(MOOD_SILENT);
	says(1, "@1 LOCK a mode=shared");
	says(1, "@2 LOCK a mode=shared wait=1m");
	says(1, "@3 LOCK a mode=shared wait=1m priority=9");
	passes(MSEC);
	all_feel(MOOD_WELL);
	passes(MSEC);
	fence_grows(hears(1, "@1 " SHARED));
	hears(1, "@2 OK *count=2 mode=shared");
	hears(1, "@3 OK *count=3 mode=shared");
	hears_nothing(2);
}

TEST(when_the_first_conversion_is_withdrawn_the_next_one_converts)
{
	one_holds(3, "exclusive");
	all_feel(MOOD_SILENT);
	says(1, "@1 LOCK a mode=shared wait=1m");
	says(1, "@2 LOCK a mode=shared wait=1m");
	says(1, "CANCEL @1");
	hears(1, "OK");
	hears(1, "@1 ERR CANCELLED *");
	all_feel(MOOD_WELL);
	passes(SEC);
	fence_grows(hears(1, "@2 " SHARED));
}

TEST(unlock_while_a_conversion_waits_ends_both)
{
	one_holds(3, "exclusive");
	all_feel(MOOD_SILENT);
	says(1, "@1 LOCK a mode=shared wait=1m");
	says(1, "@2 LOCK a mode=shared wait=1m");
	says(1, "@x UNLOCK a");
	hears(1, "@x OK name=a count=0");
	hears(1, "@1 ERR CANCELLED *");
	hears(1, "@2 ERR CANCELLED *");
	says(1, "CHECK a");
	hears(1, "ERR NOTHELD *");
}

TEST(a_conversion_whose_lease_is_lost_waits_in_its_place_as_any_reader)
{
	one_holds(3, "exclusive");
	says(2, "LOCK a wait=1m");
	all_feel(MOOD_SILENT);
	says(1, "@c LOCK a mode=shared wait=1m");
	says(3, "LOCK a wait=1m");
	passes(11 * SEC);
	ignores(1);
	all_feel(MOOD_WELL);
	passes(10 * SEC);
	hears(2, EXCLUSIVE);
	says(2, "UNLOCK a");
	passes(SEC);
	fence_grows(hears(1, "@c " SHARED));
	hears_nothing(3);
}

/* --- tokens --- */

/* Another run of the daemon may have adopted the lease: the stores say whether it stands. */
TEST(a_conversion_asks_the_stores_for_a_token)
{
	unsigned extends;

	one_holds(3, "exclusive");
	extends = asked(CALL_EXTEND);
	says(1, "LOCK a mode=shared");
	passes(MSEC);
	fence_grows(hears(1, SHARED));
	ck_assert_uint_ge(asked(CALL_EXTEND), extends + 3);
}

/* Another name was granted with tokens for hand-overs: the fence of the store is beyond the last token that anybody was given. */
TEST(a_conversion_is_not_missed_for_tokens_that_this_daemon_has_in_store)
{
	unsigned before;

	cluster_begin(1);
	passes(SEC);
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	says(2, "LOCK b");
	hears(2, "OK name=b *");
	for (int i = 0; i < 250; i++)
		says(3, "@%d LOCK b wait=1m owner=%d", i, i);
	says(2, "UNLOCK b");
	hears(2, "OK *");
	hears(3, "@0 OK name=b *");
	before = cluster.node[0].count[CALL_EXTEND];
	says(1, "LOCK a mode=shared");
	passes(MSEC);
	hears(1, "OK name=a *");
	ck_assert_uint_eq(cluster.node[0].count[CALL_EXTEND], before + 2); /* the second shares it */
}

TEST(a_store_that_granted_after_the_decision_gives_a_token_as_well)
{
	one_holds(3, "exclusive");
	feels(0, MOOD_SILENT);
	says(1, "LOCK a mode=shared");
	passes(100 * MSEC);
	fence_grows(hears(1, SHARED));
}

TEST(without_a_quorum_a_conversion_changes_nothing)
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

/* The key ended early there, and was put back: another value may have been granted the token between. */
TEST(a_store_that_puts_the_key_back_gives_no_token_with_that_answer)
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

/* The renewal whose connection broke may be carried out late, and set the key behind another value. */
TEST(a_store_with_a_renewal_under_way_on_a_broken_connection_gives_no_token)
{
	const char *line;

	one_holds(3, "exclusive");
	feels(0, MOOD_SILENT);
	feels(1, MOOD_SILENT);
	says(1, "@e EXTEND a");
	breaks(1);
	feels(1, MOOD_WELL);
	says(1, "@c LOCK a mode=shared wait=1m");
	passes(300 * MSEC);
	while ((line = next_line(1)))
		ck_assert(strncmp(line, "@c ", 3) != 0);
	passes(9 * SEC);
	ignores(1);
	says(1, "CHECK a");
	hears(1, "OK name=a fence=* valid_ms=* count=1 mode=shared");
}

/* Another name has raised the fence there: nothing tells whether it was this one. */
TEST(a_store_whose_fence_is_beyond_the_floor_gives_no_token)
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

/* The floor of a renewal that waited for room lies beyond the limit by then: the store would be lifted beyond it, or refuse the renewal. */
TEST(a_conversion_asks_for_no_token_once_the_clock_was_set_back)
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

/* The stores joined long ago, so that tokens follow the clocks of the daemons. */
TEST(grants_of_other_daemons_do_not_delay_a_conversion)
{
	two_daemons(3);
	passes(70 * SEC);
	for (unsigned i = 0; i < 8; i++) {
		says(1, "LOCK a");
		hears(1, EXCLUSIVE);
		for (unsigned k = 0; k < 3; k++) {
			says(2, "LOCK b%u-%u", i, k);
			hears(2, "OK *");
			passes(20 * MSEC);
		}
		says(1, "LOCK a mode=shared");
		passes(2 * MSEC);
		hears(1, SHARED);
		says(1, "UNLOCK a");
		hears(1, "OK name=a count=0");
	}
}

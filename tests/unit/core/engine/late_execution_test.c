/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/core/engine/release.c: a store may carry out a call late, after its connection broke and after the release that came over the next one. The key must
 * not stay.
 */
#include "tests/fixture/full_window.h"
#include "tests/fixture/held_lock.h"
#include "tests/fixture/resumable.h"

#include <check.h>
#include <string.h>

#define LONGEST_US (32 * SEC) /* a quarantine */
#define IN_TIME_US (10 * MSEC) /* of the 50 ms that a command may take */
#define SOON_US    (200 * MSEC)
#define LATE_US    (2900 * MSEC) /* of a lease of 3 s */
#define BY_THEN_US (4300 * MSEC) /* it is over, and the key would have ended had the renewal come in time */

static void is_left_nowhere(void)
{
	passes(SOON_US);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_msg(!key_is_there(i, "a"), "the key is left at store %u", i);
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
}

static void held_while_one_hangs(void)
{
	cluster_begin(3);
	feels(2, MOOD_SILENT);
	says(1, "LOCK a");
	hears(1, "OK name=a *");
}

static void is_released(void)
{
	says(1, "UNLOCK a");
	hears(1, "OK name=a count=0");
}

/* What store 2 was asked over the connection that broke sets the key there, and the key does not stay. */
static void arrives_in_vain(void)
{
	passes(IN_TIME_US);
	arrives(2);
	ck_assert(key_is_there(2, "a"));
	is_left_nowhere();
}

FIXTURE(.teardown = cluster_close)

TEST(an_acquire_that_arrives_after_its_release_leaves_no_key)
{
	held_while_one_hangs();
	breaks(2);
	is_released();
	arrives_in_vain();
}

/* The store has carried the release out before, and says so only when no call of the earlier connection can come any more. */
TEST(an_acquire_that_arrives_before_its_release_is_heard_leaves_no_key)
{
	held_while_one_hangs();
	breaks(2);
	feels(2, MOOD_TARDY);
	is_released();
	passes(IN_TIME_US);
	arrives(2);
	passes(SOON_US);
	ck_assert(key_is_there(2, "a"));
	feels(2, MOOD_WELL);
	is_left_nowhere();
}

TEST(an_acquire_of_a_round_that_was_not_won_leaves_no_key_when_it_arrives)
{
	cluster_begin(3);
	key_is_overwritten(0, "a", "other", 5 * SEC);
	key_is_overwritten(1, "a", "other", 5 * SEC);
	feels(2, MOOD_SILENT);
	says(1, "LOCK a");
	hears(1, "BUSY *");
	breaks(2);
	passes(IN_TIME_US);
	serves_overtaken(2, 1); /* the release that was behind it went with the connection */
	ck_assert(key_is_there(2, "a"));
	passes(SOON_US);
	ck_assert(!key_is_there(2, "a"));
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
}

TEST(a_renewal_that_arrives_after_the_release_leaves_no_key)
{
	held_after_lock(3, "LOCK a");
	feels(2, MOOD_SILENT);
	says(1, "EXTEND a");
	hears(1, "OK name=a *");
	breaks(2);
	is_released();
	ck_assert(!key_is_there(2, "a"));
	arrives_in_vain();
}

/* Meanwhile a renewal has found the key of another there. */
TEST(an_acquire_that_arrives_where_a_renewal_was_refused_leaves_no_key)
{
	held_while_one_hangs();
	key_is_overwritten(2, "a", "other", IN_TIME_US / 2);
	breaks(2);
	says(1, "EXTEND a");
	hears(1, "OK name=a *");
	is_released();
	arrives_in_vain();
}

TEST(an_acquire_that_arrives_after_its_key_was_kept_leaves_it_for_no_longer)
{
	held_while_one_hangs();
	breaks(2);
	says(1, "UNLOCK a keep=400ms");
	hears(1, "OK name=a count=0");
	passes(IN_TIME_US);
	arrives(2);
	passes(SOON_US);
	ck_assert_int_le(key_ttl_us(2, "a"), 400 * MSEC);
	passes(400 * MSEC);
	for (unsigned i = 0; i < 3; i++)
		ck_assert(!key_is_there(i, "a"));
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
}

LOOP_TEST(an_acquire_that_arrives_after_its_lock_delay_leaves_no_key, 2)
{
	begins_with_delay(3, SEC);
	passes(2 * SEC);
	says(1, "LOCK a%s", _i ? " delay=5ms" : "");
	hears(1, "OK name=a *");
	feels(2, MOOD_SILENT);
	says(1, "EXTEND a");
	hears(1, "OK name=a *");
	breaks(2);
	if (_i) {
		goes(1, GONE_HANGUP);
	} else {
		says(1, "UNLOCK a keep=5ms");
		hears(1, "OK name=a count=0");
	}
	arrives_in_vain();
}

/* The store was too busy for the release, and got it over the next connection. */
TEST(an_acquire_that_arrives_after_a_release_that_was_put_off_leaves_no_key)
{
	begins_with_window(3, 4);
	feels(2, MOOD_SILENT);
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	is_full(2, 2);
	is_released();
	breaks(2);
	arrives_in_vain();
	ignores(2);
}

/* --- a store that hangs: a renewal reaches it just before the key would end, and the release behind it never does --- */

static void is_renewed_late(void)
{
	struct answer answer;
	struct call late;

	held_after_lock(3, "LOCK a ttl=3s");
	feels(2, MOOD_SILENT);
	says(1, "EXTEND a");
	hears(1, "OK name=a *");
	late = late_call(2, CALL_EXTEND);
	is_released();
	passes(LATE_US);
	memory_call(cluster.node[2].memory, &late, cluster.now, &answer);
	ck_assert_int_eq(answer.code, 'E');
}

static void returns(unsigned node)
{
	feels(node, MOOD_WELL);
	ck_assert(key_is_there(node, "a"));
	comes(node);
}

TEST(a_renewal_that_hung_leaves_no_key_at_a_store_that_is_away_at_its_end)
{
	is_renewed_late();
	falls(2);
	passes(BY_THEN_US - LATE_US);
	returns(2);
	is_left_nowhere();
}

TEST(a_renewal_that_hung_leaves_no_key_at_a_store_that_hangs_at_its_end)
{
	is_renewed_late();
	passes(BY_THEN_US - LATE_US);
	falls(2);
	returns(2);
	is_left_nowhere();
}

TEST(a_store_that_never_comes_back_is_given_up)
{
	is_renewed_late();
	falls(2);
	passes(BY_THEN_US - LATE_US);
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 1);
	passes(4 * SEC);
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
}

/* --- joins: a late join may find a store that has lost its locks since, and would hide that --- */

TEST(a_join_of_a_first_start_that_arrives_after_a_flush_joins_nothing)
{
	cluster_open(3);
	feels(2, MOOD_SILENT);
	daemon_starts(0);
	serves(2, 1);
	ck_assert_uint_eq(asked(CALL_MARK), 3);
	breaks(2);
	passes(LONGEST_US);
	ck_assert_str_eq(store_state(0, 2), "joined");
	is_flushed(2);
	arrives(2);
	ck_assert_str_eq(marker_of(2), "");
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 2), "quarantine: its marker is gone: it was flushed, or lost its data");
}

TEST(a_join_of_a_first_start_that_was_repeated_since_joins_nothing)
{
	cluster_open(1);
	feels(0, MOOD_SILENT);
	daemon_starts(0);
	serves(0, 1);
	ck_assert_uint_eq(asked(CALL_MARK), 1);
	breaks(0);
	ck_assert_str_eq(store_state(0, 0), "joined");
	passes(SOON_US);
	is_flushed(0);
	arrives(0);
	ck_assert_str_eq(marker_of(0), "");
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "quarantine: it carries no marker: new, restarted blank, or flushed");
}

TEST(a_join_that_arrives_where_a_quarantine_was_put_back_joins_nothing)
{
	char quarantine[MARKER_MAX + 1];

	cluster_begin(3);
	restarts_blank(2);
	strcpy(quarantine, marker_of(2));
	ck_assert_int_eq(quarantine[0], 'q');
	passes(LONGEST_US - 2 * SEC);
	feels(2, MOOD_SILENT);
	for (unsigned joins = cluster.node[2].count[CALL_MARK]; cluster.node[2].count[CALL_MARK] == joins;) {
		serves(2, waiting_at(2)); /* probes */
		passes(10 * MSEC);
	}
	breaks(2);
	ck_assert_str_eq(store_state(0, 2), "joined");
	passes(SOON_US);
	marker_is_set(2, quarantine);
	arrives(2);
	ck_assert_str_eq(marker_of(2), quarantine);
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 2), "quarantine: its marker was set back");
}

/* It puts back the key under the value that the adoption has replaced. */
TEST(a_call_of_a_previous_run_leaves_no_key_when_it_arrives_after_the_release)
{
	struct answer answer;
	struct secret s1;
	struct call late;

	cluster_begin(3);
	s1 = says_hello(1, "grace=30s");
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	says(1, "EXTEND a");
	hears(1, "OK name=a *");
	late = late_call(2, CALL_EXTEND);
	daemon_returns(0);
	resumes(2, &s1);
	hears(2, "\\* name=a *");
	hears(2, "OK session=* n=1");
	says(2, "UNLOCK a");
	hears(2, "OK name=a count=0");
	passes(10 * MSEC);
	memory_call(cluster.node[2].memory, &late, cluster.now, &answer);
	ck_assert_int_eq(answer.code, 'A');
	passes(200 * MSEC);
	ck_assert(!key_is_there(2, "a"));
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
}

/* The store had neither value when it was asked for both. The calls of the previous run come after that, and the release comes when no more of them can. */
TEST(a_call_of_a_previous_run_leaves_no_key_when_it_arrives_after_the_adoption)
{
	struct answer answer;
	struct secret s1;
	struct call late;

	cluster_begin(3);
	s1 = says_hello(1, "grace=30s");
	feels(2, MOOD_SILENT);
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	late = late_call(2, CALL_ACQUIRE);
	daemon_ends(0);
	feels(2, MOOD_WELL);
	ck_assert_uint_eq(daemon_inherits(0, 0), 0);
	passes(10 * MSEC);
	memory_call(cluster.node[2].memory, &late, cluster.now, &answer);
	ck_assert_int_eq(answer.code, 'G');
	passes(500 * MSEC);
	resumes(2, &s1);
	hears(2, "\\* name=a *");
	hears(2, "OK session=* n=1");
	says(2, "UNLOCK a");
	hears(2, "OK name=a count=0");
	passes(200 * MSEC);
	ck_assert(!key_is_there(2, "a"));
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
}

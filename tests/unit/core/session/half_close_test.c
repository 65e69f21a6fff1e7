/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/core/session/session.c, after_step.c: a session whose client has half-closed. Rounds under way are finished and answered, waits are cancelled, then
 * the session ends.
 */
#include "tests/fixture/held_lock.h"
#include "tests/fixture/resumable.h"

#include <check.h>

FIXTURE(.teardown = cluster_close)

TEST(requests_before_the_end_of_input_are_answered_in_order)
{
	cluster_begin(3);
	all_feel(MOOD_SILENT);
	says(1, "LOCK a");
	says(1, "CHECK a");
	says(1, "UNLOCK a");
	half_closes(1);
	hears_nothing(1);
	ck_assert(!hung_up(1));
	all_feel(MOOD_WELL);
	hears(1, GRANT);
	hears(1, "OK name=a fence=* valid_ms=* count=1");
	hears(1, "OK name=a count=0");
	ck_assert(hung_up(1));
}

TEST(a_tagged_round_under_way_at_the_end_of_input_is_finished_and_then_the_session_ends)
{
	cluster_begin(3);
	all_feel(MOOD_SILENT);
	says(1, "@x LOCK a wait=1m");
	half_closes(1);
	ck_assert(!hung_up(1));
	all_feel(MOOD_WELL);
	hears(1, "@x " GRANT);
	ck_assert(hung_up(1));
	says(2, "LOCK a");
	hears(2, GRANT);
}

TEST(a_tagged_extend_under_way_at_the_end_of_input_is_finished_and_then_the_session_ends)
{
	held_and_waited_for();
	all_feel(MOOD_SILENT);
	says(1, "@x EXTEND a");
	half_closes(1);
	all_feel(MOOD_WELL);
	hears(1, "@x OK name=a fence=* valid_ms=*");
	ck_assert(hung_up(1));
	hears(2, GRANT);
}

TEST(a_waiter_is_cancelled_at_the_end_of_input)
{
	held_and_waited_for();
	says(2, "@y LOCK b wait=1m");
	hears(2, "@y OK name=b *");
	half_closes(2);
	hears(2, "ERR CANCELLED *");
	ck_assert(hung_up(2));
	says(3, "LOCK b");
	hears(3, "OK name=b *");
}

TEST(a_lock_without_wait_behind_the_round_of_another_hears_BUSY_at_the_end_of_input)
{
	cluster_begin(3);
	all_feel(MOOD_SILENT);
	says(1, "LOCK a");
	says(2, "LOCK a");
	half_closes(2);
	all_feel(MOOD_WELL);
	hears(1, GRANT);
	hears(2, "BUSY name=a *");
	ck_assert(hung_up(2));
}

TEST(a_wait_that_comes_after_the_end_of_input_was_read_does_not_wait)
{
	held_and_waited_for();
	all_feel(MOOD_SILENT);
	says(3, "LOCK b");
	says(3, "LOCK a wait=1m");
	says(3, "PING");
	half_closes(3);
	all_feel(MOOD_WELL);
	hears(3, "OK name=b *");
	hears(3, "ERR CANCELLED *");
	hears(3, "OK");
	ck_assert(hung_up(3));
}

TEST(a_half_closed_session_without_a_quorum_hears_of_it_and_ends)
{
	cluster_begin(3);
	falls(0);
	falls(1);
	says(1, "LOCK a wait=1m");
	half_closes(1);
	hears(1, "ERR *");
	ck_assert(hung_up(1));
}

TEST(after_the_end_of_its_input_no_heartbeat_is_expected_of_a_session)
{
	cluster_begin(1);
	feels(0, MOOD_SILENT);
	says(1, "LOCK a");
	says(1, "HELLO 1 heartbeat=10ms");
	says(1, "LOCK b");
	half_closes(1);
	serves(0, 1);
	hears(1, GRANT);
	hears(1, "OK proto=1 *");
	passes(20 * MSEC);
	feels(0, MOOD_WELL);
	hears(1, "OK name=b *");
	ck_assert(hung_up(1));
}

TEST(a_hang_up_after_a_half_close_ends_it_all_the_same)
{
	cluster_begin(3);
	all_feel(MOOD_SILENT);
	says(1, "LOCK a");
	half_closes(1);
	goes(1, GONE_HANGUP);
	all_feel(MOOD_WELL);
	says(2, "LOCK a");
	hears(2, GRANT);
}

/* --- the end of input is known, and lines before it are not read yet --- */

TEST(a_half_closed_session_waits_for_no_holder_and_is_read_to_the_end)
{
	held_and_waited_for();
	says(3, "LOCK b");
	hears(3, "OK name=b *");
	says(3, "LOCK a wait=forever");
	for (unsigned i = 0; i < 256; i++)
		says(3, "PING");
	ck_assert(!is_read(3));
	parts(3);
	hears(3, "ERR CANCELLED *");
	passes(0); /* a step serves so many lines */
	ck_assert(is_read(3));
	ck_assert_uint_eq(ignores(3), 256);
	says(3, "LOCK a wait=forever");
	hears(3, "ERR CANCELLED *");
	says(3, "CHECK b");
	hears(3, "OK name=b *");
	ck_assert(!hung_up(3));
	half_closes(3);
	ck_assert(hung_up(3));
	says(4, "LOCK b");
	hears(4, "OK name=b *");
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(2, GRANT);
}

TEST(a_round_under_way_is_finished_for_a_half_closed_session)
{
	cluster_begin(3);
	all_feel(MOOD_SILENT);
	says(1, "LOCK a wait=forever");
	says(1, "HELLO 1 heartbeat=1s");
	parts(1);
	hears_nothing(1);
	all_feel(MOOD_WELL);
	hears(1, GRANT);
	hears(1, "OK proto=1 *");
	passes(5 * SEC);
	says(1, "CHECK a");
	hears(1, "OK name=a *");
	half_closes(1);
	ck_assert(hung_up(1));
}

/* Its end of input is not read, because the lines before it wait. The daemon hangs up after its last answer. */
TEST(a_half_closed_session_behind_a_wait_ends_when_its_last_tagged_request_is_answered)
{
	struct secret s;

	held_and_waited_for();
	s = says_hello(3, "grace=1m");
	says(3, "LOCK b");
	hears(3, "OK name=b *");
	all_feel(MOOD_SILENT);
	says(3, "@x EXTEND b");
	says(3, "LOCK a wait=forever");
	says(3, "PING");
	parts(3);
	ck_assert(!hung_up(3));
	all_feel(MOOD_WELL);
	hears(3, "@x OK name=b *");
	passes(SEC);
	ck_assert(hung_up(3));
	resumes(4, &s);
	hears(4, "\\* name=b *");
	hears(4, "OK session=* n=1");
}

/* A command may take 10 s at the memory store; nobody waits that long for a round that may be under way. */
TEST(a_half_closed_session_with_grace_that_waits_is_hung_up_on_after_a_moment)
{
	cluster_open(1);
	cluster.conf.timeout_us = 10 * SEC;
	cluster.conf.soon_us = 50 * MSEC;
	daemon_starts(0);
	passes(2 * SEC);
	says(1, "LOCK a");
	hears(1, GRANT);
	says_hello(2, "grace=1m");
	says(2, "LOCK a wait=1m");
	half_closes(2);
	passes(40 * MSEC);
	ck_assert(!hung_up(2));
	passes(20 * MSEC);
	ck_assert(hung_up(2));
}

LOOP_TEST(a_reset_from_afar_behind_the_end_of_input_frees_at_once_a_broken_path_does_not, 2)
{
	cluster_begin(3);
	session_opens_from_afar(1, 0);
	says(1, "LOCK a");
	hears(1, GRANT);
	says(2, "LOCK a wait=1m");
	parts(1);
	goes(1, _i ? GONE_KEEPALIVE : GONE_RESET);
	if (_i) {
		hears_nothing(2);
		passes(10 * SEC);
	}
	hears(2, GRANT);
}

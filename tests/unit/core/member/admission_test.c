/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/member/admission.c, move.c: admission: who may ask the stores next, when there is more to ask than they can answer. */
#include "tests/fixture/full_window.h"
#include "tests/fixture/resumable.h"

#include <check.h>

static unsigned grants(unsigned k)
{
	const char *line;
	unsigned n = 0;

	while ((line = next_line(k)))
		n += strstr(line, " OK name=") != NULL;
	return n;
}

FIXTURE(.teardown = cluster_close)

TEST(a_crowd_that_asks_is_served_a_window_at_a_time)
{
	begins_with_window(3, 4);
	all_feel(MOOD_SILENT);
	says_of_many(1, "LOCK", "wait=0");
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(waiting_at(i), 4);
	for (unsigned i = 0; i < 3; i++)
		serves(i, 1);
	ck_assert_uint_eq(grants(1), 1);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(waiting_at(i), 4);
	all_feel(MOOD_WELL);
	ck_assert_uint_eq(grants(1), MANY - 1);
	ck_assert_int_eq(figure(0, METRIC_LOCKS_HELD), MANY);
	ck_assert_int_eq(figure(0, METRIC_ROUNDS_FAILED), 0);
	ck_assert_int_ge(figure(0, METRIC_QUEUED), MANY - 4);
}

TEST(a_slow_store_is_left_out_when_it_is_full_and_delays_nobody)
{
	begins_with_window(3, 4);
	feels(2, MOOD_SILENT);
	says_of_many(1, "LOCK", "wait=0");
	ck_assert_uint_eq(grants(1), MANY);
	ck_assert_uint_eq(waiting_at(2), 2 * 4);
	/* Those that were granted without it get its vote by their renewals. */
	feels(2, MOOD_WELL);
	passes(3300 * MSEC);
	feels(2, MOOD_SILENT);
	passes(40 * MSEC);
	ck_assert_uint_le(waiting_at(2), 2 * 4 + 1); /* and a probe */
	feels(2, MOOD_WELL);
	passes(4 * SEC);
	ck_assert(key_is_there(2, "many-1-0"));
	ck_assert(key_is_there(2, "many-1-39"));
	ck_assert_int_eq(figure(0, METRIC_RISKS), 0);
}

TEST(leases_are_kept_before_locks_are_released_and_those_before_others_are_asked_for)
{
	begins_with_window(1, 1);
	says(1, "LOCK kept");
	ignores(1);
	says(2, "LOCK freed");
	ignores(2);
	passes(3333 * MSEC);
	feels(0, MOOD_SILENT);
	says(3, "LOCK first");
	says(4, "LOCK asked");
	says(2, "UNLOCK freed");
	hears(2, "OK name=freed count=0");
	passes(MSEC); /* kept is due */
	ck_assert_uint_eq(waiting_at(0), 1);
	serves(0, 1);
	hears(3, "OK name=first *");
	ck_assert_str_eq(cluster.node[0].last[CALL_EXTEND].name, "kept");
	ck_assert(key_is_there(0, "freed"));
	serves(0, 1);
	ck_assert_str_eq(cluster.node[0].last[CALL_RELEASE].name, "freed");
	hears_nothing(4);
	serves(0, 1);
	ck_assert_str_eq(cluster.node[0].last[CALL_ACQUIRE].name, "asked");
	feels(0, MOOD_WELL);
	hears(4, "OK name=asked *");
	hears_nothing(1);
}

TEST(a_name_is_released_before_it_is_asked_for_again)
{
	begins_with_window(3, 1);
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	all_feel(MOOD_SILENT);
	says(2, "LOCK b");
	says(1, "UNLOCK a");
	hears(1, "OK name=a count=0");
	says(1, "LOCK a wait=0");
	all_feel(MOOD_WELL);
	hears(2, "OK name=b *");
	hears(1, "OK name=a *");
}

/* Sessions that held much end: who asks for something else is not delayed by all of it. */
TEST(those_who_ask_for_other_names_are_admitted_among_releases)
{
	begins_with_window(1, 1);
	holds_many(1);
	feels(0, MOOD_SILENT);
	goes(1, GONE_HANGUP);
	says(2, "LOCK asked");
	says(3, "LOCK asked-too");
	turns_pass(4);
	hears(2, "OK name=asked *");
	turns_pass(3);
	hears(3, "OK name=asked-too *");
	ck_assert_int_gt(figure(0, METRIC_OUTSTANDING_RELEASES), MANY - 6);
	feels(0, MOOD_WELL);
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
}

TEST(releases_are_admitted_among_those_who_ask)
{
	begins_with_window(1, 1);
	says(1, "LOCK freed");
	hears(1, "OK name=freed *");
	feels(0, MOOD_SILENT);
	says_of_many(2, "LOCK", "");
	says(1, "UNLOCK freed");
	hears(1, "OK name=freed count=0");
	turns_pass(3);
	ck_assert(!key_is_there(0, "freed"));
	ck_assert_uint_le(grants(2), 3);
	feels(0, MOOD_WELL);
	ck_assert_uint_ge(grants(2), MANY - 3);
}

/* Else the stores would refuse it for the sake of a value that nobody has any more. */
TEST(a_name_whose_release_waits_is_asked_for_behind_that)
{
	begins_with_window(1, 1);
	holds_many(1);
	feels(0, MOOD_SILENT);
	goes(1, GONE_HANGUP);
	says(2, "LOCK many-1-%u", 0u);
	says(3, "LOCK many-1-%u", MANY - 1);
	serves(0, waiting_at(0));
	feels(0, MOOD_WELL);
	hears(2, "OK name=many-1-0 *");
	hears(3, "OK name=many-1-39 *");
	ck_assert_uint_eq(asked(CALL_ACQUIRE), MANY + 2);
}

TEST(requests_that_wait_for_admission_are_answered_in_time_while_no_store_answers)
{
	begins_with_window(3, 2);
	says(1, "LOCK held");
	says(2, "LOCK held-too");
	says(3, "LOCK held-as-well");
	for (unsigned k = 1; k <= 3; k++)
		ignores(k);
	passes(3300 * MSEC);
	all_feel(MOOD_SILENT);
	says(4, "LOCK x");
	says(5, "LOCK y");
	says(6, "LOCK z");
	passes(40 * MSEC); /* the renewals are due, and none is admitted */
	hears_nothing(1);
	passes(110 * MSEC);
	for (unsigned k = 1; k <= 2; k++)
		hears(k, "! RISK *");
	hears(3, "! RISK *");
	for (unsigned k = 4; k <= 6; k++)
		hears(k, "ERR QUORUM *");
	all_feel(MOOD_WELL);
	for (unsigned k = 1; k <= 3; k++)
		hears(k, "! SAFE *");
	passes(SEC);
	ck_assert_int_eq(figure(0, METRIC_LOCKS_HELD), 3);
}

/* The store answered once after a silence. The calls that were under way have expired, and no round is left whose time could end. */
TEST(a_silent_store_with_a_full_window_is_noticed_although_no_round_is_under_way)
{
	begins_with_window(1, 1);
	passes(400 * MSEC); /* no probe is due soon */
	feels(0, MOOD_SILENT);
	says(1, "LOCK a wait=60s");
	says(2, "LOCK b wait=60s");
	passes(60 * MSEC);
	ck_assert_uint_eq(waiting_at(0), 2); /* the question and its undoing: it is full */
	serves(0, 1);
	says(3, "LOCK c");
	passes(10 * MSEC);
	hears_nothing(3);
	passes(200 * MSEC);
	hears(3, "ERR QUORUM *");
	feels(0, MOOD_WELL);
	passes(SEC);
	hears(1, "OK name=a *");
	hears(2, "OK name=b *");
}

TEST(a_request_that_waits_for_admission_may_be_cancelled)
{
	begins_with_window(1, 1);
	feels(0, MOOD_SILENT);
	says(1, "LOCK first");
	says(2, "@1 LOCK a wait=20ms");
	says(3, "@1 LOCK b wait=60s");
	says(4, "LOCK c");
	says(3, "@2 CANCEL @1");
	ignores(3);
	goes(4, GONE_HANGUP);
	passes(30 * MSEC);
	hears(2, "@1 ERR QUORUM 1 of 1 stores can be used, but are too busy: the request was not sent to them in time; wait longer, or send fewer at a time");
	feels(0, MOOD_WELL);
	hears(1, "OK name=first *");
	passes(SEC);
	ck_assert_uint_eq(asked(CALL_ACQUIRE), 1);
	ck_assert_int_eq(figure(0, METRIC_LOCKS_HELD), 1);
}

/* The store answers, one call in 40 ms, and a crowd of waiters came first. One of them waits for the same name. */
TEST(a_lock_without_wait_hears_within_a_second_that_the_stores_are_busy)
{
	begins_with_window(1, 1);
	feels(0, MOOD_SILENT);
	says_of_many(1, "LOCK", "wait=60s");
	says(2, "LOCK a");
	says(3, "LOCK b wait=60s");
	says(5, "LOCK b");
	for (unsigned i = 0; i < 24; i++) {
		passes(40 * MSEC);
		serves(0, 1);
	}
	hears_nothing(2);
	hears_nothing(5);
	says(4, "LOCK c");
	for (unsigned i = 0; i < 2; i++) {
		passes(40 * MSEC);
		serves(0, 1);
	}
	hears(2, "ERR QUORUM 1 of 1 stores can be used, but are too busy: *");
	hears(5, "ERR QUORUM 1 of 1 stores can be used, but are too busy: *");
	hears_nothing(3);
	hears_nothing(4);
	feels(0, MOOD_WELL);
	hears(3, "OK name=b *");
	hears(4, "OK name=c *");
	ignores(1);
}

TEST(a_wake_up_does_not_admit_a_name_that_waits_for_admission)
{
	int64_t timers;

	begins_with_window(3, 1);
	all_feel(MOOD_SILENT);
	says(1, "LOCK first");
	says(2, "LOCK a wait=60s");
	timers = figure(0, METRIC_TIMERS);
	is_woken(0, 0, "a");
	ck_assert_int_eq(figure(0, METRIC_TIMERS), timers);
	all_feel(MOOD_WELL);
	hears(1, "OK name=first *");
	hears(2, "OK name=a *");
}

TEST(new_requests_have_every_other_turn_until_half_of_a_lease_is_over)
{
	begins_with_a_crowd_that_is_due();
	says(4, "LOCK a");
	turns_pass(3);
	hears(4, "OK name=a *");
	turns_pass(42);
	says(5, "LOCK b wait=60s");
	turns_pass(40);
	hears_nothing(5);
	turns_pass(50);
	hears(5, "OK name=b *");
	feels(0, MOOD_WELL);
	ck_assert_int_eq(figure(0, METRIC_RENEWALS_MISSED), 0);
	ck_assert_int_eq(figure(0, METRIC_LOSSES), 0);
}

/* The key expires before its release is admitted. */
TEST(a_release_that_waits_for_admission_ends_when_its_key_expires)
{
	begins_with_a_crowd_that_is_due();
	turns_pass(36);
	says(4, "LOCK a ttl=1s");
	turns_pass(4);
	hears(4, "OK name=a *");
	goes(4, GONE_HANGUP);
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 1);
	turns_pass(55);
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
	feels(0, MOOD_WELL);
	passes(SEC);
	ck_assert_uint_eq(asked(CALL_RELEASE), 0);
	ck_assert_int_eq(figure(0, METRIC_LOCKS_HELD), 3 * MANY);
}

/* Both stores are late by less than a renewal may wait. */
TEST(a_moments_stop_of_the_stores_is_waited_out)
{
	begins_with_window(3, 1);
	for (unsigned k = 1; k <= 3; k++) {
		says(k, "LOCK held-%u", k);
		ignores(k);
	}
	passes(3330 * MSEC);
	feels(1, MOOD_SILENT);
	feels(2, MOOD_SILENT);
	passes(10 * MSEC); /* all are due, and one is admitted */
	passes(70 * MSEC);
	for (unsigned i = 1; i <= 2; i++)
		feels(i, MOOD_WELL);
	passes(MSEC);
	ck_assert_int_eq(figure(0, METRIC_RISKS), 1);
	ck_assert_int_eq(figure(0, METRIC_RENEWALS), 2); /* and the one at risk, late */
	for (unsigned k = 1; k <= 3; k++)
		ignores(k);
}

/* No renewal is tried without a quorum. When the quorum is back, all of them start. */
TEST(an_outage_costs_each_lease_one_missed_renewal)
{
	begins_with_window(3, 4);
	says_of_many(1, "LOCK", "");
	ck_assert_uint_eq(grants(1), MANY);
	passes(3 * SEC);
	falls(1);
	falls(2);
	passes(4 * SEC);
	ck_assert_int_eq(figure(0, METRIC_RENEWALS_MISSED), MANY);
	comes(1);
	passes(SEC);
	ck_assert_int_eq(figure(0, METRIC_RENEWALS_MISSED), MANY);
	ck_assert_int_eq(figure(0, METRIC_RENEWALS), MANY);
	ck_assert_int_eq(figure(0, METRIC_LOCKS_HELD), MANY);
	ignores(1);
}

TEST(a_held_lock_that_waits_for_its_renewal_may_be_freed_or_handed_on)
{
	begins_with_window(1, 1);
	says(1, "LOCK a");
	says(2, "LOCK b");
	says(3, "LOCK b wait=60s");
	for (unsigned k = 1; k <= 2; k++)
		hears(k, "OK *");
	passes(3300 * MSEC);
	feels(0, MOOD_SILENT);
	says(4, "LOCK x");
	passes(40 * MSEC);
	says(2, "UNLOCK b");
	hears(2, "OK *");
	says(1, "UNLOCK a");
	hears(1, "OK *");
	feels(0, MOOD_WELL);
	passes(SEC);
	hears(3, "OK name=b *");
	hears(4, "OK name=x *");
	ck_assert(!key_is_there(0, "a"));
	passes(20 * SEC);
	hears_nothing(3);
	ck_assert_int_eq(figure(0, METRIC_LOCKS_HELD), 2);
}

TEST(many_are_adopted_a_window_at_a_time)
{
	struct secret s;

	begins_with_window(3, 4);
	s = says_hello(1, "grace=30s");
	says_of_many(1, "LOCK", "");
	ck_assert_uint_eq(grants(1), MANY);
	daemon_returns(0);
	passes(100 * MSEC);
	resumes(2, &s);
	for (unsigned i = 0; i < MANY; i++)
		hears(2, "\\* name=many-1-* count=1");
	ck_assert_int_eq(figure(0, METRIC_ADOPTIONS), MANY);
	ck_assert_int_ge(figure(0, METRIC_QUEUED), MANY - 4);
	ignores(2);
}

TEST(of_many_renewals_that_are_due_at_once_the_stores_are_asked_a_part_at_a_time)
{
	begins_with_window(3, 4);
	for (unsigned k = 1; k <= 3; k++) {
		says_of_many(k, "LOCK", "");
		ck_assert_uint_eq(grants(k), MANY);
	}
	for (unsigned round = 1; round <= 2; round++) {
		passes(3332 * MSEC);
		all_feel(MOOD_SILENT);
		passes(3 * MSEC);
		ck_assert_uint_ge(waiting_at(0), 4);
		ck_assert_uint_le(waiting_at(0), 4 + 1); /* and a probe */
		if (round == 2)
			goes(3, GONE_HANGUP); /* one of those that wait for admission may end meanwhile */
		all_feel(MOOD_WELL);
	}
	ck_assert_int_eq(figure(0, METRIC_RENEWALS), 5 * MANY);
	ck_assert_int_eq(figure(0, METRIC_RISKS), 0);
	passes(SEC);
	ck_assert_int_eq(figure(0, METRIC_LOCKS_HELD), 2 * MANY);
}

/* One store, which answers a call at a time. MANY names of one peer came first. */
TEST(a_peer_that_asks_for_much_delays_another_by_no_more_than_a_round_for_each_of_its_own)
{
	static const struct peer other = {.is_unix = true, .is_local = true, .uid = 33, .pid = 7, .address = "unix"};

	begins_with_window(1, 1);
	session_opens_from(30, 0, &other);
	feels(0, MOOD_SILENT);
	says_of_many(1, "LOCK", "");
	says_of_many(2, "LOCK", "");
	says(30, "@1 LOCK few-1");
	says(30, "@2 LOCK few-2");
	for (unsigned i = 0; i < 6; i++)
		serves(0, 1);
	hears(30, "@1 OK name=few-1 *");
	hears(30, "@2 OK name=few-2 *");
	ck_assert_uint_eq(grants(1) + grants(2), 4);
	feels(0, MOOD_WELL);
	ck_assert_uint_eq(grants(1) + grants(2), 2 * MANY - 4);
}

/* What a peer asked for while others did not wait does not count against it later. */
TEST(a_peer_that_asked_for_much_has_its_turn_again_once_nobody_waits)
{
	static const struct peer other = {.is_unix = true, .is_local = true, .uid = 33, .pid = 7, .address = "unix"};

	begins_with_window(1, 1);
	session_opens_from(30, 0, &other);
	feels(0, MOOD_SILENT);
	says_of_many(1, "LOCK", "");
	feels(0, MOOD_WELL);
	ck_assert_uint_eq(grants(1), MANY);
	feels(0, MOOD_SILENT);
	for (unsigned i = 0; i < 9; i++)
		says(30, "@%u LOCK other-%u", i, i);
	says(2, "LOCK late");
	for (unsigned i = 0; i < 3; i++)
		serves(0, 1);
	hears(2, "OK name=late *");
	ck_assert_uint_eq(grants(30), 2);
	feels(0, MOOD_WELL);
}

/* Likewise what was withdrawn before its turn, or was not admitted in time. */
TEST(what_a_peer_has_withdrawn_does_not_count_against_it)
{
	static const struct peer other = {.is_unix = true, .is_local = true, .uid = 33, .pid = 7, .address = "unix"};

	begins_with_window(1, 1);
	session_opens_from(30, 0, &other);
	feels(0, MOOD_SILENT);
	says_of_many(1, "LOCK", "");
	for (unsigned i = 0; i < 9; i++)
		says(30, "@%u LOCK other-%u", i, i);
	for (unsigned i = 0; i < 9; i++) {
		says(30, "CANCEL @%u", i);
		hears(30, "OK*");
		hears(30, "@? ERR CANCELLED *");
	}
	says(30, "LOCK late");
	for (unsigned i = 0; i < 3; i++)
		serves(0, 1);
	hears(30, "OK name=late *");
	feels(0, MOOD_WELL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/member/member.c: what a daemon has seen of its stores counts in the process that goes on in a restart. */
#include "daemon/core/member/membership.h"
#include "tests/fixture/cluster_part.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define SEEN_US (1100 * MSEC) /* each store is asked meanwhile */

static char old_marker[MARKER_MAX];

static void one_store_with_a_lock(void)
{
	cluster_begin(1);
	says(1, "LOCK a");
	hears(1, GRANT);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	passes(SEEN_US);
}

static void fence_falls(void)
{
	cluster.node[0].fence_lost = SEC;
}

static void fence_falls_in_another_run(void)
{
	fence_falls();
	strcpy(cluster.node[0].run_id, "another-run");
}

static void marker_is_set_back(void)
{
	marker_is_set(0, old_marker);
}

static void clock_jumps(void)
{
	cluster.node[0].clock_us += 20 * SEC;
}

static void store_evicts(void)
{
	cluster.node[0].probe.evicted++;
}

static void store_is_flushed(void)
{
	marker_is_set(0, "");
}

FIXTURE(.teardown = cluster_close)

TEST(a_store_that_nothing_has_happened_to_is_joined_at_once)
{
	one_store_with_a_lock();
	store_evicts();
	passes(60 * SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
	daemon_hands_over(0, NULL);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

TEST(a_fence_that_falls_during_a_restart_is_found)
{
	one_store_with_a_lock();
	daemon_hands_over(0, fence_falls);
	ck_assert_str_eq(store_state(0, 0), "quarantine: its fence fell back");
}

TEST(of_another_run_the_marker_tells)
{
	one_store_with_a_lock();
	daemon_hands_over(0, fence_falls_in_another_run);
	ck_assert_str_eq(store_state(0, 0), "quarantine: it was restarted, replaced or taken over");
}

TEST(a_quarantine_goes_on)
{
	cluster_open(1);
	cluster.conf.trust_first_start = false;
	daemon_starts(0);
	passes(QUARANTINE_US - 2 * SEC);
	daemon_hands_over(0, NULL);
	ck_assert_str_eq(store_state(0, 0), "quarantine: it carries no marker: new, restarted blank, or flushed");
	passes(2 * SEC - MSEC);
	ck_assert_int_eq(marker_of(0)[0], 'q');
	passes(SEEN_US);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

static void saved_before_a_quarantine(void)
{
	one_store_with_a_lock();
	snprintf(old_marker, sizeof(old_marker), "%s", marker_of(0));
	store_evicts();
	passes(QUARANTINE_US + 4 * SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

TEST(a_marker_that_is_set_back_during_a_restart_is_found)
{
	saved_before_a_quarantine();
	daemon_hands_over(0, marker_is_set_back);
	ck_assert_str_eq(store_state(0, 0), "quarantine: its marker was set back");
}

TEST(a_clock_that_jumps_during_a_restart_is_found)
{
	cluster_begin(3);
	passes(SEEN_US);
	daemon_hands_over(0, clock_jumps);
	passes(SEEN_US);
	ck_assert_str_eq(store_state(0, 0), "quarantine: its clock jumped ahead: keys may have expired early");
	ck_assert_str_eq(store_state(0, 1), "joined");
	ck_assert_str_eq(store_state(0, 2), "joined");
}

TEST(keys_that_are_evicted_during_a_restart_are_found)
{
	one_store_with_a_lock();
	daemon_hands_over(0, store_evicts);
	ck_assert_str_eq(store_state(0, 0), "quarantine: it evicted keys");
}

TEST(a_store_that_is_flushed_during_a_restart_is_not_trusted)
{
	one_store_with_a_lock();
	daemon_hands_over(0, store_is_flushed);
	ck_assert_str_eq(store_state(0, 0), "quarantine: it carries no marker: new, restarted blank, or flushed");
}

/* A daemon of another configuration has seen nothing: its quarantines last for other times, and its markers are others. */
TEST(what_was_seen_under_another_configuration_does_not_count)
{
	cluster_open(1);
	cluster.conf.trust_first_start = false;
	daemon_starts(0);
	passes(QUARANTINE_US - 2 * SEC);
	cluster.conf.generation++;
	daemon_hands_over(0, NULL);
	passes(3 * SEC);
	ck_assert_int_eq(marker_of(0)[0], 'q');
	passes(QUARANTINE_US);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

/* --- all that is known of a store --- */

static struct core core;
static struct members members[2];

static void members_begin(void)
{
	memset(members, 0, sizeof(members));
	core.conf = cluster.conf;
	for (unsigned i = 0; i < 2; i++)
		members_init(&members[i], &core);
}

static void goes_on(struct journal_record *r)
{
	char bytes[JOURNAL_RECORD_MAX];
	struct span written = {bytes, journal_encode(r, bytes)};

	ck_assert_int_eq(journal_decode(written, r), 0);
	ck_assert(r->kind == JOURNAL_STORES ? members_restore(&members[1], r) : member_restore(&members[1], r));
}

static void all_goes_on(void)
{
	struct journal_record r = members_record(&members[0]), of[MEMBER_RECORDS_MOST];
	unsigned n = member_records(&members[0], 0, of);

	goes_on(&r);
	for (unsigned i = 0; i < n; i++)
		goes_on(&of[i]);
}

TEST(each_sign_that_a_store_has_shown_is_handed_over)
{
	struct member *was = &members[0].node[0], *is = &members[1].node[0];

	cluster_open(3);
	members_begin();
	members[0].other_us = 70 * SEC;
	members[0].other_until.us = 90 * SEC;
	members[0].fence_most = 12345;
	members[0].trusting = false;
	strcpy(was->run_id, "run");
	strcpy(was->marker_text[0], "q|1");
	was->fence_seen = 12;
	was->fence_joined = 11;
	was->issued_us = -10;
	was->evicted = 9;
	was->was_ours = was->met.done = true;
	was->clock = (struct member_clock){.known = true, .low = -5, .high = 6, .at = {7}};
	strcpy(was->vouched.marker, "j|1");
	was->vouched.at.us = 8;
	was->vouched.clock_us = -9;
	strcpy(was->replaced.j, "j|0");
	strcpy(was->replaced.q, "q|0");
	was->evidence.why = EVIDENCE_TOO_SOON;
	strcpy(was->evidence.marker, "j|2");
	strcpy(was->quarantine.marker, "q|1");
	strcpy(was->quarantine.why, "why");
	was->quarantine.since.us = 30;
	was->quarantine.end.us = 40;
	was->quarantine.first.us = 20;
	was->quarantine.losses = 3;
	was->quarantine.cause = DEFECT_EVICTS;
	all_goes_on();
	ck_assert_int_eq(members[1].other_us, 70 * SEC);
	ck_assert_int_eq(members[1].other_until.us, 90 * SEC);
	ck_assert_int_eq(members[1].fence_most, 12345);
	ck_assert(!members[1].trusting);
	ck_assert_str_eq(is->run_id, "run");
	ck_assert_str_eq(is->marker, "q|1");
	ck_assert_int_eq(is->fence_seen, 12);
	ck_assert_int_eq(is->fence_joined, 11);
	ck_assert_int_eq(is->issued_us, -10);
	ck_assert_int_eq(is->evicted, 9);
	ck_assert(is->was_ours && is->met.done && is->clock.known);
	ck_assert_int_eq(is->clock.low, -5);
	ck_assert_int_eq(is->clock.high, 6);
	ck_assert_int_eq(is->clock.at.us, 7);
	ck_assert_int_eq(members[1].node[2].beside[0].high, 6);
	ck_assert_str_eq(is->vouched.marker, "j|1");
	ck_assert_int_eq(is->vouched.at.us, 8);
	ck_assert_int_eq(is->vouched.clock_us, -9);
	ck_assert_str_eq(is->replaced.j, "j|0");
	ck_assert_str_eq(is->replaced.q, "q|0");
	ck_assert_int_eq(is->evidence.why, EVIDENCE_TOO_SOON);
	ck_assert_str_eq(is->evidence.marker, "j|2");
	ck_assert_str_eq(is->quarantine.marker, "q|1");
	ck_assert_str_eq(is->quarantine.why, "why");
	ck_assert_int_eq(is->quarantine.since.us, 30);
	ck_assert_int_eq(is->quarantine.end.us, 40);
	ck_assert_int_eq(is->quarantine.first.us, 20);
	ck_assert_uint_eq(is->quarantine.losses, 3);
	ck_assert_int_eq(is->quarantine.cause, DEFECT_EVICTS);
}

TEST(a_jump_that_is_not_judged_yet_is_found_again)
{
	struct member *was = &members[0].node[0];

	cluster_open(3);
	members_begin();
	strcpy(was->run_id, "run");
	was->clock = (struct member_clock){.known = true, .low = 20 * SEC, .high = 21 * SEC, .at = {7}};
	was->jump.open = true;
	was->jump.before = (struct clock_bounds){1, -5, 6, {3}};
	all_goes_on();
	ck_assert_int_eq(members[1].node[0].clock.high, 6);
}

TEST(records_beyond_their_bounds_are_refused)
{
	struct journal_record r = {.kind = JOURNAL_STORE, .value = SPAN("0123456789012345678901234567890123456789012345678901234567890")};

	cluster_open(1);
	members_begin();
	r.name = span_of(core.conf.label[0]);
	ck_assert(!member_restore(&members[1], &r));
	r.value = SPAN("run");
	r.low_us = 2;
	r.high_us = 1;
	ck_assert(!member_restore(&members[1], &r));
	r.name = SPAN("a store of somebody else");
	ck_assert(member_restore(&members[1], &r));
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/resume/restore.c, adopt.c, resume.c: readers of a lock that come back, to the same run of the daemon or to the next one. */
#include "tests/fixture/cluster.h"
#include "tests/fixture/resumable.h"

#include <check.h>

#define READER     "OK name=a fence=* valid_ms=* ttl_ms=10000 count=1 mode=shared"
#define READER_ROW "\\* name=a fence=* valid_ms=* count=1 mode=shared"

static struct secret s1, s2;
static int64_t fence1, fence2;

/* Sessions 1 and 2 have grace, and read a. */
static void two_read(void)
{
	cluster_begin(3);
	passes(2 * SEC);
	s1 = says_hello(1, "grace=60s");
	s2 = says_hello(2, "grace=60s");
	says(1, "LOCK a mode=shared");
	fence1 = number_in(hears(1, READER), "fence");
	says(2, "LOCK a mode=shared");
	fence2 = number_in(hears(2, READER), "fence");
}

static void reader_is_back(unsigned k, const struct secret *s, int64_t fence)
{
	resumes(k, s);
	ck_assert_int_eq(number_in(hears(k, READER_ROW), "fence"), fence);
	hears(k, "OK session=* n=1");
}

FIXTURE(.teardown = cluster_close)

TEST(readers_of_one_lease_are_all_adopted)
{
	unsigned adoptions;

	two_read();
	daemon_returns(0);
	passes(2 * SEC);
	adoptions = (unsigned)figure(0, METRIC_ADOPTIONS);
	ck_assert_uint_eq(adoptions, 1);
	reader_is_back(3, &s1, fence1);
	reader_is_back(4, &s2, fence2);
	says(5, "LOCK a");
	hears(5, "BUSY *");
	says(5, "LOCK a mode=shared wait=1m");
	passes(5 * SEC);
	hears(5, READER);
}

/* 2 has no grace, and no record: when 1 has unlocked, 2 may still read. */
TEST(a_reader_without_grace_keeps_writers_out_behind_a_restart)
{
	cluster_begin(3);
	passes(2 * SEC);
	s1 = says_hello(1, "grace=60s");
	says(1, "LOCK a mode=shared");
	fence1 = number_in(hears(1, READER), "fence");
	says(2, "LOCK a mode=shared");
	hears(2, READER);
	daemon_returns(0);
	passes(2 * SEC);
	reader_is_back(3, &s1, fence1);
	says(3, "UNLOCK a");
	hears(3, "OK name=a count=0");
	says(4, "LOCK a wait=1m");
	passes(7 * SEC);
	hears_nothing(4);
	passes(4 * SEC);
	hears(4, GRANT);
}

TEST(the_record_of_a_reader_that_unlocked_is_not_adopted_and_the_other_is)
{
	two_read();
	says(1, "UNLOCK a");
	hears(1, "OK *");
	daemon_returns(0);
	passes(2 * SEC);
	is_resumed_with_nothing(3, &s1);
	reader_is_back(4, &s2, fence2);
	passes(11 * SEC);
	says(4, "UNLOCK a");
	hears(4, "OK *");
	says(5, "LOCK a");
	hears(5, GRANT);
}

TEST(a_run_that_ends_while_it_adopts_leaves_all_values_for_each_reader)
{
	two_read();
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_LOSSY);
	daemon_returns(0);
	passes(300 * MSEC);
	all_feel(MOOD_WELL);
	daemon_returns(0);
	passes(2 * SEC);
	reader_is_back(3, &s1, fence1);
	reader_is_back(4, &s2, fence2);
}

TEST(a_writer_after_readers_supersedes_their_records)
{
	two_read();
	says(1, "UNLOCK a");
	says(2, "UNLOCK a");
	ignores(1);
	ignores(2);
	says(2, "LOCK a");
	fence2 = number_in(hears(2, GRANT), "fence");
	daemon_returns(0);
	passes(2 * SEC);
	is_resumed_with_nothing(3, &s1);
	is_resumed_as(4, &s2, fence2);
}

TEST(a_downgraded_hold_is_adopted_in_its_mode)
{
	two_read();
	says(1, "UNLOCK a");
	hears(1, "OK *");
	says(2, "UNLOCK a");
	hears(2, "OK *");
	says(2, "LOCK a");
	fence2 = number_in(hears(2, GRANT), "fence");
	daemon_returns(0);
	passes(2 * SEC);
	is_resumed_as(4, &s2, fence2);
	says(5, "LOCK a mode=shared");
	hears(5, "BUSY *");
	says(4, "LOCK a mode=shared");
	ck_assert_int_eq(number_in(hears(4, READER), "fence"), fence2);
	daemon_returns(0);
	passes(2 * SEC);
	resumes(3, &s2);
	ck_assert_int_eq(number_in(hears(3, READER_ROW), "fence"), fence2);
	hears(3, "OK session=* n=1");
	passes(15 * SEC);
	says(5, "LOCK a mode=shared");
	ck_assert_int_gt(number_in(hears(5, READER), "fence"), fence2);
}

TEST(readers_that_do_not_come_back_leave_one_by_one)
{
	two_read();
	goes(1, GONE_HANGUP);
	passes(30 * SEC);
	goes(2, GONE_HANGUP);
	passes(31 * SEC);
	says(5, "LOCK a");
	hears(5, "BUSY *");
	reader_is_back(4, &s2, fence2);
	says(4, "UNLOCK a");
	says(5, "LOCK a");
	hears(5, GRANT);
}

TEST(a_waiting_reader_that_repeats_its_lock_in_the_other_mode_stands_at_the_end)
{
	cluster_begin(3);
	passes(2 * SEC);
	says(1, "LOCK a");
	hears(1, "OK *");
	s2 = says_hello(2, "grace=60s");
	says(2, "LOCK a wait=1m mode=shared");
	says(3, "LOCK a wait=1m");
	goes(2, GONE_HANGUP);
	is_resumed_with_nothing(4, &s2);
	says(4, "LOCK a wait=1m");
	says(1, "UNLOCK a");
	hears(3, GRANT);
	says(3, "UNLOCK a");
	hears(4, GRANT);
}

/* The record says that the hold is shared, with the fence that it had. */
TEST(a_reader_behind_a_downgrade_that_a_restart_cut_off_has_a_larger_fence)
{
	fence1 = held_with_grace(3, "grace=60s", "", &s1);
	all_feel(MOOD_SILENT);
	says(1, "LOCK a mode=shared");
	hears(1, READER);
	passes(MSEC);
	daemon_returns(0);
	all_feel(MOOD_WELL);
	passes(2 * SEC);
	reader_is_back(3, &s1, fence1);
	passes(20 * SEC);
	says(5, "LOCK a mode=shared");
	ck_assert_int_gt(number_in(hears(5, READER), "fence"), fence1);
}

static void lacks_the_watchdog(struct journal_record *r)
{
	r->renew &= ~JOURNAL_RENEWED;
}

static void has_a_lock_delay(struct journal_record *r)
{
	r->delay_us = SEC;
}

static void (*const terms[])(struct journal_record *) = {lacks_the_watchdog, has_a_lock_delay};

/* What earlier versions wrote behind the record of a reader with such terms. */
static void terms_follow(const struct secret *s)
{
	struct journal_record r = {.kind = JOURNAL_STAYS, .session = s->serial, .name = SPAN("a"), .ttl_us = SEC, .deadline_us = cluster.now.us + SEC};

	journal_ends_by(0, &r);
	r.kind = JOURNAL_KEPT;
	journal_ends_by(0, &r);
}

/* Earlier versions granted these. */
LOOP_TEST(a_reader_on_terms_of_its_own_keeps_its_lease_to_its_end, 2)
{
	cluster_begin(3);
	passes(2 * SEC);
	s1 = says_hello(1, "grace=60s");
	says(1, "LOCK b");
	hears(1, "OK *");
	says(1, "LOCK a mode=shared");
	hears(1, READER);
	journal_changes(0, 3, terms[_i]);
	terms_follow(&s1);
	daemon_returns(0);
	passes(100 * MSEC);
	resumes(3, &s1);
	hears(3, "\\* name=b *");
	hears(3, "OK session=* n=1");
	says(4, "LOCK a wait=1m");
	passes(9500 * MSEC);
	hears_nothing(4);
	passes(SEC);
	hears(4, GRANT);
}

/* It may believe, as a reader without a record may. Either record comes first. */
LOOP_TEST(a_reader_on_terms_of_its_own_keeps_writers_out_when_the_others_have_gone, 4)
{
	two_read();
	journal_changes(0, 3 + (unsigned)_i / 2, terms[_i % 2]);
	daemon_returns(0);
	passes(2 * SEC);
	is_resumed_with_nothing(3, _i < 2 ? &s1 : &s2);
	reader_is_back(4, _i < 2 ? &s2 : &s1, _i < 2 ? fence2 : fence1);
	says(4, "UNLOCK a");
	hears(4, "OK *");
	says(5, "LOCK a wait=1m");
	passes(7 * SEC);
	hears_nothing(5);
	passes(4 * SEC);
	hears(5, GRANT);
}

static void is_shared(struct journal_record *r)
{
	r->renew |= JOURNAL_SHARED;
}

TEST(a_hold_that_became_shared_on_terms_of_its_own_is_not_adopted_as_it_was_before)
{
	(void)held_with_grace(3, "grace=60s", "renew=no", &s1);
	says(1, "EXTEND a");
	hears(1, "OK *");
	journal_changes(0, journal_length(0) - 1, is_shared);
	daemon_returns(0);
	passes(SEC);
	is_resumed_with_nothing(3, &s1);
}

TEST(a_lease_that_cannot_be_adopted_is_lost_for_all_readers)
{
	two_read();
	for (unsigned i = 0; i < 3; i++)
		memory_remove(cluster.node[i].memory, SPAN("a"));
	daemon_returns(0);
	passes(2 * SEC);
	is_resumed_with_nothing(3, &s1);
	hears(3, "! LOST name=a fence=* reason=evicted");
	is_resumed_with_nothing(4, &s2);
	hears(4, "! LOST name=a fence=* reason=evicted");
}

/* What the LOCKALL has got is given back by a restart. It is the first of the readers here, and the other one stays. */
TEST(a_reader_beside_a_lockall_that_waits_keeps_its_lock_over_a_restart_in_place)
{
	two_daemons(3);
	says(2, "LOCK b");
	hears(2, "OK name=b *");
	says(1, "LOCKALL a b mode=shared wait=1m");
	hears_nothing(1);
	says(3, "LOCK a mode=shared");
	hears(3, READER);
	daemon_hands_over(0, NULL);
	passes(2 * SEC);
	says(2, "LOCK a");
	hears(2, "BUSY name=a *");
	says(3, "CHECK a");
	hears(3, "OK name=a *");
	says(3, "UNLOCK a");
	hears(3, "OK name=a *");
	says(2, "UNLOCK b");
	hears(2, "OK name=b *");
	passes(2 * SEC);
	hears(1, "\\* name=a *");
	hears(1, "\\* name=b *");
	hears(1, "OK n=2*");
}

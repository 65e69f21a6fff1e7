/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/resume/restore.c and records.c: the journal is told in time what the next run needs, no more and no less. */
#include "tests/fixture/resumable.h"

#include <check.h>
#include <errno.h>

static struct secret s1;

static void held_by_1(void)
{
	held_with_grace(3, "grace=30s name=w1", "", &s1);
}

FIXTURE(.teardown = cluster_close)

TEST(sessions_without_grace_leave_no_record)
{
	cluster_begin(1);
	says_hello(1, "name=x");
	says(1, "LOCK a");
	says(1, "LOCK a");
	says(1, "UNLOCK a");
	says(1, "QUIT");
	ignores(1);
	ck_assert_uint_eq(journal_length(0), 0);
}

TEST(a_released_lock_is_not_expected_after_a_restart)
{
	held_by_1();
	says(1, "UNLOCK a");
	hears(1, "OK *");
	ck_assert(journal_ends_with(0, JOURNAL_FREED, "a"));
	daemon_returns(0);
	is_resumed_with_nothing(2, &s1);
	hears_nothing(2);
}

LOOP_TEST(a_session_that_ended_is_not_there, 2)
{
	held_by_1();
	if (_i == 0) {
		says(1, "QUIT");
	} else {
		goes(1, GONE_HANGUP);
		passes(31 * SEC);
	}
	daemon_returns(0);
	resumes(2, &s1);
	hears(2, "ERR NOTFOUND *");
	says(2, "LOCK a");
	hears(2, GRANT);
}

TEST(a_stop_ends_no_session)
{
	struct event stop = {.kind = EVENT_STOP, .now = cluster.now};

	held_by_1();
	stop.now = cluster.now;
	stop.wall_us = CLUSTER_WALL_US + cluster.now.us;
	ck_assert_int_eq(service_step(cluster.daemon[0].service, &stop, &cluster.daemon[0].effects), 0);
	effects_reset(&cluster.daemon[0].effects);
	daemon_returns(0);
	resumes(2, &s1);
	hears(2, ROW_A);
}

LOOP_TEST(a_lease_that_was_handed_on_is_not_adopted_by_its_former_holder, 2)
{
	struct secret s2;

	cluster_begin(3);
	passes(2 * SEC);
	s1 = says_hello(1, "grace=30s");
	s2 = says_hello(2, _i ? "grace=30s" : "");
	/* Both wait behind 3, so that the lease has tokens for both. */
	says(3, "LOCK a");
	says(1, "LOCK a wait=1m");
	says(2, "LOCK a wait=1m");
	says(3, "UNLOCK a");
	hears(1, GRANT);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(2, GRANT);
	ck_assert_int_ge(figure(0, METRIC_HANDOFFS), 1);
	ignores(3);
	daemon_returns(0);
	is_resumed_with_nothing(4, &s1);
	hears_nothing(4);
	resumes(5, &s2);
	if (_i) {
		hears(5, ROW_A);
		hears(5, "OK session=* n=1");
	} else {
		hears(5, "ERR NOTFOUND *");
	}
}

TEST(while_the_journal_cannot_be_written_no_recorded_lease_is_handed_on)
{
	cluster_begin(3);
	passes(2 * SEC);
	s1 = says_hello(1, "grace=30s");
	says(3, "LOCK a");
	says(1, "LOCK a wait=1m");
	says(2, "LOCK a wait=1m");
	says(4, "LOCK a wait=1m");
	says(3, "UNLOCK a");
	ignores(3);
	hears(1, GRANT);
	ck_assert_int_eq(figure(0, METRIC_HANDOFFS), 0);
	journal_fails(0);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(2, GRANT);
	ck_assert_int_eq(figure(0, METRIC_HANDOFFS), 0);
	/* The lease of a value that no record names is handed on. */
	says(2, "UNLOCK a");
	hears(2, "OK *");
	hears(4, GRANT);
	ck_assert_int_eq(figure(0, METRIC_HANDOFFS), 1);
	journal_mends(0);
	daemon_returns(0);
	is_resumed_with_nothing(5, &s1);
}

TEST(a_journal_that_works_again_has_what_happened_meanwhile)
{
	held_by_1();
	journal_fails(0);
	says(1, "LOCK b");
	says(1, "UNLOCK a");
	ignores(1);
	journal_mends(0);
	daemon_returns(0);
	resumes(2, &s1);
	hears(2, "\\* name=b *");
	hears(2, "OK session=* n=1");
}

/* The snapshot still has the lock. The clock goes on before the service hears that records are written again. */
TEST(a_journal_that_works_again_hears_of_losses_at_once)
{
	held_by_1();
	journal_fails(0);
	cluster.now = instant_add(cluster.now, 40 * SEC);
	journal_mends(0);
	hears(1, "! LOST name=a *");
	ck_assert(journal_ends_with(0, JOURNAL_LOST, "a"));
}

TEST(a_snapshot_restores_what_the_records_restore)
{
	char row[2][8][REPLY_MAX];

	held_by_1();
	says(1, "LOCK a");
	says(1, "LOCK b owner=t1 note=\"ask ops\" delay=0");
	says(1, "LOCK c renew=no ttl=2s");
	says(1, "LOCK d");
	says(1, "UNLOCK d");
	ignores(1);
	passes(3 * SEC);
	goes(1, GONE_HANGUP);
	for (unsigned run = 0; run < 2; run++) {
		if (run)
			journal_is_compacted(0);
		daemon_returns(0);
		resumes(2 + run, &s1);
		for (unsigned i = 0; i < 4; i++)
			strcpy(row[run][i], next_line(2 + run));
		hears_nothing(2 + run);
		says(2 + run, "LIST sessions");
		hears(2 + run, "\\* * name=w1 *");
		ignores(2 + run);
		goes(2 + run, GONE_HANGUP);
	}
	for (unsigned run = 0; run < 2; run++) {
		unsigned a = strncmp(row[run][0], "* name=a", 8) == 0 ? 0 : 1;

		ck_assert_int_eq(number_in(row[run][a], "count"), 2);
		ck_assert_int_eq(number_in(row[run][a], "fence"), number_in(row[0][0], "fence"));
		ck_assert(strstr(row[run][1 - a], "owner=t1") != NULL);
		ck_assert(strstr(row[run][2], " n=2") != NULL);
		ck_assert(strncmp(row[run][3], "! LOST name=c", 13) == 0);
	}
}

TEST(a_loss_is_remembered_until_it_is_said)
{
	held_by_1();
	says(1, "LOCK c renew=no ttl=2s");
	ignores(1);
	passes(3 * SEC);
	hears(1, "! LOST name=c *");
	daemon_returns(0);
	resumes(2, &s1);
	hears(2, ROW_A);
	hears(2, "OK session=* n=1");
	hears(2, "! LOST name=c fence=* reason=expired");
	says(2, "UNLOCK c");
	hears(2, "ERR LOST *");
	daemon_returns(0);
	resumes(3, &s1);
	hears(3, ROW_A);
	hears(3, "OK session=* n=1");
	hears_nothing(3);
}

LOOP_TEST(a_grant_that_was_not_notified_is_a_row_in_the_next_run_and_no_loss, 2)
{
	cluster_begin(3);
	passes(2 * SEC);
	says(3, "LOCK a");
	s1 = says_hello(1, "grace=60s");
	says(1, "LOCK a wait=1m");
	goes(1, GONE_HANGUP);
	says(3, "UNLOCK a");
	ignores(3);
	if (_i == 0) {
		daemon_returns(0);
		resumes(2, &s1);
		hears(2, ROW_A);
	} else {
		daemon_ends(0);
		passes(12 * SEC);
		ck_assert_uint_eq(daemon_inherits(0, 0), 0);
		is_resumed_with_nothing(2, &s1);
		hears_nothing(2);
	}
}

TEST(numbers_of_sessions_are_not_given_twice)
{
	struct secret other;

	held_by_1();
	daemon_returns(0);
	other = says_hello(2, "grace=5s");
	ck_assert_int_gt(other.serial, s1.serial);
}

TEST(the_grace_counts_from_the_restart_and_is_at_least_a_lease)
{
	cluster_begin(1);
	s1 = says_hello(1, "grace=1s");
	says(1, "LOCK a");
	ignores(1);
	daemon_returns(0);
	passes(9900 * MSEC);
	says(2, "LOCK a");
	hears(2, "BUSY *");
	says(2, "LOCK a wait=1m");
	passes(1 * SEC);
	hears(2, GRANT);
}

/* The next run may grant less grace than the run that promised it, or none. Its records are sound all the same, and the session is resumed once more. */
LOOP_TEST(a_grace_beyond_the_new_limit_is_cut_and_can_be_written_down, 2)
{
	held_by_1();
	cluster.conf.max_grace_us = _i == 0 ? 0 : 500 * MSEC;
	daemon_returns(0);
	journal_is_compacted(0);
	daemon_returns(0);
	resumes(2, &s1);
	hears(2, ROW_A);
	hears(2, "OK session=* n=1");
	journal_is_compacted(0);
	goes(2, GONE_HANGUP);
	passes(SEC);
	resumes(3, &s1);
	hears(3, "ERR NOTFOUND *");
}

/* Only a record can bring it so far within a test: a client needs hours. */
static void count_is_beyond_the_greatest(struct journal_record *r)
{
	r->count = 1073741825;
}

TEST(an_owner_holds_a_lock_so_often_and_no_more)
{
	held_by_1();
	journal_changes(0, 2, count_is_beyond_the_greatest);
	daemon_returns(0);
	resumes(2, &s1);
	hears(2, "\\* name=a fence=* valid_ms=* count=1073741825");
	hears(2, "OK session=* n=1");
	says(2, "LOCK a");
	hears(2, "ERR LIMIT an owner holds a lock at most 1073741824 times at once");
	says(2, "UNLOCK a");
	hears(2, "OK name=a count=1073741824");
	says(2, "UNLOCK a");
	hears(2, "OK name=a count=1073741823");
	says(2, "LOCK a");
	hears(2, "OK name=a * count=1073741824");
}

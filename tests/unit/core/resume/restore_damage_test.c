/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/resume/restore.c: journals that are damaged, that lack their end, or that come too late. */
#include "tests/fixture/cluster_part.h"
#include "tests/fixture/resumable.h"

#include <check.h>
#include <errno.h>

static struct secret s1;

static void held_by_1(void)
{
	held_with_grace(3, "grace=30s name=w1", "", &s1);
}

FIXTURE(.teardown = cluster_close)

LOOP_TEST(a_damaged_record_makes_the_whole_journal_worthless, 3)
{
	unsigned refused;

	held_by_1();
	says(1, "LOCK b");
	ignores(1);
	journal_is_damaged(0, (unsigned)_i);
	daemon_ends(0);
	refused = daemon_inherits(0, 0);
	ck_assert_uint_eq(refused, journal_length(0) - (unsigned)_i);
	resumes(2, &s1);
	hears(2, "ERR NOTFOUND *");
	/* The keys were left alone: somebody may still trust them. */
	ck_assert(key_is_there(0, "a"));
	ck_assert_int_eq(figure(0, METRIC_SESSIONS_DETACHED), 0);
}

/* A session with such a secret could not be written down again. */
LOOP_TEST(an_impossible_secret_makes_the_whole_journal_worthless, 4)
{
	static const char odd[] = {'\0', 'G', ' ', 'A'};

	held_by_1();
	journal_says(0, 1, 1 + 1 + 3 + 1 + 3 + 5, odd[_i]); /* version, kind, the number, and into the secret */
	daemon_ends(0);
	ck_assert_uint_eq(daemon_inherits(0, 0), journal_length(0) - 1);
	journal_is_compacted(0);
	ck_assert_uint_eq(journal_length(0), 0);
}

static void kind_of_a_later_version_follows(void)
{
	journal_ends_by(0, &(struct journal_record){.kind = JOURNAL_FREED, .session = s1.serial, .name = SPAN("a")});
	journal_says(0, journal_length(0) - 1, 1, JOURNAL_KIND_LAST + 1);
}

TEST(a_kind_of_a_later_version_is_passed_over)
{
	held_by_1();
	kind_of_a_later_version_follows();
	daemon_returns(0);
	resumes(2, &s1);
	hears(2, ROW_A);
	hears(2, "OK session=* n=1");
}

TEST(a_kind_of_a_later_version_does_not_complete_a_lockall)
{
	held_by_1();
	says(1, "LOCKALL b c");
	ignores(1);
	journal_loses_tail(0, 1);
	kind_of_a_later_version_follows();
	daemon_returns(0);
	resumes(2, &s1);
	hears(2, ROW_A);
	hears(2, "OK session=* n=1");
}

TEST(a_journal_without_its_end_restores_what_is_there)
{
	held_by_1();
	says(1, "LOCK b");
	ignores(1);
	journal_loses_tail(0, 1);
	daemon_returns(0);
	resumes(2, &s1);
	hears(2, ROW_A);
	hears(2, "OK session=* n=1");
}

TEST(records_come_first_or_not_at_all)
{
	struct event late = {.kind = EVENT_RESTORE, .now = {1000 * SEC}, .journal = {.record = SPAN("")}};

	held_by_1();
	late.now = cluster.now;
	ck_assert_int_eq(service_step(cluster.daemon[0].service, &late, &cluster.daemon[0].effects), -EINVAL);
	late.kind = EVENT_RESTORED;
	ck_assert_int_eq(service_step(cluster.daemon[0].service, &late, &cluster.daemon[0].effects), -EINVAL);
	effects_reset(&cluster.daemon[0].effects);
	says(1, "CHECK a");
	hears(1, "OK name=a *");
}

static int is_restored(const struct journal_record *r)
{
	char bytes[JOURNAL_RECORD_MAX];
	struct event event = {.kind = EVENT_RESTORE, .journal = {.record = {bytes, journal_encode(r, bytes)}}};

	return daemon_step(0, &event);
}

static const struct journal_record away = {
	.kind = JOURNAL_SESSION, .session = 7, .secret = SPAN("00112233445566778899aabbccddeeff"), .grace_us = 20 * SEC};

TEST(an_id_of_a_daemon_that_no_value_can_begin_with_makes_the_whole_journal_worthless)
{
	struct journal_record r = {.kind = JOURNAL_DAEMON, .daemon = SPAN("0123456789abcdef:host")};

	cluster_open(3);
	daemon_is_made(0);
	ck_assert_int_eq(is_restored(&away), 0);
	ck_assert_int_eq(is_restored(&r), -EBADMSG);
}

/* The grace of a session counts from then. */
TEST(whatever_comes_behind_the_records_ends_the_restoring)
{
	cluster_open(3);
	daemon_is_made(0);
	ck_assert_int_eq(is_restored(&away), 0);
	daemon_connects(0);
	ck_assert_int_eq(is_restored(&away), -EINVAL);
	passes(19 * SEC);
	ck_assert_int_eq(figure(0, METRIC_SESSIONS_DETACHED), 1);
	passes(2 * SEC);
	ck_assert_int_eq(figure(0, METRIC_SESSIONS_DETACHED), 0);
}

/* The records of a name come from one lease. Where they do not, since the one in between tells another name, the last one counts. */
LOOP_TEST(a_later_record_of_a_name_supersedes_one_that_was_never_taken_back, 3)
{
	struct secret s2;

	held_with_grace(3, "grace=30s name=w1", _i == 0 ? "" : "mode=shared", &s1);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	s2 = says_hello(2, "grace=30s name=w2");
	says(2, "LOCK a %s", _i == 1 ? "" : "mode=shared");
	hears(2, "OK name=a *");
	ck_assert_uint_eq(journal_length(0), 6);
	journal_says(0, 3, 1 + 1 + 3 + 1 + 3, 'b'); /* version, kind, session, and the name */
	daemon_returns(0);
	is_resumed_with_nothing(3, &s1);
	resumes(4, &s2);
	hears(4, "\\* name=a *");
	hears(4, "OK session=* n=1");
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * count= of LOCK, LOCKALL, LOCKANY and UNLOCK (daemon/core/request/locks.c, lockall.c, locks.c): what is repeated changes nothing, and what waits is
 * replaced by the same request.
 */
#include "tests/fixture/adopting.h"

#include <check.h>

static struct secret s1;

#define ADMIN 8

static void begins(void)
{
	cluster_begin(3);
	session_opens_as_admin(ADMIN, 0);
	passes(2 * SEC);
}

static void has_count(unsigned k, const char *name, int64_t count)
{
	char pattern[64];

	says(k, "CHECK %s", name);
	snprintf(pattern, sizeof(pattern), "OK name=%s * count=%lld", name, (long long)count);
	hears(k, pattern);
}

/* Session 1, with grace, has sent something whose answer it does not read. Session 9 resumes it. */
static void is_cut(unsigned k)
{
	goes(k, GONE_HANGUP);
	resumes(9, &s1);
}

FIXTURE(.teardown = cluster_close)

TEST(a_lock_repeated_with_its_count_changes_nothing)
{
	int64_t fence;

	begins();
	says(1, "LOCK a count=1");
	fence = number_in(hears(1, "OK name=a * count=1"), "fence");
	says(1, "LOCK a count=1");
	ck_assert_int_eq(number_in(hears(1, "OK name=a * count=1"), "fence"), fence);
	says(1, "LOCK a count=2");
	hears(1, "OK name=a * count=2");
	says(1, "LOCK a count=2 wait=1s");
	hears(1, "OK name=a * count=2");
	has_count(1, "a", 2);
}

TEST(a_count_that_is_not_the_next_is_refused)
{
	begins();
	says(1, "LOCK a count=2");
	hears(1, "ERR ARG count=2, but this owner holds the lock 0 times: *");
	says(1, "LOCK a count=0");
	hears(1, "ERR ARG *");
	says(1, "LOCK a count=1");
	hears(1, "OK name=a * count=1");
	says(1, "LOCK a count=3");
	hears(1, "ERR ARG *");
	says(1, "LOCK a count=2");
	hears(1, "OK name=a * count=2");
	says(1, "LOCK a count=1");
	hears(1, "ERR ARG *");
	says(1, "UNLOCK a count=3");
	hears(1, "ERR ARG *");
	has_count(1, "a", 2);
}

TEST(an_unlock_repeated_with_its_count_changes_nothing)
{
	begins();
	says(1, "LOCK a count=1");
	hears(1, "OK *");
	says(1, "LOCK a count=2");
	hears(1, "OK *");
	says(1, "UNLOCK a count=1");
	hears(1, "OK name=a count=1");
	says(1, "UNLOCK a count=1");
	hears(1, "OK name=a count=1");
	has_count(1, "a", 1);
	says(1, "UNLOCK a count=0");
	hears(1, "OK name=a count=0");
	says(1, "UNLOCK a count=0");
	hears(1, "OK name=a count=0");
	says(1, "UNLOCK a count=1");
	hears(1, "ERR ARG *");
	says(1, "UNLOCK a");
	hears(1, "ERR NOTHELD *");
}

TEST(an_unlock_by_count_may_end_several_holds_at_once)
{
	begins();
	says(1, "LOCK a");
	hears(1, "OK *");
	says(1, "LOCK a");
	hears(1, "OK *");
	says(2, "LOCK a wait=1m");
	says(1, "UNLOCK a count=0");
	hears(1, "OK name=a count=0");
	hears(2, GRANT);
}

TEST(an_unlock_with_the_fence_of_an_older_hold_releases_nothing)
{
	int64_t fence;

	begins();
	says(1, "LOCK a count=1");
	fence = number_in(hears(1, "OK *"), "fence");
	says(1, "UNLOCK a count=0 fence=%lld", (long long)fence);
	hears(1, "OK name=a count=0");
	says(1, "UNLOCK a count=0 fence=%lld", (long long)fence);
	hears(1, "OK name=a count=0");
	says(1, "LOCK a count=1");
	hears(1, "OK *");
	says(1, "UNLOCK a count=0 fence=%lld", (long long)fence);
	hears(1, "ERR NOTHELD *");
	has_count(1, "a", 1);
}

TEST(a_waiting_lock_that_is_repeated_is_replaced_and_keeps_its_place)
{
	begins();
	says(1, "LOCK a");
	hears(1, "OK *");
	says(2, "@first LOCK a wait=1m count=1");
	says(3, "LOCK a wait=1m");
	says(2, "@second LOCK a wait=1m count=1");
	hears(2, "@first ERR CANCELLED *");
	says(1, "SHOW a");
	hears(1, "\\* role=holder *");
	hears(1, "\\* role=waiter pos=1 session=* peer=unix pid=1002 *");
	hears(1, "\\* role=waiter pos=2 session=* peer=unix pid=1003 *");
	hears(1, "OK n=3");
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(2, "@second OK name=a * count=1");
	hears_nothing(3);
}

TEST(a_waiting_lock_without_a_tag_is_replaced_by_one_with)
{
	begins();
	says(1, "LOCK a");
	hears(1, "OK *");
	says(2, "LOCK a wait=1m count=1");
	says(2, "PING");
	says(2, "@second LOCK a wait=1m count=1");
	hears(2, "ERR CANCELLED *");
	hears(2, "OK");
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(2, "@second OK name=a * count=1");
}

TEST(a_repeated_lock_that_does_not_wait_gives_the_place_up)
{
	begins();
	says(1, "LOCK a");
	hears(1, "OK *");
	says(2, "@first LOCK a wait=1m count=1");
	says(2, "@second LOCK a count=1");
	hears(2, "@first ERR CANCELLED *");
	hears(2, "@second BUSY *");
	ck_assert_int_eq(figure(0, METRIC_WAITERS), 0);
}

TEST(requests_without_a_count_are_granted_together_as_before)
{
	begins();
	says(1, "LOCK a");
	hears(1, "OK *");
	says(2, "@first LOCK a wait=1m");
	says(2, "@second LOCK a wait=1m");
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(2, "@first OK name=a * count=1");
	hears(2, "@second OK name=a * count=2");
}

TEST(a_request_with_a_count_beside_one_without_counts_no_further)
{
	begins();
	says(1, "LOCK a");
	hears(1, "OK *");
	says(2, "@first LOCK a wait=1m");
	says(2, "@second LOCK a wait=1m count=1");
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(2, "@first OK name=a * count=1");
	hears(2, "@second OK name=a * count=1");
}

TEST(a_lock_whose_answer_was_lost_is_repeated_after_resume_and_counts_once)
{
	begins();
	s1 = says_hello(1, "grace=20s");
	says(1, "LOCK a owner=o count=1");
	is_cut(1);
	hears(9, "\\* name=a fence=* count=1 owner=o");
	hears(9, "OK session=* n=1");
	says(9, "LOCK a owner=o count=1");
	hears(9, "OK name=a * count=1");
	says(9, "UNLOCK a owner=o count=0");
	is_cut(9);
	hears(9, "OK session=* n=0");
	says(9, "UNLOCK a owner=o count=0");
	hears(9, "OK name=a count=0");
	says(2, "LOCK a");
	hears(2, "OK name=a *");
}

TEST(a_round_under_way_at_the_cut_and_the_lock_repeated_are_one_hold)
{
	begins();
	s1 = says_hello(1, "grace=20s");
	for (unsigned node = 0; node < 3; node++)
		feels(node, MOOD_SILENT);
	says(1, "LOCK a count=1");
	is_cut(1);
	hears(9, "OK session=* n=0");
	says(9, "LOCK a count=1 wait=1m");
	for (unsigned node = 0; node < 3; node++)
		feels(node, MOOD_WELL);
	passes(SEC);
	hears(9, "OK name=a * count=1");
	has_count(9, "a", 1);
}

TEST(a_turn_that_came_meanwhile_is_what_the_repeated_lock_asks_for)
{
	begins();
	says(2, "LOCK a");
	hears(2, "OK *");
	s1 = says_hello(1, "grace=20s");
	says(1, "@w LOCK a wait=1m count=1");
	goes(1, GONE_HANGUP);
	says(2, "UNLOCK a");
	hears(2, "OK *");
	passes(SEC);
	resumes(9, &s1);
	hears(9, ROW_A);
	hears(9, "OK session=* n=1");
	says(9, "@w LOCK a wait=1m count=1");
	hears(9, "@w OK name=a * count=1");
	has_count(9, "a", 1);
}

/* Session 2 has a and b. Session 1 has sent this, and was cut off: it waits. Session 9 resumes it, and gives a back, whether it was granted or not. */
static void gives_a_wait_up(const char *request, const char *unlock)
{
	begins();
	says(2, "LOCK a");
	hears(2, "OK *");
	says(2, "LOCK b");
	hears(2, "OK *");
	s1 = says_hello(1, "grace=20s");
	says(1, "@w %s", request);
	is_cut(1);
	hears(9, "OK session=* n=0");
	says(9, "%s", unlock);
	hears(9, "OK name=a count=0");
	says(2, "UNLOCK a");
	hears(2, "OK *");
	says(2, "UNLOCK b");
	hears(2, "OK *");
	passes(SEC);
}

LOOP_TEST(an_unlock_with_count_0_gives_up_a_wait_from_before_the_cut, 4)
{
	static const char *const request[] = {"LOCK a wait=1m owner=o count=1", "LOCK a wait=1m mode=shared owner=o count=1",
	                                      "LOCKALL b a wait=1m owner=o count=1", "LOCKANY b a wait=1m owner=o count=1"};

	gives_a_wait_up(request[_i], "UNLOCK a owner=o count=0");
	says(9, "LIST locks");
	hears(9, "OK n=0 more=0");
	goes(9, GONE_HANGUP);
	resumes(10, &s1);
	hears(10, "OK session=* n=0");
}

TEST(an_unlock_of_a_grant_leaves_the_wait_for_the_next_one)
{
	gives_a_wait_up("LOCK a wait=1m owner=o count=1", "UNLOCK a owner=o count=0 fence=1");
	says(9, "LOCK a wait=1m owner=o count=1");
	hears(9, "OK name=a * count=1");
}

TEST(an_unlock_of_another_owner_leaves_the_wait)
{
	gives_a_wait_up("LOCK a wait=1m owner=o count=1", "UNLOCK a owner=p count=0");
	says(2, "LOCK a");
	hears(2, "BUSY *");
}

TEST(a_lost_lock_is_taken_anew_by_count_1_alone)
{
	int64_t fence;

	begins();
	says(1, "LOCK a count=1");
	fence = number_in(hears(1, "OK *"), "fence");
	says(ADMIN, "BREAK a");
	hears(ADMIN, "OK *");
	hears(1, "! LOST name=a *");
	says(1, "LOCK a count=2");
	hears(1, "ERR LOST *");
	says(1, "LOCK a count=1 wait=1m");
	passes(30 * SEC);
	ck_assert_int_gt(number_in(hears(1, "OK name=a * count=1"), "fence"), fence);
}

/* Session 1 resumes as 9 after it has lost a, and has sent its UNLOCK without reading the answer. */
static void loses_the_answer_of_a_loss(void)
{
	begins();
	s1 = says_hello(1, "grace=20s");
	says(1, "LOCK a count=1");
	hears(1, "OK *");
	says(ADMIN, "BREAK a");
	hears(ADMIN, "OK *");
	hears(1, "! LOST name=a *");
	says(1, "UNLOCK a count=0");
	hears(1, "ERR LOST *");
}

TEST(an_unlock_of_a_loss_that_is_repeated_tells_the_loss_again)
{
	loses_the_answer_of_a_loss();
	is_cut(1);
	hears(9, "OK session=* n=0");
	says(9, "UNLOCK a count=0");
	hears(9, "ERR LOST *");
}

TEST(an_unlock_of_a_loss_frees_the_name_at_once)
{
	loses_the_answer_of_a_loss();
	says(2, "LOCK a");
	hears(2, "OK name=a *");
}

TEST(a_loss_that_was_acknowledged_is_forgotten_when_its_unlock_can_be_repeated_no_more)
{
	loses_the_answer_of_a_loss();
	passes(21 * SEC);
	says(1, "UNLOCK a count=0");
	hears(1, "OK name=a count=0");
	says(1, "LIST sessions");
	hears(1, "\\* session=* held=0 *");
}

TEST(a_loss_that_was_acknowledged_is_forgotten_after_resume_too)
{
	loses_the_answer_of_a_loss();
	passes(15 * SEC);
	goes(1, GONE_HANGUP);
	passes(15 * SEC);
	resumes(9, &s1);
	hears(9, "OK session=* n=0");
	passes(15 * SEC);
	says(9, "UNLOCK a count=0");
	hears(9, "ERR LOST *");
	passes(21 * SEC);
	says(9, "UNLOCK a count=0");
	hears(9, "OK name=a count=0");
}

TEST(a_lock_that_is_nested_while_its_hold_is_lost_is_told_so)
{
	adoption_is_under_way(&s1);
	resumes(1, &s1);
	passes(2 * SEC);
	hears(1, "OK session=* n=0 open=1");
	says(1, "@x LOCK a wait=1m count=2");
	for (unsigned i = 0; i < 3; i++)
		memory_remove(cluster.node[i].memory, SPAN("a"));
	all_come();
	passes(5 * SEC);
	hears(1, "! LOST name=a *");
	hears(1, "@x ERR LOST *");
}

TEST(a_change_of_the_mode_keeps_the_count)
{
	begins();
	says(1, "LOCK a count=1");
	hears(1, "OK *");
	says(1, "LOCK a mode=shared count=2");
	hears(1, "ERR ARG *");
	says(1, "LOCK a mode=shared count=1");
	hears(1, "OK name=a * count=1 mode=shared");
	says(1, "LOCK a mode=shared count=1");
	hears(1, "OK name=a * count=1 mode=shared");
}

TEST(a_lock_all_that_is_repeated_changes_nothing)
{
	begins();
	for (int i = 0; i < 2; i++) {
		says(1, "LOCKALL a b count=1");
		hears(1, "\\* name=a * count=1");
		hears(1, "\\* name=b * count=1");
		hears(1, "OK n=2");
	}
	says(1, "LOCKALL a c count=2");
	hears(1, "ERR ARG count=2, but this owner holds name 2 0 times: *");
	says(1, "LOCKALL a b count=2");
	hears(1, "\\* name=a * count=2");
	hears(1, "\\* name=b * count=2");
	hears(1, "OK n=2");
	says(1, "LOCKALL a b count=1");
	hears(1, "ERR ARG *");
}

TEST(a_waiting_lock_all_that_is_repeated_is_replaced)
{
	begins();
	says(2, "LOCK b");
	hears(2, "OK *");
	says(1, "@first LOCKALL a b wait=1m count=1");
	says(1, "@second LOCKALL b a wait=1m count=1");
	hears(1, "@first ERR CANCELLED *");
	says(2, "UNLOCK b");
	hears(2, "OK *");
	hears(1, "@second \\* name=b * count=1");
	hears(1, "@second \\* name=a * count=1");
	hears(1, "@second OK n=2");
	hears_nothing(1);
}

TEST(a_repeated_lock_all_that_does_not_wait_ends_the_first)
{
	begins();
	says(2, "LOCK b");
	hears(2, "OK *");
	says(1, "@first LOCKALL a b wait=1m count=1");
	says(1, "@second LOCKALL a b count=1");
	hears(1, "@first ERR CANCELLED *");
	hears(1, "@second BUSY *");
	says(2, "UNLOCK b");
	hears(2, "OK *");
	hears_nothing(1);
}

TEST(a_lock_any_that_is_repeated_answers_with_what_the_owner_has)
{
	begins();
	says(2, "LOCK a");
	hears(2, "OK *");
	says(1, "LOCKANY a b c count=1");
	hears(1, "OK name=b * count=1");
	says(1, "LOCKANY a b c count=1");
	hears(1, "OK name=b * count=1");
	says(1, "LOCKANY a b c");
	hears(1, "OK name=b * count=2");
	says(1, "LOCKANY a b c count=1");
	hears(1, "ERR ARG *");
}

TEST(what_the_owner_has_is_told_while_the_daemon_drains)
{
	begins();
	says(1, "LOCK a count=1");
	hears(1, "OK *");
	says(1, "LOCK b count=1");
	hears(1, "OK *");
	says(ADMIN, "DRAIN");
	hears(ADMIN, "OK *");
	says(1, "LOCK a count=1");
	hears(1, "OK name=a * count=1");
	says(1, "LOCKALL a b count=1");
	hears(1, "\\* name=a *");
	hears(1, "\\* name=b *");
	hears(1, "OK n=2");
	says(1, "LOCKANY c b count=1");
	hears(1, "OK name=b * count=1");
	says(1, "LOCKALL a c count=1");
	hears(1, "ERR DRAINING *");
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/session/group.c, groups.c, resume.c: a LOCKALL is cancelled, or its session or its daemon ends. */
#include "tests/fixture/groups.h"

#include <check.h>

FIXTURE(.teardown = cluster_close)

TEST(the_end_of_the_session_ends_its_lockall)
{
	cluster_begin(1);
	takes(1, "a");
	says(2, "LOCKALL a b wait=1m");
	passes(2 * SEC);
	goes(2, GONE_HANGUP);
	gives_back(1, "a");
	takes(3, "a");
	takes(3, "b");
	says(3, "SHOW a");
	hears(3, "\\* role=holder *");
	hears(3, "OK n=1");
}

TEST(the_end_of_a_session_frees_all_that_it_has_by_lockall)
{
	cluster_begin(3);
	says(1, "LOCKALL a b c");
	hears_all(1, "", "abc");
	goes(1, GONE_HANGUP);
	for (unsigned i = 0; i < 3; i++)
		ck_assert(!key_is_there(i, "a") && !key_is_there(i, "b") && !key_is_there(i, "c"));
}

TEST(lockall_can_be_cancelled)
{
	cluster_begin(1);
	takes(1, "b");
	says(2, "@w LOCKALL a b wait=1m");
	passes(2 * SEC);
	says(2, "CANCEL @w");
	hears(2, "OK");
	hears(2, "@w ERR CANCELLED *");
	gives_back(1, "b");
	ck_assert(!key_is_there(0, "a") && !key_is_there(0, "b"));
	says(2, "CANCEL @w");
	hears(2, "ERR NOTFOUND *");
}

TEST(the_last_line_of_a_session_ends_the_wait_of_its_lockall)
{
	cluster_begin(1);
	takes(1, "b");
	says(2, "LOCKALL a b wait=1m");
	half_closes(2);
	passes(100 * MSEC);
	hears(2, "ERR CANCELLED *");
	ck_assert(hung_up(2));
	says(3, "LOCKALL c d");
	half_closes(3);
	passes(100 * MSEC);
	hears_all(3, "", "cd");
}

/* Its stores have not answered: it tries the names to the end, and waits for none of them. */
LOOP_TEST(the_last_line_of_a_session_lets_its_lockall_try_and_no_more, 2)
{
	const char *verb = _i == 0 ? "LOCKALL" : "LOCKANY";

	two_daemons(3);
	session_opens(3, 1);
	takes(1, "a");
	takes(1, "b");
	all_feel(MOOD_SILENT);
	says(2, "%s a b wait=1m", verb);
	half_closes(2);
	says(3, "%s c d wait=1m", verb);
	half_closes(3);
	hears_nothing(2);
	all_feel(MOOD_WELL);
	passes(100 * MSEC);
	hears(2, "ERR CANCELLED *");
	ck_assert(hung_up(2));
	if (_i == 0)
		hears_all(3, "", "cd");
	else
		hears(3, "OK name=c *");
}

/* Session 2 waits for a with a LOCK of its own and with a LOCKALL or a LOCKANY, all as readers, behind a writer. */
static void readers_wait_in_a_session(const char *group)
{
	cluster_begin(1);
	passes(SEC);
	takes(3, "c");
	says(1, "LOCK a mode=shared");
	hears(1, "OK *");
	says(2, "@w LOCK a owner=w wait=1m");
	says(2, "@x LOCK a owner=x wait=1m mode=shared");
	says(2, "@y %s owner=y wait=1m mode=shared", group);
	says(2, "@z LOCK a owner=z wait=1m mode=shared");
}

LOOP_TEST(nothing_is_granted_to_a_group_while_its_session_says_its_last_line, 2)
{
	readers_wait_in_a_session(_i == 0 ? "LOCKALL a b" : "LOCKANY a c");
	half_closes(2);
	passes(SEC);
	ignores(2);
	ck_assert(hung_up(2));
	gives_back(1, "a");
	ck_assert(!key_is_there(0, "a") && !key_is_there(0, "b"));
}

TEST(nothing_is_granted_to_a_group_while_its_session_ends)
{
	readers_wait_in_a_session("LOCKALL a b");
	goes(2, GONE_HANGUP);
	gives_back(1, "a");
	ck_assert(!key_is_there(0, "a") && !key_is_there(0, "b"));
}

TEST(nothing_is_granted_to_one_group_by_another_while_their_session_ends)
{
	cluster_begin(1);
	passes(SEC);
	says(1, "LOCK a mode=shared");
	hears(1, "OK *");
	takes(3, "c");
	says(2, "@x LOCKALL c a owner=x wait=1m mode=shared");
	says(2, "@w LOCKALL a b owner=w wait=1m");
	gives_back(3, "c"); /* now the first one stands behind the second */
	passes(10 * MSEC);
	goes(2, GONE_HANGUP);
	gives_back(1, "a");
	ck_assert(!key_is_there(0, "a") && !key_is_there(0, "b") && !key_is_there(0, "c"));
}

TEST(what_a_lockall_had_is_free_when_its_daemon_was_killed_and_its_lease_is_over)
{
	cluster_begin(1);
	takes(1, "b");
	says(2, "LOCKALL a b wait=1m");
	daemon_ends(0);
	ck_assert(key_is_there(0, "a"));
	passes(cluster.conf.lease_us + SEC);
	ck_assert(!key_is_there(0, "a"));
}

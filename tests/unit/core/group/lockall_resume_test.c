/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/group/groups.c, resume.c: a session that waits for several names loses its connection, is resumed, and asks again. */
#include "tests/fixture/groups.h"
#include "tests/fixture/resumable.h"

#include <check.h>

static struct secret s2; /* of session 2 */

FIXTURE(.teardown = cluster_close)

TEST(a_lockall_keeps_its_place_and_the_request_repeated_takes_it)
{
	s2 = waits_and_drops("LOCKALL a b wait=1m", "grace=20s");
	says(3, "@w LOCK b wait=1m");
	is_resumed_with_nothing(4, &s2);
	says(4, "@again LOCKALL b a wait=1m");
	gives_back(1, "b");
	passes(10 * MSEC);
	hears_all(4, "@again ", "ba");
	hears_nothing(3);
	ignores(3);
}

TEST(a_lockall_repeated_has_the_terms_of_the_new_request)
{
	s2 = waits_and_drops("LOCKALL a b wait=1m ttl=5s note=old", "grace=20s");
	is_resumed_with_nothing(4, &s2);
	says(4, "LOCKALL b a wait=1m ttl=7s note=new");
	gives_back(1, "b");
	hears(4, "\\* name=b fence=* valid_ms=* ttl_ms=7000 count=1");
	hears(4, "\\* name=a fence=* valid_ms=* ttl_ms=7000 count=1");
	hears(4, "OK n=2");
	says(4, "SHOW b");
	hears(4, "\\* *note=new*");
	hears(4, "OK n=1");
}

TEST(what_a_lockall_gets_while_the_session_is_away_are_rows)
{
	s2 = waits_and_drops("LOCKALL a b wait=1m", "grace=20s");
	gives_back(1, "b");
	passes(10 * SEC);
	says(3, "LOCKALL a c");
	hears(3, "BUSY name=a *");
	resumes(4, &s2);
	hears(4, "\\* name=a *");
	hears(4, "\\* name=b *");
	hears(4, "OK session=* n=2");
	says(4, "CHECK a");
	hears(4, "OK name=a *");
}

TEST(what_a_lockall_gets_between_resume_and_the_request_repeated_answers_that)
{
	s2 = waits_and_drops("LOCKALL a b wait=1m", "grace=20s");
	is_resumed_with_nothing(4, &s2);
	gives_back(1, "b");
	passes(10 * MSEC);
	says(4, "@again LOCKALL a b wait=1m");
	hears(4, "@again \\* name=a fence=* count=1");
	hears(4, "@again \\* name=b fence=* count=1");
	hears(4, "@again OK n=2");
}

TEST(a_lockall_that_is_not_repeated_lapses)
{
	s2 = waits_and_drops("LOCKALL a b wait=1m", "grace=15s");
	is_resumed_with_nothing(4, &s2);
	passes(15100 * MSEC);
	gives_back(1, "b");
	passes(10 * MSEC);
	ck_assert(!key_is_there(0, "a") && !key_is_there(0, "b"));
}

TEST(what_a_lockall_got_and_nobody_asks_for_lapses)
{
	s2 = waits_and_drops("LOCKALL a b wait=1m", "grace=15s");
	is_resumed_with_nothing(4, &s2);
	gives_back(1, "b");
	passes(14 * SEC);
	ck_assert(key_is_there(0, "a") && key_is_there(0, "b"));
	passes(1100 * MSEC);
	ck_assert(!key_is_there(0, "a") && !key_is_there(0, "b"));
}

TEST(a_lockall_ends_with_the_grace_of_its_session)
{
	s2 = waits_and_drops("LOCKALL a b wait=1m", "grace=15s");
	passes(15100 * MSEC);
	gives_back(1, "b");
	passes(10 * MSEC);
	ck_assert(!key_is_there(0, "a") && !key_is_there(0, "b"));
}

TEST(another_request_does_not_take_the_place_of_a_lockall)
{
	s2 = waits_and_drops("LOCKALL a b wait=1m", "grace=20s");
	is_resumed_with_nothing(4, &s2);
	says(4, "@2 LOCKANY d b wait=1m");
	hears(4, "@2 OK name=d *");
	says(4, "@1 LOCKALL a c wait=1m"); /* it has a once the one that nobody repeats has lapsed */
	passes(20100 * MSEC);
	hears_all(4, "@1 ", "ac");
}

TEST(a_lockall_that_is_repeated_keeps_what_it_has)
{
	cluster_begin(1);
	takes(1, "b");
	takes(3, "a");
	s2 = says_hello(2, "grace=20s");
	says(2, "LOCKALL a b wait=1h");
	goes(2, GONE_RESET);
	passes(2 * SEC);
	gives_back(3, "a");
	is_resumed_with_nothing(4, &s2);
	says(4, "@x LOCKALL b a wait=1h owner=x");
	says(4, "@again LOCKALL b a wait=1h");
	ck_assert(key_is_there(0, "a"));
	gives_back(1, "b");
	passes(10 * MSEC);
	hears_all(4, "@again ", "ba");
	hears_nothing(4);
}

TEST(a_lockany_keeps_its_places_and_what_it_gets_is_a_row)
{
	cluster_begin(1);
	takes(1, "a");
	takes(1, "b");
	s2 = says_hello(2, "grace=20s");
	says(2, "LOCKANY a b wait=1m");
	goes(2, GONE_RESET);
	gives_back(1, "b");
	gives_back(1, "a");
	ck_assert(!key_is_there(0, "a"));
	resumes(4, &s2);
	hears(4, "\\* name=b *");
	hears(4, "OK session=* n=1");
}

TEST(a_lockall_repeated_without_a_wait_ends_the_one_that_waits)
{
	s2 = waits_and_drops("LOCKALL a b wait=1m", "grace=20s");
	is_resumed_with_nothing(4, &s2);
	says(4, "LOCKALL a b");
	hears(4, "BUSY name=b *");
	gives_back(1, "b");
	passes(10 * MSEC);
	ck_assert(!key_is_there(0, "a") && !key_is_there(0, "b"));
}

LOOP_TEST(a_lockall_repeated_before_its_stores_answer_takes_the_names, 3)
{
	static const char *const asks[] = {"LOCKALL a b", "LOCKALL a b wait=1m", "LOCKALL a b wait=forever"};

	cluster_begin(3);
	s2 = says_hello(2, "grace=20s");
	all_feel(MOOD_SILENT);
	says(2, "%s", asks[_i]);
	goes(2, GONE_RESET);
	is_resumed_with_nothing(4, &s2);
	says(4, "%s", asks[_i]);
	all_feel(MOOD_WELL);
	passes(SEC);
	hears_all(4, "", "ab");
}

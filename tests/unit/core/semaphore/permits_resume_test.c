/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/semaphore/permits.c, permit_step.c, command.c: permits that a resumed session does not ask for again lapse. */
#include "tests/fixture/resumable.h"

#include <check.h>

FIXTURE(.teardown = cluster_close)

TEST(a_permit_of_which_the_client_does_not_know_and_that_is_adopted_after_its_resume_lapses)
{
	struct secret s;

	cluster_begin(3);
	s = says_hello(2, "grace=20s");
	says(1, "ACQUIRE a limit=1");
	hears(1, "OK *");
	says(2, "ACQUIRE a limit=1 wait=5m");
	passes(100 * MSEC);
	goes(2, GONE_HANGUP);
	says(1, "RELEASE a");
	hears(1, "OK *");
	passes(100 * MSEC);
	all_feel(MOOD_SILENT);
	daemon_returns(0);
	resumes(3, &s);
	passes(2500 * MSEC);
	hears(3, "OK session=* n=0 open=1");
	all_feel(MOOD_WELL);
	passes(SEC);
	hears_nothing(3);
	says(4, "ACQUIRE a limit=1 wait=5m");
	passes(18 * SEC);
	hears_nothing(4);
	passes(5 * SEC);
	hears(4, "OK name=a permit=0 *");
}

TEST(a_permit_of_which_the_client_does_not_know_and_that_is_adopted_after_its_resume_may_be_asked_for)
{
	struct secret s;

	cluster_begin(3);
	s = says_hello(2, "grace=20s");
	says(1, "ACQUIRE a limit=1");
	hears(1, "OK *");
	says(2, "ACQUIRE a limit=1 wait=5m");
	passes(100 * MSEC);
	goes(2, GONE_HANGUP);
	says(1, "RELEASE a");
	passes(100 * MSEC);
	all_feel(MOOD_SILENT);
	daemon_returns(0);
	resumes(3, &s);
	passes(2500 * MSEC);
	hears(3, "OK session=* n=0 open=1");
	all_feel(MOOD_WELL);
	passes(15 * SEC);
	says(3, "ACQUIRE a limit=1 wait=5m");
	hears(3, "OK name=a permit=0 *");
	passes(60 * SEC);
	says(3, "CHECK a");
	hears(3, "OK name=a permit=0 *");
}

/* When the session is resumed the stores have not answered yet, so the permit does not stand in line. */
TEST(a_permit_that_finds_no_slot_after_its_session_was_resumed_leaves_the_line_unless_it_is_asked_for_again)
{
	struct secret s;

	two_daemons(3);
	s = says_hello(1, "grace=20s");
	says(2, "ACQUIRE a limit=1");
	hears(2, "OK *");
	all_feel(MOOD_SILENT);
	says(1, "ACQUIRE a limit=1 wait=5m");
	goes(1, GONE_HANGUP);
	is_resumed_with_nothing(3, &s);
	all_feel(MOOD_WELL);
	passes(18 * SEC);
	says(4, "ACQUIRE a limit=1");
	hears(4, "BUSY name=a limit=1 free=0 waiters=1");
	passes(5 * SEC);
	says(4, "ACQUIRE a limit=1");
	hears(4, "BUSY name=a limit=1 free=0 waiters=0");
	hears_nothing(3);
}

LOOP_TEST(a_place_is_given_up_by_a_resumed_client_that_asks_again_and_would_not_wait, 2)
{
	struct secret s;

	cluster_begin(_i ? 3 : 1);
	s = says_hello(1, "grace=20s");
	says(2, "ACQUIRE a limit=1");
	hears(2, "OK *");
	says(1, "ACQUIRE a limit=1 wait=5m");
	passes(100 * MSEC);
	goes(1, GONE_HANGUP);
	is_resumed_with_nothing(3, &s);
	says(3, "ACQUIRE a limit=1");
	passes(100 * MSEC);
	hears(3, "BUSY name=a limit=1 free=0 *");
	says(4, "ACQUIRE a limit=1 wait=5m");
	says(2, "RELEASE a");
	hears(2, "OK *");
	passes(100 * MSEC);
	hears(4, "OK name=a permit=0 *");
	hears_nothing(3);
}

/* Its turn comes behind RESUME, and its client asks for nothing again, but hears by another answer that it has the permit. */
LOOP_TEST(a_permit_of_which_the_client_heard_by_check_or_extend_does_not_lapse, 2)
{
	struct secret s;

	cluster_begin(3);
	s = says_hello(1, "grace=20s");
	says(2, "ACQUIRE a limit=1");
	hears(2, "OK *");
	says(1, "ACQUIRE a limit=1 wait=5m");
	goes(1, GONE_HANGUP);
	is_resumed_with_nothing(3, &s);
	says(2, "RELEASE a");
	hears(2, "OK *");
	says(3, _i == 0 ? "CHECK a" : "EXTEND a");
	hears(3, "OK name=a permit=0 *");
	passes(30 * SEC);
	hears_nothing(3);
	says(4, "ACQUIRE a limit=1");
	hears(4, "BUSY name=a limit=1 free=0 *");
	says(3, "RELEASE a");
	hears(3, "OK *");
	says(4, "ACQUIRE a limit=1");
	hears(4, "OK *");
}

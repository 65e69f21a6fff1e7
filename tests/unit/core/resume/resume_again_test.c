/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/resume/resume.c: sessions that lose one connection after the other, and what each RESUME leaves of a place in the queue. */
#include "tests/fixture/resumable.h"

#include <check.h>

static struct secret s2;

FIXTURE(.teardown = cluster_close)

/* Each time the connection drops, the session has the whole grace to come back. */
TEST(a_place_in_the_queue_is_kept_for_the_grace_of_the_second_drop_as_well)
{
	s2 = resumed_while_waiting("grace=20s");
	passes(15 * SEC);
	goes(4, GONE_HANGUP);
	passes(15 * SEC);
	is_resumed_with_nothing(5, &s2);
	passes(15 * SEC);
	says(5, "LOCK a wait=1m");
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(5, GRANT);
	hears_nothing(3);
}

TEST(a_wait_ends_on_time_however_often_the_session_was_resumed)
{
	s2 = resumed_while_waiting("grace=40s");
	goes(4, GONE_HANGUP);
	passes(39 * SEC);
	is_resumed_with_nothing(5, &s2);
	passes(22 * SEC);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(3, GRANT);
	says(3, "UNLOCK a");
	hears(3, "OK *");
	says(6, "LOCK a");
	hears(6, GRANT);
}

/* A RESUME that waits for an adoption tells of a turn that came meanwhile, however short the turn is kept. */
TEST(a_turn_that_comes_while_resume_waits_is_a_row_of_its_answer)
{
	cluster_open(3);
	cluster.conf.lease_us = SEC;
	daemon_starts(0);
	passes(2 * SEC);
	falls(2);
	s2 = says_hello(2, "grace=1s");
	says(2, "LOCK a ttl=10s");
	hears(2, GRANT);
	falls(1);
	comes(2);
	passes(2 * SEC);
	ignores(2);
	daemon_returns(0);
	passes(100 * MSEC);
	says(1, "LOCK b");
	hears(1, "OK name=b *");
	resumes(3, &s2);
	passes(2010 * MSEC);
	hears(3, "OK session=* n=0 open=1");
	says(3, "LOCK b wait=1m");
	goes(3, GONE_HANGUP);
	resumes(4, &s2);
	says(1, "UNLOCK b");
	hears(1, "OK *");
	passes(2010 * MSEC);
	hears(4, "\\* name=b *");
	hears(4, "OK session=* n=1 open=1");
	comes(1);
	passes(SEC);
	ignores(4);
}

/* Nobody needs to hear what becomes of the place in the queue, but the session ends only once that is decided. */
TEST(a_half_closed_session_ends_when_its_place_is_decided)
{
	(void)resumed_while_waiting("grace=40s");
	says(4, "HELLO 1 grace=0");
	hears(4, "OK *");
	all_feel(MOOD_SILENT);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	half_closes(4);
	all_feel(MOOD_WELL);
	ck_assert(hung_up(4));
	hears_nothing(4);
	hears(3, GRANT);
}

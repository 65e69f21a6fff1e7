/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/core/engine/adopt.c and resume.c: RESUME after a restart. It tells what was lost meanwhile, and waits in bounded time for locks that the daemon still
 * adopts.
 */
#include "tests/fixture/adopting.h"
#include "tests/fixture/cluster_part.h"

#include <check.h>

static struct secret s1;
static int64_t fence;

FIXTURE(.teardown = cluster_close)

TEST(a_loss_during_the_detachment_is_told_right_after_the_OK)
{
	fence = held_with_grace(3, "grace=60s", "", &s1);
	says(1, "LOCK b renew=no ttl=2s");
	ignores(1);
	goes(1, GONE_HANGUP);
	passes(5 * SEC);
	says(2, "LOCK b");
	hears(2, "OK name=b *");
	says(3, "@r RESUME %lld %s", (long long)s1.serial, s1.text);
	hears(3, "@r \\* name=a *");
	hears(3, "@r OK session=* n=1");
	hears(3, "! LOST name=b fence=* reason=expired");
	says(3, "CHECK b");
	hears(3, "ERR LOST *");
	goes(3, GONE_HANGUP);
	resumes(4, &s1);
	hears(4, ROW_A);
	hears(4, "OK session=* n=1");
	hears_nothing(4);
	says(4, "UNLOCK b");
	hears(4, "ERR LOST *");
	says(4, "CHECK b");
	hears(4, "ERR NOTHELD *");
}

TEST(show_and_list_say_that_the_holder_has_no_connection)
{
	fence = held_with_grace(3, "name=w grace=20s", "", &s1);
	goes(1, GONE_HANGUP);
	passes(5 * SEC);
	says(2, "SHOW a");
	hears(2, "\\* role=holder * name=w peer=unix * detached_ms=5000 grace_ms=15000 fence=*");
	hears(2, "OK n=1");
	says(2, "LIST sessions");
	hears(2, "\\* * name=w * detached_ms=5000 grace_ms=15000 * held=1 waiting=0");
	hears(2, "\\* *");
	hears(2, "OK n=2 more=0");
	ck_assert_int_eq(figure(0, METRIC_SESSIONS), 1);
}

/* --- RESUME while the adoption is under way --- */

/* The stores carry out none of the daemon's first calls. */
static void all_come_and_lose_it(void)
{
	all_feel(MOOD_SILENT);
	all_come();
	for (unsigned i = 0; i < 3; i++)
		serves(i, 1); /* the probe */
	passes(0);
	for (unsigned i = 0; i < 3; i++)
		loses(i, waiting_at(i));
	all_feel(MOOD_WELL);
}

TEST(resume_waits_for_the_adoption)
{
	fence = adoption_is_under_way(&s1);
	resumes(2, &s1);
	says(2, "PING");
	passes(SEC);
	hears_nothing(2);
	all_come();
	ck_assert_int_eq(number_in(hears(2, ROW_A), "fence"), fence);
	hears(2, "OK session=* n=1");
	hears(2, "OK");
}

/* Also when the session has given up its grace meanwhile, and ends with its input. */
TEST(resume_is_answered_before_a_half_closed_session_ends)
{
	fence = adoption_is_under_way(&s1);
	says(2, "@r RESUME %lld %s", (long long)s1.serial, s1.text);
	says(2, "@h HELLO 1 grace=0");
	hears(2, "@h OK *");
	half_closes(2);
	passes(SEC);
	all_come();
	ck_assert_int_eq(number_in(hears(2, "@r " ROW_A), "fence"), fence);
	hears(2, "@r OK session=* n=1");
	ck_assert(hung_up(2));
	says(3, "LOCK a");
	hears(3, GRANT);
}

TEST(a_resume_that_waits_is_answered_when_the_daemon_stops)
{
	struct event stop = {.kind = EVENT_STOP};

	fence = adoption_is_under_way(&s1);
	says(2, "RESUME %lld %s", (long long)s1.serial, s1.text);
	says(2, "CHECK a");
	hears_nothing(2);
	ck_assert_int_eq(daemon_step(0, &stop), 0);
	hears(2, "ERR DRAINING *");
	hears(2, "ERR QUORUM *");
	ck_assert(hung_up(2));
	daemon_ends(0);
}

/* A lock that was granted behind RESUME belongs to this connection: its loss is told at once. */
TEST(a_loss_of_what_was_granted_meanwhile_is_told_before_the_answer)
{
	fence = adoption_is_under_way(&s1);
	says(2, "@r RESUME %lld %s", (long long)s1.serial, s1.text);
	all_come_and_lose_it();
	says(2, "@b LOCK b ttl=1s renew=no");
	hears(2, "@b OK name=b *");
	all_feel(MOOD_SILENT);
	passes(920 * MSEC);
	hears_nothing(2);
	passes(40 * MSEC);
	hears(2, "! LOST name=b fence=* reason=expired");
	all_feel(MOOD_WELL);
	hears(2, "@r \\* name=a *");
	hears(2, "@r OK session=* n=1");
	hears_nothing(2);
}

/* Each of them wakes the session. */
TEST(two_losses_at_once_do_not_end_the_wait_of_resume)
{
	fence = adoption_is_under_way(&s1);
	says(2, "@r RESUME %lld %s", (long long)s1.serial, s1.text);
	all_come_and_lose_it();
	says(2, "@b LOCK b ttl=1s renew=no");
	says(2, "@c LOCK c ttl=1s renew=no");
	hears(2, "@b OK name=b *");
	hears(2, "@c OK name=c *");
	all_feel(MOOD_SILENT);
	passes(960 * MSEC);
	hears(2, "! LOST name=b fence=* reason=expired");
	hears(2, "! LOST name=c fence=* reason=expired");
	hears_nothing(2);
	all_feel(MOOD_WELL);
	hears(2, "@r \\* name=a *");
	hears(2, "@r OK session=* n=1");
	hears_nothing(2);
}

/* The same answer ends the adoption and shows that the clock was set forward by which the vote for b was counted. */
TEST(a_lock_that_the_last_answer_of_a_store_takes_away_is_no_row)
{
	fence = adoption_is_under_way(&s1);
	says(2, "@r RESUME %lld %s", (long long)s1.serial, s1.text);
	all_come_and_lose_it();
	feels(2, MOOD_SILENT);
	says(2, "@b LOCK b ttl=1s renew=no");
	hears(2, "@b OK name=b *");
	all_feel(MOOD_SILENT);
	passes(510 * MSEC);
	serves(1, waiting_at(1));
	hears_nothing(2);
	cluster.node[0].clock_us += 2 * SEC;
	serves(0, waiting_at(0));
	hears(2, "! LOST name=b fence=* reason=expired");
	hears(2, "@r \\* name=a *");
	hears(2, "@r OK session=* n=1");
	all_feel(MOOD_WELL);
	ignores(2);
}

/* The same with RESUME without a tag: a request behind it is served after everything that ended its wait was told. */
TEST(a_lock_that_the_last_answer_of_a_store_takes_away_is_LOST_before_the_next_request_is_served)
{
	fence = adoption_is_under_way(&s1);
	resumes(2, &s1);
	all_come_and_lose_it();
	feels(2, MOOD_SILENT);
	says(2, "@b LOCK b ttl=1s renew=no");
	hears(2, "@b OK name=b *");
	says(2, "UNLOCK b");
	all_feel(MOOD_SILENT);
	passes(510 * MSEC);
	serves(1, waiting_at(1));
	hears_nothing(2);
	cluster.node[0].clock_us += 2 * SEC;
	serves(0, waiting_at(0));
	hears(2, "! LOST name=b fence=* reason=expired");
	hears(2, "\\* name=a *");
	hears(2, "OK session=* n=1");
	hears(2, "ERR LOST *");
	all_feel(MOOD_WELL);
	ignores(2);
}

/* The wait of RESUME was over first. */
TEST(a_lock_that_ends_with_the_wait_of_RESUME_in_one_stop_of_the_daemon_is_no_row)
{
	fence = adoption_is_under_way(&s1);
	says(2, "@r RESUME %lld %s", (long long)s1.serial, s1.text);
	all_come_and_lose_it();
	says(2, "@b LOCK b ttl=5s renew=no");
	hears(2, "@b OK name=b *");
	all_feel(MOOD_SILENT);
	jumps(6 * SEC);
	wakes(0);
	hears(2, "@r OK session=* n=0 open=1");
	hears(2, "! LOST name=b fence=* reason=expired");
	all_feel(MOOD_WELL);
	ignores(2);
}

/* The session locks a lost name again behind RESUME. The loss is told before the grant. */
TEST(a_loss_is_told_before_its_name_is_taken_anew)
{
	fence = held_with_grace(3, "grace=30s", "", &s1);
	says(1, "LOCK b ttl=1s renew=no");
	hears(1, "OK name=b *");
	daemon_is_back();
	passes(2 * SEC);
	says(2, "@r RESUME %lld %s", (long long)s1.serial, s1.text);
	all_come_and_lose_it();
	says(2, "@b LOCK b ttl=1s renew=no");
	ck_assert_int_eq(number_in(hears(2, "! LOST name=b fence=* reason=expired"), "fence"), fence + 1);
	ck_assert_int_gt(number_in(hears(2, "@b OK name=b *"), "fence"), fence + 1);
	passes(600 * MSEC);
	hears(2, "@r \\* name=a *");
	hears(2, "@r \\* name=b *");
	hears(2, "@r OK session=* n=2");
	hears_nothing(2);
}

TEST(a_drop_while_resume_waits_detaches_again)
{
	fence = adoption_is_under_way(&s1);
	resumes(2, &s1);
	goes(2, GONE_RESET);
	passes(5 * SEC);
	all_come();
	resumes(3, &s1);
	ck_assert_int_eq(number_in(hears(3, ROW_A), "fence"), fence);
	hears(3, "OK session=* n=1");
}

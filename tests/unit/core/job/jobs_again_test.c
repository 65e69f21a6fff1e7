/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/job/job.c, jobs.c: a session takes a job again that it had before, or has two jobs whose lock has the same owner. */
#include "tests/fixture/mail_queue.h"
#include "tests/fixture/resumable.h"

#include <check.h>

#define AGAIN_US (20 * SEC) /* the watchdog has renewed what a RESUME has told */

static struct secret s1;

/* Session 1, which has grace, has job a with lock l. */
static void has_a_job(void)
{
	cluster_begin(3);
	s1 = says_hello(1, "grace=20s");
	says(2, "DEFER mail hello lock=l id=a");
	hears(2, "OK *");
	says(1, "TAKE mail ttl=2s");
	hears(1, "OK queue=mail job=a attempt=1 * name=l *");
}

/* The home has carried out what session 1 says of the job, and its answer was lost. Session 1 takes the job again before the daemon repeats that. */
static void takes_it_again_before_its_end_is_known(void)
{
	has_a_job();
	feels(home(), MOOD_LOSSY);
	says(1, "@1 RETRY a");
	passes(20 * MSEC);
	feels(home(), MOOD_WELL);
	hears_nothing(1);
	says(1, "@2 TAKE mail");
	hears(1, "@2 OK queue=mail job=a attempt=2 * name=l *");
}

static void is_locked(bool locked)
{
	says(3, "LOCK l");
	hears(3, locked ? "BUSY name=l *" : "OK name=l *");
}

FIXTURE(.teardown = cluster_close)

TEST(the_late_end_of_an_attempt_leaves_the_lock_to_the_next_attempt)
{
	takes_it_again_before_its_end_is_known();
	passes(200 * MSEC);
	hears(1, "@1 OK queue=mail job=a");
	is_locked(true);
	says(1, "DONE a");
	hears(1, "OK queue=mail job=a");
	is_locked(false);
}

TEST(an_attempt_that_ends_before_the_one_before_it_frees_the_lock)
{
	takes_it_again_before_its_end_is_known();
	says(1, "DONE a");
	hears(1, "OK queue=mail job=a");
	is_locked(false);
	passes(200 * MSEC);
	hears(1, "@1 OK queue=mail job=a");
	says(3, "CHECK l");
	hears(3, "OK name=l *");
}

/* Loop: whether the end of the attempt before is known when the run ends. */
LOOP_TEST(the_next_run_adopts_the_next_attempt_and_frees_its_lock_with_it, 4)
{
	takes_it_again_before_its_end_is_known();
	if (_i & 1) {
		passes(200 * MSEC);
		hears(1, "@1 OK queue=mail job=a");
	}
	if (_i & 2)
		journal_is_compacted(0);
	daemon_returns(0);
	passes(SEC);
	session_opens(5, 0);
	resumes(5, &s1);
	hears(5, "\\* name=l * count=1 *owner=job:mail/a");
	hears(5, "\\* queue=mail job=a attempt=2 * name=l fence=*");
	hears(5, "OK session=* n=2");
	passes(AGAIN_US);
	says(5, "DONE a");
	hears(5, "OK queue=mail job=a");
	session_opens(3, 0);
	is_locked(false);
}

TEST(a_job_whose_end_is_not_known_is_in_the_snapshot_of_the_journal)
{
	has_a_job();
	feels(home(), MOOD_SILENT);
	says(1, "DONE a");
	journal_is_compacted(0);
	daemon_returns(0);
	feels(home(), MOOD_WELL);
	passes(SEC);
	session_opens(5, 0);
	is_resumed_with_nothing(5, &s1);
	says(5, "DONE a");
	hears(5, "ERR NOTHELD *");
	session_opens(3, 0);
	is_locked(false);
}

/* The texts of the owners of both locks are the same. */
static void has_two_jobs_of_one_owner(void)
{
	cluster_begin(3);
	s1 = says_hello(1, "grace=20s");
	says(2, "DEFER a/b hello lock=l id=c");
	hears(2, "OK *");
	says(2, "DEFER a hello lock=l id=b/c");
	hears(2, "OK *");
	says(1, "TAKE a/b");
	hears(1, "OK queue=a/b job=c * name=l *");
	says(1, "TAKE a");
	hears(1, "OK queue=a job=b/c * name=l *");
}

LOOP_TEST(the_first_of_two_jobs_whose_lock_has_one_owner_leaves_it_to_the_other, 2)
{
	unsigned k = 1;

	has_two_jobs_of_one_owner();
	if (_i) {
		daemon_returns(0);
		passes(SEC);
		session_opens(k = 5, 0);
		resumes(k, &s1);
		hears(k, "\\* name=l * count=2 owner=job:a/b/c");
		ck_assert_uint_eq(ignores(k), 3);
		passes(AGAIN_US);
		session_opens(3, 0);
	}
	says(k, "DONE c");
	hears(k, "OK queue=a/b job=c");
	is_locked(true);
	says(k, "RETRY b/c");
	hears(k, "OK queue=a job=b/c");
	is_locked(false);
}

TEST(a_lock_that_the_client_holds_beside_its_job_stays_with_the_client)
{
	has_a_job();
	says(1, "LOCK l owner=job:mail/a");
	hears(1, "OK name=l * count=2*");
	says(1, "DONE a");
	hears(1, "OK queue=mail job=a");
	is_locked(true);
	says(1, "UNLOCK l owner=job:mail/a");
	hears(1, "OK name=l *");
	is_locked(false);
}

TEST(as_its_owner_the_session_may_give_the_lock_of_a_job_back_before_the_job)
{
	has_a_job();
	says(1, "UNLOCK l owner=job:mail/a");
	hears(1, "OK name=l count=0*");
	is_locked(false);
	says(1, "DONE a");
	hears(1, "OK queue=mail job=a");
	says(3, "CHECK l");
	hears(3, "OK name=l *");
}

/* A lock that is lost is counted anew. */
TEST(a_lock_that_was_broken_and_came_back_with_one_of_two_jobs_stays_with_that)
{
	cluster_begin(3);
	session_opens_as_admin(4, 0);
	says(2, "DEFER a/b hello lock=l id=c");
	hears(2, "OK *");
	says(2, "DEFER a hello lock=l id=b/c");
	hears(2, "OK *");
	says(1, "TAKE a/b");
	hears(1, "OK queue=a/b job=c * name=l *");
	says(4, "BREAK l");
	ignores(4);
	hears(1, "! LOST name=l *");
	passes(11 * SEC);
	says(1, "TAKE a");
	hears(1, "OK queue=a job=b/c * name=l *");
	says(1, "DONE c");
	hears(1, "OK queue=a/b job=c");
	is_locked(true);
	says(1, "DONE b/c");
	hears(1, "OK queue=a job=b/c");
	is_locked(false);
}

/* Its clock is ahead by less than can be told from a slow answer. */
TEST(a_job_that_its_home_gives_to_its_own_session_again_is_lost_and_taken)
{
	cluster_begin(3);
	passes(61 * SEC);
	says(2, "DEFER mail hello lock=l id=a");
	hears(2, "OK *");
	says(1, "TAKE mail ttl=200ms");
	hears(1, "OK queue=mail job=a attempt=1 * name=l *");
	feels(home(), MOOD_SILENT);
	passes(80 * MSEC);
	loses(home(), 1); /* the renewal */
	passes(80 * MSEC);
	cluster.node[home()].clock_us += 45 * MSEC;
	feels(home(), MOOD_WELL);
	says(1, "TAKE mail");
	hears(1, "! RISK queue=mail *");
	hears(1, "! LOST queue=mail job=a reason=evicted");
	hears(1, "OK queue=mail job=a attempt=2 * name=l *");
	passes(AGAIN_US);
	hears_nothing(1);
	says(1, "DONE a");
	hears(1, "OK queue=mail job=a");
	says(1, "DONE a");
	hears(1, "ERR NOTHELD *");
	is_locked(false);
}

/* Session 1 was told that job a is lost; its home has it due again. */
static void has_lost_its_job(void)
{
	has_a_job();
	falls(home());
	passes(1960 * MSEC);
	hears(1, "! RISK queue=mail *");
	hears(1, "! LOST queue=mail job=a reason=quorum");
	comes(home());
	passes(SEC);
}

LOOP_TEST(a_job_that_is_taken_again_after_its_loss_can_be_finished, 4)
{
	has_lost_its_job();
	says(1, "TAKE mail");
	hears(1, "OK queue=mail job=a attempt=2 * name=l *");
	says(1, "CHECK mail job=a");
	hears(1, "OK queue=mail job=a attempt=2 *");
	says(1, "%s a%s", _i & 1 ? "RETRY" : "DONE", _i & 2 ? " queue=mail" : "");
	hears(1, "OK queue=mail job=a");
	is_locked(false);
	says(1, "DONE a");
	hears(1, "ERR NOTHELD *");
}

TEST(of_a_lost_job_and_one_of_that_id_in_another_queue_the_client_says_which)
{
	has_lost_its_job();
	says(2, "DEFER post hello id=a");
	hears(2, "OK *");
	says(1, "TAKE post");
	hears(1, "OK queue=post job=a attempt=1 *");
	says(1, "DONE a");
	hears(1, "ERR ARG *several queues*");
	says(1, "DONE a queue=mail");
	hears(1, "ERR LOST *");
	is_locked(false);
	says(1, "DONE a");
	hears(1, "OK queue=post job=a");
}

/* Two jobs, whose locks are held elsewhere, and two TAKEs: the second lock is refused when the home has said that nothing else is due. */
TEST(a_lock_that_is_refused_late_is_busy_beside_those_before)
{
	unsigned other;

	two_daemons(3);
	passes(SEC);
	says(2, "LOCK l1");
	hears(2, "OK *");
	says(2, "LOCK l2");
	hears(2, "OK *");
	says(1, "DEFER mail hello id=a lock=l1");
	hears(1, "OK *");
	says(1, "DEFER mail hello id=b lock=l2");
	hears(1, "OK *");
	session_opens(3, 0);
	other = home() == 0 ? 1 : 0;
	for (unsigned i = 0; i < 3; i++)
		if (i != home())
			feels(i, MOOD_SILENT);
	says(1, "@1 TAKE mail wait=1m");
	says(3, "@2 TAKE mail wait=1m");
	ck_assert_uint_eq(waiting_at(other), 2);
	serves(other, 1);
	serves(other, 1);
	ck_assert_uint_eq(waiting_at(other), 0);
	all_feel(MOOD_WELL);
	says(2, "UNLOCK l2");
	hears(2, "OK *");
	passes(1200 * MSEC);
	hears(unanswered(1) > 0 ? 3 : 1, "@? OK queue=mail job=b *");
}

/* Whoever has not read the first answer would run it without its lock. */
TEST(a_job_whose_lock_is_lost_is_not_what_the_next_take_answers_with)
{
	has_a_job();
	session_opens_as_admin(6, 0);
	says(6, "BREAK l");
	ignores(6);
	hears(1, "! LOST name=l *");
	passes(3 * SEC);
	says(4, "LOCK l");
	hears(4, "OK *");
	goes(1, GONE_RESET);
	resumes(5, &s1);
	hears(5, "\\* queue=mail job=a attempt=1 valid_ms=* name=l");
	hears(5, "OK session=* n=1");
	says(5, "@1 TAKE mail wait=20s");
	passes(SEC);
	hears_nothing(5);
	says(4, "UNLOCK l");
	hears(4, "OK *");
	passes(2 * SEC);
	hears(5, "@1 OK queue=mail job=a attempt=2 * name=l fence=* payload=hello");
	says(5, "DONE a");
	hears(5, "OK *");
	is_locked(false);
}

TEST(a_job_whose_lock_is_being_adopted_is_not_what_the_next_take_answers_with_yet)
{
	cluster_begin(3);
	s1 = says_hello(1, "grace=20s");
	says(2, "DEFER mail hello lock=l id=a");
	hears(2, "OK *");
	says(1, "TAKE mail");
	hears(1, "OK queue=mail job=a *");
	for (unsigned i = 0; i < 3; i++)
		if (i != home())
			falls(i);
	daemon_returns(0);
	passes(SEC);
	resumes(3, &s1);
	passes(3 * SEC);
	hears(3, "\\* queue=mail job=a attempt=1 valid_ms=* name=l*");
	hears(3, "OK session=* open=*");
	says(3, "TAKE mail");
	hears(3, "ERR UNAVAILABLE *");
	for (unsigned i = 0; i < 3; i++)
		if (i != home())
			comes(i);
	passes(2 * SEC);
	hears(3, "! SAFE name=l *");
	says(3, "TAKE mail");
	hears(3, "OK queue=mail job=a attempt=1 * name=l fence=* payload=hello");
}

/* Its lock ends sooner, since a quorum of its stores is away. */
TEST(a_take_promises_no_more_than_its_lock_lasts)
{
	has_a_job();
	for (unsigned i = 0; i < 3; i++)
		if (i != home())
			feels(i, MOOD_SILENT);
	passes(1500 * MSEC);
	ignores(1);
	goes(1, GONE_RESET);
	resumes(3, &s1);
	ignores(3);
	says(3, "TAKE mail");
	hears(3, "OK queue=mail job=a attempt=1 valid_ms=??? ttl_ms=2000 name=l *");
}

/* More jobs are due whose locks others hold than a pass gives back: whoever asks again goes on behind them. */
TEST(a_job_behind_many_whose_locks_are_held_is_found_by_asking_again)
{
	cluster_begin(1);
	for (unsigned i = 0; i < 150; i++) {
		says(1, "DEFER mail hello id=j%u lock=l%u", i, i % 30);
		hears(1, "OK *");
	}
	says(1, "DEFER mail hello id=free lock=free");
	hears(1, "OK *");
	for (unsigned i = 0; i < 30; i++) {
		says(2, "LOCK l%u", i);
		hears(2, "OK *");
	}
	for (unsigned i = 0; i < 2; i++) {
		says(3, "TAKE mail");
		hears(3, "BUSY queue=mail*");
		passes(100 * MSEC);
	}
	says(3, "TAKE mail");
	hears(3, "OK queue=mail job=free *");
	says(3, "TAKE mail");
	hears(3, "BUSY *");
}

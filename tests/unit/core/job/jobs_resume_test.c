/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/job/job.c, job.c: jobs of sessions that lose their connection, of the previous run of a daemon, and of hosts that stood still. */
#include "tests/fixture/mail_queue.h"
#include "tests/fixture/resumable.h"

#include <check.h>

#define ROW "\\* queue=mail job=a attempt=1 valid_ms=*"

static struct secret s1;

/* Session 1, which has grace, has a job with these fields of its DEFER. */
static void has_a_job(const char *fields, const char *take)
{
	cluster_begin(3);
	s1 = says_hello(1, "grace=20s");
	says(1, "DEFER mail x id=a%s", fields);
	hears(1, "OK *");
	says(1, "TAKE mail%s", take);
	hears(1, "OK queue=mail job=a *");
}

FIXTURE(.teardown = cluster_close)

TEST(a_job_is_kept_for_the_grace_and_is_a_row_of_resume)
{
	has_a_job(" lock=l", " ttl=1s");
	goes(1, GONE_RESET);
	passes(10 * SEC);
	says(2, "TAKE mail");
	hears(2, "BUSY *");
	resumes(3, &s1);
	hears(3, "\\* name=l *owner=job:mail/a");
	hears(3, ROW " name=l fence=*");
	hears(3, "OK session=* n=2");
	says(3, "DONE a");
	hears(3, "OK *");
	says(2, "TAKE mail");
	hears(2, "BUSY *");
}

TEST(a_job_whose_answer_may_be_lost_is_what_the_next_take_answers_with)
{
	has_a_job(" lock=l", " ttl=1s");
	says(2, "DEFER mail y id=b");
	hears(2, "OK *");
	goes(1, GONE_RESET);
	resumes(3, &s1);
	hears(3, "\\* name=l *owner=job:mail/a");
	hears(3, ROW " name=l fence=*");
	hears(3, "OK session=* n=2");
	says(3, "TAKE mail wait=1s");
	hears(3, "OK queue=mail job=a attempt=1 valid_ms=* ttl_ms=1000 name=l fence=* payload=x");
	says(3, "TAKE mail");
	hears(3, "OK queue=mail job=b attempt=1 *");
}

TEST(a_job_that_the_client_has_checked_is_not_given_to_it_again)
{
	has_a_job("", "");
	says(1, "CHECK mail job=a");
	hears(1, "OK *");
	goes(1, GONE_RESET);
	resumes(3, &s1);
	hears(3, ROW);
	hears(3, "OK session=* n=1");
	says(3, "TAKE mail");
	hears(3, "BUSY *");
}

TEST(a_job_that_is_checked_after_resume_is_not_given_again)
{
	has_a_job("", "");
	daemon_returns(0);
	passes(SEC);
	resumes(3, &s1);
	hears(3, ROW);
	hears(3, "OK session=* n=1");
	says(3, "CHECK mail job=a");
	hears(3, "OK *");
	daemon_returns(0);
	passes(SEC);
	resumes(3, &s1);
	hears(3, ROW);
	hears(3, "OK session=* n=1");
	says(3, "TAKE mail");
	hears(3, "BUSY *");
}

/* The client knows of it, whatever becomes of the adoption. */
TEST(a_job_that_is_checked_while_it_is_adopted_is_not_given_again)
{
	has_a_job("", "");
	falls(home());
	daemon_returns(0);
	passes(SEC);
	resumes(3, &s1);
	passes(3 * SEC);
	hears(3, "OK session=* n=0 open=*");
	says(3, "CHECK mail job=a");
	hears(3, "ERR UNAVAILABLE *");
	comes(home());
	passes(SEC);
	hears(3, "! SAFE queue=mail job=a *");
	says(3, "TAKE mail");
	hears(3, "BUSY *");
	says(3, "DONE a");
	hears(3, "OK *");
}

TEST(the_next_run_gives_a_job_again_whose_answer_may_be_lost)
{
	has_a_job("", "");
	daemon_returns(0);
	passes(SEC);
	resumes(3, &s1);
	hears(3, ROW);
	hears(3, "OK session=* n=1");
	says(3, "TAKE mail");
	hears(3, "OK queue=mail job=a attempt=1 * payload=x");
	says(3, "DONE a");
	hears(3, "OK *");
}

TEST(a_job_whose_grace_is_over_is_given_back)
{
	has_a_job("", " ttl=1s");
	goes(1, GONE_HANGUP);
	passes(21 * SEC);
	says(2, "TAKE mail");
	hears(2, "OK queue=mail job=a attempt=2 *");
}

TEST(the_next_run_adopts_a_job_and_its_lock)
{
	has_a_job(" lock=l", "");
	daemon_returns(0);
	passes(SEC);
	says(2, "TAKE mail");
	hears(2, "BUSY *");
	resumes(3, &s1);
	hears(3, "\\* name=l *owner=job:mail/a");
	hears(3, ROW " name=l fence=*");
	hears(3, "OK session=* n=2");
	passes(20 * SEC);
	says(3, "CHECK mail job=a");
	hears(3, "OK *");
	says(3, "DONE a");
	hears(3, "OK *");
}

LOOP_TEST(a_job_is_adopted_although_the_run_between_never_heard_of_its_home, 2)
{
	has_a_job("", "");
	feels(home(), _i ? MOOD_LOSSY : MOOD_SILENT);
	daemon_returns(0);
	passes(SEC);
	feels(home(), MOOD_WELL);
	daemon_returns(0);
	passes(SEC);
	resumes(3, &s1);
	hears(3, ROW);
	hears(3, "OK session=* n=1");
}

TEST(a_job_that_the_next_run_cannot_adopt_is_lost)
{
	has_a_job("", " ttl=2s");
	falls(home());
	daemon_returns(0);
	passes(SEC);
	resumes(3, &s1);
	hears_nothing(3);
	passes(2 * SEC);
	hears(3, "OK session=* n=0");
	hears(3, "! LOST queue=mail job=a reason=quorum");
}

/* _i & 1: the client was there, and may not have read LOST; & 2: the record is one of a snapshot. */
LOOP_TEST(a_loss_is_told_by_the_next_run_until_it_is_said, 4)
{
	has_a_job(" lock=l", " ttl=2s");
	if (!(_i & 1))
		goes(1, GONE_RESET);
	feels(home(), MOOD_SILENT);
	passes(5 * SEC);
	feels(home(), MOOD_WELL);
	passes(SEC);
	ignores(1);
	if (_i & 2)
		journal_is_compacted(0);
	cluster.conf.limits.renewals = 2000;
	daemon_returns(0);
	passes(SEC);
	resumes(2, &s1);
	hears(2, "\\* name=l *owner=job:mail/a");
	hears(2, "OK session=* n=1");
	hears(2, "! LOST queue=mail job=a reason=quorum");
	says(2, "TAKE other ttl=100ms"); /* a short lease beside those of the session, of which the loss is none */
	hears(2, "BUSY queue=other*");
	says(2, "CHECK mail job=a");
	hears(2, "ERR LOST reason=quorum*");
	daemon_returns(0);
	passes(SEC);
	resumes(3, &s1);
	hears(3, "\\* name=l *owner=job:mail/a");
	hears(3, "OK session=* n=1");
	hears(3, "! LOST queue=mail job=a reason=quorum");
	says(3, "DONE a");
	hears(3, "ERR LOST *");
	says(4, "LOCK l");
	hears(4, "OK *"); /* the answer has freed the lock of the job */
	says(4, "UNLOCK l");
	hears(4, "OK *");
	daemon_returns(0);
	passes(SEC);
	is_resumed_with_nothing(5, &s1);
	hears_nothing(5);
}

LOOP_TEST(a_job_that_was_lost_and_taken_again_is_adopted, 2)
{
	has_a_job("", " ttl=1s");
	feels(home(), MOOD_SILENT);
	passes(3 * SEC);
	hears(1, "! RISK *");
	hears(1, "! LOST queue=mail job=a reason=quorum");
	feels(home(), MOOD_WELL);
	passes(SEC);
	says(1, "TAKE mail ttl=5s");
	hears(1, "OK queue=mail job=a attempt=2 *");
	if (_i)
		journal_is_compacted(0);
	daemon_returns(0);
	passes(SEC);
	resumes(3, &s1);
	hears(3, "\\* queue=mail job=a attempt=2 valid_ms=*");
	hears(3, "OK session=* n=1");
	hears_nothing(3);
}

TEST(a_job_that_was_done_is_not_adopted)
{
	has_a_job("", "");
	says(1, "DONE a");
	hears(1, "OK *");
	daemon_returns(0);
	passes(SEC);
	is_resumed_with_nothing(3, &s1);
}

TEST(a_job_ends_earlier_by_as_long_as_its_host_stood_still)
{
	has_a_job("", " ttl=5s");
	passes(3 * SEC);
	clocks_go_on_without_us(20 * SEC);
	passes(3 * SEC);
	hears(1, "! LOST queue=mail job=a reason=*");
}

/* Sessions 1 and 2, and 1 once more, wait for a job of the queue, in this order. Session 1 loses its connection. */
static void the_first_of_the_line_is_cut_off(void)
{
	cluster_begin(3);
	s1 = says_hello(1, "grace=20s");
	says(1, "@a TAKE mail wait=forever");
	passes(MSEC);
	says(2, "TAKE mail wait=forever");
	says(1, "@b TAKE mail wait=forever");
	says(1, "@c TAKE news wait=forever");
	passes(MSEC);
	goes(1, GONE_RESET);
}

static void queue_gets(unsigned session, const char *queue, const char *id)
{
	says(session, "DEFER %s x id=%s", queue, id);
	hears(session, "OK *");
	passes(10 * MSEC);
}

TEST(a_take_that_is_repeated_after_resume_has_its_old_place)
{
	the_first_of_the_line_is_cut_off();
	is_resumed_with_nothing(3, &s1);
	says(3, "@d TAKE mail wait=forever");
	says(3, "@e TAKE mail wait=forever");
	says(3, "@f TAKE mail wait=forever");
	queue_gets(4, "mail", "1");
	hears(3, "@d OK queue=mail job=1 *");
	queue_gets(4, "mail", "2");
	hears(2, "OK queue=mail job=2 *");
	says(2, "TAKE mail wait=forever");
	queue_gets(4, "mail", "3");
	hears(3, "@e OK queue=mail job=3 *");
	queue_gets(4, "mail", "4");
	hears(3, "@f OK queue=mail job=4 *");
	queue_gets(4, "mail", "5");
	hears(2, "OK queue=mail job=5 *");
}

TEST(the_turn_passes_by_a_place_while_its_session_is_away)
{
	the_first_of_the_line_is_cut_off();
	queue_gets(4, "mail", "1");
	hears(2, "OK queue=mail job=1 *");
	says(2, "TAKE mail wait=forever");
	is_resumed_with_nothing(3, &s1);
	says(3, "TAKE mail wait=0");
	hears(3, "BUSY *"); /* it does not wait, and takes no place */
	says(3, "TAKE mail wait=forever");
	queue_gets(4, "mail", "2");
	hears(3, "OK queue=mail job=2 *");
}

LOOP_TEST(a_take_that_is_repeated_too_late_stands_last, 2)
{
	the_first_of_the_line_is_cut_off();
	is_resumed_with_nothing(3, &s1);
	passes(21 * SEC);
	says(3, "TAKE mail wait=forever");
	queue_gets(4, "mail", "1");
	hears(2, "OK queue=mail job=1 *");
	if (_i) { /* nor does another drop bring it back */
		goes(3, GONE_RESET);
		says(2, "TAKE mail wait=forever");
		is_resumed_with_nothing(5, &s1);
		says(5, "TAKE mail wait=forever");
		queue_gets(4, "mail", "2");
		hears(5, "OK queue=mail job=2 *");
	}
}

LOOP_TEST(places_go_over_a_second_drop_and_not_over_the_grace, 2)
{
	the_first_of_the_line_is_cut_off();
	is_resumed_with_nothing(3, &s1);
	goes(3, GONE_RESET);
	if (_i)
		passes(21 * SEC);
	resumes(5, &s1);
	hears(5, _i ? "ERR NOTFOUND *" : "OK session=* n=0");
	says(5, "TAKE mail wait=forever");
	queue_gets(4, "mail", "1");
	hears(_i ? 2 : 5, "OK queue=mail job=1 *");
}

TEST(a_waiting_take_goes_with_its_connection)
{
	cluster_begin(3);
	s1 = says_hello(1, "grace=20s");
	says(1, "TAKE mail wait=forever");
	goes(1, GONE_RESET);
	says(2, "DEFER mail x id=a");
	hears(2, "OK *");
	says(2, "TAKE mail");
	hears(2, "OK queue=mail job=a attempt=1 *");
	is_resumed_with_nothing(3, &s1);
}

TEST(a_daemon_that_stops_refuses_takes_and_leaves_jobs_to_their_leases)
{
	has_a_job("", "");
	says(2, "TAKE mail wait=forever");
	daemon_ends(0);
	daemon_starts(0);
	passes(SEC);
	says(3, "TAKE mail wait=forever");
	passes(8 * SEC);
	hears_nothing(3);
	passes(2 * SEC);
	hears(3, "OK queue=mail job=a attempt=2 *");
}

/* What its owner asks for during the adoption waits for that. Where the home of the queue answers and the other stores do not, the job is done before. */
LOOP_TEST(a_job_that_is_done_in_a_drain_leaves_nobody_waiting, 3)
{
	const char *line, *told = NULL;

	has_a_job(" lock=l", " ttl=1s");
	session_opens_as_admin(9, 0);
	all_feel(MOOD_SILENT);
	daemon_returns(0);
	feels((unsigned)_i, MOOD_WELL);
	passes(SEC);
	resumes(3, &s1);
	session_opens_as_admin(9, 0);
	says(3, "@w LOCK l owner=job:mail/a wait=1h");
	says(9, "DRAIN");
	says(3, "@d DONE a");
	passes(SEC);
	all_feel(MOOD_WELL);
	passes(20 * SEC);
	while ((line = next_line(3)))
		if (!strncmp(line, "@w ", 3))
			told = strstr(line, "ERR DRAINING");
	ck_assert_ptr_nonnull(told);
	ck_assert(service_is_drained(cluster.daemon[0].service));
}

TEST(a_job_that_is_lost_keeps_no_drain)
{
	has_a_job("", " ttl=1s");
	all_feel(MOOD_SILENT);
	passes(2 * SEC);
	hears(1, "! RISK *");
	hears(1, "! LOST *");
	all_feel(MOOD_WELL);
	passes(2 * SEC);
	session_opens_as_admin(9, 0);
	says(9, "DRAIN");
	passes(SEC);
	ck_assert(service_is_drained(cluster.daemon[0].service));
}

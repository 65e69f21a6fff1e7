/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/core/job/job.c, job.c, request/job_requests.c: the end of a job that was asked for and is not known, over a cut and over a crash of the
 * daemon.
 */
#include "tests/fixture/mail_queue.h"
#include "tests/fixture/resumable.h"

#include <check.h>

static struct secret s1;

/* Session 1, which has grace, has job a with lock l. */
static void has_a_job(const char *take)
{
	cluster_begin(3);
	s1 = says_hello(1, "grace=20s");
	says(2, "DEFER mail hello lock=l id=a");
	hears(2, "OK *");
	says(1, "TAKE mail%s", take);
	hears(1, "OK queue=mail job=a attempt=1 * name=l *");
}

/* What session 1 asks for is under way to the home. */
static void asks_and_it_hangs(const char *line)
{
	has_a_job("");
	feels(home(), MOOD_SILENT);
	says(1, "%s", line);
	breaks(home());
}

static void next_run(void)
{
	daemon_returns(0);
	passes(SEC);
	session_opens(3, 0);
	session_opens(5, 0);
}

static void is_locked(bool locked)
{
	says(3, "LOCK l");
	hears(3, locked ? "BUSY name=l *" : "OK name=l *");
}

FIXTURE(.teardown = cluster_close)

/* Loop: whether the journal was compacted meanwhile. */
LOOP_TEST(a_retry_that_arrives_after_a_crash_takes_the_job_from_nobody_who_has_it, 2)
{
	asks_and_it_hangs("RETRY a");
	if (_i)
		journal_is_compacted(0);
	next_run();
	is_resumed_with_nothing(5, &s1);
	arrives(home());
	says(3, "TAKE mail");
	hears(3, "OK queue=mail job=a attempt=2 *");
	says(5, "RETRY a");
	hears(5, "ERR NOTHELD *"); /* the first is carried out */
	says(3, "CHECK mail job=a");
	hears(3, "OK *");
}

static void what_was_asked_is_carried_out(const char *line, const char *rows)
{
	asks_and_it_hangs(line);
	next_run();
	is_resumed_with_nothing(5, &s1);
	says(3, "LIST jobs prefix=mail");
	hears(3, rows);
	serves_overtaken(home(), 0);
}

TEST(a_done_before_a_crash_is_carried_out_by_the_next_run)
{
	what_was_asked_is_carried_out("DONE a", "OK n=0");
	is_locked(false);
}

TEST(a_retry_before_a_crash_keeps_its_delay)
{
	what_was_asked_is_carried_out("RETRY a delay=1m", "\\* queue=mail job=a state=due due_ms=5[89]??? failed=1*");
	ignores(3);
	is_locked(false);
}

TEST(a_retry_that_counts_no_attempt_counts_none_after_a_crash)
{
	what_was_asked_is_carried_out("RETRY a failed=no", "\\* queue=mail job=a state=due * failed=0*");
	ignores(3);
	is_locked(false);
}

/* The answer to the first of them may have been lost with the connection, or with the daemon. */
LOOP_TEST(what_is_asked_again_is_answered_when_the_home_answers, 4)
{
	const char *line = _i & 1 ? "RETRY a" : "DONE a";

	has_a_job("");
	feels(home(), MOOD_SILENT);
	says(1, "%s", line);
	if (_i & 2)
		next_run();
	else
		goes(1, GONE_RESET);
	feels(home(), MOOD_SILENT);
	resumes(5, &s1);
	passes(100 * MSEC);
	ignores(5);
	says(5, "%s", line);
	passes(100 * MSEC);
	hears_nothing(5);
	feels(home(), MOOD_WELL);
	passes(200 * MSEC);
	hears(5, "OK queue=mail job=a");
	says(5, "%s", line);
	hears(5, "ERR NOTHELD *");
}

/* Else the client would take it for done: ERR NOTHELD says so. */
LOOP_TEST(an_end_that_nobody_heard_of_and_that_failed_is_a_loss, 2)
{
	has_a_job(" ttl=2s");
	feels(home(), MOOD_SILENT);
	says(1, "DONE a");
	goes(1, GONE_RESET);
	never_sends(home(), 1);
	falls(home());
	if (_i)
		daemon_returns(0);
	passes(3 * SEC);
	comes(home());
	passes(SEC);
	resumes(5, &s1);
	hears(5, "\\* name=l *owner=job:mail/a");
	hears(5, "OK session=* n=1");
	hears(5, "! LOST queue=mail job=a reason=quorum");
	says(5, "DONE a");
	hears(5, "ERR LOST reason=quorum*");
	is_locked(false);
}

TEST(a_request_beside_the_one_that_is_not_answered_finds_the_job_gone)
{
	has_a_job("");
	feels(home(), MOOD_SILENT);
	says(1, "@1 DONE a");
	says(1, "@2 DONE a");
	hears(1, "@2 ERR NOTHELD *");
	feels(home(), MOOD_WELL);
	hears(1, "@1 OK queue=mail job=a");
}

/* What the client asks for after the cut is not what it asked for before. */
TEST(another_end_than_the_one_under_way_is_refused)
{
	has_a_job("");
	feels(home(), MOOD_SILENT);
	says(1, "DONE a");
	goes(1, GONE_RESET);
	resumes(5, &s1);
	ignores(5);
	says(5, "RETRY a");
	hears(5, "ERR NOTHELD *");
	feels(home(), MOOD_WELL);
	passes(SEC);
	says(3, "LIST jobs prefix=mail");
	hears(3, "OK n=0");
}

/* The lease of the job was over before it, so the home has given the job to somebody else. */
TEST(an_end_that_comes_too_late_after_a_crash_is_a_loss)
{
	asks_and_it_hangs("DONE a");
	daemon_ends(0);
	serves_overtaken(home(), 0);
	passes(15 * SEC);
	daemon_inherits(0, 0);
	passes(SEC);
	session_opens(5, 0);
	session_opens(3, 0);
	says(3, "TAKE mail");
	hears(3, "OK queue=mail job=a attempt=2 *");
	resumes(5, &s1);
	hears(5, "OK session=* n=0");
	hears(5, "! LOST queue=mail job=a reason=quorum");
	hears(5, "! LOST name=l *");
	says(5, "DONE a");
	hears(5, "ERR LOST *");
	says(3, "DONE a");
	hears(3, "OK *");
}

/* --- a restart ------------------------------------------------------------------------------------------------------------------ */

static void home_is_well(void)
{
	cluster.node[home()].mood = MOOD_WELL;
}

/* Loop: its session has ended before, or would have begun with it. */
LOOP_TEST(a_job_that_no_session_has_is_given_back_by_the_next_process, 2)
{
	cluster_begin(3);
	defers(2, "a");
	if (_i)
		feels(home(), MOOD_TARDY);
	says(1, "TAKE mail ttl=30s wait=1m");
	if (!_i) {
		hears(1, "OK queue=mail job=a attempt=1 *");
		feels(home(), MOOD_SILENT);
		goes(1, GONE_HANGUP);
		says(2, "TAKE mail wait=1m");
	}
	daemon_hands_over(0, home_is_well);
	passes(2 * SEC);
	hears(_i ? 1 : 2, _i ? "OK queue=mail job=a attempt=1 *" : "OK queue=mail job=a attempt=2 *");
}

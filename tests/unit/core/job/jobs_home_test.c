/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/job/take.c, job.c, job_requests.c: the home of a queue is away, does not answer, forgets, or its clock jumps. */
#include "tests/fixture/full_window.h"
#include "tests/fixture/mail_queue.h"

#include <check.h>
#include <string.h>

FIXTURE(.teardown = cluster_close)

TEST(a_defer_is_acknowledged_only_when_the_home_has_stored_it)
{
	cluster_begin(3);
	feels(home(), MOOD_SILENT);
	says(1, "DEFER mail hello id=a");
	passes(20 * MSEC);
	hears_nothing(1);
	feels(home(), MOOD_WELL);
	hears(1, "OK queue=mail job=a due_ms=0");
	falls(home());
	says(1, "DEFER mail hello id=b");
	hears(1, "ERR UNAVAILABLE the home of the queue cannot be used: *");
}

TEST(a_defer_whose_answer_is_lost_is_repeated_and_is_one_job)
{
	cluster_begin(3);
	feels(home(), MOOD_LOSSY);
	says(1, "DEFER mail hello id=a");
	passes(20 * MSEC);
	feels(home(), MOOD_WELL);
	passes(200 * MSEC);
	hears(1, "OK queue=mail job=a due_ms=0");
	says(2, "TAKE mail");
	hears(2, "OK queue=mail job=a *");
	says(2, "TAKE mail");
	hears(2, "BUSY *");
	feels(home(), MOOD_LOSSY);
	says(1, "DEFER mail hello id=b");
	passes(2 * SEC);
	hears(1, "ERR UNAVAILABLE id=b may be stored: *");
}

TEST(a_job_whose_home_falls_silent_is_lost_before_the_lease_is_over)
{
	cluster_begin(3);
	defers(1, "a");
	says(2, "TAKE mail ttl=2s");
	hears(2, "OK *");
	falls(home());
	passes(1800 * MSEC);
	hears(2, "! RISK queue=mail job=a left_ms=*");
	passes(100 * MSEC);
	hears(2, "! LOST queue=mail job=a reason=quorum");
	comes(home());
	passes(SEC);
	says(2, "DONE a");
	hears(2, "ERR LOST *");
	says(2, "DONE a");
	hears(2, "ERR NOTHELD *");
}

TEST(a_job_whose_home_jumps_ahead_while_its_lock_is_asked_for_is_not_handed_out)
{
	cluster_begin(3);
	passes(61 * SEC);
	says(1, "DEFER mail hello lock=orders/1 id=a");
	hears(1, "OK *");
	for (unsigned i = 0; i < 3; i++)
		feels(i, i == home() ? MOOD_WELL : MOOD_SILENT);
	says(2, "TAKE mail ttl=2s");
	hears_nothing(2);
	cluster.node[home()].clock_us += 1900 * MSEC;
	says(3, "LOCK orders/2"); /* the answer shows it */
	all_feel(MOOD_WELL);
	hears(2, "ERR QUORUM *");
	ignores(3);
}

TEST(a_home_that_may_have_lost_its_memory_hands_out_no_job_until_it_has_joined)
{
	cluster_begin(3);
	restarts_blank(home());
	passes(SEC);
	says(1, "DEFER mail hello id=a");
	hears(1, "OK queue=mail job=a due_ms=0");
	says(2, "TAKE mail");
	hears(2, "ERR UNAVAILABLE *");
	says(2, "TAKE mail wait=forever");
	passes(QUARANTINE_US - 3 * SEC);
	hears_nothing(2);
	passes(3 * SEC);
	hears(2, "OK queue=mail job=a *");
}

/* That no job has the value says nothing: the lease may be over. */
TEST(a_done_of_unknown_outcome_is_not_acknowledged_once_its_home_has_jumped_ahead)
{
	two_daemons(3);
	passes(61 * SEC);
	says(1, "DEFER mail hello id=a");
	hears(1, "OK *");
	says(1, "TAKE mail ttl=3s");
	hears(1, "OK *");
	feels(home(), MOOD_SILENT);
	says(1, "DONE a");
	loses(home(), 1);
	cluster.node[home()].clock_us += 4 * SEC;
	feels(home(), MOOD_WELL);
	says(2, "TAKE mail");
	ignores(2);
	says(3, "LOCK orders/2"); /* the answer shows the jump */
	ignores(3);
	passes(200 * MSEC);
	hears(1, "ERR UNAVAILABLE *");
}

TEST(a_done_whose_answer_is_lost_is_repeated)
{
	cluster_begin(3);
	defers(1, "a");
	says(2, "TAKE mail");
	hears(2, "OK *");
	feels(home(), MOOD_LOSSY);
	says(2, "DONE a");
	passes(20 * MSEC);
	feels(home(), MOOD_WELL);
	passes(200 * MSEC);
	hears(2, "OK queue=mail job=a");
	passes(11 * SEC);
	says(3, "TAKE mail");
	hears(3, "BUSY *");
}

TEST(the_lock_of_a_job_stays_until_its_home_has_said_that_the_job_is_done)
{
	cluster_begin(3);
	says(1, "DEFER mail hello lock=l id=a");
	hears(1, "OK *");
	says(2, "TAKE mail");
	hears(2, "OK *");
	feels(home(), MOOD_SILENT);
	says(2, "DONE a");
	passes(10 * MSEC);
	hears_nothing(2);
	says(3, "LOCK l");
	hears(3, "BUSY name=l *");
	feels(home(), MOOD_WELL);
	hears(2, "OK queue=mail job=a");
	says(3, "LOCK l");
	hears(3, "OK name=l *");
}

TEST(a_take_whose_answer_is_lost_costs_no_attempt)
{
	cluster_begin(3);
	defers(1, "a");
	feels(home(), MOOD_LOSSY);
	says(2, "TAKE mail wait=forever");
	passes(60 * MSEC);
	feels(home(), MOOD_WELL);
	passes(500 * MSEC);
	hears(2, "OK queue=mail job=a attempt=1 *");
}

/* Store 0, the only one, answers the next question by this. */
static void answers(char code, struct span text)
{
	struct parcel *p;

	TAILQ_FOREACH(p, &cluster.daemon[0].queue[0], link)
		if (p->call.kind == CALL_HOME)
			break;
	ck_assert_ptr_nonnull(p);
	p->answer.code = code;
	p->answer.found = text;
	serves(0, waiting_at(0));
}

TEST(an_answer_that_makes_no_sense_is_no_ok_and_is_not_asked_for_again_at_once)
{
	static const struct {
		const char *request, *codes;
	} trial[] = {{"DEFER mail x", "JZ"}, {"RETRY x queue=mail", "JZ"}, {"TAKE mail", "JZ"}};
	unsigned calls;

	cluster_begin(1);
	says(1, "DEFER mail y");
	hears(1, "OK *");
	feels(0, MOOD_TARDY);
	for (unsigned i = 0; i < 3; i++)
		for (const char *code = trial[i].codes; *code; code++) {
			calls = asked(CALL_HOME);
			says(1, "%s", trial[i].request);
			answers(*code, SPAN("3:9:"));
			hears(1, "ERR UNAVAILABLE *makes no sense*");
			ck_assert_uint_eq(asked(CALL_HOME), calls + 1);
		}
}

/* The home tells one of these texts for each such request; the last is NULL. */
static void nonsense_is_heard_once(const char *request, const char *const text[], const char *answer)
{
	unsigned calls;

	cluster_begin(1);
	says(1, "DEFER mail y");
	hears(1, "OK *");
	feels(0, MOOD_TARDY);
	for (unsigned i = 0; text[i]; i++) {
		calls = asked(CALL_HOME);
		says(1, "%s", request);
		answers('T', span_of(text[i]));
		hears(1, answer);
		ck_assert_uint_eq(asked(CALL_HOME), calls + 1);
	}
}

/* The next piece begins where this one did, is nowhere, or a row ends in the middle. */
TEST(a_list_that_makes_no_sense_is_not_asked_for_again)
{
	static const char *const text[] = {"1:0", "1:7", "2:-11:a3:due1:01:00:", "3:9:", NULL};

	nonsense_is_heard_once("LIST jobs prefix=mail", text, "ERR UNAVAILABLE *makes no sense*");
}

TEST(a_list_of_queues_that_does_not_advance_ends)
{
	static const char *const text[] = {"1:0", "1:01:q1:11:01:02:-1", "3:9:", NULL};

	nonsense_is_heard_once("LIST queues", text, "ERR UNAVAILABLE no store can be asked for its queues: *makes no sense*");
}

/* A queue that begins between two pieces moves those behind it: the last one of the first piece is the first one of the second. */
TEST(a_queue_that_a_store_tells_twice_counts_once)
{
	cluster_begin(1);
	says(1, "DEFER mail y");
	hears(1, "OK *");
	feels(0, MOOD_TARDY);
	says(1, "LIST queues");
	answers('T', SPAN("1:21:b1:11:01:02:-11:c1:11:01:02:-1"));
	answers('T', SPAN("2:-11:c1:11:01:02:-11:d1:21:01:02:-1"));
	hears(1, "\\* queue=b due=1 leased=0 dead=0");
	hears(1, "\\* queue=c due=1 leased=0 dead=0");
	hears(1, "\\* queue=d due=2 leased=0 dead=0");
	hears(1, "OK n=3 more=0");
}

static bool home_was_asked_last_to(const char *operation)
{
	return strncmp(cluster.node[home()].last[CALL_HOME].table, operation, strlen(operation)) == 0;
}

/* "leave" and DROP need no joined home and "take" does: they wait in two lines, of which each has its turn. */
TEST(a_take_that_passes_the_leave_of_an_earlier_one_is_known_to_the_home_in_the_end)
{
	begins_with_window(3, 1);
	says(1, "@a TAKE mail wait=forever");
	passes(SEC);
	is_full(home(), 2);
	says(3, "DROP mail b");
	says(1, "CANCEL @a");
	(void)ignores(1);
	says(1, "@b TAKE mail wait=forever");
	for (unsigned i = 0; i < 20 && !home_was_asked_last_to("1:j5:leave"); i++)
		serves(home(), 1);
	ck_assert(home_was_asked_last_to("1:j5:leave"));
	feels(home(), MOOD_WELL);
	ck_assert(home_was_asked_last_to("1:j4:take"));
	(void)ignores(2);
	(void)ignores(3);
}

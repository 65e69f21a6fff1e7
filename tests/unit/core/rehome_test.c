/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/rehome.c, survey.c, defer.c: queues whose home is another store since the set of stores has changed. */
#include "tests/fixture/mail_queue.h"

#include <check.h>
#include <string.h>

#define MOVED (3 * SEC) /* from the first question about a queue until all that is due is at its home */

/* Daemon 0 has store 0 alone: the jobs of "mail" are there. */
static void one_store(void)
{
	cluster_open(3);
	cluster.conf.nodes = 1;
	daemon_starts(0);
	passes(2 * SEC);
}

/* Daemon 1 has three stores, and "mail" another home. Session 2 is there. */
static void two_stores_come(void)
{
	daemon_ends(0);
	cluster.conf.nodes = 3;
	cluster.conf.generation++;
	cluster.conf.trust_first_start = false;
	ck_assert_uint_ne(home(), 0);
	daemon_starts(1);
	passes(40 * SEC);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 3);
	session_opens(2, 1);
}

/* Somebody asks for a job of this queue at daemon 1. */
static void is_asked_for(const char *queue)
{
	says(2, "TAKE %s", queue);
	passes(10 * MSEC);
}

static void queues_are_used(void)
{
	is_asked_for("other");
	hears(2, "BUSY *");
}

FIXTURE(.teardown = cluster_close)

TEST(jobs_follow_their_queue_to_its_home)
{
	one_store();
	defers(1, "b");
	passes(MSEC);
	defers(1, "a");
	two_stores_come();
	queues_are_used();
	passes(MOVED);
	is_asked_for("mail");
	hears(2, "OK queue=mail job=b attempt=1 * payload=hello");
	is_asked_for("mail");
	hears(2, "OK queue=mail job=a attempt=1 * payload=hello");
	is_asked_for("mail");
	hears(2, "BUSY *");
	says(2, "DONE a");
	passes(10 * MSEC);
	hears(2, "OK *");
}

TEST(jobs_that_move_keep_their_places_and_locks)
{
	one_store();
	says(1, "DEFER mail hello id=z lock=l");
	hears(1, "OK *");
	two_stores_come();
	says(2, "DEFER mail younger id=a");
	passes(10 * MSEC);
	hears(2, "OK *");
	passes(MOVED);
	is_asked_for("mail");
	hears(2, "OK queue=mail job=z attempt=1 * name=l fence=* payload=hello");
	is_asked_for("mail");
	hears(2, "OK queue=mail job=a *");
}

TEST(a_job_that_is_due_later_is_moved_when_it_is_due)
{
	one_store();
	says(1, "DEFER mail hello id=a delay=1m");
	hears(1, "OK *");
	two_stores_come();
	queues_are_used();
	passes(MOVED);
	says(2, "LIST jobs prefix=mail");
	passes(10 * MSEC);
	hears(2, "\\* queue=mail job=a state=due due_ms=* failed=0 payload=hello");
	hears(2, "OK n=1");
	passes(20 * SEC);
	is_asked_for("mail");
	hears(2, "OK queue=mail job=a *");
}

/* Nobody renews the lease that daemon 0 had. */
TEST(a_job_that_is_leased_is_moved_when_the_lease_is_over)
{
	one_store();
	defers(1, "a");
	says(1, "TAKE mail ttl=30s");
	hears(1, "OK *");
	two_stores_come();
	queues_are_used();
	passes(MOVED);
	is_asked_for("mail");
	hears(2, "OK queue=mail job=a *");
}

static void fails_for_good(void)
{
	for (unsigned i = 0; i < cluster.conf.limits.attempts; i++) {
		says(1, "TAKE mail");
		hears(1, "OK *");
		says(1, "RETRY a");
		hears(1, "OK *");
	}
}

TEST(a_job_that_has_failed_for_good_is_listed_and_can_be_retried)
{
	one_store();
	defers(1, "a");
	fails_for_good();
	two_stores_come();
	queues_are_used();
	passes(MOVED);
	says(2, "LIST jobs prefix=mail");
	passes(10 * MSEC);
	hears(2, "\\* queue=mail job=a state=dead dead_ms=* failed=3 payload=hello");
	hears(2, "OK n=1");
	says(2, "RETRY b queue=mail");
	passes(10 * MSEC);
	hears(2, "ERR NOTFOUND *");
	says(2, "RETRY a queue=mail");
	passes(10 * MSEC);
	hears(2, "OK queue=mail job=a");
	passes(MOVED);
	is_asked_for("mail");
	hears(2, "OK queue=mail job=a attempt=1 *");
}

/* Job a has failed for good where it was, and b is due at home. */
static void is_at_two_stores(void)
{
	one_store();
	defers(1, "a");
	fails_for_good();
	two_stores_come();
	says(2, "DEFER mail younger id=b");
	passes(10 * MSEC);
	hears(2, "OK *");
}

TEST(a_queue_at_two_stores_is_listed_once)
{
	is_at_two_stores();
	says(2, "LIST queues");
	passes(10 * MSEC);
	hears(2, "\\* queue=mail due=1 leased=0 dead=1");
	hears(2, "OK n=1 more=0");
}

TEST(a_page_of_queues_has_what_all_stores_have_of_each)
{
	is_at_two_stores();
	says(2, "DEFER first x");
	passes(10 * MSEC);
	hears(2, "OK *");
	says(2, "LIST queues limit=2");
	passes(10 * MSEC);
	hears(2, "\\* queue=first due=1 leased=0 dead=0");
	hears(2, "\\* queue=mail due=1 leased=0 dead=1");
	hears(2, "OK n=2 more=0");
	says(2, "LIST queues limit=1");
	passes(10 * MSEC);
	hears(2, "\\* queue=first *");
	hears(2, "OK n=1 more=1");
}

TEST(a_page_ends_between_two_stores)
{
	is_at_two_stores();
	says(2, "LIST jobs prefix=mail limit=1");
	passes(10 * MSEC);
	hears(2, "\\* queue=mail job=b *");
	says(2, "LIST jobs prefix=mail after=%lld", (long long)number_in(hears(2, "OK n=1 after=*"), "after"));
	passes(10 * MSEC);
	hears(2, "\\* queue=mail job=a *");
	hears(2, "OK n=1");
	says(2, "LIST jobs prefix=mail after=30000000");
	hears(2, "ERR ARG *");
}

TEST(attempts_that_have_failed_count)
{
	one_store();
	defers(1, "a");
	says(1, "TAKE mail");
	hears(1, "OK *");
	says(1, "RETRY a");
	hears(1, "OK *");
	two_stores_come();
	queues_are_used();
	passes(MOVED);
	is_asked_for("mail");
	hears(2, "OK queue=mail job=a attempt=2 *");
}

static void job_is_run_once(void)
{
	is_asked_for("mail");
	hears(2, "OK queue=mail job=a attempt=1 *");
	says(2, "DONE a");
	passes(10 * MSEC);
	hears(2, "OK *");
	passes(20 * SEC);
	is_asked_for("mail");
	hears(2, "BUSY *");
}

/* The home has carried it out, and its answer is lost. */
TEST(a_job_whose_answer_is_lost_is_moved_once)
{
	one_store();
	defers(1, "a");
	two_stores_come();
	queues_are_used();
	feels(home(), MOOD_LOSSY);
	passes(MOVED);
	feels(home(), MOOD_WELL);
	passes(MOVED);
	job_is_run_once();
}

/* By the last question. */
static bool home_was_told(const char *op)
{
	struct span words = cluster.node[home()].last[CALL_HOME].call.value;

	return words.n > 0 && memmem(words.p, words.n, op, strlen(op));
}

/* What is refused then does not tell that the first try was not carried out. */
TEST(a_job_whose_answer_is_lost_as_its_home_goes_is_moved_once)
{
	one_store();
	defers(1, "a");
	two_stores_come();
	queues_are_used();
	feels(home(), MOOD_LOSSY);
	for (unsigned i = 0; i < 200 && !home_was_told("5:defer"); i++)
		passes(10 * MSEC);
	ck_assert(home_was_told("5:defer"));
	falls(home());
	passes(2 * SEC);
	feels(home(), MOOD_WELL);
	comes(home());
	passes(3 * SEC);
	job_is_run_once();
}

LOOP_TEST(a_home_that_is_full_or_away_gets_them_later, 2)
{
	one_store();
	defers(1, "a");
	cluster.conf.limits.jobs = 1;
	two_stores_come();
	if (_i == 0) {
		says(2, "DEFER mail x id=first");
		passes(10 * MSEC);
		hears(2, "OK *");
	} else {
		queues_are_used();
		falls(home());
	}
	passes(MOVED);
	if (_i == 0) {
		is_asked_for("mail");
		hears(2, "OK queue=mail job=first *");
		says(2, "DONE first");
		passes(10 * MSEC);
		hears(2, "OK *");
	} else {
		comes(home());
	}
	passes(25 * SEC);
	is_asked_for("mail");
	hears(2, "OK queue=mail job=a *");
}

TEST(a_daemon_that_uses_no_queues_asks_for_none)
{
	unsigned before;

	one_store();
	defers(1, "a");
	two_stores_come();
	before = asked(CALL_HOME);
	says(2, "LOCK l");
	hears(2, "OK *");
	passes(30 * SEC);
	ck_assert_uint_eq(asked(CALL_HOME), before);
}

/* Once all is where it belongs nobody looks any more, until a store joins again. */
TEST(the_looks_come_to_an_end)
{
	unsigned before;

	one_store();
	defers(1, "a");
	two_stores_come();
	queues_are_used();
	passes(10 * SEC);
	before = asked(CALL_HOME);
	passes(60 * SEC);
	ck_assert_uint_eq(asked(CALL_HOME), before);
}

/* A question of daemon 0 that a store has not answered. */
static struct parcel *question(unsigned *ret_node)
{
	struct parcel *p;

	for (unsigned i = 0; i < 3; i++)
		TAILQ_FOREACH(p, &cluster.daemon[0].queue[i], link)
			if (p->call.kind == CALL_HOME) {
				*ret_node = i;
				return p;
			}
	return NULL;
}

/* The next piece of the list begins where this one did. */
TEST(a_list_that_does_not_advance_is_asked_for_once)
{
	struct parcel *p;
	unsigned node, next;

	cluster_begin(3);
	says(1, "TAKE mail");
	hears(1, "BUSY *");
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_TARDY);
	for (unsigned i = 0; i < 200 && !question(&node); i++)
		passes(10 * MSEC);
	p = question(&node);
	ck_assert_ptr_nonnull(p);
	p->answer.code = 'T';
	p->answer.found = SPAN("1:0");
	serves(node, waiting_at(node));
	ck_assert_ptr_nonnull(question(&next));
	ck_assert_uint_ne(next, node);
}

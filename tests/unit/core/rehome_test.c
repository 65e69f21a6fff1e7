/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/rehome.c, survey.c, defer.c: queues whose home is another store since the set of stores has changed. */
#include "tests/fixture/mail_queue.h"

#include <check.h>

#define MOVED (3 * SEC) /* from the first question about a queue until all that is due is at its home */

/* The jobs of "mail" are at store 0, the only one of daemon 0. Daemon 1 has three, with another home for them. Session 2 is there. */
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

static void one_store(void)
{
	cluster_open(3);
	cluster.conf.nodes = 1;
	daemon_starts(0);
	passes(2 * SEC);
}

/* Somebody uses some queue. */
static void queues_are_used(void)
{
	says(2, "TAKE other");
	passes(10 * MSEC);
	hears(2, "BUSY *");
}

static void asks_for_a_job(unsigned k)
{
	says(k, "TAKE mail");
	passes(10 * MSEC);
}

START_TEST(jobs_follow_their_queue_to_its_home)
{
	one_store();
	defers(1, "a");
	passes(MSEC);
	defers(1, "b");
	two_stores_come();
	queues_are_used();
	passes(MOVED);
	asks_for_a_job(2);
	hears(2, "OK queue=mail job=a attempt=1 *payload=hello");
	asks_for_a_job(2);
	hears(2, "OK queue=mail job=b attempt=1 *payload=hello");
	asks_for_a_job(2);
	hears(2, "BUSY *");
}
END_TEST

Suite *rehome_suite(void)
{
	Suite *s = suite_create("rehome");
	TCase *t = tcase_create("rehome");

	tcase_add_checked_fixture(t, NULL, cluster_close);
	tcase_add_test(t, jobs_follow_their_queue_to_its_home);
	suite_add_tcase(s, t);
	return s;
}

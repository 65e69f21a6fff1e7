/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/job/job_list.c, queue.c: queues whose home is another store since the set of stores has changed. Their jobs stay where they are. */
#include "tests/fixture/mail_queue.h"

#include <check.h>

/* Daemon 0 has store 0 alone, and jobs a and b of "mail" are there. Daemon 1 has three stores, and "mail" another home. Session 2 is there. */
static void two_stores_come(void)
{
	cluster_open(3);
	cluster.conf.nodes = 1;
	daemon_starts(0);
	passes(2 * SEC);
	defers(1, "a");
	defers(1, "b");
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

/* The session asks this, and is told so. */
static void is_told(const char *line, const char *answer)
{
	says(2, "%s", line);
	passes(10 * MSEC);
	hears(2, answer);
}

FIXTURE(.teardown = cluster_close)

TEST(jobs_at_another_store_than_the_home_stay_there)
{
	two_stores_come();
	is_told("TAKE mail", "BUSY *");
	passes(60 * SEC);
	is_told("TAKE mail", "BUSY *");
	is_told("LIST jobs prefix=mail", "OK n=0");
	is_told("RETRY a queue=mail", "ERR NOTFOUND *");
	is_told("DROP mail a", "ERR NOTFOUND *");
}

TEST(a_queue_at_another_store_than_its_home_is_counted)
{
	two_stores_come();
	is_told("LIST queues", "OK n=0 more=0 astray=1");
	is_told("LIST queues prefix=x", "OK n=0 more=0");
	is_told("DEFER mail younger id=c", "OK *");
	is_told("DEFER first x", "OK *");
	is_told("LIST queues limit=1", "\\* queue=first due=1 leased=0 dead=0");
	hears(2, "OK n=1 more=1 astray=1");
	is_told("LIST queues after=first", "\\* queue=mail due=1 leased=0 dead=0");
	hears(2, "OK n=1 more=0 astray=1");
	is_told("TAKE mail", "OK queue=mail job=c *");
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/groups.c, restore.c: what the next run of the daemon reads of a LOCKALL in the journal, which may end between its records. */
#include "tests/fixture/groups.h"
#include "tests/fixture/resumable.h"

#include <check.h>

static struct secret s2; /* of session 2 */

FIXTURE(.teardown = cluster_close)

TEST(what_a_lockall_took_is_adopted_by_the_next_run)
{
	cluster_begin(3);
	s2 = says_hello(2, "grace=20s");
	says(2, "LOCKALL a b c");
	hears_all(2, "", "abc");
	daemon_returns(0);
	passes(SEC);
	resumes(4, &s2);
	hears(4, "\\* name=a *");
	hears(4, "\\* name=b *");
	hears(4, "\\* name=c *");
	hears(4, "OK session=* n=3");
}

TEST(a_lockall_whose_records_are_torn_was_told_to_nobody)
{
	for (unsigned torn = 1; torn <= 2; torn++) {
		cluster_begin(3);
		s2 = says_hello(2, "grace=20s");
		takes(2, "d");
		says(2, "LOCKALL a b c");
		ignores(2);
		journal_loses_tail(0, torn);
		daemon_returns(0);
		passes(SEC);
		resumes(4, &s2);
		hears(4, "\\* name=d *");
		hears(4, "OK session=* n=1");
		if (torn == 1)
			cluster_close();
	}
}

TEST(what_a_group_has_while_it_waits_is_not_in_the_journal)
{
	cluster_begin(3);
	takes(1, "b");
	s2 = says_hello(2, "grace=20s");
	takes(3, "a");
	says(2, "LOCKALL a b wait=1m");
	passes(2 * SEC);
	gives_back(3, "a");
	passes(50 * MSEC);
	ck_assert(key_is_there(0, "a"));
	daemon_returns(0);
	passes(SEC);
	is_resumed_with_nothing(4, &s2);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/group/groups.c, restore.c: what the next run of the daemon reads of a LOCKALL in the journal, which may end between its records. */
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

static void lacks_the_watchdog(struct journal_record *r)
{
	r->renew &= ~JOURNAL_RENEWED;
}

/* Earlier versions granted readers terms of their own, and wrote more about them behind a record. The journal ends behind the first record of the LOCKALL. */
LOOP_TEST(a_torn_lockall_of_readers_takes_nothing_else_away, 2)
{
	struct journal_record kept = {.kind = JOURNAL_KEPT, .name = SPAN("a"), .deadline_us = 1};

	cluster_begin(3);
	s2 = says_hello(2, "grace=20s");
	takes(2, "d");
	says(2, "LOCKALL a b mode=shared");
	ignores(2);
	journal_loses_tail(0, 1);
	kept.session = s2.serial;
	if (_i == 0)
		journal_changes(0, 3, lacks_the_watchdog);
	else
		journal_ends_by(0, &kept);
	daemon_returns(0);
	passes(SEC);
	resumes(4, &s2);
	hears(4, "\\* name=d *");
	hears(4, "OK session=* n=1");
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

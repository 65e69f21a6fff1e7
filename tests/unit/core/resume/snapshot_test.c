/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/reply/records.c: a snapshot of the journal is written while sessions go on, and the next run reads what is so in the end. */
#include "tests/fixture/resumable.h"

#define SESSIONS 6 /* 1 to 4 are there before it begins; 5 comes, and 6 comes and ends, while it is written */
#define PORTIONS 9 /* more than it has: one for each session, some of none, and the last */

static struct secret secret[SESSIONS + 1];

static void holds(unsigned k, const char *name)
{
	says(k, "LOCK %s", name);
	hears(k, "OK name=*");
}

static void lets_go(unsigned k, const char *name)
{
	says(k, "UNLOCK %s", name);
	hears(k, "OK *");
}

static void sessions_hold_names(void)
{
	cluster_open(3);
	cluster.conf.work = 1;
	daemon_starts(0);
	passes(2 * SEC);
	for (unsigned k = 1; k <= 4; k++)
		secret[k] = says_hello(k, "grace=30s");
	holds(1, "to-2");
	holds(2, "to-1");
	holds(3, "kept");
	holds(4, "gone");
	says(2, "@w LOCK to-2 wait=1m owner=w");
	says(1, "@w LOCK to-1 wait=1m owner=w");
}

/* Whatever order the snapshot has: what one lets go, one before it gets, and one behind it. */
static void all_changes(void)
{
	lets_go(1, "to-2");
	hears(2, "@w OK name=to-2 *");
	lets_go(2, "to-1");
	hears(1, "@w OK name=to-1 *");
	holds(3, "short");
	lets_go(3, "short");
	says(4, "QUIT");
	hears(4, "OK");
	secret[5] = says_hello(5, "grace=30s");
	holds(5, "gone");
	secret[6] = says_hello(6, "grace=30s");
	holds(6, "short");
	says(6, "QUIT");
	hears(6, "OK");
}

static void has_one(unsigned k, const char *name)
{
	resumes(10 + k, &secret[k]);
	ck_assert_ptr_nonnull(strstr(hears(10 + k, "\\* name=* fence=*"), name));
	hears(10 + k, "OK session=* n=1");
}

static void is_over(unsigned k)
{
	resumes(10 + k, &secret[k]);
	hears(10 + k, "ERR NOTFOUND *");
}

FIXTURE(.teardown = cluster_close)

LOOP_TEST(a_snapshot_reads_as_what_is_so_when_it_ends, PORTIONS)
{
	bool more = true;

	sessions_hold_names();
	journal_begins_anew(0);
	for (int i = 0; i < _i && more; i++)
		more = journal_goes_on(0);
	all_changes();
	while (more)
		more = journal_goes_on(0);
	daemon_returns(0);
	has_one(1, "to-1");
	has_one(2, "to-2");
	has_one(3, "kept");
	has_one(5, "gone");
	is_over(4);
	is_over(6);
}

/* Records are as long as their names, owners and notes. */
TEST(a_portion_ends_with_the_session_in_which_it_gets_long)
{
	cluster_open(3);
	daemon_starts(0);
	passes(2 * SEC);
	(void)says_hello(1, "grace=30s");
	for (unsigned i = 0; i < 300; i++) {
		says(1, "LOCK %0500u mode=shared owner=%0250u note=%0250u", 0, i, i);
		hears(1, "OK *");
	}
	journal_begins_anew(0);
	ck_assert(journal_goes_on(0));
	while (journal_goes_on(0))
		;
}

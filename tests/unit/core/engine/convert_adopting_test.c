/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/grant.c, engine.c: a hold that is being adopted is asked for in the other mode. */
#include "tests/fixture/adopting.h"
#include "tests/fixture/readers.h"

#include <check.h>

static struct secret s1;

/* Session 1, with grace, held a in this mode; its daemon is back, and 1 has resumed; no store can be asked. */
static void resumed_while_adopting(const char *mode)
{
	char fields[32];

	snprintf(fields, sizeof(fields), "mode=%s", mode);
	held_with_grace(3, "grace=30s", fields, &s1);
	daemon_is_back();
	resumes(1, &s1);
	passes(2 * SEC);
	hears(1, "OK session=* n=0 open=1");
}

FIXTURE(.teardown = cluster_close)

/* Nobody has heard of the downgrade but the journal: no answer shows an exclusive hold to its owner, whatever happens to the connection or the daemon. */
LOOP_TEST(a_downgraded_hold_is_shared_after_a_cut_and_for_the_next_run, 2)
{
	int64_t fence = held_with_grace(3, "grace=1m", "ttl=9s", &s1);

	all_feel(MOOD_SILENT);
	says(1, "LOCK a mode=shared wait=1m");
	hears(1, "OK name=a * count=1 mode=shared");
	if (_i)
		daemon_returns(0);
	else
		goes(1, GONE_RESET);
	all_feel(MOOD_WELL);
	passes(2 * SEC);
	resumes(3, &s1);
	ck_assert_int_eq(number_in(hears(3, "\\* name=a * count=1 mode=shared"), "fence"), fence);
	hears(3, "OK session=* n=1");
	says(3, "LOCK a mode=shared count=1");
	hears(3, "OK name=a * count=1 mode=shared");
	says(3, "LOCK a count=1");
	hears(3, "ERR ARG this owner holds it shared: *");
	passes(10 * SEC);
	session_opens(2, 0);
	says(2, "LOCK a mode=shared");
	ck_assert_int_gt(number_in(hears(2, "OK name=a * count=1 mode=shared"), "fence"), fence);
}

/* The previous run has told the client that it reads. */
LOOP_TEST(a_reader_that_asks_for_the_name_alone_during_the_adoption_is_refused, 2)
{
	resumed_while_adopting("shared");
	says(1, _i ? "@u LOCK a wait=1m" : "@u LOCK a");
	hears(1, "@u ERR ARG this owner holds it shared: UNLOCK it, then LOCK it exclusively");
	all_come();
	passes(14 * SEC);
	hears(1, "! SAFE *");
	says(1, "CHECK a");
	hears(1, "OK name=a * mode=shared");
}

/* What is being adopted may be lost already. The client asks again, as with EXTEND, and nothing has changed. */
LOOP_TEST(a_downgrade_during_the_adoption_is_refused_at_once, 2)
{
	resumed_while_adopting("exclusive");
	says(1, _i ? "@d LOCK a mode=shared wait=1m" : "@d LOCK a mode=shared");
	hears(1, "@d ERR QUORUM the daemon was restarted, *");
	all_come();
	passes(5 * SEC);
	hears(1, "! SAFE *");
	says(1, "CHECK a");
	hears(1, "OK name=a fence=* valid_ms=* count=1");
	says(1, "LOCK a mode=shared");
	hears(1, "OK name=a * count=1 mode=shared");
}

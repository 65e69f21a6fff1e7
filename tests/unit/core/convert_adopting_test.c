/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/convert.c, engine.c: a hold that is being adopted is asked for in the other mode. */
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

/* What CHECK says may be relied on, and the next run knows it from the journal. */
TEST(a_conversion_that_failed_leaves_a_hold_that_is_exclusive_for_the_next_run_as_well)
{
	held_with_grace(3, "grace=1m", "ttl=9s", &s1);
	all_feel(MOOD_SILENT);
	says(1, "@d LOCK a mode=shared wait=100ms");
	says(1, "CHECK a");
	hears(1, "OK name=a * count=1 mode=shared");
	passes(200 * MSEC);
	hears(1, "! RISK *");
	hears(1, "@d TIMEOUT *");
	all_feel(MOOD_WELL);
	passes(SEC);
	hears(1, "! SAFE *");
	says(1, "CHECK a");
	hears(1, "OK name=a * count=1");
	daemon_returns(0);
	session_opens(2, 0);
	says(2, "LOCK a mode=shared wait=3s");
	passes(3 * SEC);
	hears(2, "TIMEOUT *");
}

#define NOT_NOW "ERR ARG this owner waits for the lock in the other mode: *"

static const char *const asks[][2] = {
	{"CHECK a", "OK name=a *mode=shared"},
	{"EXTEND a", "OK name=a *mode=shared"},
	{"LOCK a", NOT_NOW},
	{"LOCK a count=1", NOT_NOW},
	{"LOCK a count=2 wait=1s", NOT_NOW},
	{"LOCKALL a", NOT_NOW},
	{"LOCKALL b a count=1", NOT_NOW},
	{"LOCKANY a", NOT_NOW},
};

/* Readers may come in at any moment, and the next run lets them in. */
LOOP_TEST(while_a_conversion_waits_no_answer_shows_an_exclusive_hold, 2 * sizeof(asks) / sizeof(asks[0]))
{
	const char *const *ask = asks[_i / 2], *line;

	held_with_grace(3, _i % 2 ? "grace=1m" : "", "ttl=9s", &s1);
	all_feel(MOOD_SILENT);
	says(1, "@d LOCK a mode=shared wait=1m");
	says(1, "@d2 LOCK a mode=shared wait=10ms");
	passes(20 * MSEC);
	hears(1, "@d2 TIMEOUT *");
	says(1, "%s", ask[0]);
	if (!strncmp(ask[0], "EXTEND", 6)) {
		all_feel(MOOD_WELL);
		passes(SEC);
		if (strncmp(line = next_line(1), "@d OK ", 6) != 0)
			ck_assert_ptr_nonnull(strstr(line, " mode=shared"));
		return;
	}
	hears(1, ask[1]);
}

/* Its client has repeated what it wants: the hold, and not the conversion. */
LOOP_TEST(after_a_cut_the_request_to_hold_it_once_withdraws_the_conversion, 2)
{
	held_with_grace(3, "grace=1m", "ttl=9s", &s1);
	all_feel(MOOD_SILENT);
	says(1, "@d LOCK a mode=shared wait=1m");
	goes(1, GONE_RESET);
	resumes(3, &s1);
	hears(3, "\\* name=a *mode=shared");
	hears(3, "OK session=* n=1");
	says(3, "LOCK a count=1");
	hears(3, "OK name=a fence=* valid_ms=* ttl_ms=9000 count=1");
	if (_i) {
		all_feel(MOOD_WELL);
		passes(20 * SEC);
		session_opens(2, 0);
		says(2, "LOCK a mode=shared");
		hears(2, "BUSY *");
		return;
	}
	daemon_returns(0);
	all_feel(MOOD_WELL);
	session_opens(2, 0);
	says(2, "LOCK a mode=shared wait=3s");
	passes(3 * SEC);
	hears(2, "TIMEOUT *");
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

TEST(a_conversion_asked_during_the_adoption_does_not_wait_for_those_that_came_earlier)
{
	resumed_while_adopting("exclusive");
	says(2, "LOCK a wait=1m");
	says(1, "@d LOCK a mode=shared wait=1m");
	all_come();
	passes(5 * SEC);
	hears(1, "! SAFE *");
	hears(1, "@d " READER);
	hears_nothing(2);
}

/* Nobody stands in its way, but no store is sure of its token so soon. */
TEST(a_conversion_that_does_not_wait_is_not_told_that_its_own_hold_is_in_the_way)
{
	resumed_while_adopting("exclusive");
	says(1, "@d LOCK a mode=shared");
	all_come();
	passes(SEC);
	hears(1, "! SAFE *");
	hears(1, "@d ERR QUORUM *");
	says(1, "CHECK a");
	hears(1, "OK name=a fence=* valid_ms=* count=1");
}

TEST(unlock_withdraws_the_conversion_that_was_asked_during_the_adoption)
{
	resumed_while_adopting("exclusive");
	says(2, "LOCK a wait=1m");
	says(1, "@c LOCK a mode=shared wait=1m");
	says(1, "UNLOCK a");
	hears(1, "OK name=a count=0");
	hears(1, "@c ERR CANCELLED *");
	all_come();
	passes(20 * SEC);
	hears(2, GRANT);
	hears_nothing(1);
}

TEST(a_conversion_whose_adoption_fails_waits_in_its_place_as_any_other)
{
	resumed_while_adopting("exclusive");
	says(2, "LOCK a wait=1m");
	says(1, "@c LOCK a mode=shared wait=1m");
	says(3, "LOCK a wait=1m");
	for (unsigned i = 0; i < 3; i++)
		memory_remove(cluster.node[i].memory, SPAN("a"));
	all_come();
	passes(11 * SEC);
	hears(1, "! LOST *");
	hears(2, GRANT);
	says(2, "UNLOCK a");
	passes(SEC);
	hears(1, "@c " READER);
	hears_nothing(3);
}

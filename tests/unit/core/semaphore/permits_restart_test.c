/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/semaphore/permit_restore.c: permits outlive their daemon, with the sessions that have them. */
#include "daemon/core/service/step.h"
#include "tests/fixture/cluster_part.h"

#include <check.h>
#include <stdio.h>

static char resume[128];

static void begins_with_grace(unsigned k)
{
	const char *line;

	says(k, "HELLO 1 grace=20s");
	line = hears(k, "OK proto=1 *");
	snprintf(resume, sizeof(resume), "RESUME %lld %.32s", (long long)number_in(line, "session"), strstr(line, "secret=") + 7);
}

FIXTURE(.teardown = cluster_close)

TEST(permits_are_adopted_by_the_next_run_of_the_daemon)
{
	cluster_begin(3);
	begins_with_grace(1);
	says(1, "ACQUIRE a limit=3");
	hears(1, "OK name=a permit=? *");
	says(1, "ACQUIRE a limit=3 owner=o");
	hears(1, "OK name=a permit=? *");
	daemon_returns(0);
	says(2, "%s", resume);
	passes(100 * MSEC);
	hears(2, "\\* name=a permit=? fence=* valid_ms=* count=1 limit=3");
	hears(2, "\\* name=a permit=? fence=* valid_ms=* count=1 limit=3 owner=o");
	hears(2, "OK session=* n=2");
	says(3, "ACQUIRE a limit=4");
	hears(3, "ERR LIMIT limit=3 *");
	says(3, "ACQUIRE a limit=3");
	hears(3, "OK name=a permit=? * free=0");
	says(4, "ACQUIRE a limit=3");
	hears(4, "BUSY name=a limit=3 free=0 waiters=0 holder=* held_ms=*");
	says(3, "RELEASE a");
	hears(3, "OK name=a free=1");
	says(2, "CHECK a");
	hears(2, "OK name=a permit=? *");
	says(2, "RELEASE a");
	hears(2, "OK name=a free=2");
	says(2, "RELEASE a owner=o");
	hears(2, "OK name=a free=3");
	says(3, "LOCK a");
	hears(3, "ERR KIND *"); /* a permit of a session without grace may still be relied on */
	passes(12 * SEC);
	says(3, "LOCK a");
	hears(3, "OK *");
}

TEST(a_permit_of_the_longest_owner_is_adopted_and_its_loss_is_remembered)
{
	char owner[OWNER_MAX_BYTES + 1];

	memset(owner, 'o', OWNER_MAX_BYTES);
	owner[OWNER_MAX_BYTES] = '\0';
	cluster_begin(3);
	begins_with_grace(1);
	says(1, "ACQUIRE a limit=3 owner=%s", owner);
	hears(1, "OK name=a permit=? *");
	daemon_returns(0);
	says(2, "%s", resume);
	passes(100 * MSEC);
	hears(2, "\\* name=a permit=? fence=* owner=o*");
	hears(2, "OK session=* n=1");
	all_feel(MOOD_SILENT);
	passes(12 * SEC);
	all_feel(MOOD_WELL);
	hears(2, "! RISK name=a *");
	hears(2, "! LOST name=a permit=? * owner=o*");
	daemon_returns(0);
	says(4, "%s", resume);
	passes(100 * MSEC);
	hears(4, "OK session=* n=0");
	hears(4, "! LOST name=a permit=? * owner=o*");
}

TEST(other_daemons_share_the_slots_with_a_daemon_that_was_started_again)
{
	two_daemons(3);
	begins_with_grace(1);
	says(1, "ACQUIRE a limit=2");
	hears(1, "OK *");
	daemon_returns(0);
	passes(100 * MSEC);
	says(2, "ACQUIRE a limit=2");
	hears(2, "OK name=a permit=? *");
	says(2, "ACQUIRE a limit=2");
	hears(2, "BUSY *");
	says(2, "ACQUIRE a limit=3");
	hears(2, "ERR LIMIT limit=2 *");
}

TEST(a_permit_that_was_released_is_not_adopted)
{
	cluster_begin(3);
	begins_with_grace(1);
	says(1, "ACQUIRE a limit=2");
	says(1, "ACQUIRE a limit=2");
	says(1, "RELEASE a");
	ignores(1);
	daemon_returns(0);
	says(2, "%s", resume);
	passes(100 * MSEC);
	hears(2, "\\* name=a permit=? fence=* valid_ms=* count=1 limit=2");
	hears(2, "OK session=* n=1");
}

TEST(a_permit_whose_slot_is_gone_is_lost)
{
	cluster_begin(3);
	begins_with_grace(1);
	says(1, "ACQUIRE a limit=1");
	hears(1, "OK *");
	for (unsigned i = 0; i < 3; i++)
		key_is_overwritten(i, SLOT_PREFIX "a#0", "someone", 1000 * SEC);
	daemon_returns(0);
	says(2, "%s", resume);
	passes(15 * SEC);
	hears(2, "OK session=* n=0*");
	hears(2, "! LOST name=a permit=0 fence=* reason=*");
	says(2, "CHECK a");
	hears(2, "ERR LOST *");
	says(2, "RELEASE a");
	hears(2, "ERR LOST *");
}

TEST(a_permit_whose_session_does_not_come_back_is_free_when_its_grace_is_over)
{
	cluster_begin(3);
	begins_with_grace(1);
	says(1, "ACQUIRE a limit=1");
	hears(1, "OK *");
	daemon_returns(0);
	says(2, "ACQUIRE a limit=1 wait=1m");
	passes(15 * SEC);
	hears_nothing(2);
	passes(20 * SEC);
	hears(2, "OK name=a permit=0 *");
}

TEST(a_permit_of_which_a_record_is_missing_is_dropped)
{
	cluster_begin(3);
	begins_with_grace(1);
	says(1, "ACQUIRE a limit=1");
	hears(1, "OK *");
	journal_loses_tail(0, 1);
	daemon_returns(0);
	says(2, "%s", resume);
	hears(2, "OK session=* n=0");
}

/* The slot goes while the client is away, or there: it may not have read the LOST that was sent to it. */
static void loses_a_slot(bool away)
{
	cluster_begin(3);
	begins_with_grace(1);
	says(1, "ACQUIRE a limit=4 owner=o");
	hears(1, "OK name=a permit=? *");
	if (away)
		goes(1, GONE_HANGUP);
	for (unsigned i = 0; i < 3; i++)
		for (unsigned slot = 0; slot < 4; slot++)
			memory_remove(cluster.node[i].memory, span_of((const char *[]){SLOT_PREFIX "a#0", SLOT_PREFIX "a#1", SLOT_PREFIX "a#2",
			                                                               SLOT_PREFIX "a#3"}[slot]));
	passes(5 * SEC);
	if (!away)
		hears(1, "! LOST name=a permit=? fence=* reason=evicted owner=o");
}

/* _i & 1: the client was away; & 2: the record is one of a snapshot. */
LOOP_TEST(a_loss_is_told_by_the_next_run_until_it_is_said, 4)
{
	loses_a_slot(_i & 1);
	if (_i & 2)
		journal_is_compacted(0);
	daemon_returns(0);
	says(2, "%s", resume);
	hears(2, "OK session=* n=0");
	hears(2, "! LOST name=a permit=? fence=* reason=evicted owner=o");
	says(2, "CHECK a owner=o");
	hears(2, "ERR LOST fence=* reason=evicted*");
	daemon_returns(0);
	says(3, "%s", resume);
	hears(3, "OK session=* n=0");
	hears(3, "! LOST name=a permit=? fence=* reason=evicted owner=o");
	says(3, "RELEASE a owner=o");
	hears(3, "ERR LOST fence=* reason=evicted*");
	daemon_returns(0);
	says(4, "%s", resume);
	hears(4, "OK session=* n=0");
	hears_nothing(4);
	says(4, "CHECK a owner=o");
	hears(4, "ERR NOTHELD *");
}

/* Nobody has a permit of the semaphore any more, so another limit is granted. The journal has the loss with the limit of then. */
TEST(a_loss_outlives_the_limit_of_its_semaphore)
{
	loses_a_slot(true);
	passes(9 * SEC);
	says(2, "ACQUIRE a limit=3");
	hears(2, "OK *");
	says(3, "HELLO 1 grace=20s");
	hears(3, "OK *");
	says(3, "ACQUIRE a limit=3");
	hears(3, "OK *");
	daemon_returns(0);
	says(4, "%s", resume);
	passes(100 * MSEC);
	hears(4, "OK session=* n=0");
	hears(4, "! LOST name=a permit=? fence=* reason=evicted owner=o");
	says(5, "ACQUIRE a limit=3");
	hears(5, "OK *");
	says(4, "RELEASE a owner=o");
	hears(4, "ERR LOST *");
	daemon_returns(0);
	says(6, "%s", resume);
	passes(100 * MSEC);
	hears(6, "OK session=* n=0");
	hears_nothing(6);
}

/* Its turn came while it was away, and so did its loss. */
TEST(the_loss_of_a_permit_of_which_the_client_never_heard_is_not_told)
{
	cluster_begin(3);
	begins_with_grace(1);
	says(2, "ACQUIRE a limit=1");
	hears(2, "OK *");
	says(1, "ACQUIRE a limit=1 wait=1m");
	goes(1, GONE_HANGUP);
	says(2, "RELEASE a");
	hears(2, "OK *");
	passes(100 * MSEC);
	for (unsigned i = 0; i < 3; i++)
		memory_remove(cluster.node[i].memory, SPAN(SLOT_PREFIX "a#0"));
	passes(5 * SEC);
	daemon_returns(0);
	says(3, "%s", resume);
	hears(3, "OK session=* n=0");
	hears_nothing(3);
}

static int is_restored(const struct journal_record *r)
{
	char bytes[JOURNAL_RECORD_MAX];
	struct event event = {.kind = EVENT_RESTORE, .journal = {.record = {bytes, journal_encode(r, bytes)}}};

	return daemon_step(0, &event);
}

/* Earlier builds granted these. */
LOOP_TEST(records_of_permits_of_several_slots_are_skipped, 2)
{
	static const char secret[] = "00112233445566778899aabbccddeeff", *const name[] = {"a", SLOT_PREFIX "a#0", SLOT_PREFIX "a#3"};
	struct journal_record away = {.kind = JOURNAL_SESSION, .session = 7, .secret = span_of(secret), .grace_us = 20 * SEC};
	struct journal_record lost = {.kind = JOURNAL_LOST, .session = 7, .name = SPAN("b"), .owner = SPAN("\001lost 6 4 2 0,3 o"), .fence = 9,
	                              .reason = SPAN("evicted")};

	cluster_open(3);
	daemon_is_made(0);
	ck_assert_int_eq(is_restored(&away), 0);
	for (unsigned i = 0; i < 6; i++) {
		struct journal_record r = {.kind = i < 3 ? JOURNAL_HELD : JOURNAL_FREED, .session = 7, .name = span_of(name[i % 3]),
		                           .owner = SPAN("\001permit 5 4 2 o"), .value = SPAN("v:1~4:0123456789ab00000000000000000000"), .count = 1, .fence = 9,
		                           .ttl_us = 10 * SEC, .renew = JOURNAL_PERMIT | JOURNAL_RENEWED, .notified = 1,
		                           .deadline_us = cluster.now.us + 9 * SEC};

		if (i < 3 || _i == 1)
			ck_assert_int_eq(is_restored(&r), 0);
	}
	ck_assert_int_eq(is_restored(&lost), 0);
	lost.kind = JOURNAL_FREED;
	ck_assert_int_eq(_i == 1 ? is_restored(&lost) : 0, 0);
	daemon_connects(0);
	passes(2 * SEC);
	says(1, "RESUME 7 %s", secret);
	hears(1, "OK session=7 n=0");
	says(1, "ACQUIRE a limit=2");
	hears(1, "OK name=a permit=? *");
	hears_nothing(1);
}

/* One request a millisecond for 46 days; the last number before they begin anew. */
LOOP_TEST(permits_outlive_a_daemon_that_has_served_billions_of_requests, 2)
{
	static const uint32_t served[] = {3999999999U, UINT32_MAX - 2};

	cluster_begin(3);
	begins_with_grace(1);
	says(1, "LOCK b");
	hears(1, "OK *");
	cluster.daemon[0].service->engine.asked = served[_i];
	says(1, "ACQUIRE a limit=1");
	hears(1, "OK *");
	says(1, "ACQUIRE c limit=1");
	hears(1, "OK *");
	daemon_returns(0);
	says(2, "%s", resume);
	passes(100 * MSEC);
	hears(2, "\\* name=b *");
	hears(2, "\\* name=a permit=0 *");
	hears(2, "\\* name=c permit=0 *");
	hears(2, "OK session=* n=3");
}

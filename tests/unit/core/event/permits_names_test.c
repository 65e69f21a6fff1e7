/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/event/event.h, SLOT_PREFIX: the slots of semaphores have names that no client can give. Any byte may stand in those of clients. */
#include "tests/fixture/cluster.h"

#include <check.h>
#include <stdio.h>

#define LIKE_SLOT_0 "\"\\x01s:a#0\""

FIXTURE(.teardown = cluster_close)

TEST(a_lock_whose_name_looks_like_a_slot_hinders_no_semaphore)
{
	two_daemons(3);
	says(1, "LOCK " LIKE_SLOT_0);
	hears(1, "OK name=*#0\" fence=* count=1");
	says(3, "ACQUIRE a limit=1");
	hears(3, "OK name=a permit=0 * free=0");
	says(3, "LOCK " LIKE_SLOT_0);
	hears(3, "BUSY name=*#0\" holder=*");
	says(2, "ACQUIRE a limit=1");
	hears(2, "BUSY name=a *");
	says(2, "LOCK " LIKE_SLOT_0);
	hears(2, "BUSY name=*#0\" holder=*");
	says(1, "UNLOCK " LIKE_SLOT_0);
	hears(1, "OK name=*#0\" count=0");
	says(2, "LOCK " LIKE_SLOT_0);
	hears(2, "OK name=*#0\" *");
}

TEST(a_semaphore_whose_name_looks_like_a_slot_is_a_semaphore)
{
	cluster_begin(3);
	says(1, "ACQUIRE a limit=1");
	hears(1, "OK name=a permit=0 *");
	says(2, "ACQUIRE " LIKE_SLOT_0 " limit=2");
	hears(2, "OK name=*#0\" permit=? * free=1");
	says(3, "LIST");
	hears(3, "\\* name=*#0\" kind=semaphore limit=2 held=1 waiters=0");
	hears(3, "\\* name=a kind=semaphore limit=1 held=1 waiters=0");
	hears(3, "OK n=2 more=0");
}

TEST(what_a_client_calls_like_a_slot_is_adopted_by_the_next_run)
{
	char resume[128];
	const char *line;

	cluster_begin(3);
	says(1, "HELLO 1 grace=20s");
	line = hears(1, "OK proto=1 *");
	snprintf(resume, sizeof(resume), "RESUME %lld %.32s", (long long)number_in(line, "session"), strstr(line, "secret=") + 7);
	says(1, "ACQUIRE \"\\x01s:a\" limit=2");
	hears(1, "OK *");
	says(1, "ACQUIRE " LIKE_SLOT_0 " limit=1");
	hears(1, "OK *");
	says(1, "LOCK \"\\x01s:a#1\"");
	hears(1, "OK *");
	daemon_returns(0);
	says(2, "%s", resume);
	passes(100 * MSEC);
	hears(2, "\\* name=*a#1\" fence=*");
	hears(2, "\\* name=*a\" permit=? *");
	hears(2, "\\* name=*a#0\" permit=0 *");
	hears(2, "OK session=* n=3");
}

TEST(a_semaphore_may_have_the_longest_name)
{
	static char name[NAME_MAX_BYTES + 1];
	char resume[128];
	const char *line;

	memset(name, 'a', NAME_MAX_BYTES);
	cluster_begin(3);
	says(1, "HELLO 1 grace=20s");
	line = hears(1, "OK proto=1 *");
	snprintf(resume, sizeof(resume), "RESUME %lld %.32s", (long long)number_in(line, "session"), strstr(line, "secret=") + 7);
	says(1, "ACQUIRE %s limit=1024", name);
	hears(1, "OK name=* permit=* free=1023");
	daemon_returns(0);
	says(2, "%s", resume);
	passes(100 * MSEC);
	hears(2, "\\* name=* permit=* limit=1024");
	hears(2, "OK session=* n=1");
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/reply/history.c: SHOW former=yes tells who held a name before, for how long, and how each hold ended. */
#include "tests/fixture/cluster.h"

#include "daemon/core/reply/history.h"

#include <check.h>
#include <stdio.h>

static void holds(unsigned k, int64_t us)
{
	says(k, "LOCK a");
	hears(k, GRANT);
	passes(us);
	says(k, "UNLOCK a");
	hears(k, "OK *");
}

FIXTURE(.teardown = cluster_close)

TEST(SHOW_tells_the_former_holders_the_last_one_first)
{
	cluster_begin(3);
	says(1, "HELLO 1 name=worker");
	hears(1, "OK *");
	holds(1, 2 * SEC);
	holds(2, 3 * SEC);
	passes(SEC);
	says(3, "SHOW a");
	hears(3, "OK n=0 free=yes");
	says(3, "SHOW a former=yes");
	hears(3, "\\* role=former pos=1 holder=* fence=* held_ms=3000 ended_ms=1000 end=released");
	hears(3, "\\* role=former pos=2 holder=\"worker *\" fence=* held_ms=2000 ended_ms=4000 end=released");
	hears(3, "OK n=2 free=yes");
	says(1, "LOCK a");
	hears(1, GRANT);
	says(3, "@t SHOW a former=yes");
	hears(3, "@t \\* role=holder pos=0 *");
	hears(3, "@t \\* role=former pos=1 *");
	hears(3, "@t \\* role=former pos=2 *");
	hears(3, "@t OK n=3");
}

TEST(how_a_hold_ended_is_told)
{
	cluster_begin(3);
	says(1, "LOCK a ttl=1s renew=no");
	hears(1, "OK *");
	passes(SEC);
	hears(1, "! LOST *");
	passes(SEC);
	says(2, "LOCK a");
	hears(2, "OK *");
	passes(SEC);
	says(2, "QUIT");
	hears(2, "OK*");
	says(3, "SHOW a former=yes");
	hears(3, "\\* role=former pos=1 * held_ms=1000 * end=quit");
	hears(3, "\\* role=former pos=2 * end=expired");
	hears(3, "OK n=2 free=yes");
}

TEST(short_holds_are_not_remembered_and_of_long_ones_the_last)
{
	char row[80];

	cluster_begin(3);
	holds(1, FORMER_LEAST_US - 1);
	says(3, "SHOW a former=yes");
	hears(3, "OK n=0 free=yes");
	for (unsigned i = 0; i < FORMER_HOLDS + 2; i++)
		holds(1, FORMER_LEAST_US + i * MSEC);
	says(3, "SHOW a former=yes");
	for (unsigned i = 1; i <= FORMER_HOLDS; i++) {
		snprintf(row, sizeof(row), "\\* role=former pos=%u * held_ms=%u *", i, 100 + FORMER_HOLDS + 2 - i);
		hears(3, row);
	}
	hears(3, "OK n=4 free=yes");
}

TEST(of_many_names_those_are_remembered_that_were_used_last)
{
	cluster_begin(1);
	holds(1, SEC);
	for (unsigned i = 0; i < FORMER_NAMES; i++) {
		if (i == FORMER_NAMES / 2)
			holds(1, SEC);
		says(1, "LOCK n%u", i);
		hears(1, "OK *");
		passes(FORMER_LEAST_US);
		says(1, "UNLOCK n%u", i);
		hears(1, "OK *");
	}
	says(3, "SHOW a former=yes");
	hears(3, "\\* role=former pos=1 *");
	hears(3, "\\* role=former pos=2 *");
	hears(3, "OK n=2 free=yes");
	says(3, "SHOW n0 former=yes");
	hears(3, "OK n=0 free=yes");
	says(3, "SHOW n1 former=yes");
	hears(3, "\\* role=former pos=1 *");
	hears(3, "OK n=1 free=yes");
}

TEST(a_part_of_a_group_is_told_once_it_is_a_hold)
{
	cluster_begin(3);
	says(2, "LOCK b");
	hears(2, "OK *");
	says(1, "LOCKALL a b wait=3s");
	passes(2 * SEC);
	says(3, "SHOW a former=yes");
	hears(3, "\\* role=holder pos=0 *");
	hears(3, "OK n=1");
	says(2, "UNLOCK b");
	hears(2, "OK *");
	hears(1, "\\* name=a *");
	hears(1, "\\* name=b *");
	hears(1, "OK n=2");
	passes(SEC);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	says(3, "SHOW a former=yes");
	hears(3, "\\* role=former pos=1 *");
	hears(3, "OK n=1 free=yes");
}

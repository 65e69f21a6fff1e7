/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/service/command.c: tags of requests that are under way, and CANCEL. */
#include "tests/fixture/cluster.h"

#include <check.h>

FIXTURE(.teardown = cluster_close)

TEST(a_tag_in_flight_cannot_be_used_again_until_it_is_answered)
{
	cluster_begin(1);
	says(1, "LOCK a");
	says(2, "@x LOCK a wait=1s");
	says(2, "@x PING");
	hears(2, "@x ERR TAGINUSE *");
	hears_nothing(2);
	passes(SEC);
	hears(2, "@x TIMEOUT *");
	says(2, "@x PING");
	hears(2, "@x OK");
	says(2, "@y LOCKALL a b wait=1s");
	says(2, "@y PING");
	hears(2, "@y ERR TAGINUSE *");
	passes(SEC);
	hears(2, "@y TIMEOUT *");
	ignores(1);
}

TEST(cancel_withdraws_a_waiting_request)
{
	cluster_begin(1);
	says(1, "LOCK a");
	says(2, "@x LOCK a wait=1m");
	says(2, "CANCEL @x");
	hears(2, "OK");
	hears(2, "@x ERR CANCELLED *");
	says(2, "CANCEL @x");
	hears(2, "ERR NOTFOUND *");
	says(1, "UNLOCK a");
	ck_assert(!key_is_there(0, "a"));
	ignores(1);
}

TEST(cancel_of_a_granted_request_finds_nothing_and_the_grant_stands)
{
	cluster_begin(1);
	says(1, "@x LOCK a wait=1m");
	hears(1, "@x " GRANT);
	says(1, "CANCEL @x");
	hears(1, "ERR NOTFOUND *");
	says(1, "CHECK a");
	hears(1, "OK name=a *");
}

TEST(cancel_while_the_stores_are_asked_leaves_nothing_behind)
{
	cluster_begin(3);
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_SILENT);
	says(1, "@x LOCK a");
	says(1, "CANCEL @x");
	hears(1, "OK");
	hears(1, "@x ERR CANCELLED *");
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_WELL);
	hears_nothing(1);
	for (unsigned i = 0; i < 3; i++)
		ck_assert(!key_is_there(i, "a"));
}

TEST(another_session_cannot_cancel)
{
	cluster_begin(1);
	says(1, "LOCK a");
	says(2, "@x LOCK a wait=1m");
	says(3, "CANCEL @x");
	hears(3, "ERR NOTFOUND *");
	hears_nothing(2);
	ignores(1);
}

TEST(the_next_waiter_with_another_ttl_gets_a_lease_of_its_own_after_a_cancel)
{
	cluster_begin(1);
	feels(0, MOOD_SILENT);
	says(1, "@x LOCK a wait=1m ttl=5s");
	says(2, "LOCK a wait=1m ttl=20s");
	says(1, "CANCEL @x");
	feels(0, MOOD_WELL);
	hears(2, "OK name=a fence=* valid_ms=19797 ttl_ms=20000 count=1");
	ignores(1);
}

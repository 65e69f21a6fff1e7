/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/member/member.c: a server whose place another has taken, as sentinels tell. */
#include "tests/fixture/cluster_part.h"
#include "tests/fixture/held_lock.h"

#include <check.h>
#include <string.h>

#define AT "10.0.0.2:6379"

FIXTURE(.teardown = cluster_close)

/* The other may be in quarantine since before the vote was given, and may grant before the lease ends. */
TEST(the_votes_of_a_server_that_was_replaced_are_void)
{
	cluster_begin(1);
	says(1, "LOCK a");
	hears(1, GRANT);
	is_replaced(0, 0, AT);
	hears(1, "! LOST name=a *");
	says(1, "CHECK a");
	hears(1, "ERR LOST *");
}

/* The new process asks the sentinels again. Which server it is they do not say: another address may be another spelling. 2: it is another server. */
LOOP_TEST(the_votes_of_a_server_that_is_replaced_during_a_restart_are_void, 3)
{
	cluster_begin(1);
	is_replaced(0, 0, "");
	comes_at(0, 0, "10.0.0.1:6379");
	passes(2 * SEC);
	says(1, "LOCK a");
	hears(1, GRANT);
	cluster.node[0].up = false;
	daemon_hands_over(0, NULL);
	cluster.node[0].up = true;
	if (_i == 2)
		is_replaced(0, 0, AT);
	comes_at(0, 0, _i ? AT : "10.0.0.1:6379");
	says(1, "CHECK a");
	hears(1, _i == 2 ? "! LOST name=a *" : "OK *");
}

/* Which would be the one that was replaced. */
TEST(the_next_process_is_not_told_where_a_server_is_that_was_replaced)
{
	struct service_store was;

	cluster_begin(1);
	is_replaced(0, 0, "");
	comes_at(0, 0, "10.0.0.1:6379");
	service_store(cluster.daemon[0].service, 0, &was);
	ck_assert_str_eq(was.address, "10.0.0.1:6379");
	is_replaced(0, 0, AT);
	service_store(cluster.daemon[0].service, 0, &was);
	ck_assert_str_eq(was.address, "");
}

TEST(a_server_that_is_only_away_keeps_its_votes)
{
	cluster_begin(1);
	says(1, "LOCK a");
	hears(1, GRANT);
	is_replaced(0, 0, "");
	hears_nothing(1);
	says(1, "CHECK a");
	hears(1, "OK *");
}

TEST(the_others_keep_the_lock)
{
	cluster_begin(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	is_replaced(0, 0, AT);
	hears_nothing(1);
	is_replaced(0, 1, AT);
	hears(1, "! LOST name=a *");
}

TEST(the_address_of_a_server_that_was_replaced_is_listed_and_its_name_stays)
{
	cluster_begin(3);
	is_replaced(0, 0, AT);
	strcpy(cluster.node[0].run_id, "promoted");
	comes_at(0, 0, AT);
	says(1, "LIST nodes");
	hears(1, "* node=* address=" AT " state=quarantine *");
	hears(1, "* node=* state=joined *");
	hears(1, "* node=* state=joined *");
	hears(1, "OK *");
	passes(QUARANTINE_US);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

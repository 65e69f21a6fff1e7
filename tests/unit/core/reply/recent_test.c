/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/reply/history.c and session.c: RECENT. */
#include "tests/fixture/noted_names.h"

TEST(the_name_that_was_locked_last_comes_first)
{
	alone();
	answers(1, "RECENT", "");
	takes(1, "a/1");
	takes(1, "b");
	takes(1, "a/2");
	answers(1, "RECENT", "a/2 b a/1");
	takes(1, "b");
	answers(1, "RECENT", "b a/2 a/1");
	answers(1, "RECENT limit=1", "b");
	answers(1, "RECENT prefix=a/", "a/2 a/1");
	cluster_close();
}

TEST(names_of_semaphores_are_remembered_as_well)
{
	alone();
	takes(1, "lock");
	says(1, "ACQUIRE licence limit=2");
	hears(1, "OK *");
	answers(1, "RECENT", "licence lock");
	answers(1, "COMPLETE li", "licence");
	cluster_close();
}

TEST(a_hundred_are_remembered)
{
	alone();
	takes_numbers(150, 3);
	answers(1, "RECENT limit=3", "149 148 147");
	answers(1, "RECENT prefix=05", "059 058 057 056 055 054 053 052 051 050");
	answers(1, "RECENT prefix=04", "");
	answers(1, "COMPLETE 00 limit=1", "000");
	cluster_close();
}

TEST(each_user_has_names_of_its_own)
{
	alone();
	session_opens_from_afar(3, 0);
	takes(1, "a");
	takes(3, "b");
	answers(1, "RECENT", "a");
	answers(3, "RECENT", "b");
	session_opens(4, 0); /* another session of the same user */
	answers(4, "RECENT", "a");
	cluster_close();
}

TEST(all_addresses_of_a_peer_are_one_user)
{
	static const struct peer first = {.pid = -1, .uid = -1, .address = "[2001:db8::1]:7"}, second = {.pid = -1, .uid = -1, .address = "[2001:db8::2]:7"};

	alone();
	session_opens_from(3, 0, &first);
	session_opens_from(4, 0, &second);
	takes(3, "a");
	answers(4, "RECENT", "a");
	cluster_close();
}

/* Not by its address, behind which there may be others. */
TEST(who_has_shown_a_user_has_the_names_of_that_user)
{
	alone();
	cluster.daemon[0].conf.users = true;
	service_reload(cluster.daemon[0].service, &cluster.daemon[0].conf);
	for (unsigned k = 3; k < 5; k++) {
		takes(k, "before");
		says(k, "AUTH %s secret", k == 3 ? "ann" : "bob");
		verification_ends(0, true);
		hears(k, "OK user=*");
		answers(k, "RECENT", "");
		takes(k, k == 3 ? "of-ann" : "of-bob");
	}
	answers(3, "RECENT", "of-ann");
	answers(4, "RECENT", "of-bob");
	answers(1, "RECENT", "before");
	says(4, "AUTH ann secret");
	verification_ends(0, true);
	hears(4, "OK user=ann");
	answers(4, "RECENT", "of-ann");
	cluster_close();
}

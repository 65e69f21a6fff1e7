/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/stay.c, expire.c: when the end of its own of a reader that nobody renews is told. */
#include "tests/fixture/readers.h"

#include <check.h>

/* The longer lead counts as soon as the longer lease does. A writer's lease is the rule that readers follow. */
START_TEST(an_extend_to_a_longer_ttl_loses_nothing_before_the_stores_have_answered)
{
	stores_have_room(3);
	says(2, _i == 0 ? "LOCK a mode=shared renew=no ttl=1s" : "LOCK a renew=no ttl=1s");
	hears(2, "OK *");
	passes(800 * MSEC);
	all_feel(MOOD_SILENT);
	says(2, "EXTEND a ttl=30s");
	passes(MSEC);
	hears_nothing(2);
	all_feel(MOOD_WELL);
	passes(MSEC);
	hears(2, "OK name=a *");
}
END_TEST

/*
 * The stores are away. A writer elsewhere bars the third reader, and nothing is heard of it for some seconds. Soon after, the second reader loses the lock: the
 * third joins, and its end comes before that of the first.
 */
START_TEST(the_end_of_a_reader_that_joins_as_another_ends_is_told)
{
	three_daemons(3);
	passes(SEC);
	says(1, "LOCK a mode=shared renew=no ttl=25s");
	hears(1, "OK *");
	says(4, "LOCK a mode=shared renew=no ttl=10s");
	hears(4, "OK *");
	passes(5500 * MSEC);
	is_wanted(0, 0, "a");
	says(5, "LOCK a mode=shared renew=no ttl=4s wait=1m");
	for (unsigned i = 0; i < 3; i++)
		falls(i);
	passes(3500 * MSEC);
	hears_nothing(5);
	passes(700 * MSEC);
	hears(4, "! LOST *");
	hears(5, "OK name=a * ttl_ms=4000 *");
	passes(4 * SEC);
	hears(5, "! LOST *");
	ignores(1);
}
END_TEST

/* It stood before all others in the line as long as it held. */
START_TEST(an_upgrader_that_ends_keeps_no_reader_of_higher_priority_out)
{
	cluster_open(1);
	cluster.conf.max_delay_us = 10 * SEC;
	cluster.conf.shared = false;
	daemon_starts(0);
	passes(2 * SEC);
	says(1, "LOCK a mode=shared renew=no ttl=30s");
	hears(1, "OK *");
	says(2, "LOCK a mode=shared renew=no ttl=25s");
	hears(2, "OK *");
	says(2, "@u LOCK a wait=1m");
	says(3, "LOCK a mode=shared priority=1 wait=1m");
	hears_nothing(3);
	passes(24 * SEC);
	hears_nothing(3);
	passes(500 * MSEC);
	hears(2, "! LOST *");
	hears(3, "OK *mode=shared");
	ignores(2);
}
END_TEST

Suite *own_end_suite(void)
{
	Suite *s = suite_create("own_end");
	TCase *c = tcase_create("own end");

	tcase_add_checked_fixture(c, NULL, cluster_close);
	tcase_add_loop_test(c, an_extend_to_a_longer_ttl_loses_nothing_before_the_stores_have_answered, 0, 2);
	tcase_add_test(c, the_end_of_a_reader_that_joins_as_another_ends_is_told);
	tcase_add_test(c, an_upgrader_that_ends_keeps_no_reader_of_higher_priority_out);
	suite_add_tcase(s, c);
	return s;
}

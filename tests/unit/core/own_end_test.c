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

Suite *own_end_suite(void)
{
	Suite *s = suite_create("own_end");
	TCase *c = tcase_create("own end");

	tcase_add_checked_fixture(c, NULL, cluster_close);
	tcase_add_loop_test(c, an_extend_to_a_longer_ttl_loses_nothing_before_the_stores_have_answered, 0, 2);
	suite_add_tcase(s, c);
	return s;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/reply/history.c: which names are noted, and COMPLETE. */
#include "daemon/core/reply/history.h"
#include "tests/fixture/noted_names.h"

TEST(COMPLETE_tells_the_names_of_a_prefix_in_their_order)
{
	alone();
	answers(1, "COMPLETE", "");
	takes(1, "b/2");
	takes(1, "a");
	takes(1, "b/1");
	takes(1, "\"b/ \\xff\"");
	takes(1, "c");
	answers(1, "COMPLETE b/", "\"b/ \\xff\" b/1 b/2");
	answers(1, "COMPLETE", "a \"b/ \\xff\" b/1 b/2 c");
	answers(1, "COMPLETE \"\" limit=2", "a \"b/ \\xff\"");
	answers(1, "COMPLETE b/2", "b/2");
	answers(1, "COMPLETE d", "");
	answers(1, "COMPLETE \"\\xff\"", "");
	cluster_close();
}

TEST(ten_are_told_unless_a_limit_is_given_and_a_thousand_at_most)
{
	alone();
	takes_numbers(15, 2);
	answers(1, "COMPLETE", "00 01 02 03 04 05 06 07 08 09");
	answers(1, "COMPLETE \"\" limit=1000", "00 01 02 03 04 05 06 07 08 09 10 11 12 13 14");
	says(1, "COMPLETE 0 limit=1001");
	hears(1, "ERR LIMIT limit may be at most 1000");
	says(1, "RECENT limit=101");
	hears(1, "ERR LIMIT limit may be at most 100");
	cluster_close();
}

/* Only a grant makes a name known. */
TEST(a_name_that_was_refused_is_not_noted)
{
	alone();
	says(1, "LOCK held");
	hears(1, "OK *");
	session_opens(3, 0);
	says(3, "LOCK held");
	hears(3, "BUSY *");
	says(3, "CHECK other");
	hears(3, "ERR NOTHELD *");
	says(3, "LOCKALL x y");
	hears(3, "\\* name=x *");
	hears(3, "\\* name=y *");
	hears(3, "OK n=2");
	answers(1, "COMPLETE", "held x y");
	cluster_close();
}

/* No store is asked: the answer comes at once. */
TEST(a_daemon_tells_the_names_that_it_has_granted_itself)
{
	together();
	takes(1, "a");
	takes(2, "b");
	passes(2 * SEC);
	answers(1, "COMPLETE", "a");
	answers(1, "RECENT", "a");
	answers(2, "COMPLETE", "b");
	answers(2, "RECENT", "b");
	cluster_close();
}

TEST(a_user_has_so_many_grants_noted_in_a_second_and_no_more)
{
	alone();
	takes_numbers(NOTES_OF_USER + 10, 1);
	session_opens_from_afar(3, 0);
	takes(3, "other");
	answers(1, "COMPLETE 511", "511");
	answers(1, "COMPLETE 512", "");
	answers(1, "COMPLETE o", "other");
	takes(1, "512"); /* they were looked at: there is room again */
	answers(1, "COMPLETE 512", "512");
	cluster_close();
}

TEST(a_second_later_more_are_noted_and_no_timer_is_left)
{
	int64_t timers;

	alone();
	timers = figure(0, METRIC_TIMERS);
	takes_numbers(NOTES_OF_USER + 10, 1);
	passes(NOTES_EVERY_US);
	ck_assert_int_eq(figure(0, METRIC_TIMERS), timers);
	takes(1, "512");
	answers(1, "COMPLETE 512", "512");
	cluster_close();
}

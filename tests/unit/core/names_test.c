/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/names.c and noted.c: which names are noted, how they go to the stores, and COMPLETE. */
#include "daemon/core/noted.h"
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

static void others_know(unsigned nodes)
{
	together(nodes);
	takes(1, "b");
	takes(1, "a");
	takes(2, "c");
	ck_assert_uint_eq(asked(CALL_NAMES), 0); /* nothing is written in a LOCK */
	answers(2, "COMPLETE", "c");
	passes(NOTES_EVERY_US);
	answers(2, "COMPLETE", "a b c");
	answers(2, "COMPLETE \"\" limit=2", "a b");
	answers(1, "COMPLETE c", "c");
	cluster_close();
}

TEST(a_name_is_known_at_other_daemons_after_a_second)
{
	others_know(1);
	others_know(3);
	others_know(5);
}

TEST(names_go_out_once_a_second_in_one_call_and_nobody_pays_when_nothing_is_locked)
{
	together(3);
	for (int i = 0; i < 20; i++)
		takes(1, i % 2 ? "a" : "b");
	passes(NOTES_EVERY_US);
	ck_assert_uint_eq(asked(CALL_NAMES), 3);
	passes(600 * SEC);
	ck_assert_uint_eq(asked(CALL_NAMES), 3);
	cluster_close();
}

TEST(more_names_than_one_call_takes_go_out_in_the_next_seconds)
{
	together(1);
	takes_numbers(NOTES_TOLD + 10, 1);
	passes(NOTES_EVERY_US);
	ck_assert_uint_eq(asked(CALL_NAMES), 1);
	answers(2, "COMPLETE 265", "");
	passes(NOTES_EVERY_US);
	answers(2, "COMPLETE 265", "265");
	cluster_close();
}

TEST(a_user_has_so_many_grants_noted_in_a_second_and_no_more)
{
	alone();
	takes_numbers(NOTES_OF_USER + 10, 1);
	session_opens_from_afar(3, 0);
	takes(3, "other");
	answers(1, "COMPLETE 1023", "1023");
	answers(1, "COMPLETE 1024", "");
	answers(1, "COMPLETE o", "other");
	takes(1, "1024"); /* they were looked at: there is room again */
	answers(1, "COMPLETE 1024", "1024");
	cluster_close();
}

/* --- stores that do not answer ---------------------------------------------------------------------------------------- */

TEST(without_an_answer_in_time_what_is_known_here_is_told_as_a_part)
{
	together(3);
	takes(1, "a");
	takes(2, "b");
	passes(2 * SEC);
	all_feel(MOOD_SILENT);
	says(1, "COMPLETE");
	hears_nothing(1);
	passes(SEC);
	ck_assert_str_eq(heard(1), "a ...");
	all_feel(MOOD_WELL);
	passes(5 * SEC);
	answers(1, "COMPLETE", "a b");
	cluster_close();
}

TEST(one_store_that_answers_is_enough)
{
	together(3);
	takes(1, "a");
	takes(2, "b");
	passes(2 * SEC);
	feels(0, MOOD_SILENT);
	feels(1, MOOD_SILENT);
	says(1, "COMPLETE");
	passes(SEC);
	ck_assert_str_eq(heard(1), "a b");
	cluster_close();
}

TEST(a_store_that_does_not_answer_keeps_no_name_from_the_others)
{
	together(3);
	feels(0, MOOD_SILENT);
	takes(1, "a");
	passes(2 * NOTES_EVERY_US);
	takes(1, "b");
	passes(2 * NOTES_EVERY_US);
	says(2, "COMPLETE");
	passes(SEC);
	ck_assert_str_eq(heard(2), "a b");
	cluster_close();
}

TEST(FORGET_without_a_store_fails_unless_the_name_is_known_here)
{
	together(1);
	takes(1, "a");
	passes(2 * SEC);
	falls(0);
	says(1, "FORGET a");
	hears(1, "OK name=a");
	says(1, "FORGET b");
	hears(1, "ERR UNAVAILABLE *");
	answers(1, "RECENT", "...");
	cluster_close();
}

TEST(names_of_which_no_store_was_told_go_out_again_with_the_next)
{
	together(1);
	takes(1, "a");
	refuses(0, "OOM no memory");
	passes(600 * SEC);
	ck_assert_uint_eq(asked(CALL_NAMES), 1); /* a store that refuses for ever is not asked without end */
	feels(0, MOOD_WELL);
	takes(1, "b");
	passes(2 * NOTES_EVERY_US);
	answers(2, "COMPLETE", "a b");
	cluster_close();
}

TEST(a_session_may_go_while_the_stores_are_asked)
{
	together(3);
	all_feel(MOOD_SILENT);
	says(1, "@a COMPLETE x");
	says(1, "RECENT");
	goes(1, GONE_HANGUP);
	says(2, "@a RECENT");
	says(2, "@a RECENT");
	hears(2, "@a ERR TAGINUSE *");
	passes(SEC);
	all_feel(MOOD_WELL);
	passes(5 * SEC);
	hears(2, "@a OK n=0 partial=yes");
	cluster_close();
}

/* Else who only asks for names keeps the stores too busy to renew a lease. */
TEST(a_store_is_asked_one_question_about_names_at_a_time)
{
	together(3);
	takes(1, "a");
	takes(2, "b");
	passes(3 * SEC);
	all_feel(MOOD_SILENT);
	for (unsigned i = 0; i < 60; i++)
		says(1, i % 2 ? "@t%u RECENT" : "@t%u COMPLETE", i);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(waiting_at(i), 1);
	says(1, "@f FORGET a"); /* is heard by all, though they have no time */
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(waiting_at(i), 2);
	all_feel(MOOD_WELL);
	for (unsigned i = 0, heard_of_f = 0; i < 61; i++) {
		const char *line = next_line(1);

		while (line && strstr(line, " * name="))
			line = next_line(1);
		ck_assert_ptr_nonnull(line);
		heard_of_f += strncmp(line, "@f OK name=a", 12) == 0;
		ck_assert_msg(strstr(line, " OK "), "%s", line);
		ck_assert(i < 60 || heard_of_f == 1);
	}
	hears_nothing(1);
	answers(1, "RECENT", "");
	cluster_close();
}

/* One store hangs, and is asked once; the others go on. */
TEST(questions_about_names_that_a_store_has_no_time_for_are_answered_without_it)
{
	together(3);
	takes(1, "a");
	takes(2, "b");
	passes(3 * SEC);
	feels(2, MOOD_SILENT);
	for (unsigned i = 0; i < 20; i++)
		says(1, "@t%u COMPLETE", i);
	ck_assert_uint_eq(waiting_at(2), 1);
	passes(200 * MSEC);
	for (unsigned i = 0; i < 20; i++) {
		hears(1, "@* \\* name=a");
		hears(1, "@* \\* name=b");
		hears(1, "@* OK n=2");
	}
	feels(2, MOOD_WELL);
	passes(SEC);
	answers(1, "COMPLETE", "a b");
	falls(2);
	answers(1, "COMPLETE", "a b");
	cluster_close();
}

/* Those that were not asked before the time is over are not asked at all. */
TEST(questions_about_names_that_no_store_has_time_for_end)
{
	unsigned before;

	together(1);
	takes(1, "a");
	passes(3 * SEC);
	all_feel(MOOD_SILENT);
	before = asked(CALL_NAMES);
	for (unsigned i = 0; i < 20; i++)
		says(1, "@t%u COMPLETE", i);
	passes(200 * MSEC);
	for (unsigned i = 0; i < 20; i++) {
		hears(1, "@* \\* name=a");
		hears(1, "@* OK n=1 partial=yes");
	}
	all_feel(MOOD_WELL);
	passes(SEC);
	ck_assert_uint_eq(asked(CALL_NAMES), before + 1);
	answers(1, "COMPLETE", "a");
	cluster_close();
}

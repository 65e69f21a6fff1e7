/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/names.c and noted.c: COMPLETE, RECENT and FORGET. */
#include "daemon/core/noted.h"
#include "tests/fixture/cluster.h"

#include <check.h>
#include <stdio.h>

/* Session 1 at daemon 0 on its own store. */
static void alone(void)
{
	cluster_open(1);
	cluster.conf.names = true;
	cluster.conf.shared = false;
	daemon_starts(0);
	passes(QUARANTINE_US + SEC);
	session_opens(1, 0);
}

/* Daemons 0 and 1, with sessions 1 and 2. */
static void together(unsigned nodes)
{
	cluster_open(nodes);
	cluster.conf.names = true;
	daemon_starts(0);
	passes(QUARANTINE_US + SEC);
	daemon_starts(1);
	passes(2 * SEC);
	session_opens(1, 0);
	session_opens(2, 1);
}

static void takes(unsigned k, const char *name)
{
	says(k, "LOCK %s wait=5s", name);
	hears(k, "OK name=*");
	says(k, "UNLOCK %s", name);
	hears(k, "OK name=*");
}

/* The names of the next answer to k, with blanks between. */
static const char *heard(unsigned k)
{
	static char names[4096];
	const char *line;
	size_t n = 0;

	names[0] = 0;
	while ((line = next_line(k)) && strncmp(line, "* name=", 7) == 0)
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", n > 0 ? " " : "", line + 7);
	ck_assert_ptr_nonnull(line);
	ck_assert_msg(strncmp(line, "OK n=", 5) == 0, "%s", line);
	if (strstr(line, " partial=yes"))
		snprintf(names + n, sizeof(names) - n, "%s...", n > 0 ? " " : "");
	return names;
}

#define answers(k, request, names) \
	do { \
		says(k, request); \
		ck_assert_str_eq(heard(k), names); \
	} while (0)

START_TEST(names_that_start_so_are_told_in_their_order)
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
END_TEST

START_TEST(ten_are_told_unless_a_limit_is_given_and_a_thousand_at_most)
{
	alone();
	for (int i = 0; i < 15; i++) {
		char name[8];

		snprintf(name, sizeof(name), "n%02d", i);
		takes(1, name);
	}
	answers(1, "COMPLETE", "n00 n01 n02 n03 n04 n05 n06 n07 n08 n09");
	answers(1, "COMPLETE n limit=1000", "n00 n01 n02 n03 n04 n05 n06 n07 n08 n09 n10 n11 n12 n13 n14");
	says(1, "COMPLETE n limit=1001");
	hears(1, "ERR LIMIT limit may be at most 1000");
	says(1, "RECENT limit=101");
	hears(1, "ERR LIMIT limit may be at most 100");
	cluster_close();
}
END_TEST

/* Of those that were locked, not of those that somebody asked for in vain. */
START_TEST(a_name_that_was_refused_is_not_noted)
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
END_TEST

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

START_TEST(a_name_is_known_at_other_daemons_after_a_second)
{
	others_know(1);
	others_know(3);
	others_know(5);
}
END_TEST

START_TEST(names_go_out_once_a_second_in_one_call_and_nobody_pays_when_nothing_is_locked)
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
END_TEST

START_TEST(more_names_than_one_call_takes_go_out_in_the_next_seconds)
{
	together(1);
	for (unsigned i = 0; i < NOTES_TOLD + 10; i++) {
		char name[8];

		snprintf(name, sizeof(name), "%x", i);
		takes(1, name);
	}
	passes(NOTES_EVERY_US);
	ck_assert_uint_eq(asked(CALL_NAMES), 1);
	answers(2, "COMPLETE 109", "");
	passes(NOTES_EVERY_US);
	answers(2, "COMPLETE 109", "109");
	cluster_close();
}
END_TEST

START_TEST(of_one_user_so_many_grants_are_noted_in_a_second)
{
	alone();
	for (unsigned i = 0; i < NOTES_OF_USER + 10; i++) {
		char name[8];

		snprintf(name, sizeof(name), "%x", i);
		takes(1, name);
	}
	session_opens_from_afar(3, 0);
	takes(3, "other");
	answers(1, "COMPLETE 3ff", "3ff");
	answers(1, "COMPLETE 400", "");
	answers(1, "COMPLETE o", "other");
	takes(1, "400"); /* they were looked at: there is room again */
	answers(1, "COMPLETE 400", "400");
	cluster_close();
}
END_TEST

/* --- RECENT and FORGET ------------------------------------------------------------------------------------------------ */

START_TEST(the_name_that_was_locked_last_comes_first)
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
END_TEST

START_TEST(a_hundred_are_remembered)
{
	alone();
	for (int i = 0; i < 150; i++) {
		char name[8];

		snprintf(name, sizeof(name), "%03d", i);
		takes(1, name);
	}
	answers(1, "RECENT limit=3", "149 148 147");
	answers(1, "RECENT prefix=05", "059 058 057 056 055 054 053 052 051 050");
	answers(1, "RECENT prefix=04", "");
	answers(1, "COMPLETE 00 limit=1", "000");
	cluster_close();
}
END_TEST

START_TEST(each_user_has_names_of_its_own)
{
	alone();
	session_opens_from_afar(3, 0);
	takes(1, "a");
	takes(3, "b");
	answers(1, "RECENT", "a");
	answers(3, "RECENT", "b");
	session_opens(4, 0); /* another session of the same user */
	answers(4, "RECENT", "a");
	says(4, "FORGET b");
	hears(4, "ERR NOTFOUND *");
	answers(3, "RECENT", "b");
	cluster_close();
}
END_TEST

START_TEST(what_is_forgotten_comes_back_when_it_is_locked_again)
{
	together(3);
	takes(1, "a");
	takes(1, "b");
	passes(2 * SEC);
	says(1, "FORGET a");
	hears(1, "OK name=a");
	answers(1, "RECENT", "b");
	says(1, "FORGET a");
	hears(1, "ERR NOTFOUND *");
	passes(2 * SEC);
	answers(1, "RECENT", "b");
	answers(1, "COMPLETE a", "a"); /* it is still a name */
	takes(1, "a");
	answers(1, "RECENT", "a b");
	cluster_close();
}
END_TEST

START_TEST(a_daemon_that_was_started_again_knows_them_from_the_stores)
{
	together(3);
	takes(1, "a");
	takes(1, "b");
	takes(1, "a");
	passes(2 * SEC);
	daemon_ends(0);
	daemon_starts(0);
	passes(2 * SEC);
	session_opens(3, 0);
	answers(3, "RECENT", "a b");
	takes(3, "c");
	answers(3, "RECENT", "c a b");
	says(3, "FORGET b");
	hears(3, "OK name=b");
	answers(3, "RECENT", "c a");
	answers(3, "COMPLETE", "a b c");
	cluster_close();
}
END_TEST

/* --- stores that do not answer ---------------------------------------------------------------------------------------- */

START_TEST(without_an_answer_in_time_what_is_known_here_is_told_as_a_part)
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
END_TEST

START_TEST(one_store_that_answers_is_enough)
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
END_TEST

START_TEST(a_store_that_does_not_answer_keeps_no_name_from_the_others)
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
END_TEST

START_TEST(where_no_store_can_be_asked_forget_says_so_unless_it_is_known_here)
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
END_TEST

START_TEST(names_of_which_no_store_was_told_go_out_again_with_the_next)
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
END_TEST

START_TEST(a_session_may_go_while_the_stores_are_asked)
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
END_TEST

Suite *names_suite(void)
{
	Suite *s = suite_create("names");
	TCase *t = tcase_create("names");

	tcase_add_test(t, names_that_start_so_are_told_in_their_order);
	tcase_add_test(t, ten_are_told_unless_a_limit_is_given_and_a_thousand_at_most);
	tcase_add_test(t, a_name_that_was_refused_is_not_noted);
	tcase_add_test(t, a_name_is_known_at_other_daemons_after_a_second);
	tcase_add_test(t, names_go_out_once_a_second_in_one_call_and_nobody_pays_when_nothing_is_locked);
	tcase_add_test(t, more_names_than_one_call_takes_go_out_in_the_next_seconds);
	tcase_add_test(t, of_one_user_so_many_grants_are_noted_in_a_second);
	tcase_add_test(t, the_name_that_was_locked_last_comes_first);
	tcase_add_test(t, a_hundred_are_remembered);
	tcase_add_test(t, each_user_has_names_of_its_own);
	tcase_add_test(t, what_is_forgotten_comes_back_when_it_is_locked_again);
	tcase_add_test(t, a_daemon_that_was_started_again_knows_them_from_the_stores);
	tcase_add_test(t, without_an_answer_in_time_what_is_known_here_is_told_as_a_part);
	tcase_add_test(t, one_store_that_answers_is_enough);
	tcase_add_test(t, a_store_that_does_not_answer_keeps_no_name_from_the_others);
	tcase_add_test(t, where_no_store_can_be_asked_forget_says_so_unless_it_is_known_here);
	tcase_add_test(t, names_of_which_no_store_was_told_go_out_again_with_the_next);
	tcase_add_test(t, a_session_may_go_while_the_stores_are_asked);
	suite_add_tcase(s, t);
	return s;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* proto/command.c and nearest.c: the tables agree with themselves, and a typing mistake finds its word. */
#include "proto/proto.h"

#include <check.h>
#include <ctype.h>
#include <string.h>

TEST(every_verb_is_found_in_any_case_and_nothing_else_is)
{
	for (unsigned i = 0; i < VERB_N; i++) {
		char word[32];
		size_t n = strlen(command_table[i].word);

		memcpy(word, command_table[i].word, n + 1);
		ck_assert_int_eq(command_find((struct span){word, n}), i);
		ck_assert_int_eq(command_find((struct span){word, n - 1}), VERB_N);
		ck_assert_int_eq(command_find((struct span){word, n + 1}), VERB_N);
		for (size_t j = 0; j < n; j++)
			word[j] = (char)tolower(word[j]);
		ck_assert_int_eq(command_find((struct span){word, n}), i);
		word[n - 1]++;
		ck_assert_int_eq(command_find((struct span){word, n}), VERB_N);
	}
	ck_assert_int_eq(command_find(SPAN("")), VERB_N);
}

TEST(every_field_is_found_in_any_case_and_nothing_else_is)
{
	for (unsigned i = 0; i < FIELD_N; i++) {
		char word[32];
		size_t n = strlen(field_table[i].word);

		memcpy(word, field_table[i].word, n);
		ck_assert_int_eq(field_find((struct span){word, n}), i);
		ck_assert_int_eq(field_find((struct span){word, n - 1}), FIELD_N);
		for (size_t j = 0; j < n; j++)
			word[j] = (char)toupper(word[j]);
		ck_assert_int_eq(field_find((struct span){word, n}), i);
		word[n - 1]++;
		ck_assert_int_eq(field_find((struct span){word, n}), FIELD_N);
		word[n] = 'X';
		ck_assert_int_eq(field_find((struct span){word, n + 1}), FIELD_N);
	}
}

TEST(every_row_is_whole)
{
	uint32_t used = 0;

	for (unsigned i = 0; i < VERB_N; i++) {
		const struct command *c = &command_table[i];

		ck_assert_uint_le(c->least, c->most);
		ck_assert_uint_le(c->most, WORDS_MAX);
		ck_assert_int_eq(c->most > 0, c->words[0] != '\0');
		ck_assert_int_gt((int)strlen(c->help), 0);
		used |= c->fields;
	}
	ck_assert_uint_eq(used, (uint32_t)((UINT64_C(1) << FIELD_N) - 1));
	for (unsigned i = 0; i < FIELD_N; i++) {
		bool bounded = field_table[i].type != VALUE_BOOL && field_table[i].type != VALUE_MODE && field_table[i].type != VALUE_TRACE;

		ck_assert_int_eq(field_table[i].most > 0, bounded);
	}
	for (unsigned i = 0; i < ERROR_N; i++)
		ck_assert(error_table[i].word[0] && error_table[i].meaning[0]);
	for (unsigned i = 0; i < VALUE_N; i++)
		ck_assert(value_table[i].form[0] && value_table[i].meaning[0]);
}

TEST(usage_is_made_from_the_row)
{
	char out[256];
	size_t n = command_usage(VERB_UNLOCK, out, sizeof(out));

	out[n] = '\0';
	ck_assert_str_eq(out, "UNLOCK name [owner=text] [fence=N] [sync=yes|no] [keep=dur] [count=N]");
	n = command_usage(VERB_PING, out, sizeof(out));
	out[n] = '\0';
	ck_assert_str_eq(out, "PING");
}

TEST(usage_is_cut_at_the_room_it_has_and_always_fits_the_one_it_gets)
{
	char whole[256], out[256];

	for (unsigned verb = 0; verb < VERB_N; verb++) {
		size_t n = command_usage((enum verb)verb, whole, sizeof(whole));

		ck_assert_uint_lt(n, sizeof(whole));
		for (size_t size = 0; size <= n; size++) {
			memset(out, '#', sizeof(out));
			ck_assert_uint_eq(command_usage((enum verb)verb, out, size), size);
			ck_assert_mem_eq(out, whole, size);
			ck_assert_int_eq(out[size], '#');
		}
	}
}

static void expect_near(const char *typed, const char *meant)
{
	const char *found = command_nearest(span_of(typed));

	ck_assert_msg(meant ? found && !strcmp(found, meant) : !found, "%s: %s", typed, found ? found : "none");
}

TEST(a_typing_mistake_finds_its_word)
{
	expect_near("LOKC", "LOCK");
	expect_near("lokc", "LOCK");
	expect_near("LOC", "LOCK");
	expect_near("LOCKK", "LOCK");
	expect_near("LICK", "LOCK");
	expect_near("UNLCOK", "UNLOCK");
	expect_near("UNLK", "UNLOCK");
	expect_near("EXTNED", "EXTEND");
	expect_near("CANCLE", "CANCEL");
	expect_near("PNIG", "PING");
	expect_near("STAT", "STATS");
}

TEST(a_word_far_from_all_others_finds_none)
{
	expect_near("", NULL);
	expect_near("X", NULL);
	expect_near("LO", NULL);
	expect_near("KCOL", NULL);
	expect_near("TRANSCRIBE", NULL);
	expect_near("LLOOCCKK", NULL);
	expect_near("LOCKLOCKLOCKLOCKLOCKLOCKLOCKLOCKLOCK", NULL);
}

TEST(the_nearest_of_several_is_told_and_the_first_of_equals)
{
	static const char *const words[] = {"abcdefx", "abcdefg", "abcdefh"};

	ck_assert_str_eq(nearest_word(SPAN("abcdegf"), words, 3), "abcdefg");
	ck_assert_str_eq(nearest_word(SPAN("abcdefz"), words, 3), "abcdefx");
	ck_assert_ptr_null(nearest_word(SPAN("abcdefz"), words, 0));
}

TEST(two_edits_are_near_and_three_are_not)
{
	ck_assert_str_eq(field_nearest(SPAN("hxxrtbeat"), command_table[VERB_HELLO].fields), "heartbeat");
	ck_assert_ptr_null(field_nearest(SPAN("hxxxtbeat"), command_table[VERB_HELLO].fields));
}

TEST(only_fields_of_the_request_are_offered)
{
	ck_assert_str_eq(field_nearest(SPAN("wiat"), command_table[VERB_LOCK].fields), "wait");
	ck_assert_ptr_null(field_nearest(SPAN("wiat"), command_table[VERB_UNLOCK].fields));
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/store/memory.c: memory follows the number of keys, and time the number of calls. */
#include "tests/fixture/joined_memory.h"

#include <malloc.h>

static struct span numbered(char *out, unsigned n)
{
	return (struct span){out, (size_t)sprintf(out, "name/%u", n)};
}

START_TEST(keys_that_are_over_are_given_back_by_the_calls_of_others)
{
	unsigned i, most = 0;
	char name[32];

	for (i = 0; i < 100000; i++) {
		now.us += 100;
		ck_assert_int_eq(acquire(numbered(name, i), MINE, 10), 'G');
		if (memory_count(memory) > most)
			most = (unsigned)memory_count(memory);
	}
	ck_assert_uint_le(most, 11 * MSEC / 100 + 11);
	now.us += SEC;
	for (i = 0; i < most; i++)
		call((struct call){.kind = CALL_PROBE});
	ck_assert_uint_eq(memory_count(memory), 0);
}
END_TEST

START_TEST(of_many_keys_that_end_together_each_is_over_at_once)
{
	unsigned i;
	char name[32];

	for (i = 0; i < 1000; i++)
		ck_assert_int_eq(acquire(numbered(name, i), MINE, 10), 'G');
	now.us += SEC;
	for (i = 1000; i-- > 0;)
		ck_assert_int_eq(acquire(numbered(name, i), THEIRS, 10), 'G');
}
END_TEST

START_TEST(a_hundred_thousand_names_are_found_again)
{
	unsigned i;
	char name[32];

	for (i = 0; i < 100000; i++)
		ck_assert_int_eq(acquire(numbered(name, i), MINE, 30000), 'G');
	ck_assert_uint_eq(memory_count(memory), 100000);
	for (i = 0; i < 100000; i++)
		ck_assert_int_eq(release(numbered(name, i), MINE), 'R');
	ck_assert_uint_eq(memory_count(memory), 0);
}
END_TEST

START_TEST(a_steady_load_allocates_nothing)
{
	size_t before = 0;
	unsigned i;
	char name[32];

	for (i = 0; i < 110000; i++) {
		if (i == 10000)
			before = mallinfo2().uordblks;
		now.us += 10;
		ck_assert_int_eq(acquire(numbered(name, i), MINE, 30000), 'G');
		ck_assert_int_eq(extend((struct span){name, strlen(name)}, MINE, MINE, 30000), 'E');
		ck_assert_int_eq(release((struct span){name, strlen(name)}, MINE), 'R');
	}
	ck_assert_uint_eq(mallinfo2().uordblks, before);
}
END_TEST

Suite *memory_size_suite(void)
{
	Suite *suite = suite_create("memory_size");
	TCase *cases = tcase_create("memory_size");

	tcase_set_timeout(cases, 30);
	tcase_add_checked_fixture(cases, joined_start, store_stop);
	tcase_add_test(cases, keys_that_are_over_are_given_back_by_the_calls_of_others);
	tcase_add_test(cases, of_many_keys_that_end_together_each_is_over_at_once);
	tcase_add_test(cases, a_hundred_thousand_names_are_found_again);
	tcase_add_test(cases, a_steady_load_allocates_nothing);
	suite_add_tcase(suite, cases);
	return suite;
}

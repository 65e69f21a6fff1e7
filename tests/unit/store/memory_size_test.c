/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/store/memory.c, rate.c: memory follows the number of keys, and time the number of calls. */
#include "daemon/base/netstring.h"
#include "daemon/store/rate.h"
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

/* What the store says to one use of so many a minute. */
static char use_of(struct rates *r, const char *name, int64_t limit, struct instant at)
{
	struct call c = {.name = span_of(name)};
	struct answer a = {.server_us = at.us};
	struct buf said, words;

	buf_init(&said);
	buf_init(&words);
	netstring_put_int(&words, limit);
	netstring_put_int(&words, 60 * SEC);
	netstring_put_int(&words, 1);
	ck_assert(rate_call(r, 0, &c, (struct span){buf_begin(&words), buf_length(&words)}, at, &said, &a));
	buf_release(&words);
	buf_release(&said);
	return a.code;
}

static char use(struct rates *r, const char *name, struct instant at)
{
	return use_of(r, name, 2000, at);
}

/* Each has a use in 1000 different milliseconds, so some 16 KB: more than 64 MB are not kept. One that is there goes on, and one that is over makes room. */
START_TEST(limits_with_many_uses_are_kept_up_to_a_bound)
{
	static int64_t pairs[1001][2];
	static const uint64_t seed[2] = {1, 2};
	struct instant at = {2000 * MSEC};
	struct rates r;
	char name[16];
	unsigned n;

	pairs[0][0] = 60 * SEC;
	for (unsigned i = 1; i <= 1000; i++)
		pairs[i][0] = i * MSEC, pairs[i][1] = i;
	rates_init(&r, seed, NULL);
	for (n = 0; n < 6000 && use(&r, "new", at) == 'Y'; n++) {
		keyspace_drop(&r.keys, keyspace_find(&r.keys, SPAN("new")));
		snprintf(name, sizeof(name), "%u", n);
		ck_assert(rate_put(&r, 0, span_of(name), (struct span){(const char *)pairs, sizeof(pairs)}, at, at));
	}
	ck_assert_uint_gt(n, 1000);
	ck_assert_uint_lt(n, 6000);
	ck_assert_int_eq(use(&r, "0", at), 'Y');
	at.us += 61 * SEC;
	ck_assert_int_eq(use(&r, "new", at), 'Y');
	rates_release(&r);
}
END_TEST

/* Beyond the bound the uses of a name are told apart less well, so that it grows no more. No window has more than the limit. */
START_TEST(limits_that_were_there_before_grow_up_to_the_bound_together)
{
	static int64_t pairs[270][2];
	static const uint64_t seed[2] = {1, 2};
	struct instant at = {2000 * MSEC};
	struct rates r;
	char name[16];
	size_t before;
	unsigned i;

	pairs[0][0] = 60 * SEC;
	for (i = 1; i < 270; i++)
		pairs[i][0] = i * MSEC, pairs[i][1] = i;
	rates_init(&r, seed, NULL);
	ck_assert_int_eq(use_of(&r, "small", 1000, at), 'Y');
	for (i = 0; i < 13000; i++) {
		snprintf(name, sizeof(name), "%u", i);
		ck_assert(rate_put(&r, 0, span_of(name), (struct span){(const char *)pairs, sizeof(pairs)}, at, at));
	}
	before = r.keys.large;
	for (i = 0; i < 13000; i++)
		for (unsigned n = 0; n < 20; n++) {
			snprintf(name, sizeof(name), "%u", i);
			ck_assert_int_eq(use_of(&r, name, 1000, instant_add(at, n * MSEC)), 'Y');
		}
	ck_assert_uint_gt(r.keys.large, before);
	ck_assert_uint_lt(r.keys.large, 65 * 1024 * 1024);
	for (unsigned n = 1; n < 1000; n++)
		ck_assert_int_eq(use_of(&r, "small", 1000, instant_add(at, n * MSEC)), 'Y');
	for (unsigned n = 0; n < 1000 - 269 - 20; n++)
		ck_assert_int_eq(use_of(&r, name, 1000, instant_add(at, (20 + n) * MSEC)), 'Y');
	ck_assert_uint_lt(r.keys.large, 65 * 1024 * 1024);
	at.us += 57 * SEC;
	ck_assert_int_eq(use_of(&r, "small", 1000, at), 'T');
	ck_assert_int_eq(use_of(&r, name, 1000, at), 'T');
	at.us += 5 * SEC;
	ck_assert_int_eq(use_of(&r, "small", 1000, at), 'Y');
	ck_assert_int_eq(use_of(&r, name, 1000, at), 'Y');
	rates_release(&r);
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
	tcase_add_test(cases, limits_with_many_uses_are_kept_up_to_a_bound);
	tcase_add_test(cases, limits_that_were_there_before_grow_up_to_the_bound_together);
	suite_add_tcase(suite, cases);
	return suite;
}

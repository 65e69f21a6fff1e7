/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/store/memory.c, home.c: memory follows the number of keys, and time the number of calls. */
#include "daemon/base/netstring.h"
#include "daemon/store/home.h"
#include "daemon/store/ledger.h"
#include "tests/fixture/joined_memory.h"

#include <malloc.h>

static struct span numbered(char *out, unsigned n)
{
	return (struct span){out, (size_t)sprintf(out, "name/%u", n)};
}

FIXTURE(.setup = joined_start, .teardown = store_stop, .seconds = 30)

TEST(keys_that_are_over_are_given_back_by_the_calls_of_others)
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

TEST(of_many_keys_that_end_together_each_is_over_at_once)
{
	unsigned i;
	char name[32];

	for (i = 0; i < 1000; i++)
		ck_assert_int_eq(acquire(numbered(name, i), MINE, 10), 'G');
	now.us += SEC;
	for (i = 1000; i-- > 0;)
		ck_assert_int_eq(acquire(numbered(name, i), THEIRS, 10), 'G');
}

TEST(a_hundred_thousand_names_are_found_again)
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

TEST(a_steady_load_allocates_nothing)
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

/* What the store says to one use of so many a minute, by a client of this peer. */
static char use(struct rates *r, const char *name, const char *peer, int64_t limit, struct instant at)
{
	struct call c = {.name = span_of(name)};
	struct answer a = {.server_us = at.us};
	struct buf said, words;

	buf_init(&said);
	buf_init(&words);
	netstring_put_int(&words, limit);
	netstring_put_int(&words, 60 * SEC);
	netstring_put_int(&words, 1);
	netstring_put(&words, span_of(peer));
	netstring_put_int(&words, 1 << 20);
	netstring_put_int(&words, 1 << 19);
	ck_assert(rate_call(r, 0, &c, (struct span){buf_begin(&words), buf_length(&words)}, at, &said, &a));
	if (a.code == 'B')
		a.code = *buf_begin(&said);
	buf_release(&words);
	buf_release(&said);
	return a.code;
}

/* 1,000 uses of one name are told apart as long as there is room. Then they are told apart less well, so that it grows no more. No window has too many. */
TEST(rate_limits_take_their_share_of_the_memory_and_no_more)
{
	static const uint64_t seed[2] = {1, 2};
	struct instant at = {2000 * MSEC};
	struct ledger ledger;
	struct rates r;
	char name[16];
	unsigned uses[100] = {0};

	ledger_init(&ledger, seed);
	rates_init(&r, seed, &ledger);
	for (unsigned i = 0; i < 100; i++)
		for (unsigned n = 0; n < 300; n++) {
			snprintf(name, sizeof(name), "%u", i);
			uses[i] += use(&r, name, i % 2 ? "a" : "b", 200, instant_add(at, n * MSEC)) == 'Y';
			ck_assert_int_le(ledger.all, 1 << 20);
		}
	for (unsigned i = 0; i < 100; i++) {
		ck_assert_uint_le(uses[i], 200);
		ck_assert_uint_gt(uses[i], 0);
	}
	for (unsigned i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		if (use(&r, name, "a", 200, at) == 'p')
			break;
	}
	ck_assert_int_eq(use(&r, "new", "a", 200, at), 'p');
	ck_assert_int_eq(use(&r, "0", "a", 2000, at), 'Y');
	at.us += 61 * SEC;
	ck_assert_int_eq(use(&r, "new", "a", 200, at), 'Y');
	for (unsigned i = 0; i < 10000; i++)
		use(&r, "new", "a", 1, at);
	ck_assert_int_lt(ledger.all, 1000);
	at.us += 61 * SEC;
	use(&r, "new", "a", 1, at);
	at.us += 61 * SEC;
	ck_assert(!keyspace_over(&r.keys, (struct instant){0}));
	rates_release(&r);
	ledger_release(&ledger);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/base/roll.c. */
#include "daemon/base/roll.h"
#include "daemon/base/rng.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static const uint64_t key[2] = {1, 2};

static void note(struct roll *r, const char *name)
{
	roll_note(r, name, strlen(name));
}

static bool has(const struct roll *r, const char *name)
{
	const struct roll_item *item = roll_from(r, name, strlen(name));

	return item && item->n == strlen(name) && memcmp(item->text, name, item->n) == 0;
}

/* The names in their order, with blanks between. */
static const char *names(const struct roll *r, const char *from)
{
	static char out[256];
	size_t n = 0;

	out[0] = 0;
	for (const struct roll_item *i = roll_from(r, from, strlen(from)); i; i = roll_next(i))
		n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%.*s", n > 0 ? " " : "", (int)i->n, i->text);
	return out;
}

TEST(names_stand_in_the_order_of_their_bytes)
{
	struct roll r;

	roll_init(&r, key, 10);
	ck_assert_str_eq(names(&r, ""), "");
	note(&r, "b");
	note(&r, "\xff");
	note(&r, "ab");
	note(&r, "a");
	ck_assert_str_eq(names(&r, ""), "a ab b \xff");
	ck_assert_str_eq(names(&r, "aa"), "ab b \xff");
	ck_assert_str_eq(names(&r, "b"), "b \xff");
	ck_assert_str_eq(names(&r, "c"), "\xff");
	roll_release(&r);
}

TEST(one_more_than_there_is_room_for_takes_the_place_of_the_oldest)
{
	struct roll r;

	roll_init(&r, key, 3);
	note(&r, "a");
	note(&r, "b");
	note(&r, "c");
	note(&r, "a"); /* again: now b is the oldest */
	note(&r, "d");
	ck_assert_str_eq(names(&r, ""), "a c d");
	ck_assert_uint_eq(r.count, 3);
	roll_release(&r);
}

TEST(an_item_that_makes_room_leaves_nothing_to_the_next)
{
	struct roll r;

	roll_init(&r, key, 1);
	for (int i = 0; i < 100; i++) {
		char name[64];

		snprintf(name, sizeof(name), "%.*s%d", i % 50, "a long name, and a longer one, and one that is longer", i);
		note(&r, name);
		ck_assert_str_eq(names(&r, ""), name);
	}
	roll_release(&r);
}

/* What was noted when, as a plain table. */
TEST(a_roll_does_what_a_table_does)
{
	struct roll r;
	struct rng rng;
	unsigned when[64] = {0}, now = 0, most = 20;

	rng_init(&rng, key);
	roll_init(&r, key, most);
	for (int i = 0; i < 20000; i++) {
		unsigned k = (unsigned)rng_below(&rng, 64), count = 0, oldest = 64;
		char name[4];

		snprintf(name, sizeof(name), "%02u", k);
		note(&r, name);
		when[k] = ++now;
		for (unsigned j = 0; j < 64; j++) {
			count += when[j] > 0;
			if (when[j] > 0 && (oldest == 64 || when[j] < when[oldest]))
				oldest = j;
		}
		if (count > most)
			when[oldest] = 0, count--;
		ck_assert_uint_eq(r.count, count);
		for (unsigned j = 0; j < 64; j++) {
			snprintf(name, sizeof(name), "%02u", j);
			ck_assert_int_eq(has(&r, name), when[j] > 0);
		}
	}
	roll_release(&r);
}

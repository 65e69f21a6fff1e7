/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/base/map.c. */
#include "daemon/base/map.h"
#include "daemon/base/rng.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
	struct map_node node;
	char name[24];
	bool seen;
};

static const uint64_t key[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};

/* The authors' vectors: the first n bytes of 00 01 02 … under the key 00 01 … 0f. */
static const uint64_t vector[] = {
	0x726fdb47dd0e0e31, 0x74f839c593dc67fd, 0x0d6c8009d9a94f5a, 0x85676696d7fb7e2d, 0xcf2794e0277187b7, 0x18765564cd99a68d,
	0xcbc9466e58fee3ce, 0xab0200f58b01d137, 0x93f5f5799a932462, 0x9e0082df0ba9e4b0, 0x7a5dbbc594ddb9f3, 0xf4b32f46226bada7,
	0x751e8fbc860ee5fb, 0x14ea5627c0843d90, 0xf723ca908e7af2ee, 0xa129ca6149be45e5, 0x3f2acc7f57c29bdb, 0x699ae9f52cbe4794,
	0x4bc1b3f0968dd39c, 0xbb6dc91da77961bd, 0xbed65cf21aa2ee98, 0xd0f2cbb02e3b67c7, 0x93536795e3a33e88, 0xa80c038ccd5ccec8,
	0xb8ad50c6f649af94, 0xbce192de8a85b8ea, 0x17d835b85bbb15f3, 0x2f2e6163076bcfad, 0xde4daaaca71dc9a5, 0xa6a2506687956571,
	0xad87a3535c49ef28, 0x32d892fad841c342, 0x7127512f72f27cce, 0xa7f32346f95978e3, 0x12e0b01abb051238, 0x15e034d40fa197ae,
	0x314dffbe0815a3b4, 0x027990f029623981, 0xcadcd4e59ef40c4d, 0x9abfd8766a33735c, 0x0e3ea96b5304a7d0, 0xad0c42d6fc585992,
	0x187306c89bc215a9, 0xd4a60abcf3792b95, 0xf935451de4f21df2, 0xa9538f0419755787, 0xdb9acddff56ca510, 0xd06c98cd5c0975eb,
	0xe612a3cb9ecba951, 0xc766e62cfcadaf96, 0xee64435a9752fe72, 0xa192d576b245165a, 0x0a8787bf8ecb74b2, 0x81b3e73d20b49b6f,
	0x7fa8220ba3b2ecea, 0x245731c13ca42499, 0xb78dbfaf3a8d83bd, 0xea1ad565322a1a0b, 0x60e61c23a3795013, 0x6606d7e446282b93,
	0x6ca4ecb15c5f91e1, 0x9f626da15c9625f3, 0xe51b38608ef25f57, 0x958a324ceb064572,
};

TEST(siphash_gives_the_reference_values)
{
	unsigned char text[64];
	size_t n;

	for (n = 0; n < sizeof(vector) / sizeof(vector[0]); n++) {
		text[n] = (unsigned char)n;
		ck_assert_uint_eq(siphash(key, text, n), vector[n]);
	}
}

TEST(siphash_of_a_word_is_siphash_of_its_bytes_the_lowest_first)
{
	unsigned char text[8];
	unsigned i;

	ck_assert_uint_eq(siphash_word(key, 0x0706050403020100), vector[8]);
	for (i = 0; i < 8; i++)
		text[i] = (unsigned char)(0xf0 + i);
	ck_assert_uint_eq(siphash_word(key, 0xf7f6f5f4f3f2f1f0), siphash(key, text, 8));
}

/* Bytes on both sides of the text must not matter: its end is loaded with those before it. */
TEST(siphash_depends_on_no_byte_outside_the_text)
{
	unsigned char text[80];
	size_t n, i;

	for (n = 0; n < sizeof(vector) / sizeof(vector[0]); n++) {
		memset(text, 0xff, sizeof(text));
		for (i = 0; i < n; i++)
			text[8 + i] = (unsigned char)i;
		ck_assert_uint_eq(siphash(key, text + 8, n), vector[n]);
	}
}

TEST(siphash_does_not_depend_on_alignment)
{
	char text[64] = "....orders/42 and some more bytes";
	size_t shift;

	for (shift = 1; shift < 8; shift++) {
		char moved[64];

		memcpy(moved + shift, text, 40);
		ck_assert_uint_eq(siphash(key, moved + shift, 40), siphash(key, text, 40));
	}
}

static bool entry_match(const struct map_node *node, const void *name, size_t n)
{
	const struct entry *e = container_of(node, const struct entry, node);

	return strlen(e->name) == n && !memcmp(e->name, name, n);
}

static struct entry *entry_find(const struct map *m, const char *name)
{
	struct map_node *node = map_find(m, map_hash(m, name, strlen(name)), name, strlen(name), entry_match);

	return node ? container_of(node, struct entry, node) : NULL;
}

static struct entry *entries_insert(struct map *m, int n)
{
	struct entry *e = calloc((size_t)n, sizeof(*e));
	int i;

	for (i = 0; i < n; i++) {
		snprintf(e[i].name, sizeof(e[i].name), "orders/%d", i);
		map_insert(m, &e[i].node, map_hash(m, e[i].name, strlen(e[i].name)));
	}
	return e;
}

TEST(an_inserted_name_is_found_and_a_removed_one_is_not)
{
	struct entry *e;
	struct map m;
	int i;

	map_init(&m, key);
	ck_assert_ptr_null(entry_find(&m, "orders/0"));
	e = entries_insert(&m, 5000);
	ck_assert_uint_eq(m.count, 5000);
	for (i = 0; i < 5000; i++)
		ck_assert_ptr_eq(entry_find(&m, e[i].name), &e[i]);
	for (i = 0; i < 5000; i += 2)
		map_remove(&m, &e[i].node);
	for (i = 0; i < 5000; i++)
		ck_assert_ptr_eq(entry_find(&m, e[i].name), i % 2 ? &e[i] : NULL);
	map_release(&m);
	free(e);
}

TEST(names_with_equal_hashes_are_told_apart)
{
	struct entry a = {.name = "a"}, b = {.name = "b"};
	struct map m;

	map_init(&m, key);
	map_insert(&m, &a.node, 42);
	map_insert(&m, &b.node, 42);
	ck_assert_ptr_eq(map_find(&m, 42, "a", 1, entry_match), &a.node);
	ck_assert_ptr_eq(map_find(&m, 42, "b", 1, entry_match), &b.node);
	ck_assert_ptr_null(map_find(&m, 42, "c", 1, entry_match));
	map_remove(&m, &a.node);
	ck_assert_ptr_null(map_find(&m, 42, "a", 1, entry_match));
	ck_assert_ptr_eq(map_find(&m, 42, "b", 1, entry_match), &b.node);
	map_release(&m);
}

TEST(iteration_visits_every_entry_once)
{
	struct map_node *node;
	struct entry *e;
	struct map m;
	size_t n = 0;

	map_init(&m, key);
	ck_assert_ptr_null(map_next(&m, NULL));
	e = entries_insert(&m, 1000);
	for (node = map_next(&m, NULL); node; node = map_next(&m, node), n++) {
		struct entry *one = container_of(node, struct entry, node);

		ck_assert(!one->seen);
		one->seen = true;
	}
	ck_assert_uint_eq(n, 1000);
	map_release(&m);
	free(e);
}

/* Half of the entries stay. The others come and go, so the map grows and shrinks during the walk. */
TEST(a_walk_meets_once_each_entry_that_stays)
{
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct map_walk walk = {0};
		struct map_node *node;
		struct entry *e;
		struct rng rng;
		struct map m;
		int there = 1000;

		rng_init(&rng, (const uint64_t[2]){seed, 0});
		map_init(&m, key);
		e = entries_insert(&m, 4000);
		for (; there > 100 && seed % 2; there--)
			map_remove(&m, &e[there - 1].node);
		for (int i = 1000; i < 4000; i++)
			map_remove(&m, &e[i].node);
		for (bool on = map_walk(&m, &walk, &node); on; on = map_walk(&m, &walk, &node)) {
			for (; node; node = node->next) {
				struct entry *one = container_of(node, struct entry, node);

				if (!map_walk_meets(&walk, node))
					continue;
				ck_assert(!one->seen);
				one->seen = true;
			}
			if (rng_below(&rng, 40) == 0 && m.count == (size_t)there)
				for (int i = 1000; i < 4000; i++)
					map_insert(&m, &e[i].node, e[i].node.hash);
			else if (rng_below(&rng, 40) == 0 && m.count > (size_t)there)
				for (int i = 1000; i < 4000; i++)
					map_remove(&m, &e[i].node);
		}
		for (int i = 0; i < there; i++)
			ck_assert(e[i].seen);
		map_release(&m);
		free(e);
	}
}

TEST(chains_stay_short_and_an_emptied_map_is_small)
{
	struct entry *e;
	struct map m;
	int i;

	map_init(&m, key);
	e = entries_insert(&m, 50000);
	ck_assert_uint_ge(m.mask + 1, 50000);
	for (i = 0; i < 49999; i++)
		map_remove(&m, &e[i].node);
	ck_assert_uint_le(m.mask + 1, 1024);
	ck_assert_ptr_eq(entry_find(&m, e[49999].name), &e[49999]);
	map_release(&m);
	free(e);
}

/* While a large table is replaced each entry is in one of two. */
TEST(entries_are_found_and_met_while_a_table_is_replaced)
{
	struct entry *e;
	struct map m;
	size_t halves = 0;
	int there = 20000;

	map_init(&m, key);
	e = entries_insert(&m, there);
	for (; there > 0; there -= 50) {
		struct map_node *node = NULL;
		int met = 0;

		halves += m.old != NULL;
		while ((node = map_next(&m, node)))
			met++;
		ck_assert_int_eq(met, there);
		for (int i = 0; i < 20000; i += 7)
			ck_assert_ptr_eq(entry_find(&m, e[i].name), i < there ? &e[i] : NULL);
		for (int i = there - 50; i < there; i++)
			map_remove(&m, &e[i].node);
	}
	ck_assert_uint_gt(halves, 10);
	map_release(&m);
	free(e);
}

TEST(a_count_that_swings_resizes_nothing)
{
	struct map_node **bucket;
	struct entry *e;
	struct map m;
	int i;

	map_init(&m, key);
	e = entries_insert(&m, 1000);
	bucket = m.bucket;
	for (i = 0; i < 1000; i++)
		map_remove(&m, &e[i].node);
	ck_assert_ptr_eq(m.bucket, bucket);
	for (i = 0; i < 1000; i++)
		map_insert(&m, &e[i].node, e[i].node.hash);
	ck_assert_ptr_eq(m.bucket, bucket);
	map_release(&m);
	free(e);
}

TEST(another_key_gives_another_hash)
{
	const uint64_t other[2] = {key[0], key[1] ^ 1};
	struct map a, b;

	map_init(&a, key);
	map_init(&b, other);
	ck_assert_uint_ne(map_hash(&a, "orders/42", 9), map_hash(&b, "orders/42", 9));
	map_release(&a);
	map_release(&b);
}

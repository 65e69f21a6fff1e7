/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/base/arena.c. */
#include "daemon/base/arena.h"

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

TEST(memory_never_moves_while_the_arena_grows)
{
	struct arena a;
	char *kept[2000];
	int i;

	arena_init(&a);
	for (i = 0; i < 2000; i++) {
		char text[32];

		kept[i] = arena_copy(&a, text, (size_t)snprintf(text, sizeof(text), "piece %d", i));
	}
	for (i = 0; i < 2000; i++) {
		char text[32];

		snprintf(text, sizeof(text), "piece %d", i);
		ck_assert_str_eq(kept[i], text);
	}
	arena_release(&a);
}

TEST(every_piece_is_aligned_to_16)
{
	struct arena a;
	size_t n;

	arena_init(&a);
	for (n = 0; n < 100; n++)
		ck_assert_uint_eq((uintptr_t)arena_alloc(&a, n) % 16, 0);
	arena_release(&a);
}

TEST(a_reservation_that_is_not_committed_is_handed_out_again)
{
	struct arena a;
	char *first, *second;

	arena_init(&a);
	first = arena_reserve(&a, 1000);
	arena_commit(&a, 16);
	second = arena_reserve(&a, 1000);
	ck_assert_ptr_eq(second, first + 16);
	ck_assert_ptr_eq(arena_reserve(&a, 10), second);
	arena_release(&a);
}

TEST(pieces_do_not_overlap)
{
	struct arena a;
	unsigned char *piece[300];
	size_t i, j, wrong = 0;

	arena_init(&a);
	for (i = 0; i < 300; i++) {
		piece[i] = arena_alloc(&a, i * 7);
		memset(piece[i], (int)i, i * 7);
	}
	for (i = 0; i < 300; i++)
		for (j = 0; j < i * 7; j++)
			wrong += piece[i][j] != (i & 0xff);
	ck_assert_uint_eq(wrong, 0);
	arena_release(&a);
}

TEST(a_reset_hands_out_the_same_memory_cleared)
{
	struct arena a;
	char *before, *after;

	arena_init(&a);
	before = arena_alloc(&a, 64);
	memset(before, 'x', 64);
	arena_reset(&a);
	after = arena_alloc(&a, 64);
	ck_assert_ptr_eq(after, before);
	ck_assert_int_eq(after[0], 0);
	ck_assert_int_eq(after[63], 0);
	arena_release(&a);
}

TEST(a_piece_larger_than_a_chunk_is_whole)
{
	struct arena a;
	char *large, *small;

	arena_init(&a);
	small = arena_copy(&a, "small", 5);
	large = arena_alloc(&a, 1 << 20);
	memset(large, 'x', 1 << 20);
	ck_assert_str_eq(small, "small");
	arena_reset(&a);
	arena_reset(&a);
	ck_assert_ptr_nonnull(arena_alloc(&a, 1));
	arena_release(&a);
}

TEST(a_large_piece_does_not_land_in_a_small_chunk_that_was_kept)
{
	struct arena a;
	char *large, *after;

	arena_init(&a);
	arena_alloc(&a, 10000);
	arena_alloc(&a, 10000);
	arena_reset(&a);
	arena_alloc(&a, 100);
	large = memset(arena_alloc(&a, 100000), 'x', 100000);
	after = arena_alloc(&a, 10000);
	ck_assert(after + 10000 <= large || after >= large + 100000);
	ck_assert_int_eq(large[99999], 'x');
	arena_release(&a);
}

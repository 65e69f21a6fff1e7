/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/base/pool.c. */
#include "daemon/base/pool.h"

#include <check.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

TEST(objects_come_zero_filled_also_the_second_time)
{
	char *object, zero[40] = {0};
	struct pool p;
	int i;

	pool_init(&p, sizeof(zero));
	for (i = 0; i < 3; i++) {
		object = pool_get(&p);
		ck_assert_mem_eq(object, zero, sizeof(zero));
		memset(object, 'x', sizeof(zero));
		pool_put(&p, object);
	}
	pool_release(&p);
}

TEST(live_objects_do_not_overlap_and_are_aligned)
{
	unsigned char *object[1000];
	struct pool p;
	int i, j, wrong = 0;

	pool_init(&p, 24);
	for (i = 0; i < 1000; i++) {
		object[i] = pool_get(&p);
		ck_assert_uint_eq((uintptr_t)object[i] % 16, 0);
		memset(object[i], i, 24);
	}
	ck_assert_uint_eq(p.live, 1000);
	for (i = 0; i < 1000; i++) {
		for (j = 0; j < 24; j++)
			wrong += object[i][j] != (i & 0xff);
		pool_put(&p, object[i]);
	}
	ck_assert_int_eq(wrong, 0);
	ck_assert_uint_eq(p.live, 0);
	pool_release(&p);
}

TEST(a_steady_load_takes_no_new_slab)
{
	void *object[100];
	struct pool_slab *slabs;
	struct pool p;
	int turn, i;

	pool_init(&p, 100);
	for (i = 0; i < 100; i++)
		object[i] = pool_get(&p);
	slabs = p.slabs;
	for (turn = 0; turn < 100; turn++) {
		for (i = 0; i < 100; i++)
			pool_put(&p, object[i]);
		for (i = 0; i < 100; i++)
			object[i] = pool_get(&p);
	}
	ck_assert_ptr_eq(p.slabs, slabs);
	for (i = 0; i < 100; i++)
		pool_put(&p, object[i]);
	pool_release(&p);
}

TEST(an_object_larger_than_a_slab_is_whole)
{
	struct pool p;
	char *object;

	pool_init(&p, 100000);
	object = pool_get(&p);
	memset(object, 'x', 100000);
	pool_put(&p, object);
	pool_put(&p, NULL);
	pool_release(&p);
}

SIGNAL_TEST(releasing_a_pool_with_a_live_object_is_a_bug_of_ours, SIGABRT)
{
	struct pool p;

	ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr)); /* the assertion's own words */
	pool_init(&p, 8);
	pool_get(&p);
	pool_release(&p);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/told.c. */
#include "daemon/redis/told.h"

#include <check.h>
#include <stdio.h>

TEST(a_reason_is_new_once)
{
	struct told told = {.count = 0};

	ck_assert(told_is_new(&told, "a"));
	ck_assert(!told_is_new(&told, "a"));
	ck_assert(told_is_new(&told, "b"));
	told.count = 0;
	ck_assert(told_is_new(&told, "a"));
}

TEST(there_is_room_for_eight)
{
	struct told told = {.count = 0};
	char reason[2] = "a";

	for (unsigned i = 0; i < TOLD_MAX; i++, reason[0]++)
		ck_assert(told_is_new(&told, reason));
	ck_assert(!told_is_new(&told, reason));
}

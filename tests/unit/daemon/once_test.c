/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/restart/once.c: a state that is handed over is used once, and only if nothing else has started in between. */
#include "daemon/restart/once.h"
#include "tests/fixture/files.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t mark[2] = {1, 2}, other[2] = {2, 1};
static char folder[64], path[96];
static const char *why;

static void setup(void)
{
	snprintf(folder, sizeof(folder), "/tmp/once-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/handover", folder);
}

static void teardown(void)
{
	folder_remove(folder);
}

FIXTURE(.setup = setup, .teardown = teardown)

TEST(what_was_handed_over_is_taken_once)
{
	ck_assert(!once_is_there(folder));
	ck_assert_int_eq(once_put(folder, mark), 0);
	ck_assert(once_is_there(folder));
	ck_assert(once_take(folder, mark, &why));
	ck_assert_int_ne(access(path, F_OK), 0);
	ck_assert(!once_take(folder, mark, &why));
}

TEST(a_start_that_was_handed_nothing_spoils_it)
{
	ck_assert_int_eq(once_put(folder, mark), 0);
	ck_assert(!once_take(folder, NULL, &why));
	ck_assert(!once_take(folder, mark, &why));
}

TEST(what_is_left_of_an_earlier_restart_is_refused)
{
	ck_assert_int_eq(once_put(folder, other), 0);
	ck_assert_int_eq(once_put(folder, mark), 0);
	ck_assert(!once_take(folder, other, &why));
	ck_assert(!once_take(folder, mark, &why));
}

TEST(without_a_file_nothing_is_taken)
{
	ck_assert(!once_take(folder, mark, &why));
	ck_assert(!once_is_there("/nonexistent"));
	ck_assert(!once_take("/nonexistent", mark, &why));
	ck_assert_int_eq(once_put("/nonexistent", mark), -ENOENT);
}

/* Else the next process would take it again. */
TEST(a_file_that_cannot_be_removed_is_worth_nothing)
{
	ck_assert_int_eq(once_put(folder, mark), 0);
	ck_assert_int_eq(chmod(folder, 0500), 0);
	becomes_nobody(folder, path);
	ck_assert_int_eq(chmod(folder, 0500), 0);
	ck_assert(!once_take(folder, mark, &why));
	ck_assert_int_eq(chmod(folder, 0700), 0);
	becomes_itself();
}

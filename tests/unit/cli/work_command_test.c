/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client/work.c, client/working.c, client/deferring.c: jobs and their commands, against a scripted daemon that goes and comes back. A job whose command has
 * succeeded is done once, and no command is stopped for a job that is still held.
 */
#include "client/deferring.h"
#include "client/invocation.h"
#include "tests/fixture/client_of_fake.h"

#include <stdlib.h>
#include <string.h>

#define WORDS      4000

START_TEST(a_command_line_of_many_empty_words_is_too_long_to_be_deferred)
{
	static char empty[1], *argv[WORDS + 1];
	struct invocation in = {.operand = "n", .defer_to = "q", .argv = argv, .quiet = true};

	for (size_t i = 0; i < WORDS; i++)
		argv[i] = empty;
	begins("=\n");
	ck_assert(!defer_instead(&in, c));
	ends();
}
END_TEST

Suite *work_command_suite(void)
{
	Suite *suite = suite_create("work_command");
	TCase *deferring = tcase_create("deferring");

	tcase_add_test(deferring, a_command_line_of_many_empty_words_is_too_long_to_be_deferred);
	suite_add_tcase(suite, deferring);
	return suite;
}

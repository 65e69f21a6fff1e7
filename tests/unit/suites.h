/* SPDX-License-Identifier: BSD-2-Clause */
/* What each test file defines; the Makefile includes it into all of them. */
#ifndef UNIT_SUITES_H
#define UNIT_SUITES_H

#include <check.h>
#include <stdbool.h>

/*
 * check writes a mark into a file for each assertion that holds, and reads it back with a move of its whole buffer, in order to say where a test crashed or
 * hung. Tests that assert in loops spend most of their time on that. Here each place marks once in a test: check still tells the newest place that was reached.
 */
#undef ck_assert_msg
#define ck_assert_msg(expr, ...)                                                                              \
	do {                                                                                                  \
		static bool _ck_marked;                                                                       \
		if (!(expr))                                                                                  \
			_ck_assert_failed(__FILE__, __LINE__, "Assertion '" #expr "' failed", ##__VA_ARGS__); \
		if (!_ck_marked)                                                                              \
			_mark_point(__FILE__, __LINE__);                                                      \
		_ck_marked = true;                                                                            \
	} while (0)

/* Weak, since of a share of the suites the others are not linked: their address is NULL. */
#define SUITE(folder, noun) Suite *noun##_suite(void) __attribute__((weak));
#define SUITE_OF_PROCESSES(folder, noun) SUITE(folder, noun)
#include "tests/unit/suites.def"
#undef SUITE
#undef SUITE_OF_PROCESSES

#endif

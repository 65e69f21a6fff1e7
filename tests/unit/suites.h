/* SPDX-License-Identifier: BSD-2-Clause */
/* The Makefile includes it into all test files. Each test is registered where it is defined: README.md. */
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

/* A test, or the fixture of the tests below it in its file. */
struct unit_row {
	struct unit_row *next;
	TTest test;   /* of a fixture only the file and the line */
	int from, to; /* it runs for each _i of these, but not for `to` */
	int signal;   /* that must end it; 0: none */
	void (*setup)(void), (*teardown)(void);       /* around each test, in its process */
	void (*before_all)(void), (*after_all)(void); /* around all of them, in the process of the suite */
	double seconds;                               /* how long a test may take; 0: check's 4 */
};

void unit_row_add(struct unit_row *row);

#define UNIT_ROW(id, name, function, ...)                                                             \
	__attribute__((constructor)) static void id(void)                                             \
	{                                                                                             \
		static struct unit_row row;                                                           \
                                                                                                      \
		row = (struct unit_row){.test = {name, function, __FILE__, __LINE__}, ##__VA_ARGS__}; \
		unit_row_add(&row);                                                                   \
	}
#define UNIT_JOIN(a, b)             a##b
#define UNIT_ROW_OF_LINE(line, ...) UNIT_ROW(UNIT_JOIN(row_of_line_, line), __VA_ARGS__)
#define UNIT_TEST(name, ...)                                \
	static void name(int _i);                           \
	UNIT_ROW(name##_is_a_row, #name, name, __VA_ARGS__) \
	static void name(int _i __attribute__((unused)))

#define TEST(name)                   UNIT_TEST(name, .to = 1)
#define LOOP_TEST(name, n)           UNIT_TEST(name, .to = (int)(n))
#define RANGE_TEST(name, first, end) UNIT_TEST(name, .from = first, .to = end)
#define SIGNAL_TEST(name, number)    UNIT_TEST(name, .to = 1, .signal = number)
/* The tests below it have this fixture, instead of one above it. */
#define FIXTURE(...) UNIT_ROW_OF_LINE(__LINE__, NULL, NULL, ##__VA_ARGS__)
/* A test that stands above runs n times with this fixture, too. */
#define TEST_AGAIN(name, n) UNIT_ROW_OF_LINE(__LINE__, #name, name, .to = (int)(n))
/* It would register nothing. */
#undef START_TEST

#endif

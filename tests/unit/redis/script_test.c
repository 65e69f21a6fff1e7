/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/script.c: replies to answers. */
#include "daemon/redis/script.h"

#include "tests/fixture/script_reply.h"

#include <errno.h>
#include <stdio.h>

FIXTURE(.setup = script_reply_setup, .teardown = script_reply_teardown)

TEST(every_row_answers_its_call)
{
	add(CALL_RELEASE, 13);
	add(CALL_ACQUIRE, 11);
	add(CALL_EXTEND, 12);
	add(CALL_LOOK, 14);
	ck_assert_int_eq(answer_text("*5\r\n:1761234567890123\r\n:0\r\n*4\r\n$1\r\nG\r\n:42\r\n:9000\r\n$0\r\n\r\n"
				     "*4\r\n$1\r\nB\r\n:43\r\n:-1\r\n$4\r\nd1:7\r\n*4\r\n$1\r\nQ\r\n:43\r\n:-2\r\n$3\r\nj|x\r\n"),
			 0);
	ck_assert_uint_eq(tolds, 4);
	check_answer(0, 13, ANSWER_EXECUTED, 'N');
	ck_assert_int_eq(told[0].server_us, 1761234567890123);
	check_answer(1, 11, ANSWER_EXECUTED, 'G');
	ck_assert_int_eq(told[1].fence, 42);
	ck_assert_int_eq(told[1].pttl_ms, 9000);
	check_answer(2, 12, ANSWER_EXECUTED, 'B');
	ck_assert_int_eq(told[2].pttl_ms, -1);
	ck_assert(span_equal(told[2].found, SPAN("d1:7")));
	check_answer(3, 14, ANSWER_EXECUTED, 'Q');
	ck_assert(span_equal(told[3].found, SPAN("j|x")));
}

LOOP_TEST(a_number_says_that_it_was_done_as_asked, 6)
{
	static const struct {
		enum call_kind kind;
		const char *row;
		char code;
		int64_t fence, pttl_ms;
	} row[] = {
		{CALL_ACQUIRE, ":0\r\n", 'G', 0, 9000},
		{CALL_ACQUIRE, ":9007199254740992\r\n", 'G', INT64_C(1) << 53, 9000},
		{CALL_EXTEND, ":42\r\n", 'E', 42, 9000},
		{CALL_RELEASE, ":1\r\n", 'R', -1, -2},
		{CALL_RELEASE, ":0\r\n", 'N', -1, -2},
		{CALL_WITHDRAW, ":1\r\n", 'X', -1, -2},
	};
	char text[64];

	add(row[_i].kind, 11);
	snprintf(text, sizeof(text), "*2\r\n:1761234567890123\r\n%s", row[_i].row);
	ck_assert_int_eq(answer_text(text), 0);
	check_answer(0, 11, ANSWER_EXECUTED, row[_i].code);
	ck_assert_int_eq(told[0].server_us, 1761234567890123);
	ck_assert_int_eq(told[0].fence, row[_i].fence);
	ck_assert_int_eq(told[0].pttl_ms, row[_i].pttl_ms);
	ck_assert_uint_eq(told[0].found.n, 0);
}

/* No script sets a key for no time. */
LOOP_TEST(a_number_is_no_answer_to_a_call_that_cannot_have_got_what_it_asked_for, 2)
{
	struct call call = {.id = 1, .kind = _i ? CALL_EXTEND : CALL_ACQUIRE, .name = SPAN("n"), .marker = SPAN("m")};

	batch_add(&batch, &keys, &call, 1);
	ck_assert_int_eq(answer_text("*2\r\n:1\r\n:42\r\n"), -EPROTO);
	ck_assert_uint_eq(tolds, 0);
}

/* SET foreign x EX 9999999999999: a waiter for such a key asks again after a second, not at once. */
TEST(a_key_whose_time_is_too_long_to_compute_is_reported_as_very_long)
{
	const int64_t age_ms = INT64_C(50000) * 365 * 24 * 3600 * 1000;

	add(CALL_ACQUIRE, 1);
	add(CALL_LOOK, 2);
	ck_assert_int_eq(answer_text("*3\r\n:5\r\n*4\r\n$1\r\nB\r\n:0\r\n:9999999999999000\r\n$0\r\n\r\n"
				     "*4\r\n$1\r\nB\r\n:0\r\n:9223370336854775807\r\n$0\r\n\r\n"),
			 0);
	for (unsigned i = 0; i < tolds; i++) {
		ck_assert_int_gt(told[i].pttl_ms, age_ms);
		ck_assert_int_lt(told[i].pttl_ms, INT64_MAX / 2 / MSEC);
	}
	ck_assert_uint_eq(tolds, 2);
}

TEST(a_row_may_be_refused_alone)
{
	add(CALL_RELEASE, 1);
	add(CALL_RELEASE, 2);
	add(CALL_RELEASE, 3);
	ck_assert_int_eq(answer_text("*4\r\n:5\r\n*2\r\n$1\r\n!\r\n$6\r\nOOM no\r\n:1\r\n*2\r\n$1\r\n!\r\n$8\r\nERR what\r\n"),
			 0);
	check_answer(0, 1, ANSWER_REFUSED, 0);
	ck_assert(span_equal(told[0].text, SPAN("OOM no")));
	ck_assert_int_eq(told[0].fence, -1);
	check_answer(1, 2, ANSWER_EXECUTED, 'R');
	check_answer(2, 3, ANSWER_UNKNOWN, 0);
}

TEST(an_acquire_may_say_why_its_ticket_was_not_queued)
{
	add(CALL_ACQUIRE, 1);
	ck_assert_int_eq(answer_text("*2\r\n:5\r\n*5\r\n$1\r\nB\r\n:43\r\n:9\r\n$4\r\nd1:7\r\n$12\r\nWRONGTYPE no\r\n"), 0);
	check_answer(0, 1, ANSWER_EXECUTED, 'B');
	ck_assert(span_equal(told[0].found, SPAN("d1:7")));
	ck_assert(span_equal(told[0].text, SPAN("WRONGTYPE no")));
	ck_assert_int_eq(told[0].defect, DEFECT_KEY);
}

LOOP_TEST(a_row_that_is_too_long_is_garbage, 2)
{
	add(_i == 0 ? CALL_LOOK : CALL_ACQUIRE, 1);
	ck_assert_int_eq(answer_text(_i == 0 ? "*2\r\n:5\r\n*5\r\n$1\r\nB\r\n:43\r\n:9\r\n$4\r\nd1:7\r\n$12\r\nWRONGTYPE no\r\n"
	                                     : "*2\r\n:5\r\n*5\r\n$1\r\nB\r\n:43\r\n:9\r\n$4\r\nd1:7\r\n:1\r\n"),
	                 -EPROTO);
}

TEST(an_error_answers_the_whole_batch)
{
	add(CALL_RELEASE, 1);
	add(CALL_ACQUIRE, 2);
	ck_assert_int_eq(answer_text("-LOADING Redis is loading\r\n"), 0);
	check_answer(0, 1, ANSWER_REFUSED, 0);
	check_answer(1, 2, ANSWER_REFUSED, 0);
	ck_assert(span_equal(told[1].text, SPAN("LOADING Redis is loading")));
	tolds = 0;
	ck_assert_int_eq(answer_text("-ERR user_script:31: attempt to index a nil value script: f, on @user_script:31.\r\n"), 0);
	check_answer(0, 1, ANSWER_UNKNOWN, 0);
	check_answer(1, 2, ANSWER_UNKNOWN, 0);
}

TEST(the_clock_alone_says_that_releases_and_acquires_got_what_they_asked_for)
{
	struct call acquire = {.id = 2, .kind = CALL_ACQUIRE, .name = SPAN("a"), .marker = SPAN("m"), .px_ms = 9000, .fence = 77, .range = 2};

	batch_add(&batch, &keys, &acquire, 2);
	add(CALL_RELEASE, 1);
	ck_assert_int_eq(answer_text("*1\r\n:1761234567890123\r\n"), 0);
	check_answer(0, 1, ANSWER_EXECUTED, 'R');
	check_answer(1, 2, ANSWER_EXECUTED, 'G');
	ck_assert_int_eq(told[1].fence, 77);
	ck_assert_int_eq(told[1].pttl_ms, 9000);
	ck_assert_int_eq(told[1].server_us, 1761234567890123);
}

/* A row is missing, or an acquire proposed no token. */
LOOP_TEST(the_clock_alone_is_no_answer_to_other_calls, 2)
{
	add(_i ? CALL_ACQUIRE : CALL_LOOK, 1);
	add(CALL_RELEASE, 2);
	ck_assert_int_eq(answer_text("*1\r\n:1761234567890123\r\n"), -EPROTO);
	ck_assert_uint_eq(tolds, 0);
}

/* Against a batch of one ACQUIRE and one LOOK. */
#define GRANT  "*4\r\n$1\r\nG\r\n:42\r\n:9000\r\n$0\r\n\r\n"
#define ABSENT "*4\r\n$1\r\nM\r\n:42\r\n:-2\r\n$0\r\n\r\n"

static const char *const bad_rows[] = {
	":1\r\n",
	"$-1\r\n",
	"*-1\r\n",
	"*0\r\n",
	"+OK\r\n",
	"*1\r\n:1\r\n",
	"*2\r\n:1\r\n" GRANT,             /* too few */
	"*4\r\n:1\r\n" GRANT ABSENT ABSENT, /* too many */
	"*3\r\n$1\r\n1\r\n" GRANT ABSENT,  /* the clock is no number */
	"*3\r\n:0\r\n" GRANT ABSENT,       /* nor is this one possible */
	"*3\r\n:-5\r\n" GRANT ABSENT,
	"*3\r\n:9007199254740993\r\n" GRANT ABSENT,
	"*3\r\n:1\r\n" ABSENT GRANT, /* codes of the other operation */
	"*3\r\n:1\r\n" GRANT GRANT,
	"*3\r\n:1\r\n" GRANT ":1\r\n", /* a number where none is an answer */
	"*3\r\n:1\r\n:-1\r\n" ABSENT,
	"*3\r\n:1\r\n:9007199254740993\r\n" ABSENT,
	"*3\r\n:1\r\n" GRANT "$-1\r\n",
	"*3\r\n:1\r\n" GRANT "*0\r\n",
	"*3\r\n:1\r\n" GRANT "*1\r\n$1\r\nM\r\n",
	"*3\r\n:1\r\n" GRANT "*2\r\n$1\r\nM\r\n:1\r\n",
	"*3\r\n:1\r\n" GRANT "*2\r\n$1\r\n!\r\n:1\r\n",
	"*3\r\n:1\r\n" GRANT "*3\r\n$1\r\n!\r\n$1\r\nx\r\n$1\r\nx\r\n",
	"*3\r\n:1\r\n" GRANT "*4\r\n:1\r\n:42\r\n:-2\r\n$0\r\n\r\n",
	"*3\r\n:1\r\n" GRANT "*4\r\n$0\r\n\r\n:42\r\n:-2\r\n$0\r\n\r\n",
	"*3\r\n:1\r\n" GRANT "*4\r\n$2\r\nMM\r\n:42\r\n:-2\r\n$0\r\n\r\n",
	"*3\r\n:1\r\n" GRANT "*4\r\n$1\r\nM\r\n:-42\r\n:-2\r\n$0\r\n\r\n",
	"*3\r\n:1\r\n" GRANT "*4\r\n$1\r\nM\r\n:9007199254740993\r\n:-2\r\n$0\r\n\r\n",
	"*3\r\n:1\r\n" GRANT "*4\r\n$1\r\nM\r\n$2\r\n42\r\n:-2\r\n$0\r\n\r\n",
	"*3\r\n:1\r\n" GRANT "*4\r\n$1\r\nM\r\n:42\r\n:-3\r\n$0\r\n\r\n",
	"*3\r\n:1\r\n" GRANT "*4\r\n$1\r\nM\r\n:42\r\n:-2\r\n:0\r\n",
	"*3\r\n:1\r\n" GRANT "*4\r\n$1\r\nM\r\n:42\r\n:-2\r\n*1\r\n$0\r\n\r\n",
	"*3\r\n:1\r\n" GRANT "*5\r\n$1\r\nM\r\n:42\r\n:-2\r\n$0\r\n\r\n$0\r\n\r\n",
	"*3\r\n:1\r\n" GRANT "*4\r\n*1\r\n$1\r\nM\r\n:42\r\n:-2\r\n$0\r\n\r\n",
};

LOOP_TEST(a_reply_of_another_shape_answers_nothing, sizeof(bad_rows) / sizeof(*bad_rows))
{
	add(CALL_ACQUIRE, 1);
	add(CALL_LOOK, 2);
	ck_assert_int_eq(answer_text(bad_rows[_i]), -EPROTO);
	ck_assert_uint_eq(tolds, 0);
}

LOOP_TEST(a_release_and_a_withdrawal_are_answered_by_a_number, 8)
{
	static const char *const rows[] = {":2\r\n", ":-1\r\n", "*4\r\n$1\r\nR\r\n:42\r\n:-2\r\n$0\r\n\r\n",
	                                   "*4\r\n$1\r\nX\r\n:42\r\n:-2\r\n$0\r\n\r\n"};
	char text[64];

	add(_i % 2 ? CALL_WITHDRAW : CALL_RELEASE, 1);
	snprintf(text, sizeof(text), "*2\r\n:1\r\n%s", rows[_i / 2]);
	ck_assert_int_eq(answer_text(text), -EPROTO);
	ck_assert_uint_eq(tolds, 0);
}

TEST(a_holder_longer_than_any_value_is_garbage)
{
	char text[512];

	add(CALL_ACQUIRE, 1);
	(void)snprintf(text, sizeof(text), "*2\r\n:1\r\n*4\r\n$1\r\nB\r\n:1\r\n:1\r\n$129\r\n%0129d\r\n", 1);
	ck_assert_int_eq(answer_text(text), -EPROTO);
	(void)snprintf(text, sizeof(text), "*2\r\n:1\r\n*4\r\n$1\r\nQ\r\n:1\r\n:-2\r\n$257\r\n%0257d\r\n", 1);
	ck_assert_int_eq(answer_text(text), -EPROTO);
	(void)snprintf(text, sizeof(text), "*2\r\n:1\r\n*4\r\n$1\r\nQ\r\n:1\r\n:-2\r\n$256\r\n%0256d\r\n", 1);
	ck_assert_int_eq(answer_text(text), 0);
}

TEST(a_join_is_done_or_late_or_finds_another_marker)
{
	add(CALL_MARK, 3);
	ck_assert_int_eq(answer_text("*3\r\n:5\r\n$1\r\nJ\r\n$3\r\nj|n\r\n"), 0);
	check_answer(0, 3, ANSWER_EXECUTED, 'J');
	ck_assert_int_eq(answer_text("*3\r\n:5\r\n$1\r\nX\r\n$3\r\nq|o\r\n"), 0);
	check_answer(1, 3, ANSWER_EXECUTED, 'X');
	ck_assert(span_equal(told[1].found, SPAN("q|o")));
	ck_assert_int_eq(answer_text("*3\r\n:5\r\n$1\r\nL\r\n$3\r\nq|o\r\n"), 0);
	check_answer(2, 3, ANSWER_EXECUTED, 'L');
	ck_assert_int_eq(answer_text("*3\r\n:5\r\n$1\r\nG\r\n$3\r\nq|o\r\n"), -EPROTO);
	ck_assert_int_eq(answer_text("*2\r\n:5\r\n$1\r\nJ\r\n"), -EPROTO);
	ck_assert_int_eq(answer_text("*3\r\n:5\r\n*1\r\n:1\r\n$3\r\nq|o\r\n"), -EPROTO);
}

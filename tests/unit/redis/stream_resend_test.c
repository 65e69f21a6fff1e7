/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/stream.c: the server has forgotten a script, so the calls of that script are sent again, with its text. */
#include "tests/fixture/conversation.h"

#define NOSCRIPT "-NOSCRIPT No matching script. Please use EVAL.\r\n"

FIXTURE(.setup = conversation_setup, .teardown = conversation_teardown)

TEST(a_flushed_script_cache_is_not_noticed)
{
	shake_hands();
	call(CALL_ACQUIRE, 1, "a");
	flush();
	stream_consume(&stream, buf_length(&stream.out));
	ck_assert_ptr_null(take(NOSCRIPT));
	ck_assert_uint_eq(answers.count, 0);
	ck_assert_uint_eq(said("SCRIPT"), 1);
	ck_assert_uint_eq(said("$4\r\nEVAL\r\n"), 1);
	ck_assert_uint_eq(said("$6\r\nlock:a\r\n"), 1);
	ck_assert_ptr_null(take(SHA_REPLY GRANT));
	answer_sink_check(&answers, 1, ANSWER_EXECUTED, 'G');
}

TEST(calls_that_are_sent_again_come_before_new_ones)
{
	shake_hands();
	call(CALL_ACQUIRE, 1, "a");
	flush();
	stream_consume(&stream, buf_length(&stream.out));
	call(CALL_RELEASE, 2, "a");
	ck_assert_ptr_null(take(NOSCRIPT));
	flush();
	ck_assert_uint_eq(said("$4\r\nEVAL\r\n"), 1);
	ck_assert(memmem(buf_begin(&stream.out), buf_length(&stream.out), "$4\r\nEVAL\r\n", 10) <
		  memmem(buf_begin(&stream.out), buf_length(&stream.out), "EVALSHA", 7));
	ck_assert_ptr_null(take(SHA_REPLY GRANT FREED));
	answer_sink_check(&answers, 1, ANSWER_EXECUTED, 'G');
	answer_sink_check(&answers, 2, ANSWER_EXECUTED, 'R');
}

/* Its release may have been carried out already: another daemon loaded the script in between. */
TEST(a_call_is_not_sent_again_behind_a_later_one_for_the_same_name)
{
	shake_hands();
	call(CALL_ACQUIRE, 1, "a");
	call(CALL_ACQUIRE, 2, "b");
	flush();
	call(CALL_RELEASE, 3, "a");
	flush();
	stream_consume(&stream, buf_length(&stream.out));
	ck_assert_ptr_null(take(NOSCRIPT));
	answer_sink_check(&answers, 1, ANSWER_REFUSED, 0);
	ck_assert_uint_eq(answers.count, 1);
	ck_assert_uint_eq(said("$6\r\nlock:a\r\n"), 0);
	ck_assert_uint_eq(said("$6\r\nlock:b\r\n"), 1);
	ck_assert_ptr_null(take("*2\r\n:1\r\n:0\r\n" SHA_REPLY GRANT));
	answer_sink_check(&answers, 2, ANSWER_EXECUTED, 'G');
	answer_sink_check(&answers, 3, ANSWER_EXECUTED, 'N');
}

/* Other calls without a name are behind it. */
TEST(a_probe_is_sent_again_in_any_case)
{
	shake_hands();
	call(CALL_PROBE, 1, "");
	call(CALL_ACQUIRE, 2, "");
	flush();
	stream_consume(&stream, buf_length(&stream.out));
	ck_assert_ptr_null(take(NOSCRIPT));
	ck_assert_uint_eq(answers.count, 0);
	ck_assert_uint_eq(said("$4\r\nEVAL\r\n"), 1);
}

TEST(a_second_noscript_is_a_refusal)
{
	shake_hands();
	call(CALL_ACQUIRE, 1, "a");
	call(CALL_PROBE, 2, "");
	flush();
	ck_assert_ptr_null(take(NOSCRIPT NOSCRIPT));
	ck_assert_uint_eq(answers.count, 0);
	ck_assert_ptr_null(take("-NOPERM no eval\r\n" NOSCRIPT SHA_REPLY "-NOPERM no eval\r\n"));
	answer_sink_check(&answers, 1, ANSWER_REFUSED, 0);
	answer_sink_check(&answers, 2, ANSWER_REFUSED, 0);
	ck_assert(stream_oldest(&stream).us == INSTANT_NEVER.us);
}

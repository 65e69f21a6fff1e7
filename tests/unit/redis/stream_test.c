/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/stream.c: the calls of a connection and their replies, how it ends, and how it goes on in another process. */
#include "tests/fixture/conversation.h"

#include <stdlib.h>

FIXTURE(.setup = conversation_setup, .teardown = conversation_teardown)

TEST(calls_of_one_pass_are_one_command)
{
	shake_hands();
	call(CALL_ACQUIRE, 2, "b");
	call(CALL_EXTEND, 3, "c");
	call(CALL_RELEASE, 1, "a");
	ck_assert_uint_eq(buf_length(&stream.out), 0);
	flush();
	ck_assert_uint_eq(said("EVALSHA"), 1);
	ck_assert_uint_eq(said("$6\r\nlock:a\r\n$6\r\nlock:b\r\n$6\r\nlock:c\r\n"), 1);
	ck_assert_ptr_null(take("*4\r\n:1\r\n:0\r\n*4\r\n$1\r\nG\r\n:42\r\n:9000\r\n$0\r\n\r\n*4\r\n$1\r\nM\r\n:42\r\n:-2\r\n$0\r\n\r\n"));
	ck_assert_uint_eq(answers.count, 3);
	ck_assert_uint_eq(answers.item[0].call, 1);
	ck_assert_uint_eq(answers.item[1].call, 2);
	ck_assert_uint_eq(answers.item[2].call, 3);
	answer_sink_check(&answers, 3, ANSWER_EXECUTED, 'M');
}

TEST(a_probe_between_calls_keeps_its_place)
{
	shake_hands();
	call(CALL_ACQUIRE, 1, "a");
	call(CALL_PROBE, 2, "");
	call(CALL_RELEASE, 3, "b");
	flush();
	ck_assert_uint_eq(said("EVALSHA"), 3);
	ck_assert_ptr_null(take(GRANT "-ERR no probe\r\n" FREED));
	answer_sink_check(&answers, 1, ANSWER_EXECUTED, 'G');
	answer_sink_check(&answers, 2, ANSWER_UNKNOWN, 0);
	answer_sink_check(&answers, 3, ANSWER_EXECUTED, 'R');
}

TEST(a_connection_that_lost_its_password_is_of_no_use)
{
	shake_hands();
	call(CALL_ACQUIRE, 1, "a");
	flush();
	ck_assert_str_eq(take("-NOAUTH Authentication required.\r\n"), "NOAUTH Authentication required.");
	answer_sink_check(&answers, 1, ANSWER_REFUSED, 0);
	ck_assert(!answers.item[0].unsent); /* the server said so */
}

TEST(a_reply_to_nothing_is_garbage)
{
	shake_hands();
	ck_assert_str_eq(take("+PONG\r\n"), FAILURE_GARBAGE);
}

TEST(an_error_before_the_server_closes_is_told)
{
	shake_hands();
	ck_assert_str_eq(take("-ERR going away\r\n"), "ERR going away");
}

TEST(a_reply_of_another_shape_leaves_its_calls_unknown)
{
	shake_hands();
	call(CALL_ACQUIRE, 1, "a");
	flush();
	call(CALL_PROBE, 2, "");
	call(CALL_RELEASE, 3, "c");
	flush();
	stream_consume(&stream, buf_length(&stream.out));
	ck_assert_str_eq(take("*1\r\n:1\r\n"), FAILURE_GARBAGE);
	answer_sink_check(&answers, 1, ANSWER_UNKNOWN, 0);
	ck_assert_uint_eq(answers.count, 1);
	stream_close(&stream, stream.handed, FAILURE_GARBAGE);
	answer_sink_check(&answers, 2, ANSWER_UNKNOWN, 0);
	answer_sink_check(&answers, 3, ANSWER_UNKNOWN, 0);
	ck_assert_str_eq(answers.item[2].text, FAILURE_GARBAGE);
}

LOOP_TEST(a_call_of_which_no_byte_was_taken_is_refused_and_any_other_unknown, 2)
{
	uint64_t second;

	shake_hands();
	call(CALL_ACQUIRE, 1, "a");
	flush();
	second = stream.handed + buf_length(&stream.out);
	call(CALL_PROBE, 2, "");
	flush();
	stream_consume(&stream, buf_length(&stream.out));
	call(CALL_ACQUIRE, 3, "c");
	stream_close(&stream, _i == 0 ? second : second + 1, "reset");
	answer_sink_check(&answers, 1, ANSWER_UNKNOWN, 0);
	answer_sink_check(&answers, 2, _i == 0 ? ANSWER_REFUSED : ANSWER_UNKNOWN, 0);
	answer_sink_check(&answers, 3, ANSWER_REFUSED, 0);
	ck_assert(!answers.item[0].unsent && answers.item[1].unsent == (_i == 0) && answers.item[2].unsent);
	ck_assert_uint_eq(answers.count, 3);
}

TEST(after_a_close_the_next_connection_begins_anew)
{
	shake_hands();
	call(CALL_ACQUIRE, 1, "a");
	flush();
	ck_assert_ptr_null(take("*2\r\n:1\r\n*4\r\n$1"));
	stream_close(&stream, 0, "reset");
	shake_hands();
	call(CALL_ACQUIRE, 2, "a");
	flush();
	ck_assert_ptr_null(take(GRANT));
	answer_sink_check(&answers, 2, ANSWER_EXECUTED, 'G');
}

TEST(the_oldest_command_is_the_one_to_wait_for)
{
	shake_hands();
	ck_assert(stream_oldest(&stream).us == INSTANT_NEVER.us);
	call(CALL_RELEASE, 1, "a");
	flush();
	now.us += SEC;
	stream_ping(&stream, now);
	ck_assert(stream_oldest(&stream).us == now.us - SEC);
	ck_assert(stream.last.us == now.us);
	ck_assert_ptr_null(take(FREED));
	ck_assert(stream_oldest(&stream).us == now.us);
	ck_assert_ptr_null(take("-BUSY Redis is busy\r\n"));
	ck_assert(stream_oldest(&stream).us == INSTANT_NEVER.us);
}

TEST(a_stream_is_quiet_when_nothing_but_a_ping_is_unanswered)
{
	shake_hands();
	stream_ping(&stream, now);
	ck_assert(!stream_is_quiet(&stream)); /* it is not sent yet */
	stream_consume(&stream, buf_length(&stream.out));
	ck_assert(stream_is_quiet(&stream));
	call(CALL_ACQUIRE, 1, "a");
	ck_assert(!stream_is_quiet(&stream));
	flush();
	ck_assert(!stream_is_quiet(&stream));
	ck_assert_ptr_null(take("+PONG\r\n" GRANT));
	answer_sink_check(&answers, 1, ANSWER_EXECUTED, 'G');
	stream_consume(&stream, buf_length(&stream.out));
	ck_assert(stream_is_quiet(&stream));
}

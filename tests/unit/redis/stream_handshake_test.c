/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/stream.c: how a connection begins: the password, the database, the scripts. */
#include "daemon/redis/handshake.h"
#include "tests/fixture/conversation.h"

static char user[] = "redlock", password[] = "hunter2hunter2";

FIXTURE(.setup = conversation_setup, .teardown = conversation_teardown)

TEST(the_handshake_is_one_piece)
{
	conf.user = user;
	conf.password = password;
	conf.database = 3;
	stream_open(&stream, now);
	ck_assert_uint_eq(said("*3\r\n$4\r\nAUTH\r\n$7\r\nredlock\r\n$14\r\nhunter2hunter2\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n"),
			  1);
	ck_assert_uint_eq(said("*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n"), SCRIPT_N);
	ck_assert_uint_eq(said("\r\n" HANDSHAKE_EVAL "\r\n$1\r\n0\r\n"), 1);
	ck_assert_ptr_null(take("+OK\r\n+OK\r\n" EVAL_REPLY));
	for (unsigned i = 1; i < SCRIPT_N; i++)
		ck_assert_ptr_null(take(SHA_REPLY));
	ck_assert(!stream.ready);
	ck_assert_ptr_null(take(SHA_REPLY));
	ck_assert(stream.ready);
	ck_assert_str_eq(stream.run_id, "run");
}

TEST(the_password_may_stand_alone)
{
	conf.password = password;
	stream_open(&stream, now);
	ck_assert_uint_eq(said("*2\r\n$4\r\nAUTH\r\n$14\r\nhunter2hunter2\r\n"), 1);
	ck_assert_uint_eq(said("SELECT"), 0);
}

static const struct {
	const char *reply, *reason;
} refused_hands[] = {
	{"-WRONGPASS invalid username-password pair or user is disabled.\r\n",
	 "WRONGPASS invalid username-password pair or user is disabled."},
	{"+OK\r\n-ERR DB index is out of range\r\n", "ERR DB index is out of range"},
	{"+OK\r\n+OK\r\n-LOADING Redis is loading the dataset in memory\r\n", "LOADING Redis is loading the dataset in memory"},
	{"-ERR max number of clients reached\r\n", "ERR max number of clients reached"},
	{"+OK\r\n+OK\r\n" EVAL_REPLY SHA_REPLY "+OK\r\n", FAILURE_GARBAGE},
	{"+OK\r\n+OK\r\n:2\r\n", FAILURE_GARBAGE},
	{"+OK\r\n+OK\r\n-NOPERM User u has no permissions to run the 'eval' command\r\n",
	 "NOPERM User u has no permissions to run the 'eval' command"},
	{"+OK\r\n+OK\r\n" EVAL_REPLY "$39\r\n0123456789abcdef0123456789abcdef0123456\r\n", FAILURE_GARBAGE},
	{"+OK\r\n+OK\r\n" EVAL_REPLY "$40\r\n0123456789ABCDEF0123456789abcdef01234567\r\n", FAILURE_GARBAGE},
	{":1\r\n", FAILURE_GARBAGE},
	{"HTTP/1.0 400 Bad Request\r\n", FAILURE_GARBAGE},
};

LOOP_TEST(a_handshake_that_is_refused_says_why, sizeof(refused_hands) / sizeof(*refused_hands))
{
	const char *wrong;

	conf.password = password;
	conf.database = 99;
	stream_open(&stream, now);
	wrong = take(refused_hands[_i].reply);
	ck_assert_ptr_nonnull(wrong);
	ck_assert_str_eq(wrong, refused_hands[_i].reason);
	ck_assert(!stream.ready);
}

static const struct {
	const char *info, *reason;
	enum defect defect;
} without_a_command[] = {
	{"$20\r\nredis_mode:sentinel\n\r\n", FAILURE_SENTINEL, DEFECT_SENTINEL_PORT},
	{"$22\r\nredis_mode:standalone\n\r\n", "ERR (the text is withheld: it repeats the password)", DEFECT_COMMAND},
	{"-NOAUTH Authentication required.\r\n", "ERR (the text is withheld: it repeats the password)", DEFECT_COMMAND},
	{"-ERR unknown command 'INFO'\r\n", "ERR (the text is withheld: it repeats the password)", DEFECT_PROXY},
};

/* A sentinel, a proxy, or a server whose command was renamed: INFO tells them apart. */
LOOP_TEST(what_lacks_a_command_is_asked_what_it_is, sizeof(without_a_command) / sizeof(*without_a_command))
{
	const char *wrong;

	conf.password = password;
	conf.database = 3;
	stream_open(&stream, now);
	ck_assert_ptr_null(take("-ERR unknown command `AUTH`, with args beginning with: `hunter2hunter2`\r\n"));
	ck_assert_uint_eq(said("*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n"), 1);
	ck_assert_ptr_null(take("-ERR unknown command 'SELECT'\r\n-ERR unknown command 'EVAL'\r\n"));
	for (unsigned i = 0; i < SCRIPT_N; i++)
		ck_assert_ptr_null(take("-ERR unknown command 'SCRIPT'\r\n"));
	wrong = take(without_a_command[_i].info);
	ck_assert_ptr_nonnull(wrong);
	ck_assert_str_eq(wrong, without_a_command[_i].reason);
	ck_assert_int_eq(stream.defect, without_a_command[_i].defect);
	ck_assert_uint_eq(said("$6\r\nserver\r\n"), 1);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/upstream.c and node.c when a real server is there but refuses: calls, or to have us at all. */
#include "tests/unit/rig.h"

#include "daemon/redis/verdict.h"
#include <check.h>
#include <sys/stat.h>

static void setup(void)
{
	rig_begin(false);
}

static void teardown(void)
{
	rig_end();
}

static const struct told *told_of(uint64_t call)
{
	rig_answered(call);
	return answers_find(&rig.answers, call);
}

/* Not carried out, and the text begins so. */
static void check_refused(uint64_t call, const char *text)
{
	const struct told *t = told_of(call);

	ck_assert_msg(t->class == ANSWER_REFUSED && !strncmp(t->text, text, strlen(text)), "class %d, text \"%s\"", (int)t->class,
		      t->text);
}

/* --- errors of a server that is there -------------------------------------------------------------------------------- */

/* Acquire, renew and release, of which each must be refused with this text. */
static void check_writes_refused(const char *text)
{
	rig_call_only(CALL_ACQUIRE, 100, "free");
	rig_call_only(CALL_EXTEND, 101, "held");
	rig_call(CALL_RELEASE, 102, "held");
	check_refused(100, text);
	check_refused(101, text);
	check_refused(102, text);
	ck_assert_str_eq(server_tell(&rig.server, "GET lock:held"), RIG_VALUE);
	ck_assert_str_eq(server_tell(&rig.server, "EXISTS lock:free"), "");
	ck_assert_uint_eq(rig.downs, 0);
}

START_TEST(out_of_memory_refuses_what_needs_memory)
{
	rig_hold();
	server_tell(&rig.server, "CONFIG SET maxmemory 1");
	rig_call_only(CALL_ACQUIRE, 100, "free");
	rig_call_only(CALL_EXTEND, 101, "held");
	rig_call_only(CALL_RELEASE, 102, "none");
	rig_call(CALL_RELEASE, 103, "held");
	check_refused(100, "OOM");
	check_refused(101, "OOM");
	rig_answered(102);
	rig_answered(103);
	answers_check(&rig.answers, 102, ANSWER_EXECUTED, 'N');
	answers_check(&rig.answers, 103, ANSWER_EXECUTED, 'R');
}
END_TEST

START_TEST(a_replica_refuses_writes)
{
	rig_hold();
	server_tell(&rig.server, "REPLICAOF 127.0.0.1 1");
	check_writes_refused("READONLY");
	rig_call(CALL_PROBE, 110, "");
	ck_assert_str_eq(told_of(110)->role, "slave");
}
END_TEST

START_TEST(a_master_without_its_replicas_refuses_writes)
{
	rig_hold();
	server_tell(&rig.server, "CONFIG SET min-replicas-to-write 1");
	check_writes_refused("NOREPLICAS");
}
END_TEST

START_TEST(a_server_that_cannot_save_refuses_writes)
{
	struct call call = rig_make(CALL_JOIN, 111, "");
	char dump[128];

	rig_hold();
	(void)snprintf(dump, sizeof(dump), "%s/dump.rdb", rig.server.dir);
	ck_assert_int_eq(mkdir(dump, 0700), 0);
	server_tell(&rig.server, "CONFIG SET save %s", "1 1");
	server_tell(&rig.server, "BGSAVE");
	while (!strstr(server_tell(&rig.server, "INFO persistence"), "rdb_last_bgsave_status:err"))
		;
	check_writes_refused("MISCONF");
	call.marker = SPAN(RIG_MARKER);
	rig_send(&call);
	check_refused(111, "MISCONF");
}
END_TEST

/* {what the user may do, how the refusals begin} */
static const struct {
	const char *rules, *text;
} users[] = {
	{"~lock:* ~redlockd:lock:* +@all -set -del", "ERR The user executing the script can't"},
	{"~redlockd:lock:!* +@all", "NOPERM"},
	{"~redlockd:lock:!* +@all -evalsha -eval", "NOPERM"},
};

START_TEST(a_user_without_permission_is_refused)
{
	char line[256];

	server_tell(&rig.server, "SET redlockd:lock:!meta " RIG_MARKER);
	server_tell(&rig.server, "SET lock:held " RIG_VALUE);
	(void)snprintf(line, sizeof(line), "ACL SETUSER u on >pw resetchannels %s", users[_i].rules);
	server_tell_line(&rig.server, line);
	rig.conf.user = "u";
	rig.conf.password = "pw";
	rig_up();
	check_writes_refused(users[_i].text);
}
END_TEST

START_TEST(a_key_that_may_not_be_read_is_no_key_of_another)
{
	server_tell(&rig.server, "ACL SETUSER u on >pw resetchannels ~* +@all -pttl");
	server_tell(&rig.server, "SET lock:n foreign");
	rig.conf.user = "u";
	rig.conf.password = "pw";
	rig_up();
	rig_join(1);
	rig_call(CALL_ACQUIRE, 2, "n");
	check_refused(2, "ERR The user executing the script can't");
}
END_TEST

/* Somebody else's script that never ends; what the server says when it is killed goes through our own table. */
START_TEST(a_busy_server_refuses_and_then_goes_on)
{
	redisContext *other = server_connect(&rig.server);
	redisReply *reply;
	int done = 0;
	uint64_t id = 10;

	rig.conf.ping_us = 50 * MSEC;
	rig_hold();
	server_tell(&rig.server, "CONFIG SET busy-reply-threshold 1");
	redisAppendCommand(other, "EVAL %s 0", "while true do end");
	while (!done)
		redisBufferWrite(other, &done);
	do
		rig_call(CALL_RELEASE, ++id, "none");
	while (told_of(id)->class == ANSWER_EXECUTED);
	check_refused(id, "BUSY");
	rig_call(CALL_PROBE, 9000, "");
	check_refused(9000, "BUSY");
	server_tell(&rig.server, "SCRIPT KILL");
	ck_assert_int_eq(redisGetReply(other, (void **)&reply), REDIS_OK);
	ck_assert_int_eq(reply->type, REDIS_REPLY_ERROR);
	ck_assert_int_eq(verdict_of(span_of(reply->str)), ANSWER_REFUSED);
	freeReplyObject(reply);
	redisFree(other);
	rig_expect(CALL_EXTEND, 9001, "held", 'E');
	ck_assert_uint_eq(rig.downs, 0);
}
END_TEST

static const char *const fences[] = {"nonsense", "nan", "inf", "-5", "1e300", "12345678901234567"};

START_TEST(a_fence_key_with_nonsense_refuses_all_until_a_join_mends_it)
{
	struct call call = rig_make(CALL_JOIN, 20, "");

	rig_hold();
	server_tell(&rig.server, "SET redlockd:lock:!fence %s", fences[_i]);
	check_writes_refused("ERR the fence key holds no number");
	rig_call(CALL_PROBE, 12, "");
	rig_answered(12);
	answers_check(&rig.answers, 12, ANSWER_UNKNOWN, 0);
	call.marker = SPAN(RIG_MARKER);
	rig_send(&call);
	rig_answered(20);
	answers_check(&rig.answers, 20, ANSWER_EXECUTED, 'J');
	rig_expect(CALL_ACQUIRE, 21, "free", 'G');
	ck_assert_int_gt(answers_find(&rig.answers, 21)->fence, answers_find(&rig.answers, 20)->server_us + 59 * SEC);
}
END_TEST

START_TEST(a_key_of_ours_of_another_type_leaves_calls_unknown)
{
	const char *key = _i == 0 ? "redlockd:lock:!fence" : "redlockd:lock:!meta";

	rig_hold();
	server_tell(&rig.server, "DEL %s", key);
	server_tell(&rig.server, "HSET %s f v", key);
	rig_call_only(CALL_RELEASE, 10, "held");
	rig_call(CALL_PROBE, 11, "");
	rig_answered(11);
	rig_answered(10);
	answers_check(&rig.answers, 10, ANSWER_UNKNOWN, 0);
	answers_check(&rig.answers, 11, ANSWER_UNKNOWN, 0);
	ck_assert_ptr_nonnull(strstr(answers_find(&rig.answers, 11)->text, "WRONGTYPE"));
	ck_assert_uint_eq(rig.downs, 0);
}
END_TEST

/* --- servers that will not have us ----------------------------------------------------------------------------------- */

/* Told once, however often it is tried. */
static void check_told_once(unsigned before, const char *reason)
{
	rig_await(&rig.downs, 1);
	ck_assert_msg(!strncmp(rig.reason[0], reason, strlen(reason)), "%s", rig.reason[0]);
	while (rig_server_count("stats", "total_connections_received:") < before + 6) {
		rig_call(CALL_RELEASE, rig.answers.count + 1, "n");
		rig_await(&rig.answers.count, rig.answers.count + 1);
		ck_assert_int_eq(rig.answers.item[rig.answers.count - 1].class, ANSWER_REFUSED);
	}
	ck_assert_uint_eq(rig.downs, 1);
	ck_assert_uint_eq(rig.ups, 0);
}

START_TEST(a_wrong_password_is_told_once_and_a_right_one_heals_it)
{
	server_tell(&rig.server, "ACL SETUSER u on >hunter2 ~* &* +@all");
	rig.conf.user = "u";
	rig.conf.password = "swordfish";
	rig_dial();
	check_told_once(rig_server_count("stats", "total_connections_received:"), "WRONGPASS");
	ck_assert_ptr_null(strstr(rig.reason[0], "swordfish"));
	upstream_set_password(rig.upstream, "u", "hunter2");
	rig_await(&rig.ups, 1);
}
END_TEST

START_TEST(a_missing_password_is_told)
{
	static const char *const options[] = {"--requirepass", "s3cret", NULL};

	server_kill(&rig.server);
	server_start_with_password(options, "s3cret");
	rig_dial();
	check_told_once(rig_server_count("stats", "total_connections_received:"), "NOAUTH");
}
END_TEST

START_TEST(a_user_who_may_not_load_scripts_is_told)
{
	server_tell(&rig.server, "ACL SETUSER u on >pw ~* &* +@all -script|load");
	rig.conf.user = "u";
	rig.conf.password = "pw";
	rig_dial();
	check_told_once(rig_server_count("stats", "total_connections_received:"), "NOPERM");
}
END_TEST

START_TEST(a_database_that_does_not_exist_is_told)
{
	rig.conf.database = 4711;
	rig_dial();
	check_told_once(rig_server_count("stats", "total_connections_received:"), "ERR DB index is out of range");
}
END_TEST

START_TEST(a_server_with_too_many_clients_is_told_and_used_when_it_has_room)
{
	rig.conf.links = 3;
	server_tell(&rig.server, "CONFIG SET maxclients 3");
	rig_dial();
	rig_await(&rig.downs, 1);
	ck_assert_str_eq(rig.reason[0], "ERR max number of clients reached");
	server_tell(&rig.server, "CONFIG SET maxclients 100");
	rig_await(&rig.ups, 1);
	ck_assert_uint_eq(rig.downs, 1);
}
END_TEST

START_TEST(a_server_that_is_loading_is_told_and_used_afterwards)
{
	static const char *const slowly[] = {"--key-load-delay", "50", "--loading-process-events-interval-bytes", "1024", NULL};
	unsigned i;

	for (i = 0; i < 20000; i++)
		redisAppendCommand(rig.server.admin, "SET k%u v", i);
	for (i = 0; i < 20000; i++) {
		redisReply *reply;

		ck_assert_int_eq(redisGetReply(rig.server.admin, (void **)&reply), REDIS_OK);
		freeReplyObject(reply);
	}
	server_tell(&rig.server, "SAVE");
	server_kill(&rig.server);
	server_begin(&rig.server, slowly);
	rig_dial();
	rig_await(&rig.downs, 1);
	ck_assert_msg(!strncmp(rig.reason[0], "LOADING", 7), "%s", rig.reason[0]);
	rig_await(&rig.ups, 1);
	ck_assert_uint_eq(rig.downs, 1);
}
END_TEST

static void add_errors(Suite *s)
{
	TCase *t = tcase_create("errors");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, out_of_memory_refuses_what_needs_memory);
	tcase_add_test(t, a_replica_refuses_writes);
	tcase_add_test(t, a_master_without_its_replicas_refuses_writes);
	tcase_add_test(t, a_server_that_cannot_save_refuses_writes);
	tcase_add_loop_test(t, a_user_without_permission_is_refused, 0, sizeof(users) / sizeof(*users));
	tcase_add_test(t, a_key_that_may_not_be_read_is_no_key_of_another);
	tcase_add_test(t, a_busy_server_refuses_and_then_goes_on);
	tcase_add_loop_test(t, a_fence_key_with_nonsense_refuses_all_until_a_join_mends_it, 0, sizeof(fences) / sizeof(*fences));
	tcase_add_loop_test(t, a_key_of_ours_of_another_type_leaves_calls_unknown, 0, 2);
	suite_add_tcase(s, t);
}

static void add_handshakes(Suite *s)
{
	TCase *t = tcase_create("handshakes");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_wrong_password_is_told_once_and_a_right_one_heals_it);
	tcase_add_test(t, a_missing_password_is_told);
	tcase_add_test(t, a_user_who_may_not_load_scripts_is_told);
	tcase_add_test(t, a_database_that_does_not_exist_is_told);
	tcase_add_test(t, a_server_with_too_many_clients_is_told_and_used_when_it_has_room);
	tcase_add_test(t, a_server_that_is_loading_is_told_and_used_afterwards);
	suite_add_tcase(s, t);
}

Suite *refusal_suite(void)
{
	Suite *s = suite_create("refusal");

	add_errors(s);
	add_handshakes(s);
	return s;
}

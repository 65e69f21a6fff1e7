/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/upstream.c and node.c: a real server that refuses some calls, or refuses us at all. */
#include "tests/fixture/real_upstream.h"

#include "daemon/redis/failure.h"
#include <check.h>
#include <sys/stat.h>

static void setup(void)
{
	real_upstream_begin(false);
}

static void teardown(void)
{
	real_upstream_end();
}

static const struct received *told_of(uint64_t call)
{
	real_upstream_answered(call);
	return answer_sink_find(&real_upstream.answers, call);
}

/* Not carried out, and the text begins so. */
static void check_refused(uint64_t call, const char *text)
{
	const struct received *t = told_of(call);

	ck_assert_msg(t->class == ANSWER_REFUSED && !strncmp(t->text, text, strlen(text)), "class %d, text \"%s\"", (int)t->class,
		      t->text);
}

/* --- errors of a server that is there -------------------------------------------------------------------------------- */

/* Acquire, renew and release, of which each must be refused with this text. */
static void check_writes_refused(const char *text)
{
	real_upstream_call_only(CALL_ACQUIRE, 100, "free");
	real_upstream_call_only(CALL_EXTEND, 101, "held");
	real_upstream_call(CALL_RELEASE, 102, "held");
	check_refused(100, text);
	check_refused(101, text);
	check_refused(102, text);
	ck_assert_str_eq(real_redis_tell(&real_upstream.server, "GET lock:held"), REAL_UPSTREAM_VALUE);
	ck_assert_str_eq(real_redis_tell(&real_upstream.server, "EXISTS lock:free"), "");
	ck_assert_uint_eq(real_upstream.downs, 0);
}

FIXTURE(.setup = setup, .teardown = teardown, .seconds = 60)

TEST(out_of_memory_refuses_what_needs_memory)
{
	real_upstream_hold();
	real_redis_tell(&real_upstream.server, "CONFIG SET maxmemory 1");
	real_upstream_call_only(CALL_ACQUIRE, 100, "free");
	real_upstream_call_only(CALL_EXTEND, 101, "held");
	real_upstream_call_only(CALL_RELEASE, 102, "none");
	real_upstream_call(CALL_RELEASE, 103, "held");
	check_refused(100, "OOM");
	real_upstream_answered(101);
	answer_sink_check(&real_upstream.answers, 101, ANSWER_EXECUTED, 'E'); /* a renewal needs none */
	real_upstream_answered(102);
	real_upstream_answered(103);
	answer_sink_check(&real_upstream.answers, 102, ANSWER_EXECUTED, 'N');
	answer_sink_check(&real_upstream.answers, 103, ANSWER_EXECUTED, 'R');
}

TEST(a_replica_refuses_writes)
{
	real_upstream_hold();
	real_redis_tell(&real_upstream.server, "REPLICAOF 127.0.0.1 1");
	check_writes_refused("READONLY");
	real_upstream_call(CALL_PROBE, 110, "");
	ck_assert_str_eq(told_of(110)->role, "slave");
}

TEST(a_master_without_its_replicas_refuses_writes)
{
	real_upstream_hold();
	real_redis_tell(&real_upstream.server, "CONFIG SET min-replicas-to-write 1");
	check_writes_refused("NOREPLICAS");
}

TEST(a_server_that_cannot_save_refuses_writes)
{
	struct call call = real_upstream_make(CALL_MARK, 111, "");
	char dump[128];

	real_upstream_hold();
	(void)snprintf(dump, sizeof(dump), "%s/dump.rdb", real_upstream.server.dir);
	ck_assert_int_eq(mkdir(dump, 0700), 0);
	real_redis_tell(&real_upstream.server, "CONFIG SET save %s", "1 1");
	real_redis_tell(&real_upstream.server, "BGSAVE");
	while (!strstr(real_redis_tell(&real_upstream.server, "INFO persistence"), "rdb_last_bgsave_status:err"))
		;
	check_writes_refused("MISCONF");
	call.marker = SPAN(REAL_UPSTREAM_MARKER);
	real_upstream_send(&call);
	check_refused(111, "MISCONF");
}

/* {what the user may do, how the refusals begin} */
static const struct {
	const char *rules, *text;
} users[] = {
	{"~lock:* ~redlockd:lock:* +@all -set -pexpire -del", "ERR The user executing the script can't"},
	{"~redlockd:lock:!* +@all", "NOPERM"},
	{"~redlockd:lock:!* +@all -evalsha", "NOPERM"},
};

LOOP_TEST(a_user_without_permission_is_refused, sizeof(users) / sizeof(*users))
{
	char line[256];

	real_redis_tell(&real_upstream.server, "SET redlockd:lock:!meta " REAL_UPSTREAM_MARKER);
	real_redis_tell(&real_upstream.server, "SET lock:held " REAL_UPSTREAM_VALUE);
	(void)snprintf(line, sizeof(line), "ACL SETUSER u on >pw resetchannels %s", users[_i].rules);
	real_redis_tell_line(&real_upstream.server, line);
	real_upstream.conf.user = "u";
	real_upstream.conf.password = "pw";
	real_upstream_up();
	check_writes_refused(users[_i].text);
}

TEST(a_key_that_may_not_be_read_is_no_key_of_another)
{
	real_redis_tell(&real_upstream.server, "ACL SETUSER u on >pw resetchannels ~* +@all -pttl");
	real_redis_tell(&real_upstream.server, "SET lock:n foreign");
	real_upstream.conf.user = "u";
	real_upstream.conf.password = "pw";
	real_upstream_up();
	real_upstream_join(1);
	real_upstream_call(CALL_ACQUIRE, 2, "n");
	check_refused(2, "ERR The user executing the script can't");
}

/* A foreign script never ends. The error of the server when it is killed goes through our own table. */
TEST(a_busy_server_refuses_and_then_goes_on)
{
	redisContext *other = real_redis_connect(&real_upstream.server);
	redisReply *reply;
	int done = 0;
	uint64_t id = 10;

	real_upstream.conf.ping_us = 50 * MSEC;
	real_upstream_hold();
	real_redis_tell(&real_upstream.server, "CONFIG SET busy-reply-threshold 1");
	redisAppendCommand(other, "EVAL %s 0", "while true do end");
	while (!done)
		redisBufferWrite(other, &done);
	do
		real_upstream_call(CALL_RELEASE, ++id, "none");
	while (told_of(id)->class == ANSWER_EXECUTED);
	check_refused(id, "BUSY");
	real_upstream_call(CALL_PROBE, 9000, "");
	check_refused(9000, "BUSY");
	real_redis_tell(&real_upstream.server, "SCRIPT KILL");
	ck_assert_int_eq(redisGetReply(other, (void **)&reply), REDIS_OK);
	ck_assert_int_eq(reply->type, REDIS_REPLY_ERROR);
	ck_assert_int_eq(failure_class(span_of(reply->str)), ANSWER_REFUSED);
	freeReplyObject(reply);
	redisFree(other);
	real_upstream_expect(CALL_EXTEND, 9001, "held", 'E');
	ck_assert_uint_eq(real_upstream.downs, 0);
}

static const char *const fences[] = {"nonsense", "nan", "inf", "-5", "1e300", "12345678901234567"};

LOOP_TEST(a_fence_key_with_nonsense_refuses_all_until_a_join_mends_it, sizeof(fences) / sizeof(*fences))
{
	struct call call = real_upstream_make(CALL_MARK, 20, "");

	real_upstream_hold();
	real_redis_tell(&real_upstream.server, "SET redlockd:lock:!fence %s", fences[_i]);
	check_writes_refused("ERR the fence key holds no number");
	real_upstream_call(CALL_PROBE, 12, "");
	real_upstream_answered(12);
	answer_sink_check(&real_upstream.answers, 12, ANSWER_UNKNOWN, 0);
	call.marker = SPAN(REAL_UPSTREAM_MARKER);
	real_upstream_send(&call);
	real_upstream_answered(20);
	answer_sink_check(&real_upstream.answers, 20, ANSWER_EXECUTED, 'J');
	real_upstream_expect(CALL_ACQUIRE, 21, "free", 'G');
	ck_assert_int_gt(answer_sink_find(&real_upstream.answers, 21)->fence, answer_sink_find(&real_upstream.answers, 20)->server_us + 59 * SEC);
}

LOOP_TEST(a_key_of_ours_of_another_type_leaves_calls_unknown, 2)
{
	const char *key = _i == 0 ? "redlockd:lock:!fence" : "redlockd:lock:!meta";

	real_upstream_hold();
	real_redis_tell(&real_upstream.server, "DEL %s", key);
	real_redis_tell(&real_upstream.server, "HSET %s f v", key);
	real_upstream_call_only(CALL_RELEASE, 10, "held");
	real_upstream_call(CALL_PROBE, 11, "");
	real_upstream_answered(11);
	real_upstream_answered(10);
	answer_sink_check(&real_upstream.answers, 10, ANSWER_UNKNOWN, 0);
	answer_sink_check(&real_upstream.answers, 11, ANSWER_UNKNOWN, 0);
	ck_assert_ptr_nonnull(strstr(answer_sink_find(&real_upstream.answers, 11)->text, "WRONGTYPE"));
	ck_assert_uint_eq(real_upstream.downs, 0);
}

/* --- servers that will not have us ----------------------------------------------------------------------------------- */

/* The connection is tried again and again, and the reason is told each time. */
static void check_told(unsigned before, const char *reason)
{
	real_upstream_await(&real_upstream.downs, 1);
	ck_assert_msg(!strncmp(real_upstream.reason[0], reason, strlen(reason)), "%s", real_upstream.reason[0]);
	while (real_upstream_server_count("stats", "total_connections_received:") < before + 6) {
		real_upstream_call(CALL_RELEASE, real_upstream.answers.count + 1, "n");
		real_upstream_await(&real_upstream.answers.count, real_upstream.answers.count + 1);
		ck_assert_int_eq(real_upstream.answers.item[real_upstream.answers.count - 1].class, ANSWER_REFUSED);
	}
	ck_assert_uint_ge(real_upstream.downs, 2);
	ck_assert_uint_eq(real_upstream.ups, 0);
}

TEST(a_wrong_password_is_told_and_a_right_one_heals_it)
{
	real_redis_tell(&real_upstream.server, "ACL SETUSER u on >hunter2 ~* &* +@all");
	real_upstream.conf.user = "u";
	real_upstream.conf.password = "swordfish";
	real_upstream_dial();
	check_told(real_upstream_server_count("stats", "total_connections_received:"), "WRONGPASS");
	ck_assert_ptr_null(strstr(real_upstream.reason[0], "swordfish"));
	upstream_set_password(real_upstream.upstream, "u", "hunter2");
	real_upstream_await(&real_upstream.ups, 1);
}

TEST(a_missing_password_is_told)
{
	static const char *const options[] = {"--requirepass", "s3cret", NULL};

	real_redis_kill(&real_upstream.server);
	real_redis_start_with_password(options, "s3cret");
	real_upstream_dial();
	check_told(real_upstream_server_count("stats", "total_connections_received:"), "NOAUTH");
}

TEST(a_user_who_may_not_load_scripts_is_told)
{
	real_redis_tell(&real_upstream.server, "ACL SETUSER u on >pw ~* &* +@all -script|load");
	real_upstream.conf.user = "u";
	real_upstream.conf.password = "pw";
	real_upstream_dial();
	check_told(real_upstream_server_count("stats", "total_connections_received:"), "NOPERM");
}

TEST(a_database_that_does_not_exist_is_told)
{
	real_upstream.conf.database = 4711;
	real_upstream_dial();
	check_told(real_upstream_server_count("stats", "total_connections_received:"), "ERR DB index is out of range");
}

TEST(a_server_with_too_many_clients_is_told_and_used_when_it_has_room)
{
	real_upstream.conf.links = 3;
	real_redis_tell(&real_upstream.server, "CONFIG SET maxclients 3");
	real_upstream_dial();
	real_upstream_await(&real_upstream.downs, 1);
	ck_assert_str_eq(real_upstream.reason[0], "ERR max number of clients reached");
	real_redis_tell(&real_upstream.server, "CONFIG SET maxclients 100");
	real_upstream_await(&real_upstream.ups, 1);
}

TEST(a_server_that_is_loading_is_told_and_used_afterwards)
{
	static const char *const slowly[] = {"--key-load-delay", "50", "--loading-process-events-interval-bytes", "1024", NULL};
	unsigned i;

	for (i = 0; i < 20000; i++)
		redisAppendCommand(real_upstream.server.admin, "SET k%u v", i);
	for (i = 0; i < 20000; i++) {
		redisReply *reply;

		ck_assert_int_eq(redisGetReply(real_upstream.server.admin, (void **)&reply), REDIS_OK);
		freeReplyObject(reply);
	}
	real_redis_tell(&real_upstream.server, "SAVE");
	real_redis_kill(&real_upstream.server);
	real_redis_begin(&real_upstream.server, slowly);
	real_upstream_dial();
	real_upstream_await(&real_upstream.downs, 1);
	ck_assert_msg(!strncmp(real_upstream.reason[0], "LOADING", 7), "%s", real_upstream.reason[0]);
	real_upstream_await(&real_upstream.ups, 1);
}

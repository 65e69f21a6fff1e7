/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/upstream.c and node.c against a real Redis: what goes right. What goes wrong: upstream_outage_test.c, upstream_refusal_test.c. */
#include "tests/fixture/real_upstream.h"

#include <check.h>

static void setup(void)
{
	real_upstream_begin(false);
}

static void setup_tcp(void)
{
	real_upstream_begin(true);
}

static void teardown(void)
{
	real_upstream_end();
}

FIXTURE(.setup = setup, .teardown = teardown, .seconds = 60)

TEST(each_call_is_answered_as_the_script_says)
{
	struct call call;

	real_upstream_up();
	real_upstream_call(CALL_PROBE, 1, "");
	real_upstream_answered(1);
	ck_assert(answer_sink_find(&real_upstream.answers, 1)->probed);
	ck_assert_str_eq(answer_sink_find(&real_upstream.answers, 1)->marker, "");
	ck_assert_str_eq(answer_sink_find(&real_upstream.answers, 1)->role, "master");
	ck_assert_uint_eq(strlen(answer_sink_find(&real_upstream.answers, 1)->run_id), 40);
	real_upstream_join(2);
	answer_sink_check(&real_upstream.answers, 2, ANSWER_EXECUTED, 'J');
	real_upstream_join(3);
	answer_sink_check(&real_upstream.answers, 3, ANSWER_EXECUTED, 'X');
	ck_assert_str_eq(answer_sink_find(&real_upstream.answers, 3)->found, REAL_UPSTREAM_MARKER);
	real_upstream_expect(CALL_ACQUIRE, 4, "n", 'G');
	ck_assert_int_gt(answer_sink_find(&real_upstream.answers, 4)->fence, answer_sink_find(&real_upstream.answers, 4)->server_us);
	ck_assert_str_eq(real_redis_tell(&real_upstream.server, "GET lock:n"), REAL_UPSTREAM_VALUE);
	real_upstream_expect(CALL_EXTEND, 5, "n", 'E');
	call = real_upstream_make(CALL_ACQUIRE, 6, "n");
	call.value = SPAN("d9:1:00");
	real_upstream_send(&call);
	real_upstream_answered(6);
	answer_sink_check(&real_upstream.answers, 6, ANSWER_EXECUTED, 'B');
	ck_assert_str_eq(answer_sink_find(&real_upstream.answers, 6)->found, "d1:7:00ff00ff00ff");
	ck_assert_int_gt(answer_sink_find(&real_upstream.answers, 6)->pttl_ms, 0);
	real_upstream_expect(CALL_RELEASE, 7, "n", 'R');
	real_upstream_expect(CALL_RELEASE, 8, "n", 'N');
	real_upstream_expect(CALL_EXTEND, 9, "n", 'M');
	ck_assert_uint_eq(real_upstream.downs, 0);
}

TEST(an_answer_is_never_given_from_inside_call_or_flush)
{
	real_upstream_up();
	real_upstream_call(CALL_RELEASE, 1, "n");
	ck_assert_uint_eq(real_upstream.answers.count, 0);
	real_upstream_answered(1);
}

TEST(a_name_is_any_bytes)
{
	struct call call = real_upstream_make(CALL_ACQUIRE, 10, "");
	char name[512];
	size_t i;

	for (i = 0; i < sizeof(name); i++)
		name[i] = (char)(i * 7);
	memcpy(name, "\0\r\n$5\r\n", 7);
	call.name = (struct span){name, sizeof(name)};
	real_upstream_up();
	real_upstream_join(1);
	real_upstream_send(&call);
	real_upstream_answered(10);
	answer_sink_check(&real_upstream.answers, 10, ANSWER_EXECUTED, 'G');
	ck_assert_str_eq(real_redis_tell(&real_upstream.server, "GET lock:%b", name, sizeof(name)), REAL_UPSTREAM_VALUE);
}

TEST(a_foreign_key_is_told_and_left_alone)
{
	char value[4096];

	memset(value, 'x', sizeof(value));
	memcpy(value, "a:", 2);
	memcpy(value + 4090, ":00", 3);
	real_upstream_up();
	real_upstream_join(1);
	real_redis_tell(&real_upstream.server, "SET lock:a mine");
	real_redis_tell(&real_upstream.server, "SET lock:b %b PX 100000", value, sizeof(value) - 3);
	real_redis_tell(&real_upstream.server, "HSET lock:c f v");
	real_upstream_expect(CALL_ACQUIRE, 2, "a", 'B');
	ck_assert_str_eq(answer_sink_find(&real_upstream.answers, 2)->found, "");
	ck_assert_int_eq(answer_sink_find(&real_upstream.answers, 2)->pttl_ms, -1);
	real_upstream_expect(CALL_ACQUIRE, 3, "b", 'B');
	ck_assert_str_eq(answer_sink_find(&real_upstream.answers, 3)->found, "");
	real_upstream_expect(CALL_ACQUIRE, 4, "c", 'K');
	real_upstream_expect(CALL_EXTEND, 5, "c", 'K');
	real_upstream_expect(CALL_RELEASE, 6, "c", 'N');
	real_upstream_expect(CALL_EXTEND, 7, "a", 'B');
	real_upstream_expect(CALL_RELEASE, 8, "a", 'N');
}

TEST(a_marker_that_is_too_long_to_be_ours_can_be_replaced)
{
	char junk[5000];
	struct call call = real_upstream_make(CALL_MARK, 3, "");

	memset(junk, 'j', sizeof(junk));
	real_upstream_up();
	real_redis_tell(&real_upstream.server, "SET redlockd:lock:!meta %b", junk, sizeof(junk));
	real_upstream_call(CALL_PROBE, 1, "");
	real_upstream_answered(1);
	ck_assert_uint_eq(strlen(answer_sink_find(&real_upstream.answers, 1)->marker), MARKER_MAX);
	real_upstream_expect(CALL_ACQUIRE, 2, "n", 'Q');
	call.marker = (struct span){junk, MARKER_MAX};
	real_upstream_send(&call);
	real_upstream_answered(3);
	answer_sink_check(&real_upstream.answers, 3, ANSWER_EXECUTED, 'J');
	real_upstream_expect(CALL_ACQUIRE, 4, "n", 'G');
}

TEST(calls_under_different_markers_are_judged_by_their_own)
{
	struct call other = real_upstream_make(CALL_ACQUIRE, 3, "b");

	other.marker = SPAN("j|other");
	real_upstream_up();
	real_upstream_join(1);
	real_upstream_call_only(CALL_ACQUIRE, 2, "a");
	upstream_call(real_upstream.upstream, &other);
	real_upstream_call(CALL_ACQUIRE, 4, "c");
	real_upstream_await(&real_upstream.answers.count, 4);
	answer_sink_check(&real_upstream.answers, 2, ANSWER_EXECUTED, 'G');
	answer_sink_check(&real_upstream.answers, 3, ANSWER_EXECUTED, 'Q');
	answer_sink_check(&real_upstream.answers, 4, ANSWER_EXECUTED, 'G');
}

/* Each lock is released before its acquire is answered, so the answer R proves the order. */
TEST(a_release_never_overtakes_its_acquire)
{
	uint64_t id;
	char name[16];

	real_upstream.conf.links = 5;
	real_upstream_up();
	real_upstream_join(1);
	for (id = 100; id < 1100; id++) {
		(void)snprintf(name, sizeof(name), "n%u", (unsigned)id);
		real_upstream_call_only(CALL_ACQUIRE, id, name);
		if (id % 3 == 0)
			real_upstream_flush();
		real_upstream_call_only(CALL_RELEASE, id + 1001, name);
		if (id % 7 == 0)
			real_upstream_flush();
	}
	real_upstream_flush();
	real_upstream_await(&real_upstream.answers.count, 2001);
	for (id = 100; id < 1100; id++) {
		answer_sink_check(&real_upstream.answers, id, ANSWER_EXECUTED, 'G');
		answer_sink_check(&real_upstream.answers, id + 1001, ANSWER_EXECUTED, 'R');
	}
}

TEST(a_pass_with_many_calls_is_few_script_calls)
{
	unsigned before, i;
	char name[16];

	real_upstream.conf.links = 1;
	real_upstream_up();
	real_upstream_join(1);
	before = real_upstream_server_count("commandstats", "cmdstat_evalsha:calls=");
	for (i = 0; i < 1000; i++) {
		(void)snprintf(name, sizeof(name), "n%u", i);
		real_upstream_call_only(CALL_ACQUIRE, 10 + i, name);
	}
	real_upstream_flush();
	real_upstream_await(&real_upstream.answers.count, 1001);
	ck_assert_uint_eq(real_upstream_server_count("commandstats", "cmdstat_evalsha:calls=") - before, 4);
}

TEST(several_links_are_several_connections_that_share_the_names)
{
	const char *line;
	unsigned i, busy = 0;
	char name[16];

	real_upstream.conf.links = 4;
	real_upstream_up();
	for (i = 0; i < 64; i++) {
		(void)snprintf(name, sizeof(name), "n%u", i);
		real_upstream_call(CALL_RELEASE, 10 + i, name);
	}
	real_upstream_await(&real_upstream.answers.count, 64);
	line = real_redis_tell(&real_upstream.server, "CLIENT LIST TYPE normal");
	while ((line = strstr(line, "cmd=evalsha"))) {
		busy++;
		line++;
	}
	ck_assert_uint_eq(busy, 4);
}

TEST(a_flushed_script_cache_is_never_noticed)
{
	unsigned i;
	char name[16];

	real_upstream.conf.links = 2;
	real_upstream_up();
	real_upstream_join(1);
	for (i = 0; i < 200; i++) {
		(void)snprintf(name, sizeof(name), "n%u", i % 5);
		if (i % 3 == 0)
			real_redis_tell(&real_upstream.server, "SCRIPT FLUSH");
		real_upstream_expect(CALL_ACQUIRE, 1000 + i, name, 'G');
		if (i % 2 == 0)
			real_redis_tell(&real_upstream.server, "SCRIPT FLUSH");
		real_upstream_expect(CALL_RELEASE, 2000 + i, name, 'R');
		if (i % 7 == 0)
			real_redis_tell(&real_upstream.server, "SCRIPT FLUSH");
		real_upstream_call(CALL_PROBE, 3000 + i, "");
		real_upstream_answered(3000 + i);
		answer_sink_check(&real_upstream.answers, 3000 + i, ANSWER_EXECUTED, 'P');
	}
	real_redis_tell(&real_upstream.server, "SCRIPT FLUSH");
	real_upstream_join(5000);
	answer_sink_check(&real_upstream.answers, 5000, ANSWER_EXECUTED, 'X');
}

/* The same while calls are under way. A refused call was not carried out, and no lock survives its release. */
TEST(a_cache_flushed_under_load_leaves_nothing_behind)
{
	redisContext *other;
	unsigned i, refused = 0;
	char name[16];

	real_upstream.conf.links = 2;
	real_upstream_up();
	real_upstream_join(1);
	other = real_redis_connect(&real_upstream.server);
	for (i = 0; i < 2000; i++) {
		(void)snprintf(name, sizeof(name), "n%u", i % 50);
		real_upstream_call(CALL_ACQUIRE, 10000 + i, name);
		if (i % 11 == 0)
			redisAppendCommand(other, "SCRIPT FLUSH");
		if (i % 11 == 5)
			redisAppendCommand(other, "SCRIPT LOAD %b", script_text[SCRIPT_BATCH].p, script_text[SCRIPT_BATCH].n);
		redisBufferWrite(other, NULL);
		real_upstream_call(CALL_RELEASE, 20000 + i, name);
	}
	real_upstream_await(&real_upstream.answers.count, 4001);
	for (i = 0; i < 4001; i++) {
		ck_assert_int_ne(real_upstream.answers.item[i].class, ANSWER_UNKNOWN);
		refused += real_upstream.answers.item[i].class == ANSWER_REFUSED;
	}
	ck_assert_uint_lt(refused, 4000);
	for (i = 0; i < 50; i++) {
		const struct received *last = answer_sink_find(&real_upstream.answers, 20000 + 1950 + i);

		(void)snprintf(name, sizeof(name), "n%u", i);
		ck_assert_msg(last->class == ANSWER_REFUSED || !*real_redis_tell(&real_upstream.server, "GET lock:%s", name), "%s", name);
	}
	redisFree(other);
}

TEST(a_server_that_cuts_idle_connections_harms_nobody)
{
	redisContext *idle;
	struct event *cut;

	real_upstream.conf.links = 3;
	real_upstream.conf.ping_us = 300 * MSEC;
	real_upstream_up();
	real_redis_tell(&real_upstream.server, "CONFIG SET timeout 1");
	idle = real_redis_connect(&real_upstream.server);
	cut = real_upstream_watch(idle->fd); /* readable when the server cuts the connection, which proves that it does */
	real_upstream_await(&real_upstream.readable, 1);
	event_free(cut);
	redisFree(idle);
	ck_assert_uint_eq(real_upstream.downs, 0);
	real_upstream_call(CALL_RELEASE, 1, "n");
	real_upstream_answered(1);
	answer_sink_check(&real_upstream.answers, 1, ANSWER_EXECUTED, 'N');
}

LOOP_TEST(name_and_password_and_database_are_used, 2)
{
	static const char *const options[] = {"--requirepass", "s3cret", "--user", "u", "on", ">pw", "~*", "&*", "+@all", NULL};

	real_redis_kill(&real_upstream.server);
	real_redis_start_with_password(options, "s3cret");
	real_upstream.conf.password = _i == 0 ? "s3cret" : "pw";
	real_upstream.conf.user = _i == 0 ? NULL : "u";
	real_upstream.conf.database = 7;
	real_upstream_up();
	real_upstream_join(1);
	real_upstream_expect(CALL_ACQUIRE, 2, "n", 'G');
	ck_assert_str_eq(real_redis_tell(&real_upstream.server, "GET lock:n"), "");
	real_redis_tell(&real_upstream.server, "SELECT 7");
	ck_assert_str_eq(real_redis_tell(&real_upstream.server, "GET lock:n"), REAL_UPSTREAM_VALUE);
}

TEST(the_smallest_permissions_suffice)
{
	real_redis_tell(&real_upstream.server,
		    "ACL SETUSER small on >pw resetkeys ~lock:* ~redlockd:lock:* resetchannels &redlockd:lock:* -@all +get +mget +set +del +pttl +eval "
		    "+evalsha +script|load +time +ping +exists");
	real_upstream.conf.user = "small";
	real_upstream.conf.password = "pw";
	real_upstream_up();
	real_upstream_join(1);
	answer_sink_check(&real_upstream.answers, 1, ANSWER_EXECUTED, 'J');
	real_upstream_call(CALL_PROBE, 2, "");
	real_upstream_answered(2);
	answer_sink_check(&real_upstream.answers, 2, ANSWER_EXECUTED, 'P');
	ck_assert_str_eq(answer_sink_find(&real_upstream.answers, 2)->run_id, ""); /* INFO is not permitted */
	real_upstream_expect(CALL_ACQUIRE, 3, "n", 'G');
	real_upstream_expect(CALL_EXTEND, 4, "n", 'E');
	real_upstream_expect(CALL_RELEASE, 5, "n", 'R');
}

TEST(an_upstream_can_be_freed_with_calls_in_flight)
{
	real_upstream_up();
	kill(real_upstream.server.pid, SIGSTOP);
	real_upstream_call(CALL_ACQUIRE, 1, "a");
	real_upstream_call(CALL_PROBE, 2, "");
	real_upstream_call_only(CALL_ACQUIRE, 3, "b");
	upstream_free(real_upstream.upstream);
	real_upstream.upstream = NULL;
	ck_assert_uint_eq(real_upstream.answers.count, 0);
}

/* The same over TCP. */
FIXTURE(.setup = setup_tcp, .teardown = teardown, .seconds = 60)
TEST_AGAIN(each_call_is_answered_as_the_script_says, 1)
TEST_AGAIN(a_release_never_overtakes_its_acquire, 1)
TEST_AGAIN(a_server_that_cuts_idle_connections_harms_nobody, 1)

/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/upstream.c and node.c: servers that stop, die, come back or are no Redis at all. */
#include "tests/fixture/fake_redis.h"
#include "tests/fixture/real_upstream.h"

#include "daemon/base/clock.h"
#include "daemon/redis/failure.h"
#include <check.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void setup(void)
{
	real_upstream_begin(false);
}

static void teardown(void)
{
	real_upstream_end();
}

/* --- servers that stop, die and come back ---------------------------------------------------------------------------- */

FIXTURE(.setup = setup, .teardown = teardown, .seconds = 60)

TEST(a_stopped_server_answers_late_and_that_is_an_answer)
{
	real_upstream_hold();
	kill(real_upstream.server.pid, SIGSTOP);
	real_upstream_call(CALL_ACQUIRE, 10, "a");
	real_upstream_call(CALL_PROBE, 11, "");
	ck_assert_int_eq(event_base_loop(real_upstream.base, EVLOOP_NONBLOCK), 0);
	ck_assert_ptr_null(answer_sink_find(&real_upstream.answers, 10));
	kill(real_upstream.server.pid, SIGCONT);
	real_upstream_answered(10);
	real_upstream_answered(11);
	answer_sink_check(&real_upstream.answers, 10, ANSWER_EXECUTED, 'G');
	ck_assert_uint_eq(real_upstream.downs, 0);
}

TEST(a_server_stopped_for_too_long_is_down)
{
	real_upstream.conf.stall_us = 200 * MSEC;
	real_upstream.conf.connect_timeout_us = 500 * MSEC;
	real_upstream_hold();
	kill(real_upstream.server.pid, SIGSTOP);
	real_upstream_call(CALL_ACQUIRE, 10, "a");
	real_upstream_await(&real_upstream.downs, 1);
	ck_assert_str_eq(real_upstream.reason[0], "no answer for 200 ms");
	answer_sink_check(&real_upstream.answers, 10, ANSWER_UNKNOWN, 0);
	real_upstream_await(&real_upstream.downs, 2);
	ck_assert_str_eq(real_upstream.reason[0], "handshake timed out");
	kill(real_upstream.server.pid, SIGCONT);
	real_upstream_await(&real_upstream.ups, 2);
	real_upstream_expect(CALL_EXTEND, 12, "held", 'E');
}

TEST(when_a_server_dies_all_calls_are_answered_before_it_is_told)
{
	unsigned i;
	char name[16];

	real_upstream.conf.links = 4;
	real_upstream_hold();
	kill(real_upstream.server.pid, SIGSTOP);
	for (i = 0; i < 50; i++) {
		(void)snprintf(name, sizeof(name), "n%u", i);
		real_upstream_call(CALL_ACQUIRE, 100 + i, name);
	}
	for (i = 0; i < 50; i++) {
		(void)snprintf(name, sizeof(name), "n%u", i);
		real_upstream_call_only(CALL_RELEASE, 200 + i, name);
	}
	real_redis_kill(&real_upstream.server);
	real_upstream_await(&real_upstream.downs, 1);
	ck_assert_uint_eq(real_upstream.answered_at_down, 2 + 100);
	for (i = 0; i < 50; i++) {
		answer_sink_check(&real_upstream.answers, 100 + i, ANSWER_UNKNOWN, 0);
		answer_sink_check(&real_upstream.answers, 200 + i, ANSWER_REFUSED, 0);
	}
}

TEST(a_server_that_is_back_is_used_again_within_two_seconds)
{
	struct instant back;

	real_upstream_hold();
	real_redis_kill(&real_upstream.server);
	real_upstream_await(&real_upstream.downs, 2);
	ck_assert_msg(strstr(real_upstream.reason[0], "refused") || strstr(real_upstream.reason[0], "No such file"), "%s", real_upstream.reason[0]);
	real_upstream_run(1500 * MSEC); /* the pauses have grown */
	real_redis_start(&real_upstream.server, NULL);
	back = clock_boottime();
	real_upstream_await(&real_upstream.ups, 2);
	ck_assert_int_lt(instant_diff(clock_boottime(), back), 2 * SEC);
	real_upstream_expect(CALL_RELEASE, 9000, "n", 'N');
}

TEST(one_broken_link_takes_the_node_down_once_and_it_comes_back)
{
	const char *id;

	real_upstream.conf.links = 4;
	real_upstream_hold();
	id = strstr(real_redis_tell(&real_upstream.server, "CLIENT LIST TYPE normal"), "cmd=evalsha");
	ck_assert_ptr_nonnull(id);
	while (strncmp(id, "id=", 3))
		id--;
	real_redis_tell(&real_upstream.server, "CLIENT KILL ID %d", atoi(id + 3));
	real_upstream_await(&real_upstream.ups, 2);
	ck_assert_uint_eq(real_upstream.downs, 1);
	real_upstream_expect(CALL_EXTEND, 10, "held", 'E');
}

TEST(calls_to_a_node_that_is_down_are_refused_in_the_next_pass)
{
	real_upstream.address[0].path = "/tmp/none/at/all";
	real_upstream_dial();
	real_upstream_call(CALL_ACQUIRE, 1, "n");
	ck_assert_uint_eq(real_upstream.answers.count, 0);
	real_upstream_answered(1);
	answer_sink_check(&real_upstream.answers, 1, ANSWER_REFUSED, 0);
	real_upstream_await(&real_upstream.downs, 1);
	ck_assert_str_eq(real_upstream.reason[0], "No such file or directory");
	real_upstream_call(CALL_ACQUIRE, 2, "n");
	real_upstream_answered(2);
	answer_sink_check(&real_upstream.answers, 2, ANSWER_REFUSED, 0);
	ck_assert_str_eq(answer_sink_find(&real_upstream.answers, 2)->text, "No such file or directory");
}

TEST(each_node_is_for_itself)
{
	struct call call = real_upstream_make(CALL_RELEASE, 10, "n");

	real_upstream.conf.nodes = 3;
	real_upstream.address[1] = (struct upstream_address){.label = "b", .path = "/tmp/none/at/all"};
	real_upstream.address[2] = (struct upstream_address){.label = "c", .path = real_upstream.server.path};
	real_upstream_dial();
	real_upstream_await(&real_upstream.ups, 2);
	real_upstream_await(&real_upstream.downs, 1);
	for (call.node = 0; call.node < 3; call.node++, call.id++)
		real_upstream_send(&call);
	real_upstream_await(&real_upstream.answers.count, 3);
	answer_sink_check(&real_upstream.answers, 10, ANSWER_EXECUTED, 'N');
	answer_sink_check(&real_upstream.answers, 11, ANSWER_REFUSED, 0);
	answer_sink_check(&real_upstream.answers, 12, ANSWER_EXECUTED, 'N');
	ck_assert_uint_eq(answer_sink_find(&real_upstream.answers, 12)->node, 2);
}

/* Of root, too: whoever is another user for the file system has no rights of root there. */
TEST(a_socket_without_permission_is_told_as_such)
{
	ck_assert_int_eq(chmod(real_upstream.server.path, 0), 0);
	(void)setfsuid(65534);
	real_upstream_dial();
	real_upstream_await(&real_upstream.downs, 1);
	(void)setfsuid(geteuid());
	ck_assert_str_eq(real_upstream.reason[0], "Permission denied");
	ck_assert_int_eq(real_upstream.defect[0], DEFECT_SOCKET);
}

TEST(a_daemon_without_a_descriptor_is_told_as_such)
{
	real_upstream_dial();
	real_upstream_lack_descriptors(true);
	real_upstream_await(&real_upstream.downs, 1);
	real_upstream_lack_descriptors(false);
	ck_assert_str_eq(real_upstream.reason[0], "this daemon has no file descriptor left");
	ck_assert_int_eq(real_upstream.defect[0], DEFECT_DESCRIPTORS);
}

TEST(a_path_that_is_too_long_is_told)
{
	real_upstream.address[0].path =
		"/tmp/0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
		"0123456789";
	real_upstream_dial();
	real_upstream_await(&real_upstream.downs, 1);
	ck_assert_str_eq(real_upstream.reason[0], "the path of the socket is too long");
}

/* --- what is no Redis ------------------------------------------------------------------------------------------------ */

static struct fake_redis fake;

static void fake_redis_dial(void)
{
	real_upstream.address[0].path = ((struct sockaddr_un *)&fake.address)->sun_path;
	real_upstream.conf.links = 1;
	real_upstream_dial();
}

TEST(a_server_that_babbles_is_told_each_time)
{
	fake_redis_start(&fake, real_upstream.base, false);
	fake.hands = "HTTP/1.1 400 Bad Request\r\n\r\n";
	fake_redis_dial();
	real_upstream_await(&fake.connections, 5);
	ck_assert_uint_ge(real_upstream.downs, 4);
	ck_assert_str_eq(real_upstream.reason[0], FAILURE_GARBAGE);
	fake_redis_stop(&fake);
}

TEST(a_server_that_refuses_is_tried_every_second_and_not_more_seldom)
{
	int64_t took, least = INT64_MAX;
	struct instant before;
	unsigned i;

	fake_redis_start(&fake, real_upstream.base, false);
	fake.greeting = "-ERR not today\r\n";
	fake_redis_dial();
	real_upstream_await(&fake.connections, 6);
	for (i = 7; i < 10; i++) {
		before = clock_boottime();
		real_upstream_await(&fake.connections, i);
		ck_assert_int_ge(instant_diff(clock_boottime(), before), 450 * MSEC);
		took = instant_diff(clock_boottime(), before);
		least = took < least ? took : least;
	}
	ck_assert_int_lt(least, 1550 * MSEC); /* of three: a busy machine is late, but not each time */
	fake_redis_stop(&fake);
}

/* Whoever is told knows only what is true now, not what was true once. */
TEST(a_reason_that_returns_is_told_again)
{
	static const char *const greeting[] = {"-LOADING it loads\r\n", "-NOAUTH it wants a password\r\n"};
	static const enum defect defect[] = {DEFECT_LOADING, DEFECT_AUTH};

	fake_redis_start(&fake, real_upstream.base, false);
	fake.greeting = greeting[0];
	fake_redis_dial();
	for (unsigned i = 0; i < 4; i++) {
		fake.greeting = greeting[i % 2];
		real_upstream_await(&real_upstream.downs, real_upstream.downs + 2); /* an attempt may be under way */
		ck_assert_int_eq(real_upstream.defect[0], defect[i % 2]);
	}
	fake_redis_stop(&fake);
}

TEST(a_server_that_talks_nonsense_as_soon_as_it_is_up_is_not_dialled_in_a_circle)
{
	struct instant start = clock_boottime();

	fake_redis_start(&fake, real_upstream.base, false);
	fake.script = "+mad\r\n";
	fake_redis_dial();
	while (real_upstream.ups < 5) {
		real_upstream_await(&real_upstream.ups, real_upstream.ups + 1);
		real_upstream_call(CALL_RELEASE, real_upstream.ups, "n");
		real_upstream_await(&real_upstream.downs, real_upstream.ups);
		answer_sink_check(&real_upstream.answers, real_upstream.ups, ANSWER_UNKNOWN, 0);
	}
	/* 25 + 50 + 100 + 200 ms at least */
	ck_assert_int_ge(instant_diff(clock_boottime(), start), 375 * MSEC);
	fake_redis_stop(&fake);
}

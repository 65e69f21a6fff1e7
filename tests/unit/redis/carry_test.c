/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/carry.c and what it calls: connections to a real server over a restart of the daemon. What is not kept: carry_settings_test.c. */
#include "tests/fixture/carried_upstream.h"

#include "daemon/base/mem.h"
#include <check.h>
#include <stdlib.h>
#include <unistd.h>

#define CHANNEL "redlockd:lock:d:d1"
#define LARGE   200000 /* bytes: many passes of the loop read them */

static void setup(void)
{
	real_upstream_begin(false);
	real_upstream.conf.daemon_id = "d1";
}

static void setup_tcp(void)
{
	real_upstream_begin(true);
	real_upstream.conf.daemon_id = "d1";
}

static void teardown(void)
{
	real_upstream_end();
}

/* The numbers of all clients of the server, as one text, which the caller frees. */
static char *clients(void)
{
	const char *line = real_redis_tell(&real_upstream.server, "CLIENT LIST");
	char *text = calloc(1, 1024);

	for (; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		(void)snprintf(text + strlen(text), 1024 - strlen(text), "%.*s ", (int)strcspn(line, " "), line);
	return text;
}

static void publish(const char *payload)
{
	real_redis_tell(&real_upstream.server, "PUBLISH %s %s", CHANNEL, payload);
}

static unsigned loads(void)
{
	return real_upstream_server_count("commandstats", "cmdstat_script|load:calls=");
}

FIXTURE(.setup = setup, .teardown = teardown, .seconds = 60)

TEST(connections_go_on_without_a_handshake)
{
	unsigned before_loads;
	char *before, *after;

	real_upstream_hold();
	carried_upstream_subscribes();
	before = clients();
	before_loads = loads();
	for (unsigned i = 0; i < 3; i++) {
		carried_upstream_restart();
		real_upstream_expect(CALL_EXTEND, 10 + i, "held", 'E');
		real_upstream_expect(CALL_ACQUIRE, 20 + i, i & 1 ? "b" : "a", 'G');
		real_upstream_expect(CALL_RELEASE, 30 + i, i & 1 ? "b" : "a", 'R');
		real_upstream_call(CALL_PROBE, 40 + i, "");
		real_upstream_answered(40 + i);
	}
	after = clients();
	ck_assert_str_eq(before, after);
	ck_assert_uint_eq(loads(), before_loads);
	ck_assert_uint_eq(real_upstream.ups, 1);
	ck_assert_uint_eq(real_upstream.downs, 0);
	free(before);
	free(after);
}

TEST(what_is_published_meanwhile_arrives)
{
	real_upstream_up();
	carried_upstream_subscribes();
	carried_upstream_pack();
	publish("wlock:a");
	publish("wlock:b");
	carried_upstream_unpack();
	real_upstream_await(&real_upstream.messages, 2);
	ck_assert_uint_eq(real_upstream.message_n, 1);
	ck_assert_int_eq(real_upstream.message[0], 'b');
}

/* The daemon restarts after each piece that it has read. */
TEST(a_message_that_is_read_in_part_goes_on)
{
	char *payload = malloc(LARGE);
	unsigned restarts = 0, parts = 0;

	for (size_t i = 0; i < LARGE; i++)
		payload[i] = (char)('a' + i % 23);
	memcpy(payload, "wlock:", 6);
	real_upstream_up();
	carried_upstream_subscribes();
	real_redis_tell(&real_upstream.server, "PUBLISH %s %b", CHANNEL, payload, (size_t)LARGE);
	for (; !real_upstream.messages; restarts++) {
		ck_assert_uint_lt(restarts, 1000);
		event_base_loop(real_upstream.base, EVLOOP_ONCE);
		carried_upstream_pack();
		parts += carried_upstream.parcel->node[0].subscriber.unread.n > 0;
		carried_upstream_unpack();
	}
	ck_assert_uint_ge(parts, 5);
	ck_assert_uint_eq(real_upstream.message_n, LARGE - 6);
	ck_assert_int_eq(memcmp(real_upstream.message, payload + 6, LARGE - 6), 0);
	ck_assert_uint_eq(real_upstream.downs, 0);
	free(payload);
}

TEST(what_is_known_of_a_server_is_what_was_known)
{
	struct instant up_since;
	char *ping;

	real_upstream_up();
	carried_upstream_subscribes();
	carried_upstream_pack();
	up_since = carried_upstream.parcel->node[0].up_since;
	carried_upstream.parcel->node[0].subscriber.tries = 3;
	carried_upstream.parcel->node[0].subscriber.asked = true;
	carried_upstream_unpack();
	carried_upstream_pack();
	ck_assert_int_eq(carried_upstream.parcel->node[0].up_since.us, up_since.us);
	ck_assert_uint_eq(carried_upstream.parcel->node[0].subscriber.tries, 3);
	ck_assert(carried_upstream.parcel->node[0].subscriber.asked);
	ping = segment_alloc(carried_upstream.segment, 14);
	memcpy(ping, "*1\r\n$4\r\nPING\r\n", 14);
	mem_free(carried_upstream.parcel->node[0].subscriber.unsent.bytes);
	carried_upstream.parcel->node[0].subscriber.unsent = (struct rest){ping, 14};
	carried_upstream_unpack();
	real_upstream_run(50 * MSEC);
	ck_assert_uint_eq(real_upstream_server_count("commandstats", "cmdstat_ping:calls="), 1);
	carried_upstream_pack();
	ck_assert(!carried_upstream.parcel->node[0].subscriber.asked);
	carried_upstream_unpack();
	ck_assert_uint_eq(real_upstream.downs, 0);
}

TEST(a_ping_may_be_unanswered)
{
	real_upstream.conf.ping_us = 50 * MSEC;
	real_upstream_hold();
	kill(real_upstream.server.pid, SIGSTOP);
	real_upstream_run(200 * MSEC);
	ck_assert(upstream_is_quiet(real_upstream.upstream));
	carried_upstream_pack();
	ck_assert_uint_eq(carried_upstream.parcel->node[0].link[0].stream.pings, 1);
	carried_upstream_unpack();
	carried_upstream_restart();
	kill(real_upstream.server.pid, SIGCONT);
	real_upstream_expect(CALL_EXTEND, 10, "held", 'E');
	real_upstream_expect(CALL_RELEASE, 11, "held", 'R');
	real_upstream_run(200 * MSEC);
	ck_assert_uint_eq(real_upstream.downs, 0);
}

TEST(a_server_that_does_not_answer_is_noticed_as_always)
{
	real_upstream.conf.ping_us = 50 * MSEC;
	real_upstream.conf.stall_us = 300 * MSEC;
	real_upstream_hold();
	kill(real_upstream.server.pid, SIGSTOP);
	real_upstream_run(100 * MSEC);
	carried_upstream_restart();
	real_upstream_await(&real_upstream.downs, 1);
	ck_assert_str_eq(real_upstream.reason[0], "no answer for 300 ms");
	kill(real_upstream.server.pid, SIGCONT);
	real_upstream_await(&real_upstream.ups, 2);
}

TEST(a_connection_that_broke_meanwhile_is_noticed)
{
	real_upstream_hold();
	carried_upstream_pack();
	real_redis_tell(&real_upstream.server, "CLIENT KILL TYPE normal");
	carried_upstream_unpack();
	ck_assert_uint_eq(real_upstream.downs, 0);
	real_upstream_await(&real_upstream.downs, 1);
	ck_assert_str_eq(real_upstream.reason[0], "closed by the server");
	real_upstream_await(&real_upstream.ups, 2);
	real_upstream_expect(CALL_EXTEND, 10, "held", 'E');
}

TEST(a_subscription_that_broke_meanwhile_is_made_anew)
{
	real_upstream_hold();
	carried_upstream_subscribes();
	carried_upstream_pack();
	real_redis_tell(&real_upstream.server, "CLIENT KILL TYPE pubsub");
	carried_upstream_unpack();
	carried_upstream_subscribes();
	publish("wlock:a");
	real_upstream_await(&real_upstream.messages, 1);
	ck_assert_uint_eq(real_upstream.downs, 0);
}

TEST(the_upstream_is_quiet_when_all_calls_are_answered)
{
	real_upstream_hold();
	ck_assert(upstream_is_quiet(real_upstream.upstream));
	real_upstream_call_only(CALL_EXTEND, 10, "held");
	ck_assert(!upstream_is_quiet(real_upstream.upstream)); /* collected */
	real_upstream_flush();
	ck_assert(!upstream_is_quiet(real_upstream.upstream));
	real_upstream_answered(10);
	ck_assert(upstream_is_quiet(real_upstream.upstream));
	real_redis_kill(&real_upstream.server);
	real_upstream_await(&real_upstream.downs, 1);
	ck_assert(upstream_is_quiet(real_upstream.upstream));
	real_upstream_call(CALL_EXTEND, 11, "held"); /* it is down */
	ck_assert(!upstream_is_quiet(real_upstream.upstream));
	real_upstream_answered(11);
	ck_assert(upstream_is_quiet(real_upstream.upstream));
}

TEST(a_node_that_does_not_answer_in_time_is_given_up_and_no_other)
{
	struct real_redis other;
	struct call call = real_upstream_make(CALL_PROBE, 10, "");

	real_redis_make(&other, false);
	real_redis_start(&other, NULL);
	real_upstream.address[1] = (struct upstream_address){.label = "b", .path = other.path};
	real_upstream.conf.nodes = 2;
	real_upstream_up();
	kill(real_upstream.server.pid, SIGSTOP);
	real_upstream_call(CALL_PROBE, 11, "");
	real_upstream_call_only(CALL_PROBE, 12, "");
	upstream_give_up(real_upstream.upstream);
	ck_assert(upstream_is_quiet(real_upstream.upstream));
	answer_sink_check(&real_upstream.answers, 11, ANSWER_UNKNOWN, 0);
	answer_sink_check(&real_upstream.answers, 12, ANSWER_REFUSED, 0);
	ck_assert_uint_eq(real_upstream.downs, 1);
	ck_assert_str_eq(real_upstream.reason[0], "it did not answer before a restart of the daemon");
	ck_assert_uint_eq(real_upstream.answered_at_down, 2);
	carried_upstream_restart();
	call.node = 1;
	real_upstream_send(&call);
	real_upstream_answered(10);
	kill(real_upstream.server.pid, SIGCONT);
	real_upstream_await(&real_upstream.ups, 3);
	ck_assert_uint_eq(real_upstream.downs, 1);
	real_redis_remove(&other);
}

TEST(calls_to_a_node_that_is_down_are_answered_when_it_is_given_up)
{
	real_upstream_up();
	real_redis_kill(&real_upstream.server);
	real_upstream_await(&real_upstream.downs, 1);
	real_upstream_call(CALL_PROBE, 10, "");
	ck_assert_uint_eq(real_upstream.answers.count, 0);
	upstream_give_up(real_upstream.upstream);
	answer_sink_check(&real_upstream.answers, 10, ANSWER_REFUSED, 0);
	ck_assert(upstream_is_quiet(real_upstream.upstream));
	carried_upstream_restart();
}

TEST(why_a_node_is_down_is_not_told_again)
{
	unsigned before;

	real_upstream_up();
	real_redis_kill(&real_upstream.server);
	real_upstream_await(&real_upstream.downs, 2);
	real_upstream_run(500 * MSEC);
	before = real_upstream.downs;
	carried_upstream_restart();
	real_upstream_call(CALL_PROBE, 10, ""); /* refused for what the previous process found */
	real_upstream_answered(10);
	ck_assert_str_eq(answer_sink_find(&real_upstream.answers, 10)->text, real_upstream.reason[0]);
	real_upstream_run(500 * MSEC);
	ck_assert_uint_eq(real_upstream.downs, before);
	real_redis_start(&real_upstream.server, NULL);
	real_upstream_await(&real_upstream.ups, 2);
}

TEST(a_node_may_not_be_up_yet)
{
	kill(real_upstream.server.pid, SIGSTOP);
	real_upstream_dial();
	for (unsigned i = 0; i < 5; i++) {
		real_upstream_run(20 * MSEC);
		carried_upstream_restart();
	}
	kill(real_upstream.server.pid, SIGCONT);
	real_upstream_await(&real_upstream.ups, 1);
	ck_assert_uint_eq(real_upstream.downs, 0);
}

/* The scripts of the next version are others. */
TEST(other_scripts_are_loaded_over_the_connections_that_there_are)
{
	unsigned before;

	real_upstream_hold();
	before = loads();
	carried_upstream_pack();
	carried_upstream.parcel->scripts[0] ^= 1;
	for (unsigned i = 0; i < 2; i++)
		for (unsigned script = 0; script < SCRIPT_N; script++)
			memset(carried_upstream.parcel->node[0].link[i].stream.sha[script], '0', SHA_LENGTH);
	carried_upstream_unpack();
	ck_assert(!upstream_is_quiet(real_upstream.upstream));
	real_upstream_call(CALL_EXTEND, 10, "held");
	real_upstream_call(CALL_RELEASE, 11, "held");
	while (!answer_sink_find(&real_upstream.answers, 11)) {
		event_base_loop(real_upstream.base, EVLOOP_ONCE);
		real_upstream_flush(); /* as each pass does */
	}
	answer_sink_check(&real_upstream.answers, 10, ANSWER_EXECUTED, 'E');
	answer_sink_check(&real_upstream.answers, 11, ANSWER_EXECUTED, 'R');
	ck_assert_uint_eq(loads(), before + 2 * SCRIPT_N);
	ck_assert_ptr_null(strstr(real_redis_tell(&real_upstream.server, "INFO commandstats"), "cmdstat_eval:"));
	ck_assert_uint_eq(real_upstream.ups, 1);
	ck_assert_uint_eq(real_upstream.downs, 0);
}

/* The same over TCP. */
FIXTURE(.setup = setup_tcp, .teardown = teardown, .seconds = 60)
TEST_AGAIN(connections_go_on_without_a_handshake, 1)
TEST_AGAIN(a_message_that_is_read_in_part_goes_on, 1)

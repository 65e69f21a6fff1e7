/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/link.c and time: late answers, silent servers, and bytes that the kernel does not take. */
#include "tests/fixture/link_to_fake.h"

#include "daemon/base/clock.h"
#include <check.h>
#include <event2/bufferevent.h>
#include <stdio.h>
#include <stdlib.h>

FIXTURE(.setup = link_to_fake_setup, .teardown = link_to_fake_teardown, .seconds = 30)

TEST(a_call_without_an_answer_is_given_up_after_the_stall_time)
{
	struct instant start;

	link_to_fake.conf.stall_us = 100 * MSEC;
	link_to_fake_dial_ready();
	link_to_fake.fake.script = "";
	start = clock_boottime();
	link_to_fake_acquire_now(1);
	AWAIT(link_to_fake.breaks, 1);
	ck_assert_str_eq(link_to_fake.reason, "no answer for 100 ms");
	ck_assert_int_ge(instant_diff(clock_boottime(), start), 100 * MSEC);
	answer_sink_check(&link_to_fake.answers, 1, ANSWER_UNKNOWN, 0);
}

static void fake_redis_on_late(evutil_socket_t fd, short what, void *context)
{
	unsigned i;

	(void)fd, (void)what, (void)context;
	for (i = 0; i < FAKE_REDIS_PEERS; i++) {
		if (link_to_fake.fake.peer[i].bev)
			bufferevent_write(link_to_fake.fake.peer[i].bev, FAKE_REDIS_SCRIPT, strlen(FAKE_REDIS_SCRIPT));
	}
}

TEST(a_slow_answer_is_an_answer)
{
	struct timeval tv = {0, 150 * MSEC};

	link_to_fake.conf.stall_us = 300 * MSEC;
	link_to_fake_dial_ready();
	link_to_fake.fake.script = "";
	link_to_fake_acquire_now(1);
	event_base_once(link_to_fake.base, -1, EV_TIMEOUT, fake_redis_on_late, NULL, &tv);
	AWAIT(link_to_fake.answers.count, 1);
	answer_sink_check(&link_to_fake.answers, 1, ANSWER_EXECUTED, 'G');
	ck_assert_uint_eq(link_to_fake.breaks, 0);
}

TEST(a_silent_link_is_pinged)
{
	link_to_fake.conf.ping_us = 20 * MSEC;
	link_to_fake_dial_ready();
	AWAIT(link_to_fake.fake.pings, 3);
	ck_assert_uint_eq(link_to_fake.breaks, 0);
}

/* Silence counts from the last command, also when the timer ran out while an answer was outstanding. */
TEST(a_link_that_falls_silent_after_a_slow_answer_is_pinged_in_time)
{
	struct timeval tv = {0, 150 * MSEC};
	struct instant start;

	link_to_fake.conf.ping_us = 100 * MSEC;
	link_to_fake_dial_ready();
	link_to_fake.fake.script = "";
	link_to_fake_acquire_now(1);
	event_base_once(link_to_fake.base, -1, EV_TIMEOUT, fake_redis_on_late, NULL, &tv);
	AWAIT(link_to_fake.answers.count, 1);
	ck_assert_uint_eq(link_to_fake.fake.pings, 0);
	start = clock_boottime();
	AWAIT(link_to_fake.fake.pings, 2);
	ck_assert_int_lt(instant_diff(clock_boottime(), start), 3 * SEC);
}

TEST(a_ping_without_an_answer_counts_as_a_stall)
{
	link_to_fake.conf.ping_us = 20 * MSEC;
	link_to_fake.conf.stall_us = 100 * MSEC;
	link_to_fake_dial_ready();
	bufferevent_disable(link_to_fake.fake.peer[0].bev, EV_READ);
	AWAIT(link_to_fake.breaks, 1);
	ck_assert_str_eq(link_to_fake.reason, "no answer for 100 ms");
}

#define FLOOD 8192

/* So many calls at a time; above 256 that makes several commands of 256, and more than the kernel takes of a write at once. */
static void flood(unsigned each)
{
	uint64_t id;

	for (id = 1; id <= FLOOD; id++) {
		link_to_fake_acquire(id);
		if (id % each == 0)
			link_to_fake_flush();
	}
}

/* The answer to each command of such a flood; the caller frees it. */
static char *grants(unsigned each)
{
	static const char row[] = "*4\r\n$1\r\nG\r\n:42\r\n:9000\r\n$0\r\n\r\n";
	unsigned n = each < 256 ? each : 256;
	char *text = malloc(n * sizeof(row) + 32);
	size_t at = (size_t)sprintf(text, "*%u\r\n:1\r\n", n + 1);

	while (n--)
		at += (size_t)sprintf(text + at, "%s", row);
	return text;
}

static void flood_is_answered(unsigned each)
{
	char *text = grants(each);

	link_to_fake_dial_ready();
	link_to_fake.fake.script = text;
	bufferevent_disable(link_to_fake.fake.peer[0].bev, EV_READ);
	flood(each);
	ck_assert_uint_eq(link_to_fake.answers.count, 0);
	fake_redis_listen(&link_to_fake.fake);
	AWAIT(link_to_fake.answers.count, FLOOD);
	ck_assert_uint_eq(link_to_fake.answers.item[FLOOD - 1].call, FLOOD);
	free(text);
}

LOOP_TEST(bytes_that_the_kernel_does_not_take_at_once_are_sent_later, 2)
{
	flood_is_answered(_i == 0 ? 16 : 1024);
}

/* The server has nothing to answer before it has all of the command. */
TEST(a_command_that_the_kernel_takes_in_parts_is_sent_to_its_end)
{
	static char name[8192];
	struct call call = {.kind = CALL_ACQUIRE, .name = {name, sizeof(name)}, .value = SPAN("d:1:0"), .marker = SPAN("m"), .px_ms = 1000};
	char *text = grants(256);

	memset(name, 'n', sizeof(name));
	link_to_fake_dial_ready();
	link_to_fake.fake.script = text;
	bufferevent_disable(link_to_fake.fake.peer[0].bev, EV_READ);
	for (call.id = 1; call.id <= 256; call.id++)
		link_call(link_to_fake.link, &call, 1);
	link_to_fake_flush();
	fake_redis_listen(&link_to_fake.fake);
	AWAIT(link_to_fake.answers.count, 256);
	ck_assert_uint_eq(link_to_fake.fake.scripts, 1);
	free(text);
}

/* The kernel has room again before the event loop knows. A flush at that moment must queue behind the bytes that still wait. */
TEST(a_flush_while_bytes_wait_queues_behind_them)
{
	struct fake_redis_peer *peer = &link_to_fake.fake.peer[0];
	char *text = grants(1024), *taken = malloc(1 << 20);
	size_t n = 0;
	ssize_t r;

	link_to_fake_dial_ready();
	link_to_fake.fake.script = text;
	bufferevent_disable(peer->bev, EV_READ);
	flood(1024);
	while (n < 1 << 20 && (r = recv(bufferevent_getfd(peer->bev), taken + n, (1 << 20) - n, MSG_DONTWAIT)) > 0)
		n += (size_t)r;
	ck_assert_uint_gt(n, 0);
	for (r = 1; r <= 256; r++)
		link_to_fake_acquire(FLOOD + (uint64_t)r);
	link_to_fake_flush();
	fake_redis_hear(&link_to_fake.fake, taken, n);
	fake_redis_listen(&link_to_fake.fake);
	AWAIT(link_to_fake.answers.count, FLOOD + 256);
	ck_assert_uint_eq(link_to_fake.breaks, 0);
	free(text);
	free(taken);
}

/* The server does not read, the link is closed, and then the server reads all that it can. No call that it gets may be among the refused ones. */
TEST(no_byte_of_a_refused_call_was_handed_over)
{
	unsigned unknown = 0, i;

	link_to_fake_dial_ready();
	link_to_fake.fake.script = "";
	bufferevent_disable(link_to_fake.fake.peer[0].bev, EV_READ);
	flood(16);
	link_close(link_to_fake.link, "test");
	ck_assert_uint_eq(link_to_fake.answers.count, FLOOD);
	for (i = 0; i < FLOOD; i++)
		unknown += link_to_fake.answers.item[i].class == ANSWER_UNKNOWN;
	ck_assert_uint_gt(unknown, 0);
	ck_assert_uint_lt(unknown, FLOOD);
	ck_assert_int_eq(link_to_fake.answers.item[unknown - 1].class, ANSWER_UNKNOWN);
	ck_assert_int_eq(link_to_fake.answers.item[unknown].class, ANSWER_REFUSED);
	fake_redis_listen(&link_to_fake.fake);
	while (link_to_fake.fake.peer[0].bev)
		event_base_loop(link_to_fake.base, EVLOOP_ONCE);
	/* The last of the calls of unknown outcome may have arrived in part. */
	ck_assert_uint_ge(link_to_fake.fake.scripts * 16 + 16, unknown);
	ck_assert_uint_le(link_to_fake.fake.scripts * 16, unknown);
}

/* The same over TCP. */
FIXTURE(.setup = link_to_fake_setup_tcp, .teardown = link_to_fake_teardown, .seconds = 30)
TEST_AGAIN(bytes_that_the_kernel_does_not_take_at_once_are_sent_later, 2)
TEST_AGAIN(a_command_that_the_kernel_takes_in_parts_is_sent_to_its_end, 1)
TEST_AGAIN(a_flush_while_bytes_wait_queues_behind_them, 1)

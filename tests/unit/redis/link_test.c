/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/link.c: one connection to a server that behaves, hangs up, babbles or is not there. */
#include "tests/fixture/link_to_fake.h"

#include "daemon/redis/failure.h"

#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/un.h>
#include <unistd.h>

FIXTURE(.setup = link_to_fake_setup, .teardown = link_to_fake_teardown)

TEST(a_link_becomes_ready_and_answers)
{
	link_to_fake_dial_ready();
	ck_assert_uint_eq(link_to_fake.fake.loads, SCRIPT_N);
	ck_assert_uint_eq(link_to_fake.fake.auths, 0);
	link_to_fake_acquire(1);
	ck_assert_uint_eq(link_to_fake.answers.count, 0);
	link_to_fake_flush();
	AWAIT(link_to_fake.answers.count, 1);
	answer_sink_check(&link_to_fake.answers, 1, ANSWER_EXECUTED, 'G');
}

FIXTURE(.setup = link_to_fake_setup_tcp, .teardown = link_to_fake_teardown)

TEST(the_options_of_a_tcp_connection_are_set)
{
	struct sockaddr_in peer;
	socklen_t n;
	int fd, value, found = 0;

	link_to_fake_dial_ready();
	for (fd = 3; fd < 64; fd++) {
		n = sizeof(peer);
		if (getpeername(fd, (struct sockaddr *)&peer, &n) < 0 || memcmp(&peer, &link_to_fake.fake.address, sizeof(peer)))
			continue;
		found++;
		n = sizeof(value);
		ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &n), 0);
		ck_assert_int_eq(value, 1);
		ck_assert_int_eq(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, &n), 0);
		ck_assert_int_eq(value, 1);
		ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &n), 0);
		ck_assert_int_eq(value, 5000);
	}
	ck_assert_int_eq(found, 1);
}

FIXTURE(.setup = link_to_fake_setup, .teardown = link_to_fake_teardown)

TEST(a_socket_that_is_not_there_is_told_at_once)
{
	struct sockaddr_un nowhere = {.sun_family = AF_UNIX, .sun_path = "/tmp/redlock.none/s"};

	ck_assert_int_eq(link_dial(link_to_fake.link, (struct sockaddr *)&nowhere, sizeof(nowhere)), -ENOENT);
	link_to_fake_dial_ready();
}

/* A port that is bound and does not listen. */
static int port_dead(struct sockaddr_in *address, int backlog)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t n = sizeof(*address);

	*address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	ck_assert_int_eq(bind(fd, (struct sockaddr *)address, n), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)address, &n), 0);
	if (backlog >= 0)
		ck_assert_int_eq(listen(fd, backlog), 0);
	return fd;
}

FIXTURE(.setup = link_to_fake_setup_tcp, .teardown = link_to_fake_teardown)

TEST(a_refused_connection_is_told)
{
	struct sockaddr_in nobody;
	int fd = port_dead(&nobody, -1), rc = link_dial(link_to_fake.link, (struct sockaddr *)&nobody, sizeof(nobody));

	if (rc == 0) {
		AWAIT(link_to_fake.breaks, 1);
		ck_assert_str_eq(link_to_fake.reason, "Connection refused");
	} else {
		ck_assert_int_eq(rc, -ECONNREFUSED);
	}
	close(fd);
}

TEST(a_connection_that_does_not_come_about_is_given_up)
{
	struct sockaddr_in full;
	int fd = port_dead(&full, 0), i, filler[4];

	for (i = 0; i < 4; i++) {
		filler[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		(void)connect(filler[i], (struct sockaddr *)&full, sizeof(full));
	}
	link_to_fake.conf.connect_timeout_us = 50 * MSEC;
	ck_assert_int_eq(link_dial(link_to_fake.link, (struct sockaddr *)&full, sizeof(full)), 0);
	AWAIT(link_to_fake.breaks, 1);
	ck_assert_str_eq(link_to_fake.reason, "connect timed out");
	for (i = 0; i < 4; i++)
		close(filler[i]);
	close(fd);
}

FIXTURE(.setup = link_to_fake_setup, .teardown = link_to_fake_teardown)

TEST(a_handshake_that_is_not_answered_is_given_up)
{
	link_to_fake.fake.hands = "";
	link_to_fake.conf.connect_timeout_us = 50 * MSEC;
	link_to_fake_dial();
	AWAIT(link_to_fake.breaks, 1);
	ck_assert_str_eq(link_to_fake.reason, "handshake timed out");
	ck_assert_uint_eq(link_to_fake.readies, 0);
}

TEST(a_server_that_hangs_up_with_a_word_is_quoted)
{
	link_to_fake.fake.greeting = "-ERR max number of clients reached\r\n";
	link_to_fake_dial();
	AWAIT(link_to_fake.breaks, 1);
	ck_assert_str_eq(link_to_fake.reason, "ERR max number of clients reached");
}

TEST(a_server_that_hangs_up_without_a_word_is_told)
{
	link_to_fake.fake.greeting = "";
	link_to_fake_dial();
	AWAIT(link_to_fake.breaks, 1);
	ck_assert_msg(strstr(link_to_fake.reason, "closed by the server during the handshake") || strstr(link_to_fake.reason, "reset") ||
			      strstr(link_to_fake.reason, "Broken"),
		      "%s", link_to_fake.reason);
}

static const char *const babble[] = {"HTTP/1.1 400 Bad Request\r\n\r\n", "*0\r\n", "$3\r\nabc\r\n", "*2147483647\r\n", ":1\r\n"};

LOOP_TEST(garbage_breaks_the_link_and_leaves_its_calls_unknown, sizeof(babble) / sizeof(*babble))
{
	link_to_fake_dial_ready();
	link_to_fake.fake.script = babble[_i];
	link_to_fake_acquire_now(1);
	link_to_fake_acquire_now(2);
	AWAIT(link_to_fake.breaks, 1);
	ck_assert_str_eq(link_to_fake.reason, FAILURE_GARBAGE);
	answer_sink_check(&link_to_fake.answers, 1, ANSWER_UNKNOWN, 0);
	answer_sink_check(&link_to_fake.answers, 2, ANSWER_UNKNOWN, 0);
	ck_assert_uint_eq(link_to_fake.answers.count, 2);
}

TEST(an_answer_may_come_byte_by_byte)
{
	link_to_fake_dial_ready();
	link_to_fake.fake.slowly = true;
	link_to_fake_acquire_now(1);
	AWAIT(link_to_fake.answers.count, 1);
	answer_sink_check(&link_to_fake.answers, 1, ANSWER_EXECUTED, 'G');
	ck_assert_uint_eq(link_to_fake.breaks, 0);
}

TEST(a_connection_cut_behind_a_call_leaves_it_unknown)
{
	link_to_fake_dial_ready();
	link_to_fake.fake.cuts = true;
	link_to_fake_acquire_now(1);
	AWAIT(link_to_fake.breaks, 1);
	answer_sink_check(&link_to_fake.answers, 1, ANSWER_UNKNOWN, 0);
	link_to_fake.fake.cuts = false;
	link_to_fake.breaks = 0;
	link_to_fake_dial_ready();
	link_to_fake_acquire_now(2);
	AWAIT(link_to_fake.answers.count, 2);
	answer_sink_check(&link_to_fake.answers, 2, ANSWER_EXECUTED, 'G');
}

TEST(a_call_that_was_only_collected_is_refused)
{
	link_to_fake_dial_ready();
	link_to_fake_acquire(1);
	fake_redis_hang_up(&link_to_fake.fake);
	AWAIT(link_to_fake.breaks, 1);
	answer_sink_check(&link_to_fake.answers, 1, ANSWER_REFUSED, 0);
	ck_assert_str_eq(link_to_fake.answers.item[0].text, link_to_fake.reason);
}

LOOP_TEST(a_link_can_be_freed_in_any_state, 6)
{
	if (_i > 0)
		link_to_fake_dial();
	if (_i > 1)
		AWAIT(link_to_fake.readies, 1);
	if (_i > 2)
		link_to_fake_acquire(1);
	if (_i > 3)
		link_to_fake_flush();
	if (_i > 4)
		link_to_fake_acquire(2);
}

/* The same over TCP. */
FIXTURE(.setup = link_to_fake_setup_tcp, .teardown = link_to_fake_teardown)
TEST_AGAIN(a_link_becomes_ready_and_answers, 1)
TEST_AGAIN(a_server_that_hangs_up_with_a_word_is_quoted, 1)
TEST_AGAIN(a_server_that_hangs_up_without_a_word_is_told, 1)
TEST_AGAIN(a_connection_cut_behind_a_call_leaves_it_unknown, 1)

/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/net/conn.c: input, and how it ends. Reading that is off: reading_off_test.c. Output: send_test.c. */
#include "tests/fixture/net_loop.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct net_loop w;

static void setup(void)
{
	net_loop_init(&w, NET_LOOP_CONF);
}

static void teardown(void)
{
	net_loop_release(&w);
}

/* --- lines --------------------------------------------------------------------------------------------------------- */

static const char text[] = "PING\nHELLO 1\r\n\n\r\nLOCK \"a b\"\n"
			   "123456789012345678901234567890123456789012345678901234567890123\n"
			   "1234567890123456789012345678901234567890123456789012345678901234\n"
			   "LAST\nunfinished";
static const char told[] = "line 0.1 PING\nline 0.1 HELLO 1\nline 0.1\nline 0.1\nline 0.1 LOCK \"a b\"\n"
			   "line 0.1 123456789012345678901234567890123456789012345678901234567890123\n"
			   "toolong 0.1\nline 0.1 LAST\n";

/* 0: Unix, 1: TCP. */
FIXTURE(.setup = setup, .teardown = teardown, .seconds = 60)

LOOP_TEST(lines_that_come_together_are_told_one_by_one, 2)
{
	int fd = net_loop_client(&w, _i);

	net_loop_says(&w, fd, text);
	net_loop_told(&w, told);
	close(fd);
}

LOOP_TEST(a_line_may_be_split_at_every_offset, 2)
{
	int fd = net_loop_client(&w, _i);
	size_t cut;

	for (cut = 1; cut < strlen(text); cut++) {
		char first[sizeof(text)] = "";

		memcpy(first, text, cut);
		net_loop_says(&w, fd, first);
		net_loop_until(&w, (net_loop_settle(&w), true));
		net_loop_says(&w, fd, text + cut);
		net_loop_says(&w, fd, "\n"); /* ends the unfinished line */
		net_loop_until(&w, buf_length(&w.told) >= strlen(told) + strlen("line 0.1 unfinished\n"));
		ck_assert_mem_eq(buf_begin(&w.told), told, strlen(told));
		buf_consume(&w.told, strlen(told));
		net_loop_told(&w, "line 0.1 unfinished\n");
	}
	close(fd);
}

LOOP_TEST(a_line_may_come_byte_by_byte, 2)
{
	int fd = net_loop_client(&w, _i);
	size_t i;

	for (i = 0; i < strlen(text); i++) {
		const char one[2] = {text[i], '\0'};

		net_loop_says(&w, fd, one);
		net_loop_settle(&w);
	}
	net_loop_told(&w, told);
	close(fd);
}

LOOP_TEST(a_line_without_end_is_told_once_and_the_connection_survives, 2)
{
	char much[4096];
	int fd = net_loop_client(&w, _i), i;

	memset(much, 'x', sizeof(much) - 1);
	much[sizeof(much) - 1] = '\0';
	for (i = 0; i < 64; i++) {
		net_loop_says(&w, fd, much);
		net_loop_settle(&w);
	}
	net_loop_told(&w, "toolong 0.1\n");
	net_loop_at_rest(&w);
	net_loop_says(&w, fd, "\nPING\n");
	net_loop_told(&w, "line 0.1 PING\n");
	close(fd);
}

/* --- end of input -------------------------------------------------------------------------------------------------- */

LOOP_TEST(after_half_close_every_line_is_told_then_eof_and_replies_still_go_out, 2)
{
	int fd = net_loop_client(&w, _i);

	w.on_line = net_loop_says_ok;
	net_loop_says(&w, fd, "PING\nPING\nunfinished");
	shutdown(fd, SHUT_WR);
	net_loop_told(&w, "line 0.1 PING\nline 0.1 PING\neof 0.1\n");
	net_loop_hears(&w, fd, "OK\nOK\n");
	net_loop_at_rest(&w);
	net_send(w.net, w.session, "BYE\n", 4);
	net_hangup(w.net, w.session);
	net_loop_hears(&w, fd, "BYE\n");
	net_loop_eof(&w, fd);
	ck_assert_uint_eq(net_closing(w.net), 0); /* nothing to wait for */
	close(fd);
}

LOOP_TEST(a_peer_that_closes_after_eof_is_gone, 2)
{
	int fd = net_loop_client(&w, _i);

	shutdown(fd, SHUT_WR);
	net_loop_told(&w, "eof 0.1\n");
	net_send(w.net, w.session, "unread\n", 7);
	net_loop_settle(&w);
	/* On TCP only a reset shows it, because a FIN has come before. */
	if (_i)
		net_loop_resets(fd);
	else
		close(fd);
	net_loop_told(&w, _i ? "gone 0.1 reset\n" : "gone 0.1 hangup\n");
	net_loop_at_rest(&w);
}

/* More lines than one pass takes. All are delivered although nobody reads the answers. */
LOOP_TEST(a_unix_peer_that_closes_has_its_last_lines_told, 2)
{
	char said[256] = "", expected[1024] = "half_closed 0.1\n";
	int fd = net_loop_client(&w, 0), i;

	w.on_line = _i ? net_loop_says_ok : NULL;
	for (i = 0; i < 20; i++) {
		sprintf(said + strlen(said), "PING %d\n", i);
		sprintf(expected + strlen(expected), "line 0.1 PING %d\n", i);
	}
	net_loop_says(&w, fd, said);
	net_loop_says(&w, fd, "unfinished");
	close(fd);
	strcat(expected, "gone 0.1 hangup\n");
	net_loop_told(&w, expected);
	net_loop_at_rest(&w);
	ck_assert_uint_eq(net_sessions(w.net), 0);
}

TEST(a_unix_peer_that_closes_while_it_is_not_read_is_gone_at_once)
{
	int fd = net_loop_client(&w, 0);

	net_read(w.net, w.session, false);
	net_loop_says(&w, fd, "PING\n");
	close(fd);
	net_loop_told(&w, "gone 0.1 hangup\n");
}

TEST(a_tcp_peer_that_closes_has_its_last_lines_told)
{
	int fd = net_loop_client(&w, 1);

	net_loop_says(&w, fd, "PING\n");
	close(fd);
	net_loop_told(&w, "line 0.1 PING\neof 0.1\n");
	net_loop_at_rest(&w);
	ck_assert_uint_eq(net_sessions(w.net), 1);
}

TEST(a_unix_peer_that_left_our_answer_unread_is_a_hangup_no_reset)
{
	int fd = net_loop_client(&w, 0);

	net_send(w.net, w.session, "OK\n", 3);
	net_loop_settle(&w);
	close(fd);
	net_loop_told(&w, "gone 0.1 hangup\n");
}

TEST(a_unix_peer_found_gone_by_writing_is_a_hangup)
{
	int fd = net_loop_client(&w, 0);

	close(fd);
	net_send(w.net, w.session, "OK\n", 3);
	net_flush(w.net);
	ck_assert_uint_eq(buf_length(&w.told), 0); /* not from inside net_flush */
	net_loop_told(&w, "gone 0.1 hangup\n");
}

TEST(a_reset_is_told_as_such)
{
	int fd = net_loop_client(&w, 1);

	net_loop_resets(fd);
	net_loop_told(&w, "gone 0.1 reset\n");
}

static pid_t child_with_connection(struct net_loop *world)
{
	int ready[2];
	char byte;
	pid_t pid;

	ck_assert(!pipe(ready));
	pid = fork();
	if (!pid) {
		net_loop_unix(world);
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(0);
	}
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

LOOP_TEST(a_unix_peer_that_is_killed_is_gone_whether_reading_is_on_or_off, 2)
{
	pid_t pid = child_with_connection(&w);

	net_loop_told(&w, "open 0.1\n");
	ck_assert_int_eq(w.peer.pid, pid);
	net_read(w.net, w.session, _i);
	kill(pid, SIGKILL);
	net_loop_told(&w, "gone 0.1 hangup\n");
	waitpid(pid, NULL, 0);
}

/* The error of the kernel when the other end does not answer for longer than the keepalive time. Here its window is closed. */
TEST(a_tcp_peer_that_is_silent_too_long_is_told_as_keepalive)
{
	struct net_conf conf = NET_LOOP_CONF;
	static char much[1024 * 1024];
	int fd, i;

	net_loop_release(&w);
	conf.keepalive_us = 1000000;
	conf.output_max = 64 * sizeof(much);
	net_loop_init(&w, conf);
	fd = net_loop_client(&w, 1);
	for (i = 0; i < 16; i++)
		net_send(w.net, w.session, much, sizeof(much));
	net_loop_told(&w, "gone 0.1 keepalive\n");
	close(fd);
}

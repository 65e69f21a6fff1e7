/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/net/conn.c while reading is off, and how much of a pass one connection may have. */
#include "tests/fixture/net_loop.h"

#include <check.h>
#include <string.h>
#include <sys/socket.h>
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

static void stop_at_b(struct net_loop *world, uint64_t session, const char *line)
{
	if (!strcmp(line, "b"))
		net_read(world->net, session, false);
}

/* 0: Unix, 1: TCP. */
FIXTURE(.setup = setup, .teardown = teardown, .seconds = 60)

LOOP_TEST(lines_that_wait_are_delivered_when_reading_resumes, 2)
{
	int fd = net_loop_client(&w, _i);

	w.on_line = stop_at_b;
	net_loop_says(&w, fd, "a\nb\nc\nb\nd\nhal");
	net_loop_told(&w, "line 0.1 a\nline 0.1 b\n");
	net_loop_says(&w, fd, "f\n");
	net_loop_at_rest(&w);
	net_read(w.net, w.session, true);
	ck_assert_uint_eq(buf_length(&w.told), 0); /* not from inside net_read */
	net_loop_told(&w, "line 0.1 c\nline 0.1 b\n");
	net_read(w.net, w.session, true);
	net_loop_told(&w, "line 0.1 d\nline 0.1 half\n");
	close(fd);
}

static void flicker(struct net_loop *world, uint64_t session, const char *line)
{
	(void)line;
	net_read(world->net, session, false);
	net_read(world->net, session, true);
}

LOOP_TEST(reading_off_and_on_inside_a_callback_changes_nothing, 2)
{
	int fd = net_loop_client(&w, _i);

	w.on_line = flicker;
	net_loop_says(&w, fd, "a\nb\nc\n");
	net_loop_told(&w, "line 0.1 a\nline 0.1 b\nline 0.1 c\n");
	close(fd);
}

static void on_switches_other_on(struct net_loop *world, uint64_t session, const char *line)
{
	stop_at_b(world, session, line);
	if (!strcmp(line, "on"))
		net_read(world->net, UINT64_C(1) << 32 | 1, true);
}

/* All in one pass of the loop: the line of another session switches reading on while the socket is known to be readable. */
LOOP_TEST(lines_that_wait_and_eof_in_one_pass_keep_their_order, 2)
{
	int first = net_loop_client(&w, _i), second = _i ? net_loop_tcp(&w) : net_loop_unix(&w);

	net_loop_told(&w, "open 1.1\n");
	w.on_line = on_switches_other_on;
	net_loop_says(&w, second, "b\nc\nb\nd\n");
	net_loop_told(&w, "line 1.1 b\n");
	net_loop_says(&w, first, "on\n");
	shutdown(second, SHUT_WR);
	net_loop_told(&w, "line 0.1 on\nline 1.1 c\nline 1.1 b\nhalf_closed 1.1\n");
	net_read(w.net, UINT64_C(1) << 32 | 1, true);
	net_loop_told(&w, "line 1.1 d\neof 1.1\n");
	close(first);
	close(second);
}

LOOP_TEST(many_lines_that_wait_and_as_many_more_in_one_pass_are_all_told, 2)
{
	static char much[65536];
	int first = net_loop_client(&w, _i), second = _i ? net_loop_tcp(&w) : net_loop_unix(&w);
	unsigned long lines;
	size_t i;

	net_loop_told(&w, "open 1.1\n");
	w.on_line = on_switches_other_on;
	memset(much, '\n', sizeof(much));
	memcpy(much, "b\n", 2);
	for (i = 0; i < sizeof(much); i += (size_t)send(second, much + i, sizeof(much) - i, 0))
		;
	net_loop_told(&w, "line 1.1 b\n");
	w.quiet = true;
	lines = w.lines;
	net_loop_says(&w, first, "on\n");
	for (i = 1; i < sizeof(much); i += (size_t)send(second, much + i, sizeof(much) - i, 0))
		;
	net_loop_until(&w, w.lines - lines == 1 + (65536 - 2) + (65536 - 1));
	close(first);
	close(second);
}

LOOP_TEST(a_half_close_while_reading_is_off_is_told_and_loses_no_line, 2)
{
	int fd = net_loop_client(&w, _i);

	w.on_line = stop_at_b;
	net_loop_says(&w, fd, "a\nb\nc\n"); /* c is split already */
	net_loop_told(&w, "line 0.1 a\nline 0.1 b\n");
	net_loop_says(&w, fd, "d\ne\n"); /* these stay in the socket */
	net_loop_at_rest(&w);            /* by now only edges are watched */
	shutdown(fd, SHUT_WR);
	net_loop_told(&w, "half_closed 0.1\n");
	net_loop_at_rest(&w);
	net_read(w.net, w.session, true);
	net_loop_told(&w, "line 0.1 c\nline 0.1 d\nline 0.1 e\neof 0.1\n");
	net_loop_at_rest(&w);
	close(fd);
}

LOOP_TEST(eof_waits_behind_lines_that_wait, 2)
{
	int fd = net_loop_client(&w, _i);

	w.on_line = stop_at_b;
	shutdown((net_loop_says(&w, fd, "a\nb\nc\nb\nd\n"), fd), SHUT_WR);
	net_loop_told(&w, "line 0.1 a\nline 0.1 b\nhalf_closed 0.1\n");
	net_read(w.net, w.session, true);
	net_loop_told(&w, "line 0.1 c\nline 0.1 b\n");
	net_loop_at_rest(&w);
	net_read(w.net, w.session, true);
	net_loop_told(&w, "line 0.1 d\neof 0.1\n");
	close(fd);
}

/* The line of the other session is delivered after the end, although both came in one pass: it may ask for a lock that the ended session has held. */
TEST(a_hang_up_is_told_before_the_lines_that_were_said_after_it)
{
	int fd = net_loop_client(&w, 0), other = net_loop_unix(&w);

	net_loop_told(&w, "open 1.1\n");
	w.on_line = stop_at_b;
	net_loop_says(&w, fd, "b\nc\n");
	net_loop_told(&w, "line 0.1 b\n");
	net_loop_at_rest(&w);
	close(fd);
	net_loop_says(&w, other, "mine?\n");
	net_loop_told(&w, "gone 0.1 hangup\nline 1.1 mine?\n");
	close(other);
}

LOOP_TEST(a_peer_that_is_gone_is_noticed_while_reading_is_off, 2)
{
	int fd = net_loop_client(&w, _i);

	w.on_line = stop_at_b;
	net_loop_says(&w, fd, "a\nb\nc\n");
	net_loop_told(&w, "line 0.1 a\nline 0.1 b\n");
	net_loop_says(&w, fd, "d\n");
	net_loop_at_rest(&w); /* by now only edges are watched */
	if (_i)
		net_loop_resets(fd);
	else
		close(fd);
	net_loop_told(&w, _i ? "gone 0.1 reset\n" : "gone 0.1 hangup\n");
	net_read(w.net, w.session, true);
	net_loop_at_rest(&w);
}

/* Lines of 32 bytes. However much one send takes, the first line of the next send is short enough. */
static unsigned long flood(int fd, char *much, size_t size)
{
	unsigned long lines = 0;
	ssize_t r;
	size_t i;

	memset(much, 'x', size);
	for (i = 31; i < size; i += 32)
		much[i] = '\n';
	while ((r = send(fd, much, size, MSG_DONTWAIT)) > 0) {
		lines += (unsigned long)r / 32;
		net_loop_settle(&w);
	}
	return lines;
}

LOOP_TEST(a_flood_while_reading_is_off_keeps_nobody_busy, 2)
{
	static char much[65536];
	int fd = net_loop_client(&w, _i);
	unsigned long lines;

	net_read(w.net, w.session, false);
	lines = flood(fd, much, sizeof(much));
	net_loop_at_rest(&w);
	w.quiet = true;
	net_read(w.net, w.session, true);
	ck_assert_uint_gt(lines, 0);
	net_loop_until(&w, w.lines == lines); /* nothing was lost */
	close(fd);
}

TEST(a_pipelining_client_does_not_starve_another)
{
	static char much[65536];
	int busy = net_loop_client(&w, 0), other = net_loop_unix(&w), passes;
	unsigned long lines;

	net_loop_told(&w, "open 1.1\n");
	w.quiet = true;
	net_read(w.net, UINT64_C(1) << 32, false);
	lines = flood(busy, much, sizeof(much));
	net_read(w.net, UINT64_C(1) << 32, true);
	w.on_line = net_loop_says_ok;
	net_loop_says(&w, other, "PING\n");
	for (passes = 0; passes < 2; passes++)
		net_loop_pass(&w);
	ck_assert_uint_lt(w.lines, lines);
	ck_assert_int_eq(recv(other, much, 3, MSG_DONTWAIT), 3);
	close(busy);
	close(other);
}

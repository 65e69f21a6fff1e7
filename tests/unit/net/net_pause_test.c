/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/net/carry.c: a pause, that is taken back or is not. */
#include "tests/fixture/much_output.h"

#include <check.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* 0: Unix, 1: TCP. */
FIXTURE(.setup = much_is_ready, .teardown = much_is_over, .seconds = 60)

LOOP_TEST(in_a_pause_no_line_is_told_and_afterwards_all_in_order, 2)
{
	int fd = net_loop_client(&w, _i);

	net_loop_says(&w, fd, "a\nha");
	net_loop_told(&w, "line 0.1 a\n");
	net_pause(w.net, true);
	net_loop_says(&w, fd, "lf\nb\n");
	net_loop_at_rest(&w);
	net_send(w.net, w.session, "OK\n", 3);
	net_loop_hears(&w, fd, "OK\n");
	net_loop_says(&w, fd, "c\n");
	net_loop_at_rest(&w);
	net_pause(w.net, false);
	net_loop_told(&w, "line 0.1 half\nline 0.1 b\nline 0.1 c\n");
	net_loop_says(&w, fd, "d\n");
	net_loop_told(&w, "line 0.1 d\n");
	net_loop_at_rest(&w);
	close(fd);
}

static void pauses_at_b(struct net_loop *world, uint64_t session, const char *line)
{
	(void)session;
	if (!strcmp(line, "b"))
		net_pause(world->net, true);
}

LOOP_TEST(a_pause_inside_a_callback_holds_the_lines_behind_it_and_the_end, 2)
{
	int fd = net_loop_client(&w, _i);

	w.on_line = pauses_at_b;
	net_loop_says(&w, fd, "a\nb\nc\n");
	shutdown(fd, SHUT_WR);
	net_loop_told(&w, "line 0.1 a\nline 0.1 b\n");
	net_loop_at_rest(&w);
	if (_i)
		net_loop_carries(&w);
	else
		net_pause(w.net, false);
	net_loop_told(&w, "line 0.1 c\neof 0.1\n");
	close(fd);
}

LOOP_TEST(in_a_pause_clients_wait_in_the_backlog, 2)
{
	int fd;

	net_pause(w.net, true);
	fd = _i ? net_loop_tcp(&w) : net_loop_unix(&w);
	net_loop_says(&w, fd, "a\n");
	net_loop_at_rest(&w);
	net_pause(w.net, false);
	net_loop_told(&w, "open 0.1\nline 0.1 a\n");
	close(fd);
}

TEST(what_happens_in_a_pause_that_is_taken_back_is_told_afterwards)
{
	int closes = net_loop_client(&w, 0), halves = net_loop_unix(&w), off;

	net_loop_told(&w, "open 1.1\n");
	off = net_loop_unix(&w);
	net_loop_told(&w, "open 2.1\n");
	net_read(w.net, w.session, false);
	net_pause(w.net, true);
	net_loop_says(&w, closes, "a\n");
	close(closes);
	net_loop_says(&w, halves, "b\n");
	shutdown(halves, SHUT_WR);
	close(off);
	net_loop_at_rest(&w);
	net_pause(w.net, false);
	net_loop_until(&w, buf_length(&w.told) >= 70);
	net_loop_settle(&w);
	buf_append(&w.told, "", 1);
	ck_assert_ptr_nonnull(strstr(buf_begin(&w.told), "line 0.1 a\n"));
	ck_assert_ptr_nonnull(strstr(strstr(buf_begin(&w.told), "line 0.1 a\n"), "gone 0.1 hangup\n"));
	ck_assert_ptr_nonnull(strstr(buf_begin(&w.told), "line 1.1 b\n"));
	ck_assert_ptr_nonnull(strstr(strstr(buf_begin(&w.told), "line 1.1 b\n"), "eof 1.1\n"));
	ck_assert_ptr_nonnull(strstr(buf_begin(&w.told), "gone 2.1 hangup\n"));
	buf_clear(&w.told);
	close(halves);
}

/* A write in the pause finds that the client is gone. Its lines were said before. */
LOOP_TEST(a_write_to_a_client_that_is_gone_loses_none_of_its_lines, 2)
{
	int fd = net_loop_client(&w, 0);

	net_pause(w.net, true);
	net_loop_says(&w, fd, "a\nb\n");
	close(fd);
	net_send(w.net, w.session, "OK\n", 3);
	net_loop_at_rest(&w);
	if (_i)
		net_loop_carries(&w);
	else
		net_pause(w.net, false);
	net_loop_told(&w, "half_closed 0.1\nline 0.1 a\nline 0.1 b\ngone 0.1 hangup\n");
}

/* The lines behind it were read already, so the socket has nothing to report. 2, 3: carried, too. */
LOOP_TEST(lines_that_were_read_before_a_pause_are_told_after_it, 4)
{
	int fd = net_loop_client(&w, _i & 1);

	w.on_line = pauses_at_b;
	net_loop_says(&w, fd, "a\nb\nc\n");
	net_loop_told(&w, "line 0.1 a\nline 0.1 b\n");
	net_loop_at_rest(&w);
	if (_i & 2)
		net_loop_carries(&w);
	else
		net_pause(w.net, false);
	net_loop_told(&w, "line 0.1 c\n");
	close(fd);
}

static void pauses_in_the_second_share(struct net_loop *world, uint64_t session, const char *line)
{
	(void)session, (void)line;
	if (world->lines == 2 * 8 + 1)
		net_pause(world->net, true);
}

/* Its lines are more than a share, and the sink hears of another when the pause begins. 2, 3: carried, too. */
LOOP_TEST(a_share_that_was_used_up_before_a_pause_goes_on_after_it, 4)
{
	static const char lines[] = "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n";
	int fd = net_loop_client(&w, _i & 1), other = net_loop_unix(&w);

	net_loop_told(&w, "open 1.1\n");
	w.quiet = true;
	w.on_line = pauses_in_the_second_share;
	net_loop_says(&w, fd, lines);
	net_loop_says(&w, other, lines);
	net_loop_settle(&w);
	ck_assert_uint_eq(w.lines, 2 * 8 + 1);
	if (_i & 2)
		net_loop_carries(&w);
	else
		net_pause(w.net, false);
	net_loop_until(&w, w.lines == 40);
	close(fd);
	close(other);
}

static void off_and_on_then_pause(struct net_loop *world, uint64_t session, const char *line)
{
	if (!strcmp(line, "b"))
		net_read(world->net, session, false);
	if (!strcmp(line, "on"))
		net_read(world->net, UINT64_C(1) << 32 | 1, true);
	if (!strcmp(line, "c"))
		net_pause(world->net, true);
}

/* All in one pass of the loop, where the socket is known to be readable. */
LOOP_TEST(an_end_behind_lines_that_a_pause_holds_waits_too, 2)
{
	int first = net_loop_client(&w, _i), second = _i ? net_loop_tcp(&w) : net_loop_unix(&w);

	net_loop_told(&w, "open 1.1\n");
	w.on_line = off_and_on_then_pause;
	net_loop_says(&w, second, "b\nc\nd\n");
	net_loop_told(&w, "line 1.1 b\n");
	net_loop_says(&w, first, "on\n");
	shutdown(second, SHUT_WR);
	net_loop_told(&w, "line 0.1 on\nline 1.1 c\n");
	net_loop_at_rest(&w);
	net_pause(w.net, false);
	net_loop_told(&w, "line 1.1 d\neof 1.1\n");
	close(first);
	close(second);
}

LOOP_TEST(that_output_was_sent_is_told_after_the_pause, 2)
{
	int fd = net_loop_client(&w, _i);

	net_pause(w.net, true);
	net_await_sent(w.net, w.session);
	net_loop_at_rest(&w);
	net_pause(w.net, false);
	net_loop_told(&w, "sent 0.1\n");
	close(fd);
}

TEST(who_listens_in_a_pause_accepts_after_it)
{
	char path[sizeof(w.path) + 8];
	int fd;

	net_pause(w.net, true);
	snprintf(path, sizeof(path), "%s.two", w.path);
	ck_assert_int_eq(net_listen_unix(w.net, path), 0);
	memcpy(w.path, path, sizeof(w.path));
	fd = net_loop_unix(&w);
	net_loop_at_rest(&w);
	net_pause(w.net, false);
	net_loop_told(&w, "open 0.1\n");
	close(fd);
}

/* acceptor.h: it tries again after 100 ms. */
TEST(a_shortage_of_descriptors_that_ends_in_a_pause_ends_no_pause)
{
	struct rlimit limit, few;
	int fd = net_loop_unix(&w);
	double until;

	getrlimit(RLIMIT_NOFILE, &limit);
	few = limit;
	few.rlim_cur = (rlim_t)fd + 1;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	net_loop_until(&w, net_loop_counts(&w).pauses == 1);
	setrlimit(RLIMIT_NOFILE, &limit);
	net_pause(w.net, true);
	for (until = net_loop_clock() + 0.3; net_loop_clock() < until;)
		net_loop_pass(&w);
	ck_assert_uint_eq(w.opened, 0);
	net_pause(w.net, false);
	net_loop_told(&w, "open 0.1\n");
	close(fd);
}

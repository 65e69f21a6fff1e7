/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/net/closing.c: hanging up, so that the last lines still arrive. */
#include "daemon/net/closing.h"
#include "tests/fixture/much_output.h"

#include <check.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- hanging up ---------------------------------------------------------------------------------------------------- */

static void quit(struct net_loop *world, uint64_t session, const char *line)
{
	if (!strcmp(line, "QUIT")) {
		net_send(world->net, session, "OK\n", 3);
		net_hangup(world->net, session);
		net_hangup(world->net, session);
	}
}

/* 0: Unix, 1: TCP. */
FIXTURE(.setup = much_is_ready, .teardown = much_is_over, .seconds = 60)

LOOP_TEST(a_hangup_inside_a_callback_ends_the_telling_of_lines, 2)
{
	int fd = net_loop_client(&w, _i);

	w.on_line = quit;
	net_loop_says(&w, fd, "PING\nQUIT\nPING\nPING\nPI");
	net_loop_told(&w, "line 0.1 PING\nline 0.1 QUIT\n");
	ck_assert_uint_eq(net_sessions(w.net), 0);
	net_loop_hears(&w, fd, "OK\n");
	net_loop_eof(&w, fd);
	ck_assert_uint_eq(net_closing(w.net), 1); /* it is shut down, and waits for the client */
	close(fd);
	net_loop_until(&w, net_closing(w.net) == 0);
	net_loop_at_rest(&w);
}

LOOP_TEST(a_hangup_without_a_word_is_seen_at_once, 2)
{
	int fd = net_loop_client(&w, _i);

	net_hangup(w.net, w.session);
	net_loop_eof(&w, fd);
	ck_assert_uint_eq(net_closing(w.net), 1);
	close(fd);
}

static void quit_and_flush(struct net_loop *world, uint64_t session, const char *line)
{
	quit(world, session, line);
	net_flush(world->net);
	shutdown(*(int *)world->data, SHUT_RDWR);
	net_flush(world->net);
}

LOOP_TEST(a_flush_inside_a_callback_is_safe, 2)
{
	int fd = net_loop_client(&w, _i);

	w.data = &fd;
	w.on_line = quit_and_flush;
	net_loop_says(&w, fd, "QUIT\nPING\n");
	net_loop_told(&w, "line 0.1 QUIT\n");
	net_loop_until(&w, net_closing(w.net) == 0);
	close(fd);
}

static void hang_up(struct net_loop *world, uint64_t session)
{
	net_send(world->net, session, "BYE\n", 4);
	net_hangup(world->net, session);
}

LOOP_TEST(a_hangup_inside_eof_or_too_long_is_safe, 2)
{
	int fd = net_loop_client(&w, _i), other;

	w.on_end = hang_up;
	shutdown(fd, SHUT_WR);
	net_loop_told(&w, "eof 0.1\n");
	net_loop_hears(&w, fd, "BYE\n");
	net_loop_eof(&w, fd);
	other = _i ? net_loop_tcp(&w) : net_loop_unix(&w);
	net_loop_told(&w, "open 0.2\n");
	much[100] = '\n';
	net_loop_says(&w, other, (memcpy(much + 101, "PING\n", 6), much));
	net_loop_told(&w, "toolong 0.2\n");
	net_loop_hears(&w, other, "BYE\n");
	close(fd);
	close(other);
}

static void stop(struct net_loop *world, uint64_t session, const char *line)
{
	(void)line;
	net_read(world->net, session, false);
}

LOOP_TEST(a_hangup_drops_the_lines_that_wait, 2)
{
	int fd = net_loop_client(&w, _i);

	w.on_line = stop;
	net_loop_says(&w, fd, "a\nb\nc\n");
	net_loop_told(&w, "line 0.1 a\n");
	net_read(w.net, w.session, true);
	net_read(w.net, w.session, false);
	net_read(w.net, w.session, true);
	net_hangup(w.net, w.session);
	net_loop_at_rest(&w);
	close(fd);
}

LOOP_TEST(a_hangup_of_a_session_that_overflowed_drops_its_last_line, 2)
{
	int fd = net_loop_client(&w, _i), i;

	for (i = 0; i < 16; i++)
		net_send(w.net, w.session, much, MUCH);
	net_hangup(w.net, w.session);
	net_loop_at_rest(&w);
	ck_assert_uint_eq(net_sessions(w.net), 0);
	close(fd);
}

/* Without lingering the unread input would turn our close into a reset, and that would eat the last line. */
LOOP_TEST(the_last_line_arrives_though_input_was_left_unread, 2)
{
	int fd = net_loop_client(&w, _i);

	net_read(w.net, w.session, false);
	while (send(fd, much, 65536, MSG_DONTWAIT) > 0)
		;
	net_send(w.net, w.session, "BYE\n", 4);
	net_hangup(w.net, w.session);
	net_loop_settle(&w);
	/* More input, although the other side is shut down. */
	ck_assert_int_gt(send(fd, much, 65536, MSG_DONTWAIT | MSG_NOSIGNAL), 0);
	net_loop_settle(&w);
	net_loop_hears(&w, fd, "BYE\n");
	net_loop_eof(&w, fd);
	close(fd);
	net_loop_until(&w, net_closing(w.net) == 0);
}

/* Both sides wait for each other to read, so neither would move. */
LOOP_TEST(input_is_dropped_while_output_goes_out, 2)
{
	int fd = net_loop_client(&w, _i);

	net_read(w.net, w.session, false);
	net_send(w.net, w.session, much, MUCH);
	net_loop_settle(&w);
	while (send(fd, much, 65536, MSG_DONTWAIT) > 0)
		;
	net_loop_at_rest(&w);
	net_hangup(w.net, w.session);
	net_loop_until(&w, send(fd, much, 65536, MSG_DONTWAIT | MSG_NOSIGNAL) > 0);
	ck_assert_uint_eq(net_closing(w.net), 1);
	close(fd);
}

LOOP_TEST(all_that_was_sent_goes_out_before_the_hangup, 2)
{
	int fd = net_loop_client(&w, _i);

	net_send(w.net, w.session, much, MUCH);
	net_send(w.net, w.session, "BYE\n", 4);
	net_hangup(w.net, w.session);
	net_loop_settle(&w);
	shutdown(fd, SHUT_WR);
	net_loop_settle(&w);
	net_loop_drains(&w, fd, MUCH);
	net_loop_hears(&w, fd, "BYE\n");
	net_loop_eof(&w, fd);
	close(fd);
	net_loop_until(&w, net_closing(w.net) == 0);
}

LOOP_TEST(a_peer_that_neither_reads_nor_closes_is_closed_after_a_second, 2)
{
	int fd = net_loop_client(&w, _i), lazy = _i ? net_loop_tcp(&w) : net_loop_unix(&w);
	double start = net_loop_clock();

	net_loop_told(&w, "open 1.1\n");
	net_send(w.net, w.session, much, MUCH);
	net_hangup(w.net, UINT64_C(1) << 32);
	net_hangup(w.net, w.session);
	ck_assert_uint_eq(net_closing(w.net), 2);
	net_loop_at_rest(&w);
	net_loop_until(&w, net_closing(w.net) == 0);
	ck_assert(net_loop_clock() - start > 0.9 && net_loop_clock() - start < 3);
	close(fd);
	close(lazy);
}

TEST(a_unix_peer_that_dies_while_it_is_hung_up_is_closed_at_once)
{
	int fd = net_loop_client(&w, 0);

	net_send(w.net, w.session, much, MUCH);
	net_hangup(w.net, w.session);
	net_loop_settle(&w);
	shutdown(fd, SHUT_WR);
	net_loop_at_rest(&w);
	ck_assert_uint_eq(net_closing(w.net), 1);
	close(fd);
	net_loop_settle(&w);
	ck_assert_uint_eq(net_closing(w.net), 0);
}

LOOP_TEST(only_so_many_closing_connections_wait, 2)
{
	static uint64_t session[6];
	int fd[6], i;

	for (i = 0; i < 6; i++) {
		fd[i] = _i ? net_loop_tcp(&w) : net_loop_unix(&w);
		net_loop_until(&w, w.opened == (unsigned)i + 1);
		session[i] = w.session;
	}
	net_set_limits(w.net, 4096, 2, 100, w.conf.peer_max);
	for (i = 0; i < 6; i++) {
		net_loop_says(&w, fd[i], "unread\n");
		net_send(w.net, session[i], "BYE\n", 4);
		net_hangup(w.net, session[i]);
	}
	ck_assert_uint_eq(net_closing(w.net), 2);
	for (i = 0; i < 6; i++) {
		net_loop_hears(&w, fd[i], "BYE\n");
		net_loop_eof(&w, fd[i]);
		close(fd[i]);
	}
}

LOOP_TEST(a_peer_that_is_gone_before_its_last_line_does_no_harm, 2)
{
	int fd = net_loop_client(&w, _i);

	close(fd);
	net_send(w.net, w.session, "BYE\n", 4);
	net_hangup(w.net, w.session);
	net_flush(w.net);
	net_loop_until(&w, net_closing(w.net) == 0);
	net_loop_at_rest(&w);
}

/* Two connections close one after the other. False: a busy machine came too late to see that the second one was not over with the first. */
static bool seconds_are_told_apart(bool tcp)
{
	int first = net_loop_client(&w, tcp), second = tcp ? net_loop_tcp(&w) : net_loop_unix(&w);
	double start, between;
	bool seen;

	net_loop_told(&w, "open 1.1\n");
	start = net_loop_clock();
	net_hangup(w.net, w.session);
	net_loop_until(&w, net_loop_clock() - start > 0.3);
	between = net_loop_clock();
	net_hangup(w.net, UINT64_C(1) << 32);
	net_loop_until(&w, net_closing(w.net) < 2);
	ck_assert(net_loop_clock() - start > 0.9);
	seen = net_closing(w.net) == 1 && net_loop_clock() - between < 0.9;
	net_loop_until(&w, net_closing(w.net) == 0);
	ck_assert(net_loop_clock() - between > 0.9);
	close(first);
	close(second);
	return seen;
}

LOOP_TEST(each_closing_connection_has_its_own_second, 2)
{
	for (int tries = 1; !seconds_are_told_apart(_i); tries++) {
		ck_assert_int_lt(tries, 8);
		net_loop_again(&w, w.conf.sessions_max);
	}
}

LOOP_TEST(of_many_whose_second_is_over_a_pass_closes_a_few, 2)
{
	enum { MANY = 90 };
	int fd[MANY];
	unsigned before;

	for (unsigned i = 0; i < MANY; i++) {
		fd[i] = _i ? net_loop_tcp(&w) : net_loop_unix(&w);
		net_loop_until(&w, w.opened == i + 1);
		net_hangup(w.net, w.session);
	}
	net_loop_settle(&w);
	ck_assert_uint_eq(net_closing(w.net), MANY);
	usleep(1200000);
	while ((before = net_closing(w.net)) > 0) {
		net_loop_pass(&w);
		ck_assert_uint_le(before - net_closing(w.net), CLOSING_AT_ONCE);
	}
	buf_clear(&w.told);
	for (unsigned i = 0; i < MANY; i++)
		close(fd[i]);
}

LOOP_TEST(everything_may_be_freed_in_the_middle, 2)
{
	int fd[4], i;

	for (i = 0; i < 4; i++) {
		fd[i] = _i ? net_loop_tcp(&w) : net_loop_unix(&w);
		net_loop_until(&w, w.opened == (unsigned)i + 1);
		if (i == 0 || i == 1)
			net_send(w.net, w.session, much, MUCH);
		if (i == 1 || i == 2)
			net_hangup(w.net, w.session);
	}
	net_loop_says(&w, fd[3], "half a li");
	net_loop_settle(&w);
	net_send(w.net, w.session, "dirty", 5);
	much_is_over();
	for (i = 0; i < 4; i++)
		close(fd[i]);
	much_is_ready();
}
